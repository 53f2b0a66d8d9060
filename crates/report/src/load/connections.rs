//! Connections that are held open: how many were established how fast, what became of them, and what this host allows.

use rungwise_model::connections::Connections;
use rungwise_model::load::{LoadReport, Measurement};

use super::{latency_of, loss, lost_share, tile, time};
use crate::block::{Cell, Column, Table, Tile, Tone};
use crate::numbers::{self, ABSENT};

/// What happened, in one sentence.
pub(super) fn sentence(report: &LoadReport, held: &Connections) -> String {
    let m = &report.measurement;
    let pings = if m.received > 0 {
        format!(
            "; p99 of pings {}",
            numbers::micros(m.latency_us.corrected.p99)
        )
    } else {
        String::new()
    };
    format!(
        "{} of {} connections to {} opened in {}, {} held for {}{pings}",
        numbers::count(held.opened),
        numbers::count(held.asked),
        report.target,
        numbers::span(held.opening_s),
        numbers::count(held.held),
        numbers::span(m.window_s)
    )
}

pub(super) fn tiles(m: &Measurement, held: &Connections) -> Vec<Tile> {
    let pinged = |value| latency_of(m, value);
    vec![
        tile(
            "Connections",
            numbers::count(held.opened),
            format!("of {} asked for", numbers::count(held.asked)),
        ),
        tile(
            "Opened per second",
            opened_per_s(held).map_or(ABSENT.to_owned(), numbers::rate),
            format!("{} asked for", numbers::rate(held.rate_per_s)),
        ),
        tile(
            "Pings lost",
            loss(m).map_or_else(|| ABSENT.to_owned(), lost_share),
            format!(
                "{} of {} sent",
                numbers::count(m.lost),
                numbers::count(m.sent)
            ),
        ),
        tile(
            "p99 of pings",
            pinged(m.latency_us.corrected.p99),
            format!(
                "{} from the send time",
                pinged(m.latency_us.uncorrected.p99)
            ),
        ),
        tile(
            "Generator memory per connection",
            held.client_bytes_each
                .map_or(ABSENT.to_owned(), |bytes| numbers::bytes(bytes as u64)),
            "without that of the kernel".to_owned(),
        ),
    ]
}

fn opened_per_s(held: &Connections) -> Option<f64> {
    (held.opening_s > 0.0 && held.opened > 0).then(|| held.opened as f64 / held.opening_s)
}

pub(super) fn facts(held: &Connections) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Tried".to_owned(), numbers::count(held.tried)),
        ("Established".to_owned(), numbers::count(held.opened)),
        (
            "Open at the end of the window".to_owned(),
            numbers::count(held.held),
        ),
        (
            "Time to open them".to_owned(),
            numbers::span(held.opening_s),
        ),
        ("Time to connect".to_owned(), time(&held.connect_us)),
        (
            "Pings".to_owned(),
            held.ping_s.map_or_else(
                || "none".to_owned(),
                |every| format!("each connection every {}", numbers::span(every)),
            ),
        ),
        (
            "Source addresses".to_owned(),
            match held.sources {
                0 => "chosen by the kernel".to_owned(),
                sources => numbers::count(sources),
            },
        ),
        ("Threads".to_owned(), numbers::count(held.threads)),
    ];
    if let Some(sent) = &held.broadcast {
        facts.push((
            "Messages to every connection".to_owned(),
            format!(
                "{}; {} of {} arrivals",
                numbers::count(sent.messages),
                numbers::count(sent.received),
                numbers::count(sent.expected)
            ),
        ));
        facts.push(("Fan-out time".to_owned(), time(&sent.fan_out_us)));
    }
    if let Some(storm) = &held.storm {
        facts.push((
            "Reconnect storm".to_owned(),
            format!(
                "{} of {} connections back",
                numbers::count(storm.back),
                numbers::count(storm.dropped)
            ),
        ));
        facts.push(("Time until back".to_owned(), time(&storm.back_us)));
    }
    for (title, count) in [
        ("Slow readers", held.slow_readers),
        ("Half-open connections", held.half_open),
    ] {
        if count > 0 {
            facts.push((title.to_owned(), numbers::count(count)));
        }
    }
    facts
}

pub(super) fn limits(held: &Connections) -> Table {
    let rows = held.limits.iter().map(|limit| {
        let (word, tone) = match (limit.suffices, limit.allows) {
            (false, _) => ("✗ too few", Tone::Bad),
            (true, Some(_)) => ("✓ enough", Tone::Good),
            (true, None) => ("no limit", Tone::Plain),
        };
        vec![
            Cell::text(limit.id.replace('_', " ")),
            Cell::number(limit.allows.map(|most| most as f64), |most| {
                numbers::count(most as u64)
            }),
            Cell::text(word).tone(tone),
            Cell::text(&limit.basis),
            Cell::text(&limit.knob),
        ]
    });
    Table {
        caption: format!(
            "What this host allows, computed before the first connect, for {} connections.",
            numbers::count(held.asked)
        ),
        columns: vec![
            Column::words("Limit", "limit"),
            Column::number("Allows", "allows"),
            Column::words("Enough", "enough"),
            Column::words("Computed from", "basis"),
            Column::words("Moved by", "knob"),
        ],
        rows: rows.collect(),
    }
}
