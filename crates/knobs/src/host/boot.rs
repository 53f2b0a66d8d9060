//! Parameters of the kernel command line: decided at boot, so they are planned and exported, never set.
//!
//! Current values are read from `/proc/cmdline`: what was passed to the kernel, not what it chose by itself.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Settable};
use crate::turn::Turn;

const NEXT_BOOT: &str =
    "the kernel reads it once, at boot; `rungwise knob export --as cmdline` writes the parameters";
const BACK_AT_BOOT: &str =
    "The parameter is removed from the command line and the machine is rebooted.";

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
        does: "audit=0 keeps audit off for the whole boot; anything that switches it on later, even for a moment, \
               slows every system call until the next one.",
        helps: "Services with many small system calls, when audit functions take above 1.5 % of CPU and no rule is \
                needed.",
        costs: "The audit trail; compliance may require it. The owner decides.",
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
        helps: "When wake-ups dominate latency at low load: deep states used much, p99 far above p50.",
        costs: "Power and heat, and less room for turbo. cpu.dma_latency does the same without a reboot.",
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
    summary: "huge pages reserved at boot, before memory fragments",
    values: "a number of 2 MiB pages, such as 2048",
    doc: Doc {
        does: "The kernel reserves the pages before anything else runs, so that it finds all of them.",
        helps: "When mem.hugetlb gets fewer than requested because memory is fragmented.",
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
    summary: "the host's devices use untranslated memory addresses",
    values: "on",
    doc: Doc {
        does: "The IOMMU passes the host's own devices through and translates only those given to guests.",
        helps: "When mapping and unmapping of buffers takes above 3 % of samples.",
        costs: "A device, or anyone who controls it, can access all of memory.",
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
    summary: "CPUs reserved for pinned threads",
    values: "a CPU list, such as 2-7",
    doc: Doc {
        does: "Only pinned threads are scheduled on them; no tick while a single thread runs; RCU callbacks run \
               elsewhere; interrupts that the kernel places stay away.",
        helps: "When the longest delays of pinned threads coincide with ticks, kernel workers or RCU.",
        costs: "The CPUs are unavailable to everything else, and a service that is not pinned gets none of them.",
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
    summary: "mitigations of CPU vulnerabilities",
    values: "off or auto",
    doc: Doc {
        does: "The kernel flushes buffers and restricts speculation at every entry, as the CPU requires.",
        helps: "off, where above 200,000 system calls/s per CPU spend above 5 % in entry code, on a machine with one \
                trusted tenant.",
        costs: "Any program, even in a browser or a container, may read the memory of all others. Never without the \
                owner's consent.",
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
        helps: "When idle CPUs still take hundreds of timer interrupts per second; distributions enable it.",
        costs: "Slightly longer wake-up latency.",
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
        costs: "The barrier between a compromised service and the rest of the machine; a finding for every security \
                audit. permissive only logs and saves no time. Never without the owner's consent.",
        undone: "The parameter is removed and the machine is rebooted; files created meanwhile must be relabelled \
                 (touch /.autorelabel).",
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
    summary: "staggers the CPUs' timer ticks",
    values: "on",
    doc: Doc {
        does: "Each CPU's tick is shifted slightly, so that the ticks do not contend for the same locks; the TSC is \
               assumed to be reliable, and RCU expedites no grace periods after boot.",
        helps: "When many CPUs show delays at the same instants in p99.9.",
        costs: "Slightly more power. tsc=reliable gives wrong times on a machine whose TSC is not reliable.",
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
