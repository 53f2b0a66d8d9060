//! `resource-saturated`: a resource is saturated, and no rule explains it.
//!
//! The first question of the USE method: what is full limits the service, whatever filled it.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Kind};
use rungwise_model::evidence_text;
use rungwise_model::keys;

use super::{busiest, clear, unexplained};
use crate::process::SERVICE;
use crate::process::{called, is_service, waits_for_cpu};
use crate::resources::{High, Means};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold};

const WAITS: Threshold = Threshold {
    name: "share of the window in which a service waits for a CPU",
    value: 0.10,
    origin: "rule runq-delay",
};

const LITTLE: Threshold = Threshold {
    name: "the same share, where it waits for more than half as long as it runs",
    value: 0.05,
    origin: "rule priority-low",
};

pub(crate) static RULE: Rule = Rule {
    id: "resource-saturated",
    topic: "residual",
    summary: "a resource is saturated, and no other rule explains it",
    needs: needs!(
        [
            &keys::CONNTRACK_USE,
            &keys::CPU_BUSY,
            &keys::CPU_BUSY_MEAN,
            &keys::CPU_SOFTIRQ,
            &keys::DEVICE_USE,
            &keys::DISK_BUSY,
            &keys::FILES_OPEN,
            &keys::MEMORY_AVAILABLE,
            &keys::MOUNT_AVAILABLE,
            &keys::MOUNT_INODES_FREE,
            &keys::NEIGH_ENTRIES,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PROCESS_BUSIEST_THREAD,
            &keys::PROCESS_DESCRIPTORS,
            &keys::PROCESS_STARVED,
            &keys::PROCESS_USER_TASKS,
            &keys::PSI_IO_SOME,
            &keys::SCHED_PROCESS_CPU,
            &keys::TASKS_SHARE,
            &keys::TCP_ACCEPT_USED,
            &keys::TCP_PORTS_USED,
            &keys::UDP_SOCKET_QUEUE
        ],
        SERVICE
    ),
    thresholds: &[WAITS, LITTLE],
    knobs: &[],
    measure: None,
    doc: Doc {
        looks_for: "A resource beyond its threshold in the resource table, in every part of the window, while none of the rules \
            that know its causes fires: CPUs, memory, disks, links, accept queues, ports, kernel tables.",
        hurts: "A saturated resource is the limit: every further request waits or is refused.",
        todo: "The finding names the resource and, if known, the processes that use it. Give them less work, move them \
            elsewhere, or add capacity. No kernel setting is known to help, or a rule would have named it.",
        wrong: "A batch job is meant to use all there is, and does no harm where no service runs next to it. A full disk queue \
            of a device that works on many requests at once may have room left.",
        sources: "Brendan Gregg, \"The USE Method\", brendangregg.com/usemethod.html.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let full = unexplained(evidence, Means::Full);
    if full.is_empty() {
        return clear(
            evidence,
            Means::Full,
            "no resource is saturated without a rule that explains it",
        );
    }
    Ok(full
        .into_iter()
        .map(|high| finding(evidence, &high))
        .collect())
}

fn finding(evidence: &Evidence, high: &High<'_>) -> Finding {
    let value = evidence_text::value(high.reading);
    let title = high.row.title;
    let place = match high.subject.kind() {
        Kind::Host => String::new(),
        _ => format!(" ({})", high.subject),
    };
    let left = if high.gauge.falls { " left" } else { "" };
    let mut sentence = format!("{title} saturated: {value}{left}{place}");
    if high.row.id == "cpus" {
        let _ = write!(sentence, "; {}", busiest(evidence));
    }
    let finding = match unharmed(evidence).filter(|_| high.row.id == "cpus") {
        Some(services) => {
            let _ = write!(sentence, "; {services}");
            Finding::watch(high.subject, sentence).severity(Grade::Medium)
        }
        None => Finding::act(high.subject, sentence).severity(Grade::High),
    };
    finding
        .confidence(Grade::Medium)
        .cite(high.reading)
        .refuted_by(
            "the service is as fast while the resource is saturated as without its other users",
        )
}

/// Full CPUs do no harm if the services of the machine still get one at once: the work that fills them has a lower priority, or yields.
fn unharmed(evidence: &Evidence) -> Option<String> {
    let delays = evidence.each(&keys::PROCESS_BUSIEST_DELAY).ok()?;
    let services: Vec<_> = delays
        .into_iter()
        .filter(|(process, _)| is_service(evidence, process.name()))
        .collect();
    let waits = |process| waits_for_cpu(evidence, process, WAITS.value, LITTLE.value).is_some();
    let (first, _) = services.first()?;
    let none = !services.iter().any(|(process, _)| waits(process));
    none.then(|| {
        let name = called(evidence, first);
        match services.len() - 1 {
            0 => format!("{name} gets a CPU at once"),
            more => format!("{name} and {more} more services get a CPU at once"),
        }
    })
}
