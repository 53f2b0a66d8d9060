//! A server that writes the frames of HTTP/2 by hand, and keeps to the rules or does not; and loads that drive it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rungwise_load::Error;
use rungwise_load::engine::{Completed, Edge, Hooks, Stop};
use rungwise_load::parameters::{Driven as _, Length, Site, Traffic as _};
use rungwise_model::load::Http2;

use crate::http::written;

/// Kinds and flags of frames (RFC 9113, section 6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const WHOLE: u8 = 4;
pub(crate) const PADDED: u8 = 8;
/// `:status: 200` of the static table.
pub(crate) const OK: &[u8] = b"\x88";

/// One connection, as the server has it.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// Requests on this connection.
    pub(crate) number: u64,
    /// Streams that the behaviour has not answered yet.
    pub(crate) held: Vec<u32>,
    /// Bodies that are on their way.
    pub(crate) bodies: BTreeMap<u32, Vec<u8>>,
    pub(crate) seen: Arc<Seen>,
}

/// What a server has seen on all connections.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) asked: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) settings_acknowledged: AtomicU64,
    pub(crate) pings_acknowledged: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) goodbyes: AtomicU64,
    pub(crate) body_bytes: AtomicU64,
    /// Most streams at the same time on a connection.
    pub(crate) at_once: AtomicU64,
    /// A body exceeded the window, or the client broke another rule.
    pub(crate) broken: AtomicBool,
}

/// How a server differs from the simplest.
#[derive(Clone)]
pub(crate) struct Manner {
    /// Its settings.
    pub(crate) settings: Vec<(u16, u32)>,
    /// Grants bodies this much at a time, and no more than its settings at first.
    pub(crate) window: Option<u32>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            settings: vec![(3, 100)],
            window: None,
        }
    }
}

impl Peer {
    pub(crate) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let bytes = frame(kind, flags, stream, payload);
        self.stream.write_all(&bytes).is_ok()
    }

    /// `200` with the body `ok`.
    pub(crate) fn ok(&mut self, stream: u32) -> bool {
        let head = frame(HEADERS, WHOLE, stream, OK);
        let all = [head, frame(DATA, END, stream, b"ok")].concat();
        self.stream.write_all(&all).is_ok()
    }

    /// The server is done with a stream.
    pub(crate) fn close(&mut self, stream: u32) {
        self.held.retain(|held| *held != stream);
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
}

/// What a server does with request `n` of all on this stream; false closes the connection.
pub(crate) type Behaviour = fn(u64, u32, &mut Peer) -> bool;

pub(crate) fn serve(
    behaviour: impl Fn(u64, u32, &mut Peer) -> bool + Clone + Send + 'static,
) -> Server {
    serve_as(Manner::default(), behaviour)
}

pub(crate) fn serve_as(
    manner: Manner,
    behaviour: impl Fn(u64, u32, &mut Peer) -> bool + Clone + Send + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        seen: Arc::default(),
    };
    let seen = server.seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            seen.accepted.fetch_add(1, Ordering::Relaxed);
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            let peer = Peer {
                stream,
                number: 0,
                held: Vec::new(),
                bodies: BTreeMap::new(),
                seen: seen.clone(),
            };
            let (manner, behaviour) = (manner.clone(), behaviour.clone());
            std::thread::spawn(move || answer(peer, &manner, behaviour));
        }
    });
    server
}

/// Reads the preface and frames until the connection ends.
pub(crate) fn answer(
    mut peer: Peer,
    manner: &Manner,
    behaviour: impl Fn(u64, u32, &mut Peer) -> bool,
) -> Option<()> {
    let mut reader = std::io::BufReader::new(peer.stream.try_clone().ok()?);
    let mut preface = [0; 24];
    reader.read_exact(&mut preface).ok()?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let mut settings = Vec::new();
    for (id, value) in &manner.settings {
        settings.extend(id.to_be_bytes());
        settings.extend(value.to_be_bytes());
    }
    peer.frame(SETTINGS, 0, 0, &settings);
    let seen = peer.seen.clone();
    // Windows of single streams, and of the connection.
    let mut windows: BTreeMap<u32, u32> = BTreeMap::new();
    let first = manner.settings.iter().find(|(id, _)| *id == 4);
    let first = first.map_or(65_535, |(_, value)| *value);
    let mut payload = Vec::new();
    loop {
        let mut header = [0; 9];
        reader.read_exact(&mut header).ok()?;
        let [a, b, c, kind, flags, id @ ..] = header;
        let stream = u32::from_be_bytes(id);
        payload.resize(u32::from_be_bytes([0, a, b, c]) as usize, 0);
        reader.read_exact(&mut payload).ok()?;
        let ended = match kind {
            SETTINGS if flags & ACK != 0 => {
                seen.settings_acknowledged.fetch_add(1, Ordering::Relaxed);
                None
            }
            SETTINGS => {
                peer.frame(SETTINGS, ACK, 0, &[]);
                None
            }
            PING => {
                seen.pings_acknowledged.fetch_add(1, Ordering::Relaxed);
                None
            }
            RST_STREAM => {
                seen.resets.fetch_add(1, Ordering::Relaxed);
                peer.close(stream);
                peer.bodies.remove(&stream);
                None
            }
            GOAWAY => {
                seen.goodbyes.fetch_add(1, Ordering::Relaxed);
                None
            }
            HEADERS => {
                peer.held.push(stream);
                let held = peer.held.len() as u64;
                seen.at_once.fetch_max(held, Ordering::Relaxed);
                peer.bodies.insert(stream, Vec::new());
                windows.insert(stream, first);
                (flags & END != 0).then_some(stream)
            }
            DATA => {
                let window = windows.get_mut(&stream)?;
                let length = payload.len() as u32;
                if length > *window {
                    seen.broken.store(true, Ordering::Relaxed);
                }
                *window -= length.min(*window);
                if let Some(grant) = manner.window {
                    if *window == 0 {
                        *window = grant;
                        peer.frame(WINDOW_UPDATE, 0, stream, &grant.to_be_bytes());
                    }
                    let all = if grant > 1 << 20 { 4 * length } else { length };
                    peer.frame(WINDOW_UPDATE, 0, 0, &all.max(1).to_be_bytes());
                }
                seen.body_bytes
                    .fetch_add(u64::from(length), Ordering::Relaxed);
                if let Some(body) = peer.bodies.get_mut(&stream) {
                    body.extend(&payload);
                }
                (flags & END != 0).then_some(stream)
            }
            _ => None,
        };
        if let Some(stream) = ended {
            let number = seen.asked.fetch_add(1, Ordering::Relaxed);
            peer.number += 1;
            if !behaviour(number, stream, &mut peer) {
                return None;
            }
        }
    }
}

pub(crate) fn answers(_: u64, stream: u32, peer: &mut Peer) -> bool {
    peer.close(stream);
    peer.ok(stream)
}

pub(crate) fn drive_with(
    server: &Server,
    words: &[&str],
    stop: Stop,
    hooks: &Hooks<'_>,
) -> Result<Completed, Error> {
    let words = [&["--http2"], words].concat();
    let parameters = written(&format!("http://{}/path", server.address), &words);
    assert_eq!(parameters.contradictions(), []);
    let site = Site {
        target: server.address.into(),
        cpus: &[0, 1],
        device: None,
        read: &|_| Err("there are no files".to_owned()),
    };
    let length = Length {
        warmup: Duration::ZERO,
        stop,
        seed: 1,
    };
    parameters.prepare(&site)?.run(&length, hooks, &mut |_| {})
}

pub(crate) fn drive(server: &Server, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    let hooks = Hooks {
        thread_start: &|_| Ok(()),
        window: &|_: Edge| {},
        interrupted: &AtomicBool::new(false),
        turns: None,
    };
    drive_with(server, words, stop, &hooks)
}

pub(crate) fn count(server: &Server, words: &[&str], number: u64) -> Completed {
    drive(server, words, Stop::Count(number)).unwrap()
}

pub(crate) fn http2(completed: &Completed) -> &Http2 {
    let http = completed.measurement.http.as_ref().unwrap();
    assert_eq!(http.protocol, "HTTP/2");
    http.http2.as_ref().unwrap()
}

pub(crate) fn named(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    counts
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect()
}

impl Seen {
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}
