//! Single options: does this JDK know them, take them, and take their value?

use rungwise_model::check::{Finding, Grade, Line};

use super::{
    Case, Judgement, TAKE_OUT, act, add, clear, entry, instead, log, or_clear, refused, undecided,
    watch,
};
use crate::between;
use crate::command_line::Given;
use crate::migrate;
use crate::release::Release;
use crate::table::{Flag, Kind, Type};

const TABLES: &str = "The tables of `crates/jvm/data`: what a JVM of each release printed (`-XX:+PrintFlagsFinal`, \
    `-XX:+PrintFlagsRanges`) and said when it was given the flag; made by `cargo xtask jvm-flags`.";

pub(super) const REMOVED: Judgement = Judgement {
    id: "jvm-flag-removed",
    summary: "An option of another JDK, at which this one refuses to start",
    looks_for: "Options that this JDK does not know and that another one has or had. HotSpot ends with `Unrecognized VM option`. \
        With `-XX:+IgnoreUnrecognizedVMOptions` it starts and drops the option without a word.",
    remedy: "Write what takes its place, or take it out; `rungwise jvm flags --to` shows the whole command line.",
    wrong: "A vendor may keep a flag longer, or carry one back to an older release.",
    sources: TABLES,
    judge: removed,
};

fn removed(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in &case.line.options {
        let known = case.entry(given);
        // Properties with a folder are refused, the same without one are not.
        if given.written.starts_with("-D") && given.written.ends_with(['=', 's']) {
            continue;
        }
        if known.is_some_and(|flag| flag.kind != Kind::Refused)
            || (known.is_none() && !given.is_flag())
        {
            continue;
        }
        let elsewhere: Vec<Release> = Release::known()
            .filter(|other| entry(other.table(), given).is_some_and(Flag::is_alive))
            .collect();
        let gone: Vec<Release> = Release::known()
            .filter(|other| entry(other.table(), given).is_some_and(|flag| flag.kind == Kind::Gone))
            .collect();
        if elsewhere.is_empty() && gone.is_empty() {
            // Of an option that is no flag the table itself says that it is refused.
            if let Some(flag) = known {
                let sentence = format!("{} does not start: {}", case.release, flag.words);
                let finding = act(given, sentence)
                    .severity(Grade::High)
                    .confidence(Grade::High);
                findings.push(instead(finding, given, TAKE_OUT));
            }
            continue;
        }
        let older = elsewhere
            .iter()
            .chain(&gone)
            .any(|other| *other < case.release);
        let when = if older {
            let last = elsewhere.iter().rev().find(|other| **other < case.release);
            let since = Release::known()
                .filter_map(|other| entry(other.table(), given))
                .find(|flag| flag.kind == Kind::Gone)
                .and_then(Flag::since);
            let dated = given
                .sets
                .first()
                .and_then(|set| between::unknown_in(&set.name));
            match (last, since.or(dated)) {
                (Some(last), Some(since)) if dated.is_some() => {
                    format!("it went with {since}, and the last table that has it is of {last}")
                }
                (_, Some(since)) => format!("it went with {since}"),
                (Some(last), None) => format!("it was last seen in {last}"),
                (None, None) => "it went before".to_owned(),
            }
        } else {
            let first = elsewhere.iter().map(ToString::to_string).next();
            format!("it came later and is in {}", first.unwrap_or_default())
        };
        let overlooked = case.overlooks_unknown();
        let what = if overlooked {
            format!(
                "{} drops {} without a word: {when}",
                case.release, given.written
            )
        } else {
            format!(
                "{} refuses to start with {}: {when}",
                case.release, given.written
            )
        };
        let severity = if overlooked {
            Grade::Medium
        } else {
            Grade::High
        };
        let mut finding = act(given, what).severity(severity).confidence(Grade::High);
        if let Some(words) = Release::known()
            .filter_map(|other| entry(other.table(), given).map(|flag| (other, flag)))
            .find(|(_, flag)| !flag.words.is_empty())
        {
            finding.evidence.push(Line {
                source: format!("{} ({})", words.0, words.0.table().source),
                line: words.1.words.to_owned(),
            });
        }
        let from = elsewhere
            .last()
            .or(gone.last())
            .copied()
            .unwrap_or(case.release);
        finding = replaced(finding, case, given, from);
        findings.push(refutable(finding, case));
    }
    or_clear(findings, "this JDK has every option that another one has")
}

/// Shows what takes the place of the option on this JDK, with the reason.
fn replaced(mut finding: Finding, case: &Case, given: &Given, from: Release) -> Finding {
    let (from, to) = (from.min(case.release), case.release);
    let Some(step) = migrate::successor(&case.line, given, from, to) else {
        return instead(finding, given, TAKE_OUT);
    };
    finding.evidence.push(Line {
        source: step.source.to_owned(),
        line: step.why.clone(),
    });
    let to = if step.into.is_empty() {
        TAKE_OUT.to_owned()
    } else {
        step.into.join(" ")
    };
    instead(finding, given, to)
}

fn refutable(finding: Finding, case: &Case) -> Finding {
    finding.refuted_by(format!(
        "`java OPTION -version` of the very JVM that is to run it; the table is of {}",
        case.table().source
    ))
}

pub(super) const UNKNOWN: Judgement = Judgement {
    id: "jvm-flag-unknown",
    summary: "A flag that no known JDK has, most likely a slip",
    looks_for: "Names after `-XX:` that are in no table. HotSpot ends with `Unrecognized VM option`, or says nothing and drops \
        it under `-XX:+IgnoreUnrecognizedVMOptions`.",
    remedy: "Correct the name; the nearest one that this JDK has is offered.",
    wrong: "Flags of other JVMs (OpenJ9, GraalVM, Zing), of debug builds, of other CPUs than x86-64 and of releases between those \
        of the tables are unknown here.",
    sources: TABLES,
    judge: unknown,
};

/// Written like flags, read by `arguments.cpp` of JDK 8 as options, and in no list that a JVM prints.
const OF_8: [&str; 9] = [
    "CMSMarkStackSize",
    "CMSMarkStackSizeMax",
    "CMSPermGenSweepingEnabled",
    "G1MarkStackSize",
    "G1MarkStackSizeMax",
    "ParallelCMSThreads",
    "ParallelGCOldGenAllocBufferSize",
    "ParallelGCToSpaceAllocBufferSize",
    "ParallelMarkingThreads",
];

fn unknown(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in case
        .line
        .options
        .iter()
        .filter(|given| given.written.starts_with("-XX:"))
    {
        let is_file = given.argument_file().is_some_and(|file| !file.is_empty());
        let is_read = given.written.starts_with("-XX:Flags=") || case.release > Release(8);
        let old = given.sets.first().is_some_and(|setting| {
            case.release <= Release(8) && OF_8.contains(&setting.name.as_str())
        });
        if is_file && is_read
            || old
            || Release::known().any(|release| entry(release.table(), given).is_some())
        {
            continue;
        }
        let name = given
            .sets
            .first()
            .map_or("", |setting| setting.name.as_str());
        let near = case.table().nearest(name);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let what = if case.overlooks_unknown() {
            "drops it without a word"
        } else {
            "refuses to start"
        };
        let sentence = format!(
            "no known JDK has {}; {} {what}{hint}",
            given.written, case.release
        );
        let severity = if case.overlooks_unknown() {
            Grade::Medium
        } else {
            Grade::High
        };
        let confidence = if case.release.is_known() {
            Grade::High
        } else {
            Grade::Medium
        };
        let finding = act(given, sentence)
            .severity(severity)
            .confidence(confidence);
        let to = near.map_or_else(
            || TAKE_OUT.to_owned(),
            |near| given.written.replacen(name, near, 1),
        );
        findings.push(refutable(instead(finding, given, to), case));
    }
    or_clear(findings, "every flag is known to some JDK")
}

pub(super) const IGNORED: Judgement = Judgement {
    id: "jvm-flag-ignored",
    summary: "A flag that the JVM takes with a warning and that does nothing",
    looks_for: "Flags of which this JDK says `Ignoring option ...; support was removed in ...`. It starts, and the next release or \
        the one after it will not.",
    remedy: "Write what takes its place, or take it out.",
    wrong: "What the flag was for may still be wanted: the release notes of the version that removed it describe the replacement.",
    sources: TABLES,
    judge: ignored,
};

fn ignored(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in &case.line.options {
        let Some(flag) = case
            .entry(given)
            .filter(|flag| flag.is_gone_in(case.release))
        else {
            continue;
        };
        let since = flag
            .since()
            .map_or_else(String::new, |since| format!(" since {since}"));
        let sentence = format!(
            "{} ignores {}; it does nothing{since}",
            case.release, given.written
        );
        let mut finding = act(given, sentence)
            .severity(Grade::Low)
            .confidence(Grade::High);
        finding.evidence.push(case.words(flag));
        // As a migration from here says it: what has done nothing so far has nothing to go on with.
        finding = replaced(finding, case, given, case.release);
        findings.push(refutable(finding, case));
    }
    or_clear(findings, "no option is ignored")
}

pub(super) const DEPRECATED: Judgement = Judgement {
    id: "jvm-flag-deprecated",
    summary: "An option that works today and that the JVM says will go",
    looks_for: "Options of which this JDK says that they are deprecated.",
    remedy: "Write what takes its place before the next upgrade.",
    wrong: "Some flags stayed for years after the warning came.",
    sources: TABLES,
    judge: deprecated,
};

fn deprecated(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in &case.line.options {
        let Some(flag) = case.entry(given).filter(|flag| flag.is_deprecated()) else {
            continue;
        };
        if given.sets.first().and_then(crate::Setting::switch) == Some(false)
            && flag.words.starts_with("-XX:+")
            && flag.kind != Kind::Alias
        {
            // Only switching it on is deprecated.
            continue;
        }
        let with_cms = flag.name == "UseParNewGC" && case.line.is_on("UseConcMarkSweepGC");
        if with_cms && case.release <= Release(8) {
            // JDK 8 warns of ParNew with Serial old alone.
            continue;
        }
        let since = flag
            .since()
            .map_or_else(String::new, |since| format!(" since {since}"));
        let sentence = format!(
            "{} is deprecated{since}: it works on {} and will go",
            given.written, case.release
        );
        let mut finding = watch(given, sentence).confidence(Grade::High);
        finding.evidence.push(case.words(flag));
        if let Some(step) = migrate::successor(&case.line, given, case.release, case.release) {
            let to = if step.into.is_empty() {
                TAKE_OUT.to_owned()
            } else {
                step.into.join(" ")
            };
            finding.evidence.push(Line {
                source: step.source.to_owned(),
                line: step.why,
            });
            finding = instead(finding, given, to);
        }
        findings.push(refutable(finding, case));
    }
    or_clear(findings, "no option is deprecated")
}

pub(super) const LOCKED: Judgement = Judgement {
    id: "jvm-flag-locked",
    summary: "A diagnostic or experimental flag without the option before it that unlocks it",
    looks_for: "Flags of the kinds diagnostic and experimental that are not preceded by `-XX:+UnlockDiagnosticVMOptions` or \
        `-XX:+UnlockExperimentalVMOptions`. HotSpot ends with `must be enabled via`.",
    remedy: "Put the unlocking option before the flag, or take the flag out: neither kind is supported.",
    wrong: "An argument file that is not seen here may unlock it.",
    sources: TABLES,
    judge: locked,
};

fn locked(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unlocked: Vec<&str> = Vec::new();
    for given in &case.line.options {
        for setting in given
            .sets
            .iter()
            .filter(|setting| setting.name.starts_with("Unlock"))
        {
            unlocked.retain(|name| *name != setting.name);
            if setting.switch() == Some(true) {
                unlocked.push(&setting.name);
            }
        }
        let Some(flag) = case.entry(given) else {
            continue;
        };
        let Some(unlock) = flag.unlocked_by() else {
            continue;
        };
        // JDK 8 drops a locked flag where it drops what it does not know.
        let drops = case.overlooks_unknown() && case.release <= Release(8);
        if unlocked.contains(&unlock) || flag.name == unlock || drops {
            continue;
        }
        let late = case.line.is_on(unlock);
        let kind = if flag.kind == Kind::Diagnostic {
            "diagnostic"
        } else {
            "experimental"
        };
        let how = if late { "comes after it" } else { "is missing" };
        let sentence = format!(
            "{} is {kind} on {}, and -XX:+{unlock} {how}: the JVM refuses to start",
            given.written, case.release
        );
        let finding = act(given, sentence)
            .severity(Grade::High)
            .confidence(Grade::High);
        findings.push(refutable(add(finding, &format!("-XX:+{unlock}")), case));
    }
    or_clear(findings, "no flag needs to be unlocked that is not")
}

impl Flag {
    /// The flag that has to stand before it.
    pub(crate) fn unlocked_by(&self) -> Option<&'static str> {
        let itself = matches!(
            self.name,
            "UnlockDiagnosticVMOptions" | "UnlockExperimentalVMOptions"
        );
        match self.kind {
            _ if itself => None,
            Kind::Diagnostic => Some("UnlockDiagnosticVMOptions"),
            Kind::Experimental => Some("UnlockExperimentalVMOptions"),
            _ => None,
        }
    }
}

pub(super) const WRONG_VALUE: Judgement = Judgement {
    id: "jvm-flag-wrong-value",
    summary: "A value that the flag cannot take",
    looks_for: "Switches with a value, numbers with `+`, texts where a number belongs, numbers outside the bounds that \
        `-XX:+PrintFlagsRanges` prints; modes that Shenandoah does not have, and what collectors and the code cache refuse beside \
        those bounds; tags, levels, decorations and options that `-Xlog` does not have. HotSpot ends with `Improperly specified VM option` or `is outside the allowed range`.",
    remedy: "Write a value of the right kind within the bounds.",
    wrong: "JDK 8 has no list of bounds: known are those that were tried on it. Few bounds that depend on other flags or on the machine are \
        known. A vendor may have tags of `-Xlog` of its own.",
    sources: TABLES,
    judge: wrong_value,
};

fn wrong_value(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in &case.line.options {
        for setting in &given.sets {
            let Some(flag) = case
                .table()
                .find(&setting.name)
                .filter(|flag| flag.is_alive())
            else {
                continue;
            };
            let is_number = !matches!(flag.value, Type::Text | Type::List | Type::Switch);
            let of_number = refused::of_number(case.release, setting.text()).filter(|_| is_number);
            // The tenuring threshold has a judgement of its own.
            if of_number.is_none()
                && malformed(given, flag).is_none()
                && setting.name == "MaxTenuringThreshold"
                && setting.number().is_some()
            {
                continue;
            }
            let counts = case.line.setting(&setting.name) == Some(setting);
            // JDK 8 then drops what it cannot read as well; bounds it still keeps.
            let readable = Flag {
                bounds: None,
                ..*flag
            };
            let drops = case.overlooks_unknown() && case.release <= Release(8) && given.is_flag();
            if refused::overflows(case, setting) || drops && readable.refuses(setting).is_some() {
                continue;
            }
            let why = malformed(given, flag)
                .or(of_number)
                .or_else(|| flag.refuses(setting))
                .or_else(|| {
                    (flag.value == Type::Double).then(|| old_fraction(case, setting.text()))?
                })
                .or_else(|| counts.then(|| refused::why(case, &setting.name, setting.text()))?);
            if let Some(why) = why {
                let sentence = format!(
                    "{} refuses to start with {}: {why}",
                    case.release, given.written
                );
                let finding = act(given, sentence)
                    .severity(Grade::High)
                    .confidence(Grade::High);
                findings.push(refutable(finding, case));
            }
        }
        let sizes = ["-Xmx", "-Xms", "-Xmn", "-Xss"];
        let short = sizes
            .iter()
            .find_map(|size| given.written.strip_prefix(size));
        let unified = given.written.strip_prefix("-Xlog:");
        let unified = unified.filter(|_| case.release >= Release(9));
        let of_log = unified.and_then(|value| log::why(case.release, value));
        let of_size = short.and_then(|value| match crate::size::bytes(value) {
            None if given.sets.is_empty() => Some(format!("'{value}' is not a size")),
            None => None,
            Some(bytes) => refused::why_of_size(case, &given.written[.."-Xmx".len()], bytes),
        });
        if let Some(why) = of_size.or(of_log) {
            let sentence = format!(
                "{} refuses to start with {}: {why}",
                case.release, given.written
            );
            findings.push(
                act(given, sentence)
                    .severity(Grade::High)
                    .confidence(Grade::High),
            );
        }
    }
    or_clear(findings, "every value fits its flag")
}

/// Why a flag cannot be written so, whatever its value.
fn malformed(given: &Given, flag: &Flag) -> Option<String> {
    let flat = given.written.strip_prefix("-XX:")?;
    let is_text = matches!(flag.value, Type::Text | Type::List);
    if flat.starts_with(['+', '-']) && flat.contains('=') {
        return Some("it has both a sign and a value".to_owned());
    }
    if !is_text && flat[flag.name.len().min(flat.len())..].starts_with(":=") {
        return Some("its value is written with = alone".to_owned());
    }
    // A recording has defaults for all of its options.
    let needs = is_text && flag.name != "StartFlightRecording";
    (needs && flat == flag.name).then(|| "its value is missing".to_owned())
}

/// How older releases read fractions, seen on 8u504, 11.0.13, 17.0.15 and 21.0.8: digits on both sides of the point, which JDK 8
/// wants; from JDK 9 on an integer will do, from JDK 21 on whatever `strtod` reads.
fn old_fraction(case: &Case, text: &str) -> Option<String> {
    if case.release >= Release(21) {
        return None;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let decimal = unsigned
        .split_once('.')
        .is_some_and(|(whole, rest)| digits(whole) && digits(rest));
    let whole = case.release > Release(8) && crate::size::bytes(text).is_some();
    (!decimal && !whole).then(|| {
        format!(
            "{} reads a fraction with digits on both sides of its decimal point, as in 75.0",
            case.release
        )
    })
}

pub(super) const UNSEEN: Judgement = Judgement {
    id: "jvm-options-unseen",
    summary: "Options in a file that was not read, or a JDK that no table is of",
    looks_for: "`@file`, `-XX:Flags=` and `-XX:VMOptionsFile=`, and releases without a table of their own.",
    remedy: "Give the contents of the file in its place; ask the JVM itself with `-XX:+PrintFlagsFinal`.",
    wrong: "Options may also come from environment variables and from a JDK_JAVA_OPTIONS that is not seen here.",
    sources: "`java` of JDK 9 and newer, command-line argument files; no JDK 7 was available when the tables were made.",
    judge: unseen,
};

fn unseen(case: &Case) -> Vec<Finding> {
    let files: Vec<&str> = case
        .line
        .options
        .iter()
        .filter_map(Given::argument_file)
        .collect();
    if !files.is_empty() {
        return undecided(
            "options",
            format!("{} was not read", files.join(", ")),
            "write its options in its place",
        );
    }
    if !case.release.is_known() {
        let table = case.table();
        return undecided(
            "flags",
            format!(
                "{} has no table; it is judged by that of {}",
                case.release, table.release
            ),
            "ask the JVM itself: java OPTIONS -XX:+PrintFlagsFinal -version",
        );
    }
    clear("all options are on the command line, and the JDK has a table of its own")
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome::{Act, Clear, Undecided, Watch};

    use super::super::outcome_of;
    use crate::machine::Machine;

    fn outcome(release: u8, line: &str, rule: &str) -> (rungwise_model::check::Outcome, String) {
        let (outcome, mut sentences) = outcome_of(release, line, Machine::default(), rule);
        (outcome, sentences.remove(0))
    }

    #[test]
    fn flags_of_another_jdk_stop_this_one() {
        let rule = "jvm-flag-removed";
        let (found, sentence) = outcome(17, "-XX:+UseConcMarkSweepGC", rule);
        assert_eq!(found, Act);
        assert!(
            sentence.contains("refuses to start") && sentence.contains("JDK 11"),
            "{sentence}"
        );
        assert!(outcome(8, "-XX:+UseZGC", rule).1.contains("came later"));
        assert!(outcome(8, "-Xlog:gc", rule).1.contains("JDK 8"));
        let quiet = outcome(
            17,
            "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseConcMarkSweepGC",
            rule,
        );
        assert!(quiet.1.contains("without a word"), "{}", quiet.1);
        assert_eq!(outcome(11, "-XX:+UseConcMarkSweepGC", rule).0, Clear);
        assert_eq!(outcome(17, "-Dfoo=bar -XX:+UseG1GC", rule).0, Clear);
    }

    #[test]
    fn a_slip_is_told_with_the_nearest_flag() {
        let rule = "jvm-flag-unknown";
        let (found, sentence) = outcome(17, "-XX:MaxGCPauseMilis=100", rule);
        assert_eq!(found, Act);
        assert!(sentence.contains("MaxGCPauseMillis"), "{sentence}");
        assert!(!outcome(17, "-XX:+Qwxyz", rule).1.contains("did you mean"));
        assert_eq!(outcome(17, "-XX:MaxGCPauseMillis=100", rule).0, Clear);
        // Gone is not unknown.
        assert_eq!(outcome(17, "-XX:+UseConcMarkSweepGC", rule).0, Clear);
        assert_eq!(outcome(15, "-XX:+UseConcMarkSweepGC", rule).0, Clear);
    }

    #[test]
    fn a_release_between_two_tables_knows_what_went_with_it() {
        let cms = "-XX:+UseConcMarkSweepGC";
        let (found, sentence) = outcome(14, cms, "jvm-flag-ignored");
        assert!(
            found == Act && sentence.contains("since JDK 14"),
            "{sentence}"
        );
        for release in [15, 16] {
            let (found, sentence) = outcome(release, cms, "jvm-flag-removed");
            assert!(
                found == Act && sentence.contains("went with JDK 15"),
                "{sentence}"
            );
        }
        assert_eq!(outcome(13, cms, "jvm-flag-removed").0, Clear);
        assert_eq!(outcome(13, cms, "jvm-flag-deprecated").0, Watch);
    }

    #[test]
    fn flags_that_do_nothing_are_told_with_the_release() {
        let rule = "jvm-flag-ignored";
        let (found, sentence) = outcome(8, "-XX:MaxPermSize=64m", rule);
        assert_eq!(found, Act);
        assert!(sentence.contains("since JDK 8"), "{sentence}");
        assert_eq!(outcome(8, "-XX:MaxMetaspaceSize=64m", rule).0, Clear);
        // There is no table of JDK 7, and that of 8 tells that it went with 8.
        assert_eq!(outcome(7, "-XX:MaxPermSize=64m", rule).0, Clear);
    }

    #[test]
    fn deprecated_is_worth_knowing_and_no_more() {
        let rule = "jvm-flag-deprecated";
        assert_eq!(outcome(11, "-XX:+UseConcMarkSweepGC", rule).0, Watch);
        assert_eq!(outcome(17, "-XX:+UseBiasedLocking", rule).0, Watch);
        assert_eq!(outcome(11, "-XX:+UseBiasedLocking", rule).0, Clear);
        assert_eq!(outcome(17, "-Xloggc:gc.log", rule).0, Watch);
        assert_eq!(outcome(8, "-Xloggc:gc.log", rule).0, Clear);
        // With CMS it is the usual young collector.
        let with_cms = "-XX:+UseConcMarkSweepGC -XX:+UseParNewGC";
        assert_eq!(outcome(8, with_cms, rule).0, Clear);
        assert_eq!(outcome(8, "-XX:+UseParNewGC", rule).0, Watch);
    }

    #[test]
    fn what_is_ignored_goes_as_a_migration_says() {
        use crate::{Case, CommandLine, Machine, Release, judge, migrate::migrate};
        let line = CommandLine::parse("-XX:MaxPermSize=512m");
        let case = Case {
            release: Release(8),
            update: None,
            line: line.clone(),
            machine: Machine::default(),
        };
        let finding = judge(&case)
            .into_iter()
            .find(|finding| finding.rule == "jvm-flag-ignored")
            .unwrap();
        let told = format!("{finding:?}");
        assert!(!told.contains("MaxMetaspaceSize="), "{told}");
        assert!(
            migrate(&line, Release(8), Release(17))
                .line
                .options
                .is_empty()
        );
    }

    #[test]
    fn a_locked_flag_needs_its_key_before_it() {
        let rule = "jvm-flag-locked";
        assert_eq!(outcome(17, "-XX:G1NewSizePercent=10", rule).0, Act);
        let key = "-XX:+UnlockExperimentalVMOptions";
        assert_eq!(
            outcome(17, &format!("{key} -XX:G1NewSizePercent=10"), rule).0,
            Clear
        );
        let late = outcome(17, &format!("-XX:G1NewSizePercent=10 {key}"), rule);
        assert!(
            late.0 == Act && late.1.contains("comes after"),
            "{}",
            late.1
        );
        let wrong = outcome(
            17,
            "-XX:+UnlockDiagnosticVMOptions -XX:G1NewSizePercent=10",
            rule,
        );
        assert_eq!(wrong.0, Act);
    }

    #[test]
    fn values_are_held_against_type_and_bounds() {
        let rule = "jvm-flag-wrong-value";
        for wrong in [
            "-XX:MaxGCPauseMillis=abc",
            "-XX:+MaxGCPauseMillis",
            "-XX:UseG1GC=1",
            "-XX:SurvivorRatio=0",
            "-XX:MaxRAMPercentage=101",
            "-XX:MaxHeapFreeRatio=101",
            "-Xmx4gb",
            "-Xmx",
        ] {
            assert_eq!(outcome(17, wrong, rule).0, Act, "{wrong}");
        }
        for right in [
            "-XX:MaxGCPauseMillis=100",
            "-XX:-UseG1GC",
            "-XX:SurvivorRatio=1",
            "-XX:MaxRAMPercentage=100",
            "-XX:MaxHeapFreeRatio=100",
            "-Xmx4g",
        ] {
            assert_eq!(outcome(17, right, rule).0, Clear, "{right}");
        }
    }

    #[test]
    fn a_percentage_needs_its_point_on_jdk_8() {
        let rule = "jvm-flag-wrong-value";
        assert_eq!(outcome(8, "-XX:MaxRAMPercentage=75", rule).0, Act);
        assert_eq!(outcome(8, "-XX:MaxRAMPercentage=75.0", rule).0, Clear);
        assert_eq!(outcome(11, "-XX:MaxRAMPercentage=75", rule).0, Clear);
    }

    #[test]
    fn files_and_jdks_that_were_not_read_are_named() {
        let rule = "jvm-options-unseen";
        assert!(outcome(17, "@app.args", rule).1.contains("app.args"));
        assert_eq!(outcome(6, "-Xmx1g", rule).0, Undecided);
        assert_eq!(outcome(7, "-Xmx1g", rule).0, Clear);
        assert_eq!(outcome(17, "-Xmx1g", rule).0, Clear);
    }
}
