//! Replies on streams, in two pieces and in small ones: both ways must read the same, of redis, of memcached and in frames of each kind.

use std::fmt::Debug;

use rungwise_load::memcached::text::{Asked, Reader as Memcached};
use rungwise_load::redis::resp::{Kind, Reader as Redis};
use rungwise_load::tcp::frames::{Expected, Framing, Prefix, Reader as Frames};

/// What was read, and why no more was.
type Read<T> = (Vec<T>, Option<&'static str>);

/// The replies of a server, in pieces given by the first two bytes.
pub fn stream_replies(bytes: &[u8]) {
    let [cut, size, rest @ ..] = bytes else {
        return;
    };
    let at = (usize::from(*cut) * rest.len()) >> 8;
    let two = [&rest[..at], &rest[at..]];
    let small: Vec<&[u8]> = rest.chunks(usize::from(*size).max(1)).collect();
    for pieces in [&two[..], &small] {
        same(&[rest], pieces, of_redis);
        same(&[rest], pieces, of_memcached);
        for framing in framings(*size) {
            let expected = Expected::Length(u64::from(*cut));
            same(&[rest], pieces, |pieces| {
                in_frames(&framing, &expected, pieces)
            });
        }
    }
}

fn same<T: Debug + PartialEq>(
    whole: &[&[u8]],
    pieces: &[&[u8]],
    read: impl Fn(&[&[u8]]) -> Read<T>,
) {
    assert_eq!(read(whole), read(pieces), "pieces change what is read");
}

/// Shows pieces to a reader as the load does: what was not used comes again before the next one.
fn pieces_of<T>(
    pieces: &[&[u8]],
    mut next: impl FnMut(&[u8], usize) -> Result<(usize, Option<T>), &'static str>,
) -> Read<T> {
    let (mut replies, mut kept) = (Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        while !kept.is_empty() {
            let (used, reply) = match next(&kept, replies.len()) {
                Ok(read) => read,
                Err(why) => return (replies, Some(why)),
            };
            assert!(used <= kept.len(), "more used than there is");
            let is_stuck = used == 0 && reply.is_none();
            kept.drain(..used);
            replies.extend(reply);
            if is_stuck {
                break;
            }
        }
    }
    (replies, None)
}

fn of_redis(pieces: &[&[u8]]) -> Read<(Kind, Vec<u8>)> {
    let mut reader = Redis::default();
    pieces_of(pieces, |bytes, _| {
        let (used, kind) = reader.read(bytes)?;
        let text = match kind {
            Some(Kind::Error) => reader.text().to_vec(),
            _ => Vec::new(),
        };
        Ok((used, kind.map(|kind| (kind, text))))
    })
}

fn of_memcached(pieces: &[&[u8]]) -> Read<String> {
    let mut reader = Memcached::default();
    pieces_of(pieces, |bytes, number| {
        let asked = [Asked::Get, Asked::Set, Asked::Get][number % 3];
        let (used, kind) = reader.read(Some(asked), bytes)?;
        Ok((used, kind.map(|kind| format!("{kind:?}"))))
    })
}

fn in_frames(framing: &Framing, expected: &Expected, pieces: &[&[u8]]) -> Read<(u64, bool)> {
    let mut reader = Frames::default();
    pieces_of(pieces, |bytes, _| {
        let (used, frame) = reader.read(framing, expected, bytes)?;
        Ok((used, frame.map(|frame| (frame.length, frame.differs))))
    })
}

fn framings(seed: u8) -> [Framing; 4] {
    let prefix = |bytes| {
        Framing::Prefixed(Prefix {
            bytes,
            is_little_endian: seed & 1 == 1,
            counts_itself: seed & 2 == 2,
        })
    };
    [
        Framing::Fixed(u64::from(seed) + 1),
        Framing::Delimited(b"\r\n".to_vec()),
        prefix(2),
        prefix(4),
    ]
}
