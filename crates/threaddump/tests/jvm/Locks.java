import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** Two deadlocks, two locks with queues, an idle pool; says when all of it stands, then waits for the end of its input. */
public class Locks {
    static final int HOT = 12, CLIENTS = 7, IDLE = 5;

    interface Work {
        void run() throws Exception;
    }

    static void thread(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Holds a lock and sleeps, while others want it. */
    static void queue(String name, int waiters, Lock lock, Object monitor) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        thread(name + "-holder", () -> under(lock, monitor, () -> {
            held.countDown();
            Thread.sleep(600_000);
        }));
        held.await();
        for (int i = 0; i < waiters; i++) {
            thread(name + "-client-" + i, () -> under(lock, monitor, () -> { }));
        }
    }

    static void under(Lock lock, Object monitor, Work work) throws Exception {
        if (lock == null) {
            synchronized (monitor) {
                work.run();
            }
            return;
        }
        lock.lock();
        try {
            work.run();
        } finally {
            lock.unlock();
        }
    }

    /** Each takes its own first, then the other's. */
    static void deadlock(String a, String b, Lock[] locks, Object[] monitors) {
        CountDownLatch both = new CountDownLatch(2);
        String[] names = {a, b};
        for (int i = 0; i < 2; i++) {
            int own = i, other = 1 - i;
            thread(names[i], () -> under(locks[own], monitors[own], () -> {
                both.countDown();
                both.await();
                under(locks[other], monitors[other], () -> { });
            }));
        }
    }

    public static void main(String[] arguments) throws Exception {
        Lock[] none = {null, null};
        deadlock("dl-A", "dl-B", none, new Object[] {new Object(), new Object()});
        deadlock("dl-P", "dl-Q", new Lock[] {new ReentrantLock(), new ReentrantLock()}, new Object[2]);
        queue("hot", HOT, null, new Object());
        queue("fair", CLIENTS, new ReentrantLock(true), null);
        ExecutorService pool = Executors.newFixedThreadPool(IDLE);
        CountDownLatch all = new CountDownLatch(IDLE);
        for (int i = 0; i < IDLE; i++) {
            pool.execute(() -> {
                all.countDown();
                try {
                    all.await();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        while (true) {
            long[] dead = threads.findDeadlockedThreads();
            int blocked = 0, parked = 0;
            for (java.lang.management.ThreadInfo info : threads.getThreadInfo(threads.getAllThreadIds(), 2)) {
                if (info == null) {
                    continue;
                }
                String name = info.getThreadName();
                blocked += info.getThreadState() == Thread.State.BLOCKED ? 1 : 0;
                boolean waits = info.getThreadState() == Thread.State.WAITING;
                parked += waits && (name.startsWith("fair-client") || name.startsWith("pool-")) ? 1 : 0;
            }
            if (dead != null && dead.length == 4 && blocked == HOT + 2 && parked == CLIENTS + IDLE) {
                break;
            }
            Thread.yield();
        }
        System.out.println("ready");
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
