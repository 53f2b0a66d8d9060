//! Tables in which a collector sums up what it did since its JVM started: tag `gc+stats`, or `gc` before JDK 10.
//!
//! ZGC prints one every ten seconds, of which rows in milliseconds are taken: means and longest of the last ten seconds, ten
//! minutes, ten hours and in total (`gc/z/zStat.cpp`). Shenandoah prints one at the end of its JVM, with counts and
//! quantiles (`gc/shenandoah/shenandoahPhaseTimings.cpp`). Some logs are cut down to these tables.

use memchr::{memchr, memmem};

use super::{Message, Unified};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Collector, Event, Statistic};
use crate::number::{MICROSECONDS, MILLISECONDS, decimal, whole};

/// What one row says.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    name: &'a [u8],
    count: Option<u64>,
    mean_ns: u64,
    longest_ns: u64,
    collector: Collector,
}

/// Reads a row of a table; unknown if it is none.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, message: Message<'_>) -> Read {
    let Some(row) = shenandoah(message.text).or_else(|| z(message.text)) else {
        return Read::Unknown;
    };
    unified.found(context, row.collector);
    let at = unified.at(context, &message);
    let statistic = Statistic {
        line: context.line,
        at,
        name: context.names.number(row.name),
        count: row.count,
        mean_ns: row.mean_ns,
        longest_ns: row.longest_ns,
    };
    context.tell(Event::Statistic(&statistic));
    Read::Understood
}

/// `Pause Init Mark (G)   =    0.026 s (a =      271 us) (n =    94) (lvls, us =       90, 174, 217, 270, 2500)`. Rows of
/// parts are indented; several have the same name, and they are left out.
fn shenandoah(text: &[u8]) -> Option<Row<'_>> {
    const COUNT: &[u8] = b" us) (n = ";
    const MEAN: &[u8] = b" s (a = ";
    if !text.first().is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let count_at = memmem::find(text, COUNT)?;
    let name = text[..memchr(b'=', text)?].trim_ascii_end();
    let mean_at = memmem::find(text, MEAN)?;
    let (mean_ns, _) = decimal(
        text[mean_at + MEAN.len()..].trim_ascii_start(),
        MICROSECONDS,
    )?;
    let (count, _) = whole(text[count_at + COUNT.len()..].trim_ascii_start())?;
    // The last of the levels is that of 100 %.
    let levels = text.trim_ascii_end().strip_suffix(b")")?;
    let last = levels.rsplit(|byte| *byte == b',').next()?;
    let (longest_ns, _) = decimal(last.trim_ascii_start(), MICROSECONDS)?;
    Some(Row {
        name,
        count: Some(count),
        mean_ns,
        longest_ns,
        collector: Collector::Shenandoah,
    })
}

/// `Phase: Pause Mark End      0.000 / 0.000         0.106 / 0.106         0.106 / 0.106         0.106 / 0.106       ms`.
fn z(text: &[u8]) -> Option<Row<'_>> {
    let text = text.trim_ascii();
    let figures = text.strip_suffix(b" ms")?.trim_ascii_end();
    let group = text[..memchr(b':', text)?].trim_ascii();
    let collector = match group {
        b"Collector" | b"Phase" | b"Subphase" | b"Critical" | b"Generation" => Collector::Z,
        b"Minor Collection" | b"Major Collection" | b"Young Generation" | b"Old Generation"
        | b"Young Pause" | b"Old Pause" | b"Young Phase" | b"Old Phase" | b"Young Subphase"
        | b"Old Subphase" => Collector::GenerationalZ,
        _ => return None,
    };
    // The longest is the last figure, the mean stands before the slash.
    let (before, longest) = split_last(figures, b'/')?;
    let (name, mean) = split_last(before.trim_ascii_end(), b' ')?;
    let (longest_ns, []) = decimal(longest.trim_ascii_start(), MILLISECONDS)? else {
        return None;
    };
    let (mean_ns, []) = decimal(mean, MILLISECONDS)? else {
        return None;
    };
    // What is left of it has the other columns behind the name, two blanks or more apart.
    let end = memmem::find(&name[group.len()..], b"  ").map_or(name.len(), |at| group.len() + at);
    Some(Row {
        name: name[..end].trim_ascii_end(),
        count: None,
        mean_ns,
        longest_ns,
        collector,
    })
}

fn split_last(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memrchr(at, text)?;
    Some((&text[..at], &text[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_shenandoah_has_a_count_a_mean_and_the_last_quantile() {
        let text = b"Pause Init Mark (G)            =    0.026 s (a =      271 us) (n =    94) (lvls, us =       90,      174,      217,      270,     1500)";
        let row = shenandoah(text).unwrap();
        assert_eq!(row.name, b"Pause Init Mark (G)");
        assert_eq!(
            (row.count, row.mean_ns, row.longest_ns),
            (Some(94), 271_000, 1_500_000)
        );
        assert_eq!(shenandoah(&[b"  ", &text[..]].concat()), None);
    }

    #[test]
    fn a_row_of_zgc_has_the_figures_of_all_its_time() {
        let row = z(b"       Old Pause: Pause Mark End                                0.004 / 0.009         0.004 / 0.009         0.004 / 0.009         0.005 / 0.019       ms").unwrap();
        assert_eq!(row.name, b"Old Pause: Pause Mark End");
        assert_eq!(
            (row.mean_ns, row.longest_ns, row.collector),
            (5_000, 19_000, Collector::GenerationalZ)
        );
    }

    #[test]
    fn other_units_and_prose_are_no_rows() {
        for text in [
            "      Memory: Allocation Rate       2380 / 2420    2380 / 2420    2380 / 2420    2380 / 2420      MB/s",
            "    Critical: Allocation Stall        90 / 134       90 / 134       90 / 134       90 / 134       ops/s",
            "Phase: took 1 / 2 ms ms",
            "Request: took 3 / 4 ms",
            "Phase: ms",
        ] {
            assert_eq!(z(text.as_bytes()), None, "{text}");
        }
    }
}
