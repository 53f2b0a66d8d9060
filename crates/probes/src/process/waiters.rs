//! In which functions threads wait for a contended userspace lock.
//!
//! The stacks of some of them are copied right after the last sample, and kept in it as one more file of each thread: the names of its functions,
//! the innermost first, a line each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::of_threads;
use super::waits::{Locks, Samples, samples};
use crate::capture::{Capture, Raw};
use crate::{Window, enter};

/// The file of a thread with the names of its functions.
pub(crate) const STACK: &str = "user_stack";

/// Locks whose waiters are sought: those of so many processes.
const MOST_LOCKS: usize = 8;
/// Threads that are tried for each.
const MOST_THREADS: usize = 64;

/// Share of the samples in which two or more threads wait for it, or mean number of waiting threads.
const CONTENDED: f64 = 0.2;

/// Functions that are named, from the one that takes the lock outwards.
const NAMED: usize = 3;
/// Different functions that take the lock.
const PLACES: usize = 2;

/// A lock that threads of a process waited for in many samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContendedLock {
    /// The process.
    pub pid: u32,
    /// Address of the futex.
    pub address: u64,
    /// Threads that were found waiting for it, the latest first; at most 64.
    pub threads: Vec<u32>,
}

/// The contended locks of a capture, one for each process, at most eight: the judged process first, then those with most waiting threads.
pub fn contended_locks(capture: &Capture) -> Vec<ContendedLock> {
    let (processes, _) = samples(&Window::of(capture));
    let judged = capture.process.as_ref().map(|process| process.pid);
    let mut locks: Vec<(f64, ContendedLock)> = processes
        .iter()
        .filter_map(|(pid, samples)| contended(*pid, samples))
        .collect();
    locks.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    // Stable: the others keep their order.
    locks.sort_by_key(|(_, lock)| Some(lock.pid) != judged);
    locks.truncate(MOST_LOCKS);
    locks.into_iter().map(|(_, lock)| lock).collect()
}

/// The most contended lock of a process, with the mean number of waiting threads.
fn contended(pid: u32, samples: &[(usize, Locks<'_>)]) -> Option<(f64, ContendedLock)> {
    let mut waits: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (address, threads) in samples.iter().flat_map(|(_, locks)| locks) {
        let (often, all) = waits.entry(*address).or_default();
        *often += usize::from(threads.len() > 1);
        *all += threads.len();
    }
    let least = CONTENDED * samples.len() as f64;
    let contended = waits.into_iter();
    let contended = contended
        .filter(|(_, (often, all))| *often > 0 && (*often as f64 >= least || *all as f64 >= least));
    let (address, (_, all)) = contended.max_by_key(|(_, (_, all))| *all)?;
    let latest = samples
        .iter()
        .rev()
        .filter_map(|(_, locks)| locks.get(&address));
    let mut threads: Vec<u32> = Vec::new();
    for thread in latest.flatten().filter_map(|thread| thread.parse().ok()) {
        if threads.len() == MOST_THREADS {
            break;
        }
        if !threads.contains(&thread) {
            threads.push(thread);
        }
    }
    let lock = ContendedLock {
        pid,
        address,
        threads,
    };
    Some((all as f64 / samples.len() as f64, lock))
}

/// Keeps the functions of a waiting thread, the innermost first.
pub fn keep_stack(capture: &mut Capture, pid: u32, thread: u32, functions: &[String]) {
    if let Some(last) = capture.moments.last_mut() {
        let path = format!("/proc/{pid}/task/{thread}/{STACK}");
        last.files.insert(path, Raw::Text(functions.join("\n")));
    }
}

/// How threads came to the function that takes the lock: callers, and how many threads.
type Ways<'a> = BTreeMap<Vec<&'a str>, usize>;

/// Where the threads wait, by function, most first.
pub(super) fn functions(window: &Window<'_>, evidence: &mut Evidence, read: &Samples<'_>) {
    let mut processes: BTreeMap<u32, BTreeMap<&str, Ways<'_>>> = BTreeMap::new();
    let mut lost: BTreeMap<u32, usize> = BTreeMap::new();
    let last = window.moments().last();
    for (pid, _, text) in last.into_iter().flat_map(|last| of_threads(last, STACK)) {
        let named = named(text);
        let Some((function, callers)) = named.split_first() else {
            *lost.entry(pid).or_default() += 1;
            continue;
        };
        let ways = processes
            .entry(pid)
            .or_default()
            .entry(function)
            .or_default();
        *ways.entry(callers.to_vec()).or_default() += 1;
    }
    for (pid, samples) in read {
        let subject = || Subject::new(Kind::Process, pid);
        let of_lock = contended(*pid, samples).map_or_else(String::new, |(_, lock)| {
            format!(" of threads in futex({:#x})", lock.address)
        });
        let source = format!("/proc/{pid}/{{maps,mem,task/*/syscall}}");
        let keys = [&keys::LOCK_USER_FUNCTION, &keys::LOCK_USER_FUNCTIONS];
        let Some(functions) = processes.remove(pid) else {
            let why = if of_lock.is_empty() {
                Absence::none(
                    "no lock had two waiting threads in a fifth of the samples, or a fifth of a thread on average",
                )
            } else {
                Absence::because("at the end of the window no stack of a thread that waits for the lock was read, or it could not be followed")
                    .remedy(format!("run `rungwise profile --pid {pid} --event off-cpu`"))
            };
            for key in keys {
                let origin = Origin::new(&source, String::new());
                enter::absent(evidence, key, subject(), why.clone(), origin);
            }
            continue;
        };
        let mut places: Vec<(usize, &str, Ways<'_>)> = functions
            .into_iter()
            .map(|(function, ways)| (ways.values().sum(), function, ways))
            .collect();
        places.sort_by_key(|(count, function, _)| (Reverse(*count), *function));
        let lost = lost.get(pid).copied().unwrap_or(0);
        let all = lost + places.iter().map(|(count, ..)| count).sum::<usize>();
        let mut named: Vec<String> = places.iter().take(PLACES).map(in_words).collect();
        if lost > 0 {
            named.push(format!("{lost} that cannot be followed"));
        }
        let origin = || Origin::new(&source, format!("{all} stacks{of_lock}"));
        let words = format!("of {all}: {}", named.join("; "));
        evidence.text(&keys::LOCK_USER_FUNCTIONS, subject(), words, origin());
        // A majority, of few stacks all.
        let most = places.first().filter(|(count, function, _)| {
            (2 * count > all && all > 2 || *count == all) && !function.starts_with('[')
        });
        let place = most.map(|(_, function, _)| *function).ok_or_else(|| {
            Absence::none("its threads wait in several functions, or in one without a name")
        });
        enter::text(
            evidence,
            &keys::LOCK_USER_FUNCTION,
            subject(),
            place,
            origin(),
        );
    }
}

/// A function with the callers through which most threads came.
fn in_words((count, function, ways): &(usize, &str, Ways<'_>)) -> String {
    let most = ways
        .iter()
        .max_by_key(|(callers, count)| (**count, Reverse(*callers)));
    match most {
        Some((callers, _)) if !callers.is_empty() => {
            format!("{count} in {function}, called by {}", callers.join(" < "))
        }
        _ => format!("{count} in {function}"),
    }
}

/// The function that takes the lock and its callers, without those of the lock itself and those that begin a thread. One without a name has that
/// of its file, in brackets; nothing where none has a name.
fn named(text: &str) -> Vec<&str> {
    let functions = text
        .lines()
        .take_while(|name| !begins_a_thread(name))
        .skip_while(|name| is_of_a_lock(name) || is_of_libc(name))
        .take_while(|name| !is_of_libc(name));
    let mut named: Vec<&str> = functions.collect();
    named.dedup();
    named.truncate(NAMED);
    if named.iter().all(|name| name.starts_with('[')) {
        named.truncate(1);
    }
    named
}

/// The C library, without its symbols.
fn is_of_libc(name: &str) -> bool {
    const FILES: [&str; 5] = [
        "[libc.so",
        "[libc-",
        "[libc.musl-",
        "[ld-musl-",
        "[libpthread",
    ];
    FILES.iter().any(|file| name.starts_with(file))
}

/// Functions of libraries in which a lock is taken: of glibc and musl, of the standard libraries of C++ and Rust.
fn is_of_a_lock(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "__lock",
        "__syscall_cp_c",
        "__timedwait",
        "__timedwait_cp",
        "mtx_lock",
        "sccp",
        "syscall",
    ];
    const BEGINS: [&str; 27] = [
        "QBasicMutex::",
        "QMutex::",
        "___futex_",
        "___lll_",
        "___pthread_",
        "__futex_",
        "__gthread_",
        "__lll_",
        "__pthread_",
        "boost::mutex",
        "boost::unique_lock",
        "futex_",
        "pthread_",
        "runtime.futex",
        "runtime.lock",
        "std::__glibcxx_rwlock_",
        "std::__shared_",
        "std::lock<",
        "std::lock_guard",
        "std::mutex",
        "std::recursive_",
        "std::scoped_lock",
        "std::shared_",
        "std::sync::",
        "std::sys::",
        "std::timed_mutex",
        "std::unique_lock",
    ];
    // `<std::sync::Mutex<T>>::lock`, and not `<std::sync::Mutex<T> as app::Store>::get`.
    let plain = name.strip_prefix('<').map_or(name, |of_type| {
        let of_trait = of_type.split_once(" as ").map(|(_, of_trait)| of_trait);
        of_trait.unwrap_or(of_type)
    });
    // Internal aliases of glibc, inline namespaces of libc++.
    let plain = plain.strip_prefix("__GI_").unwrap_or(plain);
    let plain = plain
        .replacen("std::__1::", "std::", 1)
        .replacen("std::__ndk1::", "std::", 1);
    NAMES.contains(&plain.as_str()) || BEGINS.iter().any(|begin| plain.starts_with(begin))
}

/// What every thread begins with.
fn begins_a_thread(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "__clone",
        "__clone3",
        "__libc_start_call_main",
        "__libc_start_main",
        "_start",
        "clone",
        "clone3",
        "execute_native_thread_routine",
        "start_thread",
    ];
    const OF_RUST: [&str; 3] = [
        "core::ops::function::FnOnce::call_once",
        "std::rt::lang_start",
        "std::thread::",
    ];
    NAMES.contains(&name)
        || name.contains("__rust_begin_short_backtrace")
        || OF_RUST.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Moment;

    const WAITS: &str = "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f10";
    const ELSEWHERE: &str = "202 0x66e0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f10";
    const WORKS: &str = "running";

    fn capture(samples: &[&[&str]]) -> Capture {
        let moments = samples.iter().enumerate().map(|(at, threads)| {
            let files = (7..).zip(*threads).map(|(tid, text)| {
                let path = format!("/proc/7/task/{tid}/syscall");
                (path, Raw::Text((*text).to_owned()))
            });
            Moment {
                at_s: at as f64,
                files: files.collect(),
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
        let lock = |threads: &[u32]| ContendedLock {
            pid: 7,
            address: 0x55d0,
            threads: threads.to_vec(),
        };
        let (two, one): (&[&str], &[&str]) = (&[WAITS, WAITS], &[WORKS, WAITS]);
        let contended = |samples: &[&[&str]]| contended_locks(&capture(samples));
        assert_eq!(contended(&[two, one, one, one]), [lock(&[8, 7])]);
        assert_eq!(contended(&[one, one, one, one]), []);
        let none: &[&str] = &[WORKS, WORKS];
        let mut seldom = vec![none; 12];
        seldom[3] = two;
        assert_eq!(contended(&seldom), []);
        seldom[4] = one;
        assert_eq!(contended(&seldom), [lock(&[8, 7])]);
        // One thread waits all the time for another lock.
        let beside: &[&str] = &[WAITS, WAITS, ELSEWHERE];
        let alone: &[&str] = &[WORKS, WORKS, ELSEWHERE];
        assert_eq!(contended(&[beside, alone, alone, alone]), [lock(&[7, 8])]);
    }

    /// What is said of threads with these stacks.
    fn said(stacks: &[&[&str]]) -> (Option<String>, Option<String>) {
        let mut capture = capture(&[&[WAITS, WAITS]]);
        for (thread, stack) in (7..).zip(stacks) {
            let stack: Vec<String> = stack.iter().map(|name| (*name).to_owned()).collect();
            keep_stack(&mut capture, 7, thread, &stack);
        }
        let evidence = crate::evidence(&capture);
        let subject = Subject::new(Kind::Process, 7);
        let words = |key| {
            let words = evidence.words(key, &subject).ok();
            words.map(|words| words.value.to_owned())
        };
        (
            words(&keys::LOCK_USER_FUNCTION),
            words(&keys::LOCK_USER_FUNCTIONS),
        )
    }

    #[test]
    fn the_function_in_which_most_threads_wait_is_named_with_its_callers() {
        let (a, b): (&[&str], &[&str]) = (&["syscall", "a", "serve"], &["syscall", "b", "serve"]);
        let from_elsewhere: &[&str] = &["syscall", "a", "report"];
        let some = |function: Option<&str>, functions: &str| {
            (function.map(str::to_owned), Some(functions.to_owned()))
        };
        let most = some(
            Some("a"),
            "of 4: 3 in a, called by serve; 1 in b, called by serve",
        );
        assert_eq!(said(&[a, b, a, from_elsewhere]), most);
        let tie = some(
            None,
            "of 2: 1 in a, called by serve; 1 in b, called by serve",
        );
        assert_eq!(said(&[a, b]), tie);
        assert_eq!(said(&[a]), some(Some("a"), "of 1: 1 in a, called by serve"));
        let lost: &[&str] = &["syscall"];
        let lost_two = "of 3: 1 in a, called by serve; 2 that cannot be followed";
        assert_eq!(said(&[a, lost, lost]), some(None, lost_two));
        let nameless = some(None, "of 1: 1 in [app]");
        assert_eq!(said(&[&["syscall", "[app]", "[app]"]]), nameless);
        assert_eq!(said(&[]), (None, None));
        assert_eq!(said(&[&["syscall", "[libc.so.6]"]]), (None, None));
    }

    #[test]
    fn functions_of_the_lock_and_of_the_beginning_of_a_thread_are_left_out() {
        let cases: [(&str, &[&str]); 16] = [
            (
                "__lll_lock_wait pthread_mutex_lock count serve start_thread",
                &["count", "serve"],
            ),
            ("[libc.so.6] count serve [libc.so.6]", &["count", "serve"]),
            ("[libc.musl-x86_64.so.1] count", &["count"]),
            ("[libcrypto.so.3] encrypt", &["[libcrypto.so.3]", "encrypt"]),
            ("syscall [unknown] serve", &["[unknown]", "serve"]),
            (
                "pthread_mutex_lock std::mutex::lock Cache<std::mutex>::find",
                &["Cache<std::mutex>::find"],
            ),
            (
                "syscall <std::sys::sync::mutex::futex::Mutex>::lock_contended app::run",
                &["app::run"],
            ),
            (
                "syscall <std::sync::Mutex<u32> as app::Store>::get",
                &["<std::sync::Mutex<u32> as app::Store>::get"],
            ),
            ("syscall my_pthread_pool_run", &["my_pthread_pool_run"]),
            (
                "futex_wait work execute_native_thread_routine start_thread",
                &["work"],
            ),
            ("syscall std::sync::x a b c d", &["a", "b", "c"]),
            (
                "syscall <std::sys::sync::mutex::futex::Mutex>::lock_contended std::sys::backtrace::__rust_begin_short_backtrace core::ops::function::FnOnce::call_once{{vtable.shim}}",
                &[],
            ),
            (
                "syscall app::run std::rt::lang_start::{{closure}} main",
                &["app::run"],
            ),
            (
                "__GI___futex_abstimed_wait64 std::__1::mutex::lock count",
                &["count"],
            ),
            (
                "runtime.futex runtime.futexsleep runtime.lock2 main.work",
                &["main.work"],
            ),
            ("sccp __timedwait pthread_mutex_lock work", &["work"]),
        ];
        for (stack, expected) in cases {
            let text = stack.replace(' ', "\n").replace("\nas\n", " as ");
            assert_eq!(named(&text), expected, "{stack}");
        }
    }
}
