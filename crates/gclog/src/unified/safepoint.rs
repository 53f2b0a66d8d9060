//! Safepoints: threads stopped, for a collection or anything else.
//!
//! JDK 9 to 12: `Entering safepoint region: RevokeBias`, then `Total time for which application threads were stopped:
//! 0.0007182 seconds, Stopping threads took: 0.0006814 seconds`, and `Application time:` before them. From 13 on one
//! line: `Safepoint "RevokeBias", Time since last: 123 ns, Reaching safepoint: 12 ns, ..., Total: 345 ns`.
//! Source: `runtime/safepoint.cpp`, `SafepointTracing`.

use memchr::memchr;

use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Event, Safepoint, Stamp};
use crate::names::Name;
use crate::number::{LONGEST_NS, SECONDS, decimal, whole};

/// The operation for which the threads were stopped, until the line with the time.
#[derive(Debug, Default)]
pub(super) struct Region {
    operation: Option<Name>,
}

/// Reads a line of a safepoint.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, message: Message<'_>) -> Read {
    let text = message.text;
    if let Some(rest) = text.strip_prefix(b"Safepoint \"") {
        return one_line(unified, context, message, rest);
    }
    if let Some(rest) =
        text.strip_prefix(b"Total time for which application threads were stopped: ")
    {
        return stopped(unified, context, message, rest);
    }
    if let Some(rest) = text.strip_prefix(b"Application time: ") {
        let Some((duration_ns, _)) = seconds(rest) else {
            return Read::Damaged;
        };
        let at = unified.at(context, &message);
        unified.open.tell(context);
        context.tell(Event::Ran { at, duration_ns });
        return Read::Understood;
    }
    if let Some(rest) = text.strip_prefix(b"Entering safepoint region: ") {
        unified.safepoint.operation = Some(context.names.number(rest.trim_ascii_end()));
        return Read::Understood;
    }
    if text.starts_with(b"Leaving safepoint region") {
        return Read::Understood;
    }
    Read::Unknown
}

/// What follows `Total time for which application threads were stopped: `.
fn stopped(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: Message<'_>,
    text: &[u8],
) -> Read {
    let Some((total_ns, rest)) = seconds(text) else {
        return Read::Damaged;
    };
    let reaching_ns = rest
        .strip_prefix(b", Stopping threads took: ")
        .and_then(seconds)
        .map(|(value, _)| value);
    let operation = unified.safepoint.operation.take();
    tell(unified, context, &message, operation, reaching_ns, total_ns);
    Read::Understood
}

/// `0.0007182 seconds` and what follows it.
fn seconds(text: &[u8]) -> Option<(u64, &[u8])> {
    let (ns, rest) = decimal(text, SECONDS).filter(|(ns, _)| *ns <= LONGEST_NS)?;
    Some((ns, rest.strip_prefix(b" seconds")?))
}

/// What follows `Safepoint "`.
fn one_line(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: Message<'_>,
    text: &[u8],
) -> Read {
    let Some(end) = memchr(b'"', text) else {
        return Read::Unknown;
    };
    let (operation, figures) = (&text[..end], Figures::read(&text[end + 1..]));
    let Some(total_ns) = figures.total else {
        return Read::Damaged;
    };
    let operation = Some(context.names.number(operation));
    if let Some(duration_ns) = figures.since_last {
        // From the end of the last safepoint to the beginning of this one.
        let end = unified.at(context, &message);
        unified.open.tell(context);
        let at = before(end, total_ns);
        context.tell(Event::Ran { at, duration_ns });
    }
    tell(
        unified,
        context,
        &message,
        operation,
        figures.reaching,
        total_ns,
    );
    Read::Understood
}

/// `, Time since last: 123 ns, Reaching safepoint: 12 ns, ..., Total: 345 ns`, each in nanoseconds.
#[derive(Debug, Default)]
struct Figures {
    since_last: Option<u64>,
    reaching: Option<u64>,
    total: Option<u64>,
}

impl Figures {
    fn read(text: &[u8]) -> Self {
        let mut figures = Self::default();
        let mut rest = text;
        while let Some(at) = memchr(b':', rest) {
            let label = &rest[..at];
            rest = rest[at + 1..].trim_ascii_start();
            let Some((value, after)) = whole(rest).filter(|(_, after)| after.starts_with(b" ns"))
            else {
                continue;
            };
            rest = &after[3..];
            match label {
                b", Time since last" => figures.since_last = Some(value),
                b", Reaching safepoint" => figures.reaching = Some(value),
                b", Total" => figures.total = Some(value),
                _ => {}
            }
        }
        figures
    }
}

fn tell(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: &Message<'_>,
    operation: Option<Name>,
    reaching_ns: Option<u64>,
    total_ns: u64,
) {
    let end = unified.at(context, message);
    unified.open.tell(context);
    let safepoint = Safepoint {
        line: context.line,
        began: before(end, total_ns),
        operation,
        reaching_ns,
        total_ns,
    };
    context.tell(Event::Safepoint(&safepoint));
}

fn before(end: Stamp, total_ns: u64) -> Stamp {
    Stamp {
        uptime_ns: end.uptime_ns.map(|end| end.saturating_sub(total_ns)),
        wall_ns: end.wall_ns.map(|end| end.saturating_sub_unsigned(total_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;

    #[test]
    fn both_forms_tell_the_operation_the_way_to_it_and_the_whole() {
        let parsed = parsed(
            "[0.2s][safepoint] Application time: 0.0041130 seconds\n\
             [0.2s][safepoint] Entering safepoint region: RevokeBias\n\
             [0.2s][safepoint] Leaving safepoint region\n\
             [0.2s][safepoint] Total time for which application threads were stopped: 0.0007182 seconds, Stopping threads took: 0.0006814 seconds\n\
             [3.0s][safepoint] Safepoint \"G1PauseRemark\", Time since last: 984136073 ns, Reaching safepoint: 24647 ns, At safepoint: 55787839 ns, Leaving safepoint: 338 ns, Total: 55812824 ns, Threads: 0 runnable, 15 total\n",
        );
        assert_eq!(parsed.others.len(), 4, "{:?}", parsed.others);
        assert!(parsed.others[0].ends_with("duration_ns: 4113000 }"));
        assert_eq!(parsed.others[1], "Some(\"RevokeBias\") Some(681400) 718200");
        // The application ran until the safepoint began.
        assert!(parsed.others[2].contains("uptime_ns: Some(2944187176)"));
        assert!(parsed.others[2].ends_with("duration_ns: 984136073 }"));
        assert_eq!(
            parsed.others[3],
            "Some(\"G1PauseRemark\") Some(24647) 55812824"
        );
    }
}
