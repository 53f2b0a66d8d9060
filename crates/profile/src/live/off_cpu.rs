//! How long threads are blocked, and where: a program in the kernel sums the time by thread and stack at every switch.
//!
//! At `sched_switch` the thread that leaves is the current one, so its stack can be taken, and the time; when it comes back, the time since is
//! added to its stack. That is exact, and costs the kernel a row per distinct stack instead of a record per switch. A thread that would run
//! on (preempted, or its time slice is over) is not blocked. The wait for a free CPU after the wake-up is part of the time.
//!
//! The program also chooses waits of which perf records registers and stack, by the number that it returns: all of them, or so many at random that the copies
//! cost little.
//! Sources: include/trace/events/sched.h, kernel/bpf/stackmap.c of Linux 6.18. `bpf_get_stackid` is for programs under the GPL alone, so the
//! license of these few instructions is declared as `Dual MIT/GPL`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use perf_event::events::Tracepoint;
use perf_event::{Clock, Counter};
use rungwise_bpf::asm::{If, Insn, Program, Reg, Width};
use rungwise_bpf::{self as bpf, License, Map, MapKind, PerCpu, ProgramKind, StackTraces, Table};
use rungwise_formats::tracepoint::Format;
use rungwise_host::live::Live;
use rungwise_host::{Host as _, files};
use rustix::time::{ClockId, clock_gettime};

use super::memory::Memory;
use super::table::{self, Task};
use super::unwind::{self, End};
use super::waits::Waits;
use crate::error::{Error, Result};
use crate::perf::{self, Ring};
use crate::tracefs;

const SWITCH: &str = "sched:sched_switch";
const FORK: &str = "sched:sched_process_fork";
const TRIED: &str = "measure off-CPU time";

/// Threads that can be blocked at a time, and processes that are followed.
const THREADS: usize = 1 << 16;
/// Distinct stacks of threads.
const SUMS: usize = 1 << 16;
/// Places for stacks, a kilobyte each: two stacks that fall on one place lose one of them, which is counted.
const STACKS: usize = 1 << 15;

/// Stacks that are copied between two looks at the rings, which are 50 ms apart: 1000 a second, 1 % of a CPU.
const COPIES: u64 = 50;
/// Waits with copied stacks that may end between two looks.
const ENDED: usize = 1 << 14;
/// Chance by which a stack is copied, of 2^32.
const ALWAYS: u64 = 1 << 32;

/// Number of the stack of a thread that was blocked before the window began; the kernel gives none below -4095.
const BEFORE: u64 = -5000_i64 as u64;

/// What could not be counted, by CPU: time without room, waits without room, threads without room, children without room.
type Losses = PerCpu<4>;

/// Tables that the programs write.
#[derive(Debug)]
struct Tables {
    /// Processes that are wanted.
    wanted: Table<1, 1>,
    /// Blocked threads: since when, process, stacks of kernel and user, whether perf recorded the stack.
    starts: Table<1, 5>,
    /// By process, thread and stacks: nanoseconds and waits.
    sums: Table<4, 2>,
    /// Waits of which perf recorded the stack, by thread and begin: nanoseconds, process, stacks of kernel and user.
    ended: Table<2, 4>,
    kernel: StackTraces,
    user: StackTraces,
    losses: Losses,
    /// Chance by which perf records the stack of a wait.
    chance: Map<[u8; 8]>,
    /// Not zero once the window is over: removing the programs takes the kernel some time, in which they still run.
    is_over: Map<[u8; 8]>,
}

/// Sums blocked time from start until it is read.
#[derive(Debug)]
pub(super) struct OffCpu {
    tables: Tables,
    /// Events to which programs are attached.
    events: Vec<Counter>,
    _programs: Vec<OwnedFd>,
    waits: Waits,
    /// As it was while the stacks of now were recorded.
    chance: u64,
    /// Stacks since the last look.
    seen: u64,
    /// When the window was over.
    over: u64,
    /// Threads that were blocked before.
    before: BTreeMap<u32, Blocked>,
}

/// A thread that was blocked when the window began.
#[derive(Debug)]
pub(super) struct Blocked {
    pub(super) process: u32,
    /// Functions of the kernel, leaf first.
    functions: Vec<String>,
    /// Where its user stack is, marked as such, and how that ends.
    pub(super) chain: Vec<u64>,
    pub(super) end: End,
}

/// What was summed.
#[derive(Debug, Default)]
pub(super) struct Summed {
    pub(super) waits: u64,
    pub(super) notes: Vec<String>,
}

impl OffCpu {
    /// Begins to sum the waits of these processes. Their stacks come in `rings`, to which those of the switches are added.
    pub(super) fn start(processes: &[u32], rings: &mut Vec<Ring>) -> Result<Self> {
        let outside = files::link_target("/proc/self/ns/pid".as_ref());
        // `PROC_PID_INIT_INO`
        if outside.is_ok_and(|link| link != Path::new("pid:[4026531836]")) {
            return Err(Error::Missing {
                tried: TRIED.to_owned(),
                why: "this container has process numbers of its own, and the kernel counts by those of the host; run rungwise on the host, \
                      or in a container with the host's (--pid=host)"
                    .to_owned(),
            });
        }
        let mut formats = tracefs::formats(&[SWITCH, FORK]);
        let mut format = |event: &str| {
            let read = formats
                .remove(event)
                .unwrap_or_else(|| Err(format!("{event} was not read from tracefs")));
            read.map_err(|why| Error::Missing {
                tried: TRIED.to_owned(),
                why,
            })
        };
        let (switch, fork) = (format(SWITCH)?, format(FORK)?);
        let made = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Error::NotPermitted {
                tried: TRIED.to_owned(),
                paranoid: crate::error::sysctl(&Live, "perf_event_paranoid"),
            },
            _ => Error::System {
                tried: TRIED.to_owned(),
                source: error,
            },
        };
        let tables = Tables::new().map_err(made)?;
        for process in processes {
            tables
                .wanted
                .add(&[u64::from(*process)], &[1])
                .map_err(made)?;
        }
        let mut events = Vec::new();
        let mut programs = Vec::new();
        let cpus = perf::cpus(&Live)?;
        let cpu = *cpus.first().unwrap_or(&0);
        for (format, code) in [
            (&fork, tables.on_fork(&fork)),
            (&switch, tables.on_switch(&switch)),
        ] {
            let code = code.ok_or_else(|| Error::Missing {
                tried: TRIED.to_owned(),
                why: format!("event {} of this kernel lacks a field", format.name),
            })?;
            let program =
                bpf::load(ProgramKind::Tracepoint, License::MitOrGpl, &code).map_err(made)?;
            // On one CPU: the program runs wherever the event happens.
            let event = perf::on_cpu(Tracepoint::with_id(format.id), cpu).build();
            let mut event = event.map_err(|error| Error::of_perf(&Live, TRIED, error))?;
            event.set_bpf(program.as_raw_fd()).map_err(made)?;
            event.enable().map_err(made)?;
            events.push(event);
            programs.push(program);
        }
        let before = tables.blocked(processes).map_err(made)?;
        if unwind::SAMPLED != 0 {
            let mut opened = perf::on_each(&cpus, TRIED, |cpu| {
                let mut builder = perf::on_cpu(Tracepoint::with_id(switch.id), cpu);
                builder
                    .sample_period(1)
                    .exclude_callchain_kernel(true)
                    .exclude_callchain_user(false)
                    .clockid(Clock::MONOTONIC);
                // Room for twenty times as many.
                super::with_stacks(&mut builder, 99, cpus.len())
            })?;
            for ring in &mut opened {
                ring.enable().map_err(Error::system(TRIED))?;
            }
            rings.append(&mut opened);
        }
        Ok(Self {
            tables,
            events,
            _programs: programs,
            waits: Waits::default(),
            chance: ALWAYS,
            seen: 0,
            over: u64::MAX,
            before,
        })
    }

    /// Threads that are blocked already.
    pub(super) fn blocked(&mut self) -> impl Iterator<Item = (u32, &mut Blocked)> {
        self.before
            .iter_mut()
            .map(|(thread, blocked)| (*thread, blocked))
    }

    /// The stack of a wait that begins.
    pub(super) fn see(&mut self, task: Task, time: u64, chain: Vec<u64>, end: End) {
        self.seen += 1;
        self.waits.began(u64::from(task.thread), time, chain, end);
    }

    /// Waits with stacks that have ended.
    pub(super) fn ended_waits(&self) -> Vec<([u64; 2], [u64; 4])> {
        let mut ended = self.tables.ended.entries().unwrap_or_default();
        // By thread and time: a wait ends those before it.
        ended.sort_unstable();
        for (key, _) in &ended {
            // It is there.
            let _ = self.tables.ended.remove(key);
        }
        ended
    }

    /// Takes waits that have ended, after the stacks of all of them were seen.
    pub(super) fn take(&mut self, ended: Vec<([u64; 2], [u64; 4])>) {
        let weight = ALWAYS as f64 / self.chance.max(1) as f64;
        for ([thread, began], [ns, process, kernel, user]) in ended {
            let key = [process, thread, kernel, user];
            self.waits.ended(key, began, ns, weight);
        }
        let chance = if self.seen > COPIES {
            (self.chance / self.seen * COPIES).max(1)
        } else if self.seen < COPIES / 2 {
            (self.chance * 2).min(ALWAYS)
        } else {
            self.chance
        };
        self.seen = 0;
        if chance != self.chance && self.tables.chance.set(0, &chance.to_ne_bytes()).is_ok() {
            self.chance = chance;
        }
    }

    /// The window is over.
    pub(super) fn stop(&mut self) {
        // Else the end of the window is when the events are removed.
        let _ = self.tables.is_over.set(0, &[1; 8]);
        self.over = monotonic();
    }

    /// Ends, and adds the stacks with their nanoseconds.
    pub(super) fn end(mut self, table: &mut table::Table, memory: &Memory) -> io::Result<Summed> {
        let now = self.over.min(monotonic());
        // Without the events the programs are gone, and the tables at rest.
        self.events.clear();
        let mut summed = Summed::default();
        let mut lost_stacks = 0_u64;
        let mut total = 0_u64;
        let mut by_pointers = 0_u64;
        let mut sums = self.tables.sums.entries()?;
        for ([thread], [began, process, kernel, user, has_stack]) in self.tables.starts.entries()? {
            // Blocked to the end of the window.
            let (key, ns) = ([process, thread, kernel, user], now.saturating_sub(began));
            sums.push((key, [ns, 1]));
            if has_stack != 0 {
                self.waits.ended(key, began, ns, 1.0);
            }
        }
        sums.sort_unstable();
        for ([process, thread, kernel, user], [ns, waits]) in sums {
            let task = Task {
                process: process as u32,
                thread: thread as u32,
            };
            summed.waits += waits;
            total = total.saturating_add(ns);
            if kernel == BEFORE {
                let before = self.before.get(&task.thread);
                let mut names = before.map_or_else(Vec::new, |before| before.functions.clone());
                names.push("[blocked since before the profile]".to_owned());
                let (chain, end) = before.map_or((&[][..], End::Whole), |before| {
                    (before.chain.as_slice(), before.end)
                });
                table.add_named(task, &names, chain, end, ns, memory);
                continue;
            }
            let part = |number: u64, stacks: &StackTraces| {
                u32::try_from(number)
                    .ok()
                    .and_then(|number| stacks.get(number).ok())
            };
            let (in_kernel, in_user) = (
                part(kernel, &self.tables.kernel),
                part(user, &self.tables.user),
            );
            let is_lost = [kernel, user].contains(&LOST_STACK);
            if is_lost {
                lost_stacks = lost_stacks.saturating_add(ns);
            }
            let mut chain = vec![table::KERNEL];
            chain.extend(in_kernel.unwrap_or_default());
            let kernel_only = chain.len();
            let parts = self.waits.divide(&[process, thread, kernel, user], ns);
            for (unwound, end, ns) in &parts {
                chain.truncate(kernel_only);
                chain.extend_from_slice(unwound);
                table.add(task, &chain, *end, *ns, memory);
            }
            if parts.is_empty() {
                chain.push(table::USER);
                chain.extend(in_user.unwrap_or_default());
                table.add(task, &chain, End::ByPointers, ns, memory);
                by_pointers = by_pointers.saturating_add(ns);
            }
        }
        let share = |ns: u64| 100.0 * ns as f64 / total.max(1) as f64;
        if share(lost_stacks) >= 0.1 {
            summed.notes.push(format!(
                "{:.1} % of the time is of stacks of which a part was lost: the process has very many distinct stacks",
                share(lost_stacks)
            ));
        }
        if share(by_pointers) >= 1.0 && unwind::SAMPLED != 0 {
            summed.notes.push(format!(
                "{:.1} % of the time is of stacks that were followed by frame pointers alone: of more than 1000 waits a second the stacks of some are copied",
                share(by_pointers)
            ));
        }
        let mut losses = [0_u64; 4];
        for cpu in self.tables.losses.values()? {
            for (sum, one) in losses.iter_mut().zip(cpu) {
                *sum = sum.saturating_add(one);
            }
        }
        let [ns, waits, threads, children] = losses;
        if waits > 0 {
            summed.notes.push(format!(
                "{waits} waits of {:.3} s in all are missing: the process has more than {SUMS} distinct stacks; use a shorter --for",
                ns as f64 / 1e9
            ));
        }
        if threads > 0 {
            summed.notes.push(format!(
                "{threads} waits are missing: more than {THREADS} threads were blocked at a time"
            ));
        }
        if children > 0 {
            summed.notes.push(format!("{children} threads or children are missing: more than {THREADS} were started; use a shorter --for"));
        }
        Ok(summed)
    }
}

/// `-EEXIST` of `bpf_get_stackid`: the place is taken by another stack.
const LOST_STACK: u64 = -(libc::EEXIST as i64) as u64;

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

// Helpers of `enum bpf_func_id`.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const TIME: i32 = 5;
const RANDOM: i32 = 7;
const PROCESS_AND_THREAD: i32 = 14;
const STACK: i32 = 27;

impl Tables {
    fn new() -> io::Result<Self> {
        let chance: Map<[u8; 8]> = Map::new(MapKind::Array, 1)?;
        let first = if unwind::SAMPLED == 0 { 0 } else { ALWAYS };
        chance.set(0, &first.to_ne_bytes())?;
        Ok(Self {
            chance,
            wanted: Table::new(THREADS)?,
            starts: Table::new(THREADS)?,
            sums: Table::new(SUMS)?,
            ended: Table::new(ENDED)?,
            kernel: StackTraces::new(STACKS)?,
            user: StackTraces::new(STACKS)?,
            losses: Losses::new()?,
            is_over: Map::new(MapKind::Array, 1)?,
        })
    }

    /// Enters the threads that are blocked already, with the functions of the kernel in which they are.
    fn blocked(&self, processes: &[u32]) -> io::Result<BTreeMap<u32, Blocked>> {
        let mut before = BTreeMap::new();
        for process in processes {
            let folder = format!("/proc/{process}/task");
            for name in files::list(folder.as_ref()).unwrap_or_default() {
                let Ok(thread) = name.parse::<u32>() else {
                    continue;
                };
                let text = |file: &str| {
                    Live.text(format!("{folder}/{thread}/{file}").as_ref())
                        .unwrap_or_default()
                };
                let stat = text("stat");
                let state = stat
                    .rsplit_once(')')
                    .and_then(|(_, rest)| rest.trim_start().chars().next());
                if !matches!(state, Some('S' | 'D' | 'T' | 't' | 'I' | 'P')) {
                    continue;
                }
                let blocked = Blocked {
                    process: *process,
                    functions: kernel_functions(&text("stack")),
                    chain: Vec::new(),
                    end: End::Whole,
                };
                before.insert(thread, blocked);
                let value = [monotonic(), u64::from(*process), BEFORE, BEFORE, 0];
                self.starts.add(&[u64::from(thread)], &value)?;
            }
        }
        Ok(before)
    }

    /// Counts a loss in these words of the counters of this CPU; `amount` is added to the first.
    fn lose(&self, p: &mut Program, words: &[i16], amount: Reg) {
        let end = p.label();
        p.store_value(Width::Word, Reg::Frame, -96, 0);
        p.load_map(Reg::R1, self.losses.as_fd());
        p.copy(Reg::R2, Reg::Frame);
        p.add(Reg::R2, -96);
        p.call(LOOKUP);
        p.jump_if(Reg::R0, If::Equal, 0, end);
        for (place, word) in words.iter().enumerate() {
            p.load(Width::Double, Reg::R1, Reg::R0, 8 * word);
            if place == 0 && words.len() > 1 {
                p.add_register(Reg::R1, amount);
            } else {
                p.add(Reg::R1, 1);
            }
            p.store(Width::Double, Reg::R0, 8 * word, Reg::R1);
        }
        p.place(end);
    }

    /// A task was made: one of a wanted process is wanted too. A thread's number is entered as well, which harms nothing.
    fn on_fork(&self, format: &Format) -> Option<Vec<Insn>> {
        let child = i16::try_from(format.field("child_pid")?.offset).ok()?;
        let mut p = Program::default();
        let end = p.label();
        p.copy(Reg::R6, Reg::R1);
        p.call(PROCESS_AND_THREAD);
        p.shift_right(Reg::R0, 32);
        p.store(Width::Double, Reg::Frame, -8, Reg::R0);
        call_with_key(&mut p, &self.wanted, -8, LOOKUP);
        p.jump_if(Reg::R0, If::Equal, 0, end);
        p.load(Width::Word, Reg::R1, Reg::R6, child);
        p.store(Width::Double, Reg::Frame, -16, Reg::R1);
        p.store_value(Width::Double, Reg::Frame, -24, 1);
        p.load_map(Reg::R1, self.wanted.as_fd());
        update(&mut p, -16, -24, 0);
        p.jump_if(Reg::R0, If::Equal, 0, end);
        self.lose(&mut p, &[3], Reg::R6);
        p.place(end);
        p.set(Reg::R0, 0);
        p.exit();
        Some(p.finish())
    }

    /// A thread leaves a CPU and another comes. On the stack: -8 a key, -72 the key of a sum, -88 a sum, -104 a process, -144 a start, -160 the key of a wait that
    /// ended, -192 its value, -200 whether it has a stack.
    fn on_switch(&self, format: &Format) -> Option<Vec<Insn>> {
        let offset = |field: &str| i16::try_from(format.field(field)?.offset).ok();
        let (next, state) = (offset("next_pid")?, offset("prev_state")?);
        let mut p = Program::default();
        let [leaves, counted, noted, blocked, end] =
            [p.label(), p.label(), p.label(), p.label(), p.label()];
        let [chosen, stored, failed] = [p.label(), p.label(), p.label()];
        p.copy(Reg::R6, Reg::R1);
        p.load_value(Reg::R1, self.is_over.as_fd());
        p.load(Width::Double, Reg::R1, Reg::R1, 0);
        p.jump_if(Reg::R1, If::NotEqual, 0, end);
        p.call(TIME);
        p.copy(Reg::R7, Reg::R0);

        // Was the thread that comes blocked?
        p.load(Width::Word, Reg::R1, Reg::R6, next);
        p.store(Width::Double, Reg::Frame, -8, Reg::R1);
        call_with_key(&mut p, &self.starts, -8, LOOKUP);
        p.jump_if(Reg::R0, If::Equal, 0, leaves);
        for (from, to) in [(8, -72), (16, -56), (24, -48), (32, -200)] {
            p.load(Width::Double, Reg::R1, Reg::R0, from);
            p.store(Width::Double, Reg::Frame, to, Reg::R1);
        }
        p.load(Width::Double, Reg::R1, Reg::Frame, -8);
        p.store(Width::Double, Reg::Frame, -64, Reg::R1);
        p.load(Width::Double, Reg::R8, Reg::R0, 0);
        call_with_key(&mut p, &self.starts, -8, DELETE);
        p.jump_if_register(Reg::R7, If::Less, Reg::R8, leaves);
        p.copy(Reg::R9, Reg::R7);
        p.subtract_register(Reg::R9, Reg::R8);
        call_with_key(&mut p, &self.sums, -72, LOOKUP);
        p.jump_if(Reg::R0, If::NotEqual, 0, counted);
        p.store(Width::Double, Reg::Frame, -88, Reg::R9);
        p.store_value(Width::Double, Reg::Frame, -80, 1);
        p.load_map(Reg::R1, self.sums.as_fd());
        // BPF_NOEXIST: another CPU may have entered it meanwhile.
        update(&mut p, -72, -88, 1);
        p.jump_if(Reg::R0, If::Equal, 0, noted);
        call_with_key(&mut p, &self.sums, -72, LOOKUP);
        p.jump_if(Reg::R0, If::NotEqual, 0, counted);
        self.lose(&mut p, &[0, 1], Reg::R9);
        p.jump(leaves);
        p.place(counted);
        p.add_shared(Reg::R0, 0, Reg::R9);
        p.set(Reg::R1, 1);
        p.add_shared(Reg::R0, 8, Reg::R1);

        // Was its stack recorded? Then for how long it waited.
        p.place(noted);
        p.load(Width::Double, Reg::R1, Reg::Frame, -200);
        p.jump_if(Reg::R1, If::Equal, 0, leaves);
        p.store(Width::Double, Reg::Frame, -152, Reg::R8);
        p.store(Width::Double, Reg::Frame, -192, Reg::R9);
        for (from, to) in [(-64, -160), (-72, -184), (-56, -176), (-48, -168)] {
            p.load(Width::Double, Reg::R1, Reg::Frame, from);
            p.store(Width::Double, Reg::Frame, to, Reg::R1);
        }
        p.load_map(Reg::R1, self.ended.as_fd());
        // Without room only the stack is not used.
        update(&mut p, -160, -192, 0);

        // Is the thread that leaves wanted, and blocked?
        p.place(leaves);
        p.call(PROCESS_AND_THREAD);
        p.copy(Reg::R8, Reg::R0);
        p.store_value(Width::Double, Reg::Frame, -8, 0);
        p.store(Width::Word, Reg::Frame, LOW_WORD, Reg::R0);
        p.shift_right(Reg::R8, 32);
        p.store(Width::Double, Reg::Frame, -104, Reg::R8);
        call_with_key(&mut p, &self.wanted, -104, LOOKUP);
        p.jump_if(Reg::R0, If::Equal, 0, end);
        p.load(Width::Double, Reg::R1, Reg::R6, state);
        // Dead or a zombie: it does not come back.
        p.jump_if(Reg::R1, If::AnyBit, 0x30, end);
        // Sleeping, stopped, traced, parked or idle; none of these bits: it would run on.
        p.jump_if(Reg::R1, If::AnyBit, 0xcf, blocked);
        p.jump(end);
        p.place(blocked);
        for (stacks, flags, to) in [(&self.kernel, 0, -128), (&self.user, USER_STACK, -120)] {
            p.copy(Reg::R1, Reg::R6);
            p.load_map(Reg::R2, stacks.as_fd());
            p.set(Reg::R3, flags);
            p.call(STACK);
            p.store(Width::Double, Reg::Frame, to, Reg::R0);
        }
        // Is its stack to be recorded?
        p.load_value(Reg::R9, self.chance.as_fd());
        p.load(Width::Double, Reg::R9, Reg::R9, 0);
        p.call(RANDOM);
        p.jump_if_register(Reg::R0, If::Less, Reg::R9, chosen);
        p.set(Reg::R9, 0);
        p.jump(stored);
        p.place(chosen);
        p.set(Reg::R9, 1);
        p.place(stored);
        for (to, from) in [(-144, Reg::R7), (-136, Reg::R8), (-112, Reg::R9)] {
            p.store(Width::Double, Reg::Frame, to, from);
        }
        p.load_map(Reg::R1, self.starts.as_fd());
        update(&mut p, -8, -144, 0);
        p.jump_if(Reg::R0, If::NotEqual, 0, failed);
        p.copy(Reg::R0, Reg::R9);
        p.exit();
        p.place(failed);
        self.lose(&mut p, &[2], Reg::R9);
        // Zero: perf records nothing.
        p.place(end);
        p.set(Reg::R0, 0);
        p.exit();
        Some(p.finish())
    }
}

/// `BPF_F_USER_STACK`.
const USER_STACK: i32 = 1 << 8;

/// Where the low half of the word at -8 is.
const LOW_WORD: i16 = if cfg!(target_endian = "little") {
    -8
} else {
    -4
};

/// Calls a helper with the table and a key on the stack.
fn call_with_key<const K: usize, const V: usize>(
    p: &mut Program,
    table: &Table<K, V>,
    key: i32,
    helper: i32,
) {
    p.load_map(Reg::R1, table.as_fd());
    p.copy(Reg::R2, Reg::Frame);
    p.add(Reg::R2, key);
    p.call(helper);
}

/// Enters a value of the stack into the table in `R1`.
fn update(p: &mut Program, key: i32, value: i32, flags: i32) {
    p.copy(Reg::R2, Reg::Frame);
    p.add(Reg::R2, key);
    p.copy(Reg::R3, Reg::Frame);
    p.add(Reg::R3, value);
    p.set(Reg::R4, flags);
    p.call(UPDATE);
}

/// The functions in `/proc/PID/task/TID/stack`, leaf first: `[<0>] futex_wait+0x8a/0x120`.
fn kernel_functions(text: &str) -> Vec<String> {
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let names = names.map(|name| name.split_once('+').map_or(name, |(name, _)| name));
    names
        .filter(|name| !name.starts_with("0x"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_blocked_thread_are_those_of_its_kernel_stack() {
        let text =
            "[<0>] futex_wait+0x8a/0x120\n[<0>] do_syscall_64+0x71/0x280\n[<0>] 0xffffffff\n";
        assert_eq!(kernel_functions(text), ["futex_wait", "do_syscall_64"]);
        assert!(kernel_functions("").is_empty());
    }
}
