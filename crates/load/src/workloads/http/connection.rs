//! A connection of the generator, which carries one request at a time, or by HTTP/2 as many as it has streams.

use std::io;
use std::os::fd::RawFd;

use memchr::memmem::Finder;
use socket2::SockAddr;

use super::http2::frames::Reader;
use super::http2::mux::{Mux, Then};
use super::http2::{self, Broken, code};
use crate::stream::link::{Came, Established, Link};
use crate::stream::tls::{Failed, Tls};

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
    pub(super) link: Link,
    /// HTTP/2 has begun on it.
    begun: bool,
    /// A response has come on it since it was opened.
    pub(super) served: bool,
    /// Its streams, where it speaks HTTP/2, and what reads them; that is taken out while it reads.
    pub(super) mux: Option<Box<Mux>>,
    pub(super) reader: Option<Box<Reader>>,
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
            link: Link::new(tls, false),
            begun: false,
            served: false,
            mux: streams.map(|streams| Box::new(Mux::new(streams))),
            reader: streams.map(|_| Box::new(Reader::new())),
        }
    }

    /// Begins to establish it at `now`; the socket to be watched.
    pub(super) fn open(&mut self, target: &SockAddr, now: u64) -> io::Result<RawFd> {
        self.begun = false;
        self.served = false;
        self.link.open(target, now)
    }

    /// Goes on establishing it at `now`, with buffers for TLS; how that went, once it is established. An error where it cannot be.
    pub(super) fn establish(
        &mut self,
        now: u64,
        wire: &mut [u8],
        buffer: &mut [u8],
    ) -> io::Result<Option<Established>> {
        let Some(established) = self.link.establish(now, wire, buffer)? else {
            return Ok(None);
        };
        if self.mux.is_none() && established.early > 0 {
            return Err(Failed::Early.into());
        }
        if self.mux.is_some() && !self.settled(established.early, now, wire, buffer)? {
            return Ok(None);
        }
        self.link.opening = None;
        Ok(Some(established))
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
            if self.link.refuses_http2() {
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
            let came = match self.link.read(wire, buffer) {
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
        if self.begun {
            http2::Failed::Silent.into()
        } else {
            self.link.overdue()
        }
    }

    /// Hands what is left of the request to the kernel, as far as it takes it.
    #[inline]
    pub(super) fn write(&mut self, request: &mut Request, bytes: &[u8]) -> io::Result<()> {
        request.written += self.link.write(&bytes[request.written..])?;
        Ok(())
    }

    /// Hands the frames that wait to the kernel, as far as it takes them.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Some(mux) = &mut self.mux else {
            return Ok(());
        };
        if !mux.waiting().is_empty() || !self.link.is_flushed() {
            let taken = self.link.write(mux.waiting())?;
            mux.wrote(taken);
        }
        Ok(())
    }

    /// All of a request of this length has left.
    #[inline]
    pub(super) fn has_sent(&self, written: usize, length: usize) -> bool {
        written == length && self.link.is_flushed()
    }

    /// Reads what has come; what TLS brings passes through `wire`.
    #[inline]
    pub(super) fn read(&mut self, wire: &mut [u8], buffer: &mut [u8]) -> io::Result<Came> {
        self.link.read(wire, buffer)
    }

    /// Closes it; the requests under way stay.
    pub(super) fn close(&mut self) {
        self.link.close();
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
