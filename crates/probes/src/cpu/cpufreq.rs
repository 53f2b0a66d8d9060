//! Frequency of each CPU, its governor and its energy preference.
//!
//! Source: drivers/cpufreq/cpufreq.c, arch/x86/kernel/cpu/aperfmperf.c, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use super::number;
use crate::{Cost, Probe, Source, Window};

const CURRENT: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq";
const HIGHEST: &str = "/sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const EPP: &str = "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "sys-cpufreq",
    summary: "frequency, governor and energy preference of each CPU",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::ends(CURRENT),
        Source::once(HIGHEST),
        Source::once(GOVERNOR),
        Source::once(EPP),
    ],
    yields: &[&keys::CPU_EPP, &keys::CPU_FREQUENCY, &keys::CPU_GOVERNOR],
    derive,
    doc: "\
The maximum frequency is the single-core one; with all cores busy a processor stays below it by design, and lower \
still with wide vector code or thermal throttling. Some kernels (4.13 to 5.17 on x86) sleep 10 ms per idle CPU when \
the frequency is read, so it is read at both ends of a window only. The frequency of an idle CPU is meaningless; \
compare busy ones. Guests and many cloud machines have no frequency driver, and the energy preference exists only with \
intel_pstate and amd_pstate in active mode. Sources: drivers/cpufreq/cpufreq.c, arch/x86/kernel/cpu/aperfmperf.c of \
Linux 6.18; Documentation/admin-guide/pm/cpufreq.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    frequency(window, evidence);
    for (key, pattern) in [(&keys::CPU_GOVERNOR, GOVERNOR), (&keys::CPU_EPP, EPP)] {
        words(window, evidence, key, pattern);
    }
}

fn frequency(window: &Window<'_>, evidence: &mut Evidence) {
    let mut found = false;
    let mut refused = None;
    for (path, stars) in window.matching(CURRENT) {
        let Some(cpu) = stars.first().and_then(|cpu| cpu.parse::<usize>().ok()) else {
            continue;
        };
        let highest = HIGHEST.replace('*', &cpu.to_string());
        let both = number(window, path)
            .and_then(|current| Ok((current, number(window, &highest).and_then(positive)?)));
        match both {
            Ok((current, highest)) => {
                found = true;
                let course = window.texts(path).unwrap_or_default();
                evidence.series(
                    &keys::CPU_FREQUENCY,
                    Subject::cpu(cpu),
                    current / highest,
                    (course.into_iter())
                        .filter_map(|(_, text)| Some(text.trim().parse::<f64>().ok()? / highest))
                        .collect(),
                    Origin::new(path, format!("{current} kHz of {highest} kHz")),
                );
            }
            Err(why) => refused = Some(why),
        }
    }
    if !found {
        let why = refused.unwrap_or_else(|| none(window));
        evidence.absent(&[&keys::CPU_FREQUENCY], &why, CURRENT);
    }
}

fn positive(number: f64) -> Result<f64, Absence> {
    if number > 0.0 {
        Ok(number)
    } else {
        Err(Absence::because(
            "the frequency driver does not report the maximum frequency",
        ))
    }
}

fn words(window: &Window<'_>, evidence: &mut Evidence, key: &'static Key, pattern: &str) {
    let mut found = false;
    for (path, stars) in window.matching(pattern) {
        let cpu = stars.first().and_then(|cpu| cpu.parse::<usize>().ok());
        if let (Some(cpu), Ok(text)) = (cpu, window.text(path)) {
            found = true;
            let text = text.trim();
            evidence.text(key, Subject::cpu(cpu), text, Origin::new(path, text));
        }
    }
    if !found {
        let governed = !window.matching(GOVERNOR).is_empty();
        let why = if governed {
            Absence::because("the frequency driver has no such setting")
        } else {
            none(window)
        };
        evidence.absent(&[key], &why, pattern);
    }
}

fn none(window: &Window<'_>) -> Absence {
    window.unlisted(GOVERNOR).unwrap_or_else(|| {
        Absence::because("no CPU has a frequency driver, which is normal in a guest")
            .remedy("ask the operator of the hardware or the hypervisor")
    })
}
