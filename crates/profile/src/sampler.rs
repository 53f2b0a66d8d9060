//! Stacks of the kernel, sampled on every CPU.
//!
//! Each CPU is interrupted at a fixed rate: by its cycle counter where there is one, by a timer where there is
//! none (most guests). 99 Hz rather than 100, so that sampling is not in step with events that happen 100 times a
//! second. The whole machine is sampled even when one process is requested: an event per thread and CPU would cost
//! more than it saves, and needs nearly the same rights. `exclude_idle` is not used: it would leave out the soft
//! interrupts that run over the idle task, which is where a receiving CPU spends its time.
//! Sources: kernel/events/core.c (`perf_swevent_hrtimer`), arch/x86/events/core.c of Linux 6.18.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event::SampleFlag;
use perf_event::events::{Event, Hardware, Software};
use rungwise_formats::kallsyms::Names;
use rungwise_host::live::Live;
use rungwise_model::kernel::Stacks;

use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::perf::{Ring, Seen};
use crate::tasks::Tasks;
use crate::{perf, symbols};

/// How often the rings are emptied; they hold many times what comes in between.
const EVERY: Duration = Duration::from_millis(500);

const TRIED: &str = "sample kernel stacks";

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second and CPU.
    pub hz: u32,
    /// Only this process and its children; `None` for everything.
    pub pid: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { hz: 99, pid: None }
    }
}

/// Samples from start until stopped. Dropping it discards the result.
///
/// Cost in a guest with 2 CPUs (Linux 6.18, AMD EPYC, 2026-11-21): 19 us of interrupt per sample, 0.2 % of each
/// CPU at 99 Hz, which no process is charged for and `cost_s` excludes; and 60 ms per window, mostly to read the
/// kernel's symbols, which `cost_s` includes.
///
/// Caveats. A timer cannot interrupt code that runs with interrupts off; its time shows up where they are turned
/// on again (`_raw_spin_unlock_irqrestore`, `do_syscall_64`). Waiting inside the hypervisor is invisible. Where
/// unwinding fails, a stack ends early.
#[derive(Debug)]
pub struct Sampler {
    event: &'static str,
    hz: u32,
    /// CPU time that the start took.
    spent: Duration,
    stop: Sender<()>,
    thread: JoinHandle<Sampled>,
}

/// What the reading thread hands over.
#[derive(Debug)]
struct Sampled {
    fold: Fold,
    lost: u64,
    spent: Duration,
}

impl Sampler {
    /// Starts sampling. Needs root, or `CAP_PERFMON` and `CAP_SYSLOG`, unless sysctls permit everyone.
    pub fn start(options: &Options) -> Result<Self> {
        let before = perf::thread_cpu();
        // First that which is refused most often, with the reason that says most.
        let (event, rings) = open(options.hz)?;
        symbols::check()?;
        let mut reader = Reader {
            rings,
            view: View {
                only: options.pid.map(|pid| HashSet::from([pid])),
                tasks: Tasks::default(),
                fold: Fold::default(),
            },
            lost: 0,
        };
        for ring in &mut reader.rings {
            ring.enable().map_err(Error::system(TRIED))?;
        }
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("stack-sampler".to_owned())
            .spawn(move || reader.run(&stopped))
            .map_err(Error::system(TRIED))?;
        Ok(Self {
            event,
            hz: options.hz,
            spent: perf::thread_cpu().saturating_sub(before),
            stop,
            thread,
        })
    }

    /// Stops sampling and names the functions. Use [`crate::stop`] to stop a counter at the same time.
    pub fn stop(self) -> Result<Stacks> {
        let (stacks, _) = crate::stop(Ok(self), Err(()));
        stacks.expect("a sampler that ends gives its stacks")
    }

    /// Ends.
    pub(crate) fn end(self) -> Ended {
        // The thread ends also if it cannot hear.
        let _ = self.stop.send(());
        let sampled = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ended {
            event: self.event,
            hz: self.hz,
            lost: sampled.lost + sampled.fold.left_out,
            fold: sampled.fold,
            spent: self.spent + sampled.spent,
        }
    }
}

/// What was seen, not named yet.
pub(crate) struct Ended {
    event: &'static str,
    hz: u32,
    fold: Fold,
    lost: u64,
    spent: Duration,
}

impl Ended {
    /// Stacks as addresses.
    pub(crate) fn stacks(&self) -> &Fold {
        &self.fold
    }

    /// Names it; the looking up of names began when this thread had used `before`.
    pub(crate) fn named(self, names: &Names, before: Duration) -> Stacks {
        let folded = self.fold.named(names);
        let naming = perf::thread_cpu().saturating_sub(before);
        Stacks {
            event: self.event.to_owned(),
            hz: self.hz,
            folded: folded.stacks,
            idle: folded.idle,
            lost: self.lost,
            cost_s: (self.spent + naming).as_secs_f64(),
        }
    }
}

/// Opens the better event that this machine has.
fn open(hz: u32) -> Result<(&'static str, Vec<Ring>)> {
    let cpus = perf::cpus(&Live)?;
    match open_event(Hardware::CPU_CYCLES, &cpus, hz) {
        Err(Error::NotOffered { .. }) => {
            Ok(("cpu-clock", open_event(Software::CPU_CLOCK, &cpus, hz)?))
        }
        opened => Ok(("cycles", opened?)),
    }
}

fn open_event<E: Event + Copy>(event: E, cpus: &[usize], hz: u32) -> Result<Vec<Ring>> {
    perf::on_each(cpus, TRIED, |cpu| {
        let mut builder = perf::on_cpu(event, cpu);
        builder
            .sample_frequency(u64::from(hz))
            .comm(true)
            .task(true);
        Ring::open(&mut builder, SampleFlag::TID | SampleFlag::CALLCHAIN)
    })
}

/// Empties the rings while sampling goes on.
struct Reader {
    rings: Vec<Ring>,
    view: View,
    lost: u64,
}

/// What has been seen.
struct View {
    /// Processes that are wanted; without, all.
    only: Option<HashSet<u32>>,
    tasks: Tasks,
    fold: Fold,
}

impl Reader {
    fn run(mut self, stopped: &Receiver<()>) -> Sampled {
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            self.drain();
        }
        for ring in &mut self.rings {
            // Closing it ends it too; this only makes the end the same for all.
            let _ = ring.disable();
        }
        self.drain();
        Sampled {
            fold: self.view.fold,
            lost: self.lost,
            spent: perf::thread_cpu(),
        }
    }

    fn drain(&mut self) {
        for ring in &mut self.rings {
            self.lost += ring.drain(|seen| self.view.see(&seen));
        }
    }
}

impl View {
    fn see(&mut self, seen: &Seen<'_>) {
        self.tasks.learn(seen);
        match seen {
            Seen::Sample(sample) if self.wants(sample.process) => {
                let task = self.tasks.name(sample.process, sample.thread);
                self.fold.add(task, sample.mode, sample.chain, 1);
            }
            Seen::Born {
                process, parent, ..
            } if self.wants(*parent) => {
                if let Some(only) = &mut self.only {
                    only.insert(*process);
                }
            }
            _ => {}
        }
    }

    fn wants(&self, process: u32) -> bool {
        let contains = |only: &HashSet<u32>| only.contains(&process);
        self.only.as_ref().is_none_or(contains)
    }
}
