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

use super::af_xdp::{Queue, Share};
use super::batch::{Inbox, Outbox};
use super::books::Books;
use super::coordinate::Note;
use super::payload::Form;
use super::schedule::Schedule;
use super::slots::Slots;
use super::socket::{self, Epoll, Wish};
use super::tally::{Kind, Part, Tally, Window};
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

impl Shared {
    /// A count over all threads, as of their last ticks.
    pub(super) fn sum(&self, part: impl Fn(&Progress) -> &AtomicU64) -> u64 {
        self.progress
            .iter()
            .map(|progress| part(progress).load(Ordering::Relaxed))
            .sum()
    }
}

struct Socket {
    /// Tells its requests from those of other sockets and other runs.
    id: u64,
    slots: Slots,
    /// A reply of this round made room.
    touched: bool,
}

pub(super) struct Generator<'a> {
    thread: usize,
    shared: &'a Shared,
    workload: &'a Workload,
    notes: Sender<Note>,
    books: Books<'a>,
    sockets: Vec<Socket>,
    /// That of socket `n` is number `n`; on a device's queues, every so many further is another port of the same.
    fds: Vec<OwnedFd>,
    /// Absent with a single socket in a closed loop: blocking on it saves a system call.
    epoll: Option<Epoll>,
    /// Where requests leave and replies come, but for those that the device's program leaves to the sockets.
    queue: Option<Queue>,
    inbox: Inbox,
    outbox: Outbox,
    /// Tickets and intended starts of the requests in the outbox.
    pending: Vec<(u64, u64)>,
    schedule: Option<Schedule>,
    burst: usize,
    /// Instant at which the part is complete.
    part_ends: u64,
    next_tick: u64,
    /// Requests still leave.
    sending: bool,
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

fn open(workload: &Workload, form: &Form<'_>) -> Result<Vec<OwnedFd>, Error> {
    let wish = wish(workload, form);
    (0..workload.sockets).map(|_| socket::open(&wish)).collect()
}

/// What a socket of the workload must be.
pub(super) fn wish(workload: &Workload, form: &Form<'_>) -> Wish {
    Wish {
        target: workload.target,
        source: workload.source,
        port: 0,
        pmtudisc_do: workload.pmtudisc_do,
        segment: workload.burst.map(|_| form.template().len() as u16),
        receive_timeout: blocking(workload).then(|| tick(workload.timeout)),
        in_flight: workload.depth * form.longest_request(),
        depth: workload.depth,
    }
}

/// A thread whose next step is always a reply of its one socket.
fn blocking(workload: &Workload) -> bool {
    let closed = matches!(workload.arrival, Arrival::Closed);
    closed && workload.sockets == 1 && workload.af_xdp.is_none()
}

impl<'a> Generator<'a> {
    /// Lays out all memory, and opens the sockets unless a share of a device comes with them.
    pub(super) fn new(
        thread: usize,
        workload: &'a Workload,
        run: u64,
        shared: &'a Shared,
        notes: Sender<Note>,
        share: Option<Share>,
    ) -> Result<Self, Error> {
        let form = Form::new(&workload.payload);
        let (fds, mut queue) = match share {
            Some(Share { ports, queue }) => (ports, Some(queue)),
            None => (open(workload, &form)?, None),
        };
        let mut sockets = Vec::with_capacity(workload.sockets);
        for index in 0..workload.sockets {
            sockets.push(Socket {
                id: run.wrapping_add((thread * workload.sockets + index) as u64),
                slots: Slots::new(workload.depth, form.ticket_bits()),
                touched: false,
            });
        }
        let blocking = blocking(workload);
        let epoll = if blocking {
            None
        } else {
            let watch = Epoll::new(fds.iter().map(OwnedFd::as_raw_fd));
            Some(watch.map_err(|error| Error::Thread {
                thread,
                step: "watch the sockets",
                error,
                remedy: "use fewer --sockets, or raise fs.epoll.max_user_watches",
            })?)
        };
        if let (Some(queue), Some(epoll)) = (&mut queue, &epoll) {
            queue.watch(epoll.as_raw_fd());
        }
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
            books: Books {
                form,
                window: Window { begin: 0, end: 0 },
                timeout: workload.timeout.as_nanos() as u64,
                tally: Tally::default(),
                part: Part::new(0),
                open: 0,
            },
            sockets,
            fds,
            epoll,
            queue,
            inbox,
            outbox,
            pending: Vec::with_capacity(room),
            schedule: None,
            burst,
            part_ends: u64::MAX,
            next_tick: 0,
            sending: true,
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
        self.books.window = window;
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
        let single = self.fds[0].as_raw_fd();
        loop {
            let now = now_ns();
            if now >= self.next_tick && self.tick(now).is_break() {
                break;
            }
            let mut progressed = false;
            if self.schedule.is_some() && self.sending {
                progressed = self.send_due(now);
            }
            if !self.sending && self.books.open == 0 {
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
            let ready = match &mut self.queue {
                None => epoll.wait(wait),
                Some(queue) => {
                    if queue.wait(wait) {
                        epoll.wait(0)
                    } else {
                        0
                    }
                }
            };
            for n in 0..ready {
                let Some(epoll) = &self.epoll else { break };
                let at = epoll.ready(n);
                self.drain(at);
            }
            progressed |= self.drain_queue() || ready > 0;
            if wait == 0 && !progressed && self.books.window.has(now) {
                self.books.tally.spin_ns += now_ns() - now;
            }
        }
        self.finish();
    }

    fn finish(&mut self) {
        self.hand_over(self.books.window.end.min(now_ns()));
        // The second in which the thread ended, for the threads that go on in it.
        let rest = std::mem::replace(&mut self.books.part, Part::new(u64::MAX));
        let _ = self.notes.send(Note::Part(Box::new(rest)));
        let drops = self.drops();
        self.books.tally.socket_drops = drops.saturating_sub(self.drops_before);
        self.publish();
    }

    /// The counts, once [`Generator::run`] has returned.
    pub(super) fn into_tally(self) -> Tally {
        self.books.tally
    }

    /// What is not needed per batch: timeouts, the stop flag, the second's part, the end.
    fn tick(&mut self, now: u64) -> std::ops::ControlFlow<()> {
        use std::ops::ControlFlow::{Break, Continue};

        // Both edges of the window are looked at sharply: drops before the first are not its own, and after
        // the second nothing is sent.
        let edge = if now < self.books.window.begin {
            self.books.window.begin
        } else if now < self.books.window.end {
            self.books.window.end
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
        if now >= self.books.window.begin && !self.drops_known {
            self.drops_known = true;
            self.drops_before = self.drops();
        }
        if self.sending && now >= self.books.window.end {
            self.end_sending(now);
        }
        let over = now >= self.give_up_at;
        let sent_by = if over {
            u64::MAX
        } else {
            now.saturating_sub(self.books.timeout)
        };
        for socket in &mut self.sockets {
            self.books.give_up(&mut socket.slots, sent_by, now);
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
            .store(self.books.tally.all_received, Ordering::Relaxed);
        progress
            .refused
            .store(self.books.tally.of(Kind::Refused), Ordering::Relaxed);
        progress
            .send_errors
            .store(self.books.tally.of(Kind::Send), Ordering::Relaxed);
    }

    fn drops(&self) -> u64 {
        let at_sockets: u64 = self
            .fds
            .iter()
            .filter_map(|fd| socket::drops(fd.as_raw_fd()))
            .sum();
        at_sockets + self.queue.as_ref().map_or(0, Queue::drops)
    }

    #[cold]
    fn hand_over(&mut self, now: u64) {
        while now >= self.part_ends && self.part_ends <= self.books.window.end {
            let next = Part::new(self.books.part.index + 1);
            let done = std::mem::replace(&mut self.books.part, next);
            self.part_ends += SECOND;
            // The coordinator outlives the threads; were it gone, the second would be of no use.
            let _ = self.notes.send(Note::Part(Box::new(done)));
        }
        if self.part_ends > self.books.window.end {
            self.part_ends = u64::MAX;
        }
    }

    /// No more requests; what an open loop still owed is counted.
    #[cold]
    fn end_sending(&mut self, now: u64) {
        self.sending = false;
        // A count has no end: its last request was sent just now.
        self.give_up_at = now
            .min(self.books.window.end)
            .saturating_add(self.books.timeout);
        self.next_tick = self.next_tick.min(self.give_up_at);
        if let Some(schedule) = &mut self.schedule {
            self.books.tally.count(Kind::Unsent, schedule.end());
        }
    }

    /// Reads descriptor number `at` until it is empty.
    #[inline]
    fn drain(&mut self, at: usize) {
        let fd = self.fds[at].as_raw_fd();
        let index = at % self.sockets.len();
        let room = self.inbox.room();
        for _ in 0..ROUNDS {
            let got = self.inbox.receive(fd, false);
            if let (Ok(_), Some(queue)) = (&got, &mut self.queue) {
                queue.leave(at);
            }
            match self.digest(index, got) {
                // Fewer than there is room for: the kernel found the queue empty.
                Some(read) if read == room => {}
                Some(0) => {}
                _ => return,
            }
        }
        if let Some(epoll) = &self.epoll {
            // Without it the socket would wait for its next datagram; the tick's timeouts would notice.
            let _ = epoll.rearm(fd, at);
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
                self.books.trouble(Kind::Refused, 1, now_ns());
                Some(0)
            }
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
            books,
            ..
        } = self;
        let Socket { slots, id, .. } = &mut sockets[index];
        let mut round = books.begin(now);
        for message in 0..messages {
            for datagram in inbox.datagrams(message) {
                books.tally.by_socket += 1;
                books.enter(&mut round, slots, *id, datagram);
            }
        }
        books.end(round);
    }

    /// Takes what waits at the device's queues, and sends the next requests of a closed loop. False if nothing waited.
    #[inline]
    fn drain_queue(&mut self) -> bool {
        let queues = self.queue.as_ref().map_or(0, Queue::count);
        let mut some = false;
        for queue in 0..queues {
            some |= self.absorb_queue(queue);
        }
        if some && self.schedule.is_none() && self.sending {
            let now = now_ns();
            for index in 0..self.sockets.len() {
                if std::mem::take(&mut self.sockets[index].touched) {
                    self.refill(index, now);
                }
            }
        }
        some
    }

    /// Matches what waits at one queue. False if nothing does.
    #[inline]
    fn absorb_queue(&mut self, at: usize) -> bool {
        let waiting = self.queue.as_mut().map_or(0, |queue| queue.waiting(at));
        if waiting == 0 {
            return false;
        }
        // Read after they have come: no latency is told too short.
        let now = now_ns();
        if now >= self.part_ends {
            self.hand_over(now);
        }
        let Self {
            queue,
            sockets,
            books,
            ..
        } = self;
        let mut round = books.begin(now);
        if let Some(queue) = queue {
            for _ in 0..waiting {
                queue.receive(at, |reply| {
                    let socket = &mut sockets[reply.socket];
                    socket.touched = true;
                    books.tally.by_queue += 1;
                    books.enter(&mut round, &mut socket.slots, socket.id, reply.payload);
                });
            }
        }
        books.end(round);
        true
    }

    /// Fills the free slots of a socket of a closed loop; they were free from `now` on.
    #[inline]
    fn refill(&mut self, index: usize, now: u64) {
        if now >= self.books.window.end {
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
        if matches!(self.workload.stop, Stop::After(_)) || now < self.books.window.begin {
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
            if now >= self.books.window.end {
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
                if self.books.window.has(due) && sent - due > LATE_NS {
                    self.books.tally.late_sends += size as u64;
                    self.books.tally.starved_sends += if self.starved { size as u64 } else { 0 };
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
        self.next_tag = if tag + 1 == self.books.form.tags() {
            0
        } else {
            tag + 1
        };
        let Socket { slots, id, .. } = &mut self.sockets[index];
        let Some(ticket) = slots.take(intended, sent, tag) else {
            return;
        };
        let n = self.pending.len();
        if let Some(length) = self
            .books
            .form
            .write(self.outbox.request(n), *id, ticket, tag)
        {
            self.outbox.set_length(n, length);
        }
        self.pending.push((ticket, intended));
    }

    /// Hands the outbox to the kernel. False if some of it stayed behind; the tick tries again.
    #[inline]
    fn flush(&mut self, index: usize, sent: u64) -> bool {
        let fd = self.fds[index].as_raw_fd();
        let end = self.pending.len();
        let mut first = 0;
        let mut refusals = 0;
        if let Some(queue) = &mut self.queue {
            // What has a frame leaves when the thread next waits.
            while first < end && queue.send(index, self.outbox.written(first)) {
                first += 1;
            }
        }
        // sendmmsg that stops before the end of a batch keeps the reason to itself (net/socket.c, Linux 6.18): an ICMP answer to
        // an earlier request, a buffer that was full, a filter. What is left goes message by message, and each is told.
        let mut one_by_one = false;
        while first < end && self.queue.is_none() {
            let until = if one_by_one {
                end.min(first + self.burst)
            } else {
                end
            };
            match self.outbox.send(fd, first, until) {
                Ok(took) => {
                    one_by_one |= first + took < until;
                    first += took;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused && refusals < REFUSALS =>
                {
                    // About an earlier request; telling it has cleared it.
                    refusals += 1;
                    self.books.trouble(Kind::Refused, 1, sent);
                }
                Err(_) => break,
            }
        }
        for (ticket, _) in &self.pending[first..] {
            self.sockets[index].slots.untake(*ticket);
        }
        self.books.trouble(Kind::Send, (end - first) as u64, sent);
        let mut ours = 0;
        for (_, intended) in &self.pending[..first] {
            ours += u64::from(self.books.window.has(*intended));
        }
        self.pending.clear();
        self.all_sent += first as u64;
        self.books.tally.sent += ours;
        self.books.tally.last_send = sent;
        self.books.open += ours;
        if self.books.window.has(sent) {
            self.books.part.sent += first as u64;
        }
        first == end
    }
}
