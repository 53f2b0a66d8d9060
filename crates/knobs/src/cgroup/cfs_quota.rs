//! How much CPU a control group may use: a quota of time in each period.
//!
//! Version 2 has both in `cpu.max` ("200000 100000", "max 100000"), version 1 in two files, where a quota of -1 means
//! no limit. The period is never changed.

use crate::Result;
use crate::cgroup::{absent, file};
use crate::edit::Place;
use crate::knob::{Context, Current, Doc, Draft, Knob, PUT_BACK, Reading, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `cpu.cfs_quota`
pub(crate) static KNOB: Knob = Knob {
    id: "cpu.cfs_quota",
    scope: Scope::Cgroup,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "CPU time quota of a control group, in CPUs",
    values: "a number of CPUs such as 4 or 2.5, or none for no limit",
    doc: Doc {
        does: "In each period (usually 100 ms) the group's threads share the quota of CPU time; once it is used up, \
               the kernel throttles all of them until the next period.",
        helps: "When nr_throttled grows above 1 % of the periods while the host has idle CPU: threads wait although \
                CPUs are free.",
        costs: "The group takes CPU time that others on the host may count on. The orchestrator that set the quota may \
                set it again.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst (Linux).",
    },
    by_hand: &[],
    writes: &[
        Target::File("/sys/fs/cgroup/**/cpu.max", Form::Quota),
        Target::File("/sys/fs/cgroup/**/cpu.cfs_quota_us", Form::Words),
    ],
    turn: Turn::Own { read, draft },
};

/// The limit of a group, from either version.
struct Limit {
    readings: Vec<Reading>,
    /// Microseconds in each period; absent without a limit.
    quota: Option<u64>,
    period: u64,
    /// Both numbers are in the first file.
    unified: bool,
}

fn limit(context: &Context<'_>) -> Result<Limit> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    if let Some(path) = file(&KNOB, context, "cpu.max")? {
        let reading = context.read_machine(&KNOB, &path)?;
        let mut words = reading.value.split_whitespace();
        let quota = words.next().and_then(number);
        let period = words.next().and_then(number).unwrap_or(100_000);
        return Ok(Limit {
            readings: vec![reading],
            quota,
            period,
            unified: true,
        });
    }
    let Some(path) = file(&KNOB, context, "cpu.cfs_quota_us")? else {
        return Err(absent(&KNOB, context, "cpu.max or cpu.cfs_quota_us"));
    };
    let reading = context.read_machine(&KNOB, &path)?;
    // Only read, so it is no target of the knob.
    let beside = path.replace("cpu.cfs_quota_us", "cpu.cfs_period_us");
    let period = context.read_machine(&KNOB, &beside)?;
    Ok(Limit {
        quota: number(&reading.value),
        period: number(&period.value).unwrap_or(100_000),
        readings: vec![reading, period],
        unified: false,
    })
}

fn read(context: &Context<'_>) -> Result<Current> {
    let found = limit(context)?;
    let value = match found.quota {
        None => "none".to_owned(),
        Some(quota) => (quota as f64 / found.period as f64).to_string(),
    };
    Ok(Current::known(value, found.readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let found = limit(context)?;
    let quota = match wish {
        "none" => None,
        cpus => {
            let cpus: f64 = cpus
                .parse()
                .map_err(|_| KNOB.bad_wish(wish, "it is neither none nor a number of CPUs"))?;
            // The kernel's least quota is 1 ms; 8192 CPUs are beyond any machine.
            let quota = (cpus * found.period as f64).round();
            if !(1000.0..=8192.0 * found.period as f64).contains(&quota) {
                return Err(KNOB.bad_wish(wish, "it is not between 1 ms per period and 8192 CPUs"));
            }
            Some(quota as u64)
        }
    };
    let value = match (found.unified, quota) {
        (true, Some(quota)) => format!("{quota} {}", found.period),
        (true, None) => format!("max {}", found.period),
        (false, Some(quota)) => quota.to_string(),
        (false, None) => "-1".to_owned(),
    };
    Ok(Draft::default().file(&Place::Host, found.readings[0].source.clone(), &value))
}
