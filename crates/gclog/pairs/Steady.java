import java.util.Random;

/**
 * Allocates so many MB a second, whatever the collector does: after a pause it makes up for what it missed, as a service does whose
 * requests go on arriving.
 *
 * <p>Most objects die at once. Of the rest each lives in one of three ways: in a queue, for a fixed time as the state of a request
 * does; in a small table and in a large one, until another one takes its slot, so that some live long. What is made first stays
 * for ever.
 */
public final class Steady {
    private static final int KEPT = 6_000;
    private static final int QUEUE = 1_000;
    private static final int SMALL = 1_500;
    private static final int LARGE = 12_000;

    public static void main(String[] arguments) throws InterruptedException {
        double bytesPerNano = Double.parseDouble(arguments[0]) * 1e6 / 1e9;
        long nanos = Long.parseLong(arguments[1]) * 1_000_000_000L;
        Random random = new Random(1);
        byte[][] kept = new byte[KEPT][];
        byte[][] queue = new byte[QUEUE][];
        byte[][] small = new byte[SMALL][];
        byte[][] large = new byte[LARGE][];
        for (int slot = 0; slot < KEPT; slot++) {
            kept[slot] = new byte[2_000];
        }
        long began = System.nanoTime();
        long allocated = 0;
        int head = 0;
        long passed = 0;
        while (passed < nanos) {
            while (allocated < passed * bytesPerNano) {
                byte[] fresh = new byte[200 + random.nextInt(1_600)];
                allocated += fresh.length + 16;
                int lot = random.nextInt(100);
                if (lot < 6) {
                    queue[head] = fresh;
                    head = (head + 1) % QUEUE;
                } else if (lot < 14) {
                    small[random.nextInt(SMALL)] = fresh;
                } else if (lot < 18) {
                    large[random.nextInt(LARGE)] = fresh;
                }
            }
            Thread.sleep(1);
            passed = System.nanoTime() - began;
        }
        System.out.println(allocated + " " + kept.length + queue.length + small.length + large.length);
    }
}
