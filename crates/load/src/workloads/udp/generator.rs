//! One generator thread: the loop that sends, waits, reads and counts.
//!
//! The clock is read once after each batch of replies and once before each batch of requests; all datagrams
//! of a batch share the reading. So a latency is overstated by at most the time that the kernel takes
//! for one batch (about 1 us per datagram), and never too short. Nothing here allocates per transaction;
//! once a second a thread hands a finished [`Part`] to the coordinator.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::Workload;
use super::af_xdp::{Queue, Share};
use super::batch::{Inbox, Outbox};
use super::matching;
use super::payload::Form;
use super::slots::Slots;
use super::socket::{self, Wish};
use crate::Error;
use crate::clock::{now_ns, sleep_until};
use crate::engine::{Arrival, Driver, Epoll, Interest, Ledger, Tally, Window, spread, tick};

/// Gaps shorter than this are polled through: a sleep and the wake-up from it cost about as much CPU.
const SPIN_NS: u64 = 10_000;
/// A socket is read at most this many batches in a row, so a flood on one does not starve the others.
const ROUNDS: usize = 8;
/// How often replies are looked for at the end of a turn: short against any latency that a pair of variants is judged by.
const DRAIN_NS: u64 = 50_000;
/// Default of `net.ipv4.ip_local_port_range`: services listen elsewhere.
const EPHEMERAL: Range<usize> = 32_768..61_000;
/// Refusals in a row after which a batch is given up.
const REFUSALS: u32 = 4;

/// Where a thread's replies came from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origins {
    /// Datagrams that came by a queue of the device, and not by a socket.
    pub(super) by_queue: u64,
    /// Others.
    pub(super) by_socket: u64,
}

struct Socket {
    /// Distinguishes its requests from those of other sockets and other runs.
    id: u64,
    slots: Slots,
    /// A reply of this round made room.
    touched: bool,
}

pub(crate) struct Generator<'a> {
    ledger: Ledger<'a>,
    form: Form<'a>,
    origins: Origins,
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
    burst: usize,
    /// A due request found no free slot, and the backlog has not been worked off since.
    starved: bool,
    next_socket: usize,
    next_tag: u32,
    drops_before: u64,
    drops_known: bool,
}

/// The sockets of a thread.
fn open(workload: &Workload, form: &Form<'_>, thread: usize) -> Result<Vec<OwnedFd>, Error> {
    let any = wish(workload, form);
    let first = first_port(workload);
    (0..workload.sockets)
        .map(|index| {
            let port = first.wrapping_add((thread * workload.sockets + index) as u16);
            let wish = Wish { port, ..any };
            // Somebody else may have that port; and a socket that is its own target would answer itself.
            if port == workload.target.port() {
                return socket::open(&any);
            }
            socket::open(&wish).or_else(|_| socket::open(&any))
        })
        .collect()
}

/// The first of as many ports in a row as the workload has sockets. Runs with the same seed have the same ports, so whatever
/// deals datagrams by a hash of addresses and ports deals those of both halves of a pair alike.
fn first_port(workload: &Workload) -> u16 {
    let sockets = workload.threads * workload.sockets;
    let from = if sockets <= EPHEMERAL.len() {
        EPHEMERAL
    } else {
        1024..65_536
    };
    let choices = from.len().saturating_sub(sockets) as u64 + 1;
    (from.start as u64 + spread(workload.seed) % choices) as u16
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

/// Waits for the replies of all.
fn watch(fds: &[OwnedFd]) -> io::Result<Epoll> {
    let epoll = Epoll::new(fds.len())?;
    for (index, fd) in fds.iter().enumerate() {
        epoll.watch(fd.as_raw_fd(), index, Interest::Read)?;
    }
    Ok(epoll)
}

/// A thread whose next step is always a reply of its one socket.
fn blocking(workload: &Workload) -> bool {
    let closed = matches!(workload.arrival, Arrival::Closed);
    closed && workload.sockets == 1 && workload.af_xdp.is_none()
}

impl<'a> Generator<'a> {
    /// Lays out all memory, and opens the sockets unless a share of a device comes with them.
    pub(super) fn new(
        workload: &'a Workload,
        ledger: Ledger<'a>,
        share: Option<Share>,
    ) -> Result<Self, Error> {
        let thread = ledger.thread();
        // A run with the same ports must not take the late replies of the one before for its own.
        let run = spread(workload.seed ^ now_ns());
        let form = Form::new(&workload.payload);
        let (fds, mut queue) = match share {
            Some(Share { ports, queue }) => (ports, Some(queue)),
            None => (open(workload, &form, thread)?, None),
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
            Some(watch(&fds).map_err(|error| Error::Thread {
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
            ledger,
            form,
            origins: Origins::default(),
            sockets,
            fds,
            epoll,
            queue,
            inbox,
            outbox,
            pending: Vec::with_capacity(room),
            burst,
            starved: false,
            next_socket: 0,
            next_tag,
            drops_before: 0,
            drops_known: false,
        })
    }

    fn drive(&mut self, start: u64, window: Window) {
        self.ledger.begin(start, window, self.burst);
        let single = self.fds[0].as_raw_fd();
        loop {
            let now = now_ns();
            if now >= self.ledger.next_tick() && self.tick(now) {
                break;
            }
            let mut progressed = false;
            if self.ledger.schedule.is_some() && self.ledger.sending {
                progressed = self.send_due(now);
            }
            if !self.ledger.sending && self.ledger.open == 0 {
                break;
            }
            if let Some(wake) = self.ledger.rest(now) {
                self.rest(now, wake);
                continue;
            }
            let Some(epoll) = &mut self.epoll else {
                let got = self.inbox.receive(single, true);
                self.digest(0, got);
                continue;
            };
            let wait = match self.ledger.due() {
                Some((due, _)) if self.ledger.sending && !self.starved => {
                    self.ledger.next_tick().min(due).saturating_sub(now)
                }
                _ => self.ledger.next_tick().saturating_sub(now),
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
            if wait == 0 && !progressed && self.ledger.window.has(now) {
                self.ledger.tally.spin_ns += now_ns() - now;
            }
        }
        let drops = self.drops().saturating_sub(self.drops_before);
        self.ledger.finish(now_ns(), drops);
    }

    /// Takes the replies that are still under way while another load has its turn, and sleeps until `wake`; the tick at its
    /// end sends anew.
    fn rest(&mut self, now: u64, wake: u64) {
        let waits = self.sockets.iter().all(|socket| socket.slots.all_free());
        let wake = wake.min(self.ledger.next_tick());
        sleep_until(if waits {
            wake
        } else {
            wake.min(now + DRAIN_NS)
        });
        for at in 0..self.fds.len() {
            self.drain(at);
        }
        self.drain_queue();
    }

    /// What is not needed per batch. True if the thread must leave.
    fn tick(&mut self, now: u64) -> bool {
        let due = self.ledger.tick(now);
        if now >= self.ledger.window.begin && !self.drops_known {
            self.drops_known = true;
            self.drops_before = self.drops();
        }
        for socket in &mut self.sockets {
            let ledger = &mut self.ledger;
            socket
                .slots
                .give_up(due.sent_by, |slot| ledger.lost(slot.intended, now));
        }
        if !due.over && self.ledger.schedule.is_none() && self.ledger.sending {
            // Slots that a timeout, a failed send or the very beginning has left free.
            for index in 0..self.sockets.len() {
                self.refill(index, 0, now);
            }
        }
        due.over
    }

    fn drops(&self) -> u64 {
        let at_sockets: u64 = self
            .fds
            .iter()
            .filter_map(|fd| socket::drops(fd.as_raw_fd()))
            .sum();
        at_sockets + self.queue.as_ref().map_or(0, Queue::drops)
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
            let _ = epoll.rearm(fd, at, Interest::Read);
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
                if self.ledger.schedule.is_none() && self.ledger.sending {
                    self.refill(index, messages, now);
                }
                Some(messages)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == ErrorKind::Interrupted => Some(0),
            Err(_) => {
                // A pending ICMP error of this socket: its port, host or network is unreachable.
                self.ledger.refused(1, now_ns());
                Some(0)
            }
        }
    }

    /// Matches the replies in the inbox with their requests.
    #[inline]
    fn absorb(&mut self, index: usize, messages: usize, now: u64) {
        let Self {
            inbox,
            sockets,
            ledger,
            form,
            origins,
            ..
        } = self;
        let Socket { slots, id, .. } = &mut sockets[index];
        let mut round = ledger.round(now);
        for message in 0..messages {
            for datagram in inbox.datagrams(message) {
                origins.by_socket += 1;
                matching::enter(form, ledger, &mut round, slots, *id, datagram);
            }
        }
        ledger.end_round(round);
    }

    /// Takes what waits at the device's queues, and sends the next requests of a closed loop. False if nothing waited.
    #[inline]
    fn drain_queue(&mut self) -> bool {
        let queues = self.queue.as_ref().map_or(0, Queue::count);
        let mut some = false;
        for queue in 0..queues {
            some |= self.absorb_queue(queue);
        }
        if some && self.ledger.schedule.is_none() && self.ledger.sending {
            let now = now_ns();
            for index in 0..self.sockets.len() {
                if std::mem::take(&mut self.sockets[index].touched) {
                    self.refill(index, 1, now);
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
        // Read after they have come: no latency is recorded too short.
        let now = now_ns();
        let Self {
            queue,
            sockets,
            ledger,
            form,
            origins,
            ..
        } = self;
        let mut round = ledger.round(now);
        if let Some(queue) = queue {
            for _ in 0..waiting {
                queue.receive(at, |reply| {
                    let socket = &mut sockets[reply.socket];
                    socket.touched = true;
                    origins.by_queue += 1;
                    let Socket { slots, id, .. } = socket;
                    matching::enter(form, ledger, &mut round, slots, *id, reply.payload);
                });
            }
        }
        ledger.end_round(round);
        true
    }

    /// Fills the free slots of a socket of a closed loop; they were free from `now` on. So many `replies` came just before.
    #[inline]
    fn refill(&mut self, index: usize, replies: usize, now: u64) {
        if now >= self.ledger.window.end {
            self.ledger.end_sending(now);
            return;
        }
        if self.ledger.rest(now).is_some() {
            return;
        }
        // Whole bursts here too.
        let mut allowance = self.ledger.allowance(replies, now);
        allowance = allowance.div_ceil(self.burst).saturating_mul(self.burst);
        loop {
            // Whole bursts only: else one straggler would cut all later bursts short.
            let free = self.sockets[index].slots.free() / self.burst * self.burst;
            let wanted = free.min(self.outbox.room()).min(allowance);
            if wanted == 0 {
                return;
            }
            allowance -= wanted;
            let allowed = self.ledger.claim(wanted, now);
            if allowed == 0 {
                self.ledger.end_sending(now);
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

    /// Sends what the schedule says is due, as far as slots are free. Returns whether anything left.
    fn send_due(&mut self, start: u64) -> bool {
        let mut now = start;
        let mut progressed = false;
        loop {
            let Some((due, _)) = self.ledger.due() else {
                self.ledger.end_sending(now);
                return progressed;
            };
            if now >= self.ledger.window.end {
                self.ledger.end_sending(now);
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
            while let Some((due, size)) = self.ledger.due() {
                let full = self.pending.len() + size > self.outbox.room();
                if due > sent || full || self.sockets[index].slots.free() < size {
                    break;
                }
                for _ in 0..size {
                    self.write(index, due, sent);
                }
                self.ledger.note_lateness(due, sent, size, self.starved);
                self.ledger.advance();
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
        // an earlier request, a buffer that was full, a filter. What is left goes message by message, and each is reported.
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
                    self.ledger.refused(1, sent);
                }
                Err(_) => break,
            }
        }
        for (ticket, _) in &self.pending[first..] {
            self.sockets[index].slots.untake(*ticket);
        }
        self.ledger.not_taken((end - first) as u64, sent);
        let intended = self.pending[..first].iter().map(|(_, intended)| *intended);
        self.ledger.sent(intended, sent);
        self.pending.clear();
        first == end
    }
}

impl Driver for Generator<'_> {
    type Own = Origins;

    fn run(&mut self, start: u64, window: Window) {
        self.drive(start, window);
    }

    fn into_counts(self) -> (Tally, Origins) {
        (self.ledger.into_tally(), self.origins)
    }
}
