//! Owners of sockets: whose process is sought, in which control group it is, and answers that are something else.

use rungwise_model::evidence::{Evidence, Kind, Subject};
use rungwise_model::kernel::{Answer, Endpoint, Owner, SocketMemory, TcpInfo, TcpSocket};
use rungwise_model::keys;
use rungwise_probes::Capture;
use rungwise_probes::capture::Moment;

use crate::net_stories::{answer, file, moment_at};
use crate::story;

/// A connection to that port; `received` bytes so far, `unread` of them with their memory in the queue.
fn connection(port: u16, received: u64, (unread, memory): (u32, u32)) -> TcpSocket {
    TcpSocket {
        local: Endpoint::new([10, 0, 0, 1].into(), 20_880),
        remote: Endpoint::new([10, 0, 0, 2].into(), port),
        state: 1,
        inode: u64::from(port),
        rqueue: unread,
        memory: Some(SocketMemory {
            rmem: memory,
            rcvbuf: 100_000,
            ..SocketMemory::default()
        }),
        info: Some(TcpInfo {
            bytes_received: Some(received),
            bytes_acked: Some(0),
            ..TcpInfo::default()
        }),
        ..TcpSocket::default()
    }
}

fn evidence(moments: Vec<Moment>, probe: &str) -> Evidence {
    let capture = Capture {
        moments,
        ..Capture::default()
    };
    story::derive(&capture, &[probe])
}

fn subject(port: u16) -> Subject {
    let name = format!("10.0.0.1:20880>10.0.0.2:{port}");
    Subject::new(Kind::Connection, name)
}

#[test]
fn a_connection_that_carried_nothing_says_why_nobody_knows_its_process() {
    let moments = [0, 10].map(|at| {
        let mut moment = moment_at(at as f64);
        let sockets = vec![
            connection(1, 1_000 * at, (0, 0)),
            connection(2, 500, (0, 0)),
            connection(3, 500, (70, 768)),
        ];
        answer(&mut moment, "tcp", Answer::Tcp(sockets));
        let owner = Owner {
            pid: 812,
            name: "java".to_owned(),
        };
        answer(&mut moment, "owners", Answer::Owners([(1, owner)].into()));
        moment
    });
    let evidence = evidence(moments.into(), "tcp-sockets");
    let words = |port| evidence.words(&keys::TCP_PROCESS, &subject(port));
    assert_eq!(words(1).unwrap().value, "java 812");
    let idle = words(2).unwrap_err().why;
    assert!(idle.reason.contains("carried nothing"), "{}", idle.reason);
    let queued = words(3).unwrap_err().why;
    assert_eq!(queued.remedy, "run as root");
}

#[test]
fn a_receive_queue_is_compared_with_its_buffer_by_memory() {
    let moments = [0, 5, 10].map(|at| {
        let mut moment = moment_at(f64::from(at));
        let sockets = vec![
            // A hundred bytes take 768 of the buffer.
            connection(1, 0, (6_500, 49_920)),
            // What came out of order takes memory and cannot be read.
            connection(2, 0, (0, 60_000)),
        ];
        answer(&mut moment, "tcp", Answer::Tcp(sockets));
        moment
    });
    let evidence = evidence(moments.into(), "tcp-sockets");
    let share = |port| {
        let share = evidence.quantity(&keys::TCP_RECVQ_SHARE, &subject(port));
        share.unwrap().value
    };
    assert!((share(1) - 0.4992).abs() < 1e-9, "{}", share(1));
    assert!(share(2).abs() < 1e-9, "{}", share(2));
}

#[test]
fn groups_are_reported_of_owners_and_of_this_tool() {
    let mut moment = moment_at(0.0);
    file(&mut moment, "/proc/812/cgroup", "0::/docker/web/worker\n");
    file(&mut moment, "/proc/9/cgroup", "\n");
    file(&mut moment, "/proc/self/cgroup", "0::/docker/web\n");
    let evidence = evidence(vec![moment], "sys-fs-cgroup");
    let process = Subject::new(Kind::Process, 812);
    let group = evidence.words(&keys::CGROUP_OF_PROCESS, &process);
    assert_eq!(group.unwrap().value, "/docker/web/worker");
    let own = evidence.words(&keys::CGROUP_OWN, &Subject::host());
    assert_eq!(own.unwrap().value, "/docker/web");
    let other = Subject::new(Kind::Process, 9);
    assert!(evidence.words(&keys::CGROUP_OF_PROCESS, &other).is_err());
}

#[test]
fn an_answer_to_another_question_is_called_what_it_is() {
    for (name, probe, key) in [
        ("tcp", "tcp-sockets", &keys::TCP_ESTABLISHED),
        ("udp", "udp-sockets", &keys::UDP_SOCKETS),
        ("netfilter", "netfilter", &keys::NETFILTER_RULES),
        ("audit", "audit", &keys::AUDIT_ENABLED),
        ("devices", "ethtool", &keys::DEVICE_DRIVER),
    ] {
        let mut moment = moment_at(0.0);
        answer(&mut moment, name, Answer::Qdiscs(Vec::new()));
        let evidence = evidence(vec![moment], probe);
        let why = evidence.missing(key, &Subject::host()).why;
        let expected = format!("under \"{name}\" the capture holds queueing disciplines instead");
        assert_eq!(why.reason, expected);
        assert!(!why.remedy.is_empty());
    }
}

#[test]
fn the_age_of_open_requests_is_the_median_of_all_samples() {
    // Three requests that hang, open since 2 s before the window; one of a client that asks every sample.
    let request = |port: u16, since_ms: u32| {
        let mut socket = connection(port, 100, (0, 0));
        socket.info = socket.info.map(|info| TcpInfo {
            last_data_sent_ms: since_ms + 50,
            last_data_recv_ms: since_ms,
            bytes_acked: Some(200),
            ..info
        });
        socket
    };
    let moments = [0_u32, 3, 7, 10].map(|at_s| {
        let mut moment = moment_at(f64::from(at_s));
        let hangs = [1, 2, 3].map(|port| request(port, 2_000 + 1_000 * at_s));
        let mut listener = connection(0, 0, (0, 0));
        listener.state = 10;
        let sockets = [&[listener, request(4, 30)], &hangs[..]].concat();
        answer(&mut moment, "tcp", Answer::Tcp(sockets));
        let owner = Owner {
            pid: 812,
            name: "app".to_owned(),
        };
        let owners = [1, 2, 3, 4].map(|inode| (inode, owner.clone()));
        answer(&mut moment, "owners", Answer::Owners(owners.into()));
        moment
    });
    let evidence = evidence(moments.into(), "tcp-dependencies");
    let process = Subject::new(Kind::Process, 812);
    let value = |key| evidence.quantity(key, &process).map(|found| found.value);
    assert_eq!(value(&keys::DEPENDENCY_CLIENTS).ok(), Some(4.0));
    // 30 ms four times, then 2, 5, 9 and 12 s three times each.
    assert_eq!(value(&keys::DEPENDENCY_CLIENT_WAIT).ok(), Some(5.0));
    let unanswered = value(&keys::DEPENDENCY_CLIENTS_UNANSWERED);
    assert_eq!(unanswered.ok(), Some(3.0));
}
