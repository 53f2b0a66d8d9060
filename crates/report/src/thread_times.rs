//! Tables of threads by CPU time and waits, of time by stages of the code, and of what dumps cost a running JVM.

use rungwise_model::check::CheckedJvm;
use rungwise_model::threads::{Cost, Stage, Taken, ThreadTime, ThreadsReport};

use crate::block::{Block, Cell, Column, Table, Tone};
use crate::numbers;

/// Rows of a table; the JSON has all.
pub(crate) const SHOWN: usize = 20;
/// Share of one CPU from which on threads that wait for work or are of the JVM are shown.
const BUSY: f64 = 0.01;

/// The sections of `jvm threads`.
pub(crate) fn blocks(report: &ThreadsReport) -> Vec<Block> {
    let mut blocks = times(&report.times);
    blocks.extend(stages(&report.stages));
    blocks
}

/// The section of `check`.
pub(crate) fn of_check(jvm: &CheckedJvm) -> Vec<Block> {
    let mut blocks = Vec::new();
    if jvm.taken.is_some() || jvm.gc_log.is_some() || !jvm.notes.is_empty() {
        blocks.push(Block::section("jvm", "JVM"));
    }
    let mut words: Vec<String> = jvm.taken.iter().map(stopped).collect();
    words.extend(jvm.gc_log.iter().map(|path| format!("GC log: {path}")));
    if !words.is_empty() {
        blocks.push(Block::Prose(format!("{}.", words.join(". "))));
    }
    blocks.extend(jvm.notes.iter().map(|note| Block::Notice {
        tone: Tone::Doubt,
        text: note.clone(),
    }));
    blocks.extend(times(&jvm.times));
    blocks.extend(stages(&jvm.stages));
    blocks
}

/// How many rows the page leaves out.
pub(crate) fn rest(count: usize, what: &str) -> Option<Block> {
    let more = count.checked_sub(SHOWN).filter(|more| *more > 0)?;
    Some(Block::Prose(format!(
        "The first {SHOWN} {what}; the JSON has {more} more."
    )))
}

fn times(times: &[ThreadTime]) -> Vec<Block> {
    let is_shown = |row: &&ThreadTime| {
        let rests = matches!(&*row.doing, "jvm" | "idle");
        !rests || row.cpu_share.is_some_and(|share| share >= BUSY)
    };
    let all: Vec<&ThreadTime> = times.iter().filter(is_shown).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let rows = all.iter().take(SHOWN).map(|row| {
        let samples = &row.samples;
        let sum =
            samples.jvm + samples.idle + samples.running + samples.lock_waiting + samples.waiting;
        let share = |count: u64| {
            let share = (sum > 0).then(|| count as f64 / sum as f64);
            Cell::number(share, numbers::share)
        };
        let doing = match &*row.doing {
            "idle" => "waits for work".to_owned(),
            "jvm" => "JVM thread".to_owned(),
            _ => row.what.clone(),
        };
        vec![
            Cell::text(&row.name),
            Cell::count(row.threads),
            Cell::number(row.cpu_share, numbers::share),
            Cell::number(row.system_share, numbers::share),
            Cell::number(row.queued_share, numbers::share),
            share(samples.lock_waiting),
            share(samples.waiting),
            Cell::text(doing).note(row.at.clone().unwrap_or_default()),
        ]
    });
    let mut blocks = vec![
        Block::section("times", "CPU time and waits of threads"),
        Block::Prose(
            "Threads of one pool that do the same share a row. CPU, and the part of it in the kernel: from the first dump to the last, as a \
             share of one CPU. Queued: time in which a thread was ready and had no CPU. At locks, waiting: share of the dumps."
                .to_owned(),
        ),
    ];
    blocks.extend(rest(all.len(), "rows"));
    blocks.push(Block::Table(Table {
        caption: String::new(),
        columns: vec![
            Column::words("Threads", "name"),
            Column::number("Count", "threads"),
            Column::number("CPU", "cpu_share"),
            Column::number("Kernel", "system_share").rank(3),
            Column::number("Queued", "queued_share").rank(2),
            Column::number("At locks", "lock_waiting"),
            Column::number("Waiting", "waiting").rank(1),
            Column::words("In the last dump", "what"),
        ],
        rows: rows.collect(),
    }));
    blocks
}

fn stages(stages: &[Stage]) -> Vec<Block> {
    if stages.is_empty() {
        return Vec::new();
    }
    let timed = stages.iter().any(|stage| stage.ms_per_request.is_some());
    let rows = stages.iter().take(SHOWN).map(|stage| {
        let mut cells = vec![
            Cell::text(&stage.name),
            Cell::number(Some(stage.own_share), numbers::share),
            Cell::number(Some(stage.total_share), numbers::share),
            Cell::number(Some(stage.mean_threads), |n| format!("{n:.1}")),
            Cell::count(stage.own.running),
            Cell::count(stage.own.lock_waiting),
            Cell::count(stage.own.waiting),
        ];
        if timed {
            cells.push(Cell::number(stage.ms_per_request, |ms| {
                format!("{ms:.1} ms")
            }));
        }
        cells
    });
    let mut columns = vec![
        Column::words("Stage", "stage"),
        Column::number("Own", "own_share"),
        Column::number("With callees", "total_share"),
        Column::number("Threads", "mean_threads").rank(1),
        Column::number("Running", "running").rank(2),
        Column::number("At locks", "lock_waiting").rank(2),
        Column::number("Waiting", "waiting").rank(2),
    ];
    if timed {
        columns.push(Column::number("Per request", "ms_per_request"));
    }
    let mut blocks = vec![
        Block::section("stages", "Time by stage"),
        Block::Prose(
            "A sample is a thread with something to do in one dump. Own: samples whose innermost frame outside the JDK is of this stage. \
             With callees: samples with any frame of it. --stage NAME=PACKAGE names stages."
                .to_owned(),
        ),
    ];
    blocks.extend(rest(stages.len(), "stages"));
    blocks.push(Block::Table(Table {
        caption: String::new(),
        columns,
        rows: rows.collect(),
    }));
    blocks
}

/// What the dumps cost, in one sentence.
pub(crate) fn stopped(taken: &Taken) -> String {
    let printed: Vec<&Cost> = printed(taken).collect();
    let dumps = numbers::plural(printed.len(), "dump");
    let stopped: Option<f64> = printed.iter().map(|cost| cost.stopped_ms).sum();
    let longest = |of: fn(&Cost) -> Option<f64>| {
        printed
            .iter()
            .filter_map(|cost| of(cost))
            .fold(0.0, f64::max)
    };
    match stopped {
        Some(all) => format!(
            "{dumps} stopped the application for {all:.1} ms, {:.1} ms at most at a time",
            longest(|cost| cost.stopped_ms)
        ),
        None => format!(
            "{dumps} took {:.1} ms each at most, and stopped the application for less",
            longest(|cost| Some(cost.answered_ms))
        ),
    }
}

fn printed(taken: &Taken) -> impl Iterator<Item = &Cost> {
    let is_printed = |cost: &&Cost| cost.command.starts_with("Thread.print");
    taken.dumps.iter().filter(is_printed)
}

/// What each dump cost the JVM.
pub(crate) fn cost(taken: &Taken) -> Vec<Block> {
    let rows = taken.dumps.iter().take(SHOWN).map(|cost| {
        vec![
            Cell::number(Some(cost.at_s), |s| format!("{s:.1} s")),
            Cell::text(&cost.command),
            Cell::number(cost.stopped_ms, |ms| format!("{ms:.2} ms")),
            Cell::number(Some(cost.answered_ms), |ms| format!("{ms:.2} ms")),
            Cell::number(Some(cost.bytes as f64), |bytes| {
                numbers::bytes(bytes as u64)
            }),
        ]
    });
    let mut blocks = vec![
        Block::section("cost", "Cost of the dumps"),
        Block::Prose(
            "Stopped: time at safepoints by the JVM's own count, collections in between included. Answered: until the last byte of the dump."
                .to_owned(),
        ),
    ];
    blocks.extend(rest(taken.dumps.len(), "dumps"));
    blocks.push(Block::Table(Table {
        caption: String::new(),
        columns: vec![
            Column::number("At", "at_s"),
            Column::words("Command", "command").rank(1),
            Column::number("Stopped", "stopped_ms"),
            Column::number("Answered", "answered_ms"),
            Column::number("Size", "bytes").rank(2),
        ],
        rows: rows.collect(),
    }));
    blocks
}
