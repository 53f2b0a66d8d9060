//! Profiles: of a running process, and those that others recorded: folded stacks, the output of `perf script`, Flight Recorder files, and
//! our own documents.

mod live;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rungwise_host::{clock, files};
use rungwise_jfr::{MAGIC, Source};
use rungwise_model::profile::{Event, HotFrame, Profile, ProfileReport, Share, ThreadShare, Unit};
use rungwise_model::{Exit, units};
use rungwise_stacks::{Reader, Stacks, Thread};
use rungwise_stats::proportion::share_interval;

use crate::Invocation;
use crate::documents::{Document as _, Stored};
use crate::input;
use crate::jvm::jfr;
use crate::problem::Problem;

/// Rows of each list in the document.
const ROWS: usize = 100;
/// Bytes of folded text in the document; `rungwise report` reads four times as much.
const DOCUMENT: usize = 64 << 20;

/// Profile a running process, or show a recorded profile: hot frames, hottest paths, threads, flame graph.
///
/// With --pid it samples that process and its children: stacks of the kernel, of native code with its callers, and of Java (JDK 17 and later).
/// A file: folded stacks (`a;b;c 12`), the output of `perf script`, Flight Recorder files of the JDK and async-profiler, and documents of
/// this verb; plain, gzip or zip. The type is recognised by the contents. The flame graph is in the HTML report: -o flame.html.
/// Exit status: 0, or 4 if the file is no profile or lacks the event, or the process cannot be sampled or did not run.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// The profile, or - for standard input.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Profile this process, all its threads and its children.
    #[arg(long, value_name = "PID", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// How long to profile the process; SIGINT ends it early [default: 10s].
    #[arg(long = "for", value_name = "TIME", requires = "pid", conflicts_with = "file", value_parser = units::duration)]
    pub window: Option<Duration>,
    /// Samples per second and CPU [default: 99].
    #[arg(long, value_name = "N", requires = "pid", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..=999))]
    pub hz: Option<u32>,
    /// What to profile: of a process cpu (the default); of a Flight Recorder file by default the first of these that it contains.
    #[arg(long, value_enum, value_name = "EVENT")]
    pub event: Option<Wanted>,
    /// Print the stacks as folded text instead.
    #[arg(long, conflicts_with = "speedscope")]
    pub folded: bool,
    /// Print the stacks as JSON of speedscope.app instead.
    #[arg(long)]
    pub speedscope: bool,
}

/// Events that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wanted {
    /// Samples of running threads.
    Cpu,
    /// Time that threads of a running process were blocked.
    OffCpu,
    /// Samples of threads, running or not.
    Wall,
    /// Allocated bytes.
    Alloc,
    /// Time that threads waited for locks.
    Lock,
}

/// What the verb answers.
#[derive(Debug)]
pub enum Answer {
    /// The report.
    Report(Box<ProfileReport>),
    /// Stacks in the format of another program.
    Export(String, Exit),
}

/// Reads the profile.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Answer> {
    let started = clock::utc_now();
    let (loaded, target, exit) = match (&request.file, request.pid) {
        (Some(file), _) => (
            load(file, request.event)?,
            file.display().to_string(),
            Exit::Done,
        ),
        (None, Some(pid)) => {
            let (loaded, exit) = live::record(pid, request, invocation)?;
            (loaded, format!("pid {pid}"), exit)
        }
        (None, None) => anyhow::bail!(
            "nothing to profile: name a recorded profile, or a running process by --pid PID"
        ),
    };
    if request.folded {
        let mut text = rungwise_stacks::folded(&loaded.stacks).join("\n");
        text.push('\n');
        return Ok(Answer::Export(text, exit));
    }
    if request.speedscope {
        let version = env!("CARGO_PKG_VERSION");
        let file = rungwise_stacks::speedscope(&loaded.stacks, &target, loaded.unit, version);
        let text = rungwise_report::without_orders(file.to_string());
        return Ok(Answer::Export(text + "\n", exit));
    }
    let profile = loaded.summed();
    Ok(Answer::Report(Box::new(ProfileReport {
        envelope: invocation.envelope(ProfileReport::KIND, started, exit),
        target,
        profile,
    })))
}

/// A profile as it was read.
pub(crate) struct Loaded {
    pub(crate) format: &'static str,
    pub(crate) event: Event,
    pub(crate) source: Option<String>,
    pub(crate) unit: Unit,
    pub(crate) samples: Option<u64>,
    pub(crate) notes: Vec<String>,
    pub(crate) stacks: Stacks,
}

impl Loaded {
    fn summed(self) -> Profile {
        let stacks = &self.stacks;
        let total = stacks.total();
        let share = |weight: u64| weight as f64 / total.max(1) as f64;
        let mut notes = self.notes;
        if stacks.shortened() > 0 {
            notes.push(format!(
                "stacks with {:.1} % of the weight are deeper than 4096 frames, or the profile has more distinct stacks than fit in memory: \
                 their innermost frames are missing",
                100.0 * share(stacks.shortened())
            ));
        }
        let hot = rungwise_stacks::hot(stacks).into_iter().take(ROWS);
        let hot = hot.filter(|hot| hot.total > 0).map(|hot| HotFrame {
            self_share: share(hot.own),
            total_share: share(hot.total),
            frame: hot.frame,
            kind: hot.kind,
            own: hot.own,
            total: hot.total,
        });
        let are_samples = self.unit == Unit::Samples;
        let shares = rungwise_stacks::by_kind(stacks)
            .into_iter()
            .map(|(name, weight)| {
                let interval = share_interval(weight, total).filter(|_| are_samples);
                Share {
                    name,
                    share: share(weight),
                    low: interval.map(|(low, _)| low),
                    high: interval.map(|(_, high)| high),
                }
            });
        let threads = rungwise_stacks::threads(stacks).into_iter().take(ROWS);
        let threads = threads.map(|threads| ThreadShare {
            share: share(threads.weight),
            name: threads.name,
            threads: threads.threads,
            weight: threads.weight,
            hottest: threads.hottest,
        });
        Profile {
            format: self.format.to_owned(),
            event: self.event,
            source: self.source,
            unit: self.unit,
            samples: self.samples,
            total,
            notes,
            hot: hot.collect(),
            shares: shares.collect(),
            threads: threads.collect(),
            stacks: rungwise_stacks::kept(stacks, DOCUMENT),
        }
    }
}

/// Reads a profile of any type.
pub(crate) fn load(path: &Path, event: Option<Wanted>) -> anyhow::Result<Loaded> {
    let target = path.display().to_string();
    let parts = input::parts(path)?;
    let [part] = &parts[..] else {
        let found = parts.len();
        let error = anyhow::anyhow!(
            "cannot read {target}: it contains {found} files, and one profile is read at a time; name one of them"
        );
        return Err(Problem::with(Exit::Usage, error));
    };
    let mut first = Vec::new();
    if part.rests() {
        part.open()?.each(|piece| {
            first.extend_from_slice(&piece[..piece.len().min(64)]);
            first.len() < 64
        })?;
        if first.starts_with(MAGIC) {
            return recording(path, &target, event);
        }
        if first.trim_ascii_start().starts_with(b"{") {
            return document(path, event);
        }
    }
    let mut reader = Reader::default();
    let mut is_recording = false;
    let mut is_first = true;
    let broken = part
        .open()?
        .each(|piece| {
            is_recording |= is_first && piece.starts_with(MAGIC);
            is_first = false;
            !is_recording && reader.push(piece)
        })
        .with_context(|| format!("cannot read {}", part.name))?;
    if is_recording {
        let error = anyhow::anyhow!(
            "cannot read a recording from {}: events need constants that come behind them; write it to a file and name that",
            part.name
        );
        return Err(Problem::with(Exit::Usage, error));
    }
    let text = reader.finish().map_err(|error| {
        let error = anyhow::anyhow!("cannot read {target} as a profile: {error}");
        Problem::with(Exit::Precondition, error)
    })?;
    anyhow::ensure!(
        event.is_none(),
        "cannot select an event of {target}: only Flight Recorder files have several that are known by name; remove --event"
    );
    let mut notes = text.notes;
    notes.extend(broken.map(|why| format!("{}: {why}; the rest is missing", part.name)));
    Ok(Loaded {
        format: text.format.name(),
        event: text.event,
        source: text.source,
        unit: text.unit,
        samples: text.samples,
        notes,
        stacks: text.stacks,
    })
}

/// A document of this verb.
fn document(path: &Path, event: Option<Wanted>) -> anyhow::Result<Loaded> {
    let stored = Stored::read(path)?;
    anyhow::ensure!(
        stored.kind == ProfileReport::KIND,
        "cannot read {} as a profile: it is a document of kind {}; draw it with rungwise report",
        path.display(),
        stored.kind
    );
    let report: ProfileReport = stored.parse()?;
    let profile = report.profile;
    anyhow::ensure!(
        event.is_none_or(|wanted| wanted.event() == profile.event),
        "cannot select an event of {}: the document has one only; remove --event, or name the recording itself",
        path.display()
    );
    let known = ["folded", "perf-script", "jfr", "live"];
    let format = known.into_iter().find(|format| *format == profile.format);
    Ok(Loaded {
        format: format.unwrap_or("folded"),
        event: profile.event,
        source: profile.source,
        unit: profile.unit,
        samples: profile.samples,
        notes: profile.notes,
        stacks: rungwise_stacks::read_folded(&profile.stacks),
    })
}

impl Wanted {
    const ALL: [Self; 4] = [Self::Cpu, Self::Wall, Self::Alloc, Self::Lock];

    fn event(self) -> Event {
        match self {
            Self::Cpu => Event::Cpu,
            Self::OffCpu => Event::OffCpu,
            Self::Wall => Event::Wall,
            Self::Alloc => Event::Alloc,
            Self::Lock => Event::Lock,
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Cpu | Self::Wall => Unit::Samples,
            Self::Alloc => Unit::Bytes,
            Self::OffCpu | Self::Lock => Unit::Ns,
        }
    }

    /// As it is typed.
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Wall => "wall",
            Self::Alloc => "alloc",
            Self::Lock => "lock",
        }
    }

    /// Where a recording may have it; the first that it has is taken, as in `jvm jfr`.
    fn sources(self) -> &'static [Source] {
        match self {
            Self::Cpu => &[Source::Execution, Source::CpuTime, Source::WallRunning],
            Self::Wall => &[Source::Wall, Source::WallExecution],
            Self::Alloc => &[Source::Tlab, Source::AllocationSample],
            Self::Lock => &[Source::Lock],
            Self::OffCpu => &[],
        }
    }
}

/// The stacks of one kind of event of a recording.
fn recording(path: &Path, target: &str, event: Option<Wanted>) -> anyhow::Result<Loaded> {
    let (file, mut notes) = jfr::opened(path)?;
    let of = |wanted: Wanted| -> anyhow::Result<Option<Loaded>> {
        for source in wanted.sources() {
            let mut stacks = Stacks::default();
            let mut events = 0;
            let passed = rungwise_jfr::stacks(&file, *source, |stack| {
                let thread = stack.thread.map(|thread| Thread {
                    name: thread.name.clone(),
                    id: u64::try_from(thread.os_id).unwrap_or(0),
                });
                events += stack.events;
                stacks.add(
                    thread.as_ref(),
                    stack.frames.iter().rev().copied(),
                    stack.weight,
                );
            });
            let passed = passed.map_err(|error| {
                let error = anyhow::anyhow!("cannot read {target} as a recording: {error}");
                Problem::with(Exit::Precondition, error)
            })?;
            if stacks.total() > 0 {
                return Ok(Some(Loaded {
                    format: "jfr",
                    event: wanted.event(),
                    source: Some(source.events().join(", ")),
                    unit: wanted.unit(),
                    samples: Some(events),
                    notes: passed.damage,
                    stacks,
                }));
            }
        }
        Ok(None)
    };
    let asked: &[Wanted] = event.as_ref().map_or(&Wanted::ALL, std::slice::from_ref);
    for wanted in asked {
        if let Some(mut loaded) = of(*wanted)? {
            notes.append(&mut loaded.notes);
            loaded.notes = notes;
            return Ok(loaded);
        }
    }
    let mut others = Vec::new();
    for other in Wanted::ALL {
        if !asked.contains(&other) && of(other)?.is_some() {
            others.push(format!("--event {}", other.name()));
        }
    }
    let names: Vec<&str> = asked.iter().map(|wanted| wanted.name()).collect();
    let remedy = if others.is_empty() {
        "record again with settings=profile".to_owned()
    } else {
        format!("it has stacks of other events: {}", others.join(", "))
    };
    let error = anyhow::anyhow!(
        "cannot draw {} stacks of {target}: the recording has no such events; {remedy}",
        names.join(", ")
    );
    Err(Problem::with(Exit::Precondition, error))
}

/// Whether a file is a profile that `compare` can read: a recording, text with stacks, or a document of this verb.
pub(crate) fn is_profile(path: &Path) -> bool {
    if files::is_folder(path) || !files::leads_to_plain(path) {
        return false;
    }
    let parts = input::parts(path).unwrap_or_default();
    let [part] = &parts[..] else {
        return false;
    };
    let mut reader = Reader::default();
    let mut first = Vec::new();
    let read = part.open().and_then(|mut text| {
        text.each(|piece| {
            let is_first = first.is_empty();
            first.extend_from_slice(&piece[..piece.len().min(64)]);
            // A document or a recording is known by its first bytes; of a text the first piece is enough.
            if is_first {
                reader.push(piece);
            }
            first.len() < 64
        })?;
        Ok(())
    });
    if read.is_err() {
        return false;
    }
    if first.trim_ascii_start().starts_with(b"{") {
        return Stored::read(path).is_ok_and(|stored| stored.kind == ProfileReport::KIND);
    }
    first.starts_with(MAGIC) || reader.recognises()
}
