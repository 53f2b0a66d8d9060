//! The generator's clock: `CLOCK_MONOTONIC` in nanoseconds, the scale on which the kernel sleeps.
//!
//! A bare integer, because slots, schedules and histograms do nothing but subtract; on this clock a read
//! costs about 25 ns through the vDSO.
#![expect(unsafe_code, reason = "clock_gettime and clock_nanosleep")]

use libc::{CLOCK_MONOTONIC, TIMER_ABSTIME, clockid_t, timespec};

/// Nanoseconds per second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Now.
#[inline]
pub(crate) fn now_ns() -> u64 {
    read_ns(CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux")
}

/// Reads any clock; absent where it does not exist (any more).
#[inline]
pub(crate) fn read_ns(clock: clockid_t) -> Option<u64> {
    let mut time = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that the call fills.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (failed == 0).then(|| time.tv_sec as u64 * SECOND + time.tv_nsec as u64)
}

/// Milliseconds since 1970, as users read clocks.
pub(crate) fn wall_ms() -> u64 {
    read_ns(libc::CLOCK_REALTIME).unwrap_or(0) / 1_000_000
}

/// Days since 1970-01-01 of a date of the Gregorian calendar (Hinnant, chrono-compatible low-level date algorithms).
pub(crate) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Sleeps until `deadline`; a signal may end it early, so callers look at the clock again.
pub(crate) fn sleep_until(deadline_ns: u64) {
    let time = timespec_of(deadline_ns);
    // SAFETY: `time` is a valid timespec; no remainder is asked for.
    unsafe {
        libc::clock_nanosleep(
            CLOCK_MONOTONIC,
            TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// `ns` as the kernel takes it.
pub(crate) fn timespec_of(ns: u64) -> timespec {
    timespec {
        tv_sec: (ns / SECOND).cast_signed(),
        tv_nsec: (ns % SECOND).cast_signed(),
    }
}
