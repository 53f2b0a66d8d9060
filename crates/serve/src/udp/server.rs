//! Starting and stopping: sockets, steering, queues of `AF_XDP`, workers, the XDP echo, in that order.
//!
//! A stop loses nothing that was queued: a filter makes the sockets drop what still arrives, workers are
//! woken, answer what they hold, and end, within a bounded time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use super::af_xdp::{self, Queue};
use super::counters::{Counters, Published, WorkerCounters};
use super::handler::Handler;
use super::uring::Rings;
use super::worker::Desk;
use super::xdp::Attached;
use super::{Config, Io, XdpCounters};
use super::{batch, single, socket};
use crate::af_xdp::{self as rings, Redirect};
use crate::affinity;
use crate::config::Pin;
use crate::error::Error;
use crate::guard::{Factory, Guarded};
use crate::pins;
use crate::read_back::{Ledger, ReadBack};
use crate::socket::{drops, local_addr};
use crate::steer;
use crate::stop::{self, Stop};

/// What serves where `io_uring` is not to be had.
const PLAIN_IO: Io = Io::Batch(32);

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    read_backs: Vec<ReadBack>,
    sockets: Vec<Arc<OwnedFd>>,
    published: Vec<Arc<Published>>,
    threads: Vec<JoinHandle<()>>,
    wakes: Vec<OwnedFd>,
    stop: Arc<Stop>,
    xdp: Option<Attached>,
    redirect: Option<Redirect>,
    /// The `AF_XDP` socket of each worker, where there are any.
    xsks: Vec<Arc<OwnedFd>>,
    /// What was read when the stop began; afterwards the filter's drops would count as the kernel's.
    last: Option<(Vec<u64>, Option<XdpCounters>)>,
}

impl Server {
    /// Binds, sets every switch, starts the workers and returns when all of them serve. `factory` makes the
    /// handler of worker 0, 1, ... on the worker's own thread.
    pub fn start<H, F>(config: &Config, factory: F) -> Result<Self, Error>
    where
        H: Handler + 'static,
        F: Fn(usize) -> H + Send + Sync + 'static,
    {
        config.check()?;
        let mut ledger = Ledger::new(config.fallback);
        let shared = config.shared();
        let cpus = pins::homes(&shared)?;
        let sockets = socket::open(config, &cpus, &mut ledger)?;
        let local_addr =
            local_addr(&sockets[0]).map_err(|answer| shared.refused(config.listen, answer))?;
        let cpu_count = pins::cpu_count(&cpus);
        steer::attach(
            &config.steering,
            &sockets,
            &cpus,
            cpu_count,
            "each worker's CPU counts",
            &mut ledger,
        )?;

        let mut server = Self {
            local_addr,
            read_backs: Vec::new(),
            sockets: sockets.into_iter().map(Arc::new).collect(),
            published: (0..config.workers)
                .map(|_| Arc::new(Published::new(cpu_count)))
                .collect(),
            threads: Vec::with_capacity(config.workers),
            wakes: Vec::new(),
            stop: Arc::new(Stop::default()),
            xdp: None,
            redirect: None,
            xsks: Vec::new(),
            last: None,
        };
        let mut queues = match &config.af_xdp {
            Some(device) => {
                let socket = &server.sockets[0];
                let opened = af_xdp::open(device, local_addr, config.workers, socket, &mut ledger)?;
                opened.map_or(Vec::new(), |(redirect, queues)| {
                    server.redirect = Some(redirect);
                    queues
                })
            }
            None => Vec::new(),
        }
        .into_iter();
        // From here on an early return drops `server`, which stops what already runs.
        let factory: Factory<H> = Arc::new(factory);
        let (report, reports) = mpsc::channel();
        for (worker, &cpu) in cpus.iter().enumerate() {
            let queue = queues.next();
            if let Some(queue) = &queue {
                server.xsks.push(queue.fd().clone());
            }
            server
                .spawn(config, worker, cpu, queue, factory.clone(), report.clone())
                .map_err(|answer| Error::Worker { worker, answer })?;
        }
        drop(report);
        let mut reports: Vec<Report> = reports.iter().collect();
        reports.sort_by_key(|report| report.worker);
        enter(config, &cpus, reports, &mut ledger)?;
        if let Some(echo) = &config.xdp_echo {
            server.xdp = Attached::new(echo, local_addr, &server.sockets[0], &mut ledger)?;
        }
        server.read_backs = ledger.finish();
        Ok(server)
    }

    /// Where it listens, with the port that the kernel chose if the configuration left it open.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Every switch that is not plain: the requested value and what the kernel reports.
    pub fn read_backs(&self) -> &[ReadBack] {
        &self.read_backs
    }

    /// Counters now. Costs the workers nothing.
    pub fn counters(&self) -> Counters {
        let (drops, xdp) = self.last.clone().unwrap_or_else(|| self.kernel_counters());
        let workers = self
            .published
            .iter()
            .enumerate()
            .map(|(worker, published)| {
                WorkerCounters::read(published, drops.get(worker).copied().unwrap_or(0))
            })
            .collect();
        Counters { workers, xdp }
    }

    /// Stops: answers what is queued, bounded to about a second of a slow handler's time, and returns the final
    /// counters. What arrives after the stop began is dropped by the kernel and not counted.
    pub fn stop(mut self) -> Counters {
        self.halt();
        self.counters()
    }

    fn kernel_counters(&self) -> (Vec<u64>, Option<XdpCounters>) {
        let mut dropped: Vec<u64> = self.sockets.iter().map(|socket| drops(socket)).collect();
        dropped.resize(dropped.len().max(self.xsks.len()), 0);
        for (dropped, xsk) in dropped.iter_mut().zip(&self.xsks) {
            *dropped += rings::drops(xsk);
        }
        (dropped, self.xdp.as_ref().map(Attached::read))
    }

    fn halt(&mut self) {
        if self.last.is_some() {
            return;
        }
        self.last = Some(self.kernel_counters());
        self.xdp = None;
        self.redirect = None;
        for socket in &self.sockets {
            // Without the filter a stop under load ends at its deadline instead of at an empty queue.
            let _ = socket::refuse_more(socket);
        }
        self.stop.request();
        for wake in &self.wakes {
            stop::wake(wake);
        }
        for socket in &self.sockets {
            socket::shut_down(socket);
        }
        for thread in self.threads.drain(..) {
            // A handler's panic never gets here; if a worker itself panicked, its message was printed and
            // its counters stand where it stopped.
            let _ = thread.join();
        }
    }

    fn spawn<H: Handler + 'static>(
        &mut self,
        config: &Config,
        worker: usize,
        cpu: usize,
        queue: Option<Queue>,
        factory: Factory<H>,
        report: Sender<Report>,
    ) -> io::Result<()> {
        let wake = if config.io == Io::Uring {
            let wake = stop::eventfd()?;
            let ours = wake.try_clone()?;
            self.wakes.push(ours);
            Some(wake)
        } else {
            None
        };
        let work = Work {
            worker,
            cpu: (config.pin != Pin::Free).then_some(cpu),
            io: config.io,
            gso: config.gso,
            control: needs_control(config),
            may_fall_back: config.fallback,
            wake,
            queue,
            socket: self.sockets[worker % self.sockets.len()].clone(),
            published: self.published[worker].clone(),
            stop: self.stop.clone(),
        };
        let thread = thread::Builder::new()
            .name(format!("udp-{worker}"))
            .spawn(move || work.run(factory, report))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Whether datagrams come with control messages: where they came to, or how many of them there are.
fn needs_control(config: &Config) -> bool {
    config.gro || config.listen.ip().is_unspecified()
}

/// How a worker's own switches went.
struct Report {
    worker: usize,
    pinned: Option<io::Result<Vec<usize>>>,
    rings: Option<Result<String, Error>>,
}

/// Enters what the workers report, and fails on the first refusal where there is no fallback.
fn enter(
    config: &Config,
    cpus: &[usize],
    reports: Vec<Report>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let mut io_entry = None;
    let (pinned, rings): (Vec<_>, Vec<_>) = reports
        .into_iter()
        .map(|report| (report.pinned, report.rings))
        .unzip();
    pins::enter(cpus, pinned, ledger)?;
    for rings in rings {
        match rings {
            None => {}
            Some(Ok(description)) => io_entry = Some(description),
            Some(Err(error)) => {
                ledger.fall_back("io", Io::Uring.to_string(), &PLAIN_IO.to_string(), error)?;
            }
        }
    }
    // What the kernel must be told or asked beside the peer takes the longer calls.
    let calls = if needs_control(config) {
        "recvmsg and sendmsg"
    } else {
        "recvfrom and sendto"
    };
    match (config.io, io_entry) {
        (_, Some(description)) => ledger.holds("io", Io::Uring.to_string(), description),
        (Io::Uring, None) => {}
        (Io::Single, None) => ledger.holds("io", Io::Single.to_string(), calls),
        (Io::Batch(_), None) => ledger.holds("io", config.io.to_string(), "recvmmsg and sendmmsg"),
    }
    Ok(())
}

/// What a worker's thread is given.
struct Work {
    worker: usize,
    cpu: Option<usize>,
    io: Io,
    gso: bool,
    control: bool,
    may_fall_back: bool,
    wake: Option<OwnedFd>,
    queue: Option<Queue>,
    socket: Arc<OwnedFd>,
    published: Arc<Published>,
    stop: Arc<Stop>,
}

impl Work {
    /// The whole life of a worker.
    fn run<H: Handler>(mut self, factory: Factory<H>, report: Sender<Report>) {
        let thread = affinity::thread_id();
        self.published.born(thread);
        let pinned = self.cpu.map(pins::pin);
        let mut io = self.io;
        // Rings are made here because only the thread that makes them may submit to them.
        let (mut rings, rings_report) = match self.wake.map(|wake| Rings::new(wake, self.control)) {
            None => (None, None),
            Some(Ok(rings)) => {
                let description = rings.describe();
                (Some(rings), Some(Ok(description)))
            }
            Some(Err(error)) => {
                io = PLAIN_IO;
                (None, Some(Err(error)))
            }
        };
        let doomed = !self.may_fall_back && matches!(rings_report, Some(Err(_)));
        let handler = Guarded::new(factory, self.worker);
        let (messages, singly) = match io {
            Io::Single => (MOST_JOINED_REQUESTS, true),
            Io::Batch(size) => (size.max(MOST_JOINED_REQUESTS), false),
            Io::Uring => (Rings::MESSAGES, false),
        };
        let mut desk = Desk::new(
            handler,
            self.published.clone(),
            self.socket,
            messages,
            self.gso,
            singly,
        );
        // Nobody listens when the server already gave up; then the stop is set too.
        let _ = report.send(Report {
            worker: self.worker,
            pinned,
            rings: rings_report,
        });
        drop(report);
        if doomed {
            return;
        }
        if let Some(queue) = &mut self.queue {
            // Until the stop; what is then still queued at the socket is answered below.
            af_xdp::run(&mut desk, &self.stop, queue, self.control);
        }
        match (&mut rings, io) {
            (Some(rings), _) => {
                rings.run(&mut desk, &self.stop, self.gso);
                // The ring takes no more; what is still queued is answered the plain way.
                single::run(&mut desk, &self.stop, self.control);
            }
            (None, Io::Batch(size)) => batch::run(&mut desk, &self.stop, size, self.control),
            (None, _) => single::run(&mut desk, &self.stop, self.control),
        }
        self.published
            .died(affinity::thread_cpu_ns(thread).unwrap_or(0));
    }
}

/// Requests that may arrive joined as one datagram (`UDP_GRO_CNT_MAX`, `net/ipv4/udp_offload.c`).
const MOST_JOINED_REQUESTS: usize = 64;
