//! Clocks: the monotonic one, the wall clock as text, CPU clocks of processes, and names of runs.
#![expect(
    unsafe_code,
    reason = "CPU clocks of processes have no safe wrapper in std"
)]

use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant, SystemTime};

/// Now on the monotonic clock, for intervals.
pub fn now() -> Instant {
    Instant::now()
}

/// Now as RFC 3339 in UTC to the second: `2026-11-21T13:15:00Z`.
pub fn utc_now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// A moment, given in nanoseconds since 1970, as RFC 3339 in UTC to the millisecond. Nothing before 1970.
pub fn utc(unix_ns: i64) -> Option<String> {
    let since = Duration::from_nanos(u64::try_from(unix_ns).ok()?);
    let at = SystemTime::UNIX_EPOCH.checked_add(since)?;
    Some(humantime::format_rfc3339_millis(at).to_string())
}

/// A name for a run that sorts by time: `20261121T131500Z-3fa9`. The end keeps two runs that began
/// in the same second apart.
pub fn run_id() -> io::Result<String> {
    let mut random = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let stamp = utc_now().replace(['-', ':'], "");
    Ok(format!("{stamp}-{:04x}", u16::from_be_bytes(random)))
}

/// CPU time of another process: all its threads, ended ones included; not its children.
///
/// Exact to the nanosecond and readable for any process that is visible here.
pub fn process_cpu(pid: u32) -> io::Result<Duration> {
    /// `PID_MAX_LIMIT` of the kernel (linux/threads.h).
    const HIGHEST: u32 = 1 << 22;
    // The clock's number holds 29 bits of the pid, and pid 0 in it means the caller: a wrong pid
    // would quietly read our own clock.
    if pid == 0 || pid > HIGHEST {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let mut clock = 0;
    // SAFETY: `clock` outlives the call.
    let error = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    read(clock)
}

/// CPU time of this process: all its threads; not its children.
pub fn own_cpu() -> io::Result<Duration> {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runs_have_a_fixed_shape() {
        let id = run_id().unwrap();
        let (stamp, end) = id.split_once('-').unwrap();
        assert!(
            stamp.len() == 16 && stamp.ends_with('Z') && stamp.as_bytes()[8] == b'T',
            "{id}"
        );
        assert!(
            end.len() == 4 && end.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{id}"
        );
    }

    #[test]
    fn a_moment_is_printed_in_utc() {
        let text = utc(1_795_261_077_369_999_999);
        assert_eq!(text.as_deref(), Some("2026-11-21T11:37:57.369Z"));
        assert_eq!((utc(-1), utc(i64::MAX).is_some()), (None, true));
    }

    #[test]
    fn the_clock_of_our_pid_is_our_own_clock() {
        let before = own_cpu().unwrap();
        let ours = process_cpu(std::process::id()).unwrap();
        assert!(before <= ours && ours <= own_cpu().unwrap());
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_clock() {
        for pid in [0, 1 << 22, u32::MAX / 2, u32::MAX] {
            assert!(process_cpu(pid).is_err(), "{pid}");
        }
    }
}
