import com.sun.net.httpserver.HttpServer;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Exchanger;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.Phaser;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;
import java.util.regex.Pattern;
import org.postgresql.PlantedDriver;

/**
 * Plants one problem of threads in a JVM, by name: {@code java Plant NAME [threads=N] [hold=MS] [seed=S]}.
 * Prints {@code ready} once it stands, {@code progress N} four times a second, and ends when its input does. README.md tells more.
 */
public class Plant {
    /** Work that was done; a problem without progress keeps it where it is. */
    static final AtomicLong DONE = new AtomicLong();
    static final Map<String, String> OPTIONS = new HashMap<>();
    /** Connections that stay open. */
    static final List<Socket> CLIENTS = new ArrayList<>();
    static Random random;

    interface Work {
        void run() throws Exception;
    }

    static int option(String name, int otherwise) {
        String value = OPTIONS.get(name);
        return value == null ? otherwise : Integer.parseInt(value);
    }

    static Runnable unchecked(Work work) {
        return () -> {
            try {
                work.run();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
    }

    static Thread start(String name, Work work) {
        Thread thread = new Thread(unchecked(work), name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static ThreadFactory named(String prefix) {
        AtomicInteger next = new AtomicInteger(1);
        return work -> {
            Thread thread = new Thread(work, prefix + next.getAndIncrement());
            thread.setDaemon(true);
            return thread;
        };
    }

    static void sleep(long millis) throws InterruptedException {
        Thread.sleep(millis);
    }

    /** Uses a CPU for about so long. */
    static double compute(long millis) {
        long end = System.nanoTime() + millis * 1_000_000;
        double sum = 0;
        while (System.nanoTime() < end) {
            for (int i = 1; i < 1000; i++) {
                sum += Math.sqrt(i + sum);
            }
        }
        return sum;
    }

    /** Waits until so many threads with this beginning of their names are in one of the states, so that "ready" is true. */
    static void until(String prefix, int count, Thread.State... states) throws InterruptedException {
        for (int turn = 0; turn < 2000; turn++) {
            int found = 0;
            for (ThreadInfo info : ManagementFactory.getThreadMXBean().dumpAllThreads(false, false)) {
                if (info.getThreadName().startsWith(prefix)) {
                    for (Thread.State state : states) {
                        found += info.getThreadState() == state ? 1 : 0;
                    }
                }
            }
            if (found >= count) {
                return;
            }
            sleep(5);
        }
        throw new IllegalStateException("not planted: fewer than " + count + " threads " + prefix + " wait");
    }

    static final Thread.State[] WAITS = {Thread.State.WAITING, Thread.State.TIMED_WAITING};

    // ---- pools -------------------------------------------------------------------------------------------------------------

    /** Tasks wait for tasks of the same fixed pool. */
    static void poolSelf() throws Exception {
        int threads = option("threads", 4);
        ExecutorService pool = Executors.newFixedThreadPool(threads, named("orders-"));
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            pool.submit(() -> {
                all.countDown();
                all.await();
                Future<Long> part = pool.submit(DONE::incrementAndGet);
                return part.get();
            });
        }
        until("orders-", threads, WAITS);
    }

    /** The same with invokeAll. */
    static void poolInvokeAll() throws Exception {
        int threads = option("threads", 4);
        ExecutorService pool = Executors.newFixedThreadPool(threads, named("reports-"));
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            pool.submit(() -> {
                all.countDown();
                all.await();
                List<java.util.concurrent.Callable<Long>> parts = new ArrayList<>();
                parts.add(DONE::incrementAndGet);
                return pool.invokeAll(parts);
            });
        }
        until("reports-", threads, WAITS);
    }

    /** The same with CompletableFuture.supplyAsync(..., pool).join(). */
    static void poolAsync() throws Exception {
        int threads = option("threads", 4);
        ExecutorService pool = Executors.newFixedThreadPool(threads, named("async-"));
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            CompletableFuture.runAsync(unchecked(() -> {
                all.countDown();
                all.await();
                CompletableFuture.supplyAsync(DONE::incrementAndGet, pool).join();
            }), pool);
        }
        until("async-", threads, WAITS);
    }

    /** Every worker of the common pool waits for a latch that only a further task of the common pool would count down. */
    static void commonPool() throws Exception {
        int workers = ForkJoinPool.getCommonPoolParallelism();
        CountDownLatch latch = new CountDownLatch(1);
        for (int i = 0; i < workers; i++) {
            ForkJoinPool.commonPool().execute(unchecked(() -> {
                latch.await();
                DONE.incrementAndGet();
            }));
        }
        until("ForkJoinPool.commonPool-worker-", workers, WAITS);
        ForkJoinPool.commonPool().execute(latch::countDown);
        int clients = option("threads", 6);
        for (int i = 0; i < clients; i++) {
            start("http-" + i, () -> CompletableFuture.supplyAsync(DONE::incrementAndGet).join());
        }
        until("http-", clients, WAITS);
    }

    // ---- shared waits ------------------------------------------------------------------------------------------------------

    /** Few permits and slow holders. */
    static void semaphore() throws Exception {
        int threads = option("threads", 40);
        int permits = option("permits", 5);
        Semaphore semaphore = new Semaphore(permits);
        for (int i = 0; i < threads; i++) {
            start("call-" + i, () -> {
                while (true) {
                    semaphore.acquire();
                    try {
                        sleep(option("hold", 2000));
                    } finally {
                        semaphore.release();
                    }
                    DONE.incrementAndGet();
                }
            });
        }
        until("call-", threads, WAITS);
    }

    static void latchNever() throws Exception {
        int threads = option("threads", 8);
        CountDownLatch latch = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            start("startup-" + i, () -> {
                latch.await();
                DONE.incrementAndGet();
            });
        }
        until("startup-", threads, WAITS);
    }

    /** A future whose thread died of an exception before it completed it. */
    static void futureJoin() throws Exception {
        int threads = option("threads", 8);
        CompletableFuture<String> answer = new CompletableFuture<>();
        Thread debtor = new Thread(() -> {
            throw new IllegalStateException("dies before it completes the future");
        }, "loader");
        debtor.setUncaughtExceptionHandler((thread, error) -> { });
        debtor.start();
        debtor.join();
        for (int i = 0; i < threads; i++) {
            start("request-" + i, () -> {
                answer.join();
                DONE.incrementAndGet();
            });
        }
        until("request-", threads, WAITS);
    }

    static void condition() throws Exception {
        int threads = option("threads", 8);
        ReentrantLock lock = new ReentrantLock();
        Condition filled = lock.newCondition();
        for (int i = 0; i < threads; i++) {
            start("consumer-" + i, () -> {
                lock.lock();
                try {
                    filled.await();
                    DONE.incrementAndGet();
                } finally {
                    lock.unlock();
                }
            });
        }
        until("consumer-", threads, WAITS);
    }

    /** Requests wait at a condition that no thread signals: the JDK's HTTP server and clients that were patient. */
    static void conditionRequest() throws Exception {
        int threads = option("threads", 8);
        ReentrantLock lock = new ReentrantLock();
        Condition filled = lock.newCondition();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), threads);
        server.setExecutor(Executors.newFixedThreadPool(threads, named("request-")));
        server.createContext("/", exchange -> {
            lock.lock();
            try {
                filled.awaitUninterruptibly();
                DONE.incrementAndGet();
            } finally {
                lock.unlock();
            }
        });
        server.start();
        for (int i = 0; i < threads; i++) {
            Socket client = new Socket(InetAddress.getLoopbackAddress(), server.getAddress().getPort());
            client.getOutputStream().write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes("US-ASCII"));
            CLIENTS.add(client);
        }
        until("request-", threads, WAITS);
    }

    static void exchanger() throws Exception {
        int threads = option("threads", 1);
        List<Exchanger<String>> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Exchanger<String> exchanger = new Exchanger<>();
            all.add(exchanger);
            start("swap-" + i, () -> {
                exchanger.exchange("mine");
                DONE.incrementAndGet();
            });
        }
        until("swap-", threads, WAITS);
    }

    /** One party more is registered than ever arrives. */
    static void phaser() throws Exception {
        int threads = option("threads", 6);
        Phaser phaser = new Phaser(threads + 1);
        for (int i = 0; i < threads; i++) {
            start("stage-" + i, () -> {
                phaser.arriveAndAwaitAdvance();
                DONE.incrementAndGet();
            });
        }
        until("stage-", threads, WAITS);
    }

    /** Producers of a full queue whose consumer is gone. */
    static void queueFull() throws Exception {
        int threads = option("threads", 8);
        ArrayBlockingQueue<Integer> queue = new ArrayBlockingQueue<>(4);
        for (int i = 0; i < threads; i++) {
            start("producer-" + i, () -> {
                while (true) {
                    queue.put(1);
                    DONE.incrementAndGet();
                }
            });
        }
        until("producer-", threads, WAITS);
    }

    /** A barrier for one party more than its pool has threads. */
    static void barrier() throws Exception {
        int threads = option("threads", 4);
        ExecutorService pool = Executors.newFixedThreadPool(threads, named("merge-"));
        CyclicBarrier barrier = new CyclicBarrier(threads + 1);
        for (int i = 0; i <= threads; i++) {
            pool.submit(() -> {
                barrier.await();
                return DONE.incrementAndGet();
            });
        }
        until("merge-", threads, WAITS);
    }

    // ---- locks -------------------------------------------------------------------------------------------------------------

    /** A reader waits for a monitor whose owner wants the write lock. */
    static void rwReaders() throws Exception {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        Object monitor = new Object();
        CountDownLatch both = new CountDownLatch(2);
        start("rw-reader", () -> {
            lock.readLock().lock();
            both.countDown();
            both.await();
            synchronized (monitor) {
                DONE.incrementAndGet();
            }
        });
        start("rw-writer", () -> {
            synchronized (monitor) {
                both.countDown();
                both.await();
                lock.writeLock().lock();
                DONE.incrementAndGet();
            }
        });
        until("rw-reader", 1, Thread.State.BLOCKED);
        until("rw-writer", 1, WAITS);
        for (int i = 0; i < option("threads", 3); i++) {
            start("rw-late-" + i, () -> {
                lock.readLock().lock();
                DONE.incrementAndGet();
            });
        }
        until("rw-late-", option("threads", 3), WAITS);
    }

    /** A reader that asks for the write lock without giving back the read lock. */
    static void rwUpgrade() throws Exception {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        start("upgrade-0", () -> {
            lock.readLock().lock();
            lock.writeLock().lock();
            DONE.incrementAndGet();
        });
        until("upgrade-0", 1, WAITS);
    }

    /** A thread that has a StampedLock for writing and asks for it again: it is not reentrant. */
    static void stampedTwice() throws Exception {
        StampedLock lock = new StampedLock();
        start("stamp-0", () -> {
            lock.writeLock();
            lock.writeLock();
            DONE.incrementAndGet();
        });
        until("stamp-0", 1, WAITS);
        int threads = option("threads", 4);
        for (int i = 0; i < threads; i++) {
            start("quote-" + i, () -> {
                lock.unlockRead(lock.readLock());
                DONE.incrementAndGet();
            });
        }
        until("quote-", threads, WAITS);
    }

    /** Monitors and ReentrantLocks by turns, in a cycle. */
    static void deadlockMixed() throws Exception {
        int threads = option("threads", 3);
        Object[] monitors = new Object[threads];
        ReentrantLock[] locks = new ReentrantLock[threads];
        for (int i = 0; i < threads; i++) {
            monitors[i] = new Object();
            locks[i] = new ReentrantLock();
        }
        CountDownLatch all = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            int at = i;
            int next = (i + 1) % threads;
            start("ring-" + i, () -> take(monitors, locks, at, () -> {
                all.countDown();
                all.await();
                take(monitors, locks, next, DONE::incrementAndGet);
            }));
        }
        until("ring-", threads, Thread.State.BLOCKED, Thread.State.WAITING);
        sleep(200);
    }

    static void take(Object[] monitors, ReentrantLock[] locks, int at, Work work) throws Exception {
        if (at % 2 == 0) {
            synchronized (monitors[at]) {
                work.run();
            }
        } else {
            locks[at].lock();
            try {
                work.run();
            } finally {
                locks[at].unlock();
            }
        }
    }

    static final CountDownLatch BOTH = new CountDownLatch(2);

    static void meet() {
        BOTH.countDown();
        try {
            BOTH.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static class Left {
        static final int VALUE;

        static {
            meet();
            VALUE = Right.VALUE + 1;
        }
    }

    static class Right {
        static final int VALUE;

        static {
            meet();
            VALUE = Left.VALUE + 1;
        }
    }

    /** Two classes whose initialisers need each other. */
    static void classInit() throws Exception {
        start("init-left", () -> DONE.addAndGet(Left.VALUE));
        start("init-right", () -> DONE.addAndGet(Right.VALUE));
        BOTH.await();
        sleep(300);
        for (int i = 0; i < option("threads", 4); i++) {
            start("init-user-" + i, () -> DONE.addAndGet(Left.VALUE));
        }
        sleep(300);
    }

    /** Threads write through one appender, whose file is slow, and work in between. */
    static void appender() throws Exception {
        int threads = option("threads", 60);
        int work = option("work", 0);
        Appender appender = new Appender();
        for (int i = 0; i < threads; i++) {
            start("http-exec-" + i, () -> {
                while (true) {
                    sleep(work);
                    appender.append();
                    DONE.incrementAndGet();
                }
            });
        }
        if (work == 0) {
            until("http-exec-", threads - 1, Thread.State.BLOCKED);
        } else {
            sleep(2 * work);
        }
    }

    static class Appender {
        synchronized void append() throws InterruptedException {
            sleep(option("hold", 20));
        }
    }

    /** One thread at a time asks a slow database, under a lock that the others want. */
    static void poolDatabase() throws Exception {
        int threads = option("threads", 40);
        int work = option("work", 0);
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start("database", () -> {
            Socket client = server.accept();
            while (client.getInputStream().read() >= 0) {
                sleep(option("hold", 200));
                client.getOutputStream().write(1);
            }
        });
        Orders orders = new Orders(new PlantedDriver(server.getLocalPort()));
        for (int i = 0; i < threads; i++) {
            start("http-exec-" + i, () -> {
                while (true) {
                    sleep(work);
                    orders.find();
                    DONE.incrementAndGet();
                }
            });
        }
        if (work == 0) {
            until("http-exec-", threads - 1, Thread.State.BLOCKED);
        } else {
            sleep(2 * work);
        }
    }

    static class Orders {
        private final PlantedDriver driver;

        Orders(PlantedDriver driver) {
            this.driver = driver;
        }

        synchronized void find() throws Exception {
            driver.query();
        }
    }

    // ---- CPU ---------------------------------------------------------------------------------------------------------------

    /** Two threads that each give way to the other, for ever. */
    static void livelock() throws Exception {
        ReentrantLock[] locks = {new ReentrantLock(), new ReentrantLock()};
        CountDownLatch both = new CountDownLatch(2);
        for (int i = 0; i < 2; i++) {
            ReentrantLock mine = locks[i];
            ReentrantLock other = locks[1 - i];
            start("polite-" + i, () -> {
                mine.lock();
                both.countDown();
                both.await();
                while (!other.tryLock()) {
                    Thread.yield();
                }
                DONE.incrementAndGet();
            });
        }
        both.await();
    }

    static void regex() throws Exception {
        // Since JDK 9 groups that failed at a place are remembered, except in a pattern that refers back to one.
        Pattern pattern = Pattern.compile("(x+x+)+y\\1");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < option("length", 34); i++) {
            text.append('x');
        }
        start("validate-0", () -> {
            while (true) {
                pattern.matcher(text).matches();
                DONE.incrementAndGet();
            }
        });
        sleep(300);
    }

    /** Threads put into one map without a lock until its chains form a loop: WeakHashMap on every JDK, HashMap as trees of JDK 8. */
    static void hashmapLoop() throws Exception {
        int threads = option("threads", 8);
        for (int turn = 0; turn < option("tries", 400); turn++) {
            Map<Key, Integer> map = "hash".equals(OPTIONS.get("map")) ? new HashMap<>(2) : new WeakHashMap<>(2);
            AtomicInteger running = new AtomicInteger(threads);
            int base = random.nextInt();
            List<Key> kept = java.util.Collections.synchronizedList(new ArrayList<>());
            List<Thread> all = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                int from = base + i * 100_000;
                all.add(start("session-" + i, () -> {
                    try {
                        for (int k = 0; k < 3000; k++) {
                            Key key = new Key(from + k);
                            kept.add(key);
                            map.put(key, k);
                            if (k % 3 == 0 && map instanceof HashMap) {
                                map.remove(new Key(from + k - 1));
                            }
                        }
                    } catch (ClassCastException | NullPointerException e) {
                        // The tree is broken, not looped.
                    } finally {
                        running.decrementAndGet();
                    }
                }));
            }
            for (Thread thread : all) {
                thread.join(1000);
            }
            if (running.get() > 1) {
                return;
            }
        }
        throw new IllegalStateException("not planted: no loop in any try");
    }

    /** Few hashes, so that bins become trees. */
    static final class Key implements Comparable<Key> {
        final int number;

        Key(int number) {
            this.number = number;
        }

        @Override
        public int hashCode() {
            return "hash".equals(OPTIONS.get("map")) ? number & 15 : number;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key && ((Key) other).number == number;
        }

        @Override
        public int compareTo(Key other) {
            return Integer.compare(number, other.number);
        }
    }

    // ---- healthy -----------------------------------------------------------------------------------------------------------

    /** 200 idle pool threads and a few busy ones. */
    static void healthyPools() throws Exception {
        int idle = option("threads", 200);
        ExecutorService pool = Executors.newFixedThreadPool(idle, named("http-nio-8080-exec-"));
        CountDownLatch all = new CountDownLatch(idle);
        for (int i = 0; i < idle; i++) {
            pool.submit(() -> {
                all.countDown();
                all.await();
                return null;
            });
        }
        all.await();
        until("http-nio-8080-exec-", idle, WAITS);
        for (int i = 0; i < option("busy", 5); i++) {
            start("worker-" + i, () -> {
                while (true) {
                    compute(5);
                    sleep(20);
                    DONE.incrementAndGet();
                }
            });
        }
    }

    /** One thread that computes all the time, on ever other work. */
    static void healthyHot() throws Exception {
        start("indexer-0", () -> {
            while (true) {
                TreeMap<Integer, String> index = new TreeMap<>();
                for (int i = 0; i < 20_000; i++) {
                    index.put(random.nextInt(), Integer.toHexString(i));
                }
                StringBuilder text = new StringBuilder();
                for (Map.Entry<Integer, String> entry : index.entrySet()) {
                    text.append(entry.getValue()).append(Math.sin(entry.getKey()));
                }
                DONE.addAndGet(text.length() > 0 ? 1 : 0);
            }
        });
        sleep(200);
    }

    /** Short waits for a future, a semaphore and a lock, as any service has them. */
    static void healthyMixed() throws Exception {
        int threads = option("threads", 12);
        ExecutorService pool = Executors.newFixedThreadPool(8, named("backend-"));
        Semaphore semaphore = new Semaphore(threads);
        Object lock = new Object();
        for (int i = 0; i < threads; i++) {
            int wait = 5 + random.nextInt(20);
            start("web-" + i, () -> {
                while (true) {
                    semaphore.acquire();
                    try {
                        pool.submit(unchecked(() -> sleep(wait))).get();
                        synchronized (lock) {
                            DONE.incrementAndGet();
                        }
                        sleep(wait);
                    } finally {
                        semaphore.release();
                    }
                }
            });
        }
        sleep(200);
    }

    static final Map<String, Work> PROBLEMS = new TreeMap<>();

    static {
        PROBLEMS.put("pool-self", Plant::poolSelf);
        PROBLEMS.put("pool-invoke-all", Plant::poolInvokeAll);
        PROBLEMS.put("pool-async", Plant::poolAsync);
        PROBLEMS.put("common-pool", Plant::commonPool);
        PROBLEMS.put("semaphore", Plant::semaphore);
        PROBLEMS.put("latch-never", Plant::latchNever);
        PROBLEMS.put("future-join", Plant::futureJoin);
        PROBLEMS.put("condition", Plant::condition);
        PROBLEMS.put("condition-request", Plant::conditionRequest);
        PROBLEMS.put("exchanger", Plant::exchanger);
        PROBLEMS.put("phaser", Plant::phaser);
        PROBLEMS.put("queue-full", Plant::queueFull);
        PROBLEMS.put("barrier", Plant::barrier);
        PROBLEMS.put("stamped-twice", Plant::stampedTwice);
        PROBLEMS.put("rw-readers", Plant::rwReaders);
        PROBLEMS.put("rw-upgrade", Plant::rwUpgrade);
        PROBLEMS.put("deadlock-mixed", Plant::deadlockMixed);
        PROBLEMS.put("class-init", Plant::classInit);
        PROBLEMS.put("appender", Plant::appender);
        PROBLEMS.put("pool-database", Plant::poolDatabase);
        PROBLEMS.put("livelock", Plant::livelock);
        PROBLEMS.put("regex", Plant::regex);
        PROBLEMS.put("hashmap-loop", Plant::hashmapLoop);
        PROBLEMS.put("healthy-pools", Plant::healthyPools);
        PROBLEMS.put("healthy-hot", Plant::healthyHot);
        PROBLEMS.put("healthy-mixed", Plant::healthyMixed);
    }

    /** Plants one of these problems, then says so until the input ends. */
    static void main(Map<String, Work> problems, String[] args) throws Exception {
        Work problem = args.length == 0 ? null : problems.get(args[0]);
        if (problem == null) {
            System.err.println("name one of " + problems.keySet() + ", and NAME=VALUE pairs");
            System.exit(2);
            return;
        }
        for (int i = 1; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            OPTIONS.put(pair[0], pair.length > 1 ? pair[1] : "1");
        }
        random = new Random(option("seed", 1));
        problem.run();
        System.out.println("ready");
        start("progress", () -> {
            while (true) {
                // One write: println of JDK 8 makes two, and a dump can come between them.
                System.out.print("progress " + DONE.get() + "\n");
                sleep(250);
            }
        });
        while (System.in.read() >= 0) {
            // Until whoever started it closes its input, or ends.
        }
        System.exit(0);
    }

    public static void main(String[] args) throws Exception {
        main(PROBLEMS, args);
    }
}
