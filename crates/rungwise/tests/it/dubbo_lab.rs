//! The lab `dubbo-burst`: real provider and consumer of Dubbo, built by Maven, in the shortest ladder that shows what one connection costs.

use rungwise_host::process::locate;
use rungwise_testkit::skipped;
use serde_json::Value;

use crate::labs::{assert_builtin_sources_are_those_of, can_build};
use crate::run::{Bench, Machine};
use crate::tune::climbed;

const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/dubbo-burst");

#[test]
fn four_connections_of_dubbo_answer_sooner_than_one() {
    if !can_build() {
        return;
    }
    let bench = Bench::new();
    // Few and short runs, on a machine that other tests share: enough for the order of the two, not for the figures of the page.
    let mut text = std::fs::read_to_string(format!("{LAB}/scenario.toml")).unwrap();
    for (whole, short) in [
        ("looks = [5, 8, 12]", "looks = [4]"),
        ("measure = \"4s\"", "measure = \"1s\""),
        ("warmup_s=4", "warmup_s=1"),
        ("quiet = \"12%\"", "quiet = \"100%\""),
        ("discard_above = \"10%\"", "discard_above = \"100%\""),
        ("\"0.135..0.165\"", "\"0.1..1.5\""),
    ] {
        assert!(text.contains(whole), "{whole}");
        text = text.replace(whole, short);
    }
    let first = text.find("[[rungs]]").unwrap();
    text.truncate(first);
    text += "[[rungs]]\nid = \"connections.4\"\ntitle = \"four connections\"\nbranch = true\nset = { \"rpc.connections\" = \"4\" }\n";
    let scenario = bench.write("burst.toml", &text);
    for name in ["pom.xml", "src"] {
        std::os::unix::fs::symlink(format!("{LAB}/{name}"), bench.path(name)).unwrap();
    }
    let before = Machine::now();
    let (_, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    let of = |id: &str, metric: &str| -> f64 {
        let rungs = report["rungs"].as_array().unwrap();
        let rung: &Value = rungs.iter().find(|rung| rung["id"] == id).unwrap();
        let value = &rung["metrics"][metric];
        value.as_f64().unwrap_or_else(|| panic!("{rung:#}"))
    };
    // Beside other tests both are slower; one connection stays the slower of each pair.
    let rungs = report["rungs"].as_array().unwrap();
    let rung = rungs.iter().find(|rung| rung["id"] == "connections.4");
    let change = &rung.unwrap()["delta"]["point"];
    let is_less = change.as_f64().is_some_and(|change| change < 0.0);
    assert!(is_less, "{rung:#?}");
    let one = of("start", "mean");
    // A call waits 150 ms in the provider on average, and what it costs beside that is transport.
    assert!(of("start", "service_s") > 0.14 && one > 150_000.0, "{one}");
    assert_eq!(report["objective"], "mean");
}

#[test]
fn the_binary_contains_all_that_its_build_reads() {
    assert_builtin_sources_are_those_of("dubbo-burst");
    let bench = Bench::new();
    let plan = bench.run(&["tune", "dubbo-burst", "--dry-run"]);
    if locate("java").is_none() {
        plan.expect(4).says(&["cannot start java"]);
        skipped("no java in PATH; cargo xtask test installs one");
        return;
    }
    plan.expect(0)
        .says(&["build    mvn -B -q package", "hello.jar", "service_s"]);
}
