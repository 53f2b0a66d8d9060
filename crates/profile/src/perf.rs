//! Opening events of perf on every CPU, and reading their ring buffers.
//!
//! The ring is emptied from time to time, not when the kernel calls: a wake-up per batch would only add switches.
//! Sources: `perf_event_open(2)`; `perf_output_sample` in kernel/events/core.c of Linux 6.18.

use std::io;
use std::time::Duration;

use perf_event::data::Record;
use perf_event::events::Event;
use perf_event::{Builder, SampleFlag, Sampler};
use rungwise_host::live::Live;
use rungwise_host::{Host, machine};
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};
use crate::fold::Mode;

/// Bytes of each CPU's ring: at 99 Hz and 50 functions a stack it holds six seconds.
const RING: usize = 256 << 10;

/// CPUs that are online.
pub(crate) fn cpus(host: &dyn Host) -> Result<Vec<usize>> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = host
        .text(PATH.as_ref())
        .map_err(Error::system(&format!("read {PATH}")))?;
    Ok(machine::cpu_list(&text)
        .into_iter()
        .map(|cpu| cpu as usize)
        .collect())
}

/// Settings for an event of all tasks on one CPU, not yet counting.
pub(crate) fn on_cpu<E: Event>(event: E, cpu: usize) -> Builder<'static> {
    let mut builder = Builder::new(event);
    builder
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .exclude_callchain_user(true);
    builder
}

/// Opens something on each CPU; one that went offline meanwhile is left out.
pub(crate) fn on_each<T>(
    cpus: &[usize],
    tried: &str,
    mut open: impl FnMut(usize) -> io::Result<T>,
) -> Result<Vec<T>> {
    let mut opened = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        match open(*cpu) {
            Ok(event) => opened.push(event),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(Error::of_perf(&Live, tried, error)),
        }
    }
    Ok(opened)
}

/// A record of a ring.
pub(crate) enum Seen<'a> {
    /// An event happened.
    Sample(Sample<'a>),
    /// A task took a name.
    Named { thread: u32, name: &'a [u8] },
    /// A task was made.
    Born {
        process: u32,
        thread: u32,
        parent: u32,
        parent_thread: u32,
    },
    /// A thread came to the CPU, or left it.
    Switched(Switch),
}

/// A switch of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Of the clock of perf, ns.
    pub(crate) time: u64,
    /// It left; else it came.
    pub(crate) leaves: bool,
    /// It would have run on.
    pub(crate) preempted: bool,
}

/// One sample, as far as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Of the clock of perf, ns.
    pub(crate) time: u64,
    pub(crate) mode: Mode,
    /// Events that it stands for.
    pub(crate) period: u64,
    /// Marks and addresses, leaf first.
    pub(crate) chain: &'a [u64],
    /// The record of a tracepoint.
    pub(crate) raw: &'a [u8],
}

/// An event with a ring buffer, into which the kernel writes while we read.
pub(crate) struct Ring {
    sampler: Sampler,
    fields: SampleFlag,
    chain: Vec<u64>,
}

impl Ring {
    /// Opens an event that samples `fields`, which may be TID, TIME, PERIOD, CALLCHAIN and RAW; TID and TIME where it has no samples but switches.
    pub(crate) fn open(builder: &mut Builder<'_>, fields: SampleFlag) -> io::Result<Self> {
        Self::with_room(builder, fields, RING)
    }

    /// The same with a ring of so many bytes, a power of two.
    pub(crate) fn with_room(
        builder: &mut Builder<'_>,
        fields: SampleFlag,
        room: usize,
    ) -> io::Result<Self> {
        Ok(Self {
            sampler: builder.sample(fields).build()?.sampled(room)?,
            fields,
            chain: Vec::new(),
        })
    }

    pub(crate) fn enable(&mut self) -> io::Result<()> {
        self.sampler.enable()
    }

    pub(crate) fn disable(&mut self) -> io::Result<()> {
        self.sampler.disable()
    }

    /// Passes all records of the ring to `see`. Returns how many samples were lost.
    pub(crate) fn drain(&mut self, mut see: impl FnMut(Seen<'_>)) -> u64 {
        let mut lost = 0;
        while let Some(record) = self.sampler.next_record() {
            if record.ty() == SAMPLE {
                let mode = Mode::from_misc(record.misc());
                match sample(&record.to_contiguous(), self.fields, mode, &mut self.chain) {
                    Some(sample) => see(Seen::Sample(sample)),
                    None => lost += 1,
                }
                continue;
            }
            if record.ty() == SWITCH {
                match switch(&record.to_contiguous(), record.misc()) {
                    Some(switch) => see(Seen::Switched(switch)),
                    None => lost += 1,
                }
                continue;
            }
            match record.parse_record() {
                Ok(Record::Comm(comm)) => see(Seen::Named {
                    thread: comm.tid,
                    name: &comm.comm,
                }),
                Ok(Record::Fork(fork)) => see(Seen::Born {
                    process: fork.pid,
                    thread: fork.tid,
                    parent: fork.ppid,
                    parent_thread: fork.ptid,
                }),
                Ok(Record::Lost(some)) => lost += some.lost,
                Ok(Record::LostSamples(some)) => lost += some.lost,
                // Others were not asked for and do not come, but throttling, which loses nothing that counts.
                _ => {}
            }
        }
        lost
    }
}

impl Ring {
    /// Passes all records of the ring as they are: type, flags and bytes.
    pub(crate) fn drain_raw(&mut self, mut see: impl FnMut(u32, u16, &[u8])) {
        while let Some(record) = self.sampler.next_record() {
            see(record.ty(), record.misc(), &record.to_contiguous());
        }
    }
}

/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;

/// `PERF_RECORD_SWITCH_CPU_WIDE`.
const SWITCH: u32 = 15;
/// `PERF_RECORD_MISC_SWITCH_OUT` and `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const LEAVES: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// Reads the body of a switch: the other thread's process and number, which are not needed, then who it is about, and when.
fn switch(body: &[u8], misc: u16) -> Option<Switch> {
    let mut rest = body;
    let _: [u8; 8] = take(&mut rest)?;
    Some(Switch {
        process: u32::from_ne_bytes(take(&mut rest)?),
        thread: u32::from_ne_bytes(take(&mut rest)?),
        time: u64::from_ne_bytes(take(&mut rest)?),
        leaves: misc & LEAVES != 0,
        preempted: misc & PREEMPTED != 0,
    })
}

/// Reads the body of a sample. perf-event-data would, but refuses an empty call chain at the end, which is
/// what each sample of a program in user mode has. Layout: `perf_output_sample` in kernel/events/core.c.
fn sample<'a>(
    body: &'a [u8],
    fields: SampleFlag,
    mode: Mode,
    chain: &'a mut Vec<u64>,
) -> Option<Sample<'a>> {
    let mut rest = body;
    let mut sample = Sample {
        process: 0,
        thread: 0,
        time: 0,
        mode,
        period: 1,
        chain: &[],
        raw: &[],
    };
    if fields.contains(SampleFlag::TID) {
        sample.process = u32::from_ne_bytes(take(&mut rest)?);
        sample.thread = u32::from_ne_bytes(take(&mut rest)?);
    }
    if fields.contains(SampleFlag::TIME) {
        sample.time = u64::from_ne_bytes(take(&mut rest)?);
    }
    if fields.contains(SampleFlag::PERIOD) {
        sample.period = u64::from_ne_bytes(take(&mut rest)?);
    }
    if fields.contains(SampleFlag::CALLCHAIN) {
        chain.clear();
        for _ in 0..u64::from_ne_bytes(take(&mut rest)?) {
            chain.push(u64::from_ne_bytes(take(&mut rest)?));
        }
        sample.chain = chain;
    }
    if fields.contains(SampleFlag::RAW) {
        let length = u32::from_ne_bytes(take(&mut rest)?);
        sample.raw = rest.get(..length as usize)?;
    }
    Some(sample)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(*first)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Process 7, thread 8.
    fn who() -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[4..].copy_from_slice(&8_u32.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn a_sample_has_what_was_asked_for_in_the_kernels_order() {
        let mut chain = Vec::new();
        let fields =
            SampleFlag::TID | SampleFlag::TIME | SampleFlag::PERIOD | SampleFlag::CALLCHAIN;
        let body = body(&[who(), 55, 1000, 2, 11, 12]);
        let found = sample(&body, fields, Mode::Kernel, &mut chain).unwrap();
        assert_eq!((found.process, found.thread, found.period), (7, 8, 1000));
        assert_eq!(found.time, 55);
        assert_eq!((found.chain, found.raw), (&[11, 12][..], &[][..]));
    }

    #[test]
    fn a_switch_says_who_left_and_whether_it_waits() {
        let body = body(&[0, who(), 123]);
        let left = switch(&body, LEAVES | PREEMPTED).unwrap();
        let expected = Switch {
            process: 7,
            thread: 8,
            time: 123,
            leaves: true,
            preempted: true,
        };
        assert_eq!(left, expected);
        let came = switch(&body, 0).unwrap();
        assert!(!came.leaves && !came.preempted);
        assert!(switch(&body[..20], 0).is_none());
    }

    #[test]
    fn an_empty_call_chain_is_a_sample_of_user_mode() {
        let mut chain = vec![1, 2, 3];
        let fields = SampleFlag::TID | SampleFlag::CALLCHAIN;
        let body = body(&[who(), 0]);
        let found = sample(&body, fields, Mode::User, &mut chain).unwrap();
        assert_eq!((found.thread, found.mode), (8, Mode::User));
        assert!(found.chain.is_empty());
    }

    #[test]
    fn a_raw_record_is_as_long_as_it_says() {
        let mut bytes = body(&[who()]);
        bytes.extend(4_u32.to_ne_bytes());
        bytes.extend([1, 2, 3, 4, 0, 0, 0, 0]);
        let fields = SampleFlag::TID | SampleFlag::RAW;
        let found =
            sample(&bytes, fields, Mode::Kernel, &mut Vec::new()).map(|found| found.raw.to_vec());
        assert_eq!(found, Some(vec![1, 2, 3, 4]));
        bytes.truncate(14);
        assert!(sample(&bytes, fields, Mode::Kernel, &mut Vec::new()).is_none());
    }

    proptest! {
        #[test]
        fn no_record_makes_it_panic(bytes: Vec<u8>, flags in 0_u64..1 << 11) {
            let fields = SampleFlag::from_bits_truncate(flags);
            let _ = sample(&bytes, fields, Mode::Kernel, &mut Vec::new());
        }
    }
}
