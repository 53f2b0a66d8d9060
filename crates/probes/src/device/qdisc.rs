//! Queueing disciplines: what stands at the root of each device, and what it dropped.
//!
//! A discipline passes the drops of those below it on to itself (`mq` sums them up when it is asked), so the root
//! alone tells all. Sources: `net/sched/sch_api.c`, `net/sched/sch_mq.c` (Linux 6.18).

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Qdisc, Question};
use rungwise_model::keys;

use crate::net::rates;
use crate::{Cost, Probe, Source, When, Window, enter};

const SOURCE: &str = "rtnetlink (tc -s qdisc)";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "qdisc",
    summary: "queueing discipline at the root of each device, and packets it dropped",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Qdiscs, When::Each)],
    yields: &[&keys::QDISC_DROPPED, &keys::QDISC_ROOT],
    derive,
    doc: "\
The counters of the root hold those of everything below it. Devices without a queue (`noqueue`: veth, loopback, \
bridges) have no lock there and drop nothing. A discipline that was replaced during the window counts from 0 \
and is absent. The counter has 32 bits and may go round. Sources: net/sched/sch_api.c and sch_mq.c of Linux 6.18; \
tc(8).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let looks: Vec<(f64, &[Qdisc])> = match window.answers("qdiscs") {
        Ok(answers) => answers
            .into_iter()
            .filter_map(|(at, answer)| match answer {
                Answer::Qdiscs(qdiscs) => Some((at, &qdiscs[..])),
                _ => None,
            })
            .collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let last = looks.last().map_or(&[][..], |(_, last)| last);
    for root in roots(last) {
        let subject = Subject::device(&root.device);
        let line = format!(
            "qdisc {} {} root, sent {} pkt, dropped {}, overlimits {}, backlog {}p",
            root.kind, root.handle, root.packets, root.drops, root.overlimits, root.backlog
        );
        let origin = Origin::new(SOURCE, line);
        evidence.text(&keys::QDISC_ROOT, subject.clone(), &*root.kind, origin);
        let course = rates::unwrapped(&course(&looks, root));
        if let Some(rate) = rates::of_course(&course) {
            enter::rate(evidence, &keys::QDISC_DROPPED, subject, &rate, 1.0, SOURCE);
        } else {
            let why = Absence::because("it was seen at one look only");
            let origin = Origin::new(SOURCE, "");
            enter::absent(evidence, &keys::QDISC_DROPPED, subject, why, origin);
        }
    }
    let none = Absence::because("no device has a queueing discipline for two looks");
    enter::unless_told(evidence, PROBE.yields, &none, SOURCE);
}

/// Drops of this discipline at each look that has it: another one in its place counts from 0.
fn course(looks: &[(f64, &[Qdisc])], root: &Qdisc) -> Vec<(f64, u32)> {
    let is_it = |other: &&Qdisc| {
        (&other.device, &other.kind, &other.handle) == (&root.device, &root.kind, &root.handle)
    };
    looks
        .iter()
        .filter_map(|(at, qdiscs)| Some((*at, roots(qdiscs).find(is_it)?.drops)))
        .collect()
}

fn roots(qdiscs: &[Qdisc]) -> impl Iterator<Item = &Qdisc> {
    qdiscs.iter().filter(|qdisc| qdisc.parent == "root")
}
