//! What lies between two services: a shaped link, a short queue, a hop that takes less, peers that are gone.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rungwise_host::Host as _;
use rungwise_host::veth::{self, End, Spec};

use super::lab::{DEVICE, Lab, Planted, counter, growth, run, serve_udp, service_address};
use super::process::start;
use super::traffic::{Pace, Repeated, connection, datagrams, reader, writer};
use super::{Fault, How, Result, acts};

const NFT: &[&str] = &["nft", "-f", "-"];
const TC: &[&str] = &["tc", "-batch", "-"];
const IP: &[&str] = &["ip", "-batch", "-"];

const FOLLOWS_FROM_SHAPING: &str = "the queue of the device keeps the send buffer full";

pub(super) const SHAPED_TCP: Fault = Fault {
    id: "shaped link under TCP",
    planted: "A token bucket of 20 Mbit/s at the root of the device that a connection sends through, whose writer always has data.",
    speaks: &[acts("qdisc-limit", "device/srv0")],
    may: &[
        ("tcp-sndbuf-limited", FOLLOWS_FROM_SHAPING),
        ("tcp-retrans", "what the shaper drops is sent again"),
    ],
    how: How::Here(shaped_tcp),
};

fn shaped_tcp(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let shaper = format!("qdisc add dev {DEVICE} root tbf rate 20mbit burst 15kb latency 50ms\n");
    run(&server, TC, shaper)?;
    let (near, far) = connection(&server, &client, "10.78.0.2:9000".parse()?)?;
    let traffic = (
        writer(near, 65_536, Duration::ZERO),
        reader(far, 65_536, Duration::ZERO),
    );
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const SHAPED_UDP: Fault = Fault {
    id: "shaped link under UDP",
    planted: "An echo service at 4,000 datagrams/s behind a token bucket of 1 Mbit/s.",
    speaks: &[acts("qdisc-limit", "device/srv0")],
    may: &[("udp-sndbuf-drop", FOLLOWS_FROM_SHAPING)],
    how: How::Here(shaped_udp),
};

fn shaped_udp(program: &Path) -> Result<Planted> {
    echo_behind(
        program,
        format!("qdisc add dev {DEVICE} root tbf rate 1mbit burst 5kb latency 20ms\n"),
    )
}

pub(super) const SHORT_QUEUE: Fault = Fault {
    id: "short device queue",
    planted: "An echo service that is asked in bursts, behind a class of htb whose queue holds two packets, as the device's \
              txqueuelen was 2 when it was made.",
    speaks: &[acts("qdisc-limit", "device/srv0")],
    may: &[("udp-sndbuf-drop", FOLLOWS_FROM_SHAPING)],
    how: How::Here(short_queue),
};

fn short_queue(program: &Path) -> Result<Planted> {
    echo_behind(
        program,
        format!(
            "qdisc add dev {DEVICE} root handle 1: htb default 10\n\
             class add dev {DEVICE} parent 1: classid 1:10 htb rate 2mbit burst 2kb\n"
        ),
    )
}

/// An echo service that is asked in bursts of four, with this between it and its client.
fn echo_behind(program: &Path, queue: String) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let short = format!("link set {DEVICE} txqueuelen 2\n");
    run(&server, IP, short)?;
    run(&server, TC, queue)?;
    let service = serve_udp(program, &server, &[])?;
    let traffic = datagrams(&client, service_address(), 4, Pace::Bursts(4), None)?;
    Ok(Planted::in_namespace(server)
        .keep(traffic)
        .keep(service)
        .keep(client))
}

pub(super) const BLACK_HOLE: Fault = Fault {
    id: "path MTU black hole",
    planted: "Eight connections that are asked for 20 KB, over a hop that drops packets above 1,000 bytes and says nothing; and one \
              connection with small messages, which gets through.",
    speaks: &[acts("path-mtu-blackhole", "host")],
    may: &[(
        "tcp-retrans",
        "what is sent again is what stalls the connections",
    )],
    how: How::Here(black_hole),
};

fn black_hole(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    run(
        &client,
        NFT,
        "table ip fault {\n chain input {\n  type filter hook input priority 0;\n  meta length > 1000 drop\n }\n}\n"
            .to_owned(),
    )?;
    let (near, far) = connection(&client, &server, service_address())?;
    let small = (
        writer(near, 100, Duration::from_millis(5)),
        reader(far, 4096, Duration::ZERO),
    );
    let mut asked = Vec::new();
    for _ in 0..8 {
        let (mut near, mut far) = connection(&client, &server, service_address())?;
        near.write_all(&[0; 16])?;
        far.read_exact(&mut [0; 16])?;
        far.write_all(&vec![0; 20_000])?;
        asked.push((reader(near, 65_536, Duration::ZERO), far));
    }
    Ok(Planted::in_namespace(server)
        .keep(asked)
        .keep(small)
        .keep(client))
}

pub(super) const CLOSED_BLACK_HOLE: Fault = Fault {
    id: "path MTU black hole, Connection: close",
    planted: "The same hop; a server that closes after its reply of 20 KB, and eight clients that give up after half a second and \
              connect again.",
    speaks: &[acts("path-mtu-blackhole", "host")],
    may: &[(
        "tcp-retrans",
        "what is sent again is what stalls the connections",
    )],
    how: How::Here(closed_black_hole),
};

fn closed_black_hole(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    run(
        &client,
        NFT,
        "table ip fault {\n chain input {\n  type filter hook input priority 0;\n  meta length > 1000 drop\n }\n}\n"
            .to_owned(),
    )?;
    let at = service_address();
    let listener = server.run(move || TcpListener::bind(at))?;
    listener.set_nonblocking(true)?;
    let serving = Repeated::on(None, move || match listener.accept() {
        Ok((mut end, _)) => {
            let _ = end.set_nonblocking(false);
            let _ = end.read_exact(&mut [0; 16]);
            let _ = end.write_all(&vec![0; 20_000]);
        }
        Err(_) => std::thread::sleep(Duration::from_millis(1)),
    });
    let script = "use IO::Socket::INET; use Time::HiRes 'sleep'; for (1 .. 8) { if (fork == 0) { my $parent = getppid; \
        while (getppid == $parent) { my $near = IO::Socket::INET->new(PeerAddr => $ARGV[0]) or next; \
            syswrite $near, 'GET / or similar'; sleep 0.5; close $near } exit } } sleep 3600";
    let asking = start(&client, &["perl", "-e", script, &at.to_string()])?;
    Ok(Planted::in_namespace(server)
        .keep((serving, asking))
        .keep(client))
}

pub(super) const GONE_PEERS: Fault = Fault {
    id: "peers that are gone",
    planted: "Eight connections that send a message every 5 ms, whose peers fall silent: a firewall drops all that they send and \
              receive.",
    speaks: &[acts("tcp-stalled", "host")],
    may: &[(
        "tcp-retrans",
        "what is sent again is what stalls the connections",
    )],
    how: How::Here(gone_peers),
};

fn gone_peers(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let mut traffic = Vec::new();
    for _ in 0..8 {
        let (near, far) = connection(&client, &server, service_address())?;
        traffic.push((
            writer(far, 4096, Duration::from_millis(5)),
            reader(near, 65_536, Duration::ZERO),
        ));
    }
    // They have carried something by then.
    std::thread::sleep(Duration::from_millis(100));
    run(
        &client,
        NFT,
        "table ip fault {\n chain input {\n  type filter hook input priority 0;\n  meta l4proto tcp drop\n }\n \
         chain output {\n  type filter hook output priority 0;\n  meta l4proto tcp drop\n }\n}\n"
            .to_owned(),
    )?;
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const FULL_NEIGHBOURS: Fault = Fault {
    id: "full neighbour table",
    planted: "Datagrams to 500 more addresses of a network than the table of neighbours takes (gc_thresh3).",
    speaks: &[acts("neigh-full", "host")],
    may: &[
        (
            "neigh-unanswered",
            "no host has these addresses, so there are no answers",
        ),
        (
            "udp-sndbuf-drop",
            "the kernel counts a datagram without a neighbour among those",
        ),
    ],
    how: How::Here(full_neighbours),
};

/// More would be a flood.
const MOST_NEIGHBOURS: u32 = 8192;

fn full_neighbours(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    // The limit is that of the machine, and shown in its first namespace.
    let limit = rungwise_host::live::Live
        .text(Path::new("/proc/sys/net/ipv4/neigh/default/gc_thresh3"))?
        .parse::<u32>()?;
    if limit > MOST_NEIGHBOURS {
        return Err(format!("gc_thresh3 is {limit}; lower it to at most {MOST_NEIGHBOURS}").into());
    }
    run(&server, IP, format!("addr add 10.90.0.1/16 dev {DEVICE}\n"))?;
    // A datagram that waits for its neighbour takes room in the send buffer of its socket, so one socket reaches some 250.
    let sockets = server.run(move || -> std::io::Result<Vec<UdpSocket>> {
        let socket = |_| {
            let socket = UdpSocket::bind("10.90.0.1:0")?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        (0..limit / 64).map(socket).collect()
    })?;
    let mut next = 0;
    let traffic = Repeated::on(None, move || {
        for socket in &sockets {
            next = (next + 1) % (limit + 500);
            let [_, _, high, low] = (next + 256).to_be_bytes();
            // That it fails is what is planted.
            let _ = socket.send_to(&[0], (Ipv4Addr::new(10, 90, high, low), 9));
        }
        std::thread::sleep(Duration::from_millis(10));
    });
    Ok(Planted::in_namespace(server)
        .costing(|_| {
            let [overflows] = growth(|| Ok([table_overflows()?]))?;
            Ok(overflows)
        })
        .keep(traffic)
        .keep(client))
}

/// How often the table of neighbours of the machine was full: `table_fulls` of all CPUs, in hexadecimal.
fn table_overflows() -> Result<f64> {
    let text = rungwise_host::live::Live.text(Path::new("/proc/net/stat/arp_cache"))?;
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default();
    let place = names
        .split_whitespace()
        .position(|name| name == "table_fulls");
    let place = place.ok_or("no table_fulls in /proc/net/stat/arp_cache")?;
    let counts = lines.filter_map(|line| line.split_whitespace().nth(place));
    let sum = counts.map(|count| u64::from_str_radix(count, 16));
    Ok(sum.sum::<std::result::Result<u64, _>>()? as f64)
}

pub(super) const SILENT_NEIGHBOURS: Fault = Fault {
    id: "neighbours that do not answer",
    planted: "Datagrams to ten addresses of the link that no host has.",
    speaks: &[acts("neigh-unanswered", "host")],
    may: &[],
    how: How::Here(silent_neighbours),
};

fn silent_neighbours(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let socket = server.run(|| UdpSocket::bind("10.78.0.1:0"))?;
    let traffic = Repeated::on(None, move || {
        for host in 100..110 {
            let _ = socket.send_to(&[0], (Ipv4Addr::new(10, 78, 0, host), 9));
        }
        std::thread::sleep(Duration::from_millis(50));
    });
    // Given up after three questions, a second apart.
    std::thread::sleep(Duration::from_millis(2500));
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const ASYMMETRIC: Fault = Fault {
    id: "asymmetric route",
    planted: "Strict source validation (rp_filter 1) on a device, and 1,000 datagrams/s from an address whose route leads through \
              another one.",
    speaks: &[acts("rp-filter-drop", "host")],
    may: &[],
    how: How::Here(asymmetric),
};

fn asymmetric(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    for (file, value) in [("all", "0"), (DEVICE, "1")] {
        let file = format!("/proc/sys/net/ipv4/conf/{file}/rp_filter");
        server.write(Path::new(&file), value.as_bytes())?;
    }
    run(
        &server,
        IP,
        "link add away0 type veth peer name away1\naddr add 10.98.0.1/24 dev away0\nlink set away0 up\nlink set away1 up\n\
         route add 10.99.0.0/24 dev away0\n"
            .to_owned(),
    )?;
    run(&client, IP, "addr add 10.99.0.2/32 dev lo\n".to_owned())?;
    let service = server.run(|| UdpSocket::bind(service_address()))?;
    let asking = client.run(|| UdpSocket::bind("10.99.0.2:0"))?;
    let traffic = Repeated::on(None, move || {
        let _ = asking.send_to(&[0; 100], service_address());
        std::thread::sleep(Duration::from_millis(1));
    });
    Ok(Planted::in_namespace(server)
        .costing(|namespace| {
            let [dropped] = growth(|| {
                Ok([counter(
                    namespace,
                    "netstat",
                    "TcpExt",
                    "IPReversePathFilter",
                )?])
            })?;
            Ok(dropped)
        })
        .keep(traffic)
        .keep(service)
        .keep(client))
}

pub(super) const RATE_LIMIT: Fault = Fault {
    id: "firewall rate limit",
    planted: "An echo service at 4,000 datagrams/s, and a rule that drops what exceeds 1,000/s.",
    speaks: &[acts("nf-drop", "host")],
    may: &[],
    how: How::Here(rate_limit),
};

fn rate_limit(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    run(
        &server,
        NFT,
        "table ip fault {\n chain input {\n  type filter hook input priority 0;\n  \
         udp dport 9000 limit rate over 1000/second drop\n }\n}\n"
            .to_owned(),
    )?;
    let service = serve_udp(program, &server, &[])?;
    let traffic = datagrams(&client, service_address(), 4, Pace::Bursts(4), None)?;
    Ok(Planted::in_namespace(server)
        .keep(traffic)
        .keep(service)
        .keep(client))
}

pub(super) const UNREAD_CLOSE: Fault = Fault {
    id: "connections closed unread",
    planted: "A server that reads 16 bytes of each request of 5,000, replies and closes the connection.",
    speaks: &[acts("tcp-reset-unread", "host")],
    may: &[],
    how: How::Here(unread_close),
};

fn unread_close(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let listener = server.run(|| TcpListener::bind(service_address()))?;
    listener.set_nonblocking(true)?;
    let answering = Repeated::on(None, move || match listener.accept() {
        Ok((mut connection, _)) => {
            let _ = connection.set_nonblocking(false);
            let _ = connection.read(&mut [0; 16]);
            let _ = connection.write_all(&[0; 1000]);
        }
        Err(_) => std::thread::sleep(Duration::from_millis(1)),
    });
    let client = Arc::new(client);
    let asked = Arc::clone(&client);
    let asking = Repeated::on(None, move || {
        let _ = asked.run(|| -> std::io::Result<usize> {
            let mut near = TcpStream::connect(service_address())?;
            near.set_read_timeout(Some(Duration::from_secs(1)))?;
            near.write_all(&[0; 5000])?;
            near.read(&mut [0; 1000])
        });
        std::thread::sleep(Duration::from_millis(2));
    });
    Ok(Planted::in_namespace(server)
        .keep(asking)
        .keep(answering)
        .keep(client))
}

pub(super) const NO_LISTENER: Fault = Fault {
    id: "no listener",
    planted: "200 connections/s to a port of a service that has ended.",
    speaks: &[acts("tcp-port-closed", "host")],
    may: &[],
    how: How::Here(no_listener),
};

fn no_listener(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let client = Arc::new(client);
    let asked = Arc::clone(&client);
    let asking = Repeated::on(None, move || {
        let _ = asked.run(|| TcpStream::connect(service_address()));
        std::thread::sleep(Duration::from_millis(5));
    });
    Ok(Planted::in_namespace(server).keep(asking).keep(client))
}

pub(super) const REORDERING: Fault = Fault {
    id: "reordering",
    planted: "A connection of which every fiftieth packet takes a second link, whose queue is longer.",
    speaks: &[acts("tcp-reordering", "host")],
    may: &[
        (
            "tcp-retrans",
            "what is reordered is sent again, and the rule says so too",
        ),
        (
            "qdisc-limit",
            "the second link is slow because it is shaped",
        ),
    ],
    how: How::Here(reordering),
};

fn reordering(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    for file in ["all", "default"] {
        let file = format!("/proc/sys/net/ipv4/conf/{file}/rp_filter");
        client.write(Path::new(&file), b"0")?;
    }
    // A second pair: what is marked goes out there, to the same address.
    let end = |device: &str, host: u8| End {
        device: device.to_owned(),
        addresses: vec![([10, 97, 0, host].into(), 24)],
    };
    let spec = Spec {
        queues: 1,
        ends: [end("long0", 1), end("long1", 2)],
    };
    veth::connect(&server, &client, &spec)?;
    // Segments go one by one.
    run(
        &server,
        IP,
        format!(
            "link set {DEVICE} gso_max_size 1400\nlink set long0 gso_max_size 1400\n\
             route add 10.78.0.2/32 via 10.97.0.2 dev long0 table 100\nrule add fwmark 1 table 100\n"
        ),
    )?;
    run(
        &server,
        NFT,
        "table ip fault {\n chain output {\n  type route hook output priority -150;\n  \
         tcp sport 9000 numgen random mod 50 < 1 meta mark set 1\n }\n}\n"
            .to_owned(),
    )?;
    let shaper = "qdisc add dev long0 root tbf rate 50mbit burst 4kb latency 100ms\n".to_owned();
    run(&server, TC, shaper)?;
    let (near, far) = connection(&client, &server, service_address())?;
    let traffic = (
        writer(far, 65_536, Duration::ZERO),
        reader(near, 65_536, Duration::ZERO),
    );
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}
