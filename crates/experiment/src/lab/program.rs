//! A program that loads the service: started, timed, read.
//!
//! Each run starts it in the client's namespace, waits for its end, and reads its output. Its CPU time, that of the
//! processes it starts and of those that it waited for, counts as the generator's.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rungwise_formats::task;
use rungwise_host::cpu::{CpuMeter, CpuSource, Owner};
use rungwise_host::namespace::Namespace;
use rungwise_host::process::{self, Launch, Service};
use rungwise_host::scratch::Scratch;
use rungwise_host::{clock, files};
use rungwise_load::Parameters;
use rungwise_load::command::Figures;
use rungwise_model::machine::CpuWindow;

use crate::scenario::Places;
use crate::scenario::command::{self, Output};
use crate::stage::{Changes, StageError};

/// Bytes of standard output that are read; what is longer is refused.
const MOST_OUTPUT: usize = 64 << 20;
/// The same of a file: some millions of lines of results.
const MOST_FILE: u64 = 512 << 20;
/// Between two checks whether the user asked to stop.
const PATIENCE: Duration = Duration::from_millis(50);
/// Units of time in /proc/PID/stat, seconds.
const TICK: f64 = 0.01;

/// A program and where it runs.
#[derive(Clone, Debug)]
pub struct Program {
    /// As the scenario has it.
    pub command: rungwise_load::command::Parameters,
    /// What its output is.
    pub output: Output,
    /// The service.
    pub target: SocketAddr,
    /// Measured length of a run.
    pub measure: Duration,
    /// Requests of the run before each measured one, of which nothing is kept; 0 for none.
    pub warmup_requests: u64,
}

/// What a run of it gave.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) figures: Figures,
    /// Numbers that the scenario picks.
    pub(super) picked: BTreeMap<String, f64>,
    /// From its start to its end.
    pub(super) cpu: CpuWindow,
    /// CPU time of the program and of those that it started, seconds.
    pub(super) client_cpu_s: f64,
}

/// The file that `{output}` names, removed when it is not needed any more.
struct OutputFile(PathBuf);

impl Drop for OutputFile {
    fn drop(&mut self) {
        let _ = files::remove(&self.0);
    }
}

impl Program {
    /// Runs it once, with its output in `scratch`; `places` are what its placeholders stand for, `requests` how many it is to send if not as
    /// many as the scenario says, `service` the CPU clocks of the service.
    pub(super) fn run(
        &self,
        places: &Places,
        scratch: &Scratch,
        (changes, requests): (&Changes, Option<u64>),
        namespace: Option<&Namespace>,
        service: &[CpuSource],
        interrupted: &AtomicBool,
    ) -> Result<Ran, StageError> {
        let file = OutputFile(scratch.join("output"));
        let parameters = Parameters::Command(self.command.clone());
        let Ok(Parameters::Command(mut changed)) = changes.applied(&parameters) else {
            let why =
                "the rung's workload parameters do not fit a load program (kind = \"command\")";
            return Err(StageError::Unavailable(why.to_owned()));
        };
        changed.requests = requests.or(changed.requests);
        let words = command::words(
            &changed,
            places,
            self.target,
            self.measure.as_secs_f64(),
            &file.0.to_string_lossy(),
        )
        .map_err(|error| StageError::Unavailable(error.to_string()))?;
        let clock = Clock::default();
        let sources: Vec<CpuSource> = service.iter().cloned().chain([clock.source()]).collect();
        let meter = CpuMeter::begin(&sources)?;
        let mut program = Service::start(&Launch {
            argv: words.clone(),
            namespace,
            keep: MOST_OUTPUT,
            ..Launch::default()
        })?;
        clock.follow(program.pid());
        let deadline = clock::now() + self.command.within.0;
        while !program.wait_end(PATIENCE)? {
            if interrupted.load(Ordering::Relaxed) {
                return Err(StageError::Interrupted);
            }
            if clock::now() >= deadline {
                let said = said(&program);
                return Err(StageError::Precondition(format!(
                    "the load program did not finish within {} s and was stopped: {}{said}; have it measure for {{seconds}}, or raise \
                     workload.within",
                    self.command.within.0.as_secs_f64(),
                    words.join(" ")
                )));
            }
        }
        // It has ended and is not reaped: its clock and those of whom it waited for still stand.
        let cpu = meter.end()?;
        let client_cpu_s = clock.spent().as_secs_f64();
        let (printed, is_cut) = program.printed();
        let last = said(&program);
        let status = program.stop(Duration::ZERO)?;
        if !status.success() {
            return Err(StageError::Precondition(format!(
                "the load program failed ({status}): {}{last}",
                words.join(" ")
            )));
        }
        let read = if command::writes_output(&self.command) {
            let read = files::read_at_most(&file.0, MOST_FILE + 1).map_err(|error| {
                StageError::Precondition(format!(
                    "the load program succeeded, but its results cannot be read: {error}; command: {}{last}",
                    words.join(" ")
                ))
            })?;
            if read.len() as u64 > MOST_FILE {
                return Err(StageError::Precondition(format!(
                    "the load program wrote more than {} MiB: {}; have it measure for less time",
                    MOST_FILE >> 20,
                    words.join(" ")
                )));
            }
            read
        } else if is_cut {
            return Err(StageError::Precondition(format!(
                "the load program printed more than {} MiB: {}; have it print less, or write to {{output}}",
                MOST_OUTPUT >> 20,
                words.join(" ")
            )));
        } else {
            printed
        };
        let (figures, picked) =
            figures(&self.output, &String::from_utf8_lossy(&read)).map_err(|why| {
                StageError::Precondition(format!(
                    "cannot parse the output of the load program: {why}; command: {}{last}",
                    words.join(" ")
                ))
            })?;
        let enough = enough(&figures, changed.requests);
        enough.map_err(|why| {
            StageError::Precondition(format!("{why}; command: {}{last}", words.join(" ")))
        })?;
        Ok(Ran {
            figures,
            picked,
            cpu,
            client_cpu_s,
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.command.command.join(" ");
        let (target, connections) = (self.target, self.command.connections);
        write!(f, "{words} to {target}, {connections} connections")?;
        if let Some(rate) = self.command.rate {
            write!(f, ", {:.0}/s", rate.0)?;
        }
        if let Some(requests) = self.command.requests {
            write!(f, ", {requests} requests")?;
        }
        match self.warmup_requests {
            0 => Ok(()),
            requests => write!(f, " after {requests} that are not measured"),
        }
    }
}

/// The figures in an output, and the numbers that are picked out of it.
fn figures(output: &Output, text: &str) -> Result<(Figures, BTreeMap<String, f64>), String> {
    if text.trim().is_empty() {
        return Err("it printed nothing".to_owned());
    }
    let figures = match output.reader {
        Some(reader) => (reader.read)(text).map_err(|why| {
            let other = rungwise_load::command::Reader::recognise(text);
            let other = other.filter(|other| other.id != reader.id);
            let hint = other.map_or_else(String::new, |other| {
                format!("; it looks like output of {}: reader = \"{0}\"", other.id)
            });
            format!("as output of {}, {why}{hint}", reader.id)
        })?,
        None => Figures::default(),
    };
    let mut picked = BTreeMap::new();
    for (name, pick) in &output.picks {
        let number = pick.number(text).map_err(|why| format!("{name}: {why}"))?;
        picked.insert(name.clone(), number);
    }
    Ok((figures, picked))
}

/// Refuses a run of fewer requests than the program was asked for: it may have failed and still have succeeded.
fn enough(figures: &Figures, wanted: Option<u64>) -> Result<(), String> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    match figures.requests {
        Some(sent) if sent >= wanted as f64 => Ok(()),
        Some(sent) => Err(format!(
            "the load program succeeded, but its output shows {sent:.0} requests instead of the {wanted} that workload.requests or \
             experiment.warmup_requests asks for; have it send {{requests}} of them, and look at its log"
        )),
        None => Err(format!(
            "the output of the load program does not show how many requests it sent, and workload.requests asks for {wanted}; choose an output \
             that shows it, or remove workload.requests"
        )),
    }
}

/// The last lines of a program, for an error.
fn said(program: &Service) -> String {
    let words = program.last_words();
    if words.trim().is_empty() {
        "; it printed nothing".to_owned()
    } else {
        format!("; its last lines:\n{words}")
    }
}

/// CPU time of a program that is not started yet when the clock is read for the first time.
#[derive(Clone, Default)]
struct Clock {
    pid: Arc<AtomicU32>,
    /// A process that ends takes its time with it unless its parent waits for it; time never runs backwards here.
    most: Arc<Mutex<Duration>>,
}

impl Clock {
    fn source(&self) -> CpuSource {
        let clock = self.clone();
        CpuSource::clock(Owner::Client, "the load program", move || Ok(clock.spent()))
    }

    fn follow(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    fn spent(&self) -> Duration {
        let pid = self.pid.load(Ordering::Relaxed);
        if pid == 0 {
            return Duration::ZERO;
        }
        let members = process::family(pid).unwrap_or_else(|_| vec![pid]);
        let spent: Duration = members.iter().map(|pid| of_process(*pid)).sum();
        let mut most = self.most.lock().expect("no holder panics");
        *most = spent.max(*most);
        *most
    }
}

/// CPU time of a process, and of its children that it waited for; zero of one that is gone.
fn of_process(pid: u32) -> Duration {
    let own = clock::process_cpu(pid).unwrap_or_default();
    let stat = files::read(format!("/proc/{pid}/stat").as_ref()).unwrap_or_default();
    let children =
        task::stat(&String::from_utf8_lossy(&stat)).map_or(0, |stat| stat.children_ticks);
    own + Duration::from_secs_f64(children as f64 * TICK)
}
