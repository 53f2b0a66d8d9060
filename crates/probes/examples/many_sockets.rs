//! Time to derive evidence from 100,000 TCP and 10,000 UDP sockets in four samples.
//!
//!     cargo run --release -p rungwise-probes --example many_sockets
//!
//! One server with connections of many clients, each of which moved bytes; prints the CPU time of `derive` alone,
//! so that a busy machine does not matter much.
#![expect(clippy::print_stdout, reason = "a measurement prints")]

use std::error::Error;

use rungwise_host::clock;
use rungwise_model::evidence::Evidence;
use rungwise_model::kernel::{Answer, Endpoint, SocketMemory, TcpInfo, TcpSocket, UdpSocket};
use rungwise_probes::capture::{Moment, Raw, Reply};
use rungwise_probes::{Capture, PROBES, Window};

const TCP: u32 = 100_000;
const UDP: u32 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let moments = (0..4).map(|sample| moment(sample * 3)).collect();
    let capture = Capture {
        moments,
        ..Capture::default()
    };
    let window = Window::of(&capture);
    for id in ["tcp-sockets", "udp-sockets"] {
        let probe = PROBES.iter().find(|probe| probe.id == id);
        let probe = probe.expect("both are in the list");
        let mut times = Vec::new();
        for _ in 0..5 {
            let mut evidence = Evidence::over(window.seconds());
            let began = clock::own_cpu()?;
            (probe.derive)(&window, &mut evidence);
            times.push(clock::own_cpu()?.saturating_sub(began).as_millis());
        }
        times.sort_unstable();
        println!("{id}: {times:?} ms of CPU, best to worst of five");
    }
    Ok(())
}

fn moment(at: u32) -> Moment {
    let mut moment = Moment {
        at_s: f64::from(at),
        ..Moment::default()
    };
    let range = Raw::Text("32768\t60999\n".to_owned());
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    moment.files.insert(path.to_owned(), range);
    let tcp = (0..TCP)
        .map(|index| connection(index, u64::from(at)))
        .collect();
    let udp = (0..UDP).map(|index| datagram(index, at)).collect();
    for (name, answer) in [("tcp", Answer::Tcp(tcp)), ("udp", Answer::Udp(udp))] {
        moment
            .answers
            .insert(name.to_owned(), Reply::Answer(answer));
    }
    moment
}

/// Of the client with this number; 50,000 ports per address.
fn client(index: u32) -> Endpoint {
    let address = [10, 1, 0, (index / 50_000) as u8];
    Endpoint::new(address.into(), 10_000 + (index % 50_000) as u16)
}

fn connection(index: u32, at: u64) -> TcpSocket {
    // Multiplied so that the busiest are anywhere.
    let weight = u64::from(index.wrapping_mul(2_654_435_761) >> 16);
    TcpSocket {
        local: Endpoint::new([10, 0, 0, 1].into(), 443),
        remote: client(index),
        state: 1,
        inode: 1_000_000 + u64::from(index),
        rqueue: index % 7,
        wqueue: index % 1_001,
        memory: Some(SocketMemory {
            rcvbuf: 131_072,
            sndbuf: 87_040,
            ..SocketMemory::default()
        }),
        info: Some(TcpInfo {
            snd_cwnd: 10,
            rtt: 300,
            bytes_acked: Some(weight * at),
            bytes_received: Some(weight * at / 3),
            bytes_sent: Some(weight * at),
            bytes_retrans: Some(0),
            busy_time: Some(900_000 * at),
            rwnd_limited: Some(weight * at),
            sndbuf_limited: Some(0),
            ..TcpInfo::default()
        }),
    }
}

fn datagram(index: u32, at: u32) -> UdpSocket {
    UdpSocket {
        local: Endpoint::new([10, 0, 0, 1].into(), 1_000 + index as u16),
        inode: u64::from(index),
        memory: Some(SocketMemory {
            rmem: index,
            rcvbuf: 212_992,
            drops: index % 13 * at,
            ..SocketMemory::default()
        }),
        ..UdpSocket::default()
    }
}
