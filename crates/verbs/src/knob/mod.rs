//! Shows, plans, applies, verifies and undoes settings of this host.
//!
//! What is applied stays until `knob undo`, or with `--for` until the deadline. Either way a journal
//! in the state directory records how to undo it, and a guard process undoes it at once if this
//! one is killed half-way.

mod asked;
mod export;
mod shown;
mod stored;
mod undone;

use std::fmt::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use rungwise_host::live::Live;
use rungwise_host::lock::InstanceLock;
use rungwise_host::signals::Interrupt;
use rungwise_host::{clock, environment, files, machine};
use rungwise_knobs::edit::Places;
use rungwise_knobs::guard::{self, Guard};
use rungwise_knobs::recovery::{self, Leftovers};
use rungwise_knobs::{Context, Drift, Edit, Error, Plan, PlannedEdit, Session};
use rungwise_model::check::Outcome;
use rungwise_model::evidence::Evidence;
use rungwise_model::{Exit, units};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::asked::{Aftermath, Asked};
pub use self::export::Form;
use self::stored::Kind;
use self::undone::{Undone, UndoneJournal};
use crate::Invocation;
use crate::documents::schema;
use crate::printed::{Printed, WithText};
use crate::problem::Problem;

/// How long `list --why` samples this host.
const WINDOW: Duration = Duration::from_secs(5);

/// What is asked of knobs.
#[derive(Debug, Subcommand)]
pub enum Request {
    /// List all knobs and their current values.
    List {
        /// Of which device.
        #[command(flatten)]
        device: Device,
        /// Start with the knobs that a finding recommends, with the value and the finding.
        #[arg(long)]
        why: bool,
        /// Take the findings from a stored check instead of checking this host for five seconds.
        #[arg(long, value_name = "CHECK.json", requires = "why")]
        from: Option<PathBuf>,
    },
    /// Show one knob: what it does, when it helps, what it costs, its current value.
    Show {
        /// Its id, such as `net.rps_cpus`.
        id: String,
        /// Of which device.
        #[command(flatten)]
        device: Device,
    },
    /// Show what would change, without changing it. `-o FILE.json` stores a plan for `apply`.
    Plan {
        /// What is wanted.
        #[command(flatten)]
        wishes: Wishes,
    },
    /// Apply settings: all of them or none.
    Apply {
        /// What is wanted.
        #[command(flatten)]
        wishes: Wishes,
        /// Undo automatically after this time (`10m`), whatever happens to this process.
        #[arg(long = "for", value_name = "TIME", value_parser = units::duration)]
        deadline: Option<Duration>,
        /// Show what would change, without changing it.
        #[arg(long)]
        dry_run: bool,
        /// Length of the samples before and after, which show whether the symptom of a plan from a check went away;
        /// `0s` for none.
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
        evidence_for: Duration,
    },
    /// Compare current values with the requested ones; without arguments, with all applied changes.
    Verify {
        /// What is wanted.
        #[command(flatten)]
        wishes: OptionalWishes,
    },
    /// Undo applied changes, the newest first: after `apply`, or after a crash.
    Undo {
        /// Undo only this journal.
        #[arg(long, value_name = "FILE")]
        journal: Option<PathBuf>,
        /// Accept what cannot be undone, and close the journal.
        #[arg(long)]
        abandon: bool,
    },
    /// Print settings for a tool that persists them across reboots: requested ones, those of a plan, or the applied
    /// ones.
    Export {
        /// The tool.
        #[arg(long = "as", value_enum, value_name = "FORM")]
        form: Form,
        /// What is wanted.
        #[command(flatten)]
        wishes: OptionalWishes,
        /// Write the files below DIR, under their own paths, instead of printing them.
        #[arg(long, value_name = "DIR")]
        below: Option<PathBuf>,
    },
}

/// Of which device a knob is.
#[derive(Debug, clap::Args)]
pub struct Device {
    /// The network device of a device knob; for other knobs the disk, mount point or control group.
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

/// Values of knobs that are wanted, or the check that recommends them.
#[derive(Debug, clap::Args)]
pub struct Wishes {
    /// `ID=VALUE`, or a file that `knob plan -o FILE.json` wrote.
    #[arg(
        id = "wishes",
        required_unless_present = "from",
        value_name = "ID=VALUE|PLAN.json"
    )]
    pub given: Vec<String>,
    /// Of which device.
    #[command(flatten)]
    pub device: Device,
    /// Take the recommended values from a stored check (`rungwise check --format json -o CHECK.json`).
    #[arg(long, value_name = "CHECK.json", conflicts_with = "wishes")]
    pub from: Option<PathBuf>,
    /// With --from: also take the findings to watch.
    #[arg(long, requires = "from")]
    pub also_watch: bool,
}

/// Values of knobs that are wanted; none for those in force.
#[derive(Debug, clap::Args)]
pub struct OptionalWishes {
    /// `ID=VALUE`, or a file that `knob plan -o FILE.json` wrote.
    #[arg(value_name = "ID=VALUE|PLAN.json")]
    pub wishes: Vec<String>,
    /// Of which device.
    #[command(flatten)]
    pub device: Device,
}

/// The document of `knob plan`.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Planned {
    /// Name of the host that was read for it; empty in old plans, which did not record it.
    #[serde(default)]
    host: String,
    /// The planned changes.
    plans: Vec<Plan>,
    /// The findings that they address, where they come from a check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asked: Vec<Asked>,
    /// Recommendations that no plan contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<asked::LeftOut>,
}

/// The document of `knob apply`.
#[derive(Serialize, JsonSchema)]
struct Applied {
    /// The applied plans.
    plans: Vec<Plan>,
    /// Settings that changed.
    changes: usize,
    /// The journal that undoes them; absent where nothing changed.
    journal: Option<PathBuf>,
    /// Seconds until they are undone automatically; absent without a deadline.
    undone_after_s: Option<f64>,
    /// Recommendations that were not applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<asked::LeftOut>,
    /// Whether the symptoms went away; only for a plan from a check.
    aftermath: Vec<Aftermath>,
}

/// The document of `knob verify`.
#[derive(Default, Serialize, JsonSchema)]
struct Verified {
    /// Settings whose current value differs.
    drift: Vec<Drift>,
    /// Settings whose current value is unknown, with the reason.
    not_verified: Vec<String>,
}

/// The schemas of this verb's documents, by name.
pub(crate) fn schemas() -> [(&'static str, serde_json::Value); 8] {
    [
        ("knob-list", schema::<WithText<shown::KnobList>>()),
        ("knob-list-why", schema::<WithText<shown::Reasons>>()),
        ("knob-show", schema::<WithText<shown::KnobState>>()),
        ("knob-plan", schema::<WithText<Planned>>()),
        ("knob-apply", schema::<WithText<Applied>>()),
        ("knob-verify", schema::<WithText<Verified>>()),
        ("knob-undo", schema::<WithText<Undone>>()),
        (
            "knob-export",
            schema::<WithText<rungwise_knobs::export::Export>>(),
        ),
    ]
}

/// Shows, plans, applies, verifies, undoes or exports. `state` is the folder of the journals and the instance lock, instead of
/// `RUNGWISE_STATE` and the default.
pub fn run(
    request: &Request,
    state: Option<&Path>,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Printed> {
    let started = clock::utc_now();
    let work = Work {
        invocation,
        started,
        state,
    };
    match request {
        Request::List {
            device, why: false, ..
        } => work.list(device),
        Request::List { device, from, .. } => work.reasons(device, from.as_deref()),
        Request::Show { id, device } => work.show(id, device),
        Request::Plan { wishes }
        | Request::Apply {
            wishes,
            dry_run: true,
            ..
        } => work.plan(wishes),
        Request::Apply {
            wishes,
            deadline,
            evidence_for,
            ..
        } => work.apply(wishes, *deadline, *evidence_for),
        Request::Verify { wishes } => work.verify(wishes),
        Request::Undo { journal, abandon } => work.undo(journal.as_deref(), *abandon),
        Request::Export {
            form,
            wishes,
            below,
        } => work.export(*form, wishes, below.as_deref()),
    }
}

struct Work<'a> {
    invocation: &'a Invocation<'a>,
    started: String,
    state: Option<&'a Path>,
}

impl Work<'_> {
    fn export(
        &self,
        form: Form,
        wishes: &OptionalWishes,
        below: Option<&Path>,
    ) -> anyhow::Result<Printed> {
        let (plans, elsewhere) = if wishes.wishes.is_empty() {
            self.invocation.say(
                "export covers what rungwise changed and did not undo; a value that was already set is in no journal, so name it: \
                 rungwise knob export --as FORM KNOB=VALUE",
            );
            export::in_force(&self.state_dir()?).map_err(problem)?
        } else {
            let asked = plans(&wishes.wishes, &wishes.device, Origin::Anywhere)?;
            (asked.plans, Vec::new())
        };
        let mut export = rungwise_knobs::export::export(form.into(), &plans).map_err(problem)?;
        export.left_out.extend(elsewhere);
        if let Some(folder) = below {
            export::store(&export, folder)?;
        }
        let text = export::render(&export, below);
        for left in &export.left_out {
            self.invocation
                .say(&format!("left out: {}: {}", left.what, left.why));
        }
        self.printed("knob-export", Exit::Done, export, text)
    }

    fn plan(&self, wishes: &Wishes) -> anyhow::Result<Printed> {
        let plans = wishes.plans()?;
        without_switches(&plans.plans)?;
        up_to_date(&plans.plans, &places())?;
        let text = plans.diff();
        self.printed("knob-plan", Exit::Done, plans, text)
    }

    fn apply(
        &self,
        wishes: &Wishes,
        deadline: Option<Duration>,
        evidence_for: Duration,
    ) -> anyhow::Result<Printed> {
        // First of all: a plan rests on what is read.
        let (state, _alone) = self.own_state()?;
        let Planned {
            plans,
            asked,
            left_out,
            ..
        } = wishes.plans()?;
        without_switches(&plans)?;
        let places = places();
        up_to_date(&plans, &places)?;
        let mut text: String = plans.iter().map(Plan::diff).collect();
        asked::tell_left_out(&left_out, &mut text);
        let interrupt = self.invocation.interrupt()?;
        let observes = !asked.is_empty() && !evidence_for.is_zero();
        let before = observes
            .then(|| asked::observe(evidence_for, &interrupt, self.invocation))
            .transpose()?;
        let mut session = Session::begin(&state, places, "knob apply").map_err(problem)?;
        let mut guard = Guard::spawn(session.journal(), deadline, &[]).map_err(problem)?;
        let applied = plans
            .iter()
            .try_for_each(|plan| session.apply(plan).map(drop));
        let changes = session.changes();
        // The second sample comes before anything is kept: who interrupts it wants the machine back, and so does the guard
        // of a tool that is killed then.
        let seen = applied.map_err(problem).and_then(|()| {
            let seen = match before.filter(|_| changes > 0) {
                Some(before) => self.observe_again(&asked, &before, evidence_for, &interrupt)?,
                None => Vec::new(),
            };
            asked::heed(&interrupt)?;
            if changes > 0 {
                guard.keep().map_err(problem)?;
            }
            Ok(seen)
        });
        let aftermath = match seen {
            Ok(seen) => seen,
            Err(error) => return Err(put_back(session, guard, error)),
        };
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
                    "in force for {}, then undone by process {pid}; undo earlier with: rungwise knob undo",
                    units::written(deadline)
                ),
                None => writeln!(text, "in force; undo with: rungwise knob undo"),
            };
            Some(journal)
        };
        for symptom in &aftermath {
            symptom.tell(&mut text);
        }
        let applied = Applied {
            plans,
            changes,
            journal,
            undone_after_s: deadline.map(|deadline| deadline.as_secs_f64()),
            left_out,
            aftermath,
        };
        let printed = self.printed("knob-apply", Exit::Done, applied, text)?;
        Ok(Printed {
            unprinted: (changes > 0)
                .then_some("the changes are in force; undo them with `rungwise knob undo`"),
            ..printed
        })
    }

    /// What became of the symptoms. That a second sample fails is no reason to take a change back.
    fn observe_again(
        &self,
        asked: &[Asked],
        before: &Evidence,
        window: Duration,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Vec<Aftermath>> {
        match asked::observe(window, interrupt, self.invocation) {
            Ok(after) => Ok(asked::aftermath(asked, before, &after)),
            Err(error) if interrupt.raised() => Err(error),
            Err(error) => {
                self.invocation
                    .say(&format!("cannot sample again: {error:#}"));
                Ok(Vec::new())
            }
        }
    }

    fn verify(&self, wishes: &OptionalWishes) -> anyhow::Result<Printed> {
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
                        "{journal}: from another boot; none of it is in force"
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
            for plan in plans(&wishes.wishes, &wishes.device, Origin::Anywhere)?.plans {
                let drift = plan.verify(&places).map_err(problem)?;
                let unseen = plan
                    .edits
                    .iter()
                    .filter(|planned| !planned.edit.readable())
                    .count();
                if unseen > 0 {
                    known = false;
                    let who = match plan.service().next() {
                        Some(_) => "only the service can report it",
                        None => "cannot be verified automatically",
                    };
                    verified.not_verified.push(format!("{}: {who}", plan.knob));
                }
                holding += plan.edits.len() - unseen - drift.len();
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
        self.printed("knob-verify", exit, verified, text)
    }

    fn undo(&self, journal: Option<&Path>, abandon: bool) -> anyhow::Result<Printed> {
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
                "cannot undo {}: it is not an open journal of {}; omit --journal to undo them all",
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
            let undone = match recovery::recover(&path, &places, leftovers, true) {
                Ok(None) => continue,
                Ok(Some(recovery)) => UndoneJournal::from(recovery),
                Err(error) => {
                    exit = exit.max(error.exit());
                    UndoneJournal::failed(path, &error)
                }
            };
            if undone.error.is_none() && !undone.closed {
                exit = Exit::Rollback;
            }
            undone.tell(&mut text);
            journals.push(undone);
        }
        if journals.is_empty() {
            text.push_str("nothing to undo\n");
        }
        self.printed("knob-undo", exit, Undone { journals }, text)
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
        let lock = own(&dir, self.invocation)?;
        Ok((dir, lock))
    }
}

/// Locks the state folder `dir`, and lets guards of killed sessions finish: what they have not put back yet would be taken
/// for the machine's own.
pub(crate) fn own(dir: &Path, invocation: &Invocation<'_>) -> anyhow::Result<InstanceLock> {
    let lock = InstanceLock::acquire(dir).map_err(host_problem)?;
    let tell = || {
        invocation.say("waiting for the guard of a killed rungwise, which is undoing its changes");
    };
    guard::wait_for_all(dir, tell).map_err(problem)?;
    Ok(lock)
}

/// All or nothing: what was changed before `error` goes back too.
fn put_back(session: Session, guard: Guard, error: anyhow::Error) -> anyhow::Error {
    let undone = session.close();
    guard.dismiss();
    match undone {
        Ok(undo) if undo.complete() => error,
        Ok(undo) => Problem::with(
            Exit::Rollback,
            error.context(format!("could not restore {}", undo.left_in_words())),
        ),
        Err(second) => Problem::with(Exit::Rollback, error.context(second)),
    }
}

/// The life of the guard of a journal, on standard input and output. It prints nothing; what it could not restore stays in the
/// journal.
pub fn watch(journal: &Path, deadline: Option<Duration>, labs: &[PathBuf]) -> anyhow::Result<Exit> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let (input, output) = (input.into(), output.into());
    let recovery =
        guard::watch(journal, &places(), deadline, labs, input, output).map_err(problem)?;
    match recovery {
        Some(recovery) if !recovery.closed => Ok(Exit::Rollback),
        _ => Ok(Exit::Done),
    }
}

/// Where a stored plan may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Only from this host: what it replaces was read there.
    Here,
    /// From any host: only what it wishes for counts.
    Anywhere,
}

/// Plans from wishes and from files, in the order given.
fn plans(wishes: &[String], device: &Device, origin: Origin) -> anyhow::Result<Planned> {
    let cpus = cpus()?;
    let context = Context::of_host(&Live, device.device.as_deref(), &cpus);
    let here = machine::fingerprint(&Live).hostname;
    let mut all = Planned::default();
    for wish in wishes {
        let more = if let Some((id, value)) = wish.split_once('=') {
            let knob = rungwise_knobs::find(id.trim()).map_err(problem)?;
            vec![knob.plan(&context, value).map_err(problem)?]
        } else {
            if let Ok(knob) = rungwise_knobs::find(wish) {
                anyhow::bail!(
                    "cannot plan {wish}: it has no value; write {wish}=VALUE, where VALUE is {}",
                    knob.values
                );
            }
            let stored: Planned = Kind::Plan.read(Path::new(wish))?;
            anyhow::ensure!(
                origin == Origin::Anywhere || [here.as_str(), ""].contains(&&*stored.host),
                "cannot apply {wish}: it was planned on host '{}', and this is '{here}'; plan it here, or apply it there",
                stored.host
            );
            all.asked.extend(stored.asked);
            stored.plans
        };
        for plan in more {
            if let Some(why) = conflict(&all.plans, &plan) {
                anyhow::bail!(
                    "cannot plan {} = {}: {why}; name each once, with all its parts",
                    plan.knob,
                    plan.wish
                );
            }
            all.plans.push(plan);
        }
    }
    all.host = here;
    Ok(all)
}

/// Refuses a switch of the service: whoever starts the service sets it.
fn without_switches(plans: &[Plan]) -> anyhow::Result<()> {
    let Some(plan) = plans.iter().find(|plan| plan.service().next().is_some()) else {
        return Ok(());
    };
    let running = match plan.knob.as_str() {
        "cpu.pin_threads" => {
            ", or pin the threads of a running process: cpu.pin_threads=PID:each:LIST"
        }
        _ => "",
    };
    let why = anyhow::anyhow!(
        "cannot set {} here: it is a switch of the service; start `rungwise serve udp` with it, or name it in a scenario{running}",
        plan.knob
    );
    Err(Problem::with(Exit::Precondition, why))
}

/// Refuses what a file says that its knobs do not write, or that replaces what is not there any more.
fn up_to_date(plans: &[Plan], places: &Places) -> anyhow::Result<()> {
    for plan in plans {
        let drift = plan.drift(places).map_err(problem)?;
        if let Some(first) = drift.first() {
            anyhow::bail!("the plan is out of date: {first}; create it again");
        }
    }
    Ok(())
}

/// Why `plan` cannot hold beside those before it: both set one target, to different values.
fn conflict(before: &[Plan], plan: &Plan) -> Option<String> {
    // A mask that is kept stays as it is, and a person may have several things to do in one place.
    let sets = |edit: &Edit| !matches!(edit, Edit::Keep { .. } | Edit::ByHand { .. });
    for two in plan.edits.iter().filter(|planned| sets(&planned.edit)) {
        let (target, wanted) = (two.edit.target(), two.edit.value());
        let disagrees = |one: &&PlannedEdit| {
            sets(&one.edit)
                && one.place == two.place
                && one.edit.target() == target
                && !two.edit.same(&one.edit.value(), &wanted)
        };
        for other in before {
            if let Some(one) = other.edits.iter().find(disagrees) {
                return Some(format!(
                    "it sets {target} to '{wanted}', and {} = {} sets it to '{}'",
                    other.knob,
                    other.wish,
                    one.edit.value()
                ));
            }
        }
    }
    None
}

impl Wishes {
    /// Plans from wishes and files, or from what a check asks for.
    fn plans(&self) -> anyhow::Result<Planned> {
        let Some(check) = &self.from else {
            return plans(&self.given, &self.device, Origin::Here);
        };
        let least = if self.also_watch {
            Outcome::Watch
        } else {
            Outcome::Act
        };
        let report = asked::stored(check)?;
        let asked::FromFindings {
            plans,
            asked,
            left_out,
        } = asked::plans(&report.findings, report.taken.as_deref(), least, &cpus()?);
        Ok(Planned {
            host: machine::fingerprint(&Live).hostname,
            plans,
            asked,
            left_out,
        })
    }
}

impl Planned {
    /// What would change, for people.
    fn diff(&self) -> String {
        let mut text: String = self.plans.iter().map(Plan::diff).collect();
        asked::tell_left_out(&self.left_out, &mut text);
        if text.is_empty() {
            text.push_str("no finding recommends a knob\n");
        }
        text
    }
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
