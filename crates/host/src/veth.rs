//! A multi-queue veth pair between two lab namespaces.
//!
//! What [`connect`] makes: one device per namespace with the queues asked for, its addresses
//! without duplicate address detection, a permanent neighbour entry for each address of the other
//! side, no IPv6 link-local address, both ends up and able to receive. So the first packet arrives
//! and no ARP or neighbour discovery mixes with measured traffic. It goes with either namespace.
//! On a kernel without IPv6 (`ipv6.disable=1`) the ends get their IPv4 addresses only.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::{Host, link};

/// The kernel's link watch makes a link usable. It runs at most once a second for the whole machine; several labs being
/// made at once may need a few turns (`net/core/link_watch.c`).
const USABLE_WITHIN: Duration = Duration::from_secs(5);

/// One end of the pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Device name, at most 15 bytes.
    pub device: String,
    /// Addresses with their prefix length.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// The pair: its queues and its two ends, in the order of the namespaces given to [`connect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Receive queues and transmit queues of each end.
    pub queues: u32,
    /// The ends.
    pub ends: [End; 2],
}

/// Joins two namespaces; see the top of this file for what is there afterwards. A failure leaves
/// no device behind.
pub fn connect(near: &Namespace, far: &Namespace, spec: &Spec) -> Result<()> {
    let ipv6 = near.list(Path::new("/proc/sys/net/ipv6/conf")).is_ok();
    let [near_end, far_end] = &spec.ends.clone().map(|mut end| {
        end.addresses
            .retain(|(address, _)| ipv6 || address.is_ipv4());
        end
    });
    let what = format!("{}-{}", near_end.device, far_end.device);
    let far_fd = far
        .netns_fd()
        .try_clone_to_owned()
        .map_err(Error::system(format!("connect {what}")))?;
    let (names, queues) = (
        (near_end.device.clone(), far_end.device.clone()),
        spec.queues,
    );
    let tried = format!(
        "make the veth pair {what} with {queues} queues between {} and {}",
        near.name(),
        far.name()
    );
    near.run(move || {
        use std::os::fd::AsFd as _;
        link::create_veth(&names.0, &names.1, queues, far_fd.as_fd())
    })
    .map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => Error::Missing {
            tried,
            why: "this kernel has no driver for it (CONFIG_VETH)".to_owned(),
            remedy: "load the module veth, or use loopback".to_owned(),
        },
        _ => Error::system(tried)(error),
    })?;
    let furnished = furnish(near, near_end)
        .and_then(|()| furnish(far, far_end))
        .and_then(|()| introduce(near, near_end, far, far_end))
        .and_then(|()| introduce(far, far_end, near, near_end))
        .and_then(|()| usable(near, near_end))
        .and_then(|()| usable(far, far_end));
    if furnished.is_err() {
        let device = near_end.device.clone();
        // Its namespace would remove it anyway; the error above is the one to report.
        let _ = near.run(move || link::delete(&device));
    }
    furnished
}

/// Addresses, sysctls, up.
fn furnish(namespace: &Namespace, end: &End) -> Result<()> {
    let tried = |step: &str| format!("{step} {} in {}", end.device, namespace.name());
    let sysctl =
        |name: &str| PathBuf::from(format!("/proc/sys/net/ipv6/conf/{}/{name}", end.device));
    if end.addresses.iter().any(|(address, _)| address.is_ipv6()) {
        // addr_gen_mode 1: no link-local address, hence no router solicitation.
        for (name, value) in [
            ("disable_ipv6", "0"),
            ("addr_gen_mode", "1"),
            ("accept_dad", "0"),
        ] {
            namespace
                .write(&sysctl(name), value.as_bytes())
                .map_err(Error::system(tried(&format!("set net.ipv6 {name} of"))))?;
        }
    }
    let owned = end.clone();
    namespace
        .run(move || -> io::Result<()> {
            for (address, prefix) in owned.addresses {
                link::add_address(&owned.device, address, prefix)?;
            }
            link::set_up(&owned.device)
        })
        .map_err(Error::system(tried("assign addresses to")))
}

/// Enters the hardware address of the other end in `namespace`.
fn introduce(namespace: &Namespace, end: &End, other: &Namespace, other_end: &End) -> Result<()> {
    let path = PathBuf::from(format!("/sys/class/net/{}/address", other_end.device));
    let text = other.text(&path).map_err(Error::file("read", &path))?;
    let hardware = hardware_address(&text).ok_or_else(|| Error::System {
        tried: format!("read {}", path.display()),
        source: io::Error::new(
            io::ErrorKind::InvalidData,
            format!("'{text}' is not a hardware address"),
        ),
    })?;
    let (device, addresses) = (end.device.clone(), other_end.addresses.clone());
    namespace
        .run(move || {
            addresses
                .iter()
                .try_for_each(|(address, _)| link::add_neighbour(&device, *address, hardware))
        })
        .map_err(Error::system(format!(
            "add {} as a neighbour in {}",
            other_end.device,
            namespace.name()
        )))
}

/// Waits until packets pass: up, let through by the link watch, and every IPv6 address routed.
fn usable(namespace: &Namespace, end: &End) -> Result<()> {
    let sysfs = |name: &str| PathBuf::from(format!("/sys/class/net/{}/{name}", end.device));
    let read = |path: PathBuf| namespace.text(&path).map_err(Error::file("read", &path));
    let began = Instant::now();
    loop {
        // Since Linux 6.8 asking for the carrier runs the link watch for this device at once.
        read(sysfs("carrier"))?;
        let state = read(sysfs("operstate"))?;
        let routed = unrouted(end, || read("/proc/net/ipv6_route".into()))?;
        let lacking = match (state.as_str(), routed) {
            ("up", None) => break,
            ("up", Some(address)) => format!("without a route to its own {address}"),
            _ => state,
        };
        if began.elapsed() > USABLE_WITHIN {
            return Err(Error::System {
                tried: format!("bring up {} in {}", end.device, namespace.name()),
                source: io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("after {} s it is still {lacking}", USABLE_WITHIN.as_secs()),
                ),
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // The link watch shows the state first and lets packets through a moment later, under the lock
    // that every link request takes: after one more of them it is done.
    let device = end.device.clone();
    namespace
        .run(move || link::set_up(&device))
        .map_err(Error::system(format!(
            "bring up {} in {}",
            end.device,
            namespace.name()
        )))
}

/// An IPv6 address of this end that does not receive yet. The kernel enters an address's local route
/// from a work queue, also without duplicate address detection (`addrconf_dad_work`); until then
/// packets to it are dropped as `Ip6InAddrErrors`.
fn unrouted(end: &End, routes: impl Fn() -> Result<String>) -> Result<Option<Ipv6Addr>> {
    for (address, _) in &end.addresses {
        let IpAddr::V6(address) = address else {
            continue;
        };
        // Destination in hex, prefix length in hex: a host route.
        let route = format!("{:032x} 80 ", address.to_bits());
        if !routes()?
            .lines()
            .any(|line| line.starts_with(&route) && line.ends_with(&end.device))
        {
            return Ok(Some(*address));
        }
    }
    Ok(None)
}

fn hardware_address(text: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16))
        .collect::<std::result::Result<_, _>>()
        .ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hardware_address_has_six_parts() {
        assert_eq!(
            hardware_address("02:00:5e:10:00:ff"),
            Some([2, 0, 0x5e, 0x10, 0, 0xff])
        );
        assert_eq!(hardware_address("02:00:5e:10:00"), None);
        assert_eq!(hardware_address("zz:00:5e:10:00:ff"), None);
        assert_eq!(hardware_address(""), None);
    }
}
