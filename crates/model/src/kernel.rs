//! What the kernel reports through other interfaces than files: sockets, devices, chains, stacks.
//!
//! These are raw answers, stored unchanged in a capture; probes derive evidence from them. A field that a kernel or
//! driver does not report is `None`, never zero.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::load::GeneratorReport;

/// One question to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// TCP sockets with `tcp_info` and memory (`sock_diag`).
    Tcp,
    /// UDP sockets with memory and drops (`sock_diag`).
    Udp,
    /// Unix sockets that listen (`sock_diag`).
    Unix,
    /// Network devices: rtnetlink and ethtool.
    Devices,
    /// Queueing disciplines with their counters (rtnetlink).
    Qdiscs,
    /// Neighbour tables with their counters, and neighbours that do not answer (rtnetlink).
    Neighbours,
    /// Network namespaces of this machine with the packets that they received.
    Namespaces,
    /// Chains of `nf_tables`, read by netlink.
    Netfilter,
    /// State of the audit subsystem (`AUDIT_GET`).
    Audit,
    /// Free space on mounted file systems (`statfs`), of those that cannot hang.
    Mounts,
    /// Which process has which socket open: from `/proc/PID/fd`.
    Owners,
}

/// An answer to the question of the same name, or the result of a sampler during the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// All TCP sockets.
    Tcp(Vec<TcpSocket>),
    /// All UDP sockets.
    Udp(Vec<UdpSocket>),
    /// All Unix sockets that listen.
    Unix(Vec<UnixListener>),
    /// All devices.
    Devices(Vec<NetDevice>),
    /// All queueing disciplines.
    Qdiscs(Vec<Qdisc>),
    /// Neighbour tables.
    Neighbours(Neighbours),
    /// Network namespaces with processes or with a name, including our own.
    Namespaces(Vec<NetworkNamespace>),
    /// All chains.
    Netfilter(Vec<Chain>),
    /// State of the audit subsystem.
    Audit(Audit),
    /// Mounted file systems that can be written to.
    Mounts(Vec<Mount>),
    /// Owners by socket inode.
    Owners(BTreeMap<u64, Owner>),
    /// Kernel stacks sampled during the window.
    Stacks(Stacks),
    /// Kernel events counted during the window.
    Events(Events),
    /// Data loads of the window, from hardware counters.
    Tlb(TlbLoads),
    /// Values that open journals of rungwise keep in force.
    Settings(Vec<KeptSetting>),
    /// The load generator's report on its own health.
    Load(Box<GeneratorReport>),
}

/// A mounted file system that can be written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is mounted: below `/proc/PID/root` if only the mount namespace of that process has it.
    pub point: String,
    /// Type of the file system: `ext4`.
    pub kind: String,
    /// Its space; none if reading it might hang, as on a network file system whose server is gone.
    pub room: Option<Room>,
    /// Why its space was asked for and not given: `EACCES`; empty if it was given or not asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failed: String,
    /// The judged process or a service that has files open there, if the space was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<u32>,
}

/// Space on a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    /// Size in bytes.
    pub size: u64,
    /// Bytes that an unprivileged user can still write.
    pub available: u64,
    /// Inodes, or 0 if there is no fixed number of them.
    pub inodes: u64,
    /// Free inodes.
    pub inodes_free: u64,
}

/// Data loads of all CPUs and those that missed the TLB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TlbLoads {
    /// Loads.
    pub loads: f64,
    /// Loads that missed the TLB.
    pub misses: f64,
}

/// An address with a port, printed and stored as `10.0.0.1:80` or `[::1]:80`. An IPv4-mapped IPv6 address is an IPv4 address here.
///
/// 20 bytes and no allocation: there may be 100,000 sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Endpoint {
    /// Address; unspecified for any.
    pub address: IpAddr,
    /// Port; 0 for none.
    pub port: u16,
}

impl Endpoint {
    /// Converts an IPv4-mapped address to IPv4.
    pub fn new(address: IpAddr, port: u16) -> Self {
        Self {
            address: address.to_canonical(),
            port,
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self::new(Ipv4Addr::UNSPECIFIED.into(), 0)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

impl FromStr for Endpoint {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let end: SocketAddr = text.parse()?;
        Ok(Self::new(end.ip(), end.port()))
    }
}

impl From<Endpoint> for String {
    fn from(end: Endpoint) -> Self {
        end.to_string()
    }
}

impl TryFrom<String> for Endpoint {
    type Error = AddrParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// One TCP socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSocket {
    /// Local end.
    pub local: Endpoint,
    /// Remote end; port 0 while listening.
    pub remote: Endpoint,
    /// State as in `include/net/tcp_states.h`: 1 established, 6 time-wait, 10 listen, ...
    pub state: u8,
    /// Inode of the socket, the link to its process; 0 for time-wait.
    pub inode: u64,
    /// Received and not yet read; while listening, connections that wait to be accepted.
    pub rqueue: u32,
    /// Written and not yet acknowledged; while listening, length of the accept queue.
    pub wqueue: u32,
    /// `SK_MEMINFO` values: receive buffer, send buffer, queued for write, drops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SocketMemory>,
    /// `tcp_info`, as much of it as this kernel reports; absent while listening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<TcpInfo>,
}

impl TcpSocket {
    /// `TCP_TIME_WAIT` of `include/net/tcp_states.h`.
    pub const TIME_WAIT: u8 = 6;

    /// It is closed, and its port is reserved for a minute.
    pub fn is_in_time_wait(&self) -> bool {
        self.state == Self::TIME_WAIT
    }

    /// Whether `other` is the same socket at another time.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.local, self.remote, self.inode) == (other.local, other.remote, other.inode)
    }
}

/// Memory of a socket (`INET_DIAG_SKMEMINFO`), bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketMemory {
    /// Receive memory in use (`rmem_alloc`).
    pub rmem: u32,
    /// Receive buffer (`rcvbuf`).
    pub rcvbuf: u32,
    /// Send memory in use (`wmem_alloc`).
    pub wmem: u32,
    /// Send buffer (`sndbuf`).
    pub sndbuf: u32,
    /// Persistently queued for write (`wmem_queued`).
    pub queued: u32,
    /// Packets dropped at the socket since it was created.
    pub drops: u32,
}

/// The part of `struct tcp_info` that rules read. Times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the names are those of struct tcp_info in include/uapi/linux/tcp.h"
)]
pub struct TcpInfo {
    pub snd_cwnd: u32,
    pub snd_ssthresh: u32,
    pub unacked: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub rto: u32,
    pub snd_mss: u32,
    pub last_data_sent_ms: u32,
    pub last_data_recv_ms: u32,
    pub total_retrans: u32,
    pub bytes_acked: Option<u64>,
    pub bytes_received: Option<u64>,
    pub bytes_sent: Option<u64>,
    pub bytes_retrans: Option<u64>,
    pub segs_out: Option<u32>,
    pub segs_in: Option<u32>,
    pub notsent_bytes: Option<u32>,
    pub busy_time: Option<u64>,
    pub rwnd_limited: Option<u64>,
    pub sndbuf_limited: Option<u64>,
    pub snd_wnd: Option<u32>,
    pub rcv_wnd: Option<u32>,
    /// Retransmission timeouts in a row (`tcpi_retransmits`).
    #[serde(default)]
    pub retransmits: u8,
    /// Unanswered probes of a closed window (`tcpi_probes`).
    #[serde(default)]
    pub probes: u8,
    #[serde(default)]
    pub last_ack_recv_ms: u32,
    /// Segments with data among `segs_in`; captures of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_segs_in: Option<u32>,
    /// Path MTU known to the kernel.
    #[serde(default)]
    pub pmtu: u32,
    /// Captures of older versions lack it; `u32::MAX` before the first measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<u32>,
    /// The kernel's latest estimate, bytes per second (`tcpi_delivery_rate`); captures of older versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_rate: Option<u64>,
}

/// One UDP socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpSocket {
    /// Local end.
    pub local: Endpoint,
    /// Remote end; port 0 where it is not connected.
    pub remote: Endpoint,
    /// Inode of the socket.
    pub inode: u64,
    /// Bytes in the receive queue.
    pub rqueue: u32,
    /// Bytes in the send queue.
    pub wqueue: u32,
    /// Memory and drops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SocketMemory>,
}

/// One Unix socket that listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnixListener {
    /// Path, or an abstract name that begins with `@`; empty if it has none.
    pub name: String,
    /// Inode of the socket.
    pub inode: u64,
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// Its backlog; one more connection may wait.
    pub backlog: u32,
    /// Inodes of the waiting callers, the first in the queue first; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<u32>,
}

/// The process that has a socket open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// First process found that has it open.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
}

/// One network device, from rtnetlink and ethtool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetDevice {
    /// Name.
    pub name: String,
    /// `ifindex`.
    pub index: u32,
    /// `IFLA_INFO_KIND` (veth, bridge, vxlan, ...); empty for hardware.
    #[serde(default)]
    pub kind: String,
    /// Flags say up and running.
    pub up: bool,
    /// Receive queues that the device was created with. `channels` and the folders below `/sys/class/net/*/queues` show
    /// how many of them are in use.
    pub num_rx_queues: u32,
    /// The same for sending.
    pub num_tx_queues: u32,
    /// Driver, its version, firmware and bus address (`ETHTOOL_GDRVINFO`).
    #[serde(default)]
    pub driver: Option<Driver>,
    /// Channels in use and at most.
    #[serde(default)]
    pub channels: Option<Channels>,
    /// Rings.
    #[serde(default)]
    pub ring: Option<Ring>,
    /// Interrupt moderation.
    #[serde(default)]
    pub coalesce: Option<Coalesce>,
    /// Receive side scaling.
    #[serde(default)]
    pub rss: Option<Rss>,
    /// Features by kernel name; `(on, fixed)`.
    #[serde(default)]
    pub features: BTreeMap<String, (bool, bool)>,
    /// Driver statistics by the driver's own names (`ethtool -S`).
    #[serde(default)]
    pub statistics: BTreeMap<String, u64>,
    /// Why a part above is missing: part, then reason.
    #[serde(default)]
    pub refused: BTreeMap<String, String>,
}

/// `ethtool -i`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as ethtool -i names them")]
pub struct Driver {
    pub driver: String,
    pub version: String,
    pub firmware: String,
    pub bus: String,
}

/// `ethtool -l`: current and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as ethtool -l names them")]
pub struct Channels {
    pub rx: u32,
    pub tx: u32,
    pub combined: u32,
    pub max_rx: u32,
    pub max_tx: u32,
    pub max_combined: u32,
}

/// `ethtool -g`, entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as ethtool -g names them")]
pub struct Ring {
    pub rx: u32,
    pub tx: u32,
    pub max_rx: u32,
    pub max_tx: u32,
}

/// `ethtool -c`; what the driver does not support is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as ethtool -c names them")]
pub struct Coalesce {
    pub rx_usecs: Option<u32>,
    pub rx_frames: Option<u32>,
    pub tx_usecs: Option<u32>,
    pub tx_frames: Option<u32>,
    pub adaptive_rx: Option<bool>,
    pub adaptive_tx: Option<bool>,
}

/// `ethtool -x` and `-n`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// Queue of each entry of the indirection table.
    pub table: Vec<u32>,
    /// Hashed fields for UDP over IPv4, letters as in `ethtool -N`: `sd`, `sdfn`.
    #[serde(default)]
    pub udp4: Option<String>,
}

/// One queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// Device.
    pub device: String,
    /// `mq`, `fq_codel`, `noqueue`, ...
    pub kind: String,
    /// Handle, as `tc` prints it.
    pub handle: String,
    /// Parent, as `tc` prints it; `root` at the top.
    pub parent: String,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u32,
    /// Packets over the limit.
    pub overlimits: u32,
    /// Queued packets.
    pub backlog: u32,
    /// Bytes sent.
    #[serde(default)]
    pub bytes: u64,
    /// Configured rate of a `tbf`, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

impl Qdisc {
    /// Whether disciplines of this kind drop packets to keep their queue short, so that some drops are no fault.
    pub fn drops_on_purpose(kind: &str) -> bool {
        const MANAGE: &[&str] = &["cake", "codel", "fq_codel", "fq_pie", "pie", "red", "sfb"];
        MANAGE.contains(&kind)
    }
}

/// The neighbour tables of IPv4 and IPv6 (ARP, NDP).
///
/// The tables and their limits are shared by all network namespaces; the neighbours listed are those of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// `arp_cache` and `ndisc_cache`.
    pub tables: Vec<NeighbourTable>,
    /// Neighbours in the states `INCOMPLETE` and `FAILED`, the first hundred.
    pub unanswered: Vec<Neighbour>,
    /// All neighbours in these states.
    pub unanswered_count: u64,
}

/// One neighbour table (`RTM_GETNEIGHTBL`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourTable {
    /// `arp_cache` or `ndisc_cache`.
    pub name: String,
    /// Entries of all network namespaces.
    pub entries: u32,
    /// `gc_thresh3`: above it the kernel refuses new entries.
    pub limit: u32,
    /// Entries refused because the table was full (`table_fulls`).
    pub refused: u64,
    /// Neighbours given up because no answer came (`res_failed`).
    pub failed: u64,
}

/// One neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Device.
    pub device: String,
    /// Address.
    pub address: IpAddr,
    /// Whether the kernel gave up (`FAILED`) or still asks (`INCOMPLETE`).
    pub failed: bool,
}

/// One network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkNamespace {
    /// Inode of the namespace.
    pub inode: u64,
    /// Whether it is the namespace of the reader.
    #[serde(default)]
    pub own: bool,
    /// Lowest pid in it; absent if only a name in `/run/netns` holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name in `/run/netns`, or name of that process.
    pub name: String,
    /// Container of that process, from its control group; empty if there is none.
    #[serde(default)]
    pub container: String,
    /// Packets received by all its devices; absent if they cannot be read.
    pub packets: Option<u64>,
    /// Its `/proc/net/snmp` and `/proc/net/netstat`, of other namespaces with traffic; empty if not read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub counters: String,
    /// Its root queueing disciplines, read with the counters; those without a queue are left out. Absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdiscs: Option<Vec<Qdisc>>,
    /// Its established TCP connections; absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<Connections>,
}

/// The established TCP connections of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// How many; of more than some thousand, all TCP sockets in use.
    pub count: u32,
    /// Median of their smoothed round-trip times, microseconds; absent if there are too many to read, or none has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u32>,
}

/// One chain of `nf_tables`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Family as nft names it.
    pub family: String,
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: String,
    /// Hook of a base chain: `input`; empty for others.
    pub hook: String,
    /// Policy of a base chain: `accept` or `drop`.
    pub policy: String,
    /// Rules in it.
    pub rules: u32,
}

/// `AUDIT_GET`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// 0 off, 1 on, 2 on and locked.
    pub enabled: u32,
    /// Process id of the daemon; 0 for none.
    pub pid: u32,
    /// Records lost.
    pub lost: u32,
    /// Records waiting.
    pub backlog: u32,
}

/// Kernel stacks, folded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stacks {
    /// Event that was sampled: `cpu-clock`.
    pub event: String,
    /// Samples per second and CPU.
    pub hz: u32,
    /// `root;callee;...;leaf` to number of samples; the first frame is the task's name, idle samples excluded.
    pub folded: BTreeMap<String, u64>,
    /// Samples of the idle task.
    pub idle: u64,
    /// Samples that the kernel lost.
    pub lost: u64,
    /// CPU time that sampling itself took, seconds.
    pub cost_s: f64,
}

/// Events counted by tracepoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Events {
    /// Seconds they were counted for, except the drops; may be a part of the window, to limit the cost.
    pub seconds: f64,
    /// `lock:contention_begin` by folded stack, limited to the first stacks, with their counts.
    pub contentions: BTreeMap<String, u64>,
    /// Packets freed as dropped by reason (`skb:kfree_skb`).
    pub drops: BTreeMap<String, u64>,
    /// Seconds that dropped packets were counted for, which is the whole window unless there were very many; absent from
    /// captures that counted them as long as the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_seconds: Option<f64>,
    /// System calls by CPU (`raw_syscalls:sys_enter`).
    pub syscalls: BTreeMap<u32, u64>,
    /// Seconds that system calls were counted for, where that is less: counting slows each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall_seconds: Option<f64>,
    /// Tasks that migrated, by the CPU that they migrated to (perf's `cpu-migrations`); absent from captures
    /// that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<BTreeMap<u32, u64>>,
    /// Calls of connect(2) that failed with EAGAIN, by process: the accept queue of a Unix socket was full
    /// (`syscalls:sys_exit_connect`); absent from captures that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turned_away: Option<BTreeMap<u32, u64>>,
    /// Calls of connect(2) of processes of which some failed; absent from captures that did not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connects: Option<Box<FailedConnects>>,
    /// Runs of threads of at least 5 ms; absent from captures that did not watch them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_runs: Option<Box<LongRuns>>,
    /// Calls of fsync by process; absent from captures that did not watch them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syncs: Option<Box<Syncs>>,
    /// Why an event could not be counted: event, then reason.
    pub refused: BTreeMap<String, String>,
}

/// Calls of fsync by process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Syncs(pub Vec<SyncTimes>);

/// How long the calls of fsync of one process took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncTimes {
    /// The process.
    pub process: u32,
    /// Seconds they were watched for.
    pub watched: f64,
    /// How many ended.
    pub number: u64,
    /// How many took 10 ms or longer.
    pub slow: u64,
    /// Half of them took at most so long, seconds.
    pub median: f64,
    /// The longest, seconds.
    pub longest: f64,
}

/// Calls of connect(2) by process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FailedConnects(pub BTreeMap<u32, Connects>);

/// Calls of connect(2) of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connects {
    /// All of them.
    pub calls: u64,
    /// Those that failed at once, by the kernel's name of the error: `ECONNREFUSED`.
    pub failed: BTreeMap<String, u64>,
}

/// Runs of threads of at least 5 ms. A run begins when a thread comes to a CPU and ends when it waits; being preempted does not end
/// it, and does not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongRuns {
    /// Seconds they were watched for.
    pub seconds: f64,
    /// By thread.
    pub threads: Vec<LongRun>,
}

/// The long runs of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongRun {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// How many there were.
    pub number: u64,
    /// How long they took together, seconds.
    pub seconds: f64,
    /// Its runs that were shorter; older captures lack them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortRuns>,
}

/// The runs of one thread below 5 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShortRuns {
    /// How many there were.
    pub number: u64,
    /// How long they took together, seconds.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_stored_as_it_is_printed() {
        for text in ["10.0.0.1:80", "[::1]:443", "0.0.0.0:0"] {
            let end: Endpoint = text.parse().unwrap();
            let json = serde_json::to_string(&end).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Endpoint>(&json).unwrap(), end);
        }
        assert!(serde_json::from_str::<Endpoint>("\"nonsense\"").is_err());
    }

    #[test]
    fn a_mapped_address_is_an_ipv4_address() {
        let mapped: Endpoint = "[::ffff:10.0.0.1]:80".parse().unwrap();
        assert_eq!(mapped.to_string(), "10.0.0.1:80");
    }
}

/// A value that rungwise set and that should still be in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSetting {
    /// The knob that set it.
    pub knob: String,
    /// What was written: a path, a feature of a device.
    pub target: String,
    /// The value that the kernel reported after the write.
    pub wanted: String,
    /// The current value; absent if it cannot be read.
    pub found: Option<String>,
}
