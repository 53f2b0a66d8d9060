//! The GC log that the JVM writes: what the heap held before and after each collection, and what threads had not used of their buffers.
//!
//! From one forced collection to the next the heap grows by what is allocated, whatever collections come between: each is one step. Threads get
//! their share in buffers (TLABs), and what they hold and have not used is printed at each collection (`-Xlog:gc+tlab=debug`). Nothing
//! of it is asked of the JVM but where the log is.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rungwise_formats::tlab_totals::{self, Totals};
use rungwise_formats::vm_log;
use rungwise_gclog::{Area, Areas, Change, Event, Kind, Name, Names, Parser};
use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::{clock, files};
use rungwise_model::capacity::Estimate;
use rungwise_probes::jvm::READS_WITHIN;

use super::meter::Collector;

/// How long the JVM may take to write what a command has done: at once, but for `-Xlog:async`.
const WRITES_WITHIN: Duration = Duration::from_secs(2);
/// Between two checks of the file meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Most bytes that are read of a log at once: a window's. With all tags at trace a collection writes some MB.
const LONGEST: u64 = 64 << 20;
/// The cause of a collection that was asked for by `GC.run`.
const FORCED: &str = "Diagnostic Command";
/// A pause or a cycle prints the heap in whole MiB.
const COARSE: u64 = 1 << 20;
/// A generation is printed in whole KiB, and there are two.
const FINE: u64 = 2 << 10;

/// The file of the log.
#[derive(Debug)]
pub(super) struct GcLog {
    file: File,
    /// How far it was read.
    at: AtomicU64,
    collector: Option<Collector>,
}

/// What the log says of one collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Collection {
    id: Option<u64>,
    /// Heap in use before and after, rounded down.
    before: u64,
    after: u64,
    /// Both may be less than this many bytes more.
    unit: u64,
    /// Unused buffers at that moment; absent where none was handed out since the last one.
    totals: Option<Totals>,
    /// It was asked for by us, and collected everything.
    forced: bool,
}

/// What the heap held after the last collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct After {
    bytes: u64,
    unit: u64,
}

/// What was handed out between two collections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// Growth of the heap in use.
    pub(super) bytes: Estimate,
    /// What threads had not used of it.
    pub(super) totals: Totals,
}

impl GcLog {
    /// The log of the JVM; why it is of no use; nothing where it writes none.
    pub(super) fn find(
        jvm: &Jvm,
        collector: Option<Collector>,
    ) -> Result<Option<Result<Self, String>>, Error> {
        let list = match jvm.command("VM.log list", READS_WITHIN) {
            Ok(list) => list,
            // JDK 8.
            Err(Error::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut outputs = vm_log::outputs(&list);
        outputs.retain(|output| output.has(&["gc"], "info"));
        if outputs.is_empty() {
            return Ok(None);
        }
        if collector == Some(Collector::Shenandoah) {
            let why = "Shenandoah does not log what threads have not used of their buffers";
            return Ok(Some(Err(why.to_owned())));
        }
        outputs.retain(|output| output.has(&["gc", "tlab"], "debug"));
        if outputs.is_empty() {
            return Ok(Some(Err(format!(
                "the GC log lacks unused buffers; add them: jcmd {} VM.log output=FILE what=gc*=info,gc+tlab=debug, or start the JVM with \
                 -Xlog:gc*,gc+tlab=debug:file=gc.log",
                jvm.pid()
            ))));
        }
        let open = jvm.open_files();
        let file = outputs.iter().find_map(|output| {
            let is_it = |(number, name): &&(u32, String)| match output.name.as_str() {
                "stdout" => *number == 1,
                "stderr" => *number == 2,
                _ => output.is_at(name),
            };
            let (number, _) = open.iter().find(is_it)?;
            files::open(format!("/proc/{}/fd/{number}", jvm.pid()).as_ref()).ok()
        });
        let Some(file) = file else {
            let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
            return Ok(Some(Err(format!(
                "the GC log goes to {}, which is no file that can be read here",
                names.join(" and ")
            ))));
        };
        let end = file.metadata().map_or(0, |file| file.len());
        Ok(Some(Ok(Self {
            file,
            at: AtomicU64::new(end),
            collector,
        })))
    }

    /// The collections since the last call, of which one was forced just now.
    pub(super) fn since(&self) -> Result<Vec<Collection>, String> {
        let began = clock::now();
        let from = self.at.load(Ordering::Relaxed);
        loop {
            let text = files::read_from(&self.file, from, LONGEST)
                .map_err(|error| format!("cannot read the GC log: {error}"))?;
            // The last line may be half written.
            let end = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
            let found = collections(&text[..end], self.has_generations());
            if found.iter().any(|one| one.forced) {
                self.at.store(from + end as u64, Ordering::Relaxed);
                return Ok(found);
            }
            if began.elapsed() > WRITES_WITHIN {
                self.at.store(from + end as u64, Ordering::Relaxed);
                return Err(
                    "the GC log does not contain the forced collection: it was rotated, or longer than 64 MiB"
                        .to_owned(),
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Both generations are printed, each in KiB.
    fn has_generations(&self) -> bool {
        let collector = self.collector;
        matches!(
            collector,
            Some(Collector::Serial | Collector::Parallel | Collector::Cms)
        )
    }
}

/// What the heap held when the last of these collections was over.
pub(super) fn after(collections: &[Collection]) -> Option<After> {
    collections.last().map(|last| After {
        bytes: last.after,
        unit: last.unit,
    })
}

/// What was handed out from `after` to the last of these collections.
pub(super) fn growth(after: After, collections: &[Collection]) -> Growth {
    let (mut bytes, mut less, mut more) = (0.0, 0.0, 0.0);
    let mut totals = Totals::default();
    let mut last = after;
    for collection in collections {
        bytes += collection.before as f64 - last.bytes as f64;
        less += (last.unit - 1) as f64;
        more += (collection.unit - 1) as f64;
        last = After {
            bytes: collection.after,
            unit: collection.unit,
        };
        if let Some(one) = collection.totals {
            totals.unused = totals.unused.saturating_add(one.unused);
            totals.beside = totals.beside.saturating_add(one.beside);
        }
    }
    Growth {
        bytes: Estimate {
            point: bytes,
            low: bytes - less,
            high: bytes + more,
        },
        totals,
    }
}

/// The collections in a piece of a log.
fn collections(text: &[u8], has_generations: bool) -> Vec<Collection> {
    let lines = text.split(|byte| *byte == b'\n');
    let totals: BTreeMap<u64, Totals> = lines
        .filter_map(|line| tlab_totals::parse(&String::from_utf8_lossy(line)))
        .collect();
    let mut found: Vec<Collection> = Vec::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        let is_forced = |cause: Option<Name>| cause.is_some_and(|it| names.get(it) == FORCED);
        let (id, areas, forced) = match event {
            Event::Pause(pause) => {
                let forced = pause.kind == Kind::Full && is_forced(pause.cause);
                (pause.id, &pause.areas, forced)
            }
            Event::Concurrent(cycle) if cycle.cycle => {
                (cycle.id, &cycle.areas, is_forced(cycle.cause))
            }
            _ => return,
        };
        let Some((before, after, unit)) = held(areas, has_generations) else {
            return;
        };
        match (event, found.last_mut()) {
            // Generational ZGC prints the parts of a cycle with its number, and then the whole.
            (Event::Concurrent(_), Some(last)) if id.is_some() && last.id == id => {
                last.after = after;
                last.forced |= forced;
            }
            _ => found.push(Collection {
                id,
                before,
                after,
                unit,
                totals: id.and_then(|id| totals.get(&id).copied()),
                forced,
            }),
        }
    };
    let mut parser = Parser::new();
    parser.push(text, &mut sink);
    parser.finish(&mut sink);
    found
}

/// What the heap held before and after, and the unit in which it is printed.
fn held(areas: &Areas, has_generations: bool) -> Option<(u64, u64, u64)> {
    let both = |change: Change| change.before.zip(change.after);
    if has_generations
        && let (Some(young), Some(old)) = (both(areas.get(Area::Young)), both(areas.get(Area::Old)))
    {
        return Some((
            young.0.saturating_add(old.0),
            young.1.saturating_add(old.1),
            FINE,
        ));
    }
    let (before, after) = both(areas.get(Area::Heap))?;
    Some((before, after, COARSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JDK 17, Parallel: a young collection by itself, then one and a full one by `GC.run`.
    const PARALLEL: &str = "\
[1.1s][info ][gc,start     ] GC(3) Pause Young (Allocation Failure)
[1.1s][debug][gc,tlab      ] GC(3) TLAB totals: thrds: 5  refills: 50 max: 23 slow allocs: 2 max 1 waste:  5.6% gc: 2048B max: 715568B slow: 1024B max: 17608B
[1.1s][info ][gc,heap      ] GC(3) PSYoungGen: 1000K(2048K)->100K(2048K) Eden: 900K(1024K)->0K(1024K) From: 100K(1024K)->100K(1024K)
[1.1s][info ][gc,heap      ] GC(3) ParOldGen: 10K(4096K)->20K(4096K)
[1.1s][info ][gc           ] GC(3) Pause Young (Allocation Failure) 0M->0M(6M) 1.000ms
[1.2s][info ][gc,start     ] GC(4) Pause Young (Diagnostic Command)
[1.2s][debug][gc,tlab      ] GC(4) TLAB totals: thrds: 5  refills: 50 max: 23 slow allocs: 0 max 0 waste:  5.6% gc: 512B max: 5B slow: 0B max: 0B
[1.2s][info ][gc,heap      ] GC(4) PSYoungGen: 600K(2048K)->50K(2048K) Eden: 500K(1024K)->0K(1024K) From: 100K(1024K)->50K(1024K)
[1.2s][info ][gc,heap      ] GC(4) ParOldGen: 20K(4096K)->30K(4096K)
[1.2s][info ][gc           ] GC(4) Pause Young (Diagnostic Command) 0M->0M(6M) 1.000ms
[1.3s][info ][gc,start     ] GC(5) Pause Full (Diagnostic Command)
[1.3s][info ][gc,heap      ] GC(5) PSYoungGen: 50K(2048K)->0K(2048K) Eden: 0K(1024K)->0K(1024K) From: 50K(1024K)->0K(1024K)
[1.3s][info ][gc,heap      ] GC(5) ParOldGen: 30K(4096K)->70K(4096K)
[1.3s][info ][gc           ] GC(5) Pause Full (Diagnostic Command) 0M->0M(6M) 1.000ms
";

    #[test]
    fn the_heap_grows_from_collection_to_collection_by_what_was_handed_out() {
        let found = collections(PARALLEL.as_bytes(), true);
        let forced: Vec<bool> = found.iter().map(|one| one.forced).collect();
        assert_eq!(forced, [false, false, true]);
        let k = 1024;
        let begin = After {
            bytes: 200 * k,
            unit: FINE,
        };
        let grown = growth(begin, &found);
        // 1010 - 200, 620 - 120, 80 - 80.
        let (point, room) = ((1310 * k) as f64, 3.0 * (FINE - 1) as f64);
        let bytes = Estimate {
            point,
            low: point - room,
            high: point + room,
        };
        assert_eq!(grown.bytes, bytes);
        let totals = Totals {
            unused: 2048 + 1024 + 512,
            beside: 2,
        };
        assert_eq!(grown.totals, totals);
        let end = after(&found).unwrap();
        assert_eq!((end.bytes, end.unit), (70 * k, FINE));
        // Cut in the middle, the forced one is missing.
        let cut = PARALLEL.find("GC(5) ParOldGen").unwrap();
        let found = collections(&PARALLEL.as_bytes()[..cut], true);
        assert!(!found.last().unwrap().forced, "{found:?}");
    }

    #[test]
    fn other_collectors_print_the_whole_heap_in_mebibytes() {
        let g1 = "[2.0s][debug][gc,tlab] GC(7) TLAB totals: thrds: 2  refills: 6 max: 3 slow allocs: 0 max 0 waste:  0.7% gc: 8B max: 8B slow: 4B max: 4B\n\
                  [2.0s][info][gc] GC(7) Pause Full (Diagnostic Command) 24M->3M(256M) 7.100ms\n";
        let zgc =
            "[2.0s][info][gc] GC(7) Garbage Collection (Diagnostic Command) 24M(9%)->3M(1%)\n";
        let generational = "[2.0s][info][gc] GC(7) Y: Young Generation 24M(9%)->6M(2%) 0.01s\n\
                            [2.0s][info][gc] GC(7) O: Old Generation 6M(2%)->3M(1%) 0.01s\n\
                            [2.0s][info][gc] GC(7) Major Collection (Diagnostic Command) 24M(9%)->3M(1%) 0.02s\n";
        for (text, has_totals) in [(g1, true), (zgc, false), (generational, false)] {
            let found = collections(text.as_bytes(), false);
            let [one] = &found[..] else {
                panic!("{found:?}");
            };
            assert_eq!(
                (one.before, one.after, one.unit),
                (24 << 20, 3 << 20, COARSE)
            );
            assert_eq!((one.totals.is_some(), one.forced), (has_totals, true));
        }
    }
}
