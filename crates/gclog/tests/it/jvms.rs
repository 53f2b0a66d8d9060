//! Real JVMs write logs, and what we read in them is held against what their own beans have counted.
//!
//! JDK 8, 11, 17, 21 and 25 run the small service of `tests/service` under each collector they have, JDK 8 with all that it can
//! print, the others with three outputs at once, from `gc` to `gc*=trace,safepoint=trace`. `cargo xtask test` provides them as
//! `java-8` to `java-25` in PATH; one that is not there is said aloud.
//! The service allocates a fixed amount, so that the number of collections does not depend on how fast the machine is.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "runs JVMs and reads what they wrote, and says what was compared"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use rungwise_gclog::{
    Account, Concurrent, Event, Kind, Names, Parser, Pause, Stamp, Summarizer, Summary,
};
use rungwise_testkit::skipped;

/// MiB that the service allocates; some ten times its heap.
const ALLOCATES: u64 = 600;

/// A stamp in the log may differ from the clock of the program by this much; a guess for two busy CPUs.
const SLACK_MS: i64 = 10;
/// A JVM that loses its CPU between the bean's clock and the log's differs now and then; what is misread differs every time.
const TRIES: usize = 3;

/// By what factor the estimate of allocation may be off.
#[derive(Clone, Copy)]
struct Bounds(f64, f64);

/// What is in the heap before a collection is what was left after the last, and what was allocated. It is room, not bytes:
/// ends of thread-local buffers count as well, with G1 those of regions behind a large array. Measured: 1.00 to 1.06.
const STOPPED: Bounds = Bounds(0.97, 1.12);
/// Heaps that are freed while the application runs: ZGC tells what was allocated meanwhile, in pages. Measured: 0.98 to 1.12.
const CONCURRENT: Bounds = Bounds(0.8, 1.3);

/// A JVM with a collector.
struct Case {
    release: u32,
    collector: &'static str,
}

impl Case {
    fn moves_concurrently(&self) -> bool {
        self.collector.contains("ZGC") || self.collector.contains("Shenandoah")
    }

    /// Concurrent collectors need room for what is allocated meanwhile.
    fn heap(&self) -> &'static str {
        if self.moves_concurrently() {
            "-Xmx192m"
        } else {
            "-Xmx96m"
        }
    }

    fn bounds(&self, output: Output) -> Bounds {
        if output == Output::Least && self.moves_concurrently() {
            // Sizes at both ends of a cycle at best. Measured: 0.00 to 1.13.
            Bounds(0.0, 1.3)
        } else if self.release == 11 && self.collector == "ZGC" {
            // Its tables do not tell what was allocated from what was moved, so that the time of a cycle is left out.
            Bounds(0.02, 1.1)
        } else if self.collector.contains("Shenandoah") {
            // An evacuation copies, so that the heap does not tell what was allocated from its start to the end of the cycle.
            // Measured: 0.51 to 0.69.
            Bounds(0.05, 1.1)
        } else if self.moves_concurrently() {
            CONCURRENT
        } else {
            STOPPED
        }
    }

    /// Options that choose the collector.
    fn chooses(&self) -> Vec<&'static str> {
        match (self.collector, self.release) {
            ("Serial", _) => vec!["-XX:+UseSerialGC"],
            ("Parallel", _) => vec!["-XX:+UseParallelGC"],
            ("CMS", _) => vec!["-XX:+UseConcMarkSweepGC"],
            ("G1", _) => vec!["-XX:+UseG1GC"],
            ("ZGC", 11) => vec!["-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"],
            ("ZGC", 21) => vec!["-XX:+UseZGC", "-XX:-ZGenerational"],
            ("generational ZGC", 21) => vec!["-XX:+UseZGC", "-XX:+ZGenerational"],
            ("ZGC" | "generational ZGC", _) => vec!["-XX:+UseZGC"],
            ("Shenandoah", 11) => vec!["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"],
            ("Shenandoah", _) => vec!["-XX:+UseShenandoahGC"],
            ("generational Shenandoah", _) => {
                vec!["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"]
            }
            (other, release) => panic!("{other} on JDK {release}"),
        }
    }

    /// What the JVM logs at once, into files of their own: at least, at most, and what lies between. Before JDK 9 there is one
    /// output.
    fn outputs(&self) -> &'static [Output] {
        match self.release {
            8 => &[Output::All],
            _ => &[Output::Least, Output::Debug, Output::Trace],
        }
    }

    /// Options that choose what is logged.
    fn logs(&self, folder: &Path) -> Vec<String> {
        if self.release > 8 {
            let option = |output: &Output| {
                let (tags, log) = (output.tags(), self.log(folder, *output));
                // Without rotation, which would take away what came first.
                let log = log.display();
                format!("-Xlog:{tags}:file={log}:time,uptime,level,tags:filecount=0")
            };
            return self.outputs().iter().map(option).collect();
        }
        let mut options: Vec<String> = [
            "-XX:+PrintGCDetails",
            "-XX:+PrintGCDateStamps",
            "-XX:+PrintGCTimeStamps",
            "-XX:+PrintGCCause",
            "-XX:+PrintTenuringDistribution",
            "-XX:+PrintHeapAtGC",
            "-XX:+PrintGCApplicationStoppedTime",
            "-XX:+PrintGCApplicationConcurrentTime",
            "-XX:+PrintReferenceGC",
            "-XX:+PrintAdaptiveSizePolicy",
            "-XX:+PrintPromotionFailure",
            "-XX:PrintFLSStatistics=1",
            "-XX:PrintCMSStatistics=1",
        ]
        .map(str::to_owned)
        .to_vec();
        let log = self.log(folder, Output::All);
        options.push(format!("-Xloggc:{}", log.display()));
        options
    }

    /// Where an output goes.
    fn log(&self, folder: &Path, output: Output) -> PathBuf {
        folder.join(format!("{}-{output:?}.log", self.name()))
    }

    fn name(&self) -> String {
        format!("{}-{}", self.release, self.collector.replace(' ', "-"))
    }

    /// Whether an output tells what this bean counts.
    fn is_logged(&self, output: Output, bean: &str) -> bool {
        // Of those that move objects while the application runs `gc` alone tells cycles at best; ZGC of one generation does not
        // tell when one has begun.
        output != Output::Least
            || !self.moves_concurrently()
            || bean.ends_with(" Cycles") && self.collector != "ZGC"
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// All print flags of JDK 8.
    All,
    /// `gc` alone.
    Least,
    Debug,
    Trace,
}

impl Output {
    /// Tags of unified logging.
    fn tags(self) -> &'static str {
        match self {
            Self::All | Self::Debug => "gc*=debug,gc+age=trace,safepoint",
            Self::Least => "gc",
            Self::Trace => "gc*=trace,safepoint=trace",
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (release, collectors) in [
        (8, &["Serial", "Parallel", "CMS", "G1"][..]),
        (
            11,
            &["Serial", "Parallel", "CMS", "G1", "ZGC", "Shenandoah"],
        ),
        (17, &["Serial", "Parallel", "G1", "ZGC", "Shenandoah"]),
        (
            21,
            &[
                "Serial",
                "Parallel",
                "G1",
                "ZGC",
                "generational ZGC",
                "Shenandoah",
            ],
        ),
        (
            25,
            &[
                "Serial",
                "Parallel",
                "G1",
                "generational ZGC",
                "Shenandoah",
                "generational Shenandoah",
            ],
        ),
    ] {
        for collector in collectors {
            cases.push(Case { release, collector });
        }
    }
    cases
}

/// A program of PATH.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// What the JVM counted itself.
struct Counted {
    /// Milliseconds since 1970 before it looked at its counters, and behind.
    at: [i64; 2],
    allocated: u64,
    /// Name, collections, milliseconds.
    beans: Vec<(String, u64, u64)>,
}

impl Counted {
    fn of(printed: &str) -> Self {
        let mut counted = Self {
            at: [0; 2],
            allocated: 0,
            beans: Vec::new(),
        };
        for line in printed.lines() {
            let mut words = line.splitn(4, ' ');
            let mut number = || words.next().and_then(|word| word.parse().ok());
            if line.starts_with("at ") {
                number();
                let at = [number().expect("a time"), number().expect("another")];
                counted.at = at.map(u64::cast_signed);
            } else if line.starts_with("allocated ") {
                number();
                counted.allocated = number().expect("bytes");
            } else if line.starts_with("collector ") {
                number();
                let (count, ms) = (number().expect("a count"), number().expect("a time"));
                let name = words.next().expect("a name").to_owned();
                counted.beans.push((name, count, ms));
            }
        }
        counted
    }
}

/// What we read in the log.
struct Logged {
    pauses: Vec<Stopped>,
    concurrent: Vec<(String, Concurrent)>,
    summary: Summary,
    account: Account,
}

/// A pause with the names of its phases.
struct Stopped {
    phases: Vec<String>,
    pause: Pause,
}

impl Logged {
    fn of(log: &[u8]) -> Self {
        let mut summarizer = Summarizer::new();
        let (mut pauses, mut concurrent) = (Vec::new(), Vec::new());
        let mut sink = |names: &Names, event: Event<'_>| {
            summarizer.event(names, event);
            match event {
                Event::Pause(pause) => {
                    let phases = pause.phases.iter();
                    pauses.push(Stopped {
                        phases: phases
                            .map(|phase| names.get(phase.name).to_owned())
                            .collect(),
                        pause: pause.clone(),
                    });
                }
                Event::Concurrent(phase) => {
                    concurrent.push((names.get(phase.name).to_owned(), *phase));
                }
                _ => {}
            }
        };
        let mut parser = Parser::new();
        parser.push(log, &mut sink);
        let account = parser.finish(&mut sink);
        let summary = summarizer.summary();
        Self {
            pauses,
            concurrent,
            summary,
            account,
        }
    }

    /// Only what had ended by then. The JVM goes on collecting while it looks at its counters and while it is halted.
    fn until(&mut self, at_ms: i64) {
        let ended = |began: Stamp, duration: Option<u64>| {
            let end = began
                .wall_ns
                .and_then(|began| began.checked_add_unsigned(duration?));
            end.is_some_and(|end| end <= at_ms * 1_000_000)
        };
        self.pauses
            .retain(|one| ended(one.pause.began, one.pause.duration_ns));
        self.concurrent
            .retain(|(_, phase)| ended(phase.began, phase.duration_ns));
    }

    fn count(&self, claim: impl Fn(&Stopped) -> bool) -> u64 {
        self.pauses.iter().filter(|one| claim(one)).count() as u64
    }

    fn cycles(&self, word: &str) -> u64 {
        let whole = self.concurrent.iter().filter(|(_, phase)| phase.cycle);
        whole
            .filter(|(name, phase)| name.starts_with(word) && !phase.aborted)
            .count() as u64
    }

    /// What we make of a bean's count.
    fn counts(&self, bean: &str) -> u64 {
        let of = |kinds: &[Kind]| self.count(|one| kinds.contains(&one.pause.kind));
        match bean {
            // A young collection of JDK 8 that turns into a full one has the name and the kind of the full one.
            "Copy" | "ParNew" => self.count(|one| {
                let young = |phase: &String| phase == "DefNew" || phase == "ParNew";
                one.pause.kind == Kind::Young || one.phases.iter().any(young)
            }),
            "PS Scavenge" | "G1 Young Generation" => of(&[Kind::Young, Kind::Mixed]),
            "MarkSweepCompact" | "PS MarkSweep" | "G1 Old Generation" => of(&[Kind::Full]),
            "G1 Concurrent GC" => of(&[Kind::Remark, Kind::Cleanup]),
            // A cycle counts when its sweep is over, also one that a full collection has cut short.
            "ConcurrentMarkSweep" => {
                let sweeps = self.concurrent.iter().filter(|(name, _)| {
                    ["CMS-concurrent-sweep", "Concurrent Sweep"].contains(&&**name)
                });
                sweeps.count() as u64 + of(&[Kind::Full])
            }
            "ZGC" | "ZGC Cycles" => self.cycles("Garbage Collection"),
            "ZGC Minor Cycles" => self.cycles("Minor Collection"),
            "ZGC Major Cycles" => self.cycles("Major Collection"),
            "ZGC Pauses" | "Shenandoah Pauses" => self.pauses.len() as u64,
            "Shenandoah Cycles" => {
                let pauses = self.pauses.iter();
                let ids: BTreeSet<_> = pauses.filter_map(|one| one.pause.id).collect();
                ids.len() as u64
            }
            other => panic!("no bean of that name is known: {other}"),
        }
    }

    /// The time of a bean that counts nothing but pauses of its own.
    fn time_ns(&self, bean: &str) -> Option<u64> {
        let kinds: &[Kind] = match bean {
            "Copy" | "ParNew" | "PS Scavenge" | "G1 Young Generation" => {
                &[Kind::Young, Kind::Mixed]
            }
            "MarkSweepCompact" | "PS MarkSweep" | "G1 Old Generation" => &[Kind::Full],
            _ => return None,
        };
        let own = self
            .pauses
            .iter()
            .filter(|one| kinds.contains(&one.pause.kind));
        own.map(|one| one.pause.duration_ns).sum()
    }
}

/// Runs the service and compares; what differs, as text.
fn run(case: &Case, java: &Path, folder: &Path) -> String {
    let name = case.name();
    let output = Command::new(java)
        .arg(case.heap())
        .args(case.chooses())
        .args(case.logs(folder))
        .args([
            "-cp",
            folder.to_str().expect("UTF-8"),
            "Service",
            &ALLOCATES.to_string(),
        ])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", java.display()));
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return format!(
            "{name}: {}\n{printed}{}\n",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let counted = Counted::of(&printed);
    let mut wrong = String::new();
    for output in case.outputs() {
        let log = std::fs::read(case.log(folder, *output)).expect("it wrote a log");
        let differs = compared(case, *output, &counted, &log);
        if !differs.is_empty() {
            let _ = write!(wrong, "{name}, {output:?}:\n{differs}");
        }
    }
    wrong
}

fn compared(case: &Case, output: Output, counted: &Counted, log: &[u8]) -> String {
    let mut wrong = String::new();
    let whole = Logged::of(log);
    let [run] = &whole.summary.runs[..] else {
        return format!("  {} runs\n", whole.summary.runs.len());
    };
    if run.jvm.collector.as_deref() != Some(case.collector) {
        let _ = writeln!(wrong, "  it says {:?}", run.jvm.collector);
    }
    // Which of its rare remarks a concurrent collector makes depends on the machine: one that nobody has seen before is said
    // and not held against us.
    let unknown = whole.account.unknown.lines;
    if unknown > 0 {
        eprintln!("not understood: {:?}", whole.account.samples);
    }
    if unknown > whole.account.lines() / 1000 {
        let _ = writeln!(wrong, "  {unknown} lines not understood");
    }
    let (mut before, mut behind) = (Logged::of(log), Logged::of(log));
    // Stamps are milliseconds, and lines are stamped when they are printed.
    before.until(counted.at[0] - SLACK_MS);
    behind.until(counted.at[1] + SLACK_MS);
    let mut beans = gathered(case, &counted.beans);
    beans.retain(|(bean, ..)| case.is_logged(output, bean));
    for (bean, count, ms) in &beans {
        let (least, most) = (before.counts(bean), behind.counts(bean));
        if !(least..=most).contains(count) {
            let _ = writeln!(wrong, "  {bean}: {count}, read {least} to {most}");
        }
        if let Some(ns) = before.time_ns(bean).filter(|_| least == most) {
            // The bean is read in milliseconds, and its clock runs for the work alone: the log's runs from before the threads'
            // buffers are closed until after the sizes are printed, which on busy CPUs was seen to be 15 % more.
            let (theirs, ours) = (*ms as f64, ns as f64 / 1e6);
            if (theirs - ours).abs() > 5.0 + *count as f64 + 0.3 * theirs {
                let _ = writeln!(wrong, "  {bean}: {theirs} ms, read {ours} ms");
            }
        }
    }
    let all: u64 = counted.beans.iter().map(|(_, count, _)| count).sum();
    if all < 5 {
        let _ = writeln!(wrong, "  {all} collections prove little");
    }
    let allocated = run.allocation.as_ref().map_or(0, |rate| rate.bytes);
    let ratio = allocated as f64 / counted.allocated as f64;
    eprintln!(
        "{} {}, {output:?}: {all} counted, allocation {ratio:.3}",
        case.release, case.collector
    );
    let Bounds(low, high) = case.bounds(output);
    if !(low..=high).contains(&ratio) {
        let _ = writeln!(
            wrong,
            "  allocated {}, read {allocated}: {ratio:.3}",
            counted.allocated
        );
    }
    wrong
}

/// Beans that count the same thing as lines do. Those of generational ZGC are said otherwise: the young part of a major
/// cycle that was asked for counts some of its pauses as minor, though the log numbers all of them with the major one; so
/// the pauses of both are added. Those of generational Shenandoah count an old cycle, which goes on under the numbers of the
/// young ones in between, by itself: their cycles are left out.
fn gathered(case: &Case, beans: &[(String, u64, u64)]) -> Vec<(String, u64, u64)> {
    let mut gathered = beans.to_vec();
    if case.collector == "generational ZGC" {
        gathered.retain(|(bean, ..)| !bean.ends_with(" Pauses"));
        let pauses = beans.iter().filter(|(bean, ..)| bean.ends_with(" Pauses"));
        let count = pauses.map(|(_, count, _)| count).sum();
        gathered.push(("ZGC Pauses".to_owned(), count, 0));
    }
    if case.collector == "generational Shenandoah" {
        gathered.retain(|(bean, ..)| bean != "Shenandoah Cycles");
    }
    gathered
}

#[test]
fn logs_of_real_jvms_tell_what_their_beans_counted() {
    let Some(javac) = program("javac") else {
        skipped("the logs of real JVMs: no javac in PATH; cargo xtask test installs one");
        return;
    };
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("jvms-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the logs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/Service.java");
    let compiled = Command::new(javac)
        .args(["--release", "8", "-nowarn", "-d"])
        .args([&folder, &source])
        .output()
        .expect("javac runs");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let mut queue = cases();
    queue.reverse();
    for release in [8, 11, 17, 21, 25] {
        if program(&format!("java-{release}")).is_none() {
            skipped(format_args!(
                "the logs of JDK {release}: no java-{release} in PATH; cargo xtask test provides one"
            ));
        }
    }
    queue.retain(|case| program(&format!("java-{}", case.release)).is_some());
    let (queue, wrong) = (Mutex::new(queue), Mutex::new(String::new()));
    // Two at a time: their collectors have threads of their own.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some(case) = next else { break };
                    let java = program(&format!("java-{}", case.release)).expect("it was there");
                    let mut differs = String::new();
                    for _ in 0..TRIES {
                        differs = run(&case, &java, &folder);
                        if differs.is_empty() {
                            break;
                        }
                    }
                    *wrong.lock().unwrap() += &differs;
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    // The logs stay where something differs.
    assert!(
        wrong.is_empty(),
        "{wrong}\nlogs are in {}",
        folder.display()
    );
    std::fs::remove_dir_all(&folder).expect("the logs are removed");
}
