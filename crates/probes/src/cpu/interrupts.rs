//! Interrupts of devices, their affinity, and inter-processor interrupts.
//!
//! Source: kernel/irq/proc.c, arch/x86/kernel/irq.c, arch/arm64/kernel/smp.c, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::cpulist;
use rungwise_formats::interrupts::{self, Interrupt, Interrupts};
use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::keys;

use super::ownership::{self, INTERRUPTS, Ownership};
use super::unreadable;
use crate::{Cost, Probe, Rate, Source, Window, enter};

const AFFINITY: &str = "/proc/irq/*/smp_affinity_list";
const EFFECTIVE: &str = "/proc/irq/*/effective_affinity_list";
const HINT: &str = "/proc/irq/*/affinity_hint";

/// Virtual devices have no interrupts, and most containers have no other devices.
const ELSEWHERE: &str =
    "in a container or network namespace, run rungwise on the host of its devices";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-interrupts",
    summary: "interrupts by device and CPU, their affinity, and interrupts between CPUs",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::each(INTERRUPTS),
        Source::once(AFFINITY),
        Source::once(EFFECTIVE),
        Source::once(HINT),
        Source::once(ownership::BUS),
        Source::once(ownership::STATE),
        Source::once(ownership::MESSAGES),
        Source::once(ownership::VIRTIO),
    ],
    yields: &[
        &keys::IPI_CALL,
        &keys::IPI_RESCHEDULE,
        &keys::IRQ_AFFINITY,
        &keys::IRQ_BUSIEST_CPU,
        &keys::IRQ_DEVICE,
        &keys::IRQ_EFFECTIVE,
        &keys::IRQ_HINT,
        &keys::IRQ_NAME,
        &keys::IRQ_RATE,
        &keys::IRQ_UNMATCHED,
    ],
    derive,
    doc: "\
The header of `/proc/interrupts` names the CPUs that are online; with one offline the columns shift. An interrupt \
without a handler is not shown at all, so a device that is down has no rows. The effective affinity is the CPU that \
the interrupt controller was last programmed for: after a write to `smp_affinity_list` it changes at the next \
interrupt (measured on 6.18), and managed interrupts reject the write (EIO). A hint of 0 and a hint of all CPUs carry \
no information. Counters have 32 bits and wrap around, which is taken into account; if one went back, because the \
driver requested its interrupts again, that interrupt has no rate. A network device is found by its message-signalled \
interrupts, its PCI address, its virtio device or its name, in that order; devices on USB and on the bus of Hyper-V \
have no rows of their own and do not count as unmatched. RPS also uses function calls between CPUs (`CAL`) to wake \
another CPU; on x86 they include TLB shootdowns. Sources: kernel/irq/proc.c, arch/x86/kernel/irq.c, \
arch/arm64/kernel/smp.c of Linux 6.18; Documentation/core-api/irq/irq-affinity.rst.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples: Vec<Interrupts<'_>> = match window.texts(INTERRUPTS) {
        Ok(texts) => (texts.into_iter())
            .filter_map(|(_, text)| interrupts::parse(text))
            .collect(),
        Err(why) => return evidence.absent(PROBE.yields, &why, INTERRUPTS),
    };
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return evidence.absent(PROBE.yields, &unreadable(INTERRUPTS), INTERRUPTS);
    };
    names(window, last, evidence);
    for (key, pattern, read) in [
        (&keys::IRQ_AFFINITY, AFFINITY, list as fn(&str) -> _),
        (&keys::IRQ_EFFECTIVE, EFFECTIVE, list),
        (&keys::IRQ_HINT, HINT, mask),
    ] {
        settings(window, last, evidence, key, pattern, read);
    }
    let totals = ownership::rates_by(window, |row| Some(row.tag));
    let totals = match totals {
        Ok(totals) => totals,
        Err(why) => {
            let without = [
                &keys::IPI_CALL,
                &keys::IPI_RESCHEDULE,
                &keys::IRQ_BUSIEST_CPU,
                &keys::IRQ_RATE,
            ];
            return evidence.absent(&without, &why, INTERRUPTS);
        }
    };
    of_devices(window.seconds(), (first, last), &totals, evidence);
    for (key, description) in [
        (&keys::IPI_CALL, "Function call interrupts"),
        (&keys::IPI_RESCHEDULE, "Rescheduling interrupts"),
    ] {
        between_cpus(last, &totals, evidence, key, description);
    }
}

/// Interrupts by the text before the colon, or why their number is unknown.
type Totals<'a> = BTreeMap<&'a str, Result<Rate, Absence>>;

fn numbered<'t, 'a>(table: &'t Interrupts<'a>) -> impl Iterator<Item = (u32, &'t Interrupt<'a>)> {
    let rows = table.rows.iter();
    rows.filter_map(|row| Some((row.number?, row)))
}

fn subject(number: u32) -> Subject {
    Subject::new(Kind::Irq, number)
}

fn names(window: &Window<'_>, last: &Interrupts<'_>, evidence: &mut Evidence) {
    let ownership = Ownership::of(window);
    let (mut shown, mut owned) = (false, false);
    for (number, row) in numbered(last) {
        shown = true;
        let origin = || Origin::new(INTERRUPTS, format!("{number}: {} {}", row.chip, row.name));
        evidence.text(&keys::IRQ_NAME, subject(number), row.name, origin());
        if let Some(device) = ownership.owners(row).first() {
            owned = true;
            evidence.text(&keys::IRQ_DEVICE, subject(number), *device, origin());
        }
    }
    if !shown {
        let why = Absence::because("no device has an interrupt here");
        evidence.absent(&[&keys::IRQ_NAME], &why, INTERRUPTS);
    }
    if !owned {
        let why = window.unlisted(ownership::BUS).unwrap_or_else(|| {
            Absence::because("no interrupt could be matched to a network device").remedy(ELSEWHERE)
        });
        evidence.absent(&[&keys::IRQ_DEVICE], &why, INTERRUPTS);
    }
    let matched = ownership.matched(&last.rows);
    if matched.is_empty() {
        let why = window.unlisted(ownership::BUS).unwrap_or_else(|| {
            Absence::because("no network device that is up has hardware of its own")
                .remedy(ELSEWHERE)
        });
        evidence.absent(&[&keys::IRQ_UNMATCHED], &why, ownership::BUS);
    }
    for (device, matched) in matched {
        let line = if matched {
            "an interrupt is its own"
        } else {
            "no interrupt lists it, its address or its name"
        };
        evidence.number(
            &keys::IRQ_UNMATCHED,
            Subject::device(device),
            f64::from(u8::from(!matched)),
            Origin::new(INTERRUPTS, line),
        );
    }
}

/// A file per interrupt. Only interrupts with a handler count: the others have settings too.
fn settings(
    window: &Window<'_>,
    last: &Interrupts<'_>,
    evidence: &mut Evidence,
    key: &'static Key,
    pattern: &str,
    read: fn(&str) -> Option<String>,
) {
    let mut found = false;
    let mut why = Absence::because(format!("this kernel does not show {pattern}"));
    for (number, _) in numbered(last) {
        let path = pattern.replace('*', &number.to_string());
        match window.text(&path) {
            Ok(text) => {
                if let Some(value) = read(text.trim()) {
                    found = true;
                    evidence.text(key, subject(number), value, Origin::new(path, text.trim()));
                }
            }
            // What was not read is not there: the pattern names them all.
            Err(refused) if !refused.remedy.is_empty() => why = refused,
            Err(_) => {}
        }
    }
    if !found {
        evidence.absent(&[key], &why, pattern);
    }
}

/// A list, in the kernel's own way of writing it.
fn list(text: &str) -> Option<String> {
    cpulist::parse(text).map(|cpus| cpulist::format(&cpus))
}

/// A mask as a list; no CPU at all means that the driver proposes none.
fn mask(text: &str) -> Option<String> {
    cpulist::parse_mask(text).map(|cpus| cpulist::format(&cpus))
}

fn of_devices(
    seconds: f64,
    (first, last): (&Interrupts<'_>, &Interrupts<'_>),
    totals: &Totals<'_>,
    evidence: &mut Evidence,
) {
    let began: BTreeMap<&str, &Interrupt<'_>> =
        first.rows.iter().map(|row| (row.tag, row)).collect();
    let (mut found, mut any) = (false, false);
    for (number, row) in numbered(last) {
        let rate = match totals.get(row.tag) {
            Some(Ok(rate)) => rate,
            Some(Err(why)) => {
                for key in [&keys::IRQ_RATE, &keys::IRQ_BUSIEST_CPU] {
                    let origin = Origin::new(INTERRUPTS, format!("{number}: {}", row.name));
                    enter::absent(evidence, key, subject(number), why.clone(), origin);
                }
                continue;
            }
            None => continue,
        };
        found = true;
        let origin = Origin::new(
            INTERRUPTS,
            format!("{number}: {} {}", row.name, rate.line()),
        );
        let series = rate.series.clone();
        evidence.series(&keys::IRQ_RATE, subject(number), rate.per_s, series, origin);
        let before = began.get(row.tag).map_or(&[][..], |row| &row.counts);
        if let Some((cpu, took)) = busiest(&last.cpus, before, &row.counts, seconds) {
            any = true;
            let line = format!("CPU {cpu} took {took} of {}", rate.delta);
            let origin = Origin::new(INTERRUPTS, line);
            evidence.number(&keys::IRQ_BUSIEST_CPU, subject(number), cpu as f64, origin);
        }
    }
    if !found {
        let why = Absence::because("no interrupt of a device existed at both ends of the window");
        evidence.absent(&[&keys::IRQ_RATE], &why, INTERRUPTS);
    }
    if !any {
        let why = Absence::because("no device interrupted during the window");
        evidence.absent(&[&keys::IRQ_BUSIEST_CPU], &why, INTERRUPTS);
    }
}

/// The CPU with the most growth, and how much; the lowest of several. `None` if nothing grew.
fn busiest(cpus: &[usize], before: &[u64], after: &[u64], seconds: f64) -> Option<(usize, u64)> {
    let ends = before.iter().zip(after);
    cpus.iter()
        .zip(ends)
        .filter_map(|(cpu, (began, ended))| {
            Some((*cpu, ownership::grown(*began, *ended, seconds)?))
        })
        .filter(|(_, grown)| *grown > 0)
        .max_by_key(|(cpu, grown)| (*grown, std::cmp::Reverse(*cpu)))
}

fn between_cpus(
    last: &Interrupts<'_>,
    totals: &Totals<'_>,
    evidence: &mut Evidence,
    key: &'static Key,
    description: &str,
) {
    let row = last.rows.iter().find(|row| row.name == description);
    match row.and_then(|row| totals.get_key_value(row.tag)) {
        Some((tag, Ok(rate))) => {
            let origin = Origin::new(INTERRUPTS, format!("{tag} {}", rate.line()));
            let series = rate.series.clone();
            evidence.series(key, Subject::host(), rate.per_s, series, origin);
        }
        Some((_, Err(why))) => evidence.absent(&[key], why, INTERRUPTS),
        None => {
            let why = Absence::because(format!("{INTERRUPTS} has no row '{description}'"));
            evidence.absent(&[key], &why, INTERRUPTS);
        }
    }
}
