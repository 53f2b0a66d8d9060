import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/** A program that knows what a recording of it contains: samples, contended locks, exceptions, allocation, file I/O. */
public class Recorded {
    static final Object LEDGER = new Object();
    static final ReentrantLock QUEUE = new ReentrantLock();
    static volatile long sink;
    static volatile Object kept;

    static void spin(long ms) {
        long end = System.nanoTime() + ms * 1_000_000;
        long sum = 0;
        while (System.nanoTime() < end) {
            for (int at = 0; at < 1000; at++) {
                sum += at * sum + 31;
            }
        }
        sink = sum;
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** Three threads want one monitor, which each holds for 30 ms; the same with a lock. */
    static void contend() throws Exception {
        CountDownLatch between = new CountDownLatch(3);
        Thread[] threads = new Thread[3];
        for (int at = 0; at < threads.length; at++) {
            threads[at] = new Thread(() -> {
                for (int round = 0; round < 5; round++) {
                    synchronized (LEDGER) {
                        pause(30);
                    }
                }
                // Else the first to be done has the lock for itself.
                between.countDown();
                try {
                    between.await();
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
                for (int round = 0; round < 5; round++) {
                    QUEUE.lock();
                    try {
                        pause(30);
                    } finally {
                        QUEUE.unlock();
                    }
                }
            }, "contender-" + at);
            threads[at].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void fail() {
        for (int at = 0; at < 200; at++) {
            try {
                Integer.parseInt("no number " + at);
            } catch (NumberFormatException expected) {
                sink++;
            }
        }
    }

    static void allocate() {
        for (int at = 0; at < 4000; at++) {
            kept = new long[4096];
        }
    }

    public static void main(String[] arguments) throws Exception {
        spin(1500);
        contend();
        fail();
        allocate();
        Path file = Files.createTempFile("recorded", ".txt");
        Files.write(file, new byte[1 << 20]);
        Files.readAllBytes(file);
        Files.delete(file);
        spin(500);
    }
}
