//! Processes and threads of each user, against the limit that its processes have for them.
//!
//! Source: `copy_process` of kernel/fork.c, Linux 6.18; getrlimit(2).

use std::collections::BTreeMap;

use rungwise_formats::fields;
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::chosen;
use super::processes::STATUSES;
use crate::{Cost, Need, Probe, Source, Window, enter};

const LIMITS: &str = "/proc/*/limits";

/// Most users that are reported.
const MOST: usize = 8;

/// Programs that are not to start others set limits of a few for themselves (avahi 3, rtkit and sandboxes of sshd less).
const SMALLEST: u64 = 8;

/// `CAP_SYS_ADMIN` and `CAP_SYS_RESOURCE` of include/uapi/linux/capability.h: the limit does not hold for them.
const EXEMPT: u64 = 1 << 21 | 1 << 24;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-user-tasks",
    summary: "processes and threads of each user against the limit of its processes",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[Source::once(STATUSES), Source::once(LIMITS)],
    yields: &[&keys::PROCESS_USER_TASKS, &keys::PROCESS_USER_TASKS_LIMIT],
    derive,
    doc: "\
The kernel counts the processes and threads of a user on the whole machine and holds the number against the soft limit \
(RLIMIT_NPROC) of the process that wants another one. A limit counts if the processes that have it hold at least half of \
it: a program with a small limit that starts nothing does not meet it, whatever else its user runs. Of each user the limit \
that is nearest is reported, with the first process that has it. Root and processes with CAP_SYS_ADMIN or \
CAP_SYS_RESOURCE have no limit, and limits below 8 are ignored: a program sets one to start no others. Inside a container \
only its own processes are visible, while the kernel counts all of the user; and with a user namespace, capabilities in it \
do not lift the limit. Other users' limits need root. Sources: kernel/fork.c, kernel/ucount.c of Linux 6.18; getrlimit(2).",
};

/// A process whose user may run out of tasks.
struct Limited {
    pid: u32,
    user: u32,
    tasks: u64,
    limit: u64,
}

impl Limited {
    fn share(&self) -> f64 {
        self.tasks as f64 / self.limit.max(1) as f64
    }
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let mut users = limited(window);
    users.sort_by(|a, b| b.share().total_cmp(&a.share()));
    for user in users.iter().take(MOST) {
        let subject = || Subject::new(Kind::Process, user.pid);
        let line = format!(
            "user {}: {} processes and threads; Max processes {}",
            user.user, user.tasks, user.limit
        );
        let origin = Origin::new(format!("/proc/{}/limits", user.pid), line);
        let key = &keys::PROCESS_USER_TASKS;
        evidence.number(key, subject(), user.share(), origin.clone());
        let key = &keys::PROCESS_USER_TASKS_LIMIT;
        evidence.number(key, subject(), user.limit as f64, origin);
    }
    let none = if window.matching(LIMITS).is_empty() {
        Absence::because("no process shows its limits").remedy("run as root")
    } else {
        Absence::none("no processes hold half of the limit that they have for those of their user")
    };
    enter::absent_if_unset(evidence, PROBE.yields, &none, LIMITS);
}

/// Of each user the limit that is nearest.
fn limited(window: &Window<'_>) -> Vec<Limited> {
    let mut tasks: BTreeMap<u32, u64> = BTreeMap::new();
    // By user and limit: the first process that has it, and the tasks of all that have it.
    let mut having: BTreeMap<(u32, u64), (u32, u64)> = BTreeMap::new();
    for (path, stars) in window.matching(STATUSES) {
        let (Ok(status), Some(Ok(pid))) = (
            window.text(path),
            stars.first().map(|pid| pid.parse::<u32>()),
        ) else {
            continue;
        };
        let Some(user) = real_user(status) else {
            continue;
        };
        let threads = fields::number(status, "Threads").unwrap_or(1);
        *tasks.entry(user).or_default() += threads;
        let limit = chosen::limit(window, pid, "processes");
        let Some(limit) = limit.filter(|limit| *limit >= SMALLEST) else {
            continue;
        };
        if user != 0 && !is_exempt(status) {
            let (first, own) = having.entry((user, limit)).or_insert((pid, 0));
            *first = pid.min(*first);
            *own += threads;
        }
    }
    let mut nearest: BTreeMap<u32, Limited> = BTreeMap::new();
    for ((user, limit), (pid, own)) in having {
        // Limits come in their order, so the first one that counts is the nearest.
        if 2 * own >= limit && !nearest.contains_key(&user) {
            let tasks = tasks.get(&user).copied().unwrap_or(own);
            let limited = Limited {
                pid,
                user,
                tasks,
                limit,
            };
            nearest.insert(user, limited);
        }
    }
    nearest.into_values().collect()
}

/// The first number of `Uid:`.
fn real_user(status: &str) -> Option<u32> {
    let users = fields::value(status, "Uid")?;
    users.split_ascii_whitespace().next()?.parse().ok()
}

fn is_exempt(status: &str) -> bool {
    let effective = fields::value(status, "CapEff");
    let effective = effective.and_then(|hex| u64::from_str_radix(hex, 16).ok());
    effective.is_some_and(|capabilities| capabilities & EXEMPT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;
    use crate::capture::{Moment, Raw};

    /// Processes with their user, threads, effective capabilities and limit of processes.
    fn reported(processes: &[(u32, u32, u64, &str, &str)]) -> Vec<(u32, f64, f64)> {
        let mut moment = Moment::default();
        for (pid, user, threads, capabilities, limit) in processes {
            let status = format!(
                "Name:\tapp\nUid:\t{user}\t0\t0\t0\nThreads:\t{threads}\nCapEff:\t{capabilities}\n"
            );
            let limits = format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             {limit:<20} {limit:<20} processes \n"
            );
            let mut add = |name: &str, text: String| {
                moment
                    .files
                    .insert(format!("/proc/{pid}/{name}"), Raw::Text(text))
            };
            add("status", status);
            add("limits", limits);
        }
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let mut evidence = Evidence::default();
        derive(&Window::of(&capture), &mut evidence);
        let Ok(shares) = evidence.each(&keys::PROCESS_USER_TASKS) else {
            return Vec::new();
        };
        let of = |(process, share): &(&Subject, rungwise_model::evidence::Quantity<'_>)| {
            let limit = evidence.quantity(&keys::PROCESS_USER_TASKS_LIMIT, process);
            let pid = process.name().parse().unwrap();
            (pid, share.value, limit.unwrap().value)
        };
        shares.iter().map(of).collect()
    }

    const NONE: &str = "0000000000000000";

    #[test]
    fn tasks_of_a_user_count_against_the_limit_that_its_processes_have() {
        let found = reported(&[
            (7, 33, 30, NONE, "100"),
            (8, 33, 40, NONE, "100"),
            (9, 33, 20, NONE, "unlimited"),
            (10, 34, 4, NONE, "4096"),
            (11, 0, 500, NONE, "100"),
        ]);
        assert_eq!(found, [(7, 0.9, 100.0)]);
    }

    #[test]
    fn a_small_limit_of_a_process_that_starts_nothing_does_not_count() {
        let beside = [(7, 33, 2, NONE, "100"), (8, 33, 120, NONE, "unlimited")];
        assert_eq!(reported(&beside), []);
        assert_eq!(reported(&[(8, 33, 3, NONE, "3")]), [], "a sandbox");
        let resource = "0000000001000000";
        assert_eq!(reported(&[(8, 33, 99, resource, "100")]), []);
    }
}
