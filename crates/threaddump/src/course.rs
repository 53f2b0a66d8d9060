//! Several dumps: their order, whose they are, and which threads stand still.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use rungwise_model::threads::{Form, Stuck};

use crate::activity::Activity;
use crate::dump::{Dump, Thread};
use crate::frame;
use crate::graph::Graph;

/// Stuck threads that are listed.
const MOST: usize = 100;
/// Dumps whose JVM is unknown by an address are compared with so many JVMs and forms, the newest: files hold a few, and what is
/// made to be slow may hold thousands.
const RECENT: usize = 64;
/// Threads with a number that a JVM has before any application; fewer join no dumps.
const FEWEST: usize = 4;

/// The dumps in the order of their time, as far as they show it; the places of each form stay as given, because HotSpot prints local
/// time and files have UTC.
pub(crate) fn ordered(dumps: Vec<Dump>) -> Vec<Dump> {
    let forms: Vec<bool> = dumps.iter().map(|dump| !dump.form.is_file()).collect();
    let (printed, filed): (Vec<Dump>, Vec<Dump>) =
        dumps.into_iter().partition(|dump| !dump.form.is_file());
    let mut printed = of_one_form(printed).into_iter();
    let mut filed = of_one_form(filed).into_iter();
    forms
        .into_iter()
        .filter_map(|is_print| {
            if is_print {
                printed.next()
            } else {
                filed.next()
            }
        })
        .collect()
}

fn of_one_form(mut dumps: Vec<Dump>) -> Vec<Dump> {
    if dumps.iter().all(|dump| dump.taken.is_some()) {
        // Times are printed in seconds; within one the age of a thread decides.
        dumps.sort_by(|a, b| a.taken.cmp(&b.taken).then_with(|| by_age(a, b)));
    } else if dumps.windows(2).all(|two| is_same(&two[0], &two[1])) {
        dumps.sort_by(by_age);
    }
    dumps
}

/// By the age of a thread that both have, or by the CPU time that it used.
fn by_age(a: &Dump, b: &Dump) -> Ordering {
    let then: HashMap<String, &Thread> = a.threads.iter().map(|one| (key(one), one)).collect();
    let mut order = b.threads.iter().filter_map(|now| {
        let then = then.get(&key(now))?;
        let of = |thread: &Thread| thread.elapsed_s.or(thread.cpu_s);
        of(then)?.partial_cmp(&of(now)?)
    });
    order.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Number of the JVM of each dump, from 1. Threads of the JVM itself keep their address as long as it lives, and both forms of dump may
/// have the process id; where neither joins two dumps, their threads do.
pub(crate) fn jvms(dumps: &[Dump]) -> Vec<u64> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut count = 0;
    let mut by_address: HashMap<&str, u64> = HashMap::new();
    // The last dump of each JVM and form, newest last.
    let mut latest: Vec<(u64, &Dump)> = Vec::new();
    for (at, dump) in dumps.iter().enumerate() {
        let address = address(dump);
        let known = address.and_then(|address| by_address.get(address).copied());
        let known = known.or_else(|| {
            let mut recent = latest.iter().rev().take(RECENT);
            let same = recent.find(|(_, other)| is_same(other, dump));
            same.map(|(number, _)| *number)
        });
        let nameless = address.is_none() && dump.pid.is_none();
        let number = match known {
            Some(number) => number,
            // A dump that does not show whose it is belongs to the one before.
            None if nameless && at > 0 => numbers[at - 1],
            None => {
                count += 1;
                count
            }
        };
        numbers.push(number);
        if let Some(address) = address {
            by_address.insert(address, number);
        }
        let replaced = |(of, other): &(u64, &Dump)| *of == number && other.form == dump.form;
        let recent = latest.len().saturating_sub(RECENT);
        if let Some(place) = latest[recent..].iter().position(replaced) {
            latest.remove(recent + place);
        }
        latest.push((number, dump));
    }
    numbers
}

/// The address of a thread that lives as long as the JVM.
fn address(dump: &Dump) -> Option<&str> {
    let mut threads = dump.threads.iter();
    let handler = threads.find(|thread| &*thread.name == "Reference Handler");
    handler.and_then(|thread| thread.address.as_deref())
}

/// Whether both are of one JVM.
fn is_same(a: &Dump, b: &Dump) -> bool {
    match (address(a), address(b), a.pid, b.pid) {
        (Some(one), Some(other), ..) => one == other,
        (_, _, Some(one), Some(other)) => one == other,
        _ if a.form == Form::Print && b.form == Form::Print => false,
        _ => shares_threads(a, b),
    }
}

/// Nearly all platform threads with a number of one have the same name and number in the other.
fn shares_threads(a: &Dump, b: &Dump) -> bool {
    fn named(dump: &Dump) -> HashSet<(u64, &str)> {
        let platform = dump.threads.iter().filter(|thread| !thread.is_virtual);
        platform
            .filter_map(|thread| Some((thread.id?, &*thread.name)))
            .collect()
    }
    let (a, b) = (named(a), named(b));
    let common = a.intersection(&b).count();
    let least = a.len().min(b.len());
    least >= FEWEST && common * 10 >= least * 9
}

/// Threads of one JVM that stood at the same place in its last dumps and ought not to: that run, wait for a lock, or hold one
/// that others wait for. What waits for something else may rightly do so for ever.
pub(crate) fn stuck(jvm: u64, graphs: &[&Graph<'_>]) -> Vec<Stuck> {
    let Some((last, before)) = graphs.split_last() else {
        return Vec::new();
    };
    let earlier: Vec<HashMap<String, &Thread>> = before
        .iter()
        .map(|graph| {
            graph
                .dump
                .threads
                .iter()
                .map(|one| (key(one), one))
                .collect()
        })
        .collect();
    let mut stuck: Vec<Stuck> = Vec::new();
    for (at, thread) in last.dump.threads.iter().enumerate() {
        let Some(why) = why(last, at) else { continue };
        let same: Vec<&Thread> = earlier
            .iter()
            .rev()
            .map_while(|dump| dump.get(&key(thread)).copied())
            .take_while(|then| then.frames == thread.frames)
            .collect();
        let Some(first) = same.last() else { continue };
        stuck.push(Stuck {
            jvm,
            thread: thread.label(),
            state: thread.state.map(|state| state.name().to_owned()),
            dumps: same.len() as u64 + 1,
            cpu_share: cpu_share(first, thread),
            why,
            frames: frame::top(&thread.frames)
                .iter()
                .map(ToString::to_string)
                .collect(),
        });
    }
    stuck.sort_by_key(|one| std::cmp::Reverse(one.dumps));
    stuck.truncate(MOST);
    stuck
}

fn why(graph: &Graph<'_>, at: usize) -> Option<String> {
    let holds = graph
        .nodes
        .iter()
        .filter(|node| node.owner.is_some_and(|(owner, _)| owner == at))
        .max_by_key(|node| node.behind);
    let doing = graph.doing[at];
    if doing == Activity::Jvm {
        return None;
    }
    if let Some(node) = holds {
        let threads = if node.behind == 1 {
            "thread waits"
        } else {
            "threads wait"
        };
        return Some(format!(
            "{} {threads} for {}, which it holds",
            node.behind, node.lock.class
        ));
    }
    match doing {
        Activity::Running => Some(match graph.dump.threads[at].frames.first() {
            Some(top) if top.contains("Native Method") => "is in native code".to_owned(),
            _ => "runs".to_owned(),
        }),
        Activity::LockWaiting => {
            let wait = graph.dump.threads[at].wait.as_ref();
            let lock = wait.and_then(|wait| wait.lock.as_ref());
            Some(lock.map_or_else(
                || "waits for a lock".to_owned(),
                |lock| format!("waits for the lock {}", lock.class),
            ))
        }
        _ => None,
    }
}

/// What tells a thread from the others of its JVM.
pub(crate) fn key(thread: &Thread) -> String {
    match (thread.id, &thread.address) {
        (Some(id), _) => format!("#{id}"),
        (None, Some(address)) => address.to_string(),
        (None, None) => thread.name.to_string(),
    }
}

fn cpu_share(first: &Thread, last: &Thread) -> Option<f64> {
    let used = last.cpu_s? - first.cpu_s?;
    let passed = last.elapsed_s? - first.elapsed_s?;
    (passed > 0.0 && used >= 0.0).then(|| used / passed)
}
