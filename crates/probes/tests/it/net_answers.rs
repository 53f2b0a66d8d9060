//! No answer of a kernel makes a probe of the network panic, however odd, and shares stay shares.

use proptest::prelude::*;
use rungwise_model::kernel::{
    Answer, Endpoint, NetDevice, Qdisc, Ring, Rss, SocketMemory, TcpInfo, TcpSocket, UdpSocket,
};
use rungwise_model::keys;
use rungwise_probes::capture::Moment;

use crate::net_stories::{answer, evidence, file, moment_at};

/// Numbers of all sizes, small ones and the largest foremost.
fn any_u32() -> impl Strategy<Value = u32> {
    prop_oneof![0..4_u32, any::<u32>(), Just(u32::MAX)]
}

prop_compose! {
    fn any_end()(address in prop_oneof![Just([0; 4]), Just([127, 0, 0, 1]), any::<[u8; 4]>()], port in 0..4_u16) -> Endpoint {
        Endpoint::new(address.into(), port)
    }
}

prop_compose! {
    fn any_memory()(rmem in any_u32(), rcvbuf in any_u32(), sndbuf in any_u32(), drops in any_u32()) -> SocketMemory {
        SocketMemory { rmem, rcvbuf, sndbuf, drops, ..SocketMemory::default() }
    }
}

prop_compose! {
    fn any_tcp()(
        local in any_end(), remote in any_end(), state in 0..13_u8, inode in 0..3_u64,
        rqueue in any_u32(), wqueue in any_u32(), memory in prop::option::of(any_memory()),
        rtt in any_u32(), cwnd in any_u32(), bytes in prop::option::of(any::<u64>()),
        busy in prop::option::of(any::<u64>()), informed in any::<bool>(),
    ) -> TcpSocket {
        let info = TcpInfo {
            rtt, snd_cwnd: cwnd, unacked: rtt, bytes_acked: bytes, bytes_received: busy, bytes_sent: bytes,
            bytes_retrans: busy, busy_time: busy, rwnd_limited: bytes, sndbuf_limited: busy, ..TcpInfo::default()
        };
        TcpSocket { local, remote, state, inode, rqueue, wqueue, memory, info: informed.then_some(info) }
    }
}

prop_compose! {
    fn any_udp()(local in any_end(), remote in any_end(), inode in 0..3_u64, memory in prop::option::of(any_memory())) -> UdpSocket {
        UdpSocket { local, remote, inode, memory, ..UdpSocket::default() }
    }
}

prop_compose! {
    fn any_device()(name in "[a-z]{0,2}", ring in any_u32(), counts in prop::collection::btree_map("(rx|tx)_queue_[0-2]_packets|rx_missed_errors", any::<u64>(), 0..6)) -> NetDevice {
        NetDevice {
            name,
            ring: Some(Ring { rx: ring, max_rx: ring, ..Ring::default() }),
            rss: Some(Rss { table: vec![ring; (ring % 3) as usize], udp4: None }),
            statistics: counts,
            ..NetDevice::default()
        }
    }
}

prop_compose! {
    fn any_qdisc()(device in "[a-z]{0,2}", parent in prop_oneof![Just("root"), Just(":1")], drops in any_u32()) -> Qdisc {
        Qdisc { device, parent: parent.to_owned(), drops, ..Qdisc::default() }
    }
}

prop_compose! {
    fn any_moment()(
        at_s in 0.0..10.0, tcp in prop::collection::vec(any_tcp(), 0..12), udp in prop::collection::vec(any_udp(), 0..8),
        devices in prop::collection::vec(any_device(), 0..3), qdiscs in prop::collection::vec(any_qdisc(), 0..3),
    ) -> Moment {
        let mut moment = moment_at(at_s);
        answer(&mut moment, "tcp", Answer::Tcp(tcp));
        answer(&mut moment, "udp", Answer::Udp(udp));
        answer(&mut moment, "devices", Answer::Devices(devices));
        answer(&mut moment, "qdiscs", Answer::Qdiscs(qdiscs));
        file(&mut moment, "/proc/sys/net/ipv4/ip_local_port_range", "1 3\n");
        moment
    }
}

proptest! {
    #[test]
    fn no_answer_makes_a_probe_panic_and_shares_stay_shares(moments in prop::collection::vec(any_moment(), 0..4)) {
        let evidence = evidence(moments);
        for key in [&keys::TCP_RWND_LIMITED, &keys::QUEUE_SHARE, &keys::FLOWS_LARGEST_SHARE, &keys::TCP_PORTS_USED] {
            for (subject, share) in evidence.each(key).unwrap_or_default() {
                prop_assert!((0.0..=1.0).contains(&share.value), "{} {subject} {}", key.id, share.value);
            }
        }
    }
}
