//! `numa-remote`: a process works on one node with memory on another.
//!
//! For the judged process from `numa_maps` against the CPUs of its threads; that acts. For the machine from
//! `other_node` of numastat, which counts allocations and knows nothing of who reads; that only warns.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const REMOTE: Threshold = Threshold {
    name: "share of the memory on other nodes",
    value: 0.20,
    origin: "own guess, after oeAware's NUMA analysis",
};

const LARGE: Threshold = Threshold {
    name: "resident memory of a process that counts, bytes",
    value: 64.0 * 1024.0 * 1024.0,
    origin: "own guess: less than that fits the caches well enough",
};

pub(crate) static RULE: Rule = Rule {
    id: "numa-remote",
    topic: "numa",
    summary: "memory lies on another node than the threads that use it",
    needs: &[
        &keys::MEMORY_PROCESS_RSS,
        &keys::NUMA_BALANCING,
        &keys::NUMA_NODES,
        &keys::NUMA_OTHER_SHARE,
        &keys::NUMA_PROCESS_REMOTE,
    ],
    thresholds: &[REMOTE, LARGE],
    knobs: &[
        "numa.bind_node",
        "numa.localalloc",
        "numa.balancing",
        "net.irq_affinity",
    ],
    measure: Some(Measure::more(&keys::NUMA_PROCESS_REMOTE)),
    doc: Doc {
        looks_for: "A process with at least 64 MiB, more than 20 % of it on nodes where its threads did not run; or a node with \
            more than 20 % of its allocations for another node.",
        hurts: "Memory of another node takes half as long again to reach, and its path is shared.",
        todo: "Bind the service to the node of its network device (numa.bind_node), or let it only prefer local memory where \
            the node may fill up (numa.localalloc), and keep the device's interrupts on that node (net.irq_affinity). Where \
            nothing is bound, the kernel's own balancing may help (numa.balancing); measure, it can go either way.",
        wrong: "Page cache stays where the first reader put it and counts as remote for the next. Threads that moved a moment \
            ago leave their memory behind for a while. A process larger than a node cannot be local.",
        sources: "The reference bank host, section on binding; oeAware numa_analysis; \
            Documentation/admin-guide/numastat.rst; Documentation/admin-guide/mm/numa_memory_policy.rst.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let nodes = evidence.host(&keys::NUMA_NODES)?;
    if nodes.value < 2.0 {
        let clear = Finding::clear("there is one NUMA node only").cite(nodes.reading);
        return Ok(vec![clear]);
    }
    let processes = evidence
        .each(&keys::NUMA_PROCESS_REMOTE)
        .unwrap_or_default();
    let large = |process: &Subject| {
        evidence
            .quantity(&keys::MEMORY_PROCESS_RSS, process)
            .is_ok_and(|size| size.value >= LARGE.value)
    };
    let mut findings = Vec::new();
    for (process, remote) in &processes {
        if remote.value <= REMOTE.value || !large(process) {
            continue;
        }
        let sentence = format!(
            "{} of the memory of pid {} lies on nodes where its threads do not run",
            say::percent(remote.value),
            process.name()
        );
        let mut finding = Finding::act(process, sentence)
            .severity(if remote.value > 0.5 {
                Grade::High
            } else {
                Grade::Medium
            })
            .cite(remote.reading)
            .consider("numa.bind_node")
            .consider("numa.localalloc");
        if let Ok(balancing) = evidence.words(&keys::NUMA_BALANCING, &Subject::host())
            && balancing.value == "0"
        {
            finding = finding.cite(balancing.reading).consider("numa.balancing");
        }
        findings.push(
            finding
                .consider("net.irq_affinity")
                .refuted_by("the rate stays when the service is started under numactl on one node"),
        );
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    let others = match evidence.each(&keys::NUMA_OTHER_SHARE) {
        Ok(others) => others,
        // A judged process that is local is answer enough.
        Err(missing) if processes.is_empty() => return Err(missing),
        Err(_) => Vec::new(),
    };
    let worst = others
        .iter()
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    if processes.is_empty()
        && let Some((node, other)) = worst
        && other.always(|share| share > REMOTE.value)
    {
        let sentence = format!(
            "{} of the pages allocated on node {} were for processes of another node",
            say::percent(other.value),
            node.name()
        );
        return Ok(vec![
            Finding::watch(node, sentence)
                .confidence(Grade::Low)
                .cite(other.reading)
                .consider("numa.bind_node")
                .refuted_by("`rungwise check --pid` of the service shows its memory to be local"),
        ]);
    }
    let most = processes
        .iter()
        .filter(|(process, _)| large(process))
        .map(|(_, remote)| remote.value)
        .chain(
            worst
                .filter(|_| processes.is_empty())
                .map(|(_, other)| other.value),
        )
        .fold(0.0, f64::max);
    let sentence = format!("at most {} of the memory is remote", say::percent(most));
    Ok(vec![
        Finding::clear(sentence)
            .below(most, REMOTE.value)
            .cite(nodes.reading),
    ])
}
