//! Whether a wish can be right at all, before there is a device or a namespace to plan it for.
//!
//! A wish is planned against a machine that has one device with one queue each way and nothing else. A wish that is
//! refused there as an invalid value is refused everywhere; every other answer is inconclusive.

use std::path::Path;

use rungwise_host::machine::cpu_list;
use rungwise_host::recorded::Recorded;
use rungwise_host::{DeviceSetting, Host};

use crate::error::{Error, Result};
use crate::knob::{Context, Knob, Scope};
use crate::mask;
use crate::target::Target;

/// CPUs that are online, as the kernel lists them.
const ONLINE: &str = "/sys/devices/system/cpu/online";

impl Knob {
    /// Refuses, with [`Error::BadWish`], a value that is invalid on every machine, and a list of CPUs that names one
    /// that `machine` does not have. Reads nothing but the CPUs of `machine`, and changes nothing.
    pub fn judge(&self, machine: &dyn Host, wish: &str) -> Result<()> {
        let bare = Recorded::new("a machine", 0)
            .file("/proc/sys/net/ipv4/conf/eth0/forwarding", "0")
            .file("/sys/block/eth0/size", "0")
            .file("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0")
            .file("/sys/class/net/eth0/queues/tx-0/xps_cpus", "0");
        let context = Context::of_host(&bare, Some("eth0"), &[0]);
        if let Err(error @ Error::BadWish { .. }) = self.plan(&context, wish) {
            return Err(error);
        }
        let online = machine.text(Path::new(ONLINE)).unwrap_or_default();
        let cpus = cpu_list(&online);
        let Ok(wished) = mask::parse_list(wish) else {
            return Ok(());
        };
        let beyond = wished
            .iter()
            .find(|cpu| !cpus.iter().any(|known| *known as usize == **cpu));
        match beyond {
            Some(cpu) if self.values.contains("CPU list") && !cpus.is_empty() => Err(self
                .bad_wish(
                    wish,
                    format!("CPU {cpu} is not online here, only {}", online.trim()),
                )),
            _ => Ok(()),
        }
    }

    /// It changes what a virtual Ethernet pair does not have: rings, interrupt moderation, receive-side scaling
    /// (`veth_ethtool_ops` in drivers/net/veth.c, Linux 6.18).
    pub fn needs_hardware(&self) -> bool {
        self.scope == Scope::Device
            && !self.writes.is_empty()
            && self.writes.iter().all(|target| {
                matches!(
                    target,
                    Target::Setting(
                        DeviceSetting::Ring
                            | DeviceSetting::Coalesce
                            | DeviceSetting::RssTable
                            | DeviceSetting::HashUdp4
                            | DeviceSetting::HashUdp6
                    )
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(knob: &str, wish: &str) -> Option<String> {
        let two = Recorded::new("two CPUs", 0).file(ONLINE, "0-1\n");
        let judged = crate::find(knob).unwrap().judge(&two, wish);
        judged.err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_no_value_is_refused_with_what_is_one() {
        for (knob, wish, why) in [
            ("net.rps_cpus", "banana", "neither a CPU number nor a range"),
            ("net.rps_cpus", "0-99", "CPU 2 is not online here, only 0-1"),
            ("net.xps_cpus", "by-cup", "neither a CPU number nor a range"),
            ("net.rp_filter", "9", "not between 0 and 2"),
            ("net.gro", "maybe", "neither on nor off"),
            ("net.rmem_max", "-1", "allowed: "),
            ("tcp.rmem", "3 2 1", "must not descend"),
        ] {
            let refused = judged(knob, wish).unwrap_or_else(|| panic!("{knob} = {wish}"));
            assert!(
                refused.contains(why) && refused.contains("allowed: "),
                "{refused}"
            );
        }
    }

    #[test]
    fn only_settings_of_hardware_need_it() {
        let needing: Vec<&str> = crate::KNOBS
            .iter()
            .filter(|knob| knob.needs_hardware())
            .map(|knob| knob.id)
            .collect();
        assert_eq!(
            needing,
            [
                "net.coalesce",
                "net.ring",
                "net.rss_hash_fields",
                "net.rss_table"
            ]
        );
    }

    #[test]
    fn what_may_be_a_value_somewhere_is_not_refused() {
        for (knob, wish) in [
            ("net.rps_cpus", "0-1"),
            ("net.rps_cpus", "all"),
            ("net.xps_cpus", "by-cpu"),
            ("net.xps_rxqs", "same"),
            ("net.rp_filter", "2"),
            ("net.ring", "rx=4096"),
            ("net.ring", "max"),
            ("cpu.governor", "performance"),
            ("tcp.congestion", "bbr"),
        ] {
            assert_eq!(judged(knob, wish), None, "{knob} = {wish}");
        }
    }
}
