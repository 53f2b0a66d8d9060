//! Events of a connection: heartbeats, and a provider that announces its shutdown.
//!
//! Source: `HeartbeatHandler`, `ExchangeCodec` and `Request` of Dubbo: an event's body is null for a heartbeat, or a string. A peer
//! closes a connection on which nothing arrived for three heartbeat intervals (60 s each unless set).

use crate::hessian::{Limits, Reader, Value};
use crate::{Error, Frame, HEADER_LEN, HESSIAN2, Header, Message, Status};

/// Bytes of a heartbeat and of its reply.
pub const HEARTBEAT_LEN: usize = HEADER_LEN + 1;
const NULL: u8 = b'N';

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The connection is alive; a two-way one wants [`heartbeat_reply`].
    Heartbeat,
    /// `R`: the provider shuts down and takes no further calls on this connection.
    ReadOnly,
    /// `W`: the provider takes calls again (3.x).
    Writable,
    /// Anything else.
    Other(Value),
}

/// The event in a frame's body.
pub fn event(frame: &Frame<'_>) -> Result<Event, Error> {
    // Peers answer heartbeats in any serialization by null of hessian2, or by no body at all.
    if frame.body.is_empty() || frame.body == [NULL] {
        return Ok(Event::Heartbeat);
    }
    if frame.header.serialization != HESSIAN2 {
        return Err(Error::Serialization(frame.header.serialization));
    }
    let mut reader = Reader::new(frame.body, Limits::default());
    let value = reader.value()?;
    reader.end()?;
    Ok(match value {
        Value::Null => Event::Heartbeat,
        Value::String(text) if text == "R" => Event::ReadOnly,
        Value::String(text) if text == "W" => Event::Writable,
        other => Event::Other(other),
    })
}

/// A heartbeat that wants a reply.
pub fn heartbeat(id: u64) -> [u8; HEARTBEAT_LEN] {
    null(Message::Request { two_way: true }, HESSIAN2, id)
}

/// The reply to a heartbeat or another two-way event, whose header is given.
pub fn heartbeat_reply(to: &Header) -> [u8; HEARTBEAT_LEN] {
    let message = Message::Reply { status: Status::OK };
    null(message, to.serialization, to.id)
}

fn null(message: Message, serialization: u8, id: u64) -> [u8; HEARTBEAT_LEN] {
    let header = Header {
        message,
        is_event: true,
        serialization,
        id,
        body_len: 1,
    };
    let mut bytes = [NULL; HEARTBEAT_LEN];
    bytes[..HEADER_LEN].copy_from_slice(&header.encode());
    bytes
}
