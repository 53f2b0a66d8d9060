import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.ReentrantLock;

/** The problems of virtual threads, JDK 21 and later: {@code java Virtual NAME [key=value...]}, as {@link Plant}. */
public class Virtual {
    /** Virtual threads sleep inside synchronized; until JDK 24 each keeps its carrier. */
    static void pinned() throws Exception {
        int threads = Plant.option("threads", 200);
        // So many of a hundred sleep within their monitor, the others beside it.
        int within = threads * Plant.option("pinned", 100) / 100;
        for (int i = 0; i < threads; i++) {
            boolean pins = i < within;
            Thread.ofVirtual().name("order-" + i).start(Plant.unchecked(() -> {
                Object own = new Object();
                while (true) {
                    if (pins) {
                        synchronized (own) {
                            Thread.sleep(Plant.option("hold", 1000));
                        }
                    } else {
                        Thread.sleep(Plant.option("hold", 1000));
                    }
                    Plant.DONE.incrementAndGet();
                }
            }));
        }
        Thread.sleep(500);
    }

    /** Two virtual threads in a cycle of monitors. */
    static void monitors() throws Exception {
        Object[] locks = {new Object(), new Object()};
        CountDownLatch both = new CountDownLatch(2);
        for (int i = 0; i < 2; i++) {
            Object mine = locks[i];
            Object other = locks[1 - i];
            Thread.ofVirtual().name("vt-ring-" + i).start(Plant.unchecked(() -> {
                synchronized (mine) {
                    both.countDown();
                    both.await();
                    synchronized (other) {
                        Plant.DONE.incrementAndGet();
                    }
                }
            }));
        }
        both.await();
        Thread.sleep(300);
    }

    /** The same with ReentrantLock. */
    static void locks() throws Exception {
        ReentrantLock[] locks = {new ReentrantLock(), new ReentrantLock()};
        CountDownLatch both = new CountDownLatch(2);
        for (int i = 0; i < 2; i++) {
            ReentrantLock mine = locks[i];
            ReentrantLock other = locks[1 - i];
            Thread.ofVirtual().name("vt-lock-" + i).start(Plant.unchecked(() -> {
                mine.lock();
                both.countDown();
                both.await();
                other.lock();
                Plant.DONE.incrementAndGet();
            }));
        }
        both.await();
        Thread.sleep(300);
    }

    /** Many virtual threads and few permits. */
    static void semaphore() throws Exception {
        Semaphore semaphore = new Semaphore(Plant.option("permits", 5));
        for (int i = 0; i < Plant.option("threads", 200); i++) {
            Thread.ofVirtual().name("vt-call-" + i).start(Plant.unchecked(() -> {
                while (true) {
                    semaphore.acquire();
                    Thread.sleep(Plant.option("hold", 1000));
                    semaphore.release();
                    Plant.DONE.incrementAndGet();
                }
            }));
        }
        Thread.sleep(500);
    }

    /** Many virtual threads that sleep and do a little, as a healthy service has them. */
    static void healthy() throws Exception {
        for (int i = 0; i < Plant.option("threads", 500); i++) {
            Thread.ofVirtual().name("vt-" + i).start(Plant.unchecked(() -> {
                while (true) {
                    Thread.sleep(50);
                    Plant.DONE.incrementAndGet();
                }
            }));
        }
        Thread.sleep(300);
    }

    static final Map<String, Plant.Work> PROBLEMS = new TreeMap<>();

    static {
        PROBLEMS.put("vt-pinned", Virtual::pinned);
        PROBLEMS.put("vt-monitors", Virtual::monitors);
        PROBLEMS.put("vt-locks", Virtual::locks);
        PROBLEMS.put("vt-semaphore", Virtual::semaphore);
        PROBLEMS.put("healthy-virtual", Virtual::healthy);
    }

    public static void main(String[] args) throws Exception {
        Plant.main(PROBLEMS, args);
    }
}
