//! Profiles of a running process: stacks of kernel and user code with names.
//!
//! Every CPU is interrupted at a fixed rate by its clock, and the stack is kept if it belongs to the process or to a child of it. An event per
//! thread would cost two descriptors per thread and CPU, and would miss threads that start while the events are opened. The kernel follows stacks by
//! frame pointers; those of users are followed here by unwind tables, from a copy that comes with the sample. Names are looked up after the window.
//! Sources: `perf_event_open(2)`, kernel/events/core.c of Linux 6.18.

mod blocked;
mod elf;
mod jit;
mod memory;
mod names;
mod off_cpu;
mod perf_map;
mod records;
mod table;
mod unwind;
mod waiting;
mod waits;
mod wholeness;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, Clock};
use rungwise_host::live::Live;
use rungwise_host::{Host as _, files, process};
use rungwise_model::profile::FrameKind;
use rungwise_stacks::{Stacks, Thread};

pub use self::waiting::{Named, Waiting};

use self::memory::{Memory, Place};
use self::names::{Frame, Names};
use self::off_cpu::{Blocked, OffCpu};
use self::records::{FIELDS, Record, Timed, WITH_STACK};
use self::table::{Stack, Table, Task};
use self::unwind::{End, Reader, Unwinder, User};
use self::wholeness::Sums;
use crate::error::{Error, Result};
use crate::perf::{self, Ring, Seen};
use crate::tasks::Tasks;

/// How often the rings are emptied.
const EVERY: Duration = Duration::from_millis(50);
/// Time of samples for which a ring has room, ms: rungwise may have to wait for a CPU itself.
const ROOM_MS: u64 = 500;
/// Bytes of a ring: what anybody may lock for a CPU (`perf_event_mlock_kb`), and what is enough up to 500 Hz.
const LEAST_ROOM: usize = 512 << 10;
const MOST_ROOM: usize = 8 << 20;
/// Bytes of all rings; a machine with more CPUs has smaller ones.
const ALL_ROOM: usize = 256 << 20;
/// Children that are followed.
const MOST_CHILDREN: usize = 1 << 16;

/// Threads whose stacks are read because they are blocked when the window begins, within a second.
const MOST_BLOCKED: usize = 1 << 12;

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
    is_kernel_thread: bool,
}

/// A profile with names.
#[derive(Debug)]
pub struct Profiled {
    /// The stacks.
    pub stacks: Stacks,
    /// Samples that were taken, or waits that were summed.
    pub samples: u64,
    /// How user stacks were followed, and how many are whole.
    pub followed: String,
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
        let mut view = View {
            root: files::open_folder(&proc.join("root")).ok(),
            ..View::default()
        };
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
        if what == What::OffCpu {
            let mut processes: Vec<u32> = view.wanted.iter().copied().collect();
            processes.sort_unstable();
            view.know_threads(&processes);
            let mut off_cpu = OffCpu::start(&processes, &mut rings)?;
            view.follow_blocked(off_cpu.blocked());
            view.off_cpu = Some(off_cpu);
        }
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("profiler".to_owned())
            .spawn(move || view.run(rings, &stopped))
            .map_err(Error::system(TRIED))?;
        Ok(Self {
            stop,
            thread,
            is_kernel_thread,
        })
    }

    /// Stops sampling and looks up the names. JVMs are asked for their methods.
    ///
    /// # Errors
    /// The kernel does not give what it has summed.
    pub fn stop(self) -> Result<Profiled> {
        // The thread ends also if it cannot hear.
        let _ = self.stop.send(());
        let mut view = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let off_cpu = view.off_cpu.take();
        let is_off_cpu = off_cpu.is_some();
        let mut summed = off_cpu::Summed::default();
        if let Some(off_cpu) = off_cpu {
            let ended = off_cpu.end(&mut view.table, &view.memory);
            summed = ended.map_err(Error::system(
                "read the off-CPU time that the kernel has summed",
            ))?;
        }
        let mut profiled = view.named(self.is_kernel_thread, is_off_cpu);
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
            What::OffCpu => {
                let mut builder = perf::on_cpu(Software::DUMMY, cpu);
                builder.clockid(Clock::MONOTONIC);
                builder
            }
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
        match what {
            What::Cpu { hz } => with_stacks(&mut builder, u64::from(hz), cpus.len()),
            What::OffCpu => Ring::open(&mut builder, FIELDS),
        }
    })
}

/// Opens a ring of samples with registers and stacks that has room for so many of them a second.
fn with_stacks(builder: &mut Builder<'_>, rate: u64, cpus: usize) -> io::Result<Ring> {
    if unwind::SAMPLED == 0 {
        return Ring::open(builder, FIELDS);
    }
    builder
        .sample_regs_user(unwind::SAMPLED)
        .sample_stack_user(unwind::COPIED);
    let samples = usize::try_from((rate * ROOM_MS).div_ceil(1000)).unwrap_or(usize::MAX);
    let room = samples
        .saturating_mul(records::LONGEST)
        .min(ALL_ROOM / cpus.max(1))
        .clamp(LEAST_ROOM, MOST_ROOM)
        .next_power_of_two();
    match Ring::with_room(builder, WITH_STACK, room) {
        // Without the right to lock memory.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            Ring::with_room(builder, WITH_STACK, LEAST_ROOM)
        }
        opened => opened,
    }
}

/// What has been seen.
#[derive(Debug, Default)]
struct View {
    wanted: HashSet<u32>,
    memory: Memory,
    tasks: Tasks,
    table: Table,
    unwinder: Unwinder,
    /// The root folder of the process as it sees it, kept open: it may have ended.
    root: Option<File>,
    off_cpu: Option<OffCpu>,
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
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.stop();
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
        // First: their stacks are in the rings already.
        let ended = self.off_cpu.as_ref().map(OffCpu::ended_waits);
        for ring in rings {
            ring.drain_raw(|kind, misc, body| records.extend(records::parse(kind, misc, body)));
        }
        // Each CPU has a ring of its own, and processes move.
        records.sort_by_key(|record| record.time);
        for record in records {
            self.see(record);
        }
        if let (Some(off_cpu), Some(ended)) = (&mut self.off_cpu, ended) {
            off_cpu.take(ended);
        }
    }

    fn see(&mut self, Timed { time, record }: Timed) {
        match record {
            Record::Sample {
                process,
                thread,
                chain,
                user,
                ..
            } => {
                if self.wanted.contains(&process) {
                    // Now, while the thread has a name.
                    self.tasks.name(process, thread);
                    let task = Task { process, thread };
                    let (chain, end) = self.followed(process, &chain, user.as_deref(), None);
                    match &mut self.off_cpu {
                        Some(off_cpu) => off_cpu.see(task, time, chain, end),
                        None => self.table.add(task, &chain, end, 1, &self.memory),
                    }
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
            // Of waits only the callers are missing.
            Record::Lost(samples) if self.off_cpu.is_none() => self.lost += samples,
            Record::Lost(_) => {}
        }
    }

    /// Follows the stacks of threads that are blocked already.
    fn follow_blocked<'b>(&mut self, threads: impl Iterator<Item = (u32, &'b mut Blocked)>) {
        let mut memory: Option<(u32, File)> = None;
        for (thread, blocked) in threads.take(MOST_BLOCKED) {
            let process = blocked.process;
            if memory.as_ref().is_none_or(|(of, _)| *of != process) {
                let file = files::open(format!("/proc/{process}/mem").as_ref());
                memory = file.ok().map(|file| (process, file));
            }
            let code = memory.as_ref().map(|(_, memory)| memory);
            let user = code.and_then(|code| blocked::user(process, thread, code, &|_| true));
            if let Some(user) = user {
                let (chain, end) = self.followed(process, &[], Some(&user), code);
                blocked.chain = chain;
                blocked.end = if end == End::Lost { End::Unread } else { end };
            }
        }
    }

    /// A chain of the kernel with the user's part by unwind tables, and how that ended. `code` is the memory of the process, if that may be
    /// needed.
    fn followed(
        &mut self,
        process: u32,
        chain: &[u64],
        user: Option<&User>,
        code: Option<&File>,
    ) -> (Vec<u64>, End) {
        let Some(user) = user else {
            return (chain.to_vec(), End::ByPointers);
        };
        let at = chain.iter().position(|entry| *entry == table::USER);
        let (before, by_pointers) = chain.split_at(at.unwrap_or(chain.len()));
        let (objects, root) = (&self.memory.objects, self.root.as_ref());
        let tables = |file: u32| names::tables(objects.get(file as usize)?, root);
        let code = |at: u64, bytes: &mut [u8]| {
            code.is_some_and(|code| code.read_exact_at(bytes, at).is_ok())
        };
        let reader = Reader {
            tables: &tables,
            code: &code,
        };
        let by_pointers = by_pointers.get(1..).unwrap_or_default();
        let (frames, end) = self
            .unwinder
            .follow(process, user, &self.memory, by_pointers, &reader);
        let mut whole = before.to_vec();
        whole.push(table::USER);
        whole.extend(frames);
        (whole, end)
    }

    /// Looks up the names.
    fn named(mut self, is_kernel_thread: bool, is_off_cpu: bool) -> Profiled {
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
        let names = Names::resolve(places, &self.memory, self.root.as_ref(), code, &mut notes);
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
        for Stack {
            task,
            places,
            end,
            weight,
        } in self.table.stacks()
        {
            let stack: Vec<&Frame> = places
                .iter()
                .filter_map(|place| frames.get(*place as usize))
                .collect();
            let stack = if is_off_cpu {
                without_scheduler(&stack)
            } else {
                &stack
            };
            sums.add(stack, end, weight);
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
        if self.unwinder.left_out > 0 {
            notes.push(format!(
                "callers in {} files were followed by frame pointers alone: their unwind tables found no room",
                self.unwinder.left_out
            ));
        }
        notes.extend(sums.notes());
        Profiled {
            stacks,
            samples: self.table.added,
            followed: sums.followed(),
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

#[cfg(test)]
mod tests {
    use super::*;

    use super::wholeness::tests::frame;

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
        let timed = |record| Timed { time: 0, record };
        let mapped = |process, path: &str| {
            timed(Record::Mapped(records::Mapped {
                process,
                begin: 0x1000,
                end: 0x2000,
                path: path.to_owned(),
                ..Default::default()
            }))
        };
        let sample = |process| {
            timed(Record::Sample {
                process,
                thread: process,
                mode: crate::fold::Mode::User,
                chain: [0x1010].into(),
                user: None,
            })
        };
        view.see(mapped(7, "/a"));
        view.see(timed(Record::Born {
            process: 8,
            thread: 8,
            parent: 7,
            parent_thread: 7,
        }));
        view.see(sample(8));
        view.see(timed(Record::Named {
            process: 8,
            thread: 8,
            name: (*b"b").into(),
            executes: true,
        }));
        view.see(mapped(8, "/b"));
        view.see(sample(8));
        view.see(sample(9));
        let places: Vec<Place> = view.table.places().to_vec();
        let file = |file| Place::File { file, offset: 0x10 };
        assert_eq!((places, view.table.added), (vec![file(0), file(1)], 2));
        assert_eq!(view.tasks.name(8, 8), "b");
    }
}
