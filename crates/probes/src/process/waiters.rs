//! In which functions threads wait for a contended userspace lock.
//!
//! Their user stacks are read once, right after the last sample, and kept in it as one more file of each thread: the names of the functions, the
//! innermost first, a line each.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::of_threads;
use super::waits::{Locks, samples};
use crate::Window;
use crate::capture::{Capture, Raw};

/// The file of a thread with the names of its functions.
const STACK: &str = "user_stack";

/// Locks whose waiters are sought: those of so many processes.
const MOST_LOCKS: usize = 8;

/// Share of the samples in which two or more threads wait for it.
const CONTENDED: f64 = 0.2;

/// Functions that are named, from the one that takes the lock outwards.
const CALLERS: usize = 3;

/// Groups of threads that are named.
const GROUPS: usize = 2;

/// A lock that threads of a process waited for in many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContendedLock {
    /// The process.
    pub pid: u32,
    /// Address of the futex.
    pub address: u64,
}

/// The contended locks of a capture, one for each process.
pub fn contended_locks(capture: &Capture) -> Vec<ContendedLock> {
    let (processes, _) = samples(&Window::of(capture));
    let of_process = |(pid, samples): (u32, Vec<(usize, Locks<'_>)>)| {
        let mut waits: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (address, threads) in samples.iter().flat_map(|(_, locks)| locks) {
            let (often, all) = waits.entry(*address).or_default();
            *often += usize::from(threads.len() > 1);
            *all += threads.len();
        }
        let (address, (often, all)) = waits.into_iter().max_by_key(|(_, (_, all))| *all)?;
        let is_contended = often as f64 >= CONTENDED * samples.len() as f64 && often > 0;
        is_contended.then_some((all, ContendedLock { pid, address }))
    };
    let mut locks: Vec<_> = processes.into_iter().filter_map(of_process).collect();
    locks.sort_by_key(|(all, _)| std::cmp::Reverse(*all));
    locks.truncate(MOST_LOCKS);
    locks.into_iter().map(|(_, lock)| lock).collect()
}

/// Keeps the functions of a waiting thread, the innermost first.
pub fn keep_stack(capture: &mut Capture, pid: u32, thread: u32, functions: &[String]) {
    if let Some(last) = capture.moments.last_mut() {
        let path = format!("/proc/{pid}/task/{thread}/{STACK}");
        last.files.insert(path, Raw::Text(functions.join("\n")));
    }
}

/// Where the threads wait, by function, most first.
pub(super) fn functions(window: &Window<'_>, evidence: &mut Evidence) {
    let Some(last) = window.moments().last() else {
        return;
    };
    let mut processes: BTreeMap<u32, BTreeMap<Vec<&str>, usize>> = BTreeMap::new();
    for (pid, _, text) in of_threads(last, STACK) {
        let callers = callers(text);
        if !callers.is_empty() {
            *processes
                .entry(pid)
                .or_default()
                .entry(callers)
                .or_default() += 1;
        }
    }
    for (pid, groups) in processes {
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let all: usize = groups.iter().map(|(_, count)| count).sum();
        let named: Vec<String> = groups
            .iter()
            .take(GROUPS)
            .map(|(functions, count)| match functions.split_first() {
                Some((first, callers)) if !callers.is_empty() => {
                    format!("{count} in {first}, called by {}", callers.join(" < "))
                }
                _ => format!("{count} in {}", functions.join("")),
            })
            .collect();
        let origin = Origin::new(
            format!("/proc/{pid}/{{mem,task/*/syscall}}"),
            format!("user stacks of {all} threads that wait for it, read at the end of the window"),
        );
        let subject = Subject::new(Kind::Process, pid);
        evidence.text(
            &keys::LOCK_USER_FUNCTIONS,
            subject,
            named.join("; "),
            origin,
        );
    }
}

/// The function that takes the lock and its callers, without those of the lock itself and those that begin a thread. One without a name has that
/// of its file, in brackets.
fn callers(text: &str) -> Vec<&str> {
    const BEGIN: [&str; 4] = ["start_thread", "clone", "__clone", "clone3"];
    let functions = text
        .lines()
        .skip_while(|name| is_of_a_lock(name))
        .take_while(|name| !BEGIN.contains(name));
    let mut callers: Vec<&str> = functions.collect();
    callers.dedup();
    callers.truncate(CALLERS);
    callers
}

/// Functions of libraries in which a lock is taken: of glibc and musl, of the standard libraries of C++ and Rust.
fn is_of_a_lock(name: &str) -> bool {
    const PARTS: [&str; 8] = [
        "futex",
        "lll_lock",
        "mutex_lock",
        "pthread_",
        "std::mutex",
        "std::shared_mutex",
        "std::sync::",
        "std::sys::",
    ];
    const FILES: [&str; 4] = ["[libc", "[libpthread", "[ld-musl", "[unknown"];
    let is_wrapper = ["syscall", "__lock", "__timedwait", "__timedwait_cp"].contains(&name);
    is_wrapper
        || FILES.iter().any(|file| name.starts_with(file))
        || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Moment;

    const WAITS: &str = "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f10";
    const WORKS: &str = "running";

    fn capture(samples: &[[&str; 2]]) -> Capture {
        let moments = samples.iter().enumerate().map(|(at, [one, other])| {
            let files = [(7, one), (8, other)].map(|(tid, text)| {
                let path = format!("/proc/7/task/{tid}/syscall");
                (path, Raw::Text((*text).to_owned()))
            });
            Moment {
                at_s: at as f64,
                files: files.into(),
                ..Moment::default()
            }
        });
        Capture {
            moments: moments.collect(),
            ..Capture::default()
        }
    }

    #[test]
    fn a_lock_with_two_waiters_in_a_fifth_of_the_samples_is_contended() {
        let lock = ContendedLock {
            pid: 7,
            address: 0x55d0,
        };
        let (two, one) = ([WAITS, WAITS], [WAITS, WORKS]);
        assert_eq!(contended_locks(&capture(&[two, one, one, one])), [lock]);
        assert_eq!(contended_locks(&capture(&[one, one, one, one])), []);
        let seldom = [two, one, one, one, one, one];
        assert_eq!(contended_locks(&capture(&seldom)), []);
    }

    #[test]
    fn the_function_that_takes_the_lock_is_named_and_those_of_libraries_are_not() {
        let mut capture = capture(&[[WAITS, WAITS]]);
        let stack = [
            "[libc.so.6]",
            "pthread_mutex_lock",
            "count",
            "[app]",
            "[app]",
            "start_thread",
        ];
        for thread in [7, 8] {
            keep_stack(&mut capture, 7, thread, &stack.map(str::to_owned));
        }
        keep_stack(
            &mut capture,
            7,
            9,
            &["std::sys::sync::mutex::lock".to_owned()],
        );
        let evidence = crate::evidence(&capture);
        let subject = Subject::new(Kind::Process, 7);
        let words = evidence
            .words(&keys::LOCK_USER_FUNCTIONS, &subject)
            .unwrap();
        assert_eq!(words.value, "2 in count, called by [app]");
    }
}
