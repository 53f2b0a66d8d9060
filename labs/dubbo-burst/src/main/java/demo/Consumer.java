package demo;

import com.alibaba.dubbo.config.ApplicationConfig;
import com.alibaba.dubbo.config.ReferenceConfig;
import com.alibaba.dubbo.config.RegistryConfig;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Calls {@link HelloService} from many threads, each without a pause, and prints one line of JSON. */
public final class Consumer {
    private static final int MOST_CALLS = 1_000_000;

    private Consumer() {}

    public static void main(String[] arguments) throws Exception {
        Settings settings = new Settings(arguments[0]);
        double seconds = Double.parseDouble(arguments[1]);
        ReferenceConfig<HelloService> reference = new ReferenceConfig<>();
        reference.setApplication(new ApplicationConfig("hello-consumer"));
        reference.setRegistry(new RegistryConfig(RegistryConfig.NO_AVAILABLE));
        reference.setInterface(HelloService.class);
        reference.setUrl("dubbo://" + settings.text("host") + ":" + settings.number("port") + "?payload=" + settings.number("payload"));
        reference.setConnections(settings.number("connections"));
        reference.setTimeout(60_000);
        reference.setRetries(0);
        reference.setCluster("failfast");
        HelloService hello = reference.get();

        char[] characters = new char[settings.number("characters")];
        Arrays.fill(characters, 'x');
        String name = new String(characters);
        int threads = settings.number("callers");
        Calls calls = new Calls();
        CountDownLatch ended = new CountDownLatch(threads);
        for (int at = 0; at < threads; at++) {
            Thread caller = new Thread(() -> {
                while (!calls.over) {
                    calls.call(hello, name);
                }
                ended.countDown();
            }, "caller-" + at);
            caller.start();
        }
        pause(Double.parseDouble(settings.text("warmup_s")));
        long[] before = hello.served();
        calls.begin();
        long began = System.nanoTime();
        pause(seconds);
        long[] after = hello.served();
        double took = (System.nanoTime() - began) / 1e9;
        calls.end();
        ended.await();

        long[] all = calls.sorted();
        double mean = Arrays.stream(all).average().orElse(0) / 1e9;
        // Times in seconds.
        System.out.println(String.format(Locale.ROOT,
                "{\"rate\": %.3f, \"requests\": %d, \"errors\": %d, \"mean\": %.6f, \"p50\": %.6f, \"p95\": %.6f, \"p99\": %.6f, \"max\": %.6f, "
                        + "\"service\": %.6f, \"busy_threads\": %d}",
                all.length / took, all.length, calls.errors.get(), mean, at(all, 0.5), at(all, 0.95), at(all, 0.99), at(all, 1),
                (after[1] - before[1]) / 1e9 / Math.max(1, after[0] - before[0]), after[2]));
        if (calls.error.get() != null) {
            calls.error.get().printStackTrace();
        }
        System.out.flush();
        // Dubbo's own hooks wait ten seconds for calls under way, and none is.
        Runtime.getRuntime().halt(all.length == 0 ? 1 : 0);
    }

    private static void pause(double seconds) {
        long until = System.nanoTime() + (long) (seconds * 1e9);
        for (long left = until - System.nanoTime(); left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** The quantile of sorted nanoseconds, in seconds. */
    private static double at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, (long) (share * sorted.length))] / 1e9;
    }

    /** What the calls took that ended while it counted. */
    private static final class Calls {
        private final long[] nanos = new long[MOST_CALLS];
        private final AtomicInteger count = new AtomicInteger();
        private final AtomicInteger errors = new AtomicInteger();
        private final AtomicReference<Throwable> error = new AtomicReference<>();
        private volatile boolean counts;
        private volatile boolean over;

        void call(HelloService hello, String name) {
            long began = System.nanoTime();
            try {
                String answer = hello.sayHello(name);
                if (answer.length() != 2 * name.length()) {
                    throw new IllegalStateException("an answer of " + answer.length() + " characters");
                }
                if (counts) {
                    int at = count.getAndIncrement();
                    if (at < MOST_CALLS) {
                        nanos[at] = System.nanoTime() - began;
                    }
                }
            } catch (RuntimeException failure) {
                error.compareAndSet(null, failure);
                if (counts) {
                    errors.incrementAndGet();
                }
            }
        }

        void begin() {
            counts = true;
        }

        void end() {
            counts = false;
            over = true;
        }

        long[] sorted() {
            long[] all = Arrays.copyOf(nanos, Math.min(MOST_CALLS, count.get()));
            Arrays.sort(all);
            return all;
        }
    }
}
