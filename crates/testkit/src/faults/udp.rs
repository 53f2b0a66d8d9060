//! UDP: a healthy service, receive buffers that are too small, readers that are too slow, one socket for all.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use super::lab::{Lab, Planted, counter, growth, load_udp, serve_udp, service_address};
use super::traffic::{Pace, connection, datagrams, halved, reader, sink, writer};
use super::{Fault, How, Result, acts, watches};

/// Far below what any CPU can take: four datagrams a millisecond.
const CALM: Pace = Pace::Bursts(4);

pub(super) const HEALTHY: Fault = Fault {
    id: "nothing",
    planted: "A healthy echo service at 4,000 datagrams/s, a TCP connection whose reader keeps up, and one with TCP_NODELAY whose \
              client writes each request in two halves.",
    speaks: &[],
    may: &[],
    how: How::Here(healthy),
};

fn healthy(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let service = serve_udp(program, &server, &[])?;
    let (near, far) = connection(&client, &server, service_address())?;
    let traffic = (
        datagrams(&client, service_address(), 4, CALM, None)?,
        writer(near, 4096, Duration::from_millis(1)),
        reader(far, 65_536, Duration::ZERO),
    );
    let (near, far) = connection(&client, &server, service_address())?;
    near.set_nodelay(true)?;
    let (asking, answering, table) = halved(near, far)?;
    Ok(Planted::in_namespace(server)
        .printing(&table)?
        .keep((asking, answering))
        .suffered_by(service.pid())
        .keep(traffic)
        .keep(service)
        .keep(client))
}

pub(super) const TINY_BUFFER: Fault = Fault {
    id: "tiny receive buffer",
    planted: "An echo service with SO_RCVBUF of 4 KiB, which holds about nine datagrams, and bursts of 64 every millisecond.",
    speaks: &[acts("udp-rcvbuf-drop", "port/udp/10.78.0.1:9000")],
    may: &[],
    how: How::Here(tiny_buffer),
};

fn tiny_buffer(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let service = serve_udp(program, &server, &["--rcvbuf", "4KiB"])?;
    let traffic = datagrams(&client, service_address(), 1, Pace::Bursts(64), None)?;
    Ok(Planted::in_namespace(server)
        .keep(traffic)
        .keep(service)
        .keep(client))
}

pub(super) const BURST: Fault = Fault {
    id: "burst beyond the receive buffer",
    planted: "An echo service with a receive buffer as the kernel gives it, which holds some 250 datagrams, and bursts of 768 with 0.7 s \
              between them.",
    speaks: &[acts("udp-rcvbuf-drop", "port/udp/10.78.0.1:9000")],
    may: &[],
    how: How::Here(burst),
};

fn burst(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let planted = Planted::in_namespace(server).serving(program, &["--pin=0"])?;
    let traffic = datagrams(&client, service_address(), 1, Pace::Rare(12), Some(1))?;
    Ok(planted
        .costing(|namespace| {
            let [dropped] = growth(|| Ok([counter(namespace, "snmp", "Udp", "RcvbufErrors")?]))?;
            Ok(dropped)
        })
        .keep(traffic)
        .keep(client))
}

pub(super) const SLOW_READER: Fault = Fault {
    id: "receive-buffer drops",
    planted: "A receive buffer as the kernel gives it, four datagrams a millisecond, and a reader that does something \
              else for a millisecond after each.",
    speaks: &[acts("udp-rcvbuf-drop", "port/udp/10.78.0.1:9000")],
    may: &[],
    how: How::Here(slow_reader),
};

fn slow_reader(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let socket = server.run(|| UdpSocket::bind(service_address()))?;
    let traffic = (
        datagrams(&client, service_address(), 4, CALM, None)?,
        sink(socket, Duration::from_millis(1))?,
    );
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const SHARED_SOCKET: Fault = Fault {
    id: "one shared UDP socket",
    planted: "An echo service with one socket for two threads, and two senders, each pinned to its CPU, that wait for their \
              replies: both CPUs deliver to the one socket, and both readers are busy.",
    speaks: &[watches("udp-shared-socket", "port/udp/10.78.0.1:9000")],
    may: &[
        (
            "udp-socket-lock",
            "it is what is planted, but its line of 1,000 contentions/s is not reached each time: 358 to 1,369/s in eight looks at \
             144 k to 238 k datagrams/s, two CPUs busy with other work, Linux 6.18.44, 2026-11-22",
        ),
        (
            "slab-hot",
            "a buffer for each datagram is made and freed, and little else is done with it",
        ),
        (
            "syscall-bound",
            "both sides take and send one datagram per system call, as fast as the machine lets them",
        ),
    ],
    how: How::Here(shared_socket),
};

fn shared_socket(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let planted = Planted::in_namespace(server).serving(program, &["--workers", "2"])?;
    let load = load_udp(
        program,
        &client,
        &["--threads", "2", "--pin", "--sockets", "8", "--depth", "8"],
    )?;
    Ok(planted.suffered_by_its_service().keep(load).keep(client))
}

pub(super) const FOUGHT_FOR_SOCKET: Fault = Fault {
    id: "one shared UDP socket under many CPUs",
    planted: "Many softirq CPUs deliver to one socket and spin on its lock.",
    speaks: &[acts("udp-socket-lock", "port/udp/0.0.0.0:9000")],
    may: &[],
    how: How::Elsewhere {
        why: "two CPUs do not spin enough. With a flood from each of them to one socket of two threads, 0.43 % of \
              softirq samples spun (Linux 6.18, which also collects datagrams in a queue per node before it takes the \
              lock); the line is at 10 %.",
        judged: "cases/two-node-82599-steered/expected.md",
    },
};

pub(super) const UNEVEN_GROUP: Fault = Fault {
    id: "uneven SO_REUSEPORT group",
    planted: "An echo service with two sockets of one port and a receive buffer of 4 KiB, and one flow of bursts: all of it goes to \
              one of the two.",
    speaks: &[acts("reuseport-skew", "port/udp/10.78.0.1:9000")],
    may: &[("udp-rcvbuf-drop", "what is dealt unevenly is dropped there")],
    how: How::Here(uneven_group),
};

fn uneven_group(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let more = ["--workers", "2", "--reuseport", "--rcvbuf", "4KiB"];
    let service = serve_udp(program, &server, &more)?;
    let traffic = datagrams(&client, service_address(), 1, Pace::Bursts(64), None)?;
    Ok(Planted::in_namespace(server)
        .keep(traffic)
        .keep(service)
        .keep(client))
}
