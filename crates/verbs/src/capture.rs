//! What `check` reads, as a capture: the recording that both share.

use std::path::Path;
use std::time::Duration;

use rungwise_formats::task;
use rungwise_host::live::Live;
use rungwise_host::signals::Interrupt;
use rungwise_host::{Host, clock, environment};
use rungwise_knobs::edit::Place;
use rungwise_knobs::journal::Pending;
use rungwise_knobs::recovery;
use rungwise_model::Exit;
use rungwise_model::kernel::{Answer, KeptSetting};
use rungwise_model::service::ServicePort;
use rungwise_probes::capture::{Process, Reply};
use rungwise_probes::{Capture, bundle, gather, mask};
use rungwise_profile::{Counter, Options, Sampler, Tlb};

use crate::network::Network;
use crate::problem::{Problem, words};
use crate::{Invocation, service, values, waiters};

/// Longest that kernel events are counted, but dropped packets: being counted slows what is counted.
const EVENTS_FOR: Duration = Duration::from_secs(2);

/// A window longer than this is announced with the way to end it.
const EXPLAINED: Duration = Duration::from_mins(1);

/// How a machine is sampled.
#[derive(Clone, Debug, clap::Args)]
pub struct Sampling {
    /// Length of the window, at most 24h; `0s` takes one sample, which gives no rates.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = values::window)]
    pub window: Duration,
    /// Also judge this process: its threads, sockets, CPUs, limits and control group.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Also judge each connection of the service at this port: which side is slow, and why. `:20880` stands for all addresses of
    /// this host; repeat it for several ports. Judges the process that listens there too, as --pid does. Where none does, the connections are
    /// those of its clients here.
    #[arg(long, value_name = "[HOST]:PORT", value_parser = values::service)]
    pub socket: Vec<ServicePort>,
    /// Do not sample kernel stacks, count kernel events, or read the stacks of threads that wait for a lock.
    #[arg(long)]
    pub no_stacks: bool,
    /// Stack samples per second and CPU.
    #[arg(long, value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hz: u32,
}

/// Record what `check` reads, to judge it later, elsewhere, or as a bug report: `rungwise check FILE`.
///
/// Secrets are masked while recording: environments are never read, the title of a `PostgreSQL` backend is reduced to its state, and a value
/// after a name such as password or token is replaced everywhere.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// How it is sampled.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Replace addresses and the host name with pseudonyms; equal ones get equal pseudonyms.
    #[arg(long)]
    pub mask_addresses: bool,
}

/// A capture, packed as its file holds it.
#[derive(Debug)]
pub struct Captured {
    /// The bytes of the file.
    pub packed: Vec<u8>,
    /// Samples in it.
    pub samples: usize,
    /// Files in the last sample.
    pub files: usize,
    /// [`Exit::Interrupted`] where it ended early.
    pub exit: Exit,
}

/// Records what `check` reads.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Captured> {
    let interrupt = invocation.interrupt()?;
    let sampling = request.sampling.with_process()?;
    let network = Network::for_pid(sampling.pid);
    let mut capture = sampling.capture(&network, &interrupt, invocation)?;
    if request.mask_addresses {
        mask::addresses(&mut capture);
    }
    let last = capture.moments.last();
    Ok(Captured {
        packed: bundle::pack(&capture)?,
        samples: capture.moments.len(),
        files: last.map_or(0, |moment| moment.files.len()),
        exit: if interrupt.raised() {
            Exit::Interrupted
        } else {
            Exit::Done
        },
    })
}

impl Sampling {
    /// The usual capture, for that long.
    pub(crate) fn over(window: Duration) -> Self {
        Self {
            window,
            pid: None,
            socket: Vec::new(),
            no_stacks: false,
            hz: 99,
        }
    }

    /// The same, with the process of the named service as the judged one.
    pub(crate) fn with_process(&self) -> anyhow::Result<Self> {
        let mut found = self.clone();
        if !self.socket.is_empty() {
            let pid = service::process(&self.socket)?;
            found.pid = found.pid.or(pid);
        }
        Ok(found)
    }

    /// Captures this host and that network for the window; secrets are masked already.
    pub(crate) fn capture(
        &self,
        network: &Network,
        interrupt: &Interrupt,
        invocation: &Invocation<'_>,
    ) -> anyhow::Result<Capture> {
        if !self.window.is_zero() {
            // Whoever wrote hours for seconds learns the way out.
            let early = if self.window > EXPLAINED {
                "; Ctrl-C ends the window early and keeps the data"
            } else {
                ""
            };
            invocation.say(&format!(
                "sampling this host for {}{early} ...",
                rungwise_report::numbers::span(self.window.as_secs_f64())
            ));
        }
        let mut capture = self.capture_at(network.host(), interrupt)?;
        network.hide(&mut capture);
        Ok(capture)
    }

    /// The same at one place of this host, in silence.
    pub(crate) fn capture_at(
        &self,
        host: &dyn Host,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Capture> {
        let process = self.pid.map(process).transpose()?;
        let watch = Watch::start(self);
        let taken = clock::utc_now();
        let mut capture = gather::gather_service(
            host,
            process,
            self.socket.clone(),
            self.window,
            // A signal ends the window early, not the judgement.
            |due| !interrupt.wait(due).unwrap_or(true),
            clock::now,
        );
        capture.taken = Some(taken);
        let waiting = (!self.no_stacks).then(|| waiters::copy(&capture));
        watch.stop(&mut capture);
        if let Some(waiting) = waiting {
            waiters::keep(waiting, &mut capture);
        }
        if let Some(last) = capture.moments.last_mut() {
            let reply = settings().map_or_else(Reply::Failed, Reply::Answer);
            last.answers.insert("settings".to_owned(), reply);
        }
        mask::secrets(&mut capture);
        Ok(capture)
    }
}

/// The process with this pid.
fn process(pid: u32) -> anyhow::Result<Process> {
    let name = Live
        .text(Path::new(&format!("/proc/{pid}/comm")))
        .map_err(|_| {
            let why = anyhow::anyhow!("cannot capture pid {pid}: no such process");
            Problem::with(Exit::Precondition, why)
        })?;
    let stat = Live.text(Path::new(&format!("/proc/{pid}/stat")));
    if stat.is_ok_and(|stat| task::stat(&stat).is_some_and(|stat| stat.is_kernel)) {
        let why = anyhow::anyhow!(
            "cannot judge pid {pid} ({name}): it is a kernel thread, not a service; judge the host: rungwise check"
        );
        return Err(Problem::with(Exit::Precondition, why));
    }
    Ok(Process { pid, name })
}

/// What open journals hold in force, and how it stands now.
fn settings() -> Result<Answer, String> {
    let read = || -> anyhow::Result<Vec<KeptSetting>> {
        let boot_id = recovery::boot_id(&Live)?;
        let mut kept = Vec::new();
        for open in recovery::open(&environment::state_dir()?)? {
            // After a reboot nothing of it is in force.
            let recovered = open.recovered;
            if recovered
                .header
                .is_none_or(|header| header.boot_id != boot_id)
            {
                continue;
            }
            let ours = recovered
                .pending
                .into_iter()
                .filter(|pending| pending.intent.place == Place::Host);
            kept.extend(ours.map(
                |Pending {
                     intent, readback, ..
                 }| KeptSetting {
                    found: intent.edit.current(&Live).ok(),
                    target: intent.edit.target(),
                    wanted: readback.unwrap_or_else(|| intent.edit.value().into_owned()),
                    knob: intent.knob,
                },
            ));
        }
        Ok(kept)
    };
    read().map(Answer::Settings).map_err(|error| words(&error))
}

/// What runs beside the samples: the stack sampler for the whole window, some of the event counters for a part of it.
struct Watch {
    sampler: Result<Sampler, String>,
    counter: Result<Counter, String>,
    tlb: Result<Tlb, String>,
}

impl Watch {
    fn start(sampling: &Sampling) -> Self {
        let off = if sampling.no_stacks {
            Some("disabled by --no-stacks; remove it")
        } else if sampling.window.is_zero() {
            Some("a single sample has no window; observe for some seconds: --for 10s")
        } else {
            None
        };
        if let Some(why) = off {
            return Self {
                sampler: Err(why.to_owned()),
                counter: Err(why.to_owned()),
                tlb: Err(why.to_owned()),
            };
        }
        let options = Options {
            hz: sampling.hz,
            pid: None,
        };
        Self {
            sampler: Sampler::start(&options).map_err(|error| error.to_string()),
            counter: Counter::start(EVENTS_FOR).map_err(|error| error.to_string()),
            tlb: Tlb::start().map_err(|error| error.to_string()),
        }
    }

    /// Adds what was seen to the last sample.
    fn stop(self, capture: &mut Capture) {
        let tlb = self
            .tlb
            .and_then(|tlb| tlb.end().map_err(|error| error.to_string()));
        let tlb = tlb.map(Answer::Tlb);
        let (stacks, events) = rungwise_profile::stop(self.sampler, self.counter);
        let stacks = stacks.and_then(|stacks| stacks.map_err(|error| error.to_string()));
        let (stacks, events) = (stacks.map(Answer::Stacks), events.map(Answer::Events));
        if let Some(last) = capture.moments.last_mut() {
            for (name, answer) in [("stacks", stacks), ("events", events), ("tlb", tlb)] {
                let reply = answer.map_or_else(Reply::Failed, Reply::Answer);
                last.answers.insert(name.to_owned(), reply);
            }
        }
    }
}
