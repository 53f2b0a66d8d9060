//! CPU accounting: per-CPU use over a window, and the share that was not ours.
//!
//! Busy time is the wall clock minus what `/proc/stat` counts as idle, not the sum of the busy
//! fields: those are samples of the timer tick (every 4 ms at HZ=250), while the idle counters are
//! kept by the clock. So on a fully used machine busy is exact. Own time is read from CPU clocks, to
//! the nanosecond. Foreign = (busy - own) / (wall x CPUs), never below zero; where every process can be
//! seen and none was forked in the window, it is the CPU time of all others instead, which is exact.
//!
//! Resolution: `/proc/stat` prints units of 10 ms. Each idle counter (idle and iowait, per CPU) is
//! cut off at both ends of the window, so one CPU's idle time is wrong by at most 20 ms and by about
//! 6 ms in the mean square: of a 300 ms window, at most 6.7 % and typically 2 % of that CPU, and less
//! of the whole machine, since the errors of its CPUs are independent. See [`resolution`].
//!
//! What the subtraction cannot distinguish: softirqs that run on an *idle* CPU (RPS to an idle neighbour) belong to no
//! process and count as foreign. ksoftirqd does count as ours, because on a measured machine the packets are ours;
//! kworkers do not. In a container with its own pid namespace ksoftirqd cannot be seen and counts as foreign too.
//! Source: fs/proc/stat.c, kernel/sched/cputime.c of Linux 6.18.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rungwise_model::machine::{CpuSplit, CpuWindow};

use crate::error::{Error, Result};
use crate::machine::Thread;
use crate::others::Census;
use crate::{clock, machine};

/// `/proc/stat` counts in units of `1/USER_HZ`, which is 100 on every Linux that runs rungwise.
const TICK: f64 = 0.01;

/// To whom a source's CPU time is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The service under test.
    Service,
    /// The load generator.
    Client,
}

/// Something of ours that uses CPU.
#[derive(Clone)]
pub struct CpuSource {
    owner: Owner,
    what: String,
    read: Arc<dyn Fn() -> io::Result<Vec<Spent>> + Send + Sync>,
}

/// What one clock of a source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spent {
    /// The whole of this process is meant; absent for other clocks.
    pid: Option<u32>,
    time: Duration,
}

impl CpuSource {
    /// Another process with all its threads; not its children.
    pub fn process(owner: Owner, pid: u32) -> Self {
        Self::of(owner, format!("process {pid}"), move || {
            let time = clock::process_cpu(pid)?;
            Ok(vec![Spent {
                pid: Some(pid),
                time,
            }])
        })
    }

    /// Several processes, each with all its threads. `members` is called at both ends of a window: a process started in
    /// between counts from its start, and the last moments of a process ended in between are lost.
    pub fn processes(
        owner: Owner,
        what: impl Into<String>,
        members: impl Fn() -> io::Result<Vec<u32>> + Send + Sync + 'static,
    ) -> Self {
        Self::of(owner, what, move || {
            let spent = |pid| {
                // A process that has ended since it was listed counts nothing.
                let time = clock::process_cpu(pid).ok()?;
                Some(Spent {
                    pid: Some(pid),
                    time,
                })
            };
            Ok(members()?.into_iter().filter_map(spent).collect())
        })
    }

    /// This process with all its threads.
    pub fn own(owner: Owner) -> Self {
        Self::of(owner, "this process", || {
            let time = clock::own_cpu()?;
            Ok(vec![Spent {
                pid: Some(std::process::id()),
                time,
            }])
        })
    }

    /// Any CPU clock: a set of threads, for example. It must never run backwards.
    pub fn clock(
        owner: Owner,
        what: impl Into<String>,
        read: impl Fn() -> io::Result<Duration> + Send + Sync + 'static,
    ) -> Self {
        Self::of(owner, what, move || {
            let time = read()?;
            Ok(vec![Spent { pid: None, time }])
        })
    }

    fn of(
        owner: Owner,
        what: impl Into<String>,
        read: impl Fn() -> io::Result<Vec<Spent>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            owner,
            what: what.into(),
            read: Arc::new(read),
        }
    }

    /// The threads of its processes.
    fn threads(&self) -> Vec<Thread> {
        let spent = (self.read)().unwrap_or_default();
        let pids = spent.into_iter().filter_map(|spent| spent.pid);
        pids.flat_map(machine::threads_of).collect()
    }

    fn read(&self) -> Result<Vec<Spent>> {
        (self.read)().map_err(Error::system(format!("read the CPU time of {}", self.what)))
    }
}

impl fmt::Debug for CpuSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.owner, self.what)
    }
}

/// One window, from [`CpuMeter::begin`] to [`CpuMeter::end`]. Each reads `/proc/stat`, one clock per
/// source and one small file per ksoftirqd.
#[derive(Debug)]
pub struct CpuMeter {
    sources: Vec<CpuSource>,
    began: Reading,
    buffer: Vec<u8>,
}

impl CpuMeter {
    /// Begins a window.
    pub fn begin(own: &[CpuSource]) -> Result<Self> {
        let mut buffer = Vec::with_capacity(16 * 1024);
        Ok(Self {
            sources: own.to_vec(),
            began: Reading::take(own, &mut buffer)?,
            buffer,
        })
    }

    /// Ends it.
    pub fn end(mut self) -> Result<CpuWindow> {
        let ended = Reading::take(&self.sources, &mut self.buffer)?;
        Ok(between(&self.began, &ended, &self.sources))
    }
}

/// A window whose edges are announced while its load runs.
#[derive(Debug)]
pub struct EdgeMeter<'a> {
    own: &'a [CpuSource],
    state: Mutex<Edges>,
}

/// What is known of a window so far.
#[derive(Debug)]
enum Edges {
    Before,
    Open(CpuMeter),
    Closed(CpuWindow),
    Failed(Error),
}

impl<'a> EdgeMeter<'a> {
    /// For a window that has not begun; `own` are the generator and the service.
    pub fn new(own: &'a [CpuSource]) -> Self {
        Self {
            own,
            state: Mutex::new(Edges::Before),
        }
    }

    /// The window begins now.
    pub fn open(&self) {
        let meter = CpuMeter::begin(self.own);
        self.turn(|_| meter.map_or_else(Edges::Failed, Edges::Open));
    }

    /// The window ends now.
    pub fn close(&self) {
        self.turn(|state| match state {
            Edges::Open(meter) => meter.end().map_or_else(Edges::Failed, Edges::Closed),
            other => other,
        });
    }

    fn turn(&self, change: impl FnOnce(Edges) -> Edges) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = change(std::mem::replace(&mut *state, Edges::Before));
    }

    /// The CPU use of the window; absent where it did not end.
    pub fn window(self) -> Result<Option<CpuWindow>> {
        let state = self.state.into_inner();
        match state.unwrap_or_else(PoisonError::into_inner) {
            Edges::Closed(window) => Ok(Some(window)),
            Edges::Failed(error) => Err(error),
            Edges::Before | Edges::Open(_) => Ok(None),
        }
    }
}

/// How many CPUs the service may use, and how many of them the generator may use too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// CPUs that some thread of the service may run on.
    pub service: usize,
    /// Those of them that this process may run on.
    pub shared: usize,
}

impl Reach {
    /// Reads the affinity of all threads of the service among `sources`; absent where none can be read.
    pub fn read_affinity(sources: &[CpuSource]) -> Option<Self> {
        let service = sources
            .iter()
            .filter(|source| source.owner == Owner::Service);
        let spent = service.filter_map(|source| (source.read)().ok());
        let pids = spent.flatten().filter_map(|spent| spent.pid);
        let service: BTreeSet<u32> = pids.flat_map(machine::cpus_of).collect();
        let own = machine::allowed_cpus().ok()?;
        let shared = own.iter().filter(|cpu| service.contains(cpu)).count();
        (!service.is_empty()).then_some(Self {
            service: service.len(),
            shared,
        })
    }
}

/// Whether a thread of these processes is bound to one CPU.
pub fn pins_threads(processes: &CpuSource) -> bool {
    let threads = processes.threads();
    threads.iter().any(|thread| thread.cpus.len() == 1)
}

/// What the threads of some processes had used by one moment.
#[derive(Debug)]
pub struct ThreadTimes {
    processes: CpuSource,
    /// Nanoseconds by thread.
    ran: BTreeMap<u32, u64>,
}

impl ThreadTimes {
    /// Those of now.
    pub fn now(processes: &CpuSource) -> Self {
        let threads = processes.threads();
        let ran = threads.iter().map(|thread| (thread.id, thread.ran_ns));
        Self {
            processes: processes.clone(),
            ran: ran.collect(),
        }
    }

    /// Share of the CPU time used since then that threads used which may run on several CPUs; 1 where nothing can be seen.
    pub fn free_share(&self) -> f64 {
        let (mut all, mut free) = (0, 0);
        for thread in self.processes.threads() {
            let before = self.ran.get(&thread.id).copied().unwrap_or(0);
            let ran = thread.ran_ns.saturating_sub(before);
            all += ran;
            if thread.cpus.len() != 1 {
                free += ran;
            }
        }
        if all == 0 {
            return 1.0;
        }
        free as f64 / all as f64
    }
}

/// Foreign share of the machine's CPUs right now, over a window that this call sleeps through.
pub fn foreign_now(window: Duration, own: &[CpuSource]) -> Result<f64> {
    let meter = CpuMeter::begin(own)?;
    std::thread::sleep(window);
    Ok(meter.end()?.foreign)
}

/// The most by which [`CpuWindow::foreign`] can be wrong because `/proc/stat` prints 10 ms units:
/// idle and iowait of every CPU, each cut off at both ends.
pub fn resolution(window: Duration) -> f64 {
    (2.0 * TICK / window.as_secs_f64()).min(1.0)
}

/// All counters at one moment.
#[derive(Debug)]
struct Reading {
    at: Instant,
    cpus: BTreeMap<u32, Ticks>,
    /// By source, in the order of the meter's.
    sources: Vec<Vec<Spent>>,
    softirq_threads: Duration,
    census: Option<Census>,
}

impl Reading {
    fn take(sources: &[CpuSource], buffer: &mut Vec<u8>) -> Result<Self> {
        let sources = sources.iter().map(CpuSource::read).collect::<Result<_>>()?;
        let softirq_threads = softirq_thread_time(buffer);
        buffer.clear();
        File::open("/proc/stat")
            .and_then(|mut file| file.read_to_end(buffer))
            .map_err(Error::system("read /proc/stat"))?;
        Ok(Self {
            at: clock::now(),
            census: Census::take(buffer),
            cpus: parse_stat(buffer),
            sources,
            softirq_threads,
        })
    }
}

/// Its activity is unknown.
const IDLE: CpuSplit = CpuSplit {
    user: 0.0,
    system: 0.0,
    softirq: 0.0,
    irq: 0.0,
    steal: 0.0,
    idle: 1.0,
};

/// One `cpuN` line, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
    idle: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

/// Lines that are not `cpuN` with numbers are left out.
fn parse_stat(text: &[u8]) -> BTreeMap<u32, Ticks> {
    let mut cpus = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some(rest) = line.strip_prefix(b"cpu") else {
            // The cpu lines come first; the interrupts behind them are long.
            break;
        };
        let Ok(rest) = std::str::from_utf8(rest) else {
            continue;
        };
        let mut words = rest.split_ascii_whitespace();
        if rest.starts_with(' ') {
            continue;
        }
        let Some(Ok(cpu)) = words.next().map(str::parse) else {
            continue;
        };
        let mut field = [0_u64; 8];
        for (value, word) in field.iter_mut().zip(words) {
            *value = word.parse().unwrap_or_default();
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = field;
        // Guest time is contained in user time already (fs/proc/stat.c).
        let ticks = Ticks {
            user: user.saturating_add(nice),
            system,
            idle: idle.saturating_add(iowait),
            irq,
            softirq,
            steal,
        };
        cpus.insert(cpu, ticks);
    }
    cpus
}

fn between(began: &Reading, ended: &Reading, sources: &[CpuSource]) -> CpuWindow {
    let seconds = ended.at.duration_since(began.at).as_secs_f64();
    let mut idle_s = 0.0;
    let mut per_cpu = Vec::with_capacity(ended.cpus.len());
    for (cpu, after) in &ended.cpus {
        // A CPU that came online in the window has no beginning: what it did is unknown, so it counts as idle.
        let known = began.cpus.get(cpu);
        let (split, idle) = known.map_or((IDLE, 1.0), |before| split(before, after, seconds));
        per_cpu.push(split);
        idle_s += idle * seconds;
    }
    let of = |owner| -> f64 {
        sources
            .iter()
            .zip(began.sources.iter().zip(&ended.sources))
            .filter(|(source, _)| source.owner == owner)
            .map(|(_, (before, after))| spent_s(before, after))
            .sum()
    };
    let service_cpu_s = of(Owner::Service);
    let client_cpu_s = of(Owner::Client);
    let softirq_s = ended
        .softirq_threads
        .saturating_sub(began.softirq_threads)
        .as_secs_f64();
    let capacity = seconds * per_cpu.len() as f64;
    let foreign_s = others_s(began, ended)
        .unwrap_or(capacity - idle_s - service_cpu_s - client_cpu_s - softirq_s);
    CpuWindow {
        seconds,
        per_cpu,
        service_cpu_s,
        client_cpu_s,
        foreign: if capacity > 0.0 {
            (foreign_s / capacity).clamp(0.0, 1.0)
        } else {
            0.0
        },
    }
}

/// CPU seconds of one source. A process that was not there before began at zero.
fn spent_s(before: &[Spent], after: &[Spent]) -> f64 {
    let earlier = |pid| {
        let known = before.iter().find(|spent| spent.pid == pid);
        known.map_or(Duration::ZERO, |spent| spent.time)
    };
    after
        .iter()
        .map(|spent| spent.time.saturating_sub(earlier(spent.pid)).as_secs_f64())
        .sum()
}

/// CPU seconds of all other processes and of the hypervisor; absent where that cannot be determined exactly.
fn others_s(began: &Reading, ended: &Reading) -> Option<f64> {
    let mut ours = ended
        .sources
        .iter()
        .flatten()
        .map(|spent| spent.pid)
        .collect::<Option<Vec<u32>>>()?;
    ours.extend(ksoftirqd().iter().map(|thread| thread.pid));
    let others = ended
        .census
        .as_ref()?
        .others_since(began.census.as_ref()?, &ours)?;
    let stolen: u64 = ended
        .cpus
        .iter()
        .filter_map(|(cpu, after)| Some(after.steal.saturating_sub(began.cpus.get(cpu)?.steal)))
        .sum();
    Some(others.as_secs_f64() + stolen as f64 * TICK)
}

/// One CPU's fractions, and its idle fraction as the clock has it. The tick's samples only give the proportions of the
/// busy time.
fn split(before: &Ticks, after: &Ticks, seconds: f64) -> (CpuSplit, f64) {
    let ticks = |of: fn(&Ticks) -> u64| of(after).saturating_sub(of(before)) as f64;
    let idle = if seconds > 0.0 {
        (ticks(|t| t.idle) * TICK / seconds).min(1.0)
    } else {
        1.0
    };
    let sampled = [
        ticks(|t| t.user),
        ticks(|t| t.system),
        ticks(|t| t.softirq),
        ticks(|t| t.irq),
        ticks(|t| t.steal),
    ];
    let total: f64 = sampled.iter().sum();
    if total == 0.0 {
        // Busy for less than the tick can see.
        return (IDLE, idle);
    }
    let [user, system, softirq, irq, steal] = sampled.map(|sample| sample / total * (1.0 - idle));
    let split = CpuSplit {
        user,
        system,
        softirq,
        irq,
        steal,
        idle,
    };
    (split, idle)
}

/// CPU time of all ksoftirqd threads, from the first field (ns) of their schedstat. A file that
/// cannot be read counts nothing: its time shows as foreign.
fn softirq_thread_time(buffer: &mut Vec<u8>) -> Duration {
    let mut total = Duration::ZERO;
    for thread in ksoftirqd() {
        buffer.clear();
        let read = File::open(&thread.schedstat).and_then(|mut file| file.read_to_end(buffer));
        let time = read.ok().and_then(|_| {
            std::str::from_utf8(buffer)
                .ok()?
                .split_ascii_whitespace()
                .next()?
                .parse()
                .ok()
        });
        total += Duration::from_nanos(time.unwrap_or_default());
    }
    total
}

/// A ksoftirqd thread.
#[derive(Debug)]
struct Ksoftirqd {
    pid: u32,
    schedstat: PathBuf,
}

/// Looked up once: these threads live as long as their CPUs.
fn ksoftirqd() -> &'static [Ksoftirqd] {
    static THREADS: OnceLock<Vec<Ksoftirqd>> = OnceLock::new();
    THREADS.get_or_init(|| {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let pid = path.file_name()?.to_str()?.parse().ok()?;
                // A process may call itself ksoftirqd, but only a kernel thread has no command line.
                let named = fs::read_to_string(path.join("comm"))
                    .ok()?
                    .starts_with("ksoftirqd/");
                let kernel = fs::read(path.join("cmdline")).ok()?.is_empty();
                (named && kernel).then(|| Ksoftirqd {
                    pid,
                    schedstat: path.join("schedstat"),
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"cpu  1 2 3 4 5 6 7 8 9 10\n\
        cpu0 100 1 50 1000 10 2 30 4 0 0\n\
        cpu3 1 0 1 7 0 0 0 0\n\
        cpux 1 2\n\
        cpu4 1 zz 99999999999999999999999\n\
        intr 1 2 3\ncpu9 1 1 1 1\n";

    fn reading(at: Instant, cpus: &[(u32, Ticks)], own_ms: u64) -> Reading {
        Reading {
            at,
            cpus: cpus.iter().copied().collect(),
            sources: vec![vec![Spent {
                pid: None,
                time: Duration::from_millis(own_ms),
            }]],
            softirq_threads: Duration::ZERO,
            census: None,
        }
    }

    #[test]
    fn work_on_a_cpu_of_its_own_is_not_free() {
        let cpu = machine::allowed_cpus().unwrap()[0].to_string();
        let busy = ["timeout", "10", "sh", "-c", "while :; do :; done"];
        for (words, free) in [
            (&["taskset", "-c", &cpu][..], false),
            (&["env"][..], machine::allowed_cpus().unwrap().len() > 1),
        ] {
            let mut command = std::process::Command::new(words[0]);
            let mut child = command.args(&words[1..]).args(busy).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(200));
            // timeout(1) waits; its child works.
            let parent = child.id();
            let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
            let worker: u32 = children.unwrap().trim().parse().unwrap();
            let process = CpuSource::process(Owner::Service, worker);
            let since_start = ThreadTimes {
                processes: process.clone(),
                ran: BTreeMap::new(),
            };
            let (pins, share) = (pins_threads(&process), since_start.free_share());
            child.kill().unwrap();
            child.wait().unwrap();
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(worker.cast_signed()).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
            assert_eq!((pins, share > 0.5), (!free, free), "{words:?}: {share}");
        }
    }

    #[test]
    fn stat_lines_are_read_by_cpu_number_and_garbage_is_left_out() {
        let cpus = parse_stat(STAT);
        assert_eq!(cpus.keys().copied().collect::<Vec<_>>(), [0, 3, 4]);
        let first = Ticks {
            user: 101,
            system: 50,
            idle: 1010,
            irq: 2,
            softirq: 30,
            steal: 4,
        };
        assert_eq!(cpus[&0], first);
        for end in 0..STAT.len() {
            parse_stat(&STAT[..end]);
        }
    }

    #[test]
    fn busy_is_the_wall_minus_idle_divided_as_the_tick_sampled_it() {
        let began = Instant::now();
        let after = Ticks {
            user: 10,
            softirq: 30,
            idle: 50,
            ..Ticks::default()
        };
        let first = reading(began, &[(0, Ticks::default()), (1, Ticks::default())], 0);
        let last = reading(
            began + Duration::from_secs(1),
            &[(0, after), (1, after)],
            400,
        );
        let window = between(&first, &last, &[CpuSource::own(Owner::Client)]);
        let cpu = window.per_cpu[0];
        assert!(
            (cpu.idle - 0.5).abs() < 1e-9 && (cpu.user - 0.125).abs() < 1e-9,
            "{cpu:?}"
        );
        assert!((cpu.softirq - 0.375).abs() < 1e-9, "{cpu:?}");
        // Two CPUs half busy are one second; 0.4 s of it is ours.
        assert!((window.client_cpu_s - 0.4).abs() < 1e-9);
        assert!((window.foreign - 0.3).abs() < 1e-9, "{}", window.foreign);
    }

    #[test]
    fn foreign_is_never_negative_and_an_empty_window_has_none() {
        let began = Instant::now();
        let idle = Ticks {
            idle: 100,
            ..Ticks::default()
        };
        let first = reading(began, &[(0, Ticks::default())], 0);
        let last = reading(began + Duration::from_secs(1), &[(0, idle)], 900);
        let sources = [CpuSource::own(Owner::Service)];
        assert!(between(&first, &last, &sources).foreign.abs() < 1e-12);
        assert!(between(&first, &first, &sources).foreign.abs() < 1e-12);
    }

    #[test]
    fn a_cpu_that_came_online_in_the_window_is_no_foreign_load() {
        let began = Instant::now();
        let busy = Ticks {
            user: 100,
            ..Ticks::default()
        };
        let first = reading(began, &[(0, Ticks::default())], 0);
        let last = reading(
            began + Duration::from_secs(1),
            &[(0, busy), (1, Ticks { idle: 7, ..busy })],
            1000,
        );
        let window = between(&first, &last, &[CpuSource::own(Owner::Client)]);
        assert!((window.per_cpu[1].idle - 1.0).abs() < 1e-9);
        assert!(window.foreign.abs() < 1e-9, "{}", window.foreign);
    }

    #[test]
    fn a_service_reaches_the_cpus_that_its_threads_may_use() {
        let all = machine::allowed_cpus().unwrap();
        let first = all[0].to_string();
        let mut pinned = std::process::Command::new("taskset")
            .args(["-c", &first, "sleep", "60"])
            .spawn()
            .unwrap();
        let service = CpuSource::process(Owner::Service, pinned.id());
        // The new process pins itself before it becomes another program.
        let settled = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            Reach::read_affinity(&[CpuSource::own(Owner::Client), service.clone()])
                == Some(Reach {
                    service: 1,
                    shared: 1,
                })
        });
        pinned.kill().unwrap();
        pinned.wait().unwrap();
        assert!(settled);
        assert_eq!(Reach::read_affinity(&[CpuSource::own(Owner::Client)]), None);
        let ours = Reach::read_affinity(&[CpuSource::own(Owner::Service)]).unwrap();
        assert_eq!((ours.service, ours.shared), (all.len(), all.len()));
    }

    #[test]
    fn processes_count_from_their_birth_and_the_ended_show_nothing() {
        let spent = |pid, ms| Spent {
            pid: Some(pid),
            time: Duration::from_millis(ms),
        };
        let before = [spent(7, 100), spent(8, 50)];
        let after = [spent(7, 130), spent(9, 20)];
        assert!((spent_s(&before, &after) - 0.05).abs() < 1e-12);
        assert!(spent_s(&before, &[]).abs() < 1e-12);
    }

    #[test]
    fn a_source_that_is_gone_is_an_error_that_names_it() {
        let error =
            CpuMeter::begin(&[CpuSource::process(Owner::Service, u32::MAX / 2)]).unwrap_err();
        assert!(error.to_string().contains("CPU time of process"), "{error}");
    }
}
