//! Ladders that find their rungs, by the advice of somebody who knows the simulated truth.

use std::collections::BTreeMap;

use rungwise_experiment::Error;
use rungwise_experiment::auto::{Advice, Change};
use rungwise_experiment::design::{Auto, Design};
use rungwise_experiment::ladder::{Climbed, climb_by};
use rungwise_experiment::record::{Decision, Forget, Record, RunFolder};
use rungwise_experiment::stage::StageError;
use rungwise_model::check::Finding;
use rungwise_model::evidence::Subject;
use rungwise_model::tune::{Became, Outcome, Verdict};
use rungwise_probes::Capture;

use crate::Silent;
use crate::simulated::Simulated;

/// A sickness: found where some knobs are on and others are not, and the switches it asks for: `pin`, or `pin=off`.
struct Sickness {
    rule: &'static str,
    with: &'static [&'static str],
    until: &'static [&'static str],
    asks: &'static [&'static str],
}

struct ScriptedAdvice(Vec<Sickness>);

impl Advice for ScriptedAdvice {
    fn findings(&self, capture: &Capture) -> Vec<Finding> {
        let on: Vec<&str> = capture.machine.hostname.split(',').collect();
        let all = |knobs: &[&str]| knobs.iter().all(|knob| on.contains(knob));
        self.0
            .iter()
            .filter(|sick| all(sick.with) && !all(sick.until))
            .map(|sick| {
                let finding = Finding::act(&Subject::host(), format!("{} hurts", sick.rule));
                let mut finding = sick
                    .asks
                    .iter()
                    .map(|ask| ask.split_once('=').unwrap_or((*ask, "on")))
                    .fold(finding, |finding, (knob, to)| finding.turn(knob, to));
                sick.rule.clone_into(&mut finding.rule);
                finding
            })
            .collect()
    }

    fn change(&self, rule: &str, before: &Capture, after: &Capture) -> Change {
        let was = self.findings(before);
        let mut came = self.findings(after);
        let still = came.iter().any(|finding| finding.rule == rule);
        came.retain(|finding| !was.iter().any(|known| known.rule == finding.rule));
        Change {
            became: if still {
                Became::Unchanged
            } else {
                Became::Gone
            },
            came,
        }
    }
}

fn design(max_rungs: u32, knobs: &[&str]) -> Design {
    let mut design = crate::design(Vec::new());
    let values = || vec!["off".to_owned(), "on".to_owned()];
    let auto = Auto {
        max_rungs,
        capture_s: 1.0,
        disruptive: false,
        on_this_host: false,
        switches: knobs
            .iter()
            .map(|knob| ((*knob).to_owned(), values()))
            .collect::<BTreeMap<_, _>>(),
        java: false,
        device: None,
    };
    design.judging.comparisons = auto.comparisons();
    design.auto = Some(auto);
    design
}

fn climb(
    design: &Design,
    advice: &ScriptedAdvice,
    stage: &mut Simulated,
    record: &mut dyn Record,
) -> (Climbed, Result<(), Error>) {
    let mut climbed = Climbed::default();
    let end = climb_by(advice, design, stage, record, &mut Silent, &mut climbed);
    (climbed, end)
}

fn ids(climbed: &Climbed) -> Vec<&str> {
    climbed.rungs.iter().map(|rung| rung.id.as_str()).collect()
}

/// The reference ladder in small: steering alone loses, because the packets then meet at one socket.
fn reference() -> (ScriptedAdvice, Simulated) {
    let advice = ScriptedAdvice(vec![
        Sickness {
            rule: "one-cpu",
            with: &[],
            until: &["rps"],
            asks: &["rps"],
        },
        Sickness {
            rule: "one-socket",
            with: &["rps"],
            until: &["reuseport"],
            asks: &["reuseport"],
        },
        Sickness {
            rule: "any-cpu",
            with: &["rps", "reuseport"],
            until: &["pin"],
            asks: &["pin"],
        },
    ]);
    let stage = Simulated::new(31)
        .effect("rps", 0.5)
        .pair_effect("rps", "reuseport", 5.0)
        .effect("pin", 1.2)
        .by_call();
    (advice, stage)
}

#[test]
fn a_loss_whose_evidence_moved_is_tried_again_with_what_the_evidence_asks_for() {
    let (advice, mut stage) = reference();
    let design = design(8, &["rps", "reuseport", "pin"]);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert_eq!(
        climbed.kept,
        ["rps=on+reuseport=on", "pin=on"],
        "{:?}",
        ids(&climbed)
    );
    let alone = climbed
        .rungs
        .iter()
        .find(|rung| rung.id == "rps=on")
        .unwrap();
    assert_eq!(alone.outcome, Outcome::Reverted);
    let asked = alone.asked.as_ref().unwrap();
    assert_eq!(
        (asked.rule.as_str(), asked.became),
        ("one-cpu", Some(Became::Gone))
    );
    assert_eq!(asked.came[0].0, "one-socket");
    // Only once the bundle is in force does its next finding show.
    let pin = climbed
        .rungs
        .iter()
        .find(|rung| rung.id == "pin=on")
        .unwrap();
    assert_eq!(pin.asked.as_ref().unwrap().rule, "any-cpu");
}

#[test]
fn knobs_of_one_finding_that_help_only_together_are_tried_together() {
    let advice = ScriptedAdvice(vec![Sickness {
        rule: "free",
        with: &[],
        until: &["bpf", "pin"],
        asks: &["bpf", "pin"],
    }]);
    let mut stage = Simulated::new(32)
        .effect("bpf", 0.8)
        .pair_effect("bpf", "pin", 2.0);
    let design = design(8, &["bpf", "pin"]);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert!(
        climbed.kept.contains(&"pin=on+bpf=on".to_owned()),
        "{:?}",
        ids(&climbed)
    );
}

#[test]
fn what_nobody_asks_for_is_never_tried_and_nothing_twice() {
    let advice = ScriptedAdvice(vec![Sickness {
        rule: "slow",
        with: &[],
        until: &["none"],
        asks: &["nothing"],
    }]);
    let design = design(8, &["nothing", "good"]);
    let mut stage = Simulated::new(33).effect("good", 3.0);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert_eq!(ids(&climbed), ["start", "nothing=on"]);
    assert!(climbed.kept.is_empty());
}

/// The rule whose finding says that the load generator was the limit.
const CLIENT: &str = "client-bound";

fn sick(
    rule: &'static str,
    with: &'static [&'static str],
    asks: &'static [&'static str],
) -> Sickness {
    Sickness {
        rule,
        with,
        until: &["none"],
        asks,
    }
}

#[test]
fn where_the_load_generator_is_the_limit_from_the_start_no_rung_is_tried() {
    let advice = ScriptedAdvice(vec![sick("slow", &[], &["good"]), sick(CLIENT, &[], &[])]);
    let mut stage = Simulated::new(36).effect("good", 3.0);
    let (climbed, end) = climb(&design(8, &["good"]), &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert_eq!(ids(&climbed), ["start"]);
    assert_eq!(climbed.verdict, Some(Verdict::Inconclusive));
    let because = "Nothing further was tried, because client-bound hurts.";
    assert!(climbed.sentence.ends_with(because), "{}", climbed.sentence);
    let left = climbed.could_not.join("\n");
    assert!(left.contains("give the generator more threads"), "{left}");
}

#[test]
fn what_was_kept_before_the_load_generator_became_the_limit_stays_and_is_said_with_it() {
    let advice = ScriptedAdvice(vec![
        sick("slow", &[], &["good", "better"]),
        sick(CLIENT, &["good"], &[]),
    ]);
    let mut stage = Simulated::new(37).effect("good", 1.4).effect("better", 1.4);
    let (climbed, end) = climb(
        &design(8, &["good", "better"]),
        &advice,
        &mut stage,
        &mut Forget,
    );
    end.unwrap();
    assert_eq!(ids(&climbed), ["start", "good=on", "overall"]);
    assert_eq!(climbed.kept, ["good=on"]);
    assert_eq!(climbed.verdict, Some(Verdict::Better));
    let because = "Nothing further was tried, because client-bound hurts.";
    assert!(climbed.sentence.ends_with(because), "{}", climbed.sentence);
}

#[test]
fn a_rung_whose_gain_the_load_generator_could_not_ask_for_is_not_judged_and_the_last() {
    let advice = ScriptedAdvice(vec![
        sick("slow", &[], &["capped", "better"]),
        sick(CLIENT, &["capped"], &[]),
    ]);
    let mut stage = Simulated::new(38).effect("better", 1.4);
    let (climbed, end) = climb(
        &design(8, &["capped", "better"]),
        &advice,
        &mut stage,
        &mut Forget,
    );
    end.unwrap();
    assert_eq!(ids(&climbed), ["start", "capped=on"]);
    let rung = &climbed.rungs[1];
    assert_eq!(rung.outcome, Outcome::Inconclusive);
    assert!(
        rung.reason
            .ends_with("but with the change, client-bound hurts"),
        "{}",
        rung.reason
    );
    assert_eq!(climbed.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn a_bundle_at_the_limit_of_the_load_generator_is_kept_whole() {
    let advice = ScriptedAdvice(vec![
        Sickness {
            rule: "one-cpu",
            with: &[],
            until: &["rps"],
            asks: &["rps"],
        },
        sick("one-socket", &["rps"], &["reuseport"]),
        sick(CLIENT, &["rps", "reuseport"], &[]),
    ]);
    let mut stage = Simulated::new(39)
        .effect("rps", 0.5)
        .pair_effect("rps", "reuseport", 5.0);
    let (climbed, end) = climb(
        &design(8, &["rps", "reuseport"]),
        &advice,
        &mut stage,
        &mut Forget,
    );
    end.unwrap();
    // What it could do without cannot be judged.
    let tried = ["start", "rps=on", "rps=on+reuseport=on", "overall"];
    assert_eq!(ids(&climbed), tried);
    assert!(climbed.client_limit.is_some());
}

#[test]
fn what_a_kept_bundle_holds_is_not_tried_again_with_a_later_step() {
    let advice = ScriptedAdvice(vec![sick("free", &[], &["bpf", "pin", "gro"])]);
    let mut stage = Simulated::new(40)
        .effect("bpf", 0.8)
        .pair_effect("bpf", "pin", 2.0)
        .effect("gro", 0.9);
    let design = design(8, &["bpf", "pin", "gro"]);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    let tried = [
        "start",
        "bpf=on",
        "pin=on",
        "pin=on+bpf=on",
        "pin=on+bpf=on-bpf=on",
        "gro=on",
        "overall",
    ];
    assert_eq!(ids(&climbed), tried);
}

#[test]
fn a_partner_never_takes_back_what_its_bundle_is_about() {
    let advice = ScriptedAdvice(vec![
        Sickness {
            rule: "one-cpu",
            with: &[],
            until: &["rps"],
            asks: &["rps"],
        },
        sick("woken-twice", &["rps"], &["rps=off", "reuseport"]),
    ]);
    let mut stage = Simulated::new(41)
        .effect("rps", 0.5)
        .pair_effect("rps", "reuseport", 5.0);
    let design = design(8, &["rps", "reuseport"]);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert_eq!(
        climbed.kept[0],
        "rps=on+reuseport=on",
        "{:?}",
        ids(&climbed)
    );
}

#[test]
fn nobody_is_said_to_have_asked_for_the_end_of_a_bundles_member() {
    let (advice, mut stage) = reference();
    let design = design(8, &["rps", "reuseport", "pin"]);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    let asked = |id: &str| {
        let rung = climbed.rungs.iter().find(|rung| rung.id == id).unwrap();
        rung.asked.is_some()
    };
    assert!(asked("rps=on+reuseport=on"));
    assert!(!asked("rps=on+reuseport=on-reuseport=on"));
}

#[test]
fn the_number_of_rungs_is_bounded_and_what_is_left_is_said() {
    let advice = ScriptedAdvice(vec![Sickness {
        rule: "slow",
        with: &[],
        until: &["none"],
        asks: &["a", "b", "c"],
    }]);
    let design = design(1, &["a", "b", "c"]);
    let mut stage = Simulated::new(34).effect("a", 1.3);
    let (climbed, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    assert_eq!(ids(&climbed), ["start", "a=on", "overall"]);
    assert!(
        climbed
            .could_not
            .iter()
            .any(|line| line.contains("b = on") && line.contains("max_rungs")),
        "{:?}",
        climbed.could_not
    );
}

#[test]
fn what_only_a_person_can_turn_is_shown_with_its_reason() {
    let advice = ScriptedAdvice(vec![Sickness {
        rule: "slow",
        with: &[],
        until: &["none"],
        asks: &["bios.smt", "sock.reuseport"],
    }]);
    let (climbed, end) = climb(
        &design(8, &[]),
        &advice,
        &mut Simulated::new(35),
        &mut Forget,
    );
    end.unwrap();
    assert_eq!(ids(&climbed), ["start", "bios.smt", "sock.reuseport"]);
    assert!(
        climbed.rungs[1..]
            .iter()
            .all(|rung| rung.outcome == Outcome::Observed && rung.asked.is_some())
    );
    assert!(
        climbed.rungs[2].reason.contains("[service.switches]"),
        "{}",
        climbed.rungs[2].reason
    );
}

#[test]
fn a_resumed_ladder_finds_the_same_rungs() {
    let design = design(8, &["rps", "reuseport", "pin"]);
    let (advice, mut stage) = reference();
    let (whole, end) = climb(&design, &advice, &mut stage, &mut Forget);
    end.unwrap();
    for stop_after in [1, 33, 50, 66, 85] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut folder = RunFolder::create(&path, &design).unwrap();
        let (advice, stage) = reference();
        let (_, end) = climb(
            &design,
            &advice,
            &mut stage.interrupt_after(stop_after),
            &mut folder,
        );
        assert!(
            matches!(end, Err(Error::Stage(StageError::Interrupted))),
            "{end:?}"
        );
        drop(folder);
        let (mut folder, read) = RunFolder::resume(&path).unwrap();
        assert!(read == design && folder.damaged().is_empty());
        let (advice, mut stage) = reference();
        let (resumed, end) = climb(&read, &advice, &mut stage, &mut folder);
        end.unwrap();
        assert_eq!(
            ids(&resumed),
            ids(&whole),
            "interrupted after {stop_after} runs"
        );
        assert!(
            resumed.rungs == whole.rungs,
            "interrupted after {stop_after} runs"
        );
    }
}

#[test]
fn a_plan_that_today_would_be_another_is_refused_and_a_torn_one_is_gone_on_with() {
    let design = design(8, &["a"]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let captured = |rule: &str| Decision::Captured {
        capture: "look-00.rungwise".to_owned(),
        findings: vec![(rule.to_owned(), "it hurts".to_owned())],
    };
    let mut folder = RunFolder::create(&path, &design).unwrap();
    folder.decide(&captured("one")).unwrap();
    folder.decide(&captured("two")).unwrap();
    drop(folder);

    let (mut folder, _) = RunFolder::resume(&path).unwrap();
    folder.decide(&captured("one")).unwrap();
    let refused = folder.decide(&captured("other")).unwrap_err().to_string();
    assert!(refused.contains("plan.jsonl"), "{refused}");

    let plan = path.join("plan.jsonl");
    let text = std::fs::read(&plan).unwrap();
    std::fs::write(&plan, &text[..text.len() - 9]).unwrap();
    let (mut folder, _) = RunFolder::resume(&path).unwrap();
    assert_eq!(folder.damaged().len(), 1);
    folder.decide(&captured("one")).unwrap();
    folder.decide(&captured("three")).unwrap();
    drop(folder);
    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(
        text.lines().count() == 2 && text.contains("three"),
        "{text}"
    );
}
