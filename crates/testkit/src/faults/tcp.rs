//! TCP: a reader that does not keep up, a queue in the program that grows for it, a small send buffer, an accept queue that is not
//! emptied, requests in two halves.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use rungwise_host::process::Ready;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::lab::{Lab, Planted, run, service_address};
use super::process::start;
use super::traffic::{Repeated, connection, halved, reader, writer};
use super::{Fault, How, Result, Says, acts, watches};

pub(super) const SLOW_READER: Fault = Fault {
    id: "slow TCP reader",
    planted: "A connection whose writer always has data, and a reader that takes 4 KiB every 20 ms: the receive queue \
              grows and the window closes. Both in one namespace, over a loopback device with an MTU of 1,500 bytes.",
    speaks: &[
        acts("tcp-recvq-pile", "connection/10.78.0.1:9000>10.78.0.1:*"),
        acts("tcp-rwnd-limited", "connection/10.78.0.1:*>10.78.0.1:9000"),
    ],
    may: &[],
    how: How::Here(slow_reader),
};

fn slow_reader(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    // A segment as large as the window would open and close it as a whole, and the queue would come and go with it.
    run(
        &server,
        &["ip", "link", "set", "lo", "mtu", "1500"],
        String::new(),
    )?;
    // Both ends in one namespace: there the window's cause is known from the peer's queue.
    let (near, far) = connection(&server, &server, service_address())?;
    let traffic = (
        writer(near, 65_536, Duration::ZERO),
        reader(far, 4096, Duration::from_millis(20)),
    );
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const WRITE_QUEUE: Fault = Fault {
    id: "write queue that grows",
    planted: "A server that adds 3 MB a second to its queue for one client, writes of it what the connection takes, and a client that reads 200 kB \
              a second.",
    speaks: &[
        watches("write-queue-grows", "process/PID"),
        acts("tcp-rwnd-limited", "connection/10.78.0.1:9000>10.78.0.2:*"),
    ],
    may: &[],
    how: How::Here(write_queue),
};

fn write_queue(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let script = r#"my $listener = IO::Socket::INET->new(LocalAddr => $ARGV[0], Listen => 5) or die $!;
        $| = 1;
        print "ready\n";
        my $client = $listener->accept;
        $client->blocking(0);
        my ($message, $queue) = ("x" x 30_000, "");
        while (1) {
            $queue .= $message;
            my $taken = syswrite $client, $queue;
            substr $queue, 0, $taken, "" if $taken;
            select undef, undef, undef, 0.01;
        }"#;
    let address = service_address().to_string();
    let inet = "-MIO::Socket::INET";
    let service = start(&server, &["perl", inet, "-e", script, &address])?;
    let pid = service.pid();
    service.wait_ready(&Ready::Line("ready".to_owned()), Duration::from_secs(30))?;
    let far = client.run(|| TcpStream::connect(service_address()))?;
    let slow = reader(far, 4000, Duration::from_millis(20));
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .keep((service, slow))
        .keep(client))
}

pub(super) const SMALL_SEND_BUFFER: Fault = Fault {
    id: "small send buffer",
    planted: "A connection with SO_SNDBUF of 4,608 bytes, a writer that always has data, and a reader that takes all of it.",
    speaks: &[acts(
        "tcp-sndbuf-limited",
        "connection/10.78.0.1:*>10.78.0.2:9000",
    )],
    may: &[],
    how: How::Here(small_send_buffer),
};

fn small_send_buffer(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (near, far) = connection(&server, &client, "10.78.0.2:9000".parse()?)?;
    sockopt::set_socket_send_buffer_size(&near, 4608)?;
    let traffic = (
        writer(near, 65_536, Duration::ZERO),
        reader(far, 65_536, Duration::ZERO),
    );
    Ok(Planted::in_namespace(server).keep(traffic).keep(client))
}

pub(super) const FULL_ACCEPT_QUEUE: Fault = Fault {
    id: "listen overflow",
    planted: "A listening socket with a backlog of one that nobody accepts from, and a client that tries to connect \
              fifty times a second.",
    speaks: &[acts("tcp-listen-overflow", "port/tcp/10.78.0.1:9000")],
    may: &[],
    how: How::Here(full_accept_queue),
};

fn full_accept_queue(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let listener = server.run(|| {
        let socket = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::net::bind(&socket, &service_address())?;
        rustix::net::listen(&socket, 1)?;
        Ok::<_, rustix::io::Errno>(socket)
    })?;
    let connect = || TcpStream::connect_timeout(&service_address(), Duration::from_millis(20));
    // The kernel takes one more than the backlog.
    let waiting = client.run(move || [connect(), connect()]);
    let client = std::sync::Arc::new(client);
    let asked = std::sync::Arc::clone(&client);
    let knocking = Repeated::on(None, move || {
        let _ = asked.run(connect);
    });
    Ok(Planted::in_namespace(server)
        .keep(knocking)
        .keep((waiting, listener))
        .keep(client))
}

pub(super) const DELAYED_ACK: Fault = Fault {
    id: "delayed acknowledgement",
    planted: "A client that writes each request in two halves, and reads the reply to the whole: the second half waits until the \
              peer acknowledges the first, which the peer delays by 40 ms. The latencies of the first 50 go to `--load` as \
              wrk2 would print them; with nothing planted, those of a client with TCP_NODELAY.",
    speaks: &[Says {
        less_in_noise: true,
        ..acts("tcp-nagle-40ms", "host")
    }],
    may: &[],
    how: How::Here(delayed_ack),
};

pub(super) const HELD_BACK: Fault = Fault {
    id: "delayed acknowledgement, seen by the sender",
    planted: "The same, judged where the client is, without any latencies: the state of its socket shows it.",
    speaks: &[acts("tcp-nagle-40ms", "host")],
    may: &[],
    how: How::Here(held_back),
};

fn held_back(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (near, far) = connection(&client, &server, service_address())?;
    let (asking, answering, _) = halved(near, far)?;
    Ok(Planted::in_namespace(client)
        .keep((asking, answering))
        .keep(server))
}

fn delayed_ack(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let (near, far) = connection(&client, &server, service_address())?;
    let (asking, answering, table) = halved(near, far)?;
    Ok(Planted::in_namespace(server)
        .printing(&table)?
        .keep((asking, answering))
        .keep(client))
}
