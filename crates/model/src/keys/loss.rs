//! Keys: kernel counters of losses and failures.

keys! { LOSS;
    LOSS_COUNTERS = "loss.counters", Count, Host, "Counters of losses and failures read at both ends of the window";
    LOSS_RATE = "loss.rate", PerSecond, Counter, "Growth of a counter of losses or failures that grew in the window";
    LOSS_SHARE = "loss.share", Fraction, Counter, "The same as a share of the packets, segments, datagrams or look-ups that the counter is about";
}
