//! What stands in brackets before a message of unified logging (JEP 158): `[2025-11-22T02:55:40.123+0000][0.512s]
//! [info ][gc,start    ] `, any of twelve decorations, each padded with spaces.
//!
//! HotSpot prints them in one order (`logging/logDecorators.hpp`), but each group is judged by its form alone: dates,
//! numbers with a unit, levels and tags cannot be mistaken for each other. A name of a host and numbers of process
//! and thread say whose the message is and nothing of it; where they stand alone, only the message shows that they are
//! decorations.

use memchr::memchr;

use super::tags;
use crate::date;
use crate::event::Stamp;
use crate::number::{MILLISECONDS, SECONDS, decimal};

/// A group is not longer than this: the longest are five tags, or a host.
const LONGEST_GROUP: usize = 256;
/// Length of `2025-11-22T02:55:40.123+0000`.
const DATE: usize = 28;
/// Milliseconds above this (the year 2001) are those of a date, not of an uptime.
const FIRST_DATE_MS: u64 = 1_000_000_000_000;

/// What was printed before a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decorations {
    /// When the line was printed.
    pub(crate) stamp: Stamp,
    /// What the tags say.
    pub(super) subject: Subject,
    /// The level is debug or trace.
    pub(super) fine: bool,
    /// The uptime is one in nanoseconds: the last of two, of which the first counts from the start of the machine.
    pub(super) nanos: bool,
    /// How many numbers without a unit there are: those of process and thread, in this order, or one of them.
    pub(crate) numbers: u8,
    /// Where the first of them lies in the line.
    number: Place,
    /// Where the name of the host lies.
    host: Place,
}

/// Beginning and end.
type Place = (u32, u32);

impl Decorations {
    /// The name of the host; empty where it was not printed.
    pub(crate) fn host<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        at(self.host, line)
    }

    /// The first number without a unit; empty where there is none.
    pub(crate) fn number<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        at(self.number, line)
    }

    /// Nothing tells whose the message is.
    pub(crate) fn name_nobody(&self) -> bool {
        self.host.1 == 0 && self.numbers == 0
    }
}

fn at((from, to): Place, line: &[u8]) -> &[u8] {
    line.get(from as usize..to as usize).unwrap_or_default()
}

/// What the tags say about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subject {
    /// No tags.
    #[default]
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
    /// `gc,humongous`, and what G1 decides about its heap: sizes of humongous objects.
    Humongous,
    /// `safepoint`.
    Safepoint,
    /// Nothing under these tags is asked for.
    Quiet,
    /// What a collector decides by itself.
    Ergonomics,
}

impl Subject {
    fn of(tags: &[u8]) -> Self {
        let Some(rest) = tags.strip_prefix(b"gc") else {
            return match tags {
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
            b",start" | b",heap" | b",metaspace" | b",age" | b",cpu" | b",marking" | b",init"
            | b",ref" | b",reloc" | b",heap,coops" | b",promotion" => Self::Detail,
            b",stats" => Self::Stats,
            b",ergo" => Self::Ergonomics,
            b",humongous" | b",ergo,heap" | b",ergo,ihop" => Self::Humongous,
            _ => Self::Quiet,
        }
    }
}

/// The decorations of the last line. A collection prints dozens of lines in a millisecond, many of them under the same
/// tags: most lines begin with the very bytes of the line before, or with the same times.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Groups of the last line, and the space behind them.
    text: [u8; Self::KEPT],
    length: usize,
    /// How much of it are times, from the beginning.
    times: usize,
    decorations: Decorations,
    /// Groups that nothing but a message has shown to be decorations: host, process, thread, each number as `#`.
    bare: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            text: [0; Self::KEPT],
            length: 0,
            times: 0,
            decorations: Decorations::default(),
            bare: Vec::new(),
        }
    }
}

/// What one group turned out to be.
#[derive(Clone, Copy)]
enum Group {
    /// A time.
    Time,
    /// It can be nothing but a decoration.
    Sure,
    /// It may be one.
    Unsure,
    /// Likewise: a number without a unit, of a process or a thread.
    Number,
    /// Likewise: a word that is no tag, such as a host.
    Word,
}

impl Reader {
    /// Longer ones are read anew each time.
    const KEPT: usize = 256;

    /// The decorations at the start of a line, and the message behind them. Nothing if there are none, or if none
    /// of them can only be a decoration and no message has shown that they are.
    pub(crate) fn read<'a>(&mut self, text: &'a [u8]) -> Option<(Decorations, &'a [u8])> {
        let last = &self.text[..self.length];
        if self.length > 0 && text.starts_with(last) {
            return Some((self.decorations, &text[self.length..]));
        }
        let mut decorations = Decorations::default();
        let (mut sure, mut at) = (false, 0);
        if self.times > 0 && text.starts_with(&self.text[..self.times]) {
            decorations.stamp = self.decorations.stamp;
            decorations.nanos = self.decorations.nanos;
            (sure, at) = (true, self.times);
        }
        let mut times = at;
        while text.get(at) == Some(&b'[') {
            let inner = &text[at + 1..];
            // What nearly every line has, before a search: `info`, lengths of other levels and of a date.
            let end = match inner {
                [b'i', b'n', b'f', b'o', b']', ..] => {
                    (sure, at) = (true, at + 6);
                    continue;
                }
                [b'i', b'n', b'f', b'o', b' ', b']', ..] => {
                    (sure, at) = (true, at + 7);
                    continue;
                }
                [a, b, c, _, b']', ..] if !is_short([*a, *b, *c]) => 4,
                [a, b, c, d, _, b']', ..] if !is_short([*a, *b, *c]) && *d != b']' => 5,
                _ if inner.get(DATE) == Some(&b']') && inner[10] == b'T' => DATE,
                _ => memchr(b']', &inner[..inner.len().min(LONGEST_GROUP)])?,
            };
            let group = decorations.group(&inner[..end])?;
            let before = at;
            at += end + 2;
            match group {
                Group::Time => {
                    sure = true;
                    if times == before {
                        times = at;
                    }
                }
                Group::Sure => sure = true,
                Group::Unsure => {}
                Group::Number | Group::Word => {
                    let length = inner[..end].trim_ascii_end().len();
                    decorations.names(group, (before + 1, before + 1 + length));
                }
            }
        }
        if decorations.host.1 as usize + 1 == at {
            // Tags stand last, and these may be newer than what is known here.
            decorations.host = (0, 0);
        }
        if !sure && !self.is_bare(&text[..at], &text[at..]) {
            return None;
        }
        if text.get(at) != Some(&b' ') {
            return Some((decorations, &text[at..]));
        }
        at += 1;
        if at <= Self::KEPT {
            self.text[..at].copy_from_slice(&text[..at]);
            self.length = at;
            self.times = times;
            self.decorations = decorations;
        }
        Some((decorations, &text[at..]))
    }

    /// Groups that may be decorations are some if only a JVM begins a message so, and from then on wherever they stand.
    fn is_bare(&mut self, groups: &[u8], message: &[u8]) -> bool {
        let shows = message.strip_prefix(b" ").is_some_and(is_of_a_jvm);
        if groups.is_empty() || !shows && self.bare.is_empty() {
            return false;
        }
        let shape = shape(groups);
        if shows {
            self.bare = shape;
            return true;
        }
        shape == self.bare
    }
}

/// Messages that a JVM prints first.
const FIRST: [&[u8]; 4] = [
    b"CardTable entry size: ",
    b"Heap region size: ",
    b"Minimum heap ",
    b"Using ",
];

/// A message that only the main thread of a JVM prints, when it starts.
pub(crate) fn is_first(message: &[u8]) -> bool {
    const OTHERS: [&[u8]; 3] = [b"Version: ", b"Initializing The Z ", b"Heap address: "];
    /// Behind `Using `, which Shenandoah's threads say of regions too.
    const COLLECTORS: [&[u8]; 7] = [
        b"Serial",
        b"Parallel",
        b"Concurrent Mark Sweep",
        b"G1",
        b"The Z",
        b"Shenandoah",
        b"Epsilon",
    ];
    if let Some(what) = message.strip_prefix(b"Using ") {
        return COLLECTORS.iter().any(|name| what.starts_with(name));
    }
    let mut all = FIRST.iter().chain(&OTHERS);
    all.any(|first| message.starts_with(first))
}

/// A group ends within these bytes, such as that of process 1.
fn is_short(text: [u8; 3]) -> bool {
    text.contains(&b']')
}

/// A message of a collection, or one of the first that a JVM prints.
fn is_of_a_jvm(message: &[u8]) -> bool {
    match message.strip_prefix(b"GC(") {
        Some(number) => {
            let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
            let end = digits.count();
            end > 0 && number.get(end) == Some(&b')')
        }
        None => FIRST.iter().any(|first| message.starts_with(first)),
    }
}

/// The groups, each number as `#`: a thread is not the same in every line.
fn shape(groups: &[u8]) -> Vec<u8> {
    let mut shape = Vec::with_capacity(groups.len());
    for group in groups.split(|byte| *byte == b']') {
        let inner = group.strip_prefix(b"[").unwrap_or(group).trim_ascii_end();
        let is_number = !inner.is_empty() && inner.iter().all(u8::is_ascii_digit);
        shape.extend_from_slice(if is_number { b"#" } else { inner });
        shape.push(b']');
    }
    shape
}

impl Decorations {
    /// Takes note of what tells whose the message is.
    fn names(&mut self, group: Group, (from, to): (usize, usize)) {
        let place = match (group, self.numbers) {
            (Group::Number, 0) => &mut self.number,
            (Group::Word, 0) if self.host.1 == 0 => &mut self.host,
            _ => &mut (0, 0),
        };
        // A line has 64 KiB at most.
        *place = (from as u32, to as u32);
        self.numbers += u8::from(matches!(group, Group::Number) && self.numbers < 2);
    }

    /// Takes in one group; nothing if it cannot be one.
    fn group(&mut self, group: &[u8]) -> Option<Group> {
        let group = group.trim_ascii_end();
        let (first, last) = (*group.first()?, *group.last()?);
        if first.is_ascii_digit() {
            if group.len() > 18 && group[10] == b'T' {
                self.stamp.wall_ns = Some(date::wall(group)?.0);
                return Some(Group::Time);
            }
            if last == b's' && self.time(&group[..group.len() - 1]).is_some() {
                return Some(Group::Time);
            }
        }
        match group {
            [b'g', b'c'] | [b'g', b'c', b',', ..] => {
                self.subject = Subject::of(group);
                Some(Group::Sure)
            }
            b"info" | b"warning" | b"error" => Some(Group::Sure),
            b"debug" | b"trace" => {
                self.fine = true;
                Some(Group::Sure)
            }
            _ if group
                .iter()
                .any(|byte| !(byte.is_ascii_alphanumeric() || b",._-:+".contains(byte))) =>
            {
                None
            }
            // A word that is no tag is a host, of which nothing follows.
            _ if tags::are_tags(group) => {
                self.subject = Subject::of(group);
                Some(match self.subject {
                    Subject::Safepoint => Group::Sure,
                    _ => Group::Unsure,
                })
            }
            _ if group.iter().all(u8::is_ascii_digit) => Some(Group::Number),
            _ if group.contains(&b',') => Some(Group::Unsure),
            _ => Some(Group::Word),
        }
    }

    /// A number without the `s` of its unit.
    fn time(&mut self, text: &[u8]) -> Option<()> {
        let (number, places) = match text {
            [number @ .., b'm'] => (number, MILLISECONDS),
            [number @ .., b'n'] => (number, 0),
            number => (number, SECONDS),
        };
        // Both kinds of milliseconds look alike. Nanoseconds are taken as uptime.
        if places == MILLISECONDS && decimal(number, 0)?.0 > FIRST_DATE_MS {
            let (value, rest) = decimal(number, MILLISECONDS)?;
            let value = i64::try_from(value).ok()?;
            self.stamp.wall_ns = self.stamp.wall_ns.or(Some(value));
            return rest.is_empty().then_some(());
        }
        let (value, rest) = decimal(number, places)?;
        if !rest.is_empty() {
            return None;
        }
        // Nanoseconds since the machine started stand before those since the JVM did, and behind all other times.
        if places > 0 || self.nanos || self.stamp.uptime_ns.is_none() {
            self.stamp.uptime_ns = Some(value);
            self.nanos = places == 0;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Stamp, Subject, String)> {
        let (decorations, message) = Reader::default().read(text.as_bytes())?;
        Some((
            decorations.stamp,
            decorations.subject,
            String::from_utf8_lossy(message).into_owned(),
        ))
    }

    #[test]
    fn what_the_last_line_began_with_does_not_change_what_a_line_is() {
        let lines = [
            "[0.512s][info ][gc,phases] GC(0) x",
            "[0.512s][info ][gc,phases] GC(0) y",
            "[0.512s][debug][gc,phases] GC(0) y",
            "[0.512s][info ][gc,phases][x] GC(0) y",
            "[0.512s][gc] GC(0) y",
            "[0.512s]",
            "[0.512s][",
            "[0.513s][info ][gc,heap] GC(0) y",
            "[0.512s][info ][gc,phases]GC(0) x",
        ];
        let mut reader = Reader::default();
        for (first, second) in lines.iter().flat_map(|a| lines.iter().map(move |b| (a, b))) {
            reader.read(first.as_bytes());
            let (fresh, after) = (
                Reader::default().read(second.as_bytes()),
                reader.read(second.as_bytes()),
            );
            assert_eq!(after, fresh, "{second} after {first}");
        }
    }

    #[test]
    fn each_is_known_by_its_form_wherever_it_stands() {
        let uptime = Stamp {
            uptime_ns: Some(512_000_000),
            wall_ns: None,
        };
        for line in [
            "[0.512s][info][gc] GC(0) x",
            "[0,512s][info ][gc     ] GC(0) x",
            "[512ms][4711][4712][debug][gc] GC(0) x",
            "[512ms][1][7][debug][gc] GC(0) x",
            "[512ms][1][14][debug][gc] GC(0) x",
            "[512000000ns][gc] GC(0) x",
            "[gc][info][0.512s] GC(0) x",
            "[host-7.example.org][0.512s][gc] GC(0) x",
        ] {
            let (stamp, subject, message) = read(line).unwrap();
            assert_eq!((stamp, message.as_str()), (uptime, "GC(0) x"), "{line}");
            assert_eq!(subject, Subject::Gc, "{line}");
        }
    }

    #[test]
    fn a_host_says_nothing_of_the_message() {
        for (line, expected) in [
            ("[vm][0.512s][info] Using G1", Subject::Any),
            ("[0.512s][vm][info] Using G1", Subject::Any),
            ("[0.512s][vm][info][gc,heap] x", Subject::Detail),
            ("[0.512s][os][info][gc,heap] x", Subject::Detail),
            ("[0.512s][vm][info][os,cpu] x", Subject::Quiet),
            ("[0.512s][vm][info][class,load] x", Subject::Quiet),
            ("[0.512s][new,tags] x", Subject::Quiet),
        ] {
            assert_eq!(read(line).unwrap().1, expected, "{line}");
        }
    }

    #[test]
    fn host_and_process_stand_before_all_that_looks_like_them() {
        for (line, host, number, numbers) in [
            ("[0.512s][info][gc] x", "", "", 0),
            ("[0.512s][4711][info][gc] x", "", "4711", 1),
            ("[0.512s][4711 ][4712][info][gc] x", "", "4711", 2),
            ("[0.512s][web-0   ][1][7][info][gc] x", "web-0", "1", 2),
            ("[web-0][0.512s][info] GC(0) x", "web-0", "", 0),
            // A tag of a JDK to come, and several.
            ("[0.512s][4711][info][newtag] x", "", "4711", 1),
            ("[0.512s][info][newtag] x", "", "", 0),
            ("[0.512s][new,tags][info] x", "", "", 0),
        ] {
            let mut reader = Reader::default();
            // The second time from what the reader kept.
            for _ in 0..2 {
                let (decorations, _) = reader.read(line.as_bytes()).unwrap();
                let identity = [
                    decorations.host(line.as_bytes()),
                    decorations.number(line.as_bytes()),
                ];
                assert_eq!(identity, [host.as_bytes(), number.as_bytes()], "{line}");
                assert_eq!(decorations.numbers, numbers, "{line}");
            }
        }
    }

    #[test]
    fn groups_of_no_sure_form_are_known_by_what_a_jvm_says_behind_them() {
        let mut reader = Reader::default();
        let mut is_read = |line: &str| reader.read(line.as_bytes()).is_some();
        for line in ["[vm] x", "[4711] x", "[vm][4711][4712] Version: 17"] {
            assert!(!is_read(line), "{line}");
        }
        assert!(is_read("[vm][4711][4712] Using G1"));
        assert!(is_read("[vm][4711][4713] Version: 17"));
        assert!(is_read("[vm][4711][4713] GC(3) x"));
        assert!(!is_read("[main][4711][4713] Version: 17"));
        assert!(!is_read("[vm][4713] Version: 17"));
        for line in ["[CMS] GC(x) y", "[vm] GC()", "[vm]GC(1) y", "[vm] Used"] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn of_all_uptimes_the_one_since_the_jvm_started_counts() {
        for line in [
            "[0.512s][512ms][9000512000000ns][512000000ns] x",
            "[0.512s][9000512000000ns] x",
            "[512ms][9000512000000ns] x",
            "[9000512000000ns][512000000ns] x",
            "[512000000ns] x",
        ] {
            let (stamp, ..) = read(line).unwrap();
            assert_eq!(stamp.uptime_ns, Some(512_000_000), "{line}");
        }
    }

    #[test]
    fn a_date_goes_with_an_uptime() {
        let (stamp, subject, message) =
            read("[2026-11-21T11:37:57.369+0000][1763725077369ms][0.029s][info][gc,start ]   x")
                .unwrap();
        assert_eq!(stamp.uptime_ns, Some(29_000_000));
        assert_eq!(stamp.wall_ns, Some(1_795_261_077_369_000_000));
        assert_eq!((subject, message.as_str()), (Subject::Detail, "  x"));
    }

    #[test]
    fn milliseconds_of_a_date_are_no_uptime() {
        let (stamp, ..) = read("[1522825800586ms][gc] x").unwrap();
        assert_eq!(stamp.uptime_ns, None);
        assert_eq!(stamp.wall_ns, Some(1_522_825_800_586_000_000));
    }

    #[test]
    fn brackets_of_old_logs_are_no_decorations() {
        for line in [
            "[GC 325407K->83000K(776768K), 0.2300771 secs]",
            "[Full GC (System.gc()) 1K->1K(9K), 0.1 secs]",
            "[CMS-concurrent-mark-start]",
            "[Times: user=0.02 sys=0.02, real=0.12 secs]",
            "[0.0012 secs]",
            "[main] INFO  org.example.Service - started",
            "[",
            "[]",
            "[gc",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
