//! Where the options of a JVM are taken from: text, a process, or the header of a GC log.
//!
//! The options of a process are in `/proc/PID/cmdline`, the argument files that are named there, and the variables of its
//! environment that JVMs read; its JDK in the `release` file of the folder that its `libjvm.so` is mapped from; its limits in
//! its control groups. What cannot be read there may be in the performance data of the JVM. Nothing attaches to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rungwise_formats::cgroup::{self, Quota};
use rungwise_formats::hsperfdata;
use rungwise_gclog::{Event, Names, Parser, Summarizer};
use rungwise_host::{files, machine};
use rungwise_jvm::{CommandLine, Machine, Origin, Release, bytes};
use rungwise_model::Exit;
use rungwise_probes::jvm::{jdk_version, performance_bytes};

use super::gc;
use crate::problem::Problem;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Target {
    /// `command line`, `pid 4242 (java)`, or the log.
    pub(super) name: String,
    pub(super) line: CommandLine,
    /// A process: the JVM has accepted its options.
    pub(super) runs: bool,
    /// The JDK, where it is known.
    pub(super) version: Option<String>,
    pub(super) machine: Machine,
}

/// The kind of target is detected: a number is a process, a file that is there is a log, all else is text.
///
/// A launcher that `reads_files` puts the words of argument files in their place; that of JDK 8 does not.
pub(super) fn open(text: &str, reads_files: bool) -> anyhow::Result<Target> {
    let word = text.trim();
    if let Ok(pid) = word.parse::<u32>() {
        return process(pid);
    }
    if !word.is_empty() && !word.starts_with(['-', '@']) && !word.contains(char::is_whitespace) {
        if files::exists(Path::new(word)) {
            return log(Path::new(word));
        }
        anyhow::bail!("cannot judge '{word}': it is not a process, a file or an option");
    }
    Ok(Target {
        name: "command line".to_owned(),
        line: CommandLine::parse_with(text, &mut |file| {
            argument_file(Path::new(file)).filter(|_| reads_files)
        }),
        ..Target::default()
    })
}

/// Longest argument file that is read; they hold a few lines.
const ARGUMENTS: u64 = 1 << 20;

/// The text of an argument file, where it can be read.
fn argument_file(path: &Path) -> Option<String> {
    String::from_utf8(files::read_at_most(path, ARGUMENTS).ok()?).ok()
}

/// A header stands at the beginning; what comes after this much is no header.
const HEADER: usize = 4 << 20;

fn log(path: &Path) -> anyhow::Result<Target> {
    let bytes =
        gc::head(path, HEADER).with_context(|| format!("cannot judge {}", path.display()))?;
    let mut summarizer = Summarizer::new();
    let mut sink = |names: &Names, event: Event<'_>| summarizer.event(names, event);
    let mut parser = Parser::new();
    parser.push(&bytes, &mut sink);
    parser.finish(&mut sink);
    // JVMs that write into one file each begin with a header: what one tells is nothing of another.
    let summary = summarizer.summary();
    let mut jvms = summary.runs.iter();
    let flagged = jvms.find_map(|run| Some((run, run.jvm.flags.as_deref()?)));
    let Some((run, flags)) = flagged else {
        let error = anyhow::anyhow!(
            "cannot judge {}: its header contains no flags; JDK 8 logs them with -Xloggc, later JDKs with -Xlog:gc+init or \
             -Xlog:arguments; pass the options as text",
            path.display()
        );
        return Err(Problem::with(Exit::Precondition, error));
    };
    let name = path.display();
    Ok(Target {
        name: match summary.runs.len() {
            1 => name.to_string(),
            _ => format!("{name} (jvm/{} of several)", run.number),
        },
        line: CommandLine::parse_printed(flags, Origin::Log),
        runs: false,
        version: run.jvm.version.clone(),
        machine: Machine {
            memory: run.jvm.memory_bytes,
            cpus: run.jvm.cpus.map(|cpus| cpus as f64),
            ..Machine::default()
        },
    })
}

fn process(pid: u32) -> anyhow::Result<Target> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let read = |name: &str| files::read(&proc.join(name));
    let command = read("cmdline")
        .with_context(|| format!("cannot judge process {pid}"))
        .map_err(|error| Problem::with(Exit::Precondition, error))?;
    let maps = read("maps")
        .with_context(|| {
            format!("cannot determine whether process {pid} is a JVM; run as its user or as root")
        })
        .map_err(|error| Problem::with(Exit::Precondition, error))?;
    let maps = String::from_utf8_lossy(&maps);
    let library = maps.lines().find_map(|line| {
        let at = line.find('/')?;
        let path = line[at..].trim_end_matches(" (deleted)");
        path.ends_with("/libjvm.so").then(|| PathBuf::from(path))
    });
    let Some(library) = library else {
        let error = anyhow::anyhow!(
            "cannot judge process {pid}: it has no libjvm.so mapped, so it is not a JVM"
        );
        return Err(Problem::with(Exit::Precondition, error));
    };
    let words = texts(&command);
    let name = words
        .first()
        .map_or("", |first| first.rsplit('/').next().unwrap_or(first));
    let perf_data = performance_data(&proc);
    let mut target = Target {
        name: format!("pid {pid} ({name})"),
        runs: true,
        version: jdk_version(&proc.join("root"), &library)
            .or_else(|| perf_data.get("java.property.java.version").cloned()),
        machine: surroundings(&proc),
        ..Target::default()
    };
    let root = proc.join("root");
    let folder = proc.join("cwd");
    target.line = CommandLine::of_words(words, Origin::Line, &mut |file| {
        let inner = file.strip_prefix('/');
        argument_file(&inner.map_or_else(|| folder.join(file), |file| root.join(file)))
    });
    let unread = target.line.options.iter();
    let unread = unread
        .filter(|given| given.written.starts_with('@'))
        .count();
    // The JVM's own list holds what is in argument files and variables, and no quotes: it is the second choice.
    let environment = read("environ");
    if let Some(arguments) = perf_data
        .get("java.rt.vmArgs")
        .filter(|_| unread > 0 || environment.is_err())
    {
        target.line = CommandLine::parse_printed(arguments, Origin::PerfData);
        return Ok(target);
    }
    let release = target.version.as_deref().and_then(Release::parse);
    // The environment of another user's process may be closed, and the JVM may tell nothing of itself; then its variables
    // are not seen, and the options of the command line still are.
    for variable in texts(&environment.unwrap_or_default()) {
        let origins = [
            ("JDK_JAVA_OPTIONS=", Origin::LauncherOptions),
            ("JAVA_TOOL_OPTIONS=", Origin::ToolOptions),
            ("_JAVA_OPTIONS=", Origin::LateOptions),
        ];
        for (start, origin) in origins {
            let launcher = origin == Origin::LauncherOptions;
            let read = !launcher || release.is_none_or(|release| release >= Release(9));
            if let Some(text) = variable.strip_prefix(start).filter(|_| read) {
                target.line.add_variable(text, origin);
            }
        }
    }
    Ok(target)
}

/// The performance data of the JVM; nothing where it has none (`-XX:-UsePerfData`).
fn performance_data(proc: &Path) -> BTreeMap<String, String> {
    let bytes = performance_bytes(proc);
    bytes
        .and_then(|bytes| hsperfdata::texts(&bytes))
        .unwrap_or_default()
}

/// Texts with a NUL behind each.
fn texts(bytes: &[u8]) -> Vec<String> {
    let mut texts: Vec<String> = bytes
        .split(|&byte| byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    if texts.last().is_some_and(String::is_empty) {
        texts.pop();
    }
    texts
}

/// Memory, limit and CPUs as the process has them.
fn surroundings(proc: &Path) -> Machine {
    let text = |path: &Path| {
        let bytes = files::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let memory = text(Path::new("/proc/meminfo")).and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))?;
        bytes(line.trim().strip_suffix(" kB")?)?.checked_mul(1024)
    });
    let groups = text(&proc.join("cgroup")).unwrap_or_default();
    let limits = folders(&groups, "memory")
        .into_iter()
        .filter_map(|(folder, unified)| {
            let file = if unified {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            bytes(text(&folder.join(file))?.trim())
        });
    // Version 1 writes a limit that nobody set as the largest number of pages.
    let limit = limits.filter(|limit| *limit < 1 << 60).min();
    let quotas = folders(&groups, "cpu")
        .into_iter()
        .filter_map(|(folder, unified)| {
            let read = |file: &str| text(&folder.join(file));
            let quota = if unified {
                cgroup::cpu_max(&read("cpu.max")?)
            } else {
                cgroup::cfs_quota(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
            };
            match quota? {
                Quota::Cpus(cpus) => Some(cpus),
                Quota::Unlimited => None,
            }
        });
    let allowed = text(&proc.join("status")).and_then(|text| {
        let list = text
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(machine::cpu_list(list).len() as f64)
    });
    Machine {
        memory,
        limit,
        cpus: quotas.chain(allowed).min_by(f64::total_cmp),
    }
}

/// The folders of the group in the tree of a controller and of all groups above it, since each may set a limit.
fn folders(groups: &str, controller: &str) -> Vec<(PathBuf, bool)> {
    let Some(found) = cgroup::membership(groups, controller) else {
        return Vec::new();
    };
    let tree = Path::new("/sys/fs/cgroup");
    let tree = if found.unified {
        tree.to_owned()
    } else {
        tree.join(controller)
    };
    let path = Path::new(found.path.trim_start_matches('/'));
    path.ancestors()
        .map(|group| (tree.join(group), found.unified))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_for_in_the_group_and_above_it() {
        let all = folders("0::/a/b\n", "memory");
        let paths: Vec<_> = all.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(
            paths,
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"]
        );
        let old = folders("4:memory:/a\n0::/\n", "memory");
        assert_eq!(old[0], (PathBuf::from("/sys/fs/cgroup/memory/a"), false));
        assert!(folders("", "memory").is_empty());
    }

    #[test]
    fn words_of_a_process_may_be_empty() {
        assert_eq!(
            texts(b"java\0-Da=\0\0-Xmx1g\0"),
            ["java", "-Da=", "", "-Xmx1g"]
        );
        assert!(texts(b"").is_empty());
    }

    #[test]
    fn this_process_is_no_jvm() {
        let error = process(std::process::id()).unwrap_err();
        assert_eq!(crate::problem::exit_of(&error), Exit::Precondition);
        assert!(error.to_string().contains("not a JVM"), "{error}");
    }

    #[test]
    fn text_is_an_option_a_pid_or_a_file_and_nothing_else() {
        assert_eq!(
            open("-Xmx1g -XX:+UseG1GC", true)
                .unwrap()
                .line
                .options
                .len(),
            2
        );
        assert!(open("", true).unwrap().line.options.is_empty());
        assert!(
            open("no-such-file", true)
                .unwrap_err()
                .to_string()
                .contains("no-such-file")
        );
    }
}
