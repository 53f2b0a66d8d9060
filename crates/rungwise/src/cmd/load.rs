//! `rungwise load`: drives a service and measures it. What the numbers mean is written in `docs/load.md`.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use rungwise_host::cpu::{self, CpuMeter, CpuSource, EdgeMeter, Owner, Reach};
use rungwise_host::live::Live;
use rungwise_host::signals::Interrupt;
use rungwise_host::{Host, clock, files, machine};
use rungwise_load::udp::{
    Arrival, Completed, Edge, FOREIGN, Hooks, Payload, Stop, Surroundings, Workload, XdpDevice,
    certify, run_watched,
};
use rungwise_load::{Error, dns};
use rungwise_model::kernel::{Answer, Endpoint, Question};
use rungwise_model::load::{LoadReport, Second};
use rungwise_model::machine::CpuWindow;
use rungwise_model::{Exit, units};
use rungwise_report::numbers;
use rungwise_stats::histogram::{self, Entry};

use super::documents::Document as _;
use super::runs::store;
use super::serve::xdp_device;
use super::values::{self, Pins};
use super::{Global, output};
use crate::problem::Problem;

/// A run without `--for` or `--count` ends after this.
const DEFAULT_WINDOW: Duration = Duration::from_secs(10);
/// A window longer than this is announced: `99h` may have been a slip.
const EXPLAINED: Duration = Duration::from_mins(1);
/// Outstanding requests per socket in a closed loop.
const CLOSED_DEPTH: usize = 16;
/// And in an open loop, where a slot too few would hold back the schedule.
const OPEN_DEPTH: usize = 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// UDP requests with one reply each: numbered datagrams that the server echoes, DNS queries, or any
    /// payload.
    ///
    /// Without --rate or --ramp the loop is closed: threads x sockets x depth requests are always
    /// outstanding. Exits with 0 if the measurement is certified, 3 if not, 4 if nobody answers.
    Udp(Udp),
}

#[derive(Debug, clap::Args)]
struct Udp {
    /// The server, ADDRESS:PORT or NAME:PORT.
    target: String,
    /// Length of the measured window [default: 10s].
    #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,
    /// Measure exactly N requests instead.
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    count: Option<u64>,
    /// Warm-up: load before the measured window.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    warmup: Duration,
    /// Generator threads [default: 2, or 1 on a single CPU].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Sockets (source ports) per thread.
    #[arg(long, value_name = "N", default_value_t = 8)]
    sockets: usize,
    /// Maximum outstanding requests per socket [default: 16, 1024 in an open loop, 1 with --payload].
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Open loop at a constant rate, independent of the server.
    #[arg(long, value_name = "RATE", value_parser = units::per_second)]
    rate: Option<f64>,
    /// Open loop with a linear ramp over the window, as in `1k/s..50k/s`.
    #[arg(long, value_name = "RATE..RATE", value_parser = ramp, conflicts_with = "rate")]
    ramp: Option<Ramp>,
    /// Size of a numbered request; 16 bytes of it are its number.
    #[arg(long, value_name = "SIZE", default_value = "100B", value_parser = values::size)]
    size: usize,
    /// Send the bytes of a file, or `hex:00ff`, and take whatever comes back.
    #[arg(long, value_name = "FILE|hex:BYTES", conflicts_with_all = ["size", "dns"])]
    payload: Option<String>,
    /// Send the queries of a file in dnsperf's format, repeatedly.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    dns: Option<std::path::PathBuf>,
    /// Maximum datagrams per system call.
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch: usize,
    /// Send bursts of N datagrams of one flow as one (`UDP_SEGMENT`); realistic only if single peers send such bursts.
    #[arg(long, value_name = "N")]
    burst: Option<u16>,
    /// A request without a reply is lost after this.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    timeout: Duration,
    /// Pin the threads to CPUs: a list as in `0,2-5`, or without it the allowed CPUs in turn.
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true, default_missing_value = "allowed", value_parser = values::pins)]
    pin: Option<Pins>,
    /// Source address.
    #[arg(long, value_name = "IP")]
    source: Option<IpAddr>,
    /// Never fragment (`IP_PMTUDISC_DO`); skips the IP identification.
    #[arg(long)]
    pmtudisc_do: bool,
    /// Send and receive by DEVICE's queues (`AF_XDP`), past the network stack, instead of by sockets; add `:native` where
    /// the driver can, as on veth. Needs a queue per thread, and root or `CAP_BPF`, `CAP_NET_ADMIN` and `CAP_NET_RAW`.
    #[arg(long, value_name = "DEVICE[:native]", value_parser = xdp_device, conflicts_with = "burst")]
    af_xdp: Option<XdpDevice>,
    /// The server's processes, if they run here: their CPU time then does not count as foreign load. Default: found by
    /// the target's socket.
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    server_pid: Vec<u32>,
    /// Keep no run folder: the document and the latencies go to --runs otherwise.
    #[arg(long)]
    no_keep: bool,
    /// Number the run's requests from this seed [default: random].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Ramp {
    from_per_s: f64,
    to_per_s: f64,
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let What::Udp(udp) = &args.what;
    load_udp(udp, global)
}

fn load_udp(args: &Udp, global: &Global) -> anyhow::Result<Exit> {
    let workload = args.workload()?;
    workload.check()?;
    let interrupt = Interrupt::install()?;
    let started = clock::utc_now();

    let server = match (&args.server_pid[..], is_local(workload.target)) {
        ([], false) => Server::Elsewhere,
        ([], true) => Server::holding(&Live, workload.target),
        (named, _) => Server::Here(named.to_vec()),
    };
    let mut sources = vec![CpuSource::own(Owner::Client)];
    if let Server::Here(pids) = &server {
        sources.extend(
            pids.iter()
                .map(|pid| CpuSource::process(Owner::Service, *pid)),
        );
    }
    // A process that is not there is told before the load, not after it.
    CpuMeter::begin(&sources).map_err(|error| Problem::with(Exit::Precondition, error))?;
    let meter = EdgeMeter::new(&sources);
    let follow = !global.quiet && std::io::stderr().is_terminal();
    if let Stop::After(length) = workload.stop
        && length > EXPLAINED
    {
        global.say(&format!(
            "measuring for {}; Ctrl-C ends it without a result",
            units::written(length)
        ));
    }
    let mut each_second = |second: &Second| {
        if follow {
            global.say(&line(second));
        }
    };
    let ended = run_watched(
        &workload,
        &Hooks {
            thread_start: &|_| Ok(()),
            window: &|edge| match edge {
                Edge::Began => meter.open(),
                Edge::Ended => meter.close(),
            },
            interrupted: &interrupt.flag(),
        },
        &mut each_second,
    );
    let mut completed = match ended {
        Ok(completed) => completed,
        Err(error @ Error::Interrupted { .. }) => {
            global.say(&format!("rungwise: {error}"));
            return Ok(Exit::Interrupted);
        }
        Err(error) => return Err(problem(error)),
    };
    let cpu = match meter.window() {
        Ok(cpu) => cpu,
        Err(error) => {
            global.say(&format!("rungwise: foreign CPU is unknown: {error}"));
            None
        }
    };
    judge(&mut completed, cpu.as_ref(), &server, Reach::of(&sources));
    report(&workload, completed, started, args.no_keep, global)
}

/// Where the server is, as far as its CPU time goes.
#[derive(Debug, PartialEq, Eq)]
enum Server {
    /// On another machine.
    Elsewhere,
    /// These processes of this machine.
    Here(Vec<u32>),
    /// On this machine, and nobody knows which process it is.
    Hidden,
}

impl Server {
    /// The processes that have the sockets open to which requests for `target` go.
    fn holding(host: &dyn Host, target: SocketAddr) -> Self {
        let Ok(Answer::Udp(sockets)) = host.ask(Question::Udp) else {
            return Self::Hidden;
        };
        let target = Endpoint::new(target.ip(), target.port());
        let bound_to = |wanted: &dyn Fn(&Endpoint) -> bool| -> BTreeSet<u64> {
            let unconnected = sockets.iter().filter(|socket| socket.remote.port == 0);
            let bound = unconnected.filter(|socket| wanted(&socket.local));
            bound.map(|socket| socket.inode).collect()
        };
        // One bound to the address goes before one bound to all of them.
        let mut inodes = bound_to(&|local| *local == target);
        if inodes.is_empty() {
            inodes = bound_to(&|local| local.port == target.port && local.address.is_unspecified());
        }
        match host.owners_of(&inodes) {
            Ok(owners) if !inodes.is_empty() && owners.len() == inodes.len() => {
                let pids: BTreeSet<u32> = owners.values().map(|owner| owner.pid).collect();
                Self::Here(pids.into_iter().collect())
            }
            _ => Self::Hidden,
        }
    }
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
    // A server on this machine that nobody knows would count as foreign.
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

fn report(
    workload: &Workload,
    completed: Completed,
    started: String,
    no_keep: bool,
    global: &Global,
) -> anyhow::Result<Exit> {
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
    let exit = if completed.measurement.client.certified {
        Exit::Done
    } else {
        Exit::Inconclusive
    };
    let mut report = LoadReport {
        envelope: output::envelope(LoadReport::KIND, started, exit),
        target: workload.target.to_string(),
        measurement: completed.measurement,
    };
    let kept = (!no_keep).then(|| store::keep(&mut report, &[("latency.hdr", latency)], global));
    global.draw(&report)?;
    match kept {
        Some(Ok(path)) => global.say(&format!("kept: rungwise report {}", path.display())),
        // The measurement was made and printed; that it is not kept does not spoil it.
        Some(Err(error)) => global.say(&format!("rungwise: {error:#}")),
        None => {}
    }
    Ok(exit)
}

impl Udp {
    fn workload(&self) -> anyhow::Result<Workload> {
        let allowed: Vec<usize> = machine::allowed_cpus()
            .context("cannot read which CPUs this process may use")?
            .into_iter()
            .map(|cpu| cpu as usize)
            .collect();
        let arrival = match (self.rate, self.ramp) {
            (Some(per_s), _) => Arrival::Constant { per_s },
            (
                None,
                Some(Ramp {
                    from_per_s,
                    to_per_s,
                }),
            ) => Arrival::Ramp {
                from_per_s,
                to_per_s,
            },
            (None, None) => Arrival::Closed,
        };
        let payload = self.read_payload()?;
        let depth = self.depth.unwrap_or(match (&payload, arrival) {
            (Payload::Opaque(_), _) => 1,
            // A lost datagram must not keep a whole burst waiting for its timeout.
            (_, Arrival::Closed) => {
                CLOSED_DEPTH.max(self.burst.map_or(0, |burst| 2 * usize::from(burst)))
            }
            _ => OPEN_DEPTH,
        });
        Ok(Workload {
            target: values::resolve("load", &self.target)?,
            source: self.source,
            threads: self.threads.unwrap_or(allowed.len().clamp(1, 2)),
            sockets: self.sockets,
            depth,
            pins: self.pin.as_ref().map(|pins| match pins {
                Pins::Allowed => allowed,
                Pins::List(list) => list.clone(),
            }),
            arrival,
            payload,
            batch: self.batch,
            burst: self.burst,
            timeout: self.timeout,
            warmup: self.warmup,
            stop: match self.count {
                Some(count) => Stop::Count(count),
                None => Stop::After(self.duration.unwrap_or(DEFAULT_WINDOW)),
            },
            // A fresh hasher's keys are the random numbers that std gives away.
            seed: self
                .seed
                .unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish()),
            pmtudisc_do: self.pmtudisc_do,
            af_xdp: self.af_xdp.clone(),
        })
    }

    fn read_payload(&self) -> anyhow::Result<Payload> {
        if let Some(path) = &self.dns {
            let queries = dns::parse(&files::read(path)?)
                .with_context(|| format!("cannot send the queries of {}", path.display()))?;
            return Ok(Payload::Dns(queries));
        }
        let Some(payload) = &self.payload else {
            return Ok(Payload::Sequenced { size: self.size });
        };
        Ok(Payload::Opaque(match payload.strip_prefix("hex:") {
            Some(digits) => unhex(digits)?,
            None => files::read(Path::new(payload))?,
        }))
    }
}

/// The exit code of an error: the workload was wrong, or the world was.
fn problem(error: Error) -> anyhow::Error {
    let exit = match &error {
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

/// One line per second, while the run goes on.
fn line(second: &Second) -> String {
    format!(
        "{:>5.0} s  {:>12}  p50 {:>9}  p99 {:>9}  lost {}",
        second.at_s + 1.0,
        numbers::rate(second.received as f64),
        numbers::micros(second.p50_us),
        numbers::micros(second.p99_us),
        numbers::count(second.lost),
    )
}

fn ramp(text: &str) -> Result<Ramp, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| format!("cannot read '{text}' as a ramp; write it as 1k/s..50k/s"))?;
    let rate = |text| units::per_second(text).map_err(|error| error.to_string());
    Ok(Ramp {
        from_per_s: rate(from)?,
        to_per_s: rate(to)?,
    })
}

fn unhex(digits: &str) -> anyhow::Result<Vec<u8>> {
    let what = || {
        format!(
            "cannot read 'hex:{digits}' as bytes; write two hexadecimal digits per byte, as in hex:00ff"
        )
    };
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        bail!(what());
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).with_context(what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rungwise_load::WORKLOADS;
    use rungwise_model::machine::CpuSplit;

    #[test]
    fn each_workload_is_a_word_of_the_command() {
        let command = What::augment_subcommands(clap::Command::new("load"));
        let words: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let by_hand = WORKLOADS.iter().filter(|workload| workload.by_hand);
        let ids: Vec<&str> = by_hand.map(|workload| workload.id).collect();
        assert_eq!(words, ids);
    }

    #[test]
    fn a_ramp_is_read_or_refused_with_an_example() {
        let read = ramp("1k/s..50k/s").unwrap();
        assert_eq!((read.from_per_s, read.to_per_s), (1e3, 5e4));
        assert!(ramp("1k/s").unwrap_err().contains("1k/s..50k/s"));
    }

    #[test]
    fn hexadecimal_payloads_have_whole_bytes() {
        assert_eq!(unhex("00fF").unwrap(), [0, 255]);
        for bad in ["0", "0g", "é"] {
            assert!(
                unhex(bad).unwrap_err().to_string().contains("hex:00ff"),
                "{bad}"
            );
        }
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
        for socket in [all.unwrap(), one.unwrap()] {
            let target = ([127, 0, 0, 1], socket.local_addr().unwrap().port()).into();
            assert_eq!(Server::holding(&Live, target), here);
            drop(socket);
            assert_eq!(Server::holding(&Live, target), Server::Hidden);
        }
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
        assert!(!certified([0.0, 0.0], false), "nobody knows the server");
    }
}
