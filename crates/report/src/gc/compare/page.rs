//! The comparison as blocks: the sentence, the pauses of both sides on one scale, and what differs.

use rungwise_model::compare::{CompareReport, ComparedLog, Metric};

use super::{millis, seconds};
use crate::block::{Block, Cell, Chart, Column, Dots, Mark, Plot, Table, Tone, Verdict};
use crate::gc::pictures;
use crate::numbers::{self, ABSENT};
use crate::scale::Unit;
use crate::tune::moment;

/// The whole report. Of the clauses of its sentence the first is the headline.
pub fn blocks(report: &CompareReport) -> Vec<Block> {
    let (before, after) = (&report.before_logs[..], &report.after_logs[..]);
    let clauses = &report.clauses;
    let (headline, details) = clauses.split_at(clauses.len().min(1));
    let same = report.metrics.is_empty();
    let (symbol, word, tone) = if same {
        ("=", "same", Tone::Quiet)
    } else {
        ("≠", "differs", Tone::Doubt)
    };
    let mut blocks = vec![Block::Verdict(Verdict {
        mark: Mark { symbol, word, tone },
        sentence: headline.concat(),
        context: vec![
            format!("before: {}", report.before),
            format!("after: {}", report.after),
            moment(&report.envelope.started),
        ],
        caveats: Vec::new(),
    })];
    blocks.extend(report.notes.iter().map(|note| Block::Notice {
        tone: Tone::Doubt,
        text: note.clone(),
    }));
    if !details.is_empty() {
        blocks.push(Block::List(details.to_vec()));
    }
    if !same {
        let settings = |metric: &&Metric| ["Options", "JVM"].contains(&&*metric.group);
        let (settings, measured): (Vec<_>, Vec<_>) = report.metrics.iter().partition(settings);
        blocks.push(Block::section("settings", "Changed settings"));
        blocks.push(match &settings[..] {
            [] => Block::Prose(unchanged(before, after).to_owned()),
            some => Block::Table(table(String::new(), some, false)),
        });
        blocks.push(Block::section("metrics", "Differences"));
        blocks.push(Block::Table(table(
            sureness(before, after),
            &measured,
            true,
        )));
    }
    blocks.push(Block::Long {
        brief: String::new(),
        summary: String::new(),
        blocks: scatters(before, after),
    });
    blocks
}

fn unchanged(before: &[ComparedLog], after: &[ComparedLog]) -> &'static str {
    let has_flags = |side: &[ComparedLog]| side.iter().any(|log| log.run.jvm.flags.is_some());
    if has_flags(before) && has_flags(after) {
        "Both sides have the same options, collector and JVM."
    } else {
        "The changed options are unknown: a log lacks the JVM header that lists them (-Xlog:gc+init, or the \
         header of JDK 8)."
    }
}

fn sureness(before: &[ComparedLog], after: &[ComparedLog]) -> String {
    let how = match (before.len(), after.len()) {
        (1, 1) => {
            "from batches of each log; it excludes variation from run to run: pass several logs per side to include that. Rows without \
             an interval give the reason: a maximum does not predict the next run"
        }
        _ => "if both sides have four logs or more, one value per log; ranges are over the logs",
    };
    format!("Ratios are after over before with a 95 % interval, {how}.")
}

fn table(caption: String, metrics: &[&Metric], measured: bool) -> Table {
    let side = |value: &Option<String>| Cell::text(value.as_deref().unwrap_or(ABSENT));
    let rows = metrics.iter().map(|metric| {
        let ratio = match (&metric.ratio, &metric.no_ratio) {
            (Some(ratio), _) => format!(
                "{} ({} to {})",
                numbers::factor(ratio.point),
                numbers::factor(ratio.low),
                numbers::factor(ratio.high)
            ),
            (None, Some(why)) => format!("none: {why}"),
            (None, None) => String::new(),
        };
        let mut row = vec![
            Cell::text(format!("{}: {}", metric.group, metric.name)),
            side(&metric.before),
            side(&metric.after),
        ];
        row.extend(measured.then(|| Cell::text(ratio)));
        row
    });
    let mut columns = vec![
        Column::words("Metric", "name"),
        Column::words("Before", "before"),
        Column::words("After", "after"),
    ];
    columns.extend(measured.then(|| Column::words("Ratio", "ratio")));
    Table {
        caption,
        columns,
        rows: rows.collect(),
    }
}

/// The pauses of the first log of each side: one scale for their length, one axis from the beginning of each log.
fn scatters(before: &[ComparedLog], after: &[ComparedLog]) -> Vec<Block> {
    let sides = [
        ("gc-pauses-before", "Before", before),
        ("gc-pauses-after", "After", after),
    ];
    let known = sides.iter().filter_map(|(id, word, side)| {
        let log = side.first().filter(|log| seconds(&log.run).is_some())?;
        let title = title(word, log);
        let (series, data) = pictures::since_began(&log.run, &title);
        (!series.is_empty()).then_some((*id, title, log, series, data))
    });
    let known: Vec<_> = known.collect();
    let seconds = known.iter().filter_map(|(_, _, log, ..)| seconds(&log.run));
    let until_s = seconds.fold(0.0, f64::max);
    let all = known.iter().flat_map(|(_, _, _, series, _)| series);
    let values: Vec<f64> = all
        .flat_map(|series| series.points.iter().map(|point| point.value))
        .collect();
    let ends = vec![
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(0.0, f64::max),
    ];
    let charts = known.into_iter().map(|(id, title, log, series, data)| {
        Block::Chart(Box::new(Chart {
            id,
            note: format!("{}, in seconds since its start.", log.name),
            data,
            title,
            plot: Plot::Dots(Dots {
                along: Unit::Seconds,
                names: Vec::new(),
                quantity: "pause".to_owned(),
                unit: Unit::Micros,
                from_zero: false,
                also: ends.clone(),
                from_s: 0.0,
                until_s,
                zooms: true,
                series,
                spans: Vec::new(),
            }),
        }))
    });
    let mut blocks: Vec<Block> = charts.collect();
    if !blocks.is_empty() {
        blocks.insert(0, Block::section("pictures", "Pauses on one scale"));
    }
    blocks
}

fn title(word: &str, log: &ComparedLog) -> String {
    let all = &log.run.pauses.all;
    format!(
        "{word}: {} pauses, median {}, longest {}",
        numbers::count(all.count),
        millis(all.p50_ms),
        millis(all.longest_ms)
    )
}
