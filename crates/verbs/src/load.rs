//! Drives a service and measures it. What the numbers mean is written in `docs/load.md`.

mod limit;
mod slo;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rungwise_host::cpu::{self, CpuMeter, CpuSource, EdgeMeter, Owner, Reach};
use rungwise_host::live::Live;
use rungwise_host::process::family;
use rungwise_host::signals::Interrupt;
use rungwise_host::{Host, clock, files, machine};
use rungwise_load::engine::{Completed, Edge, FOREIGN, Hooks, Stop, Surroundings, certify};
use rungwise_load::parameters::{
    Contradiction, Driven, Length, Load, Probe, Site, Target, WrittenTarget,
};
use rungwise_load::{Error, Parameters};
use rungwise_model::kernel::{Answer, Endpoint, Question};
use rungwise_model::load::{LoadReport, Second, SloResult};
use rungwise_model::machine::CpuWindow;
use rungwise_model::{Exit, units};
use rungwise_stats::histogram::{self, Entry};

use crate::documents::Document as _;
use crate::problem::Problem;
use crate::{Invocation, values};

pub use slo::Slo;

/// A run without `--for` or `--count` ends after this.
const DEFAULT_WINDOW: Duration = Duration::from_secs(10);
/// The warm-up of a load whose pace is not its own.
const WARMUP: Duration = Duration::from_secs(1);
/// A window longer than this is announced: `99h` may have been a slip.
const EXPLAINED: Duration = Duration::from_mins(1);

/// A load of any workload.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// The workload.
    #[command(subcommand)]
    pub parameters: Parameters,
    /// How it is measured.
    #[command(flatten)]
    pub run: Run,
}

/// A load that was measured.
#[derive(Debug)]
pub struct Measured {
    /// Its document.
    pub report: LoadReport,
    /// Its latencies, as a run folder keeps them (`latency.hdr`).
    pub latency: Vec<u8>,
}

/// How one run of any workload is measured.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Measurement")]
pub struct Run {
    /// Length of the measured window [default: 10s, or as long as a test plan runs].
    #[arg(long = "for", alias = "hold", value_name = "TIME", value_parser = units::duration, global = true)]
    pub duration: Option<Duration>,
    /// Measure exactly N requests instead.
    #[arg(long, value_name = "N", conflicts_with = "duration", global = true)]
    pub count: Option<u64>,
    /// Warm-up: load before the measured window [default: 1s, or none where a test plan says when users begin].
    #[arg(long, value_name = "TIME", value_parser = units::duration, global = true)]
    pub warmup: Option<Duration>,
    /// The server's processes, if they run here: the CPU time of these and their children then does not count as foreign load. Default: found by
    /// the target's socket.
    #[arg(long, value_name = "PID,...", value_delimiter = ',', global = true)]
    pub server_pid: Vec<u32>,
    /// Limits that the measurement must keep, as in `p99<50ms,errors<0.1%,rate>5k/s`; exits with 1 if one is missed. Latency is that from the
    /// intended start.
    #[arg(long, value_name = "LIMIT,...", value_delimiter = ',', global = true)]
    pub slo: Vec<Slo>,
    /// Find the highest rate at which the limits of --slo are kept: open-loop runs of --for each [default: 5s] at rising rates, then by bisection.
    /// --rate is then the rate that is needed: a lower limit exits with 1.
    #[arg(long, conflicts_with = "count", global = true)]
    pub find_limit: bool,
    /// Seed of what is random in the requests, and of the source ports of UDP [default: random].
    #[arg(long, value_name = "N", global = true)]
    pub seed: Option<u64>,
}

/// Drives the service and measures it.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Measured> {
    on_site(&request.parameters, |driven, site| {
        drive(driven, site, &request.run, invocation)
    })
}

/// The traffic that these parameters describe, ready to be driven, and the address that it goes to.
pub(crate) fn prepare(parameters: &Parameters) -> anyhow::Result<(Box<dyn Load>, Target)> {
    on_site(parameters, |driven, site| {
        Ok((driven.prepare(site).map_err(problem)?, site.target.clone()))
    })
}

/// Finds the target and the CPUs, and hands them to `work`.
fn on_site<T>(
    parameters: &Parameters,
    work: impl FnOnce(&dyn Driven, &Site<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let read = |file: &str| files::read(Path::new(file)).map_err(|error| error.to_string());
    // A test plan may say itself whom it asks.
    let with_url = match parameters {
        Parameters::Http(http) => {
            let with_url = http.with_url_of_plan(&read);
            Some(Parameters::Http(with_url.map_err(|why| {
                Problem::with(Exit::Usage, anyhow!("cannot load by a test plan: {why}"))
            })?))
        }
        _ => None,
    };
    let parameters = with_url.as_ref().unwrap_or(parameters);
    let traffic = parameters.traffic();
    let target = match traffic.target() {
        WrittenTarget::Address(text) => resolve(text, parameters)?.into(),
        WrittenTarget::Unix(path) => Target::Unix(PathBuf::from(path)),
    };
    let wrong = traffic.contradictions().into_iter().next();
    if let Some(Contradiction { why, .. }) = wrong {
        return Err(problem(Error::Workload { target, why }));
    }
    let driven = traffic
        .driven()
        .context("this workload is for scenarios only")?;
    let cpus: Vec<usize> = machine::allowed_cpus()
        .context("cannot read which CPUs this process may use")?
        .into_iter()
        .map(|cpu| cpu as usize)
        .collect();
    let site = Site {
        target,
        cpus: &cpus,
        device: None,
        read: &read,
    };
    work(driven, &site)
}

fn drive(
    driven: &dyn Driven,
    site: &Site<'_>,
    run: &Run,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Measured> {
    if run.find_limit {
        return limit::find(driven, site, run, invocation);
    }
    let load = driven.prepare(site).map_err(problem)?;
    let session = Session::open(&*load, &site.target, run, invocation)?;
    let length = run.length(load.hold().unwrap_or(DEFAULT_WINDOW), &*load);
    match length.stop {
        Stop::After(window) if window > EXPLAINED => invocation.say(&format!(
            "measuring for {}; Ctrl-C aborts without a result",
            units::written(window)
        )),
        Stop::Finished { at_most: None } => {
            invocation.say("measuring until the plan ends; Ctrl-C aborts without a result");
        }
        _ => {}
    }
    let completed = session.measure(&*load, &length)?;
    let slo: Vec<SloResult> = run.slo.iter().map(|slo| slo.judge(&completed)).collect();
    // A generator that spoiled the numbers has shown neither that a limit is kept nor that it is missed.
    let held = completed.measurement.connections.as_ref();
    let exit = if held.is_some_and(|held| held.interrupted) {
        Exit::Interrupted
    } else if !completed.measurement.client.certified {
        Exit::Inconclusive
    } else if slo.iter().all(|one| one.met) {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(session.document(completed, slo, exit))
}

/// The first address of a name. One that is unknown here may be given.
fn resolve(text: &str, parameters: &Parameters) -> anyhow::Result<SocketAddr> {
    values::resolve("load", text).map_err(|error| match parameters {
        Parameters::Http(_) => anyhow!("{error:#}, or give it with --resolve HOST:PORT:ADDRESS"),
        _ => error,
    })
}

/// One target, loaded once or several times.
struct Session<'a> {
    target: &'a Target,
    server: Server,
    sources: Vec<CpuSource>,
    interrupt: Interrupt,
    started: String,
    invocation: &'a Invocation<'a>,
}

impl<'a> Session<'a> {
    /// Finds the server's processes, if they run here.
    fn open(
        load: &dyn Load,
        target: &'a Target,
        args: &Run,
        invocation: &'a Invocation<'a>,
    ) -> anyhow::Result<Self> {
        for note in load.notes() {
            invocation.say(note);
        }
        let interrupt = invocation.interrupt()?;
        let started = clock::utc_now();
        let server = match (&args.server_pid[..], target) {
            ([], Target::Address(address)) if !is_local(*address) => Server::Elsewhere,
            ([], target) => Server::holding(&Live, target, &load.probe()),
            (named, _) => Server::Here(named.to_vec()),
        };
        let mut sources = vec![CpuSource::own(Owner::Client)];
        if let Server::Here(pids) = &server {
            sources.push(families(pids.clone()));
        }
        // A missing process is reported before the load, not after it.
        CpuMeter::begin(&sources).map_err(|error| Problem::with(Exit::Precondition, error))?;
        Ok(Self {
            target,
            server,
            sources,
            interrupt,
            started,
            invocation,
        })
    }

    /// Drives `load` once and judges the generator.
    fn measure(&self, load: &dyn Load, length: &Length) -> anyhow::Result<Completed> {
        let meter = EdgeMeter::new(&self.sources);
        let mut each_second = |second: &Second| self.invocation.observer.second(second);
        let ended = load.run(
            length,
            &Hooks {
                thread_start: &|_| Ok(()),
                window: &|edge| match edge {
                    Edge::Began => meter.open(),
                    Edge::Ended => meter.close(),
                },
                interrupted: &self.interrupt.flag(),
                turns: None,
            },
            &mut each_second,
        );
        let mut completed = ended.map_err(problem)?;
        let cpu = match meter.window() {
            Ok(cpu) => cpu,
            Err(error) => {
                let line = format!("rungwise: foreign CPU is unknown: {error}");
                self.invocation.say(&line);
                None
            }
        };
        let reach = Reach::read_affinity(&self.sources);
        judge(&mut completed, cpu.as_ref(), &self.server, reach);
        Ok(completed)
    }

    /// The document of a run that was measured in this session.
    fn document(self, completed: Completed, slo: Vec<SloResult>, exit: Exit) -> Measured {
        let seconds = completed.measurement.window_s;
        let entry = |name: &str, histogram| Entry {
            name: name.to_owned(),
            histogram,
            seconds,
        };
        let latency = histogram::log(
            "latency in nanoseconds, corrected from the intended start, uncorrected from the send",
            &[
                entry("corrected", completed.corrected),
                entry("uncorrected", completed.uncorrected),
            ],
        );
        let report = LoadReport {
            envelope: (self.invocation).envelope(LoadReport::KIND, self.started, exit),
            target: self.target.to_string(),
            measurement: completed.measurement,
            slo,
            limit: None,
        };
        Measured { report, latency }
    }
}

/// These processes and their children: the one that listens often has others that serve, as nginx has.
fn families(pids: Vec<u32>) -> CpuSource {
    let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
    let what = format!("process {}", numbers.join(", "));
    CpuSource::processes(Owner::Service, what, move || {
        let mut all = BTreeSet::new();
        for pid in &pids {
            all.extend(family(*pid)?);
        }
        Ok(all.into_iter().collect())
    })
}

/// Where the server is, as far as its CPU time goes.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    /// On another machine.
    Elsewhere,
    /// These processes of this machine.
    Here(Vec<u32>),
    /// On this machine, in an unknown process.
    Hidden,
}

impl Server {
    /// The processes that have the sockets open to which requests for `target` go.
    fn holding(host: &dyn Host, target: &Target, probe: &Probe) -> Self {
        let inodes = match target {
            Target::Address(address) => bound_to(host, *address, probe),
            Target::Unix(path) => host.unix_listeners(path).ok(),
        };
        let inodes = inodes.unwrap_or_default();
        match host.owners_of(&inodes) {
            Ok(owners) if !inodes.is_empty() && owners.len() == inodes.len() => {
                let pids: BTreeSet<u32> = owners.values().map(|owner| owner.pid).collect();
                Self::Here(pids.into_iter().collect())
            }
            _ => Self::Hidden,
        }
    }
}

/// Inodes of the sockets to which what is sent to `target` goes.
fn bound_to(host: &dyn Host, target: SocketAddr, probe: &Probe) -> Option<BTreeSet<u64>> {
    let question = match probe {
        Probe::Datagram(_) => Question::Udp,
        Probe::Connection => Question::Tcp,
    };
    // Those that listen, or are not connected.
    let sockets: Vec<(Endpoint, u64)> = match host.ask(question) {
        Ok(Answer::Udp(sockets)) => (sockets.iter())
            .filter(|socket| socket.remote.port == 0)
            .map(|socket| (socket.local, socket.inode))
            .collect(),
        Ok(Answer::Tcp(sockets)) => (sockets.iter())
            .filter(|socket| socket.remote.port == 0)
            .map(|socket| (socket.local, socket.inode))
            .collect(),
        _ => return None,
    };
    let target = Endpoint::new(target.ip(), target.port());
    let bound_to = |wanted: &dyn Fn(&Endpoint) -> bool| -> BTreeSet<u64> {
        let bound = sockets.iter().filter(|(local, _)| wanted(local));
        bound.map(|(_, inode)| *inode).collect()
    };
    // One bound to the address goes before one bound to all of them.
    let mut inodes = bound_to(&|local| *local == target);
    if inodes.is_empty() {
        inodes = bound_to(&|local| local.port == target.port && local.address.is_unspecified());
    }
    Some(inodes)
}

fn judge(
    completed: &mut Completed,
    cpu: Option<&CpuWindow>,
    server: &Server,
    reach: Option<Reach>,
) {
    let hidden = *server == Server::Hidden;
    let unsure = |cpu: &CpuWindow| cpu::resolution(Duration::from_secs_f64(cpu.seconds));
    let coarse = |cpu: &CpuWindow| unsure(cpu) > FOREIGN;
    let beside = cpu
        .zip(reach)
        .map(|(cpu, reach)| Surroundings::beside(cpu, reach.service, reach.shared, unsure(cpu)));
    // An unknown server on this machine would count as foreign.
    let foreign = cpu.filter(|cpu| !hidden && !coarse(cpu));
    let around = Surroundings {
        foreign_cpu: foreign.map(|cpu| cpu.foreign),
        foreign_hidden: match cpu {
            None => Some("the CPU clocks could not be read over the whole window; repeat the run"),
            Some(_) if hidden => Some(
                "the server runs on this machine and the process behind its socket cannot be seen; name it with --server-pid",
            ),
            Some(cpu) if coarse(cpu) => Some(
                "the kernel counts CPU time in steps of 10 ms, too coarse for so short a run; measure for half a second or more",
            ),
            Some(_) => None,
        },
        ..beside.unwrap_or_default()
    };
    certify(completed, &around);
}

impl Run {
    /// `window` where neither a time nor a count is given and the load does not end by itself.
    fn length(&self, window: Duration, load: &dyn Load) -> Length {
        let warmup = if load.has_own_pace() {
            Duration::ZERO
        } else {
            WARMUP
        };
        Length {
            warmup: self.warmup.unwrap_or(warmup),
            stop: match self.count {
                Some(count) if load.hold().is_none() => Stop::Count(count),
                _ if load.ends() => Stop::Finished {
                    at_most: self.duration,
                },
                _ => Stop::After(self.duration.unwrap_or(window)),
            },
            // A fresh hasher's keys are the random numbers that std gives away.
            seed: self
                .seed
                .unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish()),
        }
    }
}

/// A note, where the requests do not go to process `pid` or its children.
pub(crate) fn elsewhere(target: &Target, pid: u32) -> Option<String> {
    let is_ours = |one: &u32| family(pid).is_ok_and(|all| all.contains(one));
    match Server::holding(&Live, target, &Probe::Connection) {
        Server::Here(pids) if !pids.iter().any(is_ours) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            Some(format!(
                "{target} belongs to process {}, not to {pid}: requests reach the JVM through it, or not at all.",
                pids.join(", ")
            ))
        }
        _ => None,
    }
}

/// The exit code of an error: the workload was wrong, or the world was.
pub(crate) fn problem(error: Error) -> anyhow::Error {
    let exit = match &error {
        Error::Interrupted { .. } => Exit::Interrupted,
        Error::Workload { .. } | Error::QueryFile { .. } => Exit::Usage,
        _ => Exit::Precondition,
    };
    Problem::with(exit, error)
}

/// Whether `target` belongs to this machine: only then can one bind to its address.
fn is_local(mut target: SocketAddr) -> bool {
    target.set_port(0);
    UdpSocket::bind(target).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;
    use clap::Subcommand as _;
    use rungwise_load::WORKLOADS;
    use rungwise_model::machine::CpuSplit;

    #[test]
    fn each_workload_is_a_word_of_the_command() {
        let command = Parameters::augment_subcommands(clap::Command::new("load"));
        let words: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let by_hand = WORKLOADS.iter().filter(|workload| workload.by_hand);
        let ids: Vec<&str> = by_hand.map(|workload| workload.id).collect();
        assert_eq!(words, ids);
    }

    #[test]
    fn only_our_own_addresses_are_local() {
        assert!(is_local("127.0.0.1:53".parse().unwrap()));
        assert!(!is_local("192.0.2.1:53".parse().unwrap()));
    }

    #[test]
    fn the_server_is_found_by_its_socket_and_a_hidden_one_spoils_the_certificate() {
        let (all, one) = (UdpSocket::bind("0.0.0.0:0"), UdpSocket::bind("127.0.0.1:0"));
        let here = Server::Here(vec![std::process::id()]);
        let datagram = Probe::Datagram(Vec::new());
        for socket in [all.unwrap(), one.unwrap()] {
            let port = socket.local_addr().unwrap().port();
            let target = Target::Address(([127, 0, 0, 1], port).into());
            assert_eq!(Server::holding(&Live, &target, &datagram), here);
            drop(socket);
            assert_eq!(Server::holding(&Live, &target, &datagram), Server::Hidden);
        }
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::Address(([127, 0, 0, 1], port).into());
        assert_eq!(Server::holding(&Live, &target, &Probe::Connection), here);
        drop(listener);
        assert_eq!(
            Server::holding(&Live, &target, &Probe::Connection),
            Server::Hidden
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let target = Target::Unix(path);
        assert_eq!(Server::holding(&Live, &target, &Probe::Connection), here);
        drop(listener);
        assert_eq!(
            Server::holding(&Live, &target, &Probe::Connection),
            Server::Hidden
        );
        let judged = |cpu: Option<&CpuWindow>, server: &Server| {
            let mut completed = Completed::default();
            completed.measurement.received = 1000;
            judge(&mut completed, cpu, server, None);
            completed.measurement.client
        };
        let cpu = CpuWindow {
            seconds: 1.0,
            foreign: 0.01,
            ..CpuWindow::default()
        };
        assert!(judged(Some(&cpu), &here).certified);
        for (cpu, word) in [(Some(&cpu), "--server-pid"), (None, "repeat the run")] {
            let client = judged(cpu, &Server::Hidden);
            assert!(!client.certified && client.foreign_cpu.is_none());
            assert!(client.reasons[0].contains(word), "{:?}", client.reasons);
        }
    }

    #[test]
    fn a_busy_client_beside_an_idle_cpu_is_the_clients_own_limit() {
        let certified = |idle: [f64; 2], server_known| {
            let mut completed = Completed::default();
            completed.measurement.client.busy = Some(1.0);
            completed.measurement.received = 1000;
            completed.measurement.client.saturated = true;
            let cpu = CpuWindow {
                seconds: 1.0,
                per_cpu: idle
                    .map(|idle| CpuSplit {
                        idle,
                        ..CpuSplit::default()
                    })
                    .to_vec(),
                service_cpu_s: 0.4,
                client_cpu_s: 1.0,
                foreign: 0.0,
            };
            let (server, reach) = if server_known {
                let both = Reach {
                    service: 2,
                    shared: 2,
                };
                (Server::Here(vec![1]), Some(both))
            } else {
                (Server::Elsewhere, None)
            };
            judge(&mut completed, Some(&cpu), &server, reach);
            completed.measurement.client.certified
        };
        assert!(certified([0.0, 0.0], true), "the machine is the limit");
        assert!(
            !certified([0.0, 0.6], true),
            "one more thread could ask more"
        );
        assert!(!certified([0.0, 0.0], false), "the server is unknown");
    }
}
