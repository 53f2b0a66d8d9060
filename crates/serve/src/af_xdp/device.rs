//! What the kernel says about a network device, by the ioctls that need nothing but a socket of its namespace.
#![expect(unsafe_code, reason = "ioctls take raw pointers")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A device of this namespace.
#[derive(Debug)]
pub struct Device {
    name: CString,
    index: u32,
}

/// Queues of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Receive queues.
    pub receive: u32,
    /// Transmit queues.
    pub transmit: u32,
}

impl Device {
    /// The device of this name.
    pub fn find(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: a terminated string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { name, index })
    }

    /// Its number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Bytes of the largest packet, without the Ethernet header. `socket` is any socket of the namespace, here and
    /// below.
    pub fn mtu(&self, socket: &OwnedFd) -> io::Result<usize> {
        let mut request = self.request();
        // SAFETY: there is no address in it.
        unsafe { ask(socket, libc::SIOCGIFMTU, &mut request) }?;
        // SAFETY: the field that this request fills in.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Its Ethernet address; an error if it has none.
    pub fn mac(&self, socket: &OwnedFd) -> io::Result<[u8; 6]> {
        let mut request = self.request();
        // SAFETY: there is no address in it.
        unsafe { ask(socket, libc::SIOCGIFHWADDR, &mut request) }?;
        // SAFETY: the field that this request fills in.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        if address.sa_family != libc::ARPHRD_ETHER {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the device has no Ethernet address",
            ));
        }
        Ok(std::array::from_fn(|at| {
            address.sa_data[at].cast_unsigned()
        }))
    }

    /// How many queues it has; one each where its driver does not tell (`ETHTOOL_GCHANNELS`).
    pub fn queues(&self, socket: &OwnedFd) -> Queues {
        const ETHTOOL_GCHANNELS: u32 = 0x3c;
        /// `struct ethtool_channels`.
        #[derive(Default)]
        #[repr(C)]
        struct Channels {
            command: u32,
            _most: [u32; 4],
            receive: u32,
            transmit: u32,
            _other: u32,
            combined: u32,
        }
        let mut channels = Channels {
            command: ETHTOOL_GCHANNELS,
            ..Channels::default()
        };
        // SAFETY: the command writes an ethtool_channels, which this is.
        let answer = unsafe { self.ethtool(socket, &mut channels) };
        // A driver that does not tell leaves zeros.
        if answer.is_err() {
            channels = Channels::default();
        }
        Queues {
            receive: (channels.receive + channels.combined).max(1),
            transmit: (channels.transmit + channels.combined).max(1),
        }
    }

    /// Whether its driver is that of veth pairs (`ETHTOOL_GDRVINFO`).
    pub(crate) fn is_veth(&self, socket: &OwnedFd) -> io::Result<bool> {
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
        // SAFETY: the command writes at most an ethtool_drvinfo, 196 bytes, which this is.
        unsafe { self.ethtool(socket, &mut info) }?;
        Ok(info.driver.starts_with(b"veth\0"))
    }

    /// The `ETHTOOL_*` command that `what` begins with, which must be the struct that the command reads and writes.
    unsafe fn ethtool<T>(&self, socket: &OwnedFd, what: &mut T) -> io::Result<()> {
        const SIOCETHTOOL: libc::Ioctl = 0x8946;
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(what).cast();
        // SAFETY: the caller vouches for what the request's address points to.
        unsafe { ask(socket, SIOCETHTOOL, &mut request) }
    }

    fn request(&self) -> libc::ifreq {
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request
            .ifr_name
            .iter_mut()
            .zip(self.name.as_bytes_with_nul())
        {
            *to = from.cast_signed();
        }
        request
    }
}

/// An ioctl on a device. The addresses in `request` must be valid for what the kernel writes there.
unsafe fn ask(socket: &OwnedFd, what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` is an ifreq, valid for writing; the caller vouches for the addresses inside.
    match unsafe { libc::ioctl(socket.as_raw_fd(), what, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
