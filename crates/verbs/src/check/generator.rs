//! `check --load`: the report of the load generator, from a file of `rungwise load`, or the table of percentiles that
//! another tool printed.
//!
//! Many documents end in `.json`. For one that is not the report of a load, the error says what it is, and how to get one. A
//! table has no unit, and a latency of 40 us is normal while 40 ms is a symptom: where the tool is unknown, you have to name
//! the unit.

use std::borrow::Cow;
use std::path::Path;

use clap::ValueEnum;
use rungwise_formats::percentiles::{self, Table};
use rungwise_host::files;
use rungwise_model::SCHEMA_VERSION;
use rungwise_model::load::{GeneratorReport, LightLoad, LoadReport, Measurement};
use rungwise_probes::{Capture, bundle, load_report};
use serde_json::Value;

use crate::documents::short_file;

/// The longest that is read: a load of two weeks, which tells each second in about 100 bytes, is half of it.
const LONGEST: u64 = 256 << 20;

/// No generator is saturated that was busy for less: its own line is 0.95, drawn thread by thread.
const UNSATURATED: f64 = 0.5;

/// Other documents of rungwise, each by a field that only it has.
const OTHERS: &[(&str, &str)] = &[
    ("rungs", "the report of a ladder (rungwise tune)"),
    ("findings", "the report of a check"),
    ("plans", "a plan (rungwise knob plan)"),
];

/// In what a table of percentiles counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(
    missing_docs,
    reason = "a doc comment would turn the help text into its long form"
)]
pub enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl Unit {
    fn in_ms(self) -> f64 {
        match self {
            Self::Ns => 1e-6,
            Self::Us => 1e-3,
            Self::Ms => 1.0,
            Self::S => 1e3,
        }
    }
}

/// What the report says of its generator, and when its load ran: when it began and ended, where it says so.
#[derive(Debug)]
pub(super) struct Heard {
    report: GeneratorReport,
    ran: Option<(String, String)>,
}

impl Heard {
    /// Takes what the same load met at a lower rate, which was read from `path`.
    pub(super) fn beside(&mut self, light: &Heard, path: &Path) -> anyhow::Result<()> {
        let Some(achieved_per_s) = light.report.achieved_per_s else {
            anyhow::bail!(
                "cannot take {} as a lighter load: a table of percentiles lacks the reply rate; give \
                 the whole output of wrk2, or the report of `rungwise load`",
                path.display()
            );
        };
        self.report.light = light.report.median_us.map(|median_us| LightLoad {
            achieved_per_s,
            median_us,
        });
        Ok(())
    }

    /// When it ran, for a person to judge.
    pub(super) fn when(&self) -> String {
        match &self.ran {
            Some((started, finished)) => format!(
                "the load ran from {started} to {finished}; its report is valid only if the same load ran during this window"
            ),
            None => "the table of percentiles does not record when its load ran; it is valid only if that was during this window"
                .to_owned(),
        }
    }

    /// Puts it beside what was seen in `window`; where it ran on another day, says so in its place. A capture without a
    /// time, as a host in texts, is believed to be of the same time, and so is a load without one.
    pub(super) fn put(self, capture: &mut Capture) {
        let Self { mut report, ran } = self;
        if let Some((started, finished)) = ran {
            let ran = format!("from {started} to {finished}");
            if let Some(taken) = &capture.taken
                && is_of_another_day(&started, &finished, taken)
            {
                let why = format!(
                    "the load ran {ran} and the window began at {taken}, so its report does not apply; run the load again during the \
                     window"
                );
                return load_report::refuse(capture, why);
            }
            report.ran = Some(ran);
        }
        load_report::put(capture, report);
    }
}

/// It ended on a day before that of the capture, or began on a later one; stamps are text, and sort as such. What is no stamp is of
/// no day. A load of just before midnight is refused for a capture just after it, which costs a repetition.
fn is_of_another_day(started: &str, finished: &str, taken: &str) -> bool {
    let days = [finished, taken, started].map(|stamp| stamp.split_once('T').map(|(day, _)| day));
    match days {
        [Some(finished), Some(taken), Some(started)] => finished < taken || started > taken,
        _ => true,
    }
}

/// Reads the report of a load, or a table of percentiles, whose values are in `unit` where it does not tell.
pub(super) fn read(path: &Path, unit: Option<Unit>) -> anyhow::Result<Heard> {
    let shown = path.display();
    let report = |why: String| {
        anyhow::anyhow!(
            "cannot read {shown} as the report of a load: {why}; make one with \
             `rungwise load udp ADDRESS:PORT --format json -o load.json`, or give a table of percentiles as `wrk2 --latency` prints it"
        )
    };
    let bytes = bytes(path).map_err(report)?;
    match table(&bytes) {
        Some(text) => percentiles(&text, unit).map_err(|why| {
            anyhow::anyhow!("cannot read the table of percentiles in {shown}: {why}")
        }),
        None => parse(&bytes).map_err(report),
    }
}

/// The text, where it is no document and holds a table of percentiles.
fn table(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let is_document = bytes.trim_ascii_start().starts_with(b"{");
    let text = (!is_document).then(|| String::from_utf8_lossy(bytes))?;
    percentiles::looks_like(&text).then_some(text)
}

/// What a table says; the reason and what to do, where it says nothing.
fn percentiles(text: &str, unit: Option<Unit>) -> Result<Heard, String> {
    let printed = percentiles::parse(text)
        .map_err(|broken| format!("{broken}; give the output as its tool wrote it, whole"))?;
    // Of two tables of one run of wrk2, the second leaves out the wait before a late start: a heap is sharper there.
    let (planned, sharp) = match &printed.tables[..] {
        [only] => (only, only),
        [planned, sharp] if !planned.uncorrected && sharp.uncorrected => (planned, sharp),
        tables => {
            return Err(format!(
                "it contains {} tables, and which one belongs to this host is unknown; keep only that one",
                tables.len()
            ));
        }
    };
    // The unit that was asked for may be that of the other of two loads.
    let Some(unit) = planned.in_ms.then_some(Unit::Ms).or(unit) else {
        return Err(
            "the unit is unknown: HdrHistogram prints bare numbers, and neither the header says (ms) nor the line above it names wrk2; \
             name the unit with --load-unit ms"
                .to_owned(),
        );
    };
    let ms = |value: f64| value * unit.in_ms();
    let rows = sharp.rows.iter().map(|row| (ms(row.value), row.count));
    let report = GeneratorReport {
        achieved_per_s: printed.per_s,
        received: sharp.total(),
        median_us: median(planned).map(|value| ms(value) * 1e3),
        latencies_ms: Some(rows.collect()),
        ..GeneratorReport::default()
    };
    Ok(Heard { report, ran: None })
}

/// The first value that half of them do not exceed.
fn median(table: &Table) -> Option<f64> {
    let half = table.total().div_ceil(2);
    let row = table.rows.iter().find(|row| row.count >= half)?;
    Some(row.value)
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    if !files::exists(path) {
        return Err("there is no such file".to_owned());
    }
    short_file(path, LONGEST)
}

/// The reason, where these bytes are none.
fn parse(bytes: &[u8]) -> Result<Heard, String> {
    if bytes.trim_ascii().is_empty() {
        return Err("it is empty".to_owned());
    }
    if bundle::looks_like(bytes) {
        return Err("it is a capture, which is judged itself (rungwise check FILE)".to_owned());
    }
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is not a JSON document ({error})"))?;
    let schema = document.get("schema").and_then(Value::as_u64);
    match schema {
        None => return Err("it has no schema version, as documents of rungwise have".to_owned()),
        Some(newer) if newer > u64::from(SCHEMA_VERSION) => {
            return Err(format!(
                "a newer rungwise wrote it, with schema {newer}, and this one reads schema {SCHEMA_VERSION}"
            ));
        }
        Some(_) => {}
    }
    if let Some((_, other)) = OTHERS
        .iter()
        .find(|(field, _)| document.get(field).is_some())
    {
        return Err(format!("it is {other}"));
    }
    let report: LoadReport = serde_json::from_value(document)
        .map_err(|error| format!("it is another document, or damaged ({error})"))?;
    match impossible(&report.measurement) {
        Some(figure) => Err(format!("{figure}, which no load can measure")),
        None => Ok(Heard {
            report: GeneratorReport::from(&report.measurement),
            ran: Some((report.envelope.started, report.envelope.finished)),
        }),
    }
}

/// A figure that cannot have been measured: somebody wrote it.
fn impossible(heard: &Measurement) -> Option<String> {
    let client = &heard.client;
    if client.saturated && client.busy.is_some_and(|busy| busy < UNSATURATED) {
        return Some(format!(
            "its client.saturated is true beside a client.busy of {}",
            client.busy.unwrap_or_default()
        ));
    }
    if heard.window_s <= 0.0 {
        return Some(format!("its window_s is {}", heard.window_s));
    }
    let amounts = [
        ("achieved_per_s", Some(heard.achieved_per_s)),
        (
            "latency_us.corrected.p50",
            Some(heard.latency_us.corrected.p50),
        ),
        ("client.cpu_us_per_tx", client.cpu_us_per_tx),
        ("client.server_busy", client.server_busy),
    ];
    let shares = [
        ("client.busy", client.busy),
        ("client.late_sends", Some(client.late_sends)),
        ("client.shared_idle", client.shared_idle),
    ];
    let amounts = amounts.map(|(name, value)| (name, value, f64::INFINITY));
    let shares = shares.map(|(name, value)| (name, value, 1.0));
    amounts
        .into_iter()
        .chain(shares)
        .filter_map(|(name, value, most)| Some((name, value?, most)))
        .find(|(_, value, most)| !(0.0..=*most).contains(value))
        .map(|(name, value, _)| format!("its {name} is {value}"))
}

#[cfg(test)]
mod tests {
    use rungwise_model::load::ClientHealth;
    use rungwise_model::{Envelope, Exit, Tool};

    use super::*;

    fn document(change: impl FnOnce(&mut Measurement)) -> Vec<u8> {
        let mut measurement = Measurement {
            achieved_per_s: 1000.0,
            window_s: 2.0,
            received: 2000,
            client: ClientHealth {
                busy: Some(0.97),
                certified: true,
                ..ClientHealth::default()
            },
            ..Measurement::default()
        };
        change(&mut measurement);
        let report = LoadReport {
            envelope: Envelope {
                schema: SCHEMA_VERSION,
                document: None,
                run: None,
                written_on: None,
                tool: Tool {
                    version: "0.1.0".to_owned(),
                },
                command: Vec::new(),
                started: "2026-01-02T03:04:05Z".to_owned(),
                finished: "2026-01-02T03:04:08Z".to_owned(),
                exit: Exit::Done,
            },
            target: "127.0.0.1:9000".to_owned(),
            slo: Vec::new(),
            limit: None,
            measurement,
        };
        serde_json::to_vec(&report).unwrap()
    }

    #[test]
    fn the_report_of_a_load_is_read() {
        let heard = parse(&document(|_| {})).unwrap();
        assert_eq!(heard.report.received, 2000);
        assert_eq!(heard.report.client.as_ref().unwrap().busy, Some(0.97));
        let when = heard.when();
        assert!(when.contains("from 2026-01-02T03:04:05Z"), "{when}");
    }

    #[test]
    fn a_report_of_before_it_contained_all_of_it_is_read() {
        let mut old: Value = serde_json::from_slice(&document(|_| {})).unwrap();
        let client = old["client"].as_object_mut().unwrap();
        for newer in ["busy", "server_busy", "shared_idle", "starved"] {
            assert!(client.remove(newer).is_some(), "{newer}");
        }
        let heard = parse(old.to_string().as_bytes()).unwrap();
        assert_eq!(heard.report.client.unwrap().busy, None);
    }

    #[test]
    fn what_is_none_is_refused_with_what_it_is() {
        let impossible = document(|measurement| measurement.client.busy = Some(1.5));
        let nothing = document(|measurement| measurement.window_s = 0.0);
        for (bytes, why) in [
            (&b" \n"[..], "it is empty"),
            (b"latency 12 ms", "not a JSON document"),
            (b"{}", "no schema version"),
            (br#"{"schema":9}"#, "a newer rungwise"),
            (br#"{"schema":1,"rungs":[]}"#, "the report of a ladder"),
            (br#"{"schema":1,"findings":[]}"#, "the report of a check"),
            (br#"{"schema":1,"plans":[]}"#, "a plan"),
            (
                br#"{"schema":1,"target":"x"}"#,
                "another document, or damaged",
            ),
            (br#"{"rungwise_capture":1}"#, "it is a capture"),
            (&[0x1f, 0x8b, 8], "it is a capture"),
            (&impossible, "its client.busy is 1.5"),
            (&nothing, "its window_s is 0"),
        ] {
            let said = parse(bytes).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
    }

    #[test]
    fn a_saturated_generator_that_slept_is_nobodys_report() {
        let said = parse(&document(|measurement| {
            measurement.client.busy = Some(0.1);
            measurement.client.saturated = true;
        }));
        let said = said.unwrap_err();
        assert!(said.contains("client.saturated is true beside"), "{said}");
    }

    #[test]
    fn a_load_of_another_day_says_nothing_of_a_capture() {
        let busy_at = |taken: &str| {
            let mut capture = Capture {
                taken: Some(taken.to_owned()),
                moments: vec![rungwise_probes::Moment::default()],
                ..Capture::default()
            };
            parse(&document(|_| {})).unwrap().put(&mut capture);
            let evidence = rungwise_probes::evidence(&capture);
            let key = &rungwise_model::keys::CLIENT_BUSY;
            evidence
                .host(key)
                .map(|busy| busy.value)
                .map_err(|missing| missing.why)
        };
        // It ran from 03:04:05 to 03:04:08.
        for taken in ["2026-01-02T00:00:00Z", "2026-01-02T03:04:06Z"] {
            assert_eq!(busy_at(taken).ok(), Some(0.97), "{taken}");
        }
        for taken in ["2026-01-01T03:04:06Z", "2026-01-03T03:04:06Z", "today"] {
            let why = busy_at(taken).unwrap_err();
            assert!(why.reason.contains("does not apply"), "{}", why.reason);
            assert!(
                why.remedy.starts_with("run the load again"),
                "{}",
                why.remedy
            );
        }
    }

    #[test]
    fn a_lighter_load_of_any_day_tells_how_latency_depends_on_the_load() {
        let report = |per_s: f64, median_us: f64| {
            parse(&document(|measurement| {
                measurement.achieved_per_s = per_s;
                measurement.latency_us.corrected.p50 = median_us;
            }))
            .unwrap()
        };
        let mut heard = report(1000.0, 50.0);
        heard
            .beside(&report(100.0, 75.0), Path::new("light.json"))
            .unwrap();
        let mut capture = Capture {
            moments: vec![rungwise_probes::Moment::default()],
            ..Capture::default()
        };
        heard.put(&mut capture);
        let evidence = rungwise_probes::evidence(&capture);
        let ratio = evidence.host(&rungwise_model::keys::LATENCY_LOW_LOAD);
        assert!((ratio.unwrap().value - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_path_to_no_report_is_reported_with_how_to_make_one() {
        for (path, why) in [
            ("/", "it is a folder"),
            ("/dev/null", "it is empty"),
            ("/nonexistent", "there is no such file"),
        ] {
            let said = read(Path::new(path), None).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!(
                    "cannot read {path} as the report of a load: {why}"
                )),
                "{said}"
            );
            assert!(said.contains("-o load.json`, or give"), "{said}");
        }
    }

    /// A table alone.
    const TABLE: &str = "Value Percentile TotalCount 1/(1-Percentile)\n\
                         100 0.0 1 1.00\n400 0.5 50 2.00\n44000 1.0 100\n";

    /// The same values as wrk2 would print them, at so many requests per second.
    fn by_wrk2(per_s: u32) -> String {
        let rows = TABLE
            .replace("\n100 ", "\n0.100 ")
            .replace("\n400 ", "\n0.400 ");
        let rows = rows.replace("44000", "44.000");
        format!("  Detailed Percentile spectrum:\n{rows}Requests/sec: {per_s}\n")
    }

    #[test]
    fn the_unit_of_a_table_is_that_of_wrk2_or_asked_for() {
        for (text, unit) in [
            (TABLE.to_owned(), Some(Unit::Us)),
            (by_wrk2(70), None),
            (by_wrk2(70), Some(Unit::Us)),
        ] {
            let report = percentiles(&text, unit).unwrap().report;
            let rows = report.latencies_ms.unwrap();
            let printed: Vec<_> = rows
                .iter()
                .map(|(ms, count)| format!("{ms:.3} {count}"))
                .collect();
            assert_eq!(printed, ["0.100 1", "0.400 50", "44.000 100"], "{unit:?}");
            assert!((report.median_us.unwrap() - 400.0).abs() < 1e-9);
            assert_eq!(report.received, 100);
        }
        let why = percentiles(TABLE, None).unwrap_err();
        assert!(why.ends_with("name the unit with --load-unit ms"), "{why}");
    }

    #[test]
    fn the_median_is_that_from_the_intended_start_and_the_heap_that_from_the_real_one() {
        let second = by_wrk2(70).replace("0.400", "0.200");
        let second = format!("(HdrHistogram - Uncorrected Latency (measured ...))\n{second}");
        let report = percentiles(&(by_wrk2(70) + &second), None).unwrap().report;
        assert_eq!(report.median_us, Some(400.0));
        assert_eq!(report.latencies_ms.unwrap()[1], (0.2, 50));
        let why = percentiles(&(by_wrk2(70) + &by_wrk2(80)), None).unwrap_err();
        assert!(why.starts_with("it contains 2 tables"), "{why}");
    }

    #[test]
    fn of_two_loads_wrk2_tells_the_rates_and_a_table_alone_does_not() {
        let mut full = percentiles(&by_wrk2(70), None).unwrap();
        let path = Path::new("light.txt");
        let light = percentiles(&by_wrk2(7).replace("0.400", "0.600"), None).unwrap();
        full.beside(&light, path).unwrap();
        let mut capture = Capture {
            moments: vec![rungwise_probes::Moment::default()],
            taken: Some("2026-01-02T03:04:06Z".to_owned()),
            ..Capture::default()
        };
        let alone = percentiles(TABLE, Some(Unit::Us)).unwrap();
        let why = full.beside(&alone, path).unwrap_err().to_string();
        assert!(
            why.starts_with("cannot take light.txt as a lighter load"),
            "{why}"
        );
        assert!(full.when().contains("does not record when"));
        full.put(&mut capture);
        let evidence = rungwise_probes::evidence(&capture);
        let ratio = evidence.host(&rungwise_model::keys::LATENCY_LOW_LOAD);
        assert!((ratio.unwrap().value - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_document_with_the_head_of_a_table_is_a_document() {
        assert!(table(TABLE.as_bytes()).is_some());
        for none in [
            &b" {\"note\": \"Value Percentile TotalCount 1/(1-Percentile)\"}"[..],
            b"12 ms",
        ] {
            assert!(table(none).is_none());
        }
        let cut = percentiles(&TABLE.replace("44000 1.0 100\n", ""), None).unwrap_err();
        assert!(
            cut.starts_with("line 3: the table ends at percentile 0.5"),
            "{cut}"
        );
    }
}
