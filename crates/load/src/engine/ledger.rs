//! What a thread of a load counts, and when its next request, its next timeout check and its end are due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::coordinate::{Note, Shared};
use super::tally::{Part, Runs};
use super::{Plan, Schedule, Stop, Tally, Window};
use crate::clock::SECOND;

/// A send that leaves later than this after its intended start is counted as late.
const LATE_NS: u64 = 1_000_000;

/// How often a thread checks timeouts and flags, for a given timeout: an eighth of it, but 1 ms to 20 ms.
pub(crate) fn tick(timeout: Duration) -> Duration {
    (timeout / 8).clamp(Duration::from_millis(1), Duration::from_millis(20))
}

/// What the coordinator sees of a running thread, as of its last tick.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) send_errors: AtomicU64,
}

/// The books of one thread.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    plan: &'a Plan,
    thread: usize,
    shared: &'a Shared,
    notes: Sender<Note>,
    pub(crate) window: Window,
    /// When the next request is due; absent in a closed loop.
    pub(crate) schedule: Option<Schedule>,
    pub(crate) tally: Tally,
    pub(crate) part: Part,
    /// Outstanding requests of the window.
    pub(crate) open: u64,
    /// Requests still leave.
    pub(crate) sending: bool,
    /// Of a request, ns.
    pub(crate) timeout: u64,
    tick: u64,
    next_tick: u64,
    /// Instant at which the part is complete.
    part_ends: u64,
    /// When waiting for the last replies ends.
    give_up_at: u64,
    /// Sent in and out of the window, for [`Progress`].
    all_sent: u64,
}

/// What a thread must do at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Give up the requests that were sent at or before this.
    pub(crate) sent_by: u64,
    /// Leave then.
    pub(crate) over: bool,
}

/// Replies that were read at one instant.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) now: u64,
    /// The window has begun.
    pub(crate) counted: bool,
    /// It is the window.
    arriving: bool,
    /// It is between the edges of the window.
    within: bool,
    runs: Runs,
    good: u64,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        thread: usize,
        shared: &'a Shared,
        notes: Sender<Note>,
        errors: usize,
    ) -> Self {
        Self {
            plan,
            thread,
            shared,
            notes,
            window: Window {
                begin: 0,
                end: 0,
                turns: None,
            },
            schedule: None,
            tally: Tally::new(errors),
            part: Part::new(0),
            open: 0,
            sending: true,
            timeout: plan.timeout.as_nanos() as u64,
            tick: tick(plan.timeout).as_nanos() as u64,
            next_tick: 0,
            part_ends: u64::MAX,
            give_up_at: u64::MAX,
            all_sent: 0,
        }
    }

    /// The number of this thread, from 0.
    pub(crate) fn thread(&self) -> usize {
        self.thread
    }

    /// Begins at `start`, with requests that leave in bursts of so many.
    pub(crate) fn begin(&mut self, start: u64, window: Window, burst: usize) {
        self.window = window;
        self.part_ends = window.begin + SECOND;
        self.schedule = Schedule::new(
            &self.plan.arrival,
            &self.plan.stop,
            burst,
            (self.thread, self.plan.threads),
            (start, window.begin, window.end),
        );
    }

    /// When the next requests of an open loop are due, and how many; absent once all have left, and in a closed loop.
    #[inline]
    pub(crate) fn due(&self) -> Option<(u64, usize)> {
        self.schedule.as_ref().and_then(Schedule::peek)
    }

    /// Goes on to the requests after them.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if let Some(schedule) = &mut self.schedule {
            schedule.advance();
        }
    }

    /// The run was stopped; for what takes its time before the run begins.
    pub(crate) fn stopped(&self) -> bool {
        self.shared.stopped()
    }

    /// When [`Ledger::tick`] is to be called next.
    #[inline]
    pub(crate) fn next_tick(&self) -> u64 {
        self.next_tick
    }

    /// What is not needed per batch: timeouts, the stop flag, the second's part, the end.
    pub(crate) fn tick(&mut self, now: u64) -> Tick {
        // Both edges of the window are looked at sharply: drops before the first are not its own, and after
        // the second nothing is sent.
        let edge = if now < self.window.begin {
            self.window.begin
        } else if now < self.window.end {
            self.window.end
        } else {
            u64::MAX
        };
        let turn = self
            .window
            .turns
            .map_or(u64::MAX, |turns| turns.turn_ends(now));
        self.next_tick = edge.min(turn).min(now + self.tick);
        self.publish();
        if self.shared.stopped() {
            return Tick {
                sent_by: 0,
                over: true,
            };
        }
        self.turn_seconds(now);
        if self.sending && now >= self.window.end {
            self.end_sending(now);
        }
        let over = now >= self.give_up_at;
        Tick {
            sent_by: if over {
                u64::MAX
            } else {
                now.saturating_sub(self.timeout)
            },
            over,
        }
    }

    /// Hands over the seconds that are complete at `now`.
    #[inline]
    pub(crate) fn turn_seconds(&mut self, now: u64) {
        if now >= self.part_ends {
            self.hand_over(now);
        }
    }

    #[cold]
    fn hand_over(&mut self, now: u64) {
        while now >= self.part_ends && self.part_ends <= self.window.end {
            let next = Part::new(self.part.index + 1);
            let done = std::mem::replace(&mut self.part, next);
            self.part_ends += SECOND;
            // The coordinator outlives the threads; were it gone, the second would be of no use.
            let _ = self.notes.send(Note::Part(Box::new(done)));
        }
        if self.part_ends > self.window.end {
            self.part_ends = u64::MAX;
        }
    }

    /// No more requests; what an open loop still owed is counted.
    #[cold]
    pub(crate) fn end_sending(&mut self, now: u64) {
        self.sending = false;
        // A count has no end: its last request was sent just now.
        self.give_up_at = now.min(self.window.end).saturating_add(self.timeout);
        self.next_tick = self.next_tick.min(self.give_up_at);
        if let Some(schedule) = &mut self.schedule {
            self.tally.unsent += schedule.end();
        }
    }

    /// The thread has ended; `drops` replies were lost at its own sockets.
    pub(crate) fn finish(&mut self, now: u64, drops: u64) {
        self.turn_seconds(self.window.end.min(now));
        // The second in which the thread ended, for the threads that go on in it.
        let rest = std::mem::replace(&mut self.part, Part::new(u64::MAX));
        let _ = self.notes.send(Note::Part(Box::new(rest)));
        self.tally.socket_drops = drops;
        self.publish();
    }

    /// The counts, once all is over.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally
    }

    fn publish(&self) {
        let progress = self.shared.progress(self.thread);
        progress.sent.store(self.all_sent, Ordering::Relaxed);
        progress
            .received
            .store(self.tally.all_received, Ordering::Relaxed);
        progress
            .refused
            .store(self.tally.refused, Ordering::Relaxed);
        progress
            .send_errors
            .store(self.tally.send_errors, Ordering::Relaxed);
    }

    /// How many of `wanted` requests of a closed loop may be sent at `now`.
    #[inline]
    pub(crate) fn claim(&self, wanted: usize, now: u64) -> usize {
        if !matches!(self.plan.stop, Stop::Count(_)) || now < self.window.begin {
            return wanted;
        }
        self.shared.claim(wanted)
    }

    /// How many requests of a closed loop may take the place of `replies` at `now`. At the beginning of a turn all places are free:
    /// requests for all of them at once would overflow the service's receive buffer, as they never do later, so they
    /// double with each round trip.
    #[inline]
    pub(crate) fn allowance(&self, replies: usize, now: u64) -> usize {
        match self.window.turns {
            Some(turns) if turns.settle(now) => (2 * replies).max(1),
            _ => usize::MAX,
        }
    }

    /// When the thread may send again, where another load has its turn at `now`.
    #[inline]
    pub(crate) fn rest(&self, now: u64) -> Option<u64> {
        self.window.turns.and_then(|turns| turns.rest(now))
    }

    /// Counts `requests` due at `due` that leave at `sent`, where that is late; `starved`: they waited for a reply to others.
    #[inline]
    pub(crate) fn note_lateness(&mut self, due: u64, sent: u64, requests: usize, starved: bool) {
        if self.window.has(due) && sent - due > LATE_NS {
            self.tally.late_sends += requests as u64;
            self.tally.starved_sends += if starved { requests as u64 } else { 0 };
        }
    }

    /// Counts requests that left at `sent`, by their intended starts.
    #[inline]
    pub(crate) fn sent(&mut self, intended: impl ExactSizeIterator<Item = u64>, sent: u64) {
        let requests = intended.len() as u64;
        let mut ours = 0;
        for intended in intended {
            ours += u64::from(self.window.has(intended));
        }
        self.all_sent += requests;
        self.tally.sent += ours;
        self.tally.last_send = sent;
        self.open += ours;
        if self.window.has(sent) {
            self.part.sent += requests;
        }
    }

    /// Opens a round of replies read at `now`.
    #[inline]
    pub(crate) fn round(&mut self, now: u64) -> Round {
        self.turn_seconds(now);
        Round {
            now,
            counted: now >= self.window.begin,
            arriving: self.window.has(now),
            within: self.window.spans(now),
            runs: Runs::default(),
            good: 0,
        }
    }

    /// A reply of the round came in time; its request was due at `intended` and left at `sent`.
    #[inline]
    pub(crate) fn answered(&mut self, round: &mut Round, intended: u64, sent: u64) {
        let ours = self.window.has(intended);
        self.open -= u64::from(ours);
        round.good += 1;
        let corrected = round.now - intended.min(round.now);
        if ours {
            self.tally.received += 1;
            round
                .runs
                .push(corrected, round.now - sent, &mut self.tally);
        }
        if round.arriving {
            self.part.corrected.record(corrected);
        }
    }

    /// A request due at `intended` met its end at `now` without a good reply in time.
    #[inline]
    pub(crate) fn lost(&mut self, intended: u64, now: u64) {
        if self.window.has(intended) {
            self.open -= 1;
            self.tally.lost += 1;
            self.part.lost += u64::from(self.window.begin <= now && now < self.window.end);
        }
    }

    /// A reply came in time to a request due at `intended`, and is no answer: lost, though the target is not silent.
    #[inline]
    pub(crate) fn rejected(&mut self, intended: u64, now: u64) {
        self.lost(intended, now);
        self.tally.all_received += 1;
        self.tally.last_reply = now;
        if self.window.spans(now) {
            self.tally.worked += 1;
        }
    }

    /// Closes a round.
    #[inline]
    pub(crate) fn end_round(&mut self, mut round: Round) {
        round.runs.flush(&mut self.tally);
        self.tally.all_received += round.good;
        if round.within {
            self.tally.worked += round.good;
        }
        if round.arriving {
            self.tally.arrived += round.good;
            self.part.received += round.good;
        }
        if round.good > 0 {
            self.tally.last_reply = round.now;
        }
    }

    /// Counts errors of the kind's own table.
    #[inline]
    pub(crate) fn count(&mut self, error: usize, times: u64) {
        self.tally.errors[error] += times;
    }

    /// Counts requests that the other end refused at `at` (port unreachable).
    pub(crate) fn refused(&mut self, times: u64, at: u64) {
        if self.is_counted(at) {
            self.tally.refused += times;
        }
    }

    /// Counts requests that the kernel did not take at `at`.
    #[inline]
    pub(crate) fn not_taken(&mut self, times: u64, at: u64) {
        if self.is_counted(at) {
            self.tally.send_errors += times;
        }
    }

    /// Within the window, and before it as long as there was no reply, since it is then the reason.
    #[inline]
    fn is_counted(&self, at: u64) -> bool {
        at >= self.window.begin || self.tally.all_received == 0
    }
}
