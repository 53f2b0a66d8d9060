//! Sockets, ports and packets common to TCP and UDP: sysctls of one network namespace.

use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Scope};
use crate::target::{Form, Target};
use crate::turn::Turn;

const INT: u64 = i32::MAX as u64;

const IP: Knob = Knob {
    scope: Scope::Netns,
    ..COMMON
};

/// `net.early_demux`
pub(crate) static EARLY_DEMUX: Knob = Knob {
    id: "net.early_demux",
    summary: "looks up a packet's socket before its route",
    values: "on, off, or parts such as ip=on,tcp=on,udp=off",
    doc: Doc {
        does: "For a packet of a connected socket, the kernel finds the socket first and takes the route from it, \
               which saves the route look-up. ip is the main switch, tcp and udp belong to one protocol each.",
        helps: "udp=off for servers whose UDP sockets are not connected, where the search finds nothing \
                (udp_v4_early_demux in profiles); ip=off on routers.",
        costs: "Off costs connected sockets a route look-up per packet.",
        undone: "The previous values are written back, in reverse order.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux).",
    },
    writes: &[
        Target::File("/proc/sys/net/ipv4/ip_early_demux", Form::Switch),
        Target::File("/proc/sys/net/ipv4/tcp_early_demux", Form::Switch),
        Target::File("/proc/sys/net/ipv4/udp_early_demux", Form::Switch),
    ],
    turn: Turn::Parts {
        names: &["ip", "tcp", "udp"],
        bare: 3,
    },
    ..IP
};

/// `net.ipfrag`
pub(crate) static IPFRAG: Knob = Knob {
    id: "net.ipfrag",
    summary: "memory for fragments that wait for reassembly",
    values: "a size, such as 16MiB",
    doc: Doc {
        does: "Above it, new fragments are dropped until others are reassembled or time out.",
        helps: "When ReasmFails grows. First find out why there are fragments at all: an MTU that differs on the path.",
        costs: "Memory that any sender of fragments can fill.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); bpftune's fragment tuner.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/ipfrag_high_thresh",
        Form::Bytes {
            least: 65_536,
            most: 1 << 40,
        },
    )],
    ..IP
};

/// `net.port_range`
pub(crate) static PORT_RANGE: Knob = Knob {
    id: "net.port_range",
    summary: "local ports for outgoing connections",
    values: "first and last, such as 10240-65000",
    doc: Doc {
        does: "A connection without a bound port takes one of these; each port can be used once per destination \
               address and port.",
        helps: "When more than 80 % of them are in use to one destination, or connect fails with EADDRNOTAVAIL. \
                Reusing connections helps more.",
        costs: "A service that listens above the first port may find it taken; reserve its port \
                (ip_local_reserved_ports).",
        undone: "The previous range is written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); TuneD's oracle profile.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/ip_local_port_range",
        Form::Words,
    )],
    turn: Turn::Row(&["first", "last"]),
    ..IP
};

/// `net.rps_default_mask`
pub(crate) static RPS_DEFAULT_MASK: Knob = Knob {
    id: "net.rps_default_mask",
    summary: "receive packet steering of devices created from now on",
    values: "off, all, or a CPU list such as 0-3,8",
    doc: Doc {
        does: "Each receive queue of a new device starts with this mask in rps_cpus.",
        helps: "Where net.rps_cpus helps and containers, with their veth devices, come and go.",
        costs: "Those of net.rps_cpus, for every new device of the namespace. Existing devices are not changed.",
        undone: "The previous mask is written back; devices created meanwhile keep theirs.",
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux); terway issue 90.",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/rps_default_mask",
        Form::Mask,
    )],
    ..IP
};

/// `net.somaxconn`
pub(crate) static SOMAXCONN: Knob = Knob {
    id: "net.somaxconn",
    summary: "limit of connections that wait to be accepted",
    values: "a number, such as 8192",
    doc: Doc {
        does: "It limits the backlog that a program passes to listen(2); the smaller of the two applies.",
        helps: "When ListenOverflows grows and the socket's backlog is at this limit. A program that requests less \
                must request more too (rpc.backlog), and listen again.",
        costs: "A slow acceptor is noticed later.",
        undone: "The previous number is written back; listening sockets keep their backlog.",
        sources: "listen(2); a backlog of 2 let 3 connections wait, then ListenOverflows grew (Linux 6.18, measured).",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/somaxconn",
        Form::Number {
            least: 1,
            most: INT,
        },
    )],
    ..IP
};

/// `net.syn_backlog`
pub(crate) static SYN_BACKLOG: Knob = Knob {
    id: "net.syn_backlog",
    risk: Risk::Disruptive,
    summary: "half-open connections, and SYN cookies beyond their limit",
    values: "a number for the backlog such as 8192, or backlog=8192,cookies=on",
    doc: Doc {
        does: "The kernel remembers this many half-open connections; beyond that, with cookies, it remembers none: the \
               reply carries all the state.",
        helps: "When TCPReqQFullDoCookies or TCPReqQFullDrop grows without an attack.",
        costs: "Memory per half-open connection. Cookies off leaves the host open to a SYN flood: keep them on.",
        undone: "The previous values are written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); the rule of Performance Co-Pilot.",
    },
    writes: &[
        Target::File(
            "/proc/sys/net/ipv4/tcp_max_syn_backlog",
            Form::Number {
                least: 1,
                most: INT,
            },
        ),
        Target::File("/proc/sys/net/ipv4/tcp_syncookies", Form::Switch),
    ],
    turn: Turn::Parts {
        names: &["backlog", "cookies"],
        bare: 1,
    },
    ..IP
};

/// `net.tw_reuse`
pub(crate) static TW_REUSE: Knob = Knob {
    id: "net.tw_reuse",
    summary: "reuses a port in TIME_WAIT for a new connection to the same destination",
    values: "0 (off), 1 (on) or 2 (loopback only)",
    doc: Doc {
        does: "A client reuses a port whose last connection ended at least a second ago, if time stamps distinguish \
               old packets from new ones.",
        helps: "1 on clients that run out of ports because of TIME_WAIT. Reusing connections helps more.",
        costs: "It needs tcp_timestamps at both ends; it does nothing for servers.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux).",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_tw_reuse",
        Form::Number { least: 0, most: 2 },
    )],
    ..IP
};

/// `net.udp_hash`
pub(crate) static UDP_HASH: Knob = Knob {
    id: "net.udp_hash",
    summary: "separate socket tables for namespaces created from now on",
    values: "a number of buckets for both such as 1024 (0 shares the host's), or udp=1024,tcp=4096",
    doc: Doc {
        does: "A new network namespace gets tables of this size instead of sharing the first namespace's.",
        helps: "When thousands of sockets of many containers share a table and udp4_lib_lookup2 is hot.",
        costs: "Memory for every new namespace. Existing namespaces are not changed.",
        undone: "The previous sizes are written back; namespaces created meanwhile keep their tables.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux).",
    },
    writes: &[
        Target::File(
            "/proc/sys/net/ipv4/udp_child_hash_entries",
            Form::PowerOfTwo,
        ),
        Target::File(
            "/proc/sys/net/ipv4/tcp_child_ehash_entries",
            Form::PowerOfTwo,
        ),
    ],
    turn: Turn::Parts {
        names: &["udp", "tcp"],
        bare: 2,
    },
    ..IP
};
