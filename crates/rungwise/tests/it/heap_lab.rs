//! The lab `heap-per-request`: a real Spring Boot, built by Maven, in the shortest ladder that shows a cost.

use rungwise_host::process::locate;
use rungwise_testkit::skipped;
use serde_json::Value;

use crate::labs::can_build;
use crate::run::{Bench, Machine};
use crate::tune::climbed;

fn lab(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    std::fs::read_to_string(format!("{root}/{name}/scenario.toml")).unwrap()
}

#[test]
fn a_log_line_and_a_large_order_cost_heap_in_spring_boot() {
    if !can_build() {
        return;
    }
    let bench = Bench::new();
    // Few and short runs: enough for an effect of a factor of two, not for the figures of the page.
    let mut text = lab("heap-per-request-cases")
        .replace("looks = [6, 12, 20]", "looks = [4]")
        .replace("warmup_requests = 80000", "warmup_requests = 3000")
        .replace("counted_requests = 20000", "counted_requests = 4000");
    assert!(text.contains("looks = [4]") && text.contains("_requests = 4000"));
    let first = text.find("[[rungs]]").unwrap();
    let last = text.rfind("[[rungs]]").unwrap();
    text.replace_range(first..last, "");
    let scenario = bench.write("cases.toml", &text);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/heap-per-request");
    for name in ["pom.xml", "src"] {
        std::os::unix::fs::symlink(format!("{sources}/{name}"), bench.path(name)).unwrap();
    }
    let tried = bench.run(&["tune", scenario.to_str().unwrap(), "--dry-run"]);
    tried.expect(0).says(&[
        "build    mvn -B -q package (first, into ",
        "requests with another body",
    ]);
    let before = Machine::now();
    let (ended, report) = climbed(&bench, &scenario);
    before.assert_unchanged();
    ended.says(&["building the service, once: mvn -B -q package", "built in "]);
    let of = |id: &str| -> f64 {
        let rungs = report["rungs"].as_array().unwrap();
        let rung: &Value = rungs.iter().find(|rung| rung["id"] == id).unwrap();
        let bytes = &rung["metrics"]["bytes_per_request"];
        bytes.as_f64().unwrap_or_else(|| panic!("{rung:#}"))
    };
    // Spring, Tomcat and Jackson allocate some 28 KB, a logged order of 1,200 characters twice as much.
    let (small, logged) = (of("start"), of("large-logged"));
    assert!((20_000.0..60_000.0).contains(&small), "{small}");
    assert!(logged > 1.4 * small, "{small} {logged}");
    assert_eq!(report["objective"], "bytes_per_request");
}

#[test]
fn the_binary_contains_all_that_maven_reads() {
    let bench = Bench::new();
    for (name, build) in [
        ("heap-per-request", "mvn -B -q package"),
        ("heap-per-request-cases", "mvn -B -q package"),
        (
            "heap-per-request-jmeter",
            "mvn -B -q -f jmeter/pom.xml package",
        ),
        ("heap-per-request-jvms", "mvn -B -q package"),
    ] {
        // Without a word about sources: those in the binary are complete.
        let plan = bench.run(&["tune", name, "--dry-run"]);
        if locate("java").is_none() {
            plan.expect(4).says(&["cannot start java"]);
            skipped("no java in PATH; cargo xtask test installs one");
            return;
        }
        plan.expect(0)
            .says(&[&format!("build    {build}"), "orders.jar"]);
    }
}
