//! The thread that starts the others, waits until connections are open, sees to the edges of the window, and adds up what was counted.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rungwise_model::connections::{Broadcasts, Connections, Storm};
use rungwise_model::load::{ClientHealth, Latency, Measurement, SATURATED, Second};
use rungwise_serve::files;

use super::counts::{Counts, KINDS, Kind, Progress, Shared};
use super::driver::Driver;
use super::{HOLD, Plan, socket, sources};
use crate::Error;
use crate::clock::{SECOND, now_ns, read_ns, sleep_until};
use crate::engine::{
    Completed, Edge, Hooks, Part, Stop, no_timer_slack, own_cpu_clock, run_delay_ns, whole_seconds,
};
use crate::parameters::{Length, Target};

/// How often flags and progress are looked at, ns.
const LOOK_NS: u64 = 10_000_000;
/// How much later than they are due the last pings may leave, ns; their replies still count.
const LATE_NS: u64 = SECOND / 2;
/// A thread that has had no round for so long is not waited for at the end, ns.
const TURN_NS: u64 = 2 * SECOND;
/// A target that refuses every connection is given up after this, ns.
const REFUSED_NS: u64 = SECOND;
/// Connections are counted, and the window begins this much later, so that every thread has seen when.
const NOTICE_NS: u64 = 50_000_000;

/// What a thread reports.
#[derive(Debug)]
pub(super) enum Note {
    /// It can begin; its CPU clock and id.
    Ready(libc::clockid_t, libc::pid_t),
    /// It cannot.
    Failed(Error),
    /// A second of the window is over.
    Second(Box<Part>),
}

/// Why the load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Interrupted,
    /// No connection is left.
    Alone,
}

pub(super) fn run(
    plan: &Plan,
    length: &Length,
    hooks: &Hooks<'_>,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    let target = Target::Address(plan.target);
    let window = match length.stop {
        Stop::After(window) => window,
        Stop::Finished { at_most } => at_most.unwrap_or(HOLD),
        Stop::Count(_) => {
            return Err(Error::Workload {
                target,
                why: "connections are held for a time; a number of requests does not end them"
                    .to_owned(),
            });
        }
    };
    if plan.half_open > 0 {
        socket::may_vanish().map_err(|error| Error::Socket {
            step: "let connections vanish",
            target,
            source_ip: None,
            error,
            remedy: "run as root, grant CAP_NET_ADMIN, or leave --half-open out",
        })?;
    }
    let memory = socket::memory();
    let shared = Shared::new(plan.threads);
    let (notes, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let release = Release(&shared);
        let mut handles = Vec::with_capacity(plan.threads);
        for number in 0..plan.threads {
            let (notes, shared) = (notes.clone(), &shared);
            let spawned = thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn_scoped(scope, move || drive(plan, shared, hooks, number, &notes));
            handles.push(spawned.map_err(|error| Error::Thread {
                thread: number,
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
            wholes: 0,
        };
        let outcome = watch.follow(&handles, length.warmup, window, memory);
        drop(release);
        let mut counts = Counts::default();
        for handle in handles {
            match handle.join() {
                Ok(Some(own)) => counts.merge(&own),
                Ok(None) => {}
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let followed = outcome.map_err(|error| explained(error, &counts))?;
        watch.gather();
        Ok(complete(plan, &followed, watch.seconds, counts))
    })
}

/// A load without a connection, with what its threads counted by cause.
fn explained(error: Error, counts: &Counts) -> Error {
    let causes: Vec<String> = KINDS
        .iter()
        .zip(counts.errors)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
        .collect();
    let of_this_host = [
        Kind::Denied,
        Kind::NoPort,
        Kind::NoDescriptor,
        Kind::NoMemory,
    ];
    let own: u64 = of_this_host
        .map(|kind| counts.errors[kind as usize])
        .iter()
        .sum();
    match error {
        Error::NoConnections {
            target,
            tried,
            after_s,
            remedy,
            ..
        } if !causes.is_empty() => Error::NoConnections {
            target,
            tried,
            after_s,
            errors: causes.join(", "),
            remedy: if own > 0 {
                "raise the limit of this host that the cause names, or ask for fewer connections"
            } else {
                remedy
            },
        },
        other => other,
    }
}

/// Lets the threads leave when the one that watches them does, however it does.
struct Release<'a>(&'a Shared);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Release);
    }
}

/// A thread of the load.
fn drive(
    plan: &Plan,
    shared: &Shared,
    hooks: &Hooks<'_>,
    thread: usize,
    notes: &Sender<Note>,
) -> Option<Counts> {
    let prepare = || {
        let refuse = |step, remedy| {
            move |error| Error::Thread {
                thread,
                step,
                error,
                remedy,
            }
        };
        (hooks.thread_start)(thread).map_err(refuse(
            "enter the client's network namespace",
            "check that its network namespace still exists",
        ))?;
        if plan.own_tables {
            files::own_table().map_err(refuse(
                "have a table of file descriptors of its own",
                "raise the limit on open files (ulimit -n) above --count",
            ))?;
        }
        if thread == 0 && !sources::is_loopback(plan.target) {
            check_sources(plan)?;
        }
        no_timer_slack();
        let (clock, tid) =
            own_cpu_clock().map_err(refuse("find the CPU clock", "report this as a bug"))?;
        let driver = Driver::new(plan, shared, thread, notes.clone()).map_err(refuse(
            "open an epoll instance",
            "raise the limit on open files (ulimit -n)",
        ))?;
        Ok((driver, clock, tid))
    };
    match prepare() {
        Ok((driver, clock, tid)) => {
            let _ = notes.send(Note::Ready(clock, tid));
            while shared.start.load(Ordering::Acquire) == u64::MAX {
                if shared.stop.load(Ordering::Acquire) {
                    return None;
                }
                sleep_until(now_ns() + SECOND / 1000);
            }
            Some(driver.run())
        }
        Err(error) => {
            let _ = notes.send(Note::Failed(error));
            None
        }
    }
}

/// Each source is an address of this host.
fn check_sources(plan: &Plan) -> Result<(), Error> {
    for source in &plan.sources {
        UdpSocket::bind((*source, 0)).map_err(|error| Error::Socket {
            step: "bind to a source address",
            target: Target::Address(plan.target),
            source_ip: Some(*source),
            error,
            remedy: "give addresses of this host by --source (`ip addr`)",
        })?;
    }
    Ok(())
}

/// The clocks at an edge of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: u64,
    cpu_ns: u64,
    delay_ns: u64,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
struct Followed {
    start: u64,
    /// The window, absolute ns; of no length where it did not begin.
    begin: u64,
    end: u64,
    began: Reading,
    over: Reading,
    ended: Ended,
    /// Connections that were open at its end.
    held: u64,
    /// Memory of the process for each connection.
    bytes_each: Option<f64>,
}

struct Watch<'a> {
    plan: &'a Plan,
    hooks: &'a Hooks<'a>,
    shared: &'a Shared,
    inbox: Receiver<Note>,
    each_second: &'a mut dyn FnMut(&Second),
    clocks: Vec<(libc::clockid_t, libc::pid_t)>,
    parts: BTreeMap<u64, (usize, Part)>,
    seconds: Vec<Second>,
    /// Whole seconds of the window.
    wholes: u64,
}

impl Watch<'_> {
    fn follow(
        &mut self,
        handles: &[ScopedJoinHandle<'_, Option<Counts>>],
        warmup: Duration,
        window: Duration,
        memory: Option<u64>,
    ) -> Result<Followed, Error> {
        self.ready(handles)?;
        let start = now_ns() + LOOK_NS;
        self.shared.start.store(start, Ordering::Release);
        let sum = |part: fn(&Progress) -> &AtomicU64| self.shared.sum(part);
        let mut ended = Ended::Whole;
        loop {
            if self.interrupted() {
                ended = Ended::Interrupted;
                break;
            }
            if handles.iter().any(ScopedJoinHandle::is_finished) {
                // Nothing has told the threads to end: it panicked, which shows when it is joined, before this error.
                return Err(Error::Interrupted {
                    after_s: now_ns().saturating_sub(start) as f64 / SECOND as f64,
                });
            }
            if sum(|p| &p.resolved) >= self.plan.count {
                break;
            }
            if sum(|p| &p.opened) == 0 && sum(|p| &p.refused) > 0 && now_ns() >= start + REFUSED_NS
            {
                break;
            }
            sleep_until(now_ns() + LOOK_NS);
        }
        let open = sum(|p| &p.open);
        if ended == Ended::Whole && sum(|p| &p.opened) == 0 {
            return Err(Error::NoConnections {
                target: Target::Address(self.plan.target),
                tried: sum(|p| &p.resolved),
                after_s: now_ns().saturating_sub(start) as f64 / SECOND as f64,
                // Unless a thread counted something: see `explained`.
                errors: "no answer".to_owned(),
                remedy: "start the server, or correct address and port",
            });
        }
        // Where it did not grow, nothing is known: memory was there before, or came from what was freed.
        let grown = socket::memory().zip(memory);
        let grown = grown.map(|(now, before)| now.saturating_sub(before));
        let bytes_each = grown
            .filter(|grown| open > 0 && *grown > 0)
            .map(|grown| grown as f64 / open as f64);
        let begin = now_ns() + NOTICE_NS + warmup.as_nanos() as u64;
        let mut end = begin + window.as_nanos() as u64;
        if ended == Ended::Interrupted {
            end = begin;
        }
        self.wholes = whole_seconds(begin, end);
        self.shared.end.store(end, Ordering::Release);
        self.shared.begin.store(begin, Ordering::Release);
        if self.plan.storm {
            let middle = begin + window.as_nanos() as u64 / 2;
            self.shared.storm.store(middle, Ordering::Release);
        }
        if ended == Ended::Whole {
            ended = self.sleep(begin);
        }
        let began = self.read_clocks();
        (self.hooks.window)(Edge::Began);
        if ended == Ended::Whole {
            ended = self.sleep(end);
        }
        if ended != Ended::Whole {
            // A little later, so that every thread has seen when: what it counts as sent is of the window.
            let notice = now_ns() + NOTICE_NS;
            end = notice.clamp(begin, end);
            self.shared.end.store(end, Ordering::Release);
            sleep_until(end.min(notice));
        }
        let over = self.read_clocks();
        (self.hooks.window)(Edge::Ended);
        let held = self.shared.sum(|progress| &progress.open);
        if ended == Ended::Whole {
            let patience = end + self.plan.timeout.as_nanos() as u64 + LATE_NS;
            ended = self.drain(patience);
        }
        Ok(Followed {
            start,
            begin,
            end,
            began,
            over,
            ended,
            held,
            bytes_each,
        })
    }

    fn interrupted(&self) -> bool {
        self.hooks.interrupted.load(Ordering::Relaxed)
    }

    /// Waits until every thread can begin.
    fn ready(&mut self, handles: &[ScopedJoinHandle<'_, Option<Counts>>]) -> Result<(), Error> {
        let began = now_ns();
        while self.clocks.len() < self.plan.threads {
            // Before the inbox: what a thread said before it ended is in there.
            let has_ended = handles.iter().any(ScopedJoinHandle::is_finished);
            match self.inbox.recv_timeout(Duration::from_nanos(LOOK_NS)) {
                Ok(Note::Ready(clock, tid)) => self.clocks.push((clock, tid)),
                Ok(Note::Failed(error)) => return Err(error),
                // A thread that panicked shows when it is joined.
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if has_ended => break,
                Err(mpsc::RecvTimeoutError::Timeout) if self.interrupted() => {
                    return Err(Error::Interrupted {
                        after_s: now_ns().saturating_sub(began) as f64 / SECOND as f64,
                    });
                }
                Ok(Note::Second(_)) | Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(())
    }

    /// Sleeps until `deadline`, and puts seconds together meanwhile.
    fn sleep(&mut self, deadline: u64) -> Ended {
        loop {
            let now = now_ns();
            if self.interrupted() {
                return Ended::Interrupted;
            }
            if now >= deadline {
                return Ended::Whole;
            }
            let storm = self.shared.storm.load(Ordering::Relaxed);
            let patience = self.plan.timeout.as_nanos() as u64 + LOOK_NS;
            let comes_back = storm <= now + LOOK_NS && now < storm + patience;
            if self.shared.sum(|progress| &progress.open) == 0 && !comes_back {
                return Ended::Alone;
            }
            self.gather();
            sleep_until(deadline.min(now + LOOK_NS));
        }
    }

    /// Waits for the last replies, messages and connections of a storm.
    fn drain(&mut self, patience: u64) -> Ended {
        let sum = |part: fn(&Progress) -> &AtomicU64| self.shared.sum(part);
        // The round under way began before the end, the next one did not.
        let rounds = |progress: &Progress| progress.rounds.load(Ordering::Acquire);
        let before: Vec<u64> = self.shared.progress.iter().map(rounds).collect();
        let has_turned = || {
            let now = self.shared.progress.iter().map(rounds);
            now.zip(&before).all(|(now, before)| now >= before + 2)
        };
        let limit = now_ns() + TURN_NS;
        while !has_turned() && !self.interrupted() && now_ns() < limit {
            sleep_until(now_ns() + LOOK_NS);
        }
        loop {
            let pending = sum(|p| &p.pending);
            let arrives = sum(|p| &p.arrived) < sum(|p| &p.expected);
            if pending == 0 && !arrives || now_ns() >= patience {
                return Ended::Whole;
            }
            if self.interrupted() {
                return Ended::Interrupted;
            }
            self.gather();
            sleep_until(now_ns() + LOOK_NS);
        }
    }

    /// Takes the seconds that threads have reported.
    fn gather(&mut self) {
        while let Ok(note) = self.inbox.try_recv() {
            let Note::Second(part) = note else { continue };
            let index = part.index;
            if index >= self.wholes {
                continue;
            }
            let (threads, sum) = self
                .parts
                .entry(index)
                .or_insert_with(|| (0, Part::new(index)));
            *threads += 1;
            sum.merge(&part);
            if *threads == self.plan.threads
                && let Some((_, sum)) = self.parts.remove(&index)
            {
                let second = Second {
                    at_s: index as f64,
                    sent: sum.sent,
                    received: sum.received,
                    lost: sum.lost,
                    p50_us: sum.corrected.quantile_ns(0.5) as f64 / 1e3,
                    p99_us: sum.corrected.quantile_ns(0.99) as f64 / 1e3,
                };
                (self.each_second)(&second);
                self.seconds.push(second);
            }
        }
    }

    fn read_clocks(&self) -> Reading {
        let cpu_ns = self.clocks.iter().filter_map(|(clock, _)| read_ns(*clock));
        let delay_ns = self.clocks.iter().filter_map(|(_, tid)| run_delay_ns(*tid));
        Reading {
            cpu_ns: cpu_ns.sum(),
            delay_ns: delay_ns.sum(),
            at: now_ns(),
        }
    }
}

/// Why less was done than asked for.
fn partial(plan: &Plan, followed: &Followed, counts: &Counts) -> Option<String> {
    let limits = [
        (
            Kind::NoDescriptor,
            "no file descriptor was left; raise fs.file-max and ulimit -n",
        ),
        (
            Kind::NoPort,
            "no source port was left; give more addresses by --source, or widen net.ipv4.ip_local_port_range",
        ),
        (
            Kind::NoMemory,
            "the kernel had no memory for another; look at net.ipv4.tcp_mem, fs.epoll.max_user_watches and the memory of this host",
        ),
    ];
    let met = limits.into_iter().find(|(kind, _)| counts.of(*kind) > 0);
    let held_s = followed.end.saturating_sub(followed.begin) as f64 / SECOND as f64;
    match (followed.ended, met) {
        (Ended::Interrupted, _) => Some(format!(
            "interrupted after {} of {} connections were opened and held for {held_s:.1} s",
            counts.opened, plan.asked
        )),
        (Ended::Alone, _) => Some(format!(
            "every connection had ended {held_s:.1} s after the window began; look at the server"
        )),
        (Ended::Whole, Some((_, why))) => Some(format!(
            "{} of {} connections were opened: {why}",
            counts.opened, plan.asked
        )),
        (Ended::Whole, None) => plan.partial.clone(),
    }
}

fn complete(plan: &Plan, followed: &Followed, seconds: Vec<Second>, counts: Counts) -> Completed {
    let window_ns = followed.end.saturating_sub(followed.begin);
    let window_s = window_ns as f64 / SECOND as f64;
    let per_s = |count: u64| {
        if window_ns > 0 {
            count as f64 / window_s
        } else {
            0.0
        }
    };
    let cpu_ns = (followed.over.cpu_ns).saturating_sub(followed.began.cpu_ns) as f64;
    let delay_ns = (followed.over.delay_ns).saturating_sub(followed.began.delay_ns) as f64;
    let watched_ns = followed.over.at.saturating_sub(followed.began.at).max(1) as f64;
    let busy = ((cpu_ns + delay_ns) / (watched_ns * plan.threads as f64)).clamp(0.0, 1.0);
    let until_s = whole_seconds(followed.begin, followed.end) as f64;
    let mut seconds = seconds;
    seconds.retain(|second| second.at_s < until_s);
    seconds.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let opening_ns = counts.last_opened.saturating_sub(followed.start);
    let errors = KINDS.iter().zip(counts.errors);
    let errors = errors.filter(|(_, count)| *count > 0);
    let connections = Connections {
        asked: plan.asked,
        tried: counts.tried,
        opened: counts.opened,
        held: followed.held,
        opening_s: opening_ns as f64 / SECOND as f64,
        rate_per_s: plan.rate_per_s,
        connect_us: counts.connect.quantiles(),
        ping_s: plan.ping.map(|ping| ping.as_secs_f64()),
        sources: plan.sources.len() as u64,
        threads: plan.threads as u64,
        client_bytes_each: followed.bytes_each,
        broadcast: plan.broadcast.map(|_| Broadcasts {
            messages: counts.messages,
            expected: counts.expected,
            received: counts.messages_received,
            fan_out_us: counts.fan_out.quantiles(),
        }),
        storm: (counts.dropped > 0).then(|| Storm {
            dropped: counts.dropped,
            back: counts.back,
            back_us: counts.back_after.quantiles(),
        }),
        slow_readers: plan.slow_readers,
        half_open: counts.half_open,
        partial: partial(plan, followed, &counts),
        interrupted: followed.ended == Ended::Interrupted,
        limits: plan.limits.clone(),
    };
    let pinged = counts.opened_readers.saturating_sub(counts.half_open);
    let measurement = Measurement {
        offered_per_s: plan.ping.map(|ping| pinged as f64 / ping.as_secs_f64()),
        achieved_per_s: per_s(counts.arrived),
        window_s,
        sent: counts.sent,
        received: counts.received,
        lost: counts.lost,
        errors: errors
            .map(|(name, count)| ((*name).to_owned(), count))
            .collect(),
        latency_us: Latency {
            corrected: counts.corrected.quantiles(),
            uncorrected: counts.uncorrected.quantiles(),
        },
        client: ClientHealth {
            cpu_us_per_tx: (counts.arrived > 0 && cpu_ns > 0.0)
                .then(|| cpu_ns / 1e3 / counts.arrived as f64),
            busy: Some(busy),
            saturated: busy >= SATURATED,
            late_sends: counts.late_sends as f64 / counts.sent.max(1) as f64,
            ..ClientHealth::default()
        },
        seconds,
        http: None,
        stream: None,
        connections: Some(connections),
    };
    Completed {
        measurement,
        corrected: counts.corrected,
        uncorrected: counts.uncorrected,
        client_cpu_s: cpu_ns / SECOND as f64,
        arrived: counts.arrived,
        wrong: 0,
    }
}
