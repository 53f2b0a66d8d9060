//! A command line of the JVM as a list of options, from text or from the words of a process.
//!
//! `-Xmx`, `-Xms`, `-Xmn` and `-Xss` are other ways to set flags (`share/runtime/arguments.cpp`) and are read as such. An
//! argument file (`@file`) is read if the caller passes its text; otherwise it is listed. What follows the main class or `-jar
//! FILE` belongs to the application.

use std::collections::VecDeque;
use std::fmt;

use crate::size;

/// Where an option was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// On the command line.
    Line,
    /// In `JAVA_TOOL_OPTIONS`, which the JVM reads before its command line.
    ToolOptions,
    /// In `JDK_JAVA_OPTIONS`, which the launcher of JDK 9 and newer puts before its command line.
    LauncherOptions,
    /// In `_JAVA_OPTIONS`, which the JVM reads after its command line.
    LateOptions,
    /// The arguments as the JVM publishes them in its performance data, argument files and variables included.
    PerfData,
    /// In the header of a GC log: JDK 8 also prints values there that it chose itself.
    Log,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Line => "command line",
            Self::ToolOptions => "JAVA_TOOL_OPTIONS",
            Self::LauncherOptions => "JDK_JAVA_OPTIONS",
            Self::LateOptions => "_JAVA_OPTIONS",
            Self::PerfData => "performance data of the JVM",
            Self::Log => "header of the GC log",
        })
    }
}

/// A flag with its value as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The flag: `MaxHeapSize`.
    pub name: String,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Switch(bool),
    Text(String),
}

impl Setting {
    fn switch_of(name: &str, on: bool) -> Self {
        Self {
            name: name.to_owned(),
            value: Value::Switch(on),
        }
    }

    fn text_of(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: Value::Text(text.to_owned()),
        }
    }

    /// On or off, of what was written with `+` or `-`.
    pub fn switch(&self) -> Option<bool> {
        match self.value {
            Value::Switch(on) => Some(on),
            Value::Text(_) => None,
        }
    }

    /// The text behind `=`; empty for a switch.
    pub fn text(&self) -> &str {
        match &self.value {
            Value::Switch(_) => "",
            Value::Text(text) => text,
        }
    }

    /// The same as an integer, with its suffix reckoned in.
    pub fn number(&self) -> Option<u64> {
        size::bytes(self.text())
    }
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// As written, without quotes: `-Xmx4g`.
    pub written: String,
    /// Where.
    pub origin: Origin,
    /// The flags that it sets; none for an option that is no flag.
    pub sets: Vec<Setting>,
}

impl Given {
    /// Reads one option.
    pub fn new(written: impl Into<String>, origin: Origin) -> Self {
        let written = written.into();
        let sets = settings(&written);
        Self {
            written,
            origin,
            sets,
        }
    }

    /// It is written `-XX:...`.
    pub fn is_flag(&self) -> bool {
        self.written.starts_with("-XX:") && !self.sets.is_empty()
    }

    /// A file of further options, which is not read.
    pub fn argument_file(&self) -> Option<&str> {
        let flags = self.written.strip_prefix("-XX:Flags=");
        let options = self.written.strip_prefix("-XX:VMOptionsFile=");
        self.written.strip_prefix('@').or(flags).or(options)
    }
}

/// Flags whose value may stand behind a colon as well.
const RECORDINGS: [&str; 2] = ["StartFlightRecording", "FlightRecorderOptions"];

fn settings(written: &str) -> Vec<Setting> {
    if let Some(flag) = written.strip_prefix("-XX:") {
        if let Some(name) = flag.strip_prefix('+').filter(|name| is_name(name)) {
            return vec![Setting::switch_of(name, true)];
        }
        if let Some(name) = flag.strip_prefix('-').filter(|name| is_name(name)) {
            return vec![Setting::switch_of(name, false)];
        }
        // `-XX:OnError="..."` may hold anything; `:=` is an old way to write it.
        let recording = RECORDINGS
            .iter()
            .find_map(|name| Some((*name, flag.strip_prefix(name)?.strip_prefix(':')?)));
        let (name, value) = recording
            .or_else(|| flag.split_once('='))
            .unwrap_or((flag, ""));
        let name = name.strip_suffix(':').unwrap_or(name);
        let name = name.trim_start_matches(['+', '-']);
        return if is_name(name) {
            vec![Setting::text_of(name, value)]
        } else {
            Vec::new()
        };
    }
    let short = |prefix: &str| {
        let text = written.strip_prefix(prefix)?;
        text.starts_with(|c: char| c.is_ascii_digit())
            .then_some(text)
    };
    if let Some(text) = short("-Xmx").or_else(|| short("-XX:MaxHeapSize=")) {
        vec![Setting::text_of("MaxHeapSize", text)]
    } else if let Some(text) = short("-Xms") {
        vec![Setting::text_of("InitialHeapSize", text)]
    } else if let Some(text) = short("-Xmn") {
        vec![
            Setting::text_of("NewSize", text),
            Setting::text_of("MaxNewSize", text),
        ]
    } else if let Some(text) = short("-Xss") {
        // The flag is in KiB, the option in bytes.
        let kib = size::bytes(text).map(|bytes| (bytes / 1024).to_string());
        kib.map(|kib| Setting::text_of("ThreadStackSize", &kib))
            .into_iter()
            .collect()
    } else {
        // Shares of the heap that are left free, as a fraction here and in percent in the flag.
        let ratio = |prefix: &str, name: &str| {
            let share: f64 = written.strip_prefix(prefix)?.parse().ok()?;
            let percent = (share * 100.0).round();
            (0.0..=100.0)
                .contains(&percent)
                .then(|| Setting::text_of(name, &percent.to_string()))
        };
        ratio("-Xmaxf", "MaxHeapFreeRatio")
            .or_else(|| ratio("-Xminf", "MinHeapFreeRatio"))
            .into_iter()
            .collect()
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Options of the launcher whose value is the next word (JDK 25, `java --help`).
const WITH_VALUE: &[&str] = &[
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--patch-module",
    "--limit-modules",
    "--enable-native-access",
    "--describe-module",
    "-d",
];

/// The next word is its value.
pub(crate) fn takes_value(word: &str) -> bool {
    WITH_VALUE.contains(&word)
}

/// What begins with this word belongs to the application.
pub(crate) fn ends_options(word: &str) -> bool {
    matches!(word, "-jar" | "-m" | "--module" | "--source") || !word.starts_with(['-', '@'])
}

/// Variables that hold options, in the order in which they are put around the command line.
const VARIABLES: [(&str, Origin); 3] = [
    ("JDK_JAVA_OPTIONS", Origin::LauncherOptions),
    ("JAVA_TOOL_OPTIONS", Origin::ToolOptions),
    ("_JAVA_OPTIONS", Origin::LateOptions),
];

/// The name and value of a variable that is set before a command.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && is_name(name)).then_some((name, value))
}

/// The options of a JVM in the order in which it reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// One per option.
    pub options: Vec<Given>,
}

impl CommandLine {
    /// Reads text as a shell does: white space between words, `'` and `"` around words, `\` before a character.
    pub fn parse(text: &str) -> Self {
        Self::parse_with(text, &mut |_| None)
    }

    /// The same with the text of argument files: of `@app.args` that of `app.args`; `None` leaves the option as it is.
    pub fn parse_with(text: &str, read: &mut dyn FnMut(&str) -> Option<String>) -> Self {
        let mut given: VecDeque<String> = words(text).into();
        // `JAVA_TOOL_OPTIONS=-Xmx1g java -Xms1g`, as a shell takes it.
        let mut variables = Vec::new();
        while let Some((name, value)) = given.front().and_then(|word| assignment(word)) {
            variables.push((name.to_owned(), value.to_owned()));
            given.pop_front();
        }
        let mut line = Self::of_words(given, Origin::Line, read);
        // The launcher puts its own before the line, and the JVM then reads one variable before all of it, the other after.
        for (wanted, origin) in VARIABLES {
            for (_, value) in variables.iter().filter(|(name, _)| name == wanted) {
                line.add_variable(value, origin);
            }
        }
        line
    }

    /// Reads the words of a process, the program's name first or not. The launcher puts the words of an argument file in
    /// its place (JDK 9 and later); such a file names no others.
    pub fn of_words(
        given: impl IntoIterator<Item = String>,
        origin: Origin,
        read: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Self {
        let mut options: Vec<Given> = Vec::new();
        // Each with whether it stands in an argument file.
        let mut queue: VecDeque<(String, bool)> =
            given.into_iter().map(|word| (word, false)).collect();
        if queue
            .front()
            .is_some_and(|(first, _)| !first.starts_with(['-', '@']))
        {
            queue.pop_front();
        }
        while let Some((word, inner)) = queue.pop_front() {
            if let Some(file) = word.strip_prefix('@').filter(|_| !inner)
                && let Some(text) = read(file)
            {
                for word in words(&uncommented(&text)).into_iter().rev() {
                    queue.push_front((word, true));
                }
                continue;
            }
            if ends_options(&word) {
                break;
            }
            if takes_value(&word) {
                let value = queue.pop_front().unwrap_or_default().0;
                options.push(Given::new(format!("{word} {value}").trim_end(), origin));
            } else {
                options.push(Given::new(word, origin));
            }
        }
        Self { options }
    }

    /// Reads arguments that stand behind each other with a space between and no quotes, as the JVM tells its own in its
    /// performance data and its logs: each begins with a dash and a letter, and what does not belongs to the one before.
    pub fn parse_printed(text: &str, origin: Origin) -> Self {
        let begins = |word: &str| {
            let name = word.strip_prefix('-').unwrap_or_default();
            name.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic())
        };
        let mut words: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match words.last_mut() {
                Some(last) if !begins(word) => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => words.push(word.to_owned()),
            }
        }
        let options = words.into_iter().map(|word| Given::new(word, origin));
        Self {
            options: options.collect(),
        }
    }

    /// Adds the options of an environment variable, where the JVM reads them: before or after its command line.
    pub fn add_variable(&mut self, text: &str, origin: Origin) {
        // There are only options in a variable, no program and no main class. What the launcher reads may have its value behind
        // a space.
        let mut given: VecDeque<String> = words(text).into();
        let mut more = Vec::new();
        while let Some(mut word) = given.pop_front() {
            if origin == Origin::LauncherOptions
                && takes_value(&word)
                && let Some(value) = given.pop_front()
            {
                word = format!("{word} {value}");
            }
            more.push(Given::new(word, origin));
        }
        if origin == Origin::LateOptions {
            self.options.extend(more);
        } else {
            self.options.splice(0..0, more);
        }
    }

    /// The last setting of a flag, which is the one that counts.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        let options = self.options.iter().rev();
        options
            .flat_map(|given| given.sets.iter().rev())
            .find(|setting| setting.name == name)
    }

    /// The option that sets a flag last.
    pub fn given(&self, name: &str) -> Option<&Given> {
        let mut options = self.options.iter().rev();
        options.find(|given| given.sets.iter().any(|setting| setting.name == name))
    }

    /// On or off, where it is set.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.setting(name)?.switch()
    }

    /// It is switched on here.
    pub fn is_on(&self, name: &str) -> bool {
        self.switch(name) == Some(true)
    }

    /// A number that is set here, bytes for sizes.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.number()
    }

    /// A number with a fraction that is set here.
    pub fn decimal(&self, name: &str) -> Option<f64> {
        self.setting(name)?.text().parse().ok()
    }

    /// The last option that begins so.
    pub fn option(&self, prefix: &str) -> Option<&Given> {
        self.options
            .iter()
            .rev()
            .find(|given| given.written.starts_with(prefix))
    }
}

impl fmt::Display for CommandLine {
    /// One line that a shell reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, given) in self.options.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{}", quoted(&given.written))?;
        }
        Ok(())
    }
}

/// The option as a POSIX shell takes it for the words that it is.
fn quoted(written: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+".contains(c);
    let head = written.split(' ').next().unwrap_or_default();
    if let Some(value) = written.strip_prefix(head).filter(|_| takes_value(head)) {
        let value = value.trim_start();
        return if value.is_empty() {
            head.to_owned()
        } else {
            format!("{head} {}", quoted(value))
        };
    }
    if !written.is_empty() && written.chars().all(plain) {
        written.to_owned()
    } else {
        format!("'{}'", written.replace('\'', r"'\''"))
    }
}

/// An argument file without its comments: from `#` at the beginning of a word to the end of the line.
fn uncommented(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        let (mut quote, mut before) = (None, ' ');
        let end = line.find(|c: char| {
            let comment = c == '#' && quote.is_none() && before.is_whitespace();
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                _ => {}
            }
            before = c;
            comment
        });
        kept.push_str(&line[..end.unwrap_or(line.len())]);
        kept.push('\n');
    }
    kept
}

/// Words of a line, quotes and backslashes taken off. A quote that is not closed ends with the text.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let next = characters.next();
                // The end of a line that goes on in the next one.
                if next != Some('\n') {
                    word.get_or_insert_default().extend(next);
                }
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<String> {
        let line = CommandLine::parse(text);
        line.options
            .into_iter()
            .map(|given| given.written)
            .collect()
    }

    #[test]
    fn short_options_set_flags_and_the_last_one_counts() {
        let line = CommandLine::parse(
            "-Xmx4g -Xmn1g -Xss512k -XX:MaxHeapSize=2g -XX:+UseG1GC -XX:-UseG1GC",
        );
        assert_eq!(line.number("MaxHeapSize"), Some(2 << 30));
        assert_eq!(line.number("NewSize"), Some(1 << 30));
        assert_eq!(line.number("MaxNewSize"), Some(1 << 30));
        assert_eq!(line.number("ThreadStackSize"), Some(512));
        assert_eq!(line.switch("UseG1GC"), Some(false));
        assert_eq!(
            line.given("MaxHeapSize").unwrap().written,
            "-XX:MaxHeapSize=2g"
        );
    }

    #[test]
    fn what_follows_the_main_class_or_the_jar_belongs_to_the_application() {
        for text in [
            "java -Xmx1g -jar app.jar -Xmx9g",
            "/usr/bin/java -Xmx1g Main -Xmx9g",
            "-Xmx1g Main -Xmx9g",
            "java -Xmx1g -m a/b -Xmx9g",
        ] {
            assert_eq!(written(text), ["-Xmx1g"], "{text}");
        }
        let with_path = written("java -cp a.jar:b.jar -Xmx1g --add-opens a/b=C Main -Xmx9g");
        assert_eq!(
            with_path,
            ["-cp a.jar:b.jar", "-Xmx1g", "--add-opens a/b=C"]
        );
    }

    #[test]
    fn quotes_are_read_and_written_as_a_shell_does() {
        let text = r#"-XX:OnError="kill -9 %p" '-Da=b c' -Dd="x\"y" -De=\ z"#;
        let words = ["-XX:OnError=kill -9 %p", "-Da=b c", "-Dd=x\"y", "-De= z"];
        assert_eq!(written(text), words);
        let line = CommandLine::parse(text);
        assert_eq!(CommandLine::parse(&line.to_string()), line);
        let with_path = CommandLine::parse("-cp 'a b.jar' -Xmx1g");
        assert_eq!(with_path.to_string(), "-cp 'a b.jar' -Xmx1g");
        assert_eq!(written("-Xmx1g 'open -Xmx2g"), ["-Xmx1g"]);
        assert_eq!(written("\"\" -Xmx1g"), ["-Xmx1g"]);
    }

    #[test]
    fn variables_stand_where_the_jvm_reads_them() {
        let mut line = CommandLine::parse("-Xmx2g");
        line.add_variable("-Xmx1g", Origin::ToolOptions);
        assert_eq!(line.number("MaxHeapSize"), Some(2 << 30));
        line.add_variable("-Xmx3g", Origin::LateOptions);
        assert_eq!(line.number("MaxHeapSize"), Some(3 << 30));
    }

    #[test]
    fn variables_before_the_command_are_read_as_a_shell_passes_them() {
        let line = CommandLine::parse(
            "JDK_JAVA_OPTIONS='--add-modules a.b' _JAVA_OPTIONS=-Xmx3g JAVA_TOOL_OPTIONS='-Xmx1g -Xint' JAVA_OPTS=-Xmx9g java -Xmx2g",
        );
        let written: Vec<_> = line.options.iter().map(|given| &*given.written).collect();
        assert_eq!(
            written,
            ["-Xmx1g", "-Xint", "--add-modules a.b", "-Xmx2g", "-Xmx3g"]
        );
        assert_eq!(line.options[0].origin, Origin::ToolOptions);
        assert_eq!(line.options[4].origin, Origin::LateOptions);
    }

    #[test]
    fn files_of_arguments_are_named_and_not_read() {
        let line = CommandLine::parse("java @app.args -XX:Flags=.hotspotrc -Xmx1g Main");
        let files: Vec<_> = line
            .options
            .iter()
            .filter_map(Given::argument_file)
            .collect();
        assert_eq!(files, ["app.args", ".hotspotrc"]);
        assert_eq!(line.number("MaxHeapSize"), Some(1 << 30));
    }

    #[test]
    fn the_words_of_an_argument_file_stand_in_its_place() {
        let mut read = |name: &str| {
            (name == "app.args").then(|| {
                "# a comment\n-Xmx2g   # another\n-XX:OnError=\"a b\" @other\n-Dx=a#b\n".to_owned()
            })
        };
        let line = CommandLine::parse_with(
            "java -Xms1g @app.args @none -Xmn1g Main @app.args",
            &mut read,
        );
        let written: Vec<_> = line.options.iter().map(|given| &*given.written).collect();
        assert_eq!(
            written,
            [
                "-Xms1g",
                "-Xmx2g",
                "-XX:OnError=a b",
                "@other",
                "-Dx=a#b",
                "@none",
                "-Xmn1g"
            ]
        );
    }

    #[test]
    fn what_a_jvm_tells_of_itself_has_no_quotes() {
        let line = CommandLine::parse_printed(
            "-Xmx1g -XX:OnError=kill -9 %p -Dname=a b -XX:+UseG1GC",
            Origin::PerfData,
        );
        let written: Vec<_> = line.options.iter().map(|given| &*given.written).collect();
        // No option begins with a figure.
        assert_eq!(
            written,
            [
                "-Xmx1g",
                "-XX:OnError=kill -9 %p",
                "-Dname=a b",
                "-XX:+UseG1GC"
            ]
        );
    }

    #[test]
    fn odd_text_is_no_reason_to_panic() {
        for text in [
            "",
            "-",
            "-XX:",
            "-XX:+",
            "-XX:=",
            "-XX:+=",
            "-Xmx",
            "-Xss9z",
            "'",
            "\\",
            "@",
            "-cp",
            "-XX:+é=1",
        ] {
            let line = CommandLine::parse(text);
            assert!(line.to_string().len() < 20);
        }
    }
}
