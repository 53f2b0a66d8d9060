//! The packet path from the wire to the application, and how many packets were lost at each stage. The stages
//! are those of Linux 6.18: driver, `net/core/dev.c`, `net/ipv4/ip_input.c`, netfilter, sockets.

use rungwise_model::evidence::{Evidence, Key, Kind, Subject, Unit};
use rungwise_model::keys;

use super::data::Named;
use super::readings::{number, words};
use crate::block::{Block, Cell, Chart, Column, Loss, PathStage, PathStages, Plot, Table};
use crate::numbers;

/// A station: its name, what is counted there, the counters that add up to its loss.
struct Station {
    title: &'static str,
    counts: &'static str,
    keys: &'static [&'static Key],
}

const STATIONS: &[Station] = &[
    Station {
        title: "Network device",
        counts: "received with errors",
        keys: &[&keys::DEVICE_RX_ERRORS],
    },
    Station {
        title: "Driver ring",
        counts: "no buffer in the ring (missed, fifo, out of buffer)",
        keys: &[&keys::DEVICE_MISSED],
    },
    Station {
        title: "Softnet backlog",
        // softnet_stat counts what the flow limit drops here too.
        counts: "per-CPU backlog full, or flow limit reached",
        keys: &[&keys::SOFTNET_DROPPED],
    },
    Station {
        title: "IP",
        counts: "malformed, rejected by source validation, discarded, no route",
        keys: &[
            &keys::IP_MALFORMED,
            &keys::IP_REVERSE_PATH,
            &keys::IP_DISCARDED,
            &keys::IP_NO_ROUTE,
        ],
    },
    Station {
        title: "Connection tracking",
        counts: "table full, insert failed",
        keys: &[&keys::CONNTRACK_DROPPED],
    },
    Station {
        title: "UDP sockets",
        counts: "receive buffer full, no memory, port not open, wrong checksum",
        keys: &[
            &keys::UDP_RCVBUF_DROPS,
            &keys::UDP_MEM_ERRORS,
            &keys::UDP_NO_PORTS,
            &keys::UDP_CHECKSUM,
        ],
    },
    Station {
        title: "TCP listeners",
        // ListenDrops holds the overflows and what the half-open queue refused.
        counts: "connections refused, mostly because the accept queue is full",
        keys: &[&keys::TCP_LISTEN_DROPS],
    },
    Station {
        title: "TCP connections",
        counts: "bad segments, backlog or receive buffer full, window closed, no memory",
        keys: &[&keys::TCP_SEGMENTS_DROPPED],
    },
    Station {
        title: "Transmit queue",
        counts: "dropped by the transmit queueing discipline",
        keys: &[&keys::QDISC_DROPPED],
    },
];

/// Queues that an application empties; nothing is lost there, but what is full loses next.
const QUEUES: [(&Key, &str); 2] = [
    (&keys::UDP_SOCKET_QUEUE, "UDP receive queue"),
    (&keys::TCP_RECVQ_SHARE, "TCP receive queue"),
];

pub(super) fn blocks(evidence: &Evidence) -> Vec<Block> {
    let mut blocks = vec![
        Block::section("losses", "Packet path"),
        Block::Chart(Box::new(way(evidence))),
    ];
    blocks.extend(reasons(evidence).map(|reasons| Block::Long {
        brief: reasons.brief,
        summary: String::new(),
        blocks: vec![Block::Table(reasons.table)],
    }));
    blocks
}

pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    let reasons = reasons(evidence).map(|reasons| reasons.table);
    let mut tables = vec![Named::picture(way(evidence))];
    tables.extend(Named::all([("drop-reasons", reasons)]));
    tables
}

/// The stations with what each lost.
fn way(evidence: &Evidence) -> Chart {
    let mut steps: Vec<PathStage> = STATIONS
        .iter()
        .map(|station| step(evidence, station))
        .collect();
    // Received and not yet sent: before the way out.
    steps.insert(steps.len() - 1, application(evidence));
    let filter = filter(evidence);
    let unknown = STATIONS
        .iter()
        .filter(|station| station.keys.iter().any(|key| evidence.each(key).is_err()))
        .count()
        + usize::from(matches!(filter.loss, Loss::Unknown(_)));
    let tracking = steps
        .iter()
        .position(|step| step.title == "Connection tracking");
    steps.insert(tracking.unwrap_or_default(), filter);
    let mut title = title(&steps, unknown);
    if reasons(evidence).is_some()
        && !steps
            .iter()
            .any(|step| matches!(step.loss, Loss::Some { .. }))
    {
        title += "; the kernel dropped some elsewhere, see reasons below";
    }
    let data = data(&steps);
    let quantity = "packets per second, mean of the window".to_owned();
    Chart {
        id: "loss-ladder",
        title,
        note: "From the wire to the application; the last stage is transmit.".to_owned(),
        plot: Plot::PathStages(PathStages { quantity, steps }),
        data,
    }
}

fn step(evidence: &Evidence, station: &Station) -> PathStage {
    let mut sum = 0.0;
    let mut known = 0;
    let mut notes = Vec::new();
    let mut lacking = Vec::new();
    for key in station.keys {
        match evidence.each(key) {
            Ok(all) => {
                known += 1;
                sum += all.iter().map(|(_, rate)| rate.value).sum::<f64>();
                notes.extend(largest(&all));
            }
            Err(missing) => lacking.push((key.id, missing.why.reason)),
        }
    }
    let loss = match lacking.first() {
        Some((_, why)) if known == 0 => Loss::Unknown(why.clone()),
        _ if sum > 0.0 => Loss::Some {
            per_s: sum,
            total: sum * evidence.seconds(),
        },
        _ => Loss::None,
    };
    if known > 0 {
        notes.extend(
            lacking
                .iter()
                .map(|(id, why)| format!("excludes {id}: {why}")),
        );
    }
    PathStage {
        title: station.title.to_owned(),
        counts: station.counts.to_owned(),
        loss,
        note: notes.join("; "),
    }
}

/// What rules drop: the kernel has no counter of it, but a reason of its own, and tells that of the whole machine.
fn filter(evidence: &Evidence) -> PathStage {
    const REASON: &str = "NETFILTER_DROP";
    let host = Subject::host();
    let loss = match evidence.words(&keys::DROP_REASONS, &host) {
        Err(missing) => Loss::Unknown(missing.why.reason),
        Ok(reasons) => {
            let counts: Vec<(&str, f64)> = counts(reasons.value).collect();
            let all: f64 = counts.iter().map(|(_, count)| count).sum();
            let of = |reason: &str| {
                let mut named = counts.iter().filter(|(name, _)| *name == reason);
                named.next().map(|(_, count)| *count)
            };
            match (of(REASON), number(evidence, &keys::DROP_RATE, &host)) {
                (Some(count), Some(rate)) if rate > 0.0 => {
                    let per_s = rate * count / all;
                    let whole = count / per_s >= evidence.seconds() * WHOLE;
                    let total = if whole {
                        count
                    } else {
                        per_s * evidence.seconds()
                    };
                    Loss::Some { per_s, total }
                }
                _ if of("others").or(of("[others]")).is_some() => Loss::Unknown(
                    "packets were dropped for reasons that are not listed here".to_owned(),
                ),
                _ => Loss::None,
            }
        }
    };
    PathStage {
        title: "Packet filter".to_owned(),
        counts: "dropped by a rule, in all network namespaces (reason NETFILTER_DROP)".to_owned(),
        note: match loss {
            Loss::Some { .. } => "as its rules require".to_owned(),
            _ => String::new(),
        },
        loss,
    }
}

/// Reasons with their packets, written as `REASON COUNT, ...`.
fn counts(reasons: &str) -> impl Iterator<Item = (&str, f64)> {
    reasons.split(", ").filter_map(|part| {
        let (reason, count) = part.rsplit_once(' ')?;
        Some((reason, count.parse().ok()?))
    })
}

/// Where most of it was lost, unless it is a loss of the whole host.
fn largest(all: &[(&Subject, rungwise_model::evidence::Quantity<'_>)]) -> Option<String> {
    let (subject, most) = all.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let is_named = subject.kind() != Kind::Host && most.value > 0.0;
    is_named.then(|| format!("most at {subject}: {}", numbers::rate(most.value)))
}

fn application(evidence: &Evidence) -> PathStage {
    let fullest = QUEUES
        .iter()
        .filter_map(|(key, name)| {
            let all = evidence.each(key).ok()?;
            let (subject, share) = all
                .into_iter()
                .max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
            Some((share.value, format!("{name} of {subject}")))
        })
        .chain(accept_queue(evidence))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (loss, note) = match fullest {
        Some((share, note)) if share > 0.0 => (Loss::Filled(share), note),
        Some(_) => (Loss::Filled(0.0), "all queues were empty".to_owned()),
        None => {
            let missing = evidence.missing(&keys::UDP_SOCKET_QUEUE, &Subject::host());
            (Loss::Unknown(missing.why.reason), String::new())
        }
    };
    PathStage {
        title: "Application".to_owned(),
        counts: "fullest queue waiting for a process".to_owned(),
        loss,
        note,
    }
}

fn accept_queue(evidence: &Evidence) -> Option<(f64, String)> {
    evidence
        .each(&keys::TCP_ACCEPT_QUEUE)
        .ok()?
        .into_iter()
        .filter_map(|(port, waiting)| {
            let room = number(evidence, &keys::TCP_ACCEPT_BACKLOG, port)?;
            // The kernel lets in one more than the backlog (sk_acceptq_is_full).
            (room > 0.0).then(|| {
                (
                    waiting.value / (room + 1.0),
                    format!("accept queue of {port}"),
                )
            })
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// `unknown` stations are unknown, or only a part of them is.
fn title(steps: &[PathStage], unknown: usize) -> String {
    let most = steps
        .iter()
        .filter_map(|step| match step.loss {
            Loss::Some { per_s, .. } => Some((per_s, step)),
            _ => None,
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match (most, unknown) {
        (Some((per_s, step)), _) => {
            format!("Most packet loss: {}, {}", step.title, numbers::rate(per_s))
        }
        (None, 0) => "No packet loss at these stages".to_owned(),
        (None, 1) => "No known packet loss; 1 stage is unknown or only partly known".to_owned(),
        (None, n) => {
            format!("No known packet loss; {n} stages are unknown or only partly known")
        }
    }
}

fn data(steps: &[PathStage]) -> Table {
    let rows = steps
        .iter()
        .map(|step| {
            let (per_s, total, filled, state) = match &step.loss {
                Loss::None => (Some(0.0), Some(0.0), None, "none"),
                Loss::Some { per_s, total } => (Some(*per_s), Some(*total), None, "lost"),
                Loss::Filled(share) => (None, None, Some(*share), "filled"),
                Loss::Unknown(_) => (None, None, None, "not known"),
            };
            let note = match &step.loss {
                Loss::Unknown(why) => why,
                _ => &step.note,
            };
            vec![
                Cell::text(&step.title),
                Cell::text(&step.counts),
                Cell::number(per_s, numbers::rate),
                Cell::number(total, numbers::significant),
                Cell::number(filled, numbers::share),
                Cell::text(state),
                Cell::text(note),
            ]
        })
        .collect();
    Table {
        caption: "Packets lost at each stage".to_owned(),
        columns: vec![
            Column::words("PathStage", "title").unit(Unit::Text),
            Column::words("Counted", "counts").unit(Unit::Text),
            Column::number("Rate", "lost_per_s").unit(Unit::PerSecond),
            Column::number("In the window", "lost").unit(Unit::Count),
            Column::number("Filled", "filled").unit(Unit::Fraction),
            Column::words("State", "state").unit(Unit::Text),
            Column::words("Note", "note").unit(Unit::Text),
        ],
        rows,
    }
}

/// Counted for so much of the window, it was the whole: the counters begin a moment before the first sample, and end after
/// the last one.
const WHOLE: f64 = 0.95;

/// Reasons of the kernel, in a sentence and in full.
struct Reasons {
    brief: String,
    table: Table,
}

/// Kernel drop reasons, as `REASON COUNT, ...`.
fn reasons(evidence: &Evidence) -> Option<Reasons> {
    let text = words(evidence, &keys::DROP_REASONS, &Subject::host())?;
    let sum: f64 = counts(text).map(|(_, count)| count).sum();
    let rate = number(evidence, &keys::DROP_RATE, &Subject::host());
    let counted_s = rate.filter(|rate| *rate > 0.0).map(|rate| sum / rate);
    let rows: Vec<Vec<Cell>> = counts(text)
        .map(|(reason, count)| {
            vec![
                Cell::text(reason),
                Cell::number(Some(count), numbers::significant),
                Cell::number(counted_s.map(|seconds| count / seconds), numbers::rate),
            ]
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let rate = rate.map_or_else(String::new, |rate| format!(": {}", numbers::rate(rate)));
    // The stations are counters of one namespace over the whole window.
    let scope = match counted_s {
        Some(seconds) if seconds >= evidence.seconds() * WHOLE => {
            "counted over the whole window in all network namespaces; the stages above count this namespace only, so expect \
             more here where containers run"
                .to_owned()
        }
        counted => format!(
            "counted for {} in all network namespaces; the stages above count {} in this namespace only, so compare rates, and \
             expect more here where containers run",
            counted.map_or_else(
                || "part of the window".to_owned(),
                |seconds| format!("{} of the window", numbers::span(seconds)),
            ),
            numbers::span(evidence.seconds())
        ),
    };
    Some(Reasons {
        brief: format!("Kernel drop reasons (skb:kfree_skb){rate}: {text}; {scope}"),
        table: Table {
            caption: format!(
                "Kernel drop reasons (skb:kfree_skb){rate}, {scope}. A few per second are normal: NOT_SPECIFIED marks \
                 callers that give no reason."
            ),
            columns: vec![
                Column::words("Reason", "title").unit(Unit::Text),
                Column::number("Packets counted", "packets").unit(Unit::Count),
                Column::number("Rate", "per_s").unit(Unit::PerSecond),
            ],
            rows,
        },
    })
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Absence, Origin};

    use super::*;

    fn loss<'a>(steps: &'a [PathStage], title: &str) -> &'a Loss {
        let step = steps.iter().find(|step| step.title == title);
        &step.expect("the station is there").loss
    }

    fn steps(evidence: &Evidence) -> Vec<PathStage> {
        STATIONS
            .iter()
            .map(|station| step(evidence, station))
            .collect()
    }

    #[test]
    fn a_station_adds_up_its_counters_and_says_where_most_was_lost() {
        let mut evidence = Evidence::over(10.0);
        for (cpu, rate) in [(0, 3.0), (1, 40.0)] {
            let origin = Origin::default();
            evidence.number(&keys::SOFTNET_DROPPED, Subject::cpu(cpu), rate, origin);
        }
        let steps = steps(&evidence);
        let Loss::Some { per_s, total } = *loss(&steps, "Softnet backlog") else {
            panic!("{steps:?}");
        };
        assert!((per_s - 43.0).abs() < 1e-9 && (total - 430.0).abs() < 1e-9);
        assert!(steps[2].note.contains("cpu/1"), "{}", steps[2].note);
        assert!(title(&steps, 0).contains("Softnet backlog"));
    }

    #[test]
    fn what_could_not_be_read_is_never_none() {
        let mut evidence = Evidence::over(10.0);
        let why = Absence::because("not permitted");
        evidence.absent(&[&keys::CONNTRACK_DROPPED], &why, "");
        let origin = Origin::default();
        evidence.number(&keys::UDP_RCVBUF_DROPS, Subject::host(), 0.0, origin);
        let steps = steps(&evidence);
        assert_eq!(
            loss(&steps, "Connection tracking"),
            &Loss::Unknown("not permitted".to_owned())
        );
        assert_eq!(loss(&steps, "UDP sockets"), &Loss::None);
        assert!(title(&steps, 1).contains("No known packet loss"));
    }

    #[test]
    fn what_rules_drop_is_reported_by_the_kernels_reason() {
        let lost = |reasons: &str, rate: f64| {
            let mut evidence = Evidence::over(10.0);
            let origin = Origin::default();
            evidence.text(
                &keys::DROP_REASONS,
                Subject::host(),
                reasons,
                origin.clone(),
            );
            evidence.number(&keys::DROP_RATE, Subject::host(), rate, origin);
            filter(&evidence).loss
        };
        let some = |per_s, total| Loss::Some { per_s, total };
        // Counted in the whole window, and in 2 s of it.
        let reasons = "NETFILTER_DROP 300, NO_SOCKET 100";
        assert_eq!(lost(reasons, 40.0), some(30.0, 300.0));
        assert_eq!(lost(reasons, 200.0), some(150.0, 1500.0));
        assert_eq!(lost("NO_SOCKET 100", 10.0), Loss::None);
        assert_eq!(lost("none", 0.0), Loss::None);
        for reasons in ["[others] 400", "NO_SOCKET 100, others 3"] {
            assert!(matches!(lost(reasons, 40.0), Loss::Unknown(_)), "{reasons}");
        }
        let none = filter(&Evidence::over(10.0));
        assert!(matches!(none.loss, Loss::Unknown(_)), "{none:?}");
        let way = way(&Evidence::over(10.0));
        let Plot::PathStages(PathStages { steps, .. }) = way.plot else {
            panic!("{way:?}");
        };
        assert_eq!(steps[4].title, "Packet filter");
        assert_eq!(steps[5].title, "Connection tracking");
    }

    #[test]
    fn reasons_of_the_kernel_become_rows() {
        let mut evidence = Evidence::over(10.0);
        let text = "SOCKET_RCVBUFF 190, NO_SOCKET 10";
        let origin = Origin::default();
        evidence.text(&keys::DROP_REASONS, Subject::host(), text, origin.clone());
        evidence.number(&keys::DROP_RATE, Subject::host(), 100.0, origin);
        let Reasons { brief, table } = reasons(&evidence).expect("reasons");
        // Another time and another scope than those of the stations above.
        let [counted, window] = [2.0, 10.0].map(numbers::span);
        let scope = format!(
            "counted for {counted} of the window in all network namespaces; the stages above count {window}"
        );
        assert!(brief.contains(&scope), "{brief}");
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0][0].text, "SOCKET_RCVBUFF");
        assert!(table.caption.contains(&scope), "{}", table.caption);
        assert_eq!(table.rows[0][2].raw, Some(95.0));
        // At 20 a second the same 200 packets took the whole window.
        evidence.number(&keys::DROP_RATE, Subject::host(), 20.0, Origin::default());
        let Reasons { brief, .. } = reasons(&evidence).expect("reasons");
        assert!(brief.contains("over the whole window"), "{brief}");
    }
}
