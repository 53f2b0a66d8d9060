//! Faults planted in namespaces: the right rule speaks, the others do not act. `docs/faults.md` is the table.
//!
//! A binary of its own, so that no other test runs beside it: rules that read the whole machine would see its load.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start processes and look at files themselves, may fail, and print what check said of each fault"
)]

#[expect(dead_code, reason = "shared with the other tests of the binary")]
#[path = "../it/run.rs"]
mod run;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use rungwise_host::privilege::{self, Privilege};
use rungwise_model::check::Outcome;
use rungwise_testkit::faults::{CURES, Cure, FAULTS, Fault, How, Planted, Result, Says, page};
use serde_json::Value;

use run::{Bench, Ended, Machine, binary};

/// Topics whose rules a fault in a namespace must not set off by mistake.
const JUDGED: &[&str] = &["cpu", "device", "net", "tcp"];

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_right_rule_speaks_of_every_planted_fault_and_no_other_acts() {
    let privilege = privilege::detect();
    assert_eq!(
        privilege,
        Privilege::Root,
        "run the tests as root: faults are planted in namespaces"
    );
    let bench = Bench::new();
    // One by name, to work on it.
    let wanted = std::env::var("RUNGWISE_FAULT").ok();
    let known = |id: &String| FAULTS.iter().any(|fault| fault.id == id);
    assert!(wanted.as_ref().is_none_or(known), "no fault {wanted:?}");
    let machine = Machine::now();
    let mut wrong = Vec::new();
    let mut repeated = Vec::new();
    for fault in FAULTS {
        if wanted.as_ref().is_some_and(|id| id != fault.id) {
            continue;
        }
        match fault.how {
            How::Here(plant) => {
                let (attempts, what) = stubborn(&bench, fault, plant);
                if attempts > 1 {
                    repeated.push(format!("{} was planted {attempts} times", fault.id));
                }
                wrong.extend(what);
            }
            How::Elsewhere { why, judged } => {
                let id = fault.id;
                run::aloud(&format!("NOT PLANTED {id}: {why} Judged instead: {judged}"));
                let cases = std::fs::read_to_string(checkout().join(judged)).unwrap();
                for says in fault.speaks {
                    let line = format!("{}: no {says:?}", fault.id);
                    assert!(
                        cases.contains(&recorded(judged, says)),
                        "{line} in {judged}"
                    );
                }
            }
        }
    }
    if !repeated.is_empty() {
        run::aloud(&format!("PLANTED MORE THAN ONCE: {}", repeated.join("; ")));
    }
    machine.assert_unchanged();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The finding as a casebook or `expected.md` of a host writes it.
fn recorded(file: &str, says: &Says) -> String {
    if file.ends_with("expected.md") {
        return format!("act {} {}", says.rule, says.about);
    }
    format!("\nact {} ", says.about)
}

/// Whoever else uses the machine can hide a fault (no CPU is left to be flooded) and add signs of another.
const ATTEMPTS: usize = 3;

/// How often it was planted, and what is wrong with what `check` says, however often it is asked.
fn stubborn(
    bench: &Bench,
    fault: &Fault,
    plant: fn(&Path) -> Result<Planted>,
) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let mut attempts = 0;
    for attempt in 1..=ATTEMPTS {
        attempts = attempt;
        wrong = match plant(binary()) {
            Ok(planted) => {
                let mut wrong = judged(bench, fault, &planted);
                let cures = CURES.iter().filter(|cure| cure.fault == fault.id);
                if wrong.is_empty() {
                    wrong.extend(cures.filter_map(|cure| uncured(bench, cure, &planted)));
                }
                wrong
            }
            Err(why) => vec![format!("{}: cannot be planted: {why}", fault.id)],
        };
        if wrong.is_empty() {
            break;
        }
        eprintln!("attempt {attempt} of {ATTEMPTS}: {}", wrong.join("\n  "));
        until_idle(Duration::from_secs(30));
    }
    (attempts, wrong)
}

/// Until the CPUs were idle for half of a second or more; at most `patience`.
fn until_idle(patience: Duration) {
    let ticks = || {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let first = text.lines().next().unwrap().split_whitespace().skip(1);
        let ticks: Vec<u64> = first.map(|word| word.parse().unwrap()).collect();
        (ticks[3] + ticks[4], ticks.iter().sum::<u64>())
    };
    let began = Instant::now();
    while began.elapsed() < patience {
        let (idle, all) = ticks();
        std::thread::sleep(Duration::from_secs(1));
        let (later_idle, later_all) = ticks();
        if 2 * (later_idle - idle) > later_all - all {
            return;
        }
    }
}

/// What is wrong with what `check` says.
fn judged(bench: &Bench, fault: &Fault, planted: &Planted) -> Vec<String> {
    let report = checked(bench, planted);
    let findings = report["findings"].as_array().unwrap();
    let said = |rule: &str| {
        let of = findings.iter().filter(|finding| finding["rule"] == rule);
        of.map(told).collect::<Vec<_>>().join("; ")
    };
    let mut wrong = Vec::new();
    let noisy = said("noise-gate").starts_with("watch");
    for says in fault.speaks {
        let less = Says {
            outcome: Outcome::Watch,
            ..*says
        };
        let is = |finding: &&Value| {
            let subject = finding["subject"].as_str().unwrap();
            let of = |says: &Says| says.is(outcome(finding), subject, planted.pid);
            finding["rule"] == says.rule && (of(says) || noisy && says.less_in_noise && of(&less))
        };
        if findings.iter().find(is).is_none() {
            let said = said(says.rule);
            wrong.push(format!("{}: not {says:?}: {said}", fault.id));
        }
    }
    for says in fault.speaks.iter().filter(|says| says.first) {
        let of_first = findings.first().map(|finding| &finding["rule"]);
        if of_first.is_none_or(|rule| rule != says.rule) {
            let first = findings.first().map(told).unwrap_or_default();
            wrong.push(format!("{}: {} is not first: {first}", fault.id, says.rule));
        }
    }
    for finding in findings
        .iter()
        .filter(|finding| finding["outcome"] == "act")
    {
        let rule = finding["rule"].as_str().unwrap();
        let subject = finding["subject"].as_str().unwrap();
        let must =
            |says: &Says| says.rule == rule && says.is(outcome(finding), subject, planted.pid);
        let expected =
            fault.speaks.iter().any(must) || fault.may.iter().any(|(may, _)| *may == rule);
        // Faults of real services are held against the rules about processes as well.
        let of_service = fault.id.starts_with("service: ") && topic(rule) == "process";
        if !expected && (JUDGED.contains(&topic(rule)) || of_service) {
            wrong.push(format!("{}: {rule} speaks: {}", fault.id, told(finding)));
        }
    }
    // Latencies that show no heap pass; they are not left undecided.
    let latencies = said("tcp-nagle-40ms");
    if planted.load.is_some() && latencies.starts_with("undecided") {
        wrong.push(format!("{}: {latencies}", fault.id));
    }
    eprintln!("{}:", fault.id);
    for finding in findings.iter().filter(|finding| {
        ["act", "watch"]
            .map(Value::from)
            .contains(&finding["outcome"])
    }) {
        eprintln!("  {}", told(finding));
    }
    wrong
}

/// How often is asked after the advice was applied: TCP finds a segment size that passes after five timeouts, some 7 s.
const LATER: usize = 8;

/// Applies the advice; what is wrong where the rule acts all the same.
fn uncured(bench: &Bench, cure: &Cure, planted: &Planted) -> Option<String> {
    let acts = || {
        let report = checked(bench, planted);
        let findings = report["findings"].as_array().unwrap().clone();
        findings
            .into_iter()
            .find(|finding| finding["rule"] == cure.rule && finding["outcome"] == "act")
    };
    let before = acts()?;
    let wish = before["knobs"].as_array().unwrap().iter().find_map(|turn| {
        (turn["id"] == cure.knob).then(|| {
            (
                turn["to"].as_str().unwrap_or_default().to_owned(),
                turn["device"].as_str().map(str::to_owned),
            )
        })
    });
    let Some((to, device)) = wish else {
        return Some(format!("{}: no wish for {}", cure.rule, cure.knob));
    };
    let turn = format!("{}={to}", cure.knob);
    let mut arguments = vec![
        "knob",
        "apply",
        &turn,
        "--evidence-for",
        "0s",
        "--for",
        "5m",
    ];
    if let Some(device) = &device {
        arguments.extend(["--device", device]);
    }
    let run = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        let output = if cure.of_machine {
            command.output().unwrap()
        } else {
            planted.namespace.run(move || command.output()).unwrap()
        };
        Ended::from(output).expect(0);
    };
    // A test that is killed or panics leaves the undoing to `--for`.
    run(&arguments);
    let cured = (0..LATER).any(|_| acts().is_none());
    run(&["knob", "undo"]);
    eprintln!("  {turn} cures it: {cured}");
    (!cured).then(|| format!("{}: {turn} does not cure it: {}", cure.fault, told(&before)))
}

fn told(finding: &Value) -> String {
    let word = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {}: {}",
        word("outcome"),
        word("rule"),
        word("subject"),
        word("sentence")
    )
}

fn outcome(finding: &Value) -> Outcome {
    serde_json::from_value(finding["outcome"].clone()).unwrap()
}

fn topic(rule: &str) -> &'static str {
    let of = rungwise_rules::RULES.iter().find(|known| known.id == rule);
    of.unwrap_or_else(|| panic!("no rule {rule}")).topic
}

/// The document of `check`, run inside.
fn checked(bench: &Bench, planted: &Planted) -> Value {
    // Five hundred samples are judged from on; two seconds at this rate are 2,000 on two CPUs.
    let mut arguments = vec![
        "check",
        "--quiet",
        "--for",
        "2s",
        "--hz",
        "499",
        "--fail-on",
        "never",
        "--format",
        "json",
    ];
    let pid = planted.pid.map(|pid| pid.to_string());
    if let Some(pid) = &pid {
        arguments.extend(["--pid", pid.as_str()]);
    }
    if let Some(load) = &planted.load {
        arguments.extend(["--load", load.path().to_str().unwrap()]);
    }
    let mut command = bench.command(&arguments);
    // A process that the namespace's thread starts is in the namespace.
    let output: Output = planted.namespace.run(move || command.output()).unwrap();
    let ended = Ended::from(output).expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn every_rule_of_the_table_exists_and_the_page_is_fresh() {
    for cure in CURES {
        topic(cure.rule);
        assert!(
            FAULTS.iter().any(|fault| fault.id == cure.fault),
            "{cure:?}"
        );
    }
    for fault in FAULTS {
        let may = fault.may.iter().map(|(rule, _)| rule);
        for rule in fault.speaks.iter().map(|says| &says.rule).chain(may) {
            topic(rule);
        }
    }
    let file = checkout().join("docs/faults.md");
    if std::env::var_os("RUNGWISE_WRITE").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page(),
        "docs/faults.md is stale: RUNGWISE_WRITE=1 cargo test -p rungwise --test planted"
    );
}
