//! However a log is cut into pieces, it says the same.

use std::fmt::Write as _;

use proptest::prelude::*;
use rungwise_gclog::{Account, Event, Names, Parser};

use crate::corpus;

/// One of each manner of log; small, since each is read many times.
const LOGS: [&str; 10] = [
    "damaged_crlf.log",
    "damaged_garbage-bytes.log",
    "gctoolkit_preunified_g1gc_corrupted_full_concurrent_mark_failure.log",
    "gcviewer_SampleSun1_7_0CmsPrintFlsStats2.txt",
    "gcviewer_ujl_Sample-ujl-shenandoah-jdk17.txt",
    "jifa_11CMSScavengeBeforeRemark.log",
    "jifa_11ZGCParser.log",
    "jifa_17G1Parser.log",
    "own_jdk8-serial.log",
    "seed-cms-remark-before.log",
];

/// All events as text, and the account.
fn event_text(pieces: &[&[u8]]) -> (String, Account) {
    let mut text = String::new();
    let mut sink = |names: &Names, event: Event<'_>| {
        // Names are numbers by order of appearance, the same in both readings if all events are.
        let _ = writeln!(text, "{event:?}");
        if let Event::Pause(pause) = event {
            let _ = writeln!(text, "{}", names.get(pause.name));
        }
    };
    let mut parser = Parser::new();
    for piece in pieces {
        parser.push(piece, &mut sink);
    }
    let account = parser.finish(&mut sink);
    (text, account)
}

/// The pieces between sorted positions.
pub(crate) fn pieces<'a>(log: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(log.len() + 1)).collect();
    places.extend([0, log.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &log[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_of_a_log_say_what_the_whole_says(
        which in 0..LOGS.len(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let log = corpus::log(LOGS[which]);
        prop_assert_eq!(event_text(&pieces(&log, &cuts)), event_text(&[&log]));
    }

    #[test]
    fn nothing_makes_it_panic_and_every_byte_is_in_the_account(
        which in 0..LOGS.len(),
        // Where, what instead, and how many bytes are left out there.
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..40usize), 1..60),
    ) {
        let mut log = corpus::log(LOGS[which]);
        for (place, byte, gone) in damage {
            let at = place.index(log.len());
            log[at] = byte;
            log.drain(at..(at + gone).min(log.len() - 1));
        }
        let (_, account) = event_text(&[&log]);
        prop_assert_eq!(account.bytes(), log.len() as u64);
    }

    #[test]
    fn words_of_logs_in_any_order_do_not_make_it_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "[0.1s]", "[info]", "[gc]", "[gc,phases]", "[safepoint]", "GC(1) ", "GC(18446744073709551615) ", "GC(",
                "Pause ", "Young ", "Full ", "Remark", "(", ")", "(CMS Final Remark)", "Concurrent ", "Mark", " ",
                "1M->2M(3M) ", "99999999999G->", "5ms", "0,5 ms", "\n", "[GC", "[Full GC", "[ParNew: ", "]", ", ", "0.1 secs",
                "1.0: ", "Total: ", "Safepoint \"", "User=", "Y: ", "Used: ", "1M (1%)", "- age ", "1: 2 bytes", "\0", "\r",
                "Eden regions: ", "1->2(3)", "[Times: ", "{\"log\":\"", "\\n\"", "\\u", "\"", "web  | ", "[pod/a/b] ",
                "2026-01-02T03:04:05Z ", "stdout P ", "stdout F ", "Nov 22 10:00:00 h j[1]: ", "<1>1 - - - - - ", "{Heap before GC", "[CMS-concurrent-mark", "Desired survivor size ",
            ]),
            0..300,
        ),
    ) {
        let log = words.concat();
        let (_, account) = event_text(&[log.as_bytes()]);
        prop_assert_eq!(account.bytes(), log.len() as u64);
    }
}
