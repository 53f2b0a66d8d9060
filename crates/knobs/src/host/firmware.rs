//! Settings of firmware and hardware. Their names are those of the reference machine's BIOS (Kunpeng 920) and differ
//! between vendors.

use crate::Result;
use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Context, Current, Doc, Knob, Risk, Settable};
use crate::turn::Turn;

const SETUP: &str = "it is a firmware setting; change it in the firmware setup at the next maintenance, then measure \
                     again";
const PURCHASE: &str = "it is hardware; plan it with the purchase";
const BACK_IN_SETUP: &str = "The previous setting is restored in the firmware setup.";
const REFERENCE: &str = "The reference case of the bank (Kunpeng 920), table of BIOS settings; it gives the direction \
                         but no figure.";

const FIRMWARE: Knob = Knob {
    risk: Risk::Reboot,
    settable: Settable::No(SETUP),
    turn: Turn::Unseen,
    ..COMMON
};

/// `bios.dimm_population`
pub(crate) static DIMM_POPULATION: Knob = Knob {
    id: "bios.dimm_population",
    settable: Settable::No(PURCHASE),
    summary: "one identical memory module in every channel",
    values: "all",
    doc: Doc {
        does: "Only channels in use contribute bandwidth; a second module on a channel lowers its clock.",
        helps: "When channels are empty and memory bandwidth is the limit.",
        costs: "A purchase and downtime.",
        undone: "The previous modules are put back.",
        sources: "Kunpeng 920: 2933 MT/s with one module per channel, 2666 MT/s with two; PerfSpect's insight.",
    },
    by_hand: &[
        Manual {
            wish: "all",
            way: Way::Command,
            text: "dmidecode -t 17 | grep -E 'Locator|Size|Rank|Speed'",
        },
        Manual {
            wish: "all",
            way: Way::Hardware,
            text: "one module in every memory channel of every socket, same size, rank and speed",
        },
    ],
    ..FIRMWARE
};

/// `bios.memory_refresh`
pub(crate) static MEMORY_REFRESH: Knob = Knob {
    id: "bios.memory_refresh",
    summary: "how often memory is refreshed",
    values: "auto",
    doc: Doc {
        does: "Auto refreshes every 64 ms up to 85 C and every 32 ms above; a refresh blocks its bank.",
        helps: "When memory latency is the limit and the firmware is known to force 32 ms.",
        costs: "A forced slow rate risks bit errors at high temperature: choose only Auto.",
        undone: BACK_IN_SETUP,
        sources: REFERENCE,
    },
    by_hand: &[Manual {
        wish: "auto",
        way: Way::Firmware,
        text: "Advanced > Memory Config > Custom Refresh Rate: Auto",
    }],
    ..FIRMWARE
};

/// `bios.nic_queues`
pub(crate) static NIC_QUEUES: Knob = Knob {
    id: "bios.nic_queues",
    settable: Settable::No(PURCHASE),
    summary: "a network card whose RSS table reaches as many queues as CPUs",
    values: "replace",
    doc: Doc {
        does: "The hash of receive side scaling selects an entry of a table; queues that the table cannot name get no \
               packets, however many queues the card has.",
        helps: "When receive steering is already in use and softirqs are still the limit.",
        costs: "A purchase and an installation.",
        undone: "The previous card is put back.",
        sources: "The reference case: 64 queues of an 82599, of which 16 can be reached.",
    },
    by_hand: &[
        Manual {
            wish: "replace",
            way: Way::Command,
            text: "ethtool -l DEVICE; ethtool -x DEVICE",
        },
        Manual {
            wish: "replace",
            way: Way::Hardware,
            text: "a network card with at least as many receive queues in its RSS table as the machine has CPUs",
        },
    ],
    ..FIRMWARE
};

/// `bios.numa`
pub(crate) static NUMA: Knob = Knob {
    id: "bios.numa",
    summary: "whether the firmware reports which memory is near which CPUs",
    values: "on",
    doc: Doc {
        does: "Without it, addresses are interleaved over the sockets and the kernel sees one node.",
        helps: "When the machine has several sockets and the system reports one node.",
        costs: "A single process that spans all sockets may then need interleaving (numa.interleave).",
        undone: BACK_IN_SETUP,
        sources: REFERENCE,
    },
    by_hand: &[Manual {
        wish: "on",
        way: Way::Firmware,
        text: "Advanced > Memory Config > NUMA: Enabled",
    }],
    turn: Turn::Shown(nodes),
    ..FIRMWARE
};

/// `bios.power_policy`
pub(crate) static POWER_POLICY: Knob = Knob {
    id: "bios.power_policy",
    summary: "firmware power policy: performance or efficiency",
    values: "performance",
    doc: Doc {
        does: "With Performance the CPUs stay at their nominal frequency; the system may then have no cpufreq at all.",
        helps: "When busy CPUs run below 95 % of their nominal frequency and cpu.governor cannot help.",
        costs: "Power and heat, at every load.",
        undone: BACK_IN_SETUP,
        sources: REFERENCE,
    },
    by_hand: &[Manual {
        wish: "performance",
        way: Way::Firmware,
        text: "Advanced > Performance Config > Power Policy: Performance",
    }],
    ..FIRMWARE
};

/// `bios.prefetch`
pub(crate) static PREFETCH: Knob = Knob {
    id: "bios.prefetch",
    summary: "whether the CPU prefetches memory",
    values: "on, or off",
    doc: Doc {
        does: "The CPU predicts the next cache lines from the last ones.",
        helps: "On for sequential access; off for random access, where most prefetched data is never used.",
        costs: "The effect can go either way; measure both.",
        undone: BACK_IN_SETUP,
        sources: "The reference case of the bank; A-Tune proposes it above 10 % of memory bandwidth.",
    },
    by_hand: &[
        Manual {
            wish: "on",
            way: Way::Firmware,
            text: "Advanced > MISC Config > CPU Prefetching Configuration: Enabled",
        },
        Manual {
            wish: "off",
            way: Way::Firmware,
            text: "Advanced > MISC Config > CPU Prefetching Configuration: Disabled",
        },
    ],
    ..FIRMWARE
};

/// `bios.smmu`
pub(crate) static SMMU: Knob = Knob {
    id: "bios.smmu",
    summary: "translation of the addresses that devices use (SMMU, VT-d, AMD-Vi)",
    values: "off on bare metal, on where devices are passed to guests",
    doc: Doc {
        does: "Every buffer is mapped before a device uses it and unmapped after.",
        helps: "Off, on bare metal with small packets, when mapping (arm_smmu_*, iommu_*) takes above 3 % of samples; \
                cmdline.iommu_pt is the milder option.",
        costs: "Devices may then write anywhere, and none can be passed to a guest. Some RAID cards start only \
                with it off, none only with it on.",
        undone: BACK_IN_SETUP,
        sources: REFERENCE,
    },
    by_hand: &[
        Manual {
            wish: "off",
            way: Way::Firmware,
            text: "Advanced > MISC Config > Support Smmu: Disabled (x86: VT-d or AMD IOMMU)",
        },
        Manual {
            wish: "on",
            way: Way::Firmware,
            text: "Advanced > MISC Config > Support Smmu: Enabled (x86: VT-d or AMD IOMMU)",
        },
    ],
    ..FIRMWARE
};

/// `bios.stream_write`
pub(crate) static STREAM_WRITE: Knob = Knob {
    id: "bios.stream_write",
    summary: "whether streaming writes go through the last level cache",
    values: "allocate",
    doc: Doc {
        does: "With Allocate LLC a stream of writes goes to the shared cache, not straight to memory.",
        helps: "Databases and storage that soon read what they wrote.",
        costs: "It evicts cached data of latency-critical neighbours.",
        undone: BACK_IN_SETUP,
        sources: REFERENCE,
    },
    by_hand: &[Manual {
        wish: "allocate",
        way: Way::Firmware,
        text: "Advanced > Performance Config > Stream Write Mode: Allocate LLC",
    }],
    ..FIRMWARE
};

/// Nodes that the system sees.
fn nodes(context: &Context<'_>) -> Result<Current> {
    let reading = context.read_machine(&NUMA, "/sys/devices/system/node/online")?;
    let one = reading.value == "0";
    let value = if one { "one node" } else { "on" };
    Ok(Current::known(value, vec![reading]))
}
