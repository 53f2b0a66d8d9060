//! What a JVM is asked while `check` observes its host: three thread dumps spread over the window, and the GC log that it writes.
//!
//! The dumps are taken beside the samples of the host, so that both are of the same seconds: idle CPUs and waiting threads.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use rungwise_host::hotspot::Error;
use rungwise_host::{clock, files, process};
use rungwise_model::check::CheckedJvm;
use rungwise_model::evidence::{Absence, Evidence};
use rungwise_model::keys;
use rungwise_probes::capture::Process;
use rungwise_threaddump::{Stages, evidence, summary_by};

use super::gc;
use super::live::Taker;
use crate::check::join;

/// Dumps in the window: three distinguish a queue from chance.
const DUMPS: u32 = 3;
/// How long the search for owners of `ReentrantLock`s may stop the JVM. A check is made on services in production, so this is short.
const LONGEST: Duration = Duration::from_millis(50);

/// A JVM that is asked meanwhile.
#[derive(Debug)]
pub(crate) enum Watch {
    /// It takes commands.
    Asked {
        pid: u32,
        log: Option<Log>,
        stop: mpsc::Sender<()>,
        thread: JoinHandle<(Taker, Option<String>)>,
    },
    /// It does not.
    Refused { log: Option<Log>, why: String },
}

/// The GC log that it writes.
#[derive(Debug)]
pub(crate) struct Log {
    /// As the JVM names it.
    name: PathBuf,
    /// Where we can open it.
    path: PathBuf,
    /// Its length at the start of the window.
    from: u64,
}

impl Watch {
    /// Starts to ask process `pid` for this time; nothing where it is no JVM.
    pub(crate) fn start(pid: u32, window: Duration) -> Option<Self> {
        let log = || log_of(pid);
        let taker = match Taker::open(pid, LONGEST) {
            Ok(taker) => taker,
            // The check says what became of the process.
            Err(Error::NotJvm { .. } | Error::NativeImage { .. } | Error::NoProcess { .. }) => {
                return None;
            }
            Err(error) => {
                let why = error.to_string();
                return Some(Self::Refused { log: log(), why });
            }
        };
        let log = log();
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("dumps".to_owned())
            .spawn(move || dumps(taker, window, &stopped));
        Some(match thread {
            Ok(thread) => Self::Asked {
                pid,
                log,
                stop,
                thread,
            },
            Err(error) => Self::Refused {
                log,
                why: format!("cannot start a thread that takes dumps: {error}"),
            },
        })
    }

    /// Ends it, and adds what it found.
    pub(crate) fn end(self, evidence: &mut Evidence, judged: Option<&Process>) -> CheckedJvm {
        let mut found = CheckedJvm::default();
        let log = match self {
            Self::Refused { log, why } => {
                no_dumps(evidence, &mut found, &why);
                log
            }
            Self::Asked {
                pid,
                log,
                stop,
                thread,
            } => {
                drop(stop);
                match thread.join() {
                    Ok((taker, why)) => add(evidence, &mut found, taker, why, judged),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
                debug_assert!(judged.is_none_or(|judged| judged.pid == pid));
                log
            }
        };
        if let Some(log) = log {
            log.add(evidence, &mut found);
        }
        found
    }
}

/// Takes dumps in the middle of each third of the window, until it is over or nobody waits for them.
fn dumps(
    mut taker: Taker,
    window: Duration,
    stopped: &mpsc::Receiver<()>,
) -> (Taker, Option<String>) {
    let began = clock::now();
    let count = if window.is_zero() { 1 } else { DUMPS };
    for number in 0..count {
        let due = began + window * (2 * number + 1) / (2 * DUMPS);
        let within = due.saturating_duration_since(clock::now());
        if stopped.recv_timeout(within) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        if let Err(error) = taker.take() {
            let why = format!("dump {} of {count} is missing: {error}", number + 1);
            return (taker, Some(why));
        }
    }
    (taker, None)
}

fn add(
    all: &mut Evidence,
    found: &mut CheckedJvm,
    taker: Taker,
    why: Option<String>,
    judged: Option<&Process>,
) {
    if taker.count() == 0 {
        let why = why.unwrap_or_else(|| "the window ended before the first dump".to_owned());
        no_dumps(all, found, &why);
        return;
    }
    let shots = taker.finish();
    let summary = summary_by(shots.dumps, &Stages::default());
    join(all, &evidence(&summary), judged);
    found.notes.extend(shots.notes);
    let ownerless = shots.ownerless.filter(|_| summary.lacks_owners());
    found.notes.extend(ownerless);
    found.notes.extend(why);
    found.taken = Some(shots.taken);
    found.times = summary.times;
    found.stages = summary.stages;
}

/// Rules that need dumps say why there are none.
fn no_dumps(evidence: &mut Evidence, found: &mut CheckedJvm, why: &str) {
    let absence = Absence::because(why);
    evidence.absent(&[&keys::JVM_LOCK_WAITING], &absence, "Thread.print");
    found.notes.push(format!("no thread dumps: {why}"));
}

/// The first file that the JVM writes and that is a GC log by its text.
fn log_of(pid: u32) -> Option<Log> {
    let written = process::written_files(pid).ok()?;
    let mut logs = written.into_iter().filter(|(_, path)| gc::is_log(path));
    let (name, path) = logs.next()?;
    let from = files::open(&path).ok()?.metadata().ok()?.len();
    Some(Log { name, path, from })
}

impl Log {
    fn add(self, all: &mut Evidence, found: &mut CheckedJvm) {
        let name = self.name.display().to_string();
        match gc::since(&self.path, self.from) {
            Ok(Some(summary)) => {
                for reading in rungwise_gclog::evidence(&summary).readings() {
                    all.add(reading.clone());
                }
            }
            Ok(None) => found
                .notes
                .push(format!("{name}: no collection in the window")),
            Err(error) => found.notes.push(format!("{name}: {error:#}")),
        }
        found.gc_log = Some(name);
    }
}
