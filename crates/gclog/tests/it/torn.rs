//! Records of concurrent threads, printed into whatever another thread prints: the log says the same.
//!
//! JDK 8 writes a line in pieces, and two threads write at once. The records of CMS and G1 are put at every byte of a pause
//! with all that it prints, which is more than a JVM can do, and their pieces between the pieces of a row in every order.

use rungwise_gclog::{Concurrent, Event, Names, Parser, Pause, Safepoint};

/// What stands in front of things: `@` in the logs below.
#[derive(Clone, Copy, Debug)]
enum Stamps {
    DateAndUptime,
    Uptime,
    Date,
    None,
}

const ALL_STAMPS: [Stamps; 4] = [
    Stamps::DateAndUptime,
    Stamps::Uptime,
    Stamps::Date,
    Stamps::None,
];

impl Stamps {
    /// A log at a time in milliseconds, below ten minutes.
    fn print(self, log: &str, ms: u64) -> String {
        let (minutes, seconds, rest) = (ms / 60_000, ms / 1000 % 60, ms % 1000);
        let date = format!("2026-11-21T11:{minutes:02}:{seconds:02}.{rest:03}+0000: ");
        let uptime = format!("{}.{rest:03}: ", ms / 1000);
        let stamp = match self {
            Self::DateAndUptime => date + &uptime,
            Self::Uptime => uptime,
            Self::Date => date,
            Self::None => String::new(),
        };
        log.replace('@', &stamp)
    }
}

/// All events, without the numbers of lines.
#[derive(Debug, Default, PartialEq)]
struct Events {
    pauses: Vec<(String, Pause)>,
    phases: Vec<(String, Concurrent)>,
    safepoints: Vec<Safepoint>,
    others: Vec<String>,
    unknown: Vec<String>,
}

fn events_of(log: &str) -> Events {
    let mut events = Events::default();
    let mut sink = |names: &Names, event: Event<'_>| match event {
        Event::Pause(pause) => {
            let pause = Pause {
                line: 0,
                ..pause.clone()
            };
            events
                .pauses
                .push((names.get(pause.name).to_owned(), pause));
        }
        Event::Concurrent(phase) => {
            let phase = Concurrent { line: 0, ..*phase };
            events
                .phases
                .push((names.get(phase.name).to_owned(), phase));
        }
        Event::Safepoint(safepoint) => events.safepoints.push(Safepoint {
            line: 0,
            ..*safepoint
        }),
        // Which line is the first to show the collector depends on which comes first.
        Event::Fact(_) => {}
        other => events.others.push(format!("{other:?}")),
    };
    let mut parser = Parser::new();
    parser.push(log.as_bytes(), &mut sink);
    let account = parser.finish(&mut sink);
    events.unknown = account
        .samples
        .into_iter()
        .map(|sample| sample.text)
        .collect();
    // Names are numbers in the order in which they were met.
    for (_, pause) in &mut events.pauses {
        pause.name = rungwise_gclog::Name::default();
        pause.cause = pause.cause.map(|_| rungwise_gclog::Name::default());
        for phase in &mut pause.phases {
            phase.name = rungwise_gclog::Name::default();
        }
    }
    for (_, phase) in &mut events.phases {
        phase.name = rungwise_gclog::Name::default();
    }
    events
}

const BEFORE_CMS: &str = "@[GC (Allocation Failure) @[ParNew: 294912K->16384K(311296K), 0.1193963 secs] 294912K->45939K(393216K), 0.1194367 secs] [Times: user=0.02 sys=0.02, real=0.12 secs] \n\
    @[GC (CMS Initial Mark) [1 CMS-initial-mark: 59814K(81920K)] 76198K(393216K), 0.0068955 secs] [Times: user=0.01 sys=0.00, real=0.00 secs] \n\
    @[CMS-concurrent-mark-start]\n";

const CMS: &str = "{Heap before GC invocations=1 (full 0):
 par new generation   total 311296K, used 311296K [0x00000000e7000000, 0x00000000fb000000, 0x00000000fb000000)
  eden space 294912K, 100% used [0x00000000e7000000, 0x00000000f9000000, 0x00000000f9000000)
  from space 16384K, 100% used [0x00000000f9000000, 0x00000000fa000000, 0x00000000fa000000)
  to   space 16384K,   0% used [0x00000000fa000000, 0x00000000fa000000, 0x00000000fb000000)
 concurrent mark-sweep generation total 81920K, used 29555K [0x00000000fb000000, 0x0000000100000000, 0x0000000100000000)
 Metaspace       used 2976K, capacity 4498K, committed 4864K, reserved 1056768K
  class space    used 307K, capacity 386K, committed 512K, reserved 1048576K
@[GC (Allocation Failure) @[ParNew
Desired survivor size 8388608 bytes, new threshold 1 (max 15)
- age   1:   16777216 bytes,   16777216 total
- age   2:         16 bytes,   16777232 total
: 311296K->16384K(311296K), 0.0566032 secs] 340851K->76198K(393216K), 0.0566512 secs] [Times: user=0.02 sys=0.02, real=0.06 secs] 
Heap after GC invocations=2 (full 0):
 par new generation   total 311296K, used 16384K [0x00000000e7000000, 0x00000000fb000000, 0x00000000fb000000)
  eden space 294912K,   0% used [0x00000000e7000000, 0x00000000e7000000, 0x00000000f9000000)
  from space 16384K, 100% used [0x00000000fa000000, 0x00000000fb000000, 0x00000000fb000000)
  to   space 16384K,   0% used [0x00000000f9000000, 0x00000000f9000000, 0x00000000fa000000)
 concurrent mark-sweep generation total 81920K, used 59814K [0x00000000fb000000, 0x0000000100000000, 0x0000000100000000)
 Metaspace       used 2976K, capacity 4498K, committed 4864K, reserved 1056768K
  class space    used 307K, capacity 386K, committed 512K, reserved 1048576K
}
@Total time for which application threads were stopped: 0.0567123 seconds, Stopping threads took: 0.0000243 seconds
";

const CMS_RECORDS: [&str; 4] = [
    "@[CMS-concurrent-preclean-start]\n",
    "@[CMS-concurrent-mark: 0.009/0.019 secs] [Times: user=0.01 sys=0.00, real=0.01 secs] \n",
    " CMS: abort preclean due to time @[CMS-concurrent-abortable-preclean: 0.197/0.210 secs] [Times: user=0.01 sys=0.00, real=0.01 secs] \n",
    // PrintCMSStatistics
    "@[CMS-concurrent-mark: 0.009/0.019 secs] (CMS-concurrent-mark yielded 0 times)\n [Times: user=0.01 sys=0.00, real=0.01 secs] \n",
];

const AFTER_CMS: &str =
    "@[CMS-concurrent-preclean: 0.001/0.002 secs] [Times: user=0.00 sys=0.00, real=0.00 secs] \n";

const BEFORE_G1: &str = "@[GC pause (G1 Evacuation Pause) (young) (initial-mark), 0.0123400 secs]\n@[GC concurrent-mark-start]\n";

const G1: &str = "{Heap before GC invocations=1 (full 0):
 garbage-first heap   total 262144K, used 104448K [0x00000000e0000000, 0x00000000e0100800, 0x0000000100000000)
  region size 1024K, 102 young (104448K), 13 survivors (13312K)
 Metaspace       used 2976K, capacity 4498K, committed 4864K, reserved 1056768K
@[GC pause (G1 Evacuation Pause) (young)
Desired survivor size 6815744 bytes, new threshold 15 (max 15)
- age   1:    7343368 bytes,    7343368 total
, 0.0266615 secs]
   [Parallel Time: 18.9 ms, GC Workers: 4]
      [GC Worker Start (ms): Min: 5443.7, Avg: 5443.8, Max: 5443.9, Diff: 0.2]
      [Ext Root Scanning (ms): Min: 0.1, Avg: 0.2, Max: 0.4, Diff: 0.3, Sum: 0.9]
         [Processed Buffers: Min: 0, Avg: 0.2, Max: 1, Diff: 1, Sum: 2]
      [Object Copy (ms): Min: 15.6, Avg: 16.0, Max: 17.1, Diff: 1.5, Sum: 64.0]
   [Code Root Fixup: 0.1 ms]
   [Other: 7.7 ms]
      [Choose CSet: 0.0 ms]
   [Eden: 102.0M(102.0M)->0.0B(89.0M) Survivors: 0.0B->13.0M Heap: 102.0M(256.0M)->14.5M(256.0M)]
Heap after GC invocations=2 (full 0):
 garbage-first heap   total 262144K, used 14848K [0x00000000e0000000, 0x00000000e0100800, 0x0000000100000000)
  region size 1024K, 13 young (13312K), 13 survivors (13312K)
 Metaspace       used 2976K, capacity 4498K, committed 4864K, reserved 1056768K
}
 [Times: user=0.01 sys=0.01, real=0.03 secs] 
@Total time for which application threads were stopped: 0.0267123 seconds, Stopping threads took: 0.0000243 seconds
";

const G1_RECORDS: [&str; 2] = [
    "@[GC concurrent-root-region-scan-start]\n",
    "@[GC concurrent-mark-end, 0.0034000 secs]\n",
];

const AFTER_G1: &str = "@[GC concurrent-root-region-scan-end, 0.0014000 secs]\n";

/// The records at every byte of the pause.
fn at_every_byte(before: &str, pause: &str, records: &[&str], after: &str) {
    let mut wrong = Vec::new();
    for stamps in ALL_STAMPS {
        let before = stamps.print(before, 5440);
        let pause = stamps.print(pause, 5444);
        let after = stamps.print(after, 5550);
        for record in records {
            let record = stamps.print(record, 5446);
            let whole = events_of(&[&*before, &record, &pause, &after].concat());
            assert_eq!(whole.unknown, [""; 0]);
            for at in 0..=pause.len() {
                let (first, rest) = pause.split_at(at);
                // Two rows of CPU times follow each other, and nothing tells which is whose. One place in two thousand,
                // with an option that nobody sets.
                if record.contains("yielded") && rest.starts_with(" [Times: ") {
                    continue;
                }
                let torn = events_of(&[&*before, first, &record, rest, &after].concat());
                if torn != whole {
                    let near = &pause[at.saturating_sub(20)..(at + 20).min(pause.len())];
                    wrong.push(format!("{stamps:?}, {record:?} at {at}, in {near:?}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_record_of_cms_at_any_byte_of_a_pause_changes_nothing() {
    at_every_byte(BEFORE_CMS, CMS, &CMS_RECORDS, AFTER_CMS);
}

#[test]
fn a_record_of_g1_at_any_byte_of_a_pause_changes_nothing() {
    at_every_byte(BEFORE_G1, G1, &G1_RECORDS, AFTER_G1);
}

/// All orders of two rows of pieces that keep the order within each row.
fn orders(first: &[String], second: &[String]) -> Vec<String> {
    let go_on = |pieces: &[String], others: &[String], next: &String| {
        let rests = orders(pieces, others);
        rests
            .into_iter()
            .map(|rest| next.clone() + &rest)
            .collect::<Vec<_>>()
    };
    match (first, second) {
        ([], rest) | (rest, []) => vec![rest.concat()],
        ([a, first_rest @ ..], [b, second_rest @ ..]) => {
            let mut all = go_on(first_rest, second, a);
            all.extend(go_on(first, second_rest, b));
            all
        }
    }
}

/// The pieces in which a JVM writes a row of `PrintHeapAtGC`.
fn pieces_of_row(row: &str) -> Vec<String> {
    let mut cuts = vec![0, row.len()];
    cuts.extend(row.find(" [0x"));
    cuts.extend(row.find(" space ").filter(|at| *at > 0));
    cuts.extend(row.find(" total "));
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|cut| row[cut[0]..cut[1]].to_owned())
        .collect()
}

#[test]
fn pieces_of_a_record_between_the_pieces_of_a_row_change_nothing() {
    let mut compared = 0;
    for (before, pause, records, after) in [
        (BEFORE_CMS, CMS, &CMS_RECORDS[..], AFTER_CMS),
        (BEFORE_G1, G1, &G1_RECORDS[..], AFTER_G1),
    ] {
        for stamps in ALL_STAMPS {
            let before = stamps.print(before, 5440);
            let pause = stamps.print(pause, 5444);
            let after = stamps.print(after, 5550);
            for record in records {
                let (stamp, bracket) = record.split_once('@').expect("stamps");
                let (bracket, times) = bracket.split_at(bracket.find(']').expect("an end") + 1);
                let mut pieces = vec![stamp.to_owned()];
                for stamp in stamps
                    .print("@", 5446)
                    .split_inclusive(": ")
                    .filter(|one| !one.is_empty())
                {
                    pieces.extend([stamp[..stamp.len() - 2].to_owned(), ": ".to_owned()]);
                }
                // The end of a line is in the last piece of it.
                if times == "\n" {
                    pieces.push(format!("{bracket}\n"));
                } else {
                    pieces.push(bracket.to_owned());
                    pieces.extend(times.split_inclusive('\n').map(str::to_owned));
                }
                pieces.retain(|piece| !piece.is_empty());
                let whole = events_of(&[&*before, &pieces.concat(), &pause, &after].concat());
                for row in pause
                    .split_inclusive('\n')
                    .filter(|row| row.contains(" [0x"))
                {
                    let at = pause.find(row).expect("it is in there");
                    let (first, rest) = (&pause[..at], &pause[at + row.len()..]);
                    for torn in orders(&pieces_of_row(row), &pieces) {
                        let log = [&*before, first, &torn, rest, &after].concat();
                        assert_eq!(events_of(&log), whole, "{torn}");
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn digits_before_an_uptime_are_of_the_line_unless_the_time_would_lie_behind_the_last() {
    let pause = |at: &str| {
        format!("{at}: [GC (Allocation Failure) 311296K->16384K(311296K), 0.0566032 secs]\n")
    };
    let torn = "{Heap before GC invocations=1 (full 0):\n  eden space 212.345: [CMS-concurrent-mark-start]\n\
        6240K, 100% used [0x00000000e7000000, 0x00000000e8000000, 0x00000000f9000000)\n";
    let eden = |before: &str| {
        let events = events_of(&[before, torn, &pause("12.400")].concat());
        let (_, last) = events.pauses.last().expect("a pause");
        last.areas.get(rungwise_gclog::Area::Eden).before
    };
    let used = Some(0x0100_0000);
    assert_eq!(eden(&pause("12.300")), used);
    // Of several times that may be the nearest counts: 2.345 behind 1.000, so that the row has one digit more than it had.
    assert_eq!(eden(&pause("1.000")), used);
    assert_eq!(eden(""), used);
}
