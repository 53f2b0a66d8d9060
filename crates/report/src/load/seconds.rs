//! A load second by second.

use rungwise_model::load::Measurement;

use crate::block::{Block, Cell, Chart, Column, Dots, Plot, Point, Series, Table};
use crate::numbers;
use crate::scale::Unit;

fn series(
    m: &Measurement,
    name: &str,
    square: bool,
    hue: usize,
    value: fn(&Measurement, usize) -> f64,
) -> Series {
    Series {
        name: name.to_owned(),
        square,
        joined: false,
        hue,
        points: (0..m.seconds.len())
            .map(|index| Point {
                at_s: m.seconds[index].at_s,
                value: value(m, index),
                hollow: false,
            })
            .collect(),
    }
}

fn until_s(m: &Measurement) -> f64 {
    m.seconds
        .last()
        .map_or(m.window_s, |second| (second.at_s + 1.0).max(m.window_s))
}

pub(super) fn rate_chart(m: &Measurement) -> Block {
    let extreme = |start: f64, pick: fn(f64, f64) -> f64| {
        m.seconds
            .iter()
            .map(|second| second.received as f64)
            .fold(start, pick)
    };
    let (least, most) = (extreme(f64::INFINITY, f64::min), extreme(0.0, f64::max));
    let title = format!(
        "Rate: between {} and {} in any second",
        numbers::rate(least),
        numbers::rate(most)
    );
    let whole = |value: u64| Cell::number(Some(value as f64), |v| numbers::count(v as u64));
    let rows = m
        .seconds
        .iter()
        .map(|second| {
            vec![
                Cell::number(Some(second.at_s), numbers::span),
                whole(second.sent),
                whole(second.received),
                whole(second.lost),
            ]
        })
        .collect();
    let mut drawn = vec![
        series(m, "sent", true, 0, |m, i| m.seconds[i].sent as f64),
        series(m, "received", false, 1, |m, i| m.seconds[i].received as f64),
    ];
    if m.seconds.iter().any(|second| second.lost > 0) {
        drawn.push(series(m, "lost", true, 2, |m, i| m.seconds[i].lost as f64));
    }
    Block::Chart(Box::new(Chart {
        id: "rate-per-second",
        note: String::new(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::number("Sent", "sent"),
                Column::number("Received", "received"),
                Column::number("Lost", "lost"),
            ],
            rows,
        },
        title,
        plot: Plot::Dots(Dots {
            along: Unit::Seconds,
            names: Vec::new(),
            quantity: "per second".to_owned(),
            unit: Unit::Rate,
            from_zero: true,
            also: Vec::new(),
            from_s: 0.0,
            until_s: until_s(m),
            zooms: false,
            series: drawn,
            spans: Vec::new(),
        }),
    }))
}

pub(super) fn latency_chart(m: &Measurement) -> Block {
    let worst = m
        .seconds
        .iter()
        .map(|second| second.p99_us)
        .fold(0.0, f64::max);
    let title = format!(
        "Latency: p99 at most {} in any second",
        numbers::micros(worst)
    );
    let rows = m
        .seconds
        .iter()
        .map(|second| {
            vec![
                Cell::number(Some(second.at_s), numbers::span),
                Cell::number(Some(second.p50_us), numbers::micros_only),
                Cell::number(Some(second.p99_us), numbers::micros_only),
            ]
        })
        .collect();
    Block::Chart(Box::new(Chart {
        id: "latency-per-second",
        note: "Measured from the intended start of each request.".to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::number("p50", "p50_us"),
                Column::number("p99", "p99_us"),
            ],
            rows,
        },
        title,
        plot: Plot::Dots(Dots {
            along: Unit::Seconds,
            names: Vec::new(),
            quantity: "latency".to_owned(),
            unit: Unit::Micros,
            from_zero: false,
            also: Vec::new(),
            from_s: 0.0,
            until_s: until_s(m),
            zooms: false,
            series: vec![
                series(m, "p50", true, 1, |m, i| m.seconds[i].p50_us),
                series(m, "p99", false, 2, |m, i| m.seconds[i].p99_us),
            ],
            spans: Vec::new(),
        }),
    }))
}
