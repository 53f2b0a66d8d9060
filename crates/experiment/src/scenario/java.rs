//! Options of a JVM as switches that need no declaration: `set = { "jvm.gc_choice" = "parallel" }`.
//!
//! They go into the command of the service, right after its word `java`, and options that set the same flag are removed: `JDK_JAVA_OPTIONS` would lose
//! against the command line without a word. Before anything starts, each resulting command is judged for the JDK that its `java`
//! belongs to; the lab reads back from the running JVM what became of it.

use std::collections::BTreeMap;
use std::path::Path;

use rungwise_host::process;
use rungwise_jvm::edit::{self, java_word};
use rungwise_jvm::{Case, CommandLine, Machine, Origin, Release, Start, judge};
use rungwise_knobs::by_hand::JavaChange;
use rungwise_model::check::{Finding, Outcome};
use rungwise_probes::jvm::jdk_version;

use super::fill::{FillError, Places, fill};
use super::problem::{Problem, Problems, in_order};
use super::{Effect, Scenario, Service, Started};
use crate::stage::Setting;

/// Judgements that an option does nothing, or nothing that it did not do already.
const WITHOUT_EFFECT: [&str; 5] = [
    "jvm-flag-removed",
    "jvm-flag-ignored",
    "jvm-flag-without-effect",
    "jvm-flag-of-another-collector",
    "jvm-flag-is-the-default",
];

/// The command of a service with the options of its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JavaCommand {
    /// All of its words.
    pub words: Vec<String>,
    /// Options that the settings put in.
    pub added: Vec<String>,
    /// Options that they took out.
    pub removed: Vec<String>,
    /// The `java` that they start instead of the command's own.
    pub program: Option<String>,
}

impl JavaCommand {
    /// Whether the settings change anything about the `java` of the command.
    pub fn is_changed(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty() || self.program.is_some()
    }

    /// `java options -XX:+UseParallelGC in place of -XX:+UseG1GC`; nothing where the settings change none.
    pub fn changes(&self) -> Option<String> {
        let mut parts = Vec::new();
        let removed = self.removed.join(" ");
        match (self.added.join(" "), removed.is_empty()) {
            (added, true) if added.is_empty() => {}
            (added, false) if added.is_empty() => {
                parts.push(format!("java options without {removed}"));
            }
            (added, true) => parts.push(format!("java options {added}")),
            (added, false) => parts.push(format!("java options {added} in place of {removed}")),
        }
        parts.extend(
            self.program
                .as_ref()
                .map(|path| format!("started by {path}")),
        );
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Started {
    /// The command line for these settings, and what they change about its `java`.
    ///
    /// # Errors
    ///
    /// A placeholder cannot be filled, or options of a JVM are set and the command has no `java`.
    pub fn java_command(
        &self,
        settings: &BTreeMap<Setting, String>,
        places: &Places,
    ) -> Result<JavaCommand, FillError> {
        let arguments = settings.iter().filter_map(|(setting, value)| {
            match self.switches.get(&setting.knob)?.get(value)? {
                Effect::Arguments(arguments) => Some(arguments),
                Effect::Text(_) => None,
            }
        });
        let words = self.command.iter().chain(arguments.flatten());
        let words: Result<Vec<String>, FillError> = words.map(|part| fill(part, places)).collect();
        let mut java = JavaCommand {
            words: words?,
            ..JavaCommand::default()
        };
        for (setting, value) in settings {
            if let Some(change) = self.change(&setting.knob, value) {
                java.apply(&setting.knob, &change)?;
            }
        }
        if let (Some(program), Some(at)) = (&java.program, java_word(&java.words)) {
            java.words[at].clone_from(program);
        }
        Ok(java)
    }

    /// What a value of a knob changes about `java`, where the knob is no declared switch.
    fn change(&self, knob: &str, value: &str) -> Option<JavaChange> {
        if self.switches.contains_key(knob) {
            return None;
        }
        rungwise_knobs::find(knob).ok()?.java_change(value)
    }
}

impl JavaCommand {
    fn apply(&mut self, knob: &str, change: &JavaChange) -> Result<(), FillError> {
        let at = java_word(&self.words).ok_or_else(|| FillError::NoJava {
            knob: knob.to_owned(),
        })?;
        let options =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let mut new = Vec::new();
        let edited = if let Some(old) = change.text.strip_prefix("without ") {
            edit::without_options(&self.words, at, &options(old))
        } else if change.text.starts_with('-') {
            new = options(&change.text);
            edit::with_options(&self.words, at, &new, &change.others)
        } else {
            self.program = Some(change.text.clone());
            return Ok(());
        };
        self.words = edited.words;
        // What an earlier setting put in was not in the command.
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (edited.removed.into_iter()).partition(|option| self.added.contains(option));
        self.added.retain(|added| !ours.contains(added));
        self.added.extend(new);
        self.removed.extend(theirs);
        Ok(())
    }

    /// What the JDK of this command does with its options.
    pub fn judged(&self, cpus: usize) -> Judged {
        let Some(at) = java_word(&self.words) else {
            return Judged::default();
        };
        let java = self.program.as_ref().unwrap_or(&self.words[at]);
        let version = process::locate(java)
            .as_deref()
            .and_then(|file| jdk_version(Path::new("/"), file));
        let Some(release) = version.as_deref().and_then(Release::parse) else {
            return Judged {
                notes: vec![format!(
                    "the options are not judged before the start: no folder above {java} has a file 'release' that names its JDK"
                )],
                ..Judged::default()
            };
        };
        let words = self.words[at..].iter().cloned();
        let findings = judge(&Case {
            release,
            update: version.as_deref().and_then(Release::update),
            line: CommandLine::of_words(words, Origin::Line, &mut |_| None),
            machine: Machine {
                cpus: Some(cpus as f64),
                ..Machine::default()
            },
        });
        let is_about_ours = |finding: &&Finding| {
            let mut lines = finding.evidence.iter().map(|line| &line.line);
            finding.outcome <= Outcome::Watch
                && WITHOUT_EFFECT.contains(&finding.rule.as_str())
                && lines.any(|line| self.added.contains(line))
        };
        Judged {
            refusal: match Start::from_findings(&findings) {
                Start::No(why) => Some(why),
                Start::Yes | Start::Unknown(_) => None,
            },
            notes: findings
                .iter()
                .filter(is_about_ours)
                .map(|finding| finding.sentence.clone())
                .collect(),
        }
    }
}

/// What is known of a command before it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Why the JVM does not start with it.
    pub refusal: Option<String>,
    /// Options that the settings put in and that have no effect; that nothing could be judged.
    pub notes: Vec<String>,
}

impl Scenario {
    /// Judges the options of a JVM that the file sets, for the JDK of its command. Gives what has no effect, a line each.
    ///
    /// # Errors
    ///
    /// Options with which that JDK does not start, or for which the command has no `java`, each at its place in the file.
    pub fn judge_java(&self, places: &Places) -> Result<Vec<String>, Problems> {
        let Service::Started(started) = &self.service else {
            return Ok(Vec::new());
        };
        let (mut wrong, mut notes) = (Vec::new(), Vec::new());
        let start: BTreeMap<Setting, String> = self.start.set.iter().cloned().collect();
        let own = started.java_command(&BTreeMap::new(), places);
        // What does not start by itself is no fault of a setting.
        let is_broken = own.is_ok_and(|own| own.judged(places.cpus).refusal.is_some());
        let mut tables = vec![("baseline".to_owned(), "baseline", &self.start.set)];
        for (index, rung) in self.rungs.iter().enumerate() {
            tables.push((format!("rungs[{index}]"), &rung.id[..], &rung.set));
            // Points one by one: a cell of two that do not fit together is left out when it does not start.
            let axes = rung.grid.iter().flat_map(|grid| &grid.axes).enumerate();
            for (axis, number, point) in axes.flat_map(|(axis, of)| {
                let points = of.points.iter().enumerate();
                points.map(move |(number, point)| (axis, number, point))
            }) {
                let table = format!("rungs[{index}].axes[{axis}].points[{number}]");
                tables.push((table, &rung.id[..], &point.set));
            }
        }
        for (table, id, set) in tables {
            let mut ours = set
                .iter()
                .filter(|(setting, value)| started.change(&setting.knob, value).is_some());
            let Some((first, _)) = ours.next() else {
                continue;
            };
            let mut settings = start.clone();
            settings.extend(set.iter().cloned());
            let problem = match started.java_command(&settings, places) {
                // Names that cannot be filled were found where they stand.
                Err(error @ FillError::NoJava { .. }) => Some(error.to_string()),
                Err(_) => None,
                Ok(java) => {
                    let judged = java.judged(places.cpus);
                    let said = judged.notes.into_iter().map(|note| format!("{id}: {note}"));
                    notes.extend(said);
                    judged.refusal.filter(|_| !is_broken).map(|why| {
                        format!(
                            "{why}; command: {}; choose another value, or see `rungwise jvm flags`",
                            java.words.join(" ")
                        )
                    })
                }
            };
            let key = format!("{table}.set.\"{}\"", first.knob);
            let at = self.named.iter().find(|named| named.value_at.key == key);
            if let (Some(message), Some(at)) = (problem, at) {
                wrong.push(Problem {
                    message,
                    ..at.value_at.clone()
                });
            }
        }
        notes.dedup();
        match in_order(&self.file, wrong) {
            Some(problems) => Err(problems),
            None => Ok(notes),
        }
    }
}
