//! What keeps a file from being read as a recording at all. Damage within a recording is no error: see [`crate::Damage`].

use std::fmt::Write as _;
use std::io;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no bytes.
    #[error("it is empty")]
    Empty,
    /// It begins otherwise.
    #[error(
        "it is not a Flight Recorder file: it begins with the bytes {}, a recording with 'FLR' and a zero byte; an encrypted or packed one has to be unpacked first",
        hex(first)
    )]
    NotJfr {
        /// Its first bytes.
        first: Vec<u8>,
    },
    /// It ends within its first header.
    #[error("it has {0} bytes and is cut within its header; copy it again")]
    Short(usize),
    /// Of a format that is not read.
    #[error(
        "its format is version {0}.{1}, and versions 1.0 to 2.1 are read{hint}",
        hint = hint(*.0)
    )]
    Version(u16, u16),
    /// Integers are not of variable length.
    #[error(
        "its integers are of fixed length, which no JDK since 9 writes; the header is damaged, or another program wrote it"
    )]
    FixedIntegers,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{}{byte:02x}", if text.is_empty() { "" } else { " " });
    }
    text
}

fn hint(major: u16) -> &'static str {
    if major == 0 {
        ": Oracle JDK 7 and 8 wrote it; open it with JDK Mission Control, or record again with JDK 8u262 or later"
    } else {
        ": the file is of a newer JDK, or damaged"
    }
}
