//! Waits that threads share: for one semaphore, latch, future or pool, or for a lock that readers hold; over all dumps of a JVM.
//!
//! No dump records who holds a permit or who will complete a future. Threads that are past the place where the others wait are
//! likely holders: they are in the same method and went on. What counts a latch down, computes a result or takes from a queue is known by
//! its calls, where a dump catches one. Whether a wait lasts is seen in two ways: the stack is the same,
//! and the CPU time of the thread (JDK 11 and later) has not grown by a microsecond.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rungwise_model::gc::Sample;
use rungwise_model::threads::SharedWait;

use crate::activity::Activity;
use crate::course::key;
use crate::dump::Thread;
use crate::frame;
use crate::graph::Graph;
use crate::waits::{self, Kind};

/// Groups that are shown of one JVM; the largest first.
const MOST: usize = 20;
/// CPU seconds within which a thread did not run: HotSpot prints hundredths of milliseconds.
const NO_CPU: f64 = 0.000_05;
/// Names of threads that may release it.
const NAMED: usize = 5;

/// What joins threads that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: Option<Kind>,
    /// The object, or the place in the code where each thread waits on an object of its own.
    of: String,
}

/// The waits of the last dump of these, which are of one JVM and of one form; the largest first.
pub(crate) fn waits(jvm: u64, graphs: &[&Graph<'_>]) -> Vec<SharedWait> {
    let Some((last, before)) = graphs.split_last() else {
        return Vec::new();
    };
    let earlier: Vec<BTreeMap<Group, Vec<usize>>> =
        before.iter().map(|graph| groups(graph)).collect();
    let dumps: Vec<Earlier<'_>> = before
        .iter()
        .map(|graph| Earlier::of(graph, last))
        .collect();
    let mut shared: Vec<SharedWait> = groups(last)
        .into_iter()
        .map(|(group, members)| {
            let place = place(last, &members, group.kind);
            let then = earlier.iter().map(|groups| {
                // Objects move, so the place tells which group of an earlier dump is this one.
                let same = groups
                    .iter()
                    .zip(before)
                    .find(|((other, _), _)| **other == group);
                let same = same.map(|((_, members), _)| members.len());
                same.unwrap_or(0) as u64
            });
            let mut counts: Vec<u64> = then.collect();
            counts.push(members.len() as u64);
            let still: Vec<&Thread> = members
                .iter()
                .map(|at| &last.dump.threads[*at])
                .filter(|thread| {
                    !dumps.is_empty() && dumps.iter().all(|dump| dump.has_unmoved(thread))
                })
                .collect();
            let requests = still
                .iter()
                .filter(|thread| frame::handles_request(&thread.frames));
            let (holders, gone) = match group.kind {
                Some(kind @ (Kind::Semaphore | Kind::Lent(_))) => {
                    (past(last, &members, kind), Vec::new())
                }
                Some(kind) => releasing(last, before, &earlier, (&group, kind), &members),
                None => (Vec::new(), Vec::new()),
            };
            SharedWait {
                jvm,
                kind: group.kind.map_or("read-lock", Kind::word).to_owned(),
                what: what(last, &group, &members),
                at: place,
                requests: requests.count() as u64,
                still: still.len() as u64,
                counts,
                holders_doing: doing(last, &holders),
                past: (holders.len() + gone.len()) as u64,
                holders: holders
                    .iter()
                    .map(|at| last.dump.threads[*at].label())
                    .chain(gone)
                    .take(NAMED)
                    .collect(),
                behind: behind_waiters(last, &group, &members),
                pool: pool_of(last, &members),
                lines: lines(last, &members),
                waiters: members
                    .iter()
                    .map(|at| last.dump.threads[*at].label())
                    .collect(),
            }
        })
        .collect();
    shared.sort_by_key(|one| std::cmp::Reverse((one.waiters.len(), one.still)));
    shared.truncate(MOST);
    shared
}

/// An earlier dump, to compare threads with.
pub(crate) struct Earlier<'d> {
    threads: HashMap<String, &'d Thread>,
    /// No object that threads wait for moved since, so another address is another object.
    are_objects_same: bool,
}

impl<'d> Earlier<'d> {
    pub(crate) fn of(before: &Graph<'d>, last: &Graph<'_>) -> Self {
        let threads: HashMap<String, &Thread> = before
            .dump
            .threads
            .iter()
            .map(|one| (key(one), one))
            .collect();
        let mut waiting = last.dump.threads.iter().zip(&last.doing);
        let are_objects_same = waiting.any(|(now, doing)| {
            let then = threads.get(&key(now));
            *doing != Activity::Jvm
                && then.is_some_and(|then| {
                    then.frames == now.frames && same_object(then, now) == Some(true)
                })
        });
        Self {
            threads,
            are_objects_same,
        }
    }

    /// The thread did not run since: neither its stack nor its CPU time differs, nor what it waits for.
    pub(crate) fn has_unmoved(&self, now: &Thread) -> bool {
        let Some(then) = self.threads.get(&key(now)) else {
            return false;
        };
        let is_same = match (then.cpu_s, now.cpu_s) {
            (Some(then), Some(now)) => (now - then).abs() < NO_CPU,
            // JDK 8 and the beans have no CPU times.
            _ => !self.are_objects_same || same_object(then, now) != Some(false),
        };
        then.frames == now.frames && is_same
    }
}

/// Whether both wait for the same object; unknown where one has none.
fn same_object(then: &Thread, now: &Thread) -> Option<bool> {
    fn id(thread: &Thread) -> Option<&str> {
        let lock = thread.wait.as_ref()?.lock.as_ref()?;
        Some(&lock.id)
    }
    Some(id(then)? == id(now)?)
}

fn groups(graph: &Graph<'_>) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, thread) in graph.dump.threads.iter().enumerate() {
        if graph.doing[at] != Activity::Waiting {
            continue;
        }
        let Some(kind) = waits::kind(thread) else {
            continue;
        };
        let place = waits::place(&thread.frames, kind).map(|frame| frame::method(frame));
        let Some(place) = place else { continue };
        groups
            .entry(Group {
                kind: Some(kind),
                of: stable(place),
            })
            .or_default()
            .push(at);
    }
    for node in graph
        .nodes
        .iter()
        .filter(|node| graph.is_held_by_readers(node))
    {
        let first = node.waiters.first().map(|at| &graph.dump.threads[*at]);
        let place =
            first.and_then(|thread| thread.frames.iter().find(|one| !frame::is_of_jdk(one)));
        groups
            .entry(Group {
                kind: None,
                of: place.map_or_else(String::new, |frame| stable(frame::method(frame))),
            })
            .or_default()
            .extend(&node.waiters);
    }
    groups
}

/// The name of a method without the number that a hidden class has.
fn stable(method: &str) -> String {
    match method.split_once("$$Lambda") {
        Some((class, _)) => format!("{class}$$Lambda"),
        None => method.to_owned(),
    }
}

fn place(graph: &Graph<'_>, members: &[usize], kind: Option<Kind>) -> Option<String> {
    let thread = &graph.dump.threads[*members.first()?];
    let frame = match kind {
        Some(kind) => waits::place(&thread.frames, kind),
        None => thread.frames.iter().find(|one| !frame::is_of_jdk(one)),
    };
    frame.map(|frame| frame::short(frame).to_owned())
}

fn what(graph: &Graph<'_>, group: &Group, members: &[usize]) -> String {
    let Some(kind) = group.kind else {
        let class = members
            .first()
            .and_then(|at| graph.wanted(*at))
            .map_or("a lock", |node| &*graph.nodes[node].lock.class);
        return match class {
            class if class.contains("StampedLock") => "a StampedLock".to_owned(),
            _ => "a ReentrantReadWriteLock that readers hold".to_owned(),
        };
    };
    kind.what()
}

/// Threads of the last dump that may release what these wait for, and names of those that are gone since: a call on their stack releases it,
/// or they met these at this place in an earlier dump.
fn releasing(
    last: &Graph<'_>,
    before: &[&Graph<'_>],
    earlier: &[BTreeMap<Group, Vec<usize>>],
    (group, kind): (&Group, Kind),
    members: &[usize],
) -> (Vec<usize>, Vec<String>) {
    let waiter = members
        .first()
        .map_or(&[][..], |at| &last.dump.threads[*at].frames);
    let releases = |graph: &Graph<'_>, at: usize| {
        let thread = &graph.dump.threads[at];
        graph.doing[at] != Activity::Jvm
            && waits::kind(thread) != Some(kind)
            && kind.is_released_by(&thread.frames, waiter)
    };
    let of_last = (0..last.doing.len()).filter(|at| {
        // Who waits in an empty queue takes from another one.
        !members.contains(at) && last.doing[*at] != Activity::Idle && releases(last, *at)
    });
    let mut found: BTreeSet<usize> = of_last.collect();
    let mut gone = BTreeSet::new();
    let now: HashMap<String, usize> = last
        .dump
        .threads
        .iter()
        .enumerate()
        .map(|(at, thread)| (key(thread), at))
        .collect();
    for (graph, groups) in before.iter().zip(earlier) {
        let then = groups.get(group);
        for (at, thread) in graph.dump.threads.iter().enumerate() {
            let met = kind.is_meeting() && then.is_some_and(|group| group.contains(&at));
            // The queue was not full yet, so those that waited for an element may be its consumers.
            let is_open = kind == Kind::Room && then.is_none();
            let is_at_work = graph.doing[at] != Activity::Idle || is_open;
            let may_release = met || is_at_work && releases(graph, at);
            if !may_release {
                continue;
            }
            match now.get(&key(thread)) {
                Some(at) if members.contains(at) => {}
                Some(at) => {
                    found.insert(*at);
                }
                None => {
                    gone.insert(format!("{}, which has ended", thread.label()));
                }
            }
        }
    }
    (found.into_iter().collect(), gone.into_iter().collect())
}

/// Threads that are past the place where these wait: in the same method, and not waiting for the same.
pub(crate) fn past(graph: &Graph<'_>, members: &[usize], kind: Kind) -> Vec<usize> {
    let first = members.first().map(|at| &graph.dump.threads[*at]);
    let Some(place) = first.and_then(|thread| waits::place(&thread.frames, kind)) else {
        return Vec::new();
    };
    let place = frame::method(place);
    let threads = graph.dump.threads.iter().enumerate();
    threads
        .filter(|(at, thread)| {
            !members.contains(at)
                && graph.doing[*at] != Activity::Idle
                && waits::kind(thread) != Some(kind)
                && thread
                    .frames
                    .iter()
                    .any(|frame| frame::method(frame) == place)
        })
        .map(|(at, _)| at)
        .collect()
}

/// What most of these threads do.
fn doing(graph: &Graph<'_>, threads: &[usize]) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for at in threads {
        let frames = &graph.dump.threads[*at].frames;
        let frame = frame::top(frames).first().map(|frame| frame::short(frame));
        let words = match (frame::meaning(frames), frame) {
            (Some(meaning), Some(frame)) => format!("{meaning} in {frame}"),
            (Some(meaning), None) => meaning.to_owned(),
            (None, Some(frame)) => format!("is in {frame}"),
            (None, None) => continue,
        };
        *counts.entry(words).or_insert(0) += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(words, _)| words)
}

/// A thread that waits for a lock of one of these waiters may be the reader that they wait for.
fn behind_waiters(graph: &Graph<'_>, group: &Group, members: &[usize]) -> Vec<String> {
    if group.kind.is_some() {
        return Vec::new();
    }
    let behind = graph.nodes.iter().filter(|node| {
        node.owner
            .is_some_and(|(owner, _)| members.contains(&owner))
    });
    let threads = behind.flat_map(|node| {
        let owner = node.owner.map_or(0, |(owner, _)| owner);
        node.waiters.iter().map(move |at| (*at, owner, node))
    });
    threads
        .filter(|(at, ..)| !members.contains(at))
        .map(|(at, owner, node)| {
            format!(
                "{} waits for {}, held by {}",
                graph.dump.threads[at].label(),
                node.lock.class,
                graph.dump.threads[owner].label()
            )
        })
        .take(NAMED)
        .collect()
}

/// The pool whose threads these are, where all are of one.
fn pool_of(graph: &Graph<'_>, members: &[usize]) -> Option<String> {
    let mut names = members
        .iter()
        .map(|at| crate::pools::pattern(&graph.dump.threads[*at].name, 1));
    let first = names.next()??;
    (members.len() > 1 && names.all(|name| name.as_ref() == Some(&first))).then_some(first)
}

fn lines(graph: &Graph<'_>, members: &[usize]) -> Vec<Sample> {
    let Some(thread) = members.first().map(|at| &graph.dump.threads[*at]) else {
        return Vec::new();
    };
    let wait = thread.wait.as_ref();
    vec![match wait {
        Some(wait) => Sample {
            line: wait.line,
            text: wait.text.clone(),
        },
        None => Sample {
            line: thread.line,
            text: thread
                .frames
                .first()
                .map_or_else(String::new, ToString::to_string),
        },
    }]
}
