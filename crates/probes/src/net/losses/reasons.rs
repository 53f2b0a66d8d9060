//! Reasons for which the kernel drops packets, and where each is counted.
//!
//! The tracepoint `skb:kfree_skb` names the reason of each drop. Most drops are counted in `/proc/net` as well, or by a rule. Those that are
//! not belong to the residual rule `unexplained-loss`. A test holds the list against the kernel that it runs on. Source: enum
//! `skb_drop_reason` of include/net/dropreason-core.h, and the places that use it, Linux 6.18.

use Counted::{Column, Counter, Ordinary, Rule};

/// Where drops for a reason are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// In this counter of [`super::LOSSES`], or in its twin of IPv6: group and name.
    Counter(&'static str, &'static str),
    /// In this column of the device.
    Column(&'static str),
    /// This rule reads it.
    Rule(&'static str),
    /// It is no loss, for this reason.
    Ordinary(&'static str),
}

/// By reason, sorted; all others are in [`UNCOUNTED`].
pub static COUNTED: &[(&str, Counted)] = &[
    (
        "ARP_PVLAN_DISABLE",
        Ordinary("an ARP request that a private VLAN does not answer"),
    ),
    (
        "BRIDGE_INGRESS_STP_STATE",
        Ordinary("a port that the spanning tree blocks"),
    ),
    ("CAKE_FLOOD", Rule("qdisc-limit")),
    ("CANFD_RX_INVALID_FRAME", Column("rx_dropped")),
    ("CANXL_RX_INVALID_FRAME", Column("rx_dropped")),
    ("CAN_RX_INVALID_FRAME", Column("rx_dropped")),
    ("CPU_BACKLOG", Rule("softnet-drop")),
    ("DEV_HDR", Column("tx_dropped")),
    ("DEV_READY", Column("tx_dropped")),
    ("DUALPI2_STEP_DROP", Rule("qdisc-limit")),
    ("DUP_FRAG", Ordinary("the fragment was received before")),
    ("FQ_BAND_LIMIT", Rule("qdisc-limit")),
    ("FQ_FLOW_LIMIT", Rule("qdisc-limit")),
    ("FQ_HORIZON_LIMIT", Rule("qdisc-limit")),
    ("FRAG_REASM_TIMEOUT", Counter("Ip", "ReasmFails")),
    ("FRAG_TOO_FAR", Counter("Ip", "ReasmFails")),
    ("HDR_TRUNC", Column("rx_dropped")),
    ("ICMP_CSUM", Counter("Icmp", "InCsumErrors")),
    ("INVALID_PROTO", Counter("Ip", "InHdrErrors")),
    ("IPV6DISABLED", Counter("Ip6", "InDiscards")),
    ("IPV6_BAD_EXTHDR", Counter("Ip6", "InHdrErrors")),
    (
        "IPV6_NDISC_NS_OTHERHOST",
        Ordinary("a question for the address of another host"),
    ),
    ("IP_CSUM", Counter("IpExt", "InCsumErrors")),
    ("IP_INADDRERRORS", Counter("Ip", "InAddrErrors")),
    ("IP_INHDR", Counter("Ip", "InHdrErrors")),
    ("IP_INNOROUTES", Counter("IpExt", "InNoRoutes")),
    ("IP_INVALID_DEST", Counter("rt_cache", "in_martian_dst")),
    ("IP_INVALID_SOURCE", Counter("rt_cache", "in_martian_src")),
    ("IP_LOCALNET", Counter("rt_cache", "in_martian_dst")),
    ("IP_LOCAL_SOURCE", Counter("rt_cache", "in_martian_src")),
    ("IP_NOPROTO", Counter("Ip", "InUnknownProtos")),
    ("IP_OUTNOROUTES", Counter("Ip", "OutNoRoutes")),
    ("IP_RPFILTER", Counter("TcpExt", "IPReversePathFilter")),
    ("IP_TUNNEL_ECN", Column("rx_errors")),
    (
        "LOCAL_MAC",
        Ordinary("a bridge gave the frame to this host, or it came back to its sender"),
    ),
    (
        "MAC_IEEE_MAC_CONTROL",
        Ordinary("a pause frame, which ends at the link"),
    ),
    ("MAC_INVALID_SOURCE", Column("rx_errors")),
    ("NEIGH_CREATEFAIL", Counter("arp_cache", "table_fulls")),
    ("NEIGH_FAILED", Counter("arp_cache", "res_failed")),
    (
        "NEIGH_QUEUEFULL",
        Counter("arp_cache", "unresolved_discards"),
    ),
    ("NETFILTER_DROP", Rule("nf-drop")),
    ("NO_SOCKET", Counter("Udp", "NoPorts")),
    ("NO_TX_TARGET", Column("tx_dropped")),
    (
        "OTHERHOST",
        Ordinary("a frame for another host, received in promiscuous mode"),
    ),
    (
        "PACKET_SOCK_ERROR",
        Ordinary("a copy for a program that captures packets"),
    ),
    ("PFMEMALLOC", Counter("TcpExt", "PFMemallocDrop")),
    ("PKT_TOO_BIG", Counter("Ip", "FragFails")),
    ("PKT_TOO_SMALL", Counter("IpExt", "InTruncatedPkts")),
    ("PROTO_MEM", Counter("Udp", "MemErrors")),
    ("QDISC_BURST_DROP", Rule("qdisc-limit")),
    ("QDISC_CONGESTED", Rule("qdisc-limit")),
    ("QDISC_DROP", Rule("qdisc-limit")),
    ("QDISC_OVERLIMIT", Rule("qdisc-limit")),
    (
        "QUEUE_PURGE",
        Ordinary("the socket or its queue was closed"),
    ),
    ("RECURSION_LIMIT", Column("tx_dropped")),
    ("SKB_CSUM", Column("tx_dropped")),
    ("SKB_GSO_SEG", Column("tx_dropped")),
    ("SKB_UCOPY_FAULT", Column("rx_dropped")),
    ("SOCKET_BACKLOG", Counter("TcpExt", "TCPBacklogDrop")),
    (
        "SOCKET_CLOSE",
        Ordinary("the socket or its queue was closed"),
    ),
    ("SOCKET_RCVBUFF", Counter("Udp", "RcvbufErrors")),
    (
        "TAP_FILTER",
        Ordinary("a filter that the program behind a TAP device asked for"),
    ),
    (
        "TAP_TXFILTER",
        Ordinary("a filter that the program behind a TAP device asked for"),
    ),
    ("TCP_ABORT_ON_DATA", Counter("TcpExt", "TCPAbortOnData")),
    (
        "TCP_ACK_UNSENT_DATA",
        Ordinary("an acknowledgement of data that was not sent"),
    ),
    ("TCP_AOFAILURE", Counter("TcpExt", "TCPAOBad")),
    ("TCP_AOKEYNOTFOUND", Counter("TcpExt", "TCPAOKeyNotFound")),
    ("TCP_AONOTFOUND", Counter("TcpExt", "TCPAORequired")),
    ("TCP_AOUNEXPECTED", Counter("TcpExt", "TCPAOKeyNotFound")),
    ("TCP_CLOSE", Ordinary("the socket or its queue was closed")),
    ("TCP_CSUM", Counter("Tcp", "InCsumErrors")),
    (
        "TCP_FASTOPEN",
        Ordinary("data of a SYN that Fast Open took"),
    ),
    (
        "TCP_FLAGS",
        Ordinary("the flags of the segment make no sense in this state"),
    ),
    (
        "TCP_INVALID_ACK_SEQUENCE",
        Ordinary("the acknowledgement is impossible and is answered"),
    ),
    (
        "TCP_INVALID_END_SEQUENCE",
        Counter("TcpExt", "BeyondWindow"),
    ),
    (
        "TCP_INVALID_SEQUENCE",
        Ordinary("the segment is outside the window and is answered"),
    ),
    (
        "TCP_INVALID_SYN",
        Ordinary("a SYN on an open connection, which is answered"),
    ),
    ("TCP_LISTEN_OVERFLOW", Counter("TcpExt", "ListenOverflows")),
    ("TCP_MD5FAILURE", Counter("TcpExt", "TCPMD5Failure")),
    ("TCP_MD5NOTFOUND", Counter("TcpExt", "TCPMD5NotFound")),
    ("TCP_MD5UNEXPECTED", Counter("TcpExt", "TCPMD5Unexpected")),
    ("TCP_MINTTL", Counter("TcpExt", "TCPMinTTLDrop")),
    (
        "TCP_OFOMERGE",
        Ordinary("its data was merged with a neighbour"),
    ),
    ("TCP_OFO_DROP", Counter("TcpExt", "TCPOFODrop")),
    ("TCP_OFO_QUEUE_PRUNE", Counter("TcpExt", "OfoPruned")),
    (
        "TCP_OLD_ACK",
        Ordinary("an acknowledgement that a later one overtook"),
    ),
    ("TCP_OLD_DATA", Ordinary("the segment was received before")),
    (
        "TCP_OLD_SEQUENCE",
        Ordinary("the segment was received before"),
    ),
    (
        "TCP_OVERWINDOW",
        Ordinary("the peer sends beyond the window that it was given"),
    ),
    ("TCP_RESET", Counter("Tcp", "EstabResets")),
    ("TCP_RFC7323_PAWS", Counter("TcpExt", "PAWSEstab")),
    ("TCP_RFC7323_PAWS_ACK", Counter("TcpExt", "PAWSOldAck")),
    ("TCP_RFC7323_TSECR", Counter("TcpExt", "TSEcrRejected")),
    ("TCP_RFC7323_TW_PAWS", Counter("TcpExt", "PAWSTimewait")),
    (
        "TCP_TOO_OLD_ACK",
        Ordinary("an acknowledgement that a later one overtook"),
    ),
    ("TCP_ZEROWINDOW", Counter("TcpExt", "TCPZeroWindowDrop")),
    ("TUNNEL_TXINFO", Column("tx_dropped")),
    ("UDP_CSUM", Counter("Udp", "InCsumErrors")),
    ("UNHANDLED_PROTO", Column("rx_dropped")),
    (
        "UNIX_DISCONNECT",
        Ordinary("a Unix socket, no packet of a network"),
    ),
    (
        "UNIX_SKIP_OOB",
        Ordinary("a Unix socket, no packet of a network"),
    ),
    ("VXLAN_ENTRY_EXISTS", Column("rx_errors")),
    ("VXLAN_INVALID_HDR", Column("rx_errors")),
    ("VXLAN_VNI_NOT_FOUND", Column("rx_dropped")),
    ("XFRM_POLICY", Counter("xfrm_stat", "XfrmInPolBlock")),
];

/// Reasons for which the kernel drops packets without counting them anywhere else, and what they mean. Programs of XDP, traffic
/// control and sockets drop on purpose, which is a loss to the sender.
pub static UNCOUNTED: &[(&str, &str)] = &[
    (
        "BPF_CGROUP_EGRESS",
        "packets dropped by a BPF program of a control group",
    ),
    (
        "FULL_RING",
        "packets dropped because the ring of a TAP device was full",
    ),
    (
        "IPV6_NDISC_BAD_CODE",
        "messages of IPv6 neighbour discovery that break its rules",
    ),
    (
        "IPV6_NDISC_BAD_OPTIONS",
        "messages of IPv6 neighbour discovery that break its rules",
    ),
    (
        "IPV6_NDISC_FRAG",
        "messages of IPv6 neighbour discovery that break its rules",
    ),
    (
        "IPV6_NDISC_HOP_LIMIT",
        "messages of IPv6 neighbour discovery that break its rules",
    ),
    (
        "NEIGH_DEAD",
        "packets dropped because their neighbour was deleted",
    ),
    (
        "NEIGH_HH_FILLFAIL",
        "packets dropped for lack of a link-layer header",
    ),
    ("NOMEM", "packets dropped for lack of memory"),
    (
        "NOT_SPECIFIED",
        "packets dropped for a reason that the kernel does not give, such as an XDP program of a veth device",
    ),
    ("PSP_INPUT", "received packets that PSP could not accept"),
    ("PSP_OUTPUT", "packets that PSP could not send"),
    ("SECURITY_HOOK", "packets dropped by a security module"),
    ("SOCKET_FILTER", "packets dropped by the filter of a socket"),
    (
        "TCP_AUTH_HDR",
        "segments with signatures that contradict each other",
    ),
    (
        "TC_CHAIN_NOTFOUND",
        "packets dropped because a chain of traffic control is missing",
    ),
    (
        "TC_COOKIE_ERROR",
        "packets dropped by an error of traffic control",
    ),
    (
        "TC_EGRESS",
        "packets dropped by a filter of traffic control on sending",
    ),
    (
        "TC_INGRESS",
        "packets dropped by a filter of traffic control on receiving",
    ),
    (
        "TC_RECLASSIFY_LOOP",
        "packets dropped in a loop of traffic control",
    ),
    (
        "UNICAST_IN_L2_MULTICAST",
        "packets to this host in a multicast frame",
    ),
    ("XDP", "packets dropped by an XDP program"),
];

#[cfg(test)]
mod tests {
    use super::super::{COLUMNS, LOSSES};
    use super::*;

    #[test]
    fn reasons_are_listed_once_and_their_counters_are_read() {
        assert!(COUNTED.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(UNCOUNTED.is_sorted_by(|(a, _), (b, _)| a < b));
        for (reason, counted) in COUNTED {
            let is_read = match counted {
                Counter(group, name) => LOSSES
                    .iter()
                    .any(|loss| loss.group == *group && loss.name == *name),
                Column(column) => COLUMNS.iter().any(|(name, ..)| name == column),
                Rule(_) | Ordinary(_) => true,
            };
            assert!(is_read, "{reason}: {counted:?}");
            let twice = UNCOUNTED.iter().any(|(other, _)| other == reason);
            assert!(!twice, "{reason} is listed twice");
        }
    }
}
