//! Keys: counters of the kernel that stand for something lost or failed.

keys! { LOSS;
    LOSS_COUNTERS = "loss.counters", Count, Host, "Counters of losses and failures that were read at both ends of the window";
    LOSS_RATE = "loss.rate", PerSecond, Counter, "Growth of a counter of losses or failures that grew in the window";
    LOSS_SHARE = "loss.share", Fraction, Counter, "The same as a share of what passed there in the window: packets, segments, datagrams or look-ups";
}
