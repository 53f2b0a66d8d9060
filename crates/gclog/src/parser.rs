//! Bytes to events: cuts lines, takes off what others have put around them, decides for each of them which grammar it has,
//! and keeps the account.

use crate::account::{Account, Read, Sample, Share};
use crate::clock::Clock;
use crate::context::{Context, Teller};
use crate::event::Event;
use crate::jvms::{Jvm, Jvms};
use crate::lines::{Line, Lines};
use crate::names::Names;
use crate::number::whole;
use crate::preunified::Preunified;
use crate::unified::{Decorations, Reader, Unified};
use crate::wrapper::{Message, Unwrapped, Wrapper, may_be_wrapped};

/// Reads a GC log in pieces. Its memory does not grow with the log.
#[derive(Debug, Default)]
pub struct Parser {
    lines: Lines,
    wrapper: Wrapper,
    inner: Inner,
}

/// Everything but the cutting and unwrapping of lines, so that both can be borrowed at once.
#[derive(Debug, Default)]
struct Inner {
    account: Account,
    line: u64,
    names: Names,
    reader: Reader,
    jvms: Jvms,
    teller: Teller,
}

impl Parser {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the next piece of the log, of any length, and passes its events to the sink. An event may come later
    /// than its line: a pause is emitted when nothing more about it can follow.
    pub fn push(&mut self, piece: &[u8], sink: &mut impl FnMut(&Names, Event<'_>)) {
        let Self {
            lines,
            wrapper,
            inner,
        } = self;
        lines.push(piece, |line| inner.line(wrapper, line, sink));
    }

    /// Everything pushed from here on is of another JVM; the caller knows this from the files, and the text need not show it.
    /// Call it at the end of a line.
    pub fn restart(&mut self, sink: &mut impl FnMut(&Names, Event<'_>)) {
        let inner = &mut self.inner;
        if inner.line == 0 {
            return;
        }
        inner.left(&mut self.wrapper, sink);
        let Inner {
            line,
            names,
            jvms,
            teller,
            ..
        } = inner;
        jvms.each(|jvm, is_now| {
            jvm.close(names, teller, *line, sink);
            let (unified, preunified, mut context) = jvm.parts(names, teller, *line, sink);
            preunified.forget();
            unified.forget();
            *context.clock = Clock::default();
            if is_now || *context.has_events {
                context.tell(Event::Restart);
            }
        });
    }

    /// Ends the log: emits events that are still open, and returns the account of all lines.
    pub fn finish(self, sink: &mut impl FnMut(&Names, Event<'_>)) -> Account {
        let (mut inner, mut wrapper) = (self.inner, self.wrapper);
        self.lines
            .finish(|line| inner.line(&mut wrapper, line, sink));
        inner.account.cut |= inner.left(&mut wrapper, sink);
        let Inner {
            account,
            line,
            mut names,
            mut jvms,
            mut teller,
            ..
        } = inner;
        jvms.each(|jvm, _| jvm.close(&mut names, &mut teller, line, sink));
        // The last one of all may be the first to tell that there are others.
        jvms.each(|jvm, _| {
            let (_, _, mut context) = jvm.parts(&mut names, &mut teller, line, sink);
            if context.teller.turns && *context.has_events {
                context.turn();
            }
        });
        account
    }

    /// The account of the lines so far, except parts of an unfinished line.
    pub fn account(&self) -> &Account {
        &self.inner.account
    }

    /// Lines so far, each with its end.
    pub fn lines(&self) -> u64 {
        self.inner.line
    }

    /// Events that have ended but are not emitted yet, because a line such as the CPU time of a pause may follow; with the name
    /// of the JVM if several interleave. For a live view of a log; [`Parser::push`] emits them later.
    pub fn waiting(&self) -> impl Iterator<Item = (Option<&str>, Event<'_>)> {
        let jvms = self.inner.jvms.all();
        let several = jvms
            .iter()
            .filter(|jvm| jvm.writer.has_events || jvm.waiting().is_some())
            .count()
            > 1;
        jvms.iter().filter_map(move |jvm| {
            let name = several.then_some(&*jvm.writer.name);
            Some((name, jvm.waiting()?))
        })
    }

    /// The names of the events so far.
    pub fn names(&self) -> &Names {
        &self.inner.names
    }
}

impl Inner {
    fn line(
        &mut self,
        wrapper: &mut Wrapper,
        line: Line<'_>,
        sink: &mut dyn FnMut(&Names, Event<'_>),
    ) {
        self.line += 1;
        self.account.nul_bytes += line.nul_bytes;
        self.account.ignored.bytes += line.nul_bytes;
        self.account.long_lines += u64::from(line.long);
        self.account.cut |= !line.ended;
        let mut share = Share {
            lines: 1,
            bytes: line.bytes,
        };
        let read = if may_be_wrapped(line.text) {
            match self.unwrapped(wrapper, &line, &mut share, sink) {
                Some(read) => read,
                None => return,
            }
        } else {
            self.text(b"", line.text, sink)
        };
        self.enter(read, line.text, share);
    }

    /// Reads a line that may be wrapped, with the parts of it that came before; nothing if it goes on.
    #[inline(never)]
    fn unwrapped(
        &mut self,
        wrapper: &mut Wrapper,
        line: &Line<'_>,
        share: &mut Share,
        sink: &mut dyn FnMut(&Names, Event<'_>),
    ) -> Option<Read> {
        match wrapper.take_off(line) {
            Unwrapped::Bare => Some(self.text(b"", line.text, sink)),
            Unwrapped::Message(message) => {
                share.lines += message.earlier.lines;
                share.bytes += message.earlier.bytes;
                Some(self.message(&message, sink))
            }
            Unwrapped::Part => None,
        }
    }

    /// Reads what there is of lines that lack their end; true if there is some.
    fn left(&mut self, wrapper: &mut Wrapper, sink: &mut dyn FnMut(&Names, Event<'_>)) -> bool {
        let mut some = false;
        while let Some(message) = wrapper.left() {
            let read = self.message(&message, sink);
            self.enter(read, message.text, message.earlier);
            some = true;
        }
        some
    }

    fn message(&mut self, message: &Message<'_>, sink: &mut dyn FnMut(&Names, Event<'_>)) -> Read {
        self.account.long_lines += u64::from(message.long);
        let mut read = Read::LeftOut;
        for text in message.text.split(|byte| *byte == b'\n') {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            read = read.max(self.text(message.from, text, sink));
        }
        read
    }

    /// Reads a line without what stands around it, which may have named its writer.
    fn text(
        &mut self,
        around: &[u8],
        text: &[u8],
        sink: &mut dyn FnMut(&Names, Event<'_>),
    ) -> Read {
        let Self {
            line,
            names,
            reader,
            jvms,
            teller,
            ..
        } = self;
        let found = if text.first() == Some(&b'[') {
            reader.read(text)
        } else {
            None
        };
        let names_nobody = found.is_none_or(|(decorations, _)| decorations.name_nobody());
        if !(around.is_empty() && names_nobody) {
            let is_read = jvms.hear(around, text, found.as_ref(), |jvm| {
                jvm.close(names, teller, *line, sink);
                if jvm.writer.has_events {
                    let (_, _, mut context) = jvm.parts(names, teller, *line, sink);
                    context.tell(Event::Restart);
                }
            });
            if !is_read {
                return Read::LeftOut;
            }
        }
        let (unified, preunified, mut context) = jvms.now().parts(names, teller, *line, sink);
        let read = read(unified, preunified, reader, &mut context, text, found);
        // Few lines end so, and this is asked of every one.
        match text {
            [.., b'g'] => self.of_an_asynchronous_log(text).unwrap_or(read),
            _ => read,
        }
    }

    #[cold]
    fn of_an_asynchronous_log(&mut self, text: &[u8]) -> Option<Read> {
        let all = &mut self.account.dropped_messages;
        *all = all.saturating_add(dropped(text)?);
        Some(Read::Understood)
    }

    /// Enters what lines turned out to be, with the text of the last of them as it stands in the log.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "every line comes through here, and as a call it costs 1.6 % of all instructions"
    )]
    fn enter(&mut self, read: Read, text: &[u8], share: Share) {
        let jvm = self.jvms.last();
        if jvm.clock.by_turns && self.account.by_turns.is_none() {
            self.account.by_turns = Some(self.line);
        }
        if self.account.begins_within.is_none() && jvm.preunified.lacks_beginning() {
            self.account.begins_within = Some(Sample::of(self.line, text));
        }
        self.account.enter(read, self.line, text, share);
    }
}

/// Decorations make a line unified. Without them only `GC(` does at once; anything else is asked of the old
/// grammars first, which have no line in common with undecorated unified ones but those of safepoints.
fn read(
    unified: &mut Unified,
    preunified: &mut Preunified,
    reader: &mut Reader,
    context: &mut Context<'_>,
    text: &[u8],
    found: Option<(Decorations, &[u8])>,
) -> Read {
    if text.is_empty() && !preunified.is_torn() {
        return Read::Ignored;
    }
    if let Some(read) = unified.decorated(context, text, found) {
        return read;
    }
    match preunified.line(context, text) {
        Read::Unknown => unified.undecorated(context, reader, text),
        read => read,
    }
}

/// `    83 messages dropped due to async logging`, behind decorations with blanks for tags (`logging/logAsyncWriter.cpp`).
fn dropped(text: &[u8]) -> Option<u64> {
    let number = text.strip_suffix(b" messages dropped due to async logging")?;
    let start = memchr::memrchr2(b' ', b']', number).map_or(0, |at| at + 1);
    match whole(&number[start..])? {
        (count, []) => Some(count),
        _ => None,
    }
}

impl Jvm {
    /// Its grammars, and what they share.
    fn parts<'a>(
        &'a mut self,
        names: &'a mut Names,
        teller: &'a mut Teller,
        line: u64,
        sink: &'a mut dyn FnMut(&Names, Event<'_>),
    ) -> (&'a mut Unified, &'a mut Preunified, Context<'a>) {
        let context = Context {
            names,
            clock: &mut self.clock,
            line,
            place: self.writer.place,
            writer: &self.writer.name,
            has_events: &mut self.writer.has_events,
            teller,
            sink,
        };
        (&mut self.unified, &mut self.preunified, context)
    }

    /// What has ended and was not reported yet.
    fn waiting(&self) -> Option<Event<'_>> {
        let waiting = self.unified.waiting();
        waiting.or_else(|| self.preunified.waiting())
    }

    /// Tells what is still open.
    fn close(
        &mut self,
        names: &mut Names,
        teller: &mut Teller,
        line: u64,
        sink: &mut dyn FnMut(&Names, Event<'_>),
    ) {
        let (unified, preunified, mut context) = self.parts(names, teller, line, sink);
        preunified.finish(&mut context);
        unified.finish(&mut context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knows_of_another_jvm_can_say_so() {
        let mut events = Vec::new();
        let mut sink = |_: &Names, event: Event<'_>| {
            events.push(match event {
                Event::Restart => None,
                Event::Pause(pause) => Some(pause.line),
                other => panic!("{other:?}"),
            });
        };
        let line = b"100.000: [GC 2K->1K(9K), 0.1000000 secs]\n";
        let mut parser = Parser::new();
        parser.restart(&mut sink);
        parser.push(line, &mut sink);
        parser.restart(&mut sink);
        parser.push(line, &mut sink);
        let account = parser.finish(&mut sink);
        assert_eq!(events, [Some(1), None, Some(2)]);
        assert_eq!(account.understood.lines, 2);
    }

    #[test]
    fn what_the_jvm_says_it_dropped_is_counted() {
        let log =
            b"[1.1s][info][gc] GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n\
            [1.2s][warning][                     ]     83 messages dropped due to async logging\n\
            362 messages dropped due to async logging\n x messages dropped due to async logging\n";
        let mut parser = Parser::new();
        parser.push(log, &mut |_, _| {});
        let account = parser.finish(&mut |_, _| {});
        assert_eq!(account.dropped_messages, 445);
        assert_eq!((account.understood.lines, account.unknown.lines), (3, 1));
    }

    #[test]
    fn what_has_ended_can_be_seen_before_it_is_reported() {
        let pause = "GC(0) Pause Young (Allocation Failure) 64M->23M(192M) 65.253ms\n";
        for log in [
            format!("[1.3s][info][gc] {pause}"),
            "1.235: [GC (Allocation Failure) 65536K->23552K(196608K), 0.0652530 secs]\n".to_owned(),
        ] {
            let mut pauses = 0;
            let mut sink = |_: &Names, event: Event<'_>| {
                pauses += u32::from(matches!(event, Event::Pause(_)));
            };
            let mut parser = Parser::new();
            parser.push(log.as_bytes(), &mut sink);
            let Some((None, Event::Pause(waiting))) = parser.waiting().next() else {
                panic!("nothing waits after {log}");
            };
            assert_eq!(waiting.duration_ns, Some(65_253_000));
            parser.push(b"[2.0s][info][gc] GC(1) Concurrent Mark Cycle\n", &mut sink);
            parser.finish(&mut sink);
            assert_eq!(pauses, 1);
        }
    }

    #[test]
    fn two_jvms_that_write_by_turns_are_distinguished_from_one_that_starts_anew() {
        let by_turns = |uptimes: &[u64]| {
            let mut parser = Parser::new();
            for at in uptimes {
                let line = format!("{at}.000: [GC 2K->1K(9K), 0.1000000 secs]\n");
                parser.push(line.as_bytes(), &mut |_: &Names, _: Event<'_>| {});
            }
            let account = parser.finish(&mut |_: &Names, _: Event<'_>| {});
            account.by_turns
        };
        // How many lines each writes in its turn.
        for (ours, theirs) in [(1, 1), (2, 2), (5, 1), (1, 5)] {
            let mut uptimes = Vec::new();
            for turn in 0..12 {
                let at = |started: u64| (0..).map(move |part| started + 60 * turn + part);
                uptimes.extend(at(5000).take(ours));
                uptimes.extend(at(100).take(theirs));
            }
            assert!(by_turns(&uptimes).is_some(), "{ours} and {theirs}");
        }
        let longer_each_time: Vec<u64> = (1..20)
            .flat_map(|run| (0..run * 10).map(|at| at * 3))
            .collect();
        assert_eq!(by_turns(&longer_each_time), None);
        // Of the past, and up to the present.
        let rows_of_the_past: Vec<u64> = (1..20)
            .flat_map(|batch| {
                [
                    batch * 100,
                    batch * 100 - 90,
                    batch * 100 - 50,
                    batch * 100 - 10,
                ]
            })
            .collect();
        assert_eq!(by_turns(&rows_of_the_past), None);
        let damaged: Vec<u64> = (1..200)
            .map(|at| if at % 10 == 0 { at * 3 % 7 * 1000 } else { at })
            .collect();
        assert_eq!(by_turns(&damaged), None);
    }
}
