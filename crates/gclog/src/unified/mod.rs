//! Unified logging, JDK 9 to 25: one grammar for all collectors.
//!
//! A message is `GC(12) Pause Young (Normal) ...` or one without a number. What a collection prints is gathered under
//! its number (`open.rs`) until the line with the duration comes. Tags choose what to look for; where they are not
//! printed, the first bytes of the message do. Sources: `gc/shared/gcTraceTime.cpp`, `gc/shared/gcId.cpp` and the
//! log statements of each collector in the tree of the JDK.

mod ages;
mod areas;
mod decorations;
mod facts;
mod open;
mod pause;
mod phases;
mod safepoint;

use memchr::memchr_iter;
use memchr::memmem;

use crate::account::Read;
use crate::event::{Collector, Event, Fact, Stamp};
use crate::number::whole;
use crate::parser::Context;
use decorations::Decorations;
use open::Open;

/// What the lines so far have left open.
#[derive(Debug, Default)]
pub(crate) struct Unified {
    open: Open,
    safepoint: safepoint::Region,
    /// The collector, once a line has told.
    collector: Option<Collector>,
    /// Bytes of a G1 region, once a line has told.
    region_bytes: Option<u64>,
    /// Number of the last young or full collection, for logs without an uptime.
    last_id: Option<u64>,
    /// Allocation pacing of Shenandoah follows, thread by thread.
    pacing: bool,
    /// Messages came without decorations.
    bare: bool,
}

/// A message with what was printed before it.
#[derive(Clone, Copy)]
struct Message<'a> {
    decorations: Decorations<'a>,
    subject: Subject,
    /// Without `GC(12) `; spaces before it are kept, as phases are indented.
    text: &'a [u8],
}

impl Message<'_> {
    fn stamp(&self) -> Stamp {
        self.decorations.stamp()
    }
}

/// What the tags say about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// No tags, or none that are known.
    Any,
    /// `gc`: the line of a pause, of a cycle, of a stall.
    Gc,
    /// Tags of the collectors with details, some of which are wanted.
    Detail,
    /// `gc,phases`.
    Phases,
    /// `gc,phases,start`.
    PhaseStarts,
    /// `gc,phases,ref`.
    References,
    /// `gc,stats`: tables of ZGC and Shenandoah.
    Stats,
    /// `safepoint`.
    Safepoint,
    /// Nothing under these tags is asked for.
    Quiet,
}

impl Subject {
    fn of(tags: &[u8]) -> Self {
        let Some(rest) = tags.strip_prefix(b"gc") else {
            return match tags {
                b"" => Self::Any,
                b"safepoint" => Self::Safepoint,
                b"arguments" => Self::Detail,
                _ => Self::Quiet,
            };
        };
        match rest {
            b"" => Self::Gc,
            b",phases" => Self::Phases,
            b",phases,start" => Self::PhaseStarts,
            b",phases,ref" => Self::References,
            b",start" | b",heap" | b",metaspace" | b",age" | b",cpu" | b",marking" | b",init" | b",ref"
            | b",heap,coops" | b",promotion" => Self::Detail,
            b",stats" => Self::Stats,
            _ => Self::Quiet,
        }
    }
}

impl Unified {
    /// Reads a line with decorations; nothing if it has none.
    pub(crate) fn decorated(&mut self, context: &mut Context<'_>, text: &[u8]) -> Option<Read> {
        if text.starts_with(b"GC(") {
            self.bare = true;
            return Some(self.message(context, Decorations::default(), text));
        }
        let (decorations, message) = Decorations::read(text)?;
        Some(self.message(context, decorations, message))
    }

    /// Reads a line that is nothing else: a message without decorations, or one behind a text that something else
    /// has put before it: a container's log, or output of the application without a line end.
    pub(crate) fn undecorated(&mut self, context: &mut Context<'_>, text: &[u8]) -> Read {
        /// Groups that are tried as the first decoration.
        const TRIES: usize = 8;
        for at in memchr_iter(b'[', text).skip_while(|at| *at == 0).take(TRIES) {
            if let Some((decorations, message)) = Decorations::read(&text[at..])
                && (message.starts_with(b"GC(") || !decorations.tags.is_empty())
            {
                // JSON of a container's log: the message ends where the string does.
                let message = match memmem::find(message, br#"\n""#) {
                    Some(end) if text[0] == b'{' => &message[..end],
                    _ => message,
                };
                return self.message(context, decorations, message);
            }
        }
        let message = Message {
            decorations: Decorations::default(),
            subject: Subject::Any,
            text,
        };
        match self.without_number(context, message) {
            Read::Ignored if !self.bare => Read::Unknown,
            Read::Unknown if out_of_memory(text) => {
                context.tell(Event::OutOfMemory { at: Stamp::default() });
                Read::Understood
            }
            read => {
                self.bare |= read == Read::Understood;
                read
            }
        }
    }

    /// Tells what is still open.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        self.open.finish(context);
    }

    fn message(&mut self, context: &mut Context<'_>, decorations: Decorations<'_>, text: &[u8]) -> Read {
        let mut message = Message {
            decorations,
            subject: Subject::of(decorations.tags),
            text,
        };
        if text.is_empty() {
            return Read::Ignored;
        }
        let Some((id, rest)) = number(text) else {
            return self.without_number(context, message);
        };
        message.text = rest;
        match message.subject {
            Subject::Quiet => Read::Ignored,
            Subject::Phases if rest.starts_with(b"  ") => phases::line(self, context, id, message),
            Subject::PhaseStarts => phases::start(self, id),
            Subject::References => phases::reference(self, context, id, rest),
            _ => self.with_number(context, id, message),
        }
    }

    fn with_number(&mut self, context: &mut Context<'_>, id: u64, message: Message<'_>) -> Read {
        let text = message.text;
        let read = match text.first() {
            Some(b'P') if text.starts_with(b"Pause ") => pause::stopped(self, context, id, message),
            Some(b'C') if text.starts_with(b"Concurrent ") => pause::beside(self, context, id, message),
            Some(b'C') if text.starts_with(b"Coalescing and filling") => pause::beside(self, context, id, message),
            Some(b'Y' | b'y' | b'O') if text.get(1) == Some(&b':') => self.generation(context, id, message),
            Some(b'G' | b'M') if pause::is_cycle(text) => pause::cycle(self, context, id, message),
            Some(b'U') if text.starts_with(b"User=") => self.open.cpu(id, text),
            Some(b'-' | b'D' | b'A') if ages::is_part(text) => ages::line(self, context, id, text),
            Some(b'T') if text.starts_with(b"To-space exhausted") => {
                self.open.draft(context, id).pause.troubles.evacuation_failed = true;
                Read::Understood
            }
            _ => areas::line(self, context, id, text),
        };
        if read != Read::Unknown {
            return read;
        }
        match message.subject {
            Subject::Phases | Subject::Any => match phases::line(self, context, id, message) {
                Read::Unknown if message.subject == Subject::Any && is_quiet(text) => Read::Ignored,
                read => read,
            },
            Subject::Gc if !is_quiet(text) => Read::Unknown,
            _ => Read::Ignored,
        }
    }

    /// `Y: `, `y: ` or `O: ` of generational ZGC: the young collection of a major one, a minor one, the old one.
    fn generation(&mut self, context: &mut Context<'_>, id: u64, message: Message<'_>) -> Read {
        let inner = message.text[2..].trim_ascii_start();
        if inner.starts_with(b"Pause ") {
            self.found(context, Collector::GenerationalZ);
            pause::stopped(self, context, id, message)
        } else if inner.starts_with(b"Concurrent ") {
            pause::beside(self, context, id, message)
        } else if inner.starts_with(b"Young Generation") || inner.starts_with(b"Old Generation") {
            match areas::section(self, context, id, inner) {
                Read::Unknown => pause::cycle(self, context, id, message),
                read => read,
            }
        } else {
            match areas::line(self, context, id, inner) {
                Read::Unknown => Read::Ignored,
                read => read,
            }
        }
    }

    fn without_number(&mut self, context: &mut Context<'_>, message: Message<'_>) -> Read {
        match message.subject {
            Subject::Safepoint => match safepoint::line(self, context, message) {
                Read::Unknown => Read::Ignored,
                read => read,
            },
            Subject::Quiet => Read::Ignored,
            Subject::Stats => pause::pacing(self, context, message),
            Subject::Detail => match facts::line(self, context, message) {
                Read::Unknown => Read::Ignored,
                read => read,
            },
            Subject::Any => match safepoint::line(self, context, message) {
                Read::Unknown => self.gc_without_number(context, message),
                read => read,
            },
            _ => self.gc_without_number(context, message),
        }
    }

    fn gc_without_number(&mut self, context: &mut Context<'_>, message: Message<'_>) -> Read {
        match facts::line(self, context, message) {
            Read::Unknown => match pause::stall(self, context, message) {
                Read::Unknown if is_quiet(message.text) || message.subject == Subject::Phases => Read::Ignored,
                read => read,
            },
            read => read,
        }
    }

    /// When the line was printed. If the uptime fell, another JVM writes, which is told.
    fn at(&mut self, context: &mut Context<'_>, message: &Message<'_>) -> Stamp {
        let stamp = message.stamp();
        if let Some(uptime) = stamp.uptime_ns
            && context.clock.restarted(uptime)
        {
            self.restart(context);
        }
        stamp
    }

    fn restart(&mut self, context: &mut Context<'_>) {
        self.open.finish(context);
        context.tell(Event::Restart);
        *self = Self {
            open: std::mem::take(&mut self.open),
            bare: self.bare,
            ..Self::default()
        };
    }

    /// A line told the collector. Only the first to tell counts, but a generational mode shows later than its name.
    fn found(&mut self, context: &mut Context<'_>, collector: Collector) {
        let news = matches!(
            (self.collector, collector),
            (None, _)
                | (Some(Collector::Z), Collector::GenerationalZ)
                | (Some(Collector::Shenandoah), Collector::GenerationalShenandoah)
        );
        if news {
            self.collector = Some(collector);
            context.tell(Event::Fact(Fact::Collector(collector)));
        }
    }
}

/// The number of `GC(12) ` and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = whole(text.strip_prefix(b"GC(")?)?;
    let rest = rest.strip_prefix(b")")?;
    Some((id, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// Messages that are known and say nothing that is asked for, where no tags tell so.
fn is_quiet(text: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[
        b"AdaptiveSize",
        b"Address Space",
        b"Alignments:",
        b"Allocated:",
        b"Attempt",
        b"Available",
        b"Average",
        b"Base_footprint",
        b"CDS archive",
        b"Cancelling",
        b"Capacity:",
        b"CardTable entry size",
        b"Cleaned string",
        b"Clearing All SoftReferences",
        b"Collector:",
        b"Compressed class space",
        b"Compressed Oops:",
        b"Consider -XX",
        b"Contention:",
        b"Critical:",
        b"Desired",
        b"Discovered references",
        b"Encoding Range",
        b"Encountered references",
        b"Enqueued references",
        b"Expand the heap",
        b"Failed to allocate",
        b"Final:",
        b"Free:",
        b"Free headroom",
        b"GC STATISTICS",
        b"Good progress",
        b"Heap Backing",
        b"Heap Min Capacity",
        b"Heap Initial Capacity",
        b"Heap Region Count",
        b"Heap backed",
        b"Heuristics",
        b"Humongous Object Threshold",
        b"Initial Capacity",
        b"Initialize mark stack",
        b"Klass ",
        b"Large Page",
        b"Live_space",
        b"Load:",
        b"MMU",
        b"Major Collection:",
        b"Mark:",
        b"Mark Stack Usage",
        b"Medium Page",
        b"Memory:",
        b"Metaspace:",
        b"Min Capacity",
        b"Min heap equals",
        b"Minor Collection:",
        b"Minor_pause",
        b"NMethods:",
        b"NUMA Support",
        b"Narrow klass",
        b"Old eden_size",
        b"Old Generation:",
        b"PSAdaptiveSizePolicy",
        b"PSYoungGen::",
        b"Pacer for",
        b"Page Size",
        b"Periodic GC",
        b"Phantom:",
        b"Phase:",
        b"Pre-mapping",
        b"Pre-touch",
        b"Protection zone",
        b"Relocation Stall",
        b"Relocation:",
        b"Reserve:",
        b"Reserved Space",
        b"Runtime Workers",
        b"Soft Max Capacity",
        b"Soft:",
        b"Start GC cycle",
        b"Subphase:",
        b"System:",
        b"TLAB",
        b"Total",
        b"Trigger",
        b"Uncommit",
        b"UseCompressedClassPointers",
        b"Using ",
        b"Weak:",
        b"Workers:",
        b"Young Generation:",
        b"Young generation size",
        b"capacities are the right sizes",
        b"eden:",
        b"from:",
        b"minor pause",
        b"old_gen_capacity",
        b"to:",
        b"===",
        b"---",
    ];
    let text = text.trim_ascii_start();
    STARTS.iter().any(|start| text.starts_with(start))
}

/// The line by which a JVM, or a thread of it, says that memory is out; not the traces that repeat it as a cause.
fn out_of_memory(text: &[u8]) -> bool {
    memmem::find(text, b"java.lang.OutOfMemoryError").is_some() && memmem::find(text, b"Caused by:").is_none()
}
