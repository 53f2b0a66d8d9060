import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Allocates as a small service does: requests that die at once, sessions that live for a while, a cache of references, now
 * and then a large buffer. Ends with a full collection and prints what its JVM has counted until then, one line each:
 *
 * <pre>
 * at MILLISECONDS MILLISECONDS
 * allocated BYTES
 * collector COUNT MILLISECONDS NAME
 * </pre>
 *
 * <p>The one argument is how many MiB its two threads allocate together. It is halted, not ended, so that nothing can come
 * after the figures.
 */
public final class Service {
    private static final int MIB = 1 << 20;
    private static final int THREADS = 2;
    private static final AtomicLong ALLOCATED = new AtomicLong();

    private final byte[][] sessions = new byte[4096][];
    private final Object[] cache = new Object[256];
    private byte[] last;
    private long served;

    private Service() {}

    public static void main(String[] arguments) throws InterruptedException {
        long bytes = Long.parseLong(arguments[0]) * MIB / THREADS;
        Thread[] threads = new Thread[THREADS];
        for (int number = 0; number < THREADS; number++) {
            threads[number] = new Thread(() -> {
                new Service().serve(bytes);
                ALLOCATED.addAndGet(allocated());
            }, "worker-" + number);
            threads[number].setUncaughtExceptionHandler((thread, error) -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
            });
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.gc();
        StringBuilder said = new StringBuilder();
        long before = System.currentTimeMillis();
        said.append("allocated ").append(ALLOCATED.get() + allocated()).append('\n');
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            said.append("collector ").append(bean.getCollectionCount());
            said.append(' ').append(bean.getCollectionTime());
            said.append(' ').append(bean.getName()).append('\n');
        }
        said.append("at ").append(before).append(' ').append(System.currentTimeMillis()).append('\n');
        System.out.print(said);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Bytes that this thread has allocated. */
    private static long allocated() {
        com.sun.management.ThreadMXBean threads =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        return threads.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    private void serve(long bytes) {
        long left = bytes;
        int request = 0;
        while (left > 0) {
            left -= request(request++);
        }
    }

    /** Bytes that it took, about. */
    private int request(int number) {
        int size = 1024 + number * 131 % 8192;
        last = new byte[size];
        for (int at = 0; at < size; at += 512) {
            last[at] = (byte) number;
            served += last[at];
        }
        if (number % 8 == 0) {
            // Kept for 32768 requests: 20 MiB of sessions of each thread live at any time.
            sessions[number / 8 % sessions.length] = last;
        }
        if (number % 64 == 0) {
            int place = number / 64 % cache.length;
            cache[place] = number % 128 == 0 ? new WeakReference<>(last) : new SoftReference<>(last);
        }
        if (number % 2048 == 0) {
            last = new byte[3 * MIB / 2];
            return size + last.length;
        }
        return size;
    }
}
