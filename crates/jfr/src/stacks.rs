//! The stacks of one kind of event with their weights: what a flame graph is made of.
//!
//! As in the summary, events are counted by the keys of stack, thread and class within a chunk, and each stack is resolved once at its end:
//! memory grows with distinct stacks of a chunk, not with events.

use std::io::{Read, Seek};

use rungwise_model::profile::FrameKind;

use crate::constants::{Constants, Thread};
use crate::error::Error;
use crate::recording::{Event, Recording, Wanted};
use crate::summary::locks::EXCLUSIVE;
use crate::summary::names::{Map, cut};
use crate::value::{Constant, Value};

/// Events that are sampled or measured alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `jdk.ExecutionSample` of threads that run. Weight: 1.
    Execution,
    /// `jdk.CPUTimeSample` (JDK 25). Weight: 1.
    CpuTime,
    /// `profiler.WallClockSample` of threads that run. Weight: samples.
    WallRunning,
    /// `profiler.WallClockSample`, running or not. Weight: samples.
    Wall,
    /// `jdk.ExecutionSample` of a recording in which some sleep, as async-profiler wrote wall-clock samples before version 3. Weight: 1.
    WallExecution,
    /// `jdk.ObjectAllocationInNewTLAB` by the size of the TLAB, and `jdk.ObjectAllocationOutsideTLAB`. Weight: bytes.
    Tlab,
    /// `jdk.ObjectAllocationSample`. Weight: bytes.
    AllocationSample,
    /// `jdk.JavaMonitorEnter`, and `jdk.ThreadPark` for a lock. Weight: nanoseconds.
    Lock,
}

/// Stacks that are alike, with the weight of all of them.
#[derive(Clone, Copy, Debug)]
pub struct Weighed<'a> {
    /// The thread, if the recording describes it.
    pub thread: Option<&'a Thread>,
    /// Methods and kinds, innermost first; then the class, if one was allocated or waited for, is ahead of them.
    pub frames: &'a [(&'a str, FrameKind)],
    /// Events.
    pub events: u64,
    /// Their weight, in the unit of the source.
    pub weight: u64,
}

/// What else a pass over the recording showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Chunks that were read.
    pub chunks: u64,
    /// Places where it is damaged, cut or not finished.
    pub damage: Vec<String>,
}

/// Frames of a stack that are read, as in the summary.
const DEEPEST: usize = 4096;
/// Notes on damage that are kept.
const MOST_NOTES: usize = 20;

impl Source {
    /// The name of its event; of two the first.
    pub fn event(self) -> &'static str {
        self.wanted()[0].event
    }

    /// All names of its events.
    pub fn events(self) -> Vec<&'static str> {
        self.wanted().iter().map(|wanted| wanted.event).collect()
    }

    /// The events; their fields are stack, thread, then class, weight or state.
    fn wanted(self) -> &'static [Wanted<'static>] {
        match self {
            Self::Execution | Self::WallExecution => &[Wanted {
                event: "jdk.ExecutionSample",
                fields: &["stackTrace", "sampledThread", "state"],
            }],
            Self::CpuTime => &[Wanted {
                event: "jdk.CPUTimeSample",
                fields: &["stackTrace", "eventThread", "failed"],
            }],
            Self::Wall | Self::WallRunning => &[Wanted {
                event: "profiler.WallClockSample",
                fields: &["stackTrace", "sampledThread", "state", "samples"],
            }],
            Self::Tlab => &[
                Wanted {
                    event: "jdk.ObjectAllocationInNewTLAB",
                    fields: &["stackTrace", "eventThread", "objectClass", "tlabSize"],
                },
                Wanted {
                    event: "jdk.ObjectAllocationOutsideTLAB",
                    fields: &["stackTrace", "eventThread", "objectClass", "allocationSize"],
                },
            ],
            Self::AllocationSample => &[Wanted {
                event: "jdk.ObjectAllocationSample",
                fields: &["stackTrace", "eventThread", "objectClass", "weight"],
            }],
            Self::Lock => &[
                Wanted {
                    event: "jdk.JavaMonitorEnter",
                    fields: &["stackTrace", "eventThread", "monitorClass", "duration"],
                },
                Wanted {
                    event: "jdk.ThreadPark",
                    fields: &["stackTrace", "eventThread", "parkedClass", "duration"],
                },
            ],
        }
    }

    fn has_class(self) -> bool {
        matches!(self, Self::Tlab | Self::AllocationSample | Self::Lock)
    }
}

/// Events with equal keys.
#[derive(Default)]
struct OfChunk {
    counted: Map<[Constant; 3], (u64, u64)>,
    sleeps: Map<Constant, bool>,
    exclusive: Map<Constant, bool>,
    has_sleepers: bool,
}

impl OfChunk {
    fn add(&mut self, source: Source, event: &Event<'_>) {
        let fields = event.fields;
        let weight = match source {
            Source::Execution => {
                if self.sleeps(fields[2], event.constants) {
                    return;
                }
                1
            }
            Source::WallExecution => {
                self.has_sleepers |= self.sleeps(fields[2], event.constants);
                1
            }
            Source::CpuTime => {
                if fields[2].int() == Some(1) {
                    return;
                }
                1
            }
            Source::Wall | Source::WallRunning => {
                if source == Source::WallRunning && self.sleeps(fields[2], event.constants) {
                    return;
                }
                fields[3].int().unwrap_or(1).max(1)
            }
            Source::Lock if event.wanted == 1 && !self.is_lock(fields[2], event.constants) => {
                return;
            }
            Source::Tlab | Source::AllocationSample | Source::Lock => fields[3].int().unwrap_or(0),
        };
        let class = if source.has_class() {
            fields[2]
        } else {
            Value::Absent
        };
        let key = [fields[0], fields[1], class].map(|field| field.constant().unwrap_or_default());
        let counted = self.counted.entry(key).or_default();
        counted.0 += 1;
        counted.1 = counted.1.saturating_add(u64::try_from(weight).unwrap_or(0));
    }

    fn sleeps(&mut self, state: Value<'_>, constants: &Constants) -> bool {
        state.constant().is_some_and(|constant| {
            let sleeps = || {
                constants
                    .text(state)
                    .is_some_and(|name| name == "STATE_SLEEPING")
            };
            *self.sleeps.entry(constant).or_insert_with(sleeps)
        })
    }

    fn is_lock(&mut self, class: Value<'_>, constants: &Constants) -> bool {
        class.constant().is_some_and(|constant| {
            let is_lock = || {
                let name = constants.class_name(class).unwrap_or_default();
                EXCLUSIVE.iter().any(|of| name.contains(of))
            };
            *self.exclusive.entry(constant).or_insert_with(is_lock)
        })
    }
}

/// Visits the stacks of a recording, those of each chunk in an order that depends on the file alone.
pub fn stacks<R: Read + Seek>(
    reader: R,
    source: Source,
    mut visit: impl FnMut(&Weighed<'_>),
) -> Result<Passed, Error> {
    let mut recording = Recording::open(reader)?;
    let mut passed = Passed::default();
    while let Some(chunk) = recording.next_chunk(source.wanted())? {
        let mut chunk = match chunk {
            Ok(chunk) => chunk,
            Err(damage) => {
                passed.note(&damage);
                continue;
            }
        };
        passed.chunks += 1;
        let mut of_chunk = OfChunk::default();
        chunk.each(|event| of_chunk.add(source, event))?;
        // Without a sleeper it is a profile of CPU time.
        if source != Source::WallExecution || of_chunk.has_sleepers {
            resolve(&of_chunk, chunk.constants(), &mut visit);
        }
        for damage in chunk.damage() {
            passed.note(damage);
        }
    }
    Ok(passed)
}

impl Passed {
    fn note(&mut self, damage: &crate::Damage) {
        if self.damage.len() < MOST_NOTES {
            let note = format!(
                "chunk {}, byte {}: {}",
                damage.chunk, damage.offset, damage.what
            );
            self.damage.push(note);
        }
    }
}

/// Names of the constants of a chunk.
#[derive(Default)]
struct Named {
    methods: Map<Constant, String>,
    kinds: Map<Constant, FrameKind>,
    threads: Map<Constant, Option<Thread>>,
    classes: Map<Constant, String>,
}

fn resolve(of_chunk: &OfChunk, constants: &Constants, visit: &mut impl FnMut(&Weighed<'_>)) {
    let mut named = Named::default();
    let mut counted: Vec<(&[Constant; 3], &(u64, u64))> = of_chunk.counted.iter().collect();
    counted.sort_unstable();
    let mut stack: Vec<(Constant, FrameKind)> = Vec::new();
    for ([of_stack, of_thread, of_class], (events, weight)) in counted {
        stack.clear();
        constants.frames(*of_stack, |frame| {
            if stack.len() < DEEPEST {
                let kind = frame.kind.map_or(FrameKind::Java, |kind| {
                    let kind_of = || kind_of(constants.text(Value::Constant(kind)).as_deref());
                    *named.kinds.entry(kind).or_insert_with(kind_of)
                });
                stack.push((frame.method, kind));
            }
        });
        for (method, _) in &stack {
            named
                .methods
                .entry(*method)
                .or_insert_with(|| method_name(constants, *method));
        }
        if of_class.key != 0 {
            let class = || {
                let name = constants.class_name(Value::Constant(*of_class));
                name.map_or_else(
                    || "[unknown class]".to_owned(),
                    |name| cut(&name).to_owned(),
                )
            };
            named.classes.entry(*of_class).or_insert_with(class);
        }
        let thread = named.threads.entry(*of_thread).or_insert_with(|| {
            let value = Value::Constant(*of_thread);
            value.constant().and_then(|_| constants.thread(value))
        });
        let class = named
            .classes
            .get(of_class)
            .map(|name| (name.as_str(), FrameKind::Class));
        let methods = stack
            .iter()
            .map(|(method, kind)| (named.methods[method].as_str(), *kind));
        let mut frames: Vec<(&str, FrameKind)> = class.into_iter().chain(methods).collect();
        if stack.is_empty() {
            frames.push(("[no stack]", FrameKind::Native));
        }
        visit(&Weighed {
            thread: thread.as_ref(),
            frames: &frames,
            events: *events,
            weight: *weight,
        });
    }
}

fn method_name(constants: &Constants, method: Constant) -> String {
    let Some(method) = constants.method(method) else {
        return "[unknown method]".to_owned();
    };
    match cut(&method.class) {
        "" => cut(&method.name).to_owned(),
        class => format!("{class}.{}", cut(&method.name)),
    }
}

/// The kind of code of a frame by the words of the JVM and of async-profiler: `JIT compiled`, `Inlined`, `Native`, `C++`, `Kernel`.
fn kind_of(words: Option<&str>) -> FrameKind {
    match words {
        Some("Inlined") => FrameKind::Inlined,
        Some("Kernel") => FrameKind::Kernel,
        Some("Native" | "C++") => FrameKind::Native,
        _ => FrameKind::Java,
    }
}
