//! Sizes of the generations: as the log and the options tell them, and as they would be.

use super::Model;
use crate::event::Collector;
use crate::predict::watch::Seen;
use crate::predict::{Change, Error, Given, size};

/// `SurvivorRatio` where nobody says otherwise (`gc_globals.hpp`).
const SURVIVOR_RATIO: f64 = 8.0;
/// `InitialSurvivorRatio` of Parallel, in parts of the young generation: an Eden of six with two survivor spaces of one.
const PARALLEL_RATIO: f64 = 6.0;
/// `MaxTenuringThreshold`.
const TENURING: u32 = 15;

/// Sizes of the heap, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) heap: Option<f64>,
    pub(super) young: f64,
    pub(super) eden: f64,
    pub(super) survivor: f64,
    pub(super) max_tenuring: u32,
}

impl Sizes {
    pub(super) fn old(&self) -> Option<f64> {
        Some(self.heap? - self.young)
    }
}

impl Model<'_> {
    pub(super) fn changed(
        &self,
        given: &Given,
        change: &Change,
    ) -> Result<(Sizes, Vec<String>), Error> {
        let own = self.sizes;
        let mut sizes = own;
        let mut notes = Vec::new();
        if change.young.is_some() && change.eden.is_some() {
            return Err(Error::Contradiction(
                "young= and eden= set the same size; pass one of them".to_owned(),
            ));
        }
        sizes.max_tenuring = change.tenuring.unwrap_or(own.max_tenuring);
        sizes.heap = change.heap.or(own.heap);
        if self.collector == Collector::G1 {
            let ratio = change
                .survivor_ratio
                .or(given.survivor_ratio)
                .unwrap_or(own.young / own.survivor);
            let survivors = self.sum.survivors / self.sum.count;
            let young = change.eden.map(|eden| eden + survivors).or(change.young);
            sizes.young = young.unwrap_or(own.young);
            if young.is_some() || change.survivor_ratio.is_some() {
                sizes.survivor = sizes.young / ratio;
            }
            sizes.eden = change.eden.unwrap_or(sizes.young - survivors).max(0.0);
            if young.is_some() {
                notes.push(
                    "with a fixed young generation (-Xmn), G1 cannot resize it to meet MaxGCPauseMillis".to_owned(),
                );
            }
        } else {
            let ratio = change.survivor_ratio.unwrap_or(own.eden / own.survivor);
            if let Some(eden) = change.eden {
                sizes.eden = eden;
                if change.survivor_ratio.is_some() {
                    sizes.survivor = eden / ratio;
                }
                sizes.young = eden + 2.0 * sizes.survivor;
            } else if change.young.is_some() || change.survivor_ratio.is_some() {
                sizes.young = change.young.unwrap_or(own.young);
                sizes.survivor = sizes.young / (ratio + 2.0);
                sizes.eden = sizes.young - 2.0 * sizes.survivor;
            }
        }
        if let Some(heap) = sizes.heap.filter(|heap| *heap <= sizes.young) {
            return Err(Error::Contradiction(format!(
                "a young generation of {} does not fit into a heap of {}",
                size(sizes.young),
                size(heap)
            )));
        }
        if sizes.eden <= 0.0 {
            return Err(Error::Contradiction(format!(
                "nothing is left for Eden in a young generation of {}",
                size(sizes.young)
            )));
        }
        if change.heap.is_some() && change.young.is_none() && change.eden.is_none() {
            notes.push(
                "assumes an unchanged young generation; without -Xmn it grows and shrinks with the heap".to_owned(),
            );
        }
        if !change.keeps_young() || change.heap.is_some() {
            self.holds(&sizes)?;
        }
        Ok((sizes, notes))
    }

    /// Whether the old generation has room for what stays in use. Where no old collection tells what one would leave, nothing
    /// says that less would do than is in use now.
    fn holds(&self, sizes: &Sizes) -> Result<(), Error> {
        let (left, when) = match self.seen.old.left().and_then(|left| left.mean()) {
            Some(left) => (left, "stay in use after old collections"),
            None => (
                self.seen.old.now.unwrap_or(0.0),
                "are in use in the old generation at the end of the log, which contains no old collection",
            ),
        };
        match sizes.old().filter(|old| left > *old) {
            Some(old) => Err(Error::Contradiction(format!(
                "{} {when}; they do not fit into an old generation of {}",
                size(left),
                size(old)
            ))),
            None => Ok(()),
        }
    }
}

/// Sizes as the log and the options tell them; and whether the survivor space had to be supposed.
pub(super) fn sizes(
    seen: &Seen,
    given: &Given,
    collector: Collector,
    target: f64,
    step: f64,
) -> Result<(Sizes, bool), Error> {
    let max_tenuring = given
        .max_tenuring
        .or_else(|| u32::try_from(seen.ages.max?).ok())
        .unwrap_or(TENURING);
    let ratio = given.survivor_ratio;
    let desired = seen.ages.desired.mean().map(|bytes| bytes / target);
    let heap = given.heap.or(seen.facts.max_heap.map(|bytes| bytes as f64));
    if collector == Collector::G1 {
        let young = seen.young_before.mean().unwrap_or(step);
        let survivor = given.survivor.or(desired).or(seen.survivor.last);
        let sizes = Sizes {
            heap: heap.or(seen.heap.last),
            young,
            eden: step,
            survivor: survivor.unwrap_or(young / ratio.unwrap_or(SURVIVOR_RATIO)),
            max_tenuring,
        };
        return Ok((sizes, false));
    }
    // A capacity as printed is that of Eden and one survivor space.
    let printed = seen.young.range.mean();
    let of_young = given
        .young
        .zip(printed)
        .map(|(young, printed)| young - printed);
    let known_survivor = given
        .survivor
        .or(seen.survivor.range.mean())
        .or(desired)
        .or(of_young.filter(|bytes| *bytes > 0.0));
    let usual = ratio.unwrap_or(if collector == Collector::Parallel {
        PARALLEL_RATIO
    } else {
        SURVIVOR_RATIO
    });
    let Some(eden) = given
        .eden
        .or(seen.eden.range.mean())
        .or_else(|| Some(printed? - known_survivor.unwrap_or(printed? / (usual + 1.0))))
        .or(given.young.map(|young| young * usual / (usual + 2.0)))
    else {
        return Err(Error::TooLittle(
            "the log does not contain the size of the young generation; pass --eden, and --survivor-space for a survivor space"
                .to_owned(),
        ));
    };
    let survivor = known_survivor.unwrap_or(eden / usual);
    let young = eden + 2.0 * survivor;
    if eden <= 0.0 || survivor <= 0.0 {
        return Err(Error::Contradiction(format!(
            "an Eden of {} with survivor spaces of {} is not a valid young generation",
            size(eden.max(0.0)),
            size(survivor.max(0.0))
        )));
    }
    let heap = heap.or(seen.heap.last.map(|heap| heap + survivor));
    let heap = heap.or(seen.old_capacity.last.map(|old| old + young));
    let sizes = Sizes {
        heap,
        young,
        eden,
        survivor,
        max_tenuring,
    };
    Ok((sizes, known_survivor.is_none() && ratio.is_none()))
}
