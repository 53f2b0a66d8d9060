//! Protection that costs time. None of it is weakened unless you name it; most of it is only shown.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `net.nft_rules`
pub(crate) static NFT_RULES: Knob = Knob {
    id: "net.nft_rules",
    risk: Risk::Disruptive,
    settable: Settable::No(
        "rules belong to the firewall's owner; rungwise reads them and never writes them",
    ),
    summary: "the order and shape of firewall rules",
    values: "sets, or order",
    doc: Doc {
        does: "Rules of a chain are tried one after the other for every packet until one decides.",
        helps: "When nft_do_chain or ipt_do_table takes above 3 % of samples: a set or map decides in one step what a \
                hundred rules decide in fifty, and rules for frequent packets belong first.",
        costs: "Work for the owner, and a firewall that must be tested again.",
        undone: "The owner loads the previous rules.",
        sources: "nft(8), sections on sets, maps and flow tables.",
    },
    by_hand: &[
        Manual {
            wish: "sets",
            way: Way::Command,
            text: "nft add set inet TABLE ports '{ type inet_service; elements = { 80, 443 }; }'\n\
                   nft add rule inet TABLE input tcp dport @ports accept",
        },
        Manual {
            wish: "order",
            way: Way::Command,
            text: "nft insert rule inet TABLE input ct state established,related accept",
        },
    ],
    turn: Turn::Unseen,
    ..COMMON
};

/// `sec.seccomp_bpf_jit`
pub(crate) static BPF_JIT: Knob = Knob {
    id: "sec.seccomp_bpf_jit",
    risk: Risk::Disruptive,
    summary: "compiles BPF filters, seccomp's included, instead of interpreting them",
    values: "0 (off), 1 (on) or 2 (on, with traces; for debugging)",
    doc: Doc {
        does: "Filters loaded from then on are compiled to machine code. Seccomp runs its filter at every system \
               call of a container.",
        helps: "On, where __seccomp_filter takes above 3 % of samples. A shorter profile of the container helps as \
                well: docker run --security-opt seccomp=PROFILE.",
        costs: "Compiled filters have been used to attack the kernel; bpf_jit_harden mitigates that and costs speed. \
                Many kernels are built to accept only 1.",
        undone: "The previous value is written back; filters loaded meanwhile are unchanged.",
        sources: "Documentation/admin-guide/sysctl/net.rst (Linux).",
    },
    by_hand: &[Manual {
        wish: "profile",
        way: Way::Service,
        text: "docker run --security-opt seccomp=PROFILE.json",
    }],
    writes: &[Target::File(
        "/proc/sys/net/core/bpf_jit_enable",
        Form::Number { least: 0, most: 2 },
    )],
    ..COMMON
};

/// `sec.selinux_avc`
pub(crate) static SELINUX_AVC: Knob = Knob {
    id: "sec.selinux_avc",
    risk: Risk::Disruptive,
    summary: "size of SELinux's decision cache",
    values: "a number of entries, such as 8192",
    doc: Doc {
        does: "A decision that is not in the cache is computed from the policy.",
        helps: "When misses in /sys/fs/selinux/avc/cache_stats grow and avc_lookup or slow_avc_audit are hot. The \
                policy itself is not touched.",
        costs: "Kernel memory, and longer chains where the table of 512 buckets is small.",
        undone: PUT_BACK,
        sources: "TuneD's network-latency profile (8192); security/selinux/avc.c (Linux 6.18).",
    },
    writes: &[Target::File(
        "/sys/fs/selinux/avc/cache_threshold",
        Form::Number {
            least: 16,
            most: 1 << 20,
        },
    )],
    ..COMMON
};
