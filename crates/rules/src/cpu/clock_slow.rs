//! `clock-slow`: each clock read is a system call that reads a device.
//!
//! `clock_gettime(2)` costs 20 ns where the kernel's clock can be read without a system call (vDSO): `tsc`, `kvm-clock`, and so on. With
//! the others each read is a system call that reads a device: 0.3 to 3 us, and `hpet` serves one CPU at a time. The kernel falls back to
//! them if it finds the better one unstable, and Xen guests of old images had `xen` by default.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Rule, Threshold, say};

const WORKS: Threshold = Threshold {
    name: "mean busy share of the CPUs above which the clock's cost counts",
    value: 0.10,
    origin: "own guess: an idle machine rarely reads the clock",
};

/// Clocks that no program can read without a system call: their `vdso_clock_mode` is `VDSO_CLOCKMODE_NONE`.
const SLOW: &[&str] = &[
    "acpi_pm",
    "hpet",
    "hyperv_clocksource_msr",
    "jiffies",
    "pit",
    "refined-jiffies",
    "xen",
];

pub(crate) static RULE: Rule = Rule {
    id: "clock-slow",
    topic: "cpu",
    summary: "each clock read is a system call that reads a device",
    needs: &[
        &keys::CPU_BUSY_MEAN,
        &keys::KERNEL_CLOCKSOURCE,
        &keys::KERNEL_CLOCKSOURCES,
    ],
    thresholds: &[WORKS],
    knobs: &[],
    measure: None,
    doc: Doc {
        looks_for: "A clock source that cannot be read without a system call, on CPUs that are more than 10 % busy.",
        hurts: "Services read the clock several times per request: for logs, timeouts and metrics. Each read takes up to a \
            hundred times as long.",
        todo: "If a better one is available: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, and \
            clocksource=tsc on the kernel's command line to make it permanent. If not, the kernel found it unstable: `dmesg | grep \
            -i clocksource` shows why; on hardware that is known to be good, tsc=reliable.",
        wrong: "A service that rarely reads the clock loses nothing: `strace -c -f -p PID` shows clock_gettime if it does. The \
            kernel rejects an unstable clock for a reason.",
        sources: "clock_gettime(2), vdso(7); clocksource_hpet, clocksource_acpi_pm and xen_clocksource of Linux 6.18 have no \
            vdso_clock_mode; Brendan Gregg, \"The Speed of Time\", brendangregg.com.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let host = Subject::host();
    let clock = evidence.words(&keys::KERNEL_CLOCKSOURCE, &host)?;
    if !SLOW.contains(&clock.value) {
        let sentence = format!("the clock ({}) is read without a system call", clock.value);
        return Ok(vec![Finding::clear(sentence).cite(clock.reading)]);
    }
    let busy = evidence.host(&keys::CPU_BUSY_MEAN)?;
    if busy.value <= WORKS.value {
        let sentence = format!(
            "reading the clock ({}) takes a system call, but the CPUs are {} busy",
            clock.value,
            say::percent(busy.value)
        );
        let clear = Finding::clear(sentence)
            .below(busy.value, WORKS.value)
            .cite(clock.reading);
        return Ok(vec![clear]);
    }
    let available = evidence.words(&keys::KERNEL_CLOCKSOURCES, &host)?;
    let better = available
        .value
        .split_whitespace()
        .find(|name| !SLOW.contains(name));
    let sentence = format!(
        "each clock read is a system call that reads {}",
        clock.value
    );
    let finding = if let Some(better) = better {
        let sentence = format!("{sentence}, although {better} is available");
        Finding::act(&host, sentence).severity(Grade::Medium)
    } else {
        let sentence = format!("{sentence}; no other clock is available");
        Finding::watch(&host, sentence).severity(Grade::Low)
    };
    Ok(vec![
        finding
            .cite(clock.reading)
            .cite(available.reading)
            .cite(busy.reading)
            .refuted_by("`strace -c -f -p PID` of the service shows hardly any clock_gettime"),
    ])
}
