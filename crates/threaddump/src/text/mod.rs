//! Dumps in lines: what HotSpot prints, and the plain form of `Thread.dump_to_file`.
//!
//! Each line is judged by itself and by what came before it, so that lines of an application between them do no harm. A stack
//! trace of the application looks like the stack of a thread; so where a line that is not of the dump names an exception,
//! the thread is over.

mod header;
mod locks;

use std::collections::HashSet;
use std::sync::Arc;

use rungwise_model::threads::Form;

use crate::classes;
use crate::dump::{Dump, Hold, How, Member, Reported, State, Thread, Wait};
use crate::parser::Read;
use locks::Sign;

/// What begins lines that say nothing that is asked for: heap, histogram, counters, the list of threads.
const NOISE: &[&str] = &[
    "Threads class SMR info:",
    "_java_thread_list=",
    "_to_delete_list",
    "next-> ",
    "0x",
    "}",
    "====",
    "----",
    // A thread that just begins has no name yet.
    "os_prio=",
    "No compile task",
    "Compiling:",
    "JNI global ref",
    "Heap",
    "PSYoungGen",
    "PSOldGen",
    "PSPermGen",
    "ParOldGen",
    "eden space",
    "from space",
    "to   space",
    "to space",
    "object space",
    "the space",
    "ro space",
    "rw space",
    "class space",
    "region size",
    "def new generation",
    "par new generation",
    "tenured generation",
    "concurrent mark-sweep",
    "concurrent-mark-sweep",
    "compacting perm gen",
    "garbage-first heap",
    "garbage-first young",
    "Metaspace ",
    "Shenandoah Heap",
    "ZHeap",
    "num     #instances",
    "num   #instances",
    "Total ",
    "No shared spaces configured",
];

/// What reads the lines of a file.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    dumps: Vec<Dump>,
    /// Lines before a dump that are about it.
    preamble: Preamble,
    place: Place,
    /// Index of the thread whose name came last, within the last dump.
    named: Option<usize>,
    /// Index of the one whose stack is being read: that one, or the virtual thread which it carries.
    current: Option<usize>,
    /// State by the words behind the name.
    hint: Option<State>,
    /// The line of the name, until the first frame.
    header: String,
    strings: HashSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct Preamble {
    line: Option<u64>,
    pid: Option<u64>,
    taken: Option<String>,
    version: Option<String>,
}

/// Where in a dump the last line was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before, between and behind dumps.
    #[default]
    Outside,
    Stacks,
    Synchronizers,
    /// In a report of a deadlock: who waits for what.
    Cycle,
    /// The stacks of its threads, which stand in the dump already.
    CycleStacks,
}

impl Reader {
    /// The dumps of the file, at its end.
    pub(crate) fn finish(&mut self) -> Vec<Dump> {
        std::mem::take(self).dumps
    }

    pub(crate) fn line(&mut self, number: u64, line: &str) -> Read {
        let line = bare(line);
        let text = line.trim();
        if text.is_empty() {
            return Read::Ignored;
        }
        if let Some(title) = title(text) {
            self.open(number, Form::Print, version(title));
            return Read::Understood;
        }
        let found = self
            .report(number, text)
            .or_else(|| self.header(number, text))
            .or_else(|| self.of_thread(number, line, text))
            .or_else(|| self.preface(number, text));
        if let Some(read) = found {
            return read;
        }
        if NOISE.iter().any(|words| text.starts_with(words)) || is_of_histogram(text) {
            self.current = self.current.filter(|_| !text.starts_with("JNI global"));
            return Read::Ignored;
        }
        if text.contains("Exception") || text.contains("Error") {
            self.current = None;
        }
        Read::Unknown
    }

    /// A dump begins.
    fn open(&mut self, number: u64, form: Form, version: Option<String>) {
        let preamble = std::mem::take(&mut self.preamble);
        self.dumps.push(Dump {
            line: preamble.line.unwrap_or(number),
            form,
            pid: preamble.pid,
            taken: preamble.taken,
            version: version.or(preamble.version),
            ..Dump::default()
        });
        (self.named, self.current) = (None, None);
        self.place = Place::Stacks;
    }

    /// The dump that is being read.
    fn dump(&mut self) -> Option<&mut Dump> {
        self.dumps.last_mut()
    }

    fn thread(&mut self) -> Option<&mut Thread> {
        let at = self.current?;
        self.dump()?.threads.get_mut(at)
    }

    /// Lines of a report of deadlocks.
    fn report(&mut self, number: u64, text: &str) -> Option<Read> {
        if text == "Found one Java-level deadlock:" {
            if self.dumps.is_empty() {
                self.open(number, Form::Print, None);
            }
            self.place = Place::Cycle;
            self.current = None;
            self.dump()?.reported.push(Reported {
                line: number,
                members: Vec::new(),
            });
            return Some(Read::Understood);
        }
        if text.starts_with("Found ") && text.contains("deadlock") {
            (self.place, self.current) = (Place::Stacks, None);
            return Some(Read::Understood);
        }
        match self.place {
            Place::Cycle => self.cycle(number, text),
            Place::CycleStacks
                if text.starts_with("at ") || text.starts_with("- ") || text.ends_with("\":") =>
            {
                Some(Read::Understood)
            }
            _ => None,
        }
    }

    fn cycle(&mut self, number: u64, text: &str) -> Option<Read> {
        if text.starts_with("Java stack information") {
            self.place = Place::CycleStacks;
            return Some(Read::Understood);
        }
        let name = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix("\":"));
        let members = &mut self.dump()?.reported.last_mut()?.members;
        if let Some(name) = name {
            members.push(Member {
                thread: name.into(),
                line: number,
                ..Member::default()
            });
            return Some(Read::Understood);
        }
        if text.starts_with("waiting ") {
            let member = members.last_mut()?;
            (member.lock, member.text) = (locks::reported(text), text.to_owned());
            return Some(Read::Understood);
        }
        text.contains("which is held by ")
            .then_some(Read::Understood)
    }

    /// The line that begins a thread.
    fn header(&mut self, number: u64, text: &str) -> Option<Read> {
        let (form, (mut thread, hint)) = match text.as_bytes().first()? {
            b'"' => match header::info(text, number) {
                Some(thread) => (Form::Beans, (thread, None)),
                None => (Form::Print, header::printed(text)?),
            },
            b'#' => (Form::Plain, (header::filed(text)?, None)),
            _ => return None,
        };
        let goes_on = self.dump().is_some_and(|dump| match form {
            // Nothing stands between two of them, and a thread is in each once.
            Form::Beans => {
                let again = dump.threads.iter().any(|other| other.id == thread.id);
                if dump.threads.is_empty() {
                    (dump.form, dump.has_synchronizers) = (form, true);
                }
                dump.form == form && !again
            }
            _ => dump.form == form || dump.form == Form::Beans && form == Form::Print,
        });
        if form == Form::Print && text.contains(" - Thread t@") {
            // VisualVM and Spring Boot Actuator write the title of HotSpot.
            if let Some(dump) = self.dump().filter(|_| goes_on) {
                dump.form = Form::Beans;
            }
        }
        let is_bean = form == Form::Beans;
        if !goes_on || form == Form::Plain && self.preamble.taken.is_some() {
            self.open(number, form, None);
        }
        if is_bean {
            // The beans name the owner of whatever has one.
            self.dump()?.has_synchronizers = true;
        }
        thread.line = number;
        thread.name = self.string(&thread.name.clone());
        self.hint = hint;
        text.clone_into(&mut self.header);
        self.place = Place::Stacks;
        let threads = &mut self.dump()?.threads;
        threads.push(thread);
        self.named = Some(threads.len() - 1);
        self.current = self.named;
        Some(Read::Understood)
    }

    /// Lines below the name of a thread.
    fn of_thread(&mut self, number: u64, line: &str, text: &str) -> Option<Read> {
        self.named?;
        if text == "Locked ownable synchronizers:" {
            self.place = Place::Synchronizers;
            self.current = self.named;
            self.dump()?.has_synchronizers = true;
            return Some(Read::Understood);
        }
        if text.starts_with("Number of locked synchronizers = ") {
            self.place = Place::Synchronizers;
            self.current = self.named;
            self.dump()?.has_synchronizers = true;
            return Some(Read::Understood);
        }
        if text == "..." {
            return Some(Read::Ignored);
        }
        if let Some(state) = text.strip_prefix("java.lang.Thread.State: ") {
            let name = state.split_whitespace().next()?;
            self.thread()?.state = Some(State::from_name(name)?);
            return Some(Read::Understood);
        }
        if let Some(id) = text.strip_prefix("Carrying virtual thread #") {
            self.thread()?.carries = id.parse().ok();
            return Some(Read::Understood);
        }
        if let Some(id) = text.strip_prefix("Mounted virtual thread #") {
            return self.mounted(number, id.parse().ok()?);
        }
        if let Some(class) = text.strip_prefix("- waiting on the Class initialization monitor for ")
        {
            let lock = Some(classes::lock(class));
            self.thread()?.wait = Some(Wait {
                how: How::Initialise,
                lock,
                owner: None,
                line: number,
                text: text.to_owned(),
            });
            return Some(Read::Understood);
        }
        if let Some(lock) = text.strip_prefix("- ") {
            return self.lock(number, lock, text);
        }
        let is_plain = self
            .dumps
            .last()
            .is_some_and(|dump| dump.form == Form::Plain);
        let frame = match text.strip_prefix("at ") {
            Some(frame) => frame,
            // Before JDK 25 the word is missing.
            None if is_plain
                && line.starts_with("    ")
                && text.ends_with(')')
                && text.contains('(') =>
            {
                text
            }
            None => return None,
        };
        let frame = self.string(frame);
        let hint = self.hint;
        let header = std::mem::take(&mut self.header);
        let thread = self.thread()?;
        thread.state = thread.state.or(hint);
        thread.frames.push(frame);
        if thread.frames.len() == 1 {
            classes::infer_wait(thread, &header);
        }
        Some(Read::Understood)
    }

    /// The virtual thread that a carrier runs, JDK 24 and later; its stack follows.
    fn mounted(&mut self, number: u64, id: u64) -> Option<Read> {
        let thread = Thread {
            name: format!("virtual thread #{id}").into(),
            id: Some(id),
            is_virtual: true,
            line: number,
            ..Thread::default()
        };
        self.hint = None;
        let threads = &mut self.dump()?.threads;
        threads.push(thread);
        self.current = Some(threads.len() - 1);
        Some(Read::Understood)
    }

    fn lock(&mut self, number: u64, lock: &str, text: &str) -> Option<Read> {
        if self.place == Place::Synchronizers {
            if lock != "None" {
                // Spring Boot Actuator, and VisualVM.
                let locked = ["Locked ", "locked "];
                let lock = locked
                    .iter()
                    .find_map(|word| lock.strip_prefix(word))
                    .unwrap_or(lock);
                let lock = locks::object(lock).or_else(|| locks::bare_object(lock))?;
                self.thread()?.holds.push(Hold {
                    lock,
                    is_synchronizer: true,
                    line: number,
                    text: text.to_owned(),
                });
            }
            return Some(Read::Understood);
        }
        let (sign, lock, owner) = locks::of_frame(lock.trim_start())?;
        let thread = self.thread()?;
        // The line of the name has it already; the frame on top says how it waits.
        if let (Sign::Waits(How::Notify), Some(wait)) = (sign, &mut thread.wait)
            && wait.line == thread.line
        {
            let top = thread.frames.first();
            if top.is_some_and(|top| top.contains("Unsafe.park")) {
                wait.how = How::Park;
            }
            return Some(Read::Understood);
        }
        let text = text.to_owned();
        match (sign, lock) {
            // What it waits for now stands at the top of its stack.
            (Sign::Waits(how), lock) if thread.wait.is_none() => {
                thread.wait = Some(Wait {
                    how,
                    lock,
                    owner,
                    line: number,
                    text,
                });
            }
            (Sign::Holds, Some(lock)) => thread.holds.push(Hold {
                lock,
                is_synchronizer: false,
                line: number,
                text,
            }),
            _ => {}
        }
        Some(Read::Understood)
    }

    /// Lines before a dump: the process id of `jcmd`, the time, the version.
    fn preface(&mut self, number: u64, text: &str) -> Option<Read> {
        let pid = text.strip_suffix(':').unwrap_or(text);
        if pid.len() <= 10 && pid.bytes().all(|byte| byte.is_ascii_digit()) && !pid.is_empty() {
            self.preamble = Preamble {
                line: Some(number),
                pid: pid.parse().ok(),
                ..Preamble::default()
            };
            return Some(Read::Understood);
        }
        if is_time(text) {
            self.preamble.line = self.preamble.line.or(Some(number));
            self.preamble.taken = Some(text.to_owned());
            (self.named, self.current) = (None, None);
            return Some(Read::Understood);
        }
        // `25.0.3+9-LTS` behind the time.
        let is_version = text.contains('+') && !text.contains(' ') && text.len() < 40;
        if is_version && self.preamble.taken.is_some() && text.as_bytes()[0].is_ascii_digit() {
            self.preamble.version = Some(text.to_owned());
            return Some(Read::Understood);
        }
        None
    }

    /// The same text once.
    fn string(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.strings.insert(Arc::clone(&text));
        text
    }
}

/// The line without what a container runtime puts before it: `2026-11-21T11:39:33.1Z stdout F ` (Kubernetes, CRI logging).
fn bare(line: &str) -> &str {
    let mut parts = line.splitn(4, ' ');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(time), Some("stdout" | "stderr"), Some("F" | "P"), Some(rest))
            if time.contains('T') =>
        {
            rest
        }
        _ => line,
    }
}

/// What stands behind `Full thread dump`.
fn title(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Full thread dump ")?;
    rest.strip_suffix(':')
}

/// The version in `OpenJDK 64-Bit Server VM (25.0.3+9-LTS mixed mode, sharing)`; other makers print more.
fn version(title: &str) -> Option<String> {
    let (_, build) = title.rsplit_once('(')?;
    let mut words = build.trim_end_matches(')').split_whitespace();
    let is_number =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains(['.', '+']);
    let word = words.find(is_number)?;
    Some(of_hotspot(word).unwrap_or_else(|| word.to_owned()))
}

/// The JDK of a version that HotSpot counted by itself, as it did before JDK 9: `25.504-b01` is of JDK 8, update 504.
fn of_hotspot(word: &str) -> Option<String> {
    let (number, build) = word.split_once("-b")?;
    let (major, update) = number.split_once('.')?;
    build.parse::<u32>().ok()?;
    let update: u32 = update.parse().ok()?;
    match major {
        "25" if update > 0 => Some(format!("1.8.0_{update:02}")),
        "25" => Some("1.8.0".to_owned()),
        // Until update 45 it counted otherwise.
        "24" if update >= 45 => Some(format!("1.7.0_{update:02}")),
        "21" | "22" | "23" | "24" => Some("1.7.0".to_owned()),
        "19" | "20" => Some("1.6.0".to_owned()),
        _ => None,
    }
}

/// `2026-11-21 11:39:33`, `2026-11-21T11:50:07.126980786Z`.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit();
    (19..=32).contains(&bytes.len())
        && [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
            .into_iter()
            .all(digit)
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && matches!(bytes[10], b' ' | b'T')
        && bytes[13] == b':'
        && bytes[16] == b':'
        && bytes[19..]
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'Z'))
}

/// `   1:       5121      573168  [C`.
fn is_of_histogram(text: &str) -> bool {
    text.split_once(':').is_some_and(|(rank, rest)| {
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let mut words = rest.split_whitespace();
        is_number(rank)
            && words.next().is_some_and(is_number)
            && words.next().is_some_and(is_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "2026-11-21 11:39:33\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):\n\n\"a\" #1 tid=0x1\n   \
         java.lang.Thread.State: BLOCKED (on object monitor)\n\tat A.b(A.java:1)\n\t- waiting to lock <0x1> (a X)\n\n   \
         Locked ownable synchronizers:\n\t- <0x2> (a Y)\n\nJNI global refs: 7, weak refs: 0\n";

    fn read(text: &str) -> (Vec<Dump>, usize) {
        let mut reader = Reader::default();
        let unknown = text
            .lines()
            .zip(1..)
            .filter(|(line, number)| reader.line(*number, line) == Read::Unknown)
            .count();
        (reader.finish(), unknown)
    }

    #[test]
    fn a_dump_in_a_log_of_kubernetes_is_the_same_dump() {
        let prefix = "2026-11-21T11:39:33.123456789Z stdout F ";
        let lines: Vec<String> = DUMP.lines().map(|line| format!("{prefix}{line}")).collect();
        let prefixed = lines.join("\n");
        assert_eq!(read(&prefixed), read(DUMP));
        let (dumps, unknown) = read(DUMP);
        assert_eq!((dumps.len(), unknown), (1, 0));
        assert_eq!(dumps[0].version.as_deref(), Some("17.0.15+6"));
        assert_eq!(dumps[0].line, 1);
    }

    #[test]
    fn a_stack_trace_of_the_application_is_not_of_the_thread_before() {
        let cut = DUMP.split("\n   Locked").next().unwrap();
        let text = format!(
            "{cut}\nINFO a line between\n\tat A.c(A.java:2)\njava.io.IOException: no\n\tat E.f(E.java:3)\n"
        );
        let (dumps, unknown) = read(&text);
        assert_eq!(dumps[0].threads[0].frames.len(), 2);
        assert_eq!(unknown, 3);
    }

    #[test]
    fn jdk_8_and_before_are_called_by_their_name() {
        let of = |build: &str| version(&format!("OpenJDK 64-Bit Server VM ({build} mixed mode)"));
        for (build, jdk) in [
            ("25.504-b01", "1.8.0_504"),
            ("25.5-b02", "1.8.0_05"),
            ("25.0-b70", "1.8.0"),
            ("24.80-b11", "1.7.0_80"),
            ("24.0-b56", "1.7.0"),
            ("23.25-b01", "1.7.0"),
            ("20.45-b01", "1.6.0"),
            ("25.0.3+9-LTS", "25.0.3+9-LTS"),
            ("25+36-LTS", "25+36-LTS"),
        ] {
            assert_eq!(of(build).as_deref(), Some(jdk), "{build}");
        }
    }

    #[test]
    fn dumps_in_one_file_are_distinguished() {
        let (dumps, _) = read(&DUMP.repeat(3));
        assert_eq!(dumps.len(), 3);
        assert_eq!(dumps[2].line, 2 * DUMP.lines().count() as u64 + 1);
        let plain = "7\n2026-11-21T11:50:07.1Z\n25.0.3+9\n\n#1 \"a\" WAITING 2026-11-21T11:50:07.2Z\n    at A.b(A.java)\n\n".repeat(2);
        let (dumps, unknown) = read(&plain);
        assert_eq!((dumps.len(), unknown, dumps[1].pid), (2, 0, Some(7)));
    }
}
