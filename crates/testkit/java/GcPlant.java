// A small service that plants one GC problem and reports what harm came of it.
//
// Idea: a service answers requests at a fixed rate; each request allocates, and holds a part of that for a while. Beside it a
// planter causes one problem: a leak, a small heap, large arrays, and so on. The service counts from the intended start of each
// request, so that a stop of the JVM shows as latency, and the last line holds what the JVM's own beans counted. So a problem is
// confirmed without any GC log.
//
//   java GcPlant flags NAME [key=value...]      prints the options of the JVM that the problem needs
//   java FLAGS GcPlant NAME [key=value...]      plants it; the last line of standard output is a JSON object
//
// See README.md beside it for the names, their parameters and what confirms each. Compiles with --release 8.

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.Deflater;

public final class GcPlant {
    private static final int KIB = 1024;
    private static final int MIB = 1024 * KIB;
    private static final long SECOND = 1_000_000_000L;

    /** What a leak holds. Static, as leaks are. */
    private static final ArrayList<Object> LEAKED = new ArrayList<>();

    /** Room for the report where there is none. */
    private static byte[] reserve = new byte[MIB];

    private static volatile boolean done;
    private static volatile Object sink;

    private final Map<String, String> given;
    private final String name;
    private final int severity;
    private final Random random;
    private final long began = System.nanoTime();
    private final AtomicLong outOfMemory = new AtomicLong();
    private volatile String outOfMemoryMessage = "";

    public static void main(String[] args) throws Exception {
        boolean flags = args.length > 0 && args[0].equals("flags");
        int first = flags ? 1 : 0;
        if (args.length <= first) {
            System.err.println("usage: GcPlant [flags] NAME [key=value...]");
            System.exit(2);
        }
        Map<String, String> given = new HashMap<>();
        for (int i = first + 1; i < args.length; i++) {
            int at = args[i].indexOf('=');
            if (at < 1) {
                System.err.println("GcPlant: not key=value: " + args[i]);
                System.exit(2);
            }
            given.put(args[i].substring(0, at), args[i].substring(at + 1));
        }
        GcPlant plant = new GcPlant(args[first], given);
        if (flags) {
            System.out.println(plant.flags());
        } else {
            plant.run();
        }
    }

    private GcPlant(String name, Map<String, String> given) {
        this.name = name;
        this.given = given;
        this.severity = (int) number("severity", 2);
        this.random = new Random((long) number("seed", 1));
    }

    /** A parameter, or what it is by default. */
    private double number(String key, double otherwise) {
        String text = given.get(key);
        return text == null ? otherwise : Double.parseDouble(text);
    }

    /** A parameter whose default depends on the severity: 0 harmless, 1 mild, 2 bad, 3 ruinous. */
    private double graded(String key, double harmless, double mild, double bad, double ruinous) {
        double[] all = {harmless, mild, bad, ruinous};
        return number(key, all[Math.max(0, Math.min(3, severity))]);
    }

    private int heapMib() {
        switch (name) {
            case "jvm-survivor-overflow": return (int) number("heap", 320);
            case "jvm-humongous": return (int) number("heap", 256);
            case "jvm-evac-failure": return (int) number("heap", 128);
            case "jvm-cms-late": return (int) number("heap", 160);
            case "jvm-gc-threads": return (int) number("heap", 400);
            case "jvm-zgc-stall":
            case "jvm-shenandoah-degenerated": return (int) number("heap", 160);
            case "jvm-healthy-zgc": case "jvm-references": return (int) number("heap", 512);
            case "jvm-container-heap": return (int) graded("heap", 64, 112, 256, 512);
            case "jvm-remark-long": return (int) number("heap", 1024);
            default: return (int) number("heap", 128);
        }
    }

    /** Options that the problem needs beside the log and, where any will do, the collector. */
    private String flags() {
        int heap = heapMib();
        String sized = "-Xms" + heap + "m -Xmx" + heap + "m";
        switch (name) {
            case "jvm-survivor-overflow": {
                int young = (int) number("young", 96);
                int ratio = (int) graded("ratio", 4, 10, 30, 60);
                return sized + " -Xmn" + young + "m -XX:SurvivorRatio=" + ratio;
            }
            case "jvm-humongous":
                return sized + " -XX:+UseG1GC";
            case "jvm-evac-failure":
                return sized + " -XX:+UseG1GC -XX:G1ReservePercent=" + (int) number("reserve", 1);
            case "jvm-cms-late":
                return sized + " -Xmn24m -XX:+UseConcMarkSweepGC -XX:CMSInitiatingOccupancyFraction="
                    + (int) graded("fraction", 60, 85, 93, 97) + " -XX:+UseCMSInitiatingOccupancyOnly";
            case "jvm-g1-late": {
                boolean adapts = !System.getProperty("java.version").startsWith("1.8");
                return sized + " -XX:+UseG1GC -XX:InitiatingHeapOccupancyPercent=" + (int) graded("start", 45, 80, 90, 95)
                    + (adapts ? " -XX:-G1UseAdaptiveIHOP" : "");
            }
            case "jvm-tenuring-low":
                return sized + " -Xmn" + (int) number("young", 48) + "m -XX:SurvivorRatio=1 -XX:MaxTenuringThreshold=" + (int) number("threshold", 1);
            case "jvm-young-small":
                return sized + " -Xmn" + (int) number("young", 8) + "m";
            case "jvm-references":
                return sized + " -Xmn64m -XX:MaxTenuringThreshold=1";
            case "jvm-biased-locks":
                return sized + " -XX:+UseBiasedLocking -XX:BiasedLockingStartupDelay=0";
            case "jvm-gc-threads":
                return sized + " -XX:ParallelGCThreads=" + (int) number("threads", 1);
            case "jvm-zgc-stall":
                return sized + " -XX:+UseZGC";
            case "jvm-shenandoah-degenerated":
                return sized + " -XX:+UseShenandoahGC";
            case "jvm-metaspace-limit":
                return sized + " -XX:MaxMetaspaceSize=" + (int) number("limit", 32) + "m";
            case "jvm-direct-limit":
                return sized + " -XX:MaxDirectMemorySize=" + (int) number("limit", 32) + "m";
            case "jvm-healthy-g1":
                return sized + " -XX:+UseG1GC";
            case "jvm-healthy-zgc":
                return sized + " -XX:+UseZGC";
            case "jvm-container-heap":
                return "-Xmx" + heap + "m";
            case "jvm-safepoint-loop":
                return sized + " -XX:-UseCountedLoopSafepoints";
            case "jvm-remark-long":
                // A cycle each second, and no wait for a young collection before its remark.
                return sized + " -Xmn700m -XX:+UseConcMarkSweepGC -XX:CMSTriggerInterval=1000 -XX:CMSMaxAbortablePrecleanTime=1";
            default:
                return sized;
        }
    }

    private void run() throws Exception {
        double seconds = number("seconds", 75);
        // Loads the classes of the report while there is metaspace.
        report(new Service(), new StringBuilder());
        Service service = new Service();
        Planter planter = planter();
        Thread planting = new Thread(() -> plant(planter), "planter");
        planting.setDaemon(true);
        planting.start();
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < service.threads; i++) {
            int number = i;
            Thread worker = new Thread(() -> service.work(number), "worker-" + i);
            worker.start();
            workers.add(worker);
        }
        long end = began + (long) (seconds * SECOND);
        while (!done && System.nanoTime() < end) {
            Thread.sleep(20);
        }
        done = true;
        for (Thread worker : workers) {
            worker.join(5000);
        }
        StringBuilder text = new StringBuilder(4096);
        reserve = null;
        report(service, text);
        System.out.println(text);
        System.exit(0);
    }

    /** Turns the planter every 10 ms until the end. An OutOfMemoryError that it does not catch ends the service. */
    private void plant(Planter planter) {
        long next = System.nanoTime();
        long last = next;
        while (!done) {
            next += 10_000_000L;
            LockSupport.parkNanos(next - System.nanoTime());
            long now = System.nanoTime();
            try {
                planter.turn((now - began) / 1e9, Math.min(0.1, (now - last) / 1e9));
            } catch (OutOfMemoryError error) {
                ranOut(error);
                done = true;
            }
            last = now;
        }
    }

    /** Allocates nothing. */
    private void ranOut(OutOfMemoryError error) {
        outOfMemory.incrementAndGet();
        if (error.getMessage() != null) {
            outOfMemoryMessage = error.getMessage();
        }
    }

    /** What causes the problem. */
    private interface Planter {
        /** @param now seconds since the start; @param step seconds since the last turn */
        void turn(double now, double step);
    }

    private Planter planter() {
        double heap = heapMib();
        switch (name) {
            case "jvm-leak-list":
                return leak(0.85 * heap / graded("fill", 3000, 200, 60, 25), false);
            case "jvm-leak-caught":
                return leak(0.85 * heap / graded("fill", 3000, 60, 25, 10), true);
            case "jvm-heap-small":
                return steady(graded("live", 0.4, 0.75, 0.85, 0.9) * heap);
            case "jvm-cache-fills":
                return cache(number("cache", 0.45) * heap, number("fill", 40));
            case "jvm-humongous":
                return arrays(graded("rate", 0.05, 5, 20, 60), (int) (number("size", 1.3) * 1e6));
            case "jvm-evac-failure":
                return bursts(number("live", 0.45) * heap, graded("burst", 0.05, 0.2, 0.3, 0.38) * heap, number("every", 4));
            case "jvm-cms-late":
                return churn(number("live", 0.4) * heap, graded("churn", 1, 8, 16, 32), number("keep", 0.2 * heap / graded("churn", 1, 8, 16, 32)));
            case "jvm-zgc-stall":
            case "jvm-shenandoah-degenerated":
                return steady(graded("live", 0.2, 0.45, 0.6, 0.7) * heap);
            case "jvm-gc-threads":
                return steady(number("live", 0.4) * heap);
            case "jvm-metaspace-limit":
                return classes(graded("rate", 0.2, 30, 120, 400), number("keep", 0), number("caught", 0) > 0);
            case "jvm-direct-limit":
                return buffers(number("limit", 32), graded("rate", 0.1, 2, 10, 40), number("hold", 0) > 0);
            case "jvm-system-gc": {
                Planter live = steady(number("live", 0.3) * heap);
                double every = graded("every", 3600, 15, 0.5, 0.1);
                double[] next = {every};
                return (now, step) -> {
                    live.turn(now, step);
                    if (now >= next[0]) {
                        next[0] = now + every;
                        System.gc();
                    }
                };
            }
            case "jvm-container-heap":
                return cache(number("live", 0.7) * heap, number("fill", 20));
            case "jvm-safepoint-loop":
                return loops(graded("loop", 1, 60, 250, 600));
            case "jvm-g1-late":
                return churn(number("live", 0.3) * heap, number("churn", 32), number("keep", 0.2 * heap / 32));
            case "jvm-tenuring-low":
                return churn(number("live", 0.03) * heap, graded("churn", 1, 8, 24, 32), number("keep", 0.2));
            case "jvm-young-small":
                return steady(number("live", 0.1) * heap);
            case "jvm-jni-critical":
                return natives((int) graded("pins", 0, 1, 2, 4), (int) (number("size", 0.5) * MIB));
            case "jvm-biased-locks":
                return locks(graded("classes", 0.1, 10, 60, 200));
            case "jvm-references":
                return references(graded("references", 1e3, 5e4, 3e5, 1e6));
            case "jvm-remark-long":
                return nodes(graded("small", 1, 20, 80, 160));
            case "jvm-survivor-overflow":
            case "jvm-log-stall":
            case "jvm-healthy-g1":
            case "jvm-healthy-zgc":
                return steady(number("live", 0.2) * heap);
            default:
                System.err.println("GcPlant: no problem of this name: " + name);
                System.exit(2);
                return null;
        }
    }

    private byte[] piece() {
        return new byte[512 + random.nextInt(3072)];
    }

    /** A list that grows by so many MiB a second; if `caught`, the error is caught and half of the list let go. */
    private Planter leak(double perSecond, boolean caught) {
        double[] owed = {number("base", 8) * MIB};
        return (now, step) -> {
            owed[0] += perSecond * MIB * step;
            try {
                while (owed[0] > 0 && !done) {
                    byte[] piece = piece();
                    owed[0] -= piece.length + 24;
                    LEAKED.add(piece);
                }
            } catch (OutOfMemoryError error) {
                if (!caught) {
                    throw error;
                }
                halve();
                ranOut(error);
            }
        };
    }

    /** Without an allocation, for there is no room. */
    private static void halve() {
        for (int half = LEAKED.size() / 2; half > 0; half--) {
            LEAKED.remove(LEAKED.size() - 1);
        }
    }

    /** So many MiB stay alive, and a twentieth of them is replaced every second, as a service's data are. */
    private Planter steady(double mib) {
        double renew = number("renew", 0.05);
        double[] owed = {0};
        boolean[] full = {false};
        long[] held = {0};
        return (now, step) -> {
            while (!full[0] && !done) {
                byte[] piece = piece();
                LEAKED.add(piece);
                held[0] += piece.length + 24;
                full[0] = held[0] >= mib * MIB;
            }
            owed[0] += renew * LEAKED.size() * step;
            for (; owed[0] > 1 && !LEAKED.isEmpty(); owed[0]--) {
                int at = random.nextInt(LEAKED.size());
                LEAKED.set(at, new byte[((byte[]) LEAKED.get(at)).length]);
            }
        };
    }

    /** A cache that fills up to its bound in so many seconds; then what comes in drives the oldest out. */
    private Planter cache(double mib, double fill) {
        ArrayDeque<byte[]> cache = new ArrayDeque<>();
        LEAKED.add(cache);
        double[] owed = {0};
        long[] held = {0};
        return (now, step) -> {
            owed[0] += mib / fill * MIB * step;
            while (owed[0] > 0) {
                byte[] piece = piece();
                owed[0] -= piece.length + 24;
                held[0] += piece.length + 24;
                cache.add(piece);
                while (held[0] > mib * MIB) {
                    held[0] -= cache.remove().length + 24;
                }
            }
        };
    }

    /** Large arrays, each held for a moment. */
    private Planter arrays(double rate, int size) {
        ArrayDeque<byte[]> held = new ArrayDeque<>();
        Planter live = steady(number("live", 0.2) * heapMib());
        double[] owed = {0};
        int keep = (int) Math.max(1, number("keep", 0.05) * heapMib() * MIB / size);
        return (now, step) -> {
            live.turn(now, step);
            for (owed[0] += rate * step; owed[0] >= 1; owed[0]--) {
                held.add(new byte[size]);
                if (held.size() > keep) {
                    held.remove();
                }
            }
        };
    }

    /** A live set, and every few seconds a burst of objects that stay for a second. */
    private Planter bursts(double live, double burst, double every) {
        Planter base = steady(live);
        ArrayList<byte[]> held = new ArrayList<>();
        double length = number("length", 1);
        double[] owed = {0};
        return (now, step) -> {
            base.turn(now, step);
            double phase = now % every;
            if (phase < length) {
                for (owed[0] += burst / length * MIB * step; owed[0] > 0;) {
                    byte[] piece = piece();
                    owed[0] -= piece.length + 24;
                    held.add(piece);
                }
            } else if (!held.isEmpty()) {
                held.clear();
                owed[0] = 0;
            }
        };
    }

    /** A live set, and so many MiB a second of objects that live for some seconds: promoted, and dead soon after. */
    private Planter churn(double live, double perSecond, double keep) {
        Planter base = steady(live);
        ArrayDeque<byte[]> held = new ArrayDeque<>();
        double[] owed = {0};
        long[] bytes = {0};
        return (now, step) -> {
            base.turn(now, step);
            for (owed[0] += perSecond * MIB * step; owed[0] > 0;) {
                byte[] piece = piece();
                owed[0] -= piece.length + 24;
                bytes[0] += piece.length + 24;
                held.add(piece);
                while (bytes[0] > perSecond * keep * MIB) {
                    bytes[0] -= held.remove().length + 24;
                }
            }
        };
    }

    /** Class loaders that load one class each. Without `keep` all of them stay; else the newest so many. */
    private Planter classes(double rate, double keep, boolean caught) {
        byte[] code = code("GcPlant$Payload");
        ArrayDeque<Object> loaders = new ArrayDeque<>();
        double[] owed = {0};
        return (now, step) -> {
            for (owed[0] += rate * step; owed[0] >= 1 && !done; owed[0]--) {
                try {
                    loaders.add(new OneClass(code).load());
                    if (keep > 0 && loaders.size() > keep) {
                        loaders.remove();
                    }
                } catch (OutOfMemoryError error) {
                    if (!caught) {
                        throw error;
                    }
                    for (int half = loaders.size() / 2; half > 0; half--) {
                        loaders.remove();
                    }
                    ranOut(error);
                }
            }
        };
    }

    /** Direct buffers of 1 MiB, dropped without being freed; if `hold`, kept until the limit is reached for good. */
    private Planter buffers(double limit, double rate, boolean hold) {
        Planter live = steady(number("live", 0.2) * heapMib());
        ArrayDeque<ByteBuffer> held = new ArrayDeque<>();
        double[] owed = {0};
        return (now, step) -> {
            live.turn(now, step);
            for (owed[0] += rate * step; owed[0] >= 1 && !done; owed[0]--) {
                held.add(ByteBuffer.allocateDirect(MIB));
                if (!hold && held.size() > limit / 2) {
                    held.remove();
                }
            }
        };
    }

    /** A thread that computes in counted loops of so many milliseconds, and rests as long. */
    private Planter loops(double millis) {
        Thread thread = new Thread(() -> {
            double turns = 1000;
            while (!done) {
                long start = System.nanoTime();
                sink = counted((int) turns);
                long took = Math.max(1, System.nanoTime() - start);
                // The compiler makes a loop many times as fast while it runs.
                turns = Math.max(1000, Math.min(2e9, turns * Math.min(4, millis * 1e6 / took)));
                LockSupport.parkNanos(took);
            }
        }, "loop");
        thread.setDaemon(true);
        thread.start();
        return steady(number("live", 0.2) * heapMib());
    }

    /** One chain of operations, so that the compiler cannot shorten it. */
    private static long counted(int turns) {
        long sum = 1;
        for (int i = 0; i < turns; i++) {
            sum = sum * 31 ^ i;
        }
        return sum;
    }

    /** So many MiB a second of objects of 24 bytes that refer to each other and die soon. */
    private Planter nodes(double perSecond) {
        Planter live = steady(number("live", 0.05) * heapMib());
        double[] owed = {0};
        return (now, step) -> {
            live.turn(now, step);
            Object[] last = null;
            for (owed[0] += perSecond * MIB * step; owed[0] > 0; owed[0] -= 24) {
                last = new Object[] {last};
            }
            sink = last;
        };
    }

    /** Threads that compress arrays of so many bytes: native code pins an array meanwhile. */
    private Planter natives(int threads, int size) {
        for (int i = 0; i < threads; i++) {
            byte[] from = new byte[size];
            random.nextBytes(from);
            byte[] to = new byte[2 * size + 1024];
            Thread thread = new Thread(() -> {
                Deflater deflater = new Deflater();
                while (!done) {
                    deflater.reset();
                    deflater.setInput(from);
                    deflater.finish();
                    deflater.deflate(to);
                }
            }, "native-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        return steady(number("live", 0.2) * heapMib());
    }

    /** So many new classes a second, whose objects one thread locks first and another one after it. */
    private Planter locks(double rate) {
        byte[] code = code("GcPlant$Payload");
        LinkedBlockingQueue<Object[]> passed = new LinkedBlockingQueue<>();
        Thread other = new Thread(() -> {
            while (!done) {
                try {
                    lock(passed.take());
                } catch (InterruptedException error) {
                    return;
                }
            }
        }, "other");
        other.setDaemon(true);
        other.start();
        Planter live = steady(number("live", 0.2) * heapMib());
        double[] owed = {0};
        return (now, step) -> {
            live.turn(now, step);
            for (owed[0] += rate * step; owed[0] >= 1 && !done; owed[0]--) {
                // The JVM takes the bias from a whole class after some objects.
                Class<?> one = new OneClass(code).load().getClass();
                Object[] objects = new Object[20];
                try {
                    for (int i = 0; i < objects.length; i++) {
                        objects[i] = one.getDeclaredConstructor().newInstance();
                    }
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
                lock(objects);
                passed.add(objects);
            }
        };
    }

    private static void lock(Object[] objects) {
        for (Object object : objects) {
            synchronized (object) {
                sink = object;
            }
        }
    }

    /** So many weak references, made at once; what they refer to dies when it is old. */
    private Planter references(double many) {
        Object[][] held = {null, null};
        Planter live = steady(number("live", 0.02) * heapMib());
        double every = number("every", 2);
        double[] next = {0};
        return (now, step) -> {
            live.turn(now, step);
            if (now >= next[0]) {
                next[0] = now + every;
                held[1] = null;
                Object[] references = new Object[(int) many];
                Object[] objects = new Object[(int) many];
                for (int i = 0; i < objects.length; i++) {
                    objects[i] = new byte[0];
                    references[i] = new WeakReference<>(objects[i]);
                }
                held[0] = references;
                held[1] = objects;
            }
        };
    }

    private static byte[] code(String of) {
        try (InputStream from = GcPlant.class.getResourceAsStream(of + ".class")) {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            byte[] part = new byte[8192];
            for (int n = from.read(part); n >= 0; n = from.read(part)) {
                all.write(part, 0, n);
            }
            return all.toByteArray();
        } catch (Exception error) {
            throw new IllegalStateException("cannot read the class " + of, error);
        }
    }

    /** A class that costs some metaspace. */
    public static final class Payload {
        public long a;
        public long b;

        public long sum(long x) {
            return a * x + b * (x ^ 7) + String.valueOf(x).length();
        }

        public String text() {
            return "payload " + a + " and " + b;
        }

        public Payload copy() {
            Payload copy = new Payload();
            copy.a = a;
            copy.b = b;
            return copy;
        }
    }

    /** A loader of its own for one class. */
    private static final class OneClass extends ClassLoader {
        private final byte[] code;

        OneClass(byte[] code) {
            super(GcPlant.class.getClassLoader());
            this.code = code;
        }

        Object load() {
            try {
                return defineClass("GcPlant$Payload", code, 0, code.length).getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Answers requests at a fixed rate and measures from the intended start of each. */
    private final class Service {
        final int threads = (int) number("workers", 2);
        final double rate = number("requests", 400);
        final int bytes = (int) (number("alloc", alloc()) * MIB / rate);
        final double hold = number("inflight", inflight());
        final long[] buckets = new long[64 * 8];
        final AtomicLong answered = new AtomicLong();
        final AtomicLong failed = new AtomicLong();

        /** MiB a second that requests allocate. */
        private double alloc() {
            switch (name) {
                case "jvm-survivor-overflow": return 250;
                case "jvm-evac-failure": return 60;
                case "jvm-gc-threads": case "jvm-tenuring-low": case "jvm-young-small": return 250;
                case "jvm-zgc-stall":
                case "jvm-shenandoah-degenerated": return graded("alloc", 20, 150, 400, 800);
                case "jvm-healthy-g1":
                case "jvm-safepoint-loop": return 80;
                default: return 40;
            }
        }

        /** MiB in flight. */
        private double inflight() {
            switch (name) {
                case "jvm-survivor-overflow": return graded("inflight", 4, 12, 20, 20);
                case "jvm-young-small": return graded("inflight", 0.1, 0.5, 1, 2);
                case "jvm-gc-threads": return graded("inflight", 2, 15, 30, 60);
                default: return 1;
            }
        }

        void work(int number) {
            Random own = new Random((long) number("seed", 1) * 31 + number);
            ArrayDeque<byte[][]> inFlight = new ArrayDeque<>();
            int most = (int) Math.max(1, hold * MIB / threads / Math.max(1, bytes));
            long step = (long) (SECOND / rate * threads);
            long intended = System.nanoTime() + step * number / threads;
            long[] mine = new long[buckets.length];
            while (!done) {
                long wait = intended - System.nanoTime();
                if (wait > 0) {
                    LockSupport.parkNanos(wait);
                    continue;
                }
                try {
                    inFlight.add(request(own));
                    if (inFlight.size() > most) {
                        inFlight.remove();
                    }
                    answered.incrementAndGet();
                } catch (OutOfMemoryError error) {
                    failed.incrementAndGet();
                    inFlight.clear();
                    ranOut(error);
                    // The planter catches its own and lets half go.
                    done = !name.equals("jvm-leak-caught");
                }
                long took = Math.max(1, System.nanoTime() - intended);
                mine[bucket(took)]++;
                intended += step;
            }
            synchronized (buckets) {
                for (int i = 0; i < mine.length; i++) {
                    buckets[i] += mine[i];
                }
            }
        }

        private byte[][] request(Random own) {
            int left = bytes;
            byte[][] parts = new byte[Math.max(1, bytes / 1024)][];
            for (int i = 0; i < parts.length && left > 0; i++) {
                int size = Math.min(left, 256 + own.nextInt(1536));
                parts[i] = new byte[size];
                parts[i][size / 2] = 1;
                left -= size;
            }
            sink = parts;
            return parts;
        }

        private int bucket(long ns) {
            int log = 63 - Long.numberOfLeadingZeros(ns);
            int sub = log < 3 ? 0 : (int) (ns >>> (log - 3)) & 7;
            return log * 8 + sub;
        }

        double quantileMs(double q) {
            long all = 0;
            for (long n : buckets) {
                all += n;
            }
            long upTo = 0;
            for (int i = 0; i < buckets.length; i++) {
                upTo += buckets[i];
                if (all > 0 && upTo >= q * all) {
                    return (1L << (i / 8)) * (1 + (i % 8 + 1) / 8.0) / 1e6;
                }
            }
            return 0;
        }
    }

    private void report(Service service, StringBuilder text) {
        double seconds = (System.nanoTime() - began) / 1e9;
        text.append("{\"name\":\"").append(name).append("\",\"java\":\"").append(System.getProperty("java.version"));
        text.append("\",\"seconds\":").append(round(seconds));
        text.append(",\"offered\":").append((long) (service.rate * seconds));
        text.append(",\"answered\":").append(service.answered.get());
        text.append(",\"failed\":").append(service.failed.get());
        text.append(",\"p50_ms\":").append(round(service.quantileMs(0.5)));
        text.append(",\"p99_ms\":").append(round(service.quantileMs(0.99)));
        text.append(",\"max_ms\":").append(round(service.quantileMs(1)));
        text.append(",\"out_of_memory\":").append(outOfMemory.get());
        text.append(",\"out_of_memory_message\":\"").append(outOfMemoryMessage.replace('"', '\'')).append('"');
        text.append(",\"collections\":{");
        String comma = "";
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            text.append(comma).append('"').append(bean.getName()).append("\":{\"count\":").append(bean.getCollectionCount());
            text.append(",\"ms\":").append(bean.getCollectionTime()).append('}');
            comma = ",";
        }
        text.append("},\"metaspace_bytes\":");
        long metaspace = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getName().equals("Metaspace")) {
                metaspace = pool.getUsage().getUsed();
            }
        }
        text.append(metaspace).append(",\"direct_bytes\":");
        long direct = 0;
        for (BufferPoolMXBean pool : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (pool.getName().equals("direct")) {
                direct = pool.getMemoryUsed();
            }
        }
        text.append(direct).append('}');
    }

    private static double round(double value) {
        return Math.round(value * 1000) / 1000.0;
    }
}
