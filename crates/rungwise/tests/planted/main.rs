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

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use rungwise_host::privilege::{self, Privilege};
use rungwise_model::check::Outcome;
use rungwise_testkit::faults::{
    By, CURES, Cure, FAULTS, Fault, How, Planted, Result, Says, UNAPPLIED, page,
};
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
            Ok(mut planted) => {
                let (findings, mut wrong) = judged(bench, fault, &planted);
                if wrong.is_empty() {
                    wrong = advised(bench, fault, &mut planted, &findings);
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

/// What `check` says, and what is wrong with it.
fn judged(bench: &Bench, fault: &Fault, planted: &Planted) -> (Vec<Value>, Vec<String>) {
    let findings = found(bench, planted);
    let said = |rule: &str| {
        let of = findings.iter().filter(|finding| finding["rule"] == rule);
        of.map(finding_text).collect::<Vec<_>>().join("; ")
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
            let first = findings.first().map(finding_text).unwrap_or_default();
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
            wrong.push(format!(
                "{}: {rule} speaks: {}",
                fault.id,
                finding_text(finding)
            ));
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
        eprintln!("  {}", finding_text(finding));
    }
    (findings, wrong)
}

/// A value that a finding asks for.
struct Advice<'f> {
    finding: &'f Value,
    knob: &'f str,
    to: &'f str,
    device: Option<&'f str>,
}

/// The values that the rules of a fault ask for. A rule that the fault must bring to watch may ask for one as well.
fn advice<'f>(fault: &Fault, findings: &'f [Value]) -> Vec<Advice<'f>> {
    let speaks = |finding: &&Value| {
        let of_rule = |says: &&Says| finding["rule"] == says.rule;
        let says = fault.speaks.iter().find(of_rule);
        says.is_some_and(|says| {
            let outcome = outcome(finding);
            outcome == Outcome::Act || outcome == says.outcome
        })
    };
    let mut all = Vec::new();
    for finding in findings.iter().filter(speaks) {
        for turn in finding["knobs"].as_array().unwrap() {
            let knob = turn["id"].as_str().unwrap();
            let device = turn["device"].as_str();
            // Without a value it is a hint, and the value is up to the reader.
            if let Some(to) = turn["to"].as_str() {
                all.push(Advice {
                    finding,
                    knob,
                    to,
                    device,
                });
            }
        }
    }
    all
}

/// Takes the advice; what is wrong where it does not cure, or is in no list.
fn advised(bench: &Bench, fault: &Fault, planted: &mut Planted, findings: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let given = advice(fault, findings);
    for advice in &given {
        let rule = &advice.finding["rule"];
        let turn = format!(
            "{}: {} advises {}={}",
            fault.id,
            rule.as_str().unwrap(),
            advice.knob,
            advice.to
        );
        let cured = CURES.iter().any(|cure| {
            cure.fault == fault.id && rule == cure.rule && cure.knobs.contains(&advice.knob)
        });
        let unapplied = UNAPPLIED.iter().find(|unapplied| {
            unapplied.fault == fault.id && rule == unapplied.rule && unapplied.knob == advice.knob
        });
        match unapplied {
            Some(unapplied) => eprintln!("  {turn}, not applied: {}", unapplied.why),
            None if cured => {}
            None => wrong.push(format!(
                "{turn}, which is neither applied nor listed with a reason in UNAPPLIED: {}",
                finding_text(advice.finding)
            )),
        }
    }
    let pid = planted.pid;
    for cure in CURES.iter().filter(|cure| cure.fault == fault.id) {
        let of_cure = |advice: &&Advice<'_>| {
            let Advice { finding, knob, .. } = advice;
            let subject = finding["subject"].as_str().unwrap();
            // Not to what else the machine runs: the rule may be right about that, too.
            let planted = fault
                .speaks
                .iter()
                .any(|says| says.rule == cure.rule && says.is(outcome(finding), subject, pid));
            finding["rule"] == cure.rule && planted && cure.knobs.contains(knob)
        };
        let mut taken: Vec<&Advice<'_>> = given.iter().filter(of_cure).collect();
        // Of several subjects the first.
        let first = taken.first().map(|advice| &advice.finding["subject"]);
        taken.retain(|advice| Some(&advice.finding["subject"]) == first);
        if taken.len() == cure.knobs.len() {
            wrong.extend(uncured(bench, cure, planted, &taken).err());
        } else {
            let Cure { rule, knobs, .. } = cure;
            wrong.push(format!(
                "{}: {rule} does not advise all of {knobs:?}, which CURES lists",
                fault.id
            ));
        }
    }
    wrong
}

/// How often is asked after the advice was taken: what was dropped or queued before has to pass.
const LATER: usize = 8;
/// Windows in a row in which a rule must be quiet: one may be quiet by chance.
const QUIET: usize = 2;

/// Takes the advice and goes back; what is wrong where the rule speaks of the same subject all the same.
fn uncured(
    bench: &Bench,
    cure: &Cure,
    planted: &mut Planted,
    taken: &[&Advice<'_>],
) -> std::result::Result<(), String> {
    let given = taken[0].finding;
    let turns = taken
        .iter()
        .map(|advice| format!("{}={}", advice.knob, advice.to));
    let turns: Vec<String> = turns.collect();
    let mut arguments = vec!["knob", "apply", "--evidence-for", "0s", "--for", "5m"];
    arguments.extend(turns.iter().map(String::as_str));
    if let Some(device) = taken.iter().find_map(|advice| advice.device) {
        arguments.extend(["--device", device]);
    }
    let cost_before = cost(cure, planted)?;
    let run = |planted: &Planted, by: By, arguments: &[&str]| {
        let mut command = bench.command(arguments);
        let output = if by == By::Machine {
            command.output().unwrap()
        } else {
            planted.namespace.run(move || command.output()).unwrap()
        };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let failed = || format!("{}: {arguments:?}: {stderr}", cure.fault);
        output.status.success().then_some(()).ok_or_else(failed)
    };
    for by in cure.by {
        match by {
            By::Restart(options) => planted.restart(options).map_err(|why| why.to_string())?,
            // A test that is killed or panics leaves the undoing to `--for`.
            By::Namespace | By::Machine => run(planted, *by, &arguments)?,
        }
    }
    let (rule, about) = (&given["rule"], &given["subject"]);
    let before = cure.harm.map(|key| cited(given, key));
    let speaks = || {
        found(bench, planted).into_iter().find(|said| {
            let as_bad = outcome(said) == Outcome::Act || outcome(said) == outcome(given);
            // Where several of its kind are as bad as the one before, the rule speaks of the host.
            let about = said["subject"] == *about || said["subject"] == "host";
            let speaks = said["rule"] == *rule && about && as_bad;
            let halved = |key| before.is_some_and(|before| cited(said, key) <= before / 2.0);
            speaks && !cure.harm.is_some_and(halved)
        })
    };
    // A test that fails in between undoes what it applied to the machine all the same.
    let asked = catch_unwind(AssertUnwindSafe(|| {
        let mut said = None;
        let mut quiet = 0;
        let _ = (0..LATER).any(|_| {
            let now = speaks();
            quiet = if now.is_none() { quiet + 1 } else { 0 };
            said = now.or_else(|| said.take()).filter(|_| quiet < QUIET);
            quiet == QUIET
        });
        (said, cost(cure, planted))
    }));
    for by in cure.by.iter().filter(|by| !matches!(by, By::Restart(_))) {
        run(planted, *by, &["knob", "undo"])?;
    }
    let (said, cost_after) = asked.unwrap_or_else(|panic| resume_unwind(panic));
    let turns = turns.join(" ");
    if let (Some(before), Some(after)) = (cost_before, cost_after?) {
        let what = cure.measured.unwrap_or_default();
        eprintln!("  {turns}: {what}: {before:.3} to {after:.3}");
        if before <= 0.0 || after > before / 2.0 {
            return Err(format!(
                "{}: {turns} does not halve what it costs ({what}): {before:.3} to {after:.3}",
                cure.fault
            ));
        }
    }
    eprintln!("  {turns} cures it: {}", said.is_none());
    match said {
        None => Ok(()),
        Some(said) => Err(format!(
            "{}: {turns} does not cure it: {}",
            cure.fault,
            finding_text(&said)
        )),
    }
}

/// What the fault costs now, where the cure says that it is measured.
fn cost(cure: &Cure, planted: &Planted) -> std::result::Result<Option<f64>, String> {
    let cost = planted.cost().map_err(|why| why.to_string())?;
    assert_eq!(cost.is_some(), cure.measured.is_some(), "{}", cure.fault);
    Ok(cost)
}

/// The sum of the readings of this key, a rate or a share, that a finding cites.
fn cited(finding: &Value, key: &str) -> f64 {
    let lines = finding["evidence"].as_array().unwrap();
    let value = |line: &Value| {
        // `raw line (key subject = value)`
        let line = line["line"].as_str().unwrap();
        let (subject, value) = line.rsplit_once(" = ")?;
        let of_key = subject.rsplit_once(" (")?.1.starts_with(&format!("{key} "));
        let number = value.split(['/', ' ', ')']).next()?;
        of_key.then(|| number.parse::<f64>().ok()).flatten()
    };
    let values: Vec<f64> = lines.iter().filter_map(value).collect();
    assert!(!values.is_empty(), "no {key} in {finding}");
    values.iter().sum()
}

fn finding_text(finding: &Value) -> String {
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

/// The findings of `check`, run inside.
fn found(bench: &Bench, planted: &Planted) -> Vec<Value> {
    checked(bench, planted)["findings"]
        .as_array()
        .unwrap()
        .clone()
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
    let cures = CURES.iter().flat_map(|cure| {
        let knobs = cure.knobs.iter();
        knobs.map(|knob| (cure.fault, cure.rule, *knob))
    });
    let unapplied = UNAPPLIED
        .iter()
        .map(|advice| (advice.fault, advice.rule, advice.knob));
    let mut listed: Vec<_> = cures.chain(unapplied).collect();
    for (fault, rule, knob) in &listed {
        let rule = rungwise_rules::RULES.iter().find(|known| known.id == *rule);
        let gives = rule.is_some_and(|rule| rule.knobs.contains(knob));
        let planted = FAULTS.iter().any(|known| known.id == *fault);
        assert!(gives && planted, "{fault}: {rule:?} {knob}");
    }
    let all = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), all, "an advice is listed twice");
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
