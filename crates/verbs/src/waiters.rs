//! Stacks of the threads that wait for contended locks at the end of a capture.

use std::sync::mpsc::channel;
use std::time::Duration;

use rungwise_formats::syscall;
use rungwise_probes::{Capture, contended_locks, keep_stack};
use rungwise_profile::Waiting;

/// Stacks that are copied for each lock.
const MOST: usize = 16;
/// How often they are sought: a lock that is held briefly may have no waiter at the moment.
const TRIES: usize = 5;
const APART: Duration = Duration::from_millis(5);

/// How long the names are waited for: symbols of a program of gigabytes, or a file system that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Copies the stacks of threads that wait for the contended locks of a capture.
pub(crate) fn copy(capture: &Capture) -> Waiting {
    let mut waiting = Waiting::default();
    let mut locks = contended_locks(capture);
    let mut left = vec![MOST; locks.len()];
    for attempt in 0..TRIES {
        if attempt > 0 && !locks.is_empty() {
            std::thread::sleep(APART);
        }
        for (lock, left) in locks.iter_mut().zip(&mut left) {
            let (pid, address) = (lock.pid, lock.address);
            let matches = |call: &str| {
                let wait = syscall::futex_wait(call);
                wait.is_some_and(|wait| wait.is_lock && wait.address == address)
            };
            lock.threads.retain(|thread| {
                let was_read = *left > 0 && waiting.add(pid, *thread, &matches);
                *left -= usize::from(was_read);
                !was_read
            });
        }
    }
    waiting
}

/// Names the functions, and adds them to the last sample of the capture; without them where that takes too long.
pub(crate) fn keep(waiting: Waiting, capture: &mut Capture) {
    let (named, names) = channel();
    // It is left behind where a file cannot be read in time: nothing waits for it.
    let begun = std::thread::Builder::new()
        .name("names".to_owned())
        .spawn(move || named.send(waiting.named()));
    let named = begun.ok().and_then(|_| names.recv_timeout(PATIENCE).ok());
    for one in named.unwrap_or_default() {
        keep_stack(capture, one.process, one.thread, &one.functions);
    }
}
