//! Datagrams in bulk: `recvmmsg` and `sendmmsg` on arrays that are laid out once.
//!
//! All sockets are connected, so no message names an address and one set of arrays serves every socket of a
//! thread. With bursts, one message holds several datagrams of equal size: the kernel cuts them apart on
//! the way out (`UDP_SEGMENT`) and hands over what it joined on the way in (`UDP_GRO`), with the size in a
//! control message.
#![expect(
    unsafe_code,
    reason = "recvmmsg, sendmmsg and their arrays of pointers"
)]

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr};

/// No datagram, joined or not, is longer.
const LARGEST: usize = 1 << 16;
/// Space of one control message with an int, in words that keep its alignment.
const CONTROL_WORDS: usize = 4;

fn empty() -> mmsghdr {
    // SAFETY: a mmsghdr is plain integers and pointers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// Room for replies.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    stride: usize,
    headers: Vec<mmsghdr>,
    /// One control block per message where replies may come joined.
    controls: Vec<[u64; CONTROL_WORDS]>,
    /// Pointed to by `headers`.
    _vectors: Vec<iovec>,
}

impl Inbox {
    /// Room for `messages` replies of up to `longest` bytes, or joined ones.
    pub(super) fn new(messages: usize, longest: usize, joined: bool) -> Self {
        // One byte more than the longest reply tells a longer one; whole cache lines keep neighbours apart.
        let stride = if joined {
            LARGEST
        } else {
            longest.min(LARGEST) + 1
        }
        .next_multiple_of(64);
        let mut bytes = vec![0; stride * messages];
        let mut controls = vec![[0; CONTROL_WORDS]; if joined { messages } else { 0 }];
        let mut vectors: Vec<_> = bytes
            .chunks_exact_mut(stride)
            .map(|chunk| iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: chunk.len(),
            })
            .collect();
        let mut headers = vec![empty(); messages];
        for (header, vector) in headers.iter_mut().zip(&mut vectors) {
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        for (header, control) in headers.iter_mut().zip(&mut controls) {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        }
        Self {
            bytes,
            stride,
            headers,
            controls,
            _vectors: vectors,
        }
    }

    /// How many messages fit.
    pub(super) fn room(&self) -> usize {
        self.headers.len()
    }

    /// Reads what waits at `fd`; with `block`, waits for the first one as long as the socket's timeout says.
    #[inline]
    pub(super) fn receive(&mut self, fd: RawFd, block: bool) -> io::Result<usize> {
        if self.headers.len() == 1 && self.controls.is_empty() {
            // Half the price of a `recvmmsg` of one.
            let flags = if block { 0 } else { libc::MSG_DONTWAIT };
            // SAFETY: `bytes` has `stride` bytes for the one message.
            let got = unsafe { libc::recv(fd, self.bytes.as_mut_ptr().cast(), self.stride, flags) };
            let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
            self.headers[0].msg_len = got as c_uint;
            return Ok(1);
        }
        for header in &mut self.headers[..self.controls.len()] {
            header.msg_hdr.msg_controllen = (CONTROL_WORDS * size_of::<u64>()) as _;
        }
        let flags = if block {
            libc::MSG_WAITFORONE
        } else {
            libc::MSG_DONTWAIT
        };
        let (headers, room) = (self.headers.as_mut_ptr(), self.headers.len() as c_uint);
        // SAFETY: each header points to a vector, and that to a part of `bytes`; none of the three was
        // reallocated since `new`, and moving `self` moves no heap block.
        let got = unsafe { libc::recvmmsg(fd, headers, room, flags, std::ptr::null_mut()) };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// The datagrams of message `n`: itself, or the parts that the kernel joined. A datagram longer than
    /// the longest reply is cut, but still longer than the longest reply.
    #[inline]
    pub(super) fn datagrams(&self, n: usize) -> impl Iterator<Item = &[u8]> {
        let length = (self.headers[n].msg_len as usize).min(self.stride);
        let start = n * self.stride;
        let message = &self.bytes[start..start + length];
        let segment = self.segment(n).unwrap_or(length).max(1);
        // An empty datagram is a datagram too.
        let whole = message.is_empty().then_some(message);
        whole.into_iter().chain(message.chunks(segment))
    }

    fn segment(&self, n: usize) -> Option<usize> {
        let control = self.controls.get(n)?;
        let header: &msghdr = &self.headers[n].msg_hdr;
        // `struct cmsghdr`: length, level, type, then the data.
        let at = size_of::<libc::cmsghdr>();
        if header.msg_controllen < at + size_of::<c_int>() {
            return None;
        }
        let words: Vec32 = control.map(u64::to_ne_bytes);
        let bytes = words.as_flattened();
        let int = |at: usize| {
            Some(c_int::from_ne_bytes(
                bytes.get(at..at + 4)?.try_into().ok()?,
            ))
        };
        let level = int(size_of::<usize>())?;
        let kind = int(size_of::<usize>() + size_of::<c_int>())?;
        (level == libc::SOL_UDP && kind == libc::UDP_GRO).then_some(())?;
        usize::try_from(int(at)?).ok()
    }
}

type Vec32 = [[u8; 8]; CONTROL_WORDS];

/// Requests about to leave.
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Bytes between two requests.
    stride: usize,
    /// Requests in one message.
    burst: usize,
    headers: Vec<mmsghdr>,
    vectors: Vec<iovec>,
}

impl Outbox {
    /// Room for `messages` messages of `burst` requests of up to `longest` bytes. `template` fills each
    /// beforehand.
    pub(super) fn new(messages: usize, burst: usize, longest: usize, template: &[u8]) -> Self {
        // Requests of a burst lie end to end; single ones begin at cache lines.
        let stride = if burst > 1 {
            longest
        } else {
            longest.max(1).next_multiple_of(64)
        };
        let mut bytes = vec![0; stride * burst * messages];
        for request in bytes.chunks_exact_mut(stride) {
            request[..template.len()].copy_from_slice(template);
        }
        let mut vectors: Vec<_> = bytes
            .chunks_exact_mut(stride * burst)
            .map(|chunk| iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: template.len() * burst,
            })
            .collect();
        let mut headers = vec![empty(); messages];
        for (header, vector) in headers.iter_mut().zip(&mut vectors) {
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        Self {
            bytes,
            stride,
            burst,
            headers,
            vectors,
        }
    }

    /// How many requests fit.
    pub(super) fn room(&self) -> usize {
        self.headers.len() * self.burst
    }

    /// Where request `n` is written.
    #[inline]
    pub(super) fn request(&mut self, n: usize) -> &mut [u8] {
        &mut self.bytes[n * self.stride..][..self.stride]
    }

    /// Request `n` as it was written; only for requests that travel alone.
    #[inline]
    pub(super) fn written(&self, n: usize) -> &[u8] {
        debug_assert!(self.burst == 1);
        &self.bytes[n * self.stride..][..self.vectors[n].iov_len]
    }

    /// Says that request `n` has `length` bytes; only for requests that travel alone.
    #[inline]
    pub(super) fn set_length(&mut self, n: usize, length: usize) {
        debug_assert!(self.burst == 1 && length <= self.stride);
        self.vectors[n].iov_len = length.min(self.stride);
    }

    /// Sends the requests `first..end` and returns how many the kernel took. `first` begins a message.
    #[inline]
    pub(super) fn send(&mut self, fd: RawFd, first: usize, end: usize) -> io::Result<usize> {
        let (from, to) = (first / self.burst, end.div_ceil(self.burst));
        debug_assert!(first.is_multiple_of(self.burst) && from < to && to <= self.headers.len());
        let left_over = end % self.burst;
        if left_over > 0 {
            self.vectors[to - 1].iov_len = left_over * self.stride;
        }
        let sent = if to - from == 1 {
            let vector = self.vectors[from];
            // SAFETY: the vector describes a part of `bytes`.
            let took = unsafe {
                libc::send(
                    fd,
                    vector.iov_base.cast_const().cast::<c_void>(),
                    vector.iov_len,
                    0,
                )
            };
            i32::from(took >= 0) * 2 - 1
        } else {
            let headers = &mut self.headers[from..to];
            // SAFETY: each header points to a vector, and that to a part of `bytes`; none of the three was
            // reallocated since `new`, and moving `self` moves no heap block.
            unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), headers.len() as c_uint, 0) }
        };
        // Read before anything can overwrite it.
        let error = (sent < 0).then(io::Error::last_os_error);
        if left_over > 0 {
            self.vectors[to - 1].iov_len = self.burst * self.stride;
        }
        match error {
            Some(error) => Err(error),
            None => Ok(((from + sent as usize) * self.burst).min(end) - first),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(two.local_addr().unwrap()).unwrap();
        two.connect(one.local_addr().unwrap()).unwrap();
        (one, two)
    }

    #[test]
    fn requests_of_different_lengths_arrive_as_they_were_written() {
        let (client, server) = pair();
        let mut outbox = Outbox::new(4, 1, 100, &[]);
        for (n, length) in [0, 3, 100].into_iter().enumerate() {
            outbox.request(n)[..length].fill(n as u8 + 1);
            outbox.set_length(n, length);
        }
        assert_eq!(outbox.send(client.as_raw_fd(), 0, 3).unwrap(), 3);
        let mut inbox = Inbox::new(8, 99, false);
        assert_eq!(inbox.receive(server.as_raw_fd(), true).unwrap(), 3);
        let got: Vec<_> = (0..3)
            .flat_map(|n| inbox.datagrams(n).map(<[u8]>::to_vec))
            .collect();
        assert_eq!(
            got,
            [vec![], vec![2; 3], vec![3; 100]],
            "100 bytes do not look like 99"
        );
        assert!(inbox.receive(server.as_raw_fd(), false).is_err());
    }

    #[test]
    fn a_burst_is_cut_on_the_way_out_and_a_joined_one_on_the_way_in() {
        let (client, server) = pair();
        for socket in [&client, &server] {
            let value: c_int = 50;
            let (segment, gro) = (libc::UDP_SEGMENT, libc::UDP_GRO);
            for (name, value) in [(segment, value), (gro, 1)] {
                let length = size_of::<c_int>() as libc::socklen_t;
                // SAFETY: `value` is an int of `length` bytes.
                let set = unsafe {
                    libc::setsockopt(
                        socket.as_raw_fd(),
                        libc::SOL_UDP,
                        name,
                        (&raw const value).cast(),
                        length,
                    )
                };
                assert_eq!(set, 0);
            }
        }
        let mut outbox = Outbox::new(2, 4, 50, &[0; 50]);
        for n in 0..7 {
            outbox.request(n)[0] = n as u8;
        }
        assert_eq!(outbox.send(client.as_raw_fd(), 0, 7).unwrap(), 7);
        let mut inbox = Inbox::new(8, 50, true);
        let mut got = Vec::new();
        while got.len() < 7 {
            let messages = inbox.receive(server.as_raw_fd(), true).unwrap();
            for n in 0..messages {
                got.extend(
                    inbox
                        .datagrams(n)
                        .map(|datagram| (datagram.len(), datagram[0])),
                );
            }
        }
        assert_eq!(got, (0..7).map(|n| (50, n)).collect::<Vec<_>>());
    }
}
