//! `steal`: the hypervisor gave our CPUs to somebody else.
//!
//! Stolen time is counted by the guest (`steal` of /proc/stat, `kernel/sched/cputime.c`): it wanted to run and
//! was not let. One vCPU alone can suffer while the mean looks harmless, so each is judged as well.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Subject};
use rungwise_model::keys;

use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const WARN: Threshold = Threshold {
    name: "stolen, mean of all CPUs, worth attention",
    value: 0.05,
    origin: "netdata alert 20min_steal_cpu, warning",
};

const CRITICAL: Threshold = Threshold {
    name: "stolen, mean of all CPUs or one CPU, harmful",
    value: 0.10,
    origin: "netdata alert 20min_steal_cpu, critical",
};

pub(crate) static RULE: Rule = Rule {
    id: "steal",
    topic: "virt",
    summary: "the hypervisor takes time from this guest's CPUs",
    needs: &[
        &keys::CPU_STEAL,
        &keys::CPU_STEAL_MEAN,
        &keys::VIRT_HYPERVISOR,
    ],
    thresholds: &[WARN, CRITICAL],
    knobs: &["virt.vcpu_pin", "virt.vhost_pin"],
    measure: Some(Measure::more(&keys::CPU_STEAL_MEAN)),
    doc: Doc {
        looks_for: "Stolen time above 5 % over all CPUs in every part of the window (10 %: act), or above 10 % on a single CPU.",
        hurts: "A vCPU that is not running answers no request, and a lock holder that is not running stops every waiter. \
            The time is lost whatever the guest does.",
        todo: "On the hypervisor: pin each vCPU to a CPU of its own on one node, and keep the threads of the network back \
            end (vhost) off those CPUs. Pinning was the one host setting that brought the reference bank host \
            anything. Where the hypervisor is somebody else's, ask them or move.",
        wrong: "Burstable cloud instances steal by contract once their credits are gone. A short spike is a neighbour's, not \
            a placement. No comparison made in such a time means anything, whichever way it goes.",
        sources: "netdata alert 20min_steal_cpu (5 %, 10 %); the reference bank host on Kunpeng: +11 % by vCPU pinning; \
            kernel/sched/cputime.c.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    let mean = evidence.host(&keys::CPU_STEAL_MEAN)?;
    let stolen = say::percent(mean.value);
    let host = Subject::host();
    let finding = if mean.always(|share| share > CRITICAL.value) {
        let sentence = format!("the hypervisor took {stolen} of all CPU time of this guest");
        Finding::act(&host, sentence)
            .severity(Grade::High)
            .confidence(Grade::High)
    } else if mean.always(|share| share > WARN.value) {
        let sentence = format!("the hypervisor took {stolen} of all CPU time of this guest");
        Finding::watch(&host, sentence).confidence(Grade::High)
    } else {
        let worst = evidence.each(&keys::CPU_STEAL).ok().and_then(|cpus| {
            cpus.into_iter()
                .filter(|(_, stolen)| stolen.always(|share| share > CRITICAL.value))
                .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
        });
        let Some((cpu, worst)) = worst else {
            let guest = evidence.words(&keys::VIRT_HYPERVISOR, &host);
            let sentence = match guest {
                Ok(words) if words.value.is_empty() => "no hypervisor, no stolen time".to_owned(),
                _ => format!("{stolen} of the CPU time was stolen"),
            };
            let clear = Finding::clear(sentence)
                .below(mean.value, WARN.value)
                .cite(mean.reading);
            return Ok(vec![clear]);
        };
        let sentence = format!(
            "the hypervisor took {} of CPU {}, and {stolen} of all CPU time",
            say::percent(worst.value),
            cpu.name()
        );
        Finding::watch(cpu, sentence).cite(worst.reading)
    };
    Ok(vec![
        finding
            .cite(mean.reading)
            .consider("virt.vcpu_pin")
            .consider("virt.vhost_pin")
            .estimate(
                0.0,
                0.11,
                "reference bank host: +11 % by vCPU pinning at 88 % CPU",
            )
            .refuted_by("stolen time stays while `virsh vcpuinfo` shows each vCPU alone on a CPU"),
    ])
}
