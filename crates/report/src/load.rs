//! One measurement of a workload as blocks: the rate, what was lost, latency counted from both
//! starts, the run second by second, and whether the generator may be believed.

mod connections;
mod seconds;

use std::collections::BTreeMap;

use rungwise_model::load::{
    Http, LimitSearch, LimitStep, LoadReport, Measurement, NamedRequests, Quantiles, SloResult,
    StepOutcome, Stream, Tls,
};

use crate::block::{
    Block, Cell, Chart, Column, Dots, Mark, Plot, Point, Series, Table, Tile, Tone, Verdict,
};
use crate::numbers::{self, ABSENT};
use crate::scale::Unit;
use crate::tune::{moment, quoted};

/// The whole report.
pub fn blocks(report: &LoadReport) -> Vec<Block> {
    let m = &report.measurement;
    let first = match &m.connections {
        Some(held) => connections::tiles(m, held),
        None => tiles(m),
    };
    let mut blocks = vec![Block::Verdict(verdict(report)), Block::Tiles(first)];
    if !m.client.certified {
        blocks.push(Block::Notice {
            tone: Tone::Bad,
            text: "No verdict uses this measurement. The generator does not certify it because:"
                .to_owned(),
        });
        blocks.push(Block::List(m.client.reasons.clone()));
    }
    if let Some(search) = &report.limit {
        blocks.push(Block::section("limit", "Search for the highest rate"));
        blocks.push(Block::Prose(found(search)));
        blocks.extend(curve(search));
        blocks.push(Block::Table(steps(search)));
    }
    if !report.slo.is_empty() {
        blocks.push(Block::section("slo", "Limits"));
        blocks.push(Block::Facts(report.slo.iter().map(limit).collect()));
    }
    if let Some(held) = &m.connections {
        blocks.push(Block::section("connections", "Connections"));
        blocks.push(Block::Facts(connections::facts(held)));
        blocks.push(Block::Table(connections::limits(held)));
    }
    blocks.push(Block::section("latency", "Latency"));
    if m.received == 0 {
        blocks.push(Block::Prose(
            "No reply was received, so there is no latency.".to_owned(),
        ));
    } else {
        blocks.push(Block::Table(latency(m)));
    }
    if !m.seconds.is_empty() {
        blocks.push(Block::section("seconds", "Second by second"));
        blocks.push(seconds::rate_chart(m));
        blocks.push(seconds::latency_chart(m));
    }
    blocks.push(Block::section("counts", "What was sent and received"));
    blocks.push(Block::Facts(counts(m)));
    if let Some(http) = &m.http {
        blocks.push(Block::section("http", "HTTP"));
        blocks.push(Block::Facts(of_http(http)));
        if !http.requests.is_empty() {
            blocks.push(Block::Table(by_name(&http.requests)));
        }
    }
    if let Some(stream) = &m.stream {
        blocks.push(Block::section("stream", "Connections and replies"));
        blocks.push(Block::Facts(of_stream(stream)));
        if !stream.quotes.is_empty() {
            blocks.push(Block::Table(quotes(m, stream)));
        }
        if !stream.requests.is_empty() {
            blocks.push(Block::Table(by_name(&stream.requests)));
        }
    }
    blocks.push(Block::section("method", "Method"));
    blocks.push(Block::Facts(method(report)));
    if !report.envelope.command.is_empty() {
        let words: Vec<String> = report
            .envelope
            .command
            .iter()
            .map(|word| quoted(word))
            .collect();
        blocks.push(Block::Code(vec![words.join(" ")]));
    }
    blocks
}

/// A limit, and what was measured.
fn limit(slo: &SloResult) -> (String, String) {
    let written = match slo.metric.as_str() {
        "rate" => numbers::rate,
        "loss" | "errors" => lost_share,
        _ => numbers::micros,
    };
    let value = slo.value.map_or(ABSENT.to_owned(), written);
    let word = if slo.met { "✓ kept" } else { "✗ missed" };
    (slo.slo.clone(), format!("{word}: {value}"))
}

/// What a search found, and what ended it.
fn found(search: &LimitSearch) -> String {
    let rate = numbers::rate;
    let missed_by = |per_s: f64| {
        let missed = |step: &&LimitStep| {
            step.offered_per_s.total_cmp(&per_s).is_eq() && step.outcome == StepOutcome::Missed
        };
        let step = search.steps.iter().rfind(missed);
        step.map_or(String::new(), |step| step.reasons.join("; "))
    };
    let mut sentences = vec![match search.rate_per_s {
        Some(kept) => format!("All limits were kept at {}, twice.", rate(kept)),
        None => "No rate kept all limits twice.".to_owned(),
    }];
    if let (Some(needed), Some(kept)) = (search.needed_per_s, search.rate_per_s) {
        let headroom = kept / needed - 1.0;
        let word = if headroom >= 0.0 { "more" } else { "less" };
        sentences.push(format!(
            "That is {} {word} than the {} needed.",
            numbers::share(headroom.abs()),
            rate(needed)
        ));
    }
    if let Some(missed) = search.missed_per_s {
        sentences.push(format!(
            "At {} this was missed, twice: {}.",
            rate(missed),
            missed_by(missed)
        ));
    }
    if let Some(ended) = &search.ended {
        sentences.push(format!("The search went no further: {ended}."));
    }
    sentences.push(format!(
        "In a closed loop the service answered {}.",
        rate(search.closed_per_s)
    ));
    sentences.join(" ")
}

/// Latency by rate, where it was measured at two rates or more.
fn curve(search: &LimitSearch) -> Option<Block> {
    let shown = search.steps.iter().filter(|step| step.latency_us.max > 0.0);
    let mut shown: Vec<&LimitStep> = shown.collect();
    shown.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    let (first, last) = (shown.first()?.offered_per_s, shown.last()?.offered_per_s);
    if first >= last {
        return None;
    }
    let series = |name: &str, square: bool, hue: usize, value: fn(&Quantiles) -> f64| Series {
        name: name.to_owned(),
        square,
        joined: false,
        hue,
        points: shown
            .iter()
            .map(|step| Point {
                at_s: step.offered_per_s,
                value: value(&step.latency_us),
                hollow: step.outcome == StepOutcome::NotCertified,
            })
            .collect(),
    };
    let row = |step: &LimitStep| {
        vec![
            Cell::number(Some(step.offered_per_s), numbers::rate),
            Cell::number(Some(step.latency_us.p50), numbers::micros),
            Cell::number(Some(step.latency_us.p99), numbers::micros),
        ]
    };
    let title = match search.rate_per_s {
        Some(rate) => format!("Latency by rate: limits kept up to {}", numbers::rate(rate)),
        None => "Latency by rate".to_owned(),
    };
    Some(Block::Chart(Box::new(Chart {
        id: "latency-by-rate",
        note:
            "Measured from the intended start of each request; hollow: the run was not certified."
                .to_owned(),
        data: Table {
            caption: title.clone(),
            columns: vec![
                Column::number("Offered", "offered_per_s"),
                Column::number("p50", "p50_us"),
                Column::number("p99", "p99_us"),
            ],
            rows: shown.iter().map(|step| row(step)).collect(),
        },
        title,
        plot: Plot::Dots(Dots {
            along: Unit::Rate,
            names: Vec::new(),
            quantity: "latency by offered rate".to_owned(),
            unit: Unit::Micros,
            from_zero: false,
            also: Vec::new(),
            from_s: 0.0,
            until_s: last,
            zooms: false,
            series: vec![
                series("p50", true, 1, |latency| latency.p50),
                series("p99", false, 2, |latency| latency.p99),
            ],
            spans: Vec::new(),
        }),
    })))
}

/// The runs of a search, by rate.
fn steps(search: &LimitSearch) -> Table {
    let mut steps: Vec<&LimitStep> = search.steps.iter().collect();
    steps.sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    let row = |step: &&LimitStep| {
        let (word, tone) = match step.outcome {
            StepOutcome::Kept => ("✓ kept", Tone::Good),
            StepOutcome::Missed => ("✗ missed", Tone::Bad),
            StepOutcome::NotCertified => ("not certified", Tone::Plain),
        };
        let latency = |us: f64| Cell::number(Some(us), numbers::micros);
        vec![
            Cell::number(Some(step.offered_per_s), numbers::rate),
            Cell::number(Some(step.achieved_per_s), numbers::rate),
            latency(step.latency_us.p50),
            latency(step.latency_us.p99),
            latency(step.latency_us.max),
            Cell::number(Some(step.errors), lost_share),
            Cell::number(step.server_busy, numbers::share),
            Cell::text(word).tone(tone).note(step.reasons.join("; ")),
        ]
    };
    Table {
        caption: "Each run in an open loop, with latency from the intended start.".to_owned(),
        columns: vec![
            Column::number("Offered", "offered_per_s"),
            Column::number("Answered", "achieved_per_s"),
            Column::number("p50", "p50_us"),
            Column::number("p99", "p99_us"),
            Column::number("max", "max_us"),
            Column::number("Errors", "errors"),
            Column::number("Server CPU", "server_busy"),
            Column::words("Limits", "outcome"),
        ],
        rows: steps.iter().map(row).collect(),
    }
}

fn of_http(http: &Http) -> Vec<(String, String)> {
    let statuses = http.statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("{status}: {}", numbers::count(*count)));
    let mut facts = Vec::new();
    if !http.protocol.is_empty() {
        let streams = http.http2.as_ref().map(|http2| http2.streams);
        let streams = match streams {
            Some(1) => ", one stream at a time on each connection".to_owned(),
            Some(streams) => format!(", up to {streams} streams at a time on each connection"),
            None => String::new(),
        };
        facts.push(("Protocol".to_owned(), format!("{}{streams}", http.protocol)));
    }
    facts.extend([
        (
            "Responses by status".to_owned(),
            if http.statuses.is_empty() {
                ABSENT.to_owned()
            } else {
                statuses.collect::<Vec<_>>().join(", ")
            },
        ),
        ("Received".to_owned(), numbers::bytes(http.received_bytes)),
        (
            "Connections opened".to_owned(),
            numbers::count(http.connections),
        ),
        ("Time to connect".to_owned(), time(&http.connect_us)),
    ]);
    if let Some(http2) = &http.http2 {
        for (title, counts) in [
            ("Streams reset by the server", &http2.resets),
            ("Connections ended by the server", &http2.goaways),
            ("Protocol broken by the server", &http2.broken),
        ] {
            if !counts.is_empty() {
                facts.push((title.to_owned(), listed(counts)));
            }
        }
        if http2.repeated > 0 {
            let words = format!(
                "{} that the server had not looked at",
                numbers::count(http2.repeated)
            );
            facts.push(("Requests sent again".to_owned(), words));
        }
    }
    if let Some(tls) = &http.tls {
        facts.extend(of_tls(tls));
    }
    facts.push(("Time to first byte".to_owned(), time(&http.first_byte_us)));
    facts
}

/// Quantiles of a time; absent where there was none.
fn time(q: &Quantiles) -> String {
    if q.max <= 0.0 {
        return ABSENT.to_owned();
    }
    let [p50, p99, max] = [q.p50, q.p99, q.max].map(numbers::micros);
    format!("p50 {p50}, p99 {p99}, max {max}")
}

/// Counts by name.
fn listed(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter();
    let counts = counts.map(|(name, count)| format!("{name}: {}", numbers::count(*count)));
    counts.collect::<Vec<_>>().join(", ")
}

fn of_tls(tls: &Tls) -> [(String, String); 3] {
    let handshakes = format!(
        "{} full, {} resumed",
        numbers::count(tls.full),
        numbers::count(tls.resumed)
    );
    [
        ("TLS".to_owned(), negotiated(tls)),
        ("TLS handshakes".to_owned(), handshakes),
        ("Time of TLS handshake".to_owned(), time(&tls.handshake_us)),
    ]
}

fn of_stream(stream: &Stream) -> Vec<(String, String)> {
    let mut facts = vec![("Protocol".to_owned(), stream.protocol.clone())];
    if !stream.answers.is_empty() {
        facts.push(("Answers".to_owned(), listed(&stream.answers)));
    }
    facts.extend([
        (
            "Requests, bytes".to_owned(),
            numbers::bytes(stream.sent_bytes),
        ),
        ("Received".to_owned(), numbers::bytes(stream.received_bytes)),
        (
            "Connections opened".to_owned(),
            match stream.reconnects {
                0 => numbers::count(stream.connections),
                again => format!(
                    "{}, {} of them again",
                    numbers::count(stream.connections),
                    numbers::count(again)
                ),
            },
        ),
        ("Time to connect".to_owned(), time(&stream.connect_us)),
    ]);
    if !stream.events.is_empty() {
        let words = listed(&stream.events);
        facts.push(("Events from the server".to_owned(), words));
    }
    if !stream.broken.is_empty() {
        let words = listed(&stream.broken);
        facts.push(("Protocol broken by the server".to_owned(), words));
    }
    if let Some(tls) = &stream.tls {
        facts.extend(of_tls(tls));
    }
    facts
}

/// Errors in the server's words.
fn quotes(m: &Measurement, stream: &Stream) -> Table {
    let rows = stream.quotes.iter().map(|(kind, quote)| {
        let count = m.errors.get(kind).copied().unwrap_or(0);
        vec![
            Cell::text(&quote.class),
            Cell::number(Some(count as f64), |count| numbers::count(count as u64)),
            Cell::text(&quote.text),
        ]
    });
    Table {
        caption: "Errors with which the server replied, and how it worded the first of each class."
            .to_owned(),
        columns: vec![
            Column::words("Class", "class"),
            Column::number("Replies", "replies"),
            Column::words("First", "first"),
        ],
        rows: rows.collect(),
    }
}

/// Versions and cipher suites, and whether the server is who it says.
fn negotiated(tls: &Tls) -> String {
    let all = tls.negotiated.iter().map(|(what, handshakes)| {
        // Mostly all connections negotiate the same.
        if tls.negotiated.len() == 1 {
            what.clone()
        } else {
            format!("{what}: {}", numbers::count(*handshakes))
        }
    });
    let all = if tls.negotiated.is_empty() {
        ABSENT.to_owned()
    } else {
        all.collect::<Vec<_>>().join(", ")
    };
    let certificate = if tls.verified {
        "certificate verified"
    } else {
        "certificate not verified (--insecure)"
    };
    format!("{all}; {certificate}")
}

fn by_name(requests: &[NamedRequests]) -> Table {
    let row = |one: &NamedRequests| {
        let time = |us: f64| Cell::number((us > 0.0).then_some(us), numbers::micros);
        vec![
            Cell::text(&one.name),
            Cell::number(Some(one.sent as f64), |count| numbers::count(count as u64)),
            Cell::number(Some(one.errors as f64), |count| {
                numbers::count(count as u64)
            }),
            time(one.p50_us),
            time(one.p99_us),
        ]
    };
    Table {
        caption: "Requests by name. Latency is that from the intended start; errors have none."
            .to_owned(),
        columns: vec![
            Column::words("Request", "request"),
            Column::number("Sent", "sent"),
            Column::number("Errors", "errors"),
            Column::number("p50", "p50_us"),
            Column::number("p99", "p99_us"),
        ],
        rows: requests.iter().map(row).collect(),
    }
}

fn method(report: &LoadReport) -> Vec<(String, String)> {
    let mut facts = vec![("Target".to_owned(), report.target.clone())];
    let transport = &report.measurement.client.transport;
    if let Some(device) = &transport.device {
        let by_queue = transport.by_queue.map_or(ABSENT.to_owned(), numbers::share);
        let place = match transport.native {
            Some(true) => "native",
            _ => "generic",
        };
        facts.push((
            "Transport".to_owned(),
            format!(
                "AF_XDP on {device}, {place}; {by_queue} of the replies arrived on its queues, the others through the stack"
            ),
        ));
    }
    facts.extend([
        ("Started".to_owned(), moment(&report.envelope.started)),
        ("Finished".to_owned(), moment(&report.envelope.finished)),
        (
            "Tool".to_owned(),
            format!("rungwise {}", report.envelope.tool.version),
        ),
    ]);
    facts
}

fn verdict(report: &LoadReport) -> Verdict {
    let m = &report.measurement;
    let ended = (report.limit.as_ref()).is_some_and(|search| search.ended.is_some());
    let mark = if ended {
        Mark {
            symbol: "?",
            word: "inconclusive",
            tone: Tone::Doubt,
        }
    } else if m.client.certified {
        Mark {
            symbol: "✓",
            word: "certified",
            tone: Tone::Good,
        }
    } else {
        Mark {
            symbol: "✗",
            word: "not certified",
            tone: Tone::Bad,
        }
    };
    let rate = numbers::rate(m.achieved_per_s);
    let answered = match m.offered_per_s {
        Some(offered) => format!("{rate} of {} offered", numbers::rate(offered)),
        None => rate,
    };
    let lost = match loss(m) {
        Some(0.0) => ", none lost".to_owned(),
        Some(loss) => format!(", {} lost", lost_share(loss)),
        None => String::new(),
    };
    let tail = if m.received > 0 {
        format!("; p99 {}", numbers::micros(m.latency_us.corrected.p99))
    } else {
        String::new()
    };
    let answered = format!("{} answered {answered}{lost}{tail}", report.target);
    let held = m.connections.as_ref();
    let answered = held.map_or(answered, |held| connections::sentence(report, held));
    let sentence = match report.limit.as_ref().map(|search| search.rate_per_s) {
        None => answered,
        Some(None) => format!("no limit was found; {answered}"),
        Some(Some(limit)) => {
            let least = if ended { "at least " } else { "" };
            let (target, limit) = (&report.target, numbers::rate(limit));
            format!("{target} keeps its limits up to {least}{limit}{lost}{tail}")
        }
    };
    Verdict {
        mark,
        sentence,
        context: vec![
            moment(&report.envelope.started),
            format!("{} measured", numbers::span(m.window_s)),
            if held.is_some() {
                "connections held"
            } else if m.offered_per_s.is_some() {
                "open loop"
            } else {
                "closed loop"
            }
            .to_owned(),
        ],
        caveats: Vec::new(),
    }
}

fn loss(m: &Measurement) -> Option<f64> {
    (m.sent > 0).then(|| m.lost as f64 / m.sent as f64)
}

/// A share that may be tiny: one lost in a million must not read as none.
fn lost_share(loss: f64) -> String {
    if loss > 0.0 && loss < 0.0005 {
        format!("{}{}ppm", numbers::significant(loss * 1e6), numbers::THIN)
    } else {
        numbers::share(loss)
    }
}

/// A tile of a load.
fn tile(label: &str, value: String, detail: String) -> Tile {
    Tile {
        label: label.to_owned(),
        value,
        before: None,
        detail,
        tone: Tone::Plain,
    }
}

/// A latency, us; absent where nothing was received.
fn latency_of(m: &Measurement, value: f64) -> String {
    if m.received > 0 {
        numbers::micros(value)
    } else {
        ABSENT.to_owned()
    }
}

fn tiles(m: &Measurement) -> Vec<Tile> {
    let latency = |value| latency_of(m, value);
    vec![
        tile(
            "Rate",
            numbers::rate(m.achieved_per_s),
            m.offered_per_s.map_or_else(
                || "closed loop: the server sets the rate".to_owned(),
                |offered| format!("{} offered", numbers::rate(offered)),
            ),
        ),
        tile(
            "Lost",
            loss(m).map_or_else(|| ABSENT.to_owned(), lost_share),
            format!(
                "{} of {} sent",
                numbers::count(m.lost),
                numbers::count(m.sent)
            ),
        ),
        tile(
            "p50 latency",
            latency(m.latency_us.corrected.p50),
            "from the intended start".to_owned(),
        ),
        tile(
            "p99 latency",
            latency(m.latency_us.corrected.p99),
            format!(
                "{} from the send time",
                latency(m.latency_us.uncorrected.p99)
            ),
        ),
        tile(
            "Generator CPU per transaction",
            m.client
                .cpu_us_per_tx
                .filter(|_| m.received > 0)
                .map_or_else(|| ABSENT.to_owned(), numbers::micros_only),
            m.client.foreign_cpu.map_or_else(
                || "foreign CPU unknown".to_owned(),
                |foreign| format!("foreign CPU {}", numbers::share(foreign)),
            ),
        ),
    ]
}

fn latency(m: &Measurement) -> Table {
    let row = |name: &str, of: fn(&Quantiles) -> f64| {
        let (corrected, uncorrected) = (of(&m.latency_us.corrected), of(&m.latency_us.uncorrected));
        vec![
            Cell::text(name),
            Cell::number(Some(corrected), numbers::micros),
            Cell::number(Some(uncorrected), numbers::micros),
            Cell::number(Some(corrected - uncorrected), numbers::micros),
        ]
    };
    Table {
        caption: "Latency of the received replies, measured from two start times. The first includes the time that a request \
                  waited to be sent; most tools print the second."
            .to_owned(),
        columns: vec![
            Column::words("Quantile", "quantile"),
            Column::number("From intended start", "corrected_us"),
            Column::number("From send time", "uncorrected_us"),
            Column::number("Difference", "difference_us"),
        ],
        rows: vec![
            row("p50", |q| q.p50),
            row("p90", |q| q.p90),
            row("p99", |q| q.p99),
            row("p99.9", |q| q.p999),
            row("max", |q| q.max),
        ],
    }
}

fn counts(m: &Measurement) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Sent".to_owned(), numbers::count(m.sent)),
        ("Received in time".to_owned(), numbers::count(m.received)),
        ("Lost".to_owned(), numbers::count(m.lost)),
    ];
    facts.extend(
        m.errors
            .iter()
            .map(|(kind, count)| (kind.clone(), numbers::count(*count))),
    );
    facts.push(("Late sends".to_owned(), numbers::share(m.client.late_sends)));
    facts.push((
        "Dropped at generator sockets".to_owned(),
        numbers::count(m.client.socket_drops),
    ));
    facts.push((
        "Generator saturated".to_owned(),
        if m.client.saturated { "yes" } else { "no" }.to_owned(),
    ));
    facts
}
