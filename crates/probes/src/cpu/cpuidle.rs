//! Idle states: the driver, and how long each CPU was in states with a long exit latency.
//!
//! Source: drivers/cpuidle/sysfs.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::{number, rate_of_number, setting};
use crate::{Cost, Probe, Source, Window};

const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const LATENCY: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency";
const TIME: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/time";

/// Exit latency in microseconds above which a state counts as deep; part of the key's meaning. C1 takes 1 to 3,
/// C1E about 10, C6 from 40 to 200 (`drivers/idle/intel_idle.c`).
const DEEP_US: f64 = 10.0;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-cpuidle",
    summary: "time of each CPU in deep idle states (long exit latency)",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once(DRIVER),
        Source::once(LATENCY),
        Source::ends(TIME),
    ],
    yields: &[&keys::CPU_DEEP_IDLE, &keys::CPU_IDLE_DRIVER],
    derive,
    doc: "\
A request that arrives at a CPU in a deep state waits for the exit latency first. The kernel adds the time of a state \
when the CPU leaves it, so one long sleep may be counted as a whole at its end. In a guest the states are those of the \
guest only: `haltpoll` reports 1 us for a halt that costs an exit to the hypervisor and the wake-up latency of the \
host's CPU. Sources: drivers/cpuidle/sysfs.c, drivers/cpuidle/cpuidle-haltpoll.c of Linux 6.18; \
Documentation/admin-guide/pm/cpuidle.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    setting(window, evidence, &keys::CPU_IDLE_DRIVER, DRIVER);
    let cpus = deep(window);
    if cpus.is_empty() {
        let why = match window.matching(TIME).first() {
            None => window
                .unlisted(TIME)
                .unwrap_or_else(|| Absence::because("no CPU shows idle states")),
            Some((path, _)) => super::no_rate(window, path, "the idle states cannot be read"),
        };
        evidence.absent(&[&keys::CPU_DEEP_IDLE], &why, TIME);
    }
    for (cpu, Deep { us_per_s, states }) in cpus {
        // A sleep that began before the window may be counted inside it.
        let share = (us_per_s / 1e6).min(1.0);
        let line = if states.is_empty() {
            format!("no state takes longer than {DEEP_US} us to leave")
        } else {
            states.join(", ")
        };
        let origin = Origin::new(TIME, line);
        evidence.number(&keys::CPU_DEEP_IDLE, Subject::cpu(cpu), share, origin);
    }
}

/// Deep states of one CPU.
#[derive(Default)]
struct Deep {
    /// Microseconds in them per second.
    us_per_s: f64,
    /// Each with its latency and both ends of its time.
    states: Vec<String>,
}

fn deep(window: &Window<'_>) -> BTreeMap<usize, Deep> {
    let mut cpus: BTreeMap<usize, Deep> = BTreeMap::new();
    for (path, stars) in window.matching(TIME) {
        let [cpu, state] = stars[..] else { continue };
        let latency = LATENCY.replacen('*', cpu, 1).replacen('*', state, 1);
        let (Ok(cpu), Ok(latency), Some(rate)) = (
            cpu.parse(),
            number(window, &latency),
            rate_of_number(window, path),
        ) else {
            continue;
        };
        let found = cpus.entry(cpu).or_default();
        if latency > DEEP_US {
            found.us_per_s += rate.per_s;
            let line = rate.line();
            found
                .states
                .push(format!("state{state} ({latency} us) {line}"));
        }
    }
    cpus
}
