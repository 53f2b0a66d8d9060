//! The lines of a followed log, for people: one per collection, a bar with the state of the JVM, findings as they arrive.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::gc_follow::{Collection, FollowLine, Standing};

use super::{fine_share, millis, per_second};
use crate::block::Tone;
use crate::numbers::{self, ABSENT};
use crate::terminal::text::{Paint, clean, pad};

/// `degenerated`, the longest kind.
const KIND: usize = 11;
/// `03:00:00.123Z`.
const TIME: usize = 13;
/// `1.23 ms` and its like.
const PAUSE: usize = 8;
/// `4.54 GiB → 4.54 GiB of 6.30 GiB`.
const HEAP: usize = 31;

/// The line, without its end; several for a finding. A report is none. Collections longer than the limit are marked.
pub fn line(line: &FollowLine, limit_ms: Option<f64>, color: bool) -> Option<String> {
    let paint = Paint { color };
    let bar = |text: &str, tone| Some(format!("{} {text}", paint.tone("▌", tone)));
    match line {
        FollowLine::Collection(collection) => Some(one(collection, limit_ms, paint)),
        FollowLine::Standing(standing) => bar(&stands(standing), Tone::Quiet),
        FollowLine::Finding(finding) => Some(found(finding, paint)),
        FollowLine::Restart => bar("from here on the log is from another JVM", Tone::Doubt),
        FollowLine::OutOfMemory => bar("the JVM ran out of memory", Tone::Bad),
        FollowLine::Report(_) => None,
    }
}

fn one(collection: &Collection, limit_ms: Option<f64>, paint: Paint) -> String {
    let time = match (&collection.at, collection.at_s) {
        (Some(at), _) => at.get(11..).unwrap_or(at).to_owned(),
        (None, Some(at_s)) => format!("{at_s:.3} s"),
        (None, None) => format!("line {}", collection.line),
    };
    let beyond = !collection.nested
        && collection.kind != "cycle"
        && limit_ms
            .zip(collection.duration_ms)
            .is_some_and(|(limit, ms)| ms > limit);
    let lasted = pad(
        &collection
            .duration_ms
            .map_or_else(|| ABSENT.to_owned(), millis),
        PAUSE,
        true,
    );
    let (mark, lasted) = if beyond {
        ("!", paint.tone(&lasted, Tone::Bad))
    } else {
        (" ", lasted)
    };
    let heap = [collection.heap_before_bytes, collection.heap_after_bytes]
        .map(|bytes| bytes.map_or_else(|| ABSENT.to_owned(), numbers::bytes));
    let heap = match collection.heap_bytes {
        _ if heap[0] == ABSENT && heap[1] == ABSENT => String::new(),
        Some(room) => format!("{} → {} of {}", heap[0], heap[1], numbers::bytes(room)),
        None => format!("{} → {}", heap[0], heap[1]),
    };
    let why = collection.cause.as_ref().unwrap_or(&collection.name);
    let within = if collection.nested {
        " (nested in the next)"
    } else {
        ""
    };
    format!(
        "{} {mark} {} {lasted}  {} {}{within}{}",
        pad(&time, TIME, false),
        pad(&collection.kind, KIND, false),
        pad(&heap, HEAP, false),
        clean(why),
        of(collection.source.as_deref())
    )
    .trim_end()
    .to_owned()
}

/// Which JVM, after the text about it.
fn of(source: Option<&str>) -> String {
    source.map_or_else(String::new, |source| format!(" · {}", clean(source)))
}

fn stands(standing: &Standing) -> String {
    let mut parts = vec![
        numbers::span(standing.seconds),
        match standing.share {
            Some(share) => format!(
                "{}, {} in total, {} of the time",
                numbers::plural(
                    usize::try_from(standing.pauses).unwrap_or(usize::MAX),
                    "pause"
                ),
                millis(standing.paused_ms),
                fine_share(share)
            ),
            None => "no pause in the log".to_owned(),
        },
    ];
    if let Some(longest) = standing.longest_ms {
        parts.push(format!("longest {}", millis(longest)));
    }
    if let Some(rate) = standing.allocation_bytes_per_s {
        parts.push(format!("allocation {}", per_second(rate)));
    }
    parts.join(" · ") + &of(standing.source.as_deref())
}

fn found(finding: &Finding, paint: Paint) -> String {
    let (symbol, tone) = match finding.outcome {
        Outcome::Act => ("✗", Tone::Bad),
        _ => ("◐", Tone::Doubt),
    };
    let grade = |grade| match grade {
        Grade::Low => "low",
        Grade::Medium => "medium",
        Grade::High => "high",
    };
    format!(
        "{} {}\n  {}",
        paint.tone(symbol, tone),
        clean(&finding.sentence),
        paint.dim(&format!(
            "{} · {} · {} severity · {} confidence · rungwise explain {}",
            finding.rule,
            clean(&finding.subject),
            grade(finding.severity),
            grade(finding.confidence),
            finding.rule
        ))
    )
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Subject;

    use super::*;

    fn shown(line: &FollowLine, limit_ms: Option<f64>) -> String {
        // Thin and plain blanks look alike in a test.
        super::line(line, limit_ms, false)
            .unwrap()
            .replace('\u{202f}', " ")
    }

    #[test]
    fn a_collection_is_a_row() {
        let mut collection = Collection {
            source: None,
            line: 7,
            at_s: Some(412.5),
            at: Some("2026-11-22T03:00:00.123Z".to_owned()),
            kind: "young".to_owned(),
            name: "Pause Young (Normal) (G1 Evacuation Pause)".to_owned(),
            cause: Some("G1 Evacuation Pause".to_owned()),
            duration_ms: Some(3.524),
            heap_before_bytes: Some(24 << 20),
            heap_after_bytes: Some(4 << 20),
            heap_bytes: Some(256 << 20),
            nested: false,
        };
        let row = |collection: &Collection, limit| {
            shown(&FollowLine::Collection(collection.clone()), limit)
        };
        assert_eq!(
            row(&collection, Some(4.0)),
            "03:00:00.123Z   young        3.52 ms  24.0 MiB → 4.00 MiB of 256 MiB  G1 Evacuation Pause"
        );
        collection.source = Some("web-0/app".to_owned());
        assert!(row(&collection, None).ends_with("G1 Evacuation Pause · web-0/app"));
        collection.at = None;
        assert!(row(&collection, Some(3.0)).starts_with("412.500 s     ! young"));
        collection.at_s = None;
        assert!(row(&collection, None).starts_with("line 7          young"));
    }

    #[test]
    fn a_standing_says_its_length_first() {
        let standing = Standing {
            source: Some("pid 4711".to_owned()),
            until_s: 99.0,
            seconds: 61.0,
            pauses: 42,
            paused_ms: 153.0,
            longest_ms: Some(12.1),
            share: Some(0.0025),
            allocation_bytes_per_s: Some(3.0 * 1024.0 * 1024.0),
        };
        assert_eq!(
            shown(&FollowLine::Standing(standing), None),
            "▌ 1 min 1 s · 42 pauses, 153 ms in total, 0.2 % of the time · longest 12.1 ms · allocation 3.00 MiB/s · pid 4711"
        );
    }

    #[test]
    fn a_log_without_pauses_has_no_share_of_them() {
        let standing = Standing {
            seconds: 61.0,
            ..Standing::default()
        };
        assert_eq!(
            shown(&FollowLine::Standing(standing), None),
            "▌ 1 min 1 s · no pause in the log"
        );
    }

    #[test]
    fn a_finding_says_where_to_read_on() {
        let mut finding = Finding::act(&Subject::host(), "the sentence");
        finding.rule = "gc-remark-long".to_owned();
        assert_eq!(
            shown(&FollowLine::Finding(finding), None),
            "✗ the sentence\n  gc-remark-long · host · medium severity · medium confidence · rungwise explain gc-remark-long"
        );
    }
}
