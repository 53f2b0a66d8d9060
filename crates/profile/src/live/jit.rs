//! Perf maps of processes: written by the process itself (Node, Python), or by a JVM that is asked for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::live::Live;
use rungwise_host::{Host as _, files};

use super::perf_map::PerfMap;

/// How long a JVM may take to write its map: some milliseconds for 10,000 methods, after its next safepoint.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of a map that a process wrote itself.
const LONGEST: usize = 256 << 20;
/// JVMs that are asked; each takes its time.
const MOST_JVMS: usize = 16;

/// Code of one process that was made at run time.
#[derive(Debug, Default)]
pub(super) struct Code {
    map: PerfMap,
    is_jvm: bool,
}

impl Code {
    /// The name of the function at an address, and whether it is Java.
    pub(super) fn function(&self, address: u64) -> Option<(String, bool)> {
        let name = self.map.function(address)?;
        if self.is_jvm
            && let Some(method) = rungwise_stacks::java_method(name)
        {
            return Some((method, true));
        }
        // `operator()` of V8, `~` and `*` are parts of its names.
        Some((name.to_owned(), false))
    }
}

/// The maps of these processes, and what is to be known of them.
pub(super) fn collect(
    processes: impl IntoIterator<Item = u32>,
) -> (BTreeMap<u32, Code>, Vec<String>) {
    let mut maps = BTreeMap::new();
    let mut notes = Vec::new();
    let mut jvms = 0;
    for pid in processes {
        let code = match Jvm::open(pid) {
            Ok(_) if jvms >= MOST_JVMS => {
                notes.push(format!("Java frames of pid {pid} are unknown: only {MOST_JVMS} JVMs are asked for their methods"));
                None
            }
            Ok(jvm) => {
                jvms += 1;
                of_jvm(&jvm, &mut notes)
            }
            Err(Error::NoProcess { .. }) => {
                notes.push(format!("run-time compiled code of pid {pid} is unknown: the process ended before its methods were asked for"));
                None
            }
            Err(Error::NotJvm { .. } | Error::NativeImage { .. } | Error::OpenJ9 { .. }) => {
                of_process(pid, &mut notes)
            }
            Err(error) => {
                notes.push(format!("Java frames of pid {pid} are unknown: {error}"));
                None
            }
        };
        maps.extend(code.map(|code| (pid, code)));
    }
    (maps, notes)
}

fn of_jvm(jvm: &Jvm, notes: &mut Vec<String>) -> Option<Code> {
    let pid = jvm.pid();
    let code = match jvm.perf_map(ANSWERS_WITHIN) {
        Ok(written) => {
            let map = PerfMap::parse(&written.bytes);
            if written.is_old {
                notes.push(format!(
                    "Java frames of pid {pid} are named by the file /tmp/perf-{}.map that existed already: methods compiled after it was \
                     written are unknown; remove it, and the JVM is asked for a new one",
                    jvm.inner_pid()
                ));
            }
            Some(Code { map, is_jvm: true })
        }
        Err(Error::Refused { .. }) => {
            notes.push(format!(
                "Java frames of pid {pid} are unknown: its JVM is older than JDK 17 and cannot list its compiled methods \
                 (Compiler.perfmap); record it with async-profiler and read that file: rungwise profile FILE"
            ));
            return None;
        }
        Err(error) => {
            notes.push(format!("Java frames of pid {pid} are unknown: {error}"));
            return None;
        }
    };
    // The flags that differ from their defaults; the default is off.
    if let Ok(flags) = jvm.command("VM.flags", ANSWERS_WITHIN)
        && !flags.contains("+PreserveFramePointer")
    {
        notes.push(format!(
            "Java stacks of pid {pid} lack callers: the JVM runs without -XX:+PreserveFramePointer; start it with that option for whole stacks"
        ));
    }
    code
}

/// A map that the process wrote into its own `/tmp`, under its number in its namespace.
fn of_process(pid: u32, notes: &mut Vec<String>) -> Option<Code> {
    let proc = format!("/proc/{pid}");
    let status = Live.text(Path::new(&proc).join("status").as_ref()).ok()?;
    let last = |key: &str, place: usize| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let word = if place == usize::MAX {
            words.last()
        } else {
            words.get(place)
        };
        word?.parse::<u32>().ok()
    };
    let (inner, user) = (last("NSpid:", usize::MAX).unwrap_or(pid), last("Uid:", 1)?);
    let path = Path::new(&proc)
        .join("root/tmp")
        .join(format!("perf-{inner}.map"));
    if !files::is_plain(&path) {
        return None;
    }
    match files::read_of_user(&path, user, LONGEST) {
        Ok(bytes) => Some(Code {
            map: PerfMap::parse(&bytes),
            is_jvm: false,
        }),
        Err(error) => {
            notes.push(format!("run-time compiled code of pid {pid} is unknown: cannot read its /tmp/perf-{inner}.map: {error}"));
            None
        }
    }
}
