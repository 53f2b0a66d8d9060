//! Bare loops: the cost of a transaction's system calls alone on this machine.
//!
//! The kernel's share of a transaction differs by a factor of more than two between CPUs, so our own code is
//! judged against these loops, in the same rounds. They make the system calls of the ladder's second line (same
//! sockets, options, depth and batches) and do nothing else: no matching, no histogram, no clock, no counters but
//! the client's sum. Hidden words of this program, so that they run in the lab as processes of their own,
//! measured from outside as all others are; `process` ends them with us, and each ends by itself too.
#![expect(unsafe_code, reason = "system calls as a program of C makes them")]

use std::io::{self, ErrorKind, PipeReader};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use libc::{c_int, c_uint, c_void};

use crate::lab::{Lab, SERVER};
use crate::process::Server;
use crate::rungwise::{Load, drive};

/// Words that start the loops; not in the usage.
const CLIENT: &str = "bare-client";
const ECHO: &str = "bare-server";

/// Threads of either side, on CPUs 0 and 1.
const THREADS: usize = 2;
const SOCKETS: usize = 8;
/// Most events of one `epoll_wait`: one for each socket, and one for the end of the run.
const EVENTS: c_int = 9;
const _: () = assert!(EVENTS as usize == SOCKETS + 1);
/// Requests under way on each socket.
const DEPTH: usize = 16;
/// Bytes of a request.
const SIZE: usize = 100;
/// Datagrams per system call: of the client as `load udp` has it, of the server as the ladder sets it.
const CLIENT_BATCH: usize = 64;
const SERVER_BATCH: usize = 32;
/// Room for a datagram; no multiple of 2048, or the first bytes of all would compete for a few cache sets.
const ROOM: usize = 2048 + 64;
/// Time without a reply after which the client gives up, milliseconds. A guess: hundreds of round
/// trips with all requests under way.
const SILENCE_MS: c_int = 500;
/// How long a server may outlive the run it is for.
const SPARE: Duration = Duration::from_mins(1);

/// Starts the bare server in the lab, for a run of `window`.
pub(crate) fn serve(lab: &Lab, cpus: &str, port: u16, window: Duration) -> Result<Server> {
    let mut command = lab.at_server(cpus, &own_path()?);
    describe(&mut command, ECHO, port, window + SPARE);
    let mut server = Server::start(&mut command)?;
    server.wait_until("bound", || lab.is_bound(port))?;
    Ok(server)
}

/// Runs the bare client in the lab, as `Rungwise::load` runs ours.
pub(crate) fn load(
    lab: &Lab,
    cpus: &str,
    port: u16,
    window: Duration,
    servers: &[u32],
) -> Result<Load> {
    let mut command = lab.at_client(cpus, &own_path()?);
    describe(&mut command, CLIENT, port, window);
    let load = drive(&mut command, window, servers)?;
    // A lost request is never sent again: from then on its socket has less depth than ours.
    if load.report["lost"] != 0 {
        bail!(
            "the bare client lost {} requests, so its figures are not a floor; repeat on a quieter machine",
            load.report["lost"]
        );
    }
    Ok(load)
}

fn own_path() -> Result<String> {
    let path = std::env::current_exe().context("cannot find this program's own file")?;
    path.into_os_string()
        .into_string()
        .map_err(|path| anyhow::anyhow!("the path {} is not UTF-8", path.display()))
}

fn describe(command: &mut Command, word: &str, port: u16, length: Duration) {
    let address = format!("{SERVER}:{port}");
    command.args([word, &address, &length.as_secs().to_string()]);
}

/// Runs a loop if the words ask for one.
pub(crate) fn run_if_asked(words: &[String]) -> Option<Result<()>> {
    let [word, address, seconds] = words else {
        return None;
    };
    let run = match word.as_str() {
        CLIENT => client,
        ECHO => server,
        _ => return None,
    };
    let asked = address.parse().context("not an IPv4 address and port");
    let length = seconds.parse().context("not a number of seconds");
    Some(asked.and_then(|address| run(address, Duration::from_secs(length?))))
}

/// Drives `target` for `length` and prints what a report of `load udp` says about it.
fn client(target: SocketAddrV4, length: Duration) -> Result<()> {
    // Closing one end of a pipe wakes every thread, so that no epoll_wait needs a timeout and its clock.
    let (over, keep_on) = io::pipe().context("cannot make a pipe")?;
    let began = Instant::now();
    let (elapsed, counts) = thread::scope(|scope| {
        let over = &over;
        let threads: Vec<_> = (0..THREADS)
            .map(|cpu| scope.spawn(move || exchange(target, cpu, over)))
            .collect();
        thread::sleep(length);
        drop(keep_on);
        let elapsed = began.elapsed();
        let counts: Vec<_> = threads
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        (elapsed, counts)
    });
    let (mut sent, mut received) = (0, 0);
    for count in counts {
        let count =
            count.map_err(|_| anyhow::anyhow!("a thread of the bare client panicked"))??;
        sent += count.0;
        received += count.1;
    }
    let report = serde_json::json!({
        "received": received,
        "lost": sent - received,
        "achieved_per_s": received as f64 / elapsed.as_secs_f64(),
    });
    println!("{report}");
    Ok(())
}

/// One client thread: for each reply a request, until `over` is closed. Requests sent and replies received.
fn exchange(target: SocketAddrV4, cpu: usize, over: &PipeReader) -> Result<(usize, usize)> {
    pin(cpu)?;
    let mut sockets = Vec::with_capacity(SOCKETS);
    for _ in 0..SOCKETS {
        let socket = UdpSocket::bind("0.0.0.0:0").context("cannot open a socket")?;
        never_fragment(socket.as_raw_fd())?;
        socket
            .connect(target)
            .with_context(|| format!("cannot connect to {target}"))?;
        sockets.push(socket);
    }
    let mut inbox = Messages::new(CLIENT_BATCH);
    let mut outbox = Messages::new(CLIENT_BATCH);
    outbox.set_lengths(SIZE);

    // SAFETY: takes a number; the descriptor returned is nobody else's.
    let watcher = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
    let epoll = watcher.as_raw_fd();
    for (at, socket) in sockets.iter().enumerate() {
        // Edges suffice: a batch has room for all that can wait at a socket.
        watch(epoll, socket.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, at)?;
    }
    // Of a closed pipe epoll tells without being asked, here once.
    watch(epoll, over.as_raw_fd(), libc::EPOLLET, SOCKETS)?;

    let (mut sent, mut received) = (0, 0);
    for socket in &sockets {
        outbox.send(socket.as_raw_fd(), DEPTH)?;
        sent += DEPTH;
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
    let mut timeout = -1;
    let mut sending = true;
    while sending || received < sent {
        // SAFETY: `events` has room for as many as are asked for.
        let ready =
            check(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS, timeout) })?;
        if ready == 0 {
            break;
        }
        for event in &events[..ready as usize] {
            let Some(socket) = sockets.get(event.u64 as usize) else {
                sending = false;
                timeout = SILENCE_MS;
                continue;
            };
            let got = match inbox.receive(socket.as_raw_fd(), libc::MSG_DONTWAIT) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                got => got.context("cannot receive")?,
            };
            received += got;
            if sending {
                outbox.send(socket.as_raw_fd(), got)?;
                sent += got;
            }
        }
    }
    Ok((sent, received))
}

/// Echoes at `listen` until killed or, at the latest, for `length`.
fn server(listen: SocketAddrV4, length: Duration) -> Result<()> {
    let group = (0..THREADS)
        .map(|_| member(listen))
        .collect::<Result<Vec<_>>>()?;
    steer_by_cpu(group[0].as_raw_fd())?;
    let (failed, failure) = mpsc::channel();
    for (cpu, socket) in group.into_iter().enumerate() {
        let failed = failed.clone();
        thread::spawn(move || failed.send(echo(&socket, cpu)));
    }
    match failure.recv_timeout(length) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
    }
}

/// One worker: what came goes back to where it came from.
fn echo(socket: &OwnedFd, cpu: usize) -> Result<()> {
    pin(cpu)?;
    let mut messages = Messages::new(SERVER_BATCH);
    messages.keep_senders();
    loop {
        let got = messages
            .receive(socket.as_raw_fd(), libc::MSG_WAITFORONE)
            .context("cannot receive")?;
        messages.take_lengths(got);
        messages.send(socket.as_raw_fd(), got)?;
        messages.set_lengths(ROOM);
    }
}

/// Arrays for `recvmmsg` and `sendmmsg`, one buffer to a message. The headers point into the other three.
struct Messages {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_in>,
    _bytes: Vec<u8>,
}

impl Messages {
    fn new(count: usize) -> Self {
        let mut bytes = vec![0; count * ROOM];
        let mut vectors: Vec<_> = bytes
            .chunks_exact_mut(ROOM)
            .map(|room| libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: ROOM,
            })
            .collect();
        let headers = vectors.iter_mut().map(|vector| {
            // SAFETY: an mmsghdr is plain integers and pointers, for which zero is valid.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header
        });
        Self {
            headers: headers.collect(),
            vectors,
            names: Vec::new(),
            _bytes: bytes,
        }
    }

    /// Receives senders' addresses too and sends to them.
    fn keep_senders(&mut self) {
        // SAFETY: a sockaddr_in is plain integers, for which zero is valid.
        self.names = vec![unsafe { std::mem::zeroed() }; self.headers.len()];
        for (header, name) in self.headers.iter_mut().zip(&mut self.names) {
            header.msg_hdr.msg_name = std::ptr::from_mut(name).cast();
            // The kernel writes the same length back for every IPv4 sender.
            header.msg_hdr.msg_namelen = size_of_val(name) as libc::socklen_t;
        }
    }

    fn set_lengths(&mut self, length: usize) {
        for vector in &mut self.vectors {
            vector.iov_len = length;
        }
    }

    /// The first `count` messages are sent as long as they were received.
    fn take_lengths(&mut self, count: usize) {
        for (vector, header) in self.vectors.iter_mut().zip(&self.headers[..count]) {
            vector.iov_len = header.msg_len as usize;
        }
    }

    fn receive(&mut self, fd: RawFd, flags: c_int) -> io::Result<usize> {
        let (first, room) = (self.headers.as_mut_ptr(), self.headers.len() as c_uint);
        // SAFETY: each header points at a vector and maybe a name, and the vector at `ROOM` bytes; nothing was
        // reallocated since, and moving `self` moves no heap block.
        let got = check(unsafe { libc::recvmmsg(fd, first, room, flags, std::ptr::null_mut()) })?;
        Ok(got as usize)
    }

    /// Sends the first `count` messages, all of them.
    fn send(&mut self, fd: RawFd, count: usize) -> Result<()> {
        let mut rest = &mut self.headers[..count];
        while !rest.is_empty() {
            // SAFETY: as for receiving.
            let took =
                check(unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as c_uint, 0) });
            rest = &mut rest[took.context("cannot send")? as usize..];
        }
        Ok(())
    }
}

/// A bound socket of the reuseport group.
fn member(listen: SocketAddrV4) -> Result<OwnedFd> {
    // SAFETY: takes numbers; the descriptor returned is nobody else's.
    let socket = unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?)
    };
    let fd = socket.as_raw_fd();
    set(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, &1).context("cannot share the port")?;
    never_fragment(fd)?;
    let name = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: listen.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(listen.ip().octets()),
        },
        sin_zero: [0; 8],
    };
    let length = size_of_val(&name) as libc::socklen_t;
    // SAFETY: `name` is valid for `length` bytes.
    check(unsafe { libc::bind(fd, (&raw const name).cast(), length) })
        .with_context(|| format!("cannot bind {listen}"))?;
    Ok(socket)
}

/// A datagram goes to the worker with the number of the CPU that handles it.
fn steer_by_cpu(member: RawFd) -> Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let cpu = (libc::SKF_AD_OFF + libc::SKF_AD_CPU).cast_unsigned();
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, cpu),
        statement(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, THREADS as u32),
        statement(libc::BPF_RET | libc::BPF_A, 0),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let option = libc::SO_ATTACH_REUSEPORT_CBPF;
    set(member, libc::SOL_SOCKET, option, &program).context("cannot steer by CPU")
}

fn never_fragment(fd: RawFd) -> Result<()> {
    let (option, always) = (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO);
    set(fd, libc::IPPROTO_IP, option, &always).context("cannot set IP_MTU_DISCOVER")
}

/// `T` must be what the option takes.
fn set<T>(fd: RawFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let pointer = std::ptr::from_ref(value).cast::<c_void>();
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for its size, and the kernel only reads it.
    check(unsafe { libc::setsockopt(fd, level, option, pointer, size) }).map(|_| ())
}

fn watch(epoll: RawFd, fd: RawFd, events: c_int, at: usize) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: events as u32,
        u64: at as u64,
    };
    // SAFETY: `event` is valid.
    check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) }).map(|_| ())
}

/// Keeps the calling thread on one CPU.
fn pin(cpu: usize) -> Result<()> {
    // SAFETY: an all-zero cpu_set_t is the empty set; `cpu` is below THREADS and thus within it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: `set` has the size given.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) })
        .with_context(|| format!("cannot run on CPU {cpu}"))?;
    Ok(())
}

/// The answer of a system call, or its error.
fn check(answer: c_int) -> io::Result<c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_a_loop_start_one() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        assert!(run_if_asked(&words("ladder --rounds 3")).is_none());
        assert!(run_if_asked(&words("bare-client")).is_none());
        assert!(
            run_if_asked(&words("bare-server nowhere 1"))
                .unwrap()
                .is_err()
        );
        assert!(
            run_if_asked(&words("bare-client 127.0.0.1:9 long"))
                .unwrap()
                .is_err()
        );
    }

    #[test]
    fn the_echo_returns_datagrams_of_any_length() {
        let listen = "127.0.0.1:0".parse().unwrap();
        let socket = member(listen).unwrap();
        let here = UdpSocket::from(socket.try_clone().unwrap())
            .local_addr()
            .unwrap();
        thread::spawn(move || echo(&socket, 0));
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        peer.connect(here).unwrap();
        let mut answer = [0; 2000];
        for length in [100, 0, 1400, 1] {
            peer.send(&vec![7; length]).unwrap();
            assert_eq!(peer.recv(&mut answer).unwrap(), length);
            assert!(answer[..length].iter().all(|byte| *byte == 7));
        }
    }
}
