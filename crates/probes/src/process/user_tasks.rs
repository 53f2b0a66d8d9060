//! Processes and threads of each user, against the limit that its processes have for them.
//!
//! Source: `copy_process` of kernel/fork.c, Linux 6.18; getrlimit(2).

use std::collections::BTreeMap;

use rungwise_formats::{fields, limits};
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::processes::STATUSES;
use crate::{Cost, Need, Probe, Source, Window, enter};

const LIMITS: &str = "/proc/*/limits";

/// Share of the limit from which on a user is reported.
const NEAR: f64 = 0.5;

/// Most users that are reported.
const MOST: usize = 8;

/// Programs that are not to start others set limits of a few for themselves (avahi 3, rtkit and sandboxes of sshd less).
const SMALLEST: u64 = 16;

/// `CAP_SYS_ADMIN` and `CAP_SYS_RESOURCE` of include/uapi/linux/capability.h: the limit does not hold for them.
const EXEMPT: u64 = 1 << 21 | 1 << 24;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-user-tasks",
    summary: "processes and threads of each user against the limit of its processes",
    cost: Cost::Free,
    needs: &[Need::Root],
    sources: &[Source::once(STATUSES), Source::once(LIMITS)],
    yields: &[&keys::PROCESS_USER_TASKS, &keys::PROCESS_USER_TASKS_LIMIT],
    derive,
    doc: "\
The kernel counts the processes and threads of a user on the whole machine and holds the number against the soft limit \
(RLIMIT_NPROC) of the process that wants another one. Of each user the process with the smallest limit is reported, if \
half of it is used; if no user comes near, the one that comes nearest. Root and processes with CAP_SYS_ADMIN or \
CAP_SYS_RESOURCE have no limit, and limits below 16 are ignored: a program sets one to start no others. Inside a container only its own processes are visible, while the kernel counts all of \
the user. Other users' limits need root. Sources: kernel/fork.c, kernel/ucount.c of Linux 6.18; getrlimit(2).",
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
    let near = users.iter().filter(|user| user.share() >= NEAR).count();
    for user in users.iter().take(near.clamp(1, MOST)) {
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
    let seen = !window.matching(LIMITS).is_empty();
    let none = if seen {
        Absence::none("no visible process has a limit of processes that holds for it")
    } else {
        Absence::because("no process shows its limits").remedy("run as root")
    };
    enter::absent_if_unset(evidence, PROBE.yields, &none, LIMITS);
}

/// Of each user the process with the smallest limit.
fn limited(window: &Window<'_>) -> Vec<Limited> {
    let mut tasks: BTreeMap<u32, u64> = BTreeMap::new();
    let mut smallest: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
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
        *tasks.entry(user).or_default() += fields::number(status, "Threads").unwrap_or(1);
        if user == 0 || is_exempt(status) {
            continue;
        }
        let Some(limit) = limit(window, pid).filter(|limit| *limit >= SMALLEST) else {
            continue;
        };
        let least = smallest.entry(user).or_insert((limit, pid));
        *least = (limit, pid).min(*least);
    }
    let limited = smallest.into_iter();
    let limited = limited.map(|(user, (limit, pid))| Limited {
        pid,
        user,
        tasks: tasks.get(&user).copied().unwrap_or_default(),
        limit,
    });
    limited.collect()
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

/// The soft limit of processes.
fn limit(window: &Window<'_>, pid: u32) -> Option<u64> {
    let text = window.text(&format!("/proc/{pid}/limits")).ok()?;
    limits::parse(text)
        .find(|limit| limit.name == "processes")?
        .soft
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

    #[test]
    fn tasks_of_a_user_count_against_the_smallest_limit_of_its_processes() {
        const NONE: &str = "0000000000000000";
        let found = reported(&[
            (7, 33, 30, NONE, "100"),
            (8, 33, 60, NONE, "unlimited"),
            (9, 34, 4, NONE, "4096"),
            (10, 0, 500, NONE, "100"),
        ]);
        assert_eq!(found, [(7, 0.9, 100.0)]);
    }

    #[test]
    fn the_user_that_comes_nearest_stands_for_those_that_are_far_away() {
        const NONE: &str = "0000000000000000";
        let found = reported(&[(8, 33, 20, NONE, "100"), (9, 34, 5, NONE, "4096")]);
        assert_eq!(found, [(8, 0.2, 100.0)]);
        let resource = "0000000001000000";
        assert_eq!(reported(&[(8, 33, 99, resource, "100")]), []);
        assert_eq!(reported(&[(8, 33, 3, NONE, "3")]), [], "a sandbox");
    }
}
