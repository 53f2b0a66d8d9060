//! The SMBIOS table: memory modules and the channels they sit on, as the firmware reports.
//!
//! A table is a row of structures: type, length, handle, fields, then strings up to a double zero (DMTF DSP0134,
//! SMBIOS 3.7, sections 6.1 and 7.18). The kernel hands it out as `/sys/firmware/dmi/tables/DMI`, to root only.
//! The standard does not define a *channel*; vendors encode it in slot names, each in their own way. Ambiguous
//! names are not guessed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Types of structures.
const SLOT: u8 = 17;
const END: u8 = 127;

/// A slot for a memory module (type 17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whether the slot has a module.
    pub filled: bool,
    /// Name printed on the board: `P1-DIMMA1`.
    pub device: String,
    /// Name of the bank: `P0_Node0_Channel0_Dimm0`.
    pub bank: String,
}

/// Memory channels of all sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// That have a slot.
    pub all: usize,
    /// That have a module.
    pub used: usize,
}

/// Memory slots of a table in lower-case hex; `None` if it is no hex text or does not end as a table does.
pub fn slots(hex: &str) -> Option<Vec<Slot>> {
    let table = bytes(hex.trim())?;
    let mut rest = table.as_slice();
    let mut slots = Vec::new();
    // The end marker may be missing from old firmware: there the table ends with its bytes.
    while let Some((structure, next)) = structure(rest) {
        match structure.kind {
            SLOT => slots.extend(slot(&structure)),
            END => return Some(slots),
            _ => {}
        }
        rest = next;
    }
    (rest.is_empty() && !table.is_empty()).then_some(slots)
}

/// The same table in hex, reduced to its memory slots and their two names: serial numbers, asset tags and the UUID
/// of the machine are left out. `None` if it is no table.
pub fn without_identity(hex: &str) -> Option<String> {
    let slots = slots(hex)?;
    let mut table = Vec::new();
    for slot in slots {
        // SMBIOS 2.1: up to the names of slot and bank.
        let mut fields = [0; 0x15];
        fields[0] = SLOT;
        fields[1] = 0x15;
        fields[0x0c] = u8::from(slot.filled);
        let mut strings = Vec::new();
        let mut number = 0;
        for (at, name) in [(0x10, slot.device), (0x11, slot.bank)] {
            if !name.is_empty() {
                number += 1;
                fields[at] = number;
                strings.extend(name.into_bytes());
                strings.push(0);
            }
        }
        table.extend(fields);
        table.extend(strings);
        table.extend(if number == 0 { &[0, 0][..] } else { &[0] });
    }
    table.extend([END, 4, 0, 0, 0, 0]);
    let mut hex = String::with_capacity(2 * table.len());
    for byte in table {
        let _ = write!(hex, "{byte:02x}");
    }
    Some(hex)
}

/// Counts the channels; `None` unless every slot names its own.
pub fn channels(slots: &[Slot]) -> Option<Channels> {
    let mut all = BTreeSet::new();
    let mut used = BTreeSet::new();
    for slot in slots {
        let channel = channel(&slot.bank, &slot.device)?;
        if slot.filled {
            used.insert(channel.clone());
        }
        all.insert(channel);
    }
    (!all.is_empty()).then_some(Channels {
        all: all.len(),
        used: used.len(),
    })
}

struct Structure<'a> {
    kind: u8,
    /// Header and fields: offsets are those of the standard.
    fields: &'a [u8],
    strings: &'a [u8],
}

impl Structure<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = self.fields.get(at..at + 2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The string whose number is at `at`; empty if there is none.
    fn string(&self, at: usize) -> String {
        let number = usize::from(self.fields.get(at).copied().unwrap_or(0));
        let found = match number.checked_sub(1) {
            Some(index) => self.strings.split(|byte| *byte == 0).nth(index),
            None => None,
        };
        String::from_utf8_lossy(found.unwrap_or_default())
            .trim()
            .to_owned()
    }
}

/// The first structure and what follows it.
fn structure(table: &[u8]) -> Option<(Structure<'_>, &[u8])> {
    let length = usize::from(*table.get(1)?);
    if length < 4 {
        return None;
    }
    let (fields, behind) = table.split_at_checked(length)?;
    let end = behind.windows(2).position(|two| two == [0, 0])?;
    let structure = Structure {
        kind: fields[0],
        fields,
        strings: &behind[..end],
    };
    Some((structure, &behind[end + 2..]))
}

fn slot(structure: &Structure<'_>) -> Option<Slot> {
    // Size in MiB: 0 is an empty slot. 0xffff, size unknown, is a module all the same.
    Some(Slot {
        filled: structure.u16(0x0c)? != 0,
        device: structure.string(0x10),
        bank: structure.string(0x11),
    })
}

/// What identifies the channel of a slot among all slots; `None` if the names do not show it.
fn channel(bank: &str, device: &str) -> Option<Vec<String>> {
    let (bank, device) = (words(bank), words(device));
    [(&bank, &device), (&device, &bank)]
        .into_iter()
        .find_map(|(name, other)| {
            let mut channel = spelled_out(name)?;
            // `CHANNEL A` with the socket in the other name.
            if socket(&channel).is_none()
                && let Some(at) = socket(other)
            {
                channel.extend_from_slice(&other[at..at + 2]);
            }
            Some(channel)
        })
        .or_else(|| lettered(&device))
}

/// Everything up to the channel: `P0_Node1_Channel2_Dimm0`, `NODE 0 CHANNEL 3`, `P0 CHANNEL A`, `ChannelA-DIMM0`.
fn spelled_out(words: &[String]) -> Option<Vec<String>> {
    let at = words.iter().position(|word| word.starts_with("CHANNEL"))?;
    let one_word = words[at].len() > "CHANNEL".len();
    let end = if one_word { at + 1 } else { at + 2 };
    words.get(..end).map(<[String]>::to_vec)
}

/// A socket and then a letter and a number: `CPU1_DIMM_A1`, `P1-DIMMA1`, `DIMM_P0_A0`; or `CPU0_C0D0`.
///
/// Without a socket a letter may be one (`A1` of some servers is slot 1 of socket A), so that says nothing.
fn lettered(words: &[String]) -> Option<Vec<String>> {
    let socket = socket(words)?;
    let behind = &words[socket + 2..];
    let mut channel = words[socket..socket + 2].to_vec();
    if let [c, number, d, ..] = behind
        && (c, d) == (&"C".to_owned(), &"D".to_owned())
    {
        channel.push(number.clone());
        return Some(channel);
    }
    let letter = behind.windows(2).find_map(|two| {
        let letter = two[0].strip_prefix("DIMM").unwrap_or(&two[0]);
        let numbered = two[1].bytes().all(|byte| byte.is_ascii_digit());
        (letter.len() == 1 && numbered).then_some(letter)
    })?;
    if letter.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    channel.push(letter.to_owned());
    Some(channel)
}

/// Where a socket is named, followed by its number.
fn socket(words: &[String]) -> Option<usize> {
    words.windows(2).position(|two| {
        ["CPU", "P", "PROC", "SOCKET"].contains(&two[0].as_str())
            && two[1].bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Runs of letters and runs of digits, in upper case: `P1-DIMMA1` is `P`, `1`, `DIMMA`, `1`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in name.chars() {
        let c = c.to_ascii_uppercase();
        if c.is_ascii_alphanumeric() {
            match words.last_mut() {
                Some(word)
                    if last.is_ascii_alphanumeric()
                        && last.is_ascii_digit() == c.is_ascii_digit() =>
                {
                    word.push(c);
                }
                _ => words.push(c.to_string()),
            }
        }
        last = c;
    }
    words
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks_exact(2)
        .map(|two| u8::try_from(digit(two[0])? << 4 | digit(two[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A structure of type 17 as SMBIOS 2.3 has it, 0x1b bytes, and its strings.
    fn module(mib: u16, device: &str, bank: &str) -> Vec<u8> {
        let mut table = vec![0; 0x1b];
        table[0] = 17;
        table[1] = 0x1b;
        table[0x0c..0x0e].copy_from_slice(&mib.to_le_bytes());
        table[0x10] = 1;
        table[0x11] = 2;
        for string in [device, bank] {
            table.extend(string.bytes());
            table.push(0);
        }
        table.push(0);
        table
    }

    fn hex(parts: &[Vec<u8>]) -> String {
        parts
            .iter()
            .flatten()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    fn end() -> Vec<u8> {
        vec![127, 4, 0xff, 0xff, 0, 0]
    }

    fn channels_named(names: &[(&str, &str)]) -> Option<Channels> {
        let slots: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(number, (device, bank))| Slot {
                filled: number == 0,
                device: (*device).to_owned(),
                bank: (*bank).to_owned(),
            })
            .collect();
        channels(&slots)
    }

    #[test]
    fn slots_are_read_up_to_the_end_marker() {
        let bios = [vec![0, 4, 1, 0], b"maker\0\0".to_vec()].concat();
        let full = module(16_384, "P1-DIMMA1", "P0_Node0_Channel0_Dimm0");
        let empty = module(0, "P1-DIMMB1", "P0_Node0_Channel1_Dimm0");
        let text = hex(&[bios, full.clone(), empty, end(), module(1, "x", "y")]);
        let found = slots(&text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].device, "P1-DIMMA1");
        assert!(found[0].filled && !found[1].filled);
        assert_eq!(channels(&found), Some(Channels { all: 2, used: 1 }));
        assert_eq!(
            slots(&hex(std::slice::from_ref(&full))).map(|slots| slots.len()),
            Some(1)
        );
        assert_eq!(slots(&text[..60]), None);
        assert_eq!(slots("not hex"), None);
        assert_eq!(slots(""), None);
    }

    #[test]
    fn a_table_without_identity_has_the_same_slots_and_nothing_else() {
        let mut system = vec![1, 27, 0, 0];
        system.resize(27, 0xab);
        system.extend(b"serial 4711\0\0");
        let full = module(16_384, "P1-DIMMA1", "P0_Node0_Channel0_Dimm0");
        let mut nameless = vec![0; 0x1b + 2];
        nameless[..2].copy_from_slice(&[SLOT, 0x1b]);
        let text = hex(&[system, full, nameless, end()]);
        let masked = without_identity(&text).unwrap();
        assert_eq!(slots(&masked), slots(&text));
        assert!(!masked.contains(&hex(&[b"4711".to_vec()])), "{masked}");
        assert!(!masked.contains("ababab"), "{masked}");
        assert_eq!(without_identity("not hex"), None);
    }

    #[test]
    fn makers_name_channels_in_many_ways() {
        let two = Some(Channels { all: 2, used: 1 });
        for names in [
            [("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P0 CHANNEL B")],
            [("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P1 CHANNEL A")],
            [("CPU1_DIMM_A1", "NODE 1"), ("CPU1_DIMM_B1", "NODE 1")],
            [("P1-DIMMA1", "BANK 0"), ("P2-DIMMA1", "BANK 0")],
            [("DIMM_P0_A0", "BANK 0"), ("DIMM_P0_B0", "BANK 1")],
            [("CPU0_C0D0", "NODE 0"), ("CPU0_C1D0", "NODE 0")],
            [("ChannelA-DIMM0", "BANK 0"), ("ChannelB-DIMM0", "BANK 2")],
            [
                ("DIMM000 J5", "SOCKET 0 CHANNEL 0 DIMM 0"),
                ("DIMM010 J7", "SOCKET 0 CHANNEL 1 DIMM 0"),
            ],
            [
                ("A1", "_Node0_Channel0_Dimm0"),
                ("B1", "_Node1_Channel0_Dimm0"),
            ],
            [("CPU1_A", "CHANNEL A"), ("CPU2_A", "CHANNEL A")],
        ] {
            assert_eq!(channels_named(&names), two, "{names:?}");
        }
        let same = [("CPU1_DIMM_A1", "NODE 1"), ("CPU1_DIMM_A2", "NODE 1")];
        assert_eq!(channels_named(&same), Some(Channels { all: 1, used: 1 }));
    }

    #[test]
    fn names_that_leave_the_channel_open_are_not_guessed_at() {
        for name in [
            ("A1", "Not Specified"),
            ("DIMM 0", ""),
            ("PROC 1 DIMM 1", "Not Specified"),
            ("DIMM_A1", "BANK 0"),
            ("PROC  1 DIMM  9A", ""),
        ] {
            assert_eq!(channels_named(&[name]), None, "{name:?}");
        }
        assert_eq!(channels(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = hex(&[bytes]);
            let masked = without_identity(&text);
            prop_assert_eq!(masked.as_deref().and_then(slots), slots(&text));
        }

        #[test]
        fn damaged_tables_are_read_without_a_panic(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let mut table = [module(1, "P1-DIMMA1", "NODE 0"), module(0, "P1-DIMMB1", ""), end()].concat();
            let at = at.index(table.len());
            table[at] = byte;
            let cut = cut.index(table.len());
            slots(&hex(&[table[..cut].to_vec()]));
            slots(&hex(&[table]));
        }

        #[test]
        fn any_name_is_read_without_a_panic(bank in "(CHANNEL|CPU|P|DIMM|[A-Z0-9_ -]|\\PC){0,8}", device in "(CHANNEL|CPU|P|C|D|DIMM|[A-Z0-9_ -]|\\PC){0,8}") {
            channel(&bank, &device);
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            slots(&text);
        }
    }
}
