//! A connection of the generator, and the request under way on it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};

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
    pub(super) request: Option<Request>,
    pub(super) response: Response,
    /// The body so far, where a text is expected in it.
    pub(super) body: Vec<u8>,
}

impl Connection {
    pub(super) fn new(to_head: bool) -> Self {
        Self {
            stream: None,
            opening: None,
            request: None,
            response: Response::new(to_head),
            body: Vec::new(),
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
        let socket = Socket::new(
            Domain::for_address(target),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_nonblocking(true)?;
        // A request leaves at once, though the last response is not yet acknowledged.
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&target.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            // One to this machine may be established at once; epoll reports it all the same.
            _ => {}
        }
        self.opening = Some(now);
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
