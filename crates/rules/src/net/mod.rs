//! Rules about the network stack: softnet, UDP sockets, routing, netfilter, accept queues.

pub(crate) mod ports;
pub(crate) mod spread;

pub(crate) mod conntrack_full;
pub(crate) mod fib_double;
pub(crate) mod ip_id;
pub(crate) mod iptables_empty;
pub(crate) mod nf_rules_hot;
pub(crate) mod port_exhaust;
pub(crate) mod slab_hot;
pub(crate) mod softnet_drop;
pub(crate) mod softnet_squeeze;
pub(crate) mod syscall_bound;
pub(crate) mod tcp_listen_overflow;
pub(crate) mod tcp_synq_full;
pub(crate) mod tx_qdisc_atomic;
pub(crate) mod udp_mem_pressure;
pub(crate) mod udp_rcvbuf_drop;
pub(crate) mod udp_reader_unbound;
pub(crate) mod udp_reuseport_hash;
pub(crate) mod udp_shared_socket;
pub(crate) mod udp_socket_lock;
