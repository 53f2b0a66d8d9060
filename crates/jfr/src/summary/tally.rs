//! Samples by method, thread and kind of code, and allocation by class, method and thread.

use std::collections::BTreeMap;

use rungwise_model::jfr as report;

use super::names::{Map, Name, Names};
use super::{ROWS, most};
use crate::code::{self, KINDS, Traits};

/// Samples of one kind.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) samples: u64,
    /// In the method itself, and anywhere below it.
    methods: Map<Name, (u64, u64)>,
    by_thread: Map<Name, u64>,
    own_by_thread: Map<(Name, Name), u64>,
    code: Map<usize, Entered>,
}

#[derive(Default)]
struct Entered {
    samples: u64,
    methods: Map<Name, u64>,
    callers: Map<Name, u64>,
}

impl Tally {
    /// Adds `samples` of a thread with this stack, innermost first.
    pub(super) fn add(&mut self, stack: &[(Name, Traits)], thread: Name, samples: u64) {
        self.samples += samples;
        *self.by_thread.entry(thread).or_default() += samples;
        let Some((top, _)) = stack.first() else {
            return;
        };
        self.methods.entry(*top).or_default().0 += samples;
        *self.own_by_thread.entry((*top, thread)).or_default() += samples;
        let mut distinct: Vec<Name> = stack.iter().map(|(name, _)| *name).collect();
        distinct.sort_unstable();
        distinct.dedup();
        for name in distinct {
            self.methods.entry(name).or_default().1 += samples;
        }
        let traits: Vec<Traits> = stack.iter().map(|(_, traits)| *traits).collect();
        for (kind, at) in code::entered(&traits) {
            let entered = self.code.entry(kind).or_default();
            entered.samples += samples;
            *entered.methods.entry(stack[at].0).or_default() += samples;
            if let Some((caller, _)) = stack.get(at + 1) {
                *entered.callers.entry(*caller).or_default() += samples;
            }
        }
    }

    fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples.max(1) as f64
    }

    pub(super) fn methods(&self, names: &Names) -> Vec<report::HotMethod> {
        let mut sorted: Vec<(Name, (u64, u64))> = self
            .methods
            .iter()
            .map(|(name, counts)| (*name, *counts))
            .collect();
        sorted.sort_unstable_by(|(a, left), (b, right)| {
            let by_name = || names.get(*a).cmp(names.get(*b));
            right.cmp(left).then_with(by_name)
        });
        sorted.truncate(ROWS);
        let groups = Groups::of(self.by_thread.keys().copied(), names);
        let mut threads: BTreeMap<Name, BTreeMap<&str, u64>> = sorted
            .iter()
            .map(|(name, _)| (*name, BTreeMap::new()))
            .collect();
        let mut own: Vec<_> = self.own_by_thread.iter().collect();
        own.sort_unstable();
        for ((method, thread), samples) in own {
            if let Some(threads) = threads.get_mut(method) {
                *threads.entry(groups.name(*thread, names)).or_default() += samples;
            }
        }
        let row = |(name, (own, total)): (Name, (u64, u64))| {
            let by_samples = threads[&name]
                .iter()
                .max_by_key(|(name, samples)| (**samples, std::cmp::Reverse(**name)));
            report::HotMethod {
                method: names.get(name).to_owned(),
                own,
                total,
                own_share: self.share(own),
                total_share: self.share(total),
                thread: by_samples.map(|(name, _)| (*name).to_owned()),
            }
        };
        sorted.into_iter().map(row).collect()
    }

    pub(super) fn code(&self, names: &Names) -> Vec<report::Code> {
        let rows = KINDS.iter().enumerate().filter_map(|(at, (kind, _))| {
            let entered = self.code.get(&at)?;
            Some(report::Code {
                kind: (*kind).to_owned(),
                samples: entered.samples,
                share: self.share(entered.samples),
                method: most(&entered.methods, names).unwrap_or_default(),
                caller: most(&entered.callers, names),
            })
        });
        let mut rows: Vec<report::Code> = rows.collect();
        rows.sort_by_key(|code| std::cmp::Reverse(code.samples));
        rows
    }
}

/// Threads whose names differ by numbers only, under one name.
pub(super) struct Groups {
    patterns: BTreeMap<Name, String>,
    sizes: BTreeMap<String, u64>,
}

impl Groups {
    pub(super) fn of(threads: impl Iterator<Item = Name>, names: &Names) -> Self {
        let patterns: BTreeMap<Name, String> = threads
            .map(|thread| (thread, pattern(names.get(thread))))
            .collect();
        let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
        for pattern in patterns.values() {
            *sizes.entry(pattern.clone()).or_default() += 1;
        }
        Self { patterns, sizes }
    }

    /// The name of its group; its own where it is alone.
    pub(super) fn name<'n>(&'n self, thread: Name, names: &'n Names) -> &'n str {
        match self.patterns.get(&thread) {
            Some(pattern) if self.sizes[pattern] > 1 => pattern,
            _ => names.get(thread),
        }
    }
}

/// A name with `*` for each number.
fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    for character in name.chars() {
        if !character.is_ascii_digit() {
            pattern.push(character);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern
}

/// Threads by their samples, the time they waited for locks, and what they allocated.
pub(super) fn threads(
    tally: &Tally,
    lock_ms: &Map<Name, f64>,
    allocations: &Allocations,
    counters: &BTreeMap<Name, u64>,
    names: &Names,
) -> Vec<report::ThreadUse> {
    let mut all: Vec<Name> = tally
        .by_thread
        .keys()
        .chain(lock_ms.keys())
        .chain(allocations.threads[allocations.source()].keys())
        .chain(counters.keys())
        .copied()
        .collect();
    all.sort_unstable();
    all.dedup();
    let groups = Groups::of(all.iter().copied(), names);
    let mut rows: BTreeMap<&str, (report::ThreadUse, BTreeMap<Name, u64>)> = BTreeMap::new();
    for thread in &all {
        let (row, _) = rows.entry(groups.name(*thread, names)).or_default();
        row.threads += 1;
        row.samples += tally.by_thread.get(thread).unwrap_or(&0);
        row.lock_ms += lock_ms.get(thread).unwrap_or(&0.0);
        let counted = counters.get(thread).copied();
        let sampled = allocations.threads[allocations.source()].get(thread);
        // The counter of the JVM is exact.
        if let Some(bytes) = counted.or(sampled.copied()) {
            *row.allocated_bytes.get_or_insert(0) += bytes;
        }
    }
    let mut own: Vec<_> = tally.own_by_thread.iter().collect();
    own.sort_unstable();
    for ((method, thread), samples) in own {
        if let Some((_, methods)) = rows.get_mut(groups.name(*thread, names)) {
            *methods.entry(*method).or_default() += samples;
        }
    }
    let row = |(name, (row, methods)): (&str, (report::ThreadUse, BTreeMap<Name, u64>))| {
        let by_samples = methods
            .iter()
            .max_by_key(|(name, samples)| (**samples, std::cmp::Reverse(names.get(**name))));
        report::ThreadUse {
            name: name.to_owned(),
            share: tally.share(row.samples),
            method: by_samples.map(|(name, _)| names.get(*name).to_owned()),
            ..row
        }
    };
    let mut rows: Vec<report::ThreadUse> = rows.into_iter().map(row).collect();
    rows.sort_by(|a, b| {
        let key = |row: &report::ThreadUse| (row.samples, row.allocated_bytes.unwrap_or(0));
        key(b)
            .cmp(&key(a))
            .then(b.lock_ms.total_cmp(&a.lock_ms))
            .then_with(|| a.name.cmp(&b.name))
    });
    rows.truncate(ROWS);
    rows
}

/// Allocation events: in new TLABs, outside of them, sampled.
#[derive(Default)]
pub(super) struct Allocations {
    /// Events and bytes.
    totals: [(u64, u64); 3],
    classes: [Map<Name, (u64, u64)>; 3],
    methods: [Map<Name, (u64, u64)>; 3],
    threads: [Map<Name, u64>; 3],
}

const IN_TLAB: usize = 0;
const OUTSIDE: usize = 1;
const SAMPLED: usize = 2;

impl Allocations {
    pub(super) fn add(
        &mut self,
        source: usize,
        class: Name,
        method: Option<Name>,
        thread: Name,
        events: u64,
        bytes: u64,
    ) {
        // Both kinds of TLAB events are one source; what is outside of them is kept apart as a sum.
        let to = if source == SAMPLED { SAMPLED } else { IN_TLAB };
        let sum = |counts: &mut (u64, u64)| {
            counts.0 += events;
            counts.1 = counts.1.saturating_add(bytes);
        };
        sum(&mut self.totals[to]);
        if source == OUTSIDE {
            sum(&mut self.totals[OUTSIDE]);
        }
        sum(self.classes[to].entry(class).or_default());
        if let Some(method) = method {
            sum(self.methods[to].entry(method).or_default());
        }
        let of_thread = self.threads[to].entry(thread).or_default();
        *of_thread = of_thread.saturating_add(bytes);
    }

    /// The events that are complete, if there are any.
    fn source(&self) -> usize {
        if self.totals[IN_TLAB].0 > 0 {
            IN_TLAB
        } else {
            SAMPLED
        }
    }

    pub(super) fn report(&self, names: &Names) -> report::Allocation {
        let source = self.source();
        let (events, bytes) = self.totals[source];
        let rows = |counts: &Map<Name, (u64, u64)>| {
            let mut rows: Vec<report::Allocated> = counts
                .iter()
                .map(|(name, (events, of_name))| report::Allocated {
                    name: names.get(*name).to_owned(),
                    events: *events,
                    bytes: *of_name,
                    share: *of_name as f64 / bytes.max(1) as f64,
                })
                .collect();
            rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
            rows.truncate(ROWS);
            rows
        };
        let name = match source {
            IN_TLAB => "jdk.ObjectAllocationInNewTLAB, jdk.ObjectAllocationOutsideTLAB",
            _ => "jdk.ObjectAllocationSample",
        };
        report::Allocation {
            source: (events > 0).then(|| name.to_owned()),
            bytes,
            outside_tlab_bytes: (events > 0 && source == IN_TLAB).then_some(self.totals[OUTSIDE].1),
            classes: rows(&self.classes[source]),
            methods: rows(&self.methods[source]),
        }
    }
}
