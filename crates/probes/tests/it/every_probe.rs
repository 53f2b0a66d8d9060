//! What holds for each probe: it is never silent, and no text makes it panic.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rungwise_model::evidence::{Evidence, Value};
use rungwise_model::keys;
use rungwise_probes::capture::{Capture, Moment, Process, Raw};
use rungwise_probes::{PROBES, Probe, What, Window, groups};

fn derive(probe: &Probe, capture: &Capture) -> Evidence {
    let window = Window::of(capture);
    let mut evidence = Evidence::over(window.seconds());
    (probe.derive)(&window, &mut evidence);
    evidence
}

#[test]
fn probes_are_sorted_by_id_and_documented() {
    let ids: Vec<&str> = PROBES.iter().map(|probe| probe.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for probe in PROBES {
        let is_documented =
            !probe.summary.is_empty() && !probe.doc.is_empty() && !probe.yields.is_empty();
        assert!(is_documented, "{} is not documented", probe.id);
    }
}

#[test]
fn where_nothing_was_read_every_key_says_why() {
    let unnamed = Capture::default();
    let mut named = unnamed.clone();
    named.process = Some(Process {
        pid: 7,
        name: "x".to_owned(),
    });
    named.moments = vec![Moment::default(); 2];
    for capture in [unnamed, named] {
        for probe in PROBES {
            let evidence = derive(probe, &capture);
            for key in probe.yields {
                let readings = evidence.readings().filter(|reading| reading.key == *key);
                let has_reading = readings.count() > 0;
                assert!(has_reading, "{} is silent about {}", probe.id, key.id);
            }
            for reading in evidence.readings() {
                let listed = probe.yields.contains(&reading.key);
                assert!(listed, "{} does not list {}", probe.id, reading.key.id);
                if let Value::Absent(why) = &reading.value {
                    assert!(!why.reason.is_empty(), "{}", reading.key.id);
                }
            }
        }
    }
}

/// The paths of a probe on a machine where each star is `name`.
fn paths(probe: &Probe, name: &str) -> Vec<String> {
    let paths = probe.sources.iter().flat_map(|source| match source.what {
        What::Files(pattern) | What::Running(pattern) => vec![pattern.to_owned()],
        What::Groups => groups::files()
            .flat_map(|file| {
                ["/sys/fs/cgroup/*", "/sys/fs/cgroup/cpu/*"].map(|top| format!("{top}/{file}"))
            })
            .chain(["/proc/self/mountinfo".to_owned()])
            .collect(),
        What::Ask(_) => Vec::new(),
    });
    paths
        .map(|path| {
            let path = path.split('#').next().unwrap_or_default();
            [
                "{pid}",
                "{family}",
                "{busy}",
                "{full}",
                "{postgres}",
                "{waiting}",
            ]
            .iter()
            .fold(path.replace('*', name), |path, placeholder| {
                path.replace(placeholder, "7")
            })
        })
        .collect()
}

/// Texts near to what the kernel prints: numbers, brackets, names, colons, in any order.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        any::<String>(),
        "([0-9]{1,21}|-1|[a-f0-9]{2,8}|[(): =,/\\[\\]]|cpu0|CPU0|some|avg10=|total=|max|N0=|NET_RX:|kB|eth0| |\n){0,60}",
        "([0-9]{1,12} ){1,50}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_makes_a_probe_panic(
        texts in prop::collection::vec((text(), text()), 1..12),
        name in "(7|0|eth0|vda)",
        named: bool,
        took in prop_oneof![Just(0.0), 0.1..20.0],
    ) {
        for probe in PROBES {
            let mut moments = vec![Moment::default(); 2];
            moments[1].at_s = took;
            for (number, path) in paths(probe, &name).into_iter().enumerate() {
                let (first, last) = &texts[number % texts.len()];
                moments[0].files.insert(path.clone(), Raw::Text(first.clone()));
                moments[1].files.insert(path, Raw::Text(last.clone()));
            }
            let process = named.then(|| Process { pid: 7, name: "x".to_owned() });
            let capture = Capture { process, moments, ..Capture::default() };
            let evidence = derive(probe, &capture);
            let mut seen = BTreeSet::new();
            for reading in evidence.readings() {
                let fits = reading.key.of == reading.subject.kind();
                prop_assert!(fits || matches!(reading.value, Value::Absent(_)), "{}", probe.id);
                prop_assert!(seen.insert((reading.key.id, reading.subject.clone())));
                if let Value::Number(number) = reading.value {
                    prop_assert!(number.is_finite(), "{} {}", probe.id, reading.key.id);
                }
            }
        }
    }
}

#[test]
fn every_key_is_yielded_by_a_probe_or_of_another_source() {
    /// From GC logs, thread dumps and recordings.
    const ELSEWHERE: [&str; 4] = ["gc.", "jvm.", "recording.", "threads."];
    let yielded: Vec<&str> = PROBES
        .iter()
        .flat_map(|probe| probe.yields)
        .map(|key| key.id)
        .collect();
    for key in keys::all() {
        let probes = yielded.iter().filter(|id| **id == key.id).count();
        let elsewhere = ELSEWHERE.iter().any(|start| key.id.starts_with(start));
        assert_eq!(probes > 0, !elsewhere, "{}", key.id);
        // Of a process there may be two: one for all of them, one for that which is judged.
        assert!(probes <= 1 || key.id.starts_with("sched."), "{}", key.id);
    }
}
