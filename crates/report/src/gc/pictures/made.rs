//! What made the pauses: their phases along the run and in sum, their causes, and the CPU time they took.

use rungwise_model::gc::{Breakdown, Course, CpuUse, Pauses, Portion, Run};

use super::{Time, how_many, line, millis, moment, step};
use crate::block::{
    Bar, BarGroup, Bars, Block, Cell, Chart, Column, Layer, Layers, Part, Plot, Series, Table,
};
use crate::numbers;
use crate::scale::Unit;

/// Colours of the parts that are shown one by one, the largest first, and of all others together.
const HUES: [usize; 7] = [1, 4, 3, 6, 7, 0, 2];
const REST: usize = 8;
pub(super) fn over_time(run: &Run, time: Time) -> Option<Block> {
    let made = &run.pauses.made_of;
    let sum: f64 = made.parts.iter().map(|part| part.total_ms).sum();
    let first = made.parts.first().filter(|_| sum > 0.0)?;
    let share = |ms: f64| numbers::share(ms / sum);
    let title = format!(
        "Pauses stopped threads for {} in total, {} of it in: {}",
        millis(sum),
        share(first.total_ms),
        named(&run.pauses, first)
    );
    let shown = made.parts.iter().take(HUES.len()).zip(HUES);
    let mut layers: Vec<Layer> = shown
        .map(|(part, hue)| Layer {
            name: named(&run.pauses, part),
            total: format!("{} ({})", millis(part.total_ms), share(part.total_ms)),
            hue,
            shares: shares(made, [part]),
        })
        .collect();
    let rest = made.parts.get(HUES.len()..).unwrap_or_default();
    if !rest.is_empty() {
        let total: f64 = rest.iter().map(|part| part.total_ms).sum();
        layers.push(Layer {
            name: numbers::plural(rest.len(), "other"),
            total: format!("{} ({})", millis(total), share(total)),
            hue: REST,
            shares: shares(made, rest),
        });
    }
    let step = step(made.step_s);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-pauses-made-of",
        note: format!("Outermost phases, mean of each {step}."),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::words("Phase", "title"),
                Column::number("Sum", "total_ms"),
                Column::number("Share", "share"),
                Column::number("Maximum per step", "most_ms"),
                Column::number("Start of that step", "most_at_s"),
            ],
            rows: made
                .parts
                .iter()
                .map(|part| row(&run.pauses, part, sum))
                .collect(),
        },
        title,
        plot: Plot::Layers(Layers {
            quantity: "time stopped per second".to_owned(),
            stacked: true,
            from_s: time.from_s,
            until_s: time.until_s,
            first_s: made.from_s,
            step_s: made.step_s,
            layers,
            spans: time.worst(run),
        }),
    })))
}

/// A phase by its name; what is in none, by the name of its pauses.
fn named(pauses: &Pauses, part: &Portion) -> String {
    let pause = |part: &Portion| pauses.by_type.contains_key(&part.name);
    if pause(part) && !pauses.made_of.parts.iter().all(pause) {
        format!("{}, outside phases", part.name)
    } else {
        part.name.clone()
    }
}

fn shares<'a>(made: &Breakdown, parts: impl IntoIterator<Item = &'a Portion>) -> Vec<f64> {
    let mut shares = Vec::new();
    for part in parts {
        if shares.len() < part.steps_ms.len() {
            shares.resize(part.steps_ms.len(), 0.0);
        }
        for (share, ms) in shares.iter_mut().zip(&part.steps_ms) {
            *share += ms / (made.step_s * 1e3);
        }
    }
    shares
}

fn row(pauses: &Pauses, part: &Portion, sum: f64) -> Vec<Cell> {
    let steps = part.steps_ms.iter().copied().enumerate();
    let most = steps.max_by(|a, b| a.1.total_cmp(&b.1));
    let made = &pauses.made_of;
    let began = |step: usize| made.from_s + step as f64 * made.step_s;
    vec![
        Cell::text(named(pauses, part)),
        Cell::number(Some(part.total_ms), millis),
        Cell::number(Some(part.total_ms / sum), numbers::share),
        Cell::number(most.map(|(_, ms)| ms), millis),
        most.map_or_else(
            || Cell::text(numbers::ABSENT),
            |(step, _)| moment(began(step)),
        ),
    ]
}

const CAUSED: [Part; 1] = [Part {
    name: "sum of the pauses",
    hue: 1,
    fill: '█',
}];

/// Causes with a bar of their own; the table of the section on pauses has all.
const CAUSES: usize = 12;

pub(super) fn causes(run: &Run) -> Option<Block> {
    let mut causes: Vec<_> = run.pauses.by_cause.iter().collect();
    causes.sort_by(|a, b| b.1.total_ms.total_cmp(&a.1.total_ms));
    let (first, most) = causes.first()?;
    let title = format!(
        "{first} caused {} of pauses, the longest {}",
        millis(most.total_ms),
        millis(most.longest_ms)
    );
    let rows = causes.iter().map(|(cause, spread)| {
        vec![
            Cell::text(*cause),
            how_many(spread.count),
            Cell::number(Some(spread.total_ms), millis),
            Cell::number(Some(spread.longest_ms), millis),
        ]
    });
    let groups = causes.iter().take(CAUSES).map(|(cause, spread)| BarGroup {
        title: format!(
            "{cause}, {}",
            numbers::plural(usize::try_from(spread.count).unwrap_or(usize::MAX), "pause")
        ),
        bars: vec![Bar {
            label: String::new(),
            values: vec![spread.total_ms * 1e3],
            total: millis(spread.total_ms),
        }],
    });
    Some(Block::Chart(Box::new(Chart {
        id: "gc-causes",
        note: "Names from the log; pauses without a cause are left out.".to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::words("Cause", "title"),
                Column::number("Pauses", "pauses"),
                Column::number("Sum", "total_ms"),
                Column::number("Longest", "longest_ms"),
            ],
            rows: rows.collect(),
        },
        plot: Plot::Bars(Bars {
            quantity: "total pause time".to_owned(),
            unit: Unit::Micros,
            whole: false,
            parts: CAUSED.to_vec(),
            groups: groups.collect(),
        }),
        title,
    })))
}

/// CPU time per pause in the JVM and in the kernel, beside the time on the wall.
pub(super) fn cpu(run: &Run, time: Time) -> Option<Block> {
    let cpu = run.cpu.as_ref()?;
    let kinds: [(&str, &Course, (bool, usize)); 3] = [
        ("wall clock", &cpu.real_course, (true, 0)),
        ("user CPU", &cpu.user_course, (false, 1)),
        ("system CPU", &cpu.sys_course, (false, 2)),
    ];
    let lines = kinds.iter().map(|(name, course, style)| {
        let mut series = line(name, *style, course, |p| p.mean)?;
        for point in &mut series.points {
            point.value *= 1e3;
        }
        Some(series)
    });
    let series: Vec<Series> = lines.flatten().collect();
    if series.is_empty() {
        return None;
    }
    let rows = kinds.iter().flat_map(|(name, course, _)| {
        course.points.iter().map(|point| {
            vec![
                moment(point.at_s),
                Cell::text(*name),
                Cell::number(Some(point.mean), millis),
                Cell::number(Some(point.max), millis),
                how_many(point.count),
            ]
        })
    });
    let title = cpu_title(cpu);
    let step = step(cpu.real_course.step_s);
    Some(Block::Chart(Box::new(Chart {
        id: "gc-cpu-over-time",
        note: format!(
            "Mean of the pauses of each {step}; logs record these times in steps of 10 ms."
        ),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("At", "at_s"),
                Column::words("What", "what"),
                Column::number("Mean", "mean_ms"),
                Column::number("Maximum", "max_ms"),
                Column::number("Pauses", "pauses"),
            ],
            rows: rows.collect(),
        },
        title,
        plot: time.dots("time per pause", Unit::Micros, series),
    })))
}

fn cpu_title(cpu: &CpuUse) -> String {
    let busy = cpu.user_ms + cpu.sys_ms;
    let threads = if cpu.real_ms > 0.0 {
        format!(
            ", {} busy threads on average",
            numbers::significant(busy / cpu.real_ms)
        )
    } else {
        String::new()
    };
    let kernel = if busy > 0.0 {
        format!(
            "; {} of it in the kernel",
            numbers::share(cpu.sys_ms / busy)
        )
    } else {
        String::new()
    };
    format!(
        "Pauses of {} wall-clock time took {} of CPU time{threads}{kernel}",
        millis(cpu.real_ms),
        millis(busy)
    )
}
