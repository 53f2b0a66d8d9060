//! Options that are no flags: does this JDK have them, and take what is written behind them?
//!
//! The list of `data/options.txt` is closed: `Arguments::parse_each_vm_init_arg` (`share/runtime/arguments.cpp`) ends with
//! `Unrecognized option`, and so does every option that fits no form of the list.

use std::sync::LazyLock;

use rungwise_model::check::{Finding, Grade, Lack};

use super::{
    Case, OptionRule, TAKE_OUT, act, clear, instead, modules, or_clear, property, refused,
};
use crate::command_line::{Given, Origin};
use crate::release::Release;
use crate::table::Kind;

const FORMS: &str = include_str!("../../data/options.txt");

/// The releases of the marks, in their order.
const ASKED: [Release; 5] = [
    Release(8),
    Release(11),
    Release(17),
    Release(21),
    Release(25),
];

const SOURCES: &str = "`crates/jvm/data/options.txt`, tested on JDK 8, 11, 17, 21 and 25; HotSpot `share/runtime/arguments.cpp`, \
    the launcher's `libjli/java.c`.";

pub(super) const REFUSED: OptionRule = OptionRule {
    id: "jvm-option-refused",
    summary: "An option that stops this JDK from starting",
    looks_for: "Options other than `-XX` flags: names that this JDK lacks (`-Xfoo`, `-xmx512m`, `--enable-previews`), launcher \
        options in `JAVA_TOOL_OPTIONS`, malformed module options, modules that this JDK no longer has, and properties that abort \
        the start (`-Djava.security.manager=allow` on JDK 24 and later).",
    remedy: "Correct the option or remove it.",
    wrong: "OpenJ9, GraalVM native images and macOS have their own options. A JDK built with `jlink` may contain fewer modules.",
    sources: SOURCES,
    judge: refused_options,
};

pub(super) const NOT_JUDGED: OptionRule = OptionRule {
    id: "jvm-option-not-judged",
    summary: "An option whose acceptance depends on something that was not read",
    looks_for: "Agents, archives, classes, settings files and modules of the application: the JVM refuses to start if it cannot \
        load them. Also values of flags whose limits depend on the machine, and options on which the tested JDKs before and after \
        this one differ.",
    remedy: "Start the JVM once: `java OPTIONS -version`. For agents and classes, start the application.",
    wrong: "A JVM that runs with these options has accepted them.",
    sources: SOURCES,
    judge: not_judged,
};

/// What a JDK does with an option or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No(String),
    Unknown(String),
}

/// One line of the list.
struct Form {
    marks: &'static str,
    /// Without what stands for any text.
    text: &'static str,
    /// Characters that may and have to follow.
    open: bool,
    least: usize,
    of_launcher: bool,
}

static ALL: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let lines = FORMS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(Form::parse).collect()
});

impl Form {
    fn parse(line: &'static str) -> Option<Self> {
        let (marks, rest) = line.split_once(' ')?;
        let (form, of_launcher) = match rest.strip_suffix(" launcher") {
            Some(form) => (form, true),
            None => (rest, false),
        };
        let open = form.len() > 1 && form.ends_with('*');
        let text = form.strip_suffix('*').filter(|_| open).unwrap_or(form);
        let least = usize::from(open && text.ends_with('?'));
        let text = if least > 0 {
            &text[..text.len() - 1]
        } else {
            text
        };
        Some(Self {
            marks,
            text,
            open,
            least,
            of_launcher,
        })
    }

    fn fits(&self, option: &str) -> bool {
        match option.strip_prefix(self.text) {
            Some("") => self.least == 0,
            Some(rest) => self.open && rest.len() >= self.least,
            None => false,
        }
    }

    /// `None` where the releases around this one disagree, or it is newer than all that were asked.
    fn mark(&self, release: Release) -> Option<char> {
        let mark = |index: usize| self.marks.chars().nth(index);
        let newer = ASKED.iter().position(|asked| *asked >= release);
        let older = ASKED.iter().rposition(|asked| *asked <= release);
        match (older.and_then(mark), newer.and_then(mark)) {
            (Some(older), Some(newer)) if older != newer => None,
            // JDK 7 took what JDK 8 took. A JDK of tomorrow has most of what today's has.
            (None, mark) => mark,
            (mark, None) => mark.filter(|mark| *mark == '+'),
            (mark, _) => mark,
        }
    }
}

/// The option in the form of the list: a value behind a space belongs to long options as one behind `=` does.
fn listed(given: &Given) -> String {
    match given.written.split_once(' ') {
        Some((name, value)) if name.starts_with("--") => format!("{name}={value}"),
        _ => given.written.clone(),
    }
}

/// Whether somebody wrote it; what a JVM says of itself it has taken already.
fn is_written(given: &Given) -> bool {
    !matches!(given.origin, Origin::PerfData | Origin::Log)
}

pub(super) fn taken(case: &Case, given: &Given) -> Taken {
    let option = listed(given);
    if case.release <= Release(8) && option.starts_with('@') {
        return Taken::No(
            "it does not support argument files and reads the word as the main class".to_owned(),
        );
    }
    if option.starts_with("-XX:") || given.argument_file().is_some_and(|file| !file.is_empty()) {
        return Taken::Yes;
    }
    let fitting = ALL.iter().filter(|form| form.fits(&option));
    let Some(form) = fitting.max_by_key(|form| (form.text.len(), !form.open)) else {
        return if is_written(given) {
            unrecognized(case, given, &option)
        } else {
            Taken::Yes
        };
    };
    let in_variable = matches!(given.origin, Origin::ToolOptions | Origin::LateOptions);
    if in_variable && (form.of_launcher || given.written.contains(' ') && option.starts_with("--"))
    {
        return Taken::No(format!(
            "{} takes JVM options only, and this is an option of the `java` launcher",
            given.origin
        ));
    }
    if given.origin == Origin::LauncherOptions && BANNED.contains(&&*option) {
        return Taken::No(format!("it is not allowed in {}", given.origin));
    }
    match form.mark(case.release) {
        Some('+') => {}
        Some('-') => return unrecognized(case, given, &option),
        Some(_) if !is_written(given) => return Taken::Yes,
        Some(_) => {
            return Taken::Unknown(
                "the JVM refuses to start if it cannot load what the option names".to_owned(),
            );
        }
        None => {
            return Taken::Unknown(format!(
                "the tested JDKs before and after {} differ",
                case.release
            ));
        }
    }
    modules::taken(case, &option)
        .or_else(|| property::taken(case, &option))
        .or_else(|| refused::of_option(case, &option).map(Taken::No))
        .unwrap_or(Taken::Yes)
}

/// What the launcher refuses in `JDK_JAVA_OPTIONS` (`IsLauncherMainOption`, `IsTerminalOpt`, libjli/args.c).
const BANNED: [&str; 10] = [
    "-version",
    "--version",
    "-fullversion",
    "--full-version",
    "-help",
    "--help",
    "-h",
    "-?",
    "-X",
    "--help-extra",
];

fn unrecognized(case: &Case, given: &Given, option: &str) -> Taken {
    if case.release > ASKED[ASKED.len() - 1] {
        return Taken::Unknown(format!("{} was not tested and may have it", case.release));
    }
    if case.ignores_unknown() && given.written.starts_with('-') {
        // `IgnoreUnrecognizedVMOptions` holds for these as well, as long as the launcher does not read them.
        return Taken::Yes;
    }
    Taken::No(match nearest(case.release, option) {
        Some(near) => format!("unrecognized option; did you mean {near}?"),
        None => "unrecognized option".to_owned(),
    })
}

/// The option of this release whose name is most like this one.
fn nearest(release: Release, option: &str) -> Option<String> {
    /// Least likeness that is offered for a slip; as for flags.
    const LIKE: f64 = 0.8;
    let (name, value) = option.split_at(option.find(['=', ':']).map_or(option.len(), |at| at + 1));
    // `-xmx512m`: the case is wrong and nothing else.
    let cased = ["-Xmx", "-Xms", "-Xmn", "-Xss"];
    let small = |start: &&&str| {
        option
            .get(..start.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    if let Some(start) = cased.iter().find(small) {
        return Some(format!("{start}{}", &option[start.len()..]));
    }
    let forms = ALL.iter().filter(|form| form.mark(release) == Some('+'));
    let like = |form: &&Form| strsim::normalized_damerau_levenshtein(form.text, name);
    let near = forms.max_by(|a, b| like(a).total_cmp(&like(b)))?;
    let value = if near.open { value } else { "" };
    (like(&near) > LIKE && near.text != name).then(|| format!("{}{value}", near.text))
}

fn refused_options(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for given in &case.line.options {
        // Reported by the judgement of options that another JDK has.
        if case
            .entry(given)
            .is_some_and(|entry| entry.kind == Kind::Refused)
        {
            continue;
        }
        if let Taken::No(why) = taken(case, given) {
            let sentence = format!(
                "{} refuses to start with {}: {why}",
                case.release, given.written
            );
            let finding = act(given, sentence)
                .severity(Grade::High)
                .confidence(Grade::High);
            let to = why.split_once("did you mean ").map_or_else(
                || TAKE_OUT.to_owned(),
                |(_, near)| near.trim_end_matches('?').to_owned(),
            );
            findings.push(instead(finding, given, to));
        }
    }
    or_clear(findings, "this JDK accepts every option other than flags")
}

/// What of the line is not judged, with the reasons.
pub(super) fn unknown(case: &Case) -> Vec<(String, String)> {
    let options = case.line.options.iter().filter(|given| is_written(given));
    let mut unknown: Vec<_> = options
        .filter_map(|given| match taken(case, given) {
            Taken::Unknown(why) => Some((given.written.clone(), why)),
            _ => refused::unknown(case, given).map(|why| (given.written.clone(), why)),
        })
        .collect();
    unknown.dedup();
    if case.default_may_be_off() {
        unknown.push((
            "default collector".to_owned(),
            "whether it is switched off depends on the machine; pass --cpus and --memory"
                .to_owned(),
        ));
    }
    unknown
}

fn not_judged(case: &Case) -> Vec<Finding> {
    let unknown = unknown(case);
    if unknown.is_empty() {
        return clear("every option and value was checked");
    }
    let lacks = unknown.into_iter().map(|(option, reason)| Lack {
        key: option,
        reason,
        remedy: "start the JVM once with these options".to_owned(),
    });
    let mut finding = Finding::undecided(lacks.collect());
    "command-line".clone_into(&mut finding.subject);
    vec![finding]
}

#[cfg(test)]
mod tests {
    use rungwise_model::check::Outcome::{Act, Clear, Undecided};

    use super::super::outcome_of;
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn every_form_has_a_mark_for_each_release_and_none_comes_twice() {
        let lines = FORMS.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(ALL.len(), lines.count());
        for (index, form) in ALL.iter().enumerate() {
            assert_eq!(form.marks.len(), ASKED.len(), "{}", form.text);
            assert!(form.marks.chars().all(|mark| "+-~".contains(mark)));
            let twin = ALL[..index].iter().any(|other| {
                (other.text, other.open, other.least) == (form.text, form.open, form.least)
            });
            assert!(!twin, "{}", form.text);
        }
    }

    #[test]
    fn a_slip_is_refused_with_the_nearest_option() {
        let of = |release, line| outcome_of(release, line, Machine::default(), REFUSED.id);
        let (found, sentences) = of(17, "--enable-previews");
        assert_eq!(found, Act);
        assert!(
            sentences[0].contains("did you mean --enable-preview?"),
            "{}",
            sentences[0]
        );
        assert!(of(8, "-xmx512m").1[0].contains("did you mean -Xmx512m?"));
        assert_eq!(of(17, "-Xfoo").0, Act);
        assert_eq!(of(17, "-XX:+IgnoreUnrecognizedVMOptions -Xfoo").0, Clear);
        assert_eq!(of(17, "-Xint -ea -Dx=y --add-modules java.sql").0, Clear);
    }

    #[test]
    fn where_the_neighbours_disagree_nothing_is_said() {
        let rule = NOT_JUDGED.id;
        let of = |release, line| outcome_of(release, line, Machine::default(), rule).0;
        // Came with JDK 18.
        assert_eq!(of(18, "--finalization=disabled"), Undecided);
        assert_eq!(of(17, "--finalization=disabled"), Clear);
        assert_eq!(of(26, "-Xfoo"), Undecided);
        assert_eq!(of(17, "-javaagent:agent.jar"), Undecided);
    }
}
