//! Processes and their threads as rules see them: as the text of a socket's owner, and as subjects.

pub(crate) mod affinity_narrow;
pub(crate) mod clients_unread;
pub(crate) mod connect_failed;
pub(crate) mod connect_unanswered;
pub(crate) mod database_lock;
pub(crate) mod descriptors_full;
pub(crate) mod dns_unanswered;
pub(crate) mod fork_storm;
pub(crate) mod priority_low;
pub(crate) mod process_blocked;
pub(crate) mod process_stopped;
pub(crate) mod process_traced;
pub(crate) mod realtime_hog;
pub(crate) mod service_restarts;
pub(crate) mod tasks_full;
pub(crate) mod thread_saturated;
pub(crate) mod threads_grow;
pub(crate) mod unix_listen_overflow;
pub(crate) mod upstream_pool_full;
pub(crate) mod upstream_slow;
pub(crate) mod user_lock;

use rungwise_model::evidence::{Evidence, Key, Kind, Quantity, Subject};
use rungwise_model::keys;

/// What tells a service from another process, and its name.
pub(crate) const SERVICE: &[&Key] = &[
    &keys::DEPENDENCY_CLIENTS,
    &keys::PROCESS_PARENT,
    &keys::PROCESS_UNREAD,
    &keys::SCHED_PROCESS_NAME,
    &keys::SCHED_THREAD_CPU,
    &keys::TCP_ACCEPT_BACKLOG,
    &keys::TCP_PROCESS,
    &keys::UDP_PROCESS,
    &keys::UNIX_PROCESS,
    &keys::UNIX_WAITING,
];

/// Whether clients may wait for this process: it is the judged one or a child of it, or it answers on a port or a Unix socket.
pub(crate) fn is_service(evidence: &Evidence, pid: &str) -> bool {
    is_judged(evidence, pid) || answers(evidence, pid)
}

/// The judged process or a child of it: threads are read only of these.
pub(crate) fn is_judged(evidence: &Evidence, pid: &str) -> bool {
    let threads = evidence.each(&keys::SCHED_THREAD_CPU).unwrap_or_default();
    threads.iter().any(|(thread, _)| pid_of(thread) == pid)
}

/// It has connections to a local listening port, receives datagrams, or has clients in the queue of its Unix socket.
fn answers(evidence: &Evidence, pid: &str) -> bool {
    let process = Subject::new(Kind::Process, pid);
    let waited_for = [&keys::DEPENDENCY_CLIENTS, &keys::PROCESS_UNREAD];
    if waited_for
        .iter()
        .any(|key| evidence.quantity(key, &process).is_ok())
    {
        return true;
    }
    let is_owner = |owner: &str| owner_pid(owner) == Some(pid);
    let datagrams = evidence.each_words(&keys::UDP_PROCESS).unwrap_or_default();
    if datagrams.iter().any(|(_, owner)| is_owner(owner.value)) {
        return true;
    }
    if unix_queue(evidence, pid).is_some() {
        return true;
    }
    let port = |end: &str| end.rsplit_once(':').map(|(_, port)| port.to_owned());
    let listening = evidence.each(&keys::TCP_ACCEPT_BACKLOG).unwrap_or_default();
    let listening: Vec<String> = listening
        .iter()
        .filter_map(|(subject, _)| port(subject.name()))
        .collect();
    let connections = evidence.each_words(&keys::TCP_PROCESS).unwrap_or_default();
    connections.iter().any(|(connection, owner)| {
        let local = connection
            .name()
            .split_once('>')
            .and_then(|(local, _)| port(local));
        is_owner(owner.value) && local.is_some_and(|local| listening.contains(&local))
    })
}

/// The Unix socket with the most clients in its queue that this process accepts from, and their mean number. A socket that workers share
/// belongs to their parent.
pub(crate) fn unix_queue<'e>(
    evidence: &'e Evidence,
    pid: &str,
) -> Option<(&'e Subject, Quantity<'e>)> {
    let process = Subject::new(Kind::Process, pid);
    let parent = evidence.quantity(&keys::PROCESS_PARENT, &process);
    let parent = parent.map_or(String::new(), |parent| format!("{:.0}", parent.value));
    let owners = evidence.each_words(&keys::UNIX_PROCESS).unwrap_or_default();
    owners
        .into_iter()
        .filter(|(_, owner)| owner_pid(owner.value).is_some_and(|it| it == pid || it == parent))
        .filter_map(|(socket, _)| {
            let waiting = evidence.quantity(&keys::UNIX_WAITING, socket).ok()?;
            Some((socket, waiting))
        })
        .max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
}

/// The longest wait of a thread for a CPU: of the busiest thread by the kernel's count, which counts a wait once it is over, or
/// of any thread by the samples.
pub(crate) fn wait_for_cpu<'e>(evidence: &'e Evidence, process: &Subject) -> Option<Quantity<'e>> {
    let of = |key| evidence.quantity(key, process).ok();
    let counted = of(&keys::PROCESS_BUSIEST_DELAY);
    let starved = of(&keys::PROCESS_STARVED);
    match (counted, starved) {
        (Some(counted), Some(starved)) if starved.value > counted.value => Some(starved),
        (None, starved) => starved,
        (counted, _) => counted,
    }
}

/// The longest wait for a CPU, if it is long: more than `line` of the window, or more than `little` of it and of the time that the
/// busiest thread had work. A service that works for a tenth of the time and waits as long serves each request twice as late.
pub(crate) fn waits_for_cpu<'e>(
    evidence: &'e Evidence,
    process: &Subject,
    line: f64,
    little: f64,
) -> Option<Quantity<'e>> {
    let delay = wait_for_cpu(evidence, process)?;
    let ran = evidence
        .quantity(&keys::PROCESS_BUSIEST_THREAD, process)
        .ok();
    let as_long = ran.is_some_and(|ran| delay.value >= 0.5 * ran.value);
    (delay.value > line || delay.value > little && as_long).then_some(delay)
}

/// `redis-server 41`, or `pid 41`.
pub(crate) fn called(evidence: &Evidence, process: &Subject) -> String {
    match evidence.words(&keys::SCHED_PROCESS_NAME, process) {
        Ok(name) => format!("{} {}", name.value, process.name()),
        Err(_) => format!("pid {}", process.name()),
    }
}

/// The pid in the text of a socket's owner, `nginx 41`; the name may contain blanks and digits.
pub(crate) fn owner_pid(owner: &str) -> Option<&str> {
    let word = owner.rsplit(' ').next()?;
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

/// The pid of a thread `pid:tid`.
pub(crate) fn pid_of(thread: &Subject) -> &str {
    let name = thread.name();
    name.split_once(':').map_or(name, |(pid, _)| pid)
}

/// The threads of a process that used CPU, busiest first; empty if no threads were read.
pub(crate) fn threads<'e>(evidence: &'e Evidence, pid: &str) -> Vec<(&'e Subject, Quantity<'e>)> {
    let mut threads = evidence.each(&keys::SCHED_THREAD_CPU).unwrap_or_default();
    threads.retain(|(thread, _)| pid_of(thread) == pid);
    threads.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    threads
}

/// `io-worker (812:815)`, or the bare subject where the name is unknown.
pub(crate) fn named(thread: &Subject, evidence: &Evidence) -> String {
    match evidence.words(&keys::SCHED_NAME, thread) {
        Ok(name) => format!("{} ({})", name.value, thread.name()),
        Err(_) => thread.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_is_the_last_word_of_an_owner() {
        assert_eq!(owner_pid("nginx 41"), Some("41"));
        assert_eq!(owner_pid("worker 7 of 9 42"), Some("42"));
        assert_eq!(owner_pid(""), None);
        assert_eq!(owner_pid("h2o"), None);
    }
}
