//! The bottleneck of a host, the evidence for it, what to do, and what could not be measured.

mod generator;
mod joined;
pub(crate) mod replay;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
pub use generator::Unit;
use joined::Files;
use rungwise_host::{Host, clock, files, live::Live};
use rungwise_knobs::Context;
use rungwise_model::Exit;
use rungwise_model::check::{CheckReport, Finding, Outcome, Place, Recommendation, Standing};
use rungwise_model::evidence::{Evidence, Kind, Reading, Subject};
use rungwise_model::gc::GcReport;
use rungwise_model::jfr::JfrReport;
use rungwise_model::keys;
use rungwise_model::threads::ThreadsReport;
use rungwise_probes::capture::Process;
use rungwise_probes::{Capture, bundle};
use rungwise_report::check;
use rungwise_rules::Rule;

use crate::capture::Sampling;
use crate::documents::Document as _;
use crate::jvm::watch::Watch;
use crate::network::Network;
use crate::problem::Problem;
use crate::{Invocation, file_type, jvm, service};

/// Find the bottleneck: judge this host, a process on it, a capture of another, a GC log, thread dumps, or a JFR recording.
///
/// Without TARGET this host is observed for ten seconds; nothing is changed. Exit status: 0 nothing to act on and every
/// resource measured, 1 findings at or above --fail-on, 3 nothing found but not every resource measured.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// What to judge instead of this host: a capture (`rungwise capture -o host.rungwise`), a GC log, a thread dump,
    /// or a JFR recording; the type is detected. Several files of one JVM and its host are judged together.
    #[arg(value_name = "TARGET", conflicts_with_all = ["window", "pid", "socket", "no_stacks", "hz", "no_jvm"])]
    pub targets: Vec<PathBuf>,
    /// How a host is sampled.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Report of the load generator that drove the service during the window (`rungwise load udp ... --format json -o load.json`):
    /// whether the service was the limit, or the generator. Or a table of percentiles that `HdrHistogram` printed
    /// (`wrk2 --latency ... > load.txt`): whether requests wait for delayed acknowledgements.
    #[arg(long, value_name = "REPORT")]
    pub load: Option<PathBuf>,
    /// Unit of a table of percentiles that lacks it: `HdrHistogram` prints bare numbers, wrk2 and vegeta print
    /// milliseconds.
    #[arg(long, value_enum, value_name = "UNIT", requires = "load")]
    pub load_unit: Option<Unit>,
    /// Its report from the same service at a tenth of the rate, at any time: whether replies are slower under light
    /// load.
    #[arg(long, value_name = "REPORT", requires = "load")]
    pub light_load: Option<PathBuf>,
    /// Thread dumps of the judged JVM, taken during the window (`jcmd PID Thread.print -l`, three times): whether it waits for
    /// its own locks while CPUs are idle.
    #[arg(long, value_name = "DUMP", num_args = 1..)]
    pub dumps: Vec<PathBuf>,
    /// Do not attach to the process of --pid if it is a JVM. By default three thread dumps are taken of it during the window, each of which
    /// stops it for milliseconds, and the GC log that it writes is read.
    #[arg(long)]
    pub no_jvm: bool,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// What a target was, judged.
#[derive(Debug)]
pub enum Checked {
    /// This host, a process on it, or a capture.
    Host(Box<CheckReport>),
    /// A GC log.
    GcLog(Box<GcReport>),
    /// A Flight Recorder file.
    Recording(Box<JfrReport>),
    /// Thread dumps.
    Dumps(Box<ThreadsReport>),
}

/// Standard input as a file.
const STDIN: &str = "/dev/stdin";

/// The lowest outcome of a finding that ends with [`Exit::Failed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum FailOn {
    Act,
    Watch,
    Never,
}

/// Samples the host, or reads the target, and judges it.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Checked> {
    // As everywhere else, a hyphen is standard input.
    let targets: Vec<PathBuf> = request
        .targets
        .iter()
        .map(|path| match path.to_str() {
            Some("-") => PathBuf::from(STDIN),
            _ => path.clone(),
        })
        .collect();
    let files = (targets.len() > 1)
        .then(|| Files::classify(&targets))
        .transpose()?;
    let target = match &files {
        Some(files) => files.capture.as_deref(),
        None => targets.first().map(PathBuf::as_path),
    };
    if let Some(path) = target
        .filter(|_| files.is_none())
        .filter(|path| files::leads_to_plain(path) || files::is_folder(path))
        && let Some(file_type) = file_type::detect(path)
    {
        request.stands_alone(path, file_type.name)?;
        return (file_type.check)(path, request.fail_on, invocation);
    }
    let started = clock::utc_now();
    if let Some(files) = files.as_ref().filter(|files| files.capture.is_none()) {
        request.stands_alone(Path::new(&files.target()), "what a JVM wrote")?;
        let report = files.judge(request, started, invocation)?;
        return Ok(Checked::Host(Box::new(report)));
    }
    // A wrong file is reported before the capture, not after it.
    let read = |path: &Path| generator::read(path, request.load_unit);
    let mut heard = request.load.as_deref().map(read).transpose()?;
    if let (Some(heard), Some(path)) = (&mut heard, &request.light_load) {
        heard.beside(&read(path)?, path)?;
    }
    let dumps = (!request.dumps.is_empty())
        .then(|| jvm::threads::of_one_jvm(&request.dumps))
        .transpose()?;
    let sampling = match target {
        Some(_) => request.sampling.clone(),
        None => request.sampling.with_process()?,
    };
    let network = match target {
        Some(_) => Network::default(),
        None => Network::for_pid(sampling.pid),
    };
    // A file is opened before signals are held back: a pipe may have nothing to say for long.
    let stored = target.map(open).transpose()?;
    let interrupt = invocation.interrupt()?;
    // Dumps that the user has are the better ones: they are of the moments that the user chose.
    let of_jvm = sampling.pid.filter(|_| !request.no_jvm && dumps.is_none());
    let watch = of_jvm.and_then(|pid| Watch::start(pid, sampling.window));
    let (mut capture, target) = if let (Some(capture), Some(path)) = (stored, target) {
        (capture, path.display().to_string())
    } else {
        let capture = sampling.capture(&network, &interrupt, invocation)?;
        if let Some(process) = capture.process.as_ref().filter(|process| ended(process)) {
            let why = anyhow::anyhow!(
                "cannot judge pid {} ({}): it ended during the window; use a shorter --for, or judge the host without --pid",
                process.pid,
                process.name
            );
            return Err(Problem::with(Exit::Precondition, why));
        }
        let target = capture.process.as_ref().map_or_else(
            || "this host".to_owned(),
            |process| {
                let elsewhere = if network.is_elsewhere {
                    ", in a network namespace of its own"
                } else {
                    ""
                };
                format!(
                    "pid {} ({}) on this host{elsewhere}",
                    process.pid, process.name
                )
            },
        );
        let target = match &sampling.socket[..] {
            [] => target,
            ports => format!("service {}, {target}", service::words(ports)),
        };
        (capture, target)
    };
    if let Some(heard) = heard {
        invocation.say(&format!("rungwise: {}", heard.when()));
        heard.put(&mut capture);
    }
    let place = if !request.targets.is_empty() {
        Place::Capture
    } else if network.is_elsewhere {
        Place::OtherNamespace
    } else {
        Place::Host
    };
    let mut evidence = evidence(&capture, &target)?;
    if let Some(dumps) = dumps {
        join(&mut evidence, &dumps.evidence, capture.process.as_ref());
    }
    let mut jvm = watch.map(|watch| watch.end(&mut evidence, capture.process.as_ref()));
    let mut judged_files = Vec::new();
    let target = match &files {
        Some(files) => {
            let joined = files.join(&mut evidence, Some(&capture))?;
            jvm = Some(joined.jvm);
            judged_files = joined.files;
            files.target()
        }
        None => target,
    };
    let mut findings = rungwise_rules::judge(&evidence);
    pin_running(&mut findings, capture.process.as_ref(), &evidence);
    if request.targets.is_empty() {
        stand(&mut findings, (&Live, network.host()), &evidence);
    } else {
        let host = replay::host(&capture);
        stand(&mut findings, (&host, &host), &evidence);
    }
    let resources = rungwise_rules::resources(&evidence);
    let standing = Standing::from_findings(&findings, &resources);
    let exit = if interrupt.raised() {
        Exit::Interrupted
    } else {
        match exit(&findings, request.fail_on) {
            Exit::Done if standing == Standing::Unseen => Exit::Inconclusive,
            exit => exit,
        }
    };
    Ok(Checked::Host(Box::new(CheckReport {
        envelope: invocation.envelope(CheckReport::KIND, started, exit),
        target,
        place: Some(place),
        host: capture.machine.hostname.clone(),
        taken: capture.taken.clone(),
        window_s: evidence.seconds(),
        findings,
        standing: Some(standing),
        resources,
        tables: check::tables(&evidence),
        readings: check::readings(&evidence),
        jvm,
        service: rungwise_rules::service(&evidence),
        files: judged_files,
    })))
}

impl Request {
    /// Refuses what is said of a host where the target tells of none.
    fn stands_alone(&self, path: &Path, kind: &str) -> anyhow::Result<()> {
        for (option, given) in [
            ("--load", self.load.is_some()),
            ("--dumps", !self.dumps.is_empty()),
        ] {
            anyhow::ensure!(
                !given,
                "cannot judge {} with {option}: it is {kind}, which contains no host; remove {option}, or name a capture that \
                 was taken at the same time",
                path.display()
            );
        }
        Ok(())
    }
}

/// What the dumps of a JVM say, beside what the capture of its host said. Where one process is judged they are its dumps, and
/// its share of threads at locks stands beside what the host tells of that process.
pub(crate) fn join(evidence: &mut Evidence, dumps: &Evidence, process: Option<&Process>) {
    for reading in dumps.readings() {
        evidence.add(reading.clone());
        if let Some(process) = process.filter(|_| reading.key == &keys::THREADS_LOCK_WAITING) {
            evidence.add(Reading {
                key: &keys::JVM_LOCK_WAITING,
                subject: Subject::new(Kind::Process, process.pid),
                ..reading.clone()
            });
        }
    }
}

/// It is gone, or a zombie: its numbers are those of a part of the window.
fn ended(process: &Process) -> bool {
    let stat = Live.text(Path::new(&format!("/proc/{}/stat", process.pid)));
    let state = stat.ok().and_then(|stat| {
        let (_, behind) = stat.rsplit_once(") ")?;
        behind.chars().next()
    });
    matches!(state, None | Some('Z' | 'X'))
}

/// What the report says of each rule beyond its findings.
pub(crate) fn about() -> Vec<check::About> {
    rungwise_rules::RULES
        .iter()
        .copied()
        .map(about_rule)
        .collect()
}

fn about_rule(rule: &Rule) -> check::About {
    check::About {
        id: rule.id.to_owned(),
        topic: rule.topic.to_owned(),
        summary: rule.summary.to_owned(),
        page: rule.page(),
        needs: rule.needs.iter().map(|key| key.id.to_owned()).collect(),
        knobs: rule.knobs.iter().map(|id| (*id).to_owned()).collect(),
    }
}

/// What `capture` of `target` says.
pub(crate) fn evidence(capture: &Capture, target: &str) -> anyhow::Result<Evidence> {
    let evidence = rungwise_probes::evidence(capture);
    anyhow::ensure!(
        !evidence.is_overfull(),
        "cannot judge {target}: it describes more than any machine has; it is damaged or malicious"
    );
    Ok(evidence)
}

/// The type of the file is detected and never asked for.
pub(crate) fn open(path: &Path) -> anyhow::Result<Capture> {
    if let Some(why) = files::why_missing(path) {
        anyhow::bail!("cannot judge {}: {why}", path.display());
    }
    anyhow::ensure!(
        !files::would_wait(path),
        "cannot judge {}: it is neither a file nor a folder, and reading it may never end; give a file, or a pipe as /dev/stdin",
        path.display()
    );
    if files::is_folder(path) {
        files::list(path).with_context(|| format!("cannot list the folder {}", path.display()))?;
    } else if files::leads_to_plain(path) {
        // Whoever may not read it learns that, and not what it is not.
        files::open(path)?;
    }
    bundle::read(path).map_err(|error| {
        if files::is_folder(path) {
            return error.into();
        }
        if !files::leads_to_plain(path) {
            // What came through a pipe is gone, so what else it was cannot be found out.
            return anyhow::anyhow!(
                "{error}; standard input is a pipe; use `rungwise jvm gc -` for a GC log and `rungwise jvm threads -` \
                 for a thread dump"
            );
        }
        let first = files::read_at_most(path, 32).unwrap_or_default();
        let is_packed = bundle::looks_like(&first);
        match jvm::gc::not_one(path).filter(|found| !is_packed || found.starts_with("it begins")) {
            Some(found) => anyhow::anyhow!(
                "cannot judge {}: it is not a capture, a GC log or a thread dump: {found}; `rungwise capture -o host.rungwise` writes a \
                 capture, and a JVM started with -Xlog:gc*:file=gc.log a log",
                path.display()
            ),
            // Nothing else begins so: it is a capture that is damaged, cut short or too new.
            None if is_packed => {
                anyhow::Error::new(error).context(format!("cannot judge {}", path.display()))
            }
            None => anyhow::Error::new(error).context(format!(
                "cannot judge {}, which is neither a GC log nor a thread dump",
                path.display()
            )),
        }
    })
}

pub(crate) fn exit(findings: &[Finding], fail_on: FailOn) -> Exit {
    let least = match fail_on {
        FailOn::Act => Some(Outcome::Act),
        FailOn::Watch => Some(Outcome::Watch),
        FailOn::Never => None,
    };
    if least.is_some_and(|least| findings.iter().any(|finding| finding.outcome <= least)) {
        Exit::Failed
    } else if findings
        .iter()
        .all(|finding| finding.outcome == Outcome::Undecided)
    {
        Exit::Inconclusive
    } else {
        Exit::Done
    }
}

/// Says of each knob that is asked for how it stands, and drops a wish that is fulfilled already.
///
/// `on` is the machine, and the same with the network that was looked at.
pub(crate) fn stand(findings: &mut [Finding], on: (&dyn Host, &dyn Host), evidence: &Evidence) {
    let cpus: Vec<usize> = evidence
        .each(&keys::CPU_BUSY)
        .map(|all| {
            all.iter()
                .filter_map(|(cpu, _)| cpu.name().parse().ok())
                .collect()
        })
        .unwrap_or_default();
    for turn in findings.iter_mut().flat_map(|finding| &mut finding.knobs) {
        let Ok(knob) = rungwise_knobs::find(&turn.id) else {
            continue;
        };
        let context = context(on, turn, &cpus);
        turn.from = knob.current(&context).ok().and_then(|now| now.value.ok());
    }
    for finding in findings {
        finding.knobs.retain(|turn| !fulfilled(turn, on, &cpus));
    }
}

/// Threads of a service that runs are pinned by its pid: `on` is for one that starts again with the switch. Where the process
/// is unknown, the wish is for a person to choose.
fn pin_running(findings: &mut [Finding], judged: Option<&Process>, evidence: &Evidence) {
    let cpus = evidence.each(&keys::CPU_BUSY).unwrap_or_default();
    let cpus: Vec<&str> = cpus.iter().map(|(cpu, _)| cpu.name()).collect();
    for finding in findings {
        let subject = finding.subject.parse::<Subject>().ok();
        let own = subject.filter(|s| matches!(s.kind(), Kind::Process | Kind::Thread));
        let own = own.map(|s| s.name().split(':').next().unwrap_or_default().to_owned());
        let own = own.or_else(|| owner_of(evidence, &finding.subject));
        let pid = own.or_else(|| judged.map(|process| process.pid.to_string()));
        let on = |turn: &&mut Recommendation| {
            turn.id == "cpu.pin_threads" && turn.to.as_deref() == Some("on")
        };
        for turn in finding.knobs.iter_mut().filter(on) {
            turn.to = pid
                .as_ref()
                .filter(|_| !cpus.is_empty())
                .map(|pid| format!("{pid}:each:{}", cpus.join(",")));
        }
    }
}

/// The pid of the process that owns the sockets of a UDP port.
fn owner_of(evidence: &Evidence, port: &str) -> Option<String> {
    let port = port.parse::<Subject>().ok()?;
    let owner = evidence.words(&keys::UDP_PROCESS, &port).ok()?;
    // `nginx 41`
    let (_, pid) = owner.value.rsplit_once(' ')?;
    pid.parse::<u32>().is_ok().then(|| pid.to_owned())
}

fn context<'a>(
    (machine, here): (&'a dyn Host, &'a dyn Host),
    turn: &'a Recommendation,
    cpus: &'a [usize],
) -> Context<'a> {
    Context {
        here,
        ..Context::of_host(machine, turn.device.as_deref(), cpus)
    }
}

/// What the turn wishes for holds already: a wish may name a part of what the knob shows, so its plan is asked.
fn fulfilled(turn: &Recommendation, on: (&dyn Host, &dyn Host), cpus: &[usize]) -> bool {
    let (Ok(knob), Some(to)) = (rungwise_knobs::find(&turn.id), turn.to.as_deref()) else {
        return false;
    };
    if turn.from.as_deref() == Some(to) {
        return true;
    }
    let context = context(on, turn, cpus);
    knob.plan(&context, to)
        .is_ok_and(|plan| !plan.edits.is_empty() && !plan.changes())
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Origin;

    use super::*;

    #[test]
    fn threads_of_a_running_service_are_pinned_by_its_pid() {
        let mut evidence = Evidence::over(10.0);
        for cpu in 0..2 {
            let origin = Origin::new("stat", "");
            evidence.number(&keys::CPU_BUSY, Subject::cpu(cpu), 0.5, origin);
        }
        let judged = Process {
            pid: 812,
            name: "x".to_owned(),
        };
        let thread = Subject::new(Kind::Thread, "814:815");
        let port = Subject::new(Kind::Port, "udp/0.0.0.0:53");
        let origin = Origin::new("sock_diag", "");
        evidence.text(&keys::UDP_PROCESS, port.clone(), "name server 53", origin);
        for (subject, judged, wish) in [
            (port, Some(&judged), Some("53:each:0,1")),
            (thread, None, Some("814:each:0,1")),
            (Subject::host(), Some(&judged), Some("812:each:0,1")),
            (Subject::host(), None, None),
        ] {
            let mut findings = [Finding::act(&subject, "").turn("cpu.pin_threads", "on")];
            pin_running(&mut findings, judged, &evidence);
            assert_eq!(findings[0].knobs[0].to.as_deref(), wish);
        }
    }

    #[test]
    fn dumps_of_the_judged_process_stand_beside_what_the_host_tells_of_it() {
        let mut dumps = Evidence::default();
        let jvm = Subject::new(Kind::Dumps, 1);
        dumps.number(
            &keys::THREADS_LOCK_WAITING,
            jvm.clone(),
            0.4,
            Origin::new("dump", ""),
        );
        let process = Process {
            pid: 812,
            name: "java".to_owned(),
        };
        for (process, is_joined) in [(None, false), (Some(&process), true)] {
            let mut host = Evidence::over(10.0);
            join(&mut host, &dumps, process);
            assert!(host.quantity(&keys::THREADS_LOCK_WAITING, &jvm).is_ok());
            let waiting = host.quantity(&keys::JVM_LOCK_WAITING, &Subject::new(Kind::Process, 812));
            assert_eq!(waiting.is_ok(), is_joined);
        }
    }
}
