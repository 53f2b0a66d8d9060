//! `/proc/PID/task/TID/syscall`: the system call that a thread sleeps in, with its arguments.
//!
//! `202 0x7f10 0x80 0x2 ...` number and six arguments, `running`, or `-1` and two registers for a thread that sleeps outside a
//! system call (fs/proc/base.c `proc_pid_syscall`, Linux 6.18). Numbers differ by architecture.

/// A wait in futex(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexWait {
    /// Address of the word.
    pub address: u64,
    /// The word is a held lock, not a condition, a semaphore or an empty queue.
    pub is_lock: bool,
    /// The wait ends after a given time, whether it is woken or not.
    pub is_timed: bool,
}

/// Numbers of futex: x86-64; arm64, riscv64 and loongarch64; s390x; ppc64.
const FUTEX: [u64; 4] = [202, 98, 238, 221];

/// The wait for a futex, if the thread is in one.
///
/// Number 202 is accept on arm64. Its second argument is an address or zero, and the third too, so neither passes for an
/// operation on a held lock.
pub fn futex_wait(text: &str) -> Option<FutexWait> {
    let mut words = text.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (address, operation, value) = (argument()?, argument()?, argument()?);
    let is_timed = argument().is_some_and(|timeout| timeout != 0);
    // Flags: private 128, realtime clock 256. FUTEX_WAIT 0, LOCK_PI 6, WAIT_BITSET 9, LOCK_PI2 13.
    let is_wait = operation < 512 && matches!(operation & 127, 0 | 6 | 9 | 13);
    if !FUTEX.contains(&number) || !is_wait {
        return None;
    }
    // The word while a lock is held and waited for. glibc: 2 for a mutex (lowlevellock.h), 2 and 3 for a rwlock
    // (pthread_rwlock_common.c). Rust: 2 for a Mutex, bit 30 for the readers of an RwLock (sys/sync/rwlock/futex.rs). musl: the sign bit. An
    // empty condition or semaphore has 0 there; a condition of glibc 2.41 and later has a counter, so that a wait with a time limit is one for a
    // lock only with 2 or 3.
    let value = value as u32;
    let is_flagged = value & 0xc000_0000 != 0 && !is_timed;
    let is_lock = matches!(operation & 127, 6 | 13) || matches!(value, 2 | 3) || is_flagged;
    Some(FutexWait {
        address,
        is_lock,
        is_timed,
    })
}

/// The thread sleeps in fsync(2), fdatasync(2), `sync_file_range(2)`, syncfs(2) or msync(2).
///
/// Under the other architecture's numbers there are rename, mkdir, signalfd4 and vmsplice, in which no thread sleeps for long.
pub fn syncs(text: &str) -> bool {
    // x86-64; arm64, riscv64 and loongarch64.
    const SYNC: [&str; 10] = [
        "74", "75", "277", "306", "26", "82", "83", "84", "267", "227",
    ];
    let number = text.split_ascii_whitespace().next();
    number.is_some_and(|number| SYNC.contains(&number))
}

/// The thread is in a system call that changes a file or a folder: write(2) and its like, renameat(2), unlink(2), ftruncate(2). rename(2)
/// of x86-64 has the number of fsync(2) of arm64, and is none here.
pub fn writes(text: &str) -> bool {
    // x86-64; then write, writev and pwrite64 of arm64, riscv64 and loongarch64.
    const WRITE: [&str; 14] = [
        "1", "18", "20", "296", "328", "264", "316", "87", "263", "76", "77", "64", "66", "68",
    ];
    let number = text.split_ascii_whitespace().next();
    number.is_some_and(|number| WRITE.contains(&number))
}

/// A kernel function in which a thread waits that wants to change a frozen file system (`sb_start_write` of include/linux/fs.h): of Linux
/// 5.7 and later, of 4.9 and later, and of those before.
pub fn waits_for_thaw(function: &str) -> bool {
    [
        "percpu_rwsem_wait",
        "__percpu_down_read",
        "__sb_start_write",
    ]
    .contains(&function.trim())
}

/// The thread sleeps in poll(2) or ppoll(2) of one descriptor, as the resolver of glibc does (`resolv/res_send.c`).
pub fn polls_one(text: &str) -> bool {
    // poll: x86-64. ppoll: x86-64; arm64, riscv64 and loongarch64. poll: s390x, ppc64.
    const POLL: [&str; 5] = ["7", "271", "73", "168", "167"];
    let mut words = text.split_ascii_whitespace();
    words.next().is_some_and(|number| POLL.contains(&number)) && words.nth(1) == Some("0x1")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_that_changes_a_file_is_known_by_its_number() {
        assert!(writes("1 0x3 0x7f10 0x64 0x0 0x0 0x0 0x7ffe 0x7f10"));
        for none in [
            "0 0x3 0x7f10 0x64",
            "74 0x3",
            "82 0x3",
            "running",
            "-1 0x1 0x2",
            "",
        ] {
            assert!(!writes(none), "{none}");
        }
    }

    #[test]
    fn a_wait_for_a_flush_is_known_by_its_number() {
        assert!(syncs("75 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f10\n"));
        for none in ["running", "-1 0x7ffe 0x7f10", "7 0x75", ""] {
            assert!(!syncs(none), "{none}");
        }
    }

    #[test]
    fn a_wait_for_a_held_mutex_is_distinguished_from_a_wait_for_work() {
        let is_lock = |text| futex_wait(text).map(|wait| wait.is_lock);
        let mutex = "202 0x55d0 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f10\n";
        assert_eq!(
            futex_wait(mutex),
            Some(FutexWait {
                address: 0x55d0,
                is_lock: true,
                is_timed: false,
            })
        );
        let condition = "202 0x55d0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f10";
        assert_eq!(is_lock(condition), Some(false));
        let python = "202 0x55d0 0x89 0x0 0x7f0c 0x0 0xffffffff 0x7ffe 0x7f10";
        assert!(futex_wait(python).is_some_and(|wait| wait.is_timed && !wait.is_lock));
        let counter = "202 0x55d0 0x89 0x40000001 0x7f0c 0x0 0xffffffff 0x7ffe 0x7f10";
        assert_eq!(is_lock(counter), Some(false));
        let rwlock = "98 0x55d0 0x189 0x3 0x0 0x0 0xffffffff 0x7ffe 0x7f10";
        assert_eq!(is_lock(rwlock), Some(true));
        let readers_of_rust = "202 0x55d0 0x89 0x7fffffff 0x0 0x0 0xffffffff 0x7ffe 0x7f10";
        assert_eq!(is_lock(readers_of_rust), Some(true));
        let accept_on_arm64 = "202 0x3 0xffffc0a8 0xffffc0a4 0x0 0x0 0x0 0xffffc090 0xffff9a";
        assert_eq!(is_lock(accept_on_arm64), None);
        for none in [
            "running",
            "-1 0x7ffe 0x7f10",
            "232 0x5 0x7ffe 0x200 0xffffffff 0x0 0x8 0x7ffe 0x7f10",
            "",
        ] {
            assert_eq!(is_lock(none), None, "{none}");
        }
    }

    #[test]
    fn a_resolver_polls_one_descriptor() {
        assert!(polls_one("7 0x7ffc 0x1 0x1388 0x0 0x0 0x0 0x7ffe 0x7f10"));
        assert!(!polls_one("7 0x7ffc 0x5 0x1388 0x0 0x0 0x0 0x7ffe 0x7f10"));
        assert!(!polls_one(
            "232 0x5 0x1 0x200 0xffffffff 0x0 0x8 0x7ffe 0x7f10"
        ));
        assert!(!polls_one(""));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(202 |98 |0x[0-9a-f]{1,18} |running|.){0,12}") {
            futex_wait(&text);
            polls_one(&text);
        }
    }
}
