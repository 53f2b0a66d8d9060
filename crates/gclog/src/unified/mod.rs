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
mod humongous;
mod noise;
mod open;
#[cfg(test)]
mod parsed;
mod pause;
mod phases;
mod references;
mod safepoint;
mod statistics;
mod tags;
mod trigger;

use memchr::memchr_iter;
use memchr::memmem;

use crate::account::Read;
use crate::context::Context;
use crate::event::{Ages, Collector, Event, Fact, Kind, Stamp};
use crate::names::Name;
use crate::number::whole;
use decorations::Subject;
pub(crate) use decorations::{Decorations, Reader, is_first};
use noise::{is_quiet, is_second_line};
use open::Open;

/// What the lines so far have left open.
#[derive(Debug, Default)]
pub(crate) struct Unified {
    open: Open,
    safepoint: safepoint::Region,
    /// The collector, once a line names it.
    collector: Option<Collector>,
    /// Bytes of a G1 region, once a line contains them.
    region_bytes: Option<u64>,
    /// The same, if no collection began since: it may be of the JVM whose header is being read.
    fresh_region_bytes: Option<u64>,
    /// The name of the collector was printed, as a JVM does once when it starts, or there was a collection.
    has_begun: bool,
    /// Number of the last young or full collection, for logs without an uptime.
    last_id: Option<u64>,
    /// Why Shenandoah begins its next cycle, as it says before it.
    trigger: Option<Name>,
    /// The age table of the young collection of ZGC that is under way.
    ages: Ages,
    /// Allocation pacing of Shenandoah follows, thread by thread.
    pacing: bool,
    /// Messages came without decorations.
    bare: bool,
    /// When the JVM started, where the log counts nanoseconds from the start of the machine (`timenanos` alone).
    zero_ns: u64,
}

/// A message with what was printed before it.
#[derive(Clone, Copy)]
struct Message<'a> {
    stamp: Stamp,
    subject: Subject,
    /// The level is debug or trace.
    fine: bool,
    /// Its uptime was printed in nanoseconds.
    nanos: bool,
    /// Without `GC(12) `; spaces before it are kept, as phases are indented.
    text: &'a [u8],
}

impl Unified {
    /// Reads a line with decorations, with what the reader found of them; nothing if it has none.
    pub(crate) fn decorated(
        &mut self,
        context: &mut Context<'_>,
        text: &[u8],
        found: Option<(Decorations, &[u8])>,
    ) -> Option<Read> {
        if let Some((decorations, message)) = found {
            return Some(self.message(context, decorations, message));
        }
        match text {
            [b'[', ..] => {}
            [b'G', b'C', b'(', ..] => {
                self.bare = true;
                return Some(self.message(context, Decorations::default(), text));
            }
            _ => return None,
        }
        // JDK 25 goes on with a message of several lines below the width of its decorations.
        let goes_on = text
            .strip_prefix(b"[ ")
            .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"]"));
        goes_on.then_some(Read::Ignored)
    }

    /// Reads a line that is nothing else: a message without decorations, or one behind a text that something else
    /// has put before it: a wrapper that is unknown, or output of the application without a line end.
    pub(crate) fn undecorated(
        &mut self,
        context: &mut Context<'_>,
        reader: &mut Reader,
        text: &[u8],
    ) -> Read {
        /// Groups that are tried as the first decoration.
        const TRIES: usize = 8;
        for at in memchr_iter(b'[', text)
            .skip_while(|at| *at == 0)
            .take(TRIES)
        {
            if let Some((decorations, message)) = reader.read(&text[at..])
                && (message.starts_with(b"GC(")
                    || !matches!(decorations.subject, Subject::Any | Subject::Quiet))
            {
                return self.message(context, decorations, message);
            }
        }
        if is_second_line(text) {
            return Read::Ignored;
        }
        let message = Message {
            stamp: Stamp::default(),
            subject: Subject::Any,
            fine: false,
            nanos: false,
            text,
        };
        match self.without_number(context, message) {
            Read::Ignored if !self.bare => Read::Unknown,
            Read::Unknown if out_of_memory(text) => {
                context.tell(Event::OutOfMemory {
                    line: context.line,
                    at: Stamp::default(),
                });
                Read::Understood
            }
            read => {
                self.bare |= read == Read::Understood;
                read
            }
        }
    }

    /// What has ended and was not reported yet.
    pub(crate) fn waiting(&self) -> Option<Event<'_>> {
        self.open.waiting()
    }

    /// Tells what is still open.
    pub(crate) fn finish(&mut self, context: &mut Context<'_>) {
        self.open.finish(context);
    }

    fn message(
        &mut self,
        context: &mut Context<'_>,
        decorations: Decorations,
        text: &[u8],
    ) -> Read {
        let mut message = Message {
            stamp: decorations.stamp,
            subject: decorations.subject,
            fine: decorations.fine,
            nanos: decorations.nanos,
            text,
        };
        if self.zero_ns > 0 {
            let uptime = &mut message.stamp.uptime_ns;
            *uptime = uptime.map(|ns| ns.saturating_sub(self.zero_ns));
        }
        if text.is_empty() {
            return Read::Ignored;
        }
        let Some((id, rest)) = number(text) else {
            return self.without_number(context, message);
        };
        message.text = rest;
        match message.subject {
            Subject::Quiet => Read::Ignored,
            Subject::Ergonomics => areas::pacer(self, context, id, rest),
            Subject::Phases if rest.starts_with(b"  ") => phases::line(self, context, id, message),
            Subject::PhaseStarts => phases::start(self, id),
            Subject::References => phases::reference(self, context, id, rest),
            Subject::Humongous => humongous::line(self, context, message).or_ignored(),
            _ => self.with_number(context, id, message),
        }
    }

    fn with_number(&mut self, context: &mut Context<'_>, id: u64, message: Message<'_>) -> Read {
        let text = message.text;
        let read = match text.first() {
            Some(b'P') if text.starts_with(b"Pause ") => pause::stopped(self, context, id, message),
            Some(b'C') if text.starts_with(b"Concurrent ") => {
                pause::beside(self, context, id, message)
            }
            Some(b'C') if text.starts_with(b"Coalescing and filling") => {
                pause::beside(self, context, id, message)
            }
            Some(b'Y' | b'y' | b'O') if text.get(1) == Some(&b':') => {
                self.generation(context, id, message)
            }
            Some(b'G' | b'M') if pause::is_cycle(text) => pause::cycle(self, context, id, message),
            Some(b'U') if text.starts_with(b"User=") => self.open.cpu(id, text),
            Some(b'L' | b'D' | b'H') if humongous::is_object(text) => {
                humongous::line(self, context, message)
            }
            Some(b'-' | b'D' | b'A') if ages::is_part(text) => ages::line(self, context, id, text),
            Some(b'T') if text.starts_with(b"To-space exhausted") => {
                self.open
                    .draft(context, id)
                    .pause
                    .troubles
                    .evacuation_failed = true;
                Read::Understood
            }
            Some(b'P') if text.starts_with(b"Pacer for Mark. ") => {
                areas::pacer(self, context, id, text)
            }
            Some(b'S' | b'W' | b'F' | b'P' | b'D') if references::is_part(text) => {
                references::line(context, text)
            }
            Some(b'C' | b'D') if text.ends_with(b" upgrading to Full GC") => {
                self.open.draft(context, id).pause.kind = Kind::Full;
                Read::Understood
            }
            _ => areas::line(self, context, id, text),
        };
        if read != Read::Unknown {
            return read;
        }
        match message.subject {
            Subject::Phases | Subject::Any => match phases::line(self, context, id, message) {
                // Only HotSpot numbers its lines so. Without tags they may be of any of its hundreds of details.
                Read::Unknown if text.is_ascii() => Read::Ignored,
                read => read,
            },
            Subject::Gc if !message.fine && !is_quiet(text) => Read::Unknown,
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
            self.found(context, Collector::GenerationalZ);
            pause::beside(self, context, id, message)
        } else if inner.starts_with(b"Young Generation") || inner.starts_with(b"Old Generation") {
            match areas::section(self, context, id, inner) {
                Read::Unknown => pause::cycle(self, context, id, message),
                read => read,
            }
        } else if let Some(read) = ages::beside(self, inner) {
            read
        } else if references::is_part(inner) {
            references::line(context, inner)
        } else {
            match areas::line(self, context, id, inner) {
                Read::Unknown => Read::Ignored,
                read => read,
            }
        }
    }

    fn without_number(&mut self, context: &mut Context<'_>, message: Message<'_>) -> Read {
        match message.subject {
            Subject::Safepoint => safepoint::line(self, context, message).or_ignored(),
            Subject::Humongous => humongous::line(self, context, message).or_ignored(),
            Subject::Quiet | Subject::Ergonomics => Read::Ignored,
            Subject::Stats => match statistics::line(self, context, message) {
                Read::Unknown => pause::pacing(self, context, message),
                read => read,
            },
            Subject::Detail => self.gc_without_number(context, message).or_ignored(),
            Subject::Any => match safepoint::line(self, context, message) {
                Read::Unknown => self.gc_without_number(context, message),
                read => read,
            },
            _ => self.gc_without_number(context, message),
        }
    }

    fn gc_without_number(&mut self, context: &mut Context<'_>, message: Message<'_>) -> Read {
        for reader in [
            facts::line,
            pause::stall,
            trigger::line,
            statistics::line,
            humongous::line,
        ] {
            match reader(self, context, message) {
                Read::Unknown => {}
                read => return read,
            }
        }
        if areas::metaspace(self, message.text) == Read::Understood {
            return Read::Understood;
        }
        let fine = message.fine && message.subject != Subject::Any;
        match areas::block(self, context, message.text) {
            Read::Unknown
                if fine || message.subject == Subject::Phases || is_quiet(message.text) =>
            {
                Read::Ignored
            }
            read => read,
        }
    }

    /// When the line was printed. If the uptime fell, another JVM writes, which is reported.
    fn at(&mut self, context: &mut Context<'_>, message: &Message<'_>) -> Stamp {
        let stamp = message.stamp;
        if let Some(uptime) = stamp.uptime_ns
            && context.clock.restarted(uptime)
        {
            self.restart(context);
        }
        stamp
    }

    /// A JVM starts with this message. Nanoseconds that are many by then count from another start, that of the machine: from
    /// here on they count from this one.
    fn starts(&mut self, context: &mut Context<'_>, message: &mut Message<'_>) {
        /// A JVM that reads its classes from a slow disk may take a second; a guess with room.
        const LATE_NS: u64 = 60_000_000_000;
        let uptime_ns = message.stamp.uptime_ns.unwrap_or(0);
        if message.nanos && (self.zero_ns > 0 || uptime_ns > LATE_NS) {
            self.zero_ns += uptime_ns;
            message.stamp.uptime_ns = Some(0);
            context.clock.restart(None);
        }
    }

    fn restart(&mut self, context: &mut Context<'_>) {
        self.open.finish(context);
        context.tell(Event::Restart);
        self.forget();
    }

    /// Forgets what belongs to one JVM. Nothing may be open.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            open: std::mem::take(&mut self.open),
            region_bytes: self.fresh_region_bytes,
            bare: self.bare,
            zero_ns: self.zero_ns,
            ..Self::default()
        };
    }

    fn is_shenandoah(&self) -> bool {
        matches!(
            self.collector,
            Some(Collector::Shenandoah | Collector::GenerationalShenandoah)
        )
    }

    /// A line named the collector. Only the first one counts, but a generational mode shows later than its name.
    fn found(&mut self, context: &mut Context<'_>, collector: Collector) {
        let news = matches!(
            (self.collector, collector),
            (None, _)
                | (Some(Collector::Z), Collector::GenerationalZ)
                | (
                    Some(Collector::Shenandoah),
                    Collector::GenerationalShenandoah
                )
        );
        if news {
            self.collector = Some(collector);
            context.tell(Event::Fact(Fact::Collector(collector)));
        }
    }
}

/// The number of the collection whose pause begins or has ended with this message.
pub(crate) fn pause_of(message: &[u8]) -> Option<u64> {
    let (id, text) = number(message)?;
    let of_generation = text.get(1..3) == Some(b": ");
    let text = if of_generation { &text[3..] } else { text };
    text.starts_with(b"Pause ").then_some(id)
}

/// The number of `GC(12) ` and what follows it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = whole(text.strip_prefix(b"GC(")?)?;
    let rest = rest.strip_prefix(b")")?;
    Some((id, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// The line by which a JVM, or a thread of it, says that memory is out; not the traces that repeat it as a cause.
fn out_of_memory(text: &[u8]) -> bool {
    memmem::find(text, b"java.lang.OutOfMemoryError").is_some()
        && memmem::find(text, b"Caused by:").is_none()
}

#[cfg(test)]
mod tests {
    use super::parsed::{parsed, read};

    const PAUSE: &str = "GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.524ms";

    #[test]
    fn a_message_is_found_behind_what_others_put_before_it() {
        for line in [
            PAUSE.to_owned(),
            format!("[0.512s][info][gc] {PAUSE}"),
            format!("2026-11-22 03:00:00 stdout F [0.512s][info][gc] {PAUSE}"),
            format!("Nov 22 03:00:00 host java[4711]: [0.512s][info][gc] {PAUSE}"),
            format!("no line end[0.512s][info][gc] {PAUSE}"),
            format!(
                r#"{{"log":"[0.512s][info][gc] {}\n","stream":"stdout"}}"#,
                PAUSE.replace('>', r"\u003e")
            ),
        ] {
            let parsed = parsed(&line);
            assert_eq!(
                parsed.titles(),
                ["Pause Young (Normal) (G1 Evacuation Pause)"],
                "{line}"
            );
            assert_eq!(parsed.pauses[0].duration_ns, Some(3_524_000), "{line}");
        }
    }

    #[test]
    fn lines_of_the_application_are_unknown() {
        let (parsed, account) = read(
            "[main] INFO  org.example.Service - started in 12 ms\n\
             [info] Compiling 3 sources\n\
             [2026-11-22T03:00:00.000+0000] request took 5ms\n",
        );
        assert_eq!((parsed.pauses.len(), parsed.others.len()), (0, 0));
        assert_eq!(account.unknown.lines, 3);
    }

    #[test]
    fn another_jvm_is_reported_by_uptime_by_number_or_by_header() {
        let pause = |stamp: &str, id: u32| {
            format!("{stamp} GC({id}) Pause Young (Allocation Failure) 4M->1M(9M) 1.000ms\n")
        };
        let date = "[2026-11-22T03:00:00.000+0000]";
        for log in [
            pause("[5.0s]", 7) + &pause("[6.0s]", 8) + &pause("[0.5s]", 0),
            pause(date, 20) + &pause(date, 21) + &pause(date, 0),
            pause(date, 1) + &pause(date, 2) + date + " Using Serial\n" + &pause(date, 0),
            // The clock does not tell: it goes on, or stands still.
            pause("[1.0s]", 1) + "[4.0s] Using Serial\n" + &pause("[5.0s]", 0),
            pause("[0.1s]", 1) + "[0.1s] Using Serial\n" + &pause("[0.1s]", 0),
            "[0.1s] Using Serial\n[0.1s] Using Serial\n".to_owned() + &pause("[0.1s]", 0),
        ] {
            let (parsed, _) = read(&log);
            let restarts = parsed.others.iter().filter(|other| *other == "Restart");
            assert_eq!(restarts.count(), 1, "{log}");
        }
    }

    #[test]
    fn nanoseconds_since_the_machine_started_count_from_the_start_of_the_jvm() {
        let jvm = |began: u64| {
            let at = |ms: u64| format!("[{}ns][gc] ", began + ms * 1_000_000);
            let pause = "Pause Young (Normal) (G1 Evacuation Pause) 9M->4M(256M) 1.000ms\n";
            [
                at(0) + "Version: 25\n" + &at(3) + "Using G1\n",
                at(503) + "GC(0) " + pause + &at(703) + "GC(1) " + pause,
            ]
            .concat()
        };
        let began = |log: &str| {
            let (parsed, _) = read(log);
            let began = parsed
                .pauses
                .iter()
                .map(|one| one.began.uptime_ns.unwrap() / 1_000_000);
            let restarts = parsed
                .others
                .iter()
                .filter(|other| *other == "Restart")
                .count();
            (began.collect::<Vec<_>>(), restarts)
        };
        let machine = 17_144_417_868_758;
        assert_eq!(began(&jvm(machine)), (vec![499, 699], 0));
        let two = jvm(machine) + &jvm(machine + 5_000_000_000);
        assert_eq!(began(&two), (vec![499, 699, 499, 699], 1));
        // `uptimenanos`
        assert_eq!(began(&jvm(20_000_000)), (vec![522, 722], 0));
    }

    #[test]
    fn what_a_header_tells_of_regions_is_of_the_jvm_that_prints_it() {
        let collection = |at: &str| {
            format!(
                "[{at}][gc,heap] GC(0) Eden regions: 2->0(10)\n\
                 [{at}][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 9M->4M(256M) 3.524ms\n"
            )
        };
        let header = |at: &str, size: &str| {
            format!("[{at}][gc,heap] Heap region size: {size}\n[{at}][gc] Using G1\n")
        };
        let log = [
            header("0.1s", "4M"),
            collection("0.2s"),
            header("0.2s", "1M"),
            collection("0.3s"),
        ]
        .concat();
        let eden = |pause: &crate::event::Pause| pause.areas.get(crate::Area::Eden).before;
        let (parsed, _) = read(&log);
        let sizes: Vec<_> = parsed.pauses.iter().map(eden).collect();
        assert_eq!(sizes, [Some(8 << 20), Some(2 << 20)]);
    }

    #[test]
    fn details_without_tags_are_ignored_and_damage_is_not() {
        let (_, account) = read(
            "GC(1) SMC: something of no use\n\
             [0.1s][debug][gc] Tenured: something of no use\n\
             [                  ]   and its second line\n\
             GC(1) Pa§se Young 4M->1M\n",
        );
        assert_eq!((account.ignored.lines, account.unknown.lines), (3, 1));
    }
}
