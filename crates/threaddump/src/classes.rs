//! Initialisation of classes: a thread that runs `<clinit>` holds the class, and who needs the class waits for that thread.
//!
//! HotSpot reports no deadlock through it and calls the waiting thread RUNNABLE (`InstanceKlass::initialize_impl`). Newer releases name
//! the class in the stack. Older ones print `in Object.wait()` beside a stack that is in no `Object.wait`; the class is then
//! inferred where only one other thread initialises any.

use crate::dump::{Dump, Hold, How, Lock, State, Thread, Wait};
use crate::frame::method;

/// The words behind the name of a thread that waits for a class to be initialised, or is in `Object.wait`.
const IN_WAIT: &str = " in Object.wait() ";

/// The initialisation of this class, as a lock.
pub(crate) fn lock(class: &str) -> Lock {
    Lock {
        id: format!("initialisation of {class}").into(),
        class: format!("initialisation of {class}").into(),
    }
}

/// Notes a wait for a class where only the words behind the name show it.
pub(crate) fn infer_wait(thread: &mut Thread, header: &str) {
    let Some(top) = thread.frames.first() else {
        return;
    };
    let is_waiting = header.contains(IN_WAIT) || header.ends_with(IN_WAIT.trim_end());
    if is_waiting
        && thread.state == Some(State::Runnable)
        && thread.wait.is_none()
        && !method(top).starts_with("java.lang.Object.wait")
    {
        thread.wait = Some(Wait {
            how: How::Initialise,
            lock: None,
            owner: None,
            line: thread.line,
            text: header.trim().to_owned(),
        });
    }
}

/// Classes that the stack is in the initialiser of, innermost first.
fn initialises(thread: &Thread) -> impl Iterator<Item = &str> {
    let frames = thread.frames.iter();
    frames.filter_map(|frame| method(frame).strip_suffix(".<clinit>"))
}

/// Names the classes that threads wait for where the dump does not, and notes who initialises those that are waited for.
pub(crate) fn resolve(dump: &mut Dump) {
    let waits = |thread: &Thread| {
        let wait = thread.wait.as_ref();
        wait.is_some_and(|wait| wait.how == How::Initialise)
    };
    if !dump.threads.iter().any(waits) {
        return;
    }
    let owners: Vec<(usize, Vec<String>)> = dump
        .threads
        .iter()
        .enumerate()
        .map(|(at, thread)| (at, initialises(thread).map(str::to_owned).collect()))
        .filter(|(_, classes): &(usize, Vec<String>)| !classes.is_empty())
        .collect();
    for at in 0..dump.threads.len() {
        let thread = &mut dump.threads[at];
        let Some(wait) = thread.wait.as_mut() else {
            continue;
        };
        let mut others = owners.iter().filter(|(owner, _)| *owner != at);
        if wait.how == How::Initialise
            && wait.lock.is_none()
            && let (Some((_, classes)), None) = (others.next(), others.next())
        {
            // The outermost: what is inside may be done already.
            wait.lock = classes.last().map(|class| lock(class));
        }
    }
    let wanted: Vec<Lock> = dump
        .threads
        .iter()
        .filter(|thread| waits(thread))
        .filter_map(|thread| thread.wait.as_ref()?.lock.clone())
        .collect();
    for (at, classes) in owners {
        for class in classes {
            let lock = lock(&class);
            let thread = &mut dump.threads[at];
            if wanted.contains(&lock) && !thread.holds.iter().any(|hold| hold.lock == lock) {
                thread.holds.push(Hold {
                    lock,
                    is_synchronizer: false,
                    line: thread.line,
                    text: format!("runs {class}.<clinit>"),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(frames: &[&str], header: &str) -> Thread {
        let mut thread = Thread {
            state: Some(State::Runnable),
            frames: frames.iter().map(|frame| (*frame).into()).collect(),
            ..Thread::default()
        };
        infer_wait(&mut thread, header);
        thread
    }

    #[test]
    fn two_initialisers_that_wait_hold_each_other_class() {
        let header = "\"a\" #1 tid=0x1 in Object.wait() [0x7]";
        let mut dump = Dump {
            threads: vec![
                thread(&["Left.<clinit>(A.java:1)", "A.a(A.java:2)"], header),
                thread(&["Right.<clinit>(A.java:3)"], header),
            ],
            ..Dump::default()
        };
        resolve(&mut dump);
        let wanted = |at: usize| {
            dump.threads[at]
                .wait
                .as_ref()
                .unwrap()
                .lock
                .clone()
                .unwrap()
        };
        assert_eq!(wanted(0), lock("Right"));
        assert_eq!(wanted(1), lock("Left"));
        assert_eq!(dump.threads[1].holds[0].lock, lock("Right"));
    }

    #[test]
    fn a_thread_in_object_wait_waits_for_no_class() {
        let thread = thread(
            &["java.lang.Object.wait(Native Method)"],
            "\"a\" tid=0x1 in Object.wait() [0x7]",
        );
        assert_eq!(thread.wait, None);
    }
}
