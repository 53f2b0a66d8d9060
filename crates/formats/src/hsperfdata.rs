//! What a `HotSpot` JVM publishes in `/tmp/hsperfdata_USER/PID`: named values in a memory-mapped file.
//!
//! A header, then consecutive entries, each with its name followed by its value (`share/runtime/perfMemory.hpp`,
//! `PerfDataPrologue` and `PerfDataEntry`, layout 2). Numbers are in the byte order that the header records. The JVM
//! writes while others read; texts such as its arguments are written once, before the file is marked accessible.

use std::collections::BTreeMap;

/// First bytes of the file, whatever the order of the others.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// Bytes before the first entry, at least.
const HEAD: usize = 32;
/// Type of a value that is text.
const BYTES: u8 = b'B';

/// Type of a value that is a number of 64 bits.
const LONG: u8 = b'J';

/// The texts by name, such as `java.rt.vmArgs`; `None` if the bytes are not such a file, or have another layout.
pub fn texts(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    each(bytes, |entry| {
        if entry.size > 0 && entry.kind == BYTES {
            let end = entry.value.saturating_add(entry.size);
            let value = entry.bytes.get(entry.value..end.min(entry.bytes.len()));
            if let Some(value) = value {
                texts.insert(entry.name, until_zero(value));
            }
        }
    })?;
    Some(texts)
}

/// The numbers by name, such as `java.threads.started`; `None` as for [`texts`].
pub fn numbers(bytes: &[u8]) -> Option<BTreeMap<String, i64>> {
    let mut numbers = BTreeMap::new();
    let order = bytes.get(4).copied();
    each(bytes, |entry| {
        let value = entry.bytes.get(entry.value..).and_then(<[u8]>::first_chunk);
        if entry.size == 0
            && entry.kind == LONG
            && let Some(eight) = value
        {
            let number = if order == Some(1) {
                i64::from_le_bytes(*eight)
            } else {
                i64::from_be_bytes(*eight)
            };
            numbers.insert(entry.name, number);
        }
    })?;
    Some(numbers)
}

struct Entry<'a> {
    name: String,
    kind: u8,
    /// Elements of a vector; 0 for a single value.
    size: usize,
    /// Where the value begins in `bytes`.
    value: usize,
    bytes: &'a [u8],
}

/// Calls `found` with every entry; `None` as for [`texts`].
fn each(bytes: &[u8], mut found: impl FnMut(Entry<'_>)) -> Option<()> {
    let head = bytes.get(..HEAD)?;
    let (order, major) = (head[4], head[5]);
    if head[..4] != MAGIC || order > 1 || major != 2 {
        return None;
    }
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let number = if order == 1 {
            i32::from_le_bytes(four)
        } else {
            i32::from_be_bytes(four)
        };
        usize::try_from(number).ok()
    };
    let mut at = number(24)?;
    let count = number(28)?;
    for _ in 0..count {
        let Some((length, entry)) = number(at).filter(|length| *length > 0).and_then(|length| {
            let entry = bytes.get(at..at.checked_add(length)?)?;
            Some((length, entry))
        }) else {
            break;
        };
        let (name, size, value) = (number(at + 4)?, number(at + 8)?, number(at + 16)?);
        if let (Some(name), Some(kind)) = (entry.get(name..), entry.get(12)) {
            found(Entry {
                name: until_zero(name),
                kind: *kind,
                size,
                value,
                bytes: entry,
            });
        }
        at += length;
    }
    Some(())
}

fn until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one text and one number, as a JVM writes it.
    fn file(name: &str, value: &str) -> Vec<u8> {
        let entry = |name: &str, size: usize, kind: u8, value: &[u8]| {
            let data = 20 + name.len() + 1;
            let length = data + value.len();
            let mut bytes = Vec::new();
            for number in [length, 20, size] {
                bytes.extend(i32::try_from(number).unwrap().to_le_bytes());
            }
            bytes.extend([kind, 0, 1, 1]);
            bytes.extend(i32::try_from(data).unwrap().to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.extend(value);
            bytes
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 2, 0, 1]);
        bytes.resize(24, 0);
        bytes.extend(32i32.to_le_bytes());
        bytes.extend(2i32.to_le_bytes());
        bytes.extend(entry("sun.gc.count", 0, b'J', &7i64.to_le_bytes()));
        let mut text = value.as_bytes().to_vec();
        text.push(0);
        bytes.extend(entry(name, text.len(), BYTES, &text));
        bytes
    }

    #[test]
    fn texts_and_numbers_are_distinguished() {
        let bytes = file("java.rt.vmArgs", "-Xmx1g -XX:+UseG1GC");
        let texts = texts(&bytes).unwrap();
        assert_eq!(texts["java.rt.vmArgs"], "-Xmx1g -XX:+UseG1GC");
        assert_eq!(texts.len(), 1);
        let numbers = numbers(&bytes).unwrap();
        assert_eq!(numbers["sun.gc.count"], 7);
        assert_eq!(numbers.len(), 1);
    }

    #[test]
    fn a_file_that_is_cut_or_damaged_gives_what_there_is() {
        let whole = file("java.rt.vmArgs", "-Xmx1g");
        for length in 0..whole.len() {
            let _ = (texts(&whole[..length]), numbers(&whole[..length]));
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = (texts(&damaged), numbers(&damaged));
        }
        assert_eq!(texts(b"no such file"), None);
        assert_eq!(texts(&[]), None);
    }
}
