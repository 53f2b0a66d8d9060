//! The XDP echo on a device: load, attach by a link that dies with us, read its counters.
#![expect(unsafe_code, reason = "the driver's name comes by ioctl")]

use std::ffi::CString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use crate::bpf::xdp_echo::{COUNTERS, Checksum, program};
use crate::bpf::{self, MapKind, ProgramKind};

use super::error::{Error, Feature};
use super::read_back::Ledger;
use super::{XdpCounters, XdpEcho, XdpMode};

const XDP: Feature = Feature {
    switch: "xdp-echo",
    name: "XDP attached by a link",
    since: "5.9",
    remedy: "run as root or grant CAP_BPF and CAP_NET_ADMIN, check the device's name and that no other XDP program sits there",
};

/// The same in the driver.
const NATIVE: Feature = Feature {
    remedy: "use the generic mode where the device's driver has no XDP; native needs CAP_BPF and CAP_NET_ADMIN, an MTU within one \
             page, on veth as many receive queues as the peer has transmit queues, and no other XDP program there",
    ..XDP
};

/// An echo that is attached; dropping it detaches it.
#[derive(Debug)]
pub(super) struct Attached {
    counters: OwnedFd,
    _link: OwnedFd,
}

impl Attached {
    /// Attaches the echo for `listen`, or says in the ledger why not. `socket` is any socket of this namespace.
    pub(super) fn new(
        echo: &XdpEcho,
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
                ledger.fall_back("xdp-echo", wanted, "off, sockets answer", error)?;
                Ok(None)
            }
        }
    }

    /// What the program counted so far; zero if the map cannot be read.
    pub(super) fn read(&self) -> XdpCounters {
        let mut counters = XdpCounters::default();
        let values = bpf::per_cpu_values::<COUNTERS>(&self.counters, 0).unwrap_or_default();
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
    let name = CString::new(device)?;
    // SAFETY: a terminated string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let veth = native && driver(&name, socket)? == *b"veth";
    let checksum = if veth {
        Checksum::Partial
    } else {
        Checksum::Keep
    };
    let counters = bpf::create_map(MapKind::PerCpuArray, COUNTERS * 8, 1)?;
    let program = bpf::load(
        ProgramKind::Xdp,
        &program(listen, checksum, counters.as_fd()),
    )?;
    let link = bpf::attach_xdp(&program, index, native)?;
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

/// Name of the driver behind a device, up to its first zero byte (`ETHTOOL_GDRVINFO`).
fn driver(device: &CString, socket: &OwnedFd) -> io::Result<Vec<u8>> {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    const ETHTOOL_GDRVINFO: u32 = 3;
    /// `struct ethtool_drvinfo`, of which only the head is read.
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        driver: [u8; 32],
        rest: [u8; 160],
    }
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        rest: [0; 160],
    };
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.as_bytes_with_nul()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the kernel writes at most an ethtool_drvinfo, 196 bytes, to the address in the request.
    if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let end = info
        .driver
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(info.driver.len());
    Ok(info.driver[..end].to_vec())
}
