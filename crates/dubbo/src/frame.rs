//! Frames: a header of 16 bytes and a body.
//!
//! Source: `org.apache.dubbo.remoting.exchange.codec.ExchangeCodec` of Dubbo 3.3, the same in 2.5. All numbers are big-endian.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 2 | magic `0xdabb` |
//! | 2 | 1 | `0x80` request, `0x40` two-way, `0x20` event; the low five bits are the serialization |
//! | 3 | 1 | status, of replies only |
//! | 4 | 8 | request id; the reply has that of its request |
//! | 12 | 4 | length of the body in bytes |

use std::fmt;

use crate::Error;

/// Bytes of a header.
pub const HEADER_LEN: usize = 16;
/// The first two bytes of every frame.
pub const MAGIC: [u8; 2] = [0xda, 0xbb];
/// Serialization id of hessian2, the default of Dubbo 2.x and, until 3.2, of Dubbo 3.
pub const HESSIAN2: u8 = 2;
/// The body limit of a provider and a consumer that set no `payload`: 8 MiB.
pub const DEFAULT_BODY_LIMIT: u32 = 8 << 20;

const REQUEST: u8 = 0x80;
const TWO_WAY: u8 = 0x40;
const EVENT: u8 = 0x20;
const SERIALIZATION: u8 = 0x1f;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request or reply.
    pub message: Message,
    /// An event of the connection, such as a heartbeat, in place of a call.
    pub is_event: bool,
    /// Serialization of the body, 0 to 31: 2 is [`HESSIAN2`], 6 fastjson, 8 kryo, 21 msgpack, 22 protobuf.
    pub serialization: u8,
    /// Any value that is unique among the open requests of the connection. Replies come in any order.
    pub id: u64,
    /// Bytes of the body.
    pub body_len: u32,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// From the consumer; events may come from either side.
    Request {
        /// The peer sends a reply.
        two_way: bool,
    },
    /// Of the peer, for the request of the same id.
    Reply {
        /// Whether the call reached the service.
        status: Status,
    },
}

impl Header {
    /// The header in these bytes. `at` is the frame's offset in the stream, for the error.
    pub fn decode(bytes: &[u8; HEADER_LEN], at: u64) -> Result<Self, Error> {
        let [m0, m1, flags, status, rest @ ..] = *bytes;
        if [m0, m1] != MAGIC {
            return Err(Error::Magic {
                at,
                found: [m0, m1],
                count: 2,
            });
        }
        let [i0, i1, i2, i3, i4, i5, i6, i7, l0, l1, l2, l3] = rest;
        let message = if flags & REQUEST == 0 {
            Message::Reply {
                status: Status(status),
            }
        } else {
            Message::Request {
                two_way: flags & TWO_WAY != 0,
            }
        };
        Ok(Self {
            message,
            is_event: flags & EVENT != 0,
            serialization: flags & SERIALIZATION,
            id: u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            body_len: u32::from_be_bytes([l0, l1, l2, l3]),
        })
    }

    /// Its bytes. Of the serialization, the low five bits.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let (flags, status) = match self.message {
            Message::Request { two_way } => (REQUEST | if two_way { TWO_WAY } else { 0 }, 0),
            Message::Reply { status } => (0, status.0),
        };
        let event = if self.is_event { EVENT } else { 0 };
        let mut bytes = [0; HEADER_LEN];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = flags | event | self.serialization & SERIALIZATION;
        bytes[3] = status;
        bytes[4..12].copy_from_slice(&self.id.to_be_bytes());
        bytes[12..].copy_from_slice(&self.body_len.to_be_bytes());
        bytes
    }
}

/// A frame whose body is where it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header.
    pub header: Header,
    /// The body, [`Header::body_len`] bytes.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, or `None` where more bytes are needed. The frame is [`Self::wire_len`] bytes long; `limit`
    /// is the longest body in bytes, `at` the offset in the stream, for errors.
    pub fn parse(bytes: &'a [u8], limit: u32, at: u64) -> Result<Option<Self>, Error> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            // A peer of another protocol may never send 16 bytes.
            let seen = bytes.len().min(2);
            if bytes[..seen] != MAGIC[..seen] {
                let mut found = [0; 2];
                found[..seen].copy_from_slice(&bytes[..seen]);
                return Err(Error::Magic {
                    at,
                    found,
                    count: seen,
                });
            }
            return Ok(None);
        };
        let header = Header::decode(head, at)?;
        if header.body_len > limit {
            return Err(Error::TooLong {
                at,
                id: header.id,
                length: header.body_len,
                limit,
            });
        }
        let body = rest.get(..header.body_len as usize);
        Ok(body.map(|body| Self { header, body }))
    }

    /// Bytes of header and body.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.body.len()
    }
}

/// Status of a reply. Only [`Status::OK`] has a result; the body of all others is a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u8);

impl Status {
    /// The call returned a value, or threw an exception.
    pub const OK: Self = Self(20);
    /// The provider could not serialize the result (3.x).
    pub const SERIALIZATION_ERROR: Self = Self(25);
    /// The consumer waited longer than its timeout.
    pub const CLIENT_TIMEOUT: Self = Self(30);
    /// The provider took longer than the timeout.
    pub const SERVER_TIMEOUT: Self = Self(31);
    /// The channel closed before the reply (3.x, never sent).
    pub const CHANNEL_INACTIVE: Self = Self(35);
    /// The provider cannot decode the request. 3.x also uses it for an unknown service, method or parameter type.
    pub const BAD_REQUEST: Self = Self(40);
    /// The consumer cannot decode the reply.
    pub const BAD_RESPONSE: Self = Self(50);
    /// There is no such service.
    pub const SERVICE_NOT_FOUND: Self = Self(60);
    /// The invocation failed outside the service's own code. 2.5 also uses it for an unknown service or method.
    pub const SERVICE_ERROR: Self = Self(70);
    /// The provider failed.
    pub const SERVER_ERROR: Self = Self(80);
    /// The consumer failed.
    pub const CLIENT_ERROR: Self = Self(90);
    /// The provider's thread pool and its queue are full.
    pub const THREAD_POOL_EXHAUSTED: Self = Self(100);

    /// The status in words; unknown ones are `unknown status`.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::OK => "OK",
            Self::SERIALIZATION_ERROR => "serialization error",
            Self::CLIENT_TIMEOUT => "client timeout",
            Self::SERVER_TIMEOUT => "server timeout",
            Self::CHANNEL_INACTIVE => "channel inactive",
            Self::BAD_REQUEST => "bad request",
            Self::BAD_RESPONSE => "bad response",
            Self::SERVICE_NOT_FOUND => "service not found",
            Self::SERVICE_ERROR => "service error",
            Self::SERVER_ERROR => "server error",
            Self::CLIENT_ERROR => "client error",
            Self::THREAD_POOL_EXHAUSTED => "thread pool exhausted",
            Self(_) => "unknown status",
        }
    }
}

/// `thread pool exhausted (status 100)`
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.meaning(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_read_back() {
        for serialization in 0..32 {
            for is_event in [false, true] {
                for message in [
                    Message::Request { two_way: true },
                    Message::Request { two_way: false },
                    Message::Reply { status: Status::OK },
                    Message::Reply {
                        status: Status(255),
                    },
                ] {
                    let header = Header {
                        message,
                        is_event,
                        serialization,
                        id: u64::MAX - 5,
                        body_len: 0x0102_0304,
                    };
                    assert_eq!(Header::decode(&header.encode(), 0), Ok(header));
                }
            }
        }
    }

    #[test]
    fn another_protocol_is_named_from_its_first_byte_on() {
        let error = Frame::parse(b"H", 10, 7).expect_err("no frame");
        assert!(error.to_string().contains("48 (\"H\")"), "{error}");
        let error = Frame::parse(b"\xda\x00", 10, 7).expect_err("no frame");
        assert!(error.to_string().contains("found da 00,"), "{error}");
        let long = [b'H'; 16];
        let error = Frame::parse(&long, 10, 7).expect_err("no frame");
        assert_eq!(
            error,
            Error::Magic {
                at: 7,
                found: *b"HH",
                count: 2
            }
        );
    }

    #[test]
    fn a_status_is_named() {
        assert_eq!(
            Status(100).to_string(),
            "thread pool exhausted (status 100)"
        );
        assert_eq!(Status(99).to_string(), "unknown status (status 99)");
    }
}
