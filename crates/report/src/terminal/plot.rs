//! The kinds of pictures in characters: for a terminal, and for Markdown.

use std::ops::Range;

use super::text::{Paint, clean, pad, shorten, width_of};
use super::{columns, flame, heat, layers, map, steps};
use crate::block::{BarGroup, Bars, Dots, Intervals, Plot, Series, Tone};
use crate::numbers;
use crate::scale::{Axis, ChangeScale, Unit};

/// Heights of one column of a line of dots.
pub(super) const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of a plot: readable, and no wider than it is exact.
pub(super) const PLOT: std::ops::RangeInclusive<usize> = 16..=60;

pub(crate) fn draw(plot: &Plot, width: usize, paint: Paint) -> Vec<String> {
    match plot {
        Plot::Intervals(plot) => intervals(plot, width, paint),
        Plot::Dots(plot) => dots(plot, width, paint),
        Plot::Bars(plot) => bars(plot, width, paint),
        Plot::Map(plot) => map::draw(plot, width, paint),
        Plot::Heat(plot) => heat::draw(plot, width, paint),
        Plot::PathStages(plot) => steps::draw(plot, width, paint),
        Plot::Columns(plot) => columns::draw(plot, width, paint),
        Plot::Layers(plot) => layers::draw(plot, width, paint),
        Plot::Flame(plot) => flame::draw(plot, width, paint),
    }
}

fn intervals(plot: &Intervals, width: usize, paint: Paint) -> Vec<String> {
    let changes = plot.rows.iter().filter_map(|row| row.change);
    let scale = ChangeScale::holding(
        changes
            .flat_map(|(point, low, high)| [point, low, high])
            .chain(plot.band.into_iter().map(|band| band * 1.5)),
    );
    let titles: Vec<String> = plot
        .rows
        .iter()
        .map(|row| {
            let tags: Vec<String> = row.tags.iter().map(|tag| format!(" ({tag})")).collect();
            clean(&format!(
                "{:>2}  {}{}",
                row.number,
                row.title,
                tags.concat()
            ))
        })
        .collect();
    let changes: Vec<String> = plot
        .rows
        .iter()
        .map(|row| match row.change {
            Some((point, ..)) => clean(&numbers::change(point)),
            None => numbers::ABSENT.to_owned(),
        })
        .collect();
    let marks: Vec<String> = plot
        .rows
        .iter()
        .map(|row| {
            let differs = row
                .reference
                .as_ref()
                .is_some_and(|theirs| theirs.sign_differs);
            let flag = if differs { " ≠" } else { "" };
            format!("{} {}{flag}", row.mark.symbol, row.mark.word)
        })
        .collect();
    let change_width = widest(&changes);
    let rest = change_width + widest(&marks) + 6;
    let title_width = title_width(&titles, width.saturating_sub(rest));
    let across = width
        .saturating_sub(rest + title_width)
        .clamp(*PLOT.start(), *PLOT.end());
    let mut lines = Vec::new();
    for (((row, title), change), mark) in plot.rows.iter().zip(&titles).zip(&changes).zip(&marks) {
        let tone = match row.mark.tone {
            tone @ (Tone::Good | Tone::Bad) => tone,
            _ => Tone::Plain,
        };
        // The start needs no excuse; a rung without a change says here why it has none.
        let picture = if row.change.is_none() && row.number > 0 {
            pad(&shorten(&clean(&row.instead), across), across, false)
        } else {
            interval_line(row.change, plot.band, &scale, across)
        };
        lines.push(format!(
            "{}  {}  {}  {}",
            pad(&shorten(title, title_width), title_width, false),
            paint.tone(&picture, tone),
            pad(change, change_width, true),
            paint.tone(mark, row.mark.tone),
        ));
    }
    let (axis, bent) = (axis_line(&scale, across), scale.is_bent());
    lines.push(paint.dim(&format!("{}  {axis}", " ".repeat(title_width))));
    let (left, right) = plot.sides;
    let bent = if bent {
        "; linear near zero, logarithmic further out"
    } else {
        ""
    };
    let note = format!("{left} ← 0 → {right}{bent}");
    lines.push(paint.dim(&shorten(&note, width)));
    if let Some(name) = &plot.reference
        && marks.iter().any(|mark| mark.ends_with('≠'))
    {
        lines.push(paint.dim(&format!("≠ sign differs from {}", clean(name))));
    }
    lines
}

fn interval_line(
    change: Option<(f64, f64, f64)>,
    band: Option<f64>,
    scale: &ChangeScale,
    across: usize,
) -> String {
    let column = |at: f64| ((at * (across - 1) as f64).round() as usize).min(across - 1);
    let mut cells = vec![' '; across];
    if let Some(band) = band {
        let from = column(scale.position(-band).0);
        let to = column(scale.position(band).0);
        cells[from..=to].fill('·');
    }
    cells[column(0.5)] = '│';
    if let Some((point, low, high)) = change {
        let (from, low_beyond) = scale.position(low);
        let (to, high_beyond) = scale.position(high);
        let (from, to) = (column(from), column(to));
        cells[from..=to.max(from)].fill('─');
        cells[from] = if low_beyond { '◀' } else { '├' };
        cells[to] = if high_beyond { '▶' } else { '┤' };
        let (at, beyond) = scale.position(point);
        if !beyond {
            cells[column(at)] = '●';
        }
    }
    cells.into_iter().collect()
}

fn axis_line(scale: &ChangeScale, across: usize) -> String {
    // Room for the longest label, "+300 %", and a space on either side.
    let gap = 8.0 / across as f64;
    let mut cells = vec![' '; across];
    for tick in scale.ticks(gap, gap) {
        let label = clean(&tick.label);
        let columns = width_of(&label);
        let middle = (tick.at * (across - 1) as f64).round() as usize;
        let from = middle
            .saturating_sub(columns / 2)
            .min(across.saturating_sub(columns));
        for (offset, c) in label.chars().enumerate().take(across) {
            cells[from + offset] = c;
        }
    }
    cells.into_iter().collect()
}

fn dots(plot: &Dots, width: usize, paint: Paint) -> Vec<String> {
    let y = plot.axis();
    let names: Vec<String> = plot
        .series
        .iter()
        .map(|series| clean(&series.name))
        .collect();
    let ranges: Vec<String> = plot
        .series
        .iter()
        .map(|series| clean(&range(plot, series)))
        .collect();
    let name_width = widest(&names);
    let range_width = widest(&ranges);
    let most = plot
        .series
        .iter()
        .map(|series| series.points.len())
        .max()
        .unwrap_or(0);
    let across = width
        .saturating_sub(name_width + range_width + 4)
        .clamp(*PLOT.start(), *PLOT.end())
        // No more columns than dots, or the line would have holes; enough for the axis beneath.
        .min(most.max(8));
    let mut lines = Vec::new();
    for ((series, name), range) in plot.series.iter().zip(&names).zip(&ranges) {
        lines.push(format!(
            "{}  {}  {range}",
            pad(name, name_width, false),
            sparkline(series, plot.from_s..plot.until_s, &y, across)
        ));
    }
    let log = if y.is_log() { ", logarithmic" } else { "" };
    let axis = if let [first, .., last] = &plot.names[..] {
        ends(&clean(first), &clean(last), across)
    } else if plot.along == Unit::Seconds {
        time_line(plot.from_s, plot.until_s, across)
    } else {
        let [from, until] = [plot.from_s, plot.until_s].map(|at| plot.along.show(at));
        ends(&clean(&from), &clean(&until), across)
    };
    lines.push(paint.dim(&format!(
        "{}  {axis}  {}{log}; right: range of counted values",
        " ".repeat(name_width),
        clean(&plot.quantity)
    )));
    lines
}

/// The ends of a time axis, so many columns apart.
pub(super) fn time_line(from_s: f64, until_s: f64, across: usize) -> String {
    let (mut from, mut until) = (numbers::span(from_s), numbers::span(until_s));
    if from == until {
        (from, until) = (numbers::clock(from_s), numbers::clock(until_s));
    }
    let from = if from_s > 0.0 {
        clean(&from)
    } else {
        "0".to_owned()
    };
    ends(&from, &clean(&until), across)
}

/// The labels at both ends of an axis.
fn ends(from: &str, until: &str, across: usize) -> String {
    let room = across.saturating_sub(width_of(from));
    format!("{from}{}", pad(&format!(" {until}"), room, true))
}

fn range(plot: &Dots, series: &Series) -> String {
    let counted = || {
        series
            .points
            .iter()
            .filter(|p| !p.hollow && p.value.is_finite())
            .map(|p| p.value)
    };
    let low = counted().fold(f64::INFINITY, f64::min);
    let high = counted().fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return numbers::ABSENT.to_owned();
    }
    format!("{} … {}", plot.unit.show(low), plot.unit.show(high))
}

/// Median of the dots that fall into each column; discarded ones leave no trace here.
fn sparkline(series: &Series, time: Range<f64>, y: &Axis, across: usize) -> String {
    (0..across)
        .map(|column| {
            let inside = series.points.iter().filter(|point| {
                let since = (point.at_s - time.start) / (time.end - time.start);
                let at = (since * across as f64).floor().min((across - 1) as f64);
                !point.hollow && at as usize == column
            });
            numbers::median(inside.map(|point| point.value)).map_or(' ', |value| {
                let level = (y.position(value) * LEVELS.len() as f64) as usize;
                LEVELS[level.min(LEVELS.len() - 1)]
            })
        })
        .collect()
}

fn bars(plot: &Bars, width: usize, paint: Paint) -> Vec<String> {
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let all = || plot.groups.iter().flat_map(|group| &group.bars);
    let most = if plot.whole {
        1.0
    } else {
        all().map(|bar| sum(&bar.values)).fold(0.0, f64::max)
    };
    let labels = all()
        .map(|bar| width_of(&clean(&bar.label)))
        .max()
        .unwrap_or(0);
    let totals = all()
        .map(|bar| width_of(&clean(&bar.total)))
        .max()
        .unwrap_or(0);
    let titles: Vec<String> = plot
        .groups
        .iter()
        .map(|group| clean(&group.title))
        .collect();
    let rest = labels + totals + 6;
    let title_width = title_width(&titles, width.saturating_sub(rest));
    let across = width
        .saturating_sub(rest + title_width)
        .clamp(*PLOT.start(), *PLOT.end());
    let parts: Vec<String> = plot
        .parts
        .iter()
        .map(|part| format!("{} {}", part.fill, part.name))
        .collect();
    let mut lines = vec![paint.dim(&format!(
        "{}   ({})",
        parts.join("   "),
        clean(&plot.quantity)
    ))];
    for (BarGroup { bars, .. }, title) in plot.groups.iter().zip(&titles) {
        for (index, bar) in bars.iter().enumerate() {
            let title = if index == 0 {
                shorten(title, title_width)
            } else {
                String::new()
            };
            let mut strip = String::new();
            let (mut upto, mut drawn) = (0.0, 0);
            for (part, value) in plot.parts.iter().zip(&bar.values) {
                upto += if value.is_finite() {
                    value.max(0.0)
                } else {
                    0.0
                };
                let end = if most > 0.0 {
                    (upto / most * across as f64).round() as usize
                } else {
                    0
                };
                let end = end.min(across);
                strip.extend(std::iter::repeat_n(part.fill, end.saturating_sub(drawn)));
                drawn = drawn.max(end);
            }
            lines.push(format!(
                "{}  {}  {}  {}",
                pad(&title, title_width, false),
                pad(&clean(&bar.label), labels, false),
                pad(&strip, across, false),
                pad(&clean(&bar.total), totals, true),
            ));
        }
    }
    lines
}

/// Titles get what they need, the plot at least half.
fn title_width(titles: &[String], room: usize) -> usize {
    widest(titles).min((room / 2).clamp(12, 60))
}

fn widest(texts: &[String]) -> usize {
    texts.iter().map(|text| width_of(text)).max().unwrap_or(0)
}
