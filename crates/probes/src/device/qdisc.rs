//! Queueing disciplines: the root of each device, and its drops.
//!
//! A discipline includes the drops of those below it (`mq` sums them when it is read), so the root alone is enough.
//! Sources: `net/sched/sch_api.c`, `net/sched/sch_mq.c` (Linux 6.18).

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::kernel::{Answer, Qdisc, Question};
use rungwise_model::keys;

use crate::net::rates;
use crate::{Cost, Probe, Rate, Source, When, Window, enter};

const SOURCE: &str = "rtnetlink (tc -s qdisc)";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "qdisc",
    summary: "root queueing discipline of each device: packets queued, dropped and delayed",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Qdiscs, When::Each)],
    yields: &[
        &keys::QDISC_BACKLOG,
        &keys::QDISC_DROPPED,
        &keys::QDISC_DROPPED_SHARE,
        &keys::QDISC_OVERLIMITS,
        &keys::QDISC_RATE,
        &keys::QDISC_ROOT,
        &keys::QDISC_SENT,
    ],
    derive,
    doc: "\
The counters of the root include everything below it. Devices without a queue (`noqueue`: veth, loopback, bridges) \
take no lock and drop nothing. A discipline that was replaced during the window counts from 0 and is absent. The \
counters of drops and overlimits have 32 bits and may wrap around. Backlog and overlimits of the root are those of the \
whole tree. A `tbf` reports the rate that it is configured for; the rates of `htb` belong to its classes and are not \
read. Sources: net/sched/sch_api.c and sch_mq.c of Linux 6.18; tc(8).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples: Vec<(f64, &[Qdisc])> = match window.answers("qdiscs") {
        Ok(answers) => answers
            .into_iter()
            .filter_map(|(at, answer)| match answer {
                Answer::Qdiscs(qdiscs) => Some((at, &qdiscs[..])),
                _ => None,
            })
            .collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let last = samples.last().map_or(&[][..], |(_, last)| last);
    for root in roots(last) {
        let subject = Subject::device(&root.device);
        let line = format!(
            "qdisc {} {} root, sent {} pkt, dropped {}, overlimits {}, backlog {}p",
            root.kind, root.handle, root.packets, root.drops, root.overlimits, root.backlog
        );
        let origin = Origin::new(SOURCE, line);
        evidence.text(&keys::QDISC_ROOT, subject.clone(), &*root.kind, origin);
        tell_rate(root, &subject, evidence);
        let course = course(&samples, root);
        tell_course(&course, &subject, evidence);
    }
    let none = Absence::because("no device has the same queueing discipline in two samples");
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

/// Its configured rate.
fn tell_rate(root: &Qdisc, subject: &Subject, evidence: &mut Evidence) {
    let rate = root.rate.map(|rate| rate as f64);
    let why = || {
        Absence::because(format!(
            "a {} has no single rate, or does not report it",
            root.kind
        ))
    };
    let origin = Origin::new(SOURCE, format!("qdisc {} {}", root.kind, root.handle));
    let rate = rate.ok_or_else(why);
    enter::number(evidence, &keys::QDISC_RATE, subject.clone(), rate, origin);
}

/// Its counters over the full samples.
fn tell_course(course: &[(f64, &Qdisc)], subject: &Subject, evidence: &mut Evidence) {
    let backlog: Vec<f64> = course
        .iter()
        .map(|(_, qdisc)| f64::from(qdisc.backlog))
        .collect();
    let backlogs: Vec<String> = backlog.iter().map(ToString::to_string).collect();
    let origin = Origin::new(
        SOURCE,
        format!("backlog in packets per sample: {}", backlogs.join(", ")),
    );
    let median = rates::median(&backlog);
    evidence.series(
        &keys::QDISC_BACKLOG,
        subject.clone(),
        median,
        backlog,
        origin,
    );
    let narrow = |of: fn(&Qdisc) -> u32| -> Option<Rate> {
        let course: Vec<(f64, u32)> = course.iter().map(|(at, qdisc)| (*at, of(qdisc))).collect();
        rates::of_course(&rates::unwrapped(&course))
    };
    let wide = |of: fn(&Qdisc) -> u64| -> Option<Rate> {
        let course: Vec<(f64, u64)> = course.iter().map(|(at, qdisc)| (*at, of(qdisc))).collect();
        rates::of_course(&course)
    };
    let dropped = narrow(|qdisc| qdisc.drops);
    for (key, rate) in [
        (&keys::QDISC_DROPPED, dropped.clone()),
        (&keys::QDISC_OVERLIMITS, narrow(|qdisc| qdisc.overlimits)),
        (&keys::QDISC_SENT, wide(|qdisc| qdisc.bytes)),
    ] {
        match rate {
            Some(rate) => enter::rate(evidence, key, subject.clone(), &rate, 1.0, SOURCE),
            None => absent(
                evidence,
                key,
                subject,
                Absence::because("it was in one sample only"),
            ),
        }
    }
    let key = &keys::QDISC_DROPPED_SHARE;
    let (Some(dropped), Some(sent)) = (dropped, wide(|qdisc| qdisc.packets)) else {
        return absent(
            evidence,
            key,
            subject,
            Absence::because("it was in one sample only"),
        );
    };
    let handed = dropped.delta + sent.delta;
    if handed <= 0.0 {
        return absent(
            evidence,
            key,
            subject,
            Absence::none("no packet was handed to it"),
        );
    }
    let line = format!("dropped {}; sent {}", dropped.line(), sent.line());
    let share = dropped.delta / handed;
    evidence.number(key, subject.clone(), share, Origin::new(SOURCE, line));
}

fn absent(evidence: &mut Evidence, key: &'static Key, subject: &Subject, why: Absence) {
    let origin = Origin::new(SOURCE, "");
    enter::absent(evidence, key, subject.clone(), why, origin);
}

/// This discipline in each full sample that has it: a replacement counts from 0.
fn course<'a>(samples: &[(f64, &'a [Qdisc])], root: &Qdisc) -> Vec<(f64, &'a Qdisc)> {
    let is_it = |other: &&Qdisc| {
        (&other.device, &other.kind, &other.handle) == (&root.device, &root.kind, &root.handle)
    };
    samples
        .iter()
        .filter_map(|(at, qdiscs)| Some((*at, roots(qdiscs).find(is_it)?)))
        .collect()
}

fn roots(qdiscs: &[Qdisc]) -> impl Iterator<Item = &Qdisc> {
    qdiscs.iter().filter(|qdisc| qdisc.parent == "root")
}
