//! What took the time of each step of a run: the parts of pauses, or what ran beside the application.
//!
//! All parts have the same steps, so that they stand on each other. As in a [`Course`](super::course::Course), steps begin
//! short, and neighbours merge when time runs past the last one.

use rungwise_model::gc;

use super::book::{Book, Table};
use super::clock::seconds;
use super::course::{FIRST, PARTS, together};
use super::spread::ms;
use crate::names::{Name, Names};

/// Steps at most: as many as a chart has room for.
const STEPS: i64 = 512;
/// Parts that are shown one by one; more cannot be distinguished in a chart.
const MOST_PARTS: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Breakdown {
    /// Time of the first step.
    origin: i64,
    /// Length of a step; 0 while there is nothing.
    step: i64,
    parts: Table<Part>,
}

/// Nanoseconds of each step.
#[derive(Debug, Default)]
pub(super) struct Part {
    steps: Vec<u64>,
}

/// Where something lies in the steps, nanoseconds since the first one began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    began: i64,
    ended: i64,
    step: i64,
    /// The steps that it begins and ends in.
    first: i64,
    last: i64,
}

impl Breakdown {
    /// Makes room for what lasted from `began` to `ended`. What lies before the first step counts as in it.
    pub(super) fn span(&mut self, began: i64, ended: i64) -> Span {
        if self.step == 0 {
            (self.origin, self.step) = (began, FIRST);
        }
        let began = began.saturating_sub(self.origin).max(0);
        let ended = ended.saturating_sub(self.origin).max(began);
        while ended >= self.step.saturating_mul(STEPS) {
            self.halve();
        }
        Span {
            began,
            ended,
            step: self.step,
            first: began / self.step,
            last: (ended - 1).max(began) / self.step,
        }
    }

    pub(super) fn part(&mut self, book: &mut Book, names: &Names, name: Name) -> &mut Part {
        self.parts.at(book, names, name)
    }

    pub(super) fn report(&self, book: &Book) -> gc::Breakdown {
        let mut all: Vec<(String, &Part)> = self.parts.rows(book).collect();
        all.retain(|(_, part)| part.sum() > 0);
        all.sort_by_key(|(_, part)| std::cmp::Reverse(part.sum()));
        let rest = all.split_off(all.len().min(MOST_PARTS));
        let mut parts: Vec<gc::Portion> = all
            .into_iter()
            .map(|(name, part)| portion(name, part))
            .collect();
        if !rest.is_empty() {
            let mut sum = Part::default();
            for (_, part) in rest {
                sum.add_all(part);
            }
            parts.push(portion("(other)".to_owned(), &sum));
        }
        gc::Breakdown {
            from_s: seconds(self.origin),
            step_s: seconds(self.step),
            parts,
        }
    }

    fn halve(&mut self) {
        for part in self.parts.values_mut() {
            let pairs = part.steps.chunks(2);
            part.steps = pairs
                .map(|pair| pair.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns)))
                .collect();
        }
        self.step = self.step.saturating_mul(2);
    }
}

fn portion(name: String, part: &Part) -> gc::Portion {
    gc::Portion {
        name,
        total_ms: part.sum() as f64 / 1e6,
        steps_ms: part.steps.iter().map(|ns| ms(*ns)).collect(),
    }
}

/// Adds up neighbours until there are no more than [`PARTS`] steps.
pub(super) fn coarsen(breakdown: &mut gc::Breakdown) {
    let lengths = breakdown.parts.iter().map(|part| part.steps_ms.len());
    let size = together(lengths.max().unwrap_or(0), PARTS);
    breakdown.step_s *= size as f64;
    for part in &mut breakdown.parts {
        let steps = part.steps_ms.chunks(size);
        part.steps_ms = steps.map(|steps| steps.iter().sum()).collect();
    }
}

impl Part {
    /// Spreads so much time evenly over the steps that the span lies in.
    pub(super) fn add(&mut self, span: Span, ns: u64) {
        if ns == 0 {
            return;
        }
        let Span { first, last, .. } = span;
        if self.steps.len() <= last as usize {
            self.steps.resize(last as usize + 1, 0);
        }
        let length = i128::from(span.ended - span.began).max(1);
        let mut given = 0;
        for step in first..last {
            let until = i128::from((step + 1) * span.step - span.began);
            // What belongs to all steps up to this one, less what they have: rounding never adds up.
            let upto = (i128::from(ns) * until / length) as u64;
            self.see(step, upto - given);
            given = upto;
        }
        self.see(last, ns - given);
    }

    fn see(&mut self, step: i64, ns: u64) {
        let slot = &mut self.steps[step as usize];
        *slot = slot.saturating_add(ns);
    }

    fn add_all(&mut self, other: &Self) {
        if self.steps.len() < other.steps.len() {
            self.steps.resize(other.steps.len(), 0);
        }
        for (slot, ns) in self.steps.iter_mut().zip(&other.steps) {
            *slot = slot.saturating_add(*ns);
        }
    }

    fn sum(&self) -> u128 {
        self.steps.iter().map(|ns| u128::from(*ns)).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::clock::SECOND;
    use super::*;

    #[derive(Default)]
    struct Recorder {
        names: Names,
        book: Book,
        breakdown: Breakdown,
    }

    impl Recorder {
        fn add(&mut self, name: &str, (began, ended): (i64, i64), ns: u64) {
            let name = self.names.number(name.as_bytes());
            let span = self.breakdown.span(began, ended);
            let part = self.breakdown.part(&mut self.book, &self.names, name);
            part.add(span, ns);
        }

        fn report(&self) -> gc::Breakdown {
            self.breakdown.report(&self.book)
        }
    }

    #[test]
    fn what_lasts_longer_than_a_step_is_spread_over_those_it_lies_in() {
        let mut recorder = Recorder::default();
        recorder.add("short", (0, FIRST / 2), 7_000_000);
        recorder.add("long", (FIRST / 2, 3 * FIRST), 250_000_000);
        let parts = recorder.report().parts;
        let steps: Vec<_> = parts.iter().map(|part| &part.steps_ms[..]).collect();
        assert_eq!(steps, [&[50.0, 100.0, 100.0][..], &[7.0][..]]);
        assert_eq!(parts[0].name, "long");
    }

    #[test]
    fn beyond_a_dozen_parts_the_rest_is_one() {
        let mut recorder = Recorder::default();
        for number in 1..=20 {
            recorder.add(&format!("phase {number}"), (0, SECOND), number);
        }
        let report = recorder.report();
        assert_eq!(report.parts.len(), MOST_PARTS + 1);
        assert_eq!(report.parts[0].name, "phase 20");
        assert_eq!(report.parts[MOST_PARTS].name, "(other)");
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_made(
            spans in prop::collection::vec((0..i64::MAX / 8, 0..1_000_000_000_000_i64, 0..u64::MAX / 200), 1..100),
        ) {
            let mut recorder = Recorder::default();
            for (began, length, ns) in &spans {
                recorder.add("part", (*began, began + length), *ns);
            }
            let sum: u128 = spans.iter().map(|(_, _, ns)| u128::from(*ns)).sum();
            for (_, part) in recorder.breakdown.parts.rows(&recorder.book) {
                prop_assert_eq!(part.sum(), sum);
                prop_assert!(part.steps.len() <= STEPS as usize);
            }
        }
    }
}
