//! The connections of the service named with `--socket`: which side of each is slow, and the numbers of both ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_model::evidence::{Evidence, Key, Kind, Subject, Unit};
use rungwise_model::keys;
use rungwise_model::service::{Cause, ServiceConnection, ServiceReport, Side};

use super::data::Named;
use super::readings::{self, number, said, words};
use crate::block::{Block, Cell, Column, Table, Tone};
use crate::numbers;

/// Rows of the table; the others are summed up.
const SHOWN: usize = 10;

/// Columns of an address and a port.
const LONGEST_IPV4: usize = 21;

pub(super) fn blocks(service: Option<&ServiceReport>, evidence: &Evidence) -> Vec<Block> {
    let Some(service) = service else {
        return Vec::new();
    };
    let title = format!("Connections of {}", service.ports.join(", "));
    let mut blocks = vec![Block::section("service", title)];
    if service.judged.is_empty() {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: "It had no connection at the end of the window.".to_owned(),
        });
        return blocks;
    }
    blocks.push(Block::Prose(summary(service)));
    let busy = service.judged.iter().filter(|one| one.slow != Side::Idle);
    let shown: Vec<&ServiceConnection> = busy.take(SHOWN).collect();
    if !shown.is_empty() {
        blocks.push(Block::Table(table(&shown, evidence)));
    }
    let reasons = shown.iter().filter(|one| one.cause != Cause::None);
    let reasons: Vec<String> = reasons
        .map(|one| {
            format!(
                "{}: the {} {}: {}",
                one.connection,
                slow(one.slow),
                cause(one.cause),
                one.why
            )
        })
        .collect();
    if !reasons.is_empty() {
        blocks.push(Block::List(reasons));
    }
    blocks.extend(rest(service, &shown, evidence).map(Block::Prose));
    blocks
}

/// The data of every judged connection, with the numbers of both ends.
pub(super) fn tables(evidence: &Evidence) -> Vec<Named> {
    let roles = evidence.each_words(&keys::SERVICE_ROLE).unwrap_or_default();
    if roles.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![
        Column::words("Connection", "title").unit(Unit::Text),
        Column::words("Side of its first end", "role").unit(Unit::Text),
    ];
    for (heading, key, _, of) in NUMBERS {
        columns.push(Column::number(*heading, key).unit(of.unit));
    }
    columns.push(Column::words("Process", "process").unit(Unit::Text));
    for (heading, _, key, of) in NUMBERS {
        let heading = format!("{heading}, other end");
        columns.push(Column::number(heading, key).unit(of.unit));
    }
    columns.push(Column::words("Process at the other end", "other_process").unit(Unit::Text));
    let rows = roles.into_iter().map(|(near, role)| {
        let far = other_end(near.name());
        let mut row = vec![Cell::text(near.name()), Cell::text(role.value)];
        for end in [near, &far] {
            row.extend(
                NUMBERS
                    .iter()
                    .map(|(.., key)| readings::cell(evidence, key, end)),
            );
            let process = words(evidence, &keys::TCP_PROCESS, end);
            row.push(Cell::text(process.unwrap_or(numbers::ABSENT)));
        }
        row
    });
    let table = Table {
        caption: "Connections of the service".to_owned(),
        columns,
        rows: rows.collect(),
    };
    vec![Named::new("service", table)]
}

/// A number of an end: its heading, its names in documents at both ends, and its key.
type Number = (&'static str, &'static str, &'static str, &'static Key);

static NUMBERS: &[Number] = &[
    (
        "Receive queue",
        "recvq_bytes",
        "other_recvq_bytes",
        &keys::SERVICE_RECVQ,
    ),
    (
        "Largest receive queue",
        "recvq_most_bytes",
        "other_recvq_most_bytes",
        &keys::SERVICE_RECVQ_MOST,
    ),
    (
        "Receive buffer unread",
        "recvq_share",
        "other_recvq_share",
        &keys::SERVICE_RECVQ_SHARE,
    ),
    (
        "Send queue",
        "sendq_bytes",
        "other_sendq_bytes",
        &keys::SERVICE_SENDQ,
    ),
    (
        "Largest send queue",
        "sendq_most_bytes",
        "other_sendq_most_bytes",
        &keys::SERVICE_SENDQ_MOST,
    ),
    (
        "Send buffer full",
        "sendq_full",
        "other_sendq_full",
        &keys::SERVICE_BUFFER_FULL,
    ),
    ("Busy", "busy", "other_busy", &keys::TCP_BUSY),
    (
        "Window limited",
        "rwnd_limited",
        "other_rwnd_limited",
        &keys::TCP_RWND_LIMITED,
    ),
    (
        "Buffer limited",
        "sndbuf_limited",
        "other_sndbuf_limited",
        &keys::TCP_SNDBUF_LIMITED,
    ),
    (
        "Sent",
        "sent_bytes_per_s",
        "other_sent_bytes_per_s",
        &keys::TCP_BYTES_SENT,
    ),
    (
        "Received",
        "received_bytes_per_s",
        "other_received_bytes_per_s",
        &keys::TCP_BYTES_RECEIVED,
    ),
    ("Round trip", "rtt_s", "other_rtt_s", &keys::TCP_RTT),
    ("Congestion window", "cwnd", "other_cwnd", &keys::TCP_CWND),
    (
        "Congestion window full",
        "cwnd_full",
        "other_cwnd_full",
        &keys::SERVICE_CWND_FULL,
    ),
    (
        "Retransmitted",
        "retransmitted",
        "other_retransmitted",
        &keys::SERVICE_RETRANSMITTED,
    ),
    (
        "Delivery rate",
        "delivery_bytes_per_s",
        "other_delivery_bytes_per_s",
        &keys::SERVICE_DELIVERY,
    ),
    (
        "Receive buffer",
        "rcvbuf_bytes",
        "other_rcvbuf_bytes",
        &keys::TCP_RCVBUF,
    ),
    (
        "Send buffer",
        "sndbuf_bytes",
        "other_sndbuf_bytes",
        &keys::TCP_SNDBUF,
    ),
];

fn summary(service: &ServiceReport) -> String {
    let mut sides: BTreeMap<Side, usize> = BTreeMap::new();
    for judged in &service.judged {
        *sides.entry(judged.slow).or_default() += 1;
    }
    let parts: Vec<String> = sides
        .into_iter()
        .map(|(side, count)| {
            let what = match side {
                Side::Server => "slow at the server",
                Side::Client => "slow at the client",
                Side::Path => "slow on the path",
                Side::Neither => "not held up",
                Side::Idle => "idle",
                Side::Unknown => "unknown",
            };
            format!("{count} {what}")
        })
        .collect();
    let judged = service.judged.len();
    let which = if service.connections > judged as u64 {
        format!("; of the {judged} busiest, most limited and fullest ")
    } else {
        ": ".to_owned()
    };
    let rates = match (
        service.to_clients_bytes_per_s,
        service.to_server_bytes_per_s,
    ) {
        (Some(down), Some(up)) => format!(
            " Together {} to the clients and {} to the server.",
            said(&keys::SERVICE_TO_CLIENTS, down),
            said(&keys::SERVICE_TO_SERVER, up)
        ),
        _ => String::new(),
    };
    format!(
        "{}{which}{}.{rates} Queues are median / largest of {}; those of the other end are known if it is on this machine, in this network namespace or one of the first 64 others.",
        numbers::plural(service.connections as usize, "connection"),
        parts.join(", "),
        numbers::plural(service.samples as usize, "sample"),
    )
}

fn table(shown: &[&ServiceConnection], evidence: &Evidence) -> Table {
    let bytes = |name: &str, key| Column::number(name, key).unit(Unit::Bytes);
    let share = |name: &str, key| Column::number(name, key).unit(Unit::Fraction);
    let rate = |name: &str, key| Column::number(name, key).unit(Unit::BytesPerSecond);
    let columns = vec![
        Column::words("Connection", "title").least(LONGEST_IPV4),
        Column::words("Slow side", "slow"),
        bytes("Recv-Q", "recvq_bytes"),
        bytes("Send-Q", "sendq_bytes"),
        bytes("Recv-Q, other end", "other_recvq_bytes").rank(1),
        bytes("Send-Q, other end", "other_sendq_bytes").rank(2),
        share("Window limited", "rwnd_limited").rank(3),
        share("Buffer limited", "sndbuf_limited").rank(4),
        rate("Sent", "sent_bytes_per_s").rank(5),
        rate("Received", "received_bytes_per_s").rank(6),
        Column::words("Process", "process").rank(7),
        Column::words("Process, other end", "other_process").rank(8),
        Column::number("RTT", "rtt_s").unit(Unit::Seconds).rank(9),
        Column::number("Retransmitted", "retransmitted")
            .unit(Unit::Count)
            .rank(10),
        Column::number("cwnd", "cwnd").unit(Unit::Count).rank(11),
        rate("Delivery rate", "delivery_bytes_per_s").rank(12),
        bytes("Receive buffer", "rcvbuf_bytes").rank(13),
        bytes("Send buffer", "sndbuf_bytes").rank(14),
        share("Window limited, other end", "other_rwnd_limited").rank(15),
        share("Buffer limited, other end", "other_sndbuf_limited").rank(16),
    ];
    let rows = shown.iter().map(|one| row(one, evidence)).collect();
    Table {
        caption: "Worst first".to_owned(),
        columns,
        rows,
    }
}

fn row(judged: &ServiceConnection, evidence: &Evidence) -> Vec<Cell> {
    let near = Subject::new(Kind::Connection, &judged.connection);
    let far = other_end(&judged.connection);
    let of = |end, key| readings::cell(evidence, key, end);
    let queue = |end, typical, most| spread(evidence, end, typical, most);
    let (_, remote) = judged.connection.split_once('>').unwrap_or_default();
    let (tone, side) = match judged.slow {
        Side::Server | Side::Client | Side::Path => (Tone::Bad, slow(judged.slow)),
        Side::Neither => (Tone::Plain, "neither"),
        Side::Idle => (Tone::Quiet, "idle"),
        Side::Unknown => (Tone::Doubt, "unknown"),
    };
    vec![
        Cell::text(remote),
        Cell::text(side).tone(tone),
        queue(&near, &keys::SERVICE_RECVQ, &keys::SERVICE_RECVQ_MOST),
        queue(&near, &keys::SERVICE_SENDQ, &keys::SERVICE_SENDQ_MOST),
        queue(&far, &keys::SERVICE_RECVQ, &keys::SERVICE_RECVQ_MOST),
        queue(&far, &keys::SERVICE_SENDQ, &keys::SERVICE_SENDQ_MOST),
        of(&near, &keys::TCP_RWND_LIMITED),
        of(&near, &keys::TCP_SNDBUF_LIMITED),
        of(&near, &keys::TCP_BYTES_SENT),
        of(&near, &keys::TCP_BYTES_RECEIVED),
        process(evidence, &near),
        process(evidence, &far),
        of(&near, &keys::TCP_RTT),
        of(&near, &keys::SERVICE_RETRANSMITTED),
        of(&near, &keys::TCP_CWND),
        of(&near, &keys::SERVICE_DELIVERY),
        of(&near, &keys::TCP_RCVBUF),
        of(&near, &keys::TCP_SNDBUF),
        of(&far, &keys::TCP_RWND_LIMITED),
        of(&far, &keys::TCP_SNDBUF_LIMITED),
    ]
}

/// Median and largest of the samples.
fn spread(evidence: &Evidence, end: &Subject, typical: &'static Key, most: &'static Key) -> Cell {
    match (number(evidence, typical, end), number(evidence, most, end)) {
        (Some(value), Some(most)) => Cell::number(Some(value), |value| {
            let (value, most) = (said(typical, value), said(typical, most));
            // 3.59 / 3.95 MiB
            match (value.rsplit_once(' '), most.rsplit_once(' ')) {
                (Some((number, unit)), Some((_, same))) if unit == same => {
                    format!("{number} / {most}")
                }
                _ => format!("{value} / {most}"),
            }
        }),
        _ => Cell::text(numbers::ABSENT),
    }
}

/// The process that has the end open, with its CPU time and that of its busiest thread.
fn process(evidence: &Evidence, end: &Subject) -> Cell {
    let Some(owner) = words(evidence, &keys::TCP_PROCESS, end) else {
        return Cell::text(numbers::ABSENT);
    };
    let pid = owner.rsplit(' ').next().unwrap_or_default();
    let process = Subject::new(Kind::Process, pid);
    let mut text = owner.to_owned();
    if let Some(cpus) = number(evidence, &keys::SCHED_PROCESS_CPU, &process) {
        let _ = write!(text, ", CPU {}", numbers::share(cpus));
    }
    if let Some(busy) = number(evidence, &keys::PROCESS_BUSIEST_THREAD, &process) {
        let _ = write!(text, ", busiest thread {}", numbers::share(busy));
    }
    Cell::text(text)
}

/// What the connections below the table carry together.
fn rest(
    service: &ServiceReport,
    shown: &[&ServiceConnection],
    evidence: &Evidence,
) -> Option<String> {
    let others = service.connections.checked_sub(shown.len() as u64);
    let others = others.filter(|others| *others > 0)?;
    let (mut down, mut up) = (0.0, 0.0);
    for one in shown {
        let near = Subject::new(Kind::Connection, &one.connection);
        let of = |key| number(evidence, key, &near).unwrap_or(0.0);
        let (sent, received) = (of(&keys::TCP_BYTES_SENT), of(&keys::TCP_BYTES_RECEIVED));
        let is_client = words(evidence, &keys::SERVICE_ROLE, &near) == Some("client");
        let (to_clients, to_server) = if is_client {
            (received, sent)
        } else {
            (sent, received)
        };
        down += to_clients;
        up += to_server;
    }
    let left = |all: Option<f64>, shown: f64| all.map(|all| (all - shown).max(0.0));
    let carry = match (
        left(service.to_clients_bytes_per_s, down),
        left(service.to_server_bytes_per_s, up),
    ) {
        (Some(down), Some(up)) => format!(
            ", together {} to the clients and {} to the server",
            said(&keys::SERVICE_TO_CLIENTS, down),
            said(&keys::SERVICE_TO_SERVER, up)
        ),
        _ => String::new(),
    };
    Some(format!(
        "{} not shown{carry}; the JSON has the numbers of {}.",
        numbers::plural(others as usize, "connection"),
        numbers::plural(service.judged.len(), "connection")
    ))
}

/// The same connection as its other end sees it.
fn other_end(connection: &str) -> Subject {
    let (local, remote) = connection.split_once('>').unwrap_or_default();
    Subject::new(Kind::Connection, format_args!("{remote}>{local}"))
}

fn slow(side: Side) -> &'static str {
    match side {
        Side::Server => "server",
        Side::Client => "client",
        Side::Path => "path",
        Side::Neither | Side::Idle | Side::Unknown => "",
    }
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NotReading => "does not read",
        Cause::ReceiveBuffer => "has a small receive buffer",
        Cause::Window => "keeps its window closed",
        Cause::SendBuffer => "has a small send buffer",
        Cause::Loss => "loses segments",
        Cause::CongestionWindow => "limits the congestion window",
        Cause::BusyThread => "has a busy thread",
        Cause::None => "",
    }
}
