//! The report of `jvm threads`: deadlocks and findings first, then locks and their holders, pools, stuck threads, and the
//! line accounting.

use rungwise_model::check::{CheckReport, Outcome};
use rungwise_model::readings::Readings;
use rungwise_model::threads::{Dump, Lock, ThreadsReport};

use crate::block::{
    Bar, BarGroup, Bars, Block, Cell, Chart, Column, Mark, Part, Plot, Table, Tile, Tone, Verdict,
};
use crate::check;
use crate::numbers::{self, ABSENT};
use crate::scale::Unit;
use crate::thread_times::{SHOWN, rest};
use crate::tune::moment;

/// Names of waiters that are listed.
const NAMED: usize = 4;

/// How the threads of a dump are divided, in the order of the bars.
const PARTS: [(&str, char); 4] = [
    ("waiting for a lock", '█'),
    ("running", '▓'),
    ("waiting for something else", '▒'),
    ("idle", '░'),
];

/// The whole report. `target` is what was judged, in words.
pub fn blocks(report: &ThreadsReport, target: &str) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report, target))];
    blocks.extend(
        report
            .dumps
            .last()
            .map(|last| Block::Tiles(tiles(report, last))),
    );
    for note in &report.notes {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: note.clone(),
        });
    }
    blocks.extend(check::findings(&checked(report, target)));
    blocks.extend(course(report));
    blocks.extend(crate::thread_times::blocks(report));
    blocks.extend(locks(report));
    blocks.extend(crate::thread_waits::blocks(report));
    blocks.extend(pools(report));
    blocks.extend(stuck(report));
    blocks.extend(report.taken.iter().flat_map(crate::thread_times::cost));
    blocks.extend(account(report));
    blocks
}

/// The findings as a document of `check`.
pub fn checked(report: &ThreadsReport, target: &str) -> CheckReport {
    CheckReport {
        place: None,
        taken: report.dumps.last().and_then(|dump| dump.taken.clone()),
        envelope: report.envelope.clone(),
        target: target.to_owned(),
        host: String::new(),
        window_s: 0.0,
        findings: report.findings.clone(),
        standing: None,
        resources: Vec::new(),
        tables: Vec::new(),
        readings: Readings::default(),
        jvm: None,
        service: None,
        files: Vec::new(),
    }
}

/// The last dump of each JVM.
fn last_of_each(report: &ThreadsReport) -> Vec<&Dump> {
    let is_last = |dump: &&Dump| {
        let mut later = report
            .dumps
            .iter()
            .filter(|other| other.number > dump.number);
        later.all(|other| other.jvm != dump.jvm)
    };
    report.dumps.iter().filter(is_last).collect()
}

fn verdict(report: &ThreadsReport, target: &str) -> Verdict {
    let of = |outcome| {
        report
            .findings
            .iter()
            .filter(move |finding| finding.outcome == outcome)
    };
    let first = of(Outcome::Act)
        .next()
        .or_else(|| of(Outcome::Watch).next());
    let undecided = of(Outcome::Undecided).count();
    let unseen = of(Outcome::Undecided).find(|finding| finding.rule == "deadlock");
    let (mark, sentence) = match first {
        Some(first) if first.outcome == Outcome::Act => {
            (("✗", "act", Tone::Bad), first.sentence.clone())
        }
        Some(first) => (("•", "watch", Tone::Doubt), first.sentence.clone()),
        None if undecided == report.findings.len() => (
            ("?", "unknown", Tone::Doubt),
            "the dumps do not show what threads wait for".to_owned(),
        ),
        None => match unseen.and_then(|finding| finding.missing.first()) {
            Some(lack) => (
                ("?", "incomplete", Tone::Doubt),
                format!("a deadlock cannot be excluded: {}", lack.reason),
            ),
            None => (("✓", "nothing to act on", Tone::Good), calm(report)),
        },
    };
    let mut context = vec![target.to_owned()];
    if let Some(last) = report.dumps.last() {
        context.extend(
            last.version
                .as_ref()
                .map(|version| format!("JVM {version}")),
        );
        context.extend(last.taken.clone());
    }
    context.push(moment(&report.envelope.started));
    context.extend(report.taken.as_ref().map(crate::thread_times::stopped));
    let mut caveats = Vec::new();
    if undecided > 0 {
        caveats.push((
            format!(
                "{} could not be decided",
                numbers::plural(undecided, "rule")
            ),
            "undecided",
        ));
    }
    if report.account.unknown_lines > 0 {
        let lines = numbers::count(report.account.unknown_lines);
        caveats.push((format!("{lines} lines were not understood"), "account"));
    }
    Verdict {
        mark: Mark {
            symbol: mark.0,
            word: mark.1,
            tone: mark.2,
        },
        sentence,
        context,
        caveats,
    }
}

/// What was looked for and is not there. What one dump cannot show is left out.
fn calm(report: &ThreadsReport) -> String {
    let dumps = numbers::plural(report.dumps.len(), "dump");
    if report.dumps.len() < 2 {
        return format!(
            "no deadlock and no lock contention in {dumps}; take two more dumps to find stuck threads"
        );
    }
    let waiting: u64 = report
        .dumps
        .iter()
        .map(|dump| dump.doing.lock_waiting)
        .sum();
    let locks = if waiting == 0 {
        "no thread waits for a lock"
    } else {
        "few threads wait for locks"
    };
    format!("no deadlock, {locks}, and no lasting shared wait in {dumps}")
}

fn tiles(report: &ThreadsReport, last: &Dump) -> Vec<Tile> {
    let tile = |label: &str, value: String, detail: String| Tile {
        label: label.to_owned(),
        value,
        before: None,
        detail,
        tone: Tone::Plain,
    };
    let doing = &last.doing;
    let business = doing.running + doing.lock_waiting + doing.waiting;
    let share = last
        .waiting_share
        .map_or_else(|| ABSENT.to_owned(), numbers::share);
    let top = last.locks.first();
    let deadlocks = last.deadlocks.len() as u64;
    let jvms = report.dumps.iter().map(|dump| dump.jvm).max().unwrap_or(0);
    let of_jvms = if jvms > 1 {
        format!("of {jvms} JVMs")
    } else {
        "of one JVM".to_owned()
    };
    vec![
        Tile {
            tone: if deadlocks > 0 {
                Tone::Bad
            } else {
                Tone::Plain
            },
            ..tile(
                "Deadlocks",
                numbers::count(deadlocks),
                "in the last dump".to_owned(),
            )
        },
        tile(
            "Waiting for a lock",
            share,
            format!(
                "{} of {} with something to do",
                doing.lock_waiting, business
            ),
        ),
        tile(
            "Longest lock queue",
            top.map_or_else(
                || "0".to_owned(),
                |lock| numbers::count(lock.waiters.len() as u64),
            ),
            top.map_or_else(String::new, |lock| lock.class.clone()),
        ),
        tile(
            "Threads",
            numbers::count(last.threads),
            format!("{} idle, {} of the JVM", doing.idle, doing.jvm),
        ),
        tile("Dumps", numbers::count(report.dumps.len() as u64), of_jvms),
    ]
}

/// What the threads of each dump do.
fn course(report: &ThreadsReport) -> Vec<Block> {
    let bar = |dump: &Dump| {
        let doing = &dump.doing;
        let parts = [doing.lock_waiting, doing.running, doing.waiting, doing.idle];
        Bar {
            label: format!("dump {}", dump.number),
            values: parts.iter().map(|count| *count as f64).collect(),
            total: numbers::count(parts.iter().sum()),
        }
    };
    let shown: Vec<&Dump> = report.dumps.iter().take(SHOWN).collect();
    let rows = shown.iter().map(|dump| {
        let doing = &dump.doing;
        vec![
            Cell::count(dump.number),
            Cell::text(format!("{}, line {}", dump.file, dump.line)),
            Cell::text(dump.taken.clone().unwrap_or_else(|| ABSENT.to_owned())),
            Cell::count(doing.lock_waiting),
            Cell::count(doing.running),
            Cell::count(doing.waiting),
            Cell::count(doing.idle),
            Cell::count(doing.jvm),
            Cell::number(dump.waiting_share, numbers::share),
            Cell::count(dump.deadlocks.len() as u64),
        ]
    });
    let table = Table {
        caption:
            "Share: threads that wait for a lock, of those that are neither idle nor JVM threads."
                .to_owned(),
        columns: vec![
            Column::number("Dump", "dump"),
            Column::words("Place", "place").rank(2),
            Column::words("Taken", "taken").rank(3),
            Column::number("At locks", "lock_waiting"),
            Column::number("Running", "running"),
            Column::number("Waiting", "waiting").rank(1),
            Column::number("Idle", "idle").rank(1),
            Column::number("JVM", "jvm").rank(4),
            Column::number("Share", "waiting_share"),
            Column::number("Deadlocks", "deadlocks").rank(1),
        ],
        rows: rows.collect(),
    };
    let mut blocks = vec![Block::section("dumps", "Thread activity")];
    blocks.extend(rest(report.dumps.len(), "dumps"));
    blocks.push(Block::Chart(Box::new(Chart {
        id: "doing",
        title: doing_title(report),
        note: "JVM threads are left out.".to_owned(),
        plot: Plot::Bars(Bars {
            quantity: "threads".to_owned(),
            unit: Unit::Count,
            whole: false,
            parts: PARTS
                .iter()
                .enumerate()
                .map(|(hue, (name, fill))| Part {
                    name,
                    hue,
                    fill: *fill,
                })
                .collect(),
            groups: vec![BarGroup {
                title: String::new(),
                bars: shown.iter().map(|dump| bar(dump)).collect(),
            }],
        }),
        data: table,
    })));
    blocks
}

fn doing_title(report: &ThreadsReport) -> String {
    let shares: Vec<f64> = report
        .dumps
        .iter()
        .filter_map(|dump| dump.waiting_share)
        .collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    match shares[..] {
        [] => "The dumps do not show what threads wait for".to_owned(),
        [_] => format!(
            "{} of the threads with something to do wait for a lock",
            numbers::share(most)
        ),
        _ => format!(
            "{} to {} of the threads with something to do wait for a lock",
            numbers::share(least),
            numbers::share(most)
        ),
    }
}

/// Which dump a table is of, where there are several.
fn of_dump(report: &ThreadsReport, dump: &Dump) -> String {
    if report.dumps.len() > 1 {
        format!("Dump {}, {}.", dump.number, dump.file)
    } else {
        String::new()
    }
}

fn locks(report: &ThreadsReport) -> Vec<Block> {
    let mut dumps = last_of_each(report);
    dumps.retain(|dump| !dump.locks.is_empty());
    if dumps.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::section("locks", "Contended locks")];
    for dump in dumps {
        blocks.extend(rest(dump.locks.len(), "locks"));
        blocks.push(Block::Table(locks_of(dump, of_dump(report, dump))));
        let top = dump
            .locks
            .first()
            .filter(|lock| !lock.owner_frames.is_empty());
        if let Some((lock, owner)) = top.and_then(|lock| Some((lock, lock.owner.as_ref()?))) {
            blocks.push(Block::Prose(format!(
                "Stack of {owner}, which holds {}:",
                lock.class
            )));
            blocks.push(Block::Code(lock.owner_frames.clone()));
        }
    }
    blocks
}

fn locks_of(dump: &Dump, caption: String) -> Table {
    let rows = dump.locks.iter().take(SHOWN).map(|lock| {
        vec![
            Cell::count(lock.waiters.len() as u64),
            Cell::count(lock.behind),
            Cell::text(&lock.class).note(format!("{} {}", lock.kind, lock.id)),
            Cell::text(owner(lock)).note(match &lock.chain[..] {
                [] | [_] => lock.owner_frames.first().cloned().unwrap_or_default(),
                [_, others @ ..] => format!("waits for {}", others.join(", which waits for ")),
            }),
            Cell::text(names(&lock.waiters)),
        ]
    });
    Table {
        caption,
        columns: vec![
            Column::number("Waiters", "waiters"),
            Column::number("Behind", "behind").rank(2),
            Column::words("Lock", "lock"),
            Column::words("Held by", "owner"),
            Column::words("Waiting", "waiting").rank(1),
        ],
        rows: rows.collect(),
    }
}

fn owner(lock: &Lock) -> String {
    let Some(owner) = &lock.owner else {
        return lock
            .owner_unknown
            .clone()
            .unwrap_or_else(|| ABSENT.to_owned());
    };
    let state = lock.owner_state.iter();
    let words: Vec<&str> = state.chain(&lock.owner_doing).map(String::as_str).collect();
    if words.is_empty() {
        owner.clone()
    } else {
        format!("{owner} ({})", words.join(", "))
    }
}

fn names(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text = format!("{text} and {} more", names.len() - NAMED);
    }
    text
}

fn pools(report: &ThreadsReport) -> Vec<Block> {
    let mut dumps = last_of_each(report);
    dumps.retain(|dump| !dump.pools.is_empty());
    if dumps.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::section("pools", "Pools"),
        Block::Prose("Threads whose names differ only by a number.".to_owned()),
    ];
    for dump in dumps {
        blocks.extend(rest(dump.pools.len(), "pools"));
        blocks.push(Block::Table(pools_of(dump, of_dump(report, dump))));
    }
    blocks
}

fn pools_of(dump: &Dump, caption: String) -> Table {
    let rows = dump.pools.iter().take(SHOWN).map(|pool| {
        let itself = pool.waits_for_itself.as_ref().filter(|of| of.others == 0);
        let itself = itself.map(|of| format!("{}, which no thread computes", of.what));
        let starved = pool.starved.clone().or(itself);
        vec![
            Cell::text(&pool.name),
            Cell::count(pool.threads),
            Cell::count(pool.idle),
            Cell::count(pool.running),
            Cell::count(pool.lock_waiting),
            Cell::count(pool.waiting),
            starved.map_or_else(Cell::default, |what| {
                Cell::text(format!("✗ all wait for {what}")).tone(Tone::Bad)
            }),
        ]
    });
    Table {
        caption,
        columns: vec![
            Column::words("Pool", "pool"),
            Column::number("Threads", "threads"),
            Column::number("Idle", "idle"),
            Column::number("Running", "running").rank(1),
            Column::number("At locks", "lock_waiting"),
            Column::number("Waiting", "waiting").rank(1),
            Column::words("Starved", "starved"),
        ],
        rows: rows.collect(),
    }
}

fn stuck(report: &ThreadsReport) -> Vec<Block> {
    if report.stuck.is_empty() {
        return Vec::new();
    }
    let rows = report.stuck.iter().take(SHOWN).map(|one| {
        vec![
            Cell::text(&one.thread).note(one.state.clone().unwrap_or_default()),
            Cell::count(one.dumps),
            Cell::number(one.cpu_share, numbers::share),
            Cell::text(&one.why),
            Cell::text(one.frames.first().cloned().unwrap_or_default()),
        ]
    });
    let mut blocks = vec![
        Block::section("stuck", "Stuck threads"),
        Block::Prose(
            "Threads with the same stack in the last dumps that run, wait for a lock, or hold a lock that others wait for. Other \
             long waits can be normal and are not listed."
                .to_owned(),
        ),
    ];
    blocks.extend(rest(report.stuck.len(), "threads"));
    blocks.push(Block::Table(Table {
        caption: String::new(),
        columns: vec![
            Column::words("Thread", "thread"),
            Column::number("Dumps", "dumps"),
            Column::number("CPU", "cpu_share").rank(1),
            Column::words("Reason", "why"),
            Column::words("At", "frame").rank(2),
        ],
        rows: rows.collect(),
    }));
    blocks
}

/// What became of the lines.
fn account(report: &ThreadsReport) -> Vec<Block> {
    let account = &report.account;
    let row = |name: &str, lines: u64| vec![Cell::text(name), Cell::count(lines)];
    let mut blocks = vec![
        Block::section("account", "Line accounting"),
        Block::Table(Table {
            caption: String::new(),
            columns: vec![
                Column::words("Lines", "group"),
                Column::number("Count", "lines"),
            ],
            rows: vec![
                row("understood", account.understood_lines),
                row("recognized, not needed", account.ignored_lines),
                row("not understood", account.unknown_lines),
            ],
        }),
    ];
    if !account.samples.is_empty() {
        let lines = account.samples.iter();
        blocks.push(Block::Fold {
            summary: "The first lines that were not understood".to_owned(),
            blocks: vec![Block::Code(
                lines
                    .map(|sample| format!("{}: {}", sample.line, sample.text))
                    .collect(),
            )],
        });
    }
    blocks
}
