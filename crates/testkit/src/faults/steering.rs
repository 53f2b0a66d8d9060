//! The path of a packet: steering to one CPU, a backlog that overflows, rules, the check of sources, tracking.

use std::fmt::Write as _;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;

use rungwise_host::namespace::Namespace;
use rungwise_host::{Host as _, live::Live};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::lab::{
    DEVICE, Lab, Planted, counter, growth, load_udp, run, serve_udp, service_address,
};
use super::traffic::{Pace, datagrams};
use super::{Fault, How, Result, acts};

/// The CPU that senders run on.
const SENDING: usize = 1;

/// Why drops at the socket belong to a flood.
const UNREAD: &str = "the flooded socket is not read";

pub(super) const ONE_CPU: Fault = Fault {
    id: "steering to one CPU",
    planted: "CPU 1 floods a device whose receive steering names CPU 0 alone, where 800 nft rules in the input chain are \
              work for each datagram. CPU 0 hardly gets to the end of its backlog, so it is hardly ever woken.",
    speaks: &[acts("irq-one-cpu", "cpu/0")],
    may: &[
        ("nf-rules-hot", "the rules are what CPU 0 has to do"),
        (
            "slab-hot",
            "each packet that is dropped was made and is freed, and CPU 1 does little else",
        ),
        ("softnet-drop", "CPU 1 hands over more than CPU 0 can take"),
        ("udp-rcvbuf-drop", UNREAD),
    ],
    how: How::Here(one_cpu),
};

fn one_cpu(_: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    run(&lab.server, NFT, filter())?;
    lab.steer("1")?;
    flooded(lab, 1)
}

pub(super) const ONE_CPU_GROUP: Fault = Fault {
    id: "steering to one CPU, two sockets",
    planted: "The same, and two sockets (SO_REUSEPORT) take the datagrams, so that more CPUs do not contend for one.",
    speaks: &[acts("irq-one-cpu", "cpu/0")],
    may: ONE_CPU.may,
    how: How::Here(one_cpu_group),
};

fn one_cpu_group(_: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    run(&lab.server, NFT, filter())?;
    lab.steer("1")?;
    Ok(flooded(lab, 2)?.costing(|_| backlog_drops_per_second()))
}

/// Datagrams from CPU 1 to so many sockets that nobody reads: the sender shares its CPU with no reader, and what the other
/// CPU does is softirqs alone.
fn flooded(Lab { server, client }: Lab, sockets: usize) -> Result<Planted> {
    let bind = move |_| -> std::io::Result<OwnedFd> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseport(&socket, sockets > 1)?;
        rustix::net::bind(&socket, &service_address())?;
        Ok(socket)
    };
    let socket = server.run(move || (0..sockets).map(bind).collect::<std::io::Result<Vec<_>>>())?;
    let traffic = datagrams(&client, service_address(), 64, Pace::Flood, Some(SENDING))?;
    Ok(Planted::in_namespace(server)
        .keep(traffic)
        .keep(socket)
        .keep(client))
}

pub(super) const BACKLOG: Fault = Fault {
    id: "backlog drops",
    planted: "Receive steering names CPU 0 alone, and CPU 1 hands packets for two sockets over quicker than it takes them, in bursts \
              as long as its time slices, and the backlog overflows. (Its length is a setting of the whole machine and stays as it is.)",
    speaks: &[acts("softnet-drop", "cpu/0")],
    may: &[
        (
            "irq-one-cpu",
            "it overflows because one CPU takes all packets",
        ),
        (
            "slab-hot",
            "each packet that is dropped was made and is freed, and little else is done with it",
        ),
        ("udp-rcvbuf-drop", UNREAD),
    ],
    how: How::Here(backlog),
};

fn backlog(_: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    lab.steer("1")?;
    Ok(flooded(lab, 2)?.costing(|_| backlog_drops_per_second()))
}

fn backlog_drops_per_second() -> Result<f64> {
    let [dropped] = growth(|| Ok([backlog_drops()?]))?;
    Ok(dropped)
}

/// Packets that full backlogs dropped on all CPUs: the second column of `softnet_stat`, in hexadecimal (net/core/net-procfs.c).
fn backlog_drops() -> Result<f64> {
    let text = Live.text(Path::new("/proc/net/softnet_stat"))?;
    let counts = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    let sum = counts.map(|count| u64::from_str_radix(count, 16));
    Ok(sum.sum::<std::result::Result<u64, _>>()? as f64)
}

pub(super) const MANY_RULES: Fault = Fault {
    id: "many filter rules",
    planted: "800 nft rules in the input chain, none of which matches, under a flood from one CPU.",
    speaks: &[acts("nf-rules-hot", "host")],
    may: &[("udp-rcvbuf-drop", UNREAD)],
    how: How::Here(many_rules),
};

fn many_rules(_: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    run(&lab.server, NFT, filter())?;
    flooded(lab, 1)
}

/// Reads rules from its standard input.
const NFT: &[&str] = &["nft", "-f", "-"];

/// A chain of 800 rules that a datagram to the service meets and none of which matches.
fn filter() -> String {
    let mut rules = String::from(
        "table inet fault {\n chain input {\n  type filter hook input priority 0; policy accept;\n",
    );
    for port in 1..=800 {
        let _ = writeln!(rules, "  udp dport {port} drop");
    }
    rules + " }\n}\n"
}

pub(super) const SOURCE_CHECK: Fault = Fault {
    id: "rp_filter",
    planted: "Strict source validation (rp_filter 1) on the device of a host with 32 routing rules, which makes each \
              look-up dear, under a flood from one CPU.",
    speaks: &[acts("fib-double", "host")],
    may: &[
        (
            "slab-hot",
            "each packet that is dropped was made and is freed, and little else is done with it",
        ),
        ("udp-rcvbuf-drop", UNREAD),
    ],
    how: How::Here(source_check),
};

fn source_check(_: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    let set = |namespace: &Namespace, name: &str, value: &[u8]| {
        let file = format!("/proc/sys/net/ipv4/conf/{DEVICE}/{name}");
        namespace.write(Path::new(&file), value)
    };
    set(&lab.server, "rp_filter", b"0")?;
    set(&lab.server, "accept_local", b"1")?;
    let mut rules = String::new();
    for uplink in 1..=32 {
        let _ = writeln!(rules, "rule add from 192.0.2.{uplink} lookup main");
    }
    run(&lab.server, &["ip", "-batch", "-"], rules)?;
    let planted = flooded(lab, 1)?;
    // What the CPU takes without the check.
    let free = received(&planted.namespace)?;
    set(&planted.namespace, "accept_local", b"0")?;
    set(&planted.namespace, "rp_filter", b"1")?;
    Ok(planted.costing(move |namespace| Ok(1.0 - received(namespace)? / free)))
}

/// Packets that IP receives per second of CPU time of this process, whose thread sends them and takes them through the pair of devices: others
/// on the machine change how long it runs, and not what a packet costs.
fn received(namespace: &Namespace) -> Result<f64> {
    let [packets, ticks] = growth(|| {
        let stat = Live.text(Path::new("/proc/self/stat"))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
        // utime and stime, fields 14 and 15 (proc_pid_stat(5)).
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks = times.map(str::parse::<f64>);
        Ok([
            counter(namespace, "snmp", "Ip", "InReceives")?,
            ticks.sum::<std::result::Result<f64, _>>()?,
        ])
    })?;
    Ok(packets / ticks.max(1.0))
}

pub(super) const FULL_CONNTRACK: Fault = Fault {
    id: "full table of connections",
    planted: "A rule that tracks connections, and datagrams to as many ports as nine tenths of nf_conntrack_max.",
    speaks: &[acts("conntrack-full", "host")],
    may: &[],
    how: How::Here(full_conntrack),
};

/// More entries would take more memory than a test may.
const MOST_ENTRIES: usize = 1 << 20;

fn full_conntrack(_: &Path) -> Result<Planted> {
    let namespace = Namespace::create("conntrack")?;
    run(
        &namespace,
        NFT,
        // Dropped on arrival, after tracking: nobody answers that the port is closed.
        "table inet fault {\n chain input {\n  type filter hook input priority 0; policy accept;\n\
         ct state new meta l4proto udp drop\n }\n}\n"
            .to_owned(),
    )?;
    let limit = Path::new("/proc/sys/net/netfilter/nf_conntrack_max");
    let most: usize = namespace
        .text(limit)
        .map_err(|error| {
            format!(
                "{}: {error}; this kernel tracks no connections",
                limit.display()
            )
        })?
        .parse()?;
    if most > MOST_ENTRIES {
        return Err(
            format!("nf_conntrack_max is {most}; lower it to at most {MOST_ENTRIES}").into(),
        );
    }
    let flows = most / 10 * 9;
    namespace.run(move || -> std::io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        for flow in 0..flows {
            // 50,000 ports on each of as many loopback addresses as it takes.
            let (host, port) = (flow / 50_000, flow % 50_000);
            let to = ([127, 0, 1, host as u8], port as u16 + 1000);
            socket.send_to(&[0], std::net::SocketAddr::from(to))?;
        }
        Ok(())
    })?;
    Ok(Planted::in_namespace(namespace))
}

pub(super) const FLOOD_ELSEWHERE: Fault = Fault {
    id: "flood in another network namespace",
    planted: "An echo service under as much load as the machine takes, behind 800 nft rules, in a network namespace beside the one that is \
              judged. The rules are not accused from there: they are not its own.",
    speaks: &[acts("other-namespaces", "host")],
    may: &[(
        "slab-hot",
        "a buffer for each datagram is made and freed, wherever it belongs to",
    )],
    how: How::Here(flood_elsewhere),
};

fn flood_elsewhere(program: &Path) -> Result<Planted> {
    let lab = Lab::new()?;
    let judged = Namespace::create("judged")?;
    run(&lab.server, NFT, filter())?;
    let service = serve_udp(program, &lab.server, &[])?;
    let load = load_udp(program, &lab.client, &["--sockets", "8", "--depth", "8"])?;
    Ok(Planted::in_namespace(judged)
        .keep(load)
        .keep(service)
        .keep((lab.server, lab.client)))
}
