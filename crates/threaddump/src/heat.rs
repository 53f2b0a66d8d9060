//! Threads that use a CPU, by the growth of `cpu=` from dump to dump, and carriers that virtual threads do not leave.
//!
//! A stack is one moment and says nothing of time; the CPU time that HotSpot prints since JDK 11 does. JDK 8 has none: there a thread counts
//! that is in Java code in every dump.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rungwise_model::threads::{Carriers, Hot};

use crate::activity::Activity;
use crate::course::key;
use crate::dump::{State, Thread};
use crate::frame::{self, method};
use crate::graph::Graph;

/// Threads that are listed of one JVM.
const MOST: usize = 20;
/// Share of one CPU from which on a thread is listed; what acts is up to the rules.
const LISTED: f64 = 0.2;
/// The same for a thread that runs in a known loop in every dump.
const LOOPING: f64 = 0.01;
/// Callers that spin on purpose, for the sake of latency (Disruptor, Agrona).
const SPIN_ON_PURPOSE: [&str; 2] = ["WaitStrategy", "IdleStrategy"];
/// Dumps without CPU times in each of which a thread must run.
const RUNS_IN: usize = 3;
/// Share of one CPU below which a carrier does no work for the virtual thread that it carries.
const UNUSED: f64 = 0.05;

/// Code whose endless loops are known, by the frame on top: what it does, and frames of it.
const LOOPS: &[(&str, &[&str])] = &[
    (
        "regex",
        &["java.util.regex.Pattern", "java.util.regex.Matcher"],
    ),
    (
        "map",
        &[
            "java.util.HashMap.",
            "java.util.HashMap$",
            "java.util.WeakHashMap.",
            "java.util.LinkedHashMap.",
            "java.util.TreeMap.",
            "java.util.TreeMap$",
            "java.util.IdentityHashMap.",
        ],
    ),
    (
        "spin",
        &[
            "java.lang.Thread.yield",
            "java.lang.Thread.onSpinWait",
            "java.util.concurrent.locks.ReentrantLock.tryLock",
            "java.util.concurrent.locks.ReentrantLock$Sync.tryLock",
            "java.util.concurrent.locks.ReentrantLock$Sync.nonfairTryAcquire",
        ],
    ),
];

/// The threads of one JVM that use a CPU, hottest first, over its dumps in the form that HotSpot prints.
pub(crate) fn hot(jvm: u64, graphs: &[&Graph<'_>]) -> Vec<Hot> {
    let (Some(first), Some(last)) = (graphs.first(), graphs.last()) else {
        return Vec::new();
    };
    if graphs.len() < 2 {
        return Vec::new();
    }
    let times: Vec<HashMap<String, (usize, &Thread)>> =
        graphs.iter().map(|graph| by_key(graph)).collect();
    let mut hot = Vec::new();
    let mut of_jvm: BTreeMap<String, f64> = BTreeMap::new();
    for (at, thread) in last.dump.threads.iter().enumerate() {
        let id = key(thread);
        let Some((_, then)) = times[0].get(&id) else {
            continue;
        };
        let share = share(then, thread, seconds(first, last));
        if thread.frames.is_empty() {
            if let Some(share) = share {
                *of_jvm.entry(group(&thread.name)).or_insert(0.0) += share;
            }
            continue;
        }
        let all: Option<Vec<&Thread>> = times.iter().map(|dump| Some(dump.get(&id)?.1)).collect();
        let Some(all) = all.filter(|_| last.doing[at] != Activity::Jvm) else {
            continue;
        };
        let runs = times.iter().zip(graphs).all(|(dump, graph)| {
            let found = dump.get(&id);
            found.is_some_and(|(at, thread)| {
                graph.doing[*at] == Activity::Running
                    && thread.state == Some(State::Runnable)
                    && !thread
                        .frames
                        .first()
                        .is_some_and(|top| top.contains("Native Method") && !top.contains("yield"))
            })
        });
        let one = of_thread(jvm, thread, &all, share);
        let runs = runs && all.len() >= RUNS_IN;
        // On a machine with more to run than CPUs a loop gets little of one, and is found running all the same.
        let listed = match share {
            Some(share) => share >= LISTED || runs && share >= LOOPING && one.looks_like.is_some(),
            None => runs,
        };
        if listed {
            hot.push(one);
        }
    }
    hot.extend(
        of_jvm
            .into_iter()
            .filter(|(_, share)| *share >= LISTED)
            .map(|(thread, share)| Hot {
                jvm,
                thread,
                cpu_share: Some(share),
                dumps: graphs.len() as u64,
                is_of_jvm: true,
                ..Hot::default()
            }),
    );
    let order = |one: &Hot| one.cpu_share.unwrap_or(1.0);
    hot.sort_by(|a, b| order(b).total_cmp(&order(a)));
    hot.truncate(MOST);
    hot
}

fn by_key<'d>(graph: &Graph<'d>) -> HashMap<String, (usize, &'d Thread)> {
    let threads = graph.dump.threads.iter().enumerate();
    threads.map(|(at, one)| (key(one), (at, one))).collect()
}

/// `GC Thread#3` and the others of its kind.
fn group(name: &str) -> String {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches('#')
        .to_owned()
}

/// Seconds between two dumps, by the age of any thread that both have.
fn seconds(first: &Graph<'_>, last: &Graph<'_>) -> Option<f64> {
    let then = by_key(first);
    let mut ages = last.dump.threads.iter().filter_map(|now| {
        let (_, then) = then.get(&key(now))?;
        Some(now.elapsed_s? - then.elapsed_s?)
    });
    ages.find(|passed| *passed > 0.0)
}

fn share(then: &Thread, now: &Thread, passed: Option<f64>) -> Option<f64> {
    let used = now.cpu_s? - then.cpu_s?;
    let passed = passed?;
    (passed > 0.0 && used >= 0.0).then(|| used / passed)
}

fn of_thread(jvm: u64, thread: &Thread, all: &[&Thread], share: Option<f64>) -> Hot {
    let common = common(all);
    let outer = &thread.frames[thread.frames.len() - common..];
    let app = outer
        .iter()
        .find(|frame| !frame::is_of_jdk(frame) && !frame.contains("$$Lambda"));
    let is_loop = |frames: &[&str]| {
        all.iter().all(|one| {
            // What the application calls, and nothing else between.
            let inner = one
                .frames
                .iter()
                .take_while(|frame| frame::is_of_jdk(frame));
            inner.clone().any(|frame| {
                let name = method(frame);
                frames.iter().any(|start| name.starts_with(start))
            })
        })
    };
    let innermost_moves = all.windows(2).any(|two| two[0].frames != two[1].frames);
    let is_meant = thread.frames.iter().any(|frame| {
        let name = method(frame);
        SPIN_ON_PURPOSE.iter().any(|words| name.contains(words))
    });
    let pattern = LOOPS
        .iter()
        .find(|(what, frames)| is_loop(frames) && !(is_meant && *what == "spin"));
    // Who calls it must be the same line of the same method each time.
    let caller = |one: &&Thread| {
        let frame = one.frames.iter().find(|frame| !frame::is_of_jdk(frame));
        frame.map(Arc::clone)
    };
    let same_caller = all.windows(2).all(|two| caller(&two[0]) == caller(&two[1]));
    Hot {
        jvm,
        thread: thread.label(),
        cpu_share: share,
        dumps: all.len() as u64,
        is_of_jvm: false,
        moves: innermost_moves,
        at: app
            .or_else(|| outer.first())
            .map(|frame| frame::short(frame).to_owned()),
        looks_like: pattern
            .filter(|(what, _)| same_caller || *what == "spin")
            .map(|(what, _)| (*what).to_owned()),
        frames: frame::top(&thread.frames)
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// How many outer frames all stacks share.
fn common(all: &[&Thread]) -> usize {
    let Some((first, rest)) = all.split_first() else {
        return 0;
    };
    let mut common = first.frames.len();
    for other in rest {
        let same = first
            .frames
            .iter()
            .rev()
            .zip(other.frames.iter().rev())
            .take_while(|(a, b)| a == b);
        common = common.min(same.count());
    }
    common
}

/// The carriers of virtual threads of one JVM; nothing where it runs none.
pub(crate) fn carriers(jvm: u64, graphs: &[&Graph<'_>]) -> Option<Carriers> {
    let of_form = |print: bool| -> Vec<&Graph<'_>> {
        let found = graphs.iter().copied();
        found
            .filter(|graph| graph.dump.form.is_file() != print)
            .collect()
    };
    let (printed, filed) = (of_form(true), of_form(false));
    let file = filed.last();
    let carrying = |thread: &Thread| {
        thread.carries.is_some()
            || thread
                .frames
                .iter()
                .any(|frame| method(frame) == "java.lang.VirtualThread.runContinuation")
    };
    let source = printed.last().or(file)?;
    let names: Vec<String> = source
        .dump
        .threads
        .iter()
        .filter(|thread| carrying(thread))
        .filter_map(|thread| crate::pools::pattern(&thread.name, 1))
        .collect();
    let pool = names.first()?.clone();
    let members: Vec<&Thread> = source
        .dump
        .threads
        .iter()
        .filter(|thread| crate::pools::pattern(&thread.name, 1).as_ref() == Some(&pool))
        .collect();
    let mut held: Vec<u64> = Vec::new();
    if let [first, .., last] = &printed[..] {
        let then = by_key(first);
        for now in last.dump.threads.iter().filter(|one| one.carries.is_some()) {
            let Some((_, before)) = then.get(&key(now)) else {
                continue;
            };
            let unused =
                share(before, now, seconds(first, last)).is_some_and(|share| share < UNUSED);
            let same = printed.iter().all(|graph| {
                let found = by_key(graph).get(&key(now)).map(|(_, one)| one.carries);
                found == Some(now.carries)
            });
            if same && unused {
                held.extend(now.carries);
            }
        }
    }
    let is_pinned = |thread: &&Thread| {
        let mut near = thread.frames.iter().take(4).map(|frame| method(frame));
        near.any(|name| name == "java.lang.VirtualThread.parkOnCarrierThread")
    };
    let virtuals = || {
        let dumps = file.into_iter().chain(printed.last());
        dumps.flat_map(|graph| graph.dump.threads.iter().filter(|one| one.is_virtual))
    };
    let pinned: Vec<&Thread> = virtuals().filter(is_pinned).collect();
    let holder = virtuals().find(|one| one.id.is_some_and(|id| held.contains(&id)));
    let at = pinned.first().copied().or(holder);
    Some(Carriers {
        jvm,
        pool,
        carriers: members.len() as u64,
        held: held.len() as u64,
        dumps: printed.len() as u64,
        pinned: pinned.len() as u64,
        unstarted: file.map_or(0, |graph| {
            let threads = graph.dump.threads.iter();
            threads
                .filter(|one| one.is_virtual && one.frames.is_empty())
                .count() as u64
        }),
        virtual_threads: file.map(|graph| {
            let threads = graph.dump.threads.iter();
            threads.filter(|one| one.is_virtual).count() as u64
        }),
        at: at
            .and_then(|thread| thread.frames.iter().find(|frame| !frame::is_of_jdk(frame)))
            .map(|frame| frame::short(frame).to_owned()),
    })
}
