//! `cargo xtask jvm-flags`: asks real JVMs for their flags and writes the tables of `crates/jvm/data`.
//!
//! Per JVM: `-XX:+PrintFlagsFinal` with everything unlocked gives name, type and kind; `-XX:+PrintFlagsInitial` the
//! default before the JVM has inspected the machine; `-XX:+PrintFlagsRanges` (JDK 9 on) the bounds. A default that
//! differs between the two, or between collectors, CPU counts and memory sizes, is decided at start and is no constant. Nor
//! is one that the same JVM has otherwise on another machine: an existing table shows the values of the CPU on which it was made.
//! Then each flag is given to the JVM and its message is kept, and so are names that the JVM knows only as removed: candidates are the
//! flags of the other JVMs and every word in `libjvm.so` that could be one.
//!
//! A JVM that is asked about a flag ends before it has made a heap, because its initial heap is set larger than its maximum heap. All runs
//! are in a folder of their own, because some flags write files.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, anyhow, bail};

use crate::tree::Tree;

/// Where the tables are.
const FOLDER: &str = "crates/jvm/data";

/// With these every flag is taken.
const UNLOCK: [&str; 2] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
];

/// A contradiction that ends the JVM after it has read its flags, and the words by which it says so.
const END: [&str; 2] = ["-Xms2g", "-Xmx1g"];
const ENDED: &str = "Initial heap size set to a larger value than the maximum heap size";

/// Circumstances under which defaults are compared. A JVM that lacks the collector does not start, and is left out.
const CIRCUMSTANCES: &[&[&str]] = &[
    &["-XX:+UseSerialGC"],
    &["-XX:+UseParallelGC"],
    &["-XX:+UseConcMarkSweepGC"],
    &["-XX:+UseG1GC"],
    &["-XX:+UseZGC"],
    &["-XX:+UseZGC", "-XX:+ZGenerational"],
    &["-XX:+UseShenandoahGC"],
    &["-XX:ActiveProcessorCount=1"],
    &["-XX:ActiveProcessorCount=16"],
    &["-XX:MaxRAM=1g"],
    &["-XX:MaxRAM=128g"],
    &["-Xmx40g"],
    &["-Xmx1g", "-XX:+UseG1GC"],
    &["-Xint"],
    &["-XX:-TieredCompilation"],
];

/// Options that are no flags and that some JDK refuses, or says something of.
const OPTIONS: &[&str] = &[
    "-Xincgc",
    "-Xnoincgc",
    "-Xconcgc",
    "-Xloggc:gc.log",
    "-Xlog:gc:gc.log",
    "-Xlog:gc",
    "-Xprof",
    "-Xverify:none",
    "-Xverify:all",
    "-Xnoclassgc",
    "-Xrs",
    "-Xint",
    "-Xcomp",
    "-Xmixed",
    "-Xbatch",
    "-Xcheck:jni",
    "-Xfuture",
    "-Xdiag",
    "-Xdebug",
    "-Xshare:auto",
    "-Xbootclasspath/p:lib",
    "-Xbootclasspath/a:lib",
    "-Xoss1m",
    "-Xsqnopause",
    "-XX:+AggressiveHeap",
    "-d64",
    "-verbose:gc",
    "-verbosegc",
    "-noverify",
    "-esa",
    "--illegal-access=permit",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "-Djava.endorsed.dirs=lib",
    "-Djava.ext.dirs=lib",
    "-Djava.security.manager",
];

/// One line of a table.
#[derive(Clone, Debug)]
struct Row {
    kind: String,
    /// Type, default and bounds of a flag; dashes for what is none.
    value: String,
    default: String,
    range: String,
    words: String,
    /// The value that the flag had in the JVM that was asked.
    held: String,
}

impl Row {
    /// What is no flag.
    fn other(kind: &str, words: String) -> Self {
        let none = || "-".to_owned();
        Self {
            kind: kind.to_owned(),
            value: none(),
            default: none(),
            range: none(),
            words,
            held: String::new(),
        }
    }
}

/// A JVM that is asked.
struct Jvm<'a> {
    release: String,
    java: PathBuf,
    folder: &'a Path,
}

/// Asks each JVM of `javas` (`17=/usr/lib/jvm/java-17/bin/java`) and writes its table; of a folder (`7=hotspot/src`) reads
/// the source.
pub fn run(tree: &Tree, javas: &[String]) -> Result<ExitCode> {
    let folder = std::env::temp_dir().join(format!("jvm-flags.{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("cannot make a folder for the runs")?;
    let result = ask(tree, javas, &folder);
    std::fs::remove_dir_all(&folder).context("cannot remove the folder of the runs")?;
    result.map(|()| ExitCode::SUCCESS)
}

fn ask(tree: &Tree, javas: &[String], folder: &Path) -> Result<()> {
    let mut jvms = Vec::new();
    for java in javas {
        let Some((release, path)) = java.split_once('=') else {
            bail!("'{java}' does not name a JVM: write RELEASE=PATH, such as 17=/usr/bin/java");
        };
        let java = std::fs::canonicalize(path).with_context(|| format!("cannot find {path}"))?;
        let release = release.to_owned();
        if java.is_dir() {
            let (version, table) = source::table(&release, &java)?;
            eprintln!("JDK {release}: {} names", table.len());
            write(tree, &release, &format!("read of {version}"), &table)?;
            continue;
        }
        jvms.push(Jvm {
            release,
            java,
            folder,
        });
    }
    let mut tables = Vec::new();
    // The tables that are there tell of the JDKs that are not asked this time.
    let mut names = BTreeSet::new();
    for file in tree.files_ending(".txt")? {
        if file.starts_with(FOLDER) {
            let text = tree.read(&file)?;
            let lines = text.lines().filter(|line| !line.starts_with(['#', '-']));
            names.extend(lines.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())));
        }
    }
    for jvm in &jvms {
        let table = jvm.flags()?;
        names.extend(table.keys().cloned());
        tables.push(table);
    }
    // Bounds that a JVM without a list of them may share: those of the oldest JVM that has one.
    let bounds = tables
        .iter()
        .find(|table| table.values().any(|row| row.range != "-"))
        .cloned()
        .unwrap_or_default();
    std::thread::scope(|scope| {
        let (names, bounds) = (&names, &bounds);
        let asked: Vec<_> = jvms
            .iter()
            .zip(tables)
            .map(|(jvm, table)| scope.spawn(move || jvm.whole(tree, table, names, bounds)))
            .collect();
        for thread in asked {
            thread
                .join()
                .map_err(|_| anyhow!("a thread that queried a JVM ended early"))??;
        }
        Ok(())
    })
}

fn path(release: &str) -> String {
    format!("{FOLDER}/jdk-{release}.txt")
}

/// The first line of a table, which names the JVM that was asked.
fn opening(release: &str, source: &str) -> String {
    format!("# What JDK {release} knows, {source}.")
}

/// Defaults that the same JVM has otherwise in the table that is there were decided by the CPU.
fn differing(table: &mut BTreeMap<String, Row>, there: &str) {
    for line in there.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split(' ');
        let name = columns.next().unwrap_or_default();
        if let (Some(row), Some(default)) = (table.get_mut(name), columns.nth(1))
            && row.default != default
        {
            "~".clone_into(&mut row.default);
        }
    }
}

fn write(tree: &Tree, release: &str, source: &str, table: &BTreeMap<String, Row>) -> Result<()> {
    let mut text = format!(
        "{}\n\
         # Written by `cargo xtask jvm-flags`. Columns: name, type, default (~: decided at start), kind, bounds | what the JVM says.\n",
        opening(release, source)
    );
    for (name, row) in table {
        let Row {
            kind,
            value,
            default,
            range,
            words,
            held: _,
        } = row;
        write!(text, "{name} {value} {default} {kind} {range}")?;
        if !words.is_empty() {
            write!(text, " | {words}")?;
        }
        text.push('\n');
    }
    let path = tree.join(path(release));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

impl Jvm<'_> {
    /// What the JVM prints, both streams. One that hangs (some flags wait for a person) is ended.
    fn run(&self, arguments: &[String]) -> String {
        self.within("20", arguments).0
    }

    /// The same, and whether it ended by itself within so many seconds.
    fn within(&self, seconds: &str, arguments: &[String]) -> (String, bool) {
        let output = Command::new("timeout")
            .args(["--kill-after=1", seconds])
            .arg(&self.java)
            .args(arguments)
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("_JAVA_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            .current_dir(self.folder)
            .output();
        output.map_or_else(
            |error| (error.to_string(), false),
            |output| {
                // 124 is what timeout says of a command that it had to end.
                let ended = output.status.code().is_some_and(|code| code != 124);
                let streams = [output.stderr, output.stdout].concat();
                (String::from_utf8_lossy(&streams).into_owned(), ended)
            },
        )
    }

    fn list(&self, what: &str, more: &[&str]) -> String {
        let mut arguments: Vec<String> = UNLOCK.map(str::to_owned).to_vec();
        arguments.extend(more.iter().map(|&word| word.to_owned()));
        arguments.extend([format!("-XX:+{what}"), "-version".to_owned()]);
        self.run(&arguments)
    }

    fn flags(&self) -> Result<BTreeMap<String, Row>> {
        let mut table = BTreeMap::new();
        let last = self.list("PrintFlagsFinal", &[]);
        for line in last.lines() {
            if let Some((name, row)) = flag(line) {
                table.insert(name, row);
            }
        }
        if table.is_empty() {
            bail!(
                "cannot read the flags of {}: it printed none",
                self.java.display()
            );
        }
        let first = self.list("PrintFlagsInitial", &[]);
        for (name, row) in first.lines().filter_map(flag) {
            if let Some(known) = table.get_mut(&name)
                && known.held != row.held
            {
                "~".clone_into(&mut known.default);
            }
        }
        for circumstance in CIRCUMSTANCES {
            let output = self.list("PrintFlagsFinal", circumstance);
            for (name, row) in output.lines().filter_map(flag) {
                let asked = circumstance.iter().any(|word| names(word, &name));
                if let Some(known) = table.get_mut(&name)
                    && known.held != row.held
                    && !asked
                {
                    "~".clone_into(&mut known.default);
                }
            }
        }
        // These we set ourselves.
        for name in [
            "UnlockDiagnosticVMOptions",
            "UnlockExperimentalVMOptions",
            "PrintFlagsFinal",
        ] {
            if let Some(row) = table.get_mut(name) {
                "false".clone_into(&mut row.default);
            }
        }
        for line in self.list("PrintFlagsRanges", &[]).lines() {
            if let Some((name, range)) = range(line)
                && let Some(row) = table.get_mut(&name)
            {
                row.range = range;
            }
        }
        Ok(table)
    }

    /// Adds to the flags what the JVM says of them and of other names, and writes the table.
    fn whole(
        &self,
        tree: &Tree,
        mut table: BTreeMap<String, Row>,
        names: &BTreeSet<String>,
        bounds: &BTreeMap<String, Row>,
    ) -> Result<()> {
        eprintln!("JDK {}: {} flags", self.release, table.len());
        if table.values().all(|row| row.range == "-") {
            self.try_bounds(&mut table, bounds);
        }
        for (name, row) in &mut table {
            row.words = self.words_of(name, row);
        }
        let mut candidates = names.clone();
        candidates.extend(self.words_in_library()?);
        candidates.retain(|name| !table.contains_key(name));
        let candidates: Vec<String> = candidates.into_iter().collect();
        for some in candidates.chunks(400) {
            self.gone(some, &mut table);
        }
        for option in OPTIONS {
            table.insert((*option).to_owned(), self.option(option)?);
        }
        let version = self.run(&["-version".to_owned()]);
        let version = version
            .lines()
            .find(|line| line.contains("(build") && !line.contains("Runtime"))
            .context("a JVM did not print its version")?;
        let source = format!("asked of {version} on linux {}", std::env::consts::ARCH);
        let there = tree.read(path(&self.release)).unwrap_or_default();
        if there.starts_with(&opening(&self.release, &source)) {
            differing(&mut table, &there);
        }
        write(tree, &self.release, &source, &table)
    }

    /// What the JVM says when it is given this flag.
    fn words_of(&self, name: &str, row: &Row) -> String {
        let setting = match (row.value.as_str(), row.default.as_str()) {
            ("bool", _) => format!("-XX:+{name}"),
            (_, "\"\"") => return String::new(),
            _ => format!("-XX:{name}={}", row.held),
        };
        let output = self.given(&[setting]);
        output
            .lines()
            .filter(|line| speaks(line) && (line.contains(name) || line.contains("deprecated")))
            .map(plain)
            .next()
            .unwrap_or_default()
    }

    /// What it prints when it is given these, up to the point where a heap would be made.
    fn given(&self, settings: &[String]) -> String {
        let mut arguments: Vec<String> = UNLOCK.map(str::to_owned).to_vec();
        arguments.extend(settings.iter().cloned());
        arguments.extend(END.map(str::to_owned));
        arguments.push("-version".to_owned());
        self.run(&arguments)
    }

    /// Enters those of `names` that the JVM only knows to say something of them.
    fn gone(&self, names: &[String], table: &mut BTreeMap<String, Row>) {
        if self.release == "8" {
            // This one says nothing of names that it was to ignore, and ends at the first that it does not know.
            for name in names {
                let output = self.given(&[format!("-XX:+{name}")]);
                Self::enter(std::slice::from_ref(name), &output, table);
            }
            return;
        }
        let settings: Vec<String> = std::iter::once("-XX:+IgnoreUnrecognizedVMOptions".to_owned())
            .chain(names.iter().map(|name| format!("-XX:+{name}")))
            .collect();
        let output = self.given(&settings);
        if !output.contains(ENDED) && names.len() > 1 {
            // One of them is no switch, or does something by itself: look for it.
            let (some, others) = names.split_at(names.len() / 2);
            self.gone(some, table);
            self.gone(others, table);
            return;
        }
        if let [name] = names
            && !output.contains(ENDED)
        {
            // A name that takes a value.
            let output = self.given(&[format!("-XX:{name}=1")]);
            Self::enter(std::slice::from_ref(name), &output, table);
            return;
        }
        Self::enter(names, &output, table);
    }

    fn enter(names: &[String], output: &str, table: &mut BTreeMap<String, Row>) {
        for line in output
            .lines()
            .filter(|line| speaks(line) && !line.contains("Unrecognized"))
        {
            let words = plain(line);
            let said: BTreeSet<&str> = words
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .collect();
            let Some(name) = names.iter().find(|name| said.contains(name.as_str())) else {
                continue;
            };
            let gone = words.starts_with("ignoring") || words.starts_with("Ignoring");
            let row = Row::other(if gone { "gone" } else { "alias" }, words.clone());
            table.entry(name.clone()).or_insert(row);
        }
    }

    fn option(&self, option: &str) -> Result<Row> {
        // The whole JVM starts here, and -Xcomp compiles all of it.
        let (output, ended) = self.within("120", &[option.to_owned(), "-version".to_owned()]);
        if !ended {
            bail!(
                "cannot tell what {} does with {option}: it did not exit within 120 s; try again on a quieter machine",
                self.java.display()
            );
        }
        let refused = !output.contains("version \"") && !output.contains("build ");
        // What every refusal says tells nothing of this one.
        let every = [
            "Error: Could not create",
            "Error: A fatal exception",
            "Error occurred during initialization",
        ];
        let words = output
            .lines()
            .filter(|line| speaks(line) || (refused && !line.is_empty()))
            .filter(|line| !every.iter().any(|start| line.starts_with(start)))
            .map(plain)
            .next()
            .unwrap_or_default();
        let kind = match () {
            () if refused => "refused",
            () if words.starts_with("Ignoring") => "gone",
            () => "option",
        };
        Ok(Row::other(kind, words))
    }

    /// Every word in the JVM's library that could be the name of a flag.
    fn words_in_library(&self) -> Result<BTreeSet<String>> {
        let home = self
            .java
            .parent()
            .and_then(Path::parent)
            .context("a JVM has no home")?;
        let library = ["lib/server/libjvm.so", "lib/amd64/server/libjvm.so"]
            .iter()
            .map(|path| home.join(path))
            .find(|path| path.exists())
            .with_context(|| format!("cannot find libjvm.so below {}", home.display()))?;
        let bytes = std::fs::read(&library)
            .with_context(|| format!("cannot read {}", library.display()))?;
        Ok(bytes
            .split(|&byte| byte == 0)
            .filter_map(|word| std::str::from_utf8(word).ok())
            .filter(|word| (5..=60).contains(&word.len()))
            .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()))
            .flat_map(endings)
            .filter(|word| word.len() >= 5 && word.chars().any(|c| c.is_ascii_lowercase()))
            .map(str::to_owned)
            .collect())
    }

    /// Bounds of a JVM that does not list them: those of a newer one, where a value at the bound is taken and one beyond
    /// it is refused; or what the JVM says when it refuses.
    fn try_bounds(&self, table: &mut BTreeMap<String, Row>, newer: &BTreeMap<String, Row>) {
        for (name, row) in table {
            let Some((low, high)) = newer.get(name).and_then(|row| row.range.split_once(".."))
            else {
                continue;
            };
            // Bounds of fractions are whole numbers: `0.000..100.000`.
            let whole = |bound: &str| {
                let (whole, fraction) = bound.split_once('.').unwrap_or((bound, ""));
                let none = fraction.bytes().all(|digit| digit == b'0');
                whole.parse::<i128>().ok().filter(|_| none)
            };
            let (Some(low), Some(high)) = (whole(low), whole(high)) else {
                continue;
            };
            let output = |value: i128| self.given(&[format!("-XX:{name}={value}")]);
            let taken = |value: i128| output(value).contains(ENDED);
            // In words: a JVM that was ended because it took too long has refused nothing.
            let refuses = |said: &str| {
                let words = said.contains(name.as_str()) || said.contains("must be between");
                !said.contains(ENDED) && words
            };
            let most = i128::from(i32::MAX);
            let said = if high < most {
                output(high + 1)
            } else {
                String::new()
            };
            if let Some((low, high)) = between(&said, name) {
                row.range = format!("{low}..{high}");
                continue;
            }
            let high = (high < most && refuses(&said) && taken(high)).then_some(high);
            let low = (low > 0 && refuses(&output(low - 1)) && taken(low)).then_some(low);
            let bound =
                |bound: Option<i128>| bound.map_or_else(String::new, |bound| bound.to_string());
            if low.is_some() || high.is_some() {
                row.range = format!("{}..{}", bound(low), bound(high));
            }
        }
    }
}

/// The word and what is left of it from each capital on: linkers store `PermSize` as the end of `MaxPermSize`.
fn endings(word: &str) -> impl Iterator<Item = &str> {
    let bytes = word.as_bytes();
    (0..word.len())
        .filter(|&at| {
            bytes[at].is_ascii_uppercase() && (at == 0 || !bytes[at - 1].is_ascii_uppercase())
        })
        .map(|at| &word[at..])
}

/// `-Xmx40g` sets `MaxHeapSize`, `-XX:+UseG1GC` sets `UseG1GC`.
fn names(word: &str, flag: &str) -> bool {
    match word {
        "-Xmx40g" | "-Xmx1g" => ["MaxHeapSize", "SoftMaxHeapSize"].contains(&flag),
        "-Xint" => flag == "UseInterpreter",
        _ => {
            word.trim_start_matches("-XX:")
                .trim_start_matches(['+', '-'])
                .split('=')
                .next()
                == Some(flag)
        }
    }
}

/// `     bool UseG1GC   = true    {product} {ergonomic}`; JDK 8 writes `:=` for what has changed.
fn flag(line: &str) -> Option<(String, Row)> {
    let (head, rest) = line.split_once('=')?;
    let (value, name) = head.trim().trim_end_matches(':').trim().split_once(' ')?;
    let (default, braces) = rest.split_once('{')?;
    let (kind, origin) = braces.split_once('}')?;
    let held = default.trim();
    let default = if origin.contains("ergonomic") {
        "~"
    } else if held.is_empty() {
        "\"\""
    } else {
        held
    };
    let name = name.trim();
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !plain(value) || !plain(name) || default.contains(' ') {
        return None;
    }
    let row = Row {
        kind: kind_of(kind),
        value: value.to_owned(),
        default: default.to_owned(),
        range: "-".to_owned(),
        words: String::new(),
        held: held.to_owned(),
    };
    Some((name.to_owned(), row))
}

/// `C2 pd product` becomes `product,C2,pd`: the kind first, then where it belongs. `pd`: the default depends on the CPU.
fn kind_of(braces: &str) -> String {
    let kinds = ["product", "diagnostic", "experimental", "manageable"];
    let words: Vec<&str> = braces.split_whitespace().collect();
    let kind = words.iter().find(|word| kinds.contains(word));
    let others = words.iter().filter(|word| Some(*word) != kind);
    let others = others.filter(|word| **word != "lp64_product" || kind.is_none());
    let mut all: Vec<&str> = kind.copied().into_iter().collect();
    all.extend(others.map(|word| {
        if *word == "lp64_product" {
            "product"
        } else {
            word
        }
    }));
    all.join(",")
}

/// `  uintx MaxTenuringThreshold  [ 0  ...  16 ]  {product} {default}`.
fn range(line: &str) -> Option<(String, String)> {
    let (head, rest) = line.split_once('[')?;
    let (low, rest) = rest.split_once("...")?;
    let (high, _) = rest.split_once(']')?;
    let name = head.split_whitespace().nth(1)?;
    let (low, high) = (low.trim(), high.trim());
    (!low.is_empty() && !high.is_empty()).then(|| (name.to_owned(), format!("{low}..{high}")))
}

/// `MaxTenuringThreshold of 16 is invalid; must be between 0 and 15`.
fn between(output: &str, name: &str) -> Option<(i64, i64)> {
    let line = output.lines().find(|line| line.contains(name))?;
    let (_, bounds) = line.split_once("must be between ")?;
    let (low, high) = bounds.split_once(" and ")?;
    Some((low.parse().ok()?, high.trim().parse().ok()?))
}

/// It is said of an option, and not printed because an option asked for it.
fn speaks(line: &str) -> bool {
    ["warning:", "[warning]", "Unrecognized", "gnoring o"]
        .iter()
        .any(|word| line.contains(word))
        && !line.contains("G1 is not supported")
}

/// Without the name of the JVM and the decorations of the log.
fn plain(line: &str) -> String {
    let line = line.rsplit_once("warning: ").map_or(line, |(_, rest)| rest);
    let line = line
        .strip_prefix('[')
        .and_then(|rest| rest.rsplit_once("] "))
        .map_or(line, |(_, rest)| rest);
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_either_style_is_a_flag() {
        let (name, row) =
            flag("     bool UseG1GC                 := true        {product}           ").unwrap();
        assert_eq!((name.as_str(), row.default.as_str()), ("UseG1GC", "true"));
        let (_, row) =
            flag("   size_t MaxHeapSize = 6320816128      {product} {ergonomic}").unwrap();
        assert_eq!(row.default, "~");
        let (_, row) = flag("    ccstr HeapDumpPath =        {manageable} {default}").unwrap();
        assert_eq!(
            (row.default.as_str(), row.kind.as_str()),
            ("\"\"", "manageable")
        );
        let (_, row) = flag("  intx LoopUnrollLimit = 60   {C2 pd product} {default}").unwrap();
        assert_eq!(row.kind, "product,C2,pd");
        assert!(flag("openjdk version = x").is_none());
    }

    #[test]
    fn bounds_are_read_where_there_are_any() {
        let line = "    uintx MaxTenuringThreshold  [ 0   ...    16 ]   {product} {default}";
        assert_eq!(
            range(line).unwrap(),
            ("MaxTenuringThreshold".to_owned(), "0..16".to_owned())
        );
        assert!(range("  int ActiveProcessorCount [   ...   ] {product} {default}").is_none());
        let said = "MaxTenuringThreshold of 16 is invalid; must be between 0 and 15";
        assert_eq!(between(said, "MaxTenuringThreshold"), Some((0, 15)));
    }

    #[test]
    fn a_default_that_another_machine_has_otherwise_is_no_constant() {
        let line = |default: &str| format!("  intx {default} {{product}} {{default}}");
        let mut table: BTreeMap<String, Row> = ["UseAVX = 3", "UseSSE = 4", "MaxLoopPad = 7"]
            .iter()
            .filter_map(|default| flag(&line(default)))
            .collect();
        let there = "# What JDK 17 knows\nMaxLoopPad intx ~ product - | odd\nUseAVX intx 2 product -\nUseSSE intx 4 product -\n";
        differing(&mut table, there);
        let defaults: Vec<&str> = table.values().map(|row| row.default.as_str()).collect();
        assert_eq!(defaults, ["~", "~", "4"]);
    }

    #[test]
    fn what_a_jvm_says_is_kept_without_who_says_it() {
        let line = "OpenJDK 64-Bit Server VM warning: Ignoring option MaxPermSize; support was removed in 8.0";
        assert_eq!(
            plain(line),
            "Ignoring option MaxPermSize; support was removed in 8.0"
        );
        assert_eq!(
            plain("[0.001s][warning][gc] -Xloggc is deprecated."),
            "-Xloggc is deprecated."
        );
        assert!(!speaks("openjdk version \"17.0.15\""));
    }
}
