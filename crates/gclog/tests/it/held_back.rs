//! How often the intervals of a what-if hold what is measured, on logs that the model was not made with.
//!
//! The pairs of `predict` were at hand when the model and its own error were chosen, so that they hold there says little. Those
//! here are of another program, whose objects live for seconds and not for bytes, of other JVMs and of other distances
//! (`pairs/Sessions.java`).

#![expect(clippy::print_stderr, reason = "tells what was found")]

use rungwise_gclog::predict::Change;
use rungwise_model::capacity::Quantity;

use crate::predict::{heap, predicted, rate, ratio, tenuring, young};

/// A log and its base, what is asked of the base to be the log, and the other way round.
type Pairs = [(&'static str, &'static str, Change, Change)];

/// How many figures of one prediction were measured, and how many of these lie in their interval.
fn holds(from: &str, change: &Change, to: &str) -> (u32, u32) {
    let figures = predicted(from, Some(change))
        .what_if
        .expect("asked")
        .figures;
    let truth = predicted(to, None).now;
    let (mut held, mut all) = (0, 0);
    for (figure, truth) in figures.iter().zip(&truth) {
        let (Some(estimate), Some(measured)) = (figure.estimate, truth.measured) else {
            continue;
        };
        // The inverse of the interval between them.
        if figure.quantity == Quantity::YoungPerMin {
            continue;
        }
        all += 1;
        held += u32::from(estimate.holds(measured));
        let off = if estimate.holds(measured) {
            ""
        } else {
            "  <- outside"
        };
        eprintln!(
            "{from} -> {to}: {:?} {measured:.4} in {:.4} to {:.4}, {:.4}{off}",
            figure.quantity, estimate.low, estimate.high, estimate.point
        );
    }
    (held, all)
}

/// How many of all, both ways.
fn all(pairs: &Pairs) -> (u32, u32) {
    let (mut held, mut all) = (0, 0);
    for (base, other, there, back) in pairs {
        for (from, change, to) in [(base, there, other), (other, back, base)] {
            let (inside, of) = holds(from, change, to);
            held += inside;
            all += of;
        }
    }
    eprintln!("{held} of {all} lie in their interval");
    (held, all)
}

/// Times between old collections without an upper end, which always hold, are not predicted any more and do not count.
///
/// Looked at once, 103 of 108 lay in their interval. Two of the others showed that under Serial full collections come in the place
/// of young ones, two that survivor spaces of G1 overflow; the model has both since.
#[test]
fn intervals_hold_on_logs_that_were_held_back() {
    let (serial, parallel) = ("held-serial-base", "held-parallel-base");
    let (cms, g1, roomy) = ("held-cms-base", "held-g1-base", "held-g1-survivor-ratio-3");
    let (held, all) = all(&[
        (serial, "held-serial-young-75m", young(75.0), young(30.0)),
        (serial, "held-serial-heap-176m", heap(176.0), heap(128.0)),
        (
            parallel,
            "held-parallel-survivor-ratio-10",
            ratio(10.0),
            ratio(3.0),
        ),
        (
            parallel,
            "held-parallel-rate-90",
            rate(1.5),
            rate(1.0 / 1.5),
        ),
        (cms, "held-cms-tenuring-1", tenuring(1), tenuring(6)),
        (cms, "held-cms-heap-200m", heap(200.0), heap(140.0)),
        (g1, roomy, ratio(3.0), ratio(8.0)),
        (
            roomy,
            "held-g1-survivor-ratio-3-tenuring-1",
            tenuring(1),
            tenuring(10),
        ),
    ]);
    assert!(all > 95 && held + 2 >= all, "{held} of {all}");
}

/// Made after that: 53 of 62 at first. All but one of the others were of G1, whose threshold was taken for that of the next collection,
/// and whose survivor ratio for the usual one where the log does not show its options.
#[test]
fn intervals_hold_on_a_second_set() {
    let (serial, parallel) = ("second-serial-base", "second-parallel-base");
    let (held, all) = all(&[
        (serial, "second-serial-young-64m", young(64.0), young(40.0)),
        (
            parallel,
            "second-parallel-young-56m",
            young(56.0),
            young(32.0),
        ),
        (
            parallel,
            "second-parallel-heap-128m",
            heap(128.0),
            heap(96.0),
        ),
        (
            "second-cms-base",
            "second-cms-survivor-ratio-5",
            ratio(5.0),
            ratio(1.0),
        ),
        (
            "second-g1-base",
            "second-g1-young-60m",
            young(60.0),
            young(36.0),
        ),
    ]);
    assert!(all > 55 && held + 3 >= all, "{held} of {all}");
}

/// Made after that, and nothing of the model was changed by them.
#[test]
fn intervals_hold_on_logs_that_are_younger_than_the_model() {
    let (serial, parallel) = ("third-serial-base", "third-parallel-base");
    let (g1, cms) = ("third-g1-base", "third-cms-base");
    let (held, all) = all(&[
        (
            serial,
            "third-serial-survivor-ratio-9",
            ratio(9.0),
            ratio(2.0),
        ),
        (
            parallel,
            "third-parallel-tenuring-1",
            tenuring(1),
            tenuring(5),
        ),
        (g1, "third-g1-young-30m", young(30.0), young(44.0)),
        (g1, "third-g1-heap-240m", heap(240.0), heap(176.0)),
        (cms, "third-cms-young-40m", young(40.0), young(64.0)),
    ]);
    assert!(
        all > 60 && f64::from(held) >= 0.9 * f64::from(all),
        "{held} of {all}"
    );
}
