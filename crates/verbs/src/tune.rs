//! The whole loop on one service, from a scenario to a report.

mod build;
mod dry_run;
mod finish;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rungwise_experiment::Error as ExperimentError;
use rungwise_experiment::compare;
use rungwise_experiment::design::Design;
use rungwise_experiment::lab::{Blueprint, Capturer, Lab, Means};
use rungwise_experiment::ladder::{Climbed, climb};
use rungwise_experiment::record::RunFolder;
use rungwise_experiment::scenario::{self, Scenario, Topology};
use rungwise_experiment::stage::StageError;
use rungwise_host::live::Live;
use rungwise_host::lock::InstanceLock;
use rungwise_host::privilege::{self, Privilege};
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, environment, files, machine};
use rungwise_knobs::edit::Places;
use rungwise_knobs::recovery;
use rungwise_load::Parameters;
use rungwise_model::Exit;
use rungwise_model::tune::TuneReport;

use crate::capture::Sampling;
use crate::problem::{Problem, words};
use crate::runs::sums;
use crate::{Invocation, knob};
use build::{Building, Sources};
use finish::Ending;

/// Climb a ladder on a service: change one thing at a time, measure in pairs, keep what helps.
///
/// Everything that is changed is written to a journal first and undone at the end, when interrupted, and by a
/// guard process when the process is killed.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// A scenario file, or the name of a built-in scenario (udp-echo, udp-echo-auto, redis-command, dubbo-burst, mass-connections,
    /// web-nginx, web-nginx-auto, heap-per-request, heap-per-request-cases, heap-per-request-jmeter,
    /// heap-per-request-jvms).
    #[arg(required_unless_present = "resume")]
    pub scenario: Option<String>,
    /// Shorter runs and a single decision after 8 pairs: under 90 s, shows large effects only.
    #[arg(long)]
    pub quick: bool,
    /// Continue the interrupted run in this folder.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["scenario", "quick", "seed"])]
    pub resume: Option<PathBuf>,
    /// Seed of the pair orders, instead of the scenario's.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Use loopback even if network namespaces are available.
    #[arg(long)]
    pub loopback: bool,
}

/// Watches a ladder while it is climbed.
pub trait Observer: compare::Observer {
    /// The first rung of this design begins.
    fn begin(&mut self, design: &Design);

    /// The last rung has ended, or was cut short.
    fn end(&mut self);
}

/// A ladder that was climbed, or begun. A failed undo is a [`Climb::failure`], whatever became of the report.
#[derive(Debug)]
#[must_use]
pub struct Climb {
    /// Its document, which its run folder holds too; an error where it could not be written.
    pub report: anyhow::Result<TuneReport>,
    /// Its run folder.
    pub folder: PathBuf,
    /// Exit status.
    pub exit: Exit,
    /// Why it ended early, or what could not be undone.
    pub failure: Option<anyhow::Error>,
}

/// Name under which a run folder keeps the scenario it came from.
const SCENARIO_FILE: &str = "scenario.toml";

/// The plan of a run in words; nothing is changed.
pub fn plan(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<String> {
    anyhow::ensure!(
        request.resume.is_none(),
        "cannot plan a run that is resumed: its plan is in its design.json"
    );
    let prepared = Prepared::of(request, true, invocation)?;
    for line in &prepared.notes {
        invocation.say(&format!("rungwise: {line}"));
    }
    Ok(dry_run::plan(
        &prepared.design,
        &prepared.blueprint,
        prepared.building.as_ref(),
    ))
}

/// Climbs the ladder, or continues to.
///
/// The running program is started again as guard and as load process, so that it must be rungwise itself. Where namespaces need a user
/// namespace, the process enters one: call it before any other thread is started.
pub fn run(
    request: &Request,
    observer: &mut dyn Observer,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Climb> {
    let started = clock::utc_now();
    let Prepared {
        text,
        scenario,
        building,
        blueprint,
        design,
        notes,
        resumed,
    } = Prepared::of(request, false, invocation)?;
    let (locked, earlier) = resumed.unzip();
    let (state, _lock) = match locked {
        Some(locked) => locked,
        None => alone(invocation)?,
    };
    // A journal that cannot be read is reported, and does not stop the run.
    let found = recovery::in_force(&state, &Places::host(Arc::new(Live)))
        .unwrap_or_else(|error| vec![words(&error.into())]);
    for line in found.iter().chain(&notes) {
        invocation.say(&format!("rungwise: {line}"));
    }
    let interrupt = Arc::new(invocation.interrupt()?);

    // With the lock, for a build would disturb what another instance measures.
    if let Some(building) = &building {
        building.ensure(invocation, &interrupt)?;
        scenario
            .find_program(&blueprint.places)
            .map_err(|missing| Problem::with(Exit::Precondition, missing))?;
    }
    // Before the folder: where no lab can be had there is nothing to keep.
    let earlier_s = earlier.as_ref().map(|(folder, _)| folder.earlier_s());
    let earlier_s = earlier_s.unwrap_or_default();
    let mut lab = Lab::build(&blueprint, earlier_s, &state, interrupt.flag())
        .map_err(|error| problem(error.into()))?
        .with_capture(capturer(Arc::clone(&interrupt)));
    let mut folder = if let Some((folder, _)) = earlier {
        sums::forget(folder.path())?;
        for line in folder.damaged() {
            invocation.say(&format!("rungwise: {line}"));
        }
        folder
    } else {
        let path = invocation.runs.join(clock::run_id()?);
        let folder = RunFolder::create(&path, &design).map_err(problem)?;
        files::replace(&path.join(SCENARIO_FILE), text.as_bytes()).map_err(precondition)?;
        if let Some(building) = &building {
            building.record(&path).map_err(precondition)?;
        }
        folder
    };
    let mut climbed = Climbed::default();
    climbed.could_not.extend(lab.losses().iter().cloned());
    climbed.could_not.extend(folder.damaged().iter().cloned());

    observer.begin(&design);
    let end = climb(&design, &mut lab, &mut folder, observer, &mut climbed);
    observer.end();
    let method = [lab.description(), found, notes].concat();
    let found = lab.found();
    let undone = lab.close();

    let path = folder.path().to_owned();
    let ending = Ending {
        started,
        design: &design,
        blueprint: &blueprint,
        climbed,
        method,
        found,
        path: &path,
    };
    Ok(conclude(ending, end, undone, invocation))
}

/// A scenario that was read and fits this machine.
struct Prepared {
    /// Text of the scenario.
    text: String,
    scenario: Scenario,
    /// The build of its service.
    building: Option<Building>,
    blueprint: Blueprint,
    design: Design,
    /// What is known of the options of a JVM before it starts.
    notes: Vec<String>,
    /// The run that goes on, and the lock that is held for it.
    resumed: Option<((PathBuf, InstanceLock), (RunFolder, Design))>,
}

impl Prepared {
    fn of(
        request: &Request,
        only_planned: bool,
        invocation: &Invocation<'_>,
    ) -> anyhow::Result<Self> {
        let (name, text) = source(request, invocation.runs)?;
        let place_of_sources = Sources::for_scenario(request, &name);
        let mut scenario = Scenario::parse(&text, &name)?;
        scenario.validate(&Live)?;
        scenario.read_templates(&template)?;
        let (cpus, no_namespaces) = machine_allows(&scenario, request, only_planned)?;
        // Opening the folder mends what a cut run left, which is no business of ours while another instance runs in it.
        let resumed = request
            .resume
            .as_deref()
            .map(|run| {
                let locked = alone(invocation)?;
                sums::verify(run)?;
                anyhow::Ok((locked, RunFolder::resume(run)?))
            })
            .transpose()?;
        let begun = resumed.as_ref().map(|(_, (_, design))| design);
        if begun.map_or(request.quick, |design| design.quick) {
            scenario.make_quick();
        }
        if let Some(seed) = begun.map(|design| design.judging.seed).or(request.seed) {
            scenario.judging.seed = seed;
        }
        let building = Building::prepare(&scenario, &place_of_sources)?;
        let means = Means {
            rungwise: environment::current_exe()?.display().to_string(),
            cpus,
            no_namespaces,
            built: building.as_ref().map(Building::folder),
        };
        let blueprint = Blueprint::resolve(&scenario, &means)?;
        if !scenario.builds_program() {
            scenario
                .find_program(&blueprint.places)
                .map_err(|missing| Problem::with(Exit::Precondition, missing))?;
        }
        let notes = scenario.judge_java(&blueprint.places)?;
        let design = scenario.design(
            place(&blueprint, &scenario, building.as_ref())?,
            blueprint.places.device.as_deref(),
        );
        if let Some(begun) = begun {
            same_experiment(begun, &design)?;
        }
        Ok(Self {
            text,
            scenario,
            building,
            blueprint,
            design,
            notes,
            resumed,
        })
    }
}

/// The state folder, and the lock that keeps every other instance from the machine.
fn alone(invocation: &Invocation<'_>) -> anyhow::Result<(PathBuf, InstanceLock)> {
    let state = environment::state_dir().map_err(precondition)?;
    files::create_dir_all(&state)
        .with_context(|| {
            format!(
                "cannot create the state folder {}; set RUNGWISE_STATE to another one",
                state.display()
            )
        })
        .map_err(|error| Problem::with(Exit::Precondition, error))?;
    let lock = knob::own(&state, invocation)?;
    Ok((state, lock))
}

/// Stack samples per second and CPU of a capture. Nothing is measured beside it, so it may cost the half percent that many
/// samples in few seconds take.
const CAPTURE_HZ: u32 = 499;

/// What a capture of the lab is: that of `check`, with the service as the process that matters.
fn capturer(interrupt: Arc<Interrupt>) -> Box<Capturer> {
    Box::new(move |place| {
        let sampling = Sampling {
            window: place.window,
            pid: place.service,
            socket: Vec::new(),
            no_stacks: false,
            hz: CAPTURE_HZ,
        };
        sampling
            .capture_at(place.host, &interrupt)
            .map_err(|error| words(&error))
    })
}

/// Writes the report and settles the exit status. A failed undo outranks whatever ended the ladder, and that a report
/// that cannot be written.
fn conclude(
    mut ending: Ending<'_>,
    end: Result<(), ExperimentError>,
    undone: Result<(), String>,
    invocation: &Invocation<'_>,
) -> Climb {
    let folder = ending.path.to_owned();
    let exit = match (&undone, &end) {
        (Err(_), _) => Exit::Rollback,
        (Ok(()), Err(error)) => exit_of(error),
        (Ok(()), Ok(())) => ending.exit(),
    };
    let could_not = &mut ending.climbed.could_not;
    could_not.extend(
        end.as_ref()
            .err()
            .map(|why| format!("the rest of the ladder: {why}")),
    );
    could_not.extend(undone.as_ref().err().cloned());
    let report = ending.write(exit, invocation);
    let failure = match (undone, end) {
        (Err(error), _) => Some(anyhow::Error::msg(error)),
        (Ok(()), Ok(())) => None,
        (Ok(()), Err(ExperimentError::Stage(StageError::Interrupted))) => Some(anyhow::anyhow!(
            "interrupted; all changes are undone; continue with: rungwise tune --resume {}",
            folder.display()
        )),
        (Ok(()), Err(error)) => Some(error.into()),
    };
    Climb {
        report,
        folder,
        exit,
        failure: failure.map(|error| Problem::with(exit, error)),
    }
}

fn exit_of(error: &ExperimentError) -> Exit {
    match error {
        ExperimentError::Stage(StageError::Interrupted) => Exit::Interrupted,
        ExperimentError::Stage(StageError::Precondition(_) | StageError::Unavailable(_)) => {
            Exit::Precondition
        }
        // The service could not even carry the starting configuration.
        ExperimentError::Stage(StageError::ServiceFailed(_)) => Exit::Precondition,
        ExperimentError::ServiceFailed { .. } | ExperimentError::Stage(StageError::Gone(_)) => {
            Exit::Failed
        }
        ExperimentError::Folder(error) if error.is_precondition() => Exit::Precondition,
        ExperimentError::Stage(StageError::Broken(_))
        | ExperimentError::Folder(_)
        | ExperimentError::Design(_) => Exit::Usage,
    }
}

fn problem(error: ExperimentError) -> anyhow::Error {
    Problem::with(exit_of(&error), error)
}

/// What pairs of one experiment must have in common beside the design of its rungs.
fn place(
    blueprint: &Blueprint,
    scenario: &Scenario,
    building: Option<&Building>,
) -> anyhow::Result<String> {
    let machine = machine::fingerprint(&Live);
    let files_of = |parameters: &Parameters| {
        let driven = parameters.traffic().driven();
        let files = driven.map_or_else(Vec::new, |driven| driven.files());
        files.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut named = files_of(&scenario.workload);
    for rung in &scenario.rungs {
        let axes = rung.grid.iter().flat_map(|grid| &grid.axes);
        let points = axes.flat_map(|axis| &axis.points);
        let after = points.map(|point| &point.workload);
        for after in after.chain([&rung.workload_after]) {
            if let Ok(changed) = rung.workload.and(after).applied(&scenario.workload) {
                named.extend(files_of(&changed));
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut requests = String::new();
    for file in named.iter().filter(|file| seen.insert(*file)) {
        let sum = sums::sum(&files::read(Path::new(file))?);
        let _ = write!(requests, "; {file} {sum}");
    }
    for (path, text) in scenario.templates() {
        let _ = write!(requests, "; {path} {}", sums::sum(text.as_bytes()));
    }
    if let Some(building) = building {
        let _ = write!(requests, "; build {}", building.name());
    }
    Ok(format!(
        "{}; {blueprint}{requests}; {}, {} CPUs, kernel {}",
        blueprint.topology, machine.cpu_model, machine.cpus, machine.kernel
    ))
}

/// The text of a template for a file of the service.
fn template(path: &str) -> Result<String, String> {
    let bytes = files::read_at_most(Path::new(path), scenario::LARGEST + 1)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > scenario::LARGEST {
        return Err(format!(
            "cannot use {path} as a template: it has more than {} KiB; name a configuration file",
            scenario::LARGEST / 1024
        ));
    }
    String::from_utf8(bytes)
        .map_err(|_| format!("cannot use {path} as a template: it is not UTF-8; save it as UTF-8"))
}

/// Pairs of a run that is resumed elsewhere, or with another scenario, would be judged with those it has.
fn same_experiment(begun: &Design, now: &Design) -> anyhow::Result<()> {
    anyhow::ensure!(
        begun.place == now.place,
        "cannot resume a run from another machine, or with other requests, templates or build sources: it ran on {}, this is {}; start a new run",
        begun.place,
        now.place
    );
    // Of before it was stored, the place in words tells the workload.
    let now = Design {
        workload: now.workload.clone().filter(|_| begun.workload.is_some()),
        ..now.clone()
    };
    anyhow::ensure!(
        *begun == now,
        "cannot resume the run: its design.json and its {SCENARIO_FILE} belong to different experiments; start a new run"
    );
    Ok(())
}

fn precondition(error: rungwise_host::Error) -> anyhow::Error {
    Problem::with(Exit::Precondition, error)
}

/// The scenario's name for messages and its text.
fn source(request: &Request, runs: &Path) -> anyhow::Result<(String, String)> {
    if let Some(run) = &request.resume {
        let scenario = run.join(SCENARIO_FILE);
        anyhow::ensure!(
            files::exists(&scenario),
            "cannot resume {}: it is not a run folder, since it has no {SCENARIO_FILE}; name the one that tune printed when \
             it was interrupted, below {}",
            run.display(),
            runs.display()
        );
        return read(&scenario);
    }
    let name = request.scenario.as_deref().unwrap_or_default();
    if let Some(text) = scenario::builtin(name) {
        return Ok((name.to_owned(), text.to_owned()));
    }
    read(Path::new(name)).with_context(|| {
        format!(
            "'{name}' is neither a built-in scenario ({}) nor a readable file{}",
            scenario::builtins().collect::<Vec<_>>().join(", "),
            scenario::nearest_builtin(name)
        )
    })
}

fn read(path: &Path) -> anyhow::Result<(String, String)> {
    let bytes = files::read(path)?;
    let text = String::from_utf8(bytes).with_context(|| {
        format!(
            "cannot read {} as a scenario; save it as UTF-8",
            path.display()
        )
    })?;
    Ok((path.display().to_string(), text))
}

/// The CPUs that may be used, and why there are no namespaces if so. Enters a user namespace where that is what
/// gives the right to make them, so it must come before any thread is started.
fn machine_allows(
    scenario: &Scenario,
    request: &Request,
    only_planned: bool,
) -> anyhow::Result<(Vec<usize>, Option<String>)> {
    let cpus = machine::allowed_cpus().context("cannot read the allowed CPUs")?;
    let cpus = cpus.iter().map(|cpu| *cpu as usize).collect();
    let wanted = matches!(scenario.topology, Topology::Namespaces { .. });
    let no_namespaces = if !wanted {
        None
    } else if request.loopback {
        Some("--loopback was given".to_owned())
    } else {
        match privilege::detect() {
            Privilege::Root => privilege::no_network_namespaces(),
            Privilege::UserNamespace if only_planned => None,
            Privilege::UserNamespace => privilege::enter_user_namespace()
                .err()
                .map(|error| error.to_string())
                .or_else(privilege::no_network_namespaces),
            Privilege::None { why } => Some(why),
        }
    };
    Ok((cpus, no_namespaces))
}
