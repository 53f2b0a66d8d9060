//! What a JDK does with the options of a JVM, and the same options for another JDK.

use anyhow::Context as _;
use rungwise_host::clock;
use rungwise_jvm::migrate::{Migration, migrate};
use rungwise_jvm::{
    Case, CommandLine, Machine, OPTION_RULES, Release, Start, bytes, history, judge, lifetime,
    shown,
};
use rungwise_model::check::{CheckReport, Finding, Outcome};
use rungwise_model::evidence::Evidence;
use rungwise_model::jvm_flags::{
    FlagRelease, Jdk, JvmFlagsReport, JvmOption, MigrationReport, MigrationStep, Surroundings,
};
use rungwise_model::readings::Readings;
use rungwise_model::{Envelope, units};
use rungwise_report::block::{Block, Mark, Tone, Verdict};
use rungwise_report::check as page;

use super::target::{self, Target};
use crate::Invocation;
use crate::check::{self, FailOn};
use crate::documents::Document as _;

/// The judgement of options whose acceptance depends on what is not read here.
const NOT_JUDGED: &str = "jvm-option-not-judged";

/// Judge the options of a JVM, or move them to another JDK.
///
/// How a JDK treats an option was recorded from a JVM of that release. Exit status: 0 nothing to act on, 1 findings at
/// or above --fail-on, 4 the process is not a JVM or the log contains no flags.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// The options as one string ("-Xmx4g -XX:+UseG1GC", argument files "@app.args" included), the pid of a JVM, or a GC log,
    /// plain or compressed, whose header lists them.
    #[arg(
        long = "for",
        value_name = "OPTIONS|PID|LOG",
        allow_hyphen_values = true
    )]
    pub of: String,
    /// The JDK that runs them: 7, 8, 11, 17, 21, 25, or with its update 8u181; detected for a process and for most logs.
    #[arg(long, value_name = "RELEASE", value_parser = version)]
    pub jdk: Option<Version>,
    /// Show the same options for this JDK.
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    pub to: Option<Release>,
    /// Memory of the machine or container that runs them, such as 8g.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// CPUs of the machine or container that runs them.
    #[arg(long, value_name = "COUNT")]
    pub cpus: Option<f64>,
    /// Lowest outcome that exits with status 1.
    #[arg(long, value_enum, default_value_t = FailOn::Act)]
    pub fail_on: FailOn,
}

/// A JDK, and its update where that is known of one up to 8.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The release, such as 8.
    pub release: Release,
    /// The update, such as 181.
    pub update: Option<u32>,
}

fn version(text: &str) -> Result<Version, String> {
    Ok(Version {
        release: release(text)?,
        update: Release::update(text),
    })
}

fn release(text: &str) -> Result<Release, String> {
    Release::parse(text)
        .ok_or_else(|| "a JDK is a number such as 17, or a version such as 1.8.0_504".to_owned())
}

/// As an option of the JVM takes it, or with a unit as everywhere else here.
fn size(text: &str) -> Result<u64, String> {
    let read = bytes(text).or_else(|| units::bytes(text).ok());
    read.ok_or_else(|| "a size is a number with a unit, such as 8g or 8GiB".to_owned())
}

/// Judges the options, and moves them to another JDK where that is asked for.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<JvmFlagsReport> {
    let started = clock::utc_now();
    let reads_files = request.jdk.is_none_or(|jdk| jdk.release > Release(8));
    let target = target::open(&request.of, reads_files)?;
    let known = target.version.as_deref();
    let known = known.and_then(|text| version(text).ok());
    let Version { release, update } = request
        .jdk
        .or(known)
        .with_context(|| format!("the JDK of {} is unknown; pass it with --jdk", target.name))?;
    let case = Case {
        release,
        update,
        line: target.line.clone(),
        machine: Machine {
            memory: request.memory.or(target.machine.memory),
            cpus: request.cpus.or(target.machine.cpus),
            limit: target.machine.limit,
        },
    };
    let mut findings = judge(&case);
    if target.runs {
        // It has loaded its agents, classes and files.
        findings.retain(|finding| finding.rule != NOT_JUDGED);
    }
    let exit = check::exit(&findings, request.fail_on);
    let envelope = invocation.envelope(JvmFlagsReport::KIND, started, exit);
    let moved = request.to.map(|to| moved(&case, to));
    Ok(report(envelope, &target, &case, findings, moved))
}

/// The options for another JDK, judged there.
fn moved(case: &Case, to: Release) -> MigrationReport {
    let Migration { steps, line } = migrate(&case.line, case.release, to);
    let options = line
        .options
        .iter()
        .map(|given| given.written.clone())
        .collect();
    let mut findings = judge(&Case {
        release: to,
        update: None,
        line,
        machine: case.machine,
    });
    findings.retain(|finding| finding.outcome <= Outcome::Watch);
    let steps = steps.into_iter().map(|step| MigrationStep {
        out: step.out,
        into: step.into,
        why: step.why,
        source: step.source.to_owned(),
        confidence: step.sure,
    });
    MigrationReport {
        to: to.0,
        steps: steps.collect(),
        options,
        findings,
    }
}

fn report(
    envelope: Envelope,
    target: &Target,
    case: &Case,
    findings: Vec<Finding>,
    migration: Option<MigrationReport>,
) -> JvmFlagsReport {
    let table = case.release.table();
    let options = case.line.options.iter().map(|given| JvmOption {
        written: given.written.clone(),
        origin: given.origin.to_string(),
        lifetime: lifetime(given),
        releases: history(given)
            .into_iter()
            .map(|standing| FlagRelease {
                release: standing.release.0,
                state: standing.state.word().to_owned(),
                default: standing.default.map(str::to_owned),
            })
            .collect(),
    });
    JvmFlagsReport {
        envelope,
        target: target.name.clone(),
        jdk: Jdk {
            release: case.release.0,
            version: target.version.clone(),
            update: case.update,
            table: table.release.0,
            table_source: table.source.to_owned(),
        },
        surroundings: Surroundings {
            memory_bytes: case.machine.memory,
            limit_bytes: case.machine.limit,
            cpus: case.machine.cpus,
        },
        options: options.collect(),
        findings,
        migration,
    }
}

/// The page.
pub(crate) fn blocks(report: &JvmFlagsReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report))];
    if let Some(migration) = &report.migration {
        blocks.extend(migrated(report, migration));
    }
    // The cards of `check`, without a host to show.
    let checked = CheckReport {
        place: None,
        taken: None,
        envelope: report.envelope.clone(),
        target: report.target.clone(),
        host: String::new(),
        window_s: 0.0,
        findings: report.findings.clone(),
        standing: None,
        resources: Vec::new(),
        tables: Vec::new(),
        readings: Readings::default(),
        jvm: None,
        service: None,
        files: Vec::new(),
    };
    let mut ours = false;
    for block in page::blocks(&checked, &Evidence::default(), &about()) {
        if let Block::Section { id, .. } = block {
            ours = ["act", "watch", "undecided", "passed"].contains(&id);
        }
        if ours {
            blocks.push(block);
        }
    }
    blocks.push(section(
        "options",
        "Options, in the order in which the JVM reads them",
    ));
    let options = report.options.iter();
    blocks.push(match report.options.as_slice() {
        [] => Block::Prose("None.".to_owned()),
        _ => Block::Code(options.map(|option| option.written.clone()).collect()),
    });
    let lives = report
        .options
        .iter()
        .filter(|option| !option.lifetime.is_empty());
    let lives: Vec<String> = lives
        .map(|option| format!("{}: {}", option.written, option.lifetime))
        .collect();
    if !lives.is_empty() {
        blocks.push(section("lifetimes", "Lifetimes of options"));
        blocks.push(Block::List(lives));
    }
    blocks
}

fn section(id: &'static str, title: impl Into<String>) -> Block {
    Block::Section {
        id,
        title: title.into(),
    }
}

fn about() -> Vec<page::About> {
    OPTION_RULES
        .iter()
        .map(|judgement| page::About {
            id: judgement.id.to_owned(),
            topic: "jvm".to_owned(),
            summary: judgement.summary.to_owned(),
            page: judgement.page(),
            needs: Vec::new(),
            knobs: Vec::new(),
        })
        .collect()
}

fn verdict(report: &JvmFlagsReport) -> Verdict {
    let release = Release(report.jdk.release);
    let of = |outcome| {
        report
            .findings
            .iter()
            .filter(move |finding| finding.outcome == outcome)
    };
    let count = |outcome| of(outcome).count();
    let (mark, sentence) = match (
        of(Outcome::Act).next(),
        Start::from_findings(&report.findings),
    ) {
        (Some(first), _) => (("✗", "act", Tone::Bad), first.sentence.clone()),
        (None, Start::Unknown(options)) => {
            let sentence = if release.is_known() {
                format!(
                    "{} accepts all options that could be judged; not judged: {}",
                    release,
                    options.join(", ")
                )
            } else {
                format!(
                    "{} is not in the tables; the nearest older release in them, {}, accepts these options",
                    release,
                    release.table().release
                )
            };
            (("?", "partly judged", Tone::Doubt), sentence)
        }
        (None, _) => {
            let sentence = format!("{release} accepts these options");
            (("✓", "nothing to act on", Tone::Good), sentence)
        }
    };
    let mut context = vec![report.target.clone(), release.to_string()];
    // What came with a later update, an older one does not know.
    let table = release.table().update();
    context.extend(report.jdk.update.zip(table).and_then(|(own, table)| {
        (own < table).then(|| {
            format!(
                "judged with the options of {}u{table}; this JVM is {}u{own}",
                release.0, release.0
            )
        })
    }));
    let machine = report.surroundings;
    let memory = [
        ("memory", machine.memory_bytes),
        ("limit", machine.limit_bytes),
    ];
    context.extend(
        memory
            .into_iter()
            .filter_map(|(what, bytes)| Some(format!("{what} {}", shown(bytes?)))),
    );
    context.extend(machine.cpus.map(|cpus| format!("{cpus} CPUs")));
    context.push(format!(
        "{} to act on, {} to watch, {} passed",
        count(Outcome::Act),
        count(Outcome::Watch),
        count(Outcome::Clear)
    ));
    let undecided = count(Outcome::Undecided);
    let caveat = (format!("{undecided} could not be decided"), "undecided");
    Verdict {
        mark: Mark {
            symbol: mark.0,
            word: mark.1,
            tone: mark.2,
        },
        sentence,
        context,
        caveats: if undecided > 0 {
            vec![caveat]
        } else {
            Vec::new()
        },
    }
}

/// The new command line as a diff, with the reason of each change and what is left to say of it.
fn migrated(report: &JvmFlagsReport, migration: &MigrationReport) -> Vec<Block> {
    let (from, to) = (Release(report.jdk.release), Release(migration.to));
    let mut blocks = vec![section("migration", format!("From {from} to {to}"))];
    if migration.steps.is_empty() {
        blocks.push(Block::Prose(format!(
            "{to} accepts every option unchanged."
        )));
    } else {
        blocks.push(Block::Code(diff(report, migration)));
        let steps = migration.steps.iter().map(|step| {
            let into = if step.into.is_empty() {
                "goes".to_owned()
            } else {
                format!("→ {}", step.into.join(" "))
            };
            format!(
                "{} {into}: {} ({})",
                step.out.join(" "),
                step.why,
                step.source
            )
        });
        blocks.push(Block::List(steps.collect()));
    }
    let line = CommandLine {
        options: migration
            .options
            .iter()
            .map(|option| rungwise_jvm::Given::new(option, rungwise_jvm::Origin::Line))
            .collect(),
    };
    blocks.push(Block::Prose("The new command line:".to_owned()));
    blocks.push(Block::Code(vec![line.to_string()]));
    let left: Vec<String> = migration
        .findings
        .iter()
        .map(|finding| format!("{} ({})", finding.sentence, finding.rule))
        .collect();
    if !left.is_empty() {
        blocks.push(Block::Prose(format!("Remaining findings on {to}:")));
        blocks.push(Block::List(left));
    }
    blocks
}

/// Old options with `-`, new ones with `+`, those that stay with a space before them.
fn diff(report: &JvmFlagsReport, migration: &MigrationReport) -> Vec<String> {
    let mut lines = Vec::new();
    let mut old = report
        .options
        .iter()
        .map(|option| option.written.as_str())
        .peekable();
    let gone = |option: &str| {
        let mut steps = migration.steps.iter();
        steps.any(|step| step.out.iter().any(|out| out == option))
    };
    for new in &migration.options {
        while let Some(option) = old.next_if(|option| gone(option)) {
            lines.push(format!("- {option}"));
        }
        if old.next_if(|option| option == new).is_some() {
            lines.push(format!("  {new}"));
        } else {
            lines.push(format!("+ {new}"));
        }
    }
    lines.extend(old.map(|option| format!("- {option}")));
    lines
}
