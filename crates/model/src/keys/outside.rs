//! Keys: what no probe of the host can measure, from latency histograms and thread dumps.

keys! { OUTSIDE;
    JVM_LOCK_WAITING = "jvm.lock_waiting", Fraction, Process, "Share of the live business threads that wait for a lock, from thread dumps";
    LATENCY_DELAYED_ACK = "latency.delayed_ack", Fraction, Host, "Share of requests in a cluster at 38 to 52 ms or 200 to 210 ms, above the neighbouring latencies, from a table of latencies";
    LATENCY_LOW_LOAD = "latency.low_load", Ratio, Host, "Median latency at low load divided by that at high load, from two load reports";
}
