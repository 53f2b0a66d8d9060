//! One trial of a JVM problem: a small Java program plants it in a real JVM, counts its own harm, and leaves thread dumps or a GC log for
//! `rungwise jvm`.
//!
//! The programs are in `crates/testkit/java`, with a table of their problems and of what confirms each. They are compiled once per run by the
//! newest `javac` of the machine; those with a real connection pool need its jars, which Maven fetches. Dumps are taken with the newest `jcmd`, which can attach to older JVMs; without one, by SIGQUIT.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::host::{NEIGHBOUR, Programs, asked, verdict};
use super::jars;
use super::kinds::{JvmKind, Proof, filled};
use super::memory::MemoryGroup;
use super::plan::JvmPlan;
use super::score::{Harm, Seen};
use super::shell::{Group, Interrupted, last_line, read};
use crate::packages;
use crate::tree::Tree;

/// Programs of the tests.
const PROGRAMS: &str = "crates/testkit/java";
/// A JVM is up by then, on a busy machine too.
const STARTS: Duration = Duration::from_secs(30);
/// Between dumps; as long again on both sides of them.
const BETWEEN: Duration = Duration::from_millis(1500);
/// Seconds of a run that leaves a GC log, with the problem and without.
const LOGGED: u32 = 45;
const LOGGED_WITHOUT: u32 = 15;
/// A tail below this is made by the scheduler of a small machine as well.
const TAIL_MS: f64 = 10.0;

/// The result.
#[derive(Debug)]
pub struct Tried {
    /// By the program's own count.
    pub harm: Harm,
    /// What it counted.
    pub confirmed: String,
    /// Why nothing can be concluded.
    pub void: Option<String>,
    /// What the reader printed.
    pub document: Value,
    /// The first line of its page.
    pub verdict: String,
}

/// The JVMs and programs of a run.
#[derive(Debug)]
pub struct Jvms {
    tree: Tree,
    folder: PathBuf,
    compiled: BTreeSet<String>,
    number: usize,
    /// What programs counted without a problem, by kind, JVM and collector.
    healthy: BTreeMap<String, Counted>,
}

/// What a program counted.
#[derive(Clone, Debug, PartialEq)]
enum Counted {
    /// Work done per second in the last seconds.
    Work(f64),
    /// Its report: load and memory errors.
    Report(Seen, u64),
    /// The kernel killed it.
    Killed,
}

impl Jvms {
    /// Nothing is compiled before it is needed.
    pub fn new(tree: &Tree) -> Self {
        let folder = Path::new("/tmp").join(format!("rwf-{}-jvm", std::process::id()));
        Self {
            tree: tree.clone(),
            folder,
            compiled: BTreeSet::new(),
            number: 0,
            healthy: BTreeMap::new(),
        }
    }

    /// Makes a trial.
    pub fn run(
        &mut self,
        plan: &JvmPlan,
        programs: &Programs,
        interrupted: &Interrupted,
    ) -> Result<Tried> {
        self.compile(&plan.kind)?;
        let name = format!("java-{}", plan.jdk);
        let java =
            packages::find(&name).with_context(|| format!("no {name}; run `cargo xtask jvms`"))?;
        let neighbour = plan.neighbour.then(|| self.neighbour()).transpose()?;
        let key = format!("{} {}", plan.kind.id, plan.place());
        let compares = matches!(plan.kind.confirm, Proof::Slows | Proof::Report);
        if compares && !self.healthy.contains_key(&key) {
            let mut run = self.start(plan, &plan.harmless, &java, LOGGED_WITHOUT, interrupted)?;
            let counted = run.counted(plan, LOGGED_WITHOUT, interrupted)?;
            self.healthy.insert(key.clone(), counted);
        }
        let mut run = self.start(plan, &plan.params, &java, LOGGED, interrupted)?;
        let files = if plan.kind.reads_gc_log() {
            Vec::new()
        } else {
            run.dumps(plan, interrupted)?
        };
        let counted = run.counted(plan, LOGGED, interrupted)?;
        drop(neighbour);
        let mut reader = Command::new(&programs.rungwise);
        reader.arg("jvm").current_dir(&run.folder);
        if plan.kind.reads_gc_log() {
            reader.arg("gc").arg("gc.log");
        } else {
            reader.arg("threads").args(files);
        }
        reader.args(["--format", "json"]);
        let document = asked(reader, &run.folder, interrupted, Duration::from_mins(1))?;
        let verdict = verdict(&programs.rungwise, &document, &run.folder, interrupted)?;
        let (harm, confirmed, void) = judged(plan.kind.confirm, &counted, self.healthy.get(&key));
        Ok(Tried {
            harm,
            confirmed,
            void,
            document,
            verdict,
        })
    }

    /// Runs until it is dropped.
    fn neighbour(&self) -> Result<Group> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{NEIGHBOUR} wait")]);
        Group::start(shell, &self.folder.join("neighbour.out"))
    }

    fn classes(&self) -> PathBuf {
        self.folder.join("classes")
    }

    /// The program and what it needs, once.
    fn compile(&mut self, kind: &JvmKind) -> Result<()> {
        if self.compiled.contains(&kind.program) {
            return Ok(());
        }
        let classes = self.classes();
        std::fs::create_dir_all(&classes)
            .with_context(|| format!("cannot create {}", classes.display()))?;
        let javac =
            newest("javac").context("no javac; run `cargo xtask test`, which installs one")?;
        let source = self
            .tree
            .join(PROGRAMS)
            .join(format!("{}.java", kind.program));
        // An older javac does not know virtual threads.
        let release = if kind.program == "Virtual" { "21" } else { "8" };
        let output = Command::new(&javac)
            .args(["-nowarn", "--release", release, "-sourcepath"])
            .arg(self.tree.join(PROGRAMS))
            .arg("-cp")
            .arg(self.class_path(kind)?)
            .arg("-d")
            .args([&classes, &source])
            .output()
            .context("cannot run javac")?;
        if !output.status.success() {
            bail!(
                "cannot compile {PROGRAMS}/{}.java: {}",
                kind.program,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        self.compiled.insert(kind.program.clone());
        Ok(())
    }

    /// The compiled programs and the jars of this one.
    fn class_path(&self, kind: &JvmKind) -> Result<OsString> {
        let mut all = vec![self.classes()];
        all.extend(jars::fetch(&kind.jars, &self.folder.join("jars"))?);
        std::env::join_paths(all).context("a path with a colon")
    }

    fn start(
        &mut self,
        plan: &JvmPlan,
        params: &BTreeMap<String, String>,
        java: &Path,
        seconds: u32,
        interrupted: &Interrupted,
    ) -> Result<Running> {
        self.number += 1;
        let folder = self.folder.join(self.number.to_string());
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let kind = &plan.kind;
        let mut arguments = vec![kind.name.clone()];
        arguments.extend(params.iter().map(|(name, value)| format!("{name}={value}")));
        let classes = self.class_path(kind)?;
        let memory = match kind.memory {
            Some(mib) => Some(MemoryGroup::create(
                &format!("rwf-{}-{}", std::process::id(), self.number),
                mib,
            )?),
            None => None,
        };
        let mut command = memory
            .as_ref()
            .map_or_else(|| Command::new(java), |group| group.command(java));
        command.arg("-cp").arg(&classes).current_dir(&folder);
        command.args(plan.collector.split_whitespace());
        command.args(filled(&kind.flags, params).split_whitespace());
        if kind.reads_gc_log() {
            let mut flags = Command::new(java);
            flags
                .arg("-cp")
                .arg(&classes)
                .args([&kind.program, "flags"])
                .args(&arguments);
            let flags = flags
                .output()
                .context("cannot read the options of the problem")?;
            let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
            command.args(flags.split_whitespace());
            command.args(logging(plan.jdk));
            arguments.push(format!("seconds={seconds}"));
        }
        command.arg(&kind.program).args(&arguments);
        let group = Group::with_input(command, &folder.join("java.out"), Stdio::piped())?;
        let mut running = Running {
            group,
            memory,
            folder,
        };
        if !kind.reads_gc_log() {
            running.until_ready(interrupted)?;
        }
        Ok(running)
    }
}

impl Drop for Jvms {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Options that write a GC log.
fn logging(jdk: u32) -> &'static [&'static str] {
    if jdk == 8 {
        &[
            "-Xloggc:gc.log",
            "-XX:+PrintGCDetails",
            "-XX:+PrintGCDateStamps",
            "-XX:+PrintTenuringDistribution",
            "-XX:+PrintGCApplicationStoppedTime",
        ]
    } else {
        &["-Xlog:gc*,safepoint:file=gc.log:time,uptime,level,tags"]
    }
}

/// The newest program of this name among the JVMs of the machine.
fn newest(program: &str) -> Option<PathBuf> {
    let homes = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let mut found: Vec<(u32, PathBuf)> = homes
        .filter_map(|home| {
            let home = home.ok()?.path();
            let file = home.join("bin").join(program);
            let release = read(&home.join("release"));
            let version = release.split("JAVA_VERSION=\"").nth(1)?;
            let major = version.split(['.', '"']).next()?.parse().ok()?;
            file.is_file().then_some((major, file))
        })
        .collect();
    found.sort();
    found
        .pop()
        .map(|(_, file)| file)
        .or_else(|| packages::find(program))
}

#[derive(Debug)]
struct Running {
    group: Group,
    /// Dropped after the group, which must be empty by then.
    memory: Option<MemoryGroup>,
    folder: PathBuf,
}

impl Running {
    fn printed(&self) -> String {
        read(&self.folder.join("java.out"))
    }

    fn why(&self) -> String {
        let said = read(&self.folder.join("java.err")) + &self.printed();
        last_line(&said).to_owned()
    }

    fn until_ready(&mut self, interrupted: &Interrupted) -> Result<()> {
        let until = std::time::Instant::now() + STARTS;
        while !self.printed().lines().any(|line| line == "ready") {
            if self.group.has_ended() || std::time::Instant::now() > until {
                bail!("the program did not plant the problem: {}", self.why());
            }
            interrupted.sleep(Duration::from_millis(50))?;
        }
        Ok(())
    }

    /// Three dumps, and as many of virtual threads where there may be some.
    fn dumps(&mut self, plan: &JvmPlan, interrupted: &Interrupted) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let pid = self.group.pid().to_string();
        let jcmd = newest("jcmd");
        for number in 1..=3 {
            interrupted.sleep(BETWEEN)?;
            let Some(jcmd) = &jcmd else {
                let pid = Pid::from_raw(pid.parse().unwrap_or(0));
                kill_process(pid.context("the JVM has no pid")?, Signal::QUIT)?;
                continue;
            };
            let output = Command::new(jcmd)
                .args([&pid, "Thread.print", "-l"])
                .output()?;
            if !output.status.success() {
                bail!("jcmd: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            let file = format!("dump{number}.txt");
            std::fs::write(self.folder.join(&file), output.stdout)
                .context("cannot write a dump")?;
            files.push(file);
        }
        if let (Some(jcmd), true) = (&jcmd, plan.kind.program == "Virtual") {
            for file in ["dump4.json", "dump5.json", "dump6.json"] {
                let path = self.folder.join(file).display().to_string();
                Command::new(jcmd)
                    .args([&pid, "Thread.dump_to_file", "-format=json", &path])
                    .output()?;
                files.push(file.to_owned());
                interrupted.sleep(BETWEEN)?;
            }
        }
        interrupted.sleep(BETWEEN)?;
        if jcmd.is_none() {
            files.push("java.out".to_owned());
        }
        Ok(files)
    }

    fn counted(
        &mut self,
        plan: &JvmPlan,
        seconds: u32,
        interrupted: &Interrupted,
    ) -> Result<Counted> {
        if plan.kind.reads_gc_log() {
            self.group
                .wait(Duration::from_secs(u64::from(seconds) + 60), interrupted)?;
            if self.memory.as_ref().is_some_and(MemoryGroup::has_killed) {
                return Ok(Counted::Killed);
            }
            let text = self.printed();
            return reported(last_line(&text)).with_context(|| self.why());
        }
        // Dumps of the harmless run are not taken, so it has to run a while.
        interrupted.sleep(2 * BETWEEN)?;
        Ok(Counted::Work(work(&self.printed())))
    }
}

/// Finished work per second over the last eight lines of progress, of which there are four a second.
fn work(text: &str) -> f64 {
    let counts = text
        .lines()
        .filter_map(|line| line.strip_prefix("progress ")?.trim().parse::<f64>().ok());
    let counts: Vec<f64> = counts.collect();
    let last = counts.len().saturating_sub(9);
    let window = &counts[last..];
    match (window.first(), window.last()) {
        (Some(first), Some(last)) if window.len() > 1 => {
            (last - first) / ((window.len() - 1) as f64 / 4.0)
        }
        _ => 0.0,
    }
}

/// The last line of a program that reports.
fn reported(line: &str) -> Result<Counted> {
    let report: Value = serde_json::from_str(line).context("the program wrote no report")?;
    let number = |name: &str| report[name].as_f64().unwrap_or(0.0);
    let offered = number("offered").max(1.0);
    let seen = Seen {
        rate: number("answered") / offered,
        errors: number("failed") / offered,
        p50_ms: number("p50_ms"),
        p99_ms: number("p99_ms"),
    };
    Ok(Counted::Report(seen, number("out_of_memory") as u64))
}

/// Harm by the program's own count, in words as well, and why it cannot be judged.
fn judged(
    proof: Proof,
    counted: &Counted,
    healthy: Option<&Counted>,
) -> (Harm, String, Option<String>) {
    match (proof, counted, healthy) {
        (Proof::Stays, Counted::Work(rate), _) => {
            let void =
                (*rate > 0.0).then(|| format!("not confirmed: {rate:.1} work items per second"));
            (Harm::Hurts, "no progress".to_owned(), void)
        }
        (Proof::Grows, Counted::Work(rate), _) => {
            let void = (*rate <= 0.0).then(|| "the healthy program makes no progress".to_owned());
            (
                Harm::Harmless,
                format!("{rate:.1} work items per second"),
                void,
            )
        }
        (Proof::Slows, Counted::Work(rate), Some(Counted::Work(without))) => {
            let words = format!("{without:.1} to {rate:.1} work items per second");
            // Without a tail, only the rate decides.
            let harm = match 1.0 - rate / without.max(f64::MIN_POSITIVE) {
                lost if lost >= 0.2 => Harm::Hurts,
                lost if lost >= 0.05 => Harm::Weak,
                _ => Harm::Harmless,
            };
            let void =
                (*without <= 0.0).then(|| "no progress without the problem either".to_owned());
            (harm, words, void)
        }
        (
            Proof::Report,
            Counted::Report(seen, out_of_memory),
            Some(Counted::Report(without, _)),
        ) => {
            let mut harm = Harm::between(without, seen);
            if *out_of_memory > 0 {
                harm = Harm::Hurts;
            } else if seen.p99_ms < TAIL_MS && super::score::lost(without, seen) < 0.05 {
                harm = Harm::Harmless;
            }
            let words = format!(
                "lost {:.0} %, p99 {:.1} to {:.1} ms, {out_of_memory} OOM",
                super::score::lost(without, seen) * 100.0,
                without.p99_ms,
                seen.p99_ms
            );
            (harm, words, None)
        }
        (Proof::Report, Counted::Killed, Some(Counted::Report(..))) => {
            (Harm::Hurts, "killed at its memory limit".to_owned(), None)
        }
        _ => (
            Harm::Harmless,
            String::new(),
            Some("the program reported another kind of count".to_owned()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_over_the_last_two_seconds() {
        let grows: Vec<String> = (0..20)
            .map(|count| format!("progress {}", count * 5))
            .collect();
        assert!((work(&grows.join("\n")) - 20.0).abs() < 1e-9);
        let stays = "ready\nprogress 7\nprogress 7\nprogress 7\n";
        assert!(work(stays).abs() < 1e-9);
        assert!(work("ready\n").abs() < 1e-9);
    }

    #[test]
    fn a_problem_that_lets_work_go_on_is_not_confirmed() {
        let (_, _, void) = judged(Proof::Stays, &Counted::Work(3.0), None);
        assert!(void.unwrap().contains("not confirmed"));
        let (harm, _, void) = judged(Proof::Stays, &Counted::Work(0.0), None);
        assert_eq!((harm, void), (Harm::Hurts, None));
    }

    #[test]
    fn what_slows_hurts_by_the_work_that_is_lost() {
        let harm = |rate| {
            judged(
                Proof::Slows,
                &Counted::Work(rate),
                Some(&Counted::Work(100.0)),
            )
            .0
        };
        assert_eq!(
            [harm(99.0), harm(90.0), harm(50.0)],
            [Harm::Harmless, Harm::Weak, Harm::Hurts]
        );
    }

    #[test]
    fn a_report_with_a_memory_error_hurts_whatever_its_tail() {
        let line = |p99: f64, errors: u32| {
            format!(
                "{{\"offered\":100,\"answered\":100,\"failed\":0,\"p50_ms\":1,\"p99_ms\":{p99},\"out_of_memory\":{errors}}}"
            )
        };
        let healthy = reported(&line(3.0, 0)).unwrap();
        let harm = |p99, errors| {
            judged(
                Proof::Report,
                &reported(&line(p99, errors)).unwrap(),
                Some(&healthy),
            )
            .0
        };
        assert_eq!(harm(3.0, 0), Harm::Harmless);
        assert_eq!(harm(9.5, 0), Harm::Harmless);
        assert_eq!(harm(40.0, 0), Harm::Hurts);
        assert_eq!(harm(3.0, 1), Harm::Hurts);
        assert!(reported("Killed").is_err());
    }
}
