//! What the kernel does during a window: stacks sampled by perf, and kernel events counted.
//!
//! A [`Sampler`] interrupts each CPU at a chosen rate and keeps where the kernel was; a [`Counter`] counts dropped
//! packets, and lock contention and system calls for a part of the window. Both work on the whole machine, write
//! nothing, leave no mount behind, and report their cost. Names are looked up after the window. Interpretation is
//! not part of this crate: it returns folded text and counts.
//! Sources: `perf_event_open(2)`, kernel/events/core.c of Linux 6.18.

mod counter;
mod error;
mod fold;
mod live;
mod namer;
mod perf;
mod runs;
mod sampler;
mod symbols;
mod syncs;
mod tasks;
mod tlb;
mod tracefs;

pub use counter::Counter;
pub use error::{Error, Result};
pub use live::{Named, Profiled, Profiler, Waiting, What};
pub use sampler::{Options, Sampler};
pub use tlb::Tlb;

use rungwise_model::kernel::{Events, Stacks};

/// Stops both; the kernel's symbols are read once for both. Returns the error of a sampler or counter that did not
/// start.
pub fn stop<E>(
    sampler: Result<Sampler, E>,
    counter: Result<Counter, E>,
) -> (Result<Result<Stacks>, E>, Result<Events, E>) {
    let sampled = sampler.map(Sampler::end);
    let counted = counter.map(Counter::end);
    let before = perf::thread_cpu();
    let stacks = [
        sampled.as_ref().ok().map(sampler::Ended::stacks),
        counted.as_ref().ok().map(counter::Ended::stacks),
    ];
    let names = symbols::names(stacks.into_iter().flatten().flat_map(fold::Fold::addresses));
    let events = counted.map(|ended| ended.named(names.as_ref()));
    let stacks = sampled.map(|ended| names.map(|names| ended.named(&names, before)));
    (stacks, events)
}
