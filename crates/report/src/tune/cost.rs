//! Where the CPU time went: how each CPU spent its window, and what a transaction cost each side.
//!
//! Medians over the runs with the change that count. Where the start has no runs of its own, it is
//! the variant without the change of the first rung that ran.

use rungwise_model::machine::CpuSplit;
use rungwise_model::tune::{Run, Rung, TuneReport};

use super::last;
use crate::block::{Bar, BarGroup, Bars, Block, Cell, Chart, Column, Part, Plot, Table};
use crate::numbers;
use crate::scale::Unit;

/// In the order of their distance from the application, idle last.
const SPLIT: [Part; 6] = [
    part("softirq", 0, '█'),
    part("system", 1, '▓'),
    part("user", 2, '▒'),
    part("irq", 3, '#'),
    part("steal", 4, 'x'),
    part("idle", 5, '·'),
];

const SIDES: [Part; 2] = [part("server", 0, '█'), part("client", 2, '▒')];

/// More CPUs than this are shown as the busiest ones and the mean of the others.
const CPUS_SHOWN: usize = 8;

const fn part(name: &'static str, hue: usize, fill: char) -> Part {
    Part { name, hue, fill }
}

pub(super) fn charts(report: &TuneReport) -> Vec<Block> {
    let rungs: Vec<(usize, &Rung, Vec<&Run>)> = report
        .rungs
        .iter()
        .enumerate()
        .map(|(number, rung)| (number, rung, counted(report, number, rung)))
        .filter(|(_, _, runs)| !runs.is_empty())
        .collect();
    if rungs.is_empty() {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    if rungs
        .iter()
        .any(|(_, _, runs)| runs.iter().any(|run| !run.cpu.per_cpu.is_empty()))
    {
        blocks.push(per_cpu(report, &rungs));
    }
    blocks.push(per_transaction(report, &rungs));
    blocks
}

/// The runs that stand for a rung: variant B, or, for the start, variant A of the next rung that ran.
fn counted<'a>(report: &'a TuneReport, number: usize, rung: &'a Rung) -> Vec<&'a Run> {
    let counts = |rung: &'a Rung| rung.pairs.iter().filter(|pair| pair.discarded.is_none());
    if number == 0 && rung.pairs.is_empty() {
        let next = report
            .rungs
            .iter()
            .skip(1)
            .find(|rung| counts(rung).next().is_some());
        next.map_or_else(Vec::new, |next| counts(next).map(|pair| &pair.a).collect())
    } else {
        counts(rung).map(|pair| &pair.b).collect()
    }
}

fn values(split: &CpuSplit) -> [f64; 6] {
    [
        split.softirq,
        split.system,
        split.user,
        split.irq,
        split.steal,
        split.idle,
    ]
}

/// Median of each part over the runs, for each CPU.
fn medians(runs: &[&Run]) -> Vec<[f64; 6]> {
    let cpus = runs
        .iter()
        .map(|run| run.cpu.per_cpu.len())
        .max()
        .unwrap_or(0);
    (0..cpus)
        .map(|cpu| {
            let splits: Vec<[f64; 6]> = runs
                .iter()
                .filter_map(|run| run.cpu.per_cpu.get(cpu))
                .map(values)
                .collect();
            std::array::from_fn(|part| {
                numbers::median(splits.iter().map(|split| split[part])).unwrap_or(0.0)
            })
        })
        .collect()
}

fn per_cpu(report: &TuneReport, rungs: &[(usize, &Rung, Vec<&Run>)]) -> Block {
    let mut groups = Vec::new();
    let mut rows = Vec::new();
    for (number, rung, runs) in rungs {
        let cpus = medians(runs);
        for (cpu, split) in cpus.iter().enumerate() {
            let mut row = vec![
                Cell::number(Some(*number as f64), |n| format!("{n:.0}")),
                Cell::text(&rung.title),
                Cell::number(Some(cpu as f64), |n| format!("{n:.0}")),
            ];
            row.extend(
                split
                    .iter()
                    .map(|value| Cell::number(Some(*value), numbers::share)),
            );
            rows.push(row);
        }
        groups.push(BarGroup {
            title: format!("{number}  {}", rung.title),
            bars: bars_of(&cpus),
        });
    }
    let mut columns = vec![
        Column::number("#", "rung"),
        Column::words("Rung", "title"),
        Column::number("CPU", "cpu"),
    ];
    columns.extend(
        SPLIT
            .iter()
            .map(|part| Column::number(part.name, part.name)),
    );
    let title = match last(report).and_then(|rung| rungs.iter().find(|(_, r, _)| r.id == rung.id)) {
        Some((_, _, runs)) => {
            let cpus = medians(runs);
            let mean = |part: usize| {
                cpus.iter().map(|split| split[part]).sum::<f64>() / cpus.len().max(1) as f64
            };
            format!(
                "With all kept changes the CPUs spend {} in softirq, {} in system, {} in user code, {} idle",
                numbers::share(mean(0)),
                numbers::share(mean(1)),
                numbers::share(mean(2)),
                numbers::share(mean(5))
            )
        }
        None => "Time per CPU".to_owned(),
    };
    Block::Chart(Box::new(Chart {
        id: "per-cpu",
        note: "Share of the measured window per CPU, medians of the counted runs.".to_owned(),
        data: Table {
            caption: title.clone(),
            columns,
            rows,
        },
        title,
        plot: Plot::Bars(Bars {
            quantity: "share of the window".to_owned(),
            unit: Unit::Share,
            whole: true,
            parts: SPLIT.to_vec(),
            groups,
        }),
    }))
}

/// One bar per CPU, or the busiest ones and the mean of the others.
fn bars_of(cpus: &[[f64; 6]]) -> Vec<Bar> {
    let bar = |label: String, split: &[f64; 6]| Bar {
        label,
        values: split.to_vec(),
        total: format!("{} busy", numbers::share((1.0 - split[5]).clamp(0.0, 1.0))),
    };
    if cpus.len() <= CPUS_SHOWN {
        return cpus
            .iter()
            .enumerate()
            .map(|(cpu, split)| bar(format!("CPU {cpu}"), split))
            .collect();
    }
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    order.sort_by(|a, b| cpus[*a][5].total_cmp(&cpus[*b][5]));
    let (shown, others) = order.split_at(CPUS_SHOWN - 1);
    let mut shown = shown.to_vec();
    shown.sort_unstable();
    let mut bars: Vec<Bar> = shown
        .into_iter()
        .map(|cpu| bar(format!("CPU {cpu}"), &cpus[cpu]))
        .collect();
    let mean: [f64; 6] = std::array::from_fn(|part| {
        others.iter().map(|cpu| cpus[*cpu][part]).sum::<f64>() / others.len() as f64
    });
    bars.push(bar(format!("{} others", others.len()), &mean));
    bars
}

fn per_transaction(report: &TuneReport, rungs: &[(usize, &Rung, Vec<&Run>)]) -> Block {
    let mut groups = Vec::new();
    let mut rows = Vec::new();
    for (number, rung, runs) in rungs {
        let side = |of: fn(&Run) -> f64| numbers::median(runs.iter().map(|run| of(run)));
        let (server, client) = (
            side(|run| run.server_us_per_tx),
            side(|run| run.client_us_per_tx),
        );
        let sum = server.unwrap_or(0.0) + client.unwrap_or(0.0);
        groups.push(BarGroup {
            title: format!("{number}  {}", rung.title),
            bars: vec![Bar {
                label: String::new(),
                values: vec![server.unwrap_or(0.0), client.unwrap_or(0.0)],
                total: numbers::micros_only(sum),
            }],
        });
        rows.push(vec![
            Cell::number(Some(*number as f64), |n| format!("{n:.0}")),
            Cell::text(&rung.title),
            Cell::number(server, numbers::micros_only),
            Cell::number(client, numbers::micros_only),
            Cell::number(Some(sum), numbers::micros_only),
        ]);
    }
    let title = super::from_to(super::cost_ends(report), numbers::micros_only).map_or_else(
        || "CPU time per transaction, server and client".to_owned(),
        |story| format!("CPU time per transaction, server and client: {story}"),
    );
    Block::Chart(Box::new(Chart {
        id: "cpu-per-transaction",
        note: "Medians of the counted runs. If both sides share a machine, the sender's CPU time includes part of the \
               receiver's input."
            .to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("#", "rung"),
                Column::words("Rung", "title"),
                Column::number("Server", "server_us_per_tx"),
                Column::number("Client", "client_us_per_tx"),
                Column::number("Sum", "cpu_us_per_tx"),
            ],
            rows,
        },
        title,
        plot: Plot::Bars(Bars {
            quantity: "CPU time per transaction".to_owned(),
            unit: Unit::Micros,
            whole: false,
            parts: SIDES.to_vec(),
            groups,
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cpus_become_the_busiest_and_the_rest() {
        let mut cpus = vec![[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]; 64];
        cpus[40] = [0.9, 0.1, 0.0, 0.0, 0.0, 0.0];
        let bars = bars_of(&cpus);
        assert_eq!(bars.len(), CPUS_SHOWN);
        assert!(bars.iter().any(|bar| bar.label == "CPU 40"));
        assert_eq!(bars.last().map(|bar| bar.label.as_str()), Some("57 others"));
    }
}
