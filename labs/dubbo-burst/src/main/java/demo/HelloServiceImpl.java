package demo;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** Measures its own time, so that what a caller waits longer is transport, queues and serialisation. */
public class HelloServiceImpl implements HelloService {
    private final LongAdder calls = new LongAdder();
    private final LongAdder nanos = new LongAdder();
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();
    private final int longestMs;

    HelloServiceImpl(int longestMs) {
        this.longestMs = longestMs;
    }

    @Override
    public String sayHello(String name) {
        long began = System.nanoTime();
        most.accumulateAndGet(inside.incrementAndGet(), Math::max);
        try {
            Thread.sleep(ThreadLocalRandom.current().nextInt(longestMs + 1));
            return name + name;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        } finally {
            inside.decrementAndGet();
            nanos.add(System.nanoTime() - began);
            calls.increment();
        }
    }

    @Override
    public long[] served() {
        return new long[] {calls.sum(), nanos.sum(), most.getAndSet(inside.get())};
    }
}
