//! Traffic of faults: threads that repeat a step until they are dropped.
//!
//! A flood must come quicker than a CPU can take it, from one CPU: so 64 datagrams go down in one system call
//! (`UDP_SEGMENT`), and the device behind it has to be told to cut them apart.
#![expect(unsafe_code, reason = "UDP_SEGMENT has no safe door in std or rustix")]

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rungwise_host::namespace::Namespace;
use rungwise_host::{Host as _, clock, live::Live};

use super::Result;

/// Longest that a step may wait, and so the longest that an end of the traffic takes.
const STEP: Duration = Duration::from_millis(20);

/// Longest that a reply is waited for; a delayed acknowledgement takes 0.04 s.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a datagram, as `UDP_SEGMENT` wants them.
const SEGMENT: libc::c_int = 100;
const DATAGRAM: usize = SEGMENT as usize;

/// Datagrams of one system call (`UDP_MAX_SEGMENTS` of old kernels).
const TOGETHER: usize = 64;

/// A thread that repeats a step; it ends when dropped.
#[derive(Debug)]
pub(super) struct Repeated {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Repeated {
    /// Repeats `step`, which returns soon, on `cpu` alone where one is named.
    pub(super) fn on(cpu: Option<usize>, mut step: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            if let Some(cpu) = cpu {
                // Thread 0 is the calling one. Where the CPU is not there, the check itself will tell.
                let _ = Live.pin_thread(0, 0, &[cpu]);
            }
            while !asked.load(Ordering::Relaxed) {
                step();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How datagrams are sent.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// As many as one CPU can.
    Flood,
    /// That many in a row, and again after a millisecond.
    Bursts(usize),
    /// That many system calls of 64 datagrams each, and again after most of a second.
    Rare(usize),
}

/// Datagrams from `flows` ports to `to`, sent from `cpu` alone where one is named. Replies are let go.
pub(super) fn datagrams(
    from: &Namespace,
    to: SocketAddr,
    flows: usize,
    pace: Pace,
    cpu: Option<usize>,
) -> Result<Repeated> {
    let sockets = from.run(move || -> io::Result<Vec<UdpSocket>> {
        (0..flows)
            .map(|_| {
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                socket.set_nonblocking(true)?;
                if let Pace::Flood | Pace::Rare(_) = pace {
                    send_together(&socket)?;
                }
                Ok(socket)
            })
            .collect()
    })?;
    let (calls, bytes, pause) = match pace {
        Pace::Flood => (flows, DATAGRAM * TOGETHER, Duration::ZERO),
        Pace::Bursts(count) => (count, DATAGRAM, Duration::from_millis(1)),
        Pace::Rare(count) => (count, DATAGRAM * TOGETHER, Duration::from_millis(700)),
    };
    let block = vec![0; bytes];
    let mut reply = [0; DATAGRAM];
    Ok(Repeated::on(cpu, move || {
        for socket in sockets.iter().cycle().take(calls) {
            // Full queues and refusals are what some faults are made of.
            let _ = socket.send_to(&block, to);
        }
        if !pause.is_zero() {
            for socket in &sockets {
                while socket.recv(&mut reply).is_ok() {}
            }
            std::thread::sleep(pause);
        }
    }))
}

/// What is sent from this socket is cut into datagrams.
fn send_together(socket: &UdpSocket) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of a constant, which the kernel only reads.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            std::ptr::from_ref(&SEGMENT).cast(),
            size_of_val(&SEGMENT) as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads datagrams from `socket` and lets them go; after each it does something else for `pause`.
pub(super) fn sink(socket: UdpSocket, pause: Duration) -> Result<Repeated> {
    socket.set_read_timeout(Some(STEP))?;
    let mut buffer = [0; DATAGRAM];
    Ok(Repeated::on(None, move || {
        if socket.recv(&mut buffer).is_ok() {
            std::thread::sleep(pause);
        }
    }))
}

/// The two ends of a connection; the first is that of `from`.
pub(super) fn connection(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
) -> Result<(TcpStream, TcpStream)> {
    let listener = to.run(move || TcpListener::bind(at))?;
    let near = from.run(move || TcpStream::connect(at))?;
    let (far, _) = listener.accept()?;
    for end in [&near, &far] {
        end.set_read_timeout(Some(STEP))?;
        end.set_write_timeout(Some(STEP))?;
    }
    Ok((near, far))
}

/// Writes blocks of `bytes`, each after `pause`.
pub(super) fn writer(mut end: TcpStream, bytes: usize, pause: Duration) -> Repeated {
    let block = vec![0; bytes];
    Repeated::on(None, move || {
        match end.write(&block) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => std::thread::sleep(STEP),
            _ => {}
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    })
}

/// Reads at most `bytes` at a time, each after `pause`.
pub(super) fn reader(mut end: TcpStream, bytes: usize, pause: Duration) -> Repeated {
    let mut block = vec![0; bytes];
    Repeated::on(None, move || {
        match end.read(&mut block) {
            Ok(0) => std::thread::sleep(STEP),
            Err(error) if error.kind() != ErrorKind::WouldBlock => std::thread::sleep(STEP),
            _ => {}
        }
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    })
}

/// A request; a reply is as long.
const REQUEST: usize = 100;

/// Requests that are measured: two seconds where each waits for a delayed acknowledgement.
const MEASURED: usize = 50;

/// A peer that answers each request on `far`, a client that writes each in two halves on `near` and waits for its reply,
/// and the latencies of the first of them, as wrk2 prints them.
pub(super) fn halved(
    mut near: TcpStream,
    mut far: TcpStream,
) -> Result<(Repeated, Repeated, String)> {
    let mut block = [0; REQUEST];
    let mut open = 0;
    let peer = Repeated::on(None, move || match far.read(&mut block) {
        Ok(count) if count > 0 => {
            open += count;
            if open >= REQUEST {
                open -= REQUEST;
                let _ = far.write_all(&block);
            }
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        _ => std::thread::sleep(STEP),
    });
    let mut latencies = Vec::new();
    for _ in 0..MEASURED {
        latencies.push(ask(&mut near)?);
    }
    let client = Repeated::on(None, move || {
        // Without a pause, what nothing delays would be a flood.
        std::thread::sleep(Duration::from_millis(1));
        if ask(&mut near).is_err() {
            std::thread::sleep(STEP);
        }
    });
    Ok((client, peer, table(latencies)))
}

/// How long one request takes.
fn ask(near: &mut TcpStream) -> io::Result<Duration> {
    let began = clock::now();
    let mut reply = [0; REQUEST];
    near.write_all(&reply[..REQUEST / 2])?;
    near.write_all(&reply[REQUEST / 2..])?;
    let mut read = 0;
    while read < REQUEST {
        match near.read(&mut reply[read..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => read += count,
            // The timeout of a step is shorter than a delayed acknowledgement.
            Err(error) if error.kind() == ErrorKind::WouldBlock && began.elapsed() < PATIENCE => {}
            Err(error) => return Err(error),
        }
    }
    Ok(began.elapsed())
}

/// The table of percentiles, with five rows for each half of what is left.
fn table(mut latencies: Vec<Duration>) -> String {
    latencies.sort_unstable();
    let mut text = "  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n".to_owned();
    let total = latencies.len();
    let mut row = |percentile: f64| {
        let count = ((percentile * total as f64).ceil() as usize).clamp(1, total);
        let ms = latencies[count - 1].as_secs_f64() * 1e3;
        let inverse = 1.0 / (1.0 - percentile);
        let _ = writeln!(
            text,
            "{ms:12.3} {percentile:12.6} {count:12} {inverse:12.2}"
        );
    };
    let (mut percentile, mut half) = (0.0, 0.5);
    while 1.0 - percentile > 1.0 / total as f64 {
        for tick in 0..5 {
            row(percentile + half * f64::from(tick) / 5.0);
        }
        percentile += half;
        half /= 2.0;
    }
    row(1.0);
    text
}
