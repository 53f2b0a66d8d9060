//! The thread that starts the generators, watches them, and merges what they counted.
//!
//! It opens one gate for all threads, sleeps until the edges of the window, reads the CPU clocks of its
//! siblings there, and puts the seconds together. A run without any reply is stopped early.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rungwise_model::load::{ClientHealth, Latency, Measurement, Second};

use super::ledger::Progress;
use super::tally::{Part, whole_seconds};
use super::turns::Leaves;
use super::{
    Arrival, Completed, Driver as _, Edge, Hooks, Kind, Ledger, Plan, SATURATED, Stop, Tally,
    Window, thread as os,
};
use crate::Error;
use crate::clock::{SECOND, now_ns, read_ns, sleep_until};

/// How often flags are checked while waiting.
const LOOK_NS: u64 = 20_000_000;
/// Earliest time at which a target that never answered is given up, ns.
const SILENCE_NS: u64 = SECOND;
/// And after this many timeouts and requests, unless it refuses.
const SILENT_TIMEOUTS: u64 = 3;
/// If more than this share of the window is unseen, the CPU time of its requests is unknown; own guess, since other errors of the window
/// are a few percent too.
const MISSED: f64 = 0.1;
/// Files that a process has open beside the sockets: epoll, standard streams, what the caller holds; a guess.
const OTHER_FILES: u64 = 64;

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Leave at once.
    stop: AtomicBool,
    /// Requests of the window not yet claimed by a thread, in a closed loop with a count.
    budget: AtomicU64,
    progress: Vec<Progress>,
}

impl Shared {
    fn new(plan: &Plan) -> Self {
        Self {
            stop: AtomicBool::new(false),
            budget: AtomicU64::new(match plan.stop {
                Stop::Count(count) => count,
                Stop::After(_) | Stop::Finished { .. } => 0,
            }),
            progress: (0..plan.threads).map(|_| Progress::default()).collect(),
        }
    }

    /// Whether the threads must leave.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How far a thread has come.
    pub(super) fn progress(&self, thread: usize) -> &Progress {
        &self.progress[thread]
    }

    /// Takes up to `wanted` requests off the count.
    pub(super) fn claim(&self, wanted: usize) -> usize {
        let mut left = self.budget.load(Ordering::Relaxed);
        loop {
            let take = left.min(wanted as u64);
            let (ok, fail) = (Ordering::Relaxed, Ordering::Relaxed);
            match self
                .budget
                .compare_exchange_weak(left, left - take, ok, fail)
            {
                Ok(_) => return take as usize,
                Err(now_left) => left = now_left,
            }
        }
    }

    /// A count over all threads, as of their last ticks.
    fn sum(&self, part: impl Fn(&Progress) -> &AtomicU64) -> u64 {
        self.progress
            .iter()
            .map(|progress| part(progress).load(Ordering::Relaxed))
            .sum()
    }
}

/// What a generator thread reports to the coordinator.
#[derive(Debug)]
pub(super) enum Note {
    /// Sockets are open; here are the thread's CPU clock and id.
    Ready {
        clock: libc::clockid_t,
        tid: libc::pid_t,
    },
    /// It cannot start.
    Failed(Error),
    /// Its second is over.
    Part(Box<Part>),
    /// All its requests are answered or lost.
    Done,
    /// It ended in another way: a panic, which joining it will show.
    Gone,
}

/// Where the threads wait for the start, and at the end for the last reading of their clocks.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Shut,
    Open {
        start: u64,
        window: Window,
    },
    Leave,
}

impl Gate {
    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    /// The times of the run, or `None` if there is none.
    fn wait_open(&self) -> Option<(u64, Window)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let shut = |state: &mut State| matches!(state, State::Shut);
        match *self
            .changed
            .wait_while(state, shut)
            .unwrap_or_else(PoisonError::into_inner)
        {
            State::Open { start, window } => Some((start, window)),
            _ => None,
        }
    }

    fn wait_leave(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let staying = |state: &mut State| !matches!(state, State::Leave);
        drop(self.changed.wait_while(state, staying));
    }
}

/// Opens the gate for good when the coordinator leaves, however it leaves, so that no thread waits for ever.
struct Release<'a>(&'a Gate, &'a Shared);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.1.stop.store(true, Ordering::Relaxed);
        self.0.set(State::Leave);
    }
}

/// Informs the coordinator if a thread panics.
struct Farewell(Sender<Note>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(Note::Gone);
    }
}

pub(super) fn run<K: Kind>(
    kind: &K,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    // Whatever ends this run, the load beside it must not wait for it.
    let _leaves = hooks.turns.map(Leaves);
    kind.check()?;
    let plan = &kind.plan();
    os::reserve_files((plan.threads * kind.files()) as u64 + OTHER_FILES)?;
    let shared = Shared::new(plan);
    let (ground, seats) = kind.prepare(&|| enter(0, hooks))?;
    let gate = Gate::default();
    let (notes, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let release = Release(&gate, &shared);
        let mut handles = Vec::with_capacity(plan.threads);
        for (thread, seat) in seats.into_iter().enumerate() {
            let ledger = Ledger::new(plan, thread, &shared, notes.clone(), kind.errors().len());
            let (notes, gate) = (notes.clone(), &gate);
            let name = format!("load-{thread}");
            let spawned = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || {
                    generate(kind, plan, hooks, ledger, seat, gate, &notes)
                });
            handles.push(spawned.map_err(|error| Error::Thread {
                thread,
                step: "start",
                error,
                remedy: "use fewer --threads, or raise the limits on threads and memory",
            })?);
        }
        drop(notes);
        let mut watch = Watch {
            plan,
            hooks,
            shared: &shared,
            inbox,
            each_second,
            clocks: Vec::new(),
            parts: BTreeMap::new(),
            seconds: Vec::new(),
            whole_seconds: (plan.stop.length()).map_or(u64::MAX, |length| length.as_secs()),
            done: 0,
            gone: false,
        };
        let outcome = watch.follow(&gate);
        let seconds = std::mem::take(&mut watch.seconds);
        drop(release);
        let (tally, own) = join(handles);
        let mut completed = outcome
            .and_then(|edges| complete(plan, kind.errors(), &edges, seconds, &tally, &shared))?;
        kind.complete(&ground, own, &mut completed);
        Ok(completed)
    })
}

/// Calls the hook of a new thread.
fn enter(thread: usize, hooks: &Hooks) -> Result<(), Error> {
    (hooks.thread_start)(thread).map_err(|error| Error::Thread {
        thread,
        step: "enter the client's network namespace",
        error,
        remedy: "check that its network namespace still exists",
    })
}

fn generate<'a, K: Kind>(
    kind: &'a K,
    plan: &Plan,
    hooks: &Hooks,
    ledger: Ledger<'a>,
    seat: K::Seat,
    gate: &Gate,
    notes: &Sender<Note>,
) -> Option<(Tally, K::Own)> {
    let _farewell = Farewell(notes.clone());
    let thread = ledger.thread();
    let prepare = || {
        let refuse = |step, remedy| {
            move |error| Error::Thread {
                thread,
                step,
                error,
                remedy,
            }
        };
        enter(thread, hooks)?;
        if let Some(pins) = &plan.pins {
            os::pin(pins[thread % pins.len()]).map_err(refuse(
                "bind to a CPU",
                "pin to CPUs that are online and that this process may use (taskset -p $$)",
            ))?;
        }
        os::no_timer_slack();
        let clock =
            os::own_cpu_clock().map_err(refuse("find the CPU clock", "report this as a bug"))?;
        Ok((kind.driver(ledger, seat)?, clock))
    };
    let (mut driver, (clock, tid)) = match prepare() {
        Ok(ready) => ready,
        Err(error) => {
            let _ = notes.send(Note::Failed(error));
            return None;
        }
    };
    let _ = notes.send(Note::Ready { clock, tid });
    let (start, window) = gate.wait_open()?;
    driver.run(start, window);
    let _ = notes.send(Note::Done);
    // The coordinator reads this thread's CPU clock, which ends with the thread.
    gate.wait_leave();
    Some(driver.into_counts())
}

/// The counts of all threads together, and what each counted of its kind's own.
fn join<T>(handles: Vec<ScopedJoinHandle<'_, Option<(Tally, T)>>>) -> (Tally, Vec<T>) {
    let (mut all, mut own) = (Tally::default(), Vec::new());
    for handle in handles {
        match handle.join() {
            Ok(Some((tally, rest))) => {
                all.merge(&tally);
                own.push(rest);
            }
            Ok(None) => {}
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    (all, own)
}

/// The clocks at one edge of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: u64,
    cpu_ns: u64,
    /// Waiting for a CPU.
    delay_ns: u64,
}

/// The measured window as it was.
#[derive(Clone, Copy, Debug)]
struct Edges {
    window: Window,
    began: Reading,
    ended: Reading,
}

struct Watch<'a> {
    plan: &'a Plan,
    hooks: &'a Hooks<'a>,
    shared: &'a Shared,
    inbox: Receiver<Note>,
    each_second: &'a mut dyn FnMut(&Second),
    clocks: Vec<(libc::clockid_t, libc::pid_t)>,
    /// Seconds that some threads have not reported yet, and how many have.
    parts: BTreeMap<u64, (usize, Part)>,
    seconds: Vec<Second>,
    /// How many seconds of the window are whole.
    whole_seconds: u64,
    done: usize,
    /// A thread panicked, which joining it will show: there is nothing to wait for.
    gone: bool,
}

impl Watch<'_> {
    fn follow(&mut self, gate: &Gate) -> Result<Edges, Error> {
        self.gather()?;
        let start = match self.hooks.turns {
            None => now_ns(),
            Some(seat) => {
                let start = seat.meet(self.hooks.interrupted);
                start.ok_or(Error::Interrupted { after_s: 0.0 })?
            }
        };
        let begin = start + self.plan.warmup.as_nanos() as u64;
        let length = self.plan.stop.length();
        let end = length.map_or(u64::MAX, |length| begin + length.as_nanos() as u64);
        let window = Window {
            begin,
            end,
            turns: self.hooks.turns.map(|seat| seat.slices(start)),
        };
        gate.set(State::Open { start, window });
        self.wait(start, begin)?;
        let began = self.read_clocks();
        (self.hooks.window)(Edge::Began);
        // With a count, this returns when all threads are done.
        self.wait(start, end)?;
        let ended = self.read_clocks();
        (self.hooks.window)(Edge::Ended);
        self.wait(start, u64::MAX)?;
        self.add_rest();
        Ok(Edges {
            window,
            began,
            ended,
        })
    }

    /// Waits until every thread has its sockets.
    fn gather(&mut self) -> Result<(), Error> {
        let start = now_ns();
        while self.clocks.len() < self.plan.threads {
            match self.inbox.recv_timeout(Duration::from_nanos(LOOK_NS)) {
                Ok(Note::Ready { clock, tid }) => self.clocks.push((clock, tid)),
                Ok(Note::Failed(error)) => return Err(error),
                Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                    self.gone = true;
                    break;
                }
                Err(RecvTimeoutError::Timeout) => self.check_interrupted(start)?,
            }
        }
        Ok(())
    }

    /// Sleeps until `deadline`, or until all threads are done; puts seconds together meanwhile.
    fn wait(&mut self, start: u64, deadline: u64) -> Result<(), Error> {
        loop {
            self.check_interrupted(start)?;
            self.check_silence(start)?;
            let now = now_ns();
            // Threads are done before the end of the window where their users have come to the end of a plan.
            let over = self.done >= self.plan.threads;
            if self.gone || over || now >= deadline {
                return Ok(());
            }
            let left = deadline - now;
            if left <= LOOK_NS {
                // Notes can wait for the edge, which should be sharp.
                sleep_until(deadline);
                continue;
            }
            match self
                .inbox
                .recv_timeout(Duration::from_nanos(left.min(LOOK_NS)))
            {
                Ok(Note::Part(part)) => self.add(*part),
                Ok(Note::Done) => self.done += 1,
                Ok(Note::Gone) | Err(RecvTimeoutError::Disconnected) => self.gone = true,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn check_interrupted(&self, start: u64) -> Result<(), Error> {
        if self.hooks.interrupted.load(Ordering::Relaxed) {
            return Err(Error::Interrupted {
                after_s: now_ns().saturating_sub(start) as f64 / SECOND as f64,
            });
        }
        Ok(())
    }

    /// Stops a run without any reply.
    fn check_silence(&self, start: u64) -> Result<(), Error> {
        let sum = |part: fn(&Progress) -> &AtomicU64| self.shared.sum(part);
        let elapsed = now_ns().saturating_sub(start);
        if elapsed < SILENCE_NS || sum(|p| &p.received) > 0 {
            return Ok(());
        }
        let (sent, refused, send_errors) = (
            sum(|p| &p.sent),
            sum(|p| &p.refused),
            sum(|p| &p.send_errors),
        );
        let patience = SILENT_TIMEOUTS * self.plan.timeout.as_nanos() as u64;
        let is_refused = refused > 0 || sent == 0 && send_errors > 0;
        if is_refused || sent >= SILENT_TIMEOUTS && elapsed >= patience {
            return Err(Error::NoReplies {
                target: self.plan.target.clone(),
                sent,
                refused,
                send_errors,
                after_s: elapsed as f64 / SECOND as f64,
            });
        }
        Ok(())
    }

    fn read_clocks(&self) -> Reading {
        let cpu_ns = self
            .clocks
            .iter()
            .filter_map(|(clock, _)| read_ns(*clock))
            .sum();
        let at = now_ns();
        let delay_ns = self
            .clocks
            .iter()
            .filter_map(|(_, tid)| os::run_delay_ns(*tid))
            .sum();
        Reading {
            at,
            cpu_ns,
            delay_ns,
        }
    }

    /// Adds a thread's second, and reports the second once all threads have reported theirs.
    fn add(&mut self, part: Part) {
        // The rest of a window that is not whole seconds long.
        if part.index >= self.whole_seconds {
            return;
        }
        let index = part.index;
        let reported = if let Some((threads, sum)) = self.parts.get_mut(&index) {
            *threads += 1;
            sum.merge(&part);
            *threads
        } else {
            self.parts.insert(index, (1, part));
            1
        };
        if reported == self.plan.threads
            && let Some((_, sum)) = self.parts.remove(&index)
        {
            self.tell(&sum);
        }
    }

    /// Reports the seconds for which some threads had nothing left to do.
    fn add_rest(&mut self) {
        for (_, (_, part)) in std::mem::take(&mut self.parts) {
            self.tell(&part);
        }
        self.seconds.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    }

    fn tell(&mut self, part: &Part) {
        let second = Second {
            at_s: part.index as f64,
            sent: part.sent,
            received: part.received,
            lost: part.lost,
            p50_us: part.corrected.quantile_ns(0.5) as f64 / 1e3,
            p99_us: part.corrected.quantile_ns(0.99) as f64 / 1e3,
        };
        (self.each_second)(&second);
        self.seconds.push(second);
    }
}

fn complete(
    plan: &Plan,
    errors: &[&str],
    edges: &Edges,
    mut seconds: Vec<Second>,
    tally: &Tally,
    shared: &Shared,
) -> Result<Completed, Error> {
    let begin = edges.window.begin;
    let end = match plan.stop {
        Stop::After(_) => edges.window.end,
        _ if edges.ended.at >= edges.window.end => edges.window.end,
        Stop::Count(_) | Stop::Finished { .. } => tally.last_reply.max(tally.last_send),
    };
    // Nothing can be asked and answered within the resolution of the clock.
    let window_ns = end.saturating_sub(begin).max(1);
    let (own_ns, counted_ns) = match edges.window.turns {
        None => (window_ns, window_ns),
        Some(turns) => turns.share_of(edges.window),
    };
    let window_s = counted_ns.max(1) as f64 / SECOND as f64;
    if tally.all_received == 0 {
        return Err(Error::NoReplies {
            target: plan.target.clone(),
            // Those of the warm-up too: nobody answered them either.
            sent: shared.sum(|progress| &progress.sent),
            refused: tally.refused,
            send_errors: tally.send_errors,
            after_s: (end.saturating_sub(begin) as f64 / SECOND as f64) + plan.warmup.as_secs_f64(),
        });
    }
    seconds.retain(|second| second.at_s < whole_seconds(begin, end) as f64);

    let threads = plan.threads as f64;
    let cpu_ns = edges.ended.cpu_ns.saturating_sub(edges.began.cpu_ns) as f64;
    let delay_ns = edges.ended.delay_ns.saturating_sub(edges.began.delay_ns) as f64;
    // A load that takes turns can be busy in its own alone.
    let watched_ns = edges.ended.at.saturating_sub(edges.began.at).max(1) as f64
        * (own_ns as f64 / window_ns as f64);
    // Threads run before the coordinator wakes to read their clocks: of a window that is over by then, nothing is seen.
    let missed_ns = edges.began.at.saturating_sub(begin) as f64;
    let resolved = tally.arrived > 0 && cpu_ns > 0.0 && missed_ns <= MISSED * window_ns as f64;
    let busy =
        ((cpu_ns + delay_ns - tally.spin_ns as f64) / (watched_ns * threads)).clamp(0.0, 1.0);
    let unsent = tally.unsent;
    let due = (tally.sent + unsent).max(1) as f64;
    let measurement = Measurement {
        offered_per_s: match plan.arrival {
            Arrival::Closed => None,
            Arrival::Constant { per_s } => Some(per_s),
            Arrival::Ramp {
                from_per_s,
                to_per_s,
            } => Some(f64::midpoint(from_per_s, to_per_s)),
        },
        achieved_per_s: tally.arrived as f64 / window_s,
        window_s,
        sent: tally.sent,
        received: tally.received,
        lost: tally.lost,
        errors: tally.named_errors(errors),
        latency_us: Latency {
            corrected: tally.corrected.quantiles(),
            uncorrected: tally.uncorrected.quantiles(),
        },
        client: ClientHealth {
            cpu_us_per_tx: resolved.then(|| cpu_ns / 1e3 / tally.worked as f64),
            busy: Some(busy),
            saturated: busy >= SATURATED,
            late_sends: (tally.late_sends + unsent) as f64 / due,
            starved: 2 * (tally.starved_sends + unsent) > tally.late_sends + unsent,
            socket_drops: tally.socket_drops,
            ..ClientHealth::default()
        },
        seconds,
        http: None,
        stream: None,
        connections: None,
    };
    Ok(Completed {
        measurement,
        corrected: tally.corrected.clone(),
        uncorrected: tally.uncorrected.clone(),
        client_cpu_s: cpu_ns / SECOND as f64,
        arrived: tally.worked,
        wrong: tally.wrong,
    })
}
