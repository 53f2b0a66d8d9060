//! Keys: what no probe of the host can see, from load reports and thread dumps.

keys! { OUTSIDE;
    CLIENT_CPU = "client.cpu", Fraction, Host, "Busiest thread of the load generator as a share of one CPU, from its report";
    CLIENT_DROPS = "client.drops", PerSecond, Host, "Replies dropped at the load generator's own sockets, from its report";
    CLIENT_SHARED_CPUS = "client.shared_cpus", Count, Host, "CPUs that the load generator and the service both run on";
    JVM_LOCK_WAITING = "jvm.lock_waiting", Fraction, Process, "Share of the live business threads that wait for a lock, from thread dumps";
    LATENCY_DELAYED_ACK = "latency.delayed_ack", Fraction, Host, "Share of requests answered after 38 to 44 ms or 200 to 210 ms, from a load report";
    LATENCY_LOW_LOAD = "latency.low_load", Ratio, Host, "Median latency at low load over that at high load, from two load reports";
}
