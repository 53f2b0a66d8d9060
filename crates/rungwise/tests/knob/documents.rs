//! Every document of `knob` against its checked-in schema.

use serde_json::Value;

use super::*;

/// Runs `knob` with JSON as its format; the document is valid, and tells its exit status.
fn document(bench: &Bench, schema: &str, words: &[&str], code: i32) -> Value {
    let ended = bench.run(&[&["knob"], words, &["--quiet", "--format", "json"]].concat());
    let ended = ended.with(code, &[]);
    let document: Value = serde_json::from_str(&ended.words).expect(&ended.words);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schemas")
        .join(schema)
        .with_extension("json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let slips: Vec<String> = validator
        .iter_errors(&document)
        .map(|slip| format!("{}: {slip}", slip.instance_path()))
        .collect();
    assert!(slips.is_empty(), "{slips:#?} in {document:#}");
    assert_eq!(document["exit"], code);
    document
}

#[test]
fn each_document_of_knob_is_as_its_schema_says() {
    let bench = Bench::new();
    let lo = ["--device", "lo"];
    let apply = [&["apply"], &WISHES[..], &lo].concat();
    let list = document(&bench, "knob-list", &[&["list"], &lo[..]].concat(), 0);
    assert!(list["knobs"].as_array().unwrap().len() > 100);
    document(&bench, "knob-show", &["show", "bios.smt"], 0);
    let plan = [
        &["plan", "net.rp_filter=2", "virt.vcpu_pin=keep:0-1"],
        &lo[..],
    ]
    .concat();
    let plan = document(&bench, "knob-plan", &plan, 0);
    assert_eq!(plan["plans"][1]["edits"][0]["edit"]["edit"], "by_hand");

    let applied = document(&bench, "knob-apply", &apply, 0);
    assert_eq!(applied["changes"], 3);
    document(&bench, "knob-verify", &["verify"], 0);
    let mut meddle = Command::new("sh");
    meddle.args(["-c", "echo 1 > /proc/sys/net/ipv4/conf/lo/rp_filter"]);
    bench.run_command(meddle);
    let drifted = document(&bench, "knob-verify", &["verify"], 1);
    assert_eq!(drifted["drift"][0]["found"], "1");
    document(&bench, "knob-export", &["export", "--as", "sysctl.d"], 0);
    let undone = document(&bench, "knob-undo", &["undo"], 5);
    let journal = &undone["journals"][0];
    assert_eq!(journal["left"][0]["why"]["foreign"]["found"], "1");
    assert_eq!(journal["restored"].as_array().unwrap().len(), 2);
    document(&bench, "knob-undo", &["undo", "--abandon"], 0);
    bench.guard_is_gone();
}

#[test]
fn so_are_those_that_rest_on_a_check() {
    let bench = Bench::new();
    let check = bench.scratch.path().join("check.json");
    let check = check.to_str().unwrap();
    let checked = ["check", "--for", "1s", "--format", "json", "-o", check];
    let checked = bench.run(&checked);
    // 3 where a second is too short to see all, as beside other work.
    assert!(matches!(checked.code, Some(0 | 1 | 3)), "{}", checked.words);
    let why = document(
        &bench,
        "knob-list-why",
        &["list", "--why", "--from", check],
        0,
    );
    assert!(!why["not_asked_for"].as_array().unwrap().is_empty());
    document(
        &bench,
        "knob-plan",
        &["plan", "--from", check, "--also-watch"],
        0,
    );
}
