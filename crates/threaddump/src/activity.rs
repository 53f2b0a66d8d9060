//! What a thread does, by its state, what it waits for and the frames on top of its stack.
//!
//! The share of threads that wait for a lock means nothing unless threads without anything to do are left out. They are known by
//! where they wait: in a queue, a selector, an accept. A pool of a home-made kind waits in `Object.wait` like anything else; its
//! idle threads count as waiting and make the share smaller, never larger.

use crate::dump::{Dump, How, Lock, State, Thread};
use crate::frame::{self, method};
use crate::waits::{self, Kind};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Work of the JVM itself, or carrying a virtual thread.
    Jvm,
    /// Waiting for work.
    Idle,
    Running,
    /// Waiting for a lock.
    LockWaiting,
    /// Waiting for something else.
    Waiting,
}

/// Threads of the JVM that have a stack or a state (`Thread.java`, `ReferenceHandler`, os.cpp, jfrThreadLocal and others).
const OF_JVM: &[&str] = &[
    "Reference Handler",
    "Finalizer",
    "Signal Dispatcher",
    "Service Thread",
    "Monitor Deflation Thread",
    "Monitor Ctrl-Break",
    "Notification Thread",
    "Common-Cleaner",
    "Cleaner-",
    "Attach Listener",
    "DestroyJavaVM",
    "Low Memory Detector",
    "Surrogate Locker Thread",
    "CompilerThread",
    "C1 CompilerThread",
    "C2 CompilerThread",
    "Sweeper thread",
    "JVMCI",
    "JFR ",
    "VirtualThread-un",
    "RMI TCP Accept",
    "RMI Scheduler",
    "RMI Reaper",
    "RMI RenewClean",
    "GC Daemon",
    "JMX server connection timeout",
    "process reaper",
];

/// Methods in which a thread waits for work.
const IDLE: &[&str] = &[
    ".getTask",
    "ForkJoinPool.awaitWork",
    "TimerThread.mainLoop",
    "DelayScheduler.loop",
    "ReferenceQueue.remove",
    "Queue.take",
    "Queue.poll",
    "Deque.take",
    "Deque.takeFirst",
    "Deque.takeLast",
    "Deque.poll",
    "Deque.pollFirst",
    "QueuedThreadPool.idleJobPoll",
    "ReservedThread.reservedWait",
    "EventQueue.getNextEvent",
    "AWTAutoShutdown.run",
    "XToolkit.waitForEvents",
    "EPoll.wait",
    "EPollArrayWrapper.epollWait",
    "Native.epollWait",
    "KQueue.poll",
    "PollArrayWrapper.poll0",
    "DevPollArrayWrapper.poll0",
    "SelectorImpl.select",
    "SelectorImpl.lockAndDoSelect",
    "PollSelectorImpl.doSelect",
    "PlainSocketImpl.socketAccept",
    "PlainSocketImpl.accept",
    "ServerSocketChannelImpl.accept",
    "ServerSocketChannelImpl.accept0",
    "NioSocketImpl.accept",
    "ServerSocket.accept",
    "ServerSocket.implAccept",
    "UnixDomainSockets.accept0",
];

/// Frames that are looked at; a queue is not far below the call that waits.
const NEAR: usize = 12;

/// Classes of exclusive locks that threads park for. What some thread holds as an ownable synchronizer is one as well.
const LOCKS: &[&str] = &["ReentrantLock$", "ReentrantReadWriteLock$", "StampedLock"];

/// Whether parking for this object is waiting for a lock, and not for a condition or an answer.
pub(crate) fn is_exclusive(lock: &Lock) -> bool {
    LOCKS.iter().any(|class| lock.class.contains(class))
}

/// A thread of the JVM itself, by its name.
pub(crate) fn is_of_jvm(thread: &Thread) -> bool {
    OF_JVM.iter().any(|name| thread.name.starts_with(name))
}

/// What the thread does. `held` tells whether some thread holds an object as an ownable synchronizer.
pub(crate) fn classify(thread: &Thread, held: impl Fn(&Lock) -> bool) -> Activity {
    if thread.frames.is_empty() || thread.carries.is_some() || is_of_jvm(thread) {
        return Activity::Jvm;
    }
    let near = || thread.frames.iter().take(NEAR).map(|frame| method(frame));
    let for_lock = match &thread.wait {
        Some(wait) if matches!(wait.how, How::Enter | How::Initialise) => true,
        Some(wait) if wait.how == How::Park => wait
            .lock
            .as_ref()
            .is_some_and(|lock| is_exclusive(lock) || held(lock)),
        // Without the object, the way into the lock tells.
        None => {
            let mut inner = near().take_while(|name| frame::is_of_jdk(name));
            thread.state == Some(State::Blocked) || inner.any(enters_lock)
        }
        Some(_) => false,
    };
    if for_lock {
        return Activity::LockWaiting;
    }
    if let Some(kind) = waits::kind(thread)
        && !matches!(kind, Kind::Condition | Kind::Notify)
    {
        return Activity::Waiting;
    }
    if near().any(|name| IDLE.iter().any(|idle| name.ends_with(idle))) {
        return Activity::Idle;
    }
    let waits = thread.wait.is_some()
        || match thread.state {
            Some(state) => state != State::Runnable,
            None => near().take(2).any(|name| {
                let calls = [
                    "Object.wait",
                    "Object.wait0",
                    "Unsafe.park",
                    "VirtualThread.park",
                    "Thread.sleep",
                ];
                calls.iter().any(|call| name.ends_with(call)) || name.contains("Thread.sleep")
            }),
        };
    if waits {
        Activity::Waiting
    } else {
        Activity::Running
    }
}

/// The dump tells what threads wait for: all that HotSpot prints, and files from JDK 25 on.
pub(crate) fn has_states(dump: &Dump) -> bool {
    dump.threads.iter().any(|thread| thread.state.is_some())
}

fn enters_lock(name: &str) -> bool {
    name.starts_with("java.util.concurrent.locks.ReentrantLock.lock")
        || name.starts_with("java.util.concurrent.locks.ReentrantReadWriteLock$")
            && name.ends_with("Lock.lock")
        || name.starts_with("java.util.concurrent.locks.StampedLock.acquire")
}

#[cfg(test)]
mod tests {
    use crate::dump::Wait;

    use super::*;

    fn thread(state: State, frames: &[&str], waits: Option<(How, &str)>) -> Thread {
        Thread {
            name: "http-1".into(),
            state: Some(state),
            frames: frames.iter().map(|frame| (*frame).into()).collect(),
            wait: waits.map(|(how, class)| Wait {
                how,
                lock: Some(Lock {
                    id: "0x1".into(),
                    class: class.into(),
                }),
                owner: None,
                line: 1,
                text: String::new(),
            }),
            ..Thread::default()
        }
    }

    #[test]
    fn threads_are_distinguished_by_what_they_wait_for() {
        let park = "jdk.internal.misc.Unsafe.park(Native Method)";
        let take = "java.util.concurrent.LinkedBlockingQueue.take(L.java:1)";
        let sync = "java.util.concurrent.locks.ReentrantLock$NonfairSync";
        let condition = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";
        for (thread, expected) in [
            (
                thread(State::Blocked, &["A.a"], Some((How::Enter, "X"))),
                Activity::LockWaiting,
            ),
            (
                thread(State::Waiting, &[park], Some((How::Park, sync))),
                Activity::LockWaiting,
            ),
            // It was woken and waits for the lock of its queue, which it needs to leave.
            (
                thread(State::Waiting, &[park, take], Some((How::Park, sync))),
                Activity::LockWaiting,
            ),
            (
                thread(State::Waiting, &[park, take], Some((How::Park, condition))),
                Activity::Idle,
            ),
            (
                thread(State::Waiting, &[park, "A.a"], Some((How::Park, condition))),
                Activity::Waiting,
            ),
            (
                thread(State::Runnable, &["sun.nio.ch.EPoll.wait(E.java)"], None),
                Activity::Idle,
            ),
            (thread(State::Runnable, &["A.a"], None), Activity::Running),
            (
                thread(State::TimedWaiting, &["java.lang.Thread.sleep(T)"], None),
                Activity::Waiting,
            ),
            (thread(State::Runnable, &[], None), Activity::Jvm),
        ] {
            assert_eq!(classify(&thread, |_| false), expected, "{thread:?}");
        }
    }

    #[test]
    fn a_synchronizer_of_ones_own_is_a_lock_where_some_thread_holds_it() {
        let parked = thread(State::Waiting, &["U.park"], Some((How::Park, "my.Sync")));
        assert_eq!(classify(&parked, |_| false), Activity::Waiting);
        assert_eq!(
            classify(&parked, |lock| &*lock.class == "my.Sync"),
            Activity::LockWaiting
        );
    }
}
