//! `check --load`: what the load generator told of itself, from a file of `rungwise load`.
//!
//! Many documents end in `.json`. One that is not the report of a load says what it is, and how to get one that is.

use std::path::Path;

use rungwise_host::files;
use rungwise_model::SCHEMA_VERSION;
use rungwise_model::load::{GeneratorReport, LightLoad, LoadReport};
use rungwise_probes::{Capture, bundle, load_report};
use serde_json::Value;

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

/// What the report says of its generator, and when its load ran.
#[derive(Debug)]
pub(super) struct Heard {
    report: GeneratorReport,
    pub(super) started: String,
    pub(super) finished: String,
}

impl Heard {
    /// Takes what the same load met at a lower rate.
    pub(super) fn beside(&mut self, light: &Heard) {
        self.report.light = light.report.median_us.map(|median_us| LightLoad {
            achieved_per_s: light.report.achieved_per_s,
            median_us,
        });
    }

    /// Puts it beside what was seen in `window`; where it ran on another day, says so in its place. A look without a
    /// time, as a told host, is believed to be of the same time.
    pub(super) fn put(self, capture: &mut Capture) {
        let Self {
            mut report,
            started,
            finished,
        } = self;
        let ran = format!("from {started} to {finished}");
        if let Some(taken) = &capture.taken
            && is_of_another_day(&started, &finished, taken)
        {
            let why = format!(
                "the load ran {ran} and the look began at {taken}, so its report says nothing of it; run the load again and look \
                 meanwhile"
            );
            return load_report::refuse(capture, why);
        }
        report.ran = Some(ran);
        load_report::put(capture, report);
    }
}

/// It ended on a day before that of the look, or began on a later one; stamps are text, and sort as such. What is no stamp is of
/// no day. A load of just before midnight is refused for a look just after it, which costs a repetition.
fn is_of_another_day(started: &str, finished: &str, taken: &str) -> bool {
    let days = [finished, taken, started].map(|stamp| stamp.split_once('T').map(|(day, _)| day));
    match days {
        [Some(finished), Some(taken), Some(started)] => finished < taken || started > taken,
        _ => true,
    }
}

/// Reads the report of a load.
pub(super) fn read(path: &Path) -> anyhow::Result<Heard> {
    bytes(path).and_then(|bytes| parse(&bytes)).map_err(|why| {
        anyhow::anyhow!(
            "cannot read {} as the report of a load: {why}; make one with \
             `rungwise load udp ADDRESS:PORT --format json -o load.json`",
            path.display()
        )
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    if !files::exists(path) {
        return Err("there is no such file".to_owned());
    }
    if files::is_folder(path) {
        return Err("it is a folder".to_owned());
    }
    let bytes = files::read_at_most(path, LONGEST + 1).map_err(|error| match error {
        rungwise_host::Error::System { source, .. } => source.to_string(),
        other => other.to_string(),
    })?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is longer than {} MiB", LONGEST >> 20));
    }
    Ok(bytes)
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
        .map_err(|error| format!("it is no JSON document ({error})"))?;
    let schema = document.get("schema").and_then(Value::as_u64);
    match schema {
        None => return Err("it does not say its schema, as a document of rungwise does".to_owned()),
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
    let heard = GeneratorReport::from(&report.measurement);
    match impossible(&heard) {
        Some(figure) => Err(format!("{figure}, which no load measures")),
        None => Ok(Heard {
            report: heard,
            started: report.envelope.started,
            finished: report.envelope.finished,
        }),
    }
}

/// A figure that cannot have been measured: somebody wrote it.
fn impossible(heard: &GeneratorReport) -> Option<String> {
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
        ("latency_us.corrected.p50", heard.median_us),
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
    use rungwise_model::load::{ClientHealth, Measurement};
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
                tool: Tool {
                    version: "0.1.0".to_owned(),
                },
                command: Vec::new(),
                started: "2026-01-02T03:04:05Z".to_owned(),
                finished: "2026-01-02T03:04:08Z".to_owned(),
                exit: Exit::Done,
            },
            target: "127.0.0.1:9000".to_owned(),
            measurement,
        };
        serde_json::to_vec(&report).unwrap()
    }

    #[test]
    fn the_report_of_a_load_is_read() {
        let heard = parse(&document(|_| {})).unwrap();
        assert_eq!(heard.report.received, 2000);
        assert_eq!(heard.report.client.busy, Some(0.97));
        assert_eq!(heard.started, "2026-01-02T03:04:05Z");
    }

    #[test]
    fn a_report_of_before_it_told_all_of_it_is_read() {
        let mut old: Value = serde_json::from_slice(&document(|_| {})).unwrap();
        let client = old["client"].as_object_mut().unwrap();
        for newer in ["busy", "server_busy", "shared_idle", "starved"] {
            assert!(client.remove(newer).is_some(), "{newer}");
        }
        let heard = parse(old.to_string().as_bytes()).unwrap();
        assert_eq!(heard.report.client.busy, None);
    }

    #[test]
    fn what_is_none_is_refused_with_what_it_is() {
        let impossible = document(|measurement| measurement.client.busy = Some(1.5));
        let nothing = document(|measurement| measurement.window_s = 0.0);
        for (bytes, why) in [
            (&b" \n"[..], "it is empty"),
            (b"latency 12 ms", "no JSON document"),
            (b"{}", "does not say its schema"),
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
    fn a_load_of_another_day_says_nothing_of_a_look() {
        let told = |taken: &str| {
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
            assert_eq!(told(taken).ok(), Some(0.97), "{taken}");
        }
        for taken in ["2026-01-01T03:04:06Z", "2026-01-03T03:04:06Z", "today"] {
            let why = told(taken).unwrap_err();
            assert!(why.reason.contains("says nothing of it"), "{}", why.reason);
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
        heard.beside(&report(100.0, 75.0));
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
    fn a_path_to_no_report_is_told_with_how_to_make_one() {
        for (path, why) in [
            ("/", "it is a folder"),
            ("/dev/null", "it is empty"),
            ("/nonexistent", "there is no such file"),
        ] {
            let said = read(Path::new(path)).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!(
                    "cannot read {path} as the report of a load: {why}"
                )),
                "{said}"
            );
            assert!(said.ends_with("-o load.json`"), "{said}");
        }
    }
}
