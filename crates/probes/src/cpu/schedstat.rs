//! How long tasks waited for each CPU: `/proc/schedstat`, if the kernel has it.
//!
//! It contains for all tasks of the machine what `/proc/PID/task/TID/schedstat` contains for one. Source:
//! kernel/sched/stats.c and kernel/sched/stats.h (`sched_info_arrive`), Linux 6.18.

use rungwise_formats::schedstat::{self, RunQueue};
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::unreadable;
use crate::{Cost, Probe, Rate, Source, Window, enter};

const SCHEDSTAT: &str = "/proc/schedstat";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-schedstat",
    summary: "how long tasks waited for each CPU",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[Source::ends(SCHEDSTAT)],
    yields: &[&keys::CPU_RUN_DELAY, &keys::CPU_RUN_WAIT],
    derive,
    doc: "\
Nanoseconds that tasks ran on a CPU, nanoseconds that they waited in its run queue, and the number of timeslices, \
counted by the scheduler regardless of kernel.sched_schedstats. The file exists only with CONFIG_SCHEDSTATS, which \
most distributions set and many small guests do not; without it, the threads of a given process (--pid) still have \
their own schedstat. Waits of tasks that wait at the same time add up, and a task throttled by its quota counts as \
waiting. A task that migrates while it waits is counted on the CPU where it runs. Sources: kernel/sched/stats.c of \
Linux 6.18; Documentation/scheduler/sched-stats.rst.",
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Ran,
    Waited,
    Slices,
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Err(why) = window.text(SCHEDSTAT) {
        return evidence.absent(PROBE.yields, &without(why), SCHEDSTAT);
    }
    let rates = window.rates(SCHEDSTAT, |text| {
        let cpus = schedstat::parse(text).unwrap_or_default().into_iter();
        let columns = |(cpu, row): (usize, RunQueue)| {
            [
                ((cpu, Column::Ran), row.ran_ns as f64),
                ((cpu, Column::Waited), row.waited_ns as f64),
                ((cpu, Column::Slices), row.slices as f64),
            ]
        };
        cpus.flat_map(columns).collect()
    });
    let rates = match rates {
        Ok(rates) if !rates.is_empty() => rates,
        Ok(_) => return evidence.absent(PROBE.yields, &unreadable(SCHEDSTAT), SCHEDSTAT),
        Err(why) => return evidence.absent(PROBE.yields, &why, SCHEDSTAT),
    };
    for ((cpu, column), waited) in &rates {
        let of = |column| rates.get(&(*cpu, column));
        if *column == Column::Waited
            && let (Some(ran), Some(slices)) = (of(Column::Ran), of(Column::Slices))
        {
            tell(evidence, *cpu, ran, waited, slices);
        }
    }
    let none = Absence::because("no CPU was online over the whole window");
    enter::absent_if_unset(evidence, PROBE.yields, &none, SCHEDSTAT);
}

fn tell(evidence: &mut Evidence, cpu: usize, ran: &Rate, waited: &Rate, slices: &Rate) {
    let line = format!(
        "cpu{cpu}: ran ns {}; waited ns {}; timeslices {}",
        ran.line(),
        waited.line(),
        slices.line()
    );
    let origin = || Origin::new(SCHEDSTAT, line.clone());
    let both = ran.delta + waited.delta;
    // On an idle CPU no task waited.
    let share = if both > 0.0 { waited.delta / both } else { 0.0 };
    evidence.number(&keys::CPU_RUN_DELAY, Subject::cpu(cpu), share, origin());
    let each = if slices.delta > 0.0 {
        Ok(waited.delta / slices.delta / 1e9)
    } else {
        Err(Absence::because("no task got this CPU in the window"))
    };
    let key = &keys::CPU_RUN_WAIT;
    enter::number(evidence, key, Subject::cpu(cpu), each, origin());
}

/// Why the file is missing, and the alternative.
fn without(why: Absence) -> Absence {
    if why.reason.starts_with("this kernel has no") {
        return Absence::because(format!(
            "this kernel has no {SCHEDSTAT} (CONFIG_SCHEDSTATS)"
        ))
        .remedy("pass a process to read its threads: --pid PID");
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    fn evidence_of(texts: [Raw; 2]) -> Evidence {
        let moments = texts
            .into_iter()
            .zip([0.0, 10.0])
            .map(|(raw, at_s)| Moment {
                at_s,
                files: [
                    (SCHEDSTAT.to_owned(), raw),
                    ("/proc/stat".to_owned(), Raw::Text(String::new())),
                ]
                .into(),
                ..Moment::default()
            });
        let capture = Capture {
            moments: moments.collect(),
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    #[test]
    fn a_cpu_tells_how_long_its_tasks_waited_and_an_idle_one_that_none_did() {
        let sample = |ran: u64, waited: u64, slices: u64| {
            Raw::Text(format!(
                "version 15\ncpu0 0 0 0 0 0 0 {ran} {waited} {slices}\ncpu1 0 0 0 0 0 0 5 5 5\n"
            ))
        };
        let evidence = evidence_of([
            sample(100, 50, 7),
            sample(6_000_000_100, 2_000_000_050, 1_007),
        ]);
        let number = |key, cpu| evidence.quantity(key, &Subject::cpu(cpu));
        let share = number(&keys::CPU_RUN_DELAY, 0).unwrap().value;
        assert!((share - 0.25).abs() < 1e-9, "{share}");
        let each = number(&keys::CPU_RUN_WAIT, 0).unwrap().value;
        assert!((each - 0.002).abs() < 1e-12, "{each}");
        assert!(number(&keys::CPU_RUN_DELAY, 1).unwrap().value.abs() < 1e-9);
        let none = number(&keys::CPU_RUN_WAIT, 1).unwrap_err();
        assert!(none.why.reason.contains("no task"), "{}", none.why.reason);
    }

    #[test]
    fn a_kernel_without_the_file_says_which_option_brings_it() {
        let gone = || Raw::Failed {
            failed: "ENOENT".to_owned(),
        };
        let evidence = evidence_of([gone(), gone()]);
        let missing = evidence.missing(&keys::CPU_RUN_DELAY, &Subject::host());
        assert!(missing.why.reason.contains("CONFIG_SCHEDSTATS"));
        assert!(missing.why.remedy.contains("--pid"));
    }
}
