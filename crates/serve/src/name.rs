//! Socket addresses as the kernel lays them out.
//!
//! A reply goes back to the very bytes its request came from, so an address is parsed once, for the handler,
//! and never built again.
#![expect(
    unsafe_code,
    reason = "plain C structs are read from and written to byte buffers"
)]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Room for a socket address of either family.
pub(crate) const NAME_ROOM: usize = size_of::<libc::sockaddr_in6>();

/// A peer's address as the kernel wrote it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Name {
    raw: libc::sockaddr_in6,
    pub(crate) length: libc::socklen_t,
}

impl Name {
    /// No address, with room for one of any family.
    pub(crate) fn empty() -> Self {
        Self {
            // SAFETY: all zeros is a valid sockaddr_in6.
            raw: unsafe { std::mem::zeroed() },
            length: NAME_ROOM as libc::socklen_t,
        }
    }

    /// `address` as the kernel wants it.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let mut name = Self::empty();
        match address {
            SocketAddr::V4(v4) => {
                // SAFETY: all zeros is a valid sockaddr_in.
                let mut raw: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                name.length = size_of_val(&raw) as libc::socklen_t;
                // SAFETY: a sockaddr_in fits into a sockaddr_in6.
                unsafe {
                    (&raw mut name.raw)
                        .cast::<libc::sockaddr_in>()
                        .write_unaligned(raw);
                };
            }
            SocketAddr::V6(v6) => {
                name.raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                name.raw.sin6_port = v6.port().to_be();
                name.raw.sin6_addr.s6_addr = v6.ip().octets();
                name.raw.sin6_flowinfo = v6.flowinfo();
                name.raw.sin6_scope_id = v6.scope_id();
            }
        }
        name
    }

    /// The name in `bytes`, as `io_uring` delivers it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut name = Self::empty();
        let length = bytes.len().min(NAME_ROOM);
        // SAFETY: at most as many bytes as a sockaddr_in6 has, and any bytes are one.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut name.raw).cast(), length);
        };
        name.length = length as libc::socklen_t;
        name
    }

    /// Makes room again before the next receive.
    pub(crate) fn reset(&mut self) {
        self.length = NAME_ROOM as libc::socklen_t;
    }

    pub(crate) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.raw).cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.raw).cast()
    }

    /// The address, an IPv4-mapped one as IPv4. Nothing if the kernel left no name, as after a shutdown.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match libc::c_int::from(self.raw.sin6_family) {
            libc::AF_INET if self.length as usize >= size_of::<libc::sockaddr_in>() => {
                // SAFETY: the family says that a sockaddr_in was written here.
                let raw = unsafe {
                    (&raw const self.raw)
                        .cast::<libc::sockaddr_in>()
                        .read_unaligned()
                };
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::from((ip, u16::from_be(raw.sin_port))))
            }
            libc::AF_INET6 if self.length as usize >= NAME_ROOM => {
                let ip = Ipv6Addr::from(self.raw.sin6_addr.s6_addr);
                let port = u16::from_be(self.raw.sin6_port);
                Some(match ip.to_ipv4_mapped() {
                    Some(v4) => SocketAddr::from((v4, port)),
                    None => SocketAddr::V6(SocketAddrV6::new(ip, port, 0, self.raw.sin6_scope_id)),
                })
            }
            _ => None,
        }
    }
}

impl PartialEq for Name {
    /// The same peer: family, port, address and scope.
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_come_back_and_mapped_ones_as_ipv4() {
        for text in ["10.1.2.3:53", "[fd00::1]:53", "[fe80::1%7]:53"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Name::of(address).address(), Some(address));
        }
        let mapped = Name::of("[::ffff:10.1.2.3]:53".parse().unwrap());
        assert_eq!(mapped.address(), Some("10.1.2.3:53".parse().unwrap()));
        assert_eq!(Name::empty().address(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Name::from_bytes(&bytes).address();
        }
    }
}
