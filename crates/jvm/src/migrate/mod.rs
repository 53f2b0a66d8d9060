//! From one JDK to another: the same command line for a newer JDK, step by step, each with its reason.
//!
//! An option that the new JDK accepts without a warning is unchanged. The others go through [`rules::RULES`]; options
//! without a rule are removed, with the JVM's own message as the reason. GC logging of JDK 8 is many flags that become one
//! `-Xlog`.

mod chosen;
mod logging;
mod rules;

use rungwise_model::check::Grade;

use crate::command_line::{CommandLine, Given, Origin};
use crate::judge::{Case, Collector, entry, entry_of};
use crate::machine::Machine;
use crate::release::Release;
use crate::table::{Flag, Kind};

/// One change of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionChange {
    /// Removed options, as written.
    pub out: Vec<String>,
    /// Their replacements; empty if none are needed.
    pub into: Vec<String>,
    /// Why.
    pub why: String,
    /// The source.
    pub source: &'static str,
    /// Confidence that the service behaves as before.
    pub sure: Grade,
}

/// A command line for another JDK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// What changed.
    pub steps: Vec<OptionChange>,
    /// The new command line.
    pub line: CommandLine,
}

/// Translates the command line for the newer JDK `to`.
pub fn migrate(line: &CommandLine, from: Release, to: Release) -> Migration {
    let context = Context::new(line, from, to);
    let mut steps: Vec<OptionChange> = Vec::new();
    let mut options: Vec<Given> = Vec::new();
    let mut logged = false;
    let own = |given: &&Given| chosen::by_the_jvm(given, line, context.collector);
    let out: Vec<String> = line
        .options
        .iter()
        .filter(own)
        .map(|given| given.written.clone())
        .collect();
    if !out.is_empty() {
        steps.push(chosen::step(out));
    }
    for given in line.options.iter().filter(|given| !own(given)) {
        if to >= Release(9) && logging::is_logging(given) {
            if !logged {
                let step = logging::step(line, from);
                options.extend(
                    step.into
                        .iter()
                        .map(|option| Given::new(option, given.origin)),
                );
                steps.push(step);
                logged = true;
            }
            continue;
        }
        let Some(step) = context.step(given) else {
            options.extend(context.unlock(given, &options));
            options.push(given.clone());
            continue;
        };
        for option in &step.into {
            let new = Given::new(option, given.origin);
            let there = options
                .iter()
                .chain(&line.options)
                .any(|other| other.written == new.written);
            if !there {
                options.extend(context.unlock(&new, &options));
                options.push(new);
            }
        }
        steps.push(step);
    }
    Migration {
        steps,
        line: CommandLine { options },
    }
}

/// What takes the place of one option on a JDK; `None` where nothing has to or nothing is known.
pub(crate) fn successor(
    line: &CommandLine,
    given: &Given,
    from: Release,
    to: Release,
) -> Option<OptionChange> {
    if to >= Release(9) && logging::is_logging(given) {
        return Some(logging::step(line, from));
    }
    let context = Context::new(line, from, to);
    context.by_rule(given)
}

/// What a rule looks at besides the option.
pub(crate) struct Context {
    pub(crate) from: Release,
    pub(crate) to: Release,
    /// The collector before.
    pub(crate) collector: Collector,
    /// The collector goes, and G1 comes in its place.
    pub(crate) to_g1: bool,
}

impl Context {
    fn new(line: &CommandLine, from: Release, to: Release) -> Self {
        let case = Case {
            release: from,
            update: None,
            line: line.clone(),
            machine: Machine::default(),
        };
        let (collector, _) = case.collector();
        let cms_stays = to.find("UseConcMarkSweepGC").is_some_and(Flag::is_alive);
        Self {
            from,
            to,
            collector,
            to_g1: collector == Collector::Cms && !cms_stays,
        }
    }

    /// What becomes of an option that cannot or should not stay.
    fn step(&self, given: &Given) -> Option<OptionChange> {
        let flag = entry_of(self.to, given);
        let refuses = flag.and_then(|flag| {
            let setting = given.sets.first()?;
            flag.refuses(setting)
        });
        let trouble = match flag {
            None => given.is_flag(),
            Some(flag) => !flag.is_alive() || flag.is_deprecated() || refuses.is_some(),
        };
        let superseded = self.to_g1 && rules::is_wrong_for_g1(given);
        if !trouble && !superseded {
            return None;
        }
        if let Some(step) = self.by_rule(given) {
            return Some(step);
        }
        // Deprecated without a better way: it works, so it stays.
        if flag.is_some_and(|flag| flag.is_deprecated() && refuses.is_none()) {
            return None;
        }
        let known = Release::known().any(|release| entry(release.table(), given).is_some());
        if !known {
            // A slip, or a flag of another JVM: not ours to drop.
            return None;
        }
        let words = Release::known()
            .filter(|release| *release <= self.to)
            .filter_map(|release| entry(release.table(), given))
            .filter(|flag| matches!(flag.kind, Kind::Gone | Kind::Refused) || flag.is_deprecated())
            .map(|flag| flag.words)
            .last();
        let why = match (refuses, words) {
            (Some(refuses), _) => format!("{} refuses it: {refuses}", self.to),
            (None, Some(words)) => format!("{} does not have it: {words}", self.to),
            (None, None) => format!("{} does not have it, and no replacement is known", self.to),
        };
        Some(OptionChange {
            out: vec![given.written.clone()],
            into: Vec::new(),
            why,
            source: "the flag tables, printed by JVMs",
            sure: Grade::Low,
        })
    }

    fn by_rule(&self, given: &Given) -> Option<OptionChange> {
        let mut rules = rules::matching(given);
        let (rule, into) = rules.find_map(|rule| Some((rule, (rule.into)(self, given)?)))?;
        // A rule must not put back what it takes out, nor name what this JDK does not have.
        let fits = into.iter().all(|option| {
            let new = Given::new(option, Origin::Line);
            let known = entry_of(self.to, &new).is_some_and(Flag::is_alive);
            *option != given.written && (known || !new.is_flag())
        });
        fits.then(|| OptionChange {
            out: vec![given.written.clone()],
            into,
            why: rule.why.to_owned(),
            source: rule.source,
            sure: rule.sure,
        })
    }

    /// The option that has to stand before this one, where the new JDK calls it diagnostic or experimental.
    fn unlock(&self, given: &Given, before: &[Given]) -> Option<Given> {
        let flag = entry_of(self.to, given)?;
        let unlock = format!("-XX:+{}", flag.unlocked_by()?);
        let there = before.iter().any(|other| other.written == unlock);
        (!there).then(|| Given::new(unlock, given.origin))
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome;

    use super::*;
    use crate::judge::judge;

    fn moved(line: &str, from: u8, to: u8) -> String {
        migrate(&CommandLine::parse(line), Release(from), Release(to))
            .line
            .to_string()
    }

    #[test]
    fn cms_becomes_g1_with_a_pause_goal_and_without_fixed_sizes() {
        let line = "-Xmx6g -Xmn2g -XX:+UseConcMarkSweepGC -XX:+UseParNewGC -XX:CMSInitiatingOccupancyFraction=70 \
            -XX:+UseCMSInitiatingOccupancyOnly -XX:+CMSScavengeBeforeRemark -XX:+CMSParallelRemarkEnabled";
        for to in [17, 21, 25] {
            assert_eq!(moved(line, 8, to), "-Xmx6g -XX:+UseG1GC", "{to}");
        }
        // JDK 11 still has it.
        assert!(moved(line, 8, 11).contains("-XX:+UseConcMarkSweepGC"));
    }

    #[test]
    fn the_permanent_generation_becomes_metaspace() {
        let line = "-XX:PermSize=128m -XX:MaxPermSize=256m";
        assert_eq!(
            moved(line, 7, 17),
            "-XX:MetaspaceSize=128m -XX:MaxMetaspaceSize=256m"
        );
        // JDK 8 ignored both, so a limit would be a new one.
        assert_eq!(moved(line, 8, 17), "");
    }

    #[test]
    fn what_cms_or_the_jvm_chose_by_itself_does_not_move() {
        let header = "-XX:CMSInitiatingOccupancyFraction=70 -XX:CICompilerCount=15 -XX:CompressedClassSpaceSize=528482304 \
            -XX:InitialHeapSize=4294967296 -XX:MaxHeapSize=6442450944 -XX:MaxMetaspaceSize=536870912 \
            -XX:MaxNewSize=697933824 -XX:MaxTenuringThreshold=6 -XX:NewSize=697933824 -XX:OldPLABSize=16 \
            -XX:OldSize=1395867648 -XX:OnError=/opt/told.sh %p -XX:SurvivorRatio=6 -XX:+UseCompressedOops \
            -XX:+UseConcMarkSweepGC -XX:+UseParNewGC";
        let line = CommandLine::parse_printed(header, Origin::Log);
        for to in [17, 25] {
            let moved = migrate(&line, Release(8), Release(to)).line.to_string();
            let left = "-XX:InitialHeapSize=4294967296 -XX:MaxHeapSize=6442450944 -XX:MaxMetaspaceSize=536870912 \
                '-XX:OnError=/opt/told.sh %p' -XX:SurvivorRatio=6 -XX:+UseG1GC";
            assert_eq!(moved, left, "{to}");
        }
        // What somebody wrote stays, but for what G1 would not start with.
        let written = moved(
            "-XX:+UseConcMarkSweepGC -XX:MaxTenuringThreshold=6 -XX:OldPLABSize=16",
            8,
            17,
        );
        assert_eq!(written, "-XX:+UseG1GC -XX:MaxTenuringThreshold=6");
        let ages = CommandLine::parse_printed(
            "-XX:MaxTenuringThreshold=6 -XX:+UseParallelGC",
            Origin::Log,
        );
        assert_eq!(migrate(&ages, Release(8), Release(17)).steps, []);
    }

    #[test]
    fn fractions_of_memory_become_percentages() {
        assert_eq!(
            moved("-XX:MaxRAMFraction=2", 8, 25),
            "-XX:MaxRAMPercentage=50"
        );
        assert_eq!(
            moved("-XX:MaxRAMFraction=3", 8, 17),
            "-XX:MaxRAMPercentage=33.3"
        );
        assert_eq!(
            moved("-XX:MaxRAMPercentage=50", 8, 17),
            "-XX:MaxRAMPercentage=50"
        );
    }

    #[test]
    fn a_line_that_the_new_jdk_takes_stays_as_it_is() {
        let line = "-Xms2g -Xmx2g -XX:+UseG1GC -XX:MaxGCPauseMillis=100 -Dx=y --add-opens a/b=C";
        assert_eq!(
            migrate(&CommandLine::parse(line), Release(11), Release(25)).steps,
            []
        );
        assert_eq!(moved(line, 11, 25), line);
    }

    #[test]
    fn a_flag_that_became_experimental_gets_its_key() {
        let table = Release(17).table();
        assert_eq!(
            table.find("G1NewSizePercent").unwrap().kind,
            Kind::Experimental
        );
        let line = moved("-XX:G1NewSizePercent=10", 8, 17);
        assert_eq!(
            line,
            "-XX:+UnlockExperimentalVMOptions -XX:G1NewSizePercent=10"
        );
    }

    #[test]
    fn zgc_loses_the_switch_that_is_no_longer_one() {
        assert_eq!(
            moved("-XX:+UseZGC -XX:+ZGenerational", 21, 25),
            "-XX:+UseZGC"
        );
    }

    #[test]
    fn every_flag_of_every_jdk_moves_to_a_line_that_the_new_one_starts_with() {
        let stops = [
            "jvm-flag-removed",
            "jvm-flag-unknown",
            "jvm-flag-locked",
            "jvm-flag-wrong-value",
            "jvm-flag-ignored",
        ];
        for from in Release::known() {
            for to in Release::known().filter(|to| *to > from) {
                for flag in from.table().flags().filter(|flag| flag.is_alive()) {
                    let option = match (flag.value, flag.default) {
                        (crate::Type::Switch, _) => format!("-XX:+{}", flag.name),
                        (crate::Type::None, _) if flag.name.starts_with('-') => {
                            flag.name.to_owned()
                        }
                        (crate::Type::None, _) => continue,
                        (_, crate::Default::Constant(value)) if !value.is_empty() => {
                            format!("-XX:{}={value}", flag.name)
                        }
                        _ => format!("-XX:{}=1", flag.name),
                    };
                    let case = Case {
                        release: to,
                        update: None,
                        line: migrate(&CommandLine::parse(&option), from, to).line,
                        machine: Machine::default(),
                    };
                    let found = judge(&case).into_iter().find(|finding| {
                        finding.outcome == Outcome::Act && stops.contains(&finding.rule.as_str())
                    });
                    // A value that is no default may be out of bounds from the start.
                    let tried = option.ends_with("=1") || {
                        // Alone it is refused by its own JDK too: it needs another flag.
                        let line = CommandLine::parse(&option);
                        let own = Case {
                            release: from,
                            line,
                            ..case.clone()
                        };
                        found.is_some()
                            && judge(&own).iter().any(|finding| {
                                finding.outcome == Outcome::Act
                                    && finding.rule == "jvm-flag-wrong-value"
                            })
                    };
                    if let Some(finding) =
                        found.filter(|finding| !(tried && finding.rule == "jvm-flag-wrong-value"))
                    {
                        panic!(
                            "{option} from {from} to {to}: {} ({})",
                            case.line, finding.sentence
                        );
                    }
                }
            }
        }
    }
}
