//! A connection below its protocol: TCP or a Unix socket, by TLS or without, established without waiting, and read and written as far as
//! the kernel goes along.

use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::tls::{Agreed, Failed, Session, Tls};
use crate::clock::now_ns;

/// A connection, which may have to be opened anew.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Option<Socket>,
    /// When it began to be opened, as long as it is not established; its protocol may have something to say first.
    pub(crate) opening: Option<u64>,
    /// When it last began to be opened.
    began: u64,
    /// When the kernel had established it; 0 before.
    connected: u64,
    /// The kernel may hold back small requests until earlier bytes are acknowledged.
    nagle: bool,
    /// What TLS begins with, where the load uses it.
    secure: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// TLS, once the kernel has established the connection.
    session: Option<Box<Session>>,
    /// How long the handshake of TLS took, and what was agreed; known once it is over.
    agreed: Option<(u64, Agreed)>,
}

/// How a connection was established.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Established {
    /// How long the kernel took, ns.
    pub(crate) connect: u64,
    /// How long the handshake of TLS took after that, and what was agreed.
    pub(crate) tls: Option<(u64, Agreed)>,
    /// Bytes of the server in the buffer already, which came with the end of that handshake.
    pub(crate) early: usize,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Bytes; there may be none, for TLS has messages of its own.
    pub(crate) length: usize,
    /// There may be more at once.
    pub(crate) more: bool,
    /// Nothing follows them: the other side has said so.
    pub(crate) ended: bool,
}

impl Came {
    pub(crate) const END: Self = Self {
        length: 0,
        more: false,
        ended: true,
    };
}

/// Reads from a socket.
#[inline]
pub(super) fn receive(mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

/// Hands bytes to the kernel. A connection that the other side has closed is an error, and no signal.
#[inline]
pub(super) fn send(socket: &Socket, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    match pieces {
        [piece] => socket.send_with_flags(piece, libc::MSG_NOSIGNAL),
        _ => socket.send_vectored_with_flags(pieces, libc::MSG_NOSIGNAL),
    }
}

impl Link {
    pub(crate) fn new(tls: Option<&Tls>, nagle: bool) -> Self {
        Self {
            socket: None,
            opening: None,
            began: 0,
            connected: 0,
            nagle,
            secure: tls.map(Tls::of_connection),
            session: None,
            agreed: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// It is established, and its protocol has begun.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.socket.is_some() && self.opening.is_none()
    }

    pub(crate) fn socket(&self) -> Option<RawFd> {
        self.socket.as_ref().map(Socket::as_raw_fd)
    }

    /// HTTP/2 was not negotiated by its TLS.
    pub(crate) fn refuses_http2(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| !session.is_http2())
    }

    /// Begins to establish it at `now`; the socket to be watched.
    pub(crate) fn open(&mut self, target: &SockAddr, now: u64) -> io::Result<RawFd> {
        self.close();
        let kind = Type::from(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
        let socket = if target.is_unix() {
            Socket::new(Domain::UNIX, kind, None)?
        } else {
            let socket = Socket::new(target.domain(), kind, Some(Protocol::TCP))?;
            // A request leaves at once, though the last reply is not yet acknowledged.
            socket.set_tcp_nodelay(!self.nagle)?;
            socket
        };
        match socket.connect(target) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            // A loopback connection may be established already; epoll reports that as well.
            _ => {}
        }
        self.opening = Some(now);
        self.began = now;
        self.connected = 0;
        self.agreed = None;
        Ok(self.socket.insert(socket).as_raw_fd())
    }

    /// Goes on establishing it at `now`, with buffers for TLS; how that went, once the kernel and TLS have. It stays `opening` until its
    /// protocol has begun too. An error where it cannot be established.
    pub(crate) fn establish(
        &mut self,
        now: u64,
        wire: &mut [u8],
        buffer: &mut [u8],
    ) -> io::Result<Option<Established>> {
        let Some(socket) = self.socket.as_ref().filter(|_| self.opening.is_some()) else {
            return Ok(None);
        };
        if self.connected == 0 {
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
            if socket.peer_addr().is_err() {
                return Ok(None);
            }
            self.connected = now;
            if let Some(secure) = &self.secure {
                self.session = Some(Box::new(Session::new(secure)?));
            }
        }
        let mut early = 0;
        if let Some(session) = &mut self.session
            && self.agreed.is_none()
        {
            let Some((agreed, length)) = session.handshake(socket, wire, buffer)? else {
                return Ok(None);
            };
            self.agreed = Some((now_ns() - self.connected, agreed));
            early = length;
        }
        Ok(Some(Established {
            connect: self.connected - self.began,
            tls: self.agreed,
            early,
        }))
    }

    /// Why it is not established after all this time.
    pub(crate) fn overdue(&self) -> io::Error {
        match &self.session {
            Some(_) => Failed::Silent.into(),
            None => ErrorKind::TimedOut.into(),
        }
    }

    /// Hands bytes to the kernel, or to TLS to encrypt, as far as they are taken; how many were.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(socket) = &self.socket else {
            return Ok(0);
        };
        if let Some(session) = &mut self.session {
            return session.write(socket, bytes);
        }
        let mut written = 0;
        while written < bytes.len() {
            match send(socket, &[IoSlice::new(&bytes[written..])]) {
                Ok(taken) => written += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// The kernel has taken all that TLS has encrypted.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        self.session
            .as_ref()
            .is_none_or(|session| session.is_flushed())
    }

    /// Reads what has come; what TLS brings passes through `wire`.
    #[inline]
    pub(crate) fn read(&mut self, wire: &mut [u8], buffer: &mut [u8]) -> io::Result<Came> {
        let Some(socket) = &self.socket else {
            return Err(ErrorKind::WouldBlock.into());
        };
        if let Some(session) = &mut self.session {
            return session.read(socket, wire, buffer);
        }
        let length = receive(socket, buffer)?;
        Ok(Came {
            length,
            // Fewer than there is room for: the kernel found nothing more.
            more: length == buffer.len(),
            ended: length == 0,
        })
    }

    /// Closes it; the requests under way stay.
    pub(crate) fn close(&mut self) {
        if let (Some(session), Some(socket)) = (&mut self.session, &self.socket) {
            session.close(socket);
        }
        self.session = None;
        self.socket = None;
        self.opening = None;
    }
}
