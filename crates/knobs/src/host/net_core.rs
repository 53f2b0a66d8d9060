//! The receive path and the limits of the network stack that all namespaces share.
//!
//! Only the first network namespace has these files; in a container they are reported as absent.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// The kernel's type is an int.
const INT: u64 = i32::MAX as u64;

/// `net.busy_poll`
pub(crate) static BUSY_POLL: Knob = Knob {
    id: "net.busy_poll",
    risk: Risk::Disruptive,
    summary: "how long poll and read spin on the device for every socket of the machine",
    values: "a time for both such as 50us, or poll=50us,read=0us",
    doc: Doc {
        does: "A thread that waits in poll, select or epoll (poll), or in a read (read), polls the device's queue \
               itself for this long before it sleeps. New sockets take the value of read.",
        helps: "When latency is the goal and CPUs idle while threads wait. sock.busy_poll does it for chosen \
                sockets only, which is nearly always better.",
        costs: "CPU, in every process of the machine that waits for the network; 3 to 5 times slower jobs were \
                reported where poll is called in tight loops.",
        undone: "Both previous values are written back.",
        sources: "Documentation/networking/napi.rst (Linux); RHEL 7 network guide 9.3.3; open-mpi issue 10929.",
    },
    writes: &[
        Target::File(
            "/proc/sys/net/core/busy_poll",
            Form::Micros {
                least: 0,
                most: 1000,
            },
        ),
        Target::File(
            "/proc/sys/net/core/busy_read",
            Form::Micros {
                least: 0,
                most: 1000,
            },
        ),
    ],
    turn: Turn::Parts {
        names: &["poll", "read"],
        bare: 2,
    },
    ..COMMON
};

/// `net.conntrack`
pub(crate) static CONNTRACK: Knob = Knob {
    id: "net.conntrack",
    risk: Risk::Disruptive,
    summary: "connections that the firewall can track, and its hash buckets",
    values: "a number of connections such as 524288, or max=524288,buckets=131072",
    doc: Doc {
        does: "Beyond the maximum, packets of new connections are dropped. Buckets limit the length of the hash chains \
               that are searched for every packet.",
        helps: "When nf_conntrack_count is above 85 % of the maximum, or drop and insert_failed grow.",
        costs: "About 300 bytes of kernel memory per connection. Exempting the service's port from tracking costs \
                nothing, but is the firewall owner's decision.",
        undone: "The previous values are written back; connections beyond them are kept until they end.",
        sources: "Documentation/networking/nf_conntrack-sysctl.rst (Linux); netdata's alerts at 85 and 95 %.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Command,
        text: "nft add table inet notrack\n\
               nft add chain inet notrack in '{ type filter hook prerouting priority raw; }'\n\
               nft add chain inet notrack out '{ type filter hook output priority raw; }'\n\
               nft add rule inet notrack in udp dport NUMBER notrack\n\
               nft add rule inet notrack out udp sport NUMBER notrack",
    }],
    writes: &[
        Target::File(
            "/proc/sys/net/netfilter/nf_conntrack_max",
            Form::Number {
                least: 1024,
                most: INT,
            },
        ),
        Target::File(
            "/proc/sys/net/netfilter/nf_conntrack_buckets",
            Form::Number {
                least: 1024,
                most: INT,
            },
        ),
    ],
    turn: Turn::Parts {
        names: &["max", "buckets"],
        bare: 1,
    },
    ..COMMON
};

/// `net.dev_weight`
pub(crate) static DEV_WEIGHT: Knob = Knob {
    id: "net.dev_weight",
    summary: "packets per poll of the backlog",
    values: "1 to 1024 packets, such as 64",
    doc: Doc {
        does: "One poll of the backlog (packets from receive steering, loopback, veth without NAPI) takes at most this \
               many packets before the next device's turn.",
        helps: "Rarely; it is listed so that an unusual value is noticed.",
        costs: "Larger makes other devices of the same CPU wait.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux); RHEL 7 network guide 9.3.2.",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/dev_weight",
        Form::Number {
            least: 1,
            most: 1024,
        },
    )],
    ..COMMON
};

/// `net.flow_limit`
pub(crate) static FLOW_LIMIT: Knob = Knob {
    id: "net.flow_limit",
    summary: "CPUs whose backlog drops the largest flow first",
    values: "off, all, or a CPU list such as 0-3",
    doc: Doc {
        does: "Once the backlog of such a CPU is half full, packets of a flow that makes up more than half of the last \
               256 are dropped, so that small flows get through.",
        helps: "When one flow fills a backlog and others lose packets (column 11 of softnet_stat counts).",
        costs: "The large flow loses packets, and it may be the one that matters.",
        undone: "The previous mask is written back.",
        sources: "Documentation/networking/scaling.rst (Linux), section on RPS flow limit.",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/flow_limit_cpu_bitmap",
        Form::Mask,
    )],
    ..COMMON
};

/// `net.gro_normal_batch`
pub(crate) static GRO_NORMAL_BATCH: Knob = Knob {
    id: "net.gro_normal_batch",
    summary: "packets that GRO passes to the stack together",
    values: "1 to 256 packets, such as 8",
    doc: Doc {
        does: "GRO collects this many packets that it could not merge before the stack runs for all of them.",
        helps: "More for throughput of small packets, 1 for latency.",
        costs: "A packet waits for its batch, at most to the end of the poll.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux).",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/gro_normal_batch",
        Form::Number {
            least: 1,
            most: 256,
        },
    )],
    ..COMMON
};

/// `net.neigh_gc`
pub(crate) static NEIGH_GC: Knob = Knob {
    id: "net.neigh_gc",
    summary: "size limits of the IPv4 neighbour table",
    values: "parts such as gc_thresh1=512,gc_thresh2=2048,gc_thresh3=4096",
    doc: Doc {
        does: "Below gc_thresh1 entries stay; above gc_thresh2 for 5 seconds, or above gc_thresh3 at once, the oldest \
               are removed; if none can be removed, new neighbours are refused.",
        helps: "When the kernel logs a neighbour table overflow, or table_fulls of /proc/net/stat/arp_cache grows: \
                large layer 2 networks, many containers.",
        costs: "Kernel memory per entry.",
        undone: "The previous values are written back, in reverse order.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); bpftune's neighbour tuner.",
    },
    writes: &[
        Target::File(
            "/proc/sys/net/ipv4/neigh/default/gc_thresh1",
            Form::Number {
                least: 0,
                most: INT,
            },
        ),
        Target::File(
            "/proc/sys/net/ipv4/neigh/default/gc_thresh2",
            Form::Number {
                least: 1,
                most: INT,
            },
        ),
        Target::File(
            "/proc/sys/net/ipv4/neigh/default/gc_thresh3",
            Form::Number {
                least: 1,
                most: INT,
            },
        ),
    ],
    turn: Turn::Parts {
        names: &["gc_thresh1", "gc_thresh2", "gc_thresh3"],
        bare: 0,
    },
    ..COMMON
};

/// `net.tstamp_prequeue`
pub(crate) static TSTAMP_PREQUEUE: Knob = Knob {
    id: "net.tstamp_prequeue",
    summary: "whether packets get their time stamp before or after receive steering",
    values: "on (before) or off (after)",
    doc: Doc {
        does: "With on, the CPU that polls the device stamps each packet; with off, the CPU to which it was steered.",
        helps: "Off, with receive steering on and time stamps requested (SO_TIMESTAMP, a capture): their cost is \
                spread over the CPUs.",
        costs: "Time stamps that include the time in the backlog.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux).",
    },
    writes: &[Target::File(
        "/proc/sys/net/core/netdev_tstamp_prequeue",
        Form::Switch,
    )],
    ..COMMON
};

/// `net.udp_mem`
pub(crate) static UDP_MEM: Knob = Knob {
    id: "net.udp_mem",
    summary: "memory of all UDP sockets together, in pages",
    values: "three numbers of pages, such as 600000 800000 1200000, or max=1200000",
    doc: Doc {
        does: "Below min there is no limit; above pressure sockets are held to their minimum; above max datagrams are \
               dropped (MemErrors).",
        helps: "When MemErrors of /proc/net/snmp grows, or the UDP line of /proc/net/sockstat nears the second \
                number.",
        costs: "Less memory for programs.",
        undone: "The previous three numbers are written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); bpftune's udp_buffer.",
    },
    writes: &[Target::File("/proc/sys/net/ipv4/udp_mem", Form::Words)],
    turn: Turn::Row(&["min", "pressure", "max"]),
    ..COMMON
};

/// `tcp.mem`
pub(crate) static TCP_MEM: Knob = Knob {
    id: "tcp.mem",
    summary: "memory of all TCP sockets together, in pages",
    values: "three numbers of pages, such as 600000 800000 1200000, or max=1200000",
    doc: Doc {
        does: "Below min there is no limit; above pressure buffers stop growing and windows close; above max sockets \
               wait or are reset.",
        helps: "When TCPMemoryPressures grows, or the TCP line of /proc/net/sockstat nears the second number.",
        costs: "Less memory for programs.",
        undone: "The previous three numbers are written back.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); netdata's alerts at 80 and 90 %.",
    },
    writes: &[Target::File("/proc/sys/net/ipv4/tcp_mem", Form::Words)],
    turn: Turn::Row(&["min", "pressure", "max"]),
    ..COMMON
};
