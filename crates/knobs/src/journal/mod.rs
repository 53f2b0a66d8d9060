//! The journal: what a session intends and does, on disk before it happens.
//!
//! One JSON line per entry, with a number and a checksum over the rest of the line:
//!
//! ```text
//! {"crc":"1c291ca3","seq":3,"entry":{"kind":"intent","knob":"net.rps_cpus",...}}
//! ```
//!
//! Only an intent has to be on the disk before the next step. The other entries may be lost in a
//! power cut, because a power cut resets every setting that the journal is about; a killed process
//! loses nothing that it handed to the kernel. So one plan costs one `fdatasync(2)`.

mod file;
mod read;

use std::io;

use serde::{Deserialize, Serialize};

use crate::edit::{Edit, Place};

pub use file::{Claim, JournalFile, Stored, Watched, stored};
pub use read::{Damage, Pending, Recovered, read};

/// Version of the format; another one is refused.
pub const VERSION: u32 = 1;

/// Bytes before the part of a line that its checksum covers: `{"crc":"1c291ca3",`.
const CHECKSUM_BYTES: usize = 18;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Number of the line, counted from 0 without a gap.
    pub seq: u64,
    /// What happened.
    pub entry: Entry,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The first line.
    Header(Header),
    /// This edit will be made next.
    Intent(Intent),
    /// The edit was made; what was read back.
    Done {
        /// Line of its intent.
        intent: u64,
        /// The value that the kernel stored.
        readback: String,
    },
    /// The edit is no longer in force.
    Undone {
        /// Line of its intent.
        intent: u64,
        /// Why.
        how: String,
    },
    /// Something for the reader.
    Note {
        /// A sentence.
        text: String,
    },
    /// Nothing is in force any more; the journal's session has ended.
    End,
}

/// Who keeps this journal, since when, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// See [`VERSION`].
    pub version: u32,
    /// Version of rungwise.
    pub tool: String,
    /// `/proc/sys/kernel/random/boot_id`: after another boot none of its changes is in force.
    pub boot_id: String,
    /// The process that wrote it.
    pub pid: u32,
    /// When that process started, clock ticks since boot; with the pid an identity.
    pub started_ticks: u64,
    /// Its command line.
    pub command: Vec<String>,
    /// When the journal was made, RFC 3339.
    pub created: String,
    /// Its purpose, a phrase.
    pub purpose: String,
}

/// An edit about to be made, with everything that undoing it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Id of the knob.
    pub knob: String,
    /// Where.
    pub place: Place,
    /// Inode of the network namespace behind `place`.
    pub netns: u64,
    /// Index of the device, so that a new device of the same name is not taken for it.
    pub ifindex: Option<u32>,
    /// What is to hold.
    pub edit: Edit,
    /// The value right before.
    pub before: String,
}

/// The destination of lines. The real journal is [`JournalFile`]; tests use memory.
pub trait Log: Send {
    /// Appends whole lines. With `durable` they are on the disk when this returns. A failure leaves
    /// the log as it was, as far as possible.
    fn append(&mut self, lines: &[u8], durable: bool) -> io::Result<()>;
}

impl Line {
    /// The line as it is stored, with its end.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).expect("a line is made of strings and numbers");
        let covered = &json[1..];
        let crc = crc32fast::hash(covered.as_bytes());
        format!("{{\"crc\":\"{crc:08x}\",{covered}\n").into_bytes()
    }

    /// Reads one line without its end; the error is what is wrong with it.
    pub(crate) fn decode(line: &[u8]) -> Result<Self, &'static str> {
        let (checksum, covered) = line
            .split_at_checked(CHECKSUM_BYTES)
            .ok_or("it is too short")?;
        let stated = checksum
            .strip_prefix(b"{\"crc\":\"")
            .and_then(|rest| rest.strip_suffix(b"\","))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
            .ok_or("it has no checksum")?;
        if stated != crc32fast::hash(covered) {
            return Err("its checksum does not match");
        }
        // The checksum itself is an unknown field to serde and is passed over.
        serde_json::from_slice(line).map_err(|_| "this version does not know such an entry")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_document_that_reads_back() {
        let line = Line {
            seq: 3,
            entry: Entry::Done {
                intent: 2,
                readback: "3".to_owned(),
            },
        };
        let stored = line.encode();
        let json: serde_json::Value = serde_json::from_slice(&stored).unwrap();
        assert_eq!(json["entry"]["readback"], "3");
        let (end, body) = stored.split_last().unwrap();
        assert_eq!((*end, Line::decode(body)), (b'\n', Ok(line)));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let stored = Line {
            seq: 0,
            entry: Entry::Note {
                text: "hello".to_owned(),
            },
        }
        .encode();
        let body = &stored[..stored.len() - 1];
        for index in 0..body.len() {
            for bit in 0..8 {
                let mut hurt = body.to_vec();
                hurt[index] ^= 1 << bit;
                // Hex digits may change case without changing the checksum.
                let same = hurt.eq_ignore_ascii_case(body) && (8..16).contains(&index);
                assert_eq!(Line::decode(&hurt).is_ok(), same, "byte {index}, bit {bit}");
            }
        }
    }
}
