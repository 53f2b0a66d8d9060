//! Documents that people keep and give back: a plan to apply, the report of a check to plan from, that of a load to judge beside.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rungwise_host::recorded::Recorded;
use rungwise_knobs::edit::Places;
use rungwise_knobs::engine::Keeper;
use rungwise_knobs::journal::{Header, Log, VERSION};
use rungwise_knobs::{Plan, find};
use rungwise_model::check::CheckReport;
use rungwise_model::load::{GeneratorReport, LoadReport};
use serde_json::Value;

/// Any JSON document. Of a plan that is carried out, each edit is one that its knob may make, and the undo is complete.
pub fn stored(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    if let Ok(report) = serde_json::from_value::<LoadReport>(document.clone()) {
        let _ = GeneratorReport::from(&report.measurement);
    }
    let plans = document.get("plans").and_then(Value::as_array);
    for plan in plans.into_iter().flatten() {
        if let Ok(plan) = serde_json::from_value::<Plan>(plan.clone()) {
            applied(&plan);
        }
    }
    if let Ok(report) = serde_json::from_value::<CheckReport>(document) {
        let text = serde_json::to_value(&report).expect("what was read can be written");
        assert_eq!(
            serde_json::from_value::<CheckReport>(text).ok(),
            Some(report)
        );
    }
}

fn applied(plan: &Plan) {
    let machine = Arc::new(machine());
    let before = machine.snapshot();
    let places = Places::host(machine.clone());
    let mut keeper =
        Keeper::begin(Memory, PathBuf::from("journal"), header()).expect("memory takes all");
    if keeper.apply(&places, plan).is_ok() {
        let knob = find(&plan.knob).expect("a knob that nobody knows was turned");
        for planned in &plan.edits {
            assert!(
                knob.may_write(&planned.place, &planned.edit),
                "{} wrote {planned:?}",
                plan.knob
            );
        }
        let undo = keeper.undo(&places, None);
        assert!(undo.complete(), "{}", undo.left_in_words());
    }
    assert_eq!(machine.snapshot(), before);
}

/// The files that the seeds name.
fn machine() -> Recorded {
    Recorded::new("a machine", 1)
        .file(
            "/proc/sys/kernel/random/boot_id",
            "6a3f1f0e-0000-4000-8000-000000000001",
        )
        .file("/proc/sys/net/core/netdev_max_backlog", "1000")
        .file("/proc/sys/net/core/netdev_tstamp_prequeue", "1")
        .file("/proc/sys/vm/swappiness", "60")
}

/// A journal that is not looked at.
struct Memory;

impl Log for Memory {
    fn append(&mut self, _: &[u8], _: bool) -> io::Result<()> {
        Ok(())
    }
}

fn header() -> Header {
    Header {
        version: VERSION,
        tool: String::new(),
        boot_id: "6a3f1f0e-0000-4000-8000-000000000001".to_owned(),
        pid: 1,
        started_ticks: 1,
        command: Vec::new(),
        created: String::new(),
        purpose: String::new(),
    }
}
