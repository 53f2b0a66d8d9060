//! The same reply to every request.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::request::{Event, Persistence, Request};
use crate::error::Error;
use crate::tcp::{Handler, Reply, Step, Then};

/// Largest body, bytes. A guess: it is held in memory once.
const LARGEST_BODY: usize = 1 << 30;

/// The reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status, 200 to 599.
    pub status: u16,
    /// Body; none with 204 and 304.
    pub body: Vec<u8>,
    /// Its media type.
    pub content_type: &'static str,
    /// The time from the last byte of a request to its reply: a latency of known size. Requests of one connection are
    /// answered one after the other, each with this delay.
    pub delay: Duration,
}

impl Default for Answer {
    /// 200 with nothing, at once.
    fn default() -> Self {
        Self {
            status: 200,
            body: Vec::new(),
            content_type: "text/plain",
            delay: Duration::ZERO,
        }
    }
}

/// A handler that gives the same reply to every request.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// By what becomes of the connection: see [`Self::head`].
    heads: [Arc<[u8]>; 3],
    body: Arc<[u8]>,
    delay: Option<Duration>,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Fixed {
    /// Refuses a reply that HTTP cannot express.
    pub fn new(answer: Answer) -> Result<Self, Error> {
        let Answer {
            status,
            body,
            content_type,
            delay,
        } = answer;
        let refuse = |what: String| Err(Error::Config(what));
        if !(200..=599).contains(&status) {
            return refuse(format!("status {status} is not final; choose 200 to 599"));
        }
        let bodiless = matches!(status, 204 | 304);
        if bodiless && !body.is_empty() {
            return refuse(format!(
                "a response with status {status} has no body; choose another status, or a body of 0B"
            ));
        }
        if body.len() > LARGEST_BODY {
            return refuse(format!(
                "a body of {} bytes requested; choose {LARGEST_BODY} at most",
                body.len()
            ));
        }
        let head = |connection: &str| {
            let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
            if !bodiless {
                let length = body.len();
                let _ = write!(
                    head,
                    "Content-Type: {content_type}\r\nContent-Length: {length}\r\n"
                );
            }
            if !connection.is_empty() {
                let _ = write!(head, "Connection: {connection}\r\n");
            }
            head.push_str("\r\n");
            Arc::from(head.into_bytes())
        };
        Ok(Self {
            heads: [head(""), head("keep-alive"), head("close")],
            body: body.into(),
            delay: (delay > Duration::ZERO).then_some(delay),
        })
    }

    fn head(&self, persistence: Persistence) -> &[u8] {
        &self.heads[match persistence {
            Persistence::Kept => 0,
            Persistence::KeptAsAsked => 1,
            Persistence::Closed => 2,
        }]
    }
}

impl Handler for Fixed {
    type Session = Request;

    fn handle(&mut self, request: &mut Request, input: &[u8], reply: &mut Reply) -> Step {
        let mut step = Step {
            taken: 0,
            delay: None,
            then: Then::Continue,
        };
        while reply.has_room() {
            let event = match request.read(&input[step.taken..]) {
                Ok((taken, event)) => {
                    step.taken += taken;
                    event
                }
                Err(bad) => {
                    reply.push(&refusal(bad.0));
                    reply.refused();
                    step.then = Then::Refuse;
                    break;
                }
            };
            match event {
                Event::Partial => break,
                Event::Expectation => reply.push(CONTINUE),
                Event::Complete(facts) => {
                    reply.push(self.head(facts.persistence));
                    if !facts.to_head {
                        reply.push_shared(&self.body);
                    }
                    reply.answered();
                    step.delay = self.delay;
                    if facts.persistence == Persistence::Closed {
                        step.then = Then::Close;
                        break;
                    }
                    if step.delay.is_some() {
                        break;
                    }
                }
            }
        }
        step
    }

    fn at_rest(&self, request: &Request) -> bool {
        request.is_between()
    }
}

/// The reply to what is no request.
fn refusal(why: &str) -> Vec<u8> {
    let body = format!("cannot read the request: {why}\n");
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The phrase of common statuses; of others it is empty (RFC 9112, section 4).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_http_cannot_express_is_refused() {
        let refused = |status, body: &[u8]| {
            let answer = Answer {
                status,
                body: body.to_vec(),
                ..Answer::default()
            };
            Fixed::new(answer)
                .map(drop)
                .map_err(|error| error.to_string())
        };
        for status in [0, 100, 199, 600] {
            let error = refused(status, b"").unwrap_err();
            assert!(error.contains("200 to 599"), "{error}");
        }
        assert!(refused(204, b"x").unwrap_err().contains("no body"));
        assert_eq!(refused(204, b""), Ok(()));
        assert_eq!(refused(599, b"x"), Ok(()));
    }

    #[test]
    fn heads_say_what_becomes_of_the_connection() {
        let head = |status, persistence| {
            let fixed = Fixed::new(Answer {
                status,
                ..Answer::default()
            });
            String::from_utf8(fixed.unwrap().head(persistence).to_vec()).unwrap()
        };
        let kept = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(head(200, Persistence::Kept), kept);
        assert!(head(200, Persistence::KeptAsAsked).ends_with("Connection: keep-alive\r\n\r\n"));
        assert!(head(418, Persistence::Closed).starts_with("HTTP/1.1 418 \r\n"));
        assert!(head(418, Persistence::Closed).ends_with("Connection: close\r\n\r\n"));
        assert_eq!(
            head(204, Persistence::Kept),
            "HTTP/1.1 204 No Content\r\n\r\n"
        );
    }
}
