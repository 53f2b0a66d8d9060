//! A histogram, one line per range of sizes. Bar lengths are logarithmic: a single item among many still shows.

use super::text::{Paint, clean, pad, width_of};
use crate::block::{Bin, Columns};
use crate::numbers;

/// Lines at most.
const LINES: usize = 12;
/// Columns of the longest bar.
const ACROSS: std::ops::RangeInclusive<usize> = 12..=50;

pub(super) fn draw(plot: &Columns, width: usize, paint: Paint) -> Vec<String> {
    let bins = merged(&plot.bins);
    let names: Vec<String> = bins
        .iter()
        .map(|bin| clean(&format!("to {}", plot.unit.show(bin.high))))
        .collect();
    let counts: Vec<String> = bins
        .iter()
        .map(|bin| clean(&numbers::count(bin.count)))
        .collect();
    let widest = |texts: &[String]| texts.iter().map(|text| width_of(text)).max().unwrap_or(0);
    let (name_width, count_width) = (widest(&names), widest(&counts));
    let across = width
        .saturating_sub(name_width + count_width + 4)
        .clamp(*ACROSS.start(), *ACROSS.end());
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let head = format!("{} by {}; log scale", plot.counted, plot.quantity);
    let mut lines = vec![paint.dim(&clean(&head))];
    for ((bin, name), count) in bins.iter().zip(&names).zip(&counts) {
        let bar = "█".repeat(length(bin.count, most, across));
        lines.push(format!(
            "{}  {}  {}",
            pad(name, name_width, true),
            pad(&bar, across, false),
            pad(count, count_width, true)
        ));
    }
    let marks: Vec<String> = plot
        .marks
        .iter()
        .map(|mark| format!("{} {}", mark.name, clean(&plot.unit.show(mark.at))))
        .collect();
    if !marks.is_empty() {
        lines.push(paint.dim(&marks.join("   ")));
    }
    lines
}

/// Nothing has no length, one of anything has at least one column.
fn length(count: u64, most: u64, across: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let share = (count as f64 * 2.0).ln() / (most.max(1) as f64 * 2.0).ln();
    ((share * across as f64).round() as usize).clamp(1, across)
}

/// Neighbours together until there are few enough lines: each line one or more powers of two wide, counted down from the
/// end of the last column, so that columns of a part of a power of two are never cut. A range between two others that
/// holds nothing stays, empty.
fn merged(bins: &[Bin]) -> Vec<Bin> {
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else {
        return Vec::new();
    };
    let octaves = (last.high / first.high).log2().floor().max(0.0) + 1.0;
    let octaves = if octaves.is_finite() { octaves } else { 1.0 };
    let each = (octaves / LINES as f64).ceil();
    let lines = (octaves / each).ceil() as u32;
    (0..lines)
        .rev()
        .map(|line| {
            let high = last.high / (f64::from(line) * each).exp2();
            let low = high / each.exp2();
            // The first line takes what lies below it, too: columns may be wider than theirs.
            let above = |bin: &&Bin| line + 1 == lines || bin.high > low * (1.0 + 1e-6);
            let inside = |bin: &&Bin| bin.high <= high * (1.0 + 1e-6) && above(bin);
            let count = bins.iter().filter(inside).map(|bin| bin.count).sum();
            Bin { low, high, count }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(high: f64, count: u64) -> Bin {
        Bin {
            low: high / 2.0,
            high,
            count,
        }
    }

    #[test]
    fn few_lines_hold_all_that_was_counted() {
        let bins: Vec<Bin> = (0..80)
            .map(|i| bin(f64::from(i).exp2() * 0.75, 1 + i as u64))
            .collect();
        let lines = merged(&bins);
        assert!(lines.len() <= LINES, "{}", lines.len());
        let count = |bins: &[Bin]| bins.iter().map(|bin| bin.count).sum::<u64>();
        assert_eq!(count(&lines), count(&bins));
    }

    #[test]
    fn a_gap_stays_empty_and_one_of_a_million_is_seen() {
        let lines = merged(&[bin(1.0, 1_000_000), bin(64.0, 1)]);
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[3].count, 0);
        assert_eq!(length(0, 1_000_000, 50), 0);
        assert!(length(1, 1_000_000, 50) >= 1);
        assert!(merged(&[]).is_empty());
    }
}
