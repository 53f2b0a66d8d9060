//! What is sent, and how a reply shows to which request it belongs.
//!
//! Sequenced payloads carry 16 bytes of header, little endian: an id of the run and the socket, then the
//! ticket. So a reply that a server sends to the wrong one of our sockets is not mistaken for the right one. The
//! rest is a pattern that an echo must return unchanged. DNS carries its ticket in the 16-bit id. An opaque
//! payload carries none, so a socket has one request at a time.

use crate::dns::{self, Query};

/// Bytes of a sequenced payload's header.
pub const HEADER: usize = 16;

/// What a request contains.
#[derive(Clone, Debug)]
pub enum Payload {
    /// `size` bytes (16 to 65 507), numbered; the server must echo them.
    Sequenced {
        /// UDP payload, bytes.
        size: usize,
    },
    /// The same bytes each time; any datagram that comes back is the reply. One request is outstanding per socket.
    Opaque(Vec<u8>),
    /// Queries in this order, again from the start when all were asked.
    Dns(Vec<Query>),
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A good reply; DNS adds its response code and whether it was cut.
    Good { rcode: u8, cut: bool },
    /// The reply to this request, but of the wrong length.
    WrongLength,
    /// The reply to this request, but other bytes.
    WrongBytes,
    /// A reply to something else.
    Foreign,
}

/// How a datagram names its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Ticket(u64),
    /// The payload has no room for one: the only request of the socket.
    Only,
    /// Too short to hold a ticket.
    Short,
    /// Of another run or another socket, or no reply of this kind.
    Foreign,
}

/// A payload as the hot path uses it.
#[derive(Debug)]
pub(super) enum Form<'a> {
    Sequenced { template: Vec<u8> },
    Opaque(&'a [u8]),
    Dns(&'a [Query]),
}

impl<'a> Form<'a> {
    pub(super) fn new(payload: &'a Payload) -> Self {
        match payload {
            Payload::Sequenced { size } => {
                // A pattern that no shifted or zeroed copy of itself matches by accident.
                Self::Sequenced {
                    template: (0..*size)
                        .map(|at| (at as u8).wrapping_mul(167) ^ 0x5a)
                        .collect(),
                }
            }
            Payload::Opaque(bytes) => Self::Opaque(bytes),
            Payload::Dns(queries) => Self::Dns(queries),
        }
    }

    /// The bytes that all requests share, where they do.
    pub(super) fn template(&self) -> &[u8] {
        match self {
            Self::Sequenced { template, .. } => template,
            Self::Opaque(bytes) => bytes,
            Self::Dns(_) => &[],
        }
    }

    /// Length of the longest request.
    pub(super) fn longest_request(&self) -> usize {
        match self {
            Self::Dns(queries) => queries
                .iter()
                .map(|query| query.wire().len())
                .max()
                .unwrap_or(0),
            _ => self.template().len(),
        }
    }

    /// Length of the longest reply that can be right.
    pub(super) fn longest_reply(&self) -> usize {
        match self {
            Self::Sequenced { template, .. } => template.len(),
            // Without EDNS a DNS server must not send more than 512 bytes; some do.
            Self::Dns(_) => 4096,
            Self::Opaque(_) => usize::from(u16::MAX),
        }
    }

    /// Bits that a ticket may have.
    pub(super) fn ticket_bits(&self) -> u32 {
        match self {
            Self::Sequenced { .. } | Self::Opaque(_) => 64,
            Self::Dns(_) => 16,
        }
    }

    /// Different requests of a run.
    pub(super) fn tags(&self) -> u32 {
        match self {
            Self::Dns(queries) => queries.len() as u32,
            _ => 1,
        }
    }

    /// Completes a request of the socket `id` that begins as the template; returns its length where it
    /// differs from the template's.
    #[inline]
    pub(super) fn write(
        &self,
        request: &mut [u8],
        id: u64,
        ticket: u64,
        tag: u32,
    ) -> Option<usize> {
        match self {
            Self::Sequenced { .. } => {
                request[..8].copy_from_slice(&id.to_le_bytes());
                request[8..HEADER].copy_from_slice(&ticket.to_le_bytes());
                None
            }
            Self::Opaque(_) => None,
            Self::Dns(queries) => {
                let wire = queries[tag as usize].wire();
                request[..wire.len()].copy_from_slice(wire);
                request[..2].copy_from_slice(&(ticket as u16).to_be_bytes());
                Some(wire.len())
            }
        }
    }

    /// To which request of the socket `id` the `datagram` claims to belong.
    #[inline]
    pub(super) fn name(&self, datagram: &[u8], id: u64) -> Name {
        match self {
            Self::Sequenced { .. } => match datagram.first_chunk::<HEADER>() {
                None => Name::Short,
                Some(header) => {
                    let (owner, ticket) = header.split_at(8);
                    let word =
                        |half: &[u8]| u64::from_le_bytes(half.try_into().unwrap_or_default());
                    if word(owner) == id {
                        Name::Ticket(word(ticket))
                    } else {
                        Name::Foreign
                    }
                }
            },
            Self::Opaque(_) => Name::Only,
            Self::Dns(_) => dns::id(datagram).map_or(Name::Short, |id| Name::Ticket(u64::from(id))),
        }
    }

    /// Whether `datagram` is a right reply to the request with `tag`.
    #[inline]
    pub(super) fn check(&self, datagram: &[u8], tag: u32) -> Reading {
        const GOOD: Reading = Reading::Good {
            rcode: 0,
            cut: false,
        };
        match self {
            Self::Sequenced { template, .. } => {
                if datagram.len() != template.len() {
                    Reading::WrongLength
                } else if datagram[HEADER..] == template[HEADER..] {
                    GOOD
                } else {
                    Reading::WrongBytes
                }
            }
            Self::Opaque(_) => GOOD,
            Self::Dns(queries) => match dns::check(datagram, &queries[tag as usize]) {
                dns::Reply::Answer { rcode, cut } => Reading::Good { rcode, cut },
                dns::Reply::Foreign => Reading::Foreign,
            },
        }
    }
}
