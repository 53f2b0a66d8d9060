//! The 68 bytes at the beginning of every chunk.
//!
//! Source: `jdk.jfr.internal.consumer.ChunkHeader` and `jfrChunkWriter.cpp` of OpenJDK 9 to 25.

use crate::error::Error;

/// Bytes of a header.
pub(crate) const LENGTH: u64 = 68;
/// First bytes of every chunk.
pub(crate) const MAGIC: &[u8; 4] = b"FLR\0";
/// Flag: integers are of variable length. Every JDK since 9 and async-profiler set it.
const COMPRESSED: u8 = 1;
/// The JVM is changing the header.
const GUARD: u8 = 0xff;

/// When and how a chunk was recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// Version of the format, major and minor.
    pub version: (u16, u16),
    /// Start, in nanoseconds since 1970.
    pub start_ns: i64,
    /// Duration in nanoseconds; 0 in a chunk that was not finished.
    pub duration_ns: i64,
    /// Whether the JVM finished the chunk: it was not killed, and did not crash before its last words.
    pub is_finished: bool,
    pub(crate) start_ticks: i64,
    pub(crate) ticks_per_s: i64,
    /// Bytes with the header.
    pub(crate) size: u64,
    /// Place of the last checkpoint; others follow from it.
    pub(crate) constants: u64,
    pub(crate) metadata: u64,
}

impl Header {
    /// Reads it from the first bytes of a chunk.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if !bytes.starts_with(MAGIC) {
            return Err(Error::NotJfr {
                first: bytes.iter().take(8).copied().collect(),
            });
        }
        let short = || Error::Short(bytes.len());
        let u16_at = |at: usize| {
            let bytes = bytes.get(at..at + 2).ok_or_else(short)?;
            Ok::<_, Error>(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let i64_at = |at: usize| {
            let bytes = bytes.get(at..at + 8).ok_or_else(short)?;
            Ok::<_, Error>(i64::from_be_bytes(bytes.try_into().expect("eight bytes")))
        };
        let version = (u16_at(4)?, u16_at(6)?);
        if !matches!(version.0, 1 | 2) {
            return Err(Error::Version(version.0, version.1));
        }
        let flags = *bytes.get(67).ok_or_else(short)?;
        if flags & COMPRESSED == 0 {
            return Err(Error::FixedIntegers);
        }
        let place = |at| Ok::<_, Error>(u64::try_from(i64_at(at)?).unwrap_or(0));
        let (size, constants, metadata) = (place(8)?, place(16)?, place(24)?);
        // A byte of the flags is the number of the last flush while the chunk is written; the first format had none.
        let flushes = if version.0 == 1 { 0 } else { bytes[64] };
        let is_whole =
            size > LENGTH && constants >= LENGTH && metadata >= LENGTH && flushes != GUARD;
        Ok(Self {
            version,
            start_ns: i64_at(32)?,
            duration_ns: i64_at(40)?,
            start_ticks: i64_at(48)?,
            ticks_per_s: i64_at(56)?,
            is_finished: is_whole && flushes == 0,
            size,
            constants,
            metadata,
        })
    }

    /// Ticks as nanoseconds, rounded as the JDK does.
    #[inline]
    pub(crate) fn span_ns(&self, ticks: i64) -> i64 {
        (ticks as f64 / self.ticks_per_ns()) as i64
    }

    /// A time in ticks as nanoseconds since 1970.
    #[inline]
    pub(crate) fn time_ns(&self, ticks: i64) -> i64 {
        let since = self.span_ns(ticks.wrapping_sub(self.start_ticks));
        self.start_ns.wrapping_add(since)
    }

    fn ticks_per_ns(&self) -> f64 {
        // A damaged frequency of zero would make every time infinite.
        self.ticks_per_s.max(1) as f64 / 1e9
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A header as the JVM writes it, of a chunk with this size and these places.
    pub(crate) fn bytes(size: u64, constants: u64, metadata: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0, 2, 0, 1]);
        for number in [
            size,
            constants,
            metadata,
            1_000,
            2_000_000_000,
            500,
            1_000_000,
        ] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([0, 0, 0, COMPRESSED]);
        bytes
    }

    #[test]
    fn what_is_no_recording_is_named() {
        let good = bytes(100, 70, 80);
        assert_eq!(good.len() as u64, LENGTH);
        assert!(Header::parse(&good).unwrap().is_finished);
        assert!(matches!(Header::parse(&[]), Err(Error::Empty)));
        assert!(matches!(
            Header::parse(b"PK\x03\x04"),
            Err(Error::NotJfr { .. })
        ));
        assert!(matches!(Header::parse(&good[..67]), Err(Error::Short(67))));
        let mut old = good.clone();
        old[5] = 0;
        old[7] = 9;
        assert!(matches!(Header::parse(&old), Err(Error::Version(0, 9))));
        let mut fixed = good.clone();
        fixed[67] = 0;
        assert!(matches!(Header::parse(&fixed), Err(Error::FixedIntegers)));
    }

    #[test]
    fn a_chunk_that_is_still_written_is_not_finished() {
        for (at, value) in [(64, 3), (64, GUARD)] {
            let mut written = bytes(100, 70, 80);
            written[at] = value;
            assert!(!Header::parse(&written).unwrap().is_finished);
        }
        assert!(!Header::parse(&bytes(0, 0, 0)).unwrap().is_finished);
    }

    #[test]
    fn ticks_become_nanoseconds_since_1970() {
        let header = Header::parse(&bytes(100, 70, 80)).unwrap();
        assert_eq!(header.span_ns(3), 3000);
        assert_eq!(header.time_ns(501), 2000);
    }
}
