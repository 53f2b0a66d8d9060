//! Takes thread dumps of a running JVM through its attach listener, and the CPU time of its threads from the kernel beside each.
//!
//! `Thread.print` stops the application while it prints. With `-l` the JVM walks its whole heap as well, because it looks for the owners
//! of `ReentrantLock`s there (`ConcurrentLocksDump::dump_at_safepoint`): on a heap of tens of GB that takes seconds. So `-l` is left
//! out where the walk would take longer than the longest pause allowed, by the size of the heap at first and by what a dump took later.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rungwise_formats::{heap_info, hsperfdata, task};
use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::live::Live;
use rungwise_host::{Host as _, clock};
use rungwise_model::gc::Account;
use rungwise_model::threads::{Cost, Taken};
use rungwise_probes::jvm::performance_bytes;
use rungwise_threaddump::{Dump, Parser, Task};

/// A dump of thousands of threads takes tens of milliseconds; a safepoint may be late on a busy machine.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of heap in use that a JVM walks in a second, at least, if they are small objects: docs/jvm-threads.md has what was measured.
const WALKED_PER_S: f64 = 150e6;
/// CPU time in `/proc` is in ticks of 10 ms.
const TICK_S: f64 = 0.01;

/// A JVM whose dumps are taken.
#[derive(Debug)]
pub(crate) struct Taker {
    jvm: Jvm,
    proc: PathBuf,
    longest: Duration,
    /// `-l`; unknown before the first dump.
    owners: Option<bool>,
    /// `-e`; JDK 8 does not know it.
    extended: bool,
    /// The JVM runs virtual threads, and writes files of all.
    files: bool,
    shots: Vec<Shot>,
    /// How many there were before the last dump.
    before: usize,
    /// Why dumps lack the owners of `ReentrantLock`s.
    ownerless: Option<String>,
    notes: Vec<String>,
}

/// A dump.
#[derive(Debug)]
struct Shot {
    name: String,
    text: Vec<u8>,
    at: Instant,
    /// Of a printed dump.
    tasks: Option<Vec<Task>>,
    cost: Cost,
}

/// The dumps of a JVM, read.
#[derive(Debug)]
pub(crate) struct Shots {
    pub(crate) dumps: Vec<Dump>,
    pub(crate) account: Account,
    pub(crate) taken: Taken,
    pub(crate) notes: Vec<String>,
    /// Why they lack the owners of `ReentrantLock`s; of interest where a thread waits for one.
    pub(crate) ownerless: Option<String>,
}

impl Taker {
    /// A JVM that takes commands. `longest` is how long the search for lock owners may stop it.
    pub(crate) fn open(pid: u32, longest: Duration) -> Result<Self, Error> {
        Ok(Self {
            jvm: Jvm::open(pid)?,
            proc: PathBuf::from(format!("/proc/{pid}")),
            longest,
            owners: None,
            extended: true,
            files: false,
            shots: Vec::new(),
            before: 0,
            ownerless: None,
            notes: Vec::new(),
        })
    }

    /// Printed dumps so far.
    pub(crate) fn count(&self) -> usize {
        self.shots
            .iter()
            .filter(|shot| shot.tasks.is_some())
            .count()
    }

    /// Takes the next dump, and a file with virtual threads where the JVM runs some.
    pub(crate) fn take(&mut self) -> Result<(), Error> {
        self.before = self.shots.len();
        let owners = match self.owners {
            Some(owners) => owners,
            None => self.may_walk()?,
        };
        self.owners = Some(owners);
        self.print(owners)?;
        if self.files {
            self.write();
        }
        Ok(())
    }

    /// Name and text of each file of the last dump.
    pub(crate) fn last(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let new = self.shots[self.before..].iter();
        new.map(|shot| (&*shot.name, &*shot.text))
    }

    /// Whether the JVM walks its heap within the longest pause.
    fn may_walk(&mut self) -> Result<bool, Error> {
        let used = match self.jvm.command("GC.heap_info", ANSWERS_WITHIN) {
            Ok(text) => heap_info::parse(&text).map(|used| used.bytes),
            // JDK 8 has no such command.
            Err(Error::Refused { .. }) => None,
            Err(error) => return Err(error),
        };
        // What is resident is never less than what is in use, but for pages that were swapped out.
        let Some(bytes) = used.or_else(|| self.resident()) else {
            self.ownerless = Some(
                "the size of the heap is unknown, so the owners of ReentrantLocks were not looked for; jvm threads --max-pause 1h does"
                    .to_owned(),
            );
            return Ok(false);
        };
        let seconds = bytes as f64 / WALKED_PER_S;
        if seconds > self.longest.as_secs_f64() {
            self.ownerless = Some(format!(
                "the owners of ReentrantLocks were not looked for (Thread.print -l): the JVM would walk {:.1} GB of heap and might stop for \
                 {seconds:.1} s; jvm threads --max-pause {:.0}s allows it",
                bytes as f64 / 1e9,
                seconds.ceil()
            ));
        }
        Ok(seconds <= self.longest.as_secs_f64())
    }

    /// `VmRSS`, bytes.
    fn resident(&self) -> Option<u64> {
        let status = Live.text(&self.proc.join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    }

    fn print(&mut self, owners: bool) -> Result<(), Error> {
        let mut command = "Thread.print".to_owned();
        for (option, is_on) in [(" -e", self.extended), (" -l", owners)] {
            if is_on {
                command += option;
            }
        }
        let tasks = self.tasks();
        let before = self.stopped();
        let at = clock::now();
        let answer = match self.jvm.command(&command, ANSWERS_WITHIN) {
            Err(Error::Refused { .. }) if self.extended => {
                self.extended = false;
                return self.print(owners);
            }
            answer => answer?,
        };
        let answered = at.elapsed();
        let stopped_ms = self.stopped().zip(before).map(|(now, then)| now - then);
        let took = stopped_ms.unwrap_or(answered.as_secs_f64() * 1e3);
        if owners && took > self.longest.as_secs_f64() * 1e3 {
            self.owners = Some(false);
            self.ownerless = Some(format!(
                "a dump with the owners of ReentrantLocks stopped the JVM for {took:.0} ms, longer than --max-pause allows, so later dumps lack them"
            ));
        }
        // Lines that only a JVM with virtual threads prints.
        self.files |=
            answer.contains("\"VirtualThread-un") || answer.contains("Carrying virtual thread #");
        let number = self.count() + 1;
        self.shots.push(Shot {
            name: format!("dump-{number}.txt"),
            at,
            tasks: Some(tasks),
            cost: Cost {
                command,
                answered_ms: answered.as_secs_f64() * 1e3,
                stopped_ms,
                bytes: answer.len() as u64,
                ..Cost::default()
            },
            text: answer.into_bytes(),
        });
        Ok(())
    }

    /// A file with all virtual threads. The JVM writes one thread after the other and stops none for long.
    fn write(&mut self) {
        let at = clock::now();
        let written = self.jvm.command_to_file(
            |path| format!("Thread.dump_to_file -format=json {path}"),
            ANSWERS_WITHIN,
        );
        let text = match written {
            Ok(text) => text,
            Err(error) => {
                self.files = false;
                self.notes.push(format!(
                    "virtual threads that are not mounted are missing: {error}"
                ));
                return;
            }
        };
        self.shots.push(Shot {
            name: format!("virtual-{}.json", self.count()),
            at,
            tasks: None,
            cost: Cost {
                command: "Thread.dump_to_file -format=json".to_owned(),
                answered_ms: at.elapsed().as_secs_f64() * 1e3,
                // It is no safepoint operation.
                stopped_ms: None,
                bytes: text.len() as u64,
                ..Cost::default()
            },
            text,
        });
    }

    /// Time that the application was stopped at safepoints since the start of the JVM, ms, by its own count.
    fn stopped(&self) -> Option<f64> {
        let numbers = hsperfdata::numbers(&performance_bytes(&self.proc)?)?;
        let ticks = *numbers.get("sun.rt.safepointTime")?;
        let per_s = *numbers.get("sun.os.hrt.frequency")?;
        (per_s > 0).then(|| ticks as f64 / per_s as f64 * 1e3)
    }

    /// The threads as the kernel has them. One that ends meanwhile is left out.
    fn tasks(&self) -> Vec<Task> {
        let folder = self.proc.join("task");
        let same = self.jvm.inner_pid() == self.jvm.pid();
        let numbers = Live.list(&folder).unwrap_or_default();
        numbers
            .iter()
            .filter_map(|number| thread(&folder.join(number), number, same))
            .collect()
    }

    /// The dumps, read, and what they cost.
    pub(crate) fn finish(self) -> Shots {
        let mut parser = Parser::new();
        for shot in &self.shots {
            parser.begin(&shot.name);
            parser.push(&shot.text);
        }
        let (mut dumps, account) = parser.finish();
        let mut taken = Taken {
            pid: u64::from(self.jvm.pid()),
            ..Taken::default()
        };
        let start = self.shots.first().map(|shot| shot.at);
        for shot in self.shots {
            let at_s = start.map_or(0.0, |start| (shot.at - start).as_secs_f64());
            if let Some(tasks) = shot.tasks {
                let dump = dumps.iter_mut().find(|dump| *dump.file == *shot.name);
                if let Some(dump) = dump {
                    dump.join(at_s, tasks);
                    dump.pid = Some(taken.pid);
                }
                taken.span_s = at_s;
            }
            if !taken.commands.contains(&shot.cost.command) {
                taken.commands.push(shot.cost.command.clone());
            }
            taken.dumps.push(Cost { at_s, ..shot.cost });
        }
        let mut notes = self.notes;
        if !self.extended {
            notes.push(
                "this JDK prints no CPU times in its dumps; they are the kernel's".to_owned(),
            );
        }
        Shots {
            dumps,
            account,
            taken,
            notes,
            ownerless: self.ownerless,
        }
    }
}

/// One thread of the kernel; `same` says that the JVM is in this pid namespace.
fn thread(folder: &Path, number: &str, same: bool) -> Option<Task> {
    let text = |name: &str| Live.text(&folder.join(name)).ok();
    let stat = text("stat")?;
    let stat = task::stat(&stat)?;
    let native = if same {
        number.parse().ok()?
    } else {
        // The last of the numbers is that in the innermost namespace.
        let status = text("status")?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_whitespace().next_back()?.parse().ok()?
    };
    let run = text("schedstat").and_then(|text| task::schedstat(&text));
    let ticks = (stat.user_ticks + stat.system_ticks) as f64 * TICK_S;
    Some(Task {
        native,
        name: stat.name.to_owned(),
        cpu_s: run.map_or(ticks, |run| run.ran_ns as f64 / 1e9),
        system_s: stat.system_ticks as f64 * TICK_S,
        queued_s: run.map(|run| run.waited_ns as f64 / 1e9),
    })
}
