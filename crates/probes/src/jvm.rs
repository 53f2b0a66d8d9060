//! What a running `HotSpot` JVM shows of itself: how much its threads have allocated, and its performance data.
//!
//! The *thread counters* are each thread's own count of what it has allocated (`Thread.print -e`, JDK 11 and later), printed with a unit
//! that grows with the number. They cost a safepoint and disturb nothing; what a thread has allocated is gone with the thread.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rungwise_formats::hsperfdata;
use rungwise_formats::thread_allocation::{self, Thread};
use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::{clock, files};
use rungwise_model::capacity::Estimate;

/// A command that only reads may take this long; a safepoint comes within milliseconds where the machine is not overloaded.
pub const READS_WITHIN: Duration = Duration::from_secs(30);
/// How long threads of the last connections may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Between two samples of them.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Half a width of the interval of many rounded numbers, in standard deviations: 99.7 % of a normal distribution.
const DEVIATIONS: f64 = 3.0;

/// What the thread counters say of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Bytes allocated by the threads that could be seen at its end.
    pub bytes: Estimate,
    /// Threads that ended in it, whose count is lost with them.
    pub lost_threads: u64,
}

/// The thread counters at a moment.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    threads: BTreeMap<u64, Thread>,
    /// Platform threads that were ever started; absent without performance data.
    started: Option<i64>,
    /// The highest number of a thread that was ever seen.
    highest: u64,
}

impl Counters {
    /// Whether all its threads still run.
    fn has_threads_of(&self, later: &Self) -> bool {
        let mut threads = self.threads.keys();
        threads.all(|number| later.threads.contains_key(number))
    }

    /// From this moment to a later one.
    pub fn until(&self, later: &Self) -> Counted {
        let (mut bytes, mut variance, mut most) = (0.0, 0.0, 0.0);
        let mut began = 0;
        let visible = |threads: &BTreeMap<u64, Thread>| {
            let threads = threads.iter().filter(|(_, thread)| !thread.compiles);
            threads.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        for (number, thread) in &later.threads {
            let old = self.threads.get(number);
            if old.is_none() && !thread.compiles {
                began += 1;
            }
            // One that has not run has allocated nothing, however coarse its number.
            if old == Some(thread) {
                continue;
            }
            for (sign, one) in [(1.0, Some(thread)), (-1.0, old)] {
                let Some(one) = one else { continue };
                let room = (one.unit - 1) as f64;
                bytes += sign * (one.allocated as f64 + room / 2.0);
                variance += room * room / 12.0;
                most += room / 2.0;
            }
        }
        let (was, is) = (visible(&self.threads), &later.threads);
        let ended = was.iter().filter(|number| !is.contains_key(number)).count() as u64;
        // Threads that began and ended between the two: counted by the JVM, or by the numbers that it has given.
        let all = match (self.started, later.started) {
            (Some(before), Some(after)) => u64::try_from(after - before).unwrap_or(0),
            _ => later.highest.saturating_sub(self.highest),
        };
        let half = f64::min(most, DEVIATIONS * f64::sqrt(variance));
        Counted {
            bytes: Estimate {
                point: bytes.max(0.0),
                low: (bytes - half).max(0.0),
                high: (bytes + half).max(0.0),
            },
            lost_threads: ended + all.saturating_sub(began),
        }
    }
}

/// Reads the thread counters of one JVM, again and again.
#[derive(Debug)]
pub struct ThreadCounters {
    jvm: Jvm,
    /// The highest number of a thread so far.
    highest: AtomicU64,
}

impl ThreadCounters {
    /// Of this JVM.
    pub fn new(jvm: Jvm) -> Self {
        Self {
            jvm,
            highest: AtomicU64::new(0),
        }
    }

    /// The JVM.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// The counters, once the threads of the last connections have ended: some servers have one for each.
    ///
    /// # Errors
    ///
    /// The JVM does not answer.
    pub fn at_rest(&self) -> Result<Option<Counters>, Error> {
        let began = clock::now();
        let mut last = self.read()?;
        while began.elapsed() < ENDS_WITHIN && last.is_some() {
            std::thread::sleep(LOOK_EVERY);
            let next = self.read()?;
            let same = last
                .zip(next.as_ref())
                .is_some_and(|(last, next)| last.has_threads_of(next));
            last = next;
            if same {
                break;
            }
        }
        Ok(last)
    }

    /// The counters now; `None` for a JVM that does not print them (JDK 8 to 10).
    ///
    /// # Errors
    ///
    /// The JVM does not answer.
    pub fn read(&self) -> Result<Option<Counters>, Error> {
        let text = match self.jvm.command("Thread.print -e", READS_WITHIN) {
            Ok(text) => text,
            // JDK 8: "Unknown argument '-e' in diagnostic command."
            Err(Error::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let threads = thread_allocation::parse(&text);
        let started = performance_numbers(self.jvm.pid())
            .get("java.threads.started")
            .copied();
        let last = threads.last_key_value().map_or(0, |(number, _)| *number);
        let highest = self.highest.fetch_max(last, Ordering::Relaxed).max(last);
        Ok((!threads.is_empty()).then_some(Counters {
            threads,
            started,
            highest,
        }))
    }
}

/// The numbers in the performance data of a process; empty where the JVM has none (`-XX:-UsePerfData`).
pub fn performance_numbers(pid: u32) -> BTreeMap<String, i64> {
    let bytes = performance_bytes(Path::new(&format!("/proc/{pid}")));
    bytes
        .and_then(|bytes| hsperfdata::numbers(&bytes))
        .unwrap_or_default()
}

/// `/tmp/hsperfdata_USER/PID` as the process of this folder of `/proc` sees it: its own `/tmp`, and its own number in its namespace.
pub fn performance_bytes(proc: &Path) -> Option<Vec<u8>> {
    /// The file has 32 KiB unless `-XX:PerfDataMemorySize` says otherwise.
    const MOST: u64 = 1 << 20;
    let status = files::read(&proc.join("status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let number = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .and_then(|numbers| numbers.split_whitespace().next_back())
        .unwrap_or_default();
    let temporary = proc.join("root/tmp");
    files::list(&temporary)
        .unwrap_or_default()
        .iter()
        .filter(|name| name.starts_with("hsperfdata_"))
        .filter_map(|name| files::read_at_most(&temporary.join(name).join(number), MOST).ok())
        .find(|bytes| hsperfdata::texts(bytes).is_some())
}

/// The version of the JDK that this file belongs to, `17.0.15`: `JAVA_VERSION` of the `release` file in one of the folders above it. `root`
/// is where the file's path begins.
pub fn jdk_version(root: &Path, file: &Path) -> Option<String> {
    file.ancestors().skip(1).take(6).find_map(|folder| {
        let path = root.join(folder.strip_prefix("/").ok()?).join("release");
        let text = String::from_utf8(files::read(&path).ok()?).ok()?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        Some(value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(started: Option<i64>, threads: &[(u64, u64, u64, &str)]) -> Counters {
        let thread = |(number, allocated, unit, cpu): &(u64, u64, u64, &str)| {
            let thread = Thread {
                allocated: *allocated,
                unit: *unit,
                compiles: false,
                cpu: (*cpu).to_owned(),
            };
            (*number, thread)
        };
        Counters {
            threads: threads.iter().map(thread).collect(),
            started,
            highest: threads.iter().map(|thread| thread.0).max().unwrap_or(0),
        }
    }

    #[test]
    fn rounded_numbers_give_an_interval_and_threads_that_did_not_run_give_none() {
        const M: u64 = 1 << 20;
        let before = counters(Some(2), &[(1, 100, 1, "1ms"), (2, 200 * M, M, "9ms")]);
        let after = counters(
            Some(3),
            &[
                (1, 300, 1, "2ms"),
                (2, 200 * M, M, "9ms"),
                (3, 50, 1, "1ms"),
            ],
        );
        let counted = before.until(&after);
        assert_eq!(counted.bytes, Estimate::exact(250.0));
        assert_eq!(counted.lost_threads, 0);
        let after = counters(Some(2), &[(1, 100, 1, "1ms"), (2, 203 * M, M, "10ms")]);
        let bytes = before.until(&after).bytes;
        assert!((bytes.point - 3.0 * M as f64).abs() < 1.0, "{bytes:?}");
        // The truth may be anywhere between 2 and 4 MiB.
        assert!(
            bytes.low <= 2.01 * M as f64 && bytes.high >= 3.99 * M as f64,
            "{bytes:?}"
        );
        // Among many threads most errors cancel.
        let many = |of: u64| -> Counters {
            let threads: Vec<_> = (0..400)
                .map(|n| (n, of * M, M, if of > 1 { "2" } else { "1" }))
                .collect();
            counters(Some(400), &threads)
        };
        let bytes = many(1).until(&many(11)).bytes;
        let width = (bytes.high - bytes.low) / bytes.point;
        assert!(width < 0.02, "{width}");
    }

    #[test]
    fn threads_that_ended_are_counted_also_those_that_were_never_seen() {
        let before = counters(Some(10), &[(1, 0, 1, ""), (9, 0, 1, "")]);
        let after = counters(Some(17), &[(1, 0, 1, ""), (20, 5, 1, "")]);
        // Thread 9, and six of the seven that were started.
        assert_eq!(before.until(&after).lost_threads, 7);
        // Without performance data by their numbers: 10 to 19.
        let (before, after) = (
            Counters {
                started: None,
                ..before
            },
            Counters {
                started: None,
                ..after
            },
        );
        assert_eq!(before.until(&after).lost_threads, 11);
    }
}
