//! What a recording says, in one pass: samples, allocation, locks, waits, I/O, exceptions, collections.
//!
//! Samples and allocations are counted by the keys of stack, thread and class within a chunk. Stacks are resolved once each, at
//! its end. So the memory grows with distinct stacks of a chunk and with distinct names, not with events.

mod events;
mod facts;
pub(crate) mod locks;
pub(crate) mod names;
mod tally;

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::time::{Duration, UNIX_EPOCH};

use rungwise_model::jfr::{self as report, Times};

use crate::constants::Constants;
use crate::error::Error;
use crate::recording::{Damage, Event, Recording, Wanted};
use crate::value::{Constant, Value};
use events::{EVENTS, Kind};
use facts::Facts;
use locks::Waits;
use names::{Known, Map, Name, Namer, Names, cut};
use tally::{Allocations, Tally};

/// Rows of each list.
const ROWS: usize = 100;

/// Reads a recording.
pub fn summary<R: Read + Seek>(reader: R) -> Result<report::Recording, Error> {
    let mut recording = Recording::open(reader)?;
    let wanted: Vec<Wanted<'_>> = EVENTS.iter().map(|(_, wanted)| *wanted).collect();
    let mut summed = Summed {
        file_bytes: recording.length(),
        ..Summed::default()
    };
    while let Some(chunk) = recording.next_chunk(&wanted)? {
        let mut chunk = match chunk {
            Ok(chunk) => chunk,
            Err(damage) => {
                summed.damage(&damage);
                continue;
            }
        };
        summed.begin(chunk.header());
        let mut of_chunk = OfChunk::default();
        chunk.each(|event| summed.add(event, &mut of_chunk))?;
        summed.resolve(&of_chunk, chunk.constants());
        for damage in chunk.damage() {
            summed.damage(damage);
        }
        for count in chunk.counts() {
            *summed.events.entry(count.event).or_default() += count.events;
        }
    }
    Ok(summed.finish())
}

/// What is collected of the whole recording.
#[derive(Default)]
struct Summed {
    file_bytes: u64,
    format: String,
    chunks: u64,
    began_ns: Option<i64>,
    ended_ns: i64,
    damage: Vec<String>,
    events: BTreeMap<String, u64>,
    names: Names,
    running: Tally,
    cpu_time: Tally,
    wall_running: Tally,
    waiting: Tally,
    native: u64,
    allocations: Allocations,
    waits: Waits,
    thrown: Map<(bool, Name), Thrown>,
    collections: BTreeMap<(String, String), Times>,
    facts: Facts,
}

#[derive(Default)]
struct Thrown {
    count: u64,
    message: Option<String>,
    places: Map<Name, u64>,
}

/// Samples and allocations of a chunk by what they have in common: how many, and their weight.
#[derive(Default)]
struct OfChunk {
    counted: Map<Counted, (u64, u64)>,
    /// Of stack, thread and class in the events of each kind.
    classes: BTreeMap<What, [usize; 3]>,
    known: Known,
    states: Map<Constant, bool>,
}

/// Keys of constants; 0 is none. Their classes are the same for all events of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Counted {
    stack: i64,
    thread: i64,
    class: i64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum What {
    Running,
    CpuTime,
    WallRunning,
    Waiting,
    InTlab,
    OutsideTlab,
    AllocationSample,
}

impl OfChunk {
    fn count(&mut self, what: What, fields: &[Value<'_>], class: Value<'_>, weight: i64) {
        let constants =
            [fields[0], fields[1], class].map(|field| field.constant().unwrap_or_default());
        let key = Counted {
            stack: constants[0].key,
            thread: constants[1].key,
            class: constants[2].key,
            what,
        };
        let counted = self.counted.entry(key).or_insert_with(|| {
            let classes = self.classes.entry(what).or_default();
            for (class, constant) in classes.iter_mut().zip(constants) {
                if constant.key != 0 {
                    *class = constant.class;
                }
            }
            (0, 0)
        });
        counted.0 += 1;
        counted.1 = counted.1.saturating_add(u64::try_from(weight).unwrap_or(0));
    }

    /// Whether a state says that the thread does not run.
    fn sleeps(&mut self, state: Value<'_>, constants: &Constants) -> bool {
        let Some(constant) = state.constant() else {
            return false;
        };
        *self.states.entry(constant).or_insert_with(|| {
            let name = constants.text(state).unwrap_or_default();
            name == "STATE_SLEEPING"
        })
    }
}

impl Summed {
    fn damage(&mut self, damage: &Damage) {
        /// Notes that are kept; a file of nothing but damage has as many as bytes.
        const MOST: usize = 20;
        if self.damage.len() < MOST {
            let Damage {
                chunk,
                offset,
                what,
            } = damage;
            self.damage
                .push(format!("chunk {chunk}, byte {offset}: {what}"));
        }
    }

    fn begin(&mut self, header: &crate::header::Header) {
        self.chunks += 1;
        if self.format.is_empty() {
            self.format = format!("{}.{}", header.version.0, header.version.1);
        }
        let began = *self.began_ns.get_or_insert(header.start_ns);
        self.began_ns = Some(began.min(header.start_ns));
        self.ended_ns = self
            .ended_ns
            .max(header.start_ns.saturating_add(header.duration_ns));
    }

    fn add(&mut self, event: &Event<'_>, chunk: &mut OfChunk) {
        let (kind, wanted) = &EVENTS[event.wanted];
        let fields = event.fields;
        let mut namer = Namer {
            names: &mut self.names,
            known: &mut chunk.known,
            constants: event.constants,
        };
        match kind {
            Kind::Execution => {
                let what = if chunk.sleeps(fields[2], event.constants) {
                    What::Waiting
                } else {
                    What::Running
                };
                chunk.count(what, fields, Value::Absent, 1);
            }
            Kind::Native => self.native += 1,
            Kind::CpuTime => {
                if fields[2].int() != Some(1) {
                    chunk.count(What::CpuTime, fields, Value::Absent, 1);
                }
            }
            Kind::Wall => {
                let what = if chunk.sleeps(fields[2], event.constants) {
                    What::Waiting
                } else {
                    What::WallRunning
                };
                let samples = fields[3].int().unwrap_or(1);
                chunk.count(what, fields, Value::Absent, samples.max(1));
            }
            Kind::InTlab | Kind::OutsideTlab | Kind::AllocationSample => {
                let what = match kind {
                    Kind::InTlab => What::InTlab,
                    Kind::OutsideTlab => What::OutsideTlab,
                    _ => What::AllocationSample,
                };
                chunk.count(what, fields, fields[2], fields[3].int().unwrap_or(0));
            }
            Kind::MonitorEnter | Kind::Park | Kind::MonitorWait | Kind::Sleep => {
                self.waits.wait(*kind, fields, &mut namer);
            }
            Kind::FileRead
            | Kind::FileWrite
            | Kind::FileForce
            | Kind::SocketRead
            | Kind::SocketWrite => self.waits.io(*kind, fields, &mut namer),
            Kind::Exception | Kind::Error => {
                let class = namer.class(fields[1]);
                let place = namer.place(fields[0]);
                let key = (matches!(kind, Kind::Error), class);
                let thrown = self.thrown.entry(key).or_default();
                thrown.count += 1;
                if thrown.message.is_none() {
                    let message = event.constants.text(fields[2]);
                    thrown.message = message
                        .filter(|message| !message.is_empty())
                        .map(|message| cut(&message).to_owned());
                }
                if let Some(place) = place {
                    *thrown.places.entry(place).or_default() += 1;
                }
            }
            Kind::Collection => {
                let text = |value| event.constants.text(value).unwrap_or_default();
                let key = (
                    cut(&text(fields[0])).to_owned(),
                    cut(&text(fields[1])).to_owned(),
                );
                let pauses = self.collections.entry(key).or_default();
                pauses.count += 1;
                pauses.total_ms += ms(fields[2]);
                pauses.longest_ms = pauses.longest_ms.max(ms(fields[3]));
            }
            _ => self.facts.add(*kind, wanted.event, fields, &mut namer),
        }
    }

    /// Names the stacks of a chunk.
    fn resolve(&mut self, chunk: &OfChunk, constants: &Constants) {
        let mut known = Known::default();
        let mut namer = Namer {
            names: &mut self.names,
            known: &mut known,
            constants,
        };
        let mut stack = Vec::new();
        let mut counted: Vec<(&Counted, &(u64, u64))> = chunk.counted.iter().collect();
        // Names get their numbers in this order, so that equal files give equal pages.
        counted.sort_unstable();
        let mut resolved = None;
        for (key, (count, weight)) in counted {
            let [of_stack, of_thread, of_class] = chunk.classes[&key.what];
            let constant = |class, key| Value::Constant(Constant { class, key });
            if resolved != Some((of_stack, key.stack)) {
                resolved = Some((of_stack, key.stack));
                stack.clear();
                if let Some(of) = constant(of_stack, key.stack).constant() {
                    namer.stack(of, &mut stack);
                }
            }
            let thread = namer.thread(constant(of_thread, key.thread));
            match key.what {
                What::Running => self.running.add(&stack, thread, *weight),
                What::CpuTime => self.cpu_time.add(&stack, thread, *weight),
                What::WallRunning => self.wall_running.add(&stack, thread, *weight),
                What::Waiting => self.waiting.add(&stack, thread, *weight),
                What::InTlab | What::OutsideTlab | What::AllocationSample => {
                    let class = namer.class(constant(of_class, key.class));
                    let method = stack.first().map(|(name, _)| *name);
                    let source = match key.what {
                        What::InTlab => 0,
                        What::OutsideTlab => 1,
                        _ => 2,
                    };
                    self.allocations
                        .add(source, class, method, thread, *count, *weight);
                }
            }
        }
    }

    fn finish(self) -> report::Recording {
        let names = &self.names;
        let began = self.began_ns.unwrap_or(0);
        let last = self.facts.last_ns.max(self.ended_ns);
        let duration_s = last.saturating_sub(began).max(0) as f64 / 1e9;
        let (source, tally) = [
            ("jdk.ExecutionSample", &self.running),
            ("jdk.CPUTimeSample", &self.cpu_time),
            ("profiler.WallClockSample", &self.wall_running),
        ]
        .into_iter()
        .find(|(_, tally)| tally.samples > 0)
        .map_or((None, &self.running), |(source, tally)| {
            (Some(source), tally)
        });
        let allocation = self.allocations.report(names);
        let threads = tally::threads(
            tally,
            &self.waits.by_thread,
            &self.allocations,
            &self.facts.allocated(),
            names,
        );
        let mut collections: Vec<report::Collection> = self
            .collections
            .into_iter()
            .map(|((name, cause), pauses)| report::Collection {
                name,
                cause,
                pauses,
            })
            .collect();
        collections.sort_by(|a, b| b.pauses.total_ms.total_cmp(&a.pauses.total_ms));
        collections.truncate(ROWS);
        let mut classes: Vec<report::Thrown> = self
            .thrown
            .into_iter()
            .map(|((is_error, class), thrown)| report::Thrown {
                class: names.get(class).to_owned(),
                count: thrown.count,
                is_error,
                message: thrown.message,
                at: most(&thrown.places, names).map(|place| first_line(&place)),
            })
            .collect();
        classes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.class.cmp(&b.class)));
        classes.truncate(ROWS);
        let thrown = self.facts.thrown();
        report::Recording {
            format: self.format,
            chunks: self.chunks,
            file_bytes: self.file_bytes,
            began: moment(began),
            ended: moment(last.max(began)),
            duration_s,
            damage: self.damage,
            thresholds: self.facts.thresholds(),
            samples: report::Samples {
                running: self.running.samples,
                native: self.native,
                cpu_time: self.cpu_time.samples,
                waiting: self.waiting.samples,
                source: source.map(str::to_owned),
                counted: tally.samples,
            },
            hot_methods: tally.methods(names),
            threads,
            waiting_methods: self.waiting.methods(names),
            code: tally.code(names),
            allocation,
            locks: self.waits.locks(names),
            waits: self.waits.waits(names),
            io: self.waits.all_io(names),
            exceptions: report::Exceptions {
                thrown: thrown.map(|(count, _)| count),
                thrown_per_s: thrown
                    .filter(|(_, seconds)| *seconds > 0.0)
                    .map(|(count, seconds)| count as f64 / seconds),
                classes,
            },
            collections,
            safepoint_begin: self.facts.safepoint_begin,
            operations: self.facts.operations(),
            cpu: self.facts.cpu(),
            old_objects: self.facts.old_objects(names),
            container: self.facts.container(),
            jvm: self.facts.jvm,
            flags: self.facts.flags,
            events: self.events,
        }
    }
}

/// A duration in milliseconds.
fn ms(value: Value<'_>) -> f64 {
    value.int().unwrap_or(0).max(0) as f64 / 1e6
}

fn add(times: &mut Times, ms: f64) {
    times.count += 1;
    times.total_ms += ms;
    times.longest_ms = times.longest_ms.max(ms);
}

/// A time as people write it.
fn moment(ns: i64) -> String {
    // The largest number is in the year 2262.
    let ns = u64::try_from(ns).unwrap_or(0);
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(ns)).to_string()
}

/// The name that was counted most often; of equals the first in the alphabet.
fn most(counts: &Map<Name, u64>, names: &Names) -> Option<String> {
    let best = counts
        .iter()
        .max_by(|(a, left), (b, right)| {
            let by_name = || names.get(**b).cmp(names.get(**a));
            left.cmp(right).then_with(by_name)
        })?
        .0;
    Some(names.get(*best).to_owned())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_shown_also_where_they_are_damaged() {
        assert_eq!(super::moment(1_500_000_000), "1970-01-01T00:00:01.500Z");
        for damaged in [-1, i64::MIN, i64::MAX] {
            assert!(super::moment(damaged).ends_with('Z'));
        }
    }
}
