//! Processes and their threads as rules meet them: in the words of a socket's owner, and as subjects.

use rungwise_model::evidence::{Evidence, Quantity, Subject};
use rungwise_model::keys;

/// The pid in the words of a socket's owner, `nginx 41`; the name may have blanks and digits.
pub(crate) fn owner_pid(owner: &str) -> Option<&str> {
    let word = owner.rsplit(' ').next()?;
    (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())).then_some(word)
}

/// The pid of a thread `pid:tid`.
pub(crate) fn pid_of(thread: &Subject) -> &str {
    let name = thread.name();
    name.split_once(':').map_or(name, |(pid, _)| pid)
}

/// The threads of a process that used CPU, busiest first; none where threads were not looked at.
pub(crate) fn threads<'e>(evidence: &'e Evidence, pid: &str) -> Vec<(&'e Subject, Quantity<'e>)> {
    let mut threads = evidence.each(&keys::SCHED_THREAD_CPU).unwrap_or_default();
    threads.retain(|(thread, _)| pid_of(thread) == pid);
    threads.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    threads
}

/// `io-worker (812:815)`, or the bare subject where the name is not known.
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
