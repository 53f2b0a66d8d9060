//! Processes that move interrupts automatically.

use rungwise_formats::task;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::ksoftirqd::TASKS;
use crate::{Cost, Probe, Source, Window};

/// Names of such processes, as the kernel cuts them (15 bytes).
static BALANCERS: &[&str] = &["irqbalance", "oeaware"];

/// The first kernel thread: if it is visible, so are the machine's processes.
const KERNEL: &str = "kthreadd";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "irq-balancer",
    summary: "processes that move interrupts between CPUs",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::once(TASKS)],
    yields: &[&keys::IRQ_BALANCER],
    derive,
    doc: "\
irqbalance rebalances every ten seconds and overwrites an affinity that was set by hand, unless it is configured to \
leave that interrupt alone; with `--oneshot` it has exited by the time of the sample. oeAware does the same with its \
interrupt plugin. In a container the host's processes are invisible, and the key is absent. Sources: irqbalance(1), \
fs/proc/array.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let tasks: Vec<(&str, &str)> = window
        .matching(TASKS)
        .into_iter()
        .filter_map(|(path, stars)| {
            let task = task::stat(window.text(path).ok()?)?;
            Some((*stars.first()?, task.name))
        })
        .collect();
    let mut found: Vec<(&str, &str)> = tasks.clone();
    found.retain(|(_, name)| BALANCERS.contains(name));
    if found.is_empty() && !tasks.iter().any(|(_, name)| *name == KERNEL) {
        let why = Absence::because("the processes of the host cannot be seen from here")
            .remedy("run outside the container, as root");
        return evidence.absent(&[&keys::IRQ_BALANCER], &why, TASKS);
    }
    let names: Vec<&str> = found.iter().map(|(_, name)| *name).collect();
    let line: Vec<String> = (found.iter())
        .map(|(pid, name)| format!("{pid} ({name})"))
        .collect();
    let line = if line.is_empty() {
        format!("none of {} processes", tasks.len())
    } else {
        line.join(", ")
    };
    let origin = Origin::new(TASKS, line);
    evidence.text(
        &keys::IRQ_BALANCER,
        Subject::host(),
        names.join(" "),
        origin,
    );
}
