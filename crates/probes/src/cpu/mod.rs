//! CPUs, interrupts, softirqs, NUMA nodes, idle states, the kernel and the hypervisor.
//!
//! Each file is one probe, named after its source. Shared code is in `topology` (which CPU is on which node) and
//! `ownership` (which interrupt belongs to which network device).

pub(crate) mod cpufreq;
pub(crate) mod cpuidle;
pub(crate) mod interrupts;
pub(crate) mod irq_balancer;
pub(crate) mod kernel;
pub(crate) mod ksoftirqd;
pub(crate) mod numa;
pub(crate) mod ownership;
pub(crate) mod proc_stat;
pub(crate) mod schedstat;
pub(crate) mod softirqs;
pub(crate) mod topology;
pub(crate) mod virtualisation;

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};

use crate::{Rate, Window};

/// The text of a file that applies to the whole machine.
fn setting(window: &Window<'_>, evidence: &mut Evidence, key: &'static Key, path: &str) {
    match window.text(path) {
        Ok(text) => {
            let text = text.trim();
            evidence.text(key, Subject::host(), text, Origin::new(path, text));
        }
        Err(why) => evidence.absent(&[key], &why, path),
    }
}

/// The one counter of a file whose text is a number, as a rate; `None` if either end is missing.
fn rate_of_number(window: &Window<'_>, path: &str) -> Option<Rate> {
    let rates = window.rates(path, |text| {
        let number = text.trim().parse().ok();
        number.map(|number: f64| ((), number)).into_iter().collect()
    });
    rates.ok()?.remove(&())
}

/// The number that a file consists of.
fn number(window: &Window<'_>, path: &str) -> Result<f64, Absence> {
    let text = window.text(path)?.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(Absence::because(format!(
            "{path} contains '{text}', which is not a number"
        ))),
    }
}

/// Why a rate has no value although its file was read: the reason if there is one window only, else `other`.
fn no_rate(window: &Window<'_>, path: &str, other: impl Into<String>) -> Absence {
    match window.rates::<()>(path, |_| BTreeMap::new()) {
        Err(why) => why,
        Ok(_) => Absence::because(other),
    }
}

/// The reason for a file in an unknown format.
fn unreadable(path: &str) -> Absence {
    Absence::because(format!("{path} has a format that rungwise does not know"))
}
