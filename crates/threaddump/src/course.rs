//! Several dumps: their order, whose they are, and which threads stand still.

use std::collections::HashMap;

use rungwise_model::threads::{Form, Stuck};

use crate::activity::Activity;
use crate::dump::{Dump, Thread};
use crate::frame;
use crate::graph::Graph;

/// Stuck threads that are told.
const MOST: usize = 100;

/// The dumps in the order of their time where all of them tell it in the same way, else as given.
pub(crate) fn ordered(mut dumps: Vec<Dump>) -> Vec<Dump> {
    // HotSpot prints local time, files have UTC.
    let clock = |dump: &Dump| dump.form == Form::Print;
    let same = dumps.windows(2).all(|two| clock(&two[0]) == clock(&two[1]));
    if same && dumps.iter().all(|dump| dump.taken.is_some()) {
        dumps.sort_by(|a, b| a.taken.cmp(&b.taken));
    }
    dumps
}

/// Number of the JVM of each dump, from 1. Threads of the JVM itself keep their address as long as it lives.
pub(crate) fn jvms(dumps: &[Dump]) -> Vec<u64> {
    let mut known: Vec<String> = Vec::new();
    let mut last = 1;
    let mut number = |dump: &Dump| {
        if let Some(identity) = identity(dump) {
            let at = known.iter().position(|one| *one == identity);
            let at = at.unwrap_or_else(|| {
                known.push(identity);
                known.len() - 1
            });
            last = at as u64 + 1;
        }
        last
    };
    dumps.iter().map(&mut number).collect()
}

fn identity(dump: &Dump) -> Option<String> {
    let handler = dump
        .threads
        .iter()
        .find(|thread| &*thread.name == "Reference Handler");
    let address = handler.and_then(|thread| thread.address.as_deref());
    match (address, dump.pid) {
        (Some(address), _) => Some(address.to_owned()),
        (None, Some(pid)) => Some(format!("pid {pid}")),
        (None, None) => None,
    }
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
fn key(thread: &Thread) -> String {
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
