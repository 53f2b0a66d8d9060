//! The output of `perf script`: a line per sample, then a line per frame, innermost first, then an empty line.
//!
//! ```text
//! java 4711/4712 123.456789:   10101010 cpu-clock:ppp:
//!         ffffffff8123abcd tcp_sendmsg+0x1d ([kernel.kallsyms])
//!             7f12345678ab int shop.Cart.add(int)+0x1b (/tmp/perf-4711.map)
//! ```
//!
//! Source: `tools/perf/builtin-script.c` and `tools/perf/util/evsel_fprintf.c` of Linux 6.18. Every sample counts one, whatever its period:
//! the sampler adjusts periods so that samples come at an even rate.

use rungwise_formats::folded::is_idle;
use rungwise_model::profile::{Event, FrameKind};

use crate::frame::Thread;
use crate::stacks::Stacks;

/// Events of one file that are kept apart; `perf record -e` with more is an odd wish.
const MOST_EVENTS: usize = 16;
/// From here on addresses are those of the kernel, on x86-64 and arm64.
const KERNEL: u64 = 0xffff_0000_0000_0000;
/// Frames of a sample that are kept while it is read; `perf record` takes 127 by default.
const DEEPEST: usize = 8192;

/// The samples so far.
#[derive(Debug, Default)]
pub(crate) struct Script {
    events: Vec<Sampled>,
    current: Option<Sample>,
    /// Samples of events beyond those that are kept apart.
    pub(crate) uncounted: u64,
}

/// Samples of one event.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    pub(crate) event: String,
    pub(crate) stacks: Stacks,
    pub(crate) samples: u64,
    /// Of these, samples of idle CPUs, which are in no stack.
    pub(crate) idle: u64,
}

#[derive(Debug)]
struct Sample {
    thread: Thread,
    event: usize,
    frames: Vec<(String, FrameKind)>,
}

/// A line that begins a sample.
#[derive(Debug, PartialEq, Eq)]
struct Head<'l> {
    command: &'l str,
    thread: u64,
    event: &'l str,
    /// What follows on the same line: a frame, where the samples have no stacks.
    rest: &'l str,
}

/// Whether a line begins a sample.
pub(crate) fn is_head(line: &str) -> bool {
    head(line).is_some()
}

/// `COMMAND PID/TID [CPU] SECONDS: PERIOD EVENT: REST`; the command may have spaces, pid, CPU and period may be missing.
fn head(line: &str) -> Option<Head<'_>> {
    if line.starts_with(['#']) {
        return None;
    }
    let is_stamp = |word: &str| {
        let stamp = word
            .strip_suffix(':')
            .and_then(|stamp| stamp.split_once('.'));
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        stamp.is_some_and(|(seconds, part)| digits(seconds) && digits(part))
    };
    let stamp = line.split_ascii_whitespace().find(|word| is_stamp(word))?;
    let at = stamp.as_ptr().addr() - line.as_ptr().addr();
    let (before, after) = (line[..at].trim(), line[at + stamp.len()..].trim());
    let (mut before, mut id) = before.rsplit_once([' ', '\t'])?;
    if id.starts_with('[') && id.ends_with(']') {
        (before, id) = before.trim_end().rsplit_once([' ', '\t'])?;
    }
    let thread = id.split_once('/').map_or(id, |(_, thread)| thread);
    let thread = thread.parse().ok()?;
    let after = match after.split_once([' ', '\t']) {
        Some((period, rest)) if period.bytes().all(|byte| byte.is_ascii_digit()) => {
            rest.trim_start()
        }
        _ => after,
    };
    // `cpu-clock:ppp:`, `sched:sched_switch:`, `cycles:`
    let end = after
        .find(": ")
        .or_else(|| after.ends_with(':').then(|| after.len() - 1))?;
    let event = after[..end].trim();
    if event.is_empty() || event.contains(char::is_whitespace) {
        return None;
    }
    Some(Head {
        command: before.trim(),
        thread,
        event,
        rest: after[end + 1..].trim(),
    })
}

/// `ADDRESS SYMBOL+0xOFFSET (OBJECT)` as name and kind.
fn frame(line: &str) -> Option<(String, FrameKind)> {
    let (address, rest) = line.trim().split_once([' ', '\t'])?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (symbol, object) = parted(rest.trim());
    let symbol = symbol.trim();
    let symbol = match symbol.rfind("+0x") {
        Some(at)
            if symbol[at + 3..]
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit()) =>
        {
            &symbol[..at]
        }
        _ => symbol,
    };
    let file = object.rsplit('/').next().unwrap_or_default();
    let map = file
        .strip_prefix("perf-")
        .and_then(|name| name.strip_suffix(".map"));
    let is_map = map.is_some();
    let kind = if object == "inlined" {
        FrameKind::Inlined
    } else if address >= KERNEL || object.starts_with("[kernel") {
        FrameKind::Kernel
    } else {
        FrameKind::Native
    };
    if symbol.is_empty() || symbol == "[unknown]" {
        let object = object
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_matches(['[', ']']);
        let name = if object.is_empty() || object == "unknown" || is_map {
            "[unknown]".to_owned()
        } else {
            format!("[{object}]")
        };
        return Some((name, kind));
    }
    if is_map && let Some(name) = java_method(symbol) {
        return Some((name, FrameKind::Java));
    }
    Some((symbol.to_owned(), kind))
}

/// The symbol and the object, without what says that the object is gone: `operator()(int)+0x1 (/usr/lib/a.so (deleted))`.
fn parted(text: &str) -> (&str, &str) {
    let Some(inner) = text.strip_suffix(')') else {
        return (text, "");
    };
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    if let Some(object) = inner.strip_prefix('(') {
        return ("", object);
    }
    inner.rsplit_once(" (").unwrap_or((inner, ""))
}

/// The class and method of a line that a JVM writes into a perf map: `int shop.Cart.add(int)`, `Lshop/Cart;::add`; `None` for other code.
pub fn java_method(symbol: &str) -> Option<String> {
    if let Some((class, method)) = symbol
        .strip_prefix('L')
        .and_then(|name| name.split_once(";::"))
    {
        return Some(format!("{}.{method}", class.replace('/', ".")));
    }
    let before = symbol.split_once('(')?.0;
    let name = before.rsplit_once(' ').map_or(before, |(_, name)| name);
    let (class, method) = name.rsplit_once('.')?;
    (!class.is_empty() && !method.is_empty() && !name.contains("::")).then(|| name.to_owned())
}

impl Script {
    /// Reads a line. `false` where it is not understood.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if line.trim().is_empty() {
            self.end();
            return true;
        }
        if line.starts_with([' ', '\t'])
            && let Some(current) = &mut self.current
            && let Some(frame) = frame(line)
        {
            if current.frames.len() < DEEPEST {
                current.frames.push(frame);
            }
            return true;
        }
        if let Some(head) = head(line) {
            self.end();
            self.begin(&head);
            return true;
        }
        line.starts_with('#')
    }

    fn begin(&mut self, head: &Head<'_>) {
        let known = self
            .events
            .iter()
            .position(|sampled| sampled.event == head.event);
        let event = match known {
            Some(event) => event,
            None if self.events.len() < MOST_EVENTS => {
                self.events.push(Sampled {
                    event: head.event.to_owned(),
                    ..Sampled::default()
                });
                self.events.len() - 1
            }
            None => {
                self.uncounted += 1;
                return;
            }
        };
        self.current = Some(Sample {
            thread: Thread {
                name: head.command.to_owned(),
                id: head.thread,
            },
            event,
            frames: frame(head.rest).into_iter().collect(),
        });
    }

    fn end(&mut self) {
        let Some(Sample {
            thread,
            event,
            frames,
        }) = self.current.take()
        else {
            return;
        };
        let sampled = &mut self.events[event];
        sampled.samples += 1;
        let names = frames.iter().rev().map(|(name, _)| name.as_str());
        if thread.name.starts_with("swapper") && (frames.is_empty() || is_idle(names)) {
            sampled.idle += 1;
            return;
        }
        // Two programs have nothing in common but the names of their functions, so the command is the root.
        let command = program(&thread.name);
        let root = (command.as_str(), FrameKind::Native);
        let callees = frames
            .iter()
            .rev()
            .map(|(name, kind)| (name.as_str(), *kind));
        sampled
            .stacks
            .add(Some(&thread), std::iter::once(root).chain(callees), 1);
    }

    /// The event with most samples outside of idle CPUs, and the others.
    pub(crate) fn finish(mut self) -> Option<(Sampled, Vec<Sampled>)> {
        self.end();
        // The first of several with equally many.
        let most = self
            .events
            .iter()
            .map(|sampled| sampled.stacks.total())
            .max()?;
        let at = self
            .events
            .iter()
            .position(|sampled| sampled.stacks.total() == most)?;
        let chosen = self.events.remove(at);
        Some((chosen, self.events))
    }
}

/// A command without the number of its thread: `worker-*`, `ksoftirqd/*`, and `python3`.
fn program(command: &str) -> String {
    let mut program = String::new();
    let mut parts = false;
    for character in command.chars() {
        if parts && character.is_ascii_digit() {
            if !program.ends_with('*') {
                program.push('*');
            }
            continue;
        }
        parts = matches!(character, '-' | '/' | ':' | '#' | '_' | ' ');
        program.push(character);
    }
    program
}

/// What an event measures, by its name.
pub(crate) fn event(name: &str) -> Event {
    let is_time = ["clock", "cycles"].iter().any(|word| name.contains(word));
    if is_time { Event::Cpu } else { Event::Unknown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::folded::folded;

    fn read(text: &str) -> (Sampled, usize) {
        let mut script = Script::default();
        let unknown = text.lines().filter(|line| !script.line(line)).count();
        (script.finish().unwrap().0, unknown)
    }

    #[test]
    fn every_form_of_a_head_is_read() {
        for (line, command, thread, event, rest) in [
            (
                "java 4711/4712 12.345678:   10101010 cpu-clock:ppp: ",
                "java",
                4712,
                "cpu-clock:ppp",
                "",
            ),
            ("my prog 7 9.0: cycles:", "my prog", 7, "cycles", ""),
            (":-1    -1 [001] 1.5: 1 cycles:", "", 0, "", ""),
            (
                "swapper     0 [001] 1.5:          1 sched:sched_switch: prev_comm=a ==> next_comm=b",
                "swapper",
                0,
                "sched:sched_switch",
                "prev_comm=a ==> next_comm=b",
            ),
            (
                "a 1.2 b  33/44 [000] 100.25: 250000 cpu-clock: ffffffff81 do_it+0x1 ([kernel.kallsyms])",
                "a 1.2 b",
                44,
                "cpu-clock",
                "ffffffff81 do_it+0x1 ([kernel.kallsyms])",
            ),
        ] {
            if command.is_empty() {
                assert_eq!(head(line), None);
                continue;
            }
            assert_eq!(
                head(line),
                Some(Head {
                    command,
                    thread,
                    event,
                    rest
                }),
                "{line}"
            );
        }
        for line in [
            "",
            "java",
            "12.5:",
            "a 12.5: cycles",
            "# comm 1 2.3: cycles:",
            "    7f00 main+0x1 (/bin/a)",
        ] {
            assert_eq!(head(line), None, "{line}");
        }
    }

    #[test]
    fn every_form_of_a_frame_is_read() {
        for (line, name, kind) in [
            (
                "  ffffffff8123abcd tcp_sendmsg+0x1d ([kernel.kallsyms])",
                "tcp_sendmsg",
                FrameKind::Kernel,
            ),
            (
                "  7f00 operator new(unsigned long)+0x1b (/usr/lib/libstdc++.so.6)",
                "operator new(unsigned long)",
                FrameKind::Native,
            ),
            (
                "  7f00 a::{lambda(int)#1}::operator()(int)+0x1b (/opt/a (deleted))",
                "a::{lambda(int)#1}::operator()(int)",
                FrameKind::Native,
            ),
            (
                "  7f00 [unknown] (/usr/lib/libc.so.6)",
                "[libc.so.6]",
                FrameKind::Native,
            ),
            (
                "  7f00 [unknown] ([unknown])",
                "[unknown]",
                FrameKind::Native,
            ),
            (
                "  7f00 int shop.Cart.add(int, java.lang.String)+0x4 (/tmp/perf-12.map)",
                "shop.Cart.add",
                FrameKind::Java,
            ),
            (
                "  7f00 Lshop/Cart;::add+0x4 (/tmp/perf-12.map)",
                "shop.Cart.add",
                FrameKind::Java,
            ),
            (
                "  7f00 Interpreter (/tmp/perf-12.map)",
                "Interpreter",
                FrameKind::Native,
            ),
            ("  7f00 hash<u8> (inlined)", "hash<u8>", FrameKind::Inlined),
            ("  7f00 main", "main", FrameKind::Native),
        ] {
            assert_eq!(frame(line), Some((name.to_owned(), kind)), "{line}");
        }
        assert_eq!(frame("  zz main (/bin/a)"), None);
        assert_eq!(frame("7f00"), None);
    }

    #[test]
    fn samples_are_counted_root_first_and_idle_cpus_apart() {
        let text = "\
# captured on a test machine
swapper     0 [000] 1.0: 1 cpu-clock:
\tffffffff81000010 default_idle+0x10 ([kernel.kallsyms])
\tffffffff81000020 do_idle+0x20 ([kernel.kallsyms])

worker-7 12/15 [001] 1.1: 1 cpu-clock:
\tffffffff81000030 tcp_sendmsg+0x10 ([kernel.kallsyms])
\t    55550000 send+0x1 (/usr/bin/worker)
\t    55550010 main+0x1 (/usr/bin/worker)
worker-8 12/16 [001] 1.1: 1 cpu-clock:
\t    55550010 main+0x1 (/usr/bin/worker)
this is no line of perf
";
        let (sampled, unknown) = read(text);
        assert_eq!((sampled.samples, sampled.idle, unknown), (3, 1, 1));
        assert_eq!(
            folded(&sampled.stacks),
            [
                "[worker-7 tid=15];worker-*;main;send;tcp_sendmsg_[k] 1",
                "[worker-8 tid=16];worker-*;main 1"
            ]
        );
    }

    #[test]
    fn a_program_of_known_shares_comes_out_within_the_error_of_sampling() {
        let text = include_str!("../corpus/perf-java-17-kernel-6.18.script");
        let (sampled, unknown) = read(text);
        assert_eq!((unknown, sampled.event.as_str()), (0, "cpu-clock"));
        let hot = crate::sums::hot(&sampled.stacks);
        let of = |name: &str| hot.iter().find(|hot| hot.frame == name).unwrap();
        assert_eq!(of("Split.seventy").kind, FrameKind::Java);
        let n = sampled.stacks.total() as f64;
        // Three standard errors of a binomial share.
        for (name, share) in [
            ("Split.seventy", 0.7),
            ("Split.twenty", 0.2),
            ("Split.ten", 0.1),
        ] {
            let error =
                (f64::abs(of(name).total as f64 / n - share)) / (share * (1.0 - share) / n).sqrt();
            assert!(error < 3.0, "{name}: {} of {n}", of(name).total);
        }
        assert!(hot.iter().any(|hot| hot.kind == FrameKind::Kernel));
    }

    #[test]
    fn threads_of_a_program_share_a_root() {
        for (command, root) in [
            ("worker-17", "worker-*"),
            ("kworker/u8:3-ev", "kworker/u8:*-ev"),
            ("python3", "python3"),
            ("GC Thread#12", "GC Thread#*"),
        ] {
            assert_eq!(program(command), root);
        }
    }

    #[test]
    fn of_several_events_the_one_with_most_samples_is_taken() {
        let mut script = Script::default();
        for line in ["a 1 1.0: cycles:", "a 1 1.1: faults:", "a 1 1.2: faults:"] {
            assert!(script.line(line));
        }
        let (chosen, others) = script.finish().unwrap();
        assert_eq!(
            (chosen.event.as_str(), others[0].event.as_str()),
            ("faults", "cycles")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(lines in proptest::collection::vec("[ \\t]{0,2}[ -~é:;()\\[\\]0-9a-f+x]{0,60}", 0..30)) {
            let mut script = Script::default();
            for line in &lines {
                script.line(line);
            }
            let _ = script.finish();
        }
    }
}
