//! The load generator's own health: the part of its report that shows whose limit was measured.
//!
//! It cannot be read from the machine. A ladder measures and captures at once, and `check --load` reads the report;
//! both store it with the capture.

mod heaps;

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::kernel::Answer;
use rungwise_model::keys;
use rungwise_model::load::{ClientHealth, GeneratorReport};

use crate::capture::{Capture, Reply};
use crate::enter;
use crate::probe::{Cost, Probe};
use crate::window::Window;

/// Source shown to the user.
const SOURCE: &str = "report of the load generator";

/// Remedy for a missing latency distribution.
const TABLE: &str = "for TCP, pass a percentile table: wrk2 --latency ... > load.txt, then rungwise check --load load.txt";

/// The name of its answer in a capture.
const ANSWER: &str = "load";

/// `load-report`
pub(crate) static PROBE: Probe = Probe {
    id: "load-report",
    summary: "the load generator's own health: whether it was the limit",
    cost: Cost::Free,
    needs: &[],
    sources: &[],
    yields: &[
        &keys::CLIENT_BUSY,
        &keys::CLIENT_CERTIFIED,
        &keys::CLIENT_CPU,
        &keys::CLIENT_DROPS,
        &keys::CLIENT_LATE_SENDS,
        &keys::CLIENT_SERVER_BUSY,
        &keys::CLIENT_SHARED_IDLE,
        &keys::CLIENT_STARVED,
        &keys::LATENCY_DELAYED_ACK,
        &keys::LATENCY_LOW_LOAD,
    ],
    derive,
    doc: "The report comes from `rungwise load` through `check --load`, or from `tune` with automatic rungs, which \
        measures and captures at once. Its window is that of the generator: a report from another time does not \
        describe the capture. `check --load` shows when the load ran, and refuses a report of another day. The report \
        of a second load at a lower rate (`--light-load`) shows how latency depends on load, and may be from any \
        time. Instead of a report, `check --load` accepts the percentile table that HdrHistogram prints (`wrk2 \
        --latency`): it contains the latency distribution, also of a load over TCP, but not the generator's health.",
};

/// Stores the generator's report with the capture taken while it ran.
pub fn put(capture: &mut Capture, report: GeneratorReport) {
    if let Some(last) = capture.moments.last_mut() {
        let reply = Reply::Answer(Answer::Load(Box::new(report)));
        last.answers.insert(ANSWER.to_owned(), reply);
    }
}

/// Stores with the capture why the report does not describe it: `why`, and after a semicolon the remedy.
pub fn refuse(capture: &mut Capture, why: String) {
    if let Some(last) = capture.moments.last_mut() {
        last.answers.insert(ANSWER.to_owned(), Reply::Failed(why));
    }
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let load = match window.answer(ANSWER) {
        Ok(Answer::Load(load)) => load,
        Err(why) if was_refused(window) => return evidence.absent(PROBE.yields, &why, SOURCE),
        _ => {
            evidence.absent(PROBE.yields, &none_given(), SOURCE);
            let why = none_given().remedy(TABLE);
            return evidence.absent(&[&keys::LATENCY_DELAYED_ACK], &why, SOURCE);
        }
    };
    if load.received == 0 {
        return evidence.absent(PROBE.yields, &no_reply(), SOURCE);
    }
    of_latency(load, evidence);
    if let Some(client) = &load.client {
        of_the_client(client, load, evidence);
    } else {
        let ours = PROBE.yields.iter().copied();
        let ours: Vec<_> = ours.filter(|key| key.id.starts_with("client.")).collect();
        evidence.absent(&ours, &latencies_alone(), SOURCE);
    }
}

/// The capture records why the report does not describe it.
fn was_refused(window: &Window<'_>) -> bool {
    let last = window.moments().last();
    last.is_some_and(|moment| moment.answers.contains_key(ANSWER))
}

fn of_latency(load: &GeneratorReport, evidence: &mut Evidence) {
    let heaps = load.latencies_ms.as_deref().ok_or_else(no_table);
    let (share, line) = match heaps.and_then(heaps::share) {
        Ok((share, line)) => (Ok(share), line),
        Err(why) => (Err(why), String::new()),
    };
    let origin = Origin::new(SOURCE, line);
    enter::number(
        evidence,
        &keys::LATENCY_DELAYED_ACK,
        Subject::host(),
        share,
        origin,
    );
    let light = load.light.zip(load.achieved_per_s);
    let line = light.map_or_else(String::new, |(light, per_s)| {
        format!(
            "median {:.1} us at {:.0}/s, {:.1} us at {per_s:.0}/s",
            light.median_us,
            light.achieved_per_s,
            load.median_us.unwrap_or_default()
        )
    });
    let origin = Origin::new(SOURCE, line);
    enter::number(
        evidence,
        &keys::LATENCY_LOW_LOAD,
        Subject::host(),
        at_low_load(load),
        origin,
    );
}

fn of_the_client(client: &ClientHealth, load: &GeneratorReport, evidence: &mut Evidence) {
    let cost = client.cpu_us_per_tx.zip(load.achieved_per_s);
    let mut number = |key: &'static Key, value: Result<f64, Absence>, line: String| {
        enter::number(
            evidence,
            key,
            Subject::host(),
            value,
            Origin::new(SOURCE, line),
        );
    };
    number(
        &keys::CLIENT_BUSY,
        client.busy.ok_or_else(older),
        client
            .busy
            .map_or_else(String::new, |busy| format!("client.busy {busy:.4}")),
    );
    number(
        &keys::CLIENT_CPU,
        cost.map(|(cost, per_s)| cost * per_s / 1e6)
            .ok_or_else(too_short),
        cost.map_or_else(String::new, |(cost, per_s)| {
            format!("client.cpu_us_per_tx {cost:.4}, achieved_per_s {per_s:.0}")
        }),
    );
    number(
        &keys::CLIENT_DROPS,
        Ok(client.socket_drops as f64 / load.received.max(1) as f64),
        format!(
            "client.socket_drops {}, received {}",
            client.socket_drops, load.received
        ),
    );
    let late = format!(
        "client.late_sends {:.5}, client.starved {}",
        client.late_sends, client.starved
    );
    number(
        &keys::CLIENT_LATE_SENDS,
        Ok(client.late_sends),
        late.clone(),
    );
    number(
        &keys::CLIENT_STARVED,
        Ok(f64::from(u8::from(client.starved))),
        late,
    );
    for (key, name, share) in [
        (&keys::CLIENT_SERVER_BUSY, "server_busy", client.server_busy),
        (&keys::CLIENT_SHARED_IDLE, "shared_idle", client.shared_idle),
    ] {
        let line = share.map_or_else(String::new, |share| format!("client.{name} {share:.4}"));
        number(key, share.ok_or_else(unnamed), line);
    }
    evidence.text(
        &keys::CLIENT_CERTIFIED,
        Subject::host(),
        certificate(client),
        Origin::new(
            SOURCE,
            match &load.ran {
                Some(ran) => format!("client.certified {}; it ran {ran}", client.certified),
                None => format!("client.certified {}", client.certified),
            },
        ),
    );
}

/// A load is light up to this share of the other's rate; two similar rates show no difference.
const LIGHT: f64 = 0.5;

/// The median at low load over that at high load.
fn at_low_load(load: &GeneratorReport) -> Result<f64, Absence> {
    const AGAIN: &str = "run `rungwise load udp ... --rate RATE --format json` at a tenth of the rate and at the full \
        rate, then `rungwise check --load full.json --light-load tenth.json`";
    let absent = |why: String| Err(Absence::because(why).remedy(AGAIN));
    let Some(light) = load.light else {
        return absent("needs a second load report at a lower rate".to_owned());
    };
    let Some(per_s) = load.achieved_per_s else {
        return absent("the load report lacks the reply rate".to_owned());
    };
    if light.achieved_per_s > LIGHT * per_s {
        return absent(format!(
            "the light load ran at {:.0}/s, more than half of the full load's {per_s:.0}/s",
            light.achieved_per_s
        ));
    }
    match load.median_us {
        Some(median) if median > 0.0 => Ok(light.median_us / median),
        _ => Err(older()),
    }
}

/// `yes`, or why not.
fn certificate(client: &ClientHealth) -> String {
    if client.certified {
        "yes".to_owned()
    } else {
        format!("no: {}", client.reasons.join("; "))
    }
}

fn none_given() -> Absence {
    Absence::because("needs the report of the load generator")
        .remedy("run `rungwise load udp ... -o load.json`, then `rungwise check --load load.json`")
}

fn no_table() -> Absence {
    Absence::because(
        "needs the latency distribution; reports of `rungwise load` contain quantiles only",
    )
    .remedy(TABLE)
}

fn latencies_alone() -> Absence {
    Absence::because("a table of percentiles contains latencies but no generator health").remedy(
        "measure with `rungwise load`, or check the generator's CPU use and sockets by hand",
    )
}

fn no_reply() -> Absence {
    Absence::because("the load received no reply, so the limit is unknown")
        .remedy("measure again, and check that the server answers")
}

fn older() -> Absence {
    Absence::because("the load report was written by a version that did not record it")
        .remedy("measure again with this version")
}

fn too_short() -> Absence {
    Absence::because("the load ended before the generator's CPU time could be read")
        .remedy("measure for at least one second")
}

fn unnamed() -> Absence {
    Absence::because("the load report does not name the server process")
        .remedy("if generator and server share a machine, run `rungwise load udp --server-pid PID`")
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Value;
    use rungwise_model::load::LightLoad;

    use super::*;
    use crate::capture::Moment;

    fn evidence(reply: Option<Reply>) -> Evidence {
        let mut moment = Moment::default();
        moment
            .answers
            .extend(reply.map(|reply| (ANSWER.to_owned(), reply)));
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(0.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    fn evidence_of(client: ClientHealth) -> Evidence {
        evidence(Some(Reply::Answer(Answer::Load(Box::new(
            GeneratorReport {
                achieved_per_s: Some(500_000.0),
                received: 2_000_000,
                client: Some(client),
                median_us: Some(80.0),
                latencies_ms: None,
                light: Some(LightLoad {
                    achieved_per_s: 50_000.0,
                    median_us: 100.0,
                }),
                ran: Some("from 1 to 5".to_owned()),
            },
        )))))
    }

    #[test]
    fn its_figures_become_readings_with_the_fields_they_come_from() {
        let evidence = evidence_of(ClientHealth {
            cpu_us_per_tx: Some(3.0),
            busy: Some(0.97),
            saturated: true,
            server_busy: Some(0.4),
            shared_idle: Some(0.25),
            certified: false,
            reasons: vec!["the client was full".to_owned()],
            late_sends: 0.002,
            socket_drops: 500,
            ..ClientHealth::default()
        });
        let number = |key| evidence.host(key).unwrap().value;
        assert!((number(&keys::CLIENT_BUSY) - 0.97).abs() < 1e-9);
        assert!((number(&keys::CLIENT_CPU) - 1.5).abs() < 1e-9);
        assert!((number(&keys::CLIENT_DROPS) - 0.00025).abs() < 1e-9);
        assert!((number(&keys::CLIENT_SERVER_BUSY) - 0.4).abs() < 1e-9);
        assert!((number(&keys::LATENCY_LOW_LOAD) - 1.25).abs() < 1e-9);
        assert!((number(&keys::CLIENT_SHARED_IDLE) - 0.25).abs() < 1e-9);
        let words = evidence
            .words(&keys::CLIENT_CERTIFIED, &Subject::host())
            .unwrap();
        assert_eq!(words.value, "no: the client was full");
        assert_eq!(
            words.reading.origin.line,
            "client.certified false; it ran from 1 to 5"
        );
        let drops = evidence.host(&keys::CLIENT_DROPS).unwrap().reading;
        assert_eq!(
            drops.origin.line,
            "client.socket_drops 500, received 2000000"
        );
    }

    #[test]
    fn two_loads_that_are_nearly_alike_say_nothing_of_low_load() {
        let report = |light: Option<LightLoad>| GeneratorReport {
            achieved_per_s: Some(1000.0),
            median_us: Some(80.0),
            light,
            ..GeneratorReport::default()
        };
        let light = |achieved_per_s| LightLoad {
            achieved_per_s,
            median_us: 100.0,
        };
        assert_eq!(at_low_load(&report(Some(light(500.0)))), Ok(1.25));
        for (given, why) in [
            (Some(light(501.0)), "more than half"),
            (None, "needs a second load report"),
        ] {
            let absence = at_low_load(&report(given)).unwrap_err();
            assert!(absence.reason.contains(why), "{}", absence.reason);
            assert!(
                absence.remedy.contains("--light-load"),
                "{}",
                absence.remedy
            );
        }
    }

    #[test]
    fn a_table_of_latencies_tells_of_heaps_and_nothing_of_the_generator() {
        let evidence = evidence(Some(Reply::Answer(Answer::Load(Box::new(
            GeneratorReport {
                received: 100,
                latencies_ms: Some(vec![(0.1, 1), (1.0, 70), (44.0, 72), (44.2, 100)]),
                ..GeneratorReport::default()
            },
        )))));
        let heap = evidence.host(&keys::LATENCY_DELAYED_ACK).unwrap();
        assert!((0.27..=0.3).contains(&heap.value), "{}", heap.value);
        assert_eq!(
            heap.reading.origin.line,
            "of 100 requests 70 within 1.000 ms, 100 within 44.200 ms"
        );
        for (key, why) in [
            (&keys::CLIENT_BUSY, "no generator health"),
            (&keys::CLIENT_CERTIFIED, "no generator health"),
            (&keys::LATENCY_LOW_LOAD, "needs a second load report"),
        ] {
            let missing = evidence.missing(key, &Subject::host());
            assert!(missing.why.reason.contains(why), "{missing:?}");
        }
    }

    #[test]
    fn what_a_report_does_not_tell_is_absent_with_what_helps() {
        let evidence = evidence_of(ClientHealth::default());
        let why = |key| match &evidence.reading(key, &Subject::host()).unwrap().value {
            Value::Absent(why) => why.clone(),
            other => panic!("{other:?}"),
        };
        assert!(why(&keys::CLIENT_BUSY).reason.contains("version"));
        assert!(
            why(&keys::LATENCY_DELAYED_ACK)
                .remedy
                .contains("wrk2 --latency")
        );
        assert!(
            why(&keys::CLIENT_SERVER_BUSY)
                .remedy
                .contains("--server-pid")
        );
    }

    #[test]
    fn a_load_without_a_reply_tells_nothing_of_the_generator() {
        let evidence = evidence(Some(Reply::Answer(Answer::Load(Box::default()))));
        for key in PROBE.yields {
            let missing = evidence.missing(key, &Subject::host());
            assert!(missing.why.reason.contains("no reply"), "{}", key.id);
        }
    }

    #[test]
    fn without_a_report_every_key_says_how_to_give_one() {
        for (reply, word) in [
            (None, "report of the load"),
            (
                Some(Reply::Failed("the generator died".to_owned())),
                "the generator died",
            ),
        ] {
            let evidence = evidence(reply);
            for key in PROBE.yields {
                let missing = evidence.missing(key, &Subject::host());
                assert!(missing.why.reason.contains(word), "{}: {missing:?}", key.id);
            }
        }
    }
}
