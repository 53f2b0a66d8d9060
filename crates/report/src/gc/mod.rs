//! The report of `jvm gc`: findings first, then pauses, memory, work beside the application, and the account of the log.
//!
//! A log may hold several runs of a JVM. The one that the log covers the longest time of is shown whole, the others in one
//! table; of very many the JSON lists some and adds up the others.

pub mod compare;
pub mod follow;
mod memory;
mod pauses;
mod pictures;

use rungwise_model::check::{CheckReport, Finding, Outcome};
use rungwise_model::gc::{GcReport, Run, RunSums};
use rungwise_model::readings::Readings;

use crate::block::{Block, Cell, Column, Mark, Table, Tile, Tone, Verdict};
use crate::check;
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// The whole report. `target` is what was judged, in words.
pub fn blocks(report: &GcReport, target: &str) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report, target))];
    let run = report.longest_run();
    if let Some(run) = run {
        blocks.push(Block::Tiles(tiles(report, run)));
    }
    for note in &report.notes {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: note.clone(),
        });
    }
    blocks.extend(check::findings(&checked(report, target)));
    if report.runs.len() > 1 {
        blocks.extend(runs(report));
    }
    if let Some(run) = run {
        blocks.extend(pictures::blocks(run));
        blocks.extend(pauses::blocks(run));
        blocks.extend(memory::blocks(run));
    }
    blocks.extend(about(report, run));
    blocks.extend(account(report));
    blocks
}

/// The findings as a document of `check`.
pub fn checked(report: &GcReport, target: &str) -> CheckReport {
    CheckReport {
        place: None,
        taken: None,
        envelope: report.envelope.clone(),
        target: target.to_owned(),
        host: String::new(),
        window_s: report
            .longest_run()
            .and_then(|run| run.seconds)
            .unwrap_or(0.0),
        findings: report.findings.clone(),
        standing: None,
        resources: Vec::new(),
        tables: Vec::new(),
        readings: Readings::default(),
        jvm: None,
        service: None,
        files: Vec::new(),
    }
}

/// A span given in milliseconds.
pub(super) fn millis(ms: f64) -> String {
    numbers::micros(ms * 1e3)
}

/// A size that may be a mean.
pub(super) fn size(bytes: f64) -> String {
    numbers::bytes(bytes.max(0.0).round() as u64)
}

fn per_second(bytes: f64) -> String {
    format!("{}/s", size(bytes))
}

/// The rule that finds a log without what other rules need: nothing is found in what it shows, which is no all-clear.
const LOG_POOR: &str = "gc-log-poor";

fn verdict(report: &GcReport, target: &str) -> Verdict {
    let of = |outcome| {
        let all = report.findings.iter();
        all.filter(move |finding: &&Finding| finding.outcome == outcome)
    };
    let act = of(Outcome::Act).next();
    let missed = report.slo.filter(|slo| slo.met == Some(false));
    let (mark, sentence) = match (act, missed) {
        (Some(first), _) => (("✗", "act", Tone::Bad), first.sentence.clone()),
        (None, Some(slo)) => {
            let sentence = format!(
                "{} of {} pauses are longer than {}; the longest takes {}",
                numbers::count(slo.beyond),
                numbers::count(slo.pauses),
                millis(slo.limit_ms),
                millis(report.pauses.longest_ms)
            );
            (("✗", "limit missed", Tone::Bad), sentence)
        }
        (None, None) if report.pauses.count == 0 => (
            ("?", "unknown", Tone::Doubt),
            "the log contains no pauses".to_owned(),
        ),
        (None, None) => {
            let free = report.throughput.map_or_else(String::new, |share| {
                format!("; the application ran {} of the time", fine_share(share))
            });
            let sentence = format!(
                "{} pauses take {}, the longest {}{free}",
                numbers::count(report.pauses.count),
                millis(report.pauses.total_ms),
                millis(report.pauses.longest_ms)
            );
            let watched = of(Outcome::Watch).find(|finding| finding.rule != LOG_POOR);
            let poor = of(Outcome::Watch).find(|finding| finding.rule == LOG_POOR);
            match (watched, poor) {
                (Some(first), _) => (
                    ("•", "watch", Tone::Doubt),
                    format!("{}; {sentence}", first.sentence),
                ),
                (None, Some(poor)) => (
                    ("?", "incomplete", Tone::Doubt),
                    format!("nothing found, but {}; {sentence}", poor.sentence),
                ),
                // Without a rule that judged it, nothing says that it is good.
                (None, None) if report.findings.is_empty() => {
                    (("•", "not judged", Tone::Quiet), sentence)
                }
                (None, None) => (("✓", "nothing to act on", Tone::Good), sentence),
            }
        }
    };
    let run = report.longest_run();
    let mut context = vec![target.to_owned()];
    context.extend(run.map(jvm));
    context.extend(run.and_then(|run| run.source.clone()));
    context.extend(
        run.and_then(|run| run.seconds)
            .map(|s| format!("{} of log", numbers::span(s))),
    );
    context.push(moment(&report.envelope.started));
    let mut caveats = Vec::new();
    if report.runs.len() > 1 {
        let runs = numbers::count(report.runs.len() as u64 + report.runs_left_out);
        caveats.push((format!("the log contains {runs} JVM runs"), "runs"));
    }
    if report.account.unknown_lines > 0 {
        let caveat = match report.account.unknown_lines {
            1 => "1 line was not understood".to_owned(),
            lines => format!("{} lines were not understood", numbers::count(lines)),
        };
        caveats.push((caveat, "account"));
    }
    let undecided = of(Outcome::Undecided).count();
    if undecided > 0 {
        let rules = numbers::plural(undecided, "rule");
        caveats.push((format!("{rules} could not be decided"), "undecided"));
    }
    Verdict {
        mark: Mark {
            symbol: mark.0,
            word: mark.1,
            tone: mark.2,
        },
        sentence,
        context,
        caveats,
    }
}

/// Near one the third digit matters: 99.9 % and 99.99 % are worlds apart.
fn fine_share(share: f64) -> String {
    if share > 0.99 && share < 1.0 {
        format!("{:.3}{}%", share * 100.0, numbers::THIN)
    } else {
        numbers::share(share)
    }
}

/// `G1, JDK 17.0.15`; what is not recorded is left out.
fn jvm(run: &Run) -> String {
    let collector = run.jvm.collector.as_deref().unwrap_or("collector unknown");
    match &run.jvm.version {
        Some(version) => format!("{collector}, JVM {version}"),
        None => collector.to_owned(),
    }
}

fn tiles(report: &GcReport, run: &Run) -> Vec<Tile> {
    let tile = |label: &str, value: Option<String>, detail: String| Tile {
        label: label.to_owned(),
        value: value.unwrap_or_else(|| ABSENT.to_owned()),
        before: None,
        detail,
        tone: Tone::Plain,
    };
    let all = &run.pauses.all;
    let known = all.count > 0;
    let pause = |ms: f64| known.then(|| millis(ms));
    let throughput = run.throughput.as_ref();
    let full = run.pauses.by_kind.get("full").map_or(0, |full| full.count);
    let mut tiles = vec![
        tile(
            "Throughput",
            throughput.map(|share| fine_share(share.whole)),
            throughput.map_or_else(
                || {
                    let timed = run.seconds.is_some_and(|seconds| seconds > 0.0);
                    let why = match (known, timed) {
                        (true, true) => "the log contains a single pause",
                        (true, false) => "the log has no clock",
                        (false, _) => "the log contains no pauses",
                    };
                    why.to_owned()
                },
                |share| {
                    format!(
                        "{} in the worst {}",
                        fine_share(share.worst),
                        numbers::span(share.worst_window_s)
                    )
                },
            ),
        ),
        tile(
            "Longest pause",
            pause(all.longest_ms),
            run.pauses
                .longest
                .first()
                .map_or_else(String::new, |longest| longest.name.clone()),
        ),
        tile(
            "p99 pause",
            pause(all.p99_ms),
            format!(
                "p50 {}",
                pause(all.p50_ms).unwrap_or_else(|| ABSENT.to_owned())
            ),
        ),
        tile(
            "Full collections",
            known.then(|| numbers::count(full)),
            match all.count {
                1 => "of 1 pause".to_owned(),
                count => format!("of {} pauses", numbers::count(count)),
            },
        ),
        tile(
            "Allocation",
            run.allocation
                .as_ref()
                .map(|rate| per_second(rate.bytes_per_s)),
            run.allocation
                .as_ref()
                .and_then(|rate| rate.peak_bytes_per_s)
                .map_or_else(String::new, |peak| format!("peak {}", per_second(peak))),
        ),
    ];
    if let Some(slo) = report.slo {
        tiles.push(Tile {
            tone: match slo.met {
                Some(true) => Tone::Good,
                Some(false) => Tone::Bad,
                None => Tone::Doubt,
            },
            ..tile(
                "Over the limit",
                (slo.pauses > 0).then(|| numbers::count(slo.beyond)),
                format!(
                    "of {} pauses, limit {}{}",
                    numbers::count(slo.pauses),
                    millis(slo.limit_ms),
                    if slo.met.is_none() {
                        "; unknown: not all pauses are in the log"
                    } else {
                        ""
                    }
                ),
            )
        });
    }
    tiles
}

/// Each run in one row.
fn runs(report: &GcReport) -> Vec<Block> {
    /// More than anybody reads.
    const SHOWN: usize = 20;
    let number = report.longest_run().map_or(0, |run| run.number);
    let last = report.runs.len().saturating_sub(1);
    let all = report.runs.iter().enumerate();
    let rows = all.filter(|(index, run)| *index < SHOWN || *index == last || run.number == number);
    let has_sources = report.runs.iter().any(|run| run.source.is_some());
    let rows = rows.map(|(_, run)| {
        let source = has_sources.then(|| Cell::text(run.source.as_deref().unwrap_or(ABSENT)));
        let mut row = vec![
            Cell::number(Some(run.number as f64), |n| format!("{n:.0}")),
            Cell::text(jvm(run)),
            Cell::number(run.seconds, numbers::span),
            Cell::number(Some(run.pauses.all.count as f64), |n| {
                numbers::count(n as u64)
            }),
            Cell::number(Some(run.pauses.all.total_ms), millis),
            Cell::number(Some(run.pauses.all.longest_ms), millis),
        ];
        row.splice(1..1, source);
        row
    });
    let rows: Vec<_> = rows.collect();
    let rest = report.runs.len() - rows.len();
    let mut columns = vec![
        Column::number("Run", "run"),
        Column::words("JVM", "jvm"),
        Column::number("Length", "seconds"),
        Column::number("Pauses", "pauses"),
        Column::number("Sum", "total_ms"),
        Column::number("Longest", "longest_ms"),
    ];
    columns.splice(
        1..1,
        has_sources.then(|| Column::words("Written by", "source")),
    );
    let mut blocks = vec![
        Block::section("runs", "JVM runs in the log"),
        Block::Prose(format!(
            "Each run has its own clock, so each is evaluated separately. The sections below show run {number}, the one with \
             the longest logged time."
        )),
        Block::Table(Table {
            caption: String::new(),
            columns,
            rows,
        }),
    ];
    if rest > 0 {
        blocks.push(Block::Prose(format!(
            "{} of the first runs are not shown; the JSON lists them.",
            numbers::count(rest as u64)
        )));
    }
    blocks.extend(report.left_out.map(|sums| left_out(report, &sums)));
    blocks
}

/// What the runs come to that are not reported one by one.
fn left_out(report: &GcReport, sums: &RunSums) -> Block {
    let full = match sums.full {
        0 => String::new(),
        full => format!(", {} of them full collections", numbers::count(full)),
    };
    let memory = match sums.out_of_memory {
        0 => String::new(),
        times => format!("; out of memory {} times", numbers::count(times)),
    };
    Block::Prose(format!(
        "{} more runs are only summed and not judged by rules: {} of log, {} pauses{full}, {} in total, the longest \
         {}{memory}. The first runs, the longest and the last are listed individually.",
        numbers::count(report.runs_left_out),
        numbers::span(sums.seconds),
        numbers::count(sums.pauses.count),
        millis(sums.pauses.total_ms),
        millis(sums.pauses.longest_ms),
    ))
}

/// What the log tells of its JVM.
fn about(report: &GcReport, run: Option<&Run>) -> Vec<Block> {
    let jvm = run.map_or(&report.jvm, |run| &run.jvm);
    let text = |value: &Option<String>| value.clone();
    let number = |value: Option<u64>| value.map(numbers::count);
    let bytes = |value: Option<u64>| value.map(numbers::bytes);
    let facts = [
        ("Version", text(&jvm.version)),
        ("Collector", text(&jvm.collector)),
        ("CPUs", number(jvm.cpus)),
        ("Memory", bytes(jvm.memory_bytes)),
        ("Maximum heap", bytes(jvm.max_heap_bytes)),
        ("Region size", bytes(jvm.region_bytes)),
        ("Parallel GC threads", number(jvm.parallel_workers)),
        ("Concurrent GC threads", number(jvm.concurrent_workers)),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let known: Vec<_> = known.collect();
    let mut blocks = vec![Block::section("jvm", "JVM")];
    if known.is_empty() {
        blocks.push(Block::Prose(
            "The log has no JVM header: its start is missing, or -Xlog:gc+init was off.".to_owned(),
        ));
    } else {
        blocks.push(Block::Facts(known));
    }
    if let Some(flags) = &jvm.flags {
        blocks.push(Block::Code(vec![flags.clone()]));
    }
    blocks
}

/// What became of the lines.
fn account(report: &GcReport) -> Vec<Block> {
    let account = &report.account;
    let row = |name: &str, lines: u64, bytes: u64| {
        let share = bytes as f64 / account.bytes.max(1) as f64;
        vec![
            Cell::text(name),
            Cell::number(Some(lines as f64), |n| numbers::count(n as u64)),
            Cell::number(Some(bytes as f64), |n| numbers::bytes(n as u64)),
            Cell::number(Some(share), numbers::share),
        ]
    };
    let mut blocks = vec![
        Block::section("account", "Line accounting"),
        Block::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::words("Lines", "group"),
                Column::number("Count", "lines"),
                Column::number("Size", "bytes"),
                Column::number("Share", "share"),
            ],
            rows: vec![
                row("understood", account.understood_lines, account.understood),
                row(
                    "recognized, not needed",
                    account.ignored_lines,
                    account.ignored,
                ),
                row("not understood", account.unknown_lines, account.unknown),
            ],
        }),
    ];
    if let Some(line) = &account.begins_within {
        blocks.push(Block::Prose(format!(
            "The log begins within a pause and contains only its end, in line {}: {}",
            line.line, line.text
        )));
    }
    if account.cut {
        blocks.push(Block::Prose(
            "The last line is incomplete: the log is truncated, or still being written.".to_owned(),
        ));
    }
    if !account.samples.is_empty() {
        let samples = account.samples.iter();
        let lines = samples
            .map(|sample| format!("{}: {}", sample.line, sample.text))
            .collect();
        blocks.push(Block::Fold {
            summary: "The first lines that were not understood".to_owned(),
            blocks: vec![Block::Code(lines)],
        });
    }
    if report.files.len() > 1 {
        let files = report.files.iter().map(|file| {
            vec![
                Cell::text(&file.name),
                Cell::number(Some(file.first_line as f64), |n| numbers::count(n as u64)),
                Cell::number(Some(file.bytes as f64), |n| numbers::bytes(n as u64)),
            ]
        });
        blocks.push(Block::Table(Table {
            caption: "Files in the order read; line numbers continue across files.".to_owned(),
            columns: vec![
                Column::words("File", "file"),
                Column::number("First line", "first_line"),
                Column::number("Size", "bytes"),
            ],
            rows: files.collect(),
        }));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_near_one_keep_their_third_digit() {
        assert_eq!(fine_share(0.99987), "99.987\u{202f}%");
        assert_eq!(fine_share(0.5), "50\u{202f}%");
        assert_eq!(fine_share(1.0), "100\u{202f}%");
    }
}
