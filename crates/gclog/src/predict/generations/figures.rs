//! What the model says in words and figures: those of the log beside its own, when the next collections come, what to beware of.

use rungwise_model::capacity::{Estimate, Figure, Layout, Next, Quantity};
use rungwise_model::gc::LiveSet;
use rungwise_stats::interval::student_t;

use super::{Model, Sizes, State};
use crate::event::Collector;
use crate::predict::blocks::FEWEST;
use crate::predict::survival::Survival;
use crate::predict::{
    Given, MODEL, next, next_full, next_old, next_young, old_interval_worth, size, unknown_figure,
};
use crate::summary::collector_word;

/// Young collections that come with less or more allocated than these shares of Eden are noted.
const EARLY: f64 = 0.9;
const LATE: f64 = 1.1;

/// What the log itself says.
pub(super) struct Measured {
    interval: Option<f64>,
    survivors: f64,
    threshold: Option<f64>,
    promotion: f64,
    pause: Option<f64>,
    old_interval: Option<f64>,
    share: f64,
}

impl Model<'_> {
    /// Intervals, pauses and their share are those of the whole log, as the summary has them; the rest leaves out the
    /// warm-up, since the first collections promote nothing.
    pub(super) fn measured(&self) -> Measured {
        let old = &self.seen.old.interval;
        let sum = self.sum;
        Measured {
            interval: self.seen.mean_spacing_s(),
            survivors: sum.survivors / sum.count,
            threshold: (self.seen.ages.threshold.count() > 0)
                .then(|| self.seen.ages.threshold.quantile(0.5) as f64),
            promotion: sum.promoted / sum.seconds,
            pause: (self.seen.every.count() > 0)
                .then(|| self.seen.every.quantile(0.5) as f64 / 1e9),
            old_interval: (old.count() > 0).then(|| old.sum_ms() / 1e3 / old.count() as f64),
            share: self.seen.pauses_s / self.seen.seconds(),
        }
    }

    pub(super) fn figures(&self, state: &State, measured: Option<&Measured>) -> Vec<Figure> {
        use Quantity as Q;
        let figure = |quantity, of: Option<f64>, result: Result<Estimate, String>| match result {
            Ok(estimate) => Figure {
                quantity,
                measured: of,
                estimate: Some(estimate),
                because: None,
            },
            Err(why) => unknown_figure(quantity, of, why),
        };
        let of = |of: fn(&Measured) -> Option<f64>| measured.and_then(of);
        let millis = |seconds: &Result<Estimate, String>| seconds.clone().map(|s| s.scaled(1e3));
        let per_min = Estimate::exact(60.0)
            .over(state.interval)
            .unwrap_or_default();
        let mut figures = vec![
            figure(Q::YoungIntervalS, of(|m| m.interval), Ok(state.interval)),
            figure(
                Q::YoungPerMin,
                of(|m| Some(60.0 / m.interval?)),
                Ok(per_min),
            ),
            figure(
                Q::YoungPauseMs,
                of(|m| Some(m.pause? * 1e3)),
                millis(&state.pause),
            ),
            figure(
                Q::SurvivorsBytes,
                of(|m| Some(m.survivors)),
                state.survivors.clone(),
            ),
            figure(Q::SurvivorSpaceWantedBytes, None, state.wanted.clone()),
            figure(
                Q::TenuringThreshold,
                of(|m| m.threshold),
                state.threshold.clone(),
            ),
            figure(
                Q::PromotionBytesPerS,
                of(|m| Some(m.promotion)),
                state.promotion.clone(),
            ),
            figure(
                Q::OldIntervalS,
                of(|m| m.old_interval),
                state.old_interval.clone(),
            ),
            figure(Q::PauseShare, of(|m| Some(m.share)), state.share.clone()),
        ];
        let beyond = self.curve.as_ref().map_or(0.0, Survival::known);
        for figure in &mut figures {
            let copied = matches!(
                figure.quantity,
                Q::SurvivorsBytes | Q::PromotionBytesPerS | Q::YoungPauseMs
            );
            if copied && self.curve.is_err() && figure.estimate.is_some() {
                figure.because = Some(
                    "taken from the log, not modelled: object lifetimes are unknown".to_owned(),
                );
                // Beside itself it would look like a model that is never wrong.
                figure.estimate = figure.estimate.filter(|_| measured.is_none());
            }
            let olds = self.seen.old.interval.count();
            if figure.quantity == Q::OldIntervalS
                && figure.measured.is_some()
                && olds < FEWEST as u64
            {
                figure.because = Some(format!(
                    "taken from the log, not modelled: too few old collections for a range (intervals: {olds})"
                ));
                figure.estimate = None;
            }
            if figure.quantity == Q::OldIntervalS && measured.is_none() {
                *figure = old_interval_worth(figure.clone());
            }
            let ends_low = figure
                .estimate
                .is_some_and(|e| e.low <= 0.0 && e.high > 0.0);
            if figure.quantity == Q::PromotionBytesPerS && ends_low && figure.because.is_none() {
                figure.because = Some(format!(
                    "upper bound: the age tables in the log end at {} allocated, and later deaths are not recorded",
                    size(beyond)
                ));
            }
        }
        figures
    }

    pub(super) fn next(&self, given: &Given, live: Option<&LiveSet>) -> Vec<Next> {
        let seen = self.seen;
        let young = next_young(seen);
        let old = next_old(seen).unwrap_or_else(|| self.first_old(given));
        let full = match self.collector {
            Collector::Serial | Collector::Parallel => Next {
                kind: "full".to_owned(),
                ..old.clone()
            },
            _ => next_full(seen, live),
        };
        vec![young, old, full]
    }

    /// Where no two of them tell how far they are apart: by the room that is left.
    fn first_old(&self, given: &Given) -> Next {
        let own = self.trigger(&self.sizes);
        let begins = own.or_else(|| {
            let old = self.sizes.old()?;
            match self.collector {
                Collector::Serial | Collector::Parallel => Some(Estimate::exact(old)),
                Collector::Cms => Some(Estimate::exact(old * given.cycle_at?)),
                _ => None,
            }
        });
        let (Some(begins), Some(now), Some(promotion)) =
            (begins, self.seen.old.now, self.promotion())
        else {
            return next(
                "old",
                None,
                "unknown: no old collection in the log shows how full the old generation is when one starts",
            );
        };
        let left = self.seen.old.left().and_then(|left| left.mean());
        let growth = promotion.scaled(left.map_or(1.0, |left| self.growth(left)));
        let Some(in_s) = begins.less(Estimate::exact(now)).over(growth) else {
            return next("old", None, "unknown: nothing is promoted");
        };
        // After one has begun the old generation is as full as before until it is done.
        if begins.low <= now {
            return next(
                "old",
                None,
                "unknown: one is due or running, since the old generation is as full as when one began",
            );
        }
        let because = if own.is_some() {
            format!(
                "{} of the old generation are in use; collections began at {} in the log",
                size(now),
                size(begins.point)
            )
        } else {
            format!(
                "{} of the old generation are in use; by its settings a collection starts at {} at the latest",
                size(now),
                size(begins.point)
            )
        };
        let reach = (student_t(0.95, 1) * self.seen.unsteady()).exp();
        let in_s = Estimate {
            point: in_s.point,
            low: in_s.low / reach,
            high: in_s.high * reach,
        };
        next("old", Some(in_s.widened(MODEL)), because)
    }

    pub(super) fn layout(&self, sizes: &Sizes) -> Layout {
        Layout {
            collector: Some(collector_word(self.collector).to_owned()),
            heap_bytes: sizes.heap,
            young_bytes: Some(sizes.young),
            eden_bytes: Some(sizes.eden),
            survivor_bytes: Some(sizes.survivor),
            old_bytes: sizes.old(),
            max_tenuring: Some(sizes.max_tenuring),
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.supposed {
            notes.push(
                "the log does not contain the size of a survivor space; the JVM default is assumed, and --survivor-space \
                 overrides it"
                    .to_owned(),
            );
        }
        let varies = self.seen.young.varies() || self.young_moves();
        match self.collector {
            Collector::Parallel if varies => notes.push(
                "Parallel resized the young generation during the log (UseAdaptiveSizePolicy); the figures are for the mean \
                 sizes, and predictions for other sizes hold only without resizing"
                    .to_owned(),
            ),
            Collector::G1 if varies => notes.push(
                "G1 resized the young generation during the log to meet its pause goal; the figures are for the mean size"
                    .to_owned(),
            ),
            _ if varies => notes.push(
                "the young generation changed its size during the log; the figures are for the mean size".to_owned(),
            ),
            _ => {}
        }
        let percent = self.fill * 100.0;
        if self.collector != Collector::G1 && self.fill < EARLY {
            notes.push(format!(
                "young collections start when {percent:.0} % of Eden is allocated, for reasons other than a full Eden; the same \
                 is assumed for other sizes"
            ));
        }
        if self.collector != Collector::G1 && self.fill > LATE {
            notes.push(format!(
                "from one young collection to the next {percent:.0} % of Eden is allocated, since full collections empty it in \
                 between; the same is assumed for other sizes"
            ));
        }
        if self.overflows(self.sum.survivors / self.sum.count) {
            notes.push(
                "the survivor spaces overflow: object lifetimes are known only up to the first collection, and most intervals are \
                 wide; use a log with larger survivor spaces"
                    .to_owned(),
            );
        }
        notes
    }

    /// G1's young generation, by what was in it before collections.
    fn young_moves(&self) -> bool {
        let range = self.seen.young_before;
        self.collector == Collector::G1 && range.mean().is_some_and(|mean| range.max > 1.2 * mean)
    }
}
