//! Reads a journal that may be torn, damaged or written by someone else. Never panics.
//!
//! What a crash leaves is a torn last line: its intent was never acted on, because the write comes after the line is
//! whole. Anything else that does not fit is damage: it is reported, lines with a valid checksum are still used, and
//! nothing else is trusted.

use std::collections::BTreeMap;

use super::{Entry, Header, Intent, Line, VERSION};

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of the line in the file, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// An intent that may be in force, and what was read back after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Line of the intent.
    pub seq: u64,
    /// The intent.
    pub intent: Intent,
    /// The value that the kernel stored; absent when the session ended in between.
    pub readback: Option<String>,
}

/// The content of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The first line, if it can be read.
    pub header: Option<Header>,
    /// Edits that may be in force, in the order in which they were made.
    pub pending: Vec<Pending>,
    /// Notes.
    pub notes: Vec<String>,
    /// The journal was ended: nothing is in force.
    pub ended: bool,
    /// Lines that cannot be used. A torn last line is not among them.
    pub damage: Vec<Damage>,
    /// Bytes up to the end of the last whole line; what follows is torn.
    pub whole: usize,
    /// Number for the next line.
    pub next_seq: u64,
}

impl Recovered {
    /// Nothing but a torn line: the session died before it touched anything.
    pub fn never_began(&self) -> bool {
        self.whole == 0
    }

    /// Why the journal is unusable.
    pub fn distrust(&self) -> Option<String> {
        match &self.header {
            None if self.never_began() => None,
            None => {
                Some("its first line cannot be read, so it may be from another boot".to_owned())
            }
            Some(header) if header.version != VERSION => Some(format!(
                "it has version {} and this program reads {VERSION}; use the rungwise that wrote it ({})",
                header.version, header.tool
            )),
            Some(_) => None,
        }
    }
}

/// Reads a journal.
pub fn read(bytes: &[u8]) -> Recovered {
    let mut recovered = Recovered::default();
    let mut pending: BTreeMap<u64, Pending> = BTreeMap::new();
    recovered.whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let whole = &bytes[..recovered.whole.saturating_sub(1)];
    let lines = (recovered.whole > 0).then(|| whole.split(|byte| *byte == b'\n'));
    for (index, bytes) in lines.into_iter().flatten().enumerate() {
        let number = index + 1;
        match Line::decode(bytes) {
            Err(what) => recovered.damage.push(Damage {
                line: number,
                what: what.to_owned(),
            }),
            Ok(line) => {
                if let Err(what) = recovered.take(line, &mut pending) {
                    recovered.damage.push(Damage { line: number, what });
                }
            }
        }
    }
    recovered.pending = pending.into_values().collect();
    recovered
}

impl Recovered {
    fn take(&mut self, line: Line, pending: &mut BTreeMap<u64, Pending>) -> Result<(), String> {
        let Line { seq, entry } = line;
        if seq < self.next_seq {
            return Err(format!("number {seq} occurs twice"));
        }
        let expected = std::mem::replace(&mut self.next_seq, seq.saturating_add(1));
        match entry {
            Entry::Header(header) if seq == 0 => self.header = Some(header),
            Entry::Header(_) => return Err("it is a second header".to_owned()),
            Entry::Intent(intent) => {
                self.ended = false;
                let readback = None;
                pending.insert(
                    seq,
                    Pending {
                        seq,
                        intent,
                        readback,
                    },
                );
            }
            Entry::Done { intent, readback } => match pending.get_mut(&intent) {
                Some(known) => known.readback = Some(readback),
                None => {
                    return Err(format!(
                        "it completes line {intent}, which is not an open intent"
                    ));
                }
            },
            Entry::Undone { intent, .. } => {
                if pending.remove(&intent).is_none() {
                    return Err(format!(
                        "it undoes line {intent}, which is not an open intent"
                    ));
                }
            }
            Entry::Note { text } => self.notes.push(text),
            Entry::End => self.ended = true,
        }
        if expected != seq {
            return Err(format!(
                "lines {expected} to {} are missing before it",
                seq - 1
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::{Edit, Place};

    fn sample() -> Vec<u8> {
        let header = Header {
            version: VERSION,
            tool: "0.1.0".to_owned(),
            boot_id: "b".to_owned(),
            pid: 812,
            started_ticks: 1,
            command: vec!["rungwise".to_owned()],
            created: "2026-11-21T13:15:00Z".to_owned(),
            purpose: "test".to_owned(),
        };
        let intent = |value: &str| {
            Entry::Intent(Intent {
                knob: "net.netdev_max_backlog".to_owned(),
                place: Place::Host,
                netns: 1,
                ifindex: None,
                edit: Edit::WriteFile {
                    path: "/proc/sys/net/core/netdev_max_backlog".to_owned(),
                    value: value.to_owned(),
                },
                before: "1000".to_owned(),
            })
        };
        let done = |intent, readback: &str| Entry::Done {
            intent,
            readback: readback.to_owned(),
        };
        let entries = [
            Entry::Header(header),
            intent("2000"),
            done(1, "2000"),
            intent("3000"),
        ];
        (0..)
            .zip(entries)
            .flat_map(|(seq, entry)| Line { seq, entry }.encode())
            .collect()
    }

    #[test]
    fn a_torn_last_line_is_no_damage() {
        let bytes = sample();
        let recovered = read(&bytes);
        assert_eq!((recovered.pending.len(), recovered.damage.len()), (2, 0));
        assert_eq!(recovered.pending[0].readback.as_deref(), Some("2000"));
        let torn = read(&bytes[..bytes.len() - 1]);
        assert_eq!((torn.pending.len(), torn.damage.len()), (1, 0));
        assert!(torn.whole < bytes.len());
    }

    #[test]
    fn damage_in_the_middle_is_reported_and_the_rest_is_used() {
        let mut bytes = sample();
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 30;
        bytes[second] ^= 1;
        let recovered = read(&bytes);
        assert_eq!(recovered.pending.len(), 1);
        assert!(
            recovered
                .damage
                .iter()
                .any(|damage| damage.line == 2 && damage.what.contains("checksum"))
        );
        assert!(recovered.distrust().is_none());
    }

    #[test]
    fn without_its_first_line_a_journal_is_not_trusted() {
        let bytes = sample();
        let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert!(
            read(&bytes[second..])
                .distrust()
                .unwrap()
                .contains("another boot")
        );
        assert!(read(&bytes[..second - 1]).never_began());
        assert!(read(b"").never_began());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes: Vec<u8>) {
            read(&bytes);
        }

        #[test]
        fn no_mutation_is_a_panic_or_invents_an_intent(at in 0..900_usize, with: u8, cut in 0..900_usize) {
            let good = read(&sample());
            let mut bytes = sample();
            let length = bytes.len();
            bytes[at % length] = with;
            bytes.truncate(length - cut % length);
            for pending in read(&bytes).pending {
                prop_assert!(good.pending.iter().any(|known| known.intent == pending.intent));
            }
        }

        #[test]
        fn lines_in_any_order_and_number_are_no_panic(picks in proptest::collection::vec(0..4_usize, 0..12)) {
            let bytes = sample();
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let mixed: Vec<u8> = picks.iter().flat_map(|pick| lines[*pick].to_vec()).collect();
            let recovered = read(&mixed);
            prop_assert!(recovered.pending.len() <= 2);
        }
    }
}
