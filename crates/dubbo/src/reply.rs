//! Replies: what a call returned, or why it did not.
//!
//! Source: `DubboCodec.encodeResponseData` and `DecodeableRpcResult` of Dubbo. The body of status 20 is a flag as an int, then the value or
//! the exception, then attachments if the flag says so. The body of every other status is a string.

use crate::error::{Error, Problem};
use crate::frame::{Frame, HESSIAN2, Message, Status};
use crate::hessian::{Limits, Reader, Skipper, Value, Writer};
use crate::request::attachment;

const EXCEPTION: i32 = 0;
const VALUE: i32 = 1;
const NULL: i32 = 2;
/// Added to a flag: attachments follow. Only for callers of protocol version 2.0.2 and later.
const WITH_ATTACHMENTS: i32 = 3;

/// What a reply says in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The method returned a value.
    Value,
    /// The method returned null, or returns nothing.
    Null,
    /// The method threw an exception.
    Exception,
    /// The call did not reach the method, or its result did not arrive.
    Failed(Status),
}

/// Judges the reply in a frame by its bytes alone: no value is built and nothing is allocated.
///
/// A reply of status 20 is checked to its last byte; of another status, the body is not looked at (see [`Reply::decode`] for its text).
pub fn judge(frame: &Frame<'_>, skipper: &mut Skipper) -> Result<Answer, Error> {
    if let Some(failed) = failed(frame)? {
        return Ok(Answer::Failed(failed));
    }
    let mut skip = skipper.body(frame.body);
    let flag = skip.int("the flag of a reply")?;
    let (answer, has_attachments) = match flag {
        EXCEPTION | 3 => (Answer::Exception, flag >= WITH_ATTACHMENTS),
        VALUE | 4 => (Answer::Value, flag >= WITH_ATTACHMENTS),
        NULL | 5 => (Answer::Null, flag >= WITH_ATTACHMENTS),
        _ => return Err(unknown(flag)),
    };
    if answer != Answer::Null {
        skip.skip_value()?;
    }
    if has_attachments {
        skip.skip_attachments()?;
    }
    skip.end()?;
    Ok(answer)
}

/// The status of a reply without a result.
fn failed(frame: &Frame<'_>) -> Result<Option<Status>, Error> {
    let header = &frame.header;
    let Message::Reply { status } = header.message else {
        return Err(not_a_reply("a reply, not a request", frame));
    };
    if header.is_event {
        return Err(not_a_reply("a reply to a call, not to an event", frame));
    }
    if status != Status::OK {
        return Ok(Some(status));
    }
    if header.serialization != HESSIAN2 {
        return Err(Error::Serialization(header.serialization));
    }
    Ok(None)
}

fn not_a_reply(expected: &'static str, frame: &Frame<'_>) -> Error {
    let found = frame.body.first().copied().unwrap_or_default();
    Error::Body {
        at: 0,
        problem: Problem::Expected { expected, found },
    }
}

fn unknown(flag: i32) -> Error {
    Error::Body {
        at: 0,
        problem: Problem::Flag(flag),
    }
}

/// A reply with its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the call gave.
    pub outcome: Outcome,
    /// Names and values, of callers since protocol version 2.0.2.
    pub attachments: Vec<(Value, Value)>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The method returned this value.
    Value(Value),
    /// The method returned null, or returns nothing.
    Null,
    /// The method threw this exception: an object in general, see [`exception_text`].
    Exception(Value),
    /// The call did not reach the method, or its result did not arrive.
    Failed {
        /// Why, in short.
        status: Status,
        /// The peer's text: a line, or a stack trace of Java. Empty where it is not a string of hessian2.
        text: String,
    },
}

impl Reply {
    /// The reply in a frame.
    pub fn decode(frame: &Frame<'_>, limits: Limits) -> Result<Self, Error> {
        let mut reader = Reader::new(frame.body, limits);
        if let Some(status) = failed(frame)? {
            let text = match frame.header.serialization {
                HESSIAN2 => reader.string("an error text").unwrap_or_default(),
                _ => String::new(),
            };
            return Ok(Self {
                outcome: Outcome::Failed { status, text },
                attachments: Vec::new(),
            });
        }
        let flag = reader.int("the flag of a reply")?;
        let outcome = match flag {
            EXCEPTION | 3 => Outcome::Exception(reader.value()?),
            VALUE | 4 => Outcome::Value(reader.value()?),
            NULL | 5 => Outcome::Null,
            _ => return Err(unknown(flag)),
        };
        let attachments = if flag >= WITH_ATTACHMENTS {
            reader.attachments()?
        } else {
            Vec::new()
        };
        reader.end()?;
        Ok(Self {
            outcome,
            attachments,
        })
    }

    /// The text of an attachment.
    pub fn attachment(&self, name: &str) -> Option<&str> {
        attachment(&self.attachments, name)
    }

    /// Status and body of a frame with this reply. Attachments are written if there are any.
    pub fn encode(&self) -> (Status, Vec<u8>) {
        let mut writer = Writer::default();
        let (flag, value) = match &self.outcome {
            Outcome::Failed { status, text } => {
                writer.string(text);
                return (*status, writer.into_bytes());
            }
            Outcome::Exception(value) => (EXCEPTION, Some(value)),
            Outcome::Value(value) => (VALUE, Some(value)),
            Outcome::Null => (NULL, None),
        };
        let has_attachments = !self.attachments.is_empty();
        writer.int(if has_attachments {
            flag + WITH_ATTACHMENTS
        } else {
            flag
        });
        if let Some(value) = value {
            writer.value(value);
        }
        if has_attachments {
            writer.map(None);
            for (name, value) in &self.attachments {
                writer.value(name).value(value);
            }
            writer.map_end();
        }
        (Status::OK, writer.into_bytes())
    }
}

/// An exception in words: its class and its message, `java.lang.IllegalStateException: no stock`.
///
/// Class and message of an object are its class and its field `detailMessage`; of a map, its type and the entry of that name. Another
/// value is described by its kind.
pub fn exception_text(exception: &Value) -> String {
    let (class, message) = match exception {
        Value::Object(object) => (object.class.name.as_str(), object.get("detailMessage")),
        Value::Map(map) => {
            let named = |(key, _): &&(Value, Value)| key.as_str() == Some("detailMessage");
            let message = map.entries.iter().find(named).map(|(_, value)| value);
            (map.type_name.as_deref().unwrap_or("an exception"), message)
        }
        Value::String(text) => return text.clone(),
        _ => return "an exception that is no object".to_owned(),
    };
    match message.and_then(Value::as_str) {
        Some(message) => format!("{class}: {message}"),
        None => class.to_owned(),
    }
}
