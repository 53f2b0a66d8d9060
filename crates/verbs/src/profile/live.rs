//! A profile of a running process.

use std::time::Duration;

use rungwise_host::live::Live;
use rungwise_host::process::Attached;
use rungwise_host::{Host as _, clock};
use rungwise_model::profile::Unit;
use rungwise_model::{Exit, units};
use rungwise_profile::{Profiler, What};

use super::{Loaded, Request, Wanted};
use crate::Invocation;
use crate::problem::Problem;

/// Enough for intervals of a few percentage points on one busy CPU: 1000 samples.
const WINDOW: Duration = Duration::from_secs(10);
/// Out of step with what happens 100 times a second.
const HZ: u32 = 99;
/// Between two checks of the process.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Samples the process until the window, the process, or the patience of the user ends.
pub(super) fn record(
    pid: u32,
    request: &Request,
    invocation: &Invocation<'_>,
) -> anyhow::Result<(Loaded, Exit)> {
    let (window, hz) = (request.window.unwrap_or(WINDOW), request.hz.unwrap_or(HZ));
    let wanted = request.event.unwrap_or(Wanted::Cpu);
    let what = match wanted {
        Wanted::Cpu => Some(What::Cpu { hz }),
        Wanted::OffCpu => Some(What::OffCpu),
        Wanted::Wall | Wanted::Alloc | Wanted::Lock => None,
    };
    let Some(what) = what else {
        let error = anyhow::anyhow!(
            "cannot profile --event {} of a running process: live profiles have cpu and off-cpu; record pid {pid} with async-profiler or Flight \
             Recorder and read that file: rungwise profile FILE",
            wanted.name()
        );
        return Err(Problem::with(Exit::Usage, error));
    };
    anyhow::ensure!(
        what != What::OffCpu || request.hz.is_none(),
        "cannot use --hz with --event off-cpu: each wait is measured, and nothing is sampled; remove --hz"
    );
    let refused = |error: anyhow::Error| Problem::with(Exit::Precondition, error);
    is_process(pid).map_err(refused)?;
    let process = Attached::attach(pid).map_err(|error| refused(error.into()))?;
    let interrupt = invocation.interrupt()?;
    let profiler = Profiler::start(pid, what).map_err(|error| refused(error.into()))?;
    invocation.say(&format!(
        "profiling pid {pid} for {} ...",
        units::written(window)
    ));
    let began = clock::now();
    let mut is_over = false;
    while !is_over && process.alive() {
        let left = window.saturating_sub(began.elapsed());
        is_over = left.is_zero() || interrupt.wait(left.min(LOOK_EVERY))?;
    }
    let took = units::written(Duration::from_millis(began.elapsed().as_millis() as u64));
    let profiled = profiler.stop().map_err(|error| refused(error.into()))?;
    let mut notes = profiled.notes;
    let is_interrupted = interrupt.raised();
    if is_interrupted {
        notes.insert(
            0,
            format!(
                "interrupted after {took} of {}: the profile is of that time",
                units::written(window)
            ),
        );
    } else if !is_over {
        notes.insert(
            0,
            format!(
                "pid {pid} ended after {took} of {}: the profile is of that time",
                units::written(window)
            ),
        );
    }
    if profiled.samples == 0 {
        let error = match what {
            What::Cpu { .. } => anyhow::anyhow!(
                "cannot profile pid {pid}: it did not run on a CPU when it was sampled, {hz} times a second for {took}; put load on it, use a \
                 longer --for, or see where it waits: --event off-cpu"
            ),
            What::OffCpu => anyhow::anyhow!(
                "cannot profile pid {pid}: none of its threads was blocked in {took}; see where it runs: --event cpu"
            ),
        };
        let exit = if is_interrupted {
            Exit::Interrupted
        } else {
            Exit::Precondition
        };
        return Err(Problem::with(exit, error));
    }
    let exit = if is_interrupted {
        Exit::Interrupted
    } else {
        Exit::Done
    };
    let (source, unit) = match what {
        What::Cpu { hz } => (format!("cpu-clock, {hz} Hz"), Unit::Samples),
        What::OffCpu => ("sched:sched_switch".to_owned(), Unit::Ns),
    };
    let loaded = Loaded {
        format: "live",
        event: wanted.event(),
        source: Some(format!("{source}; {}", profiled.followed)),
        unit,
        samples: Some(profiled.samples),
        notes,
        stacks: profiled.stacks,
    };
    Ok((loaded, exit))
}

/// The number of a thread has a folder in `/proc` too.
fn is_process(pid: u32) -> anyhow::Result<()> {
    let status = Live
        .text(format!("/proc/{pid}/status").as_ref())
        .unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let group = group.and_then(|group| group.trim().parse::<u32>().ok());
    match group {
        Some(group) if group != pid => anyhow::bail!(
            "cannot profile process {pid}: it is a thread of process {group}; pass --pid {group}, whose profile has all its threads"
        ),
        Some(_) => Ok(()),
        None => anyhow::bail!(
            "cannot profile process {pid}: there is none of this number; give the pid of a running process (`pgrep -a NAME` lists them)"
        ),
    }
}
