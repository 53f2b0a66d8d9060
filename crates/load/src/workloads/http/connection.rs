//! A connection of the generator, and the request under way on it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};

use memchr::memmem::Finder;
use socket2::{Domain, Protocol, Socket, Type};

use super::response::Response;

/// A request that was sent, or waits for its connection to be established.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When it was due, absolute ns.
    pub(super) intended: u64,
    /// When it was begun; where it opens a connection for itself, that belongs to it.
    pub(super) sent: u64,
    /// When the first byte of its response came; 0 before.
    pub(super) first_byte: u64,
    /// How many of its bytes the kernel has taken.
    pub(super) written: usize,
}

/// A connection, which may have to be opened anew.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Option<TcpStream>,
    /// When it began to be opened, as long as it is not established.
    pub(super) opening: Option<u64>,
    /// A response has come on it since it was opened.
    pub(super) served: bool,
    pub(super) request: Option<Request>,
    pub(super) response: Response,
    pub(super) search: Search,
}

/// Whether a text is in a body that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) found: bool,
    /// The end of what has come, one byte shorter than the text.
    tail: Vec<u8>,
}

impl Search {
    /// For the next body.
    pub(super) fn reset(&mut self) {
        self.found = false;
        self.tail.clear();
    }

    /// Looks at the next piece.
    pub(super) fn take(&mut self, finder: &Finder<'_>, piece: &[u8]) {
        let overlap = finder.needle().len() - 1;
        if self.found || finder.find(piece).is_some() {
            self.found = true;
            return;
        }
        // What begins in an earlier piece ends in the first bytes of this one, at the latest.
        let before = self.tail.len();
        self.tail
            .extend_from_slice(&piece[..piece.len().min(overlap)]);
        self.found = before > 0 && finder.find(&self.tail).is_some();
        if piece.len() >= overlap {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - overlap..]);
        } else {
            let surplus = self.tail.len().saturating_sub(overlap);
            self.tail.drain(..surplus);
        }
    }
}

impl Connection {
    pub(super) fn new(to_head: bool) -> Self {
        Self {
            stream: None,
            opening: None,
            served: false,
            request: None,
            response: Response::new(to_head),
            search: Search::default(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn socket(&self) -> Option<RawFd> {
        self.stream.as_ref().map(TcpStream::as_raw_fd)
    }

    /// Begins to establish it at `now`; the socket to be watched.
    pub(super) fn open(&mut self, target: SocketAddr, now: u64) -> io::Result<RawFd> {
        self.close();
        let kind = Type::from(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
        let socket = Socket::new(Domain::for_address(target), kind, Some(Protocol::TCP))?;
        // A request leaves at once, though the last response is not yet acknowledged.
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&target.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            // A loopback connection may be established already; epoll reports that as well.
            _ => {}
        }
        self.opening = Some(now);
        self.served = false;
        Ok(self.stream.insert(socket.into()).as_raw_fd())
    }

    /// Whether it is established by now; an error where it cannot be.
    pub(super) fn is_established(&self) -> io::Result<bool> {
        let Some(stream) = &self.stream else {
            return Ok(false);
        };
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream.peer_addr().is_ok()),
        }
    }

    /// Hands what is left of the request to the kernel, as far as it takes it.
    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (Some(stream), Some(request)) = (&mut self.stream, &mut self.request) else {
            return Ok(());
        };
        while request.written < bytes.len() {
            match stream.write(&bytes[request.written..]) {
                Ok(taken) => request.written += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has come.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Some(stream) => stream.read(buffer),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Closes it; the request under way stays.
    pub(super) fn close(&mut self) {
        self.stream = None;
        self.opening = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_pieces_end() {
        let body = b"aaab aab ok";
        for text in ["aab ok", "aaab", "k", "aab aab", "b a", "no", "okay"] {
            let finder = Finder::new(text);
            let expected = finder.find(body).is_some();
            for size in 1..=body.len() {
                let mut search = Search::default();
                body.chunks(size)
                    .for_each(|piece| search.take(&finder, piece));
                assert_eq!(search.found, expected, "{text} in pieces of {size}");
                search.reset();
                assert!(!search.found);
            }
        }
    }
}
