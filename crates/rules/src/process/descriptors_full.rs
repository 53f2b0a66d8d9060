//! `descriptors-full`: a process has used up its open file descriptors.
//!
//! Every connection is a descriptor. At the limit accept(2) fails with EMFILE: the connection stays in the accept queue, and an
//! event loop that does not handle it spins. At fs.file-max it is ENFILE, for every process of the machine.
use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::Evidence;
use rungwise_model::keys;

use super::called;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const FULL: Threshold = Threshold {
    name: "open descriptors of the process as a share of its limit",
    value: 0.99,
    origin: "measured by `cargo xtask faults --random 40 --seed 31001 --layer host`, and with seed 31002: memcached with 145 of 148 descriptors lost \
        nothing, with 72 of 72 more than half of its requests; between the two, own guess",
};

const NEAR: Threshold = Threshold {
    name: "share of its limit from which on the process is near it",
    value: 0.80,
    origin: "knob rpc.nofile: four fifths",
};

const HOST: Threshold = Threshold {
    name: "open files of the machine as a share of fs.file-max",
    value: 0.90,
    origin: "own guess: ENFILE begins at 1 for all users but root",
};

pub(crate) static RULE: Rule = Rule {
    id: "descriptors-full",
    topic: "process",
    summary: "a process has used up its open file descriptors",
    needs: &[
        &keys::FILES_OPEN,
        &keys::PROCESS_DESCRIPTORS,
        &keys::PROCESS_DESCRIPTOR_HARD,
        &keys::PROCESS_DESCRIPTOR_LIMIT,
        &keys::SCHED_PROCESS_NAME,
    ],
    thresholds: &[FULL, NEAR, HOST],
    knobs: &["rpc.nofile"],
    measure: Some(Measure::more(&keys::PROCESS_DESCRIPTORS)),
    doc: Doc {
        looks_for: "A process whose open descriptors are 99 % of its limit or more (80 %: watched), or open files of the machine at 90 % of fs.file-max.",
        hurts: "New connections, files and upstream requests fail. Clients connect (the kernel accepts for the process) and get no answer.",
        todo: "Raise the limit of the running process (rpc.nofile) and of its unit (LimitNOFILE=), or worker_rlimit_nofile, maxclients, ulimit-n. If the number grows without end, it is a leak: ls -l /proc/PID/fd shows what leaks.",
        wrong: "A program may keep itself at its limit on purpose, such as a proxy with a connection limit derived from it. A program that set \
            its hard limit as low counts its connections itself (memcached -c), and raising a hard limit takes CAP_SYS_RESOURCE: then no \
            value is recommended. Change the program's own option, or its unit, and start it again.",
        sources: "accept(2), getrlimit(2); Documentation/admin-guide/sysctl/fs.rst; alloc_fd of fs/file.c, Linux 6.18.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let shares = evidence.each(&keys::PROCESS_DESCRIPTORS);
    let mut findings = Vec::new();
    if let Ok(open) = evidence.host(&keys::FILES_OPEN)
        && open.value > HOST.value
    {
        let sentence = format!(
            "the machine has opened {} of the files that fs.file-max allows: open and accept fail with ENFILE",
            say::percent(open.value)
        );
        findings.push(
            Finding::act(&rungwise_model::evidence::Subject::host(), sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
                .cite(open.reading)
                .refuted_by("file-nr falls and the errors stay"),
        );
    }
    let mut most = 0.0_f64;
    for (process, share) in shares.iter().flatten() {
        most = most.max(share.value);
        if share.value < NEAR.value {
            continue;
        }
        let limit = evidence.quantity(&keys::PROCESS_DESCRIPTOR_LIMIT, process)?;
        let who = called(evidence, process);
        let used = format!(
            "{:.0} of {:.0} file descriptors",
            share.value * limit.value,
            limit.value
        );
        let finding = if share.value >= FULL.value {
            let sentence = format!(
                "{who} has opened {used}; at the limit new connections and files fail with EMFILE"
            );
            Finding::act(process, sentence)
                .severity(Grade::High)
                .confidence(Grade::High)
        } else {
            Finding::watch(process, format!("{who} has opened {used}"))
        };
        // Room for four times as much; against a leak a higher limit does not help.
        let wish = limit.value * 4.0;
        let hard = evidence
            .quantity(&keys::PROCESS_DESCRIPTOR_HARD, process)
            .ok();
        let reach = hard.as_ref().map_or(wish, |hard| wish.min(hard.value));
        let mut finding = finding
            .cite(share.reading)
            .refuted_by("the errors stay with a higher limit");
        finding = if reach > limit.value {
            finding.turn("rpc.nofile", format!("{}:{reach:.0}", process.name()))
        } else {
            finding.consider("rpc.nofile")
        };
        if let Some(hard) = hard {
            finding = finding.cite(hard.reading);
        }
        findings.push(finding);
    }
    if findings.is_empty() {
        // One process near its limit whose count is refused is enough to be wrong about all.
        if let Some(unread) = evidence.unread(&keys::PROCESS_DESCRIPTORS) {
            return Err(unread);
        }
        shares?;
        let sentence = "no process has opened four fifths of its limit of file descriptors";
        findings.push(Finding::clear(sentence).below(most.min(NEAR.value), NEAR.value));
    }
    Ok(findings)
}
