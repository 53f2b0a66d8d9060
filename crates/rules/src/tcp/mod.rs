//! TCP connections: what limits them, what piles up, what is lost.

pub(crate) mod connect_refused;
mod connections;
pub(crate) mod path_mtu_blackhole;
pub(crate) mod rpc_provider_skew;
pub(crate) mod rpc_single_conn;
pub(crate) mod sides;
pub(crate) mod tcp_idle_cwnd;
pub(crate) mod tcp_memory;
pub(crate) mod tcp_nagle_40ms;
pub(crate) mod tcp_port_closed;
pub(crate) mod tcp_recvq_pile;
pub(crate) mod tcp_reordering;
pub(crate) mod tcp_reset_unread;
pub(crate) mod tcp_retrans;
pub(crate) mod tcp_rwnd_limited;
pub(crate) mod tcp_sane_flags;
pub(crate) mod tcp_sendq_pile;
pub(crate) mod tcp_sndbuf_limited;
pub(crate) mod tcp_stalled;
pub(crate) mod write_queue_grows;
