//! What a thread of a load asks of the kernel: a CPU of its own, its CPU clock, sharp timers, enough open files.
#![expect(
    unsafe_code,
    reason = "affinity, clocks and limits that std does not reach"
)]

use std::io;
use std::mem::size_of;

use libc::c_int;

use crate::Error;

/// Makes sure that `needed` descriptors fit, raising the soft limit to the hard one if that helps.
pub(super) fn reserve_files(needed: u64) -> Result<(), Error> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid rlimit to fill.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0
        || needed <= limit.rlim_cur
    {
        return Ok(());
    }
    let raised = libc::rlimit {
        rlim_cur: limit.rlim_max,
        ..limit
    };
    // SAFETY: `raised` is a valid rlimit to read.
    if needed <= limit.rlim_max
        && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0
    {
        return Ok(());
    }
    Err(Error::FileLimit {
        needed,
        limit: limit.rlim_max,
    })
}

/// Binds the calling thread to one CPU.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a cpu_set_t is plain bits; `cpu` is below its size.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    check(failed)
}

/// Lets timers of the calling thread fire when they are due: the default allows 50 us more.
pub(crate) fn no_timer_slack() {
    // SAFETY: no pointers are passed; a refusal costs accuracy only, and late sends are counted.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// The CPU clock of the calling thread, readable by its siblings, and its thread id.
pub(crate) fn own_cpu_clock() -> io::Result<(libc::clockid_t, libc::pid_t)> {
    let mut clock = 0;
    // SAFETY: `clock` is valid to fill; the calling thread exists.
    let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: no arguments, cannot fail.
    Ok((clock, unsafe { libc::gettid() }))
}

/// Nanoseconds that a thread of this process waited on a run queue; absent without schedstats.
#[expect(
    clippy::disallowed_methods,
    reason = "the generator watches itself; it may not depend on the host crate"
)]
pub(crate) fn run_delay_ns(tid: libc::pid_t) -> Option<u64> {
    // `/proc/self/task/TID/schedstat`: time on CPU, time waiting, slices
    // (Documentation/scheduler/sched-stats).
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The result of a system call that returns 0 or -1.
pub(crate) fn check(result: c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_sockets_than_files_are_refused_with_the_remedy() {
        // No kernel allows so many (sysctl fs.nr_open ends below).
        let error = reserve_files(1 << 40).unwrap_err();
        assert!(matches!(error, Error::FileLimit { .. }), "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }
}
