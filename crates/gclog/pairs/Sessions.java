import java.util.ArrayDeque;
import java.util.Random;

/**
 * Answers requests as they come, of two threads: nothing of it was looked at when the model was made, so it shows what the model
 * is worth.
 *
 * <p>Requests arrive at random (Poisson) and not evenly. Nine parts in ten of what a request makes die with it. One lives on for
 * a time of its own, seconds and not bytes allocated, which has no typical length: most for a tenth of a second, some for a
 * minute (Pareto). And every twentieth request puts a page into a cache, in the place of the one that was looked at the longest
 * time ago.
 */
public final class Sessions implements Runnable {
    /** Bytes that a request makes, on average. */
    private static final int REQUEST = 40_000;
    private static final int THREADS = 2;
    /** Shortest time that what stays of a request lives, seconds, and how many live longer (exponent). */
    private static final double SHORTEST = 0.1;
    private static final double EXPONENT = 1.2;
    private static final double LONGEST = 60;
    /** One place for every ten milliseconds to come. */
    private static final int TICKS = 6_001;
    private static final int PAGES = 150;
    private static final int PAGE = 48_000;

    private final double perSecond;
    private final long nanos;
    private final Random random;

    private Sessions(double perSecond, long nanos, long seed) {
        this.perSecond = perSecond;
        this.nanos = nanos;
        this.random = new Random(seed);
    }

    public static void main(String[] arguments) throws InterruptedException {
        double bytesPerSecond = Double.parseDouble(arguments[0]) * 1e6;
        long nanos = Long.parseLong(arguments[1]) * 1_000_000_000L;
        Thread[] threads = new Thread[THREADS];
        for (int number = 0; number < THREADS; number++) {
            threads[number] = new Thread(new Sessions(bytesPerSecond / REQUEST / THREADS, nanos, number));
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public void run() {
        ArrayDeque<byte[]>[] ending = new ArrayDeque[TICKS];
        for (int tick = 0; tick < TICKS; tick++) {
            ending[tick] = new ArrayDeque<>();
        }
        byte[][][] pages = new byte[PAGES][][];
        long requests = 0;
        int oldest = 0;
        long began = System.nanoTime();
        long swept = 0;
        double arrives = 0;
        long passed = 0;
        while (passed < nanos) {
            for (long now = passed / 10_000_000; swept <= now; swept++) {
                ending[(int) (swept % TICKS)] = new ArrayDeque<>();
            }
            while (arrives < passed / 1e9) {
                request(ending, swept);
                if (++requests % 20 == 0) {
                    pages[oldest] = page();
                    oldest = (oldest + 1) % PAGES;
                }
                arrives -= Math.log(1 - random.nextDouble()) / perSecond;
            }
            try {
                Thread.sleep(1);
            } catch (InterruptedException stop) {
                return;
            }
            passed = System.nanoTime() - began;
        }
    }

    private void request(ArrayDeque<byte[]>[] ending, long now) {
        int left = (int) (REQUEST * 0.9 * (0.5 + random.nextDouble()));
        Object[] own = new Object[32];
        for (int made = 0; left > 0; made++) {
            byte[] fresh = new byte[50 + random.nextInt(3_000)];
            own[made % own.length] = fresh;
            left -= fresh.length + 16;
            if (random.nextInt(10) == 0) {
                double seconds = Math.min(SHORTEST * Math.pow(1 - random.nextDouble(), -1 / EXPONENT), LONGEST - 1);
                ending[(int) ((now + (long) (seconds * 100)) % TICKS)].add(fresh);
            }
        }
    }

    /** In pieces as large as the other objects. */
    private byte[][] page() {
        byte[][] page = new byte[PAGE / 1_500][];
        for (int piece = 0; piece < page.length; piece++) {
            page[piece] = new byte[1_500];
        }
        return page;
    }
}
