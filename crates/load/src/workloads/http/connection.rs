//! A connection of the generator, which carries one request at a time, or by HTTP/2 as many as it has streams.

use std::io::{self, IoSlice, Read as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;

use memchr::memmem::Finder;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::http2::frames::Reader;
use super::http2::mux::{Mux, Then};
use super::http2::{self, Broken, code};
use super::tls::{Agreed, Failed, Session, Tls};
use crate::clock::now_ns;

/// A request that was sent, or waits for its connection to be established.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When it was due, absolute ns.
    pub(super) intended: u64,
    /// When it was begun; where it opens a connection for itself, that belongs to it.
    pub(super) sent: u64,
    /// When the first byte of its response came; 0 before.
    pub(super) first_byte: u64,
    /// How many of its bytes the kernel has taken, or TLS to encrypt; by HTTP/2 how many of its body are in frames.
    pub(super) written: usize,
}

/// A connection, which may have to be opened anew.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Option<Socket>,
    /// When it began to be opened, as long as it is not established, TLS included.
    pub(super) opening: Option<u64>,
    /// When the kernel had established it; 0 before.
    connected: u64,
    /// What TLS begins with, where the load uses it.
    secure: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// TLS, once the kernel has established the connection.
    session: Option<Box<Session>>,
    /// How long the handshake of TLS took, and what was agreed; known once it is over.
    agreed: Option<(u64, Agreed)>,
    /// HTTP/2 has begun on it.
    begun: bool,
    /// A response has come on it since it was opened.
    pub(super) served: bool,
    /// Its streams, where it speaks HTTP/2, and what reads them; that is taken out while it reads.
    pub(super) mux: Option<Box<Mux>>,
    pub(super) reader: Option<Box<Reader>>,
}

/// How a connection was established.
#[derive(Clone, Copy, Debug)]
pub(super) struct Established {
    /// How long the kernel took, ns.
    pub(super) connect: u64,
    /// How long the handshake of TLS took after that, and what was agreed.
    pub(super) tls: Option<(u64, Agreed)>,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// Bytes; there may be none, for TLS has messages of its own.
    pub(super) length: usize,
    /// There may be more at once.
    pub(super) more: bool,
    /// Nothing follows them: the other side has said so.
    pub(super) ended: bool,
}

impl Came {
    pub(super) const END: Self = Self {
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

/// A frame belongs to a stream that it cannot belong to.
pub(super) const NEVER_BEGAN: Broken = Broken {
    code: code::PROTOCOL_ERROR,
    why: "the server sends a frame of a stream that never began",
};

impl Connection {
    /// `streams`: how many it may have at the same time, where it speaks HTTP/2.
    pub(super) fn new(streams: Option<usize>, tls: Option<&Tls>) -> Self {
        Self {
            socket: None,
            opening: None,
            connected: 0,
            secure: tls.map(Tls::of_connection),
            session: None,
            agreed: None,
            begun: false,
            served: false,
            mux: streams.map(|streams| Box::new(Mux::new(streams))),
            reader: streams.map(|_| Box::new(Reader::new())),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    pub(super) fn socket(&self) -> Option<RawFd> {
        self.socket.as_ref().map(Socket::as_raw_fd)
    }

    /// Begins to establish it at `now`; the socket to be watched.
    pub(super) fn open(&mut self, target: &SockAddr, now: u64) -> io::Result<RawFd> {
        self.close();
        let kind = Type::from(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
        let socket = if target.is_unix() {
            Socket::new(Domain::UNIX, kind, None)?
        } else {
            let socket = Socket::new(target.domain(), kind, Some(Protocol::TCP))?;
            // A request leaves at once, though the last response is not yet acknowledged.
            socket.set_tcp_nodelay(true)?;
            socket
        };
        match socket.connect(target) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            // A loopback connection may be established already; epoll reports that as well.
            _ => {}
        }
        self.opening = Some(now);
        self.connected = 0;
        self.agreed = None;
        self.begun = false;
        self.served = false;
        Ok(self.socket.insert(socket).as_raw_fd())
    }

    /// Goes on establishing it at `now`, with buffers for TLS; how that went, once it is established. An error where it cannot be.
    pub(super) fn establish(
        &mut self,
        now: u64,
        wire: &mut [u8],
        buffer: &mut [u8],
    ) -> io::Result<Option<Established>> {
        let (Some(socket), Some(began)) = (&self.socket, self.opening) else {
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
        if self.mux.is_none() && early > 0 {
            return Err(Failed::Early.into());
        }
        if self.mux.is_some() && !self.settled(early, now, wire, buffer)? {
            return Ok(None);
        }
        self.opening = None;
        Ok(Some(Established {
            connect: self.connected - began,
            tls: self.agreed,
        }))
    }

    /// Begins HTTP/2 at `now`, with so many bytes in `buffer` that came already; true once the settings of the server have come.
    fn settled(
        &mut self,
        early: usize,
        now: u64,
        wire: &mut [u8],
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        if !self.begun {
            let refuses = self
                .session
                .as_ref()
                .is_some_and(|session| !session.is_http2());
            if refuses {
                return Err(http2::Failed::NotNegotiated.into());
            }
            if let (Some(mux), Some(reader)) = (&mut self.mux, &mut self.reader) {
                mux.begin();
                reader.reset();
            }
            self.begun = true;
        }
        let lost = |error: io::Error| match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => http2::Failed::Closed.into(),
            _ => error,
        };
        self.settle(&buffer[..early], now)?;
        self.flush().map_err(lost)?;
        loop {
            let came = match self.read(wire, buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Edge-triggered: what is not read now may never be reported.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                came => came.map_err(lost)?,
            };
            self.settle(&buffer[..came.length], now)?;
            if came.ended {
                return Err(http2::Failed::Closed.into());
            }
        }
        self.flush().map_err(lost)?;
        Ok(self.mux.as_ref().is_some_and(|mux| mux.is_ready))
    }

    /// Takes what the server says before any request.
    fn settle(&mut self, bytes: &[u8], now: u64) -> Result<(), http2::Failed> {
        let (Some(mux), Some(reader)) = (&mut self.mux, &mut self.reader) else {
            return Ok(());
        };
        mux.heard = now;
        let mut at = 0;
        loop {
            let frame = match reader.next(bytes, &mut at) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(why) => {
                    return Err(if reader.is_foreign() {
                        http2::Failed::Other
                    } else {
                        http2::Failed::Broken(why)
                    });
                }
            };
            match mux.control(frame).map_err(http2::Failed::Broken)? {
                Then::Nothing | Then::Resume => {}
                Then::GoAway { code, .. } => return Err(http2::Failed::GoAway(code)),
                Then::Stream => return Err(http2::Failed::Broken(NEVER_BEGAN)),
            }
        }
    }

    /// Why it is not established after all this time.
    pub(super) fn overdue(&self) -> io::Error {
        match &self.session {
            _ if self.begun => http2::Failed::Silent.into(),
            Some(_) => Failed::Silent.into(),
            None => io::ErrorKind::TimedOut.into(),
        }
    }

    /// Hands what is left of the request to the kernel, as far as it takes it.
    #[inline]
    pub(super) fn write(&mut self, request: &mut Request, bytes: &[u8]) -> io::Result<()> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        if let Some(session) = &mut self.session {
            request.written += session.write(socket, &bytes[request.written..])?;
            return Ok(());
        }
        while request.written < bytes.len() {
            match send(socket, &[IoSlice::new(&bytes[request.written..])]) {
                Ok(taken) => request.written += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hands the frames that wait to the kernel, as far as it takes them.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let (Some(socket), Some(mux)) = (&self.socket, &mut self.mux) else {
            return Ok(());
        };
        if let Some(session) = &mut self.session {
            if !mux.waiting().is_empty() || !session.is_flushed() {
                let taken = session.write(socket, mux.waiting())?;
                mux.wrote(taken);
            }
            return Ok(());
        }
        while !mux.waiting().is_empty() {
            match send(socket, &[IoSlice::new(mux.waiting())]) {
                Ok(taken) => mux.wrote(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// All of a request of this length has left.
    #[inline]
    pub(super) fn has_sent(&self, written: usize, length: usize) -> bool {
        written == length
            && self
                .session
                .as_ref()
                .is_none_or(|session| session.is_flushed())
    }

    /// Reads what has come; what TLS brings passes through `wire`.
    #[inline]
    pub(super) fn read(&mut self, wire: &mut [u8], buffer: &mut [u8]) -> io::Result<Came> {
        let Some(socket) = &self.socket else {
            return Err(io::ErrorKind::WouldBlock.into());
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

    /// It is established.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.socket.is_some() && self.opening.is_none()
    }

    /// Closes it; the requests under way stay.
    pub(super) fn close(&mut self) {
        if let (Some(session), Some(socket)) = (&mut self.session, &self.socket) {
            session.close(socket);
        }
        self.session = None;
        self.socket = None;
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
