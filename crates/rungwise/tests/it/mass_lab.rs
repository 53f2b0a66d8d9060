//! The lab `mass-connections`: a server of long connections on Netty, built by Maven, in the shortest ladder that shows in which generation its sessions
//! die, by the log of its collector.

use rungwise_host::process::locate;
use rungwise_testkit::skipped;
use serde_json::Value;

use crate::labs::{assert_builtin_sources_are_those_of, can_build};
use crate::run::{Bench, Machine};
use crate::tune::climbed;

const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/mass-connections");
const OLD_JAVA: &str = "java-11";

fn has_cms() -> bool {
    let is_there = locate(OLD_JAVA).is_some();
    if !is_there {
        skipped(format_args!(
            "no {OLD_JAVA} in PATH; cargo xtask test provides it"
        ));
    }
    is_there
}

#[test]
fn sessions_die_young_where_the_young_generation_is_large() {
    if !can_build() || !has_cms() {
        return;
    }
    let bench = Bench::new();
    // A tenth of the connections, and heaps to match: enough for what is promoted, not for the figures of the page.
    let mut text = std::fs::read_to_string(format!("{LAB}/scenario.toml")).unwrap();
    for (whole, short) in [
        ("count = 10000", "count = 1000"),
        ("ping = \"2s\"", "ping = \"250ms\""),
        ("warmup = \"15s\"", "warmup = \"1s\""),
        ("measure = \"16s\"", "measure = \"2s\""),
        ("looks = [4, 6, 8]", "looks = [4]"),
        ("quiet = \"12%\"", "quiet = \"100%\"\nmax_discards = 1"),
        ("discard_above = \"10%\"", "discard_above = \"100%\""),
        (
            "guards = [\"errors <= 1%\"]",
            "guards = [\"errors <= 99%\"]",
        ),
        ("-Xms320m -Xmx320m -Xmn224m", "-Xms160m -Xmx160m -Xmn64m"),
        ("-Xms1g -Xmx1g -Xmn896m", "-Xms400m -Xmx400m -Xmn320m"),
    ] {
        assert!(text.contains(whole), "{whole}");
        text = text.replace(whole, short);
    }
    let rungs: Vec<usize> = text.match_indices("[[rungs]]").map(|(at, _)| at).collect();
    // The second, with a larger heap and young generation.
    let text = format!("{}{}", &text[..rungs[0]], &text[rungs[1]..rungs[2]]);
    let scenario = bench.write("mass.toml", &text);
    for name in ["pom.xml", "src"] {
        std::os::unix::fs::symlink(format!("{LAB}/{name}"), bench.path(name)).unwrap();
    }
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    // Beside other tests the client may be late, so that a pair does not count; its readings of collections are valid anyway.
    let of = |id: &str, half: &str, metric: &str| -> f64 {
        let rungs = report["rungs"].as_array().unwrap();
        let rung: &Value = rungs.iter().find(|rung| rung["id"] == id).unwrap();
        let pairs = rung["pairs"].as_array().unwrap();
        let values = pairs.iter().map(|pair| &pair[half]["metrics"][metric]);
        let values: Vec<f64> = values
            .map(|value| value.as_f64().unwrap_or_else(|| panic!("{rung:#}")))
            .collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let promoted = |half| of("young", half, "gc_promoted_per_s");
    assert!(promoted("a") > 100_000.0, "{report:#}");
    assert!(promoted("b") < promoted("a") / 2.0, "{report:#}");
    let share = of("young", "a", "gc_pause_share");
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert!(of("young", "a", "gc_longest_pause") > 100.0, "{report:#}");
    assert_eq!(report["objective"], "p99_us");
}

#[test]
fn the_binary_contains_all_that_its_build_reads() {
    assert_builtin_sources_are_those_of("mass-connections");
    if !has_cms() {
        return;
    }
    let plan = Bench::new().run(&["tune", "mass-connections", "--dry-run"]);
    plan.expect(0).says(&[
        "build    mvn -B -q package",
        "connections.jar",
        "started by java-25",
    ]);
}

#[test]
fn a_log_cannot_be_asked_of_a_service_that_runs_already() {
    let bench = Bench::new();
    let scenario = bench.write(
        "attached.toml",
        "schema = 1\nname = \"a\"\ntitle = \"t\"\nrungs = []\n[service]\npid = 1\n[workload]\nkind = \"connections\"\ntarget = \"127.0.0.1:7777\"\n\
         [objective]\nminimise = \"p99\"\nreadings = [\"gc_pause_share\"]\n",
    );
    let refused = bench.run(&["tune", scenario.to_str().unwrap(), "--dry-run"]);
    refused
        .expect(2)
        .says(&["gc_pause_share is read from a log that the JVM is asked to write"]);
}
