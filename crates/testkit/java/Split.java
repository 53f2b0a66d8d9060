/** A program whose CPU time is known: 70, 20 and 10 % in three methods of a thread. Ends when its input does. */
public class Split {
    static volatile long sink;

    static long sum(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) {
            sum += i * i ^ sum >>> 3;
        }
        return sum;
    }

    static void seventy(long n) {
        sink += sum(7 * n);
    }

    static void twenty(long n) {
        sink += sum(2 * n);
    }

    static void ten(long n) {
        sink += sum(n);
    }

    static void work() {
        long state = 7;
        for (;;) {
            // Rounds of varying length, so that they are never in step with a clock.
            state = state * 6364136223846793005L + 1442695040888963407L;
            long n = 2000 + (state >>> 50);
            seventy(n);
            twenty(n);
            ten(n);
        }
    }

    public static void main(String[] words) throws Exception {
        Thread worker = new Thread(Split::work, "worker-7");
        worker.setDaemon(true);
        worker.start();
        // Until all of it is compiled.
        Thread.sleep(1500);
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }
}
