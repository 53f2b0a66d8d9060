//! Neighbour tables (ARP, NDP): how full they are, entries refused, and neighbours that do not answer.
//!
//! Tables and limits are shared by all network namespaces of the machine; the neighbours that do not answer are those of this
//! one. Source: net/core/neighbour.c (Linux 6.18).

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Neighbours, Question};
use rungwise_model::keys;

use super::rates::{self, Named, Sum};
use crate::{Cost, Probe, Rate, Source, When, Window};

const SOURCE: &str = "rtnetlink (ip ntable, ip neigh)";

/// Neighbours that are named.
const NAMED: usize = 3;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "neighbours",
    summary: "neighbour tables of ARP and NDP: entries, refused entries, neighbours that do not answer",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ask(Question::Neighbours, When::Ends)],
    yields: &[
        &keys::NEIGH_ENTRIES,
        &keys::NEIGH_FAILED,
        &keys::NEIGH_LIMIT,
        &keys::NEIGH_REFUSED,
        &keys::NEIGH_UNANSWERED,
        &keys::NEIGH_UNANSWERED_WHO,
    ],
    derive,
    doc: "\
The two tables and gc_thresh3 are shared by all network namespaces, so a full table in one container refuses \
neighbours in all of them. `table_fulls` counts refused neighbours since Linux 4.3. A neighbour stays in state FAILED \
for some time after the last packet to it. Sources: net/core/neighbour.c of Linux 6.18; ip-neighbour(8), \
ip-ntable(8).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples: Vec<(f64, &Neighbours)> = match window.answers("neighbours") {
        Ok(answers) => answers
            .into_iter()
            .filter_map(|(at, answer)| match answer {
                Answer::Neighbours(neighbours) => Some((at, neighbours)),
                _ => None,
            })
            .collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let Some((_, last)) = samples.last() else {
        let why = Absence::because("no neighbour table was read");
        return evidence.absent(PROBE.yields, &why, SOURCE);
    };
    let host = Subject::host;
    let fuller = last
        .tables
        .iter()
        .filter(|table| table.limit > 0)
        .max_by_key(|table| u64::from(table.entries) * 1_000_000 / u64::from(table.limit));
    if let Some(table) = fuller {
        let line = format!(
            "{}: {} entries, gc_thresh3 {}",
            table.name, table.entries, table.limit
        );
        let origin = Origin::new(SOURCE, line);
        let share = f64::from(table.entries) / f64::from(table.limit);
        evidence.number(&keys::NEIGH_ENTRIES, host(), share, origin.clone());
        evidence.number(&keys::NEIGH_LIMIT, host(), f64::from(table.limit), origin);
    } else {
        let why = Absence::because("the kernel reported no neighbour table");
        evidence.absent(&[&keys::NEIGH_ENTRIES, &keys::NEIGH_LIMIT], &why, SOURCE);
    }
    for (key, name, of) in [
        (
            &keys::NEIGH_REFUSED,
            "table_fulls",
            (|table| table.refused) as fn(&rungwise_model::kernel::NeighbourTable) -> u64,
        ),
        (&keys::NEIGH_FAILED, "res_failed", |table| table.failed),
    ] {
        let rates: Vec<(String, Rate)> = last
            .tables
            .iter()
            .filter_map(|table| {
                let course: Option<Vec<(f64, u64)>> = samples
                    .iter()
                    .map(|(at, sample)| {
                        let same = sample
                            .tables
                            .iter()
                            .find(|other| other.name == table.name)?;
                        Some((*at, of(same)))
                    })
                    .collect();
                Some((
                    format!("{} {name}", table.name),
                    rates::of_course(&course?)?,
                ))
            })
            .collect();
        let named = rates.iter().map(|(name, rate)| Named { name, rate });
        if let Some(sum) = Sum::of(named) {
            sum.add(evidence, key, host(), SOURCE);
        } else {
            let why = Absence::because("it was in one sample only");
            evidence.absent(&[key], &why, SOURCE);
        }
    }
    let words: Vec<String> = last
        .unanswered
        .iter()
        .take(NAMED)
        .map(|neighbour| {
            let state = if neighbour.failed {
                "FAILED"
            } else {
                "INCOMPLETE"
            };
            format!("{} on {} ({state})", neighbour.address, neighbour.device)
        })
        .collect();
    let origin = Origin::new(
        SOURCE,
        format!("{} neighbours INCOMPLETE or FAILED", last.unanswered_count),
    );
    let count = last.unanswered_count as f64;
    evidence.number(&keys::NEIGH_UNANSWERED, host(), count, origin.clone());
    evidence.text(
        &keys::NEIGH_UNANSWERED_WHO,
        host(),
        words.join(", "),
        origin,
    );
}
