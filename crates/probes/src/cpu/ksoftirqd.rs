//! Run time of each CPU's ksoftirqd: softirqs deferred from where they were raised.
//!
//! Source: kernel/softirq.c, fs/proc/array.c, Linux 6.18.

use rungwise_formats::task;
use rungwise_model::evidence::{Absence, Evidence, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window};

/// The `stat` file of each process and kernel thread.
pub(crate) const TASKS: &str = "/proc/*/stat";

/// Seconds per tick of `/proc/PID/stat` (`USER_HZ`).
const TICK: f64 = 0.01;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "ksoftirqd",
    summary: "time that each CPU's ksoftirqd ran",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ends(TASKS)],
    yields: &[&keys::SOFTIRQ_KSOFTIRQD],
    derive,
    doc: "\
Softirqs run at the end of a hard interrupt; after 10 rounds or 2 ms, or when a real-time task needs the CPU, the rest \
is deferred to ksoftirqd, which then competes with ordinary tasks. Time is counted in ticks of 10 ms. In a container \
with its own pid namespace, kernel threads are invisible. Sources: kernel/softirq.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let mut found = false;
    let mut why = Absence::because("no ksoftirqd is visible from here")
        .remedy("run outside the container, as root");
    for (path, _) in window.matching(TASKS) {
        let cpu = window
            .text(path)
            .ok()
            .and_then(task::stat)
            .and_then(|task| {
                let cpu = task.name.strip_prefix("ksoftirqd/")?;
                cpu.parse::<usize>().ok()
            });
        let Some(cpu) = cpu else { continue };
        let rates = window.rates(path, |text| {
            let task = task::stat(text);
            let ticks = task.map(|task| ((), (task.user_ticks as f64 + task.system_ticks as f64)));
            ticks.into_iter().collect()
        });
        match rates.map(|mut rates| rates.remove(&())) {
            Ok(Some(rate)) => {
                found = true;
                evidence.series(
                    &keys::SOFTIRQ_KSOFTIRQD,
                    Subject::cpu(cpu),
                    rate.per_s * TICK,
                    rate.series.iter().map(|rate| rate * TICK).collect(),
                    rate.origin(path),
                );
            }
            Ok(None) => {}
            Err(refused) => why = refused,
        }
    }
    if !found {
        evidence.absent(&[&keys::SOFTIRQ_KSOFTIRQD], &why, TASKS);
    }
}
