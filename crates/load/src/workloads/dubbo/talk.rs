//! The talk on one connection: calls with the engine's tickets as ids, replies that are judged by their bytes, heartbeats.
//!
//! A reply that is wrong within its frame costs its call alone; where a frame begins nowhere, the connection ends. Nothing is allocated for a
//! call: an error is decoded for its text when its status or class is seen for the first time.

use std::sync::Arc;

use rungwise_dubbo::hessian::Skipper;
use rungwise_dubbo::{
    Answer, Error, Event, Frame, HEARTBEAT_LEN, Limits, Message, Outcome, Reply as Content, Status,
    event, exception_text, heartbeat_reply, judge,
};

use super::Shape;
use crate::stream::{Around, Conversation, Cut, Reply, Verdict};

/// Kinds of answers.
pub(super) const ANSWERS: [&str; 2] = ["null", "value"];
const NULL: usize = 0;
const VALUE: usize = 1;

/// What a provider says without being asked.
pub(super) const EVENTS: [&str; 4] = ["heartbeats", "other_events", "read_only", "writable"];
const HEARTBEATS: usize = 0;
const OTHER: usize = 1;
const READ_ONLY: usize = 2;
const WRITABLE: usize = 3;

/// Bytes that wait to be sent, above which heartbeats are no longer answered: a provider that sends them without end and reads nothing
/// would fill the memory.
const MOST_WAITING: usize = 64 << 20;
/// Most classes of exceptions that are known by their bytes; as many as are counted apart.
const MOST_KNOWN: usize = 64;

/// The talk on one connection.
#[derive(Debug)]
pub(in crate::workloads) struct Talk {
    shape: Arc<Shape>,
    skipper: Skipper,
    /// Errors that were seen, with their classes.
    causes: Vec<(Cause, usize)>,
    /// Classes of exceptions as they are written in replies.
    exceptions: Vec<(Box<[u8]>, usize)>,
}

/// Why a reply is no answer, apart from exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Status(Status),
    /// Its body is in another serialization than hessian2.
    Serialization(u8),
    /// Its body is no hessian2.
    Body,
}

impl Talk {
    pub(super) fn new(shape: Arc<Shape>, skipper: Skipper) -> Self {
        Self {
            shape,
            skipper,
            causes: Vec::new(),
            exceptions: Vec::new(),
        }
    }

    #[inline]
    fn verdict(&mut self, frame: &Frame<'_>, around: &mut Around<'_>) -> Verdict {
        match judge(frame, &mut self.skipper) {
            Ok(Answer::Value) => Verdict::Answer(Some(VALUE)),
            Ok(Answer::Null) => Verdict::Answer(Some(NULL)),
            Ok(Answer::Exception) => Verdict::Error(self.exception(frame, around)),
            Ok(Answer::Failed(status)) => {
                Verdict::Error(self.class_of(Cause::Status(status), frame, around))
            }
            Err(Error::Serialization(id)) => {
                Verdict::Error(self.class_of(Cause::Serialization(id), frame, around))
            }
            Err(_) => Verdict::Error(self.class_of(Cause::Body, frame, around)),
        }
    }

    fn class_of(&mut self, cause: Cause, frame: &Frame<'_>, around: &mut Around<'_>) -> usize {
        if let Some((_, class)) = self.causes.iter().find(|(known, _)| *known == cause) {
            return *class;
        }
        let content = Content::decode(frame, Limits::default());
        let (name, text) = match (cause, content.map(|content| content.outcome)) {
            (Cause::Status(status), Ok(Outcome::Failed { text, .. })) => {
                let name = match status.meaning() {
                    "unknown status" => format!("status {}", status.0),
                    meaning => meaning.to_owned(),
                };
                let line = first_line(&text);
                let quote = if line.is_empty() {
                    status.to_string()
                } else {
                    line.to_owned()
                };
                (name, quote)
            }
            (Cause::Serialization(_), Err(error)) => {
                ("serialization".to_owned(), error.to_string())
            }
            (_, Err(error)) => ("malformed body".to_owned(), error.to_string()),
            (_, Ok(_)) => (
                "malformed body".to_owned(),
                "a body that is too deep or too long".to_owned(),
            ),
        };
        let class = around.classes.of(name.as_bytes(), text.as_bytes());
        self.causes.push((cause, class));
        class
    }

    /// The class of an exception, by its Java class.
    fn exception(&mut self, frame: &Frame<'_>, around: &mut Around<'_>) -> usize {
        let written = written_class(frame.body);
        let known = written.and_then(|written| {
            let mut all = self.exceptions.iter();
            all.find(|(known, _)| **known == *written)
        });
        if let Some((_, class)) = known {
            return *class;
        }
        let text = match Content::decode(frame, Limits::default()) {
            Ok(Content {
                outcome: Outcome::Exception(exception),
                ..
            }) => exception_text(&exception),
            _ => "an exception that cannot be read".to_owned(),
        };
        let line = first_line(&text);
        let name = line.split(':').next().unwrap_or_default();
        let name = if name.is_empty() || name.contains(' ') {
            "exception"
        } else {
            name
        };
        let class = around.classes.of(name.as_bytes(), line.as_bytes());
        if let Some(written) = written.filter(|_| self.exceptions.len() < MOST_KNOWN) {
            self.exceptions.push((written.into(), class));
        }
        class
    }
}

impl Conversation for Talk {
    fn begin(&mut self, _: &mut Vec<u8>) -> usize {
        0
    }

    #[inline]
    fn write(&mut self, ticket: u64, to: &mut Vec<u8>) -> usize {
        self.shape.request.append(ticket, to);
        0
    }

    #[inline]
    fn read(&mut self, bytes: &[u8], around: &mut Around<'_>) -> Result<Cut, &'static str> {
        let frame = match Frame::parse(bytes, self.shape.payload, 0) {
            Ok(Some(frame)) => frame,
            Ok(None) => {
                return Ok(Cut {
                    used: 0,
                    reply: None,
                });
            }
            Err(error) => return Err(broken(&error, bytes)),
        };
        let used = frame.wire_len();
        if frame.header.is_event {
            heed(&frame, around);
            return Ok(Cut { used, reply: None });
        }
        if let Message::Request { .. } = frame.header.message {
            return Err("a call in place of a reply");
        }
        let reply = Reply {
            of: Some(frame.header.id),
            verdict: self.verdict(&frame, around),
        };
        Ok(Cut {
            used,
            reply: Some(reply),
        })
    }

    fn is_told_more(&self) -> bool {
        true
    }
}

/// Takes what the provider says without being asked, and answers it.
#[cold]
fn heed(frame: &Frame<'_>, around: &mut Around<'_>) {
    let said = match (frame.header.message, event(frame)) {
        (Message::Request { .. }, Ok(Event::Heartbeat)) => HEARTBEATS,
        (Message::Request { .. }, Ok(Event::ReadOnly)) => READ_ONLY,
        (Message::Request { .. }, Ok(Event::Writable)) => WRITABLE,
        // Also an answer to a heartbeat, since none was sent.
        _ => OTHER,
    };
    around.events[said] += 1;
    let is_asked = frame.header.message == Message::Request { two_way: true };
    if is_asked && around.out.len() + HEARTBEAT_LEN <= MOST_WAITING {
        let answer = heartbeat_reply(&frame.header);
        around.out.extend_from_slice(&answer);
    }
}

/// Why a connection cannot be read on.
#[cold]
fn broken(error: &Error, bytes: &[u8]) -> &'static str {
    match error {
        Error::TooLong { .. } => "a reply whose body is longer than --payload",
        _ if bytes.starts_with(b"H") => {
            "HTTP in place of a Dubbo frame: the port speaks another protocol"
        }
        // A settings frame of HTTP/2: its length, then its type.
        _ if matches!(bytes, [0, 0, _, 4, ..]) => {
            "HTTP/2 in place of a Dubbo frame: the port speaks Triple or gRPC"
        }
        _ if contains(bytes, b"Unsupported command") || contains(bytes, b"dubbo>") => {
            "text of the provider's telnet console: it took a call for a command, as after one above its payload limit"
        }
        _ => "other bytes in place of a Dubbo frame",
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}

/// A stack trace begins with what matters.
fn first_line(text: &str) -> &str {
    text.trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end()
}

/// The class name at the beginning of an exception in a reply's body, as far as it is an object of hessian2 with its class before it:
/// the flag, `C`, and a short string.
fn written_class(body: &[u8]) -> Option<&[u8]> {
    let [_, b'C', rest @ ..] = body else {
        return None;
    };
    let (length, rest) = match rest {
        [length @ ..=0x1f, rest @ ..] => (usize::from(*length), rest),
        [high @ 0x30..=0x33, low, rest @ ..] => {
            (usize::from(high - 0x30) << 8 | usize::from(*low), rest)
        }
        _ => return None,
    };
    // Lengths are in UTF-16 units.
    rest.get(..length).filter(|name| name.is_ascii())
}

#[cfg(test)]
mod tests {
    use rungwise_dubbo::hessian::{Object, Value};

    use super::*;

    #[test]
    fn an_exception_is_known_by_its_class_whatever_its_message() {
        let body = |class: &str, message: &str| {
            let field = ("detailMessage".to_owned(), Value::string(message));
            let reply = Content {
                outcome: Outcome::Exception(Value::Object(Object::new(class, [field]))),
                attachments: Vec::new(),
            };
            reply.encode().1
        };
        for class in [
            "a.B",
            "java.lang.IllegalStateException",
            "com.acme.orders.inventory.service.OutOfStockException",
        ] {
            for message in ["", "no stock"] {
                assert_eq!(written_class(&body(class, message)), Some(class.as_bytes()));
            }
        }
        assert_eq!(written_class(&body("com.acme.Fehlerhäft", "")), None);
        for cut in [&b""[..], b"\x90", b"\x90C", b"\x90C\x05ab", b"\x90C\x30"] {
            assert_eq!(written_class(cut), None);
        }
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let why = |bytes: &[u8]| broken(&Frame::parse(bytes, 10, 0).expect_err("no frame"), bytes);
        assert!(why(b"HTTP/1.1 400 Bad Request\r\n").contains("HTTP in place"));
        assert!(why(b"\0\0\x12\x04\0\0\0\0\0\0\0\0\0\0\0\0").contains("Triple"));
        assert!(why(b"Unsupported command: aa\r\ndubbo>").contains("telnet"));
        assert!(why(b"\xda\xbc").contains("other bytes"));
        let long = [&[0xda, 0xbb, 2, 20][..], &[0; 8], &[0, 0, 0, 11]].concat();
        assert!(why(&long).contains("--payload"));
    }

    #[test]
    fn the_first_line_of_a_stack_trace_is_quoted() {
        assert_eq!(first_line("a.B: c\r\n\tat d\n"), "a.B: c");
        assert_eq!(first_line("\n x"), "x");
        assert_eq!(first_line(""), "");
    }
}
