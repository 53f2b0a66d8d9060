//! One stream: a request, and how far its response has come (RFC 9113, section 8.1).

use super::super::response::{Malformed, Response};
use super::hpack::{self, Name, Text, Unreadable};

/// The stream of a request; by default there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Its number; 0 where the request has none.
    pub(in super::super) id: u32,
    /// What the server takes beyond its initial window, bytes.
    pub(super) credit: i64,
    /// Bytes received since its window was last widened.
    pub(super) unacknowledged: u32,
    /// Its request's body waits for a window, or for the kernel.
    pub(in super::super) waits: bool,
    /// The head of its final response is read.
    has_head: bool,
    /// Bytes that the body has, where that is known.
    length: Option<u64>,
    /// Bytes of the body that have come.
    came: u64,
}

impl Stream {
    /// A new one of this number.
    pub fn new(id: u32) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Reads a head, an interim one or trailers into `response`; true if the response is complete.
    #[inline]
    pub fn head(
        &mut self,
        block: &[u8],
        ends: bool,
        to_head: bool,
        response: &mut Response,
    ) -> Result<bool, Malformed> {
        let is_trailer = self.has_head;
        let mut status = None;
        let mut length = None;
        // Pseudo-headers come first (section 8.3).
        let mut others = is_trailer;
        let mut field = |name: Name, text: Text<'_>| {
            match name {
                Name::Status => {
                    let number = text.number().filter(|number| (100..1000).contains(number));
                    if others || status.is_some() || number.is_none() {
                        return Err(Unreadable);
                    }
                    status = number;
                    return Ok(());
                }
                Name::OtherPseudo => return Err(Unreadable),
                Name::ContentLength if !is_trailer => {
                    let number = text.number().ok_or(Unreadable)?;
                    if length.is_some_and(|length| length != number) {
                        return Err(Unreadable);
                    }
                    length = Some(number);
                }
                Name::Date | Name::SetCookie if status.is_some_and(|status| status >= 200) => {
                    if let Some(room) = response.room_for(name == Name::SetCookie) {
                        let before = room.len();
                        text.append(room).ok_or(Unreadable)?;
                        // It would become another line (section 8.2.1).
                        if room[before..].iter().any(|byte| b"\r\n\0".contains(byte)) {
                            return Err(Unreadable);
                        }
                        if name == Name::SetCookie {
                            room.push(b'\n');
                        }
                    }
                }
                _ => {}
            }
            others = true;
            Ok(())
        };
        hpack::decode(block, &mut field).map_err(|Unreadable| Malformed)?;
        if is_trailer {
            // They end the stream.
            return if ends { self.ended() } else { Err(Malformed) };
        }
        let status = status
            .and_then(|status| u16::try_from(status).ok())
            .ok_or(Malformed)?;
        if status < 200 {
            // There is no upgrade (section 8.6), and an interim response precedes another.
            return if ends || status == 101 {
                Err(Malformed)
            } else {
                Ok(false)
            };
        }
        self.has_head = true;
        self.length = if to_head || matches!(status, 204 | 304) {
            Some(0)
        } else {
            length
        };
        response.put_status(status);
        if ends { self.ended() } else { Ok(false) }
    }

    /// Takes so many bytes of the body; true if the response is complete.
    #[inline]
    pub fn data(&mut self, bytes: usize, ends: bool) -> Result<bool, Malformed> {
        self.came += bytes as u64;
        if !self.has_head || self.length.is_some_and(|length| self.came > length) {
            return Err(Malformed);
        }
        if ends { self.ended() } else { Ok(false) }
    }

    /// The server has ended the stream.
    #[inline]
    fn ended(&self) -> Result<bool, Malformed> {
        match self.length {
            Some(length) if length != self.came => Err(Malformed),
            _ => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks with whether they end the stream, and pieces of a body likewise.
    enum Part<'a> {
        Head(&'a [u8], bool),
        Data(usize, bool),
    }

    fn read(to_head: bool, parts: &[Part<'_>]) -> Result<(bool, Response), Malformed> {
        let mut response = Response::new(to_head);
        response.keep_cookies();
        let mut stream = Stream::new(1);
        let mut done = false;
        for part in parts {
            assert!(!done);
            done = match part {
                Part::Head(block, ends) => stream.head(block, *ends, to_head, &mut response)?,
                Part::Data(bytes, ends) => stream.data(*bytes, *ends)?,
            };
        }
        Ok((done, response))
    }

    #[test]
    fn a_response_ends_with_its_stream() {
        use Part::{Data, Head};
        for (to_head, parts, status) in [
            (false, &[Head(b"\x88", true)][..], 200),
            (
                false,
                &[Head(b"\x88", false), Data(5, false), Data(0, true)],
                200,
            ),
            (
                false,
                &[Head(b"\x88\x0f\x0d\x015", false), Data(5, true)],
                200,
            ),
            // Interim responses and trailers.
            (
                false,
                &[Head(b"\x08\x03103", false), Head(b"\x89", true)],
                204,
            ),
            (
                false,
                &[
                    Head(b"\x8d", false),
                    Data(5, false),
                    Head(b"\x00\x01a\x01b", true),
                ],
                404,
            ),
            // The length of what HEAD and 304 do not send.
            (true, &[Head(b"\x88\x0f\x0d\x015", true)], 200),
            (false, &[Head(b"\x8b\x0f\x0d\x015", true)], 304),
        ] {
            let (done, response) = read(to_head, parts).unwrap();
            assert!(done);
            assert_eq!(response.status(), status);
        }
    }

    #[test]
    fn a_response_that_breaks_the_rules_is_malformed() {
        use Part::{Data, Head};
        for (to_head, parts) in [
            // No status, two, a late one, an odd one, a pseudo-header of requests.
            (false, &[Head(b"", true)][..]),
            (false, &[Head(b"\x88\x88", true)]),
            (false, &[Head(b"\x00\x01a\x01b\x88", true)]),
            (false, &[Head(b"\x08\x0220", true)]),
            (false, &[Head(b"\x08\x03abc", true)]),
            (false, &[Head(b"\x88\x84", true)]),
            // An upgrade, and an interim response that is the last.
            (false, &[Head(b"\x08\x03101", false)]),
            (false, &[Head(b"\x08\x03100", true)]),
            // A body before its head, longer or shorter than it says, and of HEAD.
            (false, &[Data(1, false)]),
            (false, &[Head(b"\x88\x0f\x0d\x015", false), Data(6, false)]),
            (false, &[Head(b"\x88\x0f\x0d\x015", false), Data(4, true)]),
            (false, &[Head(b"\x88\x0f\x0d\x015\x0f\x0d\x016", false)]),
            (false, &[Head(b"\x88\x0f\x0d\x01x", false)]),
            (true, &[Head(b"\x88", false), Data(1, false)]),
            // A cookie of two lines.
            (false, &[Head(b"\x88\x0f\x28\x05a=b\nc", true)]),
            // Trailers that go on, and such with a status.
            (
                false,
                &[Head(b"\x88", false), Head(b"\x00\x01a\x01b", false)],
            ),
            (false, &[Head(b"\x88", false), Head(b"\x88", true)]),
        ] {
            assert!(read(to_head, parts).is_err());
        }
    }

    #[test]
    fn cookies_and_date_are_kept() {
        let block = b"\x88\x61\x03now\x77\x03a=b\x00\x0aset-cookie\x83\x1c\x64\x5f";
        let (_, response) = read(false, &[Part::Head(block, true)]).unwrap();
        assert_eq!(response.date(), b"now");
        let cookies: Vec<_> = response.cookies().collect();
        assert_eq!(cookies.len(), 2);
        assert_eq!(cookies[0], b"a=b");
    }
}
