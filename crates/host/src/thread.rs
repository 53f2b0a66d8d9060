//! The CPUs that a thread of another process may use (`sched_setaffinity(2)`), and the files that a process may have open
//! (`prlimit(2)`).
//!
//! Reading needs nothing here: `Cpus_allowed_list` in `/proc/PID/task/TID/status` and `/proc/PID/limits` contain both.
#![expect(unsafe_code, reason = "sched_setaffinity has no safe wrapper in std")]

use std::io;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Lets thread `tid` run on `cpus` only. The kernel leaves out CPUs that the thread's cpuset does not have.
pub(crate) fn pin(tid: u32, cpus: &[usize]) -> io::Result<()> {
    const BITS: usize = usize::BITS as usize;
    let tid = libc::pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // A mask as long as the highest CPU needs; cpu_set_t ends at 1024.
    let mut mask = vec![0_usize; cpus.iter().max().map_or(1, |last| last / BITS + 1)];
    for cpu in cpus {
        mask[cpu / BITS] |= 1 << (cpu % BITS);
    }
    // SAFETY: the pointer and the length are those of `mask`, which the kernel only reads; it takes
    // masks of any length in words.
    let result =
        unsafe { libc::sched_setaffinity(tid, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets both limits of open files of a process.
pub(crate) fn limit_open_files(pid: u32, soft: u64, hard: u64) -> io::Result<()> {
    // 0 would mean the caller.
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let new = Rlimit {
        current: Some(soft),
        maximum: Some(hard),
    };
    prlimit(Some(pid), Resource::Nofile, new)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.unwrap().trim().to_owned()
    }

    #[test]
    fn a_thread_is_pinned_to_one_of_its_cpus_and_no_cpu_at_all_is_refused() {
        std::thread::spawn(|| {
            let first: usize = allowed().split([',', '-']).next().unwrap().parse().unwrap();
            // 0 is the calling thread.
            pin(0, &[first]).unwrap();
            assert_eq!(allowed(), first.to_string());
            let error = pin(0, &[]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_does_not_exist_is_an_error() {
        assert!(pin(u32::MAX, &[0]).is_err());
    }
}
