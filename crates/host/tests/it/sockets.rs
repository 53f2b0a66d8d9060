//! Sockets as `sock_diag` lists them, with one trouble each, and as `ss` shows them.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rungwise_host::Host;
use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_model::kernel::{Answer, Owner, Question, TcpSocket, UdpSocket as Udp};

use crate::peers::said_in;
use crate::{eventually, root_or_skip};

const ESTABLISHED: u8 = 1;
const TIME_WAIT: u8 = 6;
const LISTEN: u8 = 10;

/// Datagrams, several times what a default receive buffer holds.
const SENT: u32 = 2_000;

fn tcp(namespace: &Namespace) -> Vec<TcpSocket> {
    match namespace.ask(Question::Tcp).unwrap() {
        Answer::Tcp(sockets) => sockets,
        other => panic!("{other:?}"),
    }
}

fn udp(namespace: &Namespace) -> Vec<Udp> {
    match namespace.ask(Question::Udp).unwrap() {
        Answer::Udp(sockets) => sockets,
        other => panic!("{other:?}"),
    }
}

/// The socket whose local end is `local`, in a state other than listening.
fn connection(namespace: &Namespace, local: SocketAddr) -> TcpSocket {
    tcp(namespace)
        .into_iter()
        .find(|socket| socket.local.to_string() == local.to_string() && socket.state != LISTEN)
        .unwrap()
}

/// A listener and the two ends of a connection to it, inside the namespace.
fn connected(namespace: &Namespace) -> (TcpListener, TcpStream, TcpStream) {
    namespace.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        (listener, client, server)
    })
}

#[test]
fn a_full_accept_queue_shows_its_length_and_its_limit() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("accept").unwrap();
    lab.write(Path::new("/proc/sys/net/core/somaxconn"), b"1")
        .unwrap();
    let (listener, waiting) = lab.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // The kernel takes one more than the limit; the third is turned away.
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(20));
        let waiting = [connect().unwrap(), connect().unwrap()];
        assert_eq!(connect().unwrap_err().kind(), ErrorKind::TimedOut);
        (listener, waiting)
    });
    let local = listener.local_addr().unwrap().to_string();
    let sockets = tcp(&lab);
    let socket = sockets
        .iter()
        .find(|socket| socket.state == LISTEN)
        .unwrap();
    assert_eq!(socket.local.to_string(), local);
    assert_eq!(socket.remote.port, 0);
    assert_eq!((socket.rqueue, socket.wqueue), (2, 1));
    assert_eq!(socket.info, None);
    drop(waiting);
}

#[test]
fn every_datagram_is_either_queued_or_counted_as_dropped() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("drops").unwrap();
    let (receiver, sender) = lab.run(|| {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        (receiver, sender)
    });
    for _ in 0..SENT {
        sender.send(&[0; 100]).unwrap();
    }
    let sockets = udp(&lab);
    let of = |local: SocketAddr| {
        let found = |socket: &&Udp| socket.local.to_string() == local.to_string();
        sockets.iter().find(found).unwrap()
    };
    let socket = of(receiver.local_addr().unwrap());
    let memory = socket.memory.unwrap();
    assert!(memory.drops > 0 && socket.rqueue > 0, "{socket:?}");
    assert!(memory.rmem <= memory.rcvbuf + 4096, "{memory:?}");
    receiver.set_nonblocking(true).unwrap();
    let queued = std::iter::from_fn(|| receiver.recv(&mut [0; 100]).ok()).count();
    assert_eq!(memory.drops + queued as u32, SENT);
    let client = of(sender.local_addr().unwrap());
    assert_eq!(
        client.remote.to_string(),
        receiver.local_addr().unwrap().to_string()
    );
    assert_eq!(client.memory.unwrap().drops, 0);
}

#[test]
fn a_reader_that_stalls_shows_as_a_closed_window() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("stalled").unwrap();
    let (_listener, mut client, mut server) = connected(&lab);
    client.set_nonblocking(true).unwrap();
    let block = vec![0; 64 * 1024];
    eventually("the receiver never filled up", || {
        let stalled = loop {
            match (&client).write(&block) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) => panic!("{error}"),
            }
        };
        let info = connection(&lab, client.local_addr().unwrap()).info.unwrap();
        stalled && info.rwnd_limited.unwrap() > 0
    });
    let sender = connection(&lab, client.local_addr().unwrap());
    let info = sender.info.unwrap();
    assert!(sender.wqueue > 0, "{sender:?}");
    assert!(info.notsent_bytes.unwrap() > 0, "{info:?}");
    assert!(
        info.busy_time.unwrap() >= info.rwnd_limited.unwrap(),
        "{info:?}"
    );
    let receiver = connection(&lab, server.local_addr().unwrap());
    assert!(receiver.rqueue > 0, "{receiver:?}");
    assert_eq!(receiver.state, ESTABLISHED);
    // The reader wakes up: what it was given is what the sender had acknowledged.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let reader = std::thread::spawn(move || server.read_to_end(&mut Vec::new()).unwrap());
    assert!(reader.join().unwrap() > 0);
    let _ = client.flush();
}

#[test]
fn who_closed_first_waits_without_an_owner() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("timewait").unwrap();
    let (listener, client, mut server) = connected(&lab);
    let local = client.local_addr().unwrap();
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    drop(server);
    eventually("the connection did not end", || {
        let waiting = |socket: &TcpSocket| {
            socket.state == TIME_WAIT && socket.local.to_string() == local.to_string()
        };
        tcp(&lab).iter().any(waiting)
    });
    let socket = connection(&lab, local);
    assert_eq!((socket.inode, socket.info, socket.memory), (0, None, None));
    drop(listener);
}

#[test]
fn a_mapped_address_is_shown_as_what_it_is() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("mapped").unwrap();
    let (_listener, client, server) = lab.run(|| {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        (listener, client, server)
    });
    let remote = client.local_addr().unwrap().to_string();
    let sockets = tcp(&lab);
    let accepted = sockets
        .iter()
        .find(|socket| socket.remote.to_string() == remote)
        .unwrap();
    assert_eq!(
        accepted.local.to_string(),
        format!("127.0.0.1:{}", server.local_addr().unwrap().port())
    );
}

#[test]
fn single_connections_are_reported_beside_the_listeners() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("among").unwrap();
    let (_listener, client, server) = connected(&lab);
    // IPv4 within a socket of IPv6 is asked for by its IPv4 addresses.
    let (_six, mapped, accepted) = lab.run(|| {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        (listener, client, server)
    });
    let all = tcp(&lab);
    let at = |local: SocketAddr, remote: SocketAddr| {
        let named = |socket: &&TcpSocket| {
            socket.local.port == local.port() && socket.remote.port == remote.port()
        };
        all.iter().find(named).unwrap().clone()
    };
    let client_end = at(client.local_addr().unwrap(), client.peer_addr().unwrap());
    let mapped_end = at(
        accepted.local_addr().unwrap(),
        accepted.peer_addr().unwrap(),
    );
    let gone = TcpSocket {
        remote: "127.0.0.1:1".parse().unwrap(),
        ..client_end.clone()
    };
    let found = lab
        .tcp_among(&[gone, client_end.clone(), mapped_end.clone()])
        .unwrap();
    let (listening, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|socket| socket.state == LISTEN);
    assert_eq!(listening.len(), 2);
    // The kernel offers the listener in the place of a connection that is gone.
    let others: Vec<_> = others
        .into_iter()
        .filter(|socket| {
            [&client_end, &mapped_end]
                .iter()
                .any(|end| end.is_same(socket))
        })
        .collect();
    assert_eq!(others.len(), 2, "{found:?}");
    assert!(others.iter().all(|socket| socket.info.is_some()));
    drop((client, server, mapped, accepted));
}

#[test]
fn the_kernel_lists_the_sockets_of_a_service_alone_in_this_and_in_another_namespace() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("service").unwrap();
    let (_others, kept) = (connected(&lab), connected(&lab));
    let (listener, client, server) = &kept;
    let port = listener.local_addr().unwrap().port();
    let of = |text: String| -> Vec<TcpSocket> { lab.tcp_of(&[text.parse().unwrap()]).unwrap() };
    let found = of(format!(":{port}"));
    let mut states: Vec<u8> = found.iter().map(|socket| socket.state).collect();
    states.sort_unstable();
    assert_eq!(states, [ESTABLISHED, ESTABLISHED, LISTEN]);
    for end in [client, server] {
        let local = end.local_addr().unwrap().to_string();
        let is_it = |socket: &TcpSocket| socket.local.to_string() == local && socket.info.is_some();
        assert!(found.iter().any(is_it), "{local}: {found:?}");
    }
    assert_eq!(of(format!("127.0.0.1:{port}")).len(), 3);
    assert_eq!(of(format!("127.0.0.2:{port}")), []);
    assert_eq!(of(format!(":{}", port ^ 1)), []);
    let both = [format!(":{port}"), ":1".to_owned()].map(|text| text.parse().unwrap());
    assert_eq!(lab.tcp_of(&both).unwrap().len(), 3);
    // A namespace is found by a process that lives in it.
    let sleep = || std::process::Command::new("sleep").arg("60").spawn();
    let mut resident = lab.run(sleep).unwrap();
    let (own, theirs) = (Live.netns().unwrap(), lab.netns().unwrap());
    let networks = Live.other_networks().unwrap();
    assert!(!networks.contains_key(&own));
    let found = Live.tcp_in(&networks[&theirs], &both).unwrap();
    resident.kill().unwrap();
    resident.wait().unwrap();
    assert_eq!(found.len(), 3);
}

#[test]
fn more_single_connections_than_fit_one_answer_are_all_reported() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("many").unwrap();
    let kept = lab.run(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pair = |_| {
            let client = TcpStream::connect(address).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let pairs: Vec<_> = (0..100).map(pair).collect();
        (listener, pairs)
    });
    let mut open = tcp(&lab);
    open.retain(|socket| socket.state == ESTABLISHED);
    assert_eq!(open.len(), 200);
    let found = lab.tcp_among(&open).unwrap();
    assert_eq!(found.len(), 201);
    drop(kept);
}

#[test]
fn a_namespace_lists_its_own_sockets_and_their_owner_is_found() {
    if !root_or_skip() {
        return;
    }
    let [one, other] = ["one", "other"].map(|label| Namespace::create(label).unwrap());
    let socket = one.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap();
    assert_eq!(udp(&other), []);
    let [listed] = &udp(&one)[..] else {
        panic!("one socket");
    };
    let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
    assert_eq!(listed.inode, std::fs::metadata(link).unwrap().ino());
    let Answer::Owners(owners) = one.ask(Question::Owners).unwrap() else {
        panic!("owners");
    };
    assert_eq!(owners[&listed.inode].pid, std::process::id());
    let sought = [listed.inode].into();
    assert_eq!(
        other.owners_of(&sought).unwrap(),
        owners_of(&owners, listed.inode)
    );
}

/// The owner of this socket alone.
fn owners_of(all: &BTreeMap<u64, Owner>, inode: u64) -> BTreeMap<u64, Owner> {
    [(inode, all[&inode].clone())].into()
}

#[test]
fn ss_shows_the_same_numbers() {
    if !root_or_skip() {
        return;
    }
    let lab = Namespace::create("ss").unwrap();
    let (_listener, mut client, mut server) = connected(&lab);
    let mut buffer = vec![0; 10_000];
    for _ in 0..10 {
        client.write_all(&buffer).unwrap();
        server.read_exact(&mut buffer).unwrap();
        server.write_all(&buffer[..500]).unwrap();
        client.read_exact(&mut buffer[..500]).unwrap();
    }
    // A delayed acknowledgement may be under way: two equal answers around the peer's are its time too.
    let local = client.local_addr().unwrap();
    let filter = format!("ss -tinmH sport = :{}", local.port());
    for _ in 0..100 {
        let before = connection(&lab, local);
        let Some(said) = said_in(&lab, &filter) else {
            return;
        };
        let after = connection(&lab, local);
        let (info, later) = (before.info.unwrap(), after.info.unwrap());
        if (info.segs_in, info.segs_out) != (later.segs_in, later.segs_out) {
            continue;
        }
        let memory = after.memory.unwrap();
        for expected in [
            format!("bytes_sent:{} ", info.bytes_sent.unwrap()),
            format!("bytes_acked:{} ", info.bytes_acked.unwrap()),
            format!("bytes_received:{} ", info.bytes_received.unwrap()),
            format!("segs_out:{} ", info.segs_out.unwrap()),
            format!("segs_in:{} ", info.segs_in.unwrap()),
            format!(" cwnd:{} ", info.snd_cwnd),
            format!(" mss:{} ", info.snd_mss),
            format!(" rtt:{}/", milliseconds(info.rtt)),
            format!(" rto:{} ", milliseconds(info.rto)),
            format!("busy:{}ms", info.busy_time.unwrap() / 1000),
            format!("rb{},", memory.rcvbuf),
            format!("tb{},", memory.sndbuf),
            format!("d{})", memory.drops),
        ] {
            // ss leaves out what is zero.
            let zero = expected.contains(":0ms") || expected.contains(":0 ");
            assert!(
                zero || said.contains(&expected),
                "{expected} is not in {said}"
            );
        }
        return;
    }
    panic!("the connection never came to rest");
}

/// As ss prints microseconds: milliseconds without trailing zeroes.
fn milliseconds(microseconds: u32) -> String {
    (f64::from(microseconds) / 1000.0).to_string()
}

#[test]
fn a_unix_socket_shows_what_waits_to_be_accepted() {
    use std::os::unix::net::{UnixListener, UnixStream};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // Once more, with a shorter queue: the standard library asks for a long one.
    rustix::net::listen(&listener, 1).unwrap();
    let _waiting = [
        UnixStream::connect(&path).unwrap(),
        UnixStream::connect(&path).unwrap(),
    ];
    let Answer::Unix(found) = Live.ask(Question::Unix).unwrap() else {
        panic!("another answer");
    };
    let name = path.display().to_string();
    let found = found.iter().find(|listener| listener.name == name).unwrap();
    assert_eq!((found.waiting, found.backlog), (2, 1));
    let inode = std::fs::metadata(format!("/proc/self/fd/{}", listener.as_raw_fd()));
    assert_eq!(found.inode, inode.unwrap().ino());
}
