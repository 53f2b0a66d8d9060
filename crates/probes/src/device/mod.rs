//! Network devices: counters, queues, steering, rings, features, and the packets that each CPU takes from them.
//!
//! Each file is one probe, named after its source.

pub(crate) mod counters;
pub(crate) mod ethtool;
pub(crate) mod features;
pub(crate) mod identity;
pub(crate) mod missed;
pub(crate) mod qdisc;
pub(crate) mod queues;
pub(crate) mod softnet;
pub(crate) mod steering;

use std::fmt::Display;

use rungwise_model::evidence::{Absence, Kind, Subject};
use rungwise_model::kernel::{Answer, NetDevice};

use crate::Window;
use crate::window::misplaced;

/// Source cited for rtnetlink and ethtool.
const NETLINK: &str = "rtnetlink and ethtool";

/// Devices in the last full sample.
fn devices<'a>(window: &Window<'a>) -> Result<&'a [NetDevice], Absence> {
    match window.answer("devices")? {
        Answer::Devices(devices) => Ok(devices),
        other => Err(misplaced("devices", other)),
    }
}

/// `queue/eth0:rx-3`
fn queue(device: &str, direction: &str, number: impl Display) -> Subject {
    Subject::new(Kind::Queue, format_args!("{device}:{direction}-{number}"))
}
