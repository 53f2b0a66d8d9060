//! Devices by ethtool: features, channels, rings, coalescing, RSS, the driver and its statistics.
//!
//! Groups of numbers go by ethtool netlink, which knows what a driver lacks, reads all devices in one dump and refuses
//! in words; kernels before 5.6 are asked by ioctl. The rest has no better interface than the ioctl. Source:
//! linux/ethtool.h, `linux/ethtool_netlink.h`, net/ethtool of Linux 6.18.

mod features;
pub(crate) mod groups;
mod ioctl;
pub(crate) mod rss;

use std::collections::BTreeMap;
use std::io;

use rungwise_model::kernel::Driver;

pub(crate) use features::{all as features, feature, set_feature};

use crate::netlink::text;
use crate::qdisc;
use crate::setting::DeviceSetting;
use groups::Group;
use ioctl::{Ioctl, STATISTICS};

const GDRVINFO: u32 = 0x3;
const GSTATS: u32 = 0x1d;

/// Reads a setting in its one spelling.
pub(crate) fn setting(device: &str, setting: DeviceSetting) -> io::Result<String> {
    match setting {
        DeviceSetting::Channels => groups::text(device, Group::Channels),
        DeviceSetting::Ring => groups::text(device, Group::Ring),
        DeviceSetting::Coalesce => groups::text(device, Group::Coalesce),
        DeviceSetting::RssTable => rss::text(device),
        DeviceSetting::HashUdp4 => rss::hash(device, rss::UDP4),
        DeviceSetting::HashUdp6 => rss::hash(device, rss::UDP6),
        DeviceSetting::RootQdisc => qdisc::root(device),
    }
}

/// Sets `value`.
pub(crate) fn set(device: &str, setting: DeviceSetting, value: &str) -> io::Result<()> {
    let value = setting.normal(value).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("'{value}' is not a valid value of the {setting}"),
        )
    })?;
    match setting {
        DeviceSetting::Channels => groups::set(device, Group::Channels, &value),
        DeviceSetting::Ring => groups::set(device, Group::Ring, &value),
        DeviceSetting::Coalesce => groups::set(device, Group::Coalesce, &value),
        DeviceSetting::RssTable => rss::set(device, &value),
        DeviceSetting::HashUdp4 => rss::set_hash(device, rss::UDP4, &value),
        DeviceSetting::HashUdp6 => rss::set_hash(device, rss::UDP6, &value),
        DeviceSetting::RootQdisc => qdisc::set_root(device, &value),
    }
}

/// `ethtool -i`.
pub(crate) fn driver(device: &str) -> io::Result<Driver> {
    // struct ethtool_drvinfo: command, five texts of 32 bytes (driver, version, firmware, bus, expansion
    // ROM), 12 reserved bytes, five counts.
    let mut words = [0; 49];
    words[0] = GDRVINFO;
    Ioctl::open(device)?.call(&mut words)?;
    let bytes = ioctl::bytes(&words);
    let part = |nth: usize| text(&bytes[4 + nth * 32..][..32]);
    Ok(Driver {
        driver: part(0),
        version: part(1),
        firmware: part(2),
        bus: part(3),
    })
}

/// `ethtool -S`: the driver's own names. A name that comes twice keeps its last value.
pub(crate) fn statistics(device: &str) -> io::Result<BTreeMap<String, u64>> {
    let ioctl = Ioctl::open(device)?;
    let names = ioctl.strings(STATISTICS)?;
    // struct ethtool_stats: command, count, then 64 bits each.
    let bytes = ioctl::with_room(2 + names.len() * 2, |words| {
        words[0] = GSTATS;
        words[1] = names.len() as u32;
        ioctl.call(words)?;
        let count = words[1] as usize;
        // A driver whose queues changed between the two calls has other names now.
        if count != names.len() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(ioctl::bytes(&words[2..2 + count * 2]))
    })?;
    Ok(names
        .into_iter()
        .zip(bytes.chunks_exact(8))
        .map(|(name, value)| {
            let value = value.try_into().map_or(0, u64::from_ne_bytes);
            (name.trim().to_owned(), value)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_setting_is_refused_before_the_kernel_is_asked() {
        let error = set("lo", DeviceSetting::Ring, "combined=2").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(
            error.to_string().contains("not a valid value of the rings"),
            "{error}"
        );
    }

    #[test]
    fn what_loopback_does_not_have_is_unsupported() {
        for name in [
            DeviceSetting::Channels,
            DeviceSetting::Ring,
            DeviceSetting::Coalesce,
            DeviceSetting::RssTable,
            DeviceSetting::HashUdp4,
        ] {
            let error = setting("lo", name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{name}: {error}");
        }
        assert!(driver("lo").is_err());
        assert!(statistics("lo").is_err());
    }

    #[test]
    fn a_device_that_does_not_exist_is_an_error() {
        for name in DeviceSetting::ALL {
            let error = setting("nosuchdev0", name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}: {error}");
        }
    }
}
