//! How much memory a JSON document of ours may take when it is read, estimated from its bytes as they pass.
//!
//! The number of bytes is not enough: of six bytes, `"a":1,`, a map makes a node of a hundred. So entries are counted: each key of
//! an object and each element of an array. Of a socket that stands where sockets stand nothing is kept but its own
//! fields, so it has a weight of its own: a host may have 100,000 of them, with 40 keys each, in each of four samples.

use std::io::{self, Write};

/// The way to the sockets from the outermost object; an element of an array is `[`.
const WAY: [&[&[u8]]; 7] = [
    &[b"capture"],
    &[b"moments", b"samples"],
    &[b"["],
    &[b"answers"],
    &[b"tcp", b"udp"],
    &[b"answer"],
    &[b"tcp", b"udp"],
];

/// A socket in memory is that many times what an entry of a map is.
const SOCKET: u64 = 4;

/// Deeper than this a reader of JSON gives up or skips (`serde_json`), and in both cases keeps nothing.
const DEEPEST: usize = 128;

/// One more than the longest name in [`WAY`] has.
const NAME: usize = 8;

/// Weighs what is written to it, and passes it on.
pub(crate) struct Weighed<W> {
    pub(crate) to: W,
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Entries so far.
    pub(crate) entries: u64,
    /// Bytes of the longest string so far.
    pub(crate) longest: u64,
    open: Vec<Open>,
    /// Containers that are open below [`DEEPEST`].
    deeper: usize,
    /// Bytes of the string that is being read.
    string: Option<u64>,
    escaped: bool,
    /// The first bytes of the last string.
    name: Vec<u8>,
}

/// An object or an array that is open.
struct Open {
    is_array: bool,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the way to the sockets, so many steps.
    Towards(usize),
    /// Between sockets.
    Sockets,
    /// Within one.
    Socket,
    Elsewhere,
}

impl<W: Write> Weighed<W> {
    pub(crate) fn new(to: W) -> Self {
        Self {
            to,
            bytes: 0,
            entries: 0,
            longest: 0,
            open: Vec::new(),
            deeper: 0,
            string: None,
            escaped: false,
            name: Vec::with_capacity(NAME),
        }
    }

    fn weigh(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            let Some(length) = self.string else {
                self.token(byte);
                bytes = rest;
                continue;
            };
            // Most of a capture is text: what is in it is passed over.
            let end = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            match (self.escaped, end) {
                (true, _) | (false, Some(0)) => {
                    let ends = !self.escaped && byte == b'"';
                    self.escaped = !self.escaped && byte == b'\\';
                    if ends {
                        self.string = None;
                        self.longest = self.longest.max(length);
                    } else {
                        // An escaped name is none of ours, and so is no way to the sockets.
                        self.name.push(0);
                        self.name.truncate(NAME);
                        self.string = Some(length + 1);
                    }
                    bytes = rest;
                }
                (false, end) => {
                    let text = &bytes[..end.unwrap_or(bytes.len())];
                    let room = NAME - self.name.len();
                    self.name.extend(&text[..room.min(text.len())]);
                    self.string = Some(length + text.len() as u64);
                    self.longest = self.longest.max(length + text.len() as u64);
                    bytes = &bytes[text.len()..];
                }
            }
        }
    }

    /// One byte outside of strings.
    fn token(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = Some(0);
                self.name.clear();
            }
            b'{' | b'[' if self.open.len() >= DEEPEST => self.deeper += 1,
            b'}' | b']' if self.deeper > 0 => self.deeper -= 1,
            b'{' | b'[' => {
                let place = self.place_within();
                let is_array = byte == b'[';
                self.open.push(Open { is_array, place });
            }
            b'}' | b']' => {
                self.open.pop();
            }
            b',' | b':' if self.deeper == 0 => {
                if let Some(open) = self.open.last() {
                    self.entries += match open.place {
                        Place::Socket => 0,
                        Place::Sockets if byte == b',' => SOCKET,
                        _ => u64::from(open.is_array == (byte == b',')),
                    };
                }
            }
            _ => {}
        }
    }

    /// The place of a container that opens now.
    fn place_within(&self) -> Place {
        let Some(outer) = self.open.last() else {
            return Place::Towards(0);
        };
        match outer.place {
            Place::Sockets | Place::Socket => Place::Socket,
            Place::Towards(steps) => {
                let step: &[u8] = if outer.is_array { b"[" } else { &self.name };
                if !WAY[steps].contains(&step) {
                    Place::Elsewhere
                } else if steps + 1 == WAY.len() {
                    Place::Sockets
                } else {
                    Place::Towards(steps + 1)
                }
            }
            Place::Elsewhere => Place::Elsewhere,
        }
    }
}

impl<W: Write> Write for Weighed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.to.write(bytes)?;
        self.bytes += taken as u64;
        self.weigh(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(text: &str, pieces: usize) -> (u64, u64) {
        let mut weighed = Weighed::new(io::sink());
        for piece in text.as_bytes().chunks(pieces) {
            weighed.write_all(piece).unwrap();
        }
        assert_eq!(weighed.bytes, text.len() as u64);
        (weighed.entries, weighed.longest)
    }

    #[test]
    fn keys_and_elements_are_counted_and_text_is_not() {
        for pieces in [1, 2, 3, 1000] {
            assert_eq!(weighed(r#"{"a":[1,2,3],"b":{}}"#, pieces), (4, 1));
            assert_eq!(weighed(r#"{"a,b:\",":",,::\\"}"#, pieces), (1, 7));
        }
    }

    #[test]
    fn a_socket_weighs_the_same_whatever_it_has() {
        let of = |sockets: &str| {
            format!(
                r#"{{"capture":{{"moments":[{{"at_s":0,"answers":{{"tcp":{{"answer":{{"tcp":[{sockets}]}}}}}}}}]}}}}"#
            )
        };
        let socket = r#"{"local":"0.0.0.0:1","info":{"rtt":1,"rto":2},"memory":{}}"#;
        let (none, _) = weighed(&of(""), 7);
        let (one, _) = weighed(&of(socket), 7);
        let (three, _) = weighed(&of(&[socket; 3].join(",")), 7);
        assert_eq!((one - none, three - none), (0, 2 * SOCKET));
        // What is called the same and stands elsewhere is counted.
        let (elsewhere, _) = weighed(&of(socket).replace("answers", "answer"), 7);
        assert_eq!(elsewhere - one, 5);
        let (escaped, _) = weighed(&of(socket).replace("answers", "\\u0061nswers"), 7);
        assert_eq!(escaped - one, 5);
    }

    #[test]
    fn what_is_nested_without_end_is_not_kept() {
        let mut weighed = Weighed::new(io::sink());
        for _ in 0..100_000 {
            weighed.write_all(b"[").unwrap();
        }
        assert_eq!(weighed.open.len(), DEEPEST);
    }
}
