//! Pools: threads whose names differ by a number only, and whether one of them is starved.

use std::collections::BTreeMap;

use rungwise_model::threads::{Itself, Pool};

use crate::activity::Activity;
use crate::dump::Thread;
use crate::frame::{self, method};
use crate::graph::Graph;
use crate::shared::Earlier;
use crate::waits::{self, Kind};

/// Fewer are no pool.
const FEWEST: usize = 2;
/// Fewer are not called starved: two threads at one lock are a chance.
const FEWEST_STARVED: usize = 3;
/// Frames of a thread that runs a task of a pool.
const WORKS: [&str; 4] = [
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "java.util.concurrent.ForkJoinTask.doExec",
    "java.util.concurrent.FutureTask.run",
    "java.lang.VirtualThread.runContinuation",
];

/// The pools, largest first; `before` are earlier dumps of the same JVM and form.
pub(crate) fn find(graph: &Graph<'_>, before: &[&Graph<'_>]) -> Vec<Pool> {
    let mut pools: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut rest: Vec<usize> = (0..graph.doing.len())
        .filter(|at| graph.doing[*at] != Activity::Jvm)
        .collect();
    // A name may have a number of the pool and one of the thread, and sometimes two of the thread: the last number first.
    for numbers in [1, 2] {
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut rest) {
            match pattern(&graph.dump.threads[at].name, numbers) {
                Some(name) => found.entry(name).or_default().push(at),
                None => rest.push(at),
            }
        }
        for (name, members) in found {
            if members.len() >= FEWEST {
                pools.entry(name).or_default().extend(members);
            } else {
                rest.extend(members);
            }
        }
    }
    // An executor with a single thread waits for itself as well.
    for at in rest {
        let thread = &graph.dump.threads[at];
        if graph.doing[at] == Activity::Waiting
            && works(thread)
            && waits::kind(thread) == Some(Kind::Task)
        {
            pools.insert(thread.name.to_string(), vec![at]);
        }
    }
    let mut pools: Vec<Pool> = pools
        .into_iter()
        .map(|(name, members)| pool(graph, before, name, &members))
        .collect();
    pools.sort_by_key(|pool| std::cmp::Reverse(pool.threads));
    pools
}

fn pool(graph: &Graph<'_>, before: &[&Graph<'_>], name: String, members: &[usize]) -> Pool {
    let count = |activity| {
        let members = members.iter();
        members.filter(|at| graph.doing[**at] == activity).count() as u64
    };
    Pool {
        name,
        threads: members.len() as u64,
        idle: count(Activity::Idle),
        running: count(Activity::Running),
        lock_waiting: count(Activity::LockWaiting),
        waiting: count(Activity::Waiting),
        starved: starved(graph, members),
        waits_for_itself: itself(graph, before, members),
    }
}

/// The thread runs a task of some pool.
fn works(thread: &Thread) -> bool {
    let mut frames = thread.frames.iter().map(|frame| method(frame));
    frames.any(|name| WORKS.contains(&name))
}

/// All members wait for results of tasks. If no other thread computes any, the tasks wait in the queue of this very pool.
fn itself(graph: &Graph<'_>, before: &[&Graph<'_>], members: &[usize]) -> Option<Itself> {
    let threads = &graph.dump.threads;
    let kinds: Option<Vec<Kind>> = members
        .iter()
        .map(|at| {
            let thread = &threads[*at];
            let is_waiting = graph.doing[*at] == Activity::Waiting && works(thread);
            waits::kind(thread).filter(|kind| is_waiting && kind.is_result())
        })
        .collect();
    let kinds = kinds?;
    let needs_thread = kinds.iter().all(|kind| *kind == Kind::Task);
    if members.len() < FEWEST && !needs_thread {
        return None;
    }
    // What holds most of them is named.
    let first = kinds.iter().find(|kind| **kind != Kind::Task);
    let kind = *first.or_else(|| kinds.first())?;
    let example = members
        .iter()
        .zip(&kinds)
        .find(|(_, of)| **of == kind)
        .map(|(at, _)| &threads[*at])?;
    let others = threads.iter().enumerate().filter(|(at, thread)| {
        let is_at_work = !matches!(graph.doing[*at], Activity::Idle)
            && !waits::kind(thread).is_some_and(Kind::is_result);
        !members.contains(at) && works(thread) && is_at_work
    });
    let earlier: Vec<Earlier<'_>> = before
        .iter()
        .map(|before| Earlier::of(before, graph))
        .collect();
    let still = members.iter().filter(|at| {
        let now = &threads[**at];
        !earlier.is_empty() && earlier.iter().all(|dump| dump.has_unmoved(now))
    });
    Some(Itself {
        what: kind.what(),
        at: waits::place(&example.frames, kind).map(|frame| frame::short(frame).to_owned()),
        others: others.count() as u64,
        needs_thread,
        still: still.count() as u64,
    })
}

/// The name with its last `numbers` numbers replaced.
pub(crate) fn pattern(name: &str, numbers: usize) -> Option<String> {
    let mut pattern = name.to_owned();
    let mut end = name.len();
    for _ in 0..numbers {
        let last = pattern[..end].rfind(|c: char| c.is_ascii_digit())?;
        let before = pattern[..last].rfind(|c: char| !c.is_ascii_digit());
        let first = before.map_or(0, |at| {
            at + pattern[at..].chars().next().map_or(1, char::len_utf8)
        });
        pattern.replace_range(first..=last, "*");
        end = first;
    }
    Some(pattern)
}

/// What all members wait for. The owner of the lock may be one of them.
fn starved(graph: &Graph<'_>, members: &[usize]) -> Option<String> {
    if members.len() < FEWEST_STARVED {
        return None;
    }
    if let Some(wanted) = members.iter().find_map(|at| graph.wanted(*at)) {
        let node = &graph.nodes[wanted];
        let owner = node.owner.map(|(owner, _)| owner);
        let waits = |at: &usize| graph.wanted(*at) == Some(wanted) || owner == Some(*at);
        let holder = owner.map_or_else(String::new, |owner| {
            format!(", held by {}", graph.dump.threads[owner].label())
        });
        return members
            .iter()
            .all(waits)
            .then(|| format!("the lock {}{holder}", node.lock.class));
    }
    let lent = |at: &usize| match waits::kind(&graph.dump.threads[*at])? {
        Kind::Lent(library) if graph.doing[*at] == Activity::Waiting => Some(library.lends),
        _ => None,
    };
    let first = lent(members.first()?)?;
    members
        .iter()
        .all(|at| lent(at) == Some(first))
        .then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced_from_the_end() {
        for (name, one, two) in [
            (
                "http-nio-8080-exec-17",
                Some("http-nio-8080-exec-*"),
                Some("http-nio-*-exec-*"),
            ),
            (
                "w13 [container1-361]",
                Some("w13 [container1-*]"),
                Some("w13 [container*-*]"),
            ),
            ("1", Some("*"), None),
            ("main", None, None),
            ("日1日", Some("日*日"), None),
        ] {
            assert_eq!(pattern(name, 1).as_deref(), one);
            assert_eq!(pattern(name, 2).as_deref(), two);
        }
    }
}
