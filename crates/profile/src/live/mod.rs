//! Profiles of a running process: stacks of kernel and user code with names.
//!
//! Every CPU is interrupted at a fixed rate by its clock, and the stack is kept if it belongs to the process or to a child of it. An event per
//! thread would cost two descriptors per thread and CPU, and would miss threads that start while the events are opened. Stacks are those
//! that the kernel finds by frame pointers. Names are looked up after the window.
//! Sources: `perf_event_open(2)`, kernel/events/core.c of Linux 6.18.

mod elf;
mod jit;
mod memory;
mod names;
mod off_cpu;
mod perf_map;
mod records;
mod table;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::events::Software;
use rungwise_host::live::Live;
use rungwise_host::{Host as _, files, process};
use rungwise_model::profile::FrameKind;
use rungwise_stacks::{Stacks, Thread};

use self::memory::{Memory, Place};
use self::names::{Frame, Names, UNKNOWN};
use self::off_cpu::OffCpu;
use self::records::{FIELDS, Record, Timed};
use self::table::{Table, Task};
use crate::error::{Error, Result};
use crate::perf::{self, Ring, Seen};
use crate::tasks::Tasks;

/// How often the rings are emptied: at 999 Hz and the deepest stacks of 127 frames they are half full by then.
const EVERY: Duration = Duration::from_millis(100);
/// Children that are followed.
const MOST_CHILDREN: usize = 1 << 16;

const TRIED: &str = "sample the stacks of a process";

/// What is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Where it runs: samples, so many a second and CPU.
    Cpu {
        /// Samples per second.
        hz: u32,
    },
    /// Where it is blocked: nanoseconds.
    OffCpu,
}

/// Profiles a process and its children until stopped. Dropping it discards the result.
#[derive(Debug)]
pub struct Profiler {
    stop: Sender<()>,
    thread: JoinHandle<View>,
    /// The root folder of the process as it sees it.
    root: Option<File>,
    is_kernel_thread: bool,
    off_cpu: Option<OffCpu>,
}

/// A profile with names.
#[derive(Debug)]
pub struct Profiled {
    /// The stacks.
    pub stacks: Stacks,
    /// Samples that were taken, or waits that were summed.
    pub samples: u64,
    /// What was lost, cut or could not be named.
    pub notes: Vec<String>,
}

impl Profiler {
    /// Starts. Needs root, or `CAP_PERFMON` (for off-CPU time `CAP_BPF` as well).
    ///
    /// # Errors
    /// The kernel does not permit it, or there is no such process.
    pub fn start(pid: u32, what: What) -> Result<Self> {
        let mut rings = open(what)?;
        for ring in &mut rings {
            ring.enable().map_err(Error::system(TRIED))?;
        }
        let proc = Path::new("/proc").join(pid.to_string());
        let root = files::open_folder(&proc.join("root")).ok();
        let mut view = View::default();
        // What begins or is mapped from now on comes in records.
        let family = process::family(pid).map_err(Error::system(&format!(
            "find the children of process {pid}"
        )))?;
        let mut is_kernel_thread = false;
        for member in family.into_iter().chain([pid]) {
            view.wanted.insert(member);
            let maps = Live
                .text(format!("/proc/{member}/maps").as_ref())
                .unwrap_or_default();
            is_kernel_thread |= member == pid && maps.is_empty() && files::exists(&proc);
            view.memory.read(member, &maps);
        }
        let off_cpu = match what {
            What::Cpu { .. } => None,
            What::OffCpu => {
                let mut processes: Vec<u32> = view.wanted.iter().copied().collect();
                processes.sort_unstable();
                view.know_threads(&processes);
                Some(OffCpu::start(&processes)?)
            }
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("profiler".to_owned())
            .spawn(move || view.run(rings, &stopped))
            .map_err(Error::system(TRIED))?;
        Ok(Self {
            stop,
            thread,
            root,
            is_kernel_thread,
            off_cpu,
        })
    }

    /// Stops sampling and looks up the names. JVMs are asked for their methods.
    ///
    /// # Errors
    /// The kernel does not give what it has summed.
    pub fn stop(self) -> Result<Profiled> {
        // The thread ends also if it cannot hear.
        let _ = self.stop.send(());
        let view = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut view = view;
        let is_off_cpu = self.off_cpu.is_some();
        let mut summed = off_cpu::Summed::default();
        if let Some(off_cpu) = self.off_cpu {
            let ended = off_cpu.end(&mut view.table, &view.memory);
            summed = ended.map_err(Error::system(
                "read the off-CPU time that the kernel has summed",
            ))?;
        }
        let mut profiled = view.named(self.root.as_ref(), self.is_kernel_thread, is_off_cpu);
        if summed.waits > 0 {
            profiled.samples = summed.waits;
        }
        profiled.notes.append(&mut summed.notes);
        Ok(profiled)
    }
}

/// Opens the rings: with samples of each CPU, or with records alone.
fn open(what: What) -> Result<Vec<Ring>> {
    let cpus = perf::cpus(&Live)?;
    perf::on_each(&cpus, TRIED, |cpu| {
        let mut builder = match what {
            What::Cpu { hz } => {
                let mut builder = perf::on_cpu(Software::CPU_CLOCK, cpu);
                builder.sample_frequency(u64::from(hz));
                builder
            }
            What::OffCpu => perf::on_cpu(Software::DUMMY, cpu),
        };
        builder
            .exclude_callchain_user(false)
            .exclude_idle(true)
            .sample_id_all(true)
            .mmap(true)
            .mmap2(true)
            .comm(true)
            .comm_exec(true)
            .task(true);
        Ring::open(&mut builder, FIELDS)
    })
}

/// What has been seen.
#[derive(Debug, Default)]
struct View {
    wanted: HashSet<u32>,
    memory: Memory,
    tasks: Tasks,
    table: Table,
    lost: u64,
}

impl View {
    fn run(mut self, mut rings: Vec<Ring>, stopped: &Receiver<()>) -> Self {
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            self.drain(&mut rings);
        }
        for ring in &mut rings {
            // Closing it ends it too; this only makes the end the same for all.
            let _ = ring.disable();
        }
        self.drain(&mut rings);
        self
    }

    /// Learns the names of threads that may end before they are asked for.
    fn know_threads(&mut self, processes: &[u32]) {
        for process in processes {
            let folder = format!("/proc/{process}/task");
            for thread in files::list(folder.as_ref()).unwrap_or_default() {
                if let Ok(thread) = thread.parse() {
                    self.tasks.name(*process, thread);
                }
            }
        }
    }

    fn drain(&mut self, rings: &mut [Ring]) {
        let mut records: Vec<Timed> = Vec::new();
        for ring in rings {
            ring.drain_raw(|kind, misc, body| records.extend(records::parse(kind, misc, body)));
        }
        // Each CPU has a ring of its own, and processes move.
        records.sort_by_key(|record| record.time);
        for Timed { record, .. } in records {
            self.see(record);
        }
    }

    fn see(&mut self, record: Record) {
        match record {
            Record::Sample {
                process,
                thread,
                chain,
                ..
            } => {
                if self.wanted.contains(&process) {
                    // Now, while the thread has a name.
                    self.tasks.name(process, thread);
                    let task = Task { process, thread };
                    self.table.add(task, &chain, 1, &self.memory);
                }
            }
            Record::Mapped(mapped) => {
                if self.wanted.contains(&mapped.process) {
                    self.memory.map(&mapped);
                }
            }
            Record::Named {
                process,
                thread,
                name,
                executes,
            } => {
                self.tasks.learn(&Seen::Named {
                    thread,
                    name: &name,
                });
                if executes && self.wanted.contains(&process) {
                    self.memory.clear(process);
                }
            }
            Record::Born {
                process,
                thread,
                parent,
                parent_thread,
            } => {
                self.tasks.learn(&Seen::Born {
                    process,
                    thread,
                    parent,
                    parent_thread,
                });
                let is_wanted = self.wanted.contains(&parent) && self.wanted.len() < MOST_CHILDREN;
                // One that was found in /proc already has its own mappings.
                if process != parent && is_wanted && self.wanted.insert(process) {
                    self.memory.fork(process, parent);
                }
            }
            Record::Lost(samples) => self.lost += samples,
        }
    }

    /// Looks up the names.
    fn named(mut self, root: Option<&File>, is_kernel_thread: bool, is_off_cpu: bool) -> Profiled {
        let mut notes = Vec::new();
        let places = self.table.places();
        let made: BTreeSet<u32> = places
            .iter()
            .filter_map(|place| match place {
                Place::Memory { process, .. } => Some(*process),
                _ => None,
            })
            .collect();
        let (code, of_code) = jit::collect(made);
        let names = Names::resolve(places, &self.memory, root, code, &mut notes);
        let frames: Vec<Frame> = places
            .iter()
            .map(|place| names.frame(*place, &self.memory, &self.table))
            .collect();
        notes.extend(of_code);
        let mut stacks = Stacks::default();
        let mut sums = Sums::default();
        let mut threads: BTreeMap<Task, Thread> = BTreeMap::new();
        for task in self.table.tasks() {
            let name = self.tasks.name(task.process, task.thread).to_owned();
            threads.insert(
                *task,
                Thread {
                    name,
                    id: u64::from(task.thread),
                },
            );
        }
        for (task, stack, weight) in self.table.stacks() {
            let stack: Vec<&Frame> = stack
                .iter()
                .filter_map(|place| frames.get(*place as usize))
                .collect();
            let stack = if is_off_cpu {
                without_scheduler(&stack)
            } else {
                &stack
            };
            sums.add(stack, weight);
            let named = stack
                .iter()
                .rev()
                .map(|frame| (frame.name.as_str(), frame.kind));
            if stack.is_empty() {
                stacks.add(
                    threads.get(&task),
                    [("[no stack]", FrameKind::Native)],
                    weight,
                );
            } else {
                stacks.add(threads.get(&task), named, weight);
            }
        }
        if is_kernel_thread {
            notes.push("the process is a kernel thread: it has no user frames".to_owned());
        }
        if self.lost > 0 {
            notes.push(format!(
                "{} samples of this host were lost, some perhaps of this process: the buffers were full; use a lower --hz",
                self.lost
            ));
        }
        if self.table.left_out > 0 {
            notes.push(format!(
                "{:.1} % of the weight is missing: the process has more distinct stacks than fit in memory; use a shorter --for",
                100.0 * self.table.left_out as f64 / (self.table.left_out + stacks.total()).max(1) as f64
            ));
        }
        notes.extend(sums.notes());
        Profiled {
            stacks,
            samples: self.table.added,
            notes,
        }
    }
}

/// A stack, leaf first, without the functions of the scheduler in which all waits end.
fn without_scheduler<'s, 'f>(stack: &'s [&'f Frame]) -> &'s [&'f Frame] {
    let is_scheduler = |frame: &&Frame| {
        let name = frame.name.as_str();
        frame.kind == FrameKind::Kernel
            && (["__schedule", "schedule", "io_schedule"].contains(&name)
                || name.starts_with("schedule_")
                || name.starts_with("io_schedule_")
                || name.starts_with("__traceiter_"))
    };
    let skipped = stack.iter().take_while(|frame| is_scheduler(frame)).count();
    // A kernel thread may do nothing else.
    if skipped < stack.len() {
        &stack[skipped..]
    } else {
        stack
    }
}

/// How complete the stacks are.
#[derive(Debug, Default)]
struct Sums {
    all: u64,
    /// Weight of stacks whose innermost function is unknown, by what stands for it.
    unknown: BTreeMap<String, u64>,
    /// Weight of stacks with user frames that do not reach back to where their thread began.
    cut: u64,
}

/// Shares below this are not worth a note.
const WORTH: f64 = 0.01;

impl Sums {
    /// `stack` is leaf first.
    fn add(&mut self, stack: &[&Frame], weight: u64) {
        self.all += weight;
        if let Some(leaf) = stack.first().filter(|leaf| !leaf.is_known) {
            *self.unknown.entry(leaf.name.clone()).or_default() += weight;
        }
        // What helps a JVM is said where its methods are asked for.
        let root = stack
            .last()
            .filter(|root| !matches!(root.kind, FrameKind::Kernel | FrameKind::Java));
        if root.is_some_and(|root| !is_beginning(&root.name)) {
            self.cut += weight;
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let share = |weight: u64| weight as f64 / self.all.max(1) as f64;
        let unknown = self.unknown.values().sum();
        if share(unknown) >= WORTH {
            let most = self.unknown.iter().max_by_key(|(_, weight)| **weight);
            let most = most.map_or("", |(name, _)| name);
            let remedy = if most == UNKNOWN {
                "memory of no file: code that was compiled at run time, or an address that is none"
            } else {
                "install its debug symbols"
            };
            notes.push(format!(
                "{:.0} % of the stacks end in a function without a name, most of them in {most}: {remedy}",
                100.0 * share(unknown)
            ));
        }
        if share(self.cut) >= WORTH {
            notes.push(format!(
                "{:.0} % of the stacks lack callers: they were followed by frame pointers and end before the beginning of their thread; build \
                 with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes)",
                100.0 * share(self.cut)
            ));
        }
        notes
    }
}

/// Whether a thread begins in a function of this name. In the C library the function may have no name.
fn is_beginning(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "_start",
        "_dl_start",
        "_dl_start_user",
        "start_thread",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "thread_start",
        "__libc_start_main",
        "__libc_start_call_main",
        "__libc_start_main_impl",
        "main",
    ];
    const FILES: &[&str] = &[
        "[libc.so",
        "[libc-",
        "[libpthread",
        "[ld-",
        "__libc_start_main",
        "runtime.goexit",
        "runtime.mstart",
        "runtime.rt0_go",
    ];
    NAMES.contains(&name) || FILES.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, is_known: bool) -> Frame {
        Frame {
            name: name.to_owned(),
            kind: FrameKind::Native,
            is_known,
        }
    }

    #[test]
    fn stacks_that_lack_callers_or_names_are_said() {
        let mut sums = Sums::default();
        let (main, lib, add) = (
            frame("main", true),
            frame("[libx.so]", false),
            frame("add", true),
        );
        sums.add(&[&add, &main], 70);
        sums.add(&[&lib, &main], 20);
        sums.add(&[&add], 10);
        let notes = sums.notes().join("\n");
        assert!(
            notes.contains(
                "20 % of the stacks end in a function without a name, most of them in [libx.so]"
            ),
            "{notes}"
        );
        assert!(notes.contains("10 % of the stacks lack callers"), "{notes}");
    }

    #[test]
    fn a_wait_ends_in_the_function_that_waits_and_not_in_the_scheduler() {
        let kernel = |name: &str| Frame {
            kind: FrameKind::Kernel,
            ..frame(name, true)
        };
        let [inner, outer, futex] = ["__schedule", "schedule", "futex_wait"].map(kernel);
        let names = |stack: &[&Frame]| -> Vec<String> {
            let stack = without_scheduler(stack);
            stack.iter().map(|frame| frame.name.clone()).collect()
        };
        assert_eq!(names(&[&inner, &outer, &futex]), ["futex_wait"]);
        assert_eq!(names(&[&inner, &outer]), ["__schedule", "schedule"]);
    }

    #[test]
    fn a_child_has_the_code_of_its_parent_until_it_executes() {
        let mut view = View::default();
        view.wanted.insert(7);
        let mapped = |process, path: &str| {
            Record::Mapped(records::Mapped {
                process,
                begin: 0x1000,
                end: 0x2000,
                path: path.to_owned(),
                ..Default::default()
            })
        };
        let sample = |process| Record::Sample {
            process,
            thread: process,
            mode: crate::fold::Mode::User,
            chain: [0x1010].into(),
        };
        view.see(mapped(7, "/a"));
        view.see(Record::Born {
            process: 8,
            thread: 8,
            parent: 7,
            parent_thread: 7,
        });
        view.see(sample(8));
        view.see(Record::Named {
            process: 8,
            thread: 8,
            name: (*b"b").into(),
            executes: true,
        });
        view.see(mapped(8, "/b"));
        view.see(sample(8));
        view.see(sample(9));
        let places: Vec<Place> = view.table.places().to_vec();
        let file = |file| Place::File { file, offset: 0x10 };
        assert_eq!((places, view.table.added), (vec![file(0), file(1)], 2));
        assert_eq!(view.tasks.name(8, 8), "b");
    }
}
