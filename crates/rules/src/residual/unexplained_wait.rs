//! `unexplained-wait`: tasks wait for a resource, and no rule explains it.

use std::fmt::Write as _;

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use super::{busiest, clear, unexplained};
use crate::process::SERVICE;
use crate::process::upstream_slow::LONG;
use crate::process::{called, is_service};
use crate::resources::{High, Means};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, say};

pub(crate) static RULE: Rule = Rule {
    id: "unexplained-wait",
    topic: "residual",
    summary: "tasks wait for a resource, and no other rule explains it",
    needs: needs!(
        [
            &keys::CGROUP_FROZEN,
            &keys::CGROUP_IO_WAIT,
            &keys::CGROUP_MEMORY_REFAULTS,
            &keys::CGROUP_MEMORY_WAIT,
            &keys::CGROUP_THROTTLED,
            &keys::CPU_BUSY,
            &keys::CPU_RUN_QUEUE,
            &keys::DEPENDENCY_CLIENTS_UNANSWERED,
            &keys::DEPENDENCY_CLIENT_WAIT,
            &keys::LOCK_USER_MOVING,
            &keys::LOCK_USER_WAITERS,
            &keys::MEMORY_CGROUP_RECLAIM,
            &keys::MEMORY_REFAULTS,
            &keys::MEMORY_SWAP_IN,
            &keys::NETNS_OTHER_STALLS,
            &keys::PROCESS_BLOCKED,
            &keys::PROCESS_BUSIEST_DELAY,
            &keys::PSI_CPU_SOME,
            &keys::PSI_IO_FULL,
            &keys::PSI_MEMORY_SOME,
            &keys::SCHED_PROCESS_CPU,
            &keys::STACK_LOCK
        ],
        SERVICE
    ),
    thresholds: &[],
    knobs: &[],
    // Of another resource each time.
    measure: None,
    doc: Doc {
        looks_for: "Waiting beyond its threshold in the resource table, in every part of the window, while none of the rules that know its \
            causes fires: for CPUs, memory, disks, quotas, locks of the kernel and of programs, client requests that no thread works on, and TCP connections of another \
            network namespace of this machine that wait for a retransmission timeout (200 ms or more) in 1 % of their time.",
        hurts: "A thread that waits answers no requests. The wait is added to every request that the thread serves.",
        todo: "The finding names the resource. What another network namespace sends is lost on the way, or dropped by this host without a counter: \
            run `rungwise check --pid` with the process that is named. `rungwise check --pid` of the service shows whether its own threads wait.",
        wrong: "Pressure covers the whole machine: the waiting tasks may be a backup or a build, not the service. Long polling holds requests on purpose; \
            where each poll is longer than the window, none of them is answered in it.",
        sources: "Documentation/accounting/psi.rst; Brendan Gregg, \"The USE Method\".",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let waited = unexplained(evidence, Means::Waited);
    // If the CPUs are saturated, waiting tasks add no information.
    let is_full = |high: &High<'_>| {
        high.row.id == "cpus"
            && unexplained(evidence, Means::Full)
                .iter()
                .any(|full| full.row.id == "cpus")
    };
    let findings: Vec<Finding> = waited
        .iter()
        .filter(|high| !is_full(high))
        .map(|high| finding(evidence, high))
        .collect();
    if findings.is_empty() {
        return clear(
            evidence,
            Means::Waited,
            "no task waits without a rule that explains it",
        );
    }
    Ok(findings)
}

fn finding(evidence: &Evidence, high: &High<'_>) -> Finding {
    let share = say::percent(high.value);
    let name = high.subject.name();
    let key = high.gauge.key;
    let mut sentence = if key == &keys::PSI_CPU_SOME {
        format!("tasks wait for a CPU in {share} of the time")
    } else if key == &keys::PSI_IO_FULL {
        format!("all tasks wait for a disk in {share} of the time")
    } else if key == &keys::PSI_MEMORY_SOME {
        format!("tasks wait for memory in {share} of the time")
    } else if key == &keys::CPU_RUN_QUEUE {
        format!("{:.1} tasks per CPU run or wait for one", high.value)
    } else if key == &keys::MEMORY_REFAULTS {
        format!(
            "{} pages are read again that were dropped shortly before",
            say::rate(high.value)
        )
    } else if key == &keys::CGROUP_MEMORY_REFAULTS {
        format!(
            "control group {name} reads {} pages again that it had to drop",
            say::rate(high.value)
        )
    } else if key == &keys::LOCK_USER_WAITERS {
        format!(
            "{:.0} threads of process {name} wait for one lock of the program",
            high.value
        )
    } else if key == &keys::MEMORY_SWAP_IN {
        format!("{} pages are read back from swap", say::rate(high.value))
    } else if key == &keys::CGROUP_MEMORY_WAIT {
        format!("tasks of control group {name} wait for memory in {share} of the time")
    } else if key == &keys::CGROUP_IO_WAIT {
        format!("tasks of control group {name} wait for a disk in {share} of the time")
    } else if key == &keys::CGROUP_THROTTLED {
        format!("control group {name} is throttled in {share} of its periods")
    } else if key == &keys::CGROUP_FROZEN {
        format!("control group {name} is frozen")
    } else if key == &keys::DEPENDENCY_CLIENTS {
        let wait = evidence.quantity(&keys::DEPENDENCY_CLIENT_WAIT, high.subject);
        let wait = wait.map_or(0.0, |wait| wait.value);
        let open = evidence.quantity(&keys::DEPENDENCY_CLIENTS_UNANSWERED, high.subject);
        let open = open
            .ok()
            .filter(|open| open.value >= 1.0 && wait >= LONG.value);
        let how = open.map_or_else(
            || "and its threads do not run".to_owned(),
            |open| {
                format!(
                    "and none of {:.0} that are open for 1 s or more was answered: it hangs, or holds them on purpose (long polling)",
                    open.value
                )
            },
        );
        format!(
            "clients of {} wait: {:.0} requests unanswered for {:.0} ms (median), {}; {}",
            called(evidence, high.subject),
            high.value,
            wait * 1000.0,
            how,
            where_to_look(evidence, high.subject)
        )
    } else if key == &keys::NETNS_OTHER_STALLS {
        format!(
            "TCP connections of another network namespace wait for lost segments in {share} of the time: {}",
            high.reading.origin.line
        )
    } else if key == &keys::PROCESS_BLOCKED {
        format!("process {name} is in an uninterruptible wait in {share} of the samples")
    } else {
        format!("kernel locks take {share} of the busy samples")
    };
    if high.row.id == "cpus" {
        let _ = write!(sentence, "; {}", busiest(evidence));
    }
    let finding = if key == &keys::DEPENDENCY_CLIENTS {
        // Long polling holds requests on purpose.
        Finding::watch(high.subject, sentence).severity(Grade::Medium)
    } else if waits_for_disks(evidence, high) == Some(false) {
        // A backup that waits for its disk does no harm.
        Finding::watch(high.subject, sentence).severity(Grade::Medium)
    } else if [&keys::PSI_CPU_SOME, &keys::CPU_RUN_QUEUE].contains(&key) {
        // One task too many is enough for this share, and costs little where CPUs are free again at once.
        Finding::watch(high.subject, sentence).severity(Grade::Medium)
    } else {
        Finding::act(high.subject, sentence).severity(Grade::High)
    };
    let refuted = if key == &keys::NETNS_OTHER_STALLS {
        "`nstat -a TcpExtTCPTimeouts` in that namespace does not grow"
    } else {
        "`rungwise check --pid` of the service shows no thread that waits"
    };
    finding
        .confidence(Grade::Medium)
        .cite(high.reading)
        .refuted_by(refuted)
}

/// What shows for which lock or timer an idle process waits; a database knows it itself.
fn where_to_look(evidence: &Evidence, process: &Subject) -> String {
    let name = evidence.words(&keys::SCHED_PROCESS_NAME, process);
    let pid = process.name();
    match name.map_or("", |name| name.value) {
        "mariadbd" | "mysqld" => {
            "the cause may be a lock on rows or tables: SHOW FULL PROCESSLIST, and SELECT * FROM \
             information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
                .to_owned()
        }
        "mongod" => "the cause may be a lock: db.currentOp({ waitingForLock: true })".to_owned(),
        "java" => format!("the cause may be a lock or a timer: rungwise jvm threads {pid}"),
        _ => format!(
            "the cause may be a lock or a timer: gdb -p {pid} -batch -ex 'thread apply all bt', which \
             stops it meanwhile"
        ),
    }
}

/// Whether a service waits for disks; `None` if the wait is of another kind, or no service is known.
fn waits_for_disks(evidence: &Evidence, high: &High<'_>) -> Option<bool> {
    if ![&keys::PROCESS_BLOCKED, &keys::PSI_IO_FULL].contains(&high.gauge.key) {
        return None;
    }
    if high.gauge.key == &keys::PROCESS_BLOCKED {
        return Some(is_service(evidence, high.subject.name()));
    }
    let blocked = evidence.each(&keys::PROCESS_BLOCKED).ok()?;
    let mut services = blocked
        .iter()
        .filter(|(process, _)| is_service(evidence, process.name()))
        .peekable();
    services.peek()?;
    Some(services.any(|(_, share)| share.value >= 0.25))
}
