//! Ladders that find their rungs by the rules themselves, from captures that were recorded (`tests/captures/README.md`). What a
//! change brings is simulated.

use std::path::{Path, PathBuf};

use rungwise_experiment::design::{Auto, Design};
use rungwise_experiment::ladder::{Climbed, climb};
use rungwise_experiment::record::Forget;
use rungwise_experiment::stage::{Sample, Stage, StageError, Variant};
use rungwise_model::load::{ClientHealth, GeneratorReport};
use rungwise_model::tune::{Outcome, Rung, Verdict};
use rungwise_probes::{Capture, bundle, load_report};

use crate::Silent;
use crate::simulated::Simulated;

const REUSEPORT: &str = "sock.reuseport";
const STEERED: &str = "sock.reuseport_bpf";
const PINNED: &str = "cpu.pin_threads";

/// The capture with these settings in force.
fn capture_path(variant: &Variant) -> PathBuf {
    let on = |knob: &str| variant.settings.keys().any(|setting| setting.knob == knob);
    let file = match (on(REUSEPORT), on(STEERED), on(PINNED)) {
        (false, false, false) => "../../cases/guest-2cpu-udp/host.rungwise",
        (true, false, false) => "tests/captures/reuseport.rungwise",
        (true, true, false) => "tests/captures/reuseport-steered.rungwise",
        (true, true, true) => "tests/captures/reuseport-steered-pinned.rungwise",
        _ => panic!("nobody recorded {variant:?}"),
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Simulated runs beside recorded captures.
struct Recorded {
    runs: Simulated,
    /// What the generator reports in captures with this in force; in others what was recorded.
    client: Option<(&'static str, ClientHealth)>,
}

impl Stage for Recorded {
    fn try_out(&mut self, variant: &Variant) -> Result<(), StageError> {
        self.runs.try_out(variant)
    }

    fn run(&mut self, variant: &Variant, seed: u64) -> Result<Sample, StageError> {
        self.runs.run(variant, seed)
    }

    fn restart(&mut self) -> Result<(), StageError> {
        self.runs.restart()
    }

    fn capture(&mut self, variant: &Variant, _: f64, _: u64) -> Result<Capture, StageError> {
        let mut capture = bundle::read(&capture_path(variant)).unwrap();
        if let Some((knob, client)) = &self.client
            && variant.settings.keys().any(|setting| setting.knob == *knob)
        {
            let report = GeneratorReport {
                achieved_per_s: Some(20_000.0),
                received: 160_000,
                client: Some(client.clone()),
                ..GeneratorReport::default()
            };
            load_report::put(&mut capture, report);
        }
        Ok(capture)
    }

    fn foreign_now(&mut self) -> Result<f64, StageError> {
        self.runs.foreign_now()
    }

    fn elapsed_s(&self) -> f64 {
        self.runs.elapsed_s()
    }
}

/// The switches of `labs/udp-echo-auto` that matter here.
fn design() -> Design {
    let switches = [
        (PINNED, ["off", "on"]),
        (REUSEPORT, ["off", "on"]),
        (STEERED, ["off", "cbpf"]),
    ];
    let auto = Auto {
        max_rungs: 8,
        capture_s: 8.0,
        disruptive: false,
        on_this_host: false,
        switches: switches
            .into_iter()
            .map(|(knob, values)| (knob.to_owned(), values.map(str::to_owned).to_vec()))
            .collect(),
        java: false,
        device: Some("rw-server".to_owned()),
    };
    let mut design = crate::design(Vec::new());
    design.judging.comparisons = auto.comparisons();
    design.auto = Some(auto);
    design
}

fn climbed(runs: Simulated, client: Option<(&'static str, ClientHealth)>) -> Climbed {
    let mut climbed = Climbed::default();
    let mut stage = Recorded { runs, client };
    climb(
        &design(),
        &mut stage,
        &mut Forget,
        &mut Silent,
        &mut climbed,
    )
    .unwrap();
    climbed
}

/// Rows that were tried, without those that are only listed.
fn tried(climbed: &Climbed) -> Vec<&Rung> {
    let rungs = climbed.rungs.iter();
    rungs
        .filter(|rung| rung.outcome != Outcome::Observed)
        .collect()
}

const ALONE: &str = "sock.reuseport=on";
const BUNDLE: &str = "sock.reuseport=on+sock.reuseport_bpf=cbpf+cpu.pin_threads=on";

#[test]
fn a_kept_bundle_is_tried_without_its_members_and_no_member_is_asked_for_again() {
    // Steering and pinning help only together, as on the machine.
    let climbed = climbed(Simulated::new(51).pair_effect(STEERED, PINNED, 1.8), None);
    let rows = tried(&climbed);
    let ids: Vec<&str> = rows.iter().map(|rung| rung.id.as_str()).collect();
    let without = |member: &str| format!("{BUNDLE}-{member}");
    let pin = without("cpu.pin_threads=on");
    let steer = without("sock.reuseport_bpf=cbpf");
    assert_eq!(ids, [ALONE, BUNDLE, &pin, &steer]);
    assert_eq!(climbed.kept, [BUNDLE]);
    // These two rows take something out: no finding asked for that.
    let asked: Vec<bool> = rows.iter().map(|rung| rung.asked.is_some()).collect();
    assert_eq!(asked, [true, true, false, false]);
    assert_eq!(climbed.verdict, Some(Verdict::Better));
}

#[test]
fn a_finding_that_wishes_for_what_holds_and_for_what_was_taken_out_brings_no_rung() {
    // Pinning costs, so it is taken out; the finding then asks for both members again.
    let runs = Simulated::new(52)
        .pair_effect(REUSEPORT, STEERED, 1.8)
        .effect(PINNED, 0.8);
    let climbed = climbed(runs, None);
    let ids: Vec<&str> = tried(&climbed)
        .iter()
        .map(|rung| rung.id.as_str())
        .collect();
    assert_eq!(ids.len(), 4, "{ids:?}");
    let settings: Vec<&str> = climbed
        .final_variant
        .settings
        .keys()
        .map(|setting| setting.knob.as_str())
        .collect();
    assert_eq!(settings, [REUSEPORT, STEERED]);
}

#[test]
fn a_full_generator_beside_a_service_with_room_ends_the_ladder() {
    let full = ClientHealth {
        busy: Some(0.99),
        saturated: true,
        server_busy: Some(0.4),
        shared_idle: Some(0.3),
        ..ClientHealth::default()
    };
    let runs = Simulated::new(53).effect(REUSEPORT, 1.4);
    let climbed = climbed(runs, Some((REUSEPORT, full)));
    let ids: Vec<&str> = tried(&climbed)
        .iter()
        .map(|rung| rung.id.as_str())
        .collect();
    assert_eq!(ids, [ALONE]);
    assert_eq!(climbed.kept, [ALONE]);
    let because = "Nothing further was tried, because the load generator was the limit, not the service: its threads never \
                   waited (99 % of the window) while the service used 40 % of its CPUs";
    assert!(climbed.sentence.contains(because), "{}", climbed.sentence);
}

#[test]
fn a_generator_that_shares_full_cpus_with_the_service_ends_nothing() {
    let shared = ClientHealth {
        busy: Some(0.99),
        saturated: true,
        server_busy: Some(0.5),
        shared_idle: Some(0.01),
        ..ClientHealth::default()
    };
    let runs = Simulated::new(54).pair_effect(STEERED, PINNED, 1.8);
    let climbed = climbed(runs, Some((REUSEPORT, shared)));
    assert_eq!(climbed.kept, [BUNDLE]);
    assert_eq!(climbed.client_limit, None);
}
