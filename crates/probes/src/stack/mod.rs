//! Kernel time by sampled stacks, and counts of lock contentions, dropped packets and system calls.
//!
//! `functions` is the one table of kernel functions by subject; `sampled` and `events` use it.

pub(crate) mod events;
mod functions;
pub(crate) mod sampled;

use rungwise_model::evidence::Absence;

use crate::Window;

/// Why there is no answer of this name: no sampler ran, or it was refused with a remedy.
pub(crate) fn absence(window: &Window<'_>, name: &str, what: &str) -> Absence {
    let watched = window
        .capture()
        .moments
        .last()
        .is_some_and(|last| last.answers.contains_key(name));
    match window.answer(name) {
        Err(why) if watched => {
            let reason = why.reason.strip_prefix(&format!("{name}: "));
            Absence::because(reason.unwrap_or(&why.reason)).remedy(&why.remedy)
        }
        _ => Absence::because(format!("{what} in this window")),
    }
}

/// A sampler's refusal ends with the remedy, after a semicolon.
fn remedied(reason: &str) -> Absence {
    match reason.rsplit_once("; ") {
        Some((reason, remedy)) => Absence::because(reason).remedy(remedy),
        None => Absence::because(reason),
    }
}

/// A sum that a capture made to overflow it cannot overflow.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
