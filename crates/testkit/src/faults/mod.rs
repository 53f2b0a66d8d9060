//! Planted faults: a namespace with one sickness each, for `check` to find.
//!
//! A fault is data and one function that plants it. It says which rules must speak, and of which others a word
//! is no lie (a CPU that takes all packets drops some, too); every other rule must stay silent. What is planted
//! lives in namespaces, threads and processes of ours, bounded by the life of [`Planted`]: dropping it ends all
//! of it. What two CPUs or this kernel cannot show is in the list as well, with the reason and with what is
//! judged in its place, so that a hole is seen and not forgotten.

mod advice;
mod cpu;
mod disk;
mod group;
mod lab;
mod path;
mod process;
mod room;
mod steering;
mod tcp;
mod traffic;
mod udp;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use rungwise_model::check::Outcome;

pub use advice::{By, CURES, Cure, UNAPPLIED, Unapplied};
pub use lab::Planted;

/// Why a fault could not be planted, in words for whoever runs the tests.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One sickness and what is to be said of it.
#[derive(Debug)]
pub struct Fault {
    /// Names what is planted.
    pub id: &'static str,
    /// How, in one or two sentences.
    pub planted: &'static str,
    /// Findings that must be there.
    pub speaks: &'static [Says],
    /// Rules that may act as well, and why that is no false alarm.
    pub may: &'static [(&'static str, &'static str)],
    /// How to get there.
    pub how: How,
}

/// A finding that a fault must bring.
#[derive(Clone, Copy, Debug)]
pub struct Says {
    /// Its rule.
    pub rule: &'static str,
    /// Act where something is to be done about it, watch where the rule itself knows nothing to do.
    pub outcome: Outcome,
    /// What is sick: `cpu/0`. A `*` stands for anything, `PID` for the process that suffers.
    pub about: &'static str,
    /// Watch will do where tasks wait for a CPU, as noise-gate tells: the rule then holds that against itself.
    pub less_in_noise: bool,
    /// It is the first finding of the report.
    pub first: bool,
}

const fn acts(rule: &'static str, about: &'static str) -> Says {
    Says {
        rule,
        outcome: Outcome::Act,
        about,
        less_in_noise: false,
        first: false,
    }
}

const fn watches(rule: &'static str, about: &'static str) -> Says {
    Says {
        outcome: Outcome::Watch,
        ..acts(rule, about)
    }
}

impl Says {
    /// It says this of this subject; `pid` is the process that suffers.
    pub fn is(&self, outcome: Outcome, subject: &str, pid: Option<u32>) -> bool {
        let about = pid.map_or_else(
            || self.about.to_owned(),
            |pid| self.about.replace("PID", &pid.to_string()),
        );
        let same = match about.split_once('*') {
            None => subject == about,
            Some((begins, ends)) => subject
                .strip_prefix(begins)
                .is_some_and(|rest| rest.ends_with(ends)),
        };
        outcome == self.outcome && same
    }
}

/// Whether a machine with two CPUs can have it.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Planted by this, which is given the program to test.
    Here(fn(&Path) -> Result<Planted>),
    /// Not here.
    Elsewhere {
        /// What is missing.
        why: &'static str,
        /// Recorded evidence that is judged instead, from the top of the checkout.
        judged: &'static str,
    },
}

/// All of them; the healthy one first, then by what is sick.
pub const FAULTS: &[Fault] = &[
    udp::HEALTHY,
    udp::TINY_BUFFER,
    udp::BURST,
    udp::SLOW_READER,
    udp::SHARED_SOCKET,
    udp::FOUGHT_FOR_SOCKET,
    udp::UNEVEN_GROUP,
    tcp::SLOW_READER,
    tcp::WRITE_QUEUE,
    tcp::SMALL_SEND_BUFFER,
    tcp::FULL_ACCEPT_QUEUE,
    tcp::DELAYED_ACK,
    tcp::HELD_BACK,
    steering::ONE_CPU,
    steering::ONE_CPU_GROUP,
    steering::BACKLOG,
    steering::MANY_RULES,
    steering::SOURCE_CHECK,
    steering::FULL_CONNTRACK,
    steering::FLOOD_ELSEWHERE,
    path::SHAPED_TCP,
    path::SHAPED_UDP,
    path::SHORT_QUEUE,
    path::BLACK_HOLE,
    path::CLOSED_BLACK_HOLE,
    path::GONE_PEERS,
    path::FULL_NEIGHBOURS,
    path::SILENT_NEIGHBOURS,
    path::ASYMMETRIC,
    path::RATE_LIMIT,
    path::UNREAD_CLOSE,
    path::NO_LISTENER,
    path::REORDERING,
    cpu::QUOTA,
    cpu::NEIGHBOUR,
    cpu::AFFINITY,
    cpu::NOISE,
    cpu::STEAL,
    group::QUOTA_ABOVE,
    group::FROZEN,
    group::PIDS,
    group::WEIGHT,
    group::MEMORY,
    group::KILLED,
    group::IO,
    disk::SLOW,
    disk::OTHERS,
    disk::QUEUE,
    room::FULL,
    room::PRIVATE,
    room::INODES,
    room::USER_TASKS,
    room::ERRORS,
    process::HEALTHY,
    process::ONE_THREAD,
    process::TURNS,
    process::STOPPED,
    process::TRACED,
    process::LOW,
    process::FORKS,
    process::DESCRIPTORS,
    process::LOCK,
    process::ROW,
    process::UPSTREAM,
    process::SILENT,
    process::UNIX,
    process::UNIX_STOPPED,
    process::UNIX_DEAD,
    process::RESTARTS,
    process::RESOLVER,
    process::RESOLVER_LATE,
    process::HUNG,
];

/// The page of `docs/`: rule by fault, and how each fault is planted.
pub fn page() -> String {
    let mut page = String::from(
        "# Planted faults\n\n\
         Written by `RUNGWISE_WRITE=1 cargo test -p rungwise --test planted` from `crates/testkit/src/faults`.\n\n\
         Each fault is planted in a network namespace, under traffic of a few seconds, and `rungwise check` is run\n\
         in it. The test fails unless every rule marked **x** acts, and every rule marked **w** watches, on the subject\n\
         that is named below, and no other rule of the topics net, device, tcp and cpu acts, but those marked (x), for\n\
         the reason given there. Rules about memory, disks, firmware and the hypervisor read the whole machine, which\n\
         the fault does not own: they are not held against it. An r is judged on recorded evidence, because the fault\n\
         cannot be had here.\n\
         What others do on the machine can hide a fault, so each is planted up to three times.\n\n",
    );
    let mut rules: Vec<&str> = FAULTS
        .iter()
        .flat_map(|fault| fault.speaks)
        .map(|says| says.rule)
        .collect();
    rules.extend(
        FAULTS
            .iter()
            .flat_map(|fault| fault.may)
            .map(|(rule, _)| *rule),
    );
    rules.sort_unstable();
    rules.dedup();
    let mut row = |cells: &mut dyn Iterator<Item = String>| {
        page.push('|');
        for cell in cells {
            let _ = write!(page, " {cell} |");
        }
        page.push('\n');
    };
    let numbers = (1..=FAULTS.len()).map(|number| number.to_string());
    row(&mut std::iter::once("rule".to_owned()).chain(numbers));
    row(&mut std::iter::once("---".to_owned()).chain(FAULTS.iter().map(|_| ":-:".to_owned())));
    for rule in rules {
        let link = format!("[{rule}](rules/{rule}.md)");
        row(&mut std::iter::once(link)
            .chain(FAULTS.iter().map(|fault| fault.mark(rule).to_owned())));
    }
    for (number, fault) in (1..).zip(FAULTS) {
        let _ = write!(page, "\n## {number} {}\n\n{}\n", fault.id, fault.planted);
        if let How::Elsewhere { why, judged } = fault.how {
            let _ = writeln!(
                page,
                "\n**Not planted**: {why} Judged instead: [{judged}](../{judged})."
            );
        }
        if !fault.speaks.is_empty() {
            page.push_str("\nExpected findings:\n\n");
        }
        for says in fault.speaks {
            let verb = if says.outcome == Outcome::Act {
                "acts"
            } else {
                "watches"
            };
            let less = if says.less_in_noise {
                ", or watches where tasks wait for a CPU"
            } else {
                ""
            };
            let first = if says.first { ", first of all" } else { "" };
            let _ = writeln!(
                page,
                "- {} {verb} on `{}`{less}{first}",
                says.rule, says.about
            );
        }
        if !fault.may.is_empty() {
            page.push_str("\nMay act as well:\n\n");
        }
        for (rule, why) in fault.may {
            let _ = writeln!(page, "- {rule}: {why}");
        }
        advice::describe(&mut page, fault.id);
    }
    page
}

impl Fault {
    fn mark(&self, rule: &str) -> &'static str {
        let says = self.speaks.iter().find(|says| says.rule == rule);
        match (self.how, says) {
            (How::Elsewhere { .. }, Some(_)) => "r",
            (How::Here(_), Some(says)) if says.outcome == Outcome::Act => "**x**",
            (How::Here(_), Some(_)) => "**w**",
            _ if self.may.iter().any(|(id, _)| *id == rule) => "(x)",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_expected_of_one_subject_and_one_outcome() {
        let says = acts("runq-delay", "thread/PID:*");
        assert!(says.is(Outcome::Act, "thread/7:9", Some(7)));
        assert!(!says.is(Outcome::Watch, "thread/7:9", Some(7)));
        assert!(!says.is(Outcome::Act, "thread/8:9", Some(7)));
        assert!(!acts("irq-one-cpu", "cpu/0").is(Outcome::Act, "cpu/01", None));
    }

    #[test]
    fn every_fault_has_its_own_name_and_its_column() {
        let mut ids: Vec<_> = FAULTS.iter().map(|fault| fault.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), FAULTS.len());
        let page = page();
        for line in page.lines().filter(|line| line.starts_with("| ")) {
            assert_eq!(line.matches(" |").count(), FAULTS.len() + 1, "{line}");
        }
        for fault in FAULTS {
            assert!(page.contains(fault.planted), "{}", fault.id);
        }
    }
}
