//! In which order the parts of a log are read: by the time that they tell, not by their names.
//!
//! Rotation names files in its own way, and the newest one may be `gc.log`, `gc.log.0` or `gc.log.3.current`. The first
//! event of a part tells where it belongs: by date where all have one, else by uptime. Date less uptime is when the JVM
//! began, so parts of several JVMs are distinguished and each JVM's are read in one go.

use rungwise_gclog::{Account, Collector, Event, Fact, Names, Parser, Stamp};

use crate::input::Part;

/// Bytes of a part that are looked at to find its first event. A header and the lines of one collection at all levels
/// are shorter.
const LONGEST_PREFIX: usize = 1 << 20;
/// The clock of the wall is corrected while a JVM runs, and a JVM takes longer than this to end and start again: starts
/// nearer than this are one.
const NEAR_NS: i128 = 1_000_000_000;
/// A part that begins before this uptime begins with its JVM.
const YOUNG_NS: u64 = 1_000_000_000;

/// Bytes by which two parts are distinguished: a header, and some collections with their times.
const SAME: usize = 64 << 10;

/// What the beginning of a part tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    /// It has lines of a GC log.
    pub(super) is_log: bool,
    stamp: Option<Stamp>,
    /// Several JVMs write it by turns, so their starts say nothing of its place.
    by_turns: bool,
    /// The collector that it tells of: of two that share lines one stands for both.
    collector: Option<Collector>,
    /// The version that it tells.
    version: Option<String>,
    /// Its first text.
    first: Vec<u8>,
}

impl Beginning {
    /// It begins with its JVM.
    fn is_young(&self) -> bool {
        let uptime = self.stamp.and_then(|stamp| stamp.uptime_ns);
        !self.by_turns && uptime.is_some_and(|uptime| uptime < YOUNG_NS)
    }

    /// They tell of different collectors or versions, so that two JVMs have written them.
    fn contradicts(&self, other: &Self) -> bool {
        let differ =
            |one: Option<Collector>, two| one.zip(two).is_some_and(|(one, two)| one != two);
        let versions = self.version.as_ref().zip(other.version.as_ref());
        differ(self.collector, other.collector) || versions.is_some_and(|(one, two)| one != two)
    }

    /// Both are of one log: their text is the same, up to the end of one that was copied while it was written. Times are
    /// not the same by chance.
    fn is_of(&self, other: &Self) -> bool {
        let shorter = self.first.len().min(other.first.len());
        self.stamp.is_some()
            && self.stamp == other.stamp
            && self.first[..shorter] == other.first[..shorter]
    }
}

/// Parts, each with what its beginning tells.
type Begun = Vec<(Part, Beginning)>;

/// Leaves out what is there twice, such as a log beside its packed copy, and says so. Of two copies the longer one stays.
pub(super) fn without_copies(parts: Begun) -> anyhow::Result<(Begun, Vec<String>)> {
    let mut kept = Begun::new();
    let mut notes = Vec::new();
    for mut part in parts {
        let Some(twin) = kept.iter_mut().find(|kept| kept.1.is_of(&part.1)) else {
            kept.push(part);
            continue;
        };
        if twin.0.name == part.0.name {
            notes.push(format!("{} is named twice; it is read once", twin.0.name));
            continue;
        }
        if length(&part.0)? > length(&twin.0)? {
            std::mem::swap(twin, &mut part);
        }
        notes.push(format!(
            "{} has the same content as {}, so it is skipped",
            part.0.name, twin.0.name
        ));
    }
    Ok((kept, notes))
}

/// Bytes of text.
fn length(part: &Part) -> anyhow::Result<u64> {
    let mut bytes = 0;
    let _ = part.open()?.each(|piece| {
        bytes += piece.len() as u64;
        true
    })?;
    Ok(bytes)
}

/// Counts what only a GC log says. Memory that ran out is reported by applications too, and facts alone may be a chance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    certain: bool,
    facts: bool,
}

impl Signs {
    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::OutOfMemory { .. } | Event::Restart | Event::Turn { .. } => {}
            Event::Fact(_) => self.facts = true,
            _ => self.certain = true,
        }
    }

    /// Whether lines with these signs are a GC log. One line among many may be quoted in a text, while in the output of an
    /// application GC lines are few but more than a handful.
    pub(super) fn are_of_a_log(self, account: &Account) -> bool {
        let (understood, unknown) = (account.understood.lines, account.unknown.lines);
        self.certain && (understood >= 10 || understood.saturating_mul(50) >= unknown)
            || self.facts && understood >= unknown
    }
}

/// Reads the beginning of a part that can be read twice.
pub(super) fn beginning(part: &Part) -> anyhow::Result<Beginning> {
    let mut parser = Parser::new();
    let mut signs = Signs::default();
    let mut first = None;
    let mut by_turns = false;
    let (mut collector, mut version) = (None, None);
    let mut sink = |_: &Names, event: Event<'_>| {
        signs.event(&event);
        match &event {
            Event::Fact(Fact::Collector(found)) => {
                collector = collector.or(Some(match found {
                    Collector::GenerationalZ => Collector::Z,
                    Collector::GenerationalShenandoah => Collector::Shenandoah,
                    // A file of young collections alone may be of either.
                    Collector::Cms => Collector::Serial,
                    found => *found,
                }));
            }
            Event::Fact(Fact::Version(found)) if version.is_none() => {
                version = Some((*found).to_owned());
            }
            _ => {}
        }
        by_turns |= matches!(event, Event::Turn { .. });
        first = first.or(stamp(&event));
    };
    let mut left = LONGEST_PREFIX;
    let mut text = Vec::new();
    // A packed file may be cut right here; what it has is enough to order it.
    let _ = part.open()?.each(|piece| {
        let piece = &piece[..piece.len().min(left)];
        parser.push(piece, &mut sink);
        text.extend(&piece[..piece.len().min(SAME.saturating_sub(text.len()))]);
        left -= piece.len();
        left > 0
    })?;
    let account = parser.finish(&mut sink);
    Ok(Beginning {
        is_log: signs.are_of_a_log(&account),
        stamp: first,
        by_turns,
        collector,
        version,
        first: text,
    })
}

fn stamp(event: &Event<'_>) -> Option<Stamp> {
    let stamp = match event {
        Event::Pause(pause) => pause.began,
        Event::Concurrent(phase) => phase.at(),
        Event::Safepoint(safepoint) => safepoint.began,
        Event::Stall { at, .. }
        | Event::Ages { at, .. }
        | Event::Ran { at, .. }
        | Event::Humongous { at, .. }
        | Event::OutOfMemory { at, .. }
        | Event::FreeLists { at, .. } => *at,
        Event::Statistic(statistic) => statistic.at,
        Event::Restart | Event::Turn { .. } | Event::Fact(_) | Event::References(_) => return None,
    };
    (stamp != Stamp::default()).then_some(stamp)
}

/// Parts, each with whether another JVM has written it than the one before.
pub(super) type Ordered<T> = Vec<(T, bool)>;

/// The parts in the order of their time, and what the reader should know of that order.
pub(super) fn ordered<T>(parts: Vec<(T, Beginning)>) -> (Ordered<T>, Option<String>) {
    let count = parts.len();
    // As they are given, one that begins with its JVM, or tells of another one, is another one's than the part before.
    let as_given = |parts: Vec<(T, Beginning)>| {
        let mut before: Option<Beginning> = None;
        let given = parts.into_iter().map(|(part, beginning)| {
            let another = before
                .as_ref()
                .is_some_and(|before| beginning.is_young() || beginning.contradicts(before));
            before = Some(beginning);
            (part, another)
        });
        given.collect()
    };
    if count < 2 {
        return (as_given(parts), None);
    }
    let stamps = |of: fn(Stamp) -> Option<i128>| {
        let all = parts.iter();
        all.map(|(_, beginning)| beginning.stamp.and_then(of))
            .collect::<Option<Vec<i128>>>()
    };
    let (uptimes, walls) = (
        stamps(|stamp| stamp.uptime_ns.map(i128::from)),
        stamps(|stamp| stamp.wall_ns.map(i128::from)),
    );
    let by_turns = parts.iter().any(|(_, beginning)| beginning.by_turns);
    let uptimes = uptimes.filter(|_| !by_turns);
    let contradictory = parts
        .iter()
        .any(|(_, one)| parts.iter().any(|(_, two)| one.contradicts(two)));
    let (keys, jvms): (Vec<(i128, i128)>, Option<usize>) = match (walls, uptimes) {
        (Some(walls), Some(uptimes)) => {
            let starts: Vec<i128> = walls.iter().zip(&uptimes).map(|(w, u)| w - u).collect();
            let starts = gathered(&starts);
            let mut different = starts.clone();
            different.sort_unstable();
            different.dedup();
            (
                starts.into_iter().zip(walls).collect(),
                Some(different.len()),
            )
        }
        (Some(walls), None) => (walls.into_iter().map(|wall| (0, wall)).collect(), None),
        (None, Some(uptimes)) => {
            let young = parts.iter().filter(|(_, beginning)| beginning.is_young());
            let beginnings = young.count();
            if beginnings > 1 {
                let note = format!(
                    "{beginnings} of the {count} files begin with the start of a JVM and have no dates, so it is unknown which \
                     files belong together: they are read in the order given; make the JVM log dates \
                     (-XX:+PrintGCDateStamps, or the decoration 'time')"
                );
                return (as_given(parts), Some(note));
            }
            if contradictory {
                let note = format!(
                    "the {count} files are from several JVMs and not all have dates, so they are read in the order given; each JVM is \
                     a separate run"
                );
                return (as_given(parts), Some(note));
            }
            (
                uptimes.into_iter().map(|uptime| (0, uptime)).collect(),
                None,
            )
        }
        (None, None) => {
            let note = format!(
                "not all of the {count} files contain a date, so they are read in the order given"
            );
            return (as_given(parts), Some(note));
        }
    };
    let mut keyed: Vec<_> = keys.into_iter().zip(parts).collect();
    keyed.sort_by_key(|(key, _)| *key);
    let note = match jvms {
        Some(jvms) if jvms > 1 => Some(format!(
            "the {count} files are from {jvms} JVMs; each JVM is a separate run, and the statistics of runs are not mixed"
        )),
        _ => None,
    };
    let mut last: Option<(i128, Beginning)> = None;
    let order = keyed.into_iter().map(|((start, _), (part, beginning))| {
        let another = last
            .as_ref()
            .is_some_and(|(last, before)| *last != start || beginning.contradicts(before));
        last = Some((start, beginning));
        (part, another)
    });
    (order.collect(), note)
}

/// Starts with those of one JVM made equal.
fn gathered(starts: &[i128]) -> Vec<i128> {
    let mut sorted = starts.to_vec();
    sorted.sort_unstable();
    let mut firsts: Vec<i128> = Vec::new();
    let mut last = None;
    for start in sorted {
        if last.is_none_or(|last| start - last > NEAR_NS) {
            firsts.push(start);
        }
        last = Some(start);
    }
    let first = |start: &i128| {
        let after = firsts.partition_point(|first| first <= start);
        firsts[after.saturating_sub(1)]
    };
    starts.iter().map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(
        name: &'static str,
        uptime_s: Option<u64>,
        wall_s: Option<i64>,
    ) -> (&'static str, Beginning) {
        let stamp = Stamp {
            uptime_ns: uptime_s.map(|s| s * 1_000_000_000),
            wall_ns: wall_s.map(|s| s * 1_000_000_000),
        };
        let beginning = Beginning {
            is_log: true,
            stamp: (stamp != Stamp::default()).then_some(stamp),
            first: name.into(),
            ..Beginning::default()
        };
        (name, beginning)
    }

    #[test]
    fn parts_come_by_uptime_whatever_their_names() {
        let parts = vec![
            part("gc.log", Some(200), None),
            part("gc.log.0", Some(100), None),
            part("gc.log.1", Some(0), None),
        ];
        let (order, note) = ordered(parts);
        assert_eq!(
            order,
            [("gc.log.1", false), ("gc.log.0", false), ("gc.log", false)]
        );
        assert_eq!(note, None);
    }

    #[test]
    fn parts_of_two_jvms_at_the_same_time_are_read_one_jvm_after_the_other() {
        let parts = vec![
            part("b1", Some(100), Some(1150)),
            part("a1", Some(90), Some(1090)),
            part("a0", Some(1), Some(1001)),
            // A second off: the clock of the wall was corrected.
            part("b0", Some(10), Some(1061)),
        ];
        let (order, note) = ordered(parts);
        assert_eq!(
            order,
            [("a0", false), ("a1", false), ("b0", true), ("b1", false)]
        );
        assert!(note.unwrap().contains("2 JVMs"));
    }

    #[test]
    fn parts_that_jvms_write_by_turns_come_by_date_alone() {
        let mut parts = vec![
            part("2", Some(200), Some(1200)),
            part("1", Some(0), Some(1100)),
            part("0", Some(1), Some(1001)),
        ];
        for (_, beginning) in &mut parts {
            beginning.by_turns = true;
        }
        let (order, note) = ordered(parts);
        assert_eq!(order, [("0", false), ("1", false), ("2", false)]);
        assert_eq!(note, None);
    }

    #[test]
    fn parts_that_tell_of_different_jvms_are_not_taken_for_one() {
        let part_with = |name, uptime_s, collector, version: &str| {
            let (name, beginning) = part(name, Some(uptime_s), None);
            let beginning = Beginning {
                collector: Some(collector),
                version: Some(version.to_owned()),
                ..beginning
            };
            (name, beginning)
        };
        let (order, note) = ordered(vec![
            part_with("b.1", 300, Collector::Serial, "1.8.0"),
            part_with("b.0", 200, Collector::Serial, "1.8.0"),
            part_with("a.1", 100, Collector::G1, "17"),
            part_with("c.1", 100, Collector::G1, "21"),
        ]);
        assert_eq!(
            order,
            [("b.1", false), ("b.0", false), ("a.1", true), ("c.1", true)]
        );
        assert!(note.unwrap().contains("several JVMs"));
        // What one does not tell contradicts nothing.
        let (order, _) = ordered(vec![
            part_with("b.1", 300, Collector::Serial, "1.8.0"),
            part("b.0", Some(200), None),
        ]);
        assert_eq!(order, [("b.0", false), ("b.1", false)]);
    }

    #[test]
    fn without_dates_two_beginnings_cannot_be_ordered_and_that_is_said() {
        let parts = vec![
            part("a", Some(0), None),
            part("a.0", Some(300), None),
            part("b", Some(0), None),
        ];
        let (order, note) = ordered(parts);
        assert_eq!(order, [("a", false), ("a.0", false), ("b", true)]);
        assert!(note.unwrap().contains("order given"));
        let (order, note) = ordered(vec![part("x", None, None), part("y", Some(0), None)]);
        assert_eq!(order, [("x", false), ("y", true)]);
        assert!(note.unwrap().contains("order given"));
    }

    #[test]
    fn a_copy_is_reported_by_its_times_and_its_text() {
        let of = |text: &'static str, uptime_s| part(text, uptime_s, None).1;
        let log = of("1.0: GC\n2.0: GC\n", Some(1));
        assert!(log.is_of(&of("1.0: GC\n2.0: GC\n", Some(1))));
        assert!(log.is_of(&of("1.0: GC\n", Some(1))), "copied while it grew");
        assert!(!log.is_of(&of("1.0: GC\n3.0: GC\n", Some(1))));
        let header = of("CommandLine flags: -Xmx1g\n", None);
        assert!(
            !header.is_of(&header.clone()),
            "every file of a rotation may begin so"
        );
    }

    #[test]
    fn an_application_that_ran_out_of_memory_wrote_no_gc_log() {
        let mut signs = Signs::default();
        signs.event(&Event::OutOfMemory {
            line: 1,
            at: Stamp::default(),
        });
        let mut account = Account::default();
        account.understood.lines = 1;
        assert!(!signs.are_of_a_log(&account));
        signs.certain = true;
        assert!(signs.are_of_a_log(&account));
        account.unknown.lines = 159;
        assert!(!signs.are_of_a_log(&account));
    }
}
