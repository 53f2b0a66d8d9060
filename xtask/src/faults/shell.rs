//! Scripts and programs of a trial: bounded in time, ended by process group, never by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Functions that scripts may use.
const PRELUDE: &str = include_str!("../../faults/prelude.sh");

/// Set by SIGINT and SIGTERM: everything waits for it and then cleans up.
#[derive(Clone, Debug, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Set by the signals from now on.
    pub fn by_signals() -> Result<Self> {
        let flag = Self::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag.0))
                .context("cannot handle signals")?;
        }
        Ok(flag)
    }

    /// Fails once a signal came.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted; undoing the planted fault");
        }
        Ok(())
    }

    /// Waits, unless a signal comes.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// A program with all that it starts; dropping it ends the whole group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    name: String,
}

impl Group {
    /// Starts `command` as the leader of a group; what it prints goes to `log` and `log.err`.
    pub fn start(command: Command, log: &Path) -> Result<Self> {
        Self::with_input(command, log, Stdio::null())
    }

    /// The same; a pipe for input stays open as long as the group lives.
    pub fn with_input(mut command: Command, log: &Path, input: Stdio) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let create = |path: &Path| {
            File::create(path).with_context(|| format!("cannot create {}", path.display()))
        };
        let child = command
            .process_group(0)
            .stdin(input)
            .stdout(create(log)?)
            .stderr(create(&log.with_extension("err"))?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name })
    }

    /// The leader.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The leader has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the leader; fails if it takes longer. `true` where it succeeds.
    pub fn wait(&mut self, patience: Duration, interrupted: &Interrupted) -> Result<bool> {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.success());
            }
            if Instant::now() >= until {
                bail!("{} did not end within {patience:?}", self.name);
            }
            interrupted.sleep(Duration::from_millis(20))?;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Where scripts run and what they see.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The namespace, by name.
    pub namespace: String,
    /// Exported variables.
    pub variables: BTreeMap<String, String>,
    /// Folder for what they print.
    pub folder: std::path::PathBuf,
    /// Ends every wait.
    pub interrupted: Interrupted,
}

impl Shell {
    /// `program` in a namespace.
    pub fn inside(namespace: &str, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{namespace}"))
            .arg("--")
            .arg(program);
        command
    }

    /// A script in the namespace.
    fn command(&self, script: &str) -> Command {
        let mut command = Self::inside(&self.namespace, Path::new("sh"));
        command
            .args(["-euc", &format!("{PRELUDE}\n{script}")])
            .current_dir(&self.folder)
            .envs(&self.variables);
        command
    }

    /// Starts a script and leaves it running; `name` names its log.
    pub fn start(&self, name: &str, script: &str) -> Result<Group> {
        Group::start(self.command(script), &self.log(name))
    }

    /// Runs a script to its end. Gives its group, in which what it put into the background lives on, and what it printed.
    pub fn run(&self, name: &str, script: &str, patience: Duration) -> Result<(Group, String)> {
        let mut group = self.start(name, script)?;
        let good = group
            .wait(patience, &self.interrupted)
            .with_context(|| format!("script {name}"))?;
        let log = self.log(name);
        let printed = read(&log);
        if !good {
            let said = read(&log.with_extension("err"));
            let said = format!("{printed}\n{said}");
            let said: Vec<&str> = said
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            bail!("{name} failed: {}", said.join("; "));
        }
        Ok((group, printed))
    }

    fn log(&self, name: &str) -> std::path::PathBuf {
        self.folder.join(format!("{name}.out"))
    }
}

/// Text of a file, or what there is of it.
pub fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last line that is not empty.
pub fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev();
    lines.find(|line| !line.trim().is_empty()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_group_ends_what_its_script_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!"]);
        let log = folder.path().join("log.out");
        let mut group = Group::start(command, &log).unwrap();
        let interrupted = Interrupted::default();
        assert!(group.wait(Duration::from_secs(20), &interrupted).unwrap());
        let left = read(&log).trim().to_owned();
        let alive = || {
            let stat = read(Path::new(&format!("/proc/{left}/stat")));
            !stat.is_empty() && !stat.contains(") Z ")
        };
        assert!(alive(), "{left}");
        drop(group);
        let until = Instant::now() + Duration::from_secs(20);
        while alive() {
            assert!(Instant::now() < until, "process {left} lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_takes_too_long_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("1000");
        let mut group = Group::start(command, &folder.path().join("log.out")).unwrap();
        let error = group.wait(Duration::from_millis(60), &Interrupted::default());
        assert!(error.unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn a_signal_ends_a_wait() {
        let interrupted = Interrupted::default();
        interrupted.0.store(true, Ordering::Relaxed);
        assert!(interrupted.sleep(Duration::from_secs(1000)).is_err());
    }
}
