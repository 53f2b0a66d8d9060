//! One trial of a host fault: service, load, fault, `rungwise check`, undo, load again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::bench::{self, Bench};
use super::client::{self, Order};
use super::kinds::{Driver, HostKind, Kinds, Load, Service, filled};
use super::plan::{Beside, HostPlan};
use super::score::{Harm, Seen, lost};
use super::shell::{Group, Interrupted, Shell, last_line, read};
use super::subjects::{Subjects, loop_devices};
use crate::packages;

/// The server's device.
const DEVICE: &str = "srv";
/// Seconds of load before the fault, with it, and after it.
const BEFORE: f64 = 3.0;
const AFTER: f64 = 2.0;
/// With the advice applied.
const CURED: f64 = 4.0;
/// The load runs so long before `check` begins.
const SETTLES: Duration = Duration::from_millis(1500);
/// A script that takes longer hangs: initdb on a busy machine is the slowest.
const SCRIPT: Duration = Duration::from_secs(40);
/// `check` that takes longer hangs. On a machine whose CPUs the fault has taken, it is slow.
const CHECK: Duration = Duration::from_mins(1);
/// An ordinary neighbour: 25 ms of each 100 ms of a CPU.
pub(super) const NEIGHBOUR: &str = "perl -MTime::HiRes=time,sleep -e \
    'while (1) { my $t = time; 1 while time - $t < 0.025; sleep 0.075 }' &";

/// The result.
#[derive(Debug)]
pub struct Tried {
    /// The load before, with the second fault where there is one.
    pub without: Seen,
    /// The load with the fault.
    pub with: Seen,
    /// The load after the fault was undone.
    pub after: Seen,
    /// What `confirm` printed, or why it failed.
    pub confirmed: Result<String, String>,
    /// The document of `check`.
    pub document: Value,
    /// The first line of its page.
    pub verdict: String,
    /// What findings may be about.
    pub subjects: Subjects,
    /// How long `check` took.
    pub check: Duration,
    /// The effect of its advice, where it names a knob with a value and the fault hurts.
    pub cure: Option<Cure>,
}

/// The advice of a check, applied.
#[derive(Debug)]
pub struct Cure {
    /// Knobs with their values.
    pub knobs: Vec<String>,
    /// The load with the fault and the knobs applied; or why they were not.
    pub load: Result<Seen, String>,
}

impl Tried {
    /// How much the fault hurt.
    pub fn harm(&self) -> Harm {
        Harm::between(&self.without, &self.with)
    }

    /// The effect of the advice, in words; whether it removed at least half of the harm.
    pub fn cured(&self) -> Option<(String, bool)> {
        let cure = self.cure.as_ref()?;
        let knobs = cure.knobs.join(" ");
        Some(match &cure.load {
            Err(why) => (format!("{knobs}: not applied: {why}"), false),
            Ok(cured) => {
                let (was, is) = (lost(&self.without, &self.with), lost(&self.without, cured));
                let tail = |seen: &Seen| seen.p99_ms - self.without.p99_ms;
                let halved = if was >= 0.2 {
                    is <= was / 2.0
                } else {
                    tail(cured) <= tail(&self.with) / 2.0
                };
                let effect = format!(
                    "{knobs}: lost {:.0} to {:.0} %, p99 {:.1} to {:.1} ms",
                    was * 100.0,
                    is * 100.0,
                    self.with.p99_ms,
                    cured.p99_ms
                );
                (effect, halved)
            }
        })
    }

    /// Why nothing can be concluded from it.
    pub fn void(&self) -> Option<String> {
        if self.without.fails() {
            return Some("half of the requests failed before the fault was planted".to_owned());
        }
        if self.harm() != Harm::Hurts {
            return None;
        }
        if let Err(why) = &self.confirmed {
            return Some(format!("not confirmed: {why}"));
        }
        // What others do on the machine makes a tail as well, so a quarter of the harm may be left.
        let left = lost(&self.without, &self.after);
        let tail = |seen: &Seen| seen.p99_ms - self.without.p99_ms;
        let was = lost(&self.without, &self.with);
        let still = if was >= 0.2 {
            left > was / 4.0 + 0.05
        } else {
            tail(&self.after) > (tail(&self.with) / 4.0).max(1.0)
        };
        still.then(|| {
            let (percent, p99) = (left * 100.0, self.after.p99_ms);
            format!("still slow after it was undone: lost {percent:.0} %, p99 {p99:.1} ms")
        })
    }
}

/// Programs that trials need.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The `rungwise` that is judged.
    pub rungwise: PathBuf,
    /// Ourselves.
    pub xtask: PathBuf,
    /// No reader is judged: a moment of little load, to see whether the scripts work here.
    pub rehearses: bool,
    /// How long the load lasts with the fault, and the window of `check`.
    pub pace: Pace,
}

/// How long a fault is observed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Seconds of load.
    during: f64,
    /// Window of `check`.
    window: &'static str,
}

impl Pace {
    /// As users check: the default window. Faults that come every few seconds are met in it.
    pub const ORDINARY: Self = Self {
        during: 15.0,
        window: "10s",
    };
    /// Enough for faults that are there all the time.
    pub const SHORT: Self = Self {
        during: 10.0,
        window: "5s",
    };
}

/// Makes the trial.
pub fn run(
    plan: &HostPlan,
    number: usize,
    kinds: &Kinds,
    programs: &Programs,
    interrupted: &Interrupted,
) -> Result<Tried> {
    let bench = Bench::make(number)?;
    let service = kinds.service(&plan.service)?;
    let mut variables = plan.params.clone();
    let display = |path: &Path| path.display().to_string();
    variables.extend(
        [
            ("ADDR", bench::SERVER.to_owned()),
            ("CLIENT_ADDR", bench::CLIENT.to_owned()),
            ("PORT", service.port.to_string()),
            ("DEV", DEVICE.to_owned()),
            ("CLIENT_DEV", "cli".to_owned()),
            ("SERVER_NS", bench.server()),
            ("CLIENT_NS", bench.client()),
            ("NAME", bench.name().to_owned()),
            ("GROUP", format!("{}/{}", bench.name(), plan.group)),
            ("TMP", display(bench.folder())),
            ("PATH", packages::path()?.to_string_lossy().into_owned()),
            ("RUNGWISE", display(&programs.rungwise)),
            ("XTASK", display(&programs.xtask)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let mut trial = Trial {
        shell: Shell {
            namespace: bench.server(),
            variables,
            folder: bench.folder().to_owned(),
            interrupted: interrupted.clone(),
        },
        client: bench.client(),
        service,
        load: service.load.with(&plan.kind.load),
        share: plan.load,
        programs,
        runs: 0,
    };
    let tried = trial.run(plan);
    // Processes first, then what holds them.
    drop(trial);
    drop(bench);
    tried
}

struct Trial<'run> {
    shell: Shell,
    client: String,
    service: &'run Service,
    load: Load,
    share: f64,
    programs: &'run Programs,
    runs: usize,
}

impl Trial<'_> {
    fn run(&mut self, plan: &HostPlan) -> Result<Tried> {
        let kind = &plan.kind;
        let mut running = self.start_service(&kind.base)?;
        let prepared = self.shell.run("prepare", &self.service.prepare, SCRIPT)?;
        let neighbour = matches!(plan.beside, Beside::Neighbour)
            .then(|| self.shell.run("neighbour", NEIGHBOUR, SCRIPT))
            .transpose()?;
        let mut without = self.loaded(&self.load.clone(), BEFORE)?;
        if without.rate == 0.0 {
            bail!("{} does not answer: {}", self.service.id, self.why());
        }
        let mut second = None;
        if let Beside::Fault(other) = &plan.beside {
            second = Some(self.shell.run("plant-second", &other.plant, SCRIPT)?);
            // What it costs by itself is not harm of the first fault.
            without = self.loaded(&self.load.clone(), BEFORE)?;
        }
        let restarts = !kind.env.is_empty();
        let planted = if restarts {
            drop(running);
            let planted = self.shell.run("plant", &kind.plant, SCRIPT)?;
            running = self.start_service(&kind.env_with_fault())?;
            planted
        } else {
            self.shell.run("plant", &kind.plant, SCRIPT)?
        };
        let pressed = self.load.with(&kind.pressed);
        let during = if self.programs.rehearses {
            AFTER
        } else {
            self.programs.pace.during
        };
        let mut load = self.start_load(&pressed, during)?;
        self.shell.interrupted.sleep(SETTLES)?;
        let scripts = std::iter::once(&planted).chain(&second);
        let scripts: Vec<u32> = scripts.map(|(group, _)| group.pid()).collect();
        let mut subjects = Subjects {
            port: self.service.port,
            device: DEVICE,
            folder: self.shell.folder.clone(),
            disks: loop_devices(&self.shell.folder),
            group: self.shell.variables["NAME"].clone(),
            ..Subjects::default()
        };
        subjects.add_processes(running.pid(), &scripts);
        let began = Instant::now();
        let document = if self.programs.rehearses {
            Value::Null
        } else {
            self.check(plan.with_pid.then(|| running.pid()))?
        };
        let check = began.elapsed();
        subjects.add_processes(running.pid(), &scripts);
        let verdict = if document.is_null() {
            String::new()
        } else {
            let (rungwise, folder) = (&self.programs.rungwise, &self.shell.folder);
            verdict(rungwise, &document, folder, &self.shell.interrupted)?
        };
        let with = self.end_load(&mut load, &pressed, during)?;
        let confirmed = self.confirm(kind);
        let hurts = Harm::between(&without, &with) == Harm::Hurts;
        let cure = if hurts && confirmed.is_ok() {
            self.cure(&document, &pressed)?
        } else {
            None
        };
        // What the scripts left in the background ends with their groups.
        drop((planted, second, prepared));
        self.shell.run("undo", &kind.undo, SCRIPT)?;
        if let Beside::Fault(other) = &plan.beside {
            self.shell.run("undo-second", &other.undo, SCRIPT)?;
        }
        if restarts || running.has_ended() {
            drop(running);
            running = self.start_service(&kind.base)?;
        }
        self.shell.interrupted.sleep(Duration::from_millis(300))?;
        let after = self.loaded(&self.load.clone(), AFTER)?;
        drop((running, neighbour));
        Ok(Tried {
            without,
            with,
            after,
            confirmed,
            document,
            verdict,
            subjects,
            check,
            cure,
        })
    }

    /// Turns the knobs of the findings to act on, loads, and turns them back.
    fn cure(&mut self, document: &Value, load: &Load) -> Result<Option<Cure>> {
        let findings = document["findings"].as_array();
        let acts = findings
            .into_iter()
            .flatten()
            .filter(|finding| finding["outcome"] == "act");
        let knobs: Vec<String> = acts
            .flat_map(|finding| finding["knobs"].as_array().into_iter().flatten())
            .filter_map(|knob| {
                let (id, to) = (knob["id"].as_str()?, knob["to"].as_str()?);
                let device = knob["device"].as_str();
                Some(match device {
                    Some(device) => format!("{id}={to} ({device})"),
                    None => format!("{id}={to}"),
                })
            })
            .collect();
        if knobs.is_empty() {
            return Ok(None);
        }
        let path = self.shell.folder.join("check.json");
        std::fs::write(&path, document.to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
        let interrupted = self.shell.interrupted.clone();
        let apply = ["apply", "--from", "check.json", "--evidence-for", "0s"];
        let applied = self.knob(&apply, &interrupted).and_then(|applied| {
            let refused = applied["left_out"].as_array().into_iter().flatten();
            let refused: Vec<&str> = refused.filter_map(|left| left["why"].as_str()).collect();
            anyhow::ensure!(
                applied["changes"].as_u64() > Some(0),
                "nothing was changed: {}",
                refused.join("; ")
            );
            Ok(applied)
        });
        let seen = applied.is_ok().then(|| self.loaded(load, CURED));
        // Whatever came of it, and after a signal as well: some knobs are of the whole host.
        let undone = self.knob(&["undo"], &Interrupted::default());
        interrupted.check()?;
        let load = match (applied, seen) {
            (Ok(_), Some(seen)) => {
                undone.context("cannot undo the advice")?;
                Ok(seen?)
            }
            (Err(why), _) => Err(format!("{why:#}")),
            (Ok(_), None) => Err("no load".to_owned()),
        };
        Ok(Some(Cure { knobs, load }))
    }

    fn knob(&self, arguments: &[&str], interrupted: &Interrupted) -> Result<Value> {
        let mut command = Shell::inside(&self.shell.namespace, &self.programs.rungwise);
        command
            .arg("knob")
            .args(arguments)
            .args(["--quiet", "--format", "json", "--state", "state"])
            .current_dir(&self.shell.folder);
        asked(command, &self.shell.folder, interrupted, CHECK)
    }

    fn confirm(&self, kind: &HostKind) -> Result<String, String> {
        if kind.is_healthy() {
            return Ok("nothing is planted".to_owned());
        }
        match self.shell.run("confirm", &kind.confirm, SCRIPT) {
            Ok((_, printed)) if printed.trim().is_empty() => Err("printed nothing".to_owned()),
            Ok((_, printed)) => Ok(printed.trim().replace('\n', "; ")),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    /// Starts the service and waits until it listens.
    fn start_service(&mut self, env: &BTreeMap<String, String>) -> Result<Group> {
        let plain = self.shell.variables.clone();
        let own = env
            .iter()
            .map(|(name, value)| (name.clone(), filled(value, &plain)));
        self.shell.variables.extend(own);
        let started = self.shell.start("service", &self.service.start);
        self.shell.variables = plain;
        let started = started?;
        let pid = started.pid().to_string();
        self.shell.variables.insert("PID".to_owned(), pid);
        let listens =
            "until ss -H -ltun \"sport = :$PORT\" | grep -q .; do kill -0 $PID; sleep 0.05; done";
        let ready = format!("{listens}\n{}", self.service.ready);
        self.shell.run("ready", &ready, SCRIPT).map_err(|error| {
            error.context(format!(
                "{} does not start: {}",
                self.service.id,
                self.why()
            ))
        })?;
        Ok(started)
    }

    /// The last output of the service.
    fn why(&self) -> String {
        let folder = &self.shell.folder;
        let said = read(&folder.join("service.err")) + &read(&folder.join("service.out"));
        last_line(&said).to_owned()
    }

    fn check(&self, pid: Option<u32>) -> Result<Value> {
        let mut command = Shell::inside(&self.shell.namespace, &self.programs.rungwise);
        command
            .args([
                "check",
                "--quiet",
                "--fail-on",
                "never",
                "--format",
                "json",
                "--for",
                self.programs.pace.window,
            ])
            .current_dir(&self.shell.folder);
        if let Some(pid) = pid {
            command.args(["--pid", &pid.to_string()]);
        }
        asked(command, &self.shell.folder, &self.shell.interrupted, CHECK)
    }

    fn loaded(&mut self, load: &Load, seconds: f64) -> Result<Seen> {
        let mut running = self.start_load(load, seconds)?;
        self.end_load(&mut running, load, seconds)
    }

    fn rate(&self, load: &Load) -> f64 {
        let [low, high] = load.rate.unwrap_or([100.0, 100.0]);
        let rate = low + (high - low) * self.share;
        if self.programs.rehearses {
            rate / 10.0
        } else {
            rate
        }
    }

    fn start_load(&mut self, load: &Load, seconds: f64) -> Result<Group> {
        self.runs += 1;
        let rate = self.rate(load);
        let fill =
            |text: &Option<String>| filled(text.as_deref().unwrap_or(""), &self.shell.variables);
        let address = format!("{}:{}", bench::SERVER, self.service.port);
        let inside = |program: &Path| Shell::inside(&self.client, program);
        let command = match self.service.driver {
            Driver::Tcp => {
                let pause: f64 = fill(&load.read_after_ms).parse().unwrap_or(0.0);
                let order = Order {
                    address: address.parse()?,
                    rate,
                    connections: load.connections.unwrap_or(8),
                    seconds,
                    request: fill(&load.request),
                    until: self.service.until.clone(),
                    fresh: load.fresh.unwrap_or(false),
                    burst: load.burst.unwrap_or(false),
                    read_after: Duration::from_secs_f64(pause / 1e3),
                };
                let mut command = inside(&self.programs.xtask);
                command
                    .arg("faults-load")
                    .arg(serde_json::to_string(&order)?);
                command
            }
            Driver::Pgbench => {
                let mut command = inside(Path::new("pgbench"));
                command
                    .args([
                        "--no-vacuum",
                        "--jobs=2",
                        "--log",
                        "--host",
                        bench::SERVER,
                        "--username=postgres",
                    ])
                    .arg(format!("--client={}", load.connections.unwrap_or(8)))
                    .arg(format!("--rate={rate:.0}"))
                    .arg(format!("--time={seconds:.0}"))
                    .arg(format!("--log-prefix=pgbench{}", self.runs))
                    .args(fill(&load.args).split_whitespace())
                    .arg("postgres");
                command
            }
            Driver::Udp => {
                let mut command = inside(&self.programs.rungwise);
                command
                    .args(["load", "udp", &address, "--quiet", "--format", "json"])
                    .args([
                        "--rate",
                        &format!("{rate:.0}/s"),
                        "--for",
                        &format!("{seconds:.0}s"),
                    ])
                    .args(fill(&load.args).split_whitespace());
                command
            }
        };
        let mut command = command;
        command.current_dir(&self.shell.folder);
        Group::start(command, &self.load_log())
    }

    fn load_log(&self) -> PathBuf {
        self.shell.folder.join(format!("load{}.out", self.runs))
    }

    fn end_load(&self, running: &mut Group, load: &Load, seconds: f64) -> Result<Seen> {
        // A load whose service stopped answering may hang; what it saw until then counts.
        let patience = Duration::from_secs_f64(seconds + 5.0);
        let ended = running.wait(patience, &self.shell.interrupted);
        self.shell.interrupted.check()?;
        let log = self.load_log();
        match self.service.driver {
            Driver::Tcp => serde_json::from_str(&read(&log)).with_context(|| {
                format!(
                    "the load generator ended with {ended:?}: {}",
                    read(&log.with_extension("err"))
                )
            }),
            Driver::Pgbench => pgbench(&self.shell.folder, self.runs, self.rate(load), seconds),
            Driver::Udp => {
                let said = read(&log.with_extension("err"));
                // It prints no document about nothing.
                if said.contains("no reply from") {
                    return Ok(Seen {
                        errors: 1.0,
                        ..Seen::default()
                    });
                }
                let document: Value = serde_json::from_str(&read(&log))
                    .with_context(|| format!("the load generator ended with {ended:?}: {said}"))?;
                Ok(udp(&document))
            }
        }
    }
}

/// Runs a reader that prints a document.
pub(super) fn asked(
    command: Command,
    folder: &Path,
    interrupted: &Interrupted,
    patience: Duration,
) -> Result<Value> {
    let log = folder.join("asked.out");
    let mut asked = Group::start(command, &log)?;
    asked.wait(patience, interrupted)?;
    let (printed, said) = (read(&log), read(&log.with_extension("err")));
    let why = || format!("rungwise printed no document: {}", last_line(&said));
    if printed.trim().is_empty() {
        bail!(why());
    }
    serde_json::from_str(&printed).with_context(why)
}

/// The first line of a document's page: the verdict as a user sees it.
pub(super) fn verdict(
    rungwise: &Path,
    document: &Value,
    folder: &Path,
    interrupted: &Interrupted,
) -> Result<String> {
    let path = folder.join("asked.json");
    std::fs::write(&path, document.to_string())
        .with_context(|| format!("cannot write {}", path.display()))?;
    let log = folder.join("verdict.out");
    let mut command = Command::new(rungwise);
    command
        .arg("report")
        .arg(&path)
        .args(["--format", "text", "--color", "never", "--quiet"]);
    Group::start(command, &log)?.wait(CHECK, interrupted)?;
    let page = read(&log);
    let line = page.lines().find(|line| !line.trim().is_empty());
    line.map(str::to_owned)
        .with_context(|| format!("rungwise report: {}", read(&log.with_extension("err"))))
}

/// What a document of `load udp` says.
fn udp(document: &Value) -> Seen {
    let number = |pointer: &str| {
        document
            .pointer(pointer)
            .and_then(Value::as_f64)
            .unwrap_or(0.0)
    };
    let sent = number("/sent");
    Seen {
        rate: number("/received") / number("/window_s").max(1e-3),
        errors: if sent > 0.0 {
            number("/lost") / sent
        } else {
            1.0
        },
        p50_ms: number("/latency_us/corrected/p50") / 1e3,
        p99_ms: number("/latency_us/corrected/p99") / 1e3,
    }
}

/// What the logs of a run of pgbench say; one per thread.
fn pgbench(folder: &Path, run: usize, rate: f64, seconds: f64) -> Result<Seen> {
    let mut text = String::new();
    let prefix = format!("pgbench{run}.");
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        {
            text.push_str(&read(&path));
        }
    }
    Ok(pgbench_log(&text, rate, seconds))
}

/// Lines are `client number microseconds ...`, with a word for the time where a transaction failed. What was due and is
/// not there, beyond what chance makes of a random timetable, has failed.
fn pgbench_log(text: &str, rate: f64, seconds: f64) -> Seen {
    let times = text.lines().filter_map(|line| line.split(' ').nth(2));
    let (mut good, mut failed) = (Vec::new(), 0);
    for time in times {
        match time.parse::<f64>() {
            Ok(microseconds) => good.push(microseconds / 1e3),
            Err(_) => failed += 1,
        }
    }
    // pgbench draws its timetable from an exponential distribution: four standard deviations.
    let due = rate * seconds;
    let missing = due - 4.0 * due.sqrt() - (good.len() + failed) as f64;
    client::seen(good, failed + missing.max(0.0) as usize, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn logs_of_pgbench_are_read_and_what_is_missing_has_failed() {
        let log =
            "0 1 1500 0 1700000000 1 0\n1 1 2500 0 1700000000 2 0\n0 2 failed 0 1700000000 3 0\n";
        let seen = pgbench_log(log, 1.0, 3.0);
        assert!((seen.rate - 2.0 / 3.0).abs() < 1e-9);
        assert!((seen.errors - 1.0 / 3.0).abs() < 1e-9);
        assert!((seen.p99_ms - 2.5).abs() < 1e-9);
        let nothing = pgbench_log("", 100.0, 10.0);
        assert_eq!((nothing.rate, nothing.errors), (0.0, 1.0));
    }

    #[test]
    fn a_document_of_load_udp_is_read() {
        let document = json!({"sent": 100, "received": 90, "lost": 10, "window_s": 2.0,
            "latency_us": {"corrected": {"p50": 100.0, "p99": 5000.0}}});
        let seen = udp(&document);
        assert_eq!((seen.rate, seen.errors, seen.p99_ms), (45.0, 0.1, 5.0));
    }

    #[test]
    fn a_fault_that_hurts_and_is_not_confirmed_is_void() {
        let seen = |rate| Seen {
            rate,
            errors: 0.0,
            p50_ms: 0.1,
            p99_ms: 0.5,
        };
        let mut tried = Tried {
            without: seen(100.0),
            with: seen(10.0),
            after: seen(100.0),
            confirmed: Ok("yes".to_owned()),
            document: Value::Null,
            verdict: String::new(),
            subjects: Subjects::default(),
            check: Duration::ZERO,
            cure: Some(Cure {
                knobs: vec!["a.knob=1".to_owned()],
                load: Ok(seen(70.0)),
            }),
        };
        assert_eq!(tried.void(), None);
        let (effect, halved) = tried.cured().unwrap();
        assert!(halved && effect.contains("lost 90 to 30 %"), "{effect}");
        tried.cure.as_mut().unwrap().load = Ok(seen(50.0));
        assert!(!tried.cured().unwrap().1);
        tried.after = seen(10.0);
        assert!(tried.void().unwrap().contains("after"));
        // A tenth of the harm is left, as noise leaves it; then half of it.
        tried.after = seen(100.0);
        tried.with = seen(100.0);
        tried.with.p99_ms = 100.5;
        tried.after.p99_ms = 10.5;
        assert_eq!(tried.void(), None);
        tried.after.p99_ms = 50.5;
        assert!(tried.void().unwrap().contains("p99 50.5 ms"));
        tried.with = seen(10.0);
        tried.confirmed = Err("no".to_owned());
        assert!(tried.void().unwrap().contains("not confirmed"));
        tried.with = seen(99.0);
        assert_eq!(tried.void(), None);
    }
}
