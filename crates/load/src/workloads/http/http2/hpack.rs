//! Header compression of HTTP/2 (RFC 7541) without a dynamic table: what a response's head says as far as it matters, and the strings of
//! requests.
//!
//! The client announces a table of no bytes. Then every field is in the static table or literal, and a head depends on none before it. Values
//! that nobody asks for are passed over, unread: their Huffman code is not verified.

use std::borrow::Cow;

/// A head that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Fields of a response that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `:status`.
    Status,
    /// Another pseudo-header, which no response may have.
    OtherPseudo,
    /// `content-length`.
    ContentLength,
    /// `date`.
    Date,
    /// `set-cookie`.
    SetCookie,
    /// Any other.
    Other,
}

/// A value as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// As it is.
    Plain(&'a [u8]),
    /// In Huffman code.
    Coded(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Its bytes; `None` if they are no Huffman code.
    pub fn read(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Plain(bytes) => Some(Cow::Borrowed(bytes)),
            Self::Coded(bytes) => {
                let mut room = Vec::new();
                uncode(bytes, &mut |byte| room.push(byte))?;
                Some(Cow::Owned(room))
            }
        }
    }

    /// Appends its bytes.
    pub(crate) fn append(self, to: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Plain(bytes) => to.extend_from_slice(bytes),
            Self::Coded(bytes) => uncode(bytes, &mut |byte| to.push(byte))?,
        }
        Some(())
    }

    /// It as a decimal number.
    #[inline]
    pub(crate) fn number(self) -> Option<u64> {
        let mut value = Some(0_u64);
        let mut digits = 0;
        let mut take = |byte: u8| {
            digits += 1;
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit?));
        };
        match self {
            Self::Plain(bytes) => bytes.iter().for_each(|byte| take(*byte)),
            Self::Coded(bytes) => uncode(bytes, &mut take)?,
        }
        value.filter(|_| digits > 0)
    }
}

/// Reads a block of fields, in their order.
#[inline]
pub fn decode<'b>(
    block: &'b [u8],
    field: &mut impl FnMut(Name, Text<'b>) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut rest = block;
    let mut begun = false;
    while let Some(first) = rest.first().copied() {
        let (index, with_value) = match first {
            0x80.. => (integer(&mut rest, 7)?, false),
            // Without a table an entry that is added is gone at once (section 4.4).
            0x40..0x80 => (integer(&mut rest, 6)?, true),
            0x20..0x40 => {
                // The only size that was allowed, and only before the first field (section 4.2).
                if begun || integer(&mut rest, 5)? > 0 {
                    return Err(Unreadable);
                }
                continue;
            }
            _ => (integer(&mut rest, 4)?, true),
        };
        begun = true;
        match (index, with_value) {
            (0, false) => return Err(Unreadable),
            (index, false) => {
                let (name, value) = known(index)?;
                field(name, Text::Plain(value))?;
            }
            (0, true) => {
                let name = named(string(&mut rest)?);
                field(name, string(&mut rest)?)?;
            }
            (index, true) => {
                let (name, _) = known(index)?;
                field(name, string(&mut rest)?)?;
            }
        }
    }
    Ok(())
}

/// Entries of the static table (appendix A).
#[inline]
fn known(index: u32) -> Result<(Name, &'static [u8]), Unreadable> {
    Ok(match index {
        8 => (Name::Status, b"200"),
        9 => (Name::Status, b"204"),
        10 => (Name::Status, b"206"),
        11 => (Name::Status, b"304"),
        12 => (Name::Status, b"400"),
        13 => (Name::Status, b"404"),
        14 => (Name::Status, b"500"),
        1..=7 => (Name::OtherPseudo, b""),
        28 => (Name::ContentLength, b""),
        33 => (Name::Date, b""),
        55 => (Name::SetCookie, b""),
        15..=61 => (Name::Other, b""),
        _ => return Err(Unreadable),
    })
}

/// A name that was written out.
fn named(text: Text<'_>) -> Name {
    let mut bytes = [0; LONGEST_NAME];
    let name = match text {
        Text::Plain(bytes) => bytes,
        Text::Coded(code) => {
            let mut length = 0;
            let read = uncode(code, &mut |byte| {
                if let Some(place) = bytes.get_mut(length) {
                    *place = byte;
                }
                length += 1;
            });
            match (read, bytes.get(..length)) {
                (Some(()), Some(name)) => name,
                _ => return Name::Other,
            }
        }
    };
    match name {
        b":status" => Name::Status,
        [b':', ..] => Name::OtherPseudo,
        b"content-length" => Name::ContentLength,
        b"date" => Name::Date,
        b"set-cookie" => Name::SetCookie,
        _ => Name::Other,
    }
}

/// No name that matters is longer.
const LONGEST_NAME: usize = 32;

/// An integer with a prefix of so many bits (section 5.1); more than 32 bits are refused.
#[inline]
fn integer(bytes: &mut &[u8], prefix: u32) -> Result<u32, Unreadable> {
    let (first, mut rest) = bytes.split_first().ok_or(Unreadable)?;
    let most = (1_u32 << prefix) - 1;
    let mut value = u32::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (next, after) = rest.split_first().ok_or(Unreadable)?;
            rest = after;
            let part = u64::from(next & 0x7f) << shift;
            let part = u32::try_from(part).map_err(|_| Unreadable)?;
            value = value.checked_add(part).ok_or(Unreadable)?;
            if next & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 28 {
                return Err(Unreadable);
            }
        }
    }
    *bytes = rest;
    Ok(value)
}

/// A string (section 5.2).
#[inline]
fn string<'b>(bytes: &mut &'b [u8]) -> Result<Text<'b>, Unreadable> {
    let is_coded = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(bytes, 7)? as usize;
    let (text, rest) = bytes.split_at_checked(length).ok_or(Unreadable)?;
    *bytes = rest;
    Ok(if is_coded {
        Text::Coded(text)
    } else {
        Text::Plain(text)
    })
}

/// Appends an integer with a prefix of so many bits, below the bits of `first`.
fn put_integer(first: u8, prefix: u32, value: usize, to: &mut Vec<u8>) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        to.push(first | value as u8);
        return;
    }
    to.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// Puts the length of what was appended to `to` since it had `before` bytes in front of that, as the string that it then is.
pub(crate) fn close_string(to: &mut Vec<u8>, before: usize) {
    let length = to.len() - before;
    let mut head = [0; 8];
    let mut room = Vec::new();
    // Nearly every string is shorter than that, and needs no memory.
    let head = if length < 0x7f {
        head[0] = length as u8;
        &head[..1]
    } else {
        put_integer(0, 7, length, &mut room);
        &room
    };
    to.splice(before..before, head.iter().copied());
}

/// Names of requests in the static table (appendix A), and their index.
const INDEXED: [(&str, usize); 24] = [
    (":authority", 1),
    (":method", 2),
    (":path", 4),
    (":scheme", 6),
    ("accept-charset", 15),
    ("accept-encoding", 16),
    ("accept-language", 17),
    ("accept", 19),
    ("authorization", 23),
    ("cache-control", 24),
    ("content-encoding", 26),
    ("content-language", 27),
    ("content-length", 28),
    ("content-type", 31),
    ("cookie", 32),
    ("expect", 35),
    ("from", 37),
    ("if-match", 39),
    ("if-modified-since", 40),
    ("if-none-match", 41),
    ("range", 50),
    ("referer", 51),
    ("user-agent", 58),
    ("via", 60),
];

/// Appends the name of a field whose value follows as a string: literal, and never added to the table of the server.
pub(crate) fn put_name(name: &str, to: &mut Vec<u8>) {
    let name = name.to_ascii_lowercase();
    if let Some((_, index)) = INDEXED.iter().find(|(known, _)| *known == name) {
        put_integer(0, 4, *index, to);
    } else {
        to.push(0);
        put_integer(0, 7, name.len(), to);
        to.extend_from_slice(name.as_bytes());
    }
}

/// The first value of a block that [`put_name`] began, where that is in the static table.
pub(crate) fn first_value(block: &[u8]) -> &[u8] {
    let mut rest = block;
    let value = integer(&mut rest, 4).and_then(|_| string(&mut rest));
    match value {
        Ok(Text::Plain(value)) => value,
        _ => &[],
    }
}

/// Bits of the code of each byte, and of the end of a string (appendix B). The code is canonical: codes of the same length follow one
/// another in the order of their bytes, after all shorter ones.
#[rustfmt::skip]
const BITS: [u8; 257] = [
    13,23,28,28,28,28,28,28,28,24,30,28,28,30,28,28,
    28,28,28,28,28,28,30,28,28,28,28,28,28,28,28,28,
    6,10,10,12,13,6,8,11,10,10,8,11,8,6,6,6,
    5,5,5,6,6,6,6,6,6,6,7,8,15,6,12,10,
    13,6,7,7,7,7,7,7,7,7,7,7,7,7,7,7,
    7,7,7,7,7,7,7,7,8,7,8,13,19,13,14,6,
    15,5,6,5,6,5,6,6,6,5,7,7,6,6,6,5,
    6,7,6,5,5,6,7,7,7,7,7,15,11,14,13,28,
    20,22,20,20,22,22,22,23,22,23,23,23,23,23,24,23,
    24,24,22,23,24,23,23,23,23,21,22,23,22,23,23,24,
    22,21,20,22,22,23,23,21,23,22,22,24,21,22,23,23,
    21,21,22,21,23,22,23,23,20,22,22,22,23,22,22,23,
    26,26,20,19,22,23,22,25,26,26,26,27,27,26,24,25,
    19,21,26,27,27,26,27,24,21,21,26,26,28,27,27,27,
    20,24,20,21,22,21,21,23,22,22,25,25,24,24,26,23,
    26,27,26,26,27,27,27,27,27,28,27,27,27,27,27,26,
    30,
];
/// The longest code, bits.
const MOST_BITS: usize = 30;

/// The canonical code: by length the first code and where its bytes begin, and the bytes in the order of their codes.
struct Canon {
    first: [u32; MOST_BITS + 2],
    begins: [usize; MOST_BITS + 2],
    symbols: [u16; 257],
}

static CANON: Canon = canon();

const fn canon() -> Canon {
    let mut canon = Canon {
        first: [0; MOST_BITS + 2],
        begins: [0; MOST_BITS + 2],
        symbols: [0; 257],
    };
    let (mut code, mut at, mut bits) = (0, 0, 1);
    while bits <= MOST_BITS {
        code <<= 1;
        canon.first[bits] = code;
        canon.begins[bits] = at;
        let mut symbol = 0;
        while symbol < BITS.len() {
            if BITS[symbol] as usize == bits {
                canon.symbols[at] = symbol as u16;
                at += 1;
                code += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    canon.begins[MOST_BITS + 1] = at;
    canon
}

/// Gives each byte of a Huffman code to `take`; `None` if it is none.
fn uncode(code: &[u8], take: &mut impl FnMut(u8)) -> Option<()> {
    let (mut word, mut bits) = (0_u32, 0);
    for byte in code {
        for shift in (0..8).rev() {
            word = word << 1 | u32::from(byte >> shift & 1);
            bits += 1;
            let offset = word.checked_sub(CANON.first[bits]).map(|o| o as usize);
            let number = CANON.begins[bits + 1] - CANON.begins[bits];
            if let Some(offset) = offset.filter(|offset| *offset < number) {
                // The end of a string must not be in it.
                take(u8::try_from(CANON.symbols[CANON.begins[bits] + offset]).ok()?);
                (word, bits) = (0, 0);
            } else if bits == MOST_BITS {
                return None;
            }
        }
    }
    // The rest is the beginning of the end of a string, shorter than a byte.
    (bits < 8 && word == (1 << bits) - 1).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Result<Vec<(Name, Vec<u8>)>, Unreadable> {
        let mut all = Vec::new();
        decode(block, &mut |name, text| {
            all.push((name, text.read().ok_or(Unreadable)?.into_owned()));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn the_responses_of_the_rfc_are_read() {
        // RFC 7541, appendices C.5.1 and C.6.1: plain, and in Huffman code.
        let plain = b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com";
        let coded = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\
            \xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3";
        for block in [&plain[..], coded] {
            let expected = [
                (Name::Status, &b"302"[..]),
                (Name::Other, b"private"),
                (Name::Date, b"Mon, 21 Oct 2013 20:13:21 GMT"),
                (Name::Other, b"https://www.example.com"),
            ];
            let all = read(block).unwrap();
            let all: Vec<_> = all.iter().map(|(name, text)| (*name, &text[..])).collect();
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn a_status_is_read_however_it_is_written() {
        for (block, status) in [
            (&b"\x88"[..], 200),
            (b"\x8e", 500),
            (b"\x20\x8d", 404),
            (b"\x08\x03410", 410),
            (b"\x48\x03410", 410),
            (b"\x18\x03410", 410),
            (b"\x00\x07:status\x03503", 503),
            (b"\x00\x85\xb8\x84\x8d\x36\xa3\x03503", 503),
        ] {
            let mut found = None;
            let read = decode(block, &mut |name, text| {
                if name == Name::Status {
                    found = text.number();
                }
                Ok(())
            });
            assert_eq!((read, found), (Ok(()), Some(status)), "{block:?}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for block in [
            // Index 0, one beyond the static table, one that never ends, one too great.
            &b"\x80"[..],
            b"\xbe",
            b"\xff",
            b"\xff\x80\x80\x80\x80\x80\x01",
            b"\xff\xff\xff\xff\xff\xff",
            // A table of some size, and one that changes after a field.
            b"\x3f\xe1\x1f",
            b"\x88\x20",
            // Strings that end early.
            b"\x48",
            b"\x48\x05302",
            b"\x00\x03abc",
        ] {
            assert!(read(block).is_err(), "{block:?}");
        }
    }

    #[test]
    fn huffman_code_that_is_none_is_refused() {
        for code in [
            &b"\xff\xff\xff\xff"[..],
            b"\x00",
            b"\x1f\xff",
            b"\xff\xff\xff\xfc",
        ] {
            assert_eq!(Text::Coded(code).read(), None, "{code:?}");
        }
        assert_eq!(Text::Coded(b"").read().unwrap(), Cow::Borrowed(b""));
    }

    #[test]
    fn all_codes_together_leave_no_gap() {
        let sum: u64 = BITS
            .iter()
            .map(|bits| 1 << (MOST_BITS as u64 - u64::from(*bits)))
            .sum();
        assert_eq!(sum, 1 << MOST_BITS);
    }

    #[test]
    fn strings_and_names_of_requests_are_read_again() {
        for length in [0, 1, 126, 127, 128, 254, 255, 300, 70_000] {
            let mut block = Vec::new();
            put_name("Content-Length", &mut block);
            let before = block.len();
            block.resize(before + length, b'x');
            close_string(&mut block, before);
            assert_eq!(first_value(&block), vec![b'x'; length]);
            let all = read(&block).unwrap();
            assert_eq!(all, [(Name::ContentLength, vec![b'x'; length])]);
        }
        let mut block = Vec::new();
        put_name("X-Row", &mut block);
        assert_eq!(block, b"\x00\x05x-row");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
