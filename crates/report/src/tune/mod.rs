//! A climbed ladder as blocks, in the order in which a reader asks: is it better, by how much,
//! through what, can I believe it, how was it done.
//!
//! Everything comes from the [`TuneReport`]; nothing is judged again here. Reference figures that
//! others measured are shown beside ours and never enter them.

mod asked;
mod collections;
mod cost;
mod grid;
mod ladder;
mod service;
mod timeline;

use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_model::tune::{Outcome, Run, Rung, TuneReport, Verdict as Word};

use crate::block::{Block, Cell, Column, Mark, Table, Tile, Tone, Verdict};
use crate::numbers::{self, ABSENT, THIN};

/// The whole report.
pub fn blocks(report: &TuneReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report)), Block::Tiles(tiles(report))];
    blocks.push(Block::section("ladder", "The ladder"));
    if report.rungs.is_empty() {
        blocks.push(Block::Prose("The scenario has no rungs.".to_owned()));
    } else {
        blocks.push(ladder::picture(report));
        blocks.push(ladder::table(report));
        blocks.extend(asked::table(report));
    }
    blocks.extend(collections::blocks(report));
    blocks.extend(grid::blocks(report));
    let over_time = timeline::charts(report);
    if !over_time.is_empty() {
        blocks.push(Block::section("time", "Over time"));
        blocks.extend(over_time);
    }
    let where_it_went = cost::charts(report);
    if !where_it_went.is_empty() {
        blocks.push(Block::section("cpu", "Where the CPU time went"));
        blocks.extend(where_it_went);
    }
    blocks.extend(service::blocks(report));
    blocks.extend(not_measured(report));
    blocks.extend(discarded(report));
    blocks.extend(method(report));
    blocks.extend(machine(report));
    blocks
}

/// Symbol and word of an outcome.
pub fn outcome(outcome: Outcome) -> Mark {
    let (symbol, word, tone) = match outcome {
        Outcome::Kept => ("✓", "kept", Tone::Good),
        Outcome::Reverted => ("✗", "reverted", Tone::Bad),
        Outcome::Same => ("=", "same", Tone::Plain),
        Outcome::Inconclusive => ("?", "inconclusive", Tone::Doubt),
        Outcome::Observed => ("○", "observed", Tone::Quiet),
        Outcome::Skipped => ("–", "skipped", Tone::Quiet),
    };
    Mark { symbol, word, tone }
}

fn verdict(report: &TuneReport) -> Verdict {
    let (symbol, word, tone) = match report.verdict {
        Word::Better => ("✓", "better", Tone::Good),
        Word::Worse => ("✗", "worse", Tone::Bad),
        Word::Same => ("=", "same", Tone::Plain),
        Word::Inconclusive => ("?", "inconclusive", Tone::Doubt),
    };
    let machine = &report.machine;
    let mut context = vec![report.title.clone()];
    context.push(moment(&report.envelope.started));
    let length = timeline::end_s(report);
    if length > 0.0 {
        context.push(format!("{} of measurement", numbers::span(length)));
    }
    context.push(format!(
        "{}, {}, kernel {}",
        machine.cpu_model,
        numbers::plural(machine.cpus as usize, "CPU"),
        machine.kernel
    ));
    let mut caveats = Vec::new();
    if !report.could_not.is_empty() {
        let things = numbers::plural(report.could_not.len(), "item");
        caveats.push((format!("{things} could not be measured"), "could-not"));
    }
    if report.rungs.iter().any(|rung| rung.cost_only) {
        let count = report.rungs.iter().filter(|rung| rung.cost_only).count();
        let rungs = numbers::plural(count, "rung");
        caveats.push((format!("{rungs} judged by CPU cost only"), "ladder"));
    }
    Verdict {
        mark: Mark { symbol, word, tone },
        sentence: unbroken(&report.sentence),
        context: context
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect(),
        caveats,
    }
}

/// No line break between a number and its sign, nor inside an interval.
fn unbroken(sentence: &str) -> String {
    let mut text = sentence.replace(" %", &format!("{THIN}%"));
    for sign in ['+', '−', '±'] {
        text = text.replace(&format!("%, {sign}"), &format!("%,{THIN}{sign}"));
    }
    text
}

/// The first rung that was measured: the start, unless even that could not run.
fn first(report: &TuneReport) -> Option<&Rung> {
    report.rungs.iter().find(|rung| rung.rate_per_s.is_some())
}

/// Id of the rung that holds the last configuration against the first, measured at the end.
const OVERALL: &str = "overall";

/// What was kept as a whole: measured at the end, else the last rung that was kept, else the start.
fn last(report: &TuneReport) -> Option<&Rung> {
    let whole = |rung: &&Rung| rung.id == OVERALL && rung.rate_per_s.is_some();
    let kept = |rung: &&Rung| rung.outcome == Outcome::Kept && rung.rate_per_s.is_some();
    let rungs = || report.rungs.iter().rev();
    rungs()
        .find(whole)
        .or_else(|| rungs().find(kept))
        .or_else(|| first(report))
}

/// A figure at the start and with everything kept, the latter alone where nothing was kept. Of the pairs at the end, in
/// which the first configuration and the last took turns, where there are any; else of the rungs.
fn ends(
    report: &TuneReport,
    of_run: impl Fn(&Run) -> f64,
    of_rung: impl Fn(&Rung) -> Option<f64>,
) -> (Option<f64>, Option<f64>) {
    let overall = report.rungs.iter().rev().find(|rung| rung.id == OVERALL);
    let pairs = || {
        let all = overall.iter().flat_map(|rung| &rung.pairs);
        all.filter(|pair| pair.discarded.is_none())
    };
    let before = numbers::median(pairs().map(|pair| of_run(&pair.a)));
    let after = numbers::median(pairs().map(|pair| of_run(&pair.b)));
    if after.is_some() {
        return (before, after);
    }
    let (Some(start), Some(end)) = (first(report), last(report)) else {
        return (None, None);
    };
    let before = of_rung(start).filter(|_| start.id != end.id);
    (before, of_rung(end))
}

/// `401 k/s at the start, 746 k/s with all kept changes`; absent where the start was not measured.
fn from_to(
    (before, after): (Option<f64>, Option<f64>),
    show: impl Fn(f64) -> String,
) -> Option<String> {
    let after = show(after?);
    Some(match before {
        None => format!("{after} at the start; no change was kept"),
        Some(before) => format!(
            "{} at the start, {after} with all kept changes",
            show(before)
        ),
    })
}

fn rate_ends(report: &TuneReport) -> (Option<f64>, Option<f64>) {
    ends(report, |run| run.rate_per_s, |rung| rung.rate_per_s)
}

fn cost_ends(report: &TuneReport) -> (Option<f64>, Option<f64>) {
    ends(report, |run| run.cpu_us_per_tx, |rung| rung.cpu_us_per_tx)
}

fn p99_ends(report: &TuneReport) -> (Option<f64>, Option<f64>) {
    ends(
        report,
        |run| run.p99_us.unwrap_or(f64::NAN),
        |rung| rung.latency_us.map(|l| l.p99),
    )
}

/// Heap allocated per request with the change, where it was measured.
fn heap(rung: &Rung) -> Option<f64> {
    rung.metrics.get(BYTES_PER_REQUEST).copied()
}

fn has_heap(report: &TuneReport) -> bool {
    report.rungs.iter().any(|rung| heap(rung).is_some())
}

fn heap_ends(report: &TuneReport) -> (Option<f64>, Option<f64>) {
    let of_run = |run: &Run| run.metrics.get(BYTES_PER_REQUEST).copied();
    ends(report, |run| of_run(run).unwrap_or(f64::NAN), heap)
}

/// The rungs whose outcome was open: those that were tried as a change.
fn tried(report: &TuneReport) -> impl Iterator<Item = &Rung> {
    let tried = |rung: &&Rung| !matches!(rung.outcome, Outcome::Observed | Outcome::Skipped);
    report.rungs.iter().filter(tried)
}

fn tiles(report: &TuneReport) -> Vec<Tile> {
    let tile =
        |label: &str, (before, after): (Option<f64>, Option<f64>), show: fn(f64) -> String| {
            let ratio = before.zip(after).map(|(before, after)| after / before);
            let why = match after {
                Some(_) => "at the start; no change was kept",
                None => "not measured",
            };
            Tile {
                label: label.to_owned(),
                value: after.map_or_else(|| ABSENT.to_owned(), show),
                before: before.map(show),
                detail: ratio.map_or_else(
                    || why.to_owned(),
                    |ratio| format!("{} over the ladder", numbers::change(ratio - 1.0)),
                ),
                tone: Tone::Plain,
            }
        };
    let mut rate = tile("Rate", rate_ends(report), numbers::rate);
    if let Some(overall) = &report.overall
        && report.objective == "rate_per_s"
    {
        rate.detail = format!(
            "{} {} in {} at the end",
            numbers::factor(1.0 + overall.point),
            numbers::interval(overall.low, overall.high),
            numbers::plural(overall.pairs as usize, "pair")
        );
    } else if rate.before.is_some() {
        rate.detail = format!("{}; medians", rate.detail);
    }
    let cost = tile("CPU per transaction", cost_ends(report), numbers::micros);
    let tail = tile("p99 latency", p99_ends(report), numbers::micros);
    let heap =
        has_heap(report).then(|| tile("Heap per request", heap_ends(report), numbers::whole_bytes));
    let kept = Tile {
        label: "Changes kept".to_owned(),
        value: format!("{} of {}", report.kept.len(), tried(report).count()),
        before: None,
        detail: tally(report),
        tone: Tone::Plain,
    };
    let aa = &report.aa;
    let smallest = Tile {
        label: "Smallest detectable effect".to_owned(),
        value: aa.smallest_effect.map_or_else(
            || ABSENT.to_owned(),
            |effect| format!("±{}", numbers::share(effect)),
        ),
        before: None,
        detail: match (aa.interval(), &aa.reason) {
            (Some((low, high)), _) => format!(
                "A/A {} in {}",
                numbers::interval(low, high),
                numbers::plural(aa.pairs as usize, "pair")
            ),
            (None, Some(why)) => format!("A/A check without result: {why}"),
            (None, None) => "no A/A check".to_owned(),
        },
        tone: Tone::Plain,
    };
    [rate, cost, tail]
        .into_iter()
        .chain(heap)
        .chain([kept, smallest])
        .collect()
}

/// `2 reverted, 3 same, 1 observed`: what became of the others.
fn tally(report: &TuneReport) -> String {
    let kinds = [
        Outcome::Reverted,
        Outcome::Same,
        Outcome::Inconclusive,
        Outcome::Observed,
        Outcome::Skipped,
    ];
    let start = report.rungs.first().map(|rung| &rung.id);
    let words: Vec<String> = kinds
        .into_iter()
        .filter_map(|kind| {
            let with = |rung: &&Rung| {
                rung.outcome == kind && Some(&rung.id) != start && rung.id != OVERALL
            };
            let count = report.rungs.iter().filter(with).count();
            (count > 0).then(|| format!("{count} {}", outcome(kind).word))
        })
        .collect();
    if words.is_empty() {
        "nothing else tried".to_owned()
    } else {
        words.join(", ")
    }
}

/// Short name of the reference: the first word of its source.
fn reference_name(report: &TuneReport) -> Option<String> {
    let source = &report
        .rungs
        .iter()
        .find_map(|rung| rung.reference.as_ref())?
        .source;
    let name: String = source
        .chars()
        .take_while(|c| !c.is_whitespace() && !matches!(c, ':' | '(' | ','))
        .collect();
    Some(if name.is_empty() {
        "reference".to_owned()
    } else {
        name
    })
}

fn reference_note(report: &TuneReport) -> Option<String> {
    let name = reference_name(report)?;
    let mut sources: Vec<&str> = Vec::new();
    for reference in report
        .rungs
        .iter()
        .filter_map(|rung| rung.reference.as_ref())
    {
        if !sources.contains(&reference.source.as_str()) {
            sources.push(&reference.source);
        }
    }
    let theirs = sources.iter().find_map(|source| cores(source));
    let cpus = numbers::plural(report.machine.cpus as usize, "CPU");
    let other = theirs.map_or_else(
        || "the factor of a larger machine".to_owned(),
        |cores| format!("a {cores}-core factor"),
    );
    let differs = report.rungs.iter().filter(|rung| rung.sign_differs).count();
    let comparable = |rung: &&Rung| {
        let factor = rung.reference.as_ref().and_then(|known| known.factor);
        rung.delta.is_some() && factor.is_some()
    };
    let signs = match (differs, report.rungs.iter().filter(comparable).count()) {
        (0, 0) => {
            "No rung has an interval on this machine, so signs cannot be compared.".to_owned()
        }
        (0, 1) => "The one comparable rung has the same sign on both machines.".to_owned(),
        (0, n) => {
            format!("All {n} comparable rungs have the same sign on both machines.")
        }
        (n, _) => format!(
            "{} a different sign on the two machines, marked ≠.",
            if n == 1 {
                "1 rung has".to_owned()
            } else {
                format!("{n} rungs have")
            }
        ),
    };
    Some(format!(
        "The column “{name}” was measured by others on another machine ({}). {cpus} cannot show {other}: \
         compare the order and the sign of the steps, not their size. {signs}",
        sources.join("; ")
    ))
}

/// The number before the word `cores` or `CPUs` in a description of a machine.
fn cores(source: &str) -> Option<u32> {
    let words: Vec<&str> = source.split([' ', '-', ',', '(', ')']).collect();
    words
        .windows(2)
        .find(|pair| matches!(pair[1], "core" | "cores" | "CPU" | "CPUs"))
        .and_then(|pair| pair[0].parse().ok())
}

fn not_measured(report: &TuneReport) -> Vec<Block> {
    let mut blocks = vec![Block::section("could-not", "Could not measure")];
    if report.could_not.is_empty() {
        blocks.push(Block::Prose(
            "Everything that the scenario asks for was measured.".to_owned(),
        ));
    } else {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: format!(
                "{} missing from this report. Missing does not mean zero or “no effect”.",
                match report.could_not.len() {
                    1 => "1 item is".to_owned(),
                    n => format!("{n} items are"),
                }
            ),
        });
        blocks.push(Block::List(report.could_not.clone()));
    }
    blocks
}

fn discarded(report: &TuneReport) -> Vec<Block> {
    let mut table = Table {
        caption: "Measured but discarded pairs".to_owned(),
        columns: vec![
            Column::words("Rung", "rung"),
            Column::number("Pair", "pair"),
            Column::words("Reason", "reason"),
            Column::number("Measured change", "delta").rank(2),
            Column::number("Foreign CPU, A", "foreign_a").rank(1),
            Column::number("Foreign CPU, B", "foreign_b").rank(1),
        ],
        rows: Vec::new(),
    };
    for (number, rung) in report.rungs.iter().enumerate() {
        for (index, pair) in rung.pairs.iter().enumerate() {
            let Some(reason) = &pair.discarded else {
                continue;
            };
            table.rows.push(vec![
                Cell::text(format!("{number}{THIN} {}", rung.title)),
                Cell::number(Some(index as f64 + 1.0), |n| format!("{n:.0}")),
                Cell::text(reason),
                Cell::number(
                    Some(pair.b.rate_per_s / pair.a.rate_per_s - 1.0),
                    numbers::change,
                ),
                Cell::number(Some(pair.a.cpu.foreign), numbers::share),
                Cell::number(Some(pair.b.cpu.foreign), numbers::share),
            ]);
        }
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    let all: usize = report.rungs.iter().map(|rung| rung.pairs.len()).sum();
    vec![
        Block::section("discarded", "Discarded pairs"),
        Block::Fold {
            summary: format!(
                "{} of {all} pairs were discarded, with reasons",
                table.rows.len()
            ),
            blocks: vec![Block::Table(table)],
        },
    ]
}

fn method(report: &TuneReport) -> Vec<Block> {
    let mut blocks = vec![
        Block::section("method", "Method"),
        Block::List(report.method.clone()),
    ];
    if !report.envelope.command.is_empty() {
        let words: Vec<String> = report
            .envelope
            .command
            .iter()
            .map(|word| quoted(word))
            .collect();
        blocks.push(Block::Code(vec![words.join(" ")]));
    }
    blocks
}

/// A word of a command line that can be pasted into a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn machine(report: &TuneReport) -> Vec<Block> {
    let machine = &report.machine;
    let facts = [
        ("Host", machine.hostname.clone()),
        ("Kernel", machine.kernel.clone()),
        ("CPU", machine.cpu_model.clone()),
        ("CPUs online", machine.cpus.to_string()),
        ("Memory", numbers::bytes(machine.memory_bytes)),
        (
            "Virtualisation",
            machine
                .virtualisation
                .clone()
                .unwrap_or_else(|| "none detected".to_owned()),
        ),
        ("Boot", machine.boot_id.clone()),
        ("Started", moment(&report.envelope.started)),
        ("Finished", moment(&report.envelope.finished)),
        ("Tool", format!("rungwise {}", report.envelope.tool.version)),
        ("Run folder", report.run_dir.clone()),
    ];
    let known =
        |(name, value): (&str, String)| (!value.is_empty()).then(|| (name.to_owned(), value));
    vec![
        Block::section("machine", "Machine and run"),
        Block::Facts(facts.into_iter().filter_map(known).collect()),
    ]
}

/// `2026-11-21T13:20:46Z` as `2026-11-21 13:20:46 UTC`; anything else as it is.
pub(crate) fn moment(rfc3339: &str) -> String {
    match rfc3339
        .strip_suffix('Z')
        .and_then(|text| text.split_once('T'))
    {
        Some((day, time)) => format!("{day} {} UTC", time.split('.').next().unwrap_or(time)),
        None => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_other_machine_is_read_from_its_description() {
        assert_eq!(cores("Makita 2017, 20 cores, 82599ES 10GbE"), Some(20));
        assert_eq!(cores("a 64-core server"), Some(64));
        assert_eq!(cores("someone, somewhere"), None);
    }

    #[test]
    fn command_lines_can_be_pasted() {
        assert_eq!(quoted("udp-echo"), "udp-echo");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn moments_are_short_and_say_utc() {
        assert_eq!(
            moment("2026-11-21T13:20:46.125Z"),
            "2026-11-21 13:20:46 UTC"
        );
        assert_eq!(moment("yesterday"), "yesterday");
    }
}
