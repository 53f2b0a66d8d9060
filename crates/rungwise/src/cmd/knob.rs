//! `rungwise knob`: shows, plans, applies, verifies and undoes settings of this host.
//!
//! What is applied stays until `knob undo`, or with `--for` until the deadline. Either way a journal
//! in the state directory says how to take it back, and a guard process takes it back at once if this
//! one is killed half-way.

use std::fmt::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use rungwise_host::live::Live;
use rungwise_host::lock::InstanceLock;
use rungwise_host::{clock, environment, files, machine};
use rungwise_knobs::edit::Places;
use rungwise_knobs::guard::{self, Guard};
use rungwise_knobs::recovery::{self, Leftovers, Recovery};
use rungwise_knobs::{Context, Drift, Error, KNOBS, Knob, Plan, Reading, Scope, Session, Settable};
use rungwise_model::{Envelope, Exit, SCHEMA_VERSION, Tool, units};
use serde::{Deserialize, Serialize};

use super::{Format, Global};
use crate::problem::Problem;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Folder of journals and of the instance lock, instead of `RUNGWISE_STATE` or the usual place.
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All knobs, and how they stand here.
    List {
        #[command(flatten)]
        device: Device,
    },
    /// One knob: what it does, when it helps, what it costs, how it stands.
    Show {
        /// Its id, such as `net.rps_cpus`.
        id: String,
        #[command(flatten)]
        device: Device,
    },
    /// What would change; changes nothing. `-o FILE.json` stores a plan for `apply`.
    Plan {
        #[command(flatten)]
        wishes: Wishes,
    },
    /// Change it: all of it or nothing.
    Apply {
        #[command(flatten)]
        wishes: Wishes,
        /// Undo by itself after this time (`10m`), whatever happens to this process.
        #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
        deadline: Option<Duration>,
        /// Only show what would change.
        #[arg(long)]
        dry_run: bool,
    },
    /// Compare with what was wished for; without a wish, with everything that is in force.
    Verify {
        #[command(flatten)]
        wishes: OptionalWishes,
    },
    /// Put back what is in force, the newest first: after `apply`, or after a crash.
    Undo {
        /// Only this journal.
        #[arg(long, value_name = "FILE")]
        journal: Option<PathBuf>,
        /// Accept what cannot be put back as it is, and close the journal.
        #[arg(long)]
        abandon: bool,
    },
    /// Watches over a journal; started by rungwise itself.
    #[command(hide = true)]
    Guard {
        journal: PathBuf,
        #[arg(long)]
        deadline_ms: Option<u64>,
        #[arg(long)]
        lab: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Device {
    /// The network device that knobs of a device turn.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Wishes {
    /// `ID=VALUE`, or a file that `knob plan -o FILE.json` wrote.
    #[arg(required = true, value_name = "ID=VALUE|PLAN.json")]
    wishes: Vec<String>,
    #[command(flatten)]
    device: Device,
}

#[derive(Debug, clap::Args)]
struct OptionalWishes {
    /// `ID=VALUE`, or a file that `knob plan -o FILE.json` wrote.
    #[arg(value_name = "ID=VALUE|PLAN.json")]
    wishes: Vec<String>,
    #[command(flatten)]
    device: Device,
}

/// What every document of this verb has.
#[derive(Serialize)]
struct Document<T: Serialize> {
    #[serde(flatten)]
    envelope: Envelope,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct KnobState {
    id: &'static str,
    scope: Scope,
    risk: rungwise_knobs::Risk,
    summary: &'static str,
    values: &'static str,
    /// Why rungwise does not turn it; absent where it does.
    shown_only: Option<&'static str>,
    current: Option<String>,
    /// Why the current value is not known; absent where it is.
    unknown: Option<String>,
    readings: Vec<Reading>,
}

#[derive(Serialize)]
struct KnobList {
    knobs: Vec<KnobState>,
}

#[derive(Serialize, Deserialize)]
struct Plans {
    plans: Vec<Plan>,
}

#[derive(Serialize)]
struct Applied {
    plans: Vec<Plan>,
    changes: usize,
    journal: Option<PathBuf>,
    undone_after_s: Option<f64>,
}

#[derive(Default, Serialize)]
struct Verified {
    drift: Vec<Drift>,
    not_verified: Vec<String>,
}

#[derive(Serialize)]
struct Undone {
    journals: Vec<UndoneJournal>,
}

#[derive(Serialize)]
struct UndoneJournal {
    journal: PathBuf,
    purpose: Option<String>,
    closed: bool,
    rebooted: bool,
    still: Vec<String>,
    damage: Vec<String>,
    #[serde(flatten)]
    undo: rungwise_knobs::Undo,
    error: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let started = clock::utc_now();
    let work = Work {
        global,
        started,
        state: args.state.as_deref(),
    };
    match &args.what {
        What::List { device } => work.list(device),
        What::Show { id, device } => work.show(id, device),
        What::Plan { wishes }
        | What::Apply {
            wishes,
            dry_run: true,
            ..
        } => work.plan(wishes),
        What::Apply {
            wishes, deadline, ..
        } => work.apply(wishes, *deadline),
        What::Verify { wishes } => work.verify(wishes),
        What::Undo { journal, abandon } => work.undo(journal.as_deref(), *abandon),
        What::Guard {
            journal,
            deadline_ms,
            lab,
        } => watch(
            journal,
            deadline_ms.map(Duration::from_millis),
            lab.as_deref(),
        ),
    }
}

struct Work<'a> {
    global: &'a Global,
    started: String,
    state: Option<&'a Path>,
}

impl Work<'_> {
    fn list(&self, device: &Device) -> anyhow::Result<Exit> {
        let cpus = cpus()?;
        let context = Context::of_host(&Live, device.device.as_deref(), &cpus);
        let knobs: Vec<_> = KNOBS.iter().map(|knob| state_of(knob, &context)).collect();
        let mut text = String::new();
        let width =
            |column: fn(&KnobState) -> &str| knobs.iter().map(|knob| column(knob).len()).max();
        let id = width(|knob| knob.id).unwrap_or(0);
        for knob in &knobs {
            let now = knob.current.as_deref().unwrap_or("-");
            let _ = writeln!(
                text,
                "{:id$}  {:7}  {:10}  {now:<24}  {}{}",
                knob.id,
                knob.scope.name(),
                knob.risk.name(),
                knob.summary,
                if knob.shown_only.is_some() {
                    " (shown only)"
                } else {
                    ""
                },
            );
        }
        if device.device.is_none() {
            text.push_str("\nname a device with --device to see the knobs of a device\n");
        }
        self.emit(Exit::Done, KnobList { knobs }, &text)
    }

    fn show(&self, id: &str, device: &Device) -> anyhow::Result<Exit> {
        let knob = rungwise_knobs::find(id).map_err(problem)?;
        let cpus = cpus()?;
        let state = state_of(
            knob,
            &Context::of_host(&Live, device.device.as_deref(), &cpus),
        );
        let mut text = knob.page();
        let now = state.current.as_ref().or(state.unknown.as_ref());
        let _ = writeln!(
            text,
            "\n## Here and now\n\n{}\n",
            now.map_or("", String::as_str)
        );
        for Reading { source, value } in &state.readings {
            let _ = writeln!(text, "    {source}: {value}");
        }
        self.emit(Exit::Done, state, &text)
    }

    fn plan(&self, wishes: &Wishes) -> anyhow::Result<Exit> {
        let plans = plans(&wishes.wishes, &wishes.device)?;
        let text: String = plans.iter().map(Plan::diff).collect();
        let stored = self
            .global
            .output
            .as_ref()
            .is_some_and(|path| path.extension().is_some_and(|end| end == "json"));
        if stored && self.global.format != Format::Json {
            self.global.say(text.trim_end());
            self.global.emit(&self.json(Exit::Done, Plans { plans })?)?;
            return Ok(Exit::Done);
        }
        self.emit(Exit::Done, Plans { plans }, &text)
    }

    fn apply(&self, wishes: &Wishes, deadline: Option<Duration>) -> anyhow::Result<Exit> {
        let plans = plans(&wishes.wishes, &wishes.device)?;
        if let Some(knob) = plans.iter().find(|plan| plan.service().next().is_some()) {
            let why = anyhow::anyhow!(
                "cannot set {} here: it is a switch of the service; start `rungwise serve udp` with it, or name it in a scenario",
                knob.knob
            );
            return Err(Problem::with(Exit::Precondition, why));
        }
        let places = places();
        for plan in &plans {
            let drift = plan.drift(&places).map_err(problem)?;
            if let Some(first) = drift.first() {
                anyhow::bail!("the plan is out of date: {first}; make it again");
            }
        }
        let mut text: String = plans.iter().map(Plan::diff).collect();
        let (state, _alone) = self.own_state()?;
        let mut session = Session::begin(&state, places, "knob apply").map_err(problem)?;
        let mut guard = Guard::spawn(session.journal(), deadline, None).map_err(problem)?;
        let applied = plans
            .iter()
            .try_for_each(|plan| session.apply(plan).map(drop));
        let changes = session.changes();
        let applied = match applied {
            Ok(()) if changes > 0 => guard.keep(),
            applied => applied,
        };
        if let Err(error) = applied {
            // All or nothing: what went before it goes back too.
            let undone = session.close();
            guard.dismiss();
            let error = problem(error);
            return match undone {
                Ok(undo) if undo.complete() => Err(error),
                Ok(undo) => Err(Problem::with(
                    Exit::Rollback,
                    error.context(format!("could not put back {}", undo.left_in_words())),
                )),
                Err(second) => Err(Problem::with(Exit::Rollback, error.context(second))),
            };
        }
        let journal = if changes == 0 {
            session.close().map_err(problem)?;
            guard.dismiss();
            text.push_str("nothing to change\n");
            None
        } else {
            let pid = guard.pid();
            let journal = session.keep().map_err(problem)?;
            let _ = match deadline {
                Some(deadline) => writeln!(
                    text,
                    "in force for {}s, then undone by process {pid}; sooner with: rungwise knob undo",
                    deadline.as_secs_f64()
                ),
                None => writeln!(text, "in force; put it back with: rungwise knob undo"),
            };
            Some(journal)
        };
        let applied = Applied {
            plans,
            changes,
            journal,
            undone_after_s: deadline.map(|deadline| deadline.as_secs_f64()),
        };
        let told = self.emit(Exit::Done, applied, &text);
        if changes == 0 {
            return told;
        }
        told.context("the changes are in force; put them back with `rungwise knob undo`")
    }

    fn verify(&self, wishes: &OptionalWishes) -> anyhow::Result<Exit> {
        let places = places();
        let mut verified = Verified::default();
        // What holds, and whether it is known of everything that should.
        let (mut holding, mut known) = (0, true);
        if wishes.wishes.is_empty() {
            let boot_id = recovery::boot_id(&Live).map_err(problem)?;
            let mut pending = Vec::new();
            let mut open = recovery::open(&self.state_dir()?).map_err(problem)?;
            open.reverse();
            for open in open {
                let journal = open.journal.display();
                match &open.recovered.header {
                    Some(header) if header.boot_id == boot_id => {
                        pending.extend(open.recovered.pending);
                    }
                    Some(_) => verified.not_verified.push(format!(
                        "{journal}: from another boot, nothing of it is in force"
                    )),
                    None if open.recovered.never_began() => {}
                    None => {
                        known = false;
                        verified
                            .not_verified
                            .push(format!("{journal}: cannot be read"));
                    }
                }
            }
            let stand = recovery::verify(&pending, &places);
            holding += stand.holding;
            known &= stand.elsewhere.is_empty();
            verified.drift = stand.drift;
            verified.not_verified.extend(stand.elsewhere);
        } else {
            for plan in plans(&wishes.wishes, &wishes.device)? {
                let drift = plan.verify(&places).map_err(problem)?;
                let switches = plan.service().count();
                if switches > 0 {
                    known = false;
                    verified
                        .not_verified
                        .push(format!("{}: known to the service alone", plan.knob));
                }
                holding += plan.edits.len() - switches - drift.len();
                verified.drift.extend(drift);
            }
        }
        let mut text = String::new();
        for drift in &verified.drift {
            let _ = writeln!(text, "{drift}");
        }
        for line in &verified.not_verified {
            let _ = writeln!(text, "not verified: {line}");
        }
        let exit = if !verified.drift.is_empty() {
            Exit::Failed
        } else if !known {
            Exit::Inconclusive
        } else {
            let _ = match holding {
                0 => writeln!(text, "nothing is in force"),
                1 => writeln!(text, "everything holds: 1 setting"),
                more => writeln!(text, "everything holds: {more} settings"),
            };
            Exit::Done
        };
        self.emit(exit, verified, &text)
    }

    fn undo(&self, journal: Option<&Path>, abandon: bool) -> anyhow::Result<Exit> {
        let (state, _alone) = self.own_state()?;
        let leftovers = if abandon {
            Leftovers::Abandon
        } else {
            Leftovers::Report
        };
        let mut paths: Vec<PathBuf> = rungwise_knobs::journal::stored(&state)
            .map_err(problem)?
            .into_iter()
            .map(|stored| stored.path)
            .collect();
        if let Some(wanted) = journal {
            // Only journals: closing one removes or renames the file.
            let wanted = std::path::absolute(wanted).context("cannot find the current folder")?;
            paths.retain(|path| *path == wanted);
            anyhow::ensure!(
                !paths.is_empty(),
                "cannot undo {}: it is no open journal of {}; leave --journal out to undo them all",
                wanted.display(),
                state.display()
            );
        }
        let places = places();
        let mut exit = Exit::Done;
        let mut text = String::new();
        let mut journals = Vec::new();
        for path in paths {
            // No session is alive beside us: whoever holds a journal now is undoing it.
            let told = match recovery::recover(&path, &places, leftovers, true) {
                Ok(None) => continue,
                Ok(Some(recovery)) => UndoneJournal::from(recovery),
                Err(error) => {
                    exit = exit.max(error.exit());
                    UndoneJournal::failed(path, &error)
                }
            };
            if told.error.is_none() && !told.closed {
                exit = Exit::Rollback;
            }
            told.tell(&mut text);
            journals.push(told);
        }
        if journals.is_empty() {
            text.push_str("nothing to undo\n");
        }
        self.emit(exit, Undone { journals }, &text)
    }

    /// The state folder, which need not exist.
    fn state_dir(&self) -> anyhow::Result<PathBuf> {
        match self.state {
            Some(dir) => std::path::absolute(dir).context("cannot find the current folder"),
            None => environment::state_dir().map_err(host_problem),
        }
    }

    /// The state folder, made and locked for whoever changes the machine.
    fn own_state(&self) -> anyhow::Result<(PathBuf, InstanceLock)> {
        let dir = self.state_dir()?;
        files::create_dir_all(&dir).map_err(|error| {
            Problem::with(Exit::Precondition, error).context("name another folder with --state")
        })?;
        let lock = InstanceLock::acquire(&dir).map_err(host_problem)?;
        Ok((dir, lock))
    }

    fn emit(&self, exit: Exit, body: impl Serialize, text: &str) -> anyhow::Result<Exit> {
        let text = match self.global.format {
            Format::Json => self.json(exit, body)?,
            Format::Text | Format::Markdown | Format::Html => text.to_owned(),
        };
        self.global.emit(&text)?;
        Ok(exit)
    }

    fn json(&self, exit: Exit, body: impl Serialize) -> anyhow::Result<String> {
        let envelope = Envelope {
            schema: SCHEMA_VERSION,
            tool: Tool {
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            command: environment::argv(),
            started: self.started.clone(),
            finished: clock::utc_now(),
            exit,
        };
        let mut json = serde_json::to_string_pretty(&Document { envelope, body })?;
        json.push('\n');
        Ok(json)
    }
}

impl From<Recovery> for UndoneJournal {
    fn from(recovery: Recovery) -> Self {
        Self {
            journal: recovery.journal,
            purpose: recovery.header.map(|header| header.purpose),
            closed: recovery.closed,
            rebooted: recovery.rebooted,
            still: recovery.still,
            damage: recovery
                .damage
                .iter()
                .map(|damage| format!("line {}: {}", damage.line, damage.what))
                .collect(),
            undo: recovery.undo,
            error: None,
        }
    }
}

impl UndoneJournal {
    fn failed(journal: PathBuf, error: &Error) -> Self {
        Self {
            journal,
            purpose: None,
            closed: false,
            rebooted: false,
            still: Vec::new(),
            damage: Vec::new(),
            undo: rungwise_knobs::Undo::default(),
            error: Some(error.to_string()),
        }
    }

    fn tell(&self, text: &mut String) {
        for restored in &self.undo.restored {
            let _ = writeln!(
                text,
                "{}: {} on {} is '{}' again",
                restored.knob, restored.target, restored.place, restored.value
            );
        }
        for settled in &self.undo.settled {
            let _ = writeln!(text, "{settled}");
        }
        for left in &self.undo.left {
            let _ = writeln!(text, "{left}");
        }
        let journal = self.journal.display();
        if self.rebooted {
            let _ = writeln!(
                text,
                "{journal}: the machine has started again since, nothing was in force"
            );
        }
        for still in &self.still {
            let _ = writeln!(text, "{still} all the same, which is not our doing");
        }
        for damage in &self.damage {
            let _ = writeln!(
                text,
                "{journal}: {damage}; a change that it told of may be in force"
            );
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "{error}");
        } else if !self.closed {
            let _ = writeln!(
                text,
                "not everything is as before; the journal stays: {journal}; \
                 to accept that: rungwise knob undo --abandon"
            );
        }
    }
}

/// The guard's life. Nobody reads its words; what it could not put back stays in the journal.
fn watch(journal: &Path, deadline: Option<Duration>, lab: Option<&Path>) -> anyhow::Result<Exit> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let (input, output) = (input.into(), output.into());
    let recovery =
        guard::watch(journal, &places(), deadline, lab, input, output).map_err(problem)?;
    match recovery {
        Some(recovery) if !recovery.closed => Ok(Exit::Rollback),
        _ => Ok(Exit::Done),
    }
}

fn state_of(knob: &'static Knob, context: &Context<'_>) -> KnobState {
    let (current, unknown, readings) = match knob.current(context) {
        Ok(current) => match current.value {
            Ok(value) => (Some(value), None, current.readings),
            Err(why) => (None, Some(why), current.readings),
        },
        Err(error) => (None, Some(error.to_string()), Vec::new()),
    };
    KnobState {
        id: knob.id,
        scope: knob.scope,
        risk: knob.risk,
        summary: knob.summary,
        values: knob.values,
        shown_only: match knob.settable {
            Settable::Yes => None,
            Settable::No(why) => Some(why),
        },
        current,
        unknown,
        readings,
    }
}

/// Plans from wishes and from files, in the order given.
fn plans(wishes: &[String], device: &Device) -> anyhow::Result<Vec<Plan>> {
    let cpus = cpus()?;
    let context = Context::of_host(&Live, device.device.as_deref(), &cpus);
    let mut plans = Vec::new();
    for wish in wishes {
        if let Some((id, value)) = wish.split_once('=') {
            let knob = rungwise_knobs::find(id.trim()).map_err(problem)?;
            plans.push(knob.plan(&context, value).map_err(problem)?);
        } else {
            let bytes = files::read(Path::new(wish))
                .with_context(|| format!("'{wish}' is no ID=VALUE, and as a plan"))?;
            let stored: Plans = serde_json::from_slice(&bytes).with_context(|| {
                format!(
                    "cannot read {wish} as a plan; make one with `rungwise knob plan -o {wish}`"
                )
            })?;
            plans.extend(stored.plans);
        }
    }
    Ok(plans)
}

fn places() -> Places {
    Places::host(Arc::new(Live))
}

/// CPUs that this process may use.
fn cpus() -> anyhow::Result<Vec<usize>> {
    let cpus = machine::allowed_cpus().context("cannot read which CPUs this process may use")?;
    Ok(cpus.into_iter().map(|cpu| cpu as usize).collect())
}

fn problem(error: Error) -> anyhow::Error {
    Problem::with(error.exit(), error)
}

fn host_problem(error: rungwise_host::Error) -> anyhow::Error {
    if error.is_precondition() {
        Problem::with(Exit::Precondition, error)
    } else {
        error.into()
    }
}
