//! The engine against a simulated stage whose truth is known.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and damage files to see what happens"
)]

mod auto;
mod grid;
mod recorded;
mod simulated;

use rungwise_experiment::Error;
use rungwise_experiment::compare::{Observer, Progress};
use rungwise_experiment::design::{Control, Design, Guard, Judging, Objective, Part, Step};
use rungwise_experiment::ladder::{Climbed, climb};
use rungwise_experiment::record::{Forget, Record, RunFolder};
use rungwise_experiment::stage::{Changes, Setting, Side, StageError};
use rungwise_model::tune::{Outcome, Reference, Rung, Verdict};
use simulated::Simulated;

pub(crate) struct Silent;

impl Observer for Silent {
    fn progress(&mut self, _: &Progress) {}
    fn rung(&mut self, _: &Rung) {}
}

pub(crate) fn setting(knob: &str) -> Setting {
    Setting {
        knob: knob.to_owned(),
        side: Side::Server,
    }
}

pub(crate) fn step(id: &str) -> Step {
    Step {
        id: id.to_owned(),
        title: format!("turn {id} on"),
        part: Part::Step,
        set: vec![(setting(id), "on".to_owned())],
        grid: None,
        bundle_with: Vec::new(),
        workload: Changes::NONE,
        workload_after: Changes::NONE,
        shared_lock: false,
        label: None,
        reference: None,
        asked: None,
    }
}

pub(crate) fn design(steps: Vec<Step>) -> Design {
    let comparisons = Design::count_comparisons(&steps);
    Design {
        scenario: "simulated".to_owned(),
        title: "a known truth".to_owned(),
        place: "nowhere".to_owned(),
        workload: None,
        quick: false,
        restarts: false,
        baseline: Vec::new(),
        start_reference: None,
        steps,
        auto: None,
        judging: Judging {
            objective: Objective::rate(),
            guards: vec![Guard::Loss { at_most: 0.01 }],
            controls: Vec::new(),
            min_effect: 0.02,
            alpha: 0.01,
            looks: vec![8, 16, 24],
            comparisons,
            quiet: 0.12,
            discard_above: 0.05,
            quiet_wait_s: 5.0,
            max_discards: 12,
            seed: 7,
        },
    }
}

pub(crate) fn run(design: &Design, stage: &mut Simulated) -> Climbed {
    let mut climbed = Climbed::default();
    climb(design, stage, &mut Forget, &mut Silent, &mut climbed).unwrap();
    climbed
}

pub(crate) fn outcome(climbed: &Climbed, id: &str) -> Outcome {
    climbed
        .rungs
        .iter()
        .find(|rung| rung.id == id)
        .unwrap_or_else(|| panic!("no rung {id}: {:?}", climbed.kept))
        .outcome
}

#[test]
fn what_helps_is_kept_and_what_hurts_is_reverted() {
    let design = design(vec![step("good"), step("bad"), step("nothing")]);
    let mut stage = Simulated::new(1).effect("good", 1.25).effect("bad", 0.8);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "good"), Outcome::Kept);
    assert_eq!(outcome(&climbed, "bad"), Outcome::Reverted);
    assert!(matches!(
        outcome(&climbed, "nothing"),
        Outcome::Same | Outcome::Inconclusive
    ));
    assert_eq!(climbed.kept, ["good"]);
    assert_eq!(climbed.verdict, Some(Verdict::Better));
    assert!(
        climbed
            .sentence
            .starts_with("The kept changes together raise the transaction rate by 2"),
        "{}",
        climbed.sentence
    );
    let overall = climbed.overall.unwrap();
    assert!(overall.low < 0.25 && 0.25 < overall.high, "{overall:?}");
}

#[test]
fn a_change_that_loses_alone_is_tried_with_its_partner() {
    let mut partner = step("reuseport");
    partner.bundle_with = vec!["rps".to_owned()];
    let design = design(vec![step("rps"), partner]);
    let mut stage = Simulated::new(2)
        .effect("rps", 0.5)
        .pair_effect("rps", "reuseport", 4.0);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "rps"), Outcome::Reverted);
    assert_eq!(outcome(&climbed, "rps+reuseport"), Outcome::Kept);
    // Without rps the bundle would lose a factor of two, so it stays in.
    assert_eq!(outcome(&climbed, "rps+reuseport-rps"), Outcome::Reverted);
    assert_eq!(climbed.kept, ["rps+reuseport"]);
    assert_eq!(climbed.final_variant.settings.len(), 2);
}

#[test]
fn a_member_that_only_costs_is_taken_out_of_its_bundle() {
    let mut partner = step("reuseport");
    partner.bundle_with = vec!["rps".to_owned()];
    let design = design(vec![step("rps"), partner]);
    let mut stage = Simulated::new(3)
        .effect("rps", 0.7)
        .effect("reuseport", 2.0);
    let climbed = run(&design, &mut stage);
    assert_eq!(climbed.kept, ["rps+reuseport", "rps+reuseport-rps"]);
    let settings: Vec<_> = climbed.final_variant.settings.keys().collect();
    assert_eq!(settings, [&setting("reuseport")]);
}

#[test]
fn a_member_taken_out_leaves_what_the_others_need() {
    let mut bpf = step("bpf");
    bpf.set.push((setting("reuseport"), "on".to_owned()));
    let mut pin = step("pin");
    pin.bundle_with = vec!["bpf".to_owned()];
    let design = design(vec![step("reuseport"), bpf, pin]);
    let mut stage = Simulated::new(14)
        .effect("reuseport", 2.0)
        .effect("bpf", 0.8)
        .pair_effect("bpf", "pin", 1.1)
        .effect("pin", 1.5);
    let climbed = run(&design, &mut stage);
    assert_eq!(climbed.kept, ["reuseport", "bpf+pin", "bpf+pin-bpf"]);
    let out = climbed.rungs.iter().find(|rung| rung.id == "bpf+pin-bpf");
    let back = vec![("bpf".to_owned(), "as found".to_owned())];
    assert_eq!(out.unwrap().set, back);
    let settings: Vec<_> = climbed.final_variant.settings.keys().collect();
    assert_eq!(settings, [&setting("pin"), &setting("reuseport")]);
}

#[test]
fn every_row_has_an_id_of_its_own_however_often_a_change_is_tried() {
    let mut one = step("one");
    one.bundle_with = vec!["bad".to_owned()];
    let mut two = step("two");
    two.bundle_with = vec!["bad".to_owned()];
    let design = design(vec![step("bad"), one, two]);
    let mut stage = Simulated::new(15)
        .effect("bad", 0.7)
        .effect("one", 2.0)
        .effect("two", 2.0);
    let climbed = run(&design, &mut stage);
    let mut ids: Vec<&str> = climbed.rungs.iter().map(|rung| rung.id.as_str()).collect();
    assert!(
        ids.contains(&"bad+one-bad") && ids.contains(&"bad+two-bad"),
        "{ids:?}"
    );
    let rows = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rows);
}

#[test]
fn identical_variants_are_not_kept() {
    let mut kept = 0;
    for seed in 0..20 {
        let steps = ["a", "b", "c", "d", "e"].map(step).to_vec();
        let mut design = design(steps);
        design.judging.seed = seed;
        kept += run(&design, &mut Simulated::new(seed + 100)).kept.len();
    }
    assert_eq!(kept, 0, "100 rungs without an effect");
}

#[test]
fn a_gain_that_breaks_a_guard_rail_is_reverted() {
    let design = design(vec![step("lossy")]);
    let mut stage = Simulated::new(4).effect("lossy", 1.5).loss("lossy", 0.05);
    let climbed = run(&design, &mut stage);
    let rung = &climbed.rungs[1];
    assert_eq!(rung.outcome, Outcome::Reverted);
    assert!(rung.reason.contains("guard rail"), "{}", rung.reason);
}

#[test]
fn a_pair_whose_control_is_out_of_its_range_does_not_count() {
    let climbed = |from: f64| {
        let mut design = design(vec![step("faster")]);
        design.judging.controls = vec![Control {
            name: "cpu_us_per_tx".to_owned(),
            from,
            to: 1e9,
        }];
        let mut stage = Simulated::new(22).effect("faster", 1.5);
        run(&design, &mut stage)
    };
    assert_eq!(outcome(&climbed(0.0), "faster"), Outcome::Kept);
    let disturbed = climbed(1e8);
    let rung = &disturbed.rungs[1];
    assert_eq!(rung.outcome, Outcome::Inconclusive, "{}", rung.reason);
    let why = rung.pairs[0].discarded.as_deref().unwrap();
    assert!(why.contains("cpu_us_per_tx is "), "{why}");
}

#[test]
fn a_service_that_refuses_faster_is_not_kept_unless_the_guard_allows_it() {
    let climbed = |guards: &[Guard]| {
        let mut design = design(vec![step("refusing")]);
        design.judging.guards = guards.to_vec();
        let mut stage = Simulated::new(22)
            .effect("refusing", 1.5)
            .wrong("refusing", 0.2);
        run(&design, &mut stage)
    };
    // Loss knows nothing of it, and nothing else was said: no such run counts.
    let doubted = climbed(&[Guard::Loss { at_most: 0.01 }]);
    let rung = &doubted.rungs[1];
    assert_eq!(rung.outcome, Outcome::Inconclusive, "{}", rung.reason);
    let why = rung.pairs[0].discarded.as_deref().unwrap();
    assert!(why.contains("20.0 %") && why.contains("REFUSED"), "{why}");
    let forbidden = climbed(&[Guard::Errors { at_most: 0.0 }]);
    let rung = &forbidden.rungs[1];
    assert_eq!(rung.outcome, Outcome::Reverted);
    assert!(rung.reason.contains("guard rail"), "{}", rung.reason);
    let allowed = climbed(&[Guard::Errors { at_most: 0.25 }]);
    assert_eq!(outcome(&allowed, "refusing"), Outcome::Kept);
}

#[test]
fn the_start_is_brought_up_as_one() {
    let mut design = design(vec![step("good")]);
    let baseline = ["app.config", "net.gro", "net.rp_filter"];
    design.baseline = baseline.map(|id| (setting(id), "on".to_owned())).to_vec();
    let mut stage = Simulated::new(30);
    run(&design, &mut stage);
    assert_eq!(stage.tried[0], "app.config,net.gro,net.rp_filter");
    assert_eq!(stage.restarts, 0);

    // A knob that cannot be had is left out; the service never runs without its own switch, and starts again at the end,
    // when all that holds for it is set.
    let mut stage = Simulated::new(31).unavailable("net.gro", "no device");
    let climbed = run(&design, &mut stage);
    assert_eq!(
        stage.tried[..5],
        [
            "app.config,net.gro,net.rp_filter",
            "app.config",
            "app.config,net.gro",
            "app.config,net.rp_filter",
            "app.config,net.rp_filter"
        ]
    );
    assert_eq!(stage.restarts, 1);
    let lost = climbed.could_not.join("\n");
    assert!(
        lost.contains("baseline setting net.gro = on: no device"),
        "{lost}"
    );
}

#[test]
fn a_guard_rail_broken_from_the_start_still_forbids_worse() {
    let mut design = design(vec![step("lossier")]);
    design.baseline = vec![(setting("old"), "on".to_owned())];
    let mut stage = Simulated::new(16)
        .effect("lossier", 1.5)
        .loss("old", 0.02)
        .loss("lossier", 0.05);
    let climbed = run(&design, &mut stage);
    assert_eq!(climbed.rungs[1].outcome, Outcome::Reverted);
}

#[test]
fn a_ladder_for_latency_is_judged_and_checked_by_latency() {
    let mut quick = step("quick");
    quick.reference = Some(Reference {
        rate_per_s: 2e6,
        factor: Some(1.2),
        source: "elsewhere".to_owned(),
    });
    let mut design = design(vec![quick]);
    design.judging.objective = Objective::minimise("p99");
    let climbed = run(&design, &mut Simulated::new(17).effect("quick", 1.3));
    assert_eq!(outcome(&climbed, "quick"), Outcome::Kept);
    // Less latency and more rate are the same sign.
    assert!(!climbed.rungs[1].sign_differs);
    assert!(
        climbed.sentence.contains("lower the p99 latency by"),
        "{}",
        climbed.sentence
    );
}

#[test]
fn somebody_elses_factor_is_over_the_state_that_ours_was_tried_in() {
    let theirs = |rate_per_s, factor| {
        Some(Reference {
            rate_per_s,
            factor,
            source: "elsewhere".to_owned(),
        })
    };
    // Theirs fell to a tenth before the group brought it back a hundredfold.
    let mut steered = step("rps");
    steered.reference = theirs(1e5, Some(0.1));
    let mut group = step("group");
    group.bundle_with = vec!["rps".to_owned()];
    group.reference = theirs(1e7, Some(100.0));
    let mut design = design(vec![steered, group]);
    design.start_reference = theirs(1e6, None);
    let mut stage = Simulated::new(18).effect("rps", 0.8).effect("group", 1.1);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "rps"), Outcome::Reverted);
    for id in ["rps+group", "group"] {
        let rung = climbed.rungs.iter().find(|rung| rung.id == id).unwrap();
        let factor = rung.reference.as_ref().unwrap().factor.unwrap();
        assert!((factor - 10.0).abs() < 1e-9, "{id}: {factor}");
    }
}

#[test]
fn more_rate_for_more_cpu_per_transaction_is_inconclusive() {
    let design = design(vec![step("dear")]);
    let mut stage = Simulated::new(5).effect("dear", 1.3).cost("dear", 1.4);
    let climbed = run(&design, &mut stage);
    assert_eq!(
        climbed.rungs[1].outcome,
        Outcome::Inconclusive,
        "{}",
        climbed.rungs[1].reason
    );
}

#[test]
fn disturbed_pairs_stay_listed_and_do_not_count() {
    let design = design(vec![step("good")]);
    let mut stage = Simulated::new(6).effect("good", 1.3).disturb_every(5);
    let climbed = run(&design, &mut stage);
    let rung = &climbed.rungs[1];
    assert_eq!(rung.outcome, Outcome::Kept);
    let discarded: Vec<_> = rung
        .pairs
        .iter()
        .filter(|pair| pair.discarded.is_some())
        .collect();
    assert!(!discarded.is_empty());
    assert_eq!(rung.delta.unwrap().discarded as usize, discarded.len());
    assert_eq!(
        rung.delta.unwrap().pairs as usize,
        rung.pairs.len() - discarded.len()
    );
    // Whatever was discarded, those that count are balanced.
    let counted = rung.pairs.iter().filter(|pair| pair.discarded.is_none());
    let orders: Vec<bool> = counted
        .map(|pair| pair.first == rungwise_model::tune::Half::B)
        .collect();
    for block in orders.chunks_exact(4) {
        let b_first = block.iter().filter(|b_first| **b_first).count();
        assert_eq!(b_first, 2, "{orders:?}");
    }
}

#[test]
fn without_quiet_only_cost_decides_and_never_where_a_lock_is_shared() {
    let mut locked = step("locked");
    locked.shared_lock = true;
    let design = design(vec![step("cheap"), locked, step("later")]);
    let mut stage = Simulated::new(7)
        .effect("cheap", 1.25)
        .cost("cheap", 0.8)
        .effect("locked", 1.25)
        .cost("locked", 0.8)
        .cost("later", 0.8)
        .disturb_every(1);
    let climbed = run(&design, &mut stage);
    let cheap = climbed
        .rungs
        .iter()
        .find(|rung| rung.id == "cheap")
        .unwrap();
    assert!(cheap.cost_only);
    assert_eq!(cheap.outcome, Outcome::Kept, "{}", cheap.reason);
    // The decision was taken at 8 of 12 pairs, and so are the figures beside it.
    assert_eq!((cheap.pairs.len(), cheap.cpu_delta.unwrap().pairs), (12, 8));
    let mut rates: Vec<f64> = cheap.pairs[..8].iter().map(|p| p.b.rate_per_s).collect();
    rates.sort_by(f64::total_cmp);
    let middle = f64::midpoint(rates[3], rates[4]);
    assert!((cheap.rate_per_s.unwrap() / middle - 1.0).abs() < 1e-9);
    assert_eq!(outcome(&climbed, "locked"), Outcome::Inconclusive);
    // The lock may be there still.
    assert_eq!(outcome(&climbed, "later"), Outcome::Inconclusive);
    // A difference of nothing would look like a perfect machine.
    assert_eq!((climbed.aa.pairs, climbed.aa.interval()), (0, None));
    assert!(climbed.aa.reason.unwrap().contains("12 of 12 pairs"));
    let lost = climbed.could_not.join("\n");
    assert!(
        lost.contains("too few quiet pairs for the A/A check"),
        "{lost}"
    );
}

#[test]
fn what_cannot_be_set_is_skipped_with_its_reason_and_the_ladder_goes_on() {
    let design = design(vec![step("absent"), step("good")]);
    let mut stage = Simulated::new(8)
        .unavailable("absent", "needs Linux 9.1")
        .effect("good", 1.3);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "absent"), Outcome::Skipped);
    assert!(
        climbed
            .could_not
            .iter()
            .any(|line| line.contains("needs Linux 9.1"))
    );
    assert_eq!(outcome(&climbed, "good"), Outcome::Kept);
}

#[test]
fn a_service_that_dies_with_a_change_reverts_it() {
    let design = design(vec![step("deadly"), step("good")]);
    let mut stage = Simulated::new(9).deadly("deadly").effect("good", 1.3);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "deadly"), Outcome::Reverted);
    assert_eq!(outcome(&climbed, "good"), Outcome::Kept);
}

#[test]
fn a_service_that_dies_once_is_run_again_before_the_change_is_blamed() {
    let climbed = |times| {
        let design = design(vec![step("good")]);
        let mut stage = Simulated::new(23)
            .deadly_after("good", 3, times)
            .effect("good", 1.3);
        run(&design, &mut stage)
    };
    let once = climbed(1);
    let rung = &once.rungs[1];
    assert_eq!(rung.outcome, Outcome::Kept, "{}", rung.reason);
    assert_eq!(rung.pairs[3].again.as_deref(), Some("killed by good"));
    let said = once.could_not.join("\n");
    assert!(said.contains("good: ") && said.contains("killed by good"));
    // A second time it is the change. What was measured before stays with the rung.
    let twice = climbed(2);
    let rung = &twice.rungs[1];
    assert_eq!(rung.outcome, Outcome::Reverted);
    assert!(rung.reason.contains("twice"), "{}", rung.reason);
    assert_eq!(rung.pairs.len(), 3);
    assert!(rung.rate_per_s.is_some() && rung.delta.is_none());
    assert!(twice.could_not.is_empty(), "{:?}", twice.could_not);
}

#[test]
fn also_the_first_pair_of_a_comparison_waits_for_quiet() {
    let mut stage = Simulated::new(24).loud(3);
    let climbed = run(&design(vec![step("good")]), &mut stage);
    assert_eq!(stage.loud, 0);
    let first = &climbed.rungs[0].pairs[0];
    assert!(first.a.at_s.min(first.b.at_s) > 0.35, "{first:?}");
}

#[test]
fn where_rungs_restart_the_service_the_machine_is_checked_with_restarts_too() {
    let mut design = design(vec![step("nothing")]);
    let mut stage = Simulated::new(25);
    run(&design, &mut stage);
    assert_eq!(stage.restarts, 0);
    design.restarts = true;
    let climbed = run(&design, &mut stage);
    // Both halves of every pair of the check, and no half of a rung.
    assert_eq!(stage.restarts, 2 * climbed.rungs[0].pairs.len());
}

#[test]
fn branches_and_limits_never_enter_the_final_configuration() {
    let mut branch = step("burst");
    branch.part = Part::Branch;
    branch.workload = Changes::from(std::collections::BTreeMap::from([(
        "burst".to_owned(),
        16.into(),
    )]));
    branch.label = Some("same-flow bursts".to_owned());
    let mut limit = step("xdp");
    limit.part = Part::Limit;
    let mut seen = step("audit");
    seen.part = Part::Observe {
        note: "one-way until reboot".to_owned(),
    };
    let design = design(vec![branch, limit, seen]);
    let mut stage = Simulated::new(10).effect("burst", 5.0).effect("xdp", 2.0);
    let climbed = run(&design, &mut stage);
    assert_eq!(outcome(&climbed, "burst"), Outcome::Observed);
    assert_eq!(outcome(&climbed, "xdp"), Outcome::Observed);
    assert!(
        climbed
            .rungs
            .iter()
            .find(|rung| rung.id == "xdp")
            .unwrap()
            .delta
            .is_some()
    );
    assert_eq!(outcome(&climbed, "audit"), Outcome::Observed);
    assert!(climbed.kept.is_empty() && climbed.final_variant.settings.is_empty());
}

#[test]
fn a_sign_that_differs_from_the_reference_is_flagged() {
    let mut lost = step("lost");
    lost.reference = Some(Reference {
        rate_per_s: 2e6,
        factor: Some(1.2),
        source: "elsewhere".to_owned(),
    });
    let design = design(vec![lost]);
    let climbed = run(&design, &mut Simulated::new(11).effect("lost", 0.7));
    assert!(climbed.rungs[1].sign_differs);
}

#[test]
fn a_resumed_run_ends_as_the_uninterrupted_one() {
    let steps = vec![step("good"), step("nothing"), step("bad")];
    let design = design(steps);
    let stage = || {
        Simulated::new(12)
            .effect("good", 1.2)
            .effect("bad", 0.9)
            .by_call()
    };
    let whole = run(&design, &mut stage());

    for stop_after in [1, 9, 40, 77] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut climbed = Climbed::default();
        let mut interrupted = stage().interrupt_after(stop_after);
        let mut folder = RunFolder::create(&path, &design).unwrap();
        let end = climb(
            &design,
            &mut interrupted,
            &mut folder,
            &mut Silent,
            &mut climbed,
        );
        assert!(
            matches!(end, Err(Error::Stage(StageError::Interrupted))),
            "{end:?}"
        );
        drop(folder);

        let (mut folder, read) = RunFolder::resume(&path).unwrap();
        assert!(folder.damaged().is_empty());
        let mut climbed = Climbed::default();
        climb(&read, &mut stage(), &mut folder, &mut Silent, &mut climbed).unwrap();
        // Not assert_eq: a ladder is too long to print.
        assert!(
            climbed.rungs == whole.rungs,
            "interrupted after {stop_after} runs"
        );
        assert_eq!(climbed.sentence, whole.sentence);
    }
}

#[test]
fn a_torn_or_damaged_pair_is_measured_again() {
    let design = design(vec![step("good")]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let mut folder = RunFolder::create(&path, &design).unwrap();
    let mut climbed = Climbed::default();
    let mut stage = Simulated::new(13).effect("good", 1.2);
    climb(&design, &mut stage, &mut folder, &mut Silent, &mut climbed).unwrap();
    drop(folder);

    let file = path.join("pairs.jsonl");
    let mut bytes = std::fs::read(&file).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 20;
    bytes[second] = b'#';
    bytes.truncate(bytes.len() - 30);
    std::fs::write(&file, bytes).unwrap();
    let (mut folder, _) = RunFolder::resume(&path).unwrap();
    assert_eq!(folder.damaged().len(), 2, "{:?}", folder.damaged());
    assert!(folder.recorded("aa", 0).is_some());
    assert!(folder.recorded("aa", 1).is_none());
}

#[test]
fn a_bundle_is_compared_with_the_state_before_its_first_member() {
    let figure = |rate_per_s, factor| {
        Some(Reference {
            rate_per_s,
            factor,
            source: "elsewhere".to_owned(),
        })
    };
    let mut rps = step("rps");
    rps.reference = figure(17e3, Some(0.063));
    let mut group = step("group");
    group.reference = figure(2.54e6, Some(149.0));
    let mut steered = step("steered");
    steered.bundle_with = vec!["rps".to_owned()];
    steered.reference = figure(4.25e6, Some(1.673));
    let mut design = design(vec![rps, group, steered]);
    design.start_reference = figure(270e3, None);
    let mut stage = Simulated::new(21).effect("rps", 0.5).effect("group", 0.9);
    let climbed = run(&design, &mut stage);
    let bundle = climbed
        .rungs
        .iter()
        .find(|rung| rung.id == "rps+steered")
        .unwrap();
    let factor = bundle.reference.as_ref().unwrap().factor.unwrap();
    assert!((factor - 4.25e6 / 270e3).abs() < 1e-9, "{factor}");
}
