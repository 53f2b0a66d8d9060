//! `process-traced`: a process is traced (strace, gdb) while it works.
//!
//! ptrace stops the traced thread at every system call or signal until the tracer lets it go on: two context switches to the
//! tracer and back, 10 to 100 times the cost of the call.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::{SERVICE, called, is_service};
use crate::rule::needs;
use crate::{Doc, Judgement, Rule, Threshold, say};

const TRACES: Threshold = Threshold {
    name: "CPU time of the tracer, in CPUs, from which on it slows down what it traces",
    value: 0.25,
    origin: "measured by `cargo xtask faults`, seeds 6001 to 20022: strace that used 0.13 and 0.19 CPUs took p99 of redis and memcached from \
        0.2 to 0.8 ms, which is harmless; at 0.59 CPUs and more half of the requests were lost, or p99 was seconds",
};

const IDLE: Threshold = Threshold {
    name: "CPU time of the tracer, in CPUs, below which it is idle",
    value: 0.01,
    origin: "own guess: a debugger that waits for a breakpoint uses none",
};

pub(crate) static RULE: Rule = Rule {
    id: "process-traced",
    topic: "process",
    summary: "a process is traced (strace, gdb) while it works",
    needs: needs!([&keys::PROCESS_TRACER, &keys::SCHED_PROCESS_CPU], SERVICE),
    thresholds: &[TRACES, IDLE],
    knobs: &[],
    measure: None,
    doc: Doc {
        looks_for: "A process with a tracer (TracerPid in /proc/PID/status) whose tracer uses 0.25 CPUs or more; below that it is watched.",
        hurts: "Each system call of the traced process waits for the tracer. A service under strace loses half to nine tenths of its throughput.",
        todo: "End the tracer: the finding names its pid. To watch a service under load use perf trace, bpftrace or rungwise itself, which stop no process.",
        wrong: "A debugger that is attached and idle costs nothing until a breakpoint; sandboxes (gVisor with ptrace, proot) trace by design.",
        sources: "ptrace(2); strace(1), section BUGS; Brendan Gregg, strace wow much syscall (2014).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let traced = evidence.each_words(&keys::PROCESS_TRACER)?;
    let mut findings = Vec::new();
    let mut tracers: Vec<&str> = Vec::new();
    for (process, tracer) in traced.iter().filter(|(_, tracer)| !tracer.value.is_empty()) {
        if tracers.contains(&tracer.value) {
            continue;
        }
        tracers.push(tracer.value);
        let number = traced
            .iter()
            .filter(|(_, other)| other.value == tracer.value)
            .count();
        let pid = super::owner_pid(tracer.value).unwrap_or_default();
        let tracer_process = rungwise_model::evidence::Subject::new(process.kind(), pid);
        let used = evidence
            .quantity(&keys::SCHED_PROCESS_CPU, &tracer_process)
            .ok();
        let who = called(evidence, process);
        let who = if number > 1 {
            format!("{who} (and {} more)", number - 1)
        } else {
            who
        };
        let sentence = format!("{who} is traced by {}", tracer.value);
        let mut finding = match used {
            Some(cpu) if cpu.value >= TRACES.value => Finding::act(
                process,
                format!(
                    "{sentence}, which uses {:.2} CPUs: each of its system calls waits for the tracer",
                    cpu.value
                ),
            )
            .severity(Grade::High)
            .confidence(Grade::High),
            Some(cpu) if cpu.value >= IDLE.value => Finding::watch(
                process,
                format!("{sentence}, which uses {:.2} CPUs: each of its system calls waits for the tracer", cpu.value),
            )
            .severity(Grade::Medium),
            None if is_service(evidence, process.name()) => Finding::act(
                process,
                format!("{sentence}: each of its system calls waits for the tracer"),
            )
            .severity(Grade::High),
            _ => Finding::watch(process, format!("{sentence}, which is idle")).severity(Grade::Low),
        };
        if let Some(used) = used {
            finding = finding.cite(used.reading);
        }
        findings.push(
            finding
                .cite(tracer.reading)
                .refuted_by("the throughput stays the same after the tracer has ended"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::clear(format!(
            "none of {} is traced",
            say::count(traced.len() as f64, "listed process").replace("processs", "processes")
        )));
    }
    Ok(findings)
}
