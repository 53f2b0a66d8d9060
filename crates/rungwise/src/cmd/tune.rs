//! `rungwise tune`: the whole loop on one service, from a scenario to a report.

mod dry_run;
mod finish;
mod live;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_experiment::Error as ExperimentError;
use rungwise_experiment::lab::{Blueprint, Lab, Means};
use rungwise_experiment::ladder::{Climbed, climb};
use rungwise_experiment::record::RunFolder;
use rungwise_experiment::scenario::{self, KnobInfo, Scenario, Topology};
use rungwise_experiment::stage::StageError;
use rungwise_host::lock::InstanceLock;
use rungwise_host::privilege::{self, Privilege};
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, environment, files, machine};
use rungwise_knobs::Scope;
use rungwise_model::Exit;

use super::Global;
use crate::problem::Problem;
use finish::Ending;

/// Climb a ladder on a service: change one thing at a time, measure in pairs, keep what helps.
///
/// Everything that is changed is written to a journal first and undone at the end, when interrupted, and by a
/// guard process when the tool is killed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A scenario file, or the name of a built-in scenario (udp-echo).
    #[arg(required_unless_present = "resume")]
    scenario: Option<String>,
    /// Shorter runs and a single look at 8 pairs: under 90 s, shows large effects only.
    #[arg(long)]
    quick: bool,
    /// Print what would be done and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on with the interrupted run in this folder.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["quick", "seed", "dry_run"])]
    resume: Option<PathBuf>,
    /// Seed of the pair orders, instead of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Stay on loopback even where network namespaces could be made.
    #[arg(long)]
    loopback: bool,
}

/// Name under which a run folder keeps the scenario it came from.
const SCENARIO_FILE: &str = "scenario.toml";

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let started = clock::utc_now();
    let (name, text) = source(args)?;
    let mut scenario = Scenario::parse(&text, &name)?;
    let known: Vec<KnobInfo<'_>> = rungwise_knobs::KNOBS
        .iter()
        .map(|knob| KnobInfo {
            id: knob.id,
            of_service: knob.scope == Scope::Service,
            values: &[],
        })
        .collect();
    scenario.validate(&known)?;
    if args.quick {
        scenario.make_quick();
    }
    if let Some(seed) = args.seed {
        scenario.judging.seed = seed;
    }
    let design = scenario.design();
    let (cpus, no_namespaces) = machine_allows(&scenario, args)?;
    let means = Means {
        rungwise: environment::current_exe()?.display().to_string(),
        cpus,
        no_namespaces,
    };
    let blueprint = Blueprint::of(&scenario, &means)?;
    if args.dry_run {
        global.emit(&dry_run::plan(&design, &blueprint))?;
        return Ok(Exit::Done);
    }

    let state = environment::state_dir().map_err(precondition)?;
    files::create_dir_all(&state)
        .with_context(|| {
            format!(
                "cannot make the state folder {}; set RUNGWISE_STATE to another one",
                state.display()
            )
        })
        .map_err(|error| Problem::new(Exit::Precondition, error))?;
    let _lock = InstanceLock::acquire(&state).map_err(precondition)?;
    let interrupt = Interrupt::install()?;

    let (mut folder, design) = if let Some(path) = &args.resume {
        let (folder, design) = RunFolder::resume(path)?;
        for line in folder.damaged() {
            global.say(&format!("rungwise: {line}"));
        }
        (folder, design)
    } else {
        let path = global.runs.join(clock::run_id()?);
        let folder = RunFolder::create(&path, &design)?;
        files::replace(&path.join(SCENARIO_FILE), text.as_bytes())?;
        (folder, design)
    };
    let mut lab = Lab::build(&blueprint, &state, interrupt.flag()).map_err(stage_problem)?;
    let mut climbed = Climbed::default();
    climbed.could_not.extend(lab.losses().iter().cloned());
    climbed.could_not.extend(folder.damaged().iter().cloned());

    let mut observer = live::Live::new(global, &design);
    let end = climb(&design, &mut lab, &mut folder, &mut observer, &mut climbed);
    observer.close();
    let mut method = lab.description();
    method.push(format!("service: {}", lab.command_line().join(" ")));
    let undone = lab.close();

    let path = folder.path().to_owned();
    let ending = Ending {
        started,
        design: &design,
        blueprint: &blueprint,
        climbed,
        method,
        path: &path,
    };
    conclude(ending, end, undone, global)
}

/// Writes the report and settles the exit code; a failed undo outranks everything.
fn conclude(
    ending: Ending<'_>,
    end: Result<(), ExperimentError>,
    undone: Result<(), String>,
    global: &Global,
) -> anyhow::Result<Exit> {
    let path = ending.path.to_owned();
    let exit = match (&undone, &end) {
        (Err(_), _) => Exit::Rollback,
        (Ok(()), Err(error)) => exit_of(error),
        (Ok(()), Ok(())) => ending.exit(),
    };
    ending.write(exit, global)?;
    if let Err(error) = undone {
        return Err(Problem::new(Exit::Rollback, anyhow::Error::msg(error)));
    }
    match end {
        Ok(()) => Ok(exit),
        Err(ExperimentError::Stage(StageError::Interrupted)) => {
            global.say(&format!(
                "rungwise: interrupted; everything is undone; go on with: rungwise tune --resume {}",
                path.display()
            ));
            Ok(Exit::Interrupted)
        }
        Err(error) => Err(Problem::new(exit, error)),
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
        ExperimentError::ServiceFailed { .. } => Exit::Failed,
        ExperimentError::Stage(StageError::Broken(_))
        | ExperimentError::Folder(_)
        | ExperimentError::Design(_) => Exit::Usage,
    }
}

fn stage_problem(error: StageError) -> anyhow::Error {
    let exit = exit_of(&ExperimentError::Stage(match &error {
        StageError::Precondition(why) => StageError::Precondition(why.clone()),
        _ => StageError::Broken(String::new()),
    }));
    Problem::new(exit, error)
}

fn precondition(error: rungwise_host::Error) -> anyhow::Error {
    Problem::new(Exit::Precondition, error)
}

/// The scenario's name for messages and its text.
fn source(args: &Args) -> anyhow::Result<(String, String)> {
    if let Some(run) = &args.resume {
        return read(&run.join(SCENARIO_FILE));
    }
    let name = args.scenario.as_deref().unwrap_or_default();
    if let Some(text) = scenario::builtin(name) {
        return Ok((name.to_owned(), text.to_owned()));
    }
    read(Path::new(name)).with_context(|| {
        format!(
            "'{name}' is no built-in scenario ({}) and no readable file",
            scenario::builtins().collect::<Vec<_>>().join(", ")
        )
    })
}

fn read(path: &Path) -> anyhow::Result<(String, String)> {
    let bytes = files::read(path).with_context(|| format!("cannot read {}", path.display()))?;
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
    args: &Args,
) -> anyhow::Result<(Vec<usize>, Option<String>)> {
    let cpus = machine::allowed_cpus().context("cannot read the allowed CPUs")?;
    let cpus = cpus.iter().map(|cpu| *cpu as usize).collect();
    let wanted = matches!(scenario.topology, Topology::Namespaces { .. });
    let no_namespaces = if !wanted || args.dry_run {
        None
    } else if args.loopback {
        Some("--loopback was given".to_owned())
    } else {
        match privilege::detect() {
            Privilege::Root => None,
            Privilege::UserNamespace => privilege::enter_user_namespace()
                .err()
                .map(|error| error.to_string()),
            Privilege::None { why } => Some(why),
        }
    };
    Ok((cpus, no_namespaces))
}
