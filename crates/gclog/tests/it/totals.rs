//! Pauses before JDK 9, counted and added up a second time, in a way that shares nothing with the parser: by brackets.
//!
//! `truth.json` holds no total for these logs. Each of their records opens with `[GC` or `[Full GC` and is over where its
//! brackets close; the last `N secs]` before that is what the service waited, whatever other threads printed in between. That
//! decides count and total of a log where no record goes on behind a line on which another one opens (a remark with a young
//! collection in it may) and none is cut; the others are listed with their reason.

use rungwise_gclog::{Parser, Summarizer};

use crate::corpus;

/// A record of more lines is one whose end was missed.
const LONGEST_RECORD: usize = 40;

/// Logs in which brackets do not decide.
const UNDECIDED: &[(&str, &str)] = &[
    (
        "garbagecat_dataset139.txt",
        "remembered sets are told within a record",
    ),
    (
        "garbagecat_dataset142.txt",
        "a young collection within a remark",
    ),
    ("garbagecat_dataset207.txt", "it begins within a record"),
    (
        "gctoolkit_gctoolkit-gclogs-rolling_rolling_jdk8_bbvc.log.32.current.gz",
        "cut within a record",
    ),
    (
        "gctoolkit_preunified_cms_parnew_details_tenuring_par.cms.wd.wt.nopp.log.gz",
        "cut within a record",
    ),
    (
        "gcviewer_SampleOpenJdk1_8_0-332.txt",
        "Shenandoah writes `[Pause`",
    ),
    (
        "gcviewer_SampleSun1_7_0CmsPrintFlsStats2.txt",
        "free lists are told within a record",
    ),
    (
        "gcviewer_SampleSun1_8_0CMS_ScavengeBR_HeapAtGC_TenuringDist_PrintFLS.txt",
        "a young collection within a remark",
    ),
    (
        "gcviewer_SampleSun1_8_0CMS_ScavengeBeforeRemark_HeapAtGc.txt",
        "a young collection within a remark",
    ),
    (
        "own_jdk8-cms-scavenge-before-remark.log",
        "a young collection within a remark",
    ),
];

/// Number of records and nanoseconds in all; `None` where brackets do not decide.
fn by_brackets(log: &str) -> Option<(u64, u64)> {
    let (mut count, mut total) = (0, 0);
    let (mut depth, mut lines) = (0, 0);
    for line in log.lines() {
        let line = without_times(line.trim_end());
        let opens = opening(line);
        let part = match (depth, opens) {
            (0, None) => continue,
            (0, Some(at)) => &line[at..],
            (_, Some(_)) => return None,
            // An address as `PrintHeapAtGC` writes it: `[0x00000007fc000000, 0x00000007fd550000)`.
            (_, None) if line.contains("[0x") => "",
            (_, None) => line,
        };
        lines += 1;
        depth += part.matches('[').count();
        depth = depth.checked_sub(part.matches(']').count())?;
        if lines > LONGEST_RECORD {
            return None;
        }
        if depth == 0 {
            count += 1;
            total += nanoseconds(part)?;
            lines = 0;
        }
    }
    (depth == 0).then_some((count, total))
}

/// The CPU times behind a record end in `secs]` as well.
fn without_times(line: &str) -> &str {
    match line.rsplit_once(" [Times: ") {
        Some((record, times)) if times.find(']') == Some(times.len() - 1) => record,
        _ => line,
    }
}

/// Where a record of a pause opens. `[GC concurrent-...` is no pause, and `[GC Worker ...` is a row of one.
fn opening(line: &str) -> Option<usize> {
    ["[GC", "[Full GC"].into_iter().find_map(|mark| {
        let mut found = line.match_indices(mark);
        let (at, _) = found.find(|(at, _)| {
            let rest = &line[at + mark.len()..];
            ![" concurrent", " Worker"]
                .iter()
                .any(|word| rest.starts_with(word))
        })?;
        Some(at)
    })
}

/// `0.0167272` of `..., 0.0167272 secs]` at the end, with either decimal mark.
fn nanoseconds(record: &str) -> Option<u64> {
    let record = record.strip_suffix(" secs]")?;
    let start = record.rfind(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
    // The comma before a number may touch it: `12K(34K),0.1 secs]`.
    let number = record[start + 1..].trim_start_matches(',');
    let (seconds, rest) = number.split_once(['.', ','])?;
    let nine = format!("{rest:0<9}");
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + nine.get(..9)?.parse::<u64>().ok()?)
}

#[test]
fn counts_and_totals_before_jdk_9_are_those_of_the_brackets() {
    let mut compared = 0;
    let mut undecided = Vec::new();
    for (name, _) in corpus::counted("preunified") {
        let log = corpus::bytes(&name);
        let mut summarizer = Summarizer::new();
        let mut parser = Parser::new();
        parser.push(&log, &mut |names, event| summarizer.event(names, event));
        parser.finish(&mut |names, event| summarizer.event(names, event));
        let summary = summarizer.summary();
        let all = summary.runs.iter().map(|run| run.pauses.all);
        let (pauses, total_ms) = all.fold((0, 0.0), |(count, total), all| {
            (count + all.count, total + all.total_ms)
        });
        let theirs = by_brackets(&String::from_utf8_lossy(&log));
        let Some((count, total)) = theirs.filter(|(count, _)| *count > 0 || pauses == 0) else {
            undecided.push(name);
            continue;
        };
        assert_eq!(pauses, count, "{name}");
        // The JVM prints up to eight places of a second.
        let difference = (total_ms - total as f64 / 1e6).abs();
        assert!(
            difference < 1e-5 * count.max(1) as f64,
            "{name}: {total_ms} ms, {total} ns by brackets"
        );
        compared += usize::from(count > 0);
    }
    let listed: Vec<&str> = UNDECIDED.iter().map(|(name, _)| *name).collect();
    assert_eq!(undecided, listed);
    assert!(compared >= 60, "{compared} logs");
}
