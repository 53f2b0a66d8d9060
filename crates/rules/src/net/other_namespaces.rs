//! `other-namespaces`: packets of another network namespace take the CPU time, and what happens there is not seen from here.

use rungwise_model::check::{Finding, Grade, Outcome};
use rungwise_model::evidence::{Absence, Evidence, Key, Missing, Subject};
use rungwise_model::keys;

use crate::device::qdisc_limit;
use crate::rule::needs;
use crate::{Doc, Judgement, Measure, Rule, Threshold, pick, say};

/// What tells the packets of other namespaces from those of this one.
pub(crate) const NEEDS: &[&Key] = &[
    &keys::NETNS_OTHERS,
    &keys::NETNS_OTHER_PACKETS,
    &keys::NETNS_OTHER_PID,
    &keys::NETNS_OWN_PACKETS,
];

const BUSY: Threshold = Threshold {
    name: "share of a CPU in softirqs",
    value: 0.50,
    origin: "own guess: tasks get less than half of that CPU",
};

const SOME: Threshold = Threshold {
    name: "the same, worth watching",
    value: 0.35,
    origin: "measured by `cargo xtask faults --steps 5 --seed 8001`: softirqs in 32 % of a CPU for another namespace took p99 of redis from \
        0.2 to 0.4 ms, which is harmless",
};

const THEIRS: Threshold = Threshold {
    name: "packets of other network namespaces, as a multiple of the own",
    value: 3.0,
    origin: "own guess: forwarding to a container counts each packet in both, which is 1",
};

const TRAFFIC: Threshold = Threshold {
    name: "packets per second of other network namespaces",
    value: 100.0,
    origin: "own guess: a service of some 50 requests per second, whose sockets and rules are not seen from here",
};

const SOME_THEIRS: Threshold = Threshold {
    name: "packets of other network namespaces, as a multiple of the own, from which on a cost of packets that nothing here explains may be theirs",
    value: 0.1,
    origin: "own guess: a tenth of the packets can cost a third of the time if each walks some hundred rules",
};

const LOST: Threshold = Threshold {
    name: "share of the traffic of another network namespace that is lost",
    value: 0.05,
    origin: "own guess: the line from which on a loss of this namespace counts, whatever covers its counter",
};

const DROPPED: Threshold = Threshold {
    name: "share of the packets handed to a queueing discipline of another network namespace that it drops",
    value: 0.005,
    origin: "own guess: five times the line of `qdisc-limit`, since only both ends of the window are seen; from that line on it is watched, and \
        disciplines that drop on purpose have the line of `qdisc-limit`",
};

/// `other-namespaces`
pub(crate) static RULE: Rule = Rule {
    id: "other-namespaces",
    topic: "net",
    summary: "another network namespace loses packets, or its traffic takes CPU time, and what happens there is not seen from here",
    needs: needs!(
        [
            &keys::CPU_SOFTIRQ,
            &keys::NETNS_OTHER_LOSS,
            &keys::NETNS_OTHER_LOSS_WHO,
            &keys::NETNS_OTHER_QUEUE_HELD,
            &keys::NETNS_OTHER_QUEUE_LOSS,
            &keys::NETNS_OTHER_QUEUE_MANAGED,
            &keys::NETNS_OTHER_QUEUE_WHO,
        ],
        NEEDS
    ),
    thresholds: &[BUSY, SOME, THEIRS, SOME_THEIRS, TRAFFIC, LOST, DROPPED],
    knobs: &[],
    measure: Some(Measure::more(&keys::NETNS_OTHER_PACKETS)),
    doc: Doc {
        looks_for: "Other network namespaces that receive three times as many packets as this one, and more than 100 a second. \
            Where softirqs take more than 50 % of a CPU as well, their packets are the cause; from 35 % on it is \
            worth watching. And a counter of losses in another namespace that accounts for 5 % of its traffic or more: connections refused \
            by a full queue, segments sent again, datagrams dropped. And a queueing discipline there that drops 0.5 % of its packets or \
            more (1 % if it drops on purpose, such as fq_codel; 0.1 % is watched); one that has packets waiting for its rate at both ends of the \
            window is watched.",
        hurts: "Softirqs of a neighbour's packets run before every task of the CPU. And whatever is wrong in that namespace \
            (sockets, rules, drops) is invisible from here.",
        todo: "Run `rungwise check --pid PID` with the pid that is named. Against the noise: steer the neighbour's packets to other \
            CPUs, limit its rate, or move it to another machine.",
        wrong: "The rate of a container may be limited on purpose. Namespaces that no process lives in and that have no name are not found. Packets are counted per device: a large \
            packet after GRO counts once.",
        sources: "namespaces(7); proc_net(5).",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let noise = noise(evidence);
    let mut lost = queueing(evidence);
    lost.extend(losing(evidence));
    if lost.is_empty() {
        return noise;
    }
    // Nothing is clear about a namespace that loses packets.
    let speaks = noise.unwrap_or_default().into_iter();
    let speaks = speaks.filter(|finding| finding.outcome != Outcome::Clear);
    Ok(lost.into_iter().chain(speaks).collect())
}

/// Queueing disciplines of another namespace that drop packets or hold them back.
fn queueing(evidence: &Evidence) -> Vec<Finding> {
    let host = Subject::host();
    let mut findings = Vec::new();
    if let (Ok(loss), Ok(managed), Ok(who)) = (
        evidence.host(&keys::NETNS_OTHER_QUEUE_LOSS),
        evidence.host(&keys::NETNS_OTHER_QUEUE_MANAGED),
        evidence.words(&keys::NETNS_OTHER_QUEUE_WHO, &host),
    ) {
        let most = if loss.value >= qdisc_limit::DROPPED.value {
            loss
        } else {
            managed
        };
        let sentence = format!(
            "a transmit queue of another network namespace drops {} of its packets: {}",
            say::percent(most.value),
            who.value
        );
        let managed_much = managed.value >= qdisc_limit::MANAGED.value;
        let finding = if loss.value >= DROPPED.value || managed_much {
            Some(Finding::act(&host, sentence).severity(Grade::High))
        } else if loss.value >= qdisc_limit::DROPPED.value {
            Some(Finding::watch(&host, sentence).severity(Grade::Medium))
        } else {
            None
        };
        findings.extend(finding.map(|finding| {
            finding
                .confidence(Grade::High)
                .cite(most.reading)
                .refuted_by("`tc -s qdisc` there shows no more drops under the same load")
        }));
    }
    if let Ok(held) = evidence.words(&keys::NETNS_OTHER_QUEUE_HELD, &host)
        && !held.value.is_empty()
        && findings.is_empty()
    {
        let sentence = format!(
            "a transmit queue of another network namespace holds packets back to keep its rate: {}",
            held.value
        );
        findings.push(
            Finding::watch(&host, sentence)
                .severity(Grade::Medium)
                .confidence(Grade::Medium)
                .cite(held.reading)
                .refuted_by("with twice the rate in `tc`, replies are as late"),
        );
    }
    findings
}

/// A namespace whose own counters show a loss.
fn losing(evidence: &Evidence) -> Option<Finding> {
    let share = evidence.host(&keys::NETNS_OTHER_LOSS).ok()?;
    let who = evidence
        .words(&keys::NETNS_OTHER_LOSS_WHO, &Subject::host())
        .ok()?;
    if share.value < LOST.value {
        return None;
    }
    let sentence = format!(
        "another network namespace loses {} of its traffic: {}",
        say::percent(share.value),
        who.value
    );
    // The ends of a connection in two namespaces see the same loss, and the rules of this one name its cause.
    let (theirs, own) = (
        evidence.host(&keys::NETNS_OTHER_PACKETS).ok()?,
        evidence.host(&keys::NETNS_OWN_PACKETS).ok()?,
    );
    let finding = if theirs.value > THEIRS.value * own.value {
        Finding::act(&Subject::host(), sentence)
    } else {
        Finding::watch(&Subject::host(), sentence)
    };
    Some(
        finding
            .severity(Grade::Medium)
            .confidence(Grade::Medium)
            .cite(share.reading)
            .cite(theirs.reading)
            .cite(own.reading)
            .refuted_by("`rungwise check --pid PID` with the pid that is named finds no loss"),
    )
}

fn noise(evidence: &Evidence) -> Judgement {
    let theirs = evidence.host(&keys::NETNS_OTHER_PACKETS)?;
    let own = evidence.host(&keys::NETNS_OWN_PACKETS)?;
    if theirs.value <= TRAFFIC.value || theirs.value <= THEIRS.value * own.value {
        let sentence = format!(
            "other network namespaces receive {} packets, this one {}",
            say::rate(theirs.value),
            say::rate(own.value)
        );
        return Ok(vec![
            Finding::clear(sentence)
                .below(
                    theirs.value / THEIRS.value,
                    own.value.max(TRAFFIC.value / THEIRS.value),
                )
                .cite(theirs.reading)
                .cite(own.reading),
        ]);
    }
    let who = evidence.words(&keys::NETNS_OTHERS, &Subject::host())?;
    let (cpu, softirq) = pick::largest(evidence, &keys::CPU_SOFTIRQ)?;
    if softirq.value <= SOME.value {
        return Err(unseen(evidence, who.value));
    }
    let sentence = format!(
        "softirqs take {} of CPU {}, and the packets belong to another network namespace: {}",
        say::percent(softirq.value),
        cpu.name(),
        who.value
    );
    Ok(vec![
        if softirq.value > BUSY.value {
            Finding::act(&Subject::host(), sentence).severity(Grade::High)
        } else {
            Finding::watch(&Subject::host(), sentence).severity(Grade::Medium)
        }
        .confidence(Grade::High)
        .cite(theirs.reading)
        .cite(own.reading)
        .cite(softirq.reading)
        .cite(who.reading)
        .refuted_by("without that traffic, the softirqs take as much of the CPU"),
    ])
}

/// Why something of the network cannot be judged from here: the traffic is elsewhere.
pub(crate) fn unseen(evidence: &Evidence, who: &str) -> Missing {
    let pid = evidence
        .host(&keys::NETNS_OTHER_PID)
        .map_or(0.0, |pid| pid.value);
    let remedy = if pid > 0.0 {
        format!("run `rungwise check --pid {pid:.0}`")
    } else {
        "run `nsenter --net=/run/netns/NAME rungwise check`".to_owned()
    };
    Missing {
        key: keys::NETNS_OTHERS.id,
        subject: Subject::host(),
        why: Absence::because(format!(
            "packets are in another network namespace ({who}), whose sockets and rules were not read"
        ))
        .remedy(remedy),
    }
}

/// Err where the packets that cost CPU time belong to other network namespaces.
pub(crate) fn ours(evidence: &Evidence) -> Result<(), Missing> {
    below(evidence, &THEIRS)
}

/// Err where so many packets belong to other network namespaces that a cost without a cause here may be theirs.
pub(crate) fn ours_alone(evidence: &Evidence) -> Result<(), Missing> {
    below(evidence, &SOME_THEIRS)
}

fn below(evidence: &Evidence, multiple: &Threshold) -> Result<(), Missing> {
    let (Ok(theirs), Ok(own), Ok(who)) = (
        evidence.host(&keys::NETNS_OTHER_PACKETS),
        evidence.host(&keys::NETNS_OWN_PACKETS),
        evidence.words(&keys::NETNS_OTHERS, &Subject::host()),
    ) else {
        // Without a count there is no other suspect.
        return Ok(());
    };
    if theirs.value > TRAFFIC.value && theirs.value > multiple.value * own.value {
        return Err(unseen(evidence, who.value));
    }
    Ok(())
}

/// Why a host is not seen by its own namespace; a judged process is seen in its own.
pub(crate) fn elsewhere(evidence: &Evidence) -> Option<Missing> {
    let judged = evidence.each(&keys::SCHED_THREAD_CPU).is_ok();
    (!judged).then(|| ours(evidence).err())?
}
