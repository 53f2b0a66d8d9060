//! TCP sockets, from `sock_diag` (`ss -tinm`): listeners, connections, ports in use.
//!
//! There may be 100,000 sockets, so each pass over them does a fixed amount of work per socket, and keys of single
//! connections are yielded for the most interesting ones only. A connection is the same in two samples if both ends and
//! the inode are. Sources: `net/ipv4/inet_diag.c`, net/ipv4/tcp.c `tcp_get_info` (Linux 6.18).

mod connections;
mod held;
mod listeners;
mod overdue;
mod service;
mod stalled;
mod totals;

use rungwise_model::evidence::{Absence, Evidence};
use rungwise_model::kernel::{Answer, Question, TcpSocket};
use rungwise_model::keys;

use crate::window::misplaced;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

/// What is cited as the source.
const SOURCE: &str = "sock_diag (ss -tinm)";
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Number of sockets from which on not all are listed between the two ends of the window: listing one costs 2 us, and
/// their totals need only both ends.
const MANY: usize = 1000;

/// States of `include/net/tcp_states.h`.
mod state {
    pub(super) const ESTABLISHED: u8 = 1;
    pub(super) const FIN_WAIT1: u8 = 4;
    pub(super) const CLOSE: u8 = 7;
    pub(super) const CLOSE_WAIT: u8 = 8;
    pub(super) const LAST_ACK: u8 = 9;
    pub(super) const LISTEN: u8 = 10;
    pub(super) const CLOSING: u8 = 11;
}

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "tcp-sockets",
    summary: "what limits each connection, growing queues, listeners, ports in use",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Tcp, When::Each),
        Source::ask(Question::Tcp, When::Often),
        Source::ask(Question::Udp, When::Each),
        Source::ask(Question::Owners, When::Once),
        Source::once(CONGESTION),
        Source::once(PORT_RANGE),
    ],
    yields: &[
        &keys::FLOWS_COUNT,
        &keys::FLOWS_LARGEST_SHARE,
        &keys::SERVICE_BUFFER_FULL,
        &keys::SERVICE_CONNECTIONS,
        &keys::SERVICE_CWND_FULL,
        &keys::SERVICE_DELIVERY,
        &keys::SERVICE_PORTS,
        &keys::SERVICE_RECVQ,
        &keys::SERVICE_RECVQ_MOST,
        &keys::SERVICE_RECVQ_SHARE,
        &keys::SERVICE_RETRANSMITTED,
        &keys::SERVICE_ROLE,
        &keys::SERVICE_SAMPLES,
        &keys::SERVICE_SENDQ,
        &keys::SERVICE_SENDQ_MOST,
        &keys::SERVICE_TO_CLIENTS,
        &keys::SERVICE_TO_SERVER,
        &keys::TCP_ACCEPT_BACKLOG,
        &keys::TCP_ACCEPT_QUEUE,
        &keys::TCP_ACCEPT_USED,
        &keys::TCP_ACK_OVERDUE,
        &keys::TCP_BUSY,
        &keys::TCP_BYTES_RECEIVED,
        &keys::TCP_BYTES_SENT,
        &keys::TCP_CARRYING,
        &keys::TCP_CWND,
        &keys::TCP_CWND_FULL,
        &keys::TCP_ESTABLISHED,
        &keys::TCP_HELD_SMALL,
        &keys::TCP_HELD_SMALL_WHO,
        &keys::TCP_IDLE_RESTARTS,
        &keys::TCP_LISTEN_SOCKET_DROPS,
        &keys::TCP_PARALLEL,
        &keys::TCP_PORTS_TO,
        &keys::TCP_PORTS_USED,
        &keys::TCP_PROCESS,
        &keys::TCP_RCVBUF,
        &keys::TCP_RECVQ,
        &keys::TCP_RECVQ_SHARE,
        &keys::TCP_RETRANS_BYTES_SHARE,
        &keys::TCP_RTT,
        &keys::TCP_RTT_MIN,
        &keys::TCP_RWND_LIMITED,
        &keys::TCP_SENDQ,
        &keys::TCP_SENDQ_SHARE,
        &keys::TCP_SND_WND,
        &keys::TCP_SNDBUF,
        &keys::TCP_SNDBUF_LIMITED,
        &keys::TCP_STALLED,
        &keys::TCP_STALLED_FULL,
        &keys::TCP_STALLED_FULL_WHO,
        &keys::TCP_STALLED_WHO,
    ],
    derive,
    doc: "\
At most 50 connections are reported: in turn the one that moved most bytes, the one limited longest by the peer's \
window or its own send buffer, and the one with the fullest queues; the rest by address. Of listeners the 50 with the \
longest queues. Counts are of all sockets. \n\n\
rwnd_limited is the share of the time with data to send (busy_time) in which the peer's window was closed; it is \
absent if a connection was busy for less than 10 ms of the window. sndbuf_limited misses a send buffer that is far too \
small: with SO_SNDBUF 4608 it stayed 0 % at 2 MB/s (Linux 6.18), so check the send queue as well. Queues are the \
median of the samples: a full queue in one sample of four is a burst. On a host with more than 1000 sockets, not \
counting those in TIME_WAIT, all are listed at both ends of the window only; in between only listeners, and the \
connections with data in a queue at its start. Both ends of a connection within the host are separate sockets. \
tcp.parallel counts connections between the same two addresses to the same port of the server, which is the side that \
listens, else the side with the lower port. Restarts after idle are detected only between two samples, so their rate \
is a lower bound; BBR ignores that sysctl and lowers its window for other reasons, so with BBR they are absent. \n\n\
Flows are remote ends of connections and of connected UDP sockets, excluding loopback; clients of an unconnected UDP \
socket cannot be counted. Ports in use include TIME_WAIT and count one local address towards one remote address and \
port. The process is looked up only for connections that moved bytes, were limited or have data in a queue: reading \
all descriptors of all processes costs more than everything else. Processes of other users are visible to root only. \
\n\n\
The service of --socket has its connections reported first, at most 50, and sampled ten times a second besides: the kernel \
lists only sockets with its port. With more than 200 of them the samples are fewer, and with very many only the connections \
with data in a queue, or most bytes so far, are sampled between the ends of the window. Connections that closed before the \
end are not reported. The far end of a connection is found if it is on this machine, also in another network namespace, \
unless addresses are translated between the two. \n\n\
Sources: net/ipv4/tcp.c and net/ipv4/inet_diag.c of Linux 6.18; ss(8).",
};

/// Sockets of one full sample.
type Sample<'a> = (f64, &'a [TcpSocket]);

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples = match samples(window) {
        Ok(samples) => samples,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let Some(&(_, last)) = samples.last() else {
        let other = window.answer("tcp");
        let why = other.map_or_else(|why| why, |other| misplaced("tcp", other));
        return evidence.absent(PROBE.yields, &why, SOURCE);
    };
    totals::add(window, last, evidence);
    listeners::add(&samples, evidence);
    stalled::add(&samples, evidence);
    held::add(&samples, evidence);
    overdue::add(window, evidence);
    connections::add(window, &samples, evidence);
    let none = Absence::none("no service was named").remedy("name one: --socket :PORT");
    if window.capture().service.is_none() {
        evidence.absent(service::KEYS, &none, SOURCE);
    }
    let none = Absence::none("there is no TCP connection");
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

/// All full samples with sockets.
fn samples<'a>(window: &Window<'a>) -> Result<Vec<Sample<'a>>, Absence> {
    let answers = window.answers("tcp")?.into_iter();
    let sockets = |(at, answer): (f64, &'a Answer)| match answer {
        Answer::Tcp(sockets) => Some((at, &sockets[..])),
        _ => None,
    };
    Ok(answers.filter_map(sockets).collect())
}

/// Inodes of the sockets whose process is looked up.
pub(super) fn sought(window: &Window<'_>) -> Vec<u64> {
    samples(window).map_or_else(
        |_| Vec::new(),
        |samples| connections::sought(window, &samples),
    )
}

/// The connections to list between the two ends of a window that began with these sockets; none if they are few enough to list all.
pub(crate) fn between(first: &[TcpSocket]) -> Option<Vec<TcpSocket>> {
    let in_use = first.iter().filter(|socket| !socket.is_in_time_wait());
    (in_use.count() > MANY).then(|| connections::queued(first))
}
