//! Packets that each CPU took from devices and from its backlog: `/proc/net/softnet_stat`.
//!
//! Source: `softnet_seq_show` in net/core/net-procfs.c (Linux 6.18).

use std::collections::BTreeMap;

use rungwise_formats::softnet::{self, Row};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::cpu::topology;
use crate::net::rates;
use crate::{Cost, Probe, Rate, Source, Window, enter};

const STAT: &str = "/proc/net/softnet_stat";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "softnet-stat",
    summary: "packets that each CPU processed, dropped from its backlog or left over",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::each(STAT), Source::once(topology::ONLINE)],
    yields: &[
        &keys::SOFTNET_DROPPED,
        &keys::SOFTNET_FLOW_LIMIT,
        &keys::SOFTNET_PROCESSED,
        &keys::SOFTNET_RECEIVED_RPS,
        &keys::SOFTNET_SQUEEZED,
        &keys::SOFTNET_SQUEEZED_SHARE,
    ],
    derive,
    doc: "\
The counters are per CPU of the whole machine, also in a network namespace. Since 5.10 a row contains its CPU number; \
before, the rows are the online CPUs in order. Counters have 32 bits: at a million packets per second they wrap \
around every 72 minutes, which is taken into account. `processed` also counts packets of veth and loopback, which \
pass through the backlog; a packet that RPS sends to another CPU counts on that CPU only. A squeeze is a polling \
round that ran out of netdev_budget or netdev_budget_usecs with packets left: a few per hour are harmless. Source: \
net/core/net-procfs.c, net/core/dev.c of Linux 6.18.",
};

/// Rows by CPU in one full sample.
type Sample = (f64, BTreeMap<usize, Row>);

type Column = fn(&Row) -> Option<u32>;

static COLUMNS: &[(&Key, &str, Column)] = &[
    (&keys::SOFTNET_PROCESSED, "processed", |row| {
        Some(row.processed)
    }),
    (&keys::SOFTNET_DROPPED, "dropped", |row| Some(row.dropped)),
    (&keys::SOFTNET_SQUEEZED, "time_squeeze", |row| {
        Some(row.squeezed)
    }),
    (&keys::SOFTNET_RECEIVED_RPS, "received_rps", |row| {
        row.received_rps
    }),
    (&keys::SOFTNET_FLOW_LIMIT, "flow_limit_count", |row| {
        row.flow_limit
    }),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples = match samples(window) {
        Ok(samples) => samples,
        Err(why) => return evidence.absent(PROBE.yields, &why, STAT),
    };
    let why = if samples.len() < 2 {
        Absence::because("it was read once, and a rate needs two samples")
            .remedy("observe for some seconds: --for 10s")
    } else {
        Absence::because("this kernel has no such column")
    };
    let cpus = samples.last().into_iter().flat_map(|(_, rows)| rows.keys());
    for cpu in cpus {
        let rate = |column: Column| -> Option<Rate> {
            let course: Option<Vec<_>> = samples
                .iter()
                .map(|(at, rows)| Some((*at, column(rows.get(cpu)?)?)))
                .collect();
            rates::of_course(&rates::unwrapped(&course?))
        };
        let subject = Subject::cpu(*cpu);
        for (key, name, column) in COLUMNS {
            if let Some(rate) = rate(*column) {
                let origin = Origin::new(STAT, format!("{name} {}", rate.line()));
                evidence.series(key, subject.clone(), rate.per_s, rate.series, origin);
            }
        }
        let (squeezed, processed) = (
            rate(|row| Some(row.squeezed)),
            rate(|row| Some(row.processed)),
        );
        if let (Some(squeezed), Some(processed)) = (squeezed, processed)
            && let Some((share, series)) = rates::share(&squeezed, &processed)
        {
            let line = format!(
                "time_squeeze {}; processed {}",
                squeezed.line(),
                processed.line()
            );
            let origin = Origin::new(STAT, line);
            evidence.series(
                &keys::SOFTNET_SQUEEZED_SHARE,
                subject,
                share,
                series,
                origin,
            );
        }
    }
    enter::absent_if_unset(evidence, PROBE.yields, &why, STAT);
}

/// All full samples.
fn samples(window: &Window<'_>) -> Result<Vec<Sample>, Absence> {
    let texts = window.texts(STAT)?;
    // Needed only for kernels whose rows do not name the CPU.
    let online = topology::online(window);
    texts
        .into_iter()
        .map(|(at, text)| {
            let rows = softnet::parse(text).ok_or_else(|| {
                Absence::because(format!("{STAT} has a format that rungwise does not know"))
            })?;
            let cpus: Vec<usize> = match &online {
                _ if rows.iter().all(|row| row.cpu.is_some()) => {
                    rows.iter().filter_map(|row| row.cpu).map(|cpu| cpu as usize).collect()
                }
                Ok(online) if online.len() == rows.len() => online.iter().copied().collect(),
                Ok(_) => {
                    return Err(Absence::because(
                        "rows do not name their CPU, and their number differs from that of the online CPUs",
                    ));
                }
                Err(why) => return Err(why.clone()),
            };
            Ok((at, cpus.into_iter().zip(rows).collect()))
        })
        .collect()
}
