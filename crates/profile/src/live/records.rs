//! Records of perf's rings that concern a process: samples, and what it maps, starts and becomes.
//!
//! Every record ends with the thread and the time (`sample_id_all`), so those of several CPUs can be put into their order.
//! Source: `perf_event_open(2)`, kernel/events/core.c of Linux 6.18.

use perf_event::SampleFlag;

use super::unwind::{self, User};
use crate::fold::Mode;

/// What is recorded with each sample.
pub(super) const FIELDS: SampleFlag = SampleFlag::TID
    .union(SampleFlag::TIME)
    .union(SampleFlag::CALLCHAIN);
/// The same, with registers and a copy of the stack.
pub(super) const WITH_STACK: SampleFlag = FIELDS
    .union(SampleFlag::REGS_USER)
    .union(SampleFlag::STACK_USER);
/// Bytes of a sample: a full stack and registers, and the deepest call chain of the kernel's default (`perf_event_max_stack`).
pub(super) const LONGEST: usize = unwind::COPIED as usize + 2048;
/// `PERF_SAMPLE_REGS_ABI_64`; stacks of 32-bit programs are not unwound.
const ABI_64: u64 = 2;

/// `PERF_RECORD_*`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
/// `PERF_RECORD_MISC_COMM_EXEC`: the name came with another program.
const EXEC: u16 = 1 << 13;
/// Thread and time behind all records but samples.
const ID: usize = 16;

/// A record with its time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Timed {
    /// Of the clock of perf, ns.
    pub(super) time: u64,
    pub(super) record: Record,
}

/// A record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A thread was interrupted.
    Sample {
        process: u32,
        thread: u32,
        mode: Mode,
        /// Marks and addresses, leaf first.
        chain: Box<[u64]>,
        /// Registers and stack, where they were recorded.
        user: Option<Box<User>>,
    },
    /// A process mapped code.
    Mapped(Mapped),
    /// A thread took a name.
    Named {
        process: u32,
        thread: u32,
        name: Box<[u8]>,
        /// It runs another program from now on.
        executes: bool,
    },
    /// A task was made.
    Born {
        process: u32,
        thread: u32,
        parent: u32,
        parent_thread: u32,
    },
    /// So many samples found no room.
    Lost(u64),
}

/// A mapping of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) process: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Of its first byte in the file.
    pub(super) offset: u64,
    pub(super) inode: u64,
    /// The file; `//anon` and the like for none.
    pub(super) path: String,
}

/// A record from its type, its flags and its bytes; nothing for types that are not needed and for records that are too short.
pub(super) fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<Timed> {
    if kind == SAMPLE {
        return sample(misc, body);
    }
    let (body, id) = body.split_at_checked(body.len().checked_sub(ID)?)?;
    let time = u64::from_ne_bytes(id[8..].try_into().ok()?);
    let mut rest = Rest(body);
    let record = match kind {
        LOST => {
            rest.double()?;
            Record::Lost(rest.double()?)
        }
        LOST_SAMPLES => Record::Lost(rest.double()?),
        COMM => Record::Named {
            process: rest.word()?,
            thread: rest.word()?,
            name: rest.text().into(),
            executes: misc & EXEC != 0,
        },
        FORK => {
            let [process, parent, thread, parent_thread] =
                [rest.word()?, rest.word()?, rest.word()?, rest.word()?];
            Record::Born {
                process,
                thread,
                parent,
                parent_thread,
            }
        }
        MMAP2 => {
            let process = rest.word()?;
            rest.word()?;
            let [begin, length, offset] = [rest.double()?, rest.double()?, rest.double()?];
            // Major and minor number of the device.
            rest.double()?;
            let inode = rest.double()?;
            // Generation of the inode, protection and flags.
            rest.double()?;
            rest.double()?;
            Record::Mapped(Mapped {
                process,
                begin,
                end: begin.saturating_add(length),
                offset,
                inode,
                path: String::from_utf8_lossy(rest.text()).into_owned(),
            })
        }
        _ => return None,
    };
    Some(Timed { time, record })
}

fn sample(misc: u16, body: &[u8]) -> Option<Timed> {
    let mut rest = Rest(body);
    let (process, thread, time) = (rest.word()?, rest.word()?, rest.double()?);
    let length = usize::try_from(rest.double()?).ok()?;
    // As many as there are, whatever it claims.
    let entries = rest.0.as_chunks::<8>().0.get(..length)?;
    rest.0 = &rest.0[8 * length..];
    Some(Timed {
        time,
        record: Record::Sample {
            process,
            thread,
            mode: Mode::from_misc(misc),
            chain: entries
                .iter()
                .map(|bytes| u64::from_ne_bytes(*bytes))
                .collect(),
            user: user(&mut rest).map(Box::new),
        },
    })
}

/// Registers and stack. Threads of the kernel have none.
fn user(rest: &mut Rest<'_>) -> Option<User> {
    let abi = rest.double()?;
    let mut values = Vec::new();
    if abi != 0 {
        for _ in 0..unwind::SAMPLED.count_ones() {
            values.push(rest.double()?);
        }
    }
    let room = usize::try_from(rest.double()?).ok()?;
    let copy = rest.0.get(..room)?;
    rest.0 = &rest.0[room..];
    let length = usize::try_from(rest.double()?).ok()?;
    (abi == ABI_64).then_some(())?;
    Some(User {
        registers: unwind::registers(&values)?,
        stack: copy.get(..length)?.into(),
        is_cut: length == room,
    })
}

/// Bytes that are left to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn word(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*first))
    }

    fn double(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*first))
    }

    /// Up to the first zero.
    fn text(&self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_mapping_has_its_place_its_file_and_its_time() {
        let mut body = words(&[7, 8, 0x1000, 0, 0x2000, 0, 0x3000, 0]);
        body.extend(words(&[8, 1, 99, 0, 0, 0, 5, 2]));
        body.extend(b"/usr/lib/a.so\0\0\0");
        body.extend(words(&[7, 8, 1234, 0]));
        let found = parse(MMAP2, 0, &body).unwrap();
        let expected = Mapped {
            process: 7,
            begin: 0x1000,
            end: 0x3000,
            offset: 0x3000,
            inode: 99,
            path: "/usr/lib/a.so".to_owned(),
        };
        assert_eq!((found.time, found.record), (1234, Record::Mapped(expected)));
    }

    #[test]
    fn a_sample_has_no_more_of_a_chain_than_there_is() {
        let mut body = words(&[7, 8, 5, 0, 2, 0, 11, 0, 12, 0]);
        let found = parse(SAMPLE, 2, &body).unwrap();
        assert!(
            matches!(&found.record, Record::Sample { chain, mode: Mode::User, .. } if **chain == [11, 12])
        );
        body[16] = 3;
        assert_eq!(parse(SAMPLE, 2, &body), None);
    }

    #[test]
    fn a_sample_has_the_registers_and_as_much_of_the_stack_as_was_copied() {
        let mut body = words(&[7, 8, 5, 0, 1, 0, 11, 0]);
        body.extend(ABI_64.to_ne_bytes());
        for value in 0..u64::from(unwind::SAMPLED.count_ones()) {
            body.extend(value.to_ne_bytes());
        }
        let registers = body.len();
        body.extend(words(&[16, 0, 1, 2, 3, 4, 8, 0]));
        let user = |body: &[u8]| match parse(SAMPLE, 2, body).unwrap().record {
            Record::Sample { user, .. } => user,
            other => panic!("{other:?}"),
        };
        let found = user(&body).unwrap();
        assert_eq!((&*found.stack, found.is_cut), (&words(&[1, 2])[..], false));
        let end = body.len() - 8;
        body[end] = 16;
        assert!(user(&body).unwrap().is_cut);
        // More than there is, and a thread of the kernel.
        body[end] = 17;
        assert_eq!(user(&body), None);
        body.truncate(registers);
        assert_eq!(user(&body), None);
        assert_eq!(user(&words(&[7, 8, 5, 0, 0, 0, 0, 0, 0, 0])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in 0_u32..20, misc: u16, body: Vec<u8>) {
            let _ = parse(kind, misc, &body);
        }
    }
}
