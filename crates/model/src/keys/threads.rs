//! Keys: what thread dumps tell of a JVM.
//!
//! The subject is a JVM with all its dumps, `dumps/1`, or one deadlock in them, `deadlock/1:1`. Series hold one value per dump,
//! oldest first. How threads are counted: `docs/jvm-threads.md`.

keys! { THREADS;
    THREADS_BUSINESS = "threads.business", Count, Dumps, "Threads with something to do, mean: not of the JVM itself, and not waiting for work";
    THREADS_DEADLOCK = "threads.deadlock", Text, Deadlock, "Who waits for what and who holds it, around the circle";
    THREADS_DEADLOCK_DUMPS = "threads.deadlock_dumps", Count, Deadlock, "Dumps that show this deadlock";
    THREADS_DEADLOCK_REPORTED = "threads.deadlock_reported", Count, Deadlock, "1 where the JVM itself reports this deadlock, 0 where it was found from who holds what";
    THREADS_DEADLOCKS = "threads.deadlocks", Count, Dumps, "Deadlocks in the dumps";
    THREADS_DUMPS = "threads.dumps", Count, Dumps, "Dumps of this JVM";
    THREADS_LOCK_WAITING = "threads.lock_waiting", Fraction, Dumps, "Threads that wait for a lock as a share of threads.business, mean of the dumps";
    THREADS_OWNERLESS = "threads.ownerless", Count, Dumps, "Threads of the last dump that wait for a lock whose owner is not told";
    THREADS_RUNNING = "threads.running", Count, Dumps, "Threads that run, of all dumps together";
    THREADS_SERIALIZING = "threads.serializing", Fraction, Dumps, "Share of those with Java serialization on their stack, reads that wait for a socket left out";
    THREADS_STARVED = "threads.starved", Text, Dumps, "Pools of the last dump all of whose threads wait for one lock";
    THREADS_TOP_LOCK = "threads.top_lock", Text, Dumps, "Class of the lock that most threads wait for in one dump";
    THREADS_TOP_OWNER = "threads.top_owner", Text, Dumps, "Its owner and what that does";
    THREADS_TOP_WAITERS = "threads.top_waiters", Count, Dumps, "Most threads that wait for one lock";
}
