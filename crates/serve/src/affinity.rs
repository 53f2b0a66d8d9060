//! CPUs: which ones a thread may use, where it runs, how long it ran.
#![expect(
    unsafe_code,
    reason = "sched_setaffinity and thread clocks have no wrapper in std"
)]

use std::io;

/// CPUs that the calling thread may use, ascending.
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` has the size given.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every index is below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Confines the calling thread to one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: an all-zero cpu_set_t is the empty set, and `cpu` is below CPU_SETSIZE.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: `set` has the size given.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPU that the calling thread runs on: no system call, glibc reads it from the thread's rseq area or the vDSO.
pub(crate) fn current() -> usize {
    // SAFETY: takes nothing, returns a number.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(usize::MAX)
}

/// CPUs are numbered below this.
pub(crate) fn count() -> usize {
    // SAFETY: takes and returns a number.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(configured).unwrap_or(1).max(1)
}

/// Id of the calling thread.
pub(crate) fn thread_id() -> libc::pid_t {
    // SAFETY: takes nothing, returns a number.
    unsafe { libc::gettid() }
}

/// CPU time of a thread of this process, nanoseconds; nothing if it is gone.
pub(crate) fn thread_cpu_ns(thread: libc::pid_t) -> Option<u64> {
    // The clock of a thread by its id: `CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD_MASK`, include/linux/posix-timers.h.
    let clock = (!thread << 3) | 2 | 4;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing.
    let known = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    known.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_where_it_was_pinned() {
        std::thread::spawn(|| {
            let last = *allowed().unwrap().last().unwrap();
            pin(last).unwrap();
            assert_eq!(allowed().unwrap(), [last]);
            assert_eq!(current(), last);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        assert!(pin(1023).is_err());
        assert!(pin(usize::MAX).is_err());
    }

    #[test]
    fn a_thread_has_a_clock_and_a_stranger_has_none() {
        assert!(thread_cpu_ns(thread_id()).is_some());
        // Above the largest process id a kernel hands out (PID_MAX_LIMIT, 2^22).
        assert_eq!(thread_cpu_ns(1 << 23), None);
    }
}
