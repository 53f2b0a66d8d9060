//! `[service.build]`: a service is built once, into a cache, and later runs start what is there.
//!
//! The folder of a result is named after the scenario and a hash of what decides the result: sources, command, JDK. The build works in a temporary folder
//! beside it, which gets that name when the command has succeeded: half a build is never found, and of two instances that build the same
//! the second uses what the first has made. A folder in the cache is used as it is, without the programs of the build.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rungwise_experiment::scenario::{self, Scenario};
use rungwise_host::process::{self, Launch, Service};
use rungwise_host::scratch::Scratch;
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, environment, files};
use rungwise_model::Exit;
use rungwise_probes::jvm::jdk_version;

use super::{Request, precondition};
use crate::Invocation;
use crate::problem::Problem;
use crate::runs::sums;

/// File of a run folder: the folder of the build that it measures.
const BUILT_FILE: &str = "built";
/// Changes when the same sources must be built again for another reason.
const FORMAT: &str = "rungwise build 1";
/// Digits of the hash in the name of a folder; 64 bits, as no attacker chooses them.
const DIGITS: usize = 16;
/// More is no source of a service but a wrong folder; a guess.
const LARGEST: u64 = 64 << 20;
/// Between two checks of the signals while a build runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between two lines about a build that runs.
const REPORT: Duration = Duration::from_secs(20);
/// How long a stopped build may take to end; its results are thrown away.
const STOP: Duration = Duration::from_secs(2);
/// Lines of output that a message quotes: Maven explains an error in the last dozen.
const QUOTED: usize = 20;

/// Where the sources are that a scenario names.
#[derive(Clone, Debug)]
pub(super) enum Sources {
    /// Inside the binary, for the scenario of this name.
    Builtin(String),
    /// Below this folder.
    Below(PathBuf),
    /// The run in this folder was built before.
    OfRun(PathBuf),
}

impl Sources {
    /// Those of the scenario called `name`, which the request names.
    pub(super) fn for_scenario(request: &Request, name: &str) -> Self {
        match &request.resume {
            Some(run) => Self::OfRun(run.clone()),
            None if scenario::builtin(name).is_some() => Self::Builtin(name.to_owned()),
            None => Self::Below(Path::new(name).parent().unwrap_or(Path::new("")).into()),
        }
    }

    /// The files that a source stands for, by their names in the folder of the build.
    fn files(&self, source: &str) -> anyhow::Result<Vec<(String, Content)>> {
        match self {
            Self::Builtin(name) => {
                let all = scenario::builtin_sources(name).iter();
                let of_source = all.filter(|(file, _)| Path::new(file).starts_with(source));
                let found: Vec<_> = of_source
                    .map(|(file, text)| ((*file).to_owned(), Content::Text(text)))
                    .collect();
                anyhow::ensure!(!found.is_empty(), "the binary does not contain it");
                Ok(found)
            }
            Self::Below(folder) => {
                let mut found = Vec::new();
                below(folder, source, &mut found)?;
                Ok(found)
            }
            Self::OfRun(_) => Ok(Vec::new()),
        }
    }
}

/// Collects a file, or the files below a folder. A link to a folder is not followed, for it may lead in a circle.
fn below(folder: &Path, name: &str, found: &mut Vec<(String, Content)>) -> anyhow::Result<()> {
    let path = folder.join(name);
    if !files::is_folder(&path) {
        anyhow::ensure!(files::exists(&path), "there is no such file");
        found.push((name.to_owned(), Content::File(path)));
        return Ok(());
    }
    let folders = files::folders(&path)?;
    for entry in files::list(&path)? {
        let name = format!("{}/{entry}", name.trim_end_matches('/'));
        if folders.contains(&entry) {
            below(folder, &name, found)?;
        } else {
            found.push((name, Content::File(path.join(entry))));
        }
    }
    Ok(())
}

/// What is in a source file.
#[derive(Clone, Debug)]
enum Content {
    Text(&'static str),
    File(PathBuf),
}

impl Content {
    /// Its bytes, at most `most` of them and one.
    fn bytes(&self, most: u64) -> rungwise_host::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.as_bytes().to_vec()),
            Self::File(path) => files::read_at_most(path, most + 1),
        }
    }

    fn place(&self, to: &Path) -> rungwise_host::Result<()> {
        match self {
            Self::Text(text) => files::write(to, text.as_bytes()),
            Self::File(from) => files::copy(from, to),
        }
    }
}

/// The build of a scenario's service, done or to be done.
#[derive(Clone, Debug)]
pub(super) struct Building {
    /// Where the result is, or will be.
    folder: PathBuf,
    how: scenario::Build,
    /// By their names in the folder.
    sources: Vec<(String, Content)>,
    /// It must be there already.
    of_run: bool,
}

impl Building {
    /// The build that a scenario asks for; nothing is built yet.
    pub(super) fn prepare(scenario: &Scenario, sources: &Sources) -> anyhow::Result<Option<Self>> {
        let Some(how) = scenario.build().cloned() else {
            return Ok(None);
        };
        if let Sources::OfRun(run) = sources {
            let file = files::read(&run.join(BUILT_FILE)).context("cannot resume the run")?;
            let text = String::from_utf8_lossy(&file);
            return Ok(Some(Self {
                folder: text.trim_end().into(),
                how,
                sources: Vec::new(),
                of_run: true,
            }));
        }
        let mut all = Vec::new();
        for source in &how.sources {
            let found = sources.files(source);
            all.extend(found.with_context(|| {
                format!("cannot read {source}, which service.build.sources of the scenario names")
            })?);
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.dedup_by(|(one, _), (other, _)| one == other);
        let key = key(&how, &all)?;
        let name = format!("{}-{}", scenario.name, &key[..DIGITS]);
        let cache = environment::cache_dir().map_err(precondition)?;
        Ok(Some(Self {
            folder: cache.join(name),
            how,
            sources: all,
            of_run: false,
        }))
    }

    /// The folder of the result, as `{built}` stands for it.
    pub(super) fn folder(&self) -> String {
        self.folder.display().to_string()
    }

    /// The folder's name, which is another for other sources.
    pub(super) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn is_there(&self) -> bool {
        files::is_folder(&self.folder)
    }

    fn line(&self) -> String {
        self.how.command.join(" ")
    }

    /// Notes in a run folder what the run measures, for [`Sources::OfRun`].
    pub(super) fn record(&self, run: &Path) -> rungwise_host::Result<()> {
        let line = format!("{}\n", self.folder());
        files::replace(&run.join(BUILT_FILE), line.as_bytes())
    }

    /// Builds what is not there.
    ///
    /// # Errors
    ///
    /// A program of the build is missing, the build failed or took too long, or a signal came; nothing is left of it then.
    pub(super) fn ensure(
        &self,
        invocation: &Invocation<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let cache = self.folder.parent().unwrap_or(Path::new("/"));
        if !self.is_there() {
            if self.of_run {
                let why = anyhow::anyhow!(
                    "cannot resume the run: {} was removed from the cache, and it measures what was built there; start a new run",
                    self.folder()
                );
                return Err(Problem::with(Exit::Precondition, why));
            }
            files::create_dir_all(cache).map_err(precondition)?;
        }
        // What others may write there would run as us.
        for folder in [cache, &self.folder] {
            let about = files::exists(folder).then(|| files::why_not_ours(folder));
            if let Some(why) = about.transpose().map_err(precondition)?.flatten() {
                let why = anyhow::anyhow!(
                    "cannot keep builds in {}: {why}; set RUNGWISE_CACHE to a folder that only you may write",
                    folder.display()
                );
                return Err(Problem::with(Exit::Precondition, why));
            }
        }
        if self.is_there() {
            return Ok(());
        }
        let program = self.how.command.first().map_or("", String::as_str);
        // A path is one in the folder of the build.
        if !program.contains('/') {
            process::find(program).map_err(|error| {
                let why = anyhow::anyhow!("cannot build the service: {error}{}", self.remedy());
                Problem::with(Exit::Precondition, why)
            })?;
        }
        let scratch = Scratch::create_below(cache).map_err(precondition)?;
        let work = scratch.join("build");
        files::create_folder(&work).map_err(precondition)?;
        for (name, content) in &self.sources {
            content.place(&work.join(name)).map_err(precondition)?;
        }
        invocation.say(&format!(
            "building the service, once: {} (at most {} s)",
            self.line(),
            self.how.within.as_secs_f64()
        ));
        let began = clock::now();
        self.execute(&work, invocation, interrupt)?;
        match files::rename(&work, &self.folder) {
            // Another instance was faster.
            Err(_) if self.is_there() => {}
            renamed => renamed.map_err(precondition)?,
        }
        invocation.say(&format!(
            "built in {:.0} s: {}",
            (clock::now() - began).as_secs_f64(),
            self.folder()
        ));
        Ok(())
    }

    /// Runs the command to its end. Dropping the service kills its process group.
    fn execute(
        &self,
        work: &Path,
        invocation: &Invocation<'_>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let mut build = Service::start(&Launch {
            argv: self.how.command.clone(),
            directory: Some(work.to_owned()),
            ..Launch::default()
        })
        .map_err(|error| {
            let why = anyhow::anyhow!("cannot build the service: {error}{}", self.remedy());
            Problem::with(Exit::Precondition, why)
        })?;
        let began = clock::now();
        let mut reported = Duration::ZERO;
        while !build.wait_end(POLL_INTERVAL)? {
            let elapsed = clock::now() - began;
            if interrupt.raised() {
                build.stop(STOP)?;
                let why = anyhow::anyhow!(
                    "interrupted while the service was built; nothing is left of it"
                );
                return Err(Problem::with(Exit::Interrupted, why));
            }
            if elapsed >= self.how.within {
                let _ = build.stop(STOP);
                let how = format!(
                    "did not end within {} s and was stopped",
                    self.how.within.as_secs_f64()
                );
                return Err(self.failure(
                    &how,
                    &build,
                    "raise service.build.within if it only needs more time",
                ));
            }
            if elapsed.saturating_sub(reported) >= REPORT {
                reported = elapsed;
                let last = build.last_lines(1).pop();
                let last = last.map_or_else(String::new, |line| format!(": {line}"));
                invocation.say(&format!(
                    "still building after {:.0} s{last}",
                    elapsed.as_secs_f64()
                ));
            }
        }
        let status = build.stop(STOP)?;
        if status.success() {
            return Ok(());
        }
        let how = format!("failed ({status})");
        Err(self.failure(&how, &build, "correct the cause and run this again"))
    }

    fn failure(&self, how: &str, build: &Service, remedy: &str) -> anyhow::Error {
        let lines = build.last_lines(QUOTED).join("\n");
        let output = match lines.trim() {
            "" => "it printed nothing".to_owned(),
            lines => format!("its last output:\n{lines}\n"),
        };
        let why = anyhow::anyhow!(
            "cannot build the service: {} {how}, {output}; {remedy}{}",
            self.line(),
            self.remedy()
        );
        Problem::with(Exit::Precondition, why)
    }

    /// What the build needs, as the end of a sentence.
    fn remedy(&self) -> String {
        let install = self.how.install.as_ref();
        install.map_or_else(String::new, |install| {
            format!("; what the build needs is installed with: {install}")
        })
    }
}

impl fmt::Display for Building {
    /// As a plan shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_there() {
            "found in"
        } else {
            "first, into"
        };
        write!(f, "{} ({state} {})", self.line(), self.folder())
    }
}

/// A hash of what decides the result. Every part is behind its length, so that no two lists are the same bytes.
fn key(how: &scenario::Build, sources: &[(String, Content)]) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut add = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    add(FORMAT.as_bytes());
    add(jdk().unwrap_or_default().as_bytes());
    add(&(how.command.len() as u64).to_le_bytes());
    for word in &how.command {
        add(word.as_bytes());
    }
    let mut left = LARGEST;
    for (name, content) in sources {
        let read = content.bytes(left)?;
        left = left.checked_sub(read.len() as u64).with_context(|| {
            format!(
                "cannot build from these sources: they have more than {} MiB; name only what the build reads",
                LARGEST >> 20
            )
        })?;
        add(name.as_bytes());
        add(sums::sum(&read).as_bytes());
    }
    Ok(sums::sum(&bytes))
}

/// The JDK that Maven and Gradle use: of `JAVA_HOME`, else of `java` in `PATH`.
fn jdk() -> Option<String> {
    let of_home = environment::java_home().map(|home| home.join("bin/java"));
    let java = of_home
        .filter(|java| files::exists(java))
        .or_else(|| process::locate("java"))?;
    jdk_version(Path::new("/"), &java)
}
