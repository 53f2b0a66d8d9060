//! Keys: the thread dumps of a JVM.
//!
//! The subject is a JVM with all its dumps, `dumps/1`, or one deadlock in them, `deadlock/1:1`, or one wait that threads share,
//! `wait/1:1`. Series hold one value per dump, oldest first. How threads are counted: `docs/jvm-threads.md`.

keys! { THREADS;
    THREADS_BUSINESS = "threads.business", Count, Dumps, "Threads with something to do, mean: neither of the JVM itself nor waiting for work";
    THREADS_CARRIER_DUMPS = "threads.carrier_dumps", Count, Dumps, "Printed dumps that threads.carriers_held is based on";
    THREADS_CARRIERS = "threads.carriers", Count, Dumps, "Carriers of virtual threads; 0 if the JVM has none";
    THREADS_CARRIERS_HELD = "threads.carriers_held", Count, Dumps, "Carriers that have the same virtual thread in all printed dumps and used no CPU time";
    THREADS_DEADLOCK = "threads.deadlock", Text, Deadlock, "Who waits for what and who holds it, around the cycle";
    THREADS_DEADLOCK_DUMPS = "threads.deadlock_dumps", Count, Deadlock, "Dumps that show this deadlock";
    THREADS_DEADLOCK_REPORTED = "threads.deadlock_reported", Count, Deadlock, "1 if the JVM itself reports this deadlock, 0 if it was derived from lock owners";
    THREADS_DEADLOCKS = "threads.deadlocks", Count, Dumps, "Deadlocks in the dumps";
    THREADS_DUMPS = "threads.dumps", Count, Dumps, "Dumps of this JVM";
    THREADS_FULL_POOL = "threads.full_pool", Text, Dumps, "The thread pool most of whose threads wait for another process, what for, and where";
    THREADS_FULL_POOL_BEHIND = "threads.full_pool_behind", Count, Dumps, "Threads of that pool that wait for it, through locks and connections as well; 0 if there is no such pool";
    THREADS_FULL_POOL_BUSY = "threads.full_pool_busy", Fraction, Dumps, "Least share of the threads of that pool that were busy in any dump";
    THREADS_FULL_POOL_THREADS = "threads.full_pool_threads", Count, Dumps, "Threads of that pool";
    THREADS_HOT = "threads.hot", Text, Dumps, "The thread that used most CPU from the first dump to the last, its share and its position";
    THREADS_HOT_JVM = "threads.hot_jvm", Fraction, Dumps, "Largest CPU use of one kind of thread of the JVM itself, as a share of one CPU";
    THREADS_HOT_JVM_NAME = "threads.hot_jvm_name", Text, Dumps, "Name of these threads";
    THREADS_HOT_LOOP = "threads.hot_loop", Text, Dumps, "Threads that were in the same call in every dump, in code known for endless loops, and used a CPU";
    THREADS_HOT_LOOP_KIND = "threads.hot_loop_kind", Text, Dumps, "That code: regex, map, spin";
    THREADS_HOT_LOOP_THREADS = "threads.hot_loop_threads", Count, Dumps, "Number of these threads";
    THREADS_HOT_SHARE = "threads.hot_share", Fraction, Dumps, "Share of one CPU that the hottest thread used; 1 if the JVM prints no CPU time and the thread ran in every dump";
    THREADS_LOCK_WAITING = "threads.lock_waiting", Fraction, Dumps, "Threads that wait for a lock as a share of threads.business, mean of the dumps";
    THREADS_OWNERLESS = "threads.ownerless", Count, Dumps, "Threads of the last dump that wait for a lock whose owner is not shown";
    THREADS_PINNED = "threads.pinned", Count, Dumps, "Virtual threads that are parked on their carrier, by their frames";
    THREADS_PINNED_AT = "threads.pinned_at", Text, Dumps, "Frame where a virtual thread keeps its carrier";
    THREADS_POOLS = "threads.pools", Count, Dumps, "Pools of the last dump";
    THREADS_RUNNING = "threads.running", Count, Dumps, "Threads that run, of all dumps together";
    THREADS_SELF_POOL = "threads.self_pool", Text, Dumps, "A pool all of whose threads wait for results of tasks, and where they wait";
    THREADS_SELF_POOL_NEEDS = "threads.self_pool_needs", Count, Dumps, "1 if only a thread can compute those results, 0 if anything may complete them";
    THREADS_SELF_POOL_OTHERS = "threads.self_pool_others", Count, Dumps, "Threads of other pools that are at work";
    THREADS_SELF_POOL_STILL = "threads.self_pool_still", Count, Dumps, "Threads of that pool that did not move in any dump";
    THREADS_SELF_POOL_THREADS = "threads.self_pool_threads", Count, Dumps, "Threads of that pool";
    THREADS_SERIALIZING = "threads.serializing", Fraction, Dumps, "Share of the running threads with Java serialization on their stack, excluding reads that wait for a socket";
    THREADS_SHARED_WAITS = "threads.shared_waits", Count, Dumps, "Resources that threads of the last dump wait for and no thread owns";
    THREADS_STARVED = "threads.starved", Text, Dumps, "Pools of the last dump all of whose threads wait for one lock";
    THREADS_TOP_LOCK = "threads.top_lock", Text, Dumps, "Class of the lock that most threads wait for in one dump";
    THREADS_TOP_OWNER = "threads.top_owner", Text, Dumps, "Owner of that lock and what it does";
    THREADS_TOP_WAITERS = "threads.top_waiters", Count, Dumps, "Most threads that wait for one lock";
    THREADS_UNRECORDED = "threads.unrecorded", Count, Dumps, "Threads that wait for a lock whose owner no form of dump records: readers, a StampedLock, locks of virtual threads";
    THREADS_UNRECORDED_HELD = "threads.unrecorded_held", Count, Dumps, "Locks of virtual threads with unknown owner that the same threads wait for in three dumps or more, over 3 s or more";
    THREADS_UNRECORDED_LOCKS = "threads.unrecorded_locks", Count, Dumps, "Distinct locks of unknown owner";
    THREADS_UNRECORDED_STUCK = "threads.unrecorded_stuck", Count, Dumps, "Virtual threads that wait at one place for a lock that no dump names, in three files or more, over 3 s or more; before JDK 25";
    THREADS_UNSEEN = "threads.unseen", Text, Dumps, "Why the dumps do not show what virtual threads wait for";
    THREADS_UNSTARTED = "threads.unstarted", Count, Dumps, "Virtual threads that no carrier has run yet";
    THREADS_WAIT = "threads.wait", Text, Wait, "What these threads wait for and where";
    THREADS_WAIT_BEHIND = "threads.wait_behind", Text, Wait, "Threads that wait for a lock held by one of these, and may be the readers that these wait for";
    THREADS_WAIT_HOLDERS = "threads.wait_holders", Text, Wait, "Threads that may release what these wait for, and what they do";
    THREADS_WAIT_KIND = "threads.wait_kind", Text, Wait, "Kind in one word: connection, semaphore, latch, barrier, phaser, exchanger, task, future, reply, full-queue, condition, thread-end, notify, read-lock";
    THREADS_WAIT_REQUESTS = "threads.wait_requests", Count, Wait, "Of those that did not move, threads that handle a request (calls of servlets, Dubbo, gRPC on their stacks)";
    THREADS_WAIT_STILL = "threads.wait_still", Count, Wait, "Of these, threads that did not move in any dump";
    THREADS_WAIT_WAITERS = "threads.wait_waiters", Count, Wait, "Threads of the last dump that wait for it; the series has all dumps";
}
