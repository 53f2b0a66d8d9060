//! The XDP echo on a device: load, attach by a link that dies with us, read its counters.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};

use crate::af_xdp::Device;
use crate::bpf::xdp_echo::{COUNTERS, Checksum, program};
use rungwise_bpf::{self as bpf, License, PerCpu, ProgramKind};

use super::{XdpCounters, XdpDevice, XdpMode};
use crate::error::{Error, Feature};
use crate::read_back::Ledger;

const XDP: Feature = Feature {
    switch: "xdp-echo",
    name: "XDP attached by a link",
    since: "5.9",
    remedy: "run as root or grant CAP_BPF and CAP_NET_ADMIN, check the device name and that no other XDP program is attached",
};

/// The same in the driver.
const NATIVE: Feature = Feature {
    remedy: "use generic mode if the driver has no XDP; native mode needs CAP_BPF and CAP_NET_ADMIN, an MTU within one \
             page, on veth as many receive queues as the peer has transmit queues, and no other XDP program on the device",
    ..XDP
};

/// An echo that is attached; dropping it detaches it.
#[derive(Debug)]
pub(super) struct Attached {
    counters: PerCpu<COUNTERS>,
    _link: OwnedFd,
}

impl Attached {
    /// Attaches the echo for `listen`, or says in the ledger why not. `socket` is any socket of this namespace.
    pub(super) fn new(
        echo: &XdpDevice,
        listen: SocketAddr,
        socket: &OwnedFd,
        ledger: &mut Ledger,
    ) -> Result<Option<Self>, Error> {
        let native = echo.mode == XdpMode::Native;
        let wanted = format!(
            "{} {}",
            echo.device,
            if native { "native" } else { "generic" }
        );
        match attach(&echo.device, native, listen, socket) {
            Ok((attached, actual)) => {
                ledger.holds("xdp-echo", wanted, actual);
                Ok(Some(attached))
            }
            Err(error) => {
                let error = match error.raw_os_error() {
                    // From the link command: this kernel has no links for XDP.
                    Some(libc::EINVAL) => XDP.missing(error),
                    // Not the kernel lacks it but the driver.
                    _ if native => NATIVE.forbidden(&wanted, error),
                    _ => XDP.refused(&wanted, error),
                };
                ledger.fall_back("xdp-echo", wanted, "off, served from sockets", error)?;
                Ok(None)
            }
        }
    }

    /// What the program counted so far; zero if the map cannot be read.
    pub(super) fn read(&self) -> XdpCounters {
        let mut counters = XdpCounters::default();
        let values = self.counters.values().unwrap_or_default();
        for (cpu, [echoed, bytes]) in values.into_iter().enumerate() {
            counters.echoed += echoed;
            counters.bytes += bytes;
            if echoed > 0 {
                counters.cpus.push((cpu, echoed));
            }
        }
        counters
    }
}

fn attach(
    device: &str,
    native: bool,
    listen: SocketAddr,
    socket: &OwnedFd,
) -> io::Result<(Attached, String)> {
    let device = Device::find(device)?;
    let veth = native && device.is_veth(socket)?;
    let checksum = if veth {
        Checksum::Partial
    } else {
        Checksum::Keep
    };
    let counters = PerCpu::new()?;
    let program = bpf::load(
        ProgramKind::Xdp,
        License::Apache,
        &program(listen, checksum, counters.as_fd()),
    )?;
    let link = bpf::attach_xdp(&program, device.index(), native)?;
    let (id, on) = bpf::link_program(&link)?;
    let note = if veth {
        "; veth: IPv4 replies without UDP checksum, IPv6 left to the socket, the peer device needs a native program too"
    } else {
        ""
    };
    let actual = format!("program {id} on device {on} by bpf link info{note}");
    let attached = Attached {
        counters,
        _link: link,
    };
    Ok((attached, actual))
}
