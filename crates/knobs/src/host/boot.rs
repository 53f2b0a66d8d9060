//! Parameters of the kernel command line: decided at boot, so they are planned and exported, never set.
//!
//! How each stands is read from `/proc/cmdline`: what the kernel was told, not what it chose by itself.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Settable};
use crate::turn::Turn;

const NEXT_BOOT: &str =
    "the kernel reads it once, at boot; `rungwise knob export --as cmdline` writes the parameters";
const BACK_AT_BOOT: &str =
    "The parameter is taken from the command line again and the machine is started again.";

const BOOT: Knob = Knob {
    risk: Risk::Reboot,
    settable: Settable::No(NEXT_BOOT),
    turn: Turn::Boot,
    ..COMMON
};

/// `cmdline.audit`
pub(crate) static AUDIT: Knob = Knob {
    id: "cmdline.audit",
    summary: "audit of system calls, from the first process on",
    values: "off or on",
    doc: Doc {
        does: "audit=0 keeps audit off for the whole boot; whatever switches it on later, even for a moment, slows \
               every system call until the next one.",
        helps: "Services of many small system calls, where audit functions show above 1.5 % of CPU and no rule is \
                wanted.",
        costs: "The audit trail; compliance may demand it. The owner decides.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/kernel-parameters.txt (Linux); the reference case: 5,490 k to 5,860 k \
                  transactions/s.",
    },
    by_hand: &[
        Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "audit=0",
        },
        Manual {
            wish: "on",
            way: Way::CommandLine,
            text: "audit=1",
        },
    ],
    ..BOOT
};

/// `cmdline.cstate`
pub(crate) static CSTATE: Knob = Knob {
    id: "cmdline.cstate",
    summary: "deepest idle state that CPUs may enter",
    values: "a number, such as 1, or haltpoll in a guest",
    doc: Doc {
        does: "Deeper states save more power and take longer to leave, from below 1 us to above 100 us.",
        helps: "When latency at low load is dominated by waking up: deep states used much, p99 far above p50.",
        costs: "Power and heat, and less room for turbo. cpu.dma_latency does it without a reboot.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/pm/cpuidle.rst (Linux); TuneD's latency-performance caps at state 1; \
                  A-Tune hints at haltpoll.",
    },
    by_hand: &[
        Manual {
            wish: "NUMBER",
            way: Way::CommandLine,
            text: "intel_idle.max_cstate=NUMBER processor.max_cstate=NUMBER",
        },
        Manual {
            wish: "haltpoll",
            way: Way::CommandLine,
            text: "cpuidle_haltpoll.force=Y",
        },
    ],
    ..BOOT
};

/// `cmdline.hugepages`
pub(crate) static HUGEPAGES: Knob = Knob {
    id: "cmdline.hugepages",
    summary: "huge pages set aside at boot, while memory is whole",
    values: "a number of 2 MiB pages, such as 2048",
    doc: Doc {
        does: "The pages are taken before anything else runs, so that none is missed.",
        helps: "When mem.hugetlb finds fewer than asked because memory is in pieces.",
        costs: "The memory is unavailable to programs without huge pages.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/mm/hugetlbpage.rst (Linux).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::CommandLine,
        text: "default_hugepagesz=2M hugepagesz=2M hugepages=NUMBER",
    }],
    ..BOOT
};

/// `cmdline.iommu_pt`
pub(crate) static IOMMU_PT: Knob = Knob {
    id: "cmdline.iommu_pt",
    summary: "devices of the host use memory addresses untranslated",
    values: "on",
    doc: Doc {
        does: "The IOMMU passes the host's own devices through and translates only those given to guests.",
        helps: "When mapping and unmapping of buffers takes above 3 % of samples.",
        costs: "A device, or who controls it, can reach all of memory.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/kernel-parameters.txt (Linux), iommu and iommu.passthrough.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::CommandLine,
        text: "iommu=pt iommu.passthrough=1",
    }],
    ..BOOT
};

/// `cmdline.isolation`
pub(crate) static ISOLATION: Knob = Knob {
    id: "cmdline.isolation",
    summary: "CPUs that belong to pinned threads alone",
    values: "a CPU list, such as 2-7",
    doc: Doc {
        does: "Nothing is scheduled on them but what is pinned there; no tick while one thread runs; RCU's work is \
               done elsewhere; interrupts that the kernel places stay away.",
        helps: "When the longest delays of pinned threads coincide with ticks, kernel workers or RCU.",
        costs: "The CPUs are lost to everything else, and a service that is not pinned gets none of them.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/kernel-parameters.txt (Linux); TuneD's cpu-partitioning profile.",
    },
    by_hand: &[Manual {
        wish: "CPUS",
        way: Way::CommandLine,
        text: "isolcpus=managed_irq,domain,CPUS nohz_full=CPUS rcu_nocbs=CPUS",
    }],
    ..BOOT
};

/// `cmdline.mitigations`
pub(crate) static MITIGATIONS: Knob = Knob {
    id: "cmdline.mitigations",
    summary: "protection against leaks between programs through the CPU",
    values: "off or auto",
    doc: Doc {
        does: "The kernel flushes buffers and restrains speculation at every entry, as the CPU needs it.",
        helps: "off, where above 200,000 system calls/s per CPU spend above 5 % in entry code, on a machine with one \
                trusted tenant.",
        costs: "Every program, also one in a browser or a container, may read the memory of all others. Never \
                without the owner's word.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/hw-vuln (Linux). No figure: it depends on the CPU; measure.",
    },
    by_hand: &[
        Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "mitigations=off",
        },
        Manual {
            wish: "auto",
            way: Way::CommandLine,
            text: "mitigations=auto",
        },
    ],
    ..BOOT
};

/// `cmdline.nohz`
pub(crate) static NOHZ: Knob = Knob {
    id: "cmdline.nohz",
    summary: "no timer tick on idle CPUs",
    values: "on or off",
    doc: Doc {
        does: "An idle CPU is not woken for unneeded ticks.",
        helps: "When idle CPUs still take hundreds of timer interrupts per second; distributions have it on.",
        costs: "A little latency at waking up.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/timers/no_hz.rst (Linux).",
    },
    by_hand: &[
        Manual {
            wish: "on",
            way: Way::CommandLine,
            text: "nohz=on",
        },
        Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "nohz=off",
        },
    ],
    ..BOOT
};

/// `cmdline.selinux`
pub(crate) static SELINUX: Knob = Knob {
    id: "cmdline.selinux",
    summary: "mandatory access control by SELinux",
    values: "off, or permissive",
    doc: Doc {
        does: "Every access to a file, socket or process is checked against a policy.",
        helps: "off, where avc_has_perm and selinux_* take above 3 % of samples; try sec.selinux_avc first.",
        costs: "A fence between a service that is broken into and the rest of the machine; a finding for every \
                audit. permissive only logs and saves no time. Never without the owner's word.",
        undone: "The parameter is taken away and the machine started again; files made meanwhile must be \
                 relabelled (touch /.autorelabel).",
        sources: "Documentation/admin-guide/LSM/SELinux.rst (Linux); the reference case of the bank saw no effect.",
    },
    by_hand: &[
        Manual {
            wish: "off",
            way: Way::CommandLine,
            text: "selinux=0",
        },
        Manual {
            wish: "permissive",
            way: Way::CommandLine,
            text: "enforcing=0",
        },
    ],
    ..BOOT
};

/// `cmdline.skew_tick`
pub(crate) static SKEW_TICK: Knob = Knob {
    id: "cmdline.skew_tick",
    summary: "ticks of the CPUs one after the other instead of all at once",
    values: "on",
    doc: Doc {
        does: "Each CPU's tick is moved a little, so that they do not meet at the same locks; the clock is taken for \
               reliable, and RCU is patient once the boot is over.",
        helps: "When many CPUs show delays at the same instants in p99.9.",
        costs: "Slightly more power. tsc=reliable on a machine whose clock is not gives wrong times.",
        undone: BACK_AT_BOOT,
        sources: "Documentation/admin-guide/kernel-parameters.txt (Linux); part of TuneD's network-latency profile.",
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::CommandLine,
        text: "skew_tick=1 tsc=reliable rcupdate.rcu_normal_after_boot=1",
    }],
    ..BOOT
};
