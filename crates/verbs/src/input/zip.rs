//! The members of a ZIP archive, read one after the other: stored or deflated, with the large sizes of ZIP64.
//!
//! The directory at the archive's end is read (PKWARE's APPNOTE 6.3.10): it always contains the offset and size of a
//! member, while the headers before the members may lack them. Nothing is unpacked to disk.

use std::io::{self, Read, Seek, SeekFrom};

use flate2::read::DeflateDecoder;

/// How an archive begins that has members.
pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

/// A member that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    header: u64,
    packed: u64,
    deflated: bool,
}

/// Bytes of the record at the end, without its comment.
const END: usize = 22;
/// A comment is this long at most.
const COMMENT: u64 = 0xffff;
/// A directory beyond this is none of an archive of logs.
const DIRECTORY: u64 = 16 << 20;
/// Stands in a field of 32 bits whose value is in the ZIP64 part.
const ELSEWHERE: u64 = 0xffff_ffff;

/// All members that hold bytes.
pub(super) fn members<R: Read + Seek>(archive: &mut R) -> io::Result<Vec<Member>> {
    let length = archive.seek(SeekFrom::End(0))?;
    let tail_at = length.saturating_sub(END as u64 + COMMENT);
    let tail = bytes(archive, tail_at, length - tail_at)?;
    let end = (0..tail.len().saturating_sub(END - 1))
        .rev()
        .find(|&at| tail[at..].starts_with(b"PK\x05\x06"))
        .ok_or_else(|| broken("its directory is missing, so it is truncated"))?;
    let record = &tail[end..];
    let mut size = number(record, 12, 4)?;
    let mut start = number(record, 16, 4)?;
    if start == ELSEWHERE || size == ELSEWHERE {
        let locator = end
            .checked_sub(20)
            .map(|at| &tail[at..end])
            .filter(|locator| locator.starts_with(b"PK\x06\x07"))
            .ok_or_else(|| broken("its ZIP64 directory is missing"))?;
        let record = bytes(archive, number(locator, 8, 8)?, 56)?;
        size = number(&record, 40, 8)?;
        start = number(&record, 48, 8)?;
    }
    if size > DIRECTORY {
        return Err(broken("its directory is larger than 16 MiB"));
    }
    let directory = bytes(archive, start, size)?;
    let mut members = Vec::new();
    let mut rest = &directory[..];
    while rest.starts_with(b"PK\x01\x02") {
        let (name, extra, comment) = (
            number(rest, 28, 2)? as usize,
            number(rest, 30, 2)? as usize,
            number(rest, 32, 2)? as usize,
        );
        let whole = 46 + name + extra + comment;
        let entry = rest
            .get(..whole)
            .ok_or_else(|| broken("its directory is truncated"))?;
        members.extend(member(
            entry,
            &entry[46..46 + name],
            &entry[46 + name..46 + name + extra],
        )?);
        rest = &rest[whole..];
    }
    Ok(members)
}

/// An entry of the directory; nothing where it is a folder or empty.
fn member(entry: &[u8], name: &[u8], extra: &[u8]) -> io::Result<Option<Member>> {
    let (mut packed, mut unpacked, mut header) = (
        number(entry, 20, 4)?,
        number(entry, 24, 4)?,
        number(entry, 42, 4)?,
    );
    // The ZIP64 part holds those fields only that did not fit, in this order.
    let mut wide = field(extra, 1);
    for value in [&mut unpacked, &mut packed, &mut header] {
        if *value == ELSEWHERE {
            *value = number(wide, 0, 8)?;
            wide = &wide[8..];
        }
    }
    let name = String::from_utf8_lossy(name).into_owned();
    if unpacked == 0 || name.ends_with('/') {
        return Ok(None);
    }
    if number(entry, 8, 2)? & 1 != 0 {
        return Err(broken(&format!("{name} in it is encrypted")));
    }
    let deflated = match number(entry, 10, 2)? {
        0 => false,
        8 => true,
        method => {
            return Err(broken(&format!(
                "{name} in it uses compression method {method}, and only 'stored' and 'deflated' are supported"
            )));
        }
    };
    Ok(Some(Member {
        name,
        header,
        packed,
        deflated,
    }))
}

/// The part of the extra field with this id; empty where there is none.
fn field(mut extra: &[u8], id: u64) -> &[u8] {
    while let (Ok(found), Ok(length)) = (number(extra, 0, 2), number(extra, 2, 2)) {
        let end = (4 + length as usize).min(extra.len());
        if found == id {
            return &extra[4..end];
        }
        extra = &extra[end..];
    }
    &[]
}

/// The text of a member.
pub(super) fn open<R: Read + Seek + 'static>(
    mut archive: R,
    member: &Member,
) -> io::Result<Box<dyn Read>> {
    let header = bytes(&mut archive, member.header, 30)?;
    if !header.starts_with(MAGIC) {
        return Err(broken(&format!(
            "{} is not where its directory says",
            member.name
        )));
    }
    let before = 30 + number(&header, 26, 2)? + number(&header, 28, 2)?;
    archive.seek(SeekFrom::Start(member.header.saturating_add(before)))?;
    let packed = archive.take(member.packed);
    Ok(if member.deflated {
        Box::new(DeflateDecoder::new(packed))
    } else {
        Box::new(packed)
    })
}

fn bytes<R: Read + Seek>(archive: &mut R, at: u64, count: u64) -> io::Result<Vec<u8>> {
    archive.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    archive.take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count {
        Ok(bytes)
    } else {
        Err(broken("it is truncated"))
    }
}

/// A number of so many bytes, least first.
fn number(bytes: &[u8], at: usize, count: usize) -> io::Result<u64> {
    let bytes = bytes
        .get(at..at + count)
        .ok_or_else(|| broken("its directory is truncated"))?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// An archive with these members, deflated where it says so, with a ZIP64 part where it says so.
    fn archive(members: &[(&str, &[u8], bool, bool)]) -> Vec<u8> {
        let le = |value: u64, count: usize| value.to_le_bytes()[..count].to_vec();
        let (mut all, mut directory) = (Vec::new(), Vec::new());
        for (name, text, deflate, wide) in members {
            let packed = if *deflate {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            } else {
                text.to_vec()
            };
            let method = if *deflate { 8 } else { 0 };
            let at = all.len() as u64;
            all.extend([MAGIC.to_vec(), le(20, 2), le(8, 2), le(method, 2)].concat());
            // Sizes are left open here, as those do who write to a pipe.
            all.extend([0; 16]);
            all.extend([le(name.len() as u64, 2), le(0, 2), name.as_bytes().to_vec()].concat());
            all.extend(&packed);
            let sizes = [packed.len() as u64, text.len() as u64, at];
            let extra = if *wide {
                let wide = [le(sizes[1], 8), le(sizes[0], 8), le(sizes[2], 8)].concat();
                [le(1, 2), le(24, 2), wide].concat()
            } else {
                Vec::new()
            };
            let shown = sizes.map(|size| if *wide { ELSEWHERE } else { size });
            directory.extend([b"PK\x01\x02".to_vec(), le(0, 4), le(0, 2), le(method, 2)].concat());
            directory.extend([0; 8]);
            directory.extend([le(shown[0], 4), le(shown[1], 4)].concat());
            directory.extend([le(name.len() as u64, 2), le(extra.len() as u64, 2)].concat());
            directory.extend([0; 10]);
            directory.extend([le(shown[2], 4), name.as_bytes().to_vec(), extra].concat());
        }
        let start = all.len() as u64;
        all.extend(&directory);
        all.extend(b"PK\x05\x06\0\0\0\0\0\0\0\0");
        all.extend([le(directory.len() as u64, 4), le(start, 4)].concat());
        all.extend([7, 0]);
        all.extend(b"comment");
        all
    }

    fn texts(archive: &[u8]) -> io::Result<Vec<(String, String)>> {
        let members = members(&mut Cursor::new(archive))?;
        let mut texts = Vec::new();
        for member in members {
            let mut text = String::new();
            open(Cursor::new(archive.to_vec()), &member)?.read_to_string(&mut text)?;
            texts.push((member.name, text));
        }
        Ok(texts)
    }

    #[test]
    fn members_are_read_stored_deflated_and_with_large_sizes() {
        let all = archive(&[
            ("logs/", b"", false, false),
            ("logs/a", b"stored", false, false),
            ("b", &[b'x'; 5000], true, false),
            ("c", b"wide", true, true),
        ]);
        let expected = [
            ("logs/a", "stored".to_owned()),
            ("b", "x".repeat(5000)),
            ("c", "wide".to_owned()),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text));
        assert_eq!(texts(&all).unwrap(), expected);
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_an_error_and_no_panic() {
        let all = archive(&[
            ("a", b"stored", false, true),
            ("b", b"deflated", true, false),
        ]);
        for end in 0..all.len() - "comment".len() {
            assert!(texts(&all[..end]).is_err(), "{end}");
        }
        for at in 0..all.len() {
            let mut damaged = all.clone();
            damaged[at] ^= 0xff;
            let _ = texts(&damaged);
        }
    }
}
