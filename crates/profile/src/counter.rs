//! Kernel events of the window: dropped packets, and for a part of it lock contention, system calls, CPU
//! migrations, and connections that a full queue of a Unix socket turned away.
//!
//! Each event is counted exactly on each CPU. Where details are needed as well (the stack of a contended lock, the
//! reason for a drop), a second event takes samples at a bounded rate, and their shares are applied to the exact
//! count: a million drops per second cost no more samples than a thousand. One event cannot do both, since perf
//! stops *counting* when it throttles samples.
//! Sources: kernel/events/core.c (`__perf_event_account_interrupt`, `perf_swevent_event`),
//! include/trace/events/{lock,skb}.h of Linux 6.18.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use perf_event::SampleFlag;
use perf_event::events::{Event, Software, Tracepoint};
use rungwise_formats::kallsyms::Names;
use rungwise_formats::tracepoint::{Field, Format};
use rungwise_host::clock;
use rungwise_host::live::Live;
use rungwise_model::kernel::{
    Connects, Events, FailedConnects, LongRun, LongRuns, ShortRuns, SyncTimes, Syncs,
};

use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::perf::{self, Ring, Seen};
use crate::tasks::Tasks;
use crate::{runs, symbols, syncs, tracefs};

const CONTENTION: &str = "lock:contention_begin";
const DROP: &str = "skb:kfree_skb";
const SYSCALL: &str = "raw_syscalls:sys_enter";
/// As the evidence calls it; records of the scheduler, without a tracepoint.
const SWITCH: &str = "context-switches";
const CONNECT: &str = "syscalls:sys_exit_connect";
/// As the evidence calls calls of fsync, of which file systems and system calls have events of several names.
const SYNC: &str = "fsync";
/// As perf-stat(1) calls it; counted by the scheduler itself, without a tracepoint.
const MIGRATION: &str = "cpu-migrations";

/// Samples per second and CPU at most, of events that may come a million times a second; a prime, out of step with timers.
const HZ: u64 = 997;
/// How often the rings are emptied: at that rate and 50 functions a stack, a fifth full.
const EVERY: Duration = Duration::from_millis(100);
/// System calls, and dropped packets, after which their counting ends early: by then chance makes 0.3 % of the rate.
const ENOUGH: u64 = 100_000;
/// Stacks of contended locks kept; the rest goes into one.
const MOST_STACKS: usize = 500;
/// What connect(2) returns where the accept queue of a Unix socket is full: EAGAIN. Other families do not, but without a route.
const FULL: i32 = libc::EAGAIN;
/// What else connect(2) returns at once where there is no connection to be had.
const FAILURES: &[(i32, &str)] = &[
    (libc::EACCES, "EACCES"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ENOENT, "ENOENT"),
    (libc::ETIMEDOUT, "ETIMEDOUT"),
];
/// Key for counts that are not broken down.
const OTHERS: &str = "[others]";

/// All events that have a format.
const EVENTS: &[&str] = &[
    CONNECT,
    CONTENTION,
    DROP,
    SYSCALL,
    syncs::FILE_SYSTEMS[0].0,
    syncs::FILE_SYSTEMS[0].1,
    syncs::FILE_SYSTEMS[1].0,
    syncs::FILE_SYSTEMS[1].1,
    syncs::CALLS[0].0,
    syncs::CALLS[0].1,
    syncs::CALLS[1].0,
    syncs::CALLS[1].1,
];

const TRIED: &str = "count kernel events";

/// Counts dropped packets from start until stopped, all other events for a limited time.
///
/// Counting slows the counted program: 170 ns per system call in a guest (Linux 6.18, AMD EPYC, 2026-11-21), a tenth of a
/// program that does little else. Counting therefore covers a part of the window only, and system calls only until their
/// rate is known. A dropped packet costs 0.1 us more (same guest, 2026-11-22), and drops are rare: they are counted in the
/// whole window, unless there are very many.
#[derive(Debug)]
pub struct Counter {
    /// Names of the reasons of dropped packets.
    reasons: BTreeMap<u64, String>,
    refused: BTreeMap<String, String>,
    stop: Sender<()>,
    thread: JoinHandle<Counted>,
}

impl Counter {
    /// Long enough to measure a rate, short enough to cost little.
    pub const LONGEST: Duration = Duration::from_secs(2);

    /// Starts counting; all events but dropped packets for at most `longest`. The result lists an event that cannot be
    /// counted, with the reason; the others are counted.
    pub fn start(longest: Duration) -> Result<Self> {
        let mut refused = BTreeMap::new();
        let mut formats = tracefs::formats(EVENTS);
        let cpus = perf::cpus(&Live)?;
        let file_syncs = syncs::Watch::open(&syncs::FILE_SYSTEMS, &formats, &cpus);
        let sync_calls = syncs::Watch::open(&syncs::CALLS, &formats, &cpus);
        let why = match (&file_syncs, &sync_calls, formats.get(syncs::CALLS[0].0)) {
            (Ok(Some(_)), _, _) | (_, Ok(Some(_)), _) => None,
            (_, Err(error), _) | (Err(error), _, _) => Some(error.to_string()),
            (_, _, Some(Err(why))) => Some(why.clone()),
            _ => Some("this kernel has no event for calls of fsync".to_owned()),
        };
        refused.extend(why.map(|why| (SYNC.to_owned(), why)));
        let file_syncs = file_syncs.ok().flatten();
        let sync_calls = sync_calls.ok().flatten();
        let mut watch = |event: &'static str, extra: Option<SampleFlag>| {
            let opened = formats
                .remove(event)
                .unwrap_or_else(|| Err(format!("{event} was not read from tracefs")))
                .and_then(|format| {
                    Watch::open(event, format.id, &cpus, extra)
                        .map(|watch| (watch, format))
                        .map_err(|error| error.to_string())
                });
            opened
                .map_err(|why| refused.insert(event.to_owned(), why))
                .ok()
        };
        let mut contentions = watch(CONTENTION, Some(SampleFlag::CALLCHAIN));
        let drops = watch(DROP, Some(SampleFlag::RAW));
        let syscalls = watch(SYSCALL, None).map(|(watch, _)| watch);
        let connects = watch(CONNECT, Some(SampleFlag::RAW));
        let result = connects
            .as_ref()
            .and_then(|(_, format)| format.field("ret").cloned());
        let switches = runs::Watch::open(&cpus)
            .map_err(|error| refused.insert(SWITCH.to_owned(), error.to_string()))
            .ok();
        let migrations = Watch::count(MIGRATION, Software::CPU_MIGRATIONS, &cpus)
            .map_err(|error| refused.insert(MIGRATION.to_owned(), error.to_string()))
            .ok();
        if contentions.is_some()
            && let Err(error) = symbols::check()
        {
            contentions = None;
            refused.insert(CONTENTION.to_owned(), error.to_string());
        }
        let format = |drops: &(Watch, Format)| drops.1.clone();
        let format = drops.as_ref().map(format).unwrap_or_default();
        let mut reader = Reader {
            contentions: contentions.map(|(watch, _)| watch),
            drops: drops.map(|(watch, _)| watch),
            syscalls,
            migrations,
            connects: connects.map(|(watch, _)| watch),
            switches,
            long_runs: None,
            file_syncs,
            sync_calls,
            syncs: Vec::new(),
            result,
            connected: BTreeMap::new(),
            reason: format.field("reason").cloned(),
            tasks: Tasks::default(),
            stacks: Fold::default(),
            reasons: BTreeMap::new(),
        };
        let (stop, stopped) = channel();
        // Here and not in the thread, which may come to a CPU late: what the caller does next is counted.
        let began = clock::now();
        reader.each(Watch::enable);
        reader.switches.iter_mut().for_each(runs::Watch::enable);
        reader.file_syncs.iter_mut().for_each(syncs::Watch::enable);
        reader.sync_calls.iter_mut().for_each(syncs::Watch::enable);
        let thread = std::thread::Builder::new()
            .name("event-counter".to_owned())
            .spawn(move || reader.run(&stopped, began, longest))
            .map_err(Error::system(TRIED))?;
        Ok(Self {
            reasons: format.names("reason"),
            refused,
            stop,
            thread,
        })
    }

    /// Stops counting and names the functions. Use [`crate::stop`] to stop a sampler at the same time.
    pub fn stop(self) -> Events {
        let (_, events) = crate::stop(Err(()), Ok(self));
        events.expect("a counter that ends gives its events")
    }

    /// Ends.
    pub(crate) fn end(self) -> Ended {
        // It may have ended by itself.
        let _ = self.stop.send(());
        let counted = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ended {
            counted,
            reasons: self.reasons,
            refused: self.refused,
        }
    }
}

/// What was counted, not named yet.
pub(crate) struct Ended {
    counted: Counted,
    reasons: BTreeMap<u64, String>,
    refused: BTreeMap<String, String>,
}

impl Ended {
    /// Stacks of contended locks as addresses.
    pub(crate) fn stacks(&self) -> &Fold {
        &self.counted.stacks
    }

    /// Names it. Without names nothing is known of contended locks; the rest has none.
    pub(crate) fn named(self, names: Result<&Names, &Error>) -> Events {
        let Self {
            counted,
            reasons: known,
            mut refused,
        } = self;
        let contentions = match names {
            Ok(names) => {
                let stacks = counted.stacks.named(names).stacks;
                applied(most(stacks, MOST_STACKS), counted.contentions)
            }
            Err(error) => {
                refused
                    .entry(CONTENTION.to_owned())
                    .or_insert_with(|| error.to_string());
                BTreeMap::new()
            }
        };
        let reasons = counted
            .reasons
            .into_iter()
            .map(|(reason, weight)| (reason_name(&known, reason), weight))
            .collect();
        let of_each = counted.connected.iter();
        let turned_away = of_each
            .clone()
            .filter_map(|(process, calls)| Some((*process, calls.of(FULL)?)));
        let connects = of_each.filter_map(|(process, calls)| Some((*process, calls.connects()?)));
        let (turned_away, connects) = if refused.contains_key(CONNECT) {
            (None, None)
        } else {
            let connects = FailedConnects(connects.collect());
            (Some(turned_away.collect()), Some(Box::new(connects)))
        };
        Events {
            seconds: counted.seconds,
            contentions,
            drops: applied(reasons, counted.drops),
            drop_seconds: counted.drop_seconds,
            syscalls: counted.syscalls,
            syscall_seconds: counted.syscall_seconds,
            migrations: Some(counted.migrations).filter(|counts| !counts.is_empty()),
            long_runs: counted.long_runs.map(Box::new),
            turned_away,
            connects,
            syncs: (!refused.contains_key(SYNC)).then(|| Box::new(Syncs(counted.syncs))),
            refused,
        }
    }
}

/// The kernel's name of a reason; subsystems have reasons of their own, which it leaves without one.
fn reason_name(names: &BTreeMap<u64, String>, reason: u64) -> String {
    names
        .get(&reason)
        .cloned()
        .unwrap_or_else(|| format!("REASON_{reason}"))
}

/// One event on all CPUs.
struct Watch {
    exact: Vec<(u32, perf_event::Counter)>,
    rings: Vec<Ring>,
}

impl Watch {
    fn open(event: &str, id: u64, cpus: &[usize], sampled: Option<SampleFlag>) -> Result<Self> {
        let tracepoint = Tracepoint::with_id(id);
        let counted = Self::count(event, tracepoint, cpus)?;
        let rings = match sampled {
            None => Vec::new(),
            Some(extra) => perf::on_each(cpus, &format!("count {event}"), |cpu| {
                let mut builder = perf::on_cpu(tracepoint, cpu);
                // Stacks begin with the name of their task, drops do not.
                let named = extra.contains(SampleFlag::CALLCHAIN);
                builder.comm(named).task(named);
                // The kernel needs some ticks to adapt a frequency: of a burst of calls it takes a few, and none of those that fail at its end.
                if event == CONNECT {
                    builder.sample_period(1);
                } else {
                    builder.sample_frequency(HZ);
                }
                let fields = SampleFlag::TID | SampleFlag::PERIOD | extra;
                Ring::open(&mut builder, fields)
            })?,
        };
        Ok(Self { rings, ..counted })
    }

    /// Counts only.
    fn count(name: &str, event: impl Event + Copy, cpus: &[usize]) -> Result<Self> {
        let exact = perf::on_each(cpus, &format!("count {name}"), |cpu| {
            Ok((cpu as u32, perf::on_cpu(event, cpu).build()?))
        })?;
        Ok(Self {
            exact,
            rings: Vec::new(),
        })
    }

    /// An event that cannot be switched on counts nothing; none has been seen to refuse.
    fn enable(&mut self) {
        for ring in &mut self.rings {
            let _ = ring.enable();
        }
        for (_, counter) in &mut self.exact {
            let _ = counter.enable();
        }
    }

    fn disable(&mut self) {
        for (_, counter) in &mut self.exact {
            let _ = counter.disable();
        }
        for ring in &mut self.rings {
            let _ = ring.disable();
        }
    }

    fn drain(&mut self, mut see: impl FnMut(Seen<'_>)) {
        for ring in &mut self.rings {
            // What is lost is missing from the shares only, not from the count.
            ring.drain(&mut see);
        }
    }

    fn counts(&mut self) -> BTreeMap<u32, u64> {
        self.exact
            .iter_mut()
            .filter_map(|(cpu, counter)| Some((*cpu, counter.read().ok()?)))
            .collect()
    }

    fn sum(&mut self) -> u64 {
        self.counts().values().sum()
    }
}

/// Calls of connect(2) of one process, as samples and the calls that they stand for.
#[derive(Debug, Default)]
struct Calls {
    all: u64,
    /// By the number of the error.
    failed: BTreeMap<i32, (u64, u64)>,
}

impl Calls {
    fn add(&mut self, result: u64, times: u64) {
        self.all += times;
        // What the kernel returns for an error is its number, negated.
        let error = i32::try_from(0_i64.wrapping_sub_unsigned(result)).unwrap_or(0);
        if error == FULL || FAILURES.iter().any(|(number, _)| *number == error) {
            let (samples, calls) = self.failed.entry(error).or_default();
            (*samples, *calls) = (*samples + 1, *calls + times);
        }
    }

    /// Calls that failed with this error; a single one is left out.
    fn of(&self, error: i32) -> Option<u64> {
        let (samples, calls) = self.failed.get(&error)?;
        (*samples > 1).then_some(*calls)
    }

    /// All calls and those that failed, if some did.
    fn connects(&self) -> Option<Connects> {
        let named = FAILURES
            .iter()
            .filter_map(|(error, name)| Some(((*name).to_owned(), self.of(*error)?)));
        let failed: BTreeMap<String, u64> = named.collect();
        (!failed.is_empty()).then_some(Connects {
            calls: self.all,
            failed,
        })
    }
}

/// Empties the rings while counting goes on.
struct Reader {
    contentions: Option<Watch>,
    drops: Option<Watch>,
    syscalls: Option<Watch>,
    migrations: Option<Watch>,
    connects: Option<Watch>,
    switches: Option<runs::Watch>,
    /// Long runs, and the seconds they were watched for, once that has ended.
    long_runs: Option<LongRuns>,
    /// Syncs as file systems record them, in the whole window.
    file_syncs: Option<syncs::Watch>,
    /// Syncs of any file system, for a part of it.
    sync_calls: Option<syncs::Watch>,
    /// Syncs that were watched, once that has ended.
    syncs: Vec<SyncTimes>,
    /// Where a record of a connect has its result.
    result: Option<Field>,
    /// Calls of connect(2) by process.
    connected: BTreeMap<u32, Calls>,
    /// Where a record of a drop has its reason; kernels before 5.17 record none.
    reason: Option<Field>,
    tasks: Tasks,
    stacks: Fold,
    reasons: BTreeMap<u64, u64>,
}

/// What the reading thread hands over: exact counts, and weights of samples.
#[derive(Debug)]
struct Counted {
    seconds: f64,
    contentions: u64,
    drops: u64,
    drop_seconds: Option<f64>,
    syscalls: BTreeMap<u32, u64>,
    syscall_seconds: Option<f64>,
    migrations: BTreeMap<u32, u64>,
    connected: BTreeMap<u32, Calls>,
    long_runs: Option<LongRuns>,
    syncs: Vec<SyncTimes>,
    stacks: Fold,
    reasons: BTreeMap<u64, u64>,
}

impl Reader {
    fn run(mut self, stopped: &Receiver<()>, began: Instant, longest: Duration) -> Counted {
        let passed = || began.elapsed().as_secs_f64();
        let enough = |watch: &mut Watch| watch.sum() >= ENOUGH;
        let (mut early, mut dropped, mut seconds) = (None, None, None);
        loop {
            let left = longest.saturating_sub(began.elapsed());
            if left.is_zero() && seconds.is_none() {
                self.others().for_each(Watch::disable);
                seconds = Some(passed());
                self.end_switches(passed());
                self.end_sync_calls(passed());
            }
            let wait = if seconds.is_none() {
                left.min(EVERY)
            } else if self.drops.is_some() || self.file_syncs.is_some() {
                EVERY
            } else {
                break;
            };
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            self.drain();
            if self.switches.as_mut().is_some_and(runs::Watch::drain) {
                self.end_switches(passed());
            }
            if self.sync_calls.as_mut().is_some_and(syncs::Watch::drain) {
                self.end_sync_calls(passed());
            }
            if self.file_syncs.as_mut().is_some_and(syncs::Watch::drain) {
                self.end_file_syncs(passed());
            }
            if let Some(mut calls) = self.syscalls.take_if(enough) {
                calls.disable();
                early = Some((passed(), calls.counts()));
            }
            if let Some(mut drops) = self.drops.take_if(enough) {
                drops.disable();
                dropped = Some((passed(), drops.sum()));
            }
        }
        self.each(Watch::disable);
        let ended = passed();
        self.end_switches(ended);
        self.end_sync_calls(ended);
        self.end_file_syncs(ended);
        self.drain();
        let counts =
            |watch: Option<Watch>| watch.map(|mut watch| watch.counts()).unwrap_or_default();
        let (syscall_seconds, syscalls) = match early {
            Some((seconds, calls)) => (Some(seconds), calls),
            None => (None, counts(self.syscalls)),
        };
        let dropped = dropped.or_else(|| Some((ended, self.drops?.sum())));
        Counted {
            seconds: seconds.unwrap_or(ended),
            contentions: counts(self.contentions).values().sum(),
            drops: dropped.map_or(0, |(_, drops)| drops),
            drop_seconds: dropped.map(|(seconds, _)| seconds),
            syscalls,
            syscall_seconds,
            migrations: counts(self.migrations),
            connected: self.connected,
            long_runs: self.long_runs,
            syncs: self.syncs,
            stacks: self.stacks,
            reasons: self.reasons,
        }
    }

    /// Stops to watch how long threads run.
    fn end_switches(&mut self, seconds: f64) {
        if let Some(mut switches) = self.switches.take() {
            switches.disable();
            switches.drain();
            let threads = switches.into_long().into_iter();
            let threads = threads.map(|((process, thread), counts)| LongRun {
                process,
                thread,
                number: counts.long,
                seconds: counts.long_ns as f64 / 1e9,
                short: Some(ShortRuns {
                    number: counts.short,
                    seconds: counts.short_ns as f64 / 1e9,
                }),
            });
            self.long_runs = Some(LongRuns {
                seconds,
                threads: threads.collect(),
            });
        }
    }

    /// Stops to watch system calls that sync.
    fn end_sync_calls(&mut self, seconds: f64) {
        end_syncs(self.sync_calls.take(), seconds, &mut self.syncs);
    }

    /// Stops to watch the syncs of file systems.
    fn end_file_syncs(&mut self, seconds: f64) {
        end_syncs(self.file_syncs.take(), seconds, &mut self.syncs);
    }

    fn each(&mut self, mut act: impl FnMut(&mut Watch)) {
        self.drops.iter_mut().for_each(&mut act);
        self.others().for_each(act);
    }

    /// All but the drops.
    fn others(&mut self) -> impl Iterator<Item = &mut Watch> {
        let others = [
            &mut self.contentions,
            &mut self.syscalls,
            &mut self.migrations,
            &mut self.connects,
        ];
        others.into_iter().flatten()
    }

    fn drain(&mut self) {
        if let Some(contentions) = &mut self.contentions {
            contentions.drain(|seen| {
                self.tasks.learn(&seen);
                if let Seen::Sample(sample) = seen {
                    let task = self.tasks.name(sample.process, sample.thread);
                    let weight = sample.period;
                    self.stacks.add(task, sample.mode, sample.chain, weight);
                }
            });
        }
        if let (Some(connects), Some(result)) = (&mut self.connects, &self.result) {
            connects.drain(|seen| {
                if let Seen::Sample(sample) = seen
                    && let Some(result) = result.value(sample.raw)
                {
                    let calls = self.connected.entry(sample.process).or_default();
                    calls.add(result, sample.period);
                }
            });
        }
        if let (Some(drops), Some(reason)) = (&mut self.drops, &self.reason) {
            drops.drain(|seen| {
                if let Seen::Sample(sample) = seen
                    && let Some(reason) = reason.value(sample.raw)
                {
                    *self.reasons.entry(reason).or_default() += sample.period;
                }
            });
        }
    }
}

/// Of a process that both ways have seen, what was watched for longer is kept.
fn end_syncs(watch: Option<syncs::Watch>, seconds: f64, known: &mut Vec<SyncTimes>) {
    let Some(mut watch) = watch else { return };
    watch.disable();
    watch.drain();
    for times in watch.into_times(seconds) {
        match known
            .iter_mut()
            .find(|known| known.process == times.process)
        {
            Some(known) if known.watched < times.watched => *known = times,
            Some(_) => {}
            None => known.push(times),
        }
    }
}

/// The heaviest, and one for all others.
fn most(weights: BTreeMap<String, u64>, number: usize) -> BTreeMap<String, u64> {
    let mut by_weight: Vec<(String, u64)> = weights.into_iter().collect();
    by_weight.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let others: u64 = by_weight
        .iter()
        .skip(number)
        .map(|(_, weight)| weight)
        .sum();
    by_weight.truncate(number);
    if others > 0 {
        by_weight.push((OTHERS.to_owned(), others));
    }
    by_weight.into_iter().collect()
}

/// The exact count, divided as the samples' weights are. What has no sample goes to the others.
fn applied(weights: BTreeMap<String, u64>, exact: u64) -> BTreeMap<String, u64> {
    let total: u64 = weights.values().sum();
    if exact == 0 {
        return BTreeMap::new();
    }
    if total == 0 {
        return [(OTHERS.to_owned(), exact)].into();
    }
    let scale = exact as f64 / total as f64;
    weights
        .into_iter()
        .map(|(what, weight)| (what, (weight as f64 * scale).round() as u64))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs
            .iter()
            .map(|(what, weight)| ((*what).to_owned(), *weight))
            .collect()
    }

    #[test]
    fn an_error_of_connect_counts_once_two_samples_have_it() {
        let returned = |error: i32| (-i64::from(error)).cast_unsigned();
        let mut calls = Calls::default();
        calls.add(0, 5);
        calls.add(returned(libc::EINPROGRESS), 5);
        calls.add(returned(libc::ECONNREFUSED), 2);
        assert_eq!(calls.connects(), None);
        calls.add(returned(libc::ECONNREFUSED), 3);
        calls.add(returned(libc::EAGAIN), 1);
        calls.add(returned(libc::EAGAIN), 1);
        let connects = calls.connects().unwrap();
        assert_eq!(connects.calls, 17);
        assert_eq!(connects.failed, weights(&[("ECONNREFUSED", 5)]));
        assert_eq!(calls.of(FULL), Some(2));
    }

    #[test]
    fn samples_say_how_the_exact_count_is_divided() {
        let sampled = weights(&[("a", 300), ("b", 100)]);
        assert_eq!(
            applied(sampled.clone(), 4_000_000),
            weights(&[("a", 3_000_000), ("b", 1_000_000)])
        );
        assert_eq!(applied(sampled.clone(), 400), sampled);
        assert!(applied(sampled, 0).is_empty());
        assert_eq!(applied(weights(&[]), 7), weights(&[(OTHERS, 7)]));
    }

    #[test]
    fn only_the_heaviest_stacks_are_kept_and_none_is_forgotten() {
        let all = weights(&[("a", 1), ("b", 5), ("c", 3), ("d", 2)]);
        assert_eq!(
            most(all.clone(), 2),
            weights(&[("b", 5), ("c", 3), (OTHERS, 3)])
        );
        assert_eq!(most(all.clone(), 4), all);
    }
}
