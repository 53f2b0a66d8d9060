package demo;

/** The service of the original experiment, and a second method that tells how long its own code took. */
public interface HelloService {
    /** Waits 0 to 300 ms, as a call of a database would, and answers with the name twice. */
    String sayHello(String name);

    /** Calls of {@link #sayHello} so far, nanoseconds spent in them, and most of them at the same time since the last question. */
    long[] served();
}
