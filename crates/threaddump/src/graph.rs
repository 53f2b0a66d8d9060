//! Who waits for what, who holds it, and the cycles in that.
//!
//! A thread waits for one lock at most, and a lock is held by one thread at most, so every cycle is found by following each
//! thread once. What HotSpot reports itself is compared with that: its report needs `-l` for synchronizers on JDK 25.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rungwise_model::threads::Form;

use crate::activity::{self, Activity};
use crate::dump::{Dump, Hold, How, Lock, Thread, Wait};
use crate::frame;

/// Waiters that are followed from one lock to the next; longer chains are not seen in practice, only in made-up dumps.
const LONGEST_CHAIN: usize = 100;
/// Two dumps may both fall into one long hold.
const LEAST_DUMPS: usize = 3;
/// From the first to the last: a lock that is held during a slow query comes free within.
const LEAST_SECONDS: f64 = 3.0;
const DAY: f64 = 86_400.0;

/// A dump as a graph.
#[derive(Debug)]
pub(crate) struct Graph<'d> {
    pub(crate) dump: &'d Dump,
    /// What each thread does.
    pub(crate) doing: Vec<Activity>,
    /// Locks that threads wait for.
    pub(crate) nodes: Vec<Node<'d>>,
    /// The lock of `nodes` that each thread waits for.
    waits: Vec<Option<usize>>,
}

/// A lock that threads wait for.
#[derive(Debug)]
pub(crate) struct Node<'d> {
    pub(crate) lock: &'d Lock,
    pub(crate) is_synchronizer: bool,
    /// Who holds it, and the line that says so, where one does.
    pub(crate) owner: Option<(usize, Option<&'d Hold>)>,
    pub(crate) waiters: Vec<usize>,
    /// Threads that wait for it, or for what its waiters hold, and so on.
    pub(crate) behind: u64,
}

impl<'d> Graph<'d> {
    pub(crate) fn of(dump: &'d Dump) -> Self {
        let synchronizers: HashSet<&str> = dump
            .threads
            .iter()
            .flat_map(|thread| &thread.holds)
            .filter(|hold| hold.is_synchronizer)
            .map(|hold| &*hold.lock.id)
            .collect();
        let held = |lock: &Lock| synchronizers.contains(&*lock.id);
        let doing: Vec<Activity> = dump
            .threads
            .iter()
            .map(|thread| activity::classify(thread, held))
            .collect();
        let mut graph = Self {
            dump,
            waits: vec![None; doing.len()],
            doing,
            nodes: Vec::new(),
        };
        graph.find_waiters();
        graph.find_owners();
        graph.count_behind();
        graph
    }

    fn find_waiters(&mut self) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (at, thread) in self.dump.threads.iter().enumerate() {
            let Some(Wait {
                how,
                lock: Some(lock),
                ..
            }) = &thread.wait
            else {
                continue;
            };
            if self.doing[at] != Activity::LockWaiting {
                continue;
            }
            let node = *known.entry(&lock.id).or_insert_with(|| {
                self.nodes.push(Node {
                    lock,
                    is_synchronizer: *how == How::Park,
                    owner: None,
                    waiters: Vec::new(),
                    behind: 0,
                });
                self.nodes.len() - 1
            });
            self.nodes[node].waiters.push(at);
            self.waits[at] = Some(node);
        }
    }

    fn find_owners(&mut self) {
        let threads = &self.dump.threads;
        let mut owners: HashMap<&str, (usize, Option<&'d Hold>)> = HashMap::new();
        for (at, thread) in threads.iter().enumerate() {
            let released = thread.released();
            let held = thread
                .holds
                .iter()
                .filter(|hold| hold.is_synchronizer || released != Some(&*hold.lock.id));
            for hold in held {
                owners.entry(&hold.lock.id).or_insert((at, Some(hold)));
            }
        }
        // A dump may name the owner beside the waiter.
        let by_id: HashMap<u64, usize> = threads
            .iter()
            .enumerate()
            .filter_map(|(at, thread)| Some((thread.id?, at)))
            .collect();
        for thread in threads {
            if let Some(wait) = &thread.wait
                && let (Some(lock), Some(owner)) = (&wait.lock, wait.owner)
                && let Some(at) = by_id.get(&owner)
            {
                owners.entry(&lock.id).or_insert((*at, None));
            }
        }
        for node in &mut self.nodes {
            let owner = owners.get(&*node.lock.id).copied();
            node.owner = owner.filter(|(at, _)| !node.waiters.contains(at));
        }
    }

    /// Who holds what this thread waits for.
    fn next(&self, thread: usize) -> Option<usize> {
        let node = self.wanted(thread)?;
        self.nodes[node].owner.map(|(owner, _)| owner)
    }

    /// The lock of `nodes` that this thread waits for.
    pub(crate) fn wanted(&self, thread: usize) -> Option<usize> {
        self.waits.get(thread).copied().flatten()
    }

    /// Who holds this lock, who holds what that thread waits for, and so on; up to one that goes on, or is in the row already.
    pub(crate) fn chain(&self, node: &Node<'_>) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut owner = node.owner.map(|(owner, _)| owner);
        while let Some(thread) = owner
            && chain.len() < LONGEST_CHAIN
            && !chain.contains(&thread)
        {
            chain.push(thread);
            owner = self.next(thread);
        }
        chain
    }

    fn count_behind(&mut self) {
        for start in 0..self.waits.len() {
            let mut seen = BTreeSet::new();
            let mut thread = start;
            while let Some(node) = self.waits[thread]
                && seen.len() < LONGEST_CHAIN
                && seen.insert(node)
            {
                self.nodes[node].behind += 1;
                let Some((owner, _)) = self.nodes[node].owner else {
                    break;
                };
                thread = owner;
            }
        }
    }

    /// Cycles of threads, each with the lock that it waits for.
    pub(crate) fn cycles(&self) -> Vec<Vec<(usize, &Node<'d>)>> {
        let mut visited = vec![0; self.waits.len()];
        let mut cycles = Vec::new();
        for start in 0..self.waits.len() {
            let mark = start + 1;
            let mut at = Some(start);
            while let Some(thread) = at
                && visited[thread] == 0
            {
                visited[thread] = mark;
                at = self.next(thread);
            }
            if let Some(first) = at
                && visited[first] == mark
            {
                cycles.push(self.cycle(first));
            }
        }
        cycles
    }

    fn cycle(&self, first: usize) -> Vec<(usize, &Node<'d>)> {
        let mut cycle = Vec::new();
        let mut thread = first;
        while let Some(node) = self.waits[thread] {
            cycle.push((thread, &self.nodes[node]));
            match self.next(thread) {
                Some(next) if next != first => thread = next,
                _ => break,
            }
        }
        cycle
    }

    /// Waiters of locks whose owner is missing and could be there, in another form of dump.
    pub(crate) fn ownerless(&self) -> usize {
        let unknown = |node: &&Node<'_>| node.owner.is_none() && self.owner_is_secret(node);
        let of_nodes: usize = self
            .nodes
            .iter()
            .filter(unknown)
            .map(|node| node.waiters.len())
            .sum();
        of_nodes + self.nameless(false)
    }

    /// Threads that wait for a lock that the dump does not name: for a class, or for any other.
    fn nameless(&self, class: bool) -> usize {
        let waits = |at: &usize| {
            let wait = self.dump.threads[*at].wait.as_ref();
            let for_class = wait.is_some_and(|wait| wait.how == How::Initialise);
            self.doing[*at] == Activity::LockWaiting
                && self.waits[*at].is_none()
                && for_class == class
        };
        (0..self.doing.len()).filter(waits).count()
    }

    /// Virtual threads among those that wait for a lock of unknown owner: no form of dump has the owner of theirs.
    pub(crate) fn ownerless_virtual(&self) -> usize {
        let waits = |at: &usize| {
            let unknown = match self.waits[*at] {
                Some(node) => {
                    self.nodes[node].owner.is_none() && self.owner_is_secret(&self.nodes[node])
                }
                None => true,
            };
            self.doing[*at] == Activity::LockWaiting && self.dump.threads[*at].is_virtual && unknown
        };
        (0..self.doing.len()).filter(waits).count()
    }

    /// Locks of unknown owner; only those that virtual threads wait for, where asked.
    pub(crate) fn ownerless_locks(&self, of_virtual: bool) -> usize {
        let nodes = self.nodes.iter().filter(|node| {
            let is_unknown = node.owner.is_none()
                && (self.owner_is_secret(node) || self.is_held_by_readers(node));
            let is_asked = !of_virtual
                || node
                    .waiters
                    .iter()
                    .any(|at| self.dump.threads[*at].is_virtual);
            is_unknown && is_asked
        });
        nodes.count()
    }

    /// Locks of virtual threads whose owner is unknown and that no waiter got from the first of these dumps to the last: the waiters of each
    /// dump wait in the next as well. Each with its waiters and where they wait. Empty where the dumps are too few or too close together.
    pub(crate) fn never_passed_on(dumps: &[&Self]) -> Vec<String> {
        let Some(last) = Self::last_of_enough(dumps) else {
            return Vec::new();
        };
        let waiters = |dump: &Self, lock: &str| -> Option<BTreeSet<u64>> {
            let node = dump.nodes.iter().find(|node| *node.lock.id == *lock)?;
            let ids = node.waiters.iter().map(|at| dump.dump.threads[*at].id);
            ids.collect()
        };
        let is_held = |node: &&Node<'_>| {
            let of_dumps: Option<Vec<BTreeSet<u64>>> = dumps
                .iter()
                .map(|dump| waiters(dump, &node.lock.id))
                .collect();
            let mut threads = node.waiters.iter().map(|at| &last.dump.threads[*at]);
            node.owner.is_none()
                && last.owner_is_secret(node)
                && threads.any(|thread| thread.is_virtual)
                && of_dumps.is_some_and(|sets| sets.windows(2).all(|two| two[0].is_subset(&two[1])))
        };
        let held = last.nodes.iter().filter(is_held);
        held.map(|node| {
            let thread = &last.dump.threads[node.waiters[0]];
            format!("{} for {}{}", thread.label(), node.lock.id, place(thread))
        })
        .collect()
    }

    /// Virtual threads that wait to get a lock in each of these dumps, of which none says for which: before JDK 25, files of threads have frames alone.
    /// Each with where it waits. Empty where the dumps are too few or too close together.
    pub(crate) fn never_got_it(dumps: &[&Self]) -> Vec<String> {
        let Some(last) = Self::last_of_enough(dumps) else {
            return Vec::new();
        };
        // With its whole stack: a thread that got one lock and waits for the next one has moved.
        let waiters = |graph: &Self| -> BTreeSet<(u64, Vec<Arc<str>>)> {
            let at = (0..graph.doing.len()).filter(|at| graph.waits_for_unnamed(*at));
            let threads = at.map(|at| &graph.dump.threads[at]);
            threads
                .filter_map(|thread| Some((thread.id?, thread.frames.clone())))
                .collect()
        };
        let sets: Vec<_> = dumps.iter().map(|graph| waiters(graph)).collect();
        let threads = (0..last.doing.len()).filter(|at| last.waits_for_unnamed(*at));
        let threads = threads.map(|at| &last.dump.threads[at]);
        let still = threads.filter(|thread| {
            let is_in = |set: &BTreeSet<(u64, Vec<Arc<str>>)>| {
                thread
                    .id
                    .is_some_and(|id| set.contains(&(id, thread.frames.clone())))
            };
            sets.iter().all(is_in)
        });
        still
            .map(|thread| format!("{}{}", thread.label(), place(thread)))
            .collect()
    }

    /// A virtual thread that waits to get a lock which the dump does not name.
    fn waits_for_unnamed(&self, at: usize) -> bool {
        self.doing[at] == Activity::LockWaiting
            && self.dump.threads[at].is_virtual
            && self.waits[at].is_none()
    }

    /// The last of these dumps, if they are enough to tell that something lasts.
    fn last_of_enough<'g>(dumps: &[&'g Self]) -> Option<&'g Self> {
        let [first, .., last] = dumps else {
            return None;
        };
        let (began, ended) = (first.second_of_day()?, last.second_of_day()?);
        let seconds = (ended - began).rem_euclid(DAY);
        (dumps.len() >= LEAST_DUMPS && seconds >= LEAST_SECONDS).then_some(*last)
    }

    /// Of the time at which it was taken, in whichever time zone.
    fn second_of_day(&self) -> Option<f64> {
        let taken = self.dump.taken.as_deref()?;
        let (at, _) = taken.match_indices(':').next()?;
        let clock = taken.get(at.checked_sub(2)?..)?;
        let mut parts = clock.splitn(3, ':');
        let (hours, minutes) = (parts.next()?, parts.next()?);
        let seconds = parts.next()?;
        let end = seconds.find(|c: char| !c.is_ascii_digit() && c != '.');
        let seconds: f64 = seconds[..end.unwrap_or(seconds.len())].parse().ok()?;
        let [hours, minutes] = [hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?];
        Some(f64::from(hours * 3600 + minutes * 60) + seconds)
    }

    /// Another form of dump would show the owner.
    fn owner_is_secret(&self, node: &Node<'_>) -> bool {
        node.is_synchronizer && !self.dump.has_synchronizers && !is_stamped(node.lock)
    }

    /// Readers hold this lock, or may: who they are is in no dump.
    pub(crate) fn is_held_by_readers(&self, node: &Node<'_>) -> bool {
        node.owner.is_none()
            && (is_stamped(node.lock)
                || node.lock.class.contains("ReadWriteLock$") && !self.owner_is_secret(node))
    }

    /// Threads that wait for what no form of dump records: readers of a lock, a class without a name.
    pub(crate) fn unrecorded(&self) -> usize {
        let held = self
            .nodes
            .iter()
            .filter(|node| self.is_held_by_readers(node));
        let of_readers: usize = held.map(|node| node.waiters.len()).sum();
        of_readers + self.nameless(true)
    }

    /// Why no owner of this lock is known.
    pub(crate) fn why_ownerless(&self, node: &Node<'_>) -> Option<&'static str> {
        if node.owner.is_some() {
            return None;
        }
        let mut waiters = node.waiters.iter().map(|at| &self.dump.threads[*at]);
        let all_virtual = waiters.all(|thread| thread.is_virtual);
        Some(match (self.owner_is_secret(node), self.dump.form) {
            (true, _) if all_virtual => {
                "only virtual threads wait for it, and no dump records the owner of a ReentrantLock or similar lock of theirs"
            }
            (true, Form::Print | Form::Beans) => {
                "this dump lacks the owners of ReentrantLock and similar locks; use jcmd PID Thread.print -l"
            }
            (true, _) => {
                "this form of dump lacks the owners of ReentrantLock and similar locks; use jcmd PID Thread.print -l"
            }
            (false, _) if is_stamped(node.lock) => "the JVM records no owner of a StampedLock",
            (false, _) if node.lock.class.contains("ReadWriteLock$") => {
                "readers hold it: no thread has the write lock, and the JVM records no readers"
            }
            (false, Form::Print | Form::Beans) => {
                "no thread in the dump holds it: it was being handed over, or a virtual thread holds it"
            }
            (false, _) => {
                "no thread in the dump holds it: threads are dumped one after the other, and it was handed over meanwhile"
            }
        })
    }
}

/// ` at ` and the innermost frame outside the JDK; empty if there is none.
fn place(thread: &Thread) -> String {
    let mut frames = thread.frames.iter();
    let place = frames.find(|frame| !frame::is_of_jdk(frame));
    place.map_or_else(String::new, |place| format!(" at {}", frame::short(place)))
}

/// A `StampedLock` is no ownable synchronizer: nothing knows who has it, not even for writing.
fn is_stamped(lock: &Lock) -> bool {
    lock.class.contains("StampedLock")
}

/// What tells a cycle from others: the ids of its locks.
pub(crate) fn ids<'l>(locks: impl Iterator<Item = &'l Lock>) -> BTreeSet<Arc<str>> {
    locks.map(|lock| Arc::clone(&lock.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of virtual threads, each with the lock that it waits for, taken at this second after ten.
    fn file(second: u32, waiters: &[(u64, &str)]) -> Dump {
        let threads: Vec<serde_json::Value> = waiters
            .iter()
            .map(|(id, lock)| {
                serde_json::json!({
                    "tid": id.to_string(), "virtual": true, "name": "", "state": "WAITING",
                    "parkBlocker": {"object": format!("java.util.concurrent.locks.ReentrantLock$NonfairSync@{lock}")},
                    "stack": [
                        "java.base/java.lang.VirtualThread.park(VirtualThread.java:742)",
                        "java.base/java.util.concurrent.locks.ReentrantLock.lock(ReentrantLock.java:323)",
                        "Shop.pay(Shop.java:65)",
                    ],
                })
            })
            .collect();
        let text = serde_json::json!({"threadDump": {
            "time": format!("2026-11-25T09:59:{second:02}.498026045Z"), "threadContainers": [{"threads": threads}],
        }});
        crate::json::dump(text.to_string().as_bytes()).expect("a dump")
    }

    #[test]
    fn no_other_form_of_dump_is_named_for_a_lock_of_virtual_threads() {
        let dump = file(1, &[(1, "a"), (2, "a")]);
        let graph = Graph::of(&dump);
        let why = graph.why_ownerless(&graph.nodes[0]).unwrap();
        assert!(
            why.contains("no dump records") && !why.contains("jcmd"),
            "{why}"
        );
        let mut mixed = dump;
        mixed.threads[0].is_virtual = false;
        let graph = Graph::of(&mixed);
        let why = graph.why_ownerless(&graph.nodes[0]).unwrap();
        assert!(why.contains("jcmd PID Thread.print -l"), "{why}");
    }

    #[test]
    fn a_lock_that_is_passed_on_is_not_held() {
        let held = |dumps: &[Dump]| {
            let graphs: Vec<Graph<'_>> = dumps.iter().map(Graph::of).collect();
            Graph::never_passed_on(&graphs.iter().collect::<Vec<_>>())
        };
        let stuck = |second| file(second, &[(1, "a"), (2, "b")]);
        let found = held(&[stuck(1), stuck(3), stuck(5)]);
        assert_eq!(found.len(), 2);
        assert!(
            found[0].ends_with("ReentrantLock$NonfairSync@a at Shop.pay"),
            "{}",
            found[0]
        );
        assert_eq!(held(&[stuck(1), stuck(5)]).len(), 0, "two are too few");
        assert_eq!(held(&[stuck(1), stuck(1), stuck(1)]).len(), 0, "one moment");
        let more = file(5, &[(1, "a"), (2, "b"), (3, "b")]);
        assert_eq!(
            held(&[stuck(1), stuck(3), more]).len(),
            2,
            "others may join"
        );
        let passed = [
            file(1, &[(1, "a"), (2, "a")]),
            file(3, &[(2, "a"), (3, "a")]),
            file(5, &[(3, "a")]),
        ];
        assert_eq!(held(&passed).len(), 0, "thread 1 got it");
        assert_eq!(held(&[]).len(), 0);
    }

    /// As JDK 21 to 24 write it.
    fn without_states(second: u32, waiting: &[u64]) -> Dump {
        let waiting: Vec<(u64, &str)> = waiting.iter().map(|id| (*id, "a")).collect();
        let mut dump = file(second, &waiting);
        for thread in &mut dump.threads {
            thread.state = None;
            thread.wait = None;
        }
        dump
    }

    #[test]
    fn threads_that_stay_at_a_lock_without_a_name_never_got_it() {
        let stuck = |dumps: &[Dump]| {
            let graphs: Vec<Graph<'_>> = dumps.iter().map(Graph::of).collect();
            Graph::never_got_it(&graphs.iter().collect::<Vec<_>>())
        };
        let two = |second| without_states(second, &[1, 2]);
        let found = stuck(&[two(1), two(3), two(5)]);
        assert_eq!(found.len(), 2);
        assert!(found[0].ends_with(" at Shop.pay"), "{}", found[0]);
        assert_eq!(stuck(&[two(1), two(5)]).len(), 0, "two are too few");
        assert_eq!(stuck(&[two(1), two(1), two(1)]).len(), 0, "one moment");
        let mut moved = two(3);
        moved.threads[0].frames[2] = "Shop.refund(Shop.java:80)".into();
        assert_eq!(stuck(&[two(1), moved, two(5)]).len(), 1, "thread 1 moved");
        let gone = without_states(5, &[1]);
        assert_eq!(stuck(&[two(1), two(3), gone]).len(), 1, "thread 2 got it");
        // Where dumps name the lock, they are compared by it.
        let named = |second| file(second, &[(1, "a"), (2, "b")]);
        assert_eq!(stuck(&[named(1), named(3), named(5)]).len(), 0);
    }
}
