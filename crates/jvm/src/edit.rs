//! Changes the options in the words of a `java` command, where the launcher and the JVM read them.

use std::collections::BTreeSet;

use crate::command_line::{Given, Origin, ends_options, takes_value};
use crate::judge::COLLECTOR_SWITCHES;

/// A command whose options were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// All of its words.
    pub words: Vec<String>,
    /// Options that were taken out.
    pub removed: Vec<String>,
}

/// The word of a command that starts a JVM: `java`, or a path of it.
pub fn java_word(words: &[String]) -> Option<usize> {
    words
        .iter()
        .position(|word| word == "java" || (word.ends_with("/java") && !word.contains('=')))
}

/// Puts `new` options behind the `java` at `at`, and takes out those that set the same as they or `others` do: what stands later
/// would win.
#[must_use]
pub fn with_options(words: &[String], at: usize, new: &[String], others: &[&str]) -> Edited {
    let all = new.iter().map(String::as_str).chain(others.iter().copied());
    let mut keys: BTreeSet<String> = all.flat_map(|option| keys(option).into_iter()).collect();
    if COLLECTOR_SWITCHES
        .iter()
        .any(|(switch, _)| keys.contains(*switch))
    {
        let switches = COLLECTOR_SWITCHES.iter();
        keys.extend(switches.map(|(switch, _)| (*switch).to_owned()));
    }
    let mut edited = without(words, at, |option| {
        self::keys(option).iter().any(|key| keys.contains(key))
    });
    let place = (at + 1).min(edited.words.len());
    edited.words.splice(place..place, new.iter().cloned());
    edited
}

/// Takes these options out, as they are written.
#[must_use]
pub fn without_options(words: &[String], at: usize, old: &[String]) -> Edited {
    without(words, at, |option| old.iter().any(|old| old == option))
}

fn without(words: &[String], at: usize, goes: impl Fn(&str) -> bool) -> Edited {
    let (before, mut rest) = words.split_at((at + 1).min(words.len()));
    let mut edited = Edited {
        words: before.to_vec(),
        removed: Vec::new(),
    };
    while let Some((option, behind)) = rest.split_first() {
        if ends_options(option) {
            break;
        }
        let width = if takes_value(option) { 2 } else { 1 };
        let (own, behind_it) = rest.split_at(width.min(rest.len()));
        if width == 1 && goes(option) {
            edited.removed.push(option.clone());
            rest = behind;
        } else {
            edited.words.extend_from_slice(own);
            rest = behind_it;
        }
    }
    edited.words.extend_from_slice(rest);
    edited
}

/// What an option sets: flags by name, a property by its name. What may be given several times (`-Xlog`, agents) has none.
fn keys(option: &str) -> Vec<String> {
    if let Some(property) = option.strip_prefix("-D") {
        let name = property.split('=').next().unwrap_or_default();
        return vec![format!("-D{name}")];
    }
    let given = Given::new(option, Origin::Line);
    given.sets.into_iter().map(|setting| setting.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn with(command: &str, new: &str, others: &[&str]) -> (String, String) {
        let command = words(command);
        let at = java_word(&command).unwrap();
        let edited = with_options(&command, at, &words(new), others);
        (edited.words.join(" "), edited.removed.join(" "))
    }

    #[test]
    fn what_sets_the_same_goes_and_the_application_keeps_its_words() {
        let line = "taskset -c 0 /opt/jdk/bin/java -cp -Xmx1g -XX:MaxHeapSize=3g -Xmx2g -Dx=1 -jar a.jar -Xmx9g";
        let (edited, removed) = with(line, "-Xms4g -Xmx4g", &[]);
        assert_eq!(
            edited,
            "taskset -c 0 /opt/jdk/bin/java -Xms4g -Xmx4g -cp -Xmx1g -Dx=1 -jar a.jar -Xmx9g"
        );
        assert_eq!(removed, "-XX:MaxHeapSize=3g -Xmx2g");
        let (edited, removed) = with(
            "java -Dx=1 -Dxy=2 -Xlog:gc Main java",
            "-Dx=3 -Xlog:os",
            &[],
        );
        assert_eq!(edited, "java -Dx=3 -Xlog:os -Dxy=2 -Xlog:gc Main java");
        assert_eq!(removed, "-Dx=1");
    }

    #[test]
    fn a_collector_takes_the_place_of_any_other() {
        let line = "java -XX:+UseConcMarkSweepGC -XX:+UseParNewGC -XX:-UseG1GC Main";
        let (edited, removed) = with(line, "-XX:+UseParallelGC", &[]);
        assert_eq!(edited, "java -XX:+UseParallelGC Main");
        assert_eq!(removed.split(' ').count(), 3);
        // Of two ways to change one thing, the other goes too.
        let (edited, _) = with(
            "java -XX:+DisableExplicitGC Main",
            "-XX:+ExplicitGCInvokesConcurrent",
            &["-XX:+DisableExplicitGC"],
        );
        assert_eq!(edited, "java -XX:+ExplicitGCInvokesConcurrent Main");
    }

    #[test]
    fn options_go_as_they_are_written_and_odd_commands_are_no_reason_to_panic() {
        let command = words("java -Xmn1g -XX:NewSize=1g Main -Xmn1g");
        let edited = without_options(&command, 0, &words("-Xmn1g -Xss1m"));
        assert_eq!(edited.words.join(" "), "java -XX:NewSize=1g Main -Xmn1g");
        assert_eq!(edited.removed, ["-Xmn1g"]);
        assert_eq!(java_word(&words("env JAVA=/opt/java mvn run")), None);
        for line in ["java", "java -cp", "java -"] {
            let (edited, removed) = with(line, "-Xint", &[]);
            assert_eq!(edited, line.replacen("java", "java -Xint", 1));
            assert_eq!(removed, "");
        }
        assert_eq!(with_options(&[], 0, &words("-Xint"), &[]).words, ["-Xint"]);
    }
}
