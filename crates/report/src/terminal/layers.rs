//! Shares of the time, step by step: a line of levels for each layer.

use super::plot::{LEVELS, PLOT, time_line};
use super::text::{Paint, clean, pad, shorten, width_of};
use crate::block::{Layer, Layers};

/// Columns that a name gets at most.
const NAME: usize = 40;

pub(super) fn draw(plot: &Layers, width: usize, paint: Paint) -> Vec<String> {
    let widest = |texts: &[String]| texts.iter().map(|text| width_of(text)).max().unwrap_or(0);
    let names: Vec<String> = plot.layers.iter().map(|l| clean(&l.name)).collect();
    let totals: Vec<String> = plot.layers.iter().map(|l| clean(&l.total)).collect();
    let (name_width, total_width) = (widest(&names).min(NAME), widest(&totals));
    let across = width
        .saturating_sub(name_width + total_width + 4)
        .clamp(*PLOT.start(), *PLOT.end());
    let lines: Vec<Vec<f64>> = plot
        .layers
        .iter()
        .map(|layer| columns(plot, layer, across))
        .collect();
    // Lanes are full at 1, layers of a stack share the highest.
    let most = if plot.stacked {
        lines.iter().flatten().copied().fold(0.0, f64::max)
    } else {
        1.0
    };
    let mut text: Vec<String> = names
        .iter()
        .zip(&totals)
        .zip(&lines)
        .map(|((name, total), line)| {
            let line: String = line.iter().map(|share| level(*share, most)).collect();
            let name = pad(&shorten(name, name_width), name_width, false);
            format!("{name}  {line}  {}", pad(total, total_width, true))
        })
        .collect();
    let axis = time_line(plot.from_s, plot.until_s, across);
    let quantity = clean(&plot.quantity);
    text.push(paint.dim(&format!("{}  {axis}  {quantity}", " ".repeat(name_width))));
    text
}

/// Mean share of the steps that begin in each column, or of the step that it lies in.
fn columns(plot: &Layers, layer: &Layer, across: usize) -> Vec<f64> {
    let second =
        |column: usize| plot.from_s + (plot.until_s - plot.from_s) * column as f64 / across as f64;
    let step = |column: usize| ((second(column) - plot.first_s) / plot.step_s).max(0.0) as usize;
    (0..across)
        .map(|column| {
            let from = step(column);
            let until = step(column + 1).max(from + 1);
            let steps = layer.shares.iter().take(until).skip(from);
            steps.sum::<f64>() / (until - from) as f64
        })
        .collect()
}

/// Nothing is empty; what is there at all is seen.
fn level(share: f64, most: f64) -> char {
    if share <= 0.0 || most <= 0.0 {
        return ' ';
    }
    let level = (share / most * LEVELS.len() as f64) as usize;
    LEVELS[level.min(LEVELS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_mean_of_its_steps_and_a_wide_step_fills_many() {
        let plot = Layers {
            quantity: String::new(),
            stacked: true,
            from_s: 10.0,
            until_s: 18.0,
            first_s: 10.0,
            step_s: 1.0,
            layers: Vec::new(),
            spans: Vec::new(),
        };
        let layer = Layer {
            name: String::new(),
            total: String::new(),
            hue: 0,
            shares: vec![0.25, 0.75, 0.0, 0.0, 1.0],
        };
        assert_eq!(columns(&plot, &layer, 4), [0.5, 0.0, 0.5, 0.0]);
        assert_eq!(columns(&plot, &layer, 16)[..4], [0.25, 0.25, 0.75, 0.75]);
        assert_eq!(
            (level(0.0, 1.0), level(1e-9, 1.0), level(1.0, 1.0)),
            (' ', '▁', '█')
        );
    }
}
