//! A client that sends one request at a time and insists on its reply; CPUs and socket options for tests.
#![allow(
    unsafe_code,
    reason = "affinity and UDP_SEGMENT have no safe door in std"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use rungwise_serve::udp::{Config, Server};

/// The server under test: an echo.
pub(crate) fn echo(_worker: usize) -> impl FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> {
    |request, _peer, reply| {
        reply[..request.len()].copy_from_slice(request);
        Some(request.len())
    }
}

pub(crate) fn serve(config: &Config) -> Server {
    Server::start(config, echo).unwrap_or_else(|error| panic!("{error}"))
}

/// A socket that talks to `server`, by loopback where the server listens on a wildcard.
pub(crate) fn connect(server: SocketAddr) -> UdpSocket {
    let to = match server.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, server.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, server.port()).into(),
        _ => server,
    };
    connect_from(
        if to.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        },
        to,
    )
}

pub(crate) fn connect_from(from: IpAddr, to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.connect(to).unwrap();
    // Far above any delay of a loaded machine; only a lost reply takes this long.
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

/// Sends `request` and returns the reply.
pub(crate) fn ask(socket: &UdpSocket, request: &[u8]) -> Vec<u8> {
    socket.send(request).unwrap();
    let mut reply = vec![0; 65_536];
    // A read with a timeout is not started again after a signal: signal(7).
    let length = loop {
        match socket.recv(&mut reply) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            received => break received.expect("a reply"),
        }
    };
    reply.truncate(length);
    reply
}

/// Waits for a condition, far longer than it takes on a loaded machine.
#[track_caller]
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come true");
        std::thread::yield_now();
    }
}

/// Between fork and exec a child holds every descriptor of ours: a socket that was closed keeps its port, a link
/// its program. Children are started while this is written to; who counts on an end being an end reads it.
static FORKS: RwLock<()> = RwLock::new(());

/// Starts a program of Debian's `package`.
pub(crate) fn spawn(package: &str, command: &mut Command) -> Child {
    let _guard = FORKS.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap_or_else(|error| {
        panic!("cannot run {command:?}: {error}; install the package {package}")
    })
}

/// Holds back every start of a program.
pub(crate) fn no_forks() -> RwLockReadGuard<'static, ()> {
    FORKS.read().unwrap_or_else(PoisonError::into_inner)
}

/// The CPUs of this process.
pub(crate) fn cpus() -> Vec<usize> {
    // SAFETY: an all-zero set is valid, and has the size given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(
            libc::sched_getaffinity(0, size_of_val(&set), &raw mut set),
            0
        );
        (0..libc::CPU_SETSIZE as usize)
            .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
            .collect()
    }
}

/// Runs `work` on a thread pinned to `cpu`.
pub(crate) fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> T {
    let pinned = move || {
        // SAFETY: an all-zero set is valid, and has the size given.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            assert_eq!(
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set),
                0
            );
        }
        work()
    };
    std::thread::scope(|scope| scope.spawn(pinned).join().unwrap())
}

/// Makes `socket` cut what it sends into datagrams of `size` bytes.
pub(crate) fn segment(socket: &UdpSocket, size: i32) {
    // SAFETY: an int, as the option takes.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const size).cast(),
            size_of_val(&size) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
