//! `NET_RX` softirqs: the CPUs and nodes that receive packets.
//!
//! Source: fs/proc/softirqs.c, net/core/dev.c (`net_rx_action`), Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::softirqs;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::{ownership, topology};
use crate::net::rates;
use crate::{Cost, Probe, Rate, Source, Window};

const SOFTIRQS: &str = "/proc/softirqs";

/// Share of the `NET_RX` softirqs above which a CPU counts as receiving; part of the key's meaning.
const RECEIVES: f64 = 0.05;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-softirqs",
    summary: "NET_RX softirqs by CPU and node, and per hard interrupt",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::each(SOFTIRQS),
        Source::once(topology::NODES),
        Source::once(topology::ONLINE),
        Source::each(ownership::INTERRUPTS),
        Source::once(ownership::BUS),
        Source::once(ownership::STATE),
        Source::once(ownership::MESSAGES),
        Source::once(ownership::VIRTIO),
    ],
    yields: &[
        &keys::SOFTIRQ_NET_RX,
        &keys::SOFTIRQ_NET_RX_CPUS,
        &keys::SOFTIRQ_NET_RX_NODE_SHARE,
        &keys::SOFTIRQ_NET_RX_PER_IRQ,
        &keys::SOFTIRQ_NET_RX_SHARE,
    ],
    derive,
    doc: "\
One count is one run of the handler, which processes up to netdev_budget packets. Loopback, veth and RPS count like \
hardware, so NET_RX without hard interrupts is traffic inside the host. Counts are those of the whole machine, also \
inside a network namespace. The table has columns for all possible CPUs; only those online are kept. Counters have 32 \
bits and wrap around, which is taken into account. A part of the window without any NET_RX has no shares and is \
omitted from their course; in a window without any, all are 0. Threaded NAPI and busy polling receive without NET_RX. \
Sources: fs/proc/softirqs.c, net/core/dev.c of Linux 6.18; Documentation/networking/scaling.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let mut rates = match counted(window) {
        Ok(rates) if !rates.is_empty() => rates,
        Ok(_) => return evidence.absent(PROBE.yields, &super::unreadable(SOFTIRQS), SOFTIRQS),
        Err(why) => return evidence.absent(PROBE.yields, &why, SOFTIRQS),
    };
    if let Ok(online) = topology::online(window) {
        rates.retain(|cpu, _| online.contains(cpu));
    }
    for (cpu, rate) in &rates {
        let origin = rate.origin(SOFTIRQS);
        let series = rate.series.clone();
        let key = &keys::SOFTIRQ_NET_RX;
        evidence.series(key, Subject::cpu(*cpu), rate.per_s, series, origin);
    }
    let all = Sum::of(rates.values());
    shares(&rates, &all, evidence);
    node_shares(window, &rates, &all, evidence);
    per_irq(window, &all, evidence);
}

/// `NET_RX` by CPU. The counters have 32 bits and are never reset: one that went back wrapped around, and a share of
/// all would be wrong without it.
fn counted(window: &Window<'_>) -> Result<BTreeMap<usize, Rate>, Absence> {
    let counts = |text| softirqs::parse(text, "NET_RX").unwrap_or_default();
    let mut found = window.rates(SOFTIRQS, |text| {
        let counts = counts(text).into_iter();
        counts.map(|(cpu, count)| (cpu, count as f64)).collect()
    })?;
    let samples: Vec<(f64, BTreeMap<usize, u64>)> = window
        .texts(SOFTIRQS)?
        .into_iter()
        .map(|(at, text)| (at, counts(text)))
        .collect();
    let cpus = samples.last().into_iter().flat_map(|(_, last)| last.keys());
    for cpu in cpus {
        if found.contains_key(cpu) {
            continue;
        }
        let course: Option<Vec<(f64, u32)>> = samples
            .iter()
            .map(|(at, counts)| Some((*at, u32::try_from(*counts.get(cpu)?).ok()?)))
            .collect();
        let rate = course.and_then(|course| rates::of_course(&rates::unwrapped(&course)));
        found.extend(rate.map(|rate| (*cpu, rate)));
    }
    Ok(found)
}

/// The sum of several rates.
struct Sum {
    delta: f64,
    parts: Vec<f64>,
}

impl Sum {
    fn of<'r>(rates: impl Iterator<Item = &'r Rate>) -> Self {
        let mut sum = Self {
            delta: 0.0,
            parts: Vec::new(),
        };
        for rate in rates {
            sum.delta += rate.delta;
            sum.parts.resize(rate.series.len(), 0.0);
            for (all, part) in sum.parts.iter_mut().zip(&rate.series) {
                *all += part;
            }
        }
        sum
    }

    /// This sum as a share of `all`, for the window and for each part with any; 0 if there is nothing.
    fn share(&self, all: &Self) -> (f64, Vec<f64>) {
        let parts = self.parts.iter().zip(&all.parts);
        let shares = parts.filter(|(_, all)| **all > 0.0);
        let whole = if all.delta > 0.0 {
            self.delta / all.delta
        } else {
            0.0
        };
        (whole, shares.map(|(part, all)| part / all).collect())
    }

    fn origin(&self, all: &Self) -> Origin {
        let line = format!("NET_RX grew by {} of {}", self.delta, all.delta);
        Origin::new(SOFTIRQS, line)
    }
}

fn shares(rates: &BTreeMap<usize, Rate>, all: &Sum, evidence: &mut Evidence) {
    let mut receiving = Vec::new();
    for (cpu, rate) in rates {
        let own = Sum::of([rate].into_iter());
        let (share, parts) = own.share(all);
        if share > RECEIVES {
            receiving.push(cpu.to_string());
        }
        let key = &keys::SOFTIRQ_NET_RX_SHARE;
        evidence.series(key, Subject::cpu(*cpu), share, parts, own.origin(all));
    }
    let origin = Origin::new(SOFTIRQS, format!("CPUs {}", receiving.join(",")));
    evidence.number(
        &keys::SOFTIRQ_NET_RX_CPUS,
        Subject::host(),
        receiving.len() as f64,
        origin,
    );
}

fn node_shares(
    window: &Window<'_>,
    rates: &BTreeMap<usize, Rate>,
    all: &Sum,
    evidence: &mut Evidence,
) {
    let key = &keys::SOFTIRQ_NET_RX_NODE_SHARE;
    match topology::nodes(window) {
        Ok(nodes) => {
            for (node, cpus) in nodes {
                let own = Sum::of(cpus.iter().filter_map(|cpu| rates.get(cpu)));
                let (share, parts) = own.share(all);
                evidence.series(key, Subject::node(node), share, parts, own.origin(all));
            }
        }
        Err(why) => evidence.absent(&[key], &why, topology::NODES),
    }
}

fn per_irq(window: &Window<'_>, all: &Sum, evidence: &mut Evidence) {
    let key = &keys::SOFTIRQ_NET_RX_PER_IRQ;
    let hard = ownership::rates(window).and_then(|rates| {
        let hard = Sum::of(rates.values());
        if hard.delta > 0.0 {
            Ok(hard)
        } else {
            Err(Absence::because(
                "no network device interrupted during the window",
            ))
        }
    });
    match hard {
        Ok(hard) => {
            let (ratio, _) = all.share(&hard);
            let line = format!("NET_RX {}, hard interrupts {}", all.delta, hard.delta);
            let origin = Origin::new(SOFTIRQS, line);
            evidence.number(key, Subject::host(), ratio, origin);
        }
        Err(why) => evidence.absent(&[key], &why, ownership::INTERRUPTS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    fn shares(first: [u32; 2], last: [u32; 2]) -> [f64; 2] {
        let sample = |at_s, [first, second]: [u32; 2]| {
            let text = format!("            CPU0       CPU1\n  NET_RX: {first} {second}\n");
            let files = [(SOFTIRQS.to_owned(), Raw::Text(text))];
            Moment {
                at_s,
                files: files.into(),
                ..Moment::default()
            }
        };
        let capture = Capture {
            moments: vec![sample(0.0, first), sample(10.0, last)],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        [0, 1].map(|cpu| {
            let share = evidence.quantity(&keys::SOFTIRQ_NET_RX_SHARE, &Subject::cpu(cpu));
            share.expect("a share").value
        })
    }

    #[test]
    fn a_counter_that_goes_round_keeps_its_share() {
        let [first, second] = shares([u32::MAX - 99, 0], [800, 100]);
        assert!((first - 0.9).abs() < 1e-9, "{first}");
        assert!((second - 0.1).abs() < 1e-9, "{second}");
    }

    #[test]
    fn without_packets_no_cpu_has_any_of_them() {
        for share in shares([7, 9], [7, 9]) {
            assert!(share.abs() < 1e-9, "{share}");
        }
    }
}
