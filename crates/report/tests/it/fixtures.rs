//! Documents to render: invented, complete, and pared down to the edges.

use rungwise_model::connections::{Broadcasts, Connections, HostLimit, Storm};
use rungwise_model::load::{LoadReport, Quantiles};
use rungwise_model::tune::{Delta, Grid, GridAxis, GridCell, GridNeighbour, Outcome, TuneReport};

pub(crate) fn ladder() -> TuneReport {
    serde_json::from_str(include_str!("../fixtures/udp-echo.json"))
        .expect("the fixture is a TuneReport")
}

pub(crate) fn load() -> LoadReport {
    serde_json::from_str(include_str!("../fixtures/load-udp.json"))
        .expect("the fixture is a LoadReport")
}

/// As many rungs as asked for, by repeating those of the ladder.
pub(crate) fn ladder_of(rungs: usize) -> TuneReport {
    let mut report = ladder();
    let source = report.rungs.clone();
    report.rungs = source.iter().cycle().take(rungs).cloned().collect();
    let end = source
        .iter()
        .flat_map(|rung| &rung.pairs)
        .map(|pair| pair.a.at_s.max(pair.b.at_s))
        .fold(0.0, f64::max);
    for (index, rung) in report.rungs.iter_mut().enumerate() {
        let round = (index / source.len()) as f64;
        rung.id = format!("{}-{index}", rung.id);
        for pair in &mut rung.pairs {
            pair.a.at_s += round * end;
            pair.b.at_s += round * end;
        }
    }
    report
}

/// A ladder of which nothing could be measured.
pub(crate) fn nothing_measured() -> TuneReport {
    let mut report = ladder();
    report.overall = None;
    report.kept.clear();
    report.aa = rungwise_model::tune::AaCheck::default();
    report.verdict = rungwise_model::tune::Verdict::Inconclusive;
    for rung in &mut report.rungs {
        rung.outcome = Outcome::Skipped;
        rung.reason = String::from("the service did not become ready");
        rung.rate_per_s = None;
        rung.cpu_us_per_tx = None;
        rung.latency_us = None;
        rung.delta = None;
        rung.cpu_delta = None;
        rung.pairs.clear();
    }
    report
}

/// The ladder with two rungs that are grids: buffers and connections, and a curve of loads. The figures are invented.
pub(crate) fn grids() -> TuneReport {
    let mut report = ladder();
    report.rungs[3].title = String::from("connections and TCP buffers: 256 KB, 4");
    report.rungs[3].grid = Some(Box::new(transport()));
    report.rungs[13].grid = Some(Box::new(loads()));
    report
}

fn delta(point: f64) -> Delta {
    Delta {
        point,
        low: point - 0.04,
        high: point + 0.04,
        pairs: 4,
        discarded: 0,
    }
}

fn axis(title: &str, points: &[&str]) -> GridAxis {
    GridAxis {
        title: title.to_owned(),
        points: points.iter().map(|point| (*point).to_owned()).collect(),
    }
}

fn transport() -> Grid {
    let changes = [
        [0.0, 0.10, 0.24, 0.25],
        [-0.21, 0.18, 0.52, 0.55],
        [-0.48, 0.02, 0.0, 0.0],
    ];
    let mut cells = Vec::new();
    for (row, changes) in changes.iter().enumerate() {
        for (column, change) in changes.iter().enumerate() {
            let is_before = (row, column) == (0, 0);
            let is_lost = row == 2 && column > 1;
            let why_not = match (row, column) {
                _ if is_lost => Some("net.ipv4.tcp_rmem: permission denied"),
                (1, 3) => Some("guard rail violated: p99 rose from 4 ms to 31 ms (limit 20 ms)"),
                _ => None,
            };
            cells.push(GridCell {
                at: vec![row, column],
                is_before,
                change: (!is_before && !is_lost).then(|| delta(*change)),
                value: (!is_lost).then_some(400e3 * (1.0 + change)),
                pairs: if is_before || is_lost { 0 } else { 4 },
                discarded: u32::from(row == 1),
                why_not: why_not.map(str::to_owned),
            });
        }
    }
    let neighbour =
        |axis, at: [usize; 2], outcome, change: Option<f64>, reason: &str| GridNeighbour {
            axis,
            at: at.to_vec(),
            outcome,
            delta: change.map(delta),
            reason: reason.to_owned(),
            confidence: Some(0.999),
        };
    Grid {
        axes: vec![
            axis("TCP buffers", &["16 KB", "256 KB", "4 MB"]),
            axis("connections", &["1", "2", "4", "8"]),
        ],
        cells,
        value_before: Some(400e3),
        confidence: 0.99,
        best: Some(vec![1, 2]),
        neighbours: vec![
            neighbour(0, [0, 2], Outcome::Reverted, Some(-0.18), "-18.4 % over 8 pairs: worse"),
            neighbour(0, [2, 2], Outcome::Skipped, None, "net.ipv4.tcp_rmem: permission denied"),
            neighbour(1, [1, 1], Outcome::Reverted, Some(-0.22), "-22.4 % over 8 pairs: worse"),
            neighbour(1, [1, 3], Outcome::Reverted, Some(0.06), "guard rail violated: p99 rose from 4 ms to 31 ms (limit 20 ms)"),
        ],
        sentence: "Best of 12 cells: TCP buffers 256 KB, connections 4, transaction rate +51.6 % [+48.1 %, +55.2 %]; \
                   TCP buffers 16 KB is worse (-18.4 % [-21.0 %, -15.9 %])."
            .to_owned(),
    }
}

fn loads() -> Grid {
    let cell = |(point, change): (usize, &f64)| GridCell {
        at: vec![point],
        is_before: point == 0,
        change: (point > 0).then(|| delta(*change)),
        value: Some(400e3 * (1.0 + change)),
        pairs: if point > 0 { 4 } else { 0 },
        discarded: 0,
        why_not: None,
    };
    let changes = [0.0, 0.3, 0.5, 0.51];
    Grid {
        axes: vec![axis("datagrams under way", &["16", "32", "64", "128"])],
        cells: changes.iter().enumerate().map(cell).collect(),
        value_before: Some(400e3),
        confidence: 0.99,
        best: Some(vec![3]),
        neighbours: vec![GridNeighbour {
            axis: 0,
            at: vec![2],
            outcome: Outcome::Same,
            delta: Some(delta(-0.002)),
            reason: "-0.2 % over 16 pairs: no difference as large as 5 %".to_owned(),
            confidence: Some(0.999),
        }],
        sentence: "Best of 4 cells: datagrams under way 128, transaction rate +51.1 % [+47.1 %, +55.0 %]; datagrams under way 64 costs \
                   less and is as good within 5.0 % (-0.2 % [-4.2 %, +3.8 %]); no point beyond datagrams under way 128 was tried."
            .to_owned(),
    }
}

/// The load as one of connections that are held open. The figures are invented.
pub(crate) fn held() -> LoadReport {
    let mut report = load();
    let limit = |id: &str, allows: Option<u64>, knob: &str| HostLimit {
        id: id.to_owned(),
        allows,
        suffices: allows.is_none_or(|most| most >= 40_000),
        basis: format!("what the kernel says of {}", id.replace('_', " ")),
        knob: knob.to_owned(),
    };
    let time = Quantiles {
        p50: 80.0,
        p90: 120.0,
        p99: 900.0,
        p999: 1_500.0,
        max: 4_000.0,
    };
    report.measurement.connections = Some(Connections {
        asked: 40_000,
        tried: 28_232,
        opened: 28_230,
        held: 28_200,
        opening_s: 1.5,
        rate_per_s: 20_000.0,
        connect_us: time,
        ping_s: Some(60.0),
        sources: 1,
        threads: 2,
        client_bytes_each: Some(120.0),
        broadcast: Some(Broadcasts {
            messages: 2,
            expected: 56_460,
            received: 56_400,
            fan_out_us: time,
        }),
        storm: Some(Storm {
            dropped: 28_190,
            back: 28_180,
            back_us: time,
        }),
        slow_readers: 10,
        half_open: 30,
        partial: Some("ports of this host allow 28232 of 40000 connections".to_owned()),
        interrupted: false,
        limits: vec![
            limit("ports", Some(28_232), "--source"),
            limit("open_files", Some(1_232_500), "fs.file-max"),
            limit("conntrack", None, "net.netfilter.nf_conntrack_max"),
        ],
    });
    report
}
