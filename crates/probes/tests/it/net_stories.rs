//! Devices, protocols, sockets and packet filters: golden evidence of machines in texts, and what they show.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Evidence, Key, Kind, Subject};
use rungwise_model::kernel::{
    Answer, Audit, Chain, Channels, Coalesce, Driver, Endpoint, NetDevice, Owner, Qdisc, Ring, Rss,
    SocketMemory, TcpInfo, TcpSocket, UdpSocket,
};
use rungwise_model::keys;
use rungwise_probes::Capture;
use rungwise_probes::capture::{Moment, Raw, Reply};

use crate::story;

const ALL: &[&str] = &[
    "audit",
    "ethtool",
    "netfilter",
    "nf-conntrack",
    "proc-net-dev",
    "proc-net-snmp",
    "proc-net-sockstat",
    "proc-sys-net",
    "qdisc",
    "queue-counters",
    "queue-steering",
    "rx-missed",
    "selinux",
    "softnet-stat",
    "sys-class-net",
    "tcp-sockets",
    "udp-sockets",
];

const LADDER: &str = include_str!("hosts/ladder-net.txt");
const GUEST: &str = include_str!("hosts/guest-net.txt");

/// An empty sample after so many seconds.
pub(crate) fn moment_at(at_s: f64) -> Moment {
    Moment {
        at_s,
        ..Moment::default()
    }
}

pub(crate) fn answer(moment: &mut Moment, name: &str, answer: Answer) {
    let reply = Reply::Answer(answer);
    moment.answers.insert(name.to_owned(), reply);
}

pub(crate) fn file(moment: &mut Moment, path: &str, text: &str) {
    let raw = Raw::Text(text.to_owned());
    moment.files.insert(path.to_owned(), raw);
}

fn missing(moment: &mut Moment, path: &str) {
    let failed = "ENOENT".to_owned();
    moment.files.insert(path.to_owned(), Raw::Failed { failed });
}

fn capture(moments: Vec<Moment>) -> Capture {
    Capture {
        moments,
        ..Capture::default()
    }
}

pub(crate) fn evidence(moments: Vec<Moment>) -> Evidence {
    story::derive(&capture(moments), ALL)
}

fn end(text: &str) -> Endpoint {
    text.parse().expect("an address with a port")
}

fn connection(name: &str) -> Subject {
    Subject::new(Kind::Connection, name)
}

fn port(name: &str) -> Subject {
    Subject::new(Kind::Port, name)
}

fn number(evidence: &Evidence, key: &'static Key, subject: &Subject) -> f64 {
    match evidence.quantity(key, subject) {
        Ok(quantity) => quantity.value,
        Err(missing) => panic!("{} {subject}: {}", missing.key, missing.why.reason),
    }
}

#[track_caller]
fn about(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

/// Packets of each queue since boot, as the reference case printed them: queues 16 to 19 got next to none.
const LADDER_QUEUES: [u64; 20] = [
    198_005_155,
    153_339_750,
    162_870_095,
    172_303_801,
    153_728_776,
    158_138_563,
    164_411_653,
    165_924_489,
    176_545_406,
    165_340_188,
    150_279_834,
    150_983_782,
    157_623_687,
    150_743_910,
    158_634_344,
    158_497_890,
    4,
    3,
    0,
    8,
];

/// The 82599 of the reference case: 20 of its 64 queues are in use, and its indirection table ends at queue 15.
/// In the window of 10 s it received 2.7 million packets.
fn ladder_device(ended: bool) -> NetDevice {
    let mut statistics = BTreeMap::from([
        (
            "rx_missed_errors".to_owned(),
            if ended { 73_000 } else { 0 },
        ),
        ("rx_no_dma_resources".to_owned(), if ended { 11 } else { 0 }),
        ("fdir_miss".to_owned(), if ended { 99_999_999 } else { 0 }),
    ]);
    let all: u64 = LADDER_QUEUES.iter().sum();
    for (queue, count) in LADDER_QUEUES.iter().enumerate() {
        let packets = if ended {
            *count
        } else {
            count - count * 2_700_000 / all
        };
        statistics.insert(format!("rx_queue_{queue}_packets"), packets);
        statistics.insert(format!("rx_queue_{queue}_bytes"), packets * 146);
    }
    NetDevice {
        name: "ens1f0".to_owned(),
        index: 2,
        up: true,
        num_rx_queues: 64,
        num_tx_queues: 64,
        driver: Some(Driver {
            driver: "ixgbe".to_owned(),
            version: "4.2.1-k".to_owned(),
            firmware: "0x61c10001".to_owned(),
            bus: "0000:03:00.0".to_owned(),
        }),
        channels: Some(Channels {
            combined: 20,
            max_combined: 63,
            ..Channels::default()
        }),
        ring: Some(Ring {
            rx: 512,
            tx: 512,
            max_rx: 4096,
            max_tx: 4096,
        }),
        coalesce: Some(Coalesce {
            rx_usecs: Some(1),
            adaptive_rx: Some(true),
            ..Coalesce::default()
        }),
        rss: Some(Rss {
            table: (0..128).map(|entry| entry % 16).collect(),
            udp4: Some("sd".to_owned()),
        }),
        features: BTreeMap::from([("rx-gro".to_owned(), (true, false))]),
        statistics,
        ..NetDevice::default()
    }
}

/// The server of the reference case under load, with one UDP socket for all of it.
fn ladder() -> Capture {
    let mut capture = story::capture(LADDER, None);
    let count = capture.moments.len();
    for (index, moment) in capture.moments.iter_mut().enumerate() {
        let ended = index + 1 == count;
        let drops = if ended { 260_000 } else { 0 };
        let socket = UdpSocket {
            local: end("0.0.0.0:9000"),
            inode: 4711,
            rqueue: 212_480,
            memory: Some(SocketMemory {
                rmem: 212_480,
                rcvbuf: 212_992,
                drops,
                ..SocketMemory::default()
            }),
            ..UdpSocket::default()
        };
        answer(moment, "udp", Answer::Udp(vec![socket]));
        answer(moment, "tcp", Answer::Tcp(Vec::new()));
        answer(
            moment,
            "devices",
            Answer::Devices(vec![ladder_device(ended)]),
        );
        let qdisc = Qdisc {
            device: "ens1f0".to_owned(),
            kind: "mq".to_owned(),
            handle: "0:".to_owned(),
            parent: "root".to_owned(),
            packets: 2_700_000,
            ..Qdisc::default()
        };
        let leaf = Qdisc {
            kind: "pfifo_fast".to_owned(),
            parent: ":1".to_owned(),
            drops: 7,
            ..qdisc.clone()
        };
        answer(moment, "qdiscs", Answer::Qdiscs(vec![qdisc, leaf]));
        if ended {
            let owner = Owner {
                pid: 812,
                name: "udp-echo".to_owned(),
            };
            answer(
                moment,
                "owners",
                Answer::Owners(BTreeMap::from([(4711, owner)])),
            );
            answer(moment, "netfilter", Answer::Netfilter(Vec::new()));
            let audit = Audit {
                enabled: 1,
                pid: 700,
                ..Audit::default()
            };
            answer(moment, "audit", Answer::Audit(audit));
        }
    }
    capture
}

#[test]
fn the_server_of_the_ladder_has_golden_evidence() {
    let evidence = story::derive(&ladder(), ALL);
    insta::assert_snapshot!("ladder-net", story::list(&evidence));
}

#[test]
fn the_server_of_the_ladder_tells_its_story() {
    let evidence = story::derive(&ladder(), ALL);
    let device = Subject::device("ens1f0");
    about(number(&evidence, &keys::QUEUES_RX, &device), 20.0);
    about(number(&evidence, &keys::RSS_TABLE_QUEUES, &device), 16.0);
    about(number(&evidence, &keys::XPS_CPUS, &device), 0.0);
    about(number(&evidence, &keys::ROUTE_RP_FILTER, &device), 1.0);
    let share = |queue: u32| {
        let subject = Subject::new(Kind::Queue, format_args!("ens1f0:rx-{queue}"));
        number(&evidence, &keys::QUEUE_SHARE, &subject)
    };
    assert!(share(15) > 0.05 && share(16) < 1e-6, "{}", share(16));
    // rx_missed_errors is reported by the kernel and by the driver, and is one loss.
    about(number(&evidence, &keys::DEVICE_MISSED, &device), 7_300.0);
    // The rows of Linux 4.6 do not name their CPUs, and the counter of CPU 0 went round.
    let processed = |cpu| number(&evidence, &keys::SOFTNET_PROCESSED, &Subject::cpu(cpu));
    about(processed(0), 27_000.0);
    about(processed(14), 270_000.0);
    about(processed(15), 8.0);
    let dropped = number(&evidence, &keys::SOFTNET_DROPPED, &Subject::cpu(10));
    about(dropped, 25.0);
    let tables = evidence.words(&keys::NETFILTER_LEGACY_TABLES, &Subject::host());
    assert_eq!(tables.unwrap().value, "ip nat, ip filter");
    let port = port("udp/0.0.0.0:9000");
    about(number(&evidence, &keys::UDP_SOCKET_DROPS, &port), 26_000.0);
    about(number(&evidence, &keys::UDP_READERS, &port), 20.0);
    let process = evidence.words(&keys::UDP_PROCESS, &port).unwrap();
    assert_eq!(process.value, "udp-echo 812");
}

#[test]
fn a_recorded_guest_has_golden_evidence() {
    let mut capture = story::capture(GUEST, None);
    for moment in &mut capture.moments {
        for path in ["/sys/fs/selinux/enforce", "/sys/fs/selinux/avc/cache_stats"] {
            missing(moment, path);
        }
    }
    let evidence = story::derive(&capture, ALL);
    insta::assert_snapshot!("guest-net", story::list(&evidence));
}

/// What the socket of a Dubbo provider showed in the reference case, with the limits as shares of busy time.
fn provider(at: u64, port: u16, rwnd: u64, sndbuf: u64) -> TcpSocket {
    let queues = [27_474, 65_160, 65_160, 40_000];
    let busy = 8_000_000 * at / 9;
    TcpSocket {
        local: end("10.0.0.1:20880"),
        remote: Endpoint::new([10, 0, 0, 2].into(), port),
        state: 1,
        inode: u64::from(port),
        wqueue: queues[(at / 3) as usize],
        memory: Some(SocketMemory {
            rcvbuf: 131_072,
            sndbuf: 87_040,
            ..SocketMemory::default()
        }),
        info: Some(TcpInfo {
            snd_cwnd: 10,
            unacked: if at == 3 { 9 } else { 10 },
            rtt: 310,
            rttvar: 100,
            bytes_acked: Some(7_000_000 * at),
            bytes_received: Some(1_000 * at),
            bytes_sent: Some(7_000_000 * at),
            bytes_retrans: Some(70_000 * at),
            busy_time: Some(busy),
            rwnd_limited: Some(busy * rwnd / 1000),
            sndbuf_limited: Some(busy * sndbuf / 1000),
            snd_wnd: Some(0),
            ..TcpInfo::default()
        }),
        ..TcpSocket::default()
    }
}

#[test]
fn a_congested_provider_shows_what_limits_its_connections() {
    let moments = [0, 3, 6, 9].map(|at| {
        let mut moment = moment_at(at as f64);
        let listener = TcpSocket {
            local: end("0.0.0.0:20880"),
            state: 10,
            rqueue: if at == 6 { 4 } else { 1 },
            wqueue: 3,
            inode: 1,
            ..TcpSocket::default()
        };
        let idle = TcpSocket {
            inode: 5,
            remote: end("10.0.0.3:40000"),
            info: provider(0, 1, 0, 0).info,
            ..provider(0, 1, 0, 0)
        };
        let sockets = vec![
            listener,
            provider(at, 40_112, 299, 0),
            provider(at, 40_113, 0, 324),
            idle,
        ];
        answer(&mut moment, "tcp", Answer::Tcp(sockets));
        file(
            &mut moment,
            "/proc/sys/net/ipv4/ip_local_port_range",
            "32768\t60999\n",
        );
        file(
            &mut moment,
            "/proc/sys/net/ipv4/tcp_congestion_control",
            "cubic\n",
        );
        moment
    });
    let evidence = evidence(moments.into());
    let closed = connection("10.0.0.1:20880>10.0.0.2:40112");
    let full = connection("10.0.0.1:20880>10.0.0.2:40113");
    let idle = connection("10.0.0.1:20880>10.0.0.3:40000");
    let close = |key: &'static Key, subject: &Subject, expected: f64| {
        let found = number(&evidence, key, subject);
        assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
    };
    close(&keys::TCP_RWND_LIMITED, &closed, 0.299);
    close(&keys::TCP_SNDBUF_LIMITED, &closed, 0.0);
    close(&keys::TCP_SNDBUF_LIMITED, &full, 0.324);
    close(&keys::TCP_SENDQ, &closed, 52_580.0);
    close(&keys::TCP_SENDQ_SHARE, &closed, 52_580.0 / 87_040.0);
    close(&keys::TCP_BYTES_SENT, &closed, 7e6);
    close(&keys::TCP_RETRANS_BYTES_SHARE, &closed, 0.01);
    close(&keys::TCP_RTT, &closed, 310e-6);
    close(&keys::TCP_CWND_FULL, &closed, 1.0);
    close(&keys::TCP_SND_WND, &closed, 0.0);
    close(&keys::TCP_PARALLEL, &closed, 2.0);
    close(&keys::TCP_PARALLEL, &idle, 1.0);
    close(&keys::TCP_ESTABLISHED, &Subject::host(), 3.0);
    close(&keys::FLOWS_COUNT, &Subject::host(), 3.0);
    close(&keys::FLOWS_LARGEST_SHARE, &Subject::host(), 0.5);
    let listening = port("tcp/0.0.0.0:20880");
    close(&keys::TCP_ACCEPT_QUEUE, &listening, 4.0);
    close(&keys::TCP_ACCEPT_BACKLOG, &listening, 3.0);
    let rwnd = evidence.quantity(&keys::TCP_RWND_LIMITED, &closed).unwrap();
    assert!(rwnd.always(|share| share > 0.1));
    insta::assert_snapshot!(rwnd.reading.origin.line, @"rwnd_limited:2392ms of busy:8000ms in the window (rwnd_limited:2392ms busy:8000ms at its end)");
    let missing = evidence
        .quantity(&keys::TCP_RWND_LIMITED, &idle)
        .unwrap_err();
    assert!(
        missing.why.reason.contains("for 0.0 ms"),
        "{}",
        missing.why.reason
    );
    let owner = evidence.words(&keys::TCP_PROCESS, &closed).unwrap_err();
    assert!(owner.why.reason.contains("owners"), "{}", owner.why.reason);
}

#[test]
fn of_a_thousand_connections_the_interesting_ones_are_reported() {
    let of = |at: u64, port: u16| {
        let mut socket = provider(at, port, 0, 0);
        socket.wqueue = 0;
        let info = socket.info.as_mut().unwrap();
        let moved = if port == 10_500 { 1_000 * at } else { 0 };
        info.bytes_acked = Some(moved);
        info.bytes_received = Some(0);
        if port == 10_600 {
            socket.rqueue = 128_512;
        }
        if port == 10_700 {
            info.rwnd_limited = info.busy_time;
        }
        socket
    };
    let moments = [0, 9].map(|at| {
        let mut moment = moment_at(at as f64);
        let sockets = (10_000..11_000).map(|port| of(at, port)).collect();
        answer(&mut moment, "tcp", Answer::Tcp(sockets));
        moment
    });
    let evidence = evidence(moments.into());
    let queues = evidence.each(&keys::TCP_RECVQ).unwrap();
    assert_eq!(queues.len(), 50);
    for port in [10_500, 10_600, 10_700] {
        let subject = connection(&format!("10.0.0.1:20880>10.0.0.2:{port}"));
        assert!(queues.iter().any(|(of, _)| **of == subject), "{subject}");
    }
    about(
        number(&evidence, &keys::TCP_ESTABLISHED, &Subject::host()),
        1000.0,
    );
    about(
        number(&evidence, &keys::FLOWS_LARGEST_SHARE, &Subject::host()),
        1.0,
    );
}

#[test]
fn small_messages_fill_a_send_buffer_with_memory_and_not_with_bytes() {
    let socket = TcpSocket {
        local: end("10.0.0.1:80"),
        remote: end("10.0.0.2:40000"),
        state: 1,
        inode: 1,
        wqueue: 5_000,
        memory: Some(SocketMemory {
            sndbuf: 87_040,
            queued: 85_000,
            ..SocketMemory::default()
        }),
        ..TcpSocket::default()
    };
    let mut moment = moment_at(0.0);
    answer(&mut moment, "tcp", Answer::Tcp(vec![socket]));
    let evidence = evidence(vec![moment]);
    let subject = connection("10.0.0.1:80>10.0.0.2:40000");
    about(number(&evidence, &keys::TCP_SENDQ, &subject), 5_000.0);
    about(
        number(&evidence, &keys::TCP_SENDQ_SHARE, &subject),
        85_000.0 / 87_040.0,
    );
}

#[test]
fn both_ends_of_a_connection_within_the_host_are_counted_apart() {
    let socket = |local: &str, remote: &str, state| TcpSocket {
        local: end(local),
        remote: end(remote),
        state,
        inode: 1,
        ..TcpSocket::default()
    };
    let mut sockets = vec![socket("127.0.0.1:80", "0.0.0.0:0", 10)];
    for client in ["127.0.0.1:40001", "127.0.0.1:40002", "127.0.0.1:40003"] {
        sockets.push(socket("127.0.0.1:80", client, 1));
        sockets.push(socket(client, "127.0.0.1:80", 1));
    }
    let mut moment = moment_at(0.0);
    answer(&mut moment, "tcp", Answer::Tcp(sockets));
    let evidence = evidence(vec![moment]);
    for name in [
        "127.0.0.1:80>127.0.0.1:40001",
        "127.0.0.1:40001>127.0.0.1:80",
    ] {
        about(
            number(&evidence, &keys::TCP_PARALLEL, &connection(name)),
            3.0,
        );
    }
    about(number(&evidence, &keys::FLOWS_COUNT, &Subject::host()), 0.0);
    let rate = evidence.quantity(
        &keys::TCP_BYTES_SENT,
        &connection("127.0.0.1:80>127.0.0.1:40001"),
    );
    assert!(rate.unwrap_err().why.reason.contains("one sample"));
}

#[test]
fn ports_in_use_count_time_wait_towards_the_busiest_destination() {
    // Two local addresses: each has all ports for itself, and the busier one counts.
    let sockets = (0..37_000_u16).map(|index| TcpSocket {
        local: Endpoint::new(
            [10, 0, 0, 1 + u8::from(index >= 28_000)].into(),
            32_768 + index % 28_000,
        ),
        remote: end("10.0.0.9:5432"),
        state: if index < 100 { 1 } else { 6 },
        inode: u64::from(index < 100) * u64::from(index + 1),
        ..TcpSocket::default()
    });
    let served = (0..20_000_u16).map(|index| TcpSocket {
        local: end("10.0.0.1:80"),
        remote: Endpoint::new([10, 0, 7, 7].into(), 20_000 + index),
        state: 1,
        inode: 1_000_000 + u64::from(index),
        ..TcpSocket::default()
    });
    let mut moment = moment_at(0.0);
    answer(
        &mut moment,
        "tcp",
        Answer::Tcp(sockets.chain(served).collect()),
    );
    file(
        &mut moment,
        "/proc/sys/net/ipv4/ip_local_port_range",
        "32768\t60999\n",
    );
    let evidence = evidence(vec![moment]);
    about(
        number(&evidence, &keys::TCP_PORTS_USED, &Subject::host()),
        28_000.0 / 28_232.0,
    );
    let to = evidence
        .words(&keys::TCP_PORTS_TO, &Subject::host())
        .unwrap();
    assert_eq!(to.value, "10.0.0.9:5432 from 10.0.0.1");
}

#[test]
fn a_window_that_falls_to_its_start_without_a_loss_is_a_restart() {
    let cwnds = [80, 10, 60, 10];
    let course = |congestion: &str, losses: bool| {
        let moments = cwnds.iter().zip([0_u32, 3, 6, 9]).map(|(cwnd, at)| {
            let mut moment = moment_at(f64::from(at));
            let mut socket = provider(u64::from(at), 40_112, 0, 0);
            let info = socket.info.as_mut().unwrap();
            info.snd_cwnd = *cwnd;
            info.total_retrans = if losses { at } else { 0 };
            answer(&mut moment, "tcp", Answer::Tcp(vec![socket]));
            file(
                &mut moment,
                "/proc/sys/net/ipv4/tcp_congestion_control",
                congestion,
            );
            moment
        });
        evidence(moments.collect())
    };
    let subject = connection("10.0.0.1:20880>10.0.0.2:40112");
    let rate = |evidence: &Evidence| number(evidence, &keys::TCP_IDLE_RESTARTS, &subject);
    about(rate(&course("cubic\n", false)), 2.0 / 9.0);
    about(rate(&course("cubic\n", true)), 0.0);
    let with_bbr = course("bbr\n", false);
    let missing = with_bbr.each(&keys::TCP_IDLE_RESTARTS).err().unwrap();
    assert!(missing.why.reason.starts_with("BBR ignores"));
}

#[test]
fn udp_sockets_of_one_address_belong_together() {
    let socket = |inode, drops, rmem, remote: &str| UdpSocket {
        local: end("[::]:53"),
        remote: end(remote),
        inode,
        memory: Some(SocketMemory {
            rmem,
            rcvbuf: 1000 * u32::try_from(inode).unwrap(),
            drops,
            ..SocketMemory::default()
        }),
        ..UdpSocket::default()
    };
    let any = "[::]:0";
    let mut moments = vec![moment_at(0.0), moment_at(5.0), moment_at(10.0)];
    let first = vec![socket(1, u32::MAX, 0, any), socket(2, 7, 0, any)];
    let middle = vec![socket(1, 4, 900, any), socket(2, 7, 100, any)];
    let last = vec![
        socket(1, 9, 100, any),
        socket(2, 17, 100, any),
        // Made during the window, so all its drops are of the window.
        socket(3, 1_000, 0, any),
        socket(4, 5_000, 4_000, "[2001:db8::1]:9"),
    ];
    for (moment, sockets) in moments.iter_mut().zip([first, middle, last]) {
        answer(moment, "udp", Answer::Udp(sockets));
    }
    let owners = [(1, 40), (2, 41), (3, 41)].map(|(inode, pid)| {
        let name = "named".to_owned();
        (inode, Owner { pid, name })
    });
    let stat = |pid: u32, threads: u32| {
        let columns = "0 ".repeat(16);
        let rest = " 0".repeat(30);
        (
            format!("/proc/{pid}/stat"),
            format!("{pid} (named) S {columns}{threads}{rest}\n"),
        )
    };
    for (path, text) in [stat(40, 1), stat(41, 1)] {
        file(&mut moments[2], &path, &text);
    }
    for (index, waited) in [(0, 1_000), (2, 2_000_001_000_u64)] {
        for pid in [40, 41] {
            let text = format!("5 {} 9\n", if pid == 41 { waited } else { 1 });
            file(
                &mut moments[index],
                &format!("/proc/{pid}/schedstat"),
                &text,
            );
        }
    }
    answer(
        &mut moments[2],
        "owners",
        Answer::Owners(BTreeMap::from(owners)),
    );
    let evidence = evidence(moments);
    let subject = port("udp/[::]:53");
    about(number(&evidence, &keys::UDP_SOCKETS, &subject), 3.0);
    about(number(&evidence, &keys::UDP_SOCKET_DROPS, &subject), 102.0);
    about(number(&evidence, &keys::UDP_RCVBUF, &subject), 1000.0);
    about(number(&evidence, &keys::UDP_SOCKET_QUEUE, &subject), 0.9);
    about(number(&evidence, &keys::UDP_READERS, &subject), 2.0);
    about(number(&evidence, &keys::UDP_READ_DELAY, &subject), 0.2);
}

#[test]
fn a_full_table_of_connections_shows_what_it_cost() {
    let heading = "entries searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n";
    let row = |failed: u32, dropped: u32| {
        format!("{heading}00040000 0 0 0 0 0 0 0 0 {failed:08x} {dropped:08x} 0 0 0 0 0 0\n")
    };
    let moments = [(0.0, 0, 0), (10.0, 30, 470)].map(|(at, failed, dropped)| {
        let mut moment = moment_at(at);
        file(
            &mut moment,
            "/proc/sys/net/netfilter/nf_conntrack_count",
            "262100\n",
        );
        file(
            &mut moment,
            "/proc/sys/net/netfilter/nf_conntrack_max",
            "262144\n",
        );
        file(
            &mut moment,
            "/proc/net/stat/nf_conntrack",
            &row(failed, dropped),
        );
        moment
    });
    let evidence = evidence(moments.into());
    about(
        number(&evidence, &keys::CONNTRACK_USE, &Subject::host()),
        262_100.0 / 262_144.0,
    );
    about(
        number(&evidence, &keys::CONNTRACK_DROPPED, &Subject::host()),
        50.0,
    );
}

#[test]
fn a_module_that_is_not_loaded_is_known_and_a_file_that_may_not_be_read_is_not() {
    let mut moment = moment_at(0.0);
    for path in [
        "/proc/sys/net/netfilter/nf_conntrack_count",
        "/proc/sys/net/netfilter/nf_conntrack_max",
        "/proc/net/ip_tables_names",
        "/proc/net/ip6_tables_names",
        "/sys/fs/selinux/enforce",
    ] {
        missing(&mut moment, path);
    }
    file(&mut moment, "/proc/filesystems", "nodev\tsysfs\n\text4\n");
    let blind = evidence(vec![moment.clone()]);
    for key in [&keys::CONNTRACK_USE, &keys::NETFILTER_LEGACY_TABLES] {
        // Nothing of its folder is seen at all: then that a file is not there says nothing.
        assert!(blind.each(key).is_err() && blind.each_words(key).is_err());
    }
    file(&mut moment, "/proc/sys/net/core/somaxconn", "4096\n");
    file(&mut moment, "/proc/net/dev", "");
    let known = evidence(vec![moment.clone()]);
    about(number(&known, &keys::CONNTRACK_USE, &Subject::host()), 0.0);
    let words = |key| known.words(key, &Subject::host()).unwrap().value.to_owned();
    assert_eq!(words(&keys::NETFILTER_LEGACY_TABLES), "");
    assert_eq!(words(&keys::SELINUX_ACTIVE), "inactive");

    file(&mut moment, "/proc/filesystems", "nodev\tselinuxfs\n");
    let denied = Raw::Failed {
        failed: "EACCES".to_owned(),
    };
    moment
        .files
        .insert("/proc/net/ip_tables_names".to_owned(), denied);
    let unknown = evidence(vec![moment]);
    let tables = unknown.words(&keys::NETFILTER_LEGACY_TABLES, &Subject::host());
    assert_eq!(tables.unwrap_err().why.remedy, "run as root");
    assert!(
        unknown
            .words(&keys::SELINUX_ACTIVE, &Subject::host())
            .is_err()
    );
}

#[test]
fn chains_off_the_path_of_own_packets_do_not_count_as_passed() {
    let chain = |hook: &str, policy: &str, rules| Chain {
        family: "inet".to_owned(),
        table: "fw".to_owned(),
        chain: format!("{hook}-chain"),
        hook: hook.to_owned(),
        policy: policy.to_owned(),
        rules,
    };
    let chains = vec![
        chain("input", "drop", 3),
        chain("output", "accept", 0),
        chain("forward", "drop", 400),
        chain("", "", 70),
    ];
    let mut moment = moment_at(0.0);
    answer(&mut moment, "netfilter", Answer::Netfilter(chains));
    let evidence = evidence(vec![moment]);
    let host = |key| number(&evidence, key, &Subject::host());
    about(host(&keys::NETFILTER_BASE_CHAINS), 2.0);
    about(host(&keys::NETFILTER_LONGEST_CHAIN), 3.0);
    about(host(&keys::NETFILTER_LONGEST_FORWARD), 400.0);
    about(host(&keys::NETFILTER_RULES), 473.0);
    about(host(&keys::NETFILTER_DROP_POLICIES), 2.0);
}

#[test]
fn what_a_driver_refuses_is_absent_for_that_device_alone() {
    let veth = NetDevice {
        name: "veth0".to_owned(),
        kind: "veth".to_owned(),
        refused: [("ring", "EOPNOTSUPP"), ("coalesce", "EPERM")]
            .map(|(part, why)| (part.to_owned(), why.to_owned()))
            .into(),
        ..NetDevice::default()
    };
    let mut moment = moment_at(0.0);
    let devices = vec![ladder_device(true), veth];
    answer(&mut moment, "devices", Answer::Devices(devices));
    let evidence = evidence(vec![moment]);
    let veth = Subject::device("veth0");
    about(
        number(&evidence, &keys::RING_RX, &Subject::device("ens1f0")),
        512.0,
    );
    let ring = evidence.quantity(&keys::RING_RX, &veth).unwrap_err();
    assert_eq!(ring.why.reason, "the device has no ring");
    let coalesce = evidence
        .quantity(&keys::COALESCE_RX_USECS, &veth)
        .unwrap_err();
    assert_eq!(coalesce.why.remedy, "run as root");
    let kind = evidence.words(&keys::DEVICE_KIND, &veth).unwrap();
    assert_eq!(kind.value, "virtual");
}

#[test]
fn rows_without_cpus_are_not_guessed_at() {
    let row = "00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n";
    let moments = [0.0, 5.0].map(|at| {
        let mut moment = moment_at(at);
        file(&mut moment, "/proc/net/softnet_stat", row);
        file(&mut moment, "/sys/devices/system/cpu/online", "0-1\n");
        moment
    });
    let evidence = evidence(moments.into());
    let missing = evidence.each(&keys::SOFTNET_PROCESSED).unwrap_err();
    assert!(
        missing.why.reason.contains("do not name"),
        "{}",
        missing.why.reason
    );
}
