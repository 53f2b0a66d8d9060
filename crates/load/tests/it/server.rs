//! Servers with one fault each, and workloads to drive them with.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::udp::{Arrival, Completed, Edge, Hooks, Payload, Stop, Workload, run};

/// A server thread that is told to stop, and joined, when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Requests seen.
    pub(crate) seen: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Calls `answer` for each request with its number (from 1), the socket and the asker.
    pub(crate) fn start(
        answer: impl FnMut(u64, &[u8], &UdpSocket, SocketAddr) + Send + 'static,
    ) -> Self {
        Self::start_at("127.0.0.1:0", answer)
    }

    pub(crate) fn start_at(
        address: &str,
        mut answer: impl FnMut(u64, &[u8], &UdpSocket, SocketAddr) + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, seen) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                    answer(number, &buffer[..length], &socket, from);
                }
            }
        });
        Self {
            address,
            seen,
            stop,
            thread: Some(thread),
        }
    }

    /// Returns every request at once.
    pub(crate) fn echo() -> Self {
        Self::start(|_, request, socket, from| reply(socket, request, from))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Sends a reply; the asker may be gone already.
pub(crate) fn reply(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) {
    let _ = socket.send_to(bytes, to);
}

/// A small closed loop of `count` numbered requests.
pub(crate) fn workload(target: SocketAddr, count: u64) -> Workload {
    Workload {
        target,
        source: None,
        threads: 2,
        sockets: 2,
        depth: 4,
        pins: None,
        arrival: Arrival::Closed,
        payload: Payload::Sequenced { size: 100 },
        batch: 16,
        burst: None,
        timeout: Duration::from_secs(1),
        warmup: Duration::ZERO,
        stop: Stop::Count(count),
        seed: 1,
        pmtudisc_do: true,
        af_xdp: None,
    }
}

pub(crate) fn drive(workload: &Workload) -> Result<Completed, Error> {
    run(
        workload,
        &Hooks {
            thread_start: &|_| Ok(()),
            window: &|_: Edge| {},
            interrupted: &AtomicBool::new(false),
            turns: None,
        },
    )
}

/// The count of an error kind.
pub(crate) fn errors(completed: &Completed, kind: &str) -> u64 {
    completed.measurement.errors.get(kind).copied().unwrap_or(0)
}
