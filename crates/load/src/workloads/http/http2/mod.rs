//! HTTP/2 as a client speaks it that only counts (RFC 9113): frames, heads of responses, and the state of a connection with many streams.
//!
//! Nothing here reads a socket or a clock. Servers are told that the client has no table for header compression, so that the head of a
//! response can be read by itself, and be left unread where nobody waits for it; it pushes nothing, and a window that no usual body
//! fills. What a server may send is bounded: heads of 64 KiB, and replies to its own questions that it does not take.

pub mod frames;
pub mod hpack;
pub(super) mod mux;
pub mod stream;

use std::io;

/// Most streams at the same time on a connection; servers allow 100 to 256 by default.
pub(super) const MOST_STREAMS: usize = 1000;

/// Error codes of RFC 9113, section 7, by their number.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// An error code as RFC 9113 names it; codes that it does not know are one.
pub(super) fn code_name(code: u32) -> &'static str {
    CODES.get(code as usize).copied().unwrap_or("unknown")
}

/// The error codes that are sent.
pub(super) mod code {
    pub(in super::super) const NO_ERROR: u32 = 0;
    pub(in super::super) const PROTOCOL_ERROR: u32 = 1;
    pub(in super::super) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(in super::super) const FRAME_SIZE_ERROR: u32 = 6;
    pub(in super::super) const CANCEL: u32 = 8;
    pub(in super::super) const ENHANCE_YOUR_CALM: u32 = 11;
}

/// The server has broken the rules of a connection, which cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What the server is told.
    pub code: u32,
    /// What it did.
    pub why: &'static str,
}

impl Broken {
    pub(super) fn new(code: u32, why: &'static str) -> Self {
        Self { code, why }
    }
}

/// Why HTTP/2 was not established; the source of an [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failed {
    #[error("the server does not negotiate HTTP/2")]
    NotNegotiated,
    #[error("the server answers with another protocol")]
    Other,
    #[error("the server does not answer")]
    Silent,
    #[error("the server closed the connection")]
    Closed,
    #[error("the server ends the connection")]
    GoAway(u32),
    #[error("{}", .0.why)]
    Broken(Broken),
    #[error("the server allows fewer streams")]
    Streams(u32),
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        Self::other(failed)
    }
}

impl Failed {
    /// The failure of HTTP/2 that an error comes from.
    pub(super) fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Why it failed, and what to do.
    pub(super) fn explain(&self, by_tls: bool, streams: usize) -> (String, String) {
        let http1 = "remove --http2 for HTTP/1.1".to_owned();
        let log = "see the server's log".to_owned();
        match self {
            Self::NotNegotiated => (
                "it does not offer the protocol h2 in the TLS handshake (ALPN)".to_owned(),
                format!("enable HTTP/2 on the server, or {http1}"),
            ),
            Self::Other | Self::Silent | Self::Closed => {
                let why = match self {
                    Self::Other => "it answers with another protocol",
                    Self::Silent => "it accepts the connection and does not answer",
                    _ => "it closed the connection without an answer",
                };
                let what = if by_tls {
                    format!("enable HTTP/2 on the server, or {http1}")
                } else {
                    format!(
                        "use a port that serves HTTP/2 without TLS (h2c, prior knowledge), https:// for one with TLS, or {http1}"
                    )
                };
                (why.to_owned(), what)
            }
            Self::GoAway(code) => (
                format!("it ended the connection at once ({})", code_name(*code)),
                log,
            ),
            Self::Broken(broken) => (format!("it breaks the protocol: {}", broken.why), log),
            Self::Streams(allowed) => (
                format!(
                    "it allows {allowed} streams at the same time on a connection, and --streams asks for {streams}"
                ),
                "use fewer --streams and more --connections, or raise the limit of the server"
                    .to_owned(),
            ),
        }
    }
}
