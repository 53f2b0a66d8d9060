//! Every run of every rung on one time axis: rate, latency, and the CPU that was not ours.
//!
//! Only these charts show drift and disturbances of the machine.

use rungwise_model::tune::{Run, Rung, TuneReport};

use crate::block::{Block, Cell, Chart, Column, Dots, Plot, Point, Series, Span, Table, Tone};
use crate::numbers;
use crate::scale::Unit;

/// One run with where it belongs.
struct Placed<'a> {
    rung: usize,
    pair: usize,
    half: &'static str,
    run: &'a Run,
    counts: bool,
}

/// Seconds from the start to the end of the last run.
pub(super) fn end_s(report: &TuneReport) -> f64 {
    runs(report)
        .iter()
        .map(|placed| placed.run.at_s + placed.run.cpu.seconds.max(0.0))
        .filter(|end| end.is_finite())
        .fold(0.0, f64::max)
}

/// The three charts; none where nothing ran.
pub(super) fn charts(report: &TuneReport) -> Vec<Block> {
    let runs = runs(report);
    if runs.is_empty() {
        return Vec::new();
    }
    let frame = Frame {
        until_s: end_s(report),
        spans: spans(report),
        runs: &runs,
    };
    vec![frame.rate(report), frame.latency(report), frame.foreign()]
}

fn runs(report: &TuneReport) -> Vec<Placed<'_>> {
    let mut placed = Vec::new();
    for (rung, entry) in report.rungs.iter().enumerate() {
        for (pair, both) in entry.pairs.iter().enumerate() {
            for (half, run) in [("A", &both.a), ("B", &both.b)] {
                placed.push(Placed {
                    rung,
                    pair: pair + 1,
                    half,
                    run,
                    counts: both.discarded.is_none(),
                });
            }
        }
    }
    placed.sort_by(|a, b| a.run.at_s.total_cmp(&b.run.at_s));
    placed
}

/// The time that each rung took, from its first run to its last.
fn spans(report: &TuneReport) -> Vec<Span> {
    let span = |(number, rung): (usize, &Rung)| {
        let both = || rung.pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
        let from_s = both().map(|run| run.at_s).fold(f64::INFINITY, f64::min);
        let to_s = both()
            .map(|run| run.at_s + run.cpu.seconds)
            .fold(0.0, f64::max);
        (from_s.is_finite() && to_s.is_finite()).then(|| Span {
            from_s,
            to_s,
            label: number.to_string(),
            title: format!("rung {number}: {}", rung.title),
            tone: Tone::Plain,
        })
    };
    report.rungs.iter().enumerate().filter_map(span).collect()
}

struct Frame<'a> {
    until_s: f64,
    spans: Vec<Span>,
    runs: &'a [Placed<'a>],
}

impl Frame<'_> {
    fn rate(&self, report: &TuneReport) -> Block {
        let result = super::from_to(super::rate_ends(report), numbers::rate).map_or_else(
            || "Rate of every run".to_owned(),
            |story| format!("Rate: {story}"),
        );
        let left_out = self.runs.iter().filter(|placed| !placed.counts).count();
        let title = match left_out {
            0 => result,
            n => format!(
                "{result}; {n} of {} discarded",
                numbers::plural(self.runs.len(), "run")
            ),
        };
        self.chart(Wanted {
            id: "rate-over-time",
            title,
            quantity: "replies per second".to_owned(),
            unit: Unit::Rate,
            from_zero: false,
            series: vec![
                self.series("A, without the change", "A", 0, |run| run.rate_per_s),
                self.series("B, with the change", "B", 1, |run| run.rate_per_s),
            ],
            columns: vec![
                Column::number("Rate", "rate_per_s"),
                Column::number("Loss", "loss"),
            ],
            cells: |run| {
                vec![
                    Cell::number(Some(run.rate_per_s), numbers::rate),
                    Cell::number(Some(run.loss), numbers::share),
                ]
            },
        })
    }

    fn latency(&self, report: &TuneReport) -> Block {
        let title = super::from_to(super::p99_ends(report), numbers::micros).map_or_else(
            || "Latency of every run".to_owned(),
            |story| format!("Latency: p99 {story}"),
        );
        self.chart(Wanted {
            id: "latency-over-time",
            title,
            quantity: match &report.figures_of {
                None => "latency from the intended start".to_owned(),
                Some(program) => format!("latency as reported by {program}"),
            },
            unit: Unit::Micros,
            from_zero: false,
            series: vec![
                self.series("p50, A", "A", 1, |run| run.p50_us.unwrap_or(f64::NAN)),
                self.series("p50, B", "B", 1, |run| run.p50_us.unwrap_or(f64::NAN)),
                self.series("p99, A", "A", 2, |run| run.p99_us.unwrap_or(f64::NAN)),
                self.series("p99, B", "B", 2, |run| run.p99_us.unwrap_or(f64::NAN)),
            ],
            columns: vec![
                Column::number("p50", "p50_us"),
                Column::number("p99", "p99_us"),
            ],
            cells: |run| {
                vec![
                    Cell::number(run.p50_us, numbers::micros_only),
                    Cell::number(run.p99_us, numbers::micros_only),
                ]
            },
        })
    }

    fn foreign(&self) -> Block {
        let most = |counts: bool| {
            self.runs
                .iter()
                .filter(|placed| placed.counts == counts)
                .map(|placed| placed.run.cpu.foreign)
                .fold(None, |most: Option<f64>, x| {
                    Some(most.map_or(x, |m| m.max(x)))
                })
        };
        let title = match (most(true), most(false)) {
            (Some(in_use), Some(left_out)) => format!(
                "Foreign CPU: at most {} in counted runs, up to {} in discarded runs",
                numbers::share(in_use),
                numbers::share(left_out)
            ),
            (Some(in_use), None) => {
                format!("Foreign CPU: at most {} in any run", numbers::share(in_use))
            }
            (None, Some(left_out)) => format!(
                "Foreign CPU: no run counts; up to {} in discarded runs",
                numbers::share(left_out)
            ),
            (None, None) => "Foreign CPU".to_owned(),
        };
        self.chart(Wanted {
            id: "foreign-cpu-over-time",
            title,
            quantity: "CPU used by other processes, share of all CPUs".to_owned(),
            unit: Unit::Share,
            from_zero: true,
            series: vec![
                self.series("A, without the change", "A", 0, |run| run.cpu.foreign),
                self.series("B, with the change", "B", 1, |run| run.cpu.foreign),
            ],
            columns: vec![Column::number("Foreign CPU", "foreign")],
            cells: |run| vec![Cell::number(Some(run.cpu.foreign), numbers::share)],
        })
    }

    fn series(&self, name: &str, half: &str, hue: usize, value: fn(&Run) -> f64) -> Series {
        let points = self
            .runs
            .iter()
            .filter(|placed| placed.half == half)
            .map(|placed| Point {
                at_s: placed.run.at_s,
                value: value(placed.run),
                hollow: !placed.counts,
            })
            .collect();
        Series {
            name: name.to_owned(),
            square: half == "A",
            joined: false,
            hue,
            points,
        }
    }

    fn chart(&self, wanted: Wanted) -> Block {
        let mut columns = vec![
            Column::number("At", "at_s"),
            Column::number("Rung", "rung"),
            Column::number("Pair", "pair"),
            Column::words("Variant", "variant"),
            Column::words("Counts", "counts"),
        ];
        columns.extend(wanted.columns);
        let rows = self
            .runs
            .iter()
            .map(|placed| {
                let mut row = vec![
                    Cell::number(Some(placed.run.at_s), |s| {
                        format!("{s:.1}{}s", numbers::THIN)
                    }),
                    Cell::number(Some(placed.rung as f64), |n| format!("{n:.0}")),
                    Cell::number(Some(placed.pair as f64), |n| format!("{n:.0}")),
                    Cell::text(placed.half),
                    Cell::text(if placed.counts { "yes" } else { "no" }),
                ];
                row.extend((wanted.cells)(placed.run));
                row
            })
            .collect();
        Block::Chart(Box::new(Chart {
            id: wanted.id,
            note: "One mark per run; hollow: discarded. The numbers along the top are the rungs."
                .to_owned(),
            data: Table {
                caption: wanted.title.clone(),
                columns,
                rows,
            },
            title: wanted.title,
            plot: Plot::Dots(Dots {
                along: Unit::Seconds,
                names: Vec::new(),
                quantity: wanted.quantity,
                unit: wanted.unit,
                from_zero: wanted.from_zero,
                also: Vec::new(),
                from_s: 0.0,
                until_s: self.until_s,
                zooms: false,
                series: wanted.series,
                spans: self.spans.clone(),
            }),
        }))
    }
}

/// What one of the three charts adds to the frame they share.
struct Wanted {
    id: &'static str,
    title: String,
    quantity: String,
    unit: Unit,
    from_zero: bool,
    series: Vec<Series>,
    columns: Vec<Column>,
    cells: fn(&Run) -> Vec<Cell>,
}
