//! CPUs: frequency, timers, the scheduler.
//!
//! Plain files of the whole machine. Under kernel lockdown debugfs refuses, and a guest or a machine whose firmware
//! fixes the frequency has no cpufreq folder: both are reported, neither is an error of rungwise.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `cpu.autogroup`
pub(crate) static AUTOGROUP: Knob = Knob {
    id: "cpu.autogroup",
    summary: "one CPU share per session, meant for desktops",
    values: "on or off",
    doc: Doc {
        does: "Threads of one session (setsid) share one scheduling group; nice values count within it only.",
        helps: "Off, when a service started from a login session competes with daemons in their own sessions and gets \
                one share among many.",
        costs: "None worth mentioning on a server.",
        undone: PUT_BACK,
        sources: "sched(7), section on autogroup; part of TuneD's postgresql profile.",
    },
    writes: &[Target::File(
        "/proc/sys/kernel/sched_autogroup_enabled",
        Form::Switch,
    )],
    ..COMMON
};

/// `cpu.dma_latency`
pub(crate) static DMA_LATENCY: Knob = Knob {
    id: "cpu.dma_latency",
    summary: "longest time that a CPU may take to wake up",
    values: "a time such as 100us; 0us keeps CPUs awake, off removes the limit",
    doc: Doc {
        does: "The kernel picks no idle state that takes longer to leave. The limit is set for each CPU, so no process \
               has to keep /dev/cpu_dma_latency open; the smaller of the two applies.",
        helps: "When wake-ups from deep idle states dominate latency at low load.",
        costs: "Power and heat, and less room for turbo on the other cores; with 0us every idle CPU spins. No effect \
                where the hypervisor or the firmware chooses the states.",
        undone: "The previous limit of every CPU is written back.",
        sources: "Documentation/admin-guide/pm/cpuidle.rst, drivers/cpuidle/governor.c and drivers/base/power/sysfs.c (Linux \
                  6.18); TuneD's force_latency holds the device instead.",
    },
    writes: &[Target::File(
        // The same folders as below /sys/devices/system/cpu, and nothing else.
        "/sys/bus/cpu/devices/cpu*/power/pm_qos_resume_latency_us",
        Form::WakeUp,
    )],
    ..COMMON
};

/// `cpu.epp`
pub(crate) static EPP: Knob = Knob {
    id: "cpu.epp",
    summary: "preference of the CPU's own frequency control: performance or power",
    values: "performance, balance_performance, balance_power, power or default",
    doc: Doc {
        does: "With intel_pstate or amd-pstate in active mode the CPU chooses its frequency itself; this sets how \
               eagerly it raises it.",
        helps: "When busy CPUs stay below their highest frequency although the governor is performance.",
        costs: "Power and heat, at every load.",
        undone: "The previous preference of every frequency policy is written back.",
        sources: "Documentation/admin-guide/pm/intel_pstate.rst (Linux); PerfSpect and TuneD set performance.",
    },
    writes: &[Target::File(
        "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
        Form::Word,
    )],
    ..COMMON
};

/// `cpu.governor`
pub(crate) static GOVERNOR: Knob = Knob {
    id: "cpu.governor",
    summary: "governor that picks the CPU frequency",
    values: "the name of a governor, such as performance, schedutil or powersave",
    doc: Doc {
        does: "The governor picks each policy's frequency between its bounds: performance stays at the top, \
               schedutil follows the load.",
        helps: "When busy CPUs run below 95 % of their highest frequency.",
        costs: "Power and heat. No effect where the firmware fixes the frequency; missing there and in most guests.",
        undone: "The previous governor of every frequency policy is written back.",
        sources: "Documentation/admin-guide/pm/cpufreq.rst (Linux); PerfSpect's power insight.",
    },
    by_hand: &[Manual {
        wish: "performance",
        way: Way::Firmware,
        text: "Power Policy: Performance",
    }],
    writes: &[Target::File(
        "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
        Form::Word,
    )],
    ..COMMON
};

/// `cpu.nmi_watchdog`
pub(crate) static NMI_WATCHDOG: Knob = Knob {
    id: "cpu.nmi_watchdog",
    summary: "hardware-counter watchdog for CPUs stuck in the kernel",
    values: "on or off",
    doc: Doc {
        does: "Each CPU keeps one hardware counter running, whose interrupt notices a CPU that no longer takes \
               timer interrupts.",
        helps: "Off frees the counter for profiling and saves an interrupt per CPU every few seconds.",
        costs: "Hard lockups are no longer detected.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/lockup-watchdogs.rst (Linux); PerfSpect recommends off.",
    },
    writes: &[Target::File("/proc/sys/kernel/nmi_watchdog", Form::Switch)],
    ..COMMON
};

/// `cpu.sched_slice`
pub(crate) static SCHED_SLICE: Knob = Knob {
    id: "cpu.sched_slice",
    risk: Risk::Disruptive,
    summary: "how long the fair scheduler lets a thread run, and how readily it moves threads",
    values: "parts such as base_slice_ns=3000000,migration_cost_ns=500000,nr_migrate=32",
    doc: Doc {
        does: "base_slice_ns is the time that a thread may run before another's turn; a thread that ran within \
               migration_cost_ns counts as cache-hot and is not moved; nr_migrate limits one round of balancing.",
        helps: "Rarely: TuneD removed its own values after benchmarking them. Only with a measured gain.",
        costs: "Longer slices make others wait; every process of the machine is affected.",
        undone: "The previous values are written back, in reverse order.",
        sources: "kernel/sched/debug.c (Linux 6.18: debugfs, sysctl before 5.13); TuneD pull requests 365 and 376.",
    },
    writes: &[
        Target::File(
            "/sys/kernel/debug/sched/base_slice_ns",
            // kernel/sched/debug.c takes 100 us to 1 s.
            Form::Number {
                least: 100_000,
                most: 1_000_000_000,
            },
        ),
        Target::File(
            "/sys/kernel/debug/sched/migration_cost_ns",
            Form::Number {
                least: 0,
                most: u32::MAX as u64,
            },
        ),
        Target::File(
            "/sys/kernel/debug/sched/nr_migrate",
            Form::Number {
                least: 1,
                most: 1024,
            },
        ),
    ],
    turn: Turn::Parts {
        names: &["base_slice_ns", "migration_cost_ns", "nr_migrate"],
        bare: 0,
    },
    ..COMMON
};

/// `cpu.stat_interval`
pub(crate) static STAT_INTERVAL: Knob = Knob {
    id: "cpu.stat_interval",
    summary: "interval at which each CPU's memory counters are summed up",
    values: "1 to 3600 seconds, such as 10",
    doc: Doc {
        does: "At this interval a kernel worker on each CPU adds its memory counters to the global ones.",
        helps: "When that worker (vmstat_update) appears among the longest delays of a latency-critical thread.",
        costs: "/proc/vmstat and memory pressure lag behind.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux); part of TuneD's network-latency profile.",
    },
    writes: &[Target::File(
        "/proc/sys/vm/stat_interval",
        Form::Number {
            least: 1,
            most: 3600,
        },
    )],
    ..COMMON
};

/// `cpu.timer_migration`
pub(crate) static TIMER_MIGRATION: Knob = Knob {
    id: "cpu.timer_migration",
    summary: "whether timers of idle CPUs move to busy ones",
    values: "on or off",
    doc: Doc {
        does: "A timer armed on an idle CPU is handed to a busy one, so that the idle one can stay asleep.",
        helps: "Off, when other threads' timer interrupts land on CPUs with pinned, hot threads.",
        costs: "Power: idle CPUs wake up for their own timers.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/kernel.rst (Linux); part of TuneD's network-latency profile.",
    },
    writes: &[Target::File(
        "/proc/sys/kernel/timer_migration",
        Form::Switch,
    )],
    ..COMMON
};
