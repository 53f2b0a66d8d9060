//! What the garbage collector of the service's JVM did in a run, from a log that the JVM is asked for.
//!
//! After each start of the service its JVM is asked to log into the scratch folder (`VM.log`, JDK 9 and later), so that its command stays as it is and
//! all collectors are seen alike. The length of the log at both edges of the window says which lines belong to a run: a pause counts in the window
//! in which it ends.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rungwise_gclog::{Event, Kind, Parser, Pause};
use rungwise_host::files;
use rungwise_host::hotspot::Jvm;
use rungwise_load::engine::Edge;
use rungwise_model::metric::{
    GC_LONGEST_PAUSE, GC_LONGEST_REMARK, GC_PAUSE_SHARE, GC_PROMOTED_PER_S,
};
use rungwise_model::tune::Run;
use rungwise_probes::jvm::READS_WITHIN;

use super::service::Running;
use crate::metric::OF_GC;
use crate::stage::StageError;

/// In the scratch folder of the service.
const LOG: &str = "rungwise-gc.log";

/// Follows the log of a service's JVM from one start to the next.
#[derive(Debug)]
pub(super) struct Collections {
    wanted: bool,
    /// The process of the service, its JVM, and the log.
    of: Option<(u32, Jvm, PathBuf)>,
    /// A JVM has written a log.
    was_there: bool,
}

impl Collections {
    /// Asks nothing where it is not `wanted`.
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            of: None,
            was_there: false,
        }
    }

    /// Has the JVM of the service that runs now write a log, if that is another one than before.
    pub(super) fn follow(&mut self, running: &Running, scratch: &Path) -> Result<(), StageError> {
        let Some(pid) = running.pid().filter(|_| self.wanted) else {
            return Ok(());
        };
        if let Some((known, jvm, _)) = &self.of
            && *known == pid
            && jvm.is_running()
        {
            return Ok(());
        }
        self.of = None;
        let log = scratch.join(LOG);
        match running.jvm().and_then(|jvm| ask(&jvm, &log).map(|()| jvm)) {
            Ok(jvm) => {
                self.of = Some((pid, jvm, log));
                self.was_there = true;
                Ok(())
            }
            Err(why) => {
                let why = format!(
                    "cannot measure {}: {why}; run the service on JDK 9 or later, or remove these metrics from [objective]",
                    OF_GC.join(", ")
                );
                // Where it could be measured before, the variant is why it no longer can.
                Err(if self.was_there {
                    StageError::Unavailable(why)
                } else {
                    StageError::Precondition(why)
                })
            }
        }
    }

    /// The log of the JVM that runs now, to be cut at the edges of a window.
    pub(super) fn log(&self) -> Option<Log> {
        let (_, _, path) = self.of.as_ref()?;
        Some(Log {
            path: path.clone(),
            edges: Mutex::new([None; 2]),
        })
    }
}

/// Has a JVM log its collections into a file, beside whatever it logs already.
fn ask(jvm: &Jvm, log: &Path) -> Result<(), String> {
    // Without `filecount` the JVM would begin a new file after 20 MB.
    let command = format!(
        "VM.log output=file={} what=gc* decorators=uptime,level,tags output_options=filecount=0",
        log.display()
    );
    let answer = jvm.command(&command, READS_WITHIN);
    let answer = answer.map_err(|error| error.to_string())?;
    if log.exists() {
        Ok(())
    } else {
        Err(format!(
            "the JVM of process {} does not write {}: {}",
            jvm.pid(),
            log.display(),
            answer.trim()
        ))
    }
}

/// A log, and how long it was when a window began and when it ended.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    edges: Mutex<[Option<u64>; 2]>,
}

impl Log {
    /// Notes the length of the log at an edge of the window.
    pub(super) fn at(&self, edge: Edge) {
        let length = self.path.metadata().ok().map(|file| file.len());
        let mut edges = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        match edge {
            Edge::Began => edges[0] = length,
            Edge::Ended => edges[1] = length,
        }
    }

    /// Adds the metrics of the window to its run, or why it has none.
    pub(super) fn put(self, run: &mut Run) {
        let edges = self.edges.into_inner();
        let read = match edges.unwrap_or_else(PoisonError::into_inner) {
            [Some(began), Some(ended)] => files::read(&self.path)
                .map(|text| Seen::between(&text, began, ended))
                .map_err(|error| error.to_string()),
            _ => Err(format!("{} was not there", self.path.display())),
        };
        match read {
            Ok(seen) => {
                let figures = seen.figures(run.cpu.seconds);
                run.metrics
                    .extend(figures.map(|(name, value)| (name.to_owned(), value)));
                if let Some(value) = seen.promoted_per_s(run.cpu.seconds) {
                    run.metrics.insert(GC_PROMOTED_PER_S.to_owned(), value);
                } else {
                    let why = if seen.collections > 0 {
                        "the log of this collector does not say what is promoted"
                    } else {
                        "there was no collection yet, so the log does not say whether it shows what is promoted"
                    };
                    run.unavailable
                        .insert(GC_PROMOTED_PER_S.to_owned(), why.to_owned());
                }
            }
            Err(why) => run
                .unavailable
                .extend(OF_GC.map(|name| (name.to_owned(), why.clone()))),
        }
    }
}

/// What happened within a window.
#[derive(Debug, Default)]
struct Seen {
    paused_ns: u64,
    longest_ns: u64,
    remark_ns: u64,
    promoted: u64,
    /// Collections of the whole log, also before the window.
    collections: u64,
    /// It says of one of them how much it promoted.
    shows_promotion: bool,
    /// Of young collections since the last pause that is not within another.
    within_ns: u64,
}

impl Seen {
    /// Reads what a log says in its bytes from `began` to `ended`. It is parsed from its beginning, since some lines are understood by those before
    /// them.
    fn between(text: &[u8], began: u64, ended: u64) -> Self {
        let end = text.len().min(usize::try_from(ended).unwrap_or(usize::MAX));
        let start = end.min(usize::try_from(began).unwrap_or(usize::MAX));
        let lines = text[..start].split(|byte| *byte == b'\n').count() as u64 - 1;
        let mut seen = Self::default();
        let mut parser = Parser::new();
        let mut sink = |_: &_, event: Event<'_>| match event {
            Event::Pause(pause) => {
                seen.collections += 1;
                seen.shows_promotion |= pause.promoted.is_some();
                if pause.line > lines {
                    seen.pause(pause);
                }
            }
            Event::Concurrent(phase) => {
                seen.shows_promotion |= phase.promoted.is_some();
                if phase.line > lines {
                    seen.promoted += phase.promoted.unwrap_or(0);
                }
            }
            _ => {}
        };
        parser.push(&text[..end], &mut sink);
        parser.finish(&mut sink);
        seen
    }

    fn pause(&mut self, pause: &Pause) {
        let ns = pause.duration_ns.unwrap_or(0);
        self.promoted += pause.promoted.unwrap_or(0);
        if pause.nested {
            self.within_ns += ns;
            return;
        }
        self.paused_ns += ns;
        self.longest_ns = self.longest_ns.max(ns);
        if pause.kind == Kind::Remark {
            self.remark_ns = self.remark_ns.max(ns.saturating_sub(self.within_ns));
        }
        self.within_ns = 0;
    }

    fn figures(&self, seconds: f64) -> [(&'static str, f64); 3] {
        let seconds = seconds.max(f64::MIN_POSITIVE);
        [
            (GC_PAUSE_SHARE, self.paused_ns as f64 / 1e9 / seconds),
            (GC_LONGEST_PAUSE, self.longest_ns as f64 / 1e3),
            (GC_LONGEST_REMARK, self.remark_ns as f64 / 1e3),
        ]
    }

    fn promoted_per_s(&self, seconds: f64) -> Option<f64> {
        let promoted = self.promoted as f64 / seconds.max(f64::MIN_POSITIVE);
        self.shows_promotion.then_some(promoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a JDK 11 with CMS and `CMSScavengeBeforeRemark`.
    const CMS: &str = "\
[1.000s][info][gc] Using Concurrent Mark Sweep
[2.100s][info][gc,start] GC(0) Pause Young (Allocation Failure)
[2.150s][info][gc,heap ] GC(0) ParNew: 100000K->10000K(110000K)
[2.150s][info][gc,heap ] GC(0) CMS: 0K->5000K(200000K)
[2.150s][info][gc      ] GC(0) Pause Young (Allocation Failure) 98M->15M(303M) 50.000ms
[3.000s][info][gc,start] GC(2) Pause Remark
[3.000s][info][gc,start] GC(3) Pause Young (CMS Final Remark)
[3.040s][info][gc,heap ] GC(3) ParNew: 60000K->10000K(110000K)
[3.040s][info][gc,heap ] GC(3) CMS: 5000K->7000K(200000K)
[3.040s][info][gc      ] GC(3) Pause Young (CMS Final Remark) 63M->17M(303M) 40.000ms
[3.060s][info][gc      ] GC(2) Pause Remark 17M->17M(303M) 60.000ms
";

    #[test]
    fn a_window_has_the_pauses_that_end_in_it() {
        let all = CMS.len() as u64;
        let remark = CMS.find("[3.000s]").unwrap() as u64;
        let whole = Seen::between(CMS.as_bytes(), 0, all);
        let pairs = [
            (GC_PAUSE_SHARE, 0.055),
            (GC_LONGEST_PAUSE, 60_000.0),
            // The young collection within the remark is not part of it.
            (GC_LONGEST_REMARK, 20_000.0),
        ];
        assert_eq!(whole.figures(2.0), pairs);
        assert_eq!(whole.promoted_per_s(2.0), Some(7_000.0 * 1024.0 / 2.0));
        let second = Seen::between(CMS.as_bytes(), remark, all);
        assert_eq!(second.figures(1.0)[0], (GC_PAUSE_SHARE, 0.06));
        assert_eq!(second.promoted_per_s(1.0), Some(2_000.0 * 1024.0));
        // The remark begins before this edge and ends behind it.
        let within = CMS.find("[3.040s]").unwrap() as u64;
        let ends = Seen::between(CMS.as_bytes(), within, all).figures(1.0);
        assert_eq!(ends[1], (GC_LONGEST_PAUSE, 60_000.0));
        let begins = Seen::between(CMS.as_bytes(), 0, within).figures(1.0);
        assert_eq!(begins[1], (GC_LONGEST_PAUSE, 50_000.0));
        let first = Seen::between(CMS.as_bytes(), 0, remark).figures(1.0);
        assert_eq!(first[1], (GC_LONGEST_PAUSE, 50_000.0));
        assert_eq!(first[2], (GC_LONGEST_REMARK, 0.0));
        // A window in which nothing was logged, and edges beyond the file.
        for (began, ended) in [(all, all), (all + 9, all + 99), (9, 0)] {
            let none = Seen::between(CMS.as_bytes(), began, ended);
            let figures = none.figures(1.0);
            assert!(
                figures.iter().all(|(_, value)| *value == 0.0),
                "{figures:?}"
            );
            // Nothing was promoted in it, by a log that would say so.
            let known = ended > 0;
            assert_eq!(none.promoted_per_s(1.0), known.then_some(0.0));
        }
    }

    #[test]
    fn a_log_that_does_not_show_promotion_gives_no_figure_of_it() {
        let g1 = "\
[1.000s][info][gc] Using G1
[2.100s][info][gc,start] GC(0) Pause Young (Normal) (G1 Evacuation Pause)
[2.150s][info][gc      ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 98M->15M(303M) 50.000ms
";
        let seen = Seen::between(g1.as_bytes(), 0, g1.len() as u64);
        assert_eq!(seen.figures(1.0)[0], (GC_PAUSE_SHARE, 0.05));
        assert_eq!(seen.promoted_per_s(1.0), None);
    }
}
