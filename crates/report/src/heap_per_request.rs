//! The report of `jvm heap-per-request`: the figure, how both methods came to it, what follows, and how it settled.

use rungwise_model::capacity::Estimate;
use rungwise_model::heap_per_request::{
    Collections, HeapPerRequestReport, Method, MethodKind, Occupied,
};

use crate::block::{Block, Cell, Column, Mark, Table, Tile, Tone, Verdict};
use crate::numbers::{self, ABSENT};
use crate::tune::moment;

/// The whole report.
pub fn blocks(report: &HeapPerRequestReport) -> Vec<Block> {
    let mut blocks = vec![Block::Verdict(verdict(report)), Block::Tiles(tiles(report))];
    blocks.extend(report.notes.iter().map(|note| Block::Notice {
        tone: Tone::Doubt,
        text: note.clone(),
    }));
    if let Some(collections) = &report.collections {
        blocks.push(Block::section("collections", "Young collections"));
        blocks.push(Block::Facts(follows(collections)));
    }
    if !report.methods.is_empty() {
        blocks.push(Block::section("methods", "Methods, on the same requests"));
        blocks.push(Block::Table(methods(report)));
    }
    if !report.blocks.is_empty() {
        blocks.push(Block::section("blocks", "Block by block"));
        blocks.push(Block::Table(runs(report)));
    }
    blocks.push(Block::section("details", "Details"));
    blocks.push(Block::Facts(details(report)));
    blocks
}

fn verdict(report: &HeapPerRequestReport) -> Verdict {
    let (symbol, word, tone) = match (&report.bytes_per_request, &report.because) {
        (Some(_), None) => ("✓", "measured", Tone::Good),
        (Some(_), Some(_)) => ("?", "not settled", Tone::Doubt),
        (None, _) => ("?", "no answer", Tone::Doubt),
    };
    let because = report.because.as_deref().unwrap_or_default();
    let sentence = match report.bytes_per_request {
        Some(bytes) => {
            let figure = format!("one request costs {} of heap", interval(bytes));
            match because {
                "" => figure,
                because => format!("{figure}; {because}"),
            }
        }
        None => because.to_owned(),
    };
    let mut context = vec![report.target.clone()];
    context.extend(report.jvm.clone());
    context.extend(report.collector.clone());
    context.push(moment(&report.envelope.started));
    Verdict {
        mark: Mark { symbol, word, tone },
        sentence,
        context,
        caveats: Vec::new(),
    }
}

/// `26.1 KiB [26.0, 26.3]`, with all of it in one unit.
fn interval(bytes: Estimate) -> String {
    format!(
        "{} [{} to {}]",
        size(bytes.point),
        size(bytes.low),
        size(bytes.high)
    )
}

fn size(bytes: f64) -> String {
    if bytes < 10_240.0 {
        return numbers::whole_bytes(bytes);
    }
    numbers::bytes(bytes.max(0.0).round() as u64)
}

fn tiles(report: &HeapPerRequestReport) -> Vec<Tile> {
    let tile = |label: &str, value: Option<String>, detail: String| Tile {
        label: label.to_owned(),
        value: value.unwrap_or_else(|| ABSENT.to_owned()),
        before: None,
        detail,
        tone: Tone::Plain,
    };
    let bytes = report.bytes_per_request;
    let mut tiles = vec![tile(
        "Heap per request",
        bytes.map(|bytes| size(bytes.point)),
        bytes.map_or_else(String::new, |bytes| {
            format!("{} to {} bytes", exact(bytes.low), exact(bytes.high))
        }),
    )];
    if let Some(Occupied {
        bytes_per_request,
        bias,
        ..
    }) = report.occupied
    {
        let bias = bias.map_or_else(String::new, |bias| format!(", {}", numbers::change(bias)));
        tiles.push(tile(
            "Eden used per request",
            Some(size(bytes_per_request)),
            format!("as a GC log gives it{bias}"),
        ));
    }
    if let Some(collections) = &report.collections {
        let rate = numbers::rate(collections.rate_per_s);
        tiles.push(tile(
            "Young collections per minute",
            collections
                .young_per_min
                .map(|per_min| numbers::significant(per_min.point)),
            format!("at {rate}"),
        ));
    }
    tiles
}

fn exact(bytes: f64) -> String {
    numbers::count(bytes.max(0.0).round() as u64)
}

fn follows(collections: &Collections) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Requests".to_owned(), numbers::rate(collections.rate_per_s)),
        (
            "Allocation".to_owned(),
            format!("{}/s", size(collections.allocation_bytes_per_s.point)),
        ),
    ];
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    fact("Eden", collections.eden_bytes.map(interval));
    let figure = |value: Estimate| {
        let [point, low, high] = [value.point, value.low, value.high].map(numbers::significant);
        format!("{point} [{low} to {high}]")
    };
    fact(
        "Young collections per minute",
        collections.young_per_min.map(figure),
    );
    fact(
        "Check: the same for the measured blocks",
        collections.check.map(|check| {
            let word = if check.calculated.holds(check.counted as f64) {
                "within"
            } else {
                "outside of"
            };
            format!(
                "{} calculated; the JVM counted {}, {word} the interval",
                figure(check.calculated),
                check.counted
            )
        }),
    );
    facts
}

fn methods(report: &HeapPerRequestReport) -> Table {
    let row = |name: &str, bytes: Option<Estimate>, note: String| {
        vec![
            Cell::text(name),
            Cell::number(bytes.map(|bytes| bytes.point), exact),
            Cell::number(bytes.map(|bytes| bytes.low), exact),
            Cell::number(bytes.map(|bytes| bytes.high), exact),
            Cell::text(note),
        ]
    };
    let of = |method: &Method| {
        let name = match method.kind {
            MethodKind::ThreadCounters => "thread counters",
            MethodKind::HeapUsed => "heap in use",
            MethodKind::GcLog => "GC log",
        };
        let because = method.because.clone().unwrap_or_default();
        row(name, method.bytes_per_request, because)
    };
    let mut rows: Vec<Vec<Cell>> = report.methods.iter().map(of).collect();
    if let Some(occupied) = report.occupied {
        let unused = occupied.unused_bytes.map_or_else(String::new, |unused| {
            format!("includes {} of unused thread buffers", size(unused))
        });
        let bytes = Estimate::exact(occupied.bytes_per_request);
        rows.push(row("Eden used / requests", Some(bytes), unused));
    }
    Table {
        caption: "Bytes per request in one window between two forced collections. Eden used / requests is what a GC log gives: it counts \
                  thread buffers (TLABs) that are handed out and not used."
            .to_owned(),
        columns: vec![
            Column::words("Method", "method"),
            Column::number("Bytes", "bytes"),
            Column::number("Low", "low_bytes"),
            Column::number("High", "high_bytes"),
            Column::words("Note", "note"),
        ],
        rows,
    }
}

fn runs(report: &HeapPerRequestReport) -> Table {
    let mut before: Option<f64> = None;
    let mut rows = Vec::new();
    for (number, block) in report.blocks.iter().enumerate() {
        let bytes = block.bytes_per_request;
        let change = before.filter(|before| *before > 0.0);
        let change = change.map(|before| bytes.point / before - 1.0);
        before = Some(bytes.point);
        rows.push(vec![
            Cell::number(Some((number + 1) as f64), numbers::significant),
            Cell::number(Some(block.requests as f64), exact),
            Cell::number(Some(block.seconds), |seconds| {
                numbers::micros(seconds * 1e6)
            }),
            Cell::number(Some(bytes.point), exact),
            Cell::number(change, numbers::change),
            Cell::text(if block.measured {
                "measured"
            } else {
                "warm-up"
            }),
        ]);
    }
    Table {
        caption: "Bytes per request still contain connections and background.".to_owned(),
        columns: vec![
            Column::number("Block", "block"),
            Column::number("Requests", "requests"),
            Column::number("Time", "seconds"),
            Column::number("Bytes per request", "bytes_per_request"),
            Column::number("Change", "change"),
            Column::words("Use", "use"),
        ],
        rows,
    }
}

fn details(report: &HeapPerRequestReport) -> Vec<(String, String)> {
    let mut facts = vec![("Load".to_owned(), report.load.clone())];
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(background) = report.background_bytes_per_s {
        fact(
            "Background, subtracted",
            format!("{}/s without load", size(background.point)),
        );
    }
    if let Some(connection) = report.connection_bytes {
        fact(
            "Connections, subtracted",
            format!("{} each, with its first request", size(connection.point)),
        );
    }
    let requests = &report.requests;
    fact(
        "Requests",
        format!(
            "{} sent, {} answered, {} failed",
            numbers::count(requests.sent),
            numbers::count(requests.answered),
            numbers::count(requests.failed)
        ),
    );
    if !requests.errors.is_empty() {
        let kinds = requests.errors.iter();
        let kinds: Vec<String> = kinds
            .map(|(kind, count)| format!("{kind} {}", numbers::count(*count)))
            .collect();
        fact("Errors", kinds.join(", "));
    }
    fact(
        "Warm-up",
        if report.steady {
            "settled: the last blocks neither fall nor rise".to_owned()
        } else {
            "still falling".to_owned()
        },
    );
    facts
}
