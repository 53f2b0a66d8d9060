//! One generator thread: the loop that sends, waits, reads and counts.
//!
//! The clock is read once after each batch of replies and once before each batch of requests; all datagrams
//! of a batch share the reading. So a latency is told too long by at most the time that the kernel takes
//! for one batch (about 1 us per datagram), and never too short. Nothing here allocates per transaction;
//! once a second a thread hands a finished [`Part`] to the coordinator.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::batch::{Inbox, Outbox};
use super::coordinate::Note;
use super::payload::{Form, Name, Reading};
use super::schedule::Schedule;
use super::slots::{Fate, Slots};
use super::socket::{self, Epoll, Wish};
use super::tally::{Kind, Part, Runs, Tally, Window};
use super::{Arrival, Stop, Workload};
use crate::Error;
use crate::clock::{SECOND, now_ns};

/// A send that leaves later than this after its intended start is counted as late.
const LATE_NS: u64 = 1_000_000;
/// Gaps shorter than this are polled through: a sleep and the wake-up from it cost about as much CPU.
const SPIN_NS: u64 = 10_000;
/// A socket is read at most this many batches in a row, so a flood on one does not starve the others.
const ROUNDS: usize = 8;
/// Refusals in a row after which a batch is given up.
const REFUSALS: u32 = 4;

/// When a thread looks at timeouts and flags, for a given timeout: an eighth, but 1 ms to 20 ms.
pub(super) fn tick(timeout: Duration) -> Duration {
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

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Leave at once.
    pub(super) stop: AtomicBool,
    /// Requests of the window that nobody has claimed yet, in a closed loop with a count.
    pub(super) budget: AtomicU64,
    pub(super) progress: Vec<Progress>,
}

struct Socket {
    fd: OwnedFd,
    /// Tells its requests from those of other sockets and other runs.
    id: u64,
    slots: Slots,
}

pub(super) struct Generator<'a> {
    thread: usize,
    shared: &'a Shared,
    workload: &'a Workload,
    notes: Sender<Note>,
    form: Form<'a>,
    sockets: Vec<Socket>,
    /// Absent with a single socket in a closed loop: blocking on it saves a system call.
    epoll: Option<Epoll>,
    inbox: Inbox,
    outbox: Outbox,
    /// Tickets and intended starts of the requests in the outbox.
    pending: Vec<(u64, u64)>,
    schedule: Option<Schedule>,
    burst: usize,
    timeout: u64,
    window: Window,
    tally: Tally,
    part: Part,
    /// Instant at which `part` is complete.
    part_ends: u64,
    next_tick: u64,
    /// Requests still leave.
    sending: bool,
    /// Outstanding requests of the window.
    open: u64,
    /// When waiting for the last replies ends.
    give_up_at: u64,
    /// A due request found no free slot, and the backlog has not been worked off since.
    starved: bool,
    next_socket: usize,
    next_tag: u32,
    drops_before: u64,
    drops_known: bool,
    /// Sent in and out of the window, for [`Progress`].
    all_sent: u64,
}

impl<'a> Generator<'a> {
    /// Opens the sockets and lays out all memory.
    pub(super) fn new(
        thread: usize,
        workload: &'a Workload,
        run: u64,
        shared: &'a Shared,
        notes: Sender<Note>,
    ) -> Result<Self, Error> {
        let form = Form::new(&workload.payload);
        let closed = matches!(workload.arrival, Arrival::Closed);
        let blocking = closed && workload.sockets == 1;
        let wish = Wish {
            target: workload.target,
            source: workload.source,
            pmtudisc_do: workload.pmtudisc_do,
            segment: workload.burst.map(|_| form.template().len() as u16),
            receive_timeout: blocking.then(|| tick(workload.timeout)),
            in_flight: workload.depth * form.longest_request(),
            depth: workload.depth,
        };
        let mut sockets = Vec::with_capacity(workload.sockets);
        for index in 0..workload.sockets {
            sockets.push(Socket {
                fd: socket::open(&wish)?,
                id: run.wrapping_add((thread * workload.sockets + index) as u64),
                slots: Slots::new(workload.depth, form.ticket_bits()),
            });
        }
        let epoll = if blocking {
            None
        } else {
            let watch = Epoll::new(sockets.iter().map(|socket| socket.fd.as_raw_fd()));
            Some(watch.map_err(|error| Error::Thread {
                thread,
                step: "watch the sockets",
                error,
                remedy: "use fewer --sockets, or raise fs.epoll.max_user_watches",
            })?)
        };
        let burst = workload.burst.map_or(1, usize::from);
        let messages = (workload.batch / burst).max(1);
        let alone = blocking && workload.depth == 1;
        let inbox = Inbox::new(
            if alone { 1 } else { messages },
            form.longest_reply(),
            burst > 1,
        );
        let outbox = Outbox::new(messages, burst, form.longest_request(), form.template());
        let room = outbox.room();
        // Spread the threads over the query file.
        let next_tag = (u64::from(form.tags()) * thread as u64 / workload.threads as u64) as u32;
        Ok(Self {
            thread,
            shared,
            workload,
            notes,
            form,
            sockets,
            epoll,
            inbox,
            outbox,
            pending: Vec::with_capacity(room),
            schedule: None,
            burst,
            timeout: workload.timeout.as_nanos() as u64,
            window: Window { begin: 0, end: 0 },
            tally: Tally::default(),
            part: Part::new(0),
            part_ends: u64::MAX,
            next_tick: 0,
            sending: true,
            open: 0,
            give_up_at: u64::MAX,
            starved: false,
            next_socket: 0,
            next_tag,
            drops_before: 0,
            drops_known: false,
            all_sent: 0,
        })
    }

    /// Drives from `start` until the window's requests have met their fate.
    pub(super) fn run(&mut self, start: u64, window: Window) {
        self.window = window;
        self.part_ends = window.begin + SECOND;
        let threads = (self.thread, self.workload.threads);
        let times = (start, window.begin, window.end);
        self.schedule = Schedule::new(
            &self.workload.arrival,
            &self.workload.stop,
            self.burst,
            threads,
            times,
        );
        let single = self.sockets[0].fd.as_raw_fd();
        loop {
            let now = now_ns();
            if now >= self.next_tick && self.tick(now).is_break() {
                break;
            }
            let mut progressed = false;
            if self.schedule.is_some() && self.sending {
                progressed = self.send_due(now);
            }
            if !self.sending && self.open == 0 {
                break;
            }
            let Some(epoll) = &mut self.epoll else {
                let got = self.inbox.receive(single, true);
                self.digest(0, got);
                continue;
            };
            let wait = match self.schedule.as_ref().and_then(Schedule::peek) {
                Some((due, _)) if self.sending && !self.starved => {
                    self.next_tick.min(due).saturating_sub(now)
                }
                _ => self.next_tick.saturating_sub(now),
            };
            let wait = if wait < SPIN_NS { 0 } else { wait };
            let ready = epoll.wait(wait);
            for n in 0..ready {
                let Some(epoll) = &self.epoll else { break };
                let index = epoll.ready(n);
                self.drain(index);
            }
            if wait == 0 && ready == 0 && !progressed && self.window.has(now) {
                self.tally.spin_ns += now_ns() - now;
            }
        }
        self.finish();
    }

    fn finish(&mut self) {
        self.hand_over(self.window.end.min(now_ns()));
        // The second in which the thread ended, for the threads that go on in it.
        let rest = std::mem::replace(&mut self.part, Part::new(u64::MAX));
        let _ = self.notes.send(Note::Part(Box::new(rest)));
        let drops = self.drops();
        self.tally.socket_drops = drops.saturating_sub(self.drops_before);
        self.publish();
    }

    /// The counts, once [`Generator::run`] has returned.
    pub(super) fn into_tally(self) -> Tally {
        self.tally
    }

    /// What is not needed per batch: timeouts, the stop flag, the second's part, the end.
    fn tick(&mut self, now: u64) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};

        // Both edges of the window are looked at sharply: drops before the first are not its own, and after
        // the second nothing is sent.
        let edge = if now < self.window.begin {
            self.window.begin
        } else if now < self.window.end {
            self.window.end
        } else {
            u64::MAX
        };
        self.next_tick = edge.min(now + tick(self.workload.timeout).as_nanos() as u64);
        self.publish();
        if self.shared.stop.load(Ordering::Relaxed) {
            return Break(());
        }
        if now >= self.part_ends {
            self.hand_over(now);
        }
        if now >= self.window.begin && !self.drops_known {
            self.drops_known = true;
            self.drops_before = self.drops();
        }
        if self.sending && now >= self.window.end {
            self.end_sending(now);
        }
        let over = now >= self.give_up_at;
        let sent_by = if over {
            u64::MAX
        } else {
            now.saturating_sub(self.timeout)
        };
        let Self {
            sockets,
            tally,
            part,
            open,
            window,
            ..
        } = self;
        for socket in sockets {
            socket.slots.give_up(sent_by, |slot| {
                if window.has(slot.intended) {
                    *open -= 1;
                    tally.lost += 1;
                    part.lost += u64::from(now < window.end);
                }
            });
        }
        if over {
            return Break(());
        }
        if self.schedule.is_none() && self.sending {
            // Slots that a timeout, a failed send or the very beginning has left free.
            for index in 0..self.sockets.len() {
                self.refill(index, now);
            }
        }
        Continue(())
    }

    fn publish(&self) {
        let progress = &self.shared.progress[self.thread];
        progress.sent.store(self.all_sent, Ordering::Relaxed);
        progress
            .received
            .store(self.tally.all_received, Ordering::Relaxed);
        progress
            .refused
            .store(self.tally.of(Kind::Refused), Ordering::Relaxed);
        progress
            .send_errors
            .store(self.tally.of(Kind::Send), Ordering::Relaxed);
    }

    fn drops(&self) -> u64 {
        self.sockets
            .iter()
            .filter_map(|socket| socket::drops(socket.fd.as_raw_fd()))
            .sum()
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
    fn end_sending(&mut self, now: u64) {
        self.sending = false;
        // A count has no end: its last request was sent just now.
        self.give_up_at = now.min(self.window.end).saturating_add(self.timeout);
        self.next_tick = self.next_tick.min(self.give_up_at);
        if let Some(schedule) = &mut self.schedule {
            while let Some((due, size)) = schedule.peek() {
                if self.window.has(due) {
                    self.tally.count(Kind::Unsent, size as u64);
                }
                schedule.advance();
            }
        }
    }

    /// Reads a socket until it is empty.
    #[inline]
    fn drain(&mut self, index: usize) {
        let fd = self.sockets[index].fd.as_raw_fd();
        let room = self.inbox.room();
        for _ in 0..ROUNDS {
            let got = self.inbox.receive(fd, false);
            match self.digest(index, got) {
                // Fewer than there is room for: the kernel found the queue empty.
                Some(read) if read == room => {}
                Some(0) => {}
                _ => return,
            }
        }
        if let Some(epoll) = &self.epoll {
            // Without it the socket would wait for its next datagram; the tick's timeouts would notice.
            let _ = epoll.rearm(fd, index);
        }
    }

    /// Counts what a receive brought and sends the next requests of a closed loop. `Some(0)`: an error was
    /// read, look again. `None`: nothing is there.
    #[inline]
    fn digest(&mut self, index: usize, got: io::Result<usize>) -> Option<usize> {
        match got {
            Ok(messages) => {
                let now = now_ns();
                self.absorb(index, messages, now);
                if self.schedule.is_none() && self.sending {
                    self.refill(index, now);
                }
                Some(messages)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == ErrorKind::Interrupted => Some(0),
            Err(_) => {
                // A pending ICMP error of this socket: its port, host or network is unreachable.
                self.count_trouble(Kind::Refused, 1, now_ns());
                Some(0)
            }
        }
    }

    /// Counts what the kernel refused at `at`: within the window, and before as long as nobody has answered, for
    /// then it is the reason.
    #[inline]
    fn count_trouble(&mut self, kind: Kind, times: u64, at: u64) {
        if at >= self.window.begin || self.tally.all_received == 0 {
            self.tally.count(kind, times);
        }
    }

    /// Matches the replies in the inbox with their requests.
    #[inline]
    fn absorb(&mut self, index: usize, messages: usize, now: u64) {
        if now >= self.part_ends {
            self.hand_over(now);
        }
        let Self {
            inbox,
            sockets,
            tally,
            part,
            form,
            window,
            open,
            timeout,
            ..
        } = self;
        let Socket { slots, id, .. } = &mut sockets[index];
        let counted = now >= window.begin;
        let arriving = window.has(now);
        let mut runs = Runs::default();
        let mut good = 0;
        for message in 0..messages {
            for datagram in inbox.datagrams(message) {
                let stray = |kind: Kind, tally: &mut Tally| tally.count(kind, u64::from(counted));
                let fate = match form.name(datagram, *id) {
                    Name::Ticket(ticket) => slots.fate(ticket),
                    Name::Only => slots.only_fate(),
                    Name::Short => {
                        stray(Kind::Truncated, tally);
                        continue;
                    }
                    Name::Foreign => Fate::Unknown,
                };
                let at = match fate {
                    Fate::Open(at) => at,
                    Fate::Late => {
                        stray(Kind::Late, tally);
                        continue;
                    }
                    Fate::Duplicate => {
                        stray(Kind::Duplicate, tally);
                        continue;
                    }
                    Fate::Unknown => {
                        stray(Kind::Unexpected, tally);
                        continue;
                    }
                };
                let slot = *slots.slot(at);
                let wrong = match form.check(datagram, slot.tag) {
                    Reading::Foreign => {
                        stray(Kind::Unexpected, tally);
                        continue;
                    }
                    Reading::WrongLength => Some(Kind::Truncated),
                    Reading::WrongBytes => Some(Kind::Corrupt),
                    // Came before the next look at timeouts, but too late all the same.
                    Reading::Good { .. } if now - slot.sent > *timeout => Some(Kind::Late),
                    Reading::Good { rcode, cut } => {
                        if counted && (rcode != 0 || cut) {
                            tally.rcode(rcode);
                            tally.count(Kind::Cut, u64::from(cut));
                        }
                        None
                    }
                };
                slots.close(at);
                let ours = window.has(slot.intended);
                *open -= u64::from(ours);
                if let Some(kind) = wrong {
                    stray(kind, tally);
                    tally.lost += u64::from(ours);
                    part.lost += u64::from(ours && arriving);
                    continue;
                }
                good += 1;
                let corrected = now - slot.intended.min(now);
                if ours {
                    tally.received += 1;
                    runs.push(corrected, now - slot.sent, tally);
                }
                if arriving {
                    part.corrected.record(corrected);
                }
            }
        }
        runs.flush(tally);
        tally.all_received += good;
        if arriving {
            tally.arrived += good;
            part.received += good;
        }
        if good > 0 {
            tally.last_reply = now;
        }
    }

    /// Fills the free slots of a socket of a closed loop; they were free from `now` on.
    #[inline]
    fn refill(&mut self, index: usize, now: u64) {
        if now >= self.window.end {
            self.end_sending(now);
            return;
        }
        loop {
            // Whole bursts only: else one straggler would cut all later bursts short.
            let free = self.sockets[index].slots.free() / self.burst * self.burst;
            let wanted = free.min(self.outbox.room());
            if wanted == 0 {
                return;
            }
            let allowed = self.claim(wanted, now);
            if allowed == 0 {
                self.end_sending(now);
                return;
            }
            let sent = now_ns();
            for _ in 0..allowed {
                self.write(index, now, sent);
            }
            if !self.flush(index, sent) {
                return;
            }
        }
    }

    /// How many of `wanted` requests may be sent at `now`.
    #[inline]
    fn claim(&self, wanted: usize, now: u64) -> usize {
        if matches!(self.workload.stop, Stop::After(_)) || now < self.window.begin {
            return wanted;
        }
        let mut left = self.shared.budget.load(Ordering::Relaxed);
        loop {
            let take = left.min(wanted as u64);
            let (ok, fail) = (Ordering::Relaxed, Ordering::Relaxed);
            match self
                .shared
                .budget
                .compare_exchange_weak(left, left - take, ok, fail)
            {
                Ok(_) => return take as usize,
                Err(now_left) => left = now_left,
            }
        }
    }

    /// Sends what the schedule says is due, as far as slots are free. Tells whether anything left.
    fn send_due(&mut self, start: u64) -> bool {
        let mut now = start;
        let mut progressed = false;
        loop {
            let Some((due, _)) = self.schedule.as_ref().and_then(Schedule::peek) else {
                self.end_sending(now);
                return progressed;
            };
            if now >= self.window.end {
                self.end_sending(now);
                return progressed;
            }
            if due > now {
                self.starved = false;
                return progressed;
            }
            let Some(index) = self.socket_with_room() else {
                self.starved = true;
                return progressed;
            };
            let sent = now_ns();
            // A backlog goes round the sockets in batches; without one, each socket gets one burst in turn.
            while let Some((due, size)) = self.schedule.as_ref().and_then(Schedule::peek) {
                let full = self.pending.len() + size > self.outbox.room();
                if due > sent || full || self.sockets[index].slots.free() < size {
                    break;
                }
                for _ in 0..size {
                    self.write(index, due, sent);
                }
                if self.window.has(due) && sent - due > LATE_NS {
                    self.tally.late_sends += size as u64;
                    self.tally.starved_sends += if self.starved { size as u64 } else { 0 };
                }
                if let Some(schedule) = &mut self.schedule {
                    schedule.advance();
                }
                if size < self.burst {
                    break;
                }
            }
            self.flush(index, sent);
            progressed = true;
            now = now_ns();
        }
    }

    fn socket_with_room(&mut self) -> Option<usize> {
        let sockets = self.sockets.len();
        for _ in 0..sockets {
            let index = self.next_socket;
            self.next_socket = if index + 1 == sockets { 0 } else { index + 1 };
            if self.sockets[index].slots.free() >= self.burst {
                return Some(index);
            }
        }
        None
    }

    /// Puts one more request of a socket into the outbox.
    #[inline]
    fn write(&mut self, index: usize, intended: u64, sent: u64) {
        let tag = self.next_tag;
        self.next_tag = if tag + 1 == self.form.tags() {
            0
        } else {
            tag + 1
        };
        let Socket { slots, id, .. } = &mut self.sockets[index];
        let Some(ticket) = slots.take(intended, sent, tag) else {
            return;
        };
        let n = self.pending.len();
        if let Some(length) = self.form.write(self.outbox.request(n), *id, ticket, tag) {
            self.outbox.set_length(n, length);
        }
        self.pending.push((ticket, intended));
    }

    /// Hands the outbox to the kernel. False if some of it stayed behind; the tick tries again.
    #[inline]
    fn flush(&mut self, index: usize, sent: u64) -> bool {
        let fd = self.sockets[index].fd.as_raw_fd();
        let end = self.pending.len();
        let mut first = 0;
        let mut refusals = 0;
        while first < end {
            match self.outbox.send(fd, first, end) {
                Ok(took) => first += took,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused && refusals < REFUSALS =>
                {
                    // About an earlier request; telling it has cleared it.
                    refusals += 1;
                    self.count_trouble(Kind::Refused, 1, sent);
                }
                Err(_) => break,
            }
        }
        for (ticket, _) in &self.pending[first..] {
            self.sockets[index].slots.untake(*ticket);
        }
        self.count_trouble(Kind::Send, (end - first) as u64, sent);
        let mut ours = 0;
        for (_, intended) in &self.pending[..first] {
            ours += u64::from(self.window.has(*intended));
        }
        self.pending.clear();
        self.all_sent += first as u64;
        self.tally.sent += ours;
        self.tally.last_send = sent;
        self.open += ours;
        if self.window.has(sent) {
            self.part.sent += first as u64;
        }
        first == end
    }
}
