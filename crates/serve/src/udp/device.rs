//! What the kernel says about a network device, by the ioctls that need nothing but a socket of its namespace.
#![expect(unsafe_code, reason = "ioctls take raw pointers")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// A device of this namespace.
pub(super) struct Device {
    name: CString,
    pub(super) index: u32,
}

impl Device {
    /// The device of this name.
    pub(super) fn find(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: a terminated string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { name, index })
    }

    /// Bytes of the largest packet, without the Ethernet header.
    pub(super) fn mtu(&self, socket: &OwnedFd) -> io::Result<usize> {
        let mut request = self.request();
        // SAFETY: there is no address in it.
        unsafe { ask(socket, libc::SIOCGIFMTU, &mut request) }?;
        // SAFETY: the field that this request fills in.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Whether its driver is that of veth pairs (`ETHTOOL_GDRVINFO`).
    pub(super) fn is_veth(&self, socket: &OwnedFd) -> io::Result<bool> {
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
        let mut request = self.request();
        request.ifr_ifru.ifru_data = (&raw mut info).cast();
        // SAFETY: the kernel writes at most an ethtool_drvinfo, 196 bytes, to the address in the request.
        unsafe { ask(socket, SIOCETHTOOL, &mut request) }?;
        Ok(info.driver.starts_with(b"veth\0"))
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
