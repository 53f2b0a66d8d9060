//! Hardware settings by ethtool: rings and interrupt moderation.

use rungwise_host::DeviceSetting;

use crate::knob::{COMMON, Doc, Knob, Risk, Scope};
use crate::target::Target;
use crate::turn::Turn;

/// `net.coalesce`
pub(crate) static COALESCE: Knob = Knob {
    id: "net.coalesce",
    scope: Scope::Device,
    risk: Risk::Disruptive,
    summary: "how long a device waits for more packets before it interrupts",
    values: "parts such as adaptive-rx=off,rx-usecs=10,rx-frames=0; parts not named are unchanged",
    doc: Doc {
        does: "The device interrupts after rx-usecs or rx-frames, whichever comes first, or as its driver decides \
               (adaptive-rx).",
        helps: "Latency: rx-usecs 0 to 10, when the median latency is close to rx-usecs. Throughput: adaptive-rx, or \
                rx-usecs of 50 and more, above 20,000 interrupts/s per queue with few packets each.",
        costs: "Latency against CPU. Some drivers reset the link.",
        undone: "The previous values are set again, including the rx-usecs that adaptive-rx had chosen.",
        sources: "ethtool(8), -C; Documentation/networking/ethtool-netlink.rst (Linux); RHEL guide.",
    },
    writes: &[Target::Setting(DeviceSetting::Coalesce)],
    turn: Turn::Setting(DeviceSetting::Coalesce),
    ..COMMON
};
