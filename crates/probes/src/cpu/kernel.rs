//! The kernel: its release, its command line, its clock, isolated CPUs, expensive mitigations.
//!
//! Source: drivers/base/cpu.c, arch/x86/kernel/cpu/bugs.c, arch/arm64/kernel/proton-pack.c, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::setting;
use crate::{Cost, Probe, Source, Window};

const CMDLINE: &str = "/proc/cmdline";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities/*";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "kernel",
    summary: "kernel release, command line, clocksource, isolated CPUs, mitigations that slow every system call",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once(CMDLINE),
        Source::once(RELEASE),
        Source::once(ISOLATED),
        Source::once(CLOCK),
        Source::once(CLOCKS),
        Source::once(VULNERABILITIES),
    ],
    yields: &[
        &keys::KERNEL_CLOCKSOURCE,
        &keys::KERNEL_CLOCKSOURCES,
        &keys::KERNEL_CMDLINE,
        &keys::KERNEL_ISOLATED,
        &keys::KERNEL_MITIGATIONS,
        &keys::KERNEL_RELEASE,
    ],
    derive,
    doc: "\
Only mitigations count that act on every entry to or exit from the kernel, or on every indirect call or return in it: \
page-table isolation, buffer clearing, return thunks, retpolines, IBRS and the loops against branch history injection. \
Enhanced and automatic IBRS, barriers at context switches and mitigations for guests only are excluded. A guest shows \
its own mitigations, not those of its host. Sources: arch/x86/kernel/cpu/bugs.c, arch/arm64/kernel/proton-pack.c of \
Linux 6.18; Documentation/admin-guide/hw-vuln/.",
};

/// Vulnerabilities, and the words of their mitigations that slow every system call.
static COSTLY: &[(&str, &[&str])] = &[
    ("indirect_target_selection", &["thunks", "Stuffing"]),
    ("mds", &["Clear"]),
    ("meltdown", &["PTI"]),
    ("mmio_stale_data", &["Clear"]),
    ("reg_file_data_sampling", &["Clear"]),
    ("retbleed", &["thunk", "Stuffing", "IBPB", "IBRS"]),
    ("spec_rstack_overflow", &["Safe RET", "IBPB"]),
    // `BHB` is the branch history loop of arm64, `SW loop` that of x86.
    (
        "spectre_v2",
        &["etpoline", "LFENCE", "IBRS", "BHB", "BHI: SW loop"],
    ),
    ("tsa", &["Clear"]),
    ("tsx_async_abort", &["Clear"]),
];

/// Phrases that contain those words but cost nothing at a system call.
static CHEAP: &[&str] = &[
    "Enhanced IBRS",
    "Enhanced / Automatic IBRS",
    "IBRS_FW",
    "IBPB: ",
    "IBPB on VMEXIT only",
    "PBRSB-eIBRS",
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (key, path) in [
        (&keys::KERNEL_CLOCKSOURCE, CLOCK),
        (&keys::KERNEL_CLOCKSOURCES, CLOCKS),
        (&keys::KERNEL_CMDLINE, CMDLINE),
        (&keys::KERNEL_ISOLATED, ISOLATED),
        (&keys::KERNEL_RELEASE, RELEASE),
    ] {
        setting(window, evidence, key, path);
    }
    let mut read = false;
    let mut costly = Vec::new();
    for (path, stars) in window.matching(VULNERABILITIES) {
        let (Ok(text), Some(name)) = (window.text(path), stars.first()) else {
            continue;
        };
        read = true;
        costly.extend(cost(name, text).map(|part| format!("{name}: {part}")));
    }
    if read {
        let text = costly.join(", ");
        let origin = Origin::new(VULNERABILITIES, text.clone());
        evidence.text(&keys::KERNEL_MITIGATIONS, Subject::host(), text, origin);
    } else {
        let why = Absence::because("this kernel does not list its mitigations");
        evidence.absent(&[&keys::KERNEL_MITIGATIONS], &why, VULNERABILITIES);
    }
}

/// The part of a mitigation that slows every system call: `Mitigation: Retpolines; IBPB: conditional` has one.
fn cost<'a>(vulnerability: &str, text: &'a str) -> Option<&'a str> {
    let mitigation = text.trim().strip_prefix("Mitigation: ")?;
    let (_, words) = COSTLY.iter().find(|(name, _)| *name == vulnerability)?;
    let costs = |part: &str| {
        let mut left = part.to_owned();
        for cheap in CHEAP {
            left = left.replace(cheap, "");
        }
        words.iter().any(|word| left.contains(word))
    };
    mitigation
        .split(';')
        .map(str::trim)
        .find(|part| costs(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_acts_at_each_entry_counts() {
        for (name, text, expected) in [
            ("meltdown", "Mitigation: PTI\n", Some("PTI")),
            ("meltdown", "Not affected\n", None),
            (
                "mds",
                "Mitigation: Clear CPU buffers; SMT vulnerable",
                Some("Clear CPU buffers"),
            ),
            (
                "spectre_v2",
                "Mitigation: Retpolines; IBPB: conditional; IBRS_FW; STIBP: disabled",
                Some("Retpolines"),
            ),
            (
                "spectre_v2",
                "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: SW sequence; BHI: SW loop, KVM: SW loop",
                Some("BHI: SW loop, KVM: SW loop"),
            ),
            (
                "spectre_v2",
                "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; BHI: BHI_DIS_S",
                None,
            ),
            ("spectre_v2", "Mitigation: CSV2, BHB", Some("CSV2, BHB")),
            (
                "spec_rstack_overflow",
                "Mitigation: IBPB on VMEXIT only",
                None,
            ),
            (
                "spec_rstack_overflow",
                "Vulnerable: Safe RET, no microcode",
                None,
            ),
            (
                "retbleed",
                "Mitigation: untrained return thunk; SMT enabled with STIBP protection",
                Some("untrained return thunk"),
            ),
            ("retbleed", "Mitigation: Enhanced IBRS", None),
            (
                "spec_store_bypass",
                "Mitigation: Speculative Store Bypass disabled via prctl",
                None,
            ),
        ] {
            assert_eq!(cost(name, text), expected, "{name}: {text}");
        }
    }
}
