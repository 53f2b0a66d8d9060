//! The service under test: one process at a time, restarted when a variant wants other switches.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rungwise_host::cpu::CpuSource;
use rungwise_host::hotspot::Jvm;
use rungwise_host::process::{Attached, Launch, Ready, Service};
use rungwise_host::{clock, files, process};

use super::read_back;
use super::topology::Topology;
use crate::scenario::{self, Existing, JavaCommand, Places, Service as Wanted, Started};
use crate::stage::{StageError, Variant};

/// How long a predecessor's port may stay taken.
const RELEASE: Duration = Duration::from_secs(2);
/// How long to wait before the port is tried again; short against a run, long against a start that fails.
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// What every service prints about a port that is in use: the text of EADDRINUSE in strerror(3).
const TAKEN: &str = "in use";

/// The running service, if any.
#[derive(Debug)]
pub(super) struct Running {
    wanted: Wanted,
    places: Places,
    ready: Ready,
    /// What the process was started with.
    setup: Setup,
    process: Process,
    /// A service of ours has run already.
    replaces: bool,
}

/// What a service is started with.
#[derive(Debug, Default, PartialEq, Eq)]
struct Setup {
    command: JavaCommand,
    /// By their names in its scratch folder.
    files: BTreeMap<String, String>,
}

#[derive(Debug)]
enum Process {
    None,
    Ours(Service),
    Attached(Attached),
}

impl Running {
    /// Starts nothing yet. `ready` is how a service shows that it can take work.
    pub(super) fn new(wanted: Wanted, places: Places, ready: Ready) -> Self {
        Self {
            wanted,
            places,
            ready,
            setup: Setup::default(),
            process: Process::None,
            replaces: false,
        }
    }

    /// Has the service run with the switches of `variant`; restarts it only when they differ. Each process that it
    /// starts is passed to `started` before it is waited for.
    pub(super) fn ensure(
        &mut self,
        topology: &Topology,
        variant: &Variant,
        mut started: impl FnMut(u32),
    ) -> Result<(), StageError> {
        let wanted = match &self.wanted {
            Wanted::Running(existing) => return self.attach(&existing.clone()),
            Wanted::Started(wanted) => wanted.clone(),
        };
        self.still_alive()?;
        let setup = self.setup_of(&wanted, variant)?;
        if setup == self.setup && matches!(self.process, Process::Ours(_)) {
            return Ok(());
        }
        if setup.command.is_changed()
            && let Some(why) = setup.command.judged(self.places.cpus).refusal
        {
            return Err(StageError::Unavailable(why));
        }
        if let Some(program) = &setup.command.program
            && process::locate(program).is_none()
        {
            return Err(StageError::Unavailable(format!(
                "cannot start {program}: there is no such program; install that JDK, or set jvm.jdk_upgrade to the path of its java"
            )));
        }
        self.stop();
        let patience = if self.replaces {
            RELEASE
        } else {
            Duration::ZERO
        };
        let gives_up = clock::now() + patience;
        let service = loop {
            match self.start(&setup, topology, wanted.ready_within, &mut started) {
                Ok(service) => break service,
                // The kernel may free the predecessor's port only after its process is gone (io_uring does).
                Err(rungwise_host::Error::Died { stderr, .. })
                    if stderr.contains(TAKEN) && clock::now() < gives_up =>
                {
                    thread::sleep(TRY_AGAIN);
                }
                Err(error) if error.is_precondition() => {
                    return Err(StageError::Precondition(error.to_string()));
                }
                Err(error @ rungwise_host::Error::Died { .. }) => {
                    let why = format!("{error}: {}", setup.command.words.join(" "));
                    return Err(StageError::ServiceFailed(why));
                }
                Err(error) => return Err(StageError::ServiceFailed(error.to_string())),
            }
        };
        self.setup = setup;
        self.process = Process::Ours(service);
        self.replaces = true;
        let read = self.read_back();
        if read.is_err() {
            self.stop();
        }
        read
    }

    /// Whether the JVM runs with the options of the variant.
    fn read_back(&self) -> Result<(), StageError> {
        let command = &self.setup.command;
        if !command.is_changed() {
            return Ok(());
        }
        let read = self.jvm().and_then(|jvm| read_back::check(&jvm, command));
        read.map_err(StageError::Unavailable)
    }

    fn start(
        &self,
        setup: &Setup,
        topology: &Topology,
        within: Duration,
        started: &mut impl FnMut(u32),
    ) -> rungwise_host::Result<Service> {
        let scratch = Path::new(&self.places.scratch);
        files::remove_folder(scratch)?;
        files::create_folder(scratch)?;
        for (name, text) in &setup.files {
            files::write(&scratch.join(name), text.as_bytes())?;
        }
        let service = Service::start(&Launch {
            argv: setup.command.words.clone(),
            namespace: topology.server_namespace(),
            ..Launch::default()
        })?;
        started(service.pid());
        service.wait_ready(&self.ready, within)?;
        Ok(service)
    }

    /// An error naming how the service ended, if it did. A service of ours is started afresh after it.
    pub(super) fn still_alive(&mut self) -> Result<(), StageError> {
        match &self.process {
            Process::Ours(service) => {
                let Some(how) = service.ended() else {
                    return Ok(());
                };
                let how = format!("under load, {how}: {}", self.setup.command.words.join(" "));
                self.stop();
                Err(StageError::ServiceFailed(how))
            }
            Process::Attached(attached) if !attached.alive() => {
                let remedy = match &self.wanted {
                    Wanted::Running(Existing::Unit(unit)) => {
                        format!("journalctl -u {unit}, and run this again once it is up")
                    }
                    _ => "its log, and pass the pid of the new process".to_owned(),
                };
                Err(StageError::Gone(format!(
                    "process {} ended under load; see {remedy}",
                    attached.pid()
                )))
            }
            Process::Attached(_) | Process::None => Ok(()),
        }
    }

    /// What to check in a service that runs and no longer answers.
    pub(super) fn silence(&self) -> String {
        match self.pid() {
            Some(pid) if process::stopped(pid) => format!(
                "its process {pid} is stopped by a signal or a debugger; resume it with kill -CONT {pid}"
            ),
            Some(pid) => format!(
                "its process {pid} is alive but may hang or be idle; see its log, or run `rungwise check {pid}` in that state"
            ),
            None => "see its log".to_owned(),
        }
    }

    /// The process, if one runs.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.process {
            Process::None => None,
            Process::Ours(service) => Some(service.pid()),
            Process::Attached(attached) => Some(attached.pid()),
        }
    }

    /// The JVM among its processes.
    ///
    /// # Errors
    ///
    /// There is none that can be asked, or more than one.
    pub(super) fn jvm(&self) -> Result<Jvm, String> {
        let (Some(pid), Some(processes)) = (self.pid(), self.processes()) else {
            return Err("the service does not run".to_owned());
        };
        let why = match Jvm::open(pid) {
            Ok(jvm) => return Ok(jvm),
            Err(error) => error,
        };
        // It may be a script that has started a JVM.
        let members = processes.members().unwrap_or_default();
        let others = members.into_iter().filter(|member| *member != pid);
        let mut jvms: Vec<Jvm> = others.filter_map(|pid| Jvm::open(pid).ok()).collect();
        match (jvms.pop(), jvms.len()) {
            (Some(jvm), 0) => Ok(jvm),
            (Some(_), more) => Err(format!(
                "the service has {} JVMs; have its command start one alone",
                more + 1
            )),
            (None, _) => Err(why.to_string()),
        }
    }

    /// Its CPU time, where it runs.
    pub(super) fn cpu(&self) -> Option<CpuSource> {
        self.processes().map(|processes| processes.cpu())
    }

    /// Its processes, where it runs.
    pub(super) fn processes(&self) -> Option<Existing> {
        let pid = self.pid()?;
        Some(match &self.wanted {
            Wanted::Running(existing) => existing.clone(),
            Wanted::Started(_) => Existing::Process(pid),
        })
    }

    /// Stops a service of ours, so that it starts afresh.
    pub(super) fn restart(&mut self) {
        if matches!(self.process, Process::Ours(_)) {
            self.stop();
        }
    }

    /// Stops our own service; one that we attached to keeps running.
    pub(super) fn stop(&mut self) {
        if let Process::Ours(mut service) = std::mem::replace(&mut self.process, Process::None)
            && let Wanted::Started(started) = &self.wanted
        {
            // Whatever it answers, dropping it kills and reaps what is left.
            let _ = service.stop(started.stop_within);
        }
        self.setup = Setup::default();
    }

    fn attach(&mut self, existing: &Existing) -> Result<(), StageError> {
        if matches!(self.process, Process::None) {
            let attached = existing.main().and_then(Attached::attach);
            let attached = attached.map_err(|error| StageError::Precondition(error.to_string()))?;
            self.process = Process::Attached(attached);
        }
        Ok(())
    }

    fn setup_of(&self, started: &Started, variant: &Variant) -> Result<Setup, StageError> {
        for (setting, value) in &variant.settings {
            let known = started.switches.get(&setting.knob);
            if known.is_some_and(|values| value != scenario::OFF && !values.contains_key(value)) {
                return Err(StageError::Unavailable(format!(
                    "the scenario does not say what {} = {value} changes; add it to [service.switches]",
                    setting.knob
                )));
            }
        }
        let settings = &variant.settings;
        let setup = started
            .java_command(settings, &self.places)
            .and_then(|command| {
                let files = started.files_for(settings, &self.places)?;
                Ok(Setup { command, files })
            });
        setup.map_err(|error| StageError::Unavailable(error.to_string()))
    }
}
