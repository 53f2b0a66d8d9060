//! The report of `jvm jfr`: findings first, then where CPU time, memory and waiting time went, and what the JVM did itself.

use rungwise_model::check::{CheckReport, Outcome};
use rungwise_model::jfr::{Allocated, HotMethod, JfrReport, Recording, Times};
use rungwise_model::readings::Readings;

use crate::block::{Block, Cell, Column, Mark, Table, Tile, Tone, Verdict};
use crate::check;
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// Rows of a table; the JSON has up to 100.
const SHOWN: usize = 20;

/// The whole report.
pub fn blocks(report: &JfrReport) -> Vec<Block> {
    let recording = &report.recording;
    let mut blocks = vec![
        Block::Verdict(verdict(report)),
        Block::Tiles(tiles(recording)),
    ];
    for note in report.notes.iter().chain(&recording.damage) {
        blocks.push(Block::Notice {
            tone: Tone::Doubt,
            text: note.clone(),
        });
    }
    blocks.extend(check::findings(&checked(report)));
    blocks.extend(methods(recording));
    blocks.extend(threads(recording));
    blocks.extend(allocation(recording));
    blocks.extend(locks(recording));
    blocks.extend(waits(recording));
    blocks.extend(io(recording));
    blocks.extend(exceptions(recording));
    blocks.extend(pauses(recording));
    blocks.extend(old_objects(recording));
    blocks.extend(machine(recording));
    blocks.extend(events(recording));
    blocks
}

/// The findings as a document of `check`.
pub fn checked(report: &JfrReport) -> CheckReport {
    CheckReport {
        place: None,
        taken: Some(report.recording.began.clone()),
        envelope: report.envelope.clone(),
        target: report.target.clone(),
        host: String::new(),
        window_s: report.recording.duration_s,
        findings: report.findings.clone(),
        standing: None,
        resources: Vec::new(),
        tables: Vec::new(),
        jvm: None,
        service: None,
        files: Vec::new(),
        readings: Readings::default(),
    }
}

fn verdict(report: &JfrReport) -> Verdict {
    let of = |outcome| {
        let mut findings = report.findings.iter();
        findings.find(|finding| finding.outcome == outcome)
    };
    let undecided = report
        .findings
        .iter()
        .filter(|finding| finding.outcome == Outcome::Undecided)
        .count();
    let (symbol, word, tone, sentence) = match (of(Outcome::Act), of(Outcome::Watch)) {
        (Some(first), _) => ("✗", "act", Tone::Bad, first.sentence.clone()),
        (None, Some(first)) => ("•", "watch", Tone::Doubt, first.sentence.clone()),
        _ if undecided == report.findings.len() => (
            "?",
            "unknown",
            Tone::Doubt,
            "the recording has none of the events that the rules need".to_owned(),
        ),
        _ => (
            "✓",
            "nothing to act on",
            Tone::Good,
            "no rule found a bottleneck in this recording".to_owned(),
        ),
    };
    let recording = &report.recording;
    let mut context = vec![report.target.clone()];
    // What follows is how it was built.
    let version = recording.jvm.version.as_deref();
    context.extend(version.and_then(|version| Some(version.split(" for ").next()?.to_owned())));
    context.push(recording.began.clone());
    context.push(moment(&report.envelope.started));
    let mut caveats = Vec::new();
    if undecided > 0 {
        let rules = numbers::plural(undecided, "rule");
        caveats.push((format!("{rules} could not be decided"), "undecided"));
    }
    Verdict {
        mark: Mark { symbol, word, tone },
        sentence,
        context,
        caveats,
    }
}

fn tiles(recording: &Recording) -> Vec<Tile> {
    let tile = |label: &str, value: String, detail: String| Tile {
        label: label.to_owned(),
        value,
        before: None,
        detail,
        tone: Tone::Plain,
    };
    let events: u64 = recording.events.values().sum();
    let mut tiles = vec![tile(
        "Recorded",
        numbers::span(recording.duration_s),
        format!("{} events", numbers::count(events)),
    )];
    if let Some(cpu) = &recording.cpu {
        tiles.push(tile(
            "CPU of the JVM",
            numbers::share(cpu.jvm_user + cpu.jvm_system),
            format!("of the machine, others {}", numbers::share(cpu.others)),
        ));
    }
    if recording.samples.counted > 0 {
        let hottest = recording.hot_methods.first();
        tiles.push(tile(
            "Hottest method",
            hottest.map_or_else(
                || ABSENT.to_owned(),
                |method| numbers::share(method.own_share),
            ),
            hottest.map_or_else(String::new, |method| method.method.clone()),
        ));
    }
    if recording.allocation.source.is_some() {
        let bytes = recording.allocation.bytes as f64 / recording.duration_s.max(1e-3);
        tiles.push(tile(
            "Allocation",
            format!("{}/s", numbers::bytes(bytes as u64)),
            recording
                .allocation
                .classes
                .first()
                .map_or_else(String::new, |class| class.name.clone()),
        ));
    }
    let lock_ms: f64 = recording.locks.iter().map(|lock| lock.times.total_ms).sum();
    tiles.push(tile(
        "Waiting for locks",
        numbers::micros(lock_ms * 1e3),
        "all threads together".to_owned(),
    ));
    tiles
}

fn millis(ms: f64) -> Cell {
    let mut cell = Cell::number(Some(ms), |ms| numbers::micros(ms * 1e3));
    cell.raw = Some(ms);
    cell
}

fn share(fraction: f64) -> Cell {
    Cell::number(Some(fraction), numbers::share)
}

fn size(bytes: u64) -> Cell {
    Cell::number(Some(bytes as f64), |n| numbers::bytes(n as u64))
}

fn words(text: Option<&str>) -> Cell {
    Cell::text(text.unwrap_or(ABSENT))
}

fn times(times: &Times) -> [Cell; 3] {
    [
        Cell::count(times.count),
        millis(times.total_ms),
        millis(times.longest_ms),
    ]
}

fn time_columns() -> [Column; 3] {
    [
        Column::number("Count", "count"),
        Column::number("Time", "total_ms"),
        Column::number("Longest", "longest_ms").rank(1),
    ]
}

/// A heading with a table, or nothing where there are no rows.
fn section(
    id: &'static str,
    title: &str,
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
) -> Vec<Block> {
    if rows.is_empty() {
        return Vec::new();
    }
    let heading = Block::Section {
        id,
        title: title.to_owned(),
    };
    let mut blocks = vec![heading];
    blocks.extend(table(caption, columns, rows));
    blocks
}

fn table(caption: String, columns: Vec<Column>, mut rows: Vec<Vec<Cell>>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if rows.len() > SHOWN {
        let more = rows.len() - SHOWN;
        blocks.push(Block::Prose(format!(
            "The first {SHOWN} rows; the JSON has {more} more."
        )));
        rows.truncate(SHOWN);
    }
    blocks.push(Block::Table(Table {
        caption,
        columns,
        rows,
    }));
    blocks
}

fn methods(recording: &Recording) -> Vec<Block> {
    let columns = || {
        vec![
            Column::number("Self", "self_share"),
            Column::number("Total", "total_share").rank(1),
            Column::number("Samples", "self").rank(2),
            Column::words("Method", "method").least(30),
            Column::words("Thread", "thread").rank(3),
        ]
    };
    let row = |method: &HotMethod| {
        vec![
            share(method.own_share),
            share(method.total_share),
            Cell::count(method.own),
            Cell::text(&method.method),
            words(method.thread.as_deref()),
        ]
    };
    let source = recording.samples.source.as_deref().unwrap_or_default();
    let caption = format!(
        "Self: samples in the method itself. Total: with it anywhere on the stack. {} samples of {source}.",
        numbers::count(recording.samples.counted)
    );
    let rows = recording.hot_methods.iter().map(row).collect();
    let mut blocks = section("methods", "Hot methods", caption, columns(), rows);
    let code = recording.code.iter().map(|code| {
        vec![
            Cell::text(&code.kind),
            share(code.share),
            Cell::count(code.samples),
            Cell::text(&code.method),
            words(code.caller.as_deref()),
        ]
    });
    let of_code = vec![
        Column::words("Code", "kind"),
        Column::number("Share", "share"),
        Column::number("Samples", "samples").rank(2),
        Column::words("Entered at", "method").least(30),
        Column::words("Called by", "caller").rank(1).least(20),
    ];
    let caption = "Samples whose innermost frames are of such a library.".to_owned();
    blocks.extend(section(
        "code",
        "Library code",
        caption,
        of_code,
        code.collect(),
    ));
    let caption = format!(
        "Wall-clock samples of threads that do not run: {}.",
        numbers::count(recording.samples.waiting)
    );
    let rows = recording.waiting_methods.iter().map(row).collect();
    blocks.extend(section(
        "waiting-methods",
        "Methods that wait",
        caption,
        columns(),
        rows,
    ));
    blocks
}

fn threads(recording: &Recording) -> Vec<Block> {
    let rows = recording.threads.iter().map(|thread| {
        vec![
            Cell::text(&thread.name),
            Cell::count(thread.threads),
            share(thread.share),
            words(thread.method.as_deref()),
            millis(thread.lock_ms),
            thread
                .allocated_bytes
                .map_or_else(|| Cell::text(ABSENT), size),
        ]
    });
    let columns = vec![
        Column::words("Thread", "thread").least(20),
        Column::number("Threads", "threads").rank(3),
        Column::number("Samples", "share"),
        Column::words("Hottest method", "method").rank(1).least(20),
        Column::number("At locks", "lock_ms"),
        Column::number("Allocated", "allocated_bytes").rank(2),
    ];
    let caption = "Threads whose names differ by numbers only are one row.".to_owned();
    section("threads", "Threads", caption, columns, rows.collect())
}

fn allocation(recording: &Recording) -> Vec<Block> {
    let allocation = &recording.allocation;
    let columns = |of: &str, key| {
        vec![
            Column::number("Share", "share"),
            Column::number("Bytes", "bytes"),
            Column::number("Events", "events").rank(1),
            Column::words(of, key).least(30),
        ]
    };
    let rows = |all: &[Allocated]| {
        let row = |one: &Allocated| {
            vec![
                share(one.share),
                size(one.bytes),
                Cell::count(one.events),
                Cell::text(&one.name),
            ]
        };
        all.iter().map(row).collect::<Vec<_>>()
    };
    let mut caption = format!(
        "{} in events of {}.",
        numbers::bytes(allocation.bytes),
        allocation.source.as_deref().unwrap_or_default()
    );
    if let Some(outside) = allocation.outside_tlab_bytes {
        caption = format!("{caption} Outside of TLABs: {}.", numbers::bytes(outside));
    }
    let mut blocks = section(
        "allocation",
        "Allocation",
        caption,
        columns("Class", "class"),
        rows(&allocation.classes),
    );
    if !allocation.methods.is_empty() {
        let by_method = columns("Method", "method");
        blocks.extend(table(String::new(), by_method, rows(&allocation.methods)));
    }
    blocks
}

/// The shortest duration that is recorded of these types.
fn least(recording: &Recording, types: &[&str]) -> String {
    let known = types.iter().filter_map(|of| {
        let threshold = recording.thresholds.get(*of)?;
        Some(format!("{of} from {threshold} on"))
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        String::new()
    } else {
        format!("Recorded: {}.", known.join(", "))
    }
}

fn locks(recording: &Recording) -> Vec<Block> {
    let rows = recording.locks.iter().map(|lock| {
        let mut row = times(&lock.times).to_vec();
        row.extend([
            Cell::count(lock.threads),
            Cell::text(&lock.class).note(format!(
                "{}, {}",
                lock.kind,
                numbers::plural(
                    usize::try_from(lock.objects).unwrap_or(usize::MAX),
                    "object"
                )
            )),
            words(lock.owner.as_deref()),
        ]);
        row
    });
    let mut columns = time_columns().to_vec();
    columns.extend([
        Column::number("Threads", "threads").rank(2),
        Column::words("Lock", "class").least(30),
        Column::words("Held before by", "owner").rank(3),
    ]);
    let caption = least(recording, &["jdk.JavaMonitorEnter", "jdk.ThreadPark"]);
    let mut blocks = section("locks", "Contended locks", caption, columns, rows.collect());
    for lock in recording.locks.iter().take(3) {
        let Some(site) = lock.sites.first() else {
            continue;
        };
        blocks.push(Block::Prose(format!(
            "Where threads waited longest for {} ({} of {}):",
            lock.class,
            numbers::micros(site.times.total_ms * 1e3),
            numbers::micros(lock.times.total_ms * 1e3)
        )));
        blocks.push(Block::Code(site.frames.clone()));
    }
    blocks
}

fn waits(recording: &Recording) -> Vec<Block> {
    let rows = recording.waits.iter().map(|wait| {
        let mut row = vec![Cell::text(&wait.kind)];
        row.extend(times(&wait.times));
        row.extend([Cell::text(&wait.class), words(wait.at.as_deref())]);
        row
    });
    let mut columns = vec![Column::words("Kind", "kind")];
    columns.extend(time_columns());
    columns.extend([
        Column::words("Class", "class").least(20),
        Column::words("At", "at").rank(2).least(20),
    ]);
    let caption = "Waits for work, a condition or a time: no contention by themselves.".to_owned();
    section("waits", "Other waits", caption, columns, rows.collect())
}

fn io(recording: &Recording) -> Vec<Block> {
    let rows = recording.io.iter().map(|io| {
        let mut row = vec![Cell::text(&io.kind)];
        row.extend(times(&io.times));
        row.extend([
            size(io.bytes),
            Cell::text(&io.place),
            words(io.at.as_deref()),
        ]);
        row
    });
    let mut columns = vec![Column::words("Kind", "kind")];
    columns.extend(time_columns());
    columns.extend([
        Column::number("Bytes", "bytes").rank(2),
        Column::words("File or peer", "place").least(20),
        Column::words("At", "at").rank(3).least(20),
    ]);
    let types = ["jdk.FileRead", "jdk.FileWrite", "jdk.SocketRead"];
    let caption = least(recording, &types);
    section("io", "Reads and writes", caption, columns, rows.collect())
}

fn exceptions(recording: &Recording) -> Vec<Block> {
    let exceptions = &recording.exceptions;
    let rows = exceptions.classes.iter().map(|thrown| {
        vec![
            Cell::count(thrown.count),
            Cell::text(&thrown.class).note(thrown.message.clone().unwrap_or_default()),
            words(thrown.at.as_deref()),
        ]
    });
    let columns = vec![
        Column::number("Count", "count"),
        Column::words("Class", "class").least(30),
        Column::words("At", "at").rank(1).least(20),
    ];
    let caption = match (exceptions.thrown, exceptions.thrown_per_s) {
        (Some(thrown), Some(rate)) => format!(
            "The JVM counted {} exceptions and errors, {}.",
            numbers::count(thrown),
            numbers::rate(rate)
        ),
        _ => String::new(),
    };
    let rows: Vec<Vec<Cell>> = rows.collect();
    if rows.is_empty() && exceptions.thrown.is_some_and(|thrown| thrown > 0) {
        let heading = Block::Section {
            id: "exceptions",
            title: "Exceptions".to_owned(),
        };
        return vec![heading, Block::Prose(caption)];
    }
    section("exceptions", "Exceptions", caption, columns, rows)
}

fn pauses(recording: &Recording) -> Vec<Block> {
    let rows = recording.collections.iter().map(|collection| {
        let mut row = times(&collection.pauses).to_vec();
        row.extend([Cell::text(&collection.name), Cell::text(&collection.cause)]);
        row
    });
    let mut columns = time_columns().to_vec();
    columns.extend([
        Column::words("Collection", "name"),
        Column::words("Cause", "cause").rank(2),
    ]);
    let caption = "Time: of the pauses.".to_owned();
    let mut blocks = section(
        "gc",
        "Garbage collections",
        caption,
        columns,
        rows.collect(),
    );
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    if let Some(begin) = &recording.safepoint_begin {
        let mut row = times(begin).to_vec();
        row.extend([Cell::text("time to safepoint"), Cell::text("yes")]);
        rows.push(row);
    }
    rows.extend(recording.operations.iter().map(|operation| {
        let mut row = times(&operation.times).to_vec();
        let stops = if operation.stops_threads { "yes" } else { "no" };
        row.extend([Cell::text(&operation.name), Cell::text(stops)]);
        row
    }));
    let mut columns = time_columns().to_vec();
    columns.extend([
        Column::words("Operation", "operation"),
        Column::words("Stops threads", "stops_threads").rank(2),
    ]);
    let title = "Safepoints and VM operations";
    blocks.extend(section("operations", title, String::new(), columns, rows));
    blocks
}

fn old_objects(recording: &Recording) -> Vec<Block> {
    let rows = recording.old_objects.iter().map(|old| {
        let mut path = old.path.clone();
        path.extend(old.root.clone());
        vec![
            Cell::count(old.count),
            Cell::number(Some(old.oldest_s), numbers::span),
            Cell::text(&old.class).note(path.join(" ← ")),
            words(old.at.as_deref()),
        ]
    });
    let columns = vec![
        Column::number("Sampled", "count"),
        Column::number("Oldest", "oldest_s"),
        Column::words("Class", "class").least(30),
        Column::words("Allocated at", "at").rank(1).least(20),
    ];
    let caption = "Sampled objects that were alive at the end of the recording: candidates for a leak. Their path to a root is \
                   recorded with `path-to-gc-roots=true` only."
        .to_owned();
    section(
        "old-objects",
        "Old objects",
        caption,
        columns,
        rows.collect(),
    )
}

fn machine(recording: &Recording) -> Vec<Block> {
    let jvm = &recording.jvm;
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    fact("JVM", jvm.name.clone());
    fact("Version", jvm.version.clone());
    fact("Main", jvm.main.clone());
    fact("Process", jvm.pid.map(|pid| pid.to_string()));
    fact("Started", jvm.started.clone());
    fact("Collectors", jvm.collector.clone());
    fact("CPU", jvm.cpu.clone());
    fact("CPUs", jvm.cpus.map(numbers::count));
    fact("Memory", jvm.memory_bytes.map(numbers::bytes));
    fact("Java threads, most", jvm.most_threads.map(numbers::count));
    fact(
        "Threads started",
        (jvm.thread_starts > 0).then(|| numbers::count(jvm.thread_starts)),
    );
    if let Some(cpu) = &recording.cpu {
        fact(
            "CPU use",
            Some(format!(
                "JVM {} user and {} kernel, machine {}, at most {}",
                numbers::share(cpu.jvm_user),
                numbers::share(cpu.jvm_system),
                numbers::share(cpu.machine),
                numbers::share(cpu.machine_most)
            )),
        );
    }
    if let Some(container) = &recording.container {
        fact("Container", Some(container.kind.clone()));
        fact(
            "CPU quota",
            container
                .quota_cpus
                .map(|cpus| format!("{} CPUs", numbers::significant(cpus))),
        );
        fact(
            "Memory limit",
            container.memory_limit_bytes.map(numbers::bytes),
        );
        fact(
            "Throttled",
            container
                .throttled_share
                .map(|share| format!("{} of the periods", numbers::share(share))),
        );
    }
    let mut blocks = Vec::new();
    if !facts.is_empty() {
        blocks.push(Block::Section {
            id: "jvm",
            title: "JVM and machine".to_owned(),
        });
        blocks.push(Block::Facts(facts));
    }
    let flags = recording.flags.iter().map(|(name, flag)| {
        vec![
            Cell::text(name),
            Cell::text(&flag.value),
            Cell::text(&flag.origin),
        ]
    });
    let flags: Vec<Vec<Cell>> = flags.collect();
    if !flags.is_empty() {
        let columns = vec![
            Column::words("Flag", "flag"),
            Column::words("Value", "value"),
            Column::words("Set by", "origin"),
        ];
        blocks.push(folded(
            "Flags that are not at their default",
            columns,
            flags,
        ));
    }
    blocks
}

fn events(recording: &Recording) -> Vec<Block> {
    let mut counts: Vec<(&String, u64)> = recording
        .events
        .iter()
        .map(|(event, count)| (event, *count))
        .collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let rows = counts
        .into_iter()
        .map(|(event, count)| vec![Cell::count(count), Cell::text(event)])
        .collect();
    let columns = vec![
        Column::number("Events", "events"),
        Column::words("Type", "type"),
    ];
    let summary = format!(
        "Format {}, {}, {}",
        recording.format,
        numbers::plural(
            usize::try_from(recording.chunks).unwrap_or(usize::MAX),
            "chunk"
        ),
        numbers::bytes(recording.file_bytes)
    );
    vec![
        Block::Section {
            id: "events",
            title: "Events".to_owned(),
        },
        Block::Prose(summary),
        folded("Events by type", columns, rows),
    ]
}

/// A long table that is closed at first.
fn folded(summary: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Block {
    Block::Fold {
        summary: summary.to_owned(),
        blocks: vec![Block::Table(Table {
            caption: String::new(),
            columns,
            rows,
        })],
    }
}
