//! `cargo xtask prune`: removes data from a recorded capture that no rule needs.
//!
//! What `rungwise capture --mask-addresses` wrote on a machine that others work on as well holds the names of their
//! programs. This is the rule by which the recorded hosts of `cases/` were made smaller:
//!
//! - processes other than the first, the kernel's, those called rungwise and the one that is judged: their folders
//!   below `/proc` and their sockets' owners go;
//! - loop and ifb devices: their folders in `/sys/block` and `/sys/class/net`, their lines in `/proc/diskstats`, their
//!   devices and qdiscs go;
//! - tasks other than rungwise's own and the kernel's are called `other` in stacks, and what then is the same is added up;
//! - the kernel command line ends after the word that `--command-line-to` names.
//!
//! Pruning a capture again changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use rungwise_model::kernel::Answer;
use rungwise_probes::bundle;
use rungwise_probes::capture::{Capture, Moment, Raw, Reply};

/// `PF_KTHREAD` of linux/sched.h, in field 9 of `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// How the names of our own threads begin, and of those that the kernel runs for a CPU.
const TASKS: [&str; 4] = ["rungwise", "udp-", "load-", "ksoftirqd/"];

/// The name of all other tasks.
const OTHER: &str = "other";

const COMMAND_LINE: &str = "/proc/cmdline";

/// Reads the capture at `from` and writes what is left of it to `to`.
pub fn run(from: &Path, to: &Path, command_line_to: Option<&str>) -> Result<ExitCode> {
    let mut capture = bundle::read(from)?;
    prune(&mut capture, command_line_to)?;
    let packed = bundle::pack(&capture)?;
    std::fs::write(to, packed).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes from `capture` what this file lists.
pub fn prune(capture: &mut Capture, command_line_to: Option<&str>) -> Result<()> {
    let ours = ours(capture);
    for moment in &mut capture.moments {
        moment.files.retain(|path, _| match pid_of(path) {
            Some(pid) => ours.contains(&pid),
            None => !names_a_spare_device(path),
        });
        if let Some(Raw::Text(text)) = moment.files.get_mut("/proc/diskstats") {
            *text = without_spare_disks(text);
        }
        if let (Some(last), Some(Raw::Text(text))) =
            (command_line_to, moment.files.get_mut(COMMAND_LINE))
        {
            *text = cut_after(text, last)?;
        }
        for reply in moment.answers.values_mut() {
            if let Reply::Answer(answer) = reply {
                prune_answer(answer, &ours);
            }
        }
    }
    Ok(())
}

/// The processes that stay.
fn ours(capture: &Capture) -> BTreeSet<u32> {
    let judged = capture.process.iter().map(|process| process.pid);
    let found = capture.moments.iter().flat_map(named);
    found.chain(judged).chain([1]).collect()
}

/// The processes that one sample shows as rungwise or as the kernel's.
fn named(moment: &Moment) -> impl Iterator<Item = u32> {
    moment.files.iter().filter_map(|(path, raw)| {
        let pid = pid_of(path)?;
        let Raw::Text(stat) = raw else { return None };
        if *path != format!("/proc/{pid}/stat") {
            return None;
        }
        // The command's name may hold anything, also parentheses; the last one ends it.
        let (head, fields) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        let flags: u64 = fields.split_whitespace().nth(6)?.parse().ok()?;
        (name == "rungwise" || flags & KERNEL_THREAD != 0).then_some(pid)
    })
}

fn pid_of(path: &str) -> Option<u32> {
    let rest = path.strip_prefix("/proc/")?;
    rest.split('/').next()?.parse().ok()
}

fn names_a_spare_device(path: &str) -> bool {
    let folders = ["/sys/block/", "/sys/class/net/"];
    let rest = folders.iter().find_map(|folder| path.strip_prefix(folder));
    rest.and_then(|rest| rest.split('/').next())
        .is_some_and(is_spare)
}

/// `loop0`, `ifb1`.
fn is_spare(device: &str) -> bool {
    ["loop", "ifb"].iter().any(|kind| {
        device
            .strip_prefix(kind)
            .is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

fn without_spare_disks(text: &str) -> String {
    let stays = |line: &&str| !line.split_whitespace().nth(2).is_some_and(is_spare);
    text.split_inclusive('\n').filter(stays).collect()
}

fn cut_after(text: &str, last: &str) -> Result<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let end = words.iter().position(|word| *word == last);
    let end = end.with_context(|| {
        format!("cannot cut the kernel command line after {last}: it does not contain this word")
    })?;
    Ok(format!("{}\n", words[..=end].join(" ")))
}

fn prune_answer(answer: &mut Answer, ours: &BTreeSet<u32>) {
    match answer {
        Answer::Owners(owners) => owners.retain(|_, owner| ours.contains(&owner.pid)),
        Answer::Devices(devices) => devices.retain(|device| !is_spare(&device.name)),
        Answer::Qdiscs(qdiscs) => qdiscs.retain(|qdisc| !is_spare(&qdisc.device)),
        Answer::Stacks(stacks) => call_others(&mut stacks.folded),
        Answer::Events(events) => call_others(&mut events.contentions),
        _ => {}
    }
}

/// The first frame of a stack is the name of its task.
fn call_others(folded: &mut BTreeMap<String, u64>) {
    for (stack, count) in std::mem::take(folded) {
        let (task, frames) = stack.split_once(';').unwrap_or((&stack, ""));
        let known = TASKS.iter().any(|name| task.starts_with(name));
        let task = if known { task } else { OTHER };
        let stack = if frames.is_empty() {
            task.to_owned()
        } else {
            format!("{task};{frames}")
        };
        *folded.entry(stack).or_default() += count;
    }
}

/// Whether pruning would not change `capture`.
pub fn is_pruned(capture: &Capture) -> Result<()> {
    let mut again = capture.clone();
    prune(&mut again, None)?;
    ensure!(again == *capture, "there is something left to prune");
    Ok(())
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::{Owner, Stacks};

    use super::*;
    use crate::tree::Tree;

    fn stat(pid: u32, name: &str, flags: u64) -> (String, Raw) {
        let text = format!("{pid} ({name}) S 1 1 1 0 -1 {flags} 0 0\n");
        (format!("/proc/{pid}/stat"), Raw::Text(text))
    }

    fn machine_of_others() -> Capture {
        let mut moment = Moment::default();
        moment.files.extend([
            stat(1, "systemd", 0),
            stat(2, "kthreadd", KERNEL_THREAD),
            stat(7, "secret) R", 0),
            stat(8, "rungwise", 0),
        ]);
        for (path, text) in [
            ("/proc/7/status", "Name: secret\n"),
            ("/sys/block/loop0/queue/scheduler", "[none]\n"),
            ("/sys/block/vda/queue/scheduler", "[none]\n"),
            ("/sys/class/net/ifb0/mtu", "1500\n"),
            ("/proc/diskstats", "7 0 loop0 1\n254 0 vda 2\n"),
            (COMMAND_LINE, "quiet psi=1 token=abc\n"),
        ] {
            let raw = Raw::Text(text.to_owned());
            moment.files.insert(path.to_owned(), raw);
        }
        let owner = |pid| Owner {
            pid,
            name: String::new(),
        };
        let owners = Answer::Owners(BTreeMap::from([(1, owner(7)), (2, owner(8))]));
        let stacks = Answer::Stacks(Stacks {
            folded: BTreeMap::from([
                ("secret;read".to_owned(), 2),
                ("private;read".to_owned(), 3),
                ("load-0;send".to_owned(), 4),
            ]),
            ..Stacks::default()
        });
        for (name, answer) in [("owners", owners), ("stacks", stacks)] {
            let reply = Reply::Answer(answer);
            moment.answers.insert(name.to_owned(), reply);
        }
        Capture {
            moments: vec![moment],
            ..Capture::default()
        }
    }

    #[test]
    fn what_belongs_to_others_goes_and_what_is_counted_stays_counted() {
        let mut capture = machine_of_others();
        assert!(is_pruned(&capture).is_err());
        prune(&mut capture, Some("psi=1")).unwrap();
        is_pruned(&capture).unwrap();
        let said = format!("{capture:?}");
        for word in ["secret", "private", "loop0", "ifb0", "token"] {
            assert!(!said.contains(word), "{word}: {said}");
        }
        for word in [
            "systemd",
            "kthreadd",
            "vda",
            "other;read\": 5",
            "load-0;send\": 4",
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }

    #[test]
    fn a_word_that_the_command_line_lacks_is_an_error() {
        let error = prune(&mut machine_of_others(), Some("splash")).unwrap_err();
        assert!(
            error.to_string().contains("does not contain this word"),
            "{error}"
        );
    }

    #[test]
    fn the_recorded_hosts_have_nothing_left_to_prune() {
        let cases = Tree::ours().join("cases");
        let mut recorded = 0;
        for folder in std::fs::read_dir(cases).unwrap() {
            let path = folder.unwrap().path().join("host.rungwise");
            if path.exists() {
                recorded += 1;
                is_pruned(&bundle::read(&path).unwrap())
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
        }
        assert!(recorded > 1, "{recorded} recorded hosts");
    }
}
