//! `/proc/pressure`: the share of time in which tasks were stalled on CPU, disk or memory.
//!
//! The `total` counters give the share of the window itself, exact to the microsecond; the averages that the kernel
//! prints include time before it, and are used only with a single sample. Source: kernel/sched/psi.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::pressure::{self, Stall};
use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const CPU: &str = "/proc/pressure/cpu";
const IO: &str = "/proc/pressure/io";
const MEMORY: &str = "/proc/pressure/memory";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pressure",
    summary: "time lost waiting for CPU, disk or memory (PSI)",
    cost: Cost::Free,
    needs: &[],
    sources: &[Source::each(CPU), Source::each(IO), Source::each(MEMORY)],
    yields: &[
        &keys::PSI_CPU_SOME,
        &keys::PSI_IO_FULL,
        &keys::PSI_IO_SOME,
        &keys::PSI_MEMORY_FULL,
        &keys::PSI_MEMORY_SOME,
    ],
    derive,
    doc: "\
One waiting task counts as much as a hundred: `some` of the CPU near 100 % means that at least one task always waited, \
not for how long. Run delay by thread shows that. The files describe the whole machine, also when read in a container. \
Kernels with `CONFIG_PSI_DEFAULT_DISABLED` have them only when booted with `psi=1`. Sources: kernel/sched/psi.c of \
Linux 6.18; Documentation/accounting/psi.rst.",
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Some,
    Full,
}

const FILES: &[(&str, &[(Line, &Key)])] = &[
    (CPU, &[(Line::Some, &keys::PSI_CPU_SOME)]),
    (
        IO,
        &[
            (Line::Some, &keys::PSI_IO_SOME),
            (Line::Full, &keys::PSI_IO_FULL),
        ],
    ),
    (
        MEMORY,
        &[
            (Line::Some, &keys::PSI_MEMORY_SOME),
            (Line::Full, &keys::PSI_MEMORY_FULL),
        ],
    ),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (path, lines) in FILES {
        let text = match window.text(path) {
            Ok(text) => text,
            Err(why) => {
                let why = if why.remedy.is_empty() {
                    why.remedy("boot with psi=1 if the kernel was built with CONFIG_PSI")
                } else {
                    why
                };
                for (_, key) in *lines {
                    evidence.absent(&[key], &why, path);
                }
                continue;
            }
        };
        let rates = window.rates(path, totals).unwrap_or_default();
        for (line, key) in *lines {
            match (rates.get(line), stall(text, *line)) {
                // Microseconds of stall per second of the window.
                (Some(rate), _) => {
                    let name = format!("{} total us", line.name());
                    let subject = Subject::host();
                    enter::share(evidence, key, subject, (rate, 1e-6), (path, &name));
                }
                (None, Some(stall)) => {
                    let origin = Origin::new(*path, text.trim());
                    evidence.number(key, Subject::host(), stall.avg10, origin);
                }
                (None, None) => {
                    let why = Absence::because(format!("{path} lacks it"));
                    evidence.absent(&[key], &why, path);
                }
            }
        }
    }
}

impl Line {
    fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }
}

fn totals(text: &str) -> BTreeMap<Line, f64> {
    [Line::Some, Line::Full]
        .into_iter()
        .filter_map(|line| Some((line, stall(text, line)?.total_us as f64)))
        .collect()
}

fn stall(text: &str, line: Line) -> Option<Stall> {
    let pressure = pressure::parse(text)?;
    match line {
        Line::Some => Some(pressure.some),
        Line::Full => pressure.full,
    }
}
