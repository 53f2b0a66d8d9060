//! Kinds that ask one request at a time: a connection per thread, which waits for a reply before the next request leaves.
//!
//! A slow answer also delays the requests behind it: in an open loop their latency counts from when they were due, not from when the
//! connection was free.

use rungwise_model::load::Second;

use super::{Completed, Driver, Hooks, Kind, Ledger, Plan, Tally, Window};
use crate::Error;
use crate::clock::{now_ns, sleep_until};
use crate::parameters::{Contradiction, refused};

/// A workload whose threads have one connection each, and one request under way on it.
pub trait Exchange: Sync {
    /// What a thread keeps between its requests.
    type Connection;

    /// The load.
    fn plan(&self) -> Plan;

    /// Contradictions other than those of the plan, and what would be right.
    fn contradictions(&self) -> Vec<Contradiction>;

    /// Names of the failures that this kind distinguishes, for [`Failure::Named`].
    fn failures(&self) -> &'static [&'static str];

    /// Opens a connection; again after a failure. Called in the generator's thread.
    fn connect(&self, thread: usize) -> Result<Self::Connection, Error>;

    /// Sends request `number` of the thread and waits for its reply, for one timeout of the plan at most.
    fn exchange(&self, connection: &mut Self::Connection, number: u64) -> Result<Reply, Failure>;
}

/// What came back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What was asked for.
    Answer,
    /// An error of the service.
    Error,
}

/// Why no reply came; the connection is reopened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing came in time.
    Silent,
    /// The target refuses connections.
    Refused,
    /// The kernel did not take the request.
    NotSent,
    /// By its place in [`Exchange::failures`].
    Named(usize),
}

/// Drives a workload and measures it; each second of the window goes to `each_second` soon after it has passed.
pub fn run(
    workload: &impl Exchange,
    hooks: &Hooks,
    each_second: &mut dyn FnMut(&Second),
) -> Result<Completed, Error> {
    super::run(&Alone(workload), hooks, each_second)
}

/// An exchange as a kind.
#[derive(Debug)]
struct Alone<'w, E>(&'w E);

impl<E: Exchange> Kind for Alone<'_, E> {
    type Ground = ();
    type Seat = ();
    type Driver<'a>
        = OneAtATime<'a, E>
    where
        Self: 'a;
    type Own = ();

    fn plan(&self) -> Plan {
        self.0.plan()
    }

    fn check(&self) -> Result<(), Error> {
        let plan = self.0.plan();
        let mut found = plan.contradictions();
        found.extend(self.0.contradictions());
        refused(plan.target, found)
    }

    fn files(&self) -> usize {
        1
    }

    fn errors(&self) -> &'static [&'static str] {
        self.0.failures()
    }

    fn prepare(&self, _: &(dyn Fn() -> Result<(), Error> + Sync)) -> Result<((), Vec<()>), Error> {
        Ok(((), vec![(); self.0.plan().threads]))
    }

    fn driver<'a>(&'a self, ledger: Ledger<'a>, (): ()) -> Result<OneAtATime<'a, E>, Error> {
        Ok(OneAtATime {
            connection: Some(self.0.connect(ledger.thread())?),
            workload: self.0,
            ledger,
            number: 0,
        })
    }

    fn complete(&self, (): &(), _: Vec<()>, _: &mut Completed) {}
}

/// A thread with one connection.
#[derive(Debug)]
struct OneAtATime<'a, E: Exchange> {
    workload: &'a E,
    /// Absent after a failure.
    connection: Option<E::Connection>,
    ledger: Ledger<'a>,
    number: u64,
}

impl<E: Exchange> Driver for OneAtATime<'_, E> {
    type Own = ();

    fn run(&mut self, start: u64, window: Window) {
        self.ledger.begin(start, window, 1);
        let mut free_since = start;
        while let Some(due) = self.next_due() {
            let sent = now_ns();
            let starved = free_since > due;
            self.ledger.note_lateness(due, sent, 1, starved);
            self.ledger.advance();
            self.ask(due, sent);
            free_since = now_ns();
        }
        self.ledger.finish(now_ns(), 0);
    }

    fn into_counts(self) -> (Tally, ()) {
        (self.ledger.into_tally(), ())
    }
}

impl<E: Exchange> OneAtATime<'_, E> {
    /// Waits until the next request is due, and says when it was; absent at the end of the run.
    fn next_due(&mut self) -> Option<u64> {
        loop {
            let now = now_ns();
            if now >= self.ledger.next_tick() && self.ledger.tick(now).over {
                return None;
            }
            // Nothing is under way here, so the thread ends where sending ends.
            if !self.ledger.sending {
                return None;
            }
            if let Some(wake) = self.ledger.rest(now) {
                sleep_until(wake.min(self.ledger.next_tick()));
                continue;
            }
            let due = if self.ledger.schedule.is_none() {
                (self.ledger.claim(1, now) > 0).then_some(now)
            } else {
                self.ledger.due().map(|(due, _)| due)
            };
            match due {
                Some(due) if due <= now && now < self.ledger.window.end => return Some(due),
                Some(due) if due > now => sleep_until(due.min(self.ledger.next_tick())),
                _ => {
                    self.ledger.end_sending(now);
                    return None;
                }
            }
        }
    }

    fn ask(&mut self, due: u64, sent: u64) {
        let number = self.number;
        self.number += 1;
        let outcome = self.connected().and_then(|()| {
            let connection = self.connection.as_mut().ok_or(Failure::Refused)?;
            self.workload.exchange(connection, number)
        });
        let now = now_ns();
        if outcome == Err(Failure::NotSent) {
            self.ledger.not_taken(1, now);
            self.connection = None;
            return;
        }
        self.ledger.sent([due].into_iter(), sent);
        match outcome {
            // Too late, though its connection has waited for it.
            Ok(_) if now - sent > self.ledger.timeout => self.ledger.lost(due, now),
            Ok(reply) => {
                let mut round = self.ledger.round(now);
                let ours = self.ledger.window.has(due);
                self.ledger.tally.wrong += u64::from(reply == Reply::Error && ours);
                self.ledger.answered(&mut round, due, sent);
                self.ledger.end_round(round);
            }
            Err(failure) => {
                self.connection = None;
                match failure {
                    Failure::Refused => self.ledger.refused(1, now),
                    Failure::Named(at) => self.ledger.count(at, 1),
                    Failure::Silent | Failure::NotSent => {}
                }
                self.ledger.lost(due, now);
            }
        }
    }

    /// Reopens the connection after a failure.
    fn connected(&mut self) -> Result<(), Failure> {
        if self.connection.is_none() {
            let opened = self.workload.connect(self.ledger.thread());
            self.connection = Some(opened.map_err(|_| Failure::Refused)?);
        }
        Ok(())
    }
}
