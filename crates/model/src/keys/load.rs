//! Keys: the load generator's own health, from its report.

keys! { LOAD;
    CLIENT_BUSY = "client.busy", Fraction, Host, "Share of the window in which the load generator's threads ran or waited for a CPU";
    CLIENT_CERTIFIED = "client.certified", Text, Host, "Whether the load generator certified its measurement: yes, or why not";
    CLIENT_CPU = "client.cpu", Count, Host, "Mean number of CPUs that the load generator used in its window";
    CLIENT_DROPS = "client.drops", Fraction, Host, "Replies dropped at the load generator's own sockets, of those it received";
    CLIENT_LATE_SENDS = "client.late_sends", Fraction, Host, "Share of the requests sent more than 1 ms after they were due";
    CLIENT_SERVER_BUSY = "client.server_busy", Fraction, Host, "CPU time of the service over the CPUs it may use, in the load generator's window";
    CLIENT_SHARED_IDLE = "client.shared_idle", Fraction, Host, "Idle share of the CPUs that the load generator and the service both run on";
    CLIENT_STARVED = "client.starved", Count, Host, "1 if most late requests waited for a reply to free their slot, else 0";
}
