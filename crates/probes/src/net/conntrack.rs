//! Connection tracking: how full its table is, and packets lost to it.
//!
//! Without the module there are no files and no table that could be full: that is a known value, not a missing one.
//! Source: `net/netfilter/nf_conntrack_standalone.c` (Linux 6.18).

use std::collections::BTreeMap;

use rungwise_formats::per_cpu;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::is_not_there;
use super::rates::{Named, Sum};
use crate::{Cost, Probe, Source, Window};

const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
/// Both of them, as they are cited.
const USED: &str = "/proc/sys/net/netfilter/nf_conntrack_{count,max}";
const STAT: &str = "/proc/net/stat/nf_conntrack";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "nf-conntrack",
    summary: "how full the connection tracking table is, and packets lost to it",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::each(COUNT), Source::once(MAX), Source::each(STAT)],
    yields: &[&keys::CONNTRACK_DROPPED, &keys::CONNTRACK_USE],
    derive,
    doc: "\
Count and counters are those of one network namespace, the maximum is the machine's. `drop` grows when an entry could \
not be allocated, `insert_failed` when one could not be inserted; the latter also happens without a full table, when \
two packets of a new flow race. `early_drop` evicts an entry without a reply so far: no packet is lost, and it is not \
counted here. A loaded module need not be in use: without a rule that requires it, packets are not tracked and the \
count stays 0. Sources: nf_conntrack_core.c, nf_conntrack_standalone.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if is_not_there(window, COUNT) && is_not_there(window, MAX) {
        let line = "no such file: connection tracking is not loaded";
        for key in [&keys::CONNTRACK_USE, &keys::CONNTRACK_DROPPED] {
            evidence.number(key, Subject::host(), 0.0, Origin::new(COUNT, line));
        }
        return;
    }
    if let Err(why) = used(window, evidence) {
        evidence.absent(&[&keys::CONNTRACK_USE], &why, COUNT);
    }
    if let Err(why) = dropped(window, evidence) {
        evidence.absent(&[&keys::CONNTRACK_DROPPED], &why, STAT);
    }
}

fn used(window: &Window<'_>, evidence: &mut Evidence) -> Result<(), Absence> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let course: Vec<f64> = window
        .texts(COUNT)?
        .into_iter()
        .filter_map(|(_, text)| Some(number(text)? as f64))
        .collect();
    let most = number(window.text(MAX)?).filter(|most| *most > 0);
    let (Some(last), Some(most)) = (course.last(), most) else {
        return Err(Absence::because(format!(
            "{COUNT} or {MAX} is not a number"
        )));
    };
    evidence.series(
        &keys::CONNTRACK_USE,
        Subject::host(),
        last / most as f64,
        course.iter().map(|count| count / most as f64).collect(),
        Origin::new(USED, format!("{last} entries, nf_conntrack_max {most}")),
    );
    Ok(())
}

fn dropped(window: &Window<'_>, evidence: &mut Evidence) -> Result<(), Absence> {
    const COUNTERS: [&str; 2] = ["drop", "insert_failed"];
    let rates = window.rates(STAT, |text| -> BTreeMap<_, _> {
        let sums = per_cpu::sums(text, 16).into_iter();
        sums.map(|(name, sum)| (name, sum as f64)).collect()
    })?;
    let parts = COUNTERS.map(|name| {
        Some(Named {
            name,
            rate: rates.get(name)?,
        })
    });
    let sum = Sum::of(parts.into_iter().flatten());
    let sum = sum.ok_or_else(|| {
        Absence::because(format!(
            "{STAT} has neither {} nor {}",
            COUNTERS[0], COUNTERS[1]
        ))
    })?;
    sum.add(evidence, &keys::CONNTRACK_DROPPED, Subject::host(), STAT);
    Ok(())
}
