//! The grids of a ladder: a map of the changes at their cells, the neighbours of the best one, and curves of the objective.

use rungwise_model::metric::{self, find};
use rungwise_model::tune::{Delta, Grid, GridCell, GridNeighbour, Outcome, Rung, TuneReport};

use super::outcome;
use crate::block::{
    Block, Cell, Chart, Column, Dots, Heat, HeatAxis, HeatCell, Mark, Plot, Point, Series, Table,
    Tone, heat,
};
use crate::numbers::{self, ABSENT};
use crate::scale::Unit;

/// Anchors of the map and of the curves of each grid. A ladder with more grids shows those that follow as tables.
const ANCHORS: [[&str; 2]; 6] = [
    ["grid-1", "grid-1-curves"],
    ["grid-2", "grid-2-curves"],
    ["grid-3", "grid-3-curves"],
    ["grid-4", "grid-4-curves"],
    ["grid-5", "grid-5-curves"],
    ["grid-6", "grid-6-curves"],
];

/// The state before the rung, and each of the hues with a plain line and with a dashed one. Of 64 cells one side has fewer points.
const LINES: usize = 10;
const HUES: usize = 5;

const BEST: Mark = Mark {
    symbol: "◆",
    word: "best",
    tone: Tone::Good,
};
/// The best by the estimates, where it was not kept.
const JUDGED: Mark = Mark {
    symbol: "◆",
    word: "judged",
    tone: Tone::Plain,
};
const BEFORE: Mark = Mark {
    symbol: "○",
    word: "state before",
    tone: Tone::Quiet,
};
const BREAKS: Mark = Mark {
    symbol: "✗",
    word: "breaks a guard rail",
    tone: Tone::Bad,
};
const LOST: Mark = Mark {
    symbol: "!",
    word: "not measured",
    tone: Tone::Doubt,
};

/// A section with all grids; nothing where there are none.
pub(super) fn blocks(report: &TuneReport) -> Vec<Block> {
    let rungs = report.rungs.iter();
    let grids: Vec<(&Rung, &Grid)> = rungs
        .filter_map(|rung| Some((rung, rung.grid.as_deref()?)))
        .filter(|(_, grid)| !grid.axes.is_empty())
        .collect();
    if grids.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("grids", "Grids")];
    for (number, (rung, grid)) in grids.into_iter().enumerate() {
        let view = View { report, rung, grid };
        if let Some([map, curves]) = ANCHORS.get(number) {
            blocks.push(view.map(map));
            blocks.extend(view.reasons());
            blocks.extend(view.neighbours());
            blocks.extend(view.curves(curves));
        } else {
            blocks.push(Block::Prose(super::unbroken(&grid.sentence)));
            blocks.push(Block::Table(view.data()));
            blocks.extend(view.neighbours());
        }
    }
    blocks
}

struct View<'a> {
    report: &'a TuneReport,
    rung: &'a Rung,
    grid: &'a Grid,
}

impl View<'_> {
    fn cell(&self, at: &[usize]) -> Option<&GridCell> {
        self.grid.cells.iter().find(|cell| cell.at == at)
    }

    /// The objective in words.
    fn metric(&self) -> &str {
        match self.report.objective.as_str() {
            "rate_per_s" => "transaction rate",
            "p99_us" => "p99 latency",
            other => find(other).map_or(other, |known| known.words),
        }
    }

    fn unit(&self) -> Unit {
        let is_quantile = |name: &str| {
            let percent = name.strip_prefix('p');
            percent.is_some_and(|percent| percent.parse::<f64>().is_ok())
        };
        match self.report.objective.as_str() {
            "rate_per_s" => Unit::Rate,
            "p99_us" => Unit::Micros,
            other => match find(other).map(|known| known.unit) {
                Some(metric::Unit::PerSecond) => Unit::Rate,
                Some(metric::Unit::Share) => Unit::Share,
                Some(metric::Unit::Micros) => Unit::Micros,
                Some(metric::Unit::Bytes) => Unit::Bytes,
                None if is_quantile(other) => Unit::Micros,
                None => Unit::Number,
            },
        }
    }

    /// Better, worse, or neither to be seen.
    fn tone(&self, change: &Delta) -> Tone {
        let less = self.report.less_is_better();
        match (change.low > 0.0, change.high < 0.0) {
            (true, _) if less => Tone::Bad,
            (true, _) => Tone::Good,
            (_, true) if less => Tone::Good,
            (_, true) => Tone::Bad,
            _ => Tone::Plain,
        }
    }

    /// The changes at all cells.
    fn map(&self, id: &'static str) -> Block {
        let sides = |axis: usize| {
            let axis = &self.grid.axes[axis];
            HeatAxis {
                title: axis.title.clone(),
                labels: axis.points.clone(),
            }
        };
        let columns = if self.grid.axes.len() > 1 {
            sides(1)
        } else {
            HeatAxis {
                title: String::new(),
                labels: vec!["Change".to_owned()],
            }
        };
        let cells = (0..self.grid.axes[0].points.len()).map(|row| {
            let of = |column: usize| match self.grid.axes.len() {
                1 => self.field(&[row]),
                _ => self.field(&[row, column]),
            };
            (0..columns.labels.len()).map(of).collect()
        });
        let pairs = self.grid.cells.iter().map(|cell| cell.pairs).max();
        Block::Chart(Box::new(Chart {
            id,
            title: super::unbroken(&self.grid.sentence),
            note: format!(
                "{}: change of the {} against the state before the rung, {} a cell, intervals of {}. Shaded where the interval excludes zero. \
                 {} is better.",
                self.rung.title,
                self.metric(),
                numbers::plural(pairs.unwrap_or(0) as usize, "pair"),
                percent(self.grid.confidence),
                if self.report.less_is_better() {
                    "Less"
                } else {
                    "More"
                },
            ),
            data: self.data(),
            plot: Plot::Heat(Heat {
                rows: sides(0),
                cells: cells.collect(),
                columns,
            }),
        }))
    }

    fn field(&self, at: &[usize]) -> HeatCell {
        let Some(cell) = self.cell(at) else {
            return HeatCell {
                text: ABSENT.to_owned(),
                notes: Vec::new(),
                tone: Tone::Plain,
                level: 0,
                mark: None,
            };
        };
        let mark = if self.grid.best.as_deref() == Some(at) {
            // That of a branch is best without being kept.
            let is_best = matches!(self.rung.outcome, Outcome::Kept | Outcome::Observed);
            Some(if is_best { BEST } else { JUDGED })
        } else if cell.is_before {
            Some(BEFORE)
        } else if cell.change.is_none() {
            Some(LOST)
        } else {
            cell.why_not.as_ref().map(|_| BREAKS)
        };
        let (text, interval) = match &cell.change {
            Some(change) => (
                numbers::change(change.point),
                Some(numbers::interval(change.low, change.high)),
            ),
            None if cell.is_before => ("0".to_owned(), None),
            None => (ABSENT.to_owned(), None),
        };
        let value = cell.value.map(|value| self.unit().show(value));
        HeatCell {
            text,
            notes: interval.into_iter().chain(value).collect(),
            tone: cell
                .change
                .as_ref()
                .map_or(Tone::Plain, |change| self.tone(change)),
            level: cell.change.as_ref().map_or(0, |change| heat(change.point)),
            mark,
        }
    }

    /// The numbers of all cells.
    fn data(&self) -> Table {
        let keys = ["first", "second"];
        let axes = || self.grid.axes.iter().zip(keys);
        let mut columns: Vec<Column> = axes()
            .map(|(axis, key)| Column::words(axis.title.clone(), key))
            .collect();
        columns.extend([
            Column::number("Change", "delta_point"),
            Column::number("Low", "delta_low"),
            Column::number("High", "delta_high"),
            Column::number("Value", "value"),
            Column::number("Pairs", "pairs"),
            Column::number("Discarded", "discarded"),
            Column::words("Why not the best", "reason"),
        ]);
        let unit = self.unit();
        let rows = self.grid.cells.iter().map(|cell| {
            let change = cell.change.as_ref();
            let of_before = cell.is_before.then_some(0.0);
            let labels = axes().zip(&cell.at).map(|((axis, _), point)| {
                Cell::text(axis.points.get(*point).map_or(ABSENT, String::as_str))
            });
            let mut row: Vec<Cell> = labels.collect();
            row.extend([
                Cell::number(change.map(|d| d.point).or(of_before), numbers::change),
                Cell::number(change.map(|d| d.low), numbers::change),
                Cell::number(change.map(|d| d.high), numbers::change),
                Cell::number(cell.value, |value| unit.show(value)),
                Cell::count(u64::from(cell.pairs)),
                Cell::count(u64::from(cell.discarded)),
                Cell::text(match (&cell.why_not, cell.is_before) {
                    (Some(why), _) => why.as_str(),
                    (None, true) => "the state before the rung",
                    (None, false) => "",
                }),
            ]);
            row
        });
        Table {
            caption: format!("Cells of “{}”", self.rung.title),
            columns,
            rows: rows.collect(),
        }
    }

    /// Why cells cannot be the best, each reason once.
    fn reasons(&self) -> Option<Block> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for cell in &self.grid.cells {
            let Some(why) = cell.why_not.as_deref() else {
                continue;
            };
            let points = self.grid.axes.iter().zip(&cell.at);
            let names: Vec<String> = points
                .filter_map(|(axis, point)| {
                    Some(format!("{} {}", axis.title, axis.points.get(*point)?))
                })
                .collect();
            let name = names.join(", ");
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, cells)) => cells.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let lines: Vec<String> = reasons
            .into_iter()
            .map(|(why, cells)| format!("{}: {why}", cells.join("; ")))
            .collect();
        (!lines.is_empty()).then_some(Block::List(lines))
    }

    /// The cells next to the best one.
    fn neighbours(&self) -> Option<Block> {
        let row = |neighbour: &GridNeighbour| {
            let GridNeighbour {
                axis,
                at,
                outcome: of,
                delta,
                reason,
                ..
            } = neighbour;
            let axis_of = self.grid.axes.get(*axis)?;
            let label = at.get(*axis).and_then(|point| axis_of.points.get(*point))?;
            let change = Cell::number(delta.map(|d| d.point), numbers::change);
            Some(vec![
                Cell::text(format!("{} {label}", axis_of.title)),
                change.note(delta.map_or_else(String::new, |d| numbers::interval(d.low, d.high))),
                Cell::number(delta.map(|d| f64::from(d.pairs)), |n| format!("{n:.0}")),
                Cell::mark(self.compared(*of, delta.as_ref())),
                Cell::text(reason),
            ])
        };
        let rows: Vec<_> = self.grid.neighbours.iter().filter_map(row).collect();
        (!rows.is_empty()).then(|| {
            Block::Table(Table {
                caption: "Each neighbour of the best cell, judged against it: one point less or more on one axis"
                    .to_owned(),
                columns: vec![
                    Column::words("Neighbour", "neighbour"),
                    Column::number("Change", "delta"),
                    Column::number("Pairs", "pairs").rank(2),
                    Column::words("Outcome", "outcome"),
                    Column::words("Reason", "reason").rank(1),
                ],
                rows,
            })
        })
    }

    /// What a neighbour is, seen from the best cell.
    fn compared(&self, of: Outcome, delta: Option<&Delta>) -> Mark {
        let is_worse = delta.is_some_and(|delta| self.tone(delta) == Tone::Bad);
        let word = match of {
            // It was judged when the best cell was kept already.
            Outcome::Kept => "better still",
            Outcome::Reverted if is_worse => "worse",
            Outcome::Reverted => "ruled out",
            _ => outcome(of).word,
        };
        Mark {
            word,
            ..outcome(of)
        }
    }

    /// The objective along the second axis, a line for each point of the first; or the other way round where there would be too many
    /// lines. A terminal shows the map alone.
    fn curves(&self, id: &'static str) -> Option<Block> {
        let axes = &self.grid.axes;
        let (along, across) = match &axes[..] {
            [_] => (0, None),
            [first, ..] if first.points.len() <= LINES => (1, Some(0)),
            _ => (0, Some(1)),
        };
        let places = axes[along].points.len();
        let line = |point: Option<usize>| -> Vec<Point> {
            let at = |place: usize| match (along, point) {
                (_, None) => vec![place],
                (0, Some(point)) => vec![place, point],
                (_, Some(point)) => vec![point, place],
            };
            let value = |place: usize| {
                let value = self
                    .cell(&at(place))?
                    .value
                    .filter(|value| value.is_finite())?;
                Some(Point {
                    at_s: place as f64,
                    value,
                    hollow: false,
                })
            };
            (0..places).filter_map(value).collect()
        };
        let mut series: Vec<Series> = match across {
            None => vec![joined(&axes[along].title, 0, line(None))],
            Some(across) => {
                let labels = axes[across].points.iter().enumerate();
                let named = labels.map(|(point, label)| {
                    let name = format!("{} {label}", axes[across].title);
                    joined(&name, point, line(Some(point)))
                });
                named.collect()
            }
        };
        series.retain(|series| !series.points.is_empty());
        if series.is_empty() {
            return None;
        }
        series.extend(self.grid.value_before.map(|value| {
            Series {
                name: "state before".to_owned(),
                square: true,
                joined: true,
                hue: 0,
                points: [0, places - 1]
                    .map(|place| Point {
                        at_s: place as f64,
                        value,
                        hollow: false,
                    })
                    .to_vec(),
            }
        }));
        let unit = self.unit();
        let values = || {
            series
                .iter()
                .flat_map(|series| &series.points)
                .map(|point| point.value)
        };
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let chart = Block::Chart(Box::new(Chart {
            id,
            title: format!(
                "{} along {}: {} to {}",
                capitalised(self.metric()),
                axes[along].title,
                unit.show(low),
                unit.show(high)
            ),
            note: "Medians of the runs of each cell. The machine may drift between cells; the changes in the map, which come from pairs, do not. \
                   A cell that was not measured has no point."
                .to_owned(),
            data: self.data(),
            plot: Plot::Dots(Dots {
                along: Unit::Count,
                names: axes[along].points.clone(),
                quantity: format!("{} by {}", self.metric(), axes[along].title),
                unit,
                from_zero: false,
                also: Vec::new(),
                from_s: 0.0,
                until_s: (places - 1).max(1) as f64,
                zooms: false,
                series,
                spans: Vec::new(),
            }),
        }));
        Some(Block::Long {
            brief: String::new(),
            summary: String::new(),
            blocks: vec![chart],
        })
    }
}

/// The line of one point of the other axis.
fn joined(name: &str, index: usize, points: Vec<Point>) -> Series {
    Series {
        name: name.to_owned(),
        square: index >= HUES,
        joined: true,
        hue: index % HUES + 1,
        points,
    }
}

/// A level of confidence, of which the last digit matters: `99.5 %`.
fn percent(fraction: f64) -> String {
    let hundredths = (fraction * 1e4).round() / 100.0;
    format!("{hundredths}{}%", numbers::THIN)
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
