//! What the card is told by ethtool: rings and interrupt moderation.

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
    values: "parts such as adaptive-rx=off,rx-usecs=10,rx-frames=0; those not named stay",
    doc: Doc {
        does: "The device interrupts after rx-usecs or rx-frames, whichever comes first, or as its driver adapts \
               (adaptive-rx).",
        helps: "For latency rx-usecs 0 to 10, when the median is about as long as rx-usecs. For throughput adaptive, or \
                50 and more, above 20,000 interrupts/s per queue with few packets each.",
        costs: "Latency against CPU. Some drivers reset the link.",
        undone: "The former values are set again. What adaptive-rx had made of rx-usecs comes back with it.",
        sources: "ethtool(8), -C; Documentation/networking/ethtool-netlink.rst (Linux); RHEL guide.",
    },
    writes: &[Target::Setting(DeviceSetting::Coalesce)],
    turn: Turn::Setting(DeviceSetting::Coalesce),
    ..COMMON
};
