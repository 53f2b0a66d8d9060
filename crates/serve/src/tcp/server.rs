//! Starting and stopping: listeners, steering, workers, in that order.
//!
//! A stop loses nothing that had arrived: workers accept what waits, answer what they hold, and end within a bounded time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use super::counters::{Counters, Published, WorkerCounters};
use super::desk::Desk;
use super::engine::{Engine, Interest};
use super::epoll::Epoll;
use super::handler::Handler;
use super::hub::Hub;
use super::listener;
use super::uring::Uring;
use super::worker::Worker;
use super::{Config, Io};
use crate::affinity;
use crate::config::{BusyPoll, Pin};
use crate::error::{Error, Feature};
use crate::files;
use crate::guard::{Factory, Guarded};
use crate::pins;
use crate::read_back::{Ledger, ReadBack};
use crate::socket::{drops, local_addr};
use crate::steer;
use crate::stop::{self, Stop};
use crate::uring;

const BUSY_POLL: Feature = Feature {
    switch: "busy-poll",
    name: "EPIOCSPARAMS (CONFIG_NET_RX_BUSY_POLL)",
    since: "6.9",
    remedy: "choose a time of at least 1us; a budget above 64 needs root or CAP_NET_ADMIN",
};

const EXCLUSIVE: Feature = Feature {
    switch: "listener",
    name: "EPOLLEXCLUSIVE",
    since: "4.5",
    remedy: "upgrade",
};

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    read_backs: Vec<ReadBack>,
    listeners: Vec<Arc<OwnedFd>>,
    published: Vec<Arc<Published>>,
    threads: Vec<JoinHandle<()>>,
    wake: Arc<OwnedFd>,
    stop: Arc<Stop>,
    /// Where messages to every connection go.
    hub: Option<Arc<Hub>>,
    /// The tables of workers have copies of its descriptors.
    own_tables: bool,
    /// Drops of each listener when the stop began.
    last: Option<Vec<u64>>,
}

impl Server {
    /// Listens, sets every switch, starts the workers and returns when all of them serve. `factory` makes the handler of
    /// worker 0, 1, ... on the worker's own thread. The process may then have as many files open as its hard limit allows:
    /// its soft limit is raised.
    pub fn start<H, F>(config: &Config, factory: F) -> Result<Self, Error>
    where
        H: Handler + 'static,
        F: Fn(usize) -> H + Send + Sync + 'static,
    {
        config.check()?;
        files::raise(0);
        let shared = config.shared();
        let mut ledger = Ledger::new(config.fallback);
        let cpus = pins::homes(&shared)?;
        let listeners = listener::open(config, &cpus, &mut ledger)?;
        let refused = |answer| shared.refused(config.listen, answer);
        let local_addr = local_addr(&listeners[0]).map_err(refused)?;
        let cpu_count = pins::cpu_count(&cpus);
        steer::attach(
            &config.steering,
            &listeners,
            &cpus,
            cpu_count,
            "each worker's incoming CPUs",
            &mut ledger,
        )?;

        let wake = stop::eventfd().map_err(|answer| Error::Worker { worker: 0, answer })?;
        let hub = config.broadcast.then(|| Hub::new(config.workers));
        let hub = hub
            .transpose()
            .map_err(|answer| Error::Worker { worker: 0, answer })?;
        let mut server = Self {
            local_addr,
            read_backs: Vec::new(),
            listeners: listeners.into_iter().map(Arc::new).collect(),
            published: (0..config.workers)
                .map(|_| Arc::new(Published::new(cpu_count)))
                .collect(),
            threads: Vec::with_capacity(config.workers),
            wake: Arc::new(wake),
            stop: Arc::new(Stop::default()),
            hub: hub.map(Arc::new),
            own_tables: config.own_tables,
            last: None,
        };
        // From here on an early return drops `server`, which stops what already runs.
        let factory: Factory<H> = Arc::new(factory);
        let (report, reports) = mpsc::channel();
        for (worker, &cpu) in cpus.iter().enumerate() {
            let epoll = match config.io {
                // What is opened here would stay open here.
                Io::Epoll if config.own_tables => None,
                Io::Epoll => Some(server.epoll(config, worker, &mut ledger)?),
                // It may be needed, and says nothing as long as it is not.
                Io::Uring if config.fallback => {
                    Some(server.epoll(config, worker, &mut Ledger::new(true))?)
                }
                Io::Uring => None,
            };
            server
                .spawn(config, worker, cpu, epoll, factory.clone(), report.clone())
                .map_err(|answer| Error::Worker { worker, answer })?;
        }
        drop(report);
        let mut reports: Vec<Report> = reports.iter().collect();
        reports.sort_by_key(|report| report.worker);
        for report in &mut reports {
            if let Some(answer) = report.failed.take() {
                let worker = report.worker;
                return Err(Error::Worker { worker, answer });
            }
        }
        let (pinned, rings): (Vec<_>, Vec<_>) = reports
            .into_iter()
            .map(|report| (report.pinned, report.ring))
            .unzip();
        pins::enter(&cpus, pinned, &mut ledger)?;
        enter_rings(rings, server.listeners.len() < config.workers, &mut ledger)?;
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
        let drops = self.last.clone().unwrap_or_else(|| self.drops());
        let workers = self.published.iter().enumerate();
        let workers = workers.map(|(worker, published)| {
            WorkerCounters::read(published, drops.get(worker).copied().unwrap_or(0))
        });
        Counters {
            workers: workers.collect(),
        }
    }

    /// Stops: accepts what waits, answers what has arrived, for at most about a second, closes all connections, and returns
    /// the final counters.
    pub fn stop(mut self) -> Counters {
        self.halt();
        self.counters()
    }

    fn drops(&self) -> Vec<u64> {
        self.listeners.iter().map(|socket| drops(socket)).collect()
    }

    fn halt(&mut self) {
        if self.last.is_some() {
            return;
        }
        self.last = Some(self.drops());
        self.stop.request();
        stop::wake(&self.wake);
        // Each is closed when its workers let go of it, so that late clients are refused and do not wait. With tables of their own workers shut it.
        if !self.own_tables {
            self.listeners.clear();
        }
        for thread in self.threads.drain(..) {
            // A handler's panic never gets here; if a worker itself panicked, its message was printed and
            // its counters stand where it stopped.
            let _ = thread.join();
        }
        self.listeners.clear();
    }

    /// What a worker waits with.
    fn epoll(&self, config: &Config, worker: usize, ledger: &mut Ledger) -> Result<Epoll, Error> {
        let failed = |answer| Error::Worker { worker, answer };
        let mut epoll = Epoll::new().map_err(failed)?;
        if let Some(poll) = config.busy_poll {
            busy_poll(&epoll, poll, ledger)?;
        }
        let shared = self.listeners.len() < config.workers;
        let listener = &self.listeners[worker % self.listeners.len()];
        let listening = epoll.attend(&self.wake, listener, shared).map_err(failed)?;
        if listening == Interest::ReadExclusively {
            let actual = "EPOLLEXCLUSIVE accepted: a connection wakes one worker, which accepts one at a time";
            ledger.holds(EXCLUSIVE.switch, "shared", actual);
        } else if shared {
            let missing = EXCLUSIVE.missing(io::Error::from_raw_os_error(libc::EINVAL));
            let instead = "a connection wakes all workers";
            ledger.fall_back(EXCLUSIVE.switch, "shared", instead, missing)?;
        }
        Ok(epoll)
    }

    fn spawn<H: Handler + 'static>(
        &mut self,
        config: &Config,
        worker: usize,
        cpu: usize,
        epoll: Option<Epoll>,
        factory: Factory<H>,
        report: Sender<Report>,
    ) -> io::Result<()> {
        let seat = Seat {
            listener: self.listeners[worker % self.listeners.len()].clone(),
            published: self.published[worker].clone(),
            stop: self.stop.clone(),
            wake: self.wake.clone(),
            hub: self.hub.clone().map(|hub| (hub, worker)),
            own_tables: self.own_tables,
        };
        let shared = self.listeners.len() < config.workers;
        let (cpu, io) = ((config.pin != Pin::Free).then_some(cpu), config.io);
        let work = move || {
            let thread = affinity::thread_id();
            let published = seat.published.clone();
            published.counters.born(thread);
            let pinned = cpu.map(pins::pin);
            let epoll = match seat.attend(epoll) {
                Ok(epoll) => epoll,
                Err(answer) => {
                    let _ = report.send(Report {
                        worker,
                        pinned,
                        ring: None,
                        failed: Some(answer),
                    });
                    return;
                }
            };
            // Made here because only the thread that makes a ring may submit to it.
            let ring = (io == Io::Uring)
                .then(|| Uring::new(&seat.wake, seat.listener.as_raw_fd(), shared));
            let (ring, entry) = match ring {
                None => (None, None),
                Some(Ok(ring)) => {
                    let entry = Ok(ring.describe());
                    (Some(ring), Some(entry))
                }
                Some(Err(error)) => (None, Some(Err(error))),
            };
            let handler = Guarded::new(factory, worker);
            let report = move || {
                // Nobody listens when the server already gave up; then the stop is set too.
                let _ = report.send(Report {
                    worker,
                    pinned,
                    ring: entry,
                    failed: None,
                });
            };
            let hub = seat.hub.as_ref().map(|(hub, _)| hub.clone());
            match (ring, epoll) {
                (Some(ring), _) => seat.serve(Desk::new(handler, hub, ring), report),
                (None, Some(epoll)) => seat.serve(Desk::new(handler, hub, epoll), report),
                (None, None) => report(),
            }
            let cpu_ns = affinity::thread_cpu_ns(thread);
            published.counters.died(cpu_ns.unwrap_or(0));
        };
        let builder = thread::Builder::new().name(format!("tcp-{worker}"));
        self.threads.push(builder.spawn(work)?);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

/// What a worker has in common with the server.
struct Seat {
    listener: Arc<OwnedFd>,
    published: Arc<Published>,
    stop: Arc<Stop>,
    wake: Arc<OwnedFd>,
    hub: Option<(Arc<Hub>, usize)>,
    own_tables: bool,
}

impl Seat {
    /// What the worker waits with: `epoll`, or one of its own table, and then with its hub too.
    fn attend(&self, epoll: Option<Epoll>) -> io::Result<Option<Epoll>> {
        let epoll = if self.own_tables {
            files::own_table()?;
            let mut epoll = Epoll::new()?;
            epoll.attend(&self.wake, &self.listener, false)?;
            Some(epoll)
        } else {
            epoll
        };
        if let (Some(epoll), Some((hub, number))) = (&epoll, &self.hub) {
            epoll.attend_hub(hub.bell(*number))?;
        }
        Ok(epoll)
    }

    /// Serves until the stop; `ready` is called when nothing is left to be prepared.
    fn serve<H: Handler, E: Engine>(self, desk: Desk<H, E>, ready: impl FnOnce()) {
        let Self {
            listener,
            published,
            stop,
            wake,
            hub,
            own_tables,
        } = self;
        let mut worker = Worker::new(desk, listener, published, stop, wake, hub, own_tables);
        ready();
        worker.run();
    }
}

/// How a worker's own switches went.
struct Report {
    worker: usize,
    pinned: Option<io::Result<Vec<usize>>>,
    ring: Option<Result<String, Error>>,
    /// Why the worker does not serve.
    failed: Option<io::Error>,
}

/// Enters what came of the rings, and fails on the first refusal where there is no fallback.
fn enter_rings(
    rings: Vec<Option<Result<String, Error>>>,
    shared: bool,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let mut last = None;
    for ring in rings.into_iter().flatten() {
        match ring {
            Ok(description) => last = Some(description),
            Err(error) => {
                let (wanted, instead) = (Io::Uring.to_string(), Io::Epoll.to_string());
                ledger.fall_back(uring::FEATURE.switch, wanted, &instead, error)?;
            }
        }
    }
    if let Some(description) = last {
        ledger.holds(uring::FEATURE.switch, Io::Uring.to_string(), description);
        if shared {
            let actual =
                "accepted by io_uring: a connection wakes one worker, which accepts one at a time";
            ledger.holds(EXCLUSIVE.switch, "shared", actual);
        }
    }
    Ok(())
}

fn busy_poll(epoll: &Epoll, poll: BusyPoll, ledger: &mut Ledger) -> Result<(), Error> {
    let shown = |poll: BusyPoll| {
        let prefer = if poll.prefer { ", interrupts off" } else { "" };
        let budget = match poll.budget {
            0 => String::new(),
            budget => format!(", {budget} packets"),
        };
        format!("{} us{prefer}{budget}", poll.time.as_micros())
    };
    let wanted = shown(poll);
    match epoll.busy_poll(poll) {
        Ok(actual) => {
            let text = format!("EPIOCGPARAMS {}", shown(actual));
            ledger.compare(BUSY_POLL, &wanted, text, shown(actual) == wanted)
        }
        Err(error) => {
            let error = match error.raw_os_error() {
                // epoll knows no such request.
                Some(libc::ENOTTY | libc::EINVAL) if poll.time.as_micros() > 0 => {
                    BUSY_POLL.missing(error)
                }
                _ => BUSY_POLL.refused(&wanted, error),
            };
            ledger.fall_back(BUSY_POLL.switch, &wanted, "off", error)
        }
    }
}
