//! Whether the concurrent cycles of G1 start too late.
//!
//! A cycle starts when a given share of the heap is in use after a young collection (`G1IHOPControl`), and promotion goes on
//! until the mixed collections after it have freed something. The reserve for survivors and the smallest young generation
//! must stay free meanwhile; otherwise evacuations fail, and a full collection aborts the mark.

use rungwise_model::check::Finding;
use rungwise_model::evidence::Key;
use rungwise_model::keys;

use super::options::Goal;
use super::run::{Collector, Run, flow};
use crate::say;

/// Options that fix the size of the young generation; G1 cannot shrink it to make room then, whenever it starts.
pub(super) const FIXED_YOUNG: [&str; 3] = ["NewSize=", "MaxNewSize=", "NewRatio="];

/// Share of the heap that G1 keeps free for survivors by default (`G1ReservePercent`).
const RESERVE: f64 = 0.1;
/// Share of the heap that the young generation has at least (`G1NewSizePercent`).
const YOUNGEST: f64 = 0.05;
/// Cycles that the room must outlast: the next one is not always as short as the mean.
pub(super) const CYCLES: f64 = 1.5;
/// How much earlier at least, as a share of the heap, where the log shows that the start was late and not by how much: a guess.
const EARLIER: f64 = 0.1;

/// Cycles start too late.
pub(super) struct Late {
    /// Percent of the heap at which they would start in time.
    percent: u32,
    /// Where they start, and what happens before they end.
    pub(super) why: String,
}

impl Late {
    /// Asks for an earlier start. Reads what [`Run::lower`] reads.
    pub(super) fn ask(&self, run: &Run<'_>, finding: Finding) -> Finding {
        let finding = finding.expect(
            "cycles end while the reserve is free: at best none of these failures, but more cycles",
        );
        run.lower(finding, Goal::StartCyclesAt(self.percent))
    }
}

/// Share of the heap that is kept free for survivors. Reads `gc.flags`.
pub(super) fn reserve(run: &Run<'_>) -> f64 {
    run.size_of("G1ReservePercent=")
        .map_or(RESERVE, |percent| percent / 100.0)
}

/// Cycles of G1 start above what promotion meanwhile and the reserve leave. None where they do not,
/// where the log does not show, where the young generation is fixed, and where no start is early enough. Reads
/// `gc.collector`, `gc.concurrent_aborted`, `gc.cycle_length`, `gc.cycle_occupancy`, `gc.flags`, `gc.fulls_explicit`,
/// `gc.heap_max`, `gc.live_share`, `gc.promotion_peak` and `gc.promotion_rate`.
pub(super) fn late(run: &Run<'_>) -> Option<Late> {
    if run.collector() != Collector::G1
        || FIXED_YOUNG.iter().any(|flag| run.value_of(flag).is_some())
    {
        return None;
    }
    let start = run.value(&keys::GC_CYCLE_OCCUPANCY)?;
    let reserve = reserve(run);
    let promoted = promoted_in_a_cycle(run, &keys::GC_HEAP_MAX);
    // System.gc() aborts marks as well.
    let asked = run.value(&keys::GC_FULLS_EXPLICIT).unwrap_or(0.0) > 0.0;
    let given_up = run.value(&keys::GC_CONCURRENT_ABORTED).unwrap_or(0.0) > 0.0 && !asked;
    let beyond = promoted.is_some_and(|(share, _)| start > 1.0 - share - reserve);
    // A full collection aborts marks whatever filled the heap: with planted bursts (JDK 8 and 17) an earlier start, recommended
    // because of that alone, left as many failures as before.
    if !beyond {
        return None;
    }
    let room = promoted.map_or(1.0, |(share, _)| 1.0 - CYCLES * share - reserve - YOUNGEST);
    let wanted = room.min(start - EARLIER);
    // Below the live set a cycle would follow the other without end.
    let least = run.value(&keys::GC_LIVE_SHARE).unwrap_or(0.0) + YOUNGEST;
    if wanted < least {
        return None;
    }
    let mut why = format!("cycles start at {} of the heap", say::percent(start));
    if let Some((share, rate)) = promoted {
        why = format!(
            "{why}, {} of it is promoted before they end ({})",
            say::percent(share),
            flow(rate)
        );
    }
    if given_up {
        why = format!("{why}, and a concurrent mark was aborted");
    }
    Some(Late {
        percent: (wanted * 100.0).floor() as u32,
        why,
    })
}

/// What is promoted during a cycle of mean length at the highest rate that is known: as a share of `whole`, and the rate in
/// bytes per second.
pub(super) fn promoted_in_a_cycle(run: &Run<'_>, whole: &'static Key) -> Option<(f64, f64)> {
    let rate = run
        .value(&keys::GC_PROMOTION_PEAK)
        .or_else(|| run.value(&keys::GC_PROMOTION_RATE))?;
    let length = run.value(&keys::GC_CYCLE_LENGTH)?;
    let whole = run.value(whole).filter(|whole| *whole > 0.0)?;
    Some((rate * length / whole, rate))
}
