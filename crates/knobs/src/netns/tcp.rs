//! TCP: buffers, windows, congestion control. Sysctls of one network namespace.
//!
//! They apply to new connections, and some to open ones too; reopen existing connections before you measure.

use std::path::Path;

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Context, Doc, Draft, Knob, PUT_BACK, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::{self, Turn};

const INT: u64 = i32::MAX as u64;

const TCP: Knob = Knob {
    scope: Scope::Netns,
    ..COMMON
};

const IP_SYSCTL: &str = "Documentation/networking/ip-sysctl.rst (Linux).";

/// `tcp.autocorking`
pub(crate) static AUTOCORKING: Knob = Knob {
    id: "tcp.autocorking",
    summary: "holds small writes until the previous packet has left the device",
    values: "on or off",
    doc: Doc {
        does: "A small write is held back while an earlier packet of the connection is still queued below TCP, and \
               merged with the next.",
        helps: "Off, for small writes with latency as the goal, when TCPAutoCorking grows.",
        costs: "Off sends more and smaller packets.",
        undone: PUT_BACK,
        sources: IP_SYSCTL,
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_autocorking",
        Form::Switch,
    )],
    ..TCP
};

/// The congestion controls that are built in or loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// `tcp.congestion`
pub(crate) static CONGESTION: Knob = Knob {
    id: "tcp.congestion",
    risk: Risk::Disruptive,
    summary: "congestion control of new connections",
    values: "a congestion control that the kernel has, such as cubic or bbr",
    doc: Doc {
        does: "It decides how fast a connection sends: cubic by loss, bbr by measured bandwidth and round trip.",
        helps: "bbr on long paths with loss above 0.1 %; cubic where shallow buffers must be shared fairly.",
        costs: "Other flows on the path may get less. bbr paces, which costs CPU per packet, least with the qdisc fq \
                (net.default_qdisc). Writing it may load the module, which stays loaded.",
        undone: "The previous one is written back; connections opened meanwhile keep theirs.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); bpftune picks one per connection.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_congestion_control",
        Form::Word,
    )],
    turn: Turn::Own {
        read: |context| turn::file(&CONGESTION, context),
        draft: draft_congestion,
    },
    ..TCP
};

fn draft_congestion(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let draft = turn::draft_file(&CONGESTION, context, wish)?;
    // Where the kernel does not list its algorithms, it decides at the write.
    let Ok(offered) = context.here.text(Path::new(AVAILABLE)) else {
        return Ok(draft);
    };
    let words: Vec<&str> = offered.split_whitespace().collect();
    if words.contains(&wish) || is_module(context, wish) {
        return Ok(draft);
    }
    let why = format!(
        "{AVAILABLE} offers {}; load it first if it is a module that cannot be seen from here: modprobe tcp_{wish}",
        words.join(", ")
    );
    Err(CONGESTION.bad_wish(wish, why))
}

/// The kernel loads `tcp_NAME` when the name is written (`net/ipv4/tcp_cong.c`, Linux 6.18).
fn is_module(context: &Context<'_>, name: &str) -> bool {
    let list = context
        .machine
        .text(Path::new("/proc/sys/kernel/osrelease"))
        .and_then(|release| {
            let list = format!("/lib/modules/{release}/modules.dep");
            context.machine.text(Path::new(&list))
        });
    let file = format!("/tcp_{name}.ko");
    list.is_ok_and(|list| list.lines().any(|line| line.contains(&file)))
}

/// `tcp.fastopen`
pub(crate) static FASTOPEN: Knob = Knob {
    id: "tcp.fastopen",
    risk: Risk::Disruptive,
    summary: "data in the first packet of a connection",
    values: "a sum of 1 (as client) and 2 (as server), 0 is off; higher bits as in ip-sysctl.rst",
    doc: Doc {
        does: "A client that has connected before sends its request with the SYN and saves a round trip.",
        helps: "Many short connections to the same servers, whose programs request it (TCP_FASTOPEN).",
        costs: "A request may be delivered twice, so it must be harmless when repeated; some middleboxes drop it.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); TuneD's network-latency profile sets 3.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_fastopen",
        Form::Number {
            least: 0,
            most: 0xfff,
        },
    )],
    ..TCP
};

/// `tcp.limit_output`
pub(crate) static LIMIT_OUTPUT: Knob = Knob {
    id: "tcp.limit_output",
    summary: "bytes of one connection that may wait below TCP",
    values: "a size, such as 4MiB",
    doc: Doc {
        does: "TCP stops passing packets down once this much of the connection waits in the qdisc and the device.",
        helps: "Larger, when one connection cannot fill a link of 100 Gbit/s.",
        costs: "Longer queues below TCP, where nothing can overtake.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); 4,194,304 on Linux 6.18, 1 MiB before.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_limit_output_bytes",
        Form::Bytes {
            least: 4096,
            most: INT,
        },
    )],
    ..TCP
};

/// `tcp.moderate_rcvbuf`
pub(crate) static MODERATE_RCVBUF: Knob = Knob {
    id: "tcp.moderate_rcvbuf",
    summary: "receive buffers that grow with the connection",
    values: "on or off",
    doc: Doc {
        does: "The kernel measures how fast the program reads and lets the buffer, and with it the window, grow up \
               to the third number of tcp.rmem.",
        helps: "On, always. A program that sets SO_RCVBUF itself switches it off for that socket, which is the \
                usual reason for a constant small window.",
        costs: "Memory of busy connections.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); a profile of KeenTune that sets 0, as a warning.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_moderate_rcvbuf",
        Form::Switch,
    )],
    ..TCP
};

/// `tcp.mtu_probing`
pub(crate) static MTU_PROBING: Knob = Knob {
    id: "tcp.mtu_probing",
    summary: "finds the path MTU when no router reports oversized packets",
    values: "0 (off), 1 (once a black hole is suspected) or 2 (always)",
    doc: Doc {
        does: "TCP tries smaller segments when full ones vanish, and larger ones later.",
        helps: "1, where large segments are retransmitted again and again, because a hop has a smaller MTU, and \
                clients wait: each new connection stalls for 6.6 s first, with 2 as well (measured, Linux 6.18).",
        costs: "A slower start behind such a hop. The proper fix is the right MTU.",
        undone: PUT_BACK,
        sources: IP_SYSCTL,
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_mtu_probing",
        Form::Number { least: 0, most: 2 },
    )],
    ..TCP
};

/// `tcp.nodelay`
pub(crate) static NODELAY: Knob = Knob {
    id: "tcp.nodelay",
    risk: Risk::Restart,
    settable: Settable::No("it is a socket option, which belongs to the program"),
    summary: "small writes leave at once instead of waiting for an acknowledgement",
    values: "on",
    doc: Doc {
        does: "Without it a small write waits while an earlier one is not acknowledged, and the peer may delay its \
               acknowledgement for 40 ms.",
        helps: "When latencies cluster at 40 or 200 ms: request and reply protocols that write in pieces.",
        costs: "More packets, if the program writes in many small pieces; better to write once.",
        undone: "The program is restarted without it.",
        sources: "tcp(7), option TCP_NODELAY.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::Service,
        text: "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int))\n\
               # Dubbo and netty: childOption(ChannelOption.TCP_NODELAY, true); Java: socket.setTcpNoDelay(true)",
    }],
    turn: Turn::Unseen,
    ..TCP
};

/// `tcp.notsent_lowat`
pub(crate) static NOTSENT_LOWAT: Knob = Knob {
    id: "tcp.notsent_lowat",
    summary: "bytes not yet sent above which a socket is no longer writable",
    values: "a size such as 128KiB; 4294967295B is no limit",
    doc: Doc {
        does: "A program that waits to write keeps waiting while more than this is queued unsent.",
        helps: "Where streams share a connection and urgent ones wait behind megabytes that are already queued.",
        costs: "More wake-ups of the program.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); TuneD uses 131072.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_notsent_lowat",
        Form::Bytes {
            least: 0,
            most: u32::MAX as u64,
        },
    )],
    ..TCP
};

/// `tcp.rmem`
pub(crate) static RMEM: Knob = Knob {
    id: "tcp.rmem",
    summary: "receive buffer of a TCP socket: minimum, initial, maximum",
    values: "three sizes, such as 4096 131072 16MiB, or max=16MiB",
    doc: Doc {
        does: "A socket starts with default and grows to max as the program keeps up (tcp.moderate_rcvbuf). The \
               window that the peer may fill is about half of the buffer.",
        helps: "When peers are limited by this host's window (rwnd limited above 10 % of their busy time) while its \
                receive queues are nearly empty: max at least twice bandwidth times round trip, default at least \
                the largest message where there is no time to grow.",
        costs: "Memory for every connection, and latency: data waits longer in a long queue. It does not help a window \
                limited by a program that does not read.",
        undone: "The previous three numbers are written back; open connections keep their buffers.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); the reference case of congestion: response time \
                  fell up to 4 MiB and no further.",
    },
    writes: &[Target::File("/proc/sys/net/ipv4/tcp_rmem", Form::Words)],
    turn: Turn::Row(&["min", "default", "max"]),
    ..TCP
};

/// `tcp.rto_min`
pub(crate) static RTO_MIN: Knob = Knob {
    id: "tcp.rto_min",
    risk: Risk::Disruptive,
    summary: "shortest time before a segment is retransmitted",
    values: "a time, such as 20ms",
    doc: Doc {
        does: "However short the round trip, a lost last segment is noticed only after this time.",
        helps: "5 to 20 ms inside a data centre, when timeouts occur with round trips below 1 ms.",
        costs: "Needless retransmissions when the peer delays its acknowledgements, by up to 40 ms.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux 6.11 and later); ip-route(8), rto_min, before.",
    },
    by_hand: &[Manual {
        wish: "route",
        way: Way::Command,
        text: "ip route change NETWORK via GATEWAY dev DEVICE rto_min 20ms",
    }],
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_rto_min_us",
        // The kernel takes 1 us to 1 s; below 1 ms nothing but retransmissions was ever seen of it.
        Form::Micros {
            least: 1000,
            most: 1_000_000,
        },
    )],
    ..TCP
};

/// `tcp.sack_ts`
pub(crate) static SACK_TS: Knob = Knob {
    id: "tcp.sack_ts",
    risk: Risk::Disruptive,
    summary: "selective acknowledgements and time stamps, without which loss is expensive",
    values: "on, off, or parts such as sack=on,timestamps=on,dsack=on",
    doc: Doc {
        does: "sack reports to the sender which segments arrived, dsack which arrived twice; timestamps measure the \
               round trip and distinguish old segments from new ones.",
        helps: "On, always; some tuning profiles switch them off.",
        costs: "12 bytes per packet for time stamps, up to 40 for acknowledgements.",
        undone: "The previous values are written back, in reverse order.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); profiles of KeenTune that ship 0, as a warning.",
    },
    writes: &[
        Target::File("/proc/sys/net/ipv4/tcp_sack", Form::Switch),
        Target::File("/proc/sys/net/ipv4/tcp_timestamps", Form::Switch),
        Target::File("/proc/sys/net/ipv4/tcp_dsack", Form::Switch),
    ],
    turn: Turn::Parts {
        names: &["sack", "timestamps", "dsack"],
        bare: 3,
    },
    ..TCP
};

/// `tcp.slow_start_idle`
pub(crate) static SLOW_START_IDLE: Knob = Knob {
    id: "tcp.slow_start_idle",
    summary: "slow start after an idle period",
    values: "on or off",
    doc: Doc {
        does: "After a pause longer than the retransmission timeout the congestion window falls back to 10 segments.",
        helps: "Off, for long-lived connections with bursts between pauses, whose congestion window falls back.",
        costs: "A burst at the old speed into a network that may have changed.",
        undone: PUT_BACK,
        sources: "Documentation/networking/ip-sysctl.rst (Linux); TuneD's network-throughput profile sets 0.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
        Form::Switch,
    )],
    ..TCP
};

/// `tcp.window_scaling`
pub(crate) static WINDOW_SCALING: Knob = Knob {
    id: "tcp.window_scaling",
    risk: Risk::Disruptive,
    summary: "windows above 64 KiB",
    values: "on or off",
    doc: Doc {
        does: "Both ends agree at the start of a connection to count windows in larger units.",
        helps: "On, always: without it no connection moves more than 64 KiB per round trip, whatever its buffers.",
        costs: "Nothing since the turn of the century.",
        undone: "The previous value is written back; connections made meanwhile keep what they agreed on.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); profiles of KeenTune that ship 0, as a warning.",
    },
    writes: &[Target::File(
        "/proc/sys/net/ipv4/tcp_window_scaling",
        Form::Switch,
    )],
    ..TCP
};

/// `tcp.wmem`
pub(crate) static WMEM: Knob = Knob {
    id: "tcp.wmem",
    summary: "send buffer of a TCP socket: minimum, initial, maximum",
    values: "three sizes, such as 4096 16384 16MiB, or max=16MiB",
    doc: Doc {
        does: "A socket starts with default and grows to max with the window; a program that writes more waits.",
        helps: "When sending is limited by the buffer: sndbuf limited above 10 %, or a send queue that stays at the \
                size of the buffer while the peer's window is open. The kernel's own counter misses very small buffers \
                (measured), so check the queue as well.",
        costs: "Memory for every connection; and a slow receiver is noticed later.",
        undone: "The previous three numbers are written back; open connections keep their buffers.",
        sources: "Documentation/networking/ip-sysctl.rst (Linux); the reference case of congestion: 4 MiB gave nearly \
                  the least response time.",
    },
    writes: &[Target::File("/proc/sys/net/ipv4/tcp_wmem", Form::Words)],
    turn: Turn::Row(&["min", "default", "max"]),
    ..TCP
};
