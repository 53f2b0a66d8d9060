//! The three lines that JDK 7 and 8 print at the start of a log and of every file of a rotated set.
//!
//! A header in the midst may be of the same JVM, which went on to another file, or of another one. Only the stamp behind
//! it says so; until then its facts are kept back, so that they come after `Restart`.

use memchr::memmem;

use super::Preunified;
use super::cursor::Cursor;
use crate::account::Read;
use crate::context::Context;
use crate::event::{Collector, Event, Fact};

/// A fact that waits.
#[derive(Debug)]
enum Kept {
    Version(String),
    Flags(String),
    Other(Fact<'static>),
}

/// What is known of headers, and of whose they may be.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// Facts that may be another JVM's: the next stamp says.
    kept: Vec<Kept>,
    /// Of the last header.
    version: Option<String>,
    /// There was something of this JVM besides its header.
    pub(super) has_events: bool,
    /// A line says that a file of a rotated set begins.
    rotated: bool,
}

/// Facts that wait at most; a header has some ten.
const MOST: usize = 64;

/// Flags that choose a collector.
const COLLECTORS: &[(&str, Collector)] = &[
    ("UseSerialGC", Collector::Serial),
    ("UseParallelGC", Collector::Parallel),
    ("UseParallelOldGC", Collector::Parallel),
    ("UseConcMarkSweepGC", Collector::Cms),
    ("UseG1GC", Collector::G1),
    ("UseShenandoahGC", Collector::Shenandoah),
];

impl Preunified {
    /// A line of a header. Nothing if it is none.
    pub(super) fn header(&mut self, context: &mut Context<'_>, rest: &[u8]) -> Option<Read> {
        // `2017-04-16 10:00:56 GC log file created /var/log/gc.log.3`.
        if rest[0].is_ascii_digit() {
            let rotation =
                rest.get(10) == Some(&b' ') && memmem::find(rest, b" GC log file ").is_some();
            self.headers.rotated |= rotation;
            return rotation.then_some(Read::Ignored);
        }
        if let Some(flags) = rest.strip_prefix(b"CommandLine flags: ") {
            self.flags(context, text(flags.trim_ascii()));
            return Some(Read::Understood);
        }
        if let Some(memory) = rest.strip_prefix(b"Memory: ") {
            return self.memory(context, memory);
        }
        // `OpenJDK 64-Bit Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), built on ...`.
        if !rest.starts_with(b"Java HotSpot") && !rest.starts_with(b"OpenJDK") {
            return None;
        }
        let jre = memmem::find(rest, b" JRE (")?;
        let mut cursor = Cursor::new(rest);
        cursor.skip(jre + b" JRE (".len());
        let version = text(cursor.bracket()?);
        // Only into the next file of a set is a header printed again, and a line before it says so. If it went missing,
        // the version may be another one, or the next uptime lower.
        let rotated = std::mem::take(&mut self.headers.rotated);
        let another = self
            .headers
            .version
            .as_deref()
            .is_some_and(|known| known != version);
        if self.headers.has_events && (!rotated || another) {
            self.restart(context);
            context.clock.restart(None);
        } else {
            context.clock.header();
        }
        self.headers.version = Some(version.to_owned());
        let wide = memmem::find(&rest[..jre], b"64-Bit").is_some();
        self.word = if wide { 8 } else { 4 };
        self.keep(context, Kept::Version(version.to_owned()));
        Some(Read::Understood)
    }

    fn flags(&mut self, context: &mut Context<'_>, flags: &str) {
        self.keep(context, Kept::Flags(flags.to_owned()));
        for flag in flags.split_ascii_whitespace() {
            let Some(flag) = flag.strip_prefix("-XX:") else {
                continue;
            };
            if let Some(name) = flag.strip_prefix('+') {
                let collector = COLLECTORS.iter().find(|(other, _)| *other == name);
                if let Some((_, collector)) = collector {
                    self.keep(context, Kept::Other(Fact::Collector(*collector)));
                }
                continue;
            }
            let Some((name, value)) = flag.split_once('=') else {
                continue;
            };
            let Ok(value) = value.parse() else {
                continue;
            };
            let fact = match name {
                "MaxHeapSize" => Fact::MaxHeap(value),
                "ParallelGCThreads" => Fact::ParallelWorkers(value),
                "ConcGCThreads" => Fact::ConcurrentWorkers(value),
                "G1HeapRegionSize" => Fact::RegionSize(value),
                _ => continue,
            };
            self.keep(context, Kept::Other(fact));
        }
    }

    /// `4k page, physical 24684092k(17265556k free), swap 0k(0k free)`.
    fn memory(&mut self, context: &mut Context<'_>, memory: &[u8]) -> Option<Read> {
        let mut cursor = Cursor::new(memory);
        cursor.integer()?;
        cursor.eat(b"k page, physical ").then_some(())?;
        let physical = cursor.integer()?;
        cursor.eat(b"k(").then_some(())?;
        self.keep(
            context,
            Kept::Other(Fact::Memory(physical.saturating_mul(1024))),
        );
        if let Some(at) = memmem::find(cursor.rest(), b"swap ") {
            cursor.skip(at + b"swap ".len());
            if let Some(swap) = cursor.integer() {
                self.keep(context, Kept::Other(Fact::Swap(swap.saturating_mul(1024))));
            }
        }
        Some(Read::Understood)
    }

    /// Tells a fact, or keeps it until it is known whose it is.
    fn keep(&mut self, context: &mut Context<'_>, fact: Kept) {
        if self.headers.kept.len() < MOST {
            self.headers.kept.push(fact);
        }
        if !self.headers.has_events {
            self.tell_kept(context);
        }
    }

    /// Tells what was kept back.
    pub(super) fn tell_kept(&mut self, context: &mut Context<'_>) {
        if self.headers.kept.is_empty() {
            return;
        }
        for kept in std::mem::take(&mut self.headers.kept) {
            match kept {
                Kept::Version(version) => context.tell(Event::Fact(Fact::Version(&version))),
                Kept::Flags(flags) => context.tell(Event::Fact(Fact::Flags(&flags))),
                Kept::Other(Fact::Collector(collector)) => self.collector(context, collector),
                Kept::Other(Fact::RegionSize(bytes)) => self.region_size(context, bytes),
                Kept::Other(fact) => context.tell(Event::Fact(fact)),
            }
        }
    }
}

/// As text; up to the first byte that is none.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_lines::event_lines;

    const HEADER: &str = "OpenJDK 64-Bit Server VM (25.504-b01) for linux-amd64 JRE (1.8.0_504-b01), built on Aug 20 2026\n\
        Memory: 4k page, physical 1024k(512k free), swap 0k(0k free)\n\
        CommandLine flags: -XX:MaxHeapSize=134217728 -XX:+UseG1GC \n";

    #[test]
    fn a_header_is_reported_as_facts() {
        assert_eq!(
            event_lines(HEADER),
            [
                "Fact(Version(\"1.8.0_504-b01\"))",
                "Fact(Memory(1048576))",
                "Fact(Swap(0))",
                "Fact(Flags(\"-XX:MaxHeapSize=134217728 -XX:+UseG1GC\"))",
                "Fact(MaxHeap(134217728))",
                "Fact(Collector(G1))",
            ]
        );
    }

    #[test]
    fn facts_of_the_next_jvm_come_after_the_restart() {
        let log = format!(
            "9.000: [GC 2K->1K(9K), 0.1000000 secs]\n{HEADER}1.000: [GC 2K->1K(9K), 0.1000000 secs]\n"
        );
        let lines = event_lines(&log);
        assert_eq!(lines[1], "Restart");
        assert_eq!(lines[2], "Fact(Version(\"1.8.0_504-b01\"))");
        assert!(lines[8].starts_with("GC Young at 1000 ms"));
        // Whatever the clock says.
        let log = log.replace("\n1.000", "\n9.100");
        assert_eq!(event_lines(&log)[1], "Restart");
    }

    #[test]
    fn in_the_next_file_of_a_set_another_version_or_a_lower_uptime_is_another_jvm() {
        let pause = |at: &str| format!("{at}: [GC 2K->1K(9K), 0.1000000 secs]\n");
        let rotation = "2026-11-21 11:37:30 GC log file created gc.log.1\n";
        let restarts = |header: &str, at: &str| {
            let log = [&pause("9.000"), rotation, header, &pause(at)].concat();
            let lines = event_lines(&[HEADER, &log].concat());
            lines.iter().filter(|line| *line == "Restart").count()
        };
        assert_eq!(restarts(HEADER, "9.500"), 0);
        assert_eq!(restarts(HEADER, "0.500"), 1);
        let newer = HEADER.replace("504-b01", "512-b07");
        assert_eq!(restarts(&newer, "9.500"), 1);
    }

    #[test]
    fn without_uptimes_a_header_in_the_midst_is_another_jvm_unless_a_set_was_rotated() {
        let pause = "2026-11-21T11:37:17.293+0000: [GC 2K->1K(9K), 0.1000000 secs]\n";
        let restarts = |log: &str| {
            event_lines(log)
                .iter()
                .filter(|line| *line == "Restart")
                .count()
        };
        assert_eq!(restarts(&format!("{HEADER}{pause}{HEADER}{pause}")), 1);
        let rotation = "2026-11-21 11:37:30 GC log file created gc.log.1\n";
        assert_eq!(
            restarts(&format!("{HEADER}{pause}{rotation}{HEADER}{pause}")),
            0
        );
    }
}
