//! What every log of the corpus gives, one golden text each: account, runs, counts, sums, longest.
//!
//! Where `GCViewer` 1.36 or `GCToolkit` 3.5.0 found something else in the same file (`truth.json` has their figures), a note at
//! the end of the text says so and shows the line that decides: that of the longest pause where theirs is another, or the first
//! of the only sort whose number is the difference. Where neither does, [`DECIDED`] names the line and what the peer makes of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_gclog::{Account, Event, Names, Parser, Summarizer, Summary};
use rungwise_model::gc::{Run, Total, Trouble};
use serde_json::Value;

use crate::corpus;

/// Files, peers, and the lines that decide between them and us, with what the peer makes of the line. Known by the counts of
/// each sort in `truth.json`, and for `GCViewer` by what the pauses that it lacks have in common.
const DECIDED: &[(&str, &str, u64, &str)] = &[
    (
        "garbagecat_dataset115.txt",
        TOOLKIT,
        12,
        "it counts the failed promotion and the full collection that it ends in as two",
    ),
    (
        "garbagecat_dataset283.txt",
        TOOLKIT,
        203,
        "it counts no cleanup",
    ),
    (
        "gctoolkit_gctoolkit-gclogs-rolling_rolling_jdk8_bbvc.log.32.current.gz",
        VIEWER,
        1968,
        "it takes the time in which threads were stopped for a pause",
    ),
    (
        "gctoolkit_preunified_cms_parnew_details_tenuring_180_fls_bob.log.gz",
        TOOLKIT,
        26753,
        "it counts the failed promotion and the full collection that it ends in as two",
    ),
    (
        "gctoolkit_preunified_cms_parnew_details_tenuring_929_def.cms.wd.wt.log.gz",
        TOOLKIT,
        6249,
        "it counts this failed promotion, five others and the full collections that they end in as two each",
    ),
    (
        "gctoolkit_preunified_g1gc_details_solaris_rightmove_parse_errors.log.gz",
        VIEWER,
        21272,
        "it takes the time in which threads were stopped for a pause",
    ),
    (
        "gctoolkit_preunified_g1gc_details_tenuring_170_45_g1_details_tenuring_cause.log.gz",
        VIEWER,
        9322,
        "it lacks as many pauses as there are with this line, all with concurrent phases printed into them",
    ),
    (
        "gctoolkit_preunified_icms_details_tenuring_gc-master.log.gz",
        TOOLKIT,
        3414,
        "it counts the young and the old part of this collection, and of that in line 4031, as two",
    ),
    (
        "gctoolkit_unified_cms_gc.log.gz",
        TOOLKIT,
        350,
        "it counts neither this one, which has no CPU line, nor the 13 young ones that hold a full one",
    ),
    (
        "gcviewer_SampleOpenJdk1_8_0-332.txt",
        VIEWER,
        62,
        "it takes a row of the JVM's own sums for a pause, and its microseconds for seconds",
    ),
    (
        "gcviewer_SampleSun1_6_0G1_gc_verbose.txt.gz",
        TOOLKIT,
        1,
        "it counts none of the 2478 pauses that are no full one, no remark and no cleanup",
    ),
    (
        "gcviewer_ujl_sample-ujl-jdk17-full-concurrent-cycle-g1-gc-all-safepont_os-cpu.txt",
        TOOLKIT,
        100,
        "it counts no cleanup",
    ),
    (
        "gcviewer_ujl_sample-ujl-zgc-gc-other.txt",
        VIEWER,
        2,
        "it adds up the three pauses of a cycle",
    ),
    ("jifa_17G1Parser.log", TOOLKIT, 53, "it counts no cleanup"),
    (
        "jifa_8ConcurrentPrintDateTimeStamp.log",
        TOOLKIT,
        1,
        "it counts no young one",
    ),
    ("jifa_8G1PrintGC.log", TOOLKIT, 4, "it counts no young one"),
    (
        "own_jdk11-zgc.log",
        VIEWER,
        542,
        "it adds up the three pauses of a cycle",
    ),
    (
        "own_jdk17-g1-timeonly.log",
        TOOLKIT,
        298,
        "it counts no cleanup",
    ),
    (
        "own_jdk21-zgc-nongen.log",
        VIEWER,
        487,
        "it adds up the three pauses of a cycle",
    ),
];

const VIEWER: &str = "GCViewer 1.36";
const TOOLKIT: &str = "GCToolkit 3.5.0";

/// What the notes need of single pauses.
#[derive(Default)]
struct Seen {
    /// By name: how many, and the line of the first.
    sorts: BTreeMap<String, (u64, u64)>,
    /// Duration and line.
    longest: Option<(u64, u64)>,
    nested: u64,
}

struct Read {
    summary: Summary,
    account: Account,
    seen: Seen,
}

fn read(log: &[u8]) -> Read {
    let mut summarizer = Summarizer::new();
    let mut seen = Seen::default();
    let mut sink = |names: &Names, event: Event<'_>| {
        summarizer.event(names, event);
        let Event::Pause(pause) = event else { return };
        let Some(ns) = pause.duration_ns else { return };
        let name = names.get(pause.name).to_owned();
        seen.sorts.entry(name).or_insert((0, pause.line)).0 += 1;
        seen.nested += u64::from(pause.nested);
        if seen.longest.is_none_or(|(longest, _)| longest < ns) {
            seen.longest = Some((ns, pause.line));
        }
    };
    let mut parser = Parser::new();
    parser.push(log, &mut sink);
    let account = parser.finish(&mut sink);
    Read {
        summary: summarizer.summary(),
        account,
        seen,
    }
}

/// What a log gives, as text.
fn render(name: &str, log: &[u8], truth: &Value) -> String {
    let Read {
        summary,
        account,
        seen,
    } = read(log);
    let mut text = render_account(&account);
    for run in &summary.runs {
        text += &render_run(run);
    }
    for note in [
        viewer_note(name, log, &seen, &truth["gcviewer_1_36"]),
        toolkit_note(name, log, &seen, &truth["gctoolkit_3_5_0"]),
        growth_note(name, &summary.runs),
    ]
    .into_iter()
    .flatten()
    {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// Logs whose live set seems to grow and of which `gc-live-growth` says nothing, with the reason.
const NO_GROWTH: [(&str, &str); 2] = [
    (
        "gctoolkit_preunified_g1gc_details_tenuring_180_g1gc.log.gz",
        "most of its mixed collections lie within eight seconds of six minutes, which count as one stretch of time or two; the \
         three or four that are left are too few for a slope, though the last holds more than the first",
    ),
    (
        "gctoolkit_preunified_icms_details_tenuring_gc-master.log.gz",
        "it fills for nine minutes and stands still for the other twenty-two, so that what is certain of its growth is below 5 % of it \
         over the run; counted by collection, which crowd while it fills, it seemed to grow all the time",
    ),
];

fn growth_note(name: &str, runs: &[Run]) -> Option<String> {
    let (_, why) = NO_GROWTH.iter().find(|(log, _)| *log == name)?;
    let run = runs.first()?;
    let live = run.live.as_ref()?;
    let certain = live.bytes_per_hour.map_or_else(
        || "no slope".to_owned(),
        |slope| {
            let bytes = slope.low * run.seconds.unwrap_or(0.0) / 3600.0;
            format!(
                "at least {:.1} % over the run",
                100.0 * bytes / live.last_bytes as f64
            )
        },
    );
    Some(format!("no growth of what is alive ({certain}): {why}"))
}

fn render_account(account: &Account) -> String {
    let shares = [account.understood, account.ignored, account.unknown];
    let [understood, ignored, unknown] =
        shares.map(|share| format!("{} ({} bytes)", share.lines, share.bytes));
    let mut text =
        format!("lines: understood {understood}, ignored {ignored}, not understood {unknown}\n");
    for (said, is) in [
        ("its last line has no end", account.cut),
        ("it has lines that are too long", account.long_lines > 0),
        ("it has zero bytes", account.nul_bytes > 0),
        ("two JVMs write it by turns", account.by_turns.is_some()),
    ] {
        if is {
            let _ = writeln!(text, "{said}");
        }
    }
    if let Some(end) = &account.begins_within {
        let _ = writeln!(
            text,
            "it begins within a pause that ends in line {}: {}",
            end.line, end.text
        );
    }
    for sample in account.samples.iter().take(3) {
        let start: String = sample.text.chars().take(80).collect();
        let _ = writeln!(text, "not understood, line {}: {start}", sample.line);
    }
    text
}

fn render_run(run: &Run) -> String {
    let mut text = format!("\nrun {}", run.number);
    let jvm = &run.jvm;
    for fact in [&jvm.collector, &jvm.version].into_iter().flatten() {
        let _ = write!(text, ", {fact}");
    }
    if let (Some(began), Some(seconds)) = (run.began_s, run.seconds) {
        let _ = write!(text, ", {seconds:.3} s from {began:.3} s on");
    }
    let _ = writeln!(text, "{}", if run.whole { ", whole" } else { "" });
    let all = &run.pauses.all;
    let pauses = format!(
        "{}, {} nested, {} without an end",
        total(&Total::from(*all)),
        run.pauses.nested.count,
        run.pauses.unfinished
    );
    let _ = writeln!(text, "pauses: {pauses}");
    for (name, spread) in &run.pauses.by_type {
        let _ = writeln!(text, "  {name}: {}", total(&Total::from(*spread)));
    }
    for (name, spread) in &run.pauses.by_cause {
        let _ = writeln!(text, "cause {name}: {}", spread.count);
    }
    let phases: usize = run.pauses.phases.values().map(Vec::len).sum();
    if phases > 0 {
        let _ = writeln!(text, "names of phases: {phases}");
    }
    for (name, phase) in &run.concurrent {
        let (time, given_up) = (Total::from(phase.time), phase.aborted);
        let _ = writeln!(text, "beside {name}: {}, {given_up} given up", total(&time));
    }
    if let Some(safepoints) = &run.safepoints {
        let stopped = total(&Total::from(safepoints.stopped));
        let operations = safepoints.operations.len();
        let _ = writeln!(text, "safepoints: {stopped}, {operations} operations");
    }
    if let Some(cpu) = &run.cpu {
        let (user, sys, real) = (cpu.user_ms, cpu.sys_ms, cpu.real_ms);
        let _ = writeln!(
            text,
            "cpu of {} pauses: user {user:.0} ms, sys {sys:.0} ms, real {real:.0} ms",
            cpu.pauses
        );
    }
    text += &render_memory(run);
    for (name, trouble) in troubles(run) {
        if trouble.count > 0 {
            let line = trouble.first.as_ref().and_then(|first| first.line);
            let line = line.map_or_else(String::new, |line| format!(", first in line {line}"));
            let _ = writeln!(text, "{name}: {}{line}", trouble.count);
        }
    }
    text
}

fn render_memory(run: &Run) -> String {
    let mut text = String::new();
    if let Some(rate) = &run.allocation {
        let _ = writeln!(
            text,
            "allocated: {} bytes in {:.3} s",
            rate.bytes, rate.known_s
        );
    }
    if let Some(promotion) = &run.promotion {
        let _ = writeln!(
            text,
            "promoted: {:.0} bytes a collection, {} of them",
            promotion.mean_bytes, promotion.collections
        );
    }
    for (name, part) in &run.heap.parts {
        let last = part
            .last_bytes
            .map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        let _ = writeln!(text, "{name}: peak {} bytes, last {last}", part.peak_bytes);
    }
    if let Some(sizes) = &run.heap.humongous_sizes {
        let _ = writeln!(
            text,
            "humongous objects: {}, half up to {} bytes, nine of ten up to {}, the largest {}",
            sizes.count, sizes.p50_bytes, sizes.p90_bytes, sizes.largest_bytes
        );
    }
    if let Some(ages) = &run.ages {
        let _ = writeln!(
            text,
            "age tables: {}, {} ages",
            ages.count,
            ages.mean_bytes.len()
        );
    }
    if let Some(live) = &run.live {
        let _ = writeln!(
            text,
            "live ({}): {} samples, last {} bytes",
            live.source.word(),
            live.samples,
            live.last_bytes
        );
    }
    if run.old.cycles > 0 {
        let _ = writeln!(text, "old cycles: {}", run.old.cycles);
    }
    for (name, references) in &run.references {
        let _ = writeln!(text, "{name}: {}", references.count);
    }
    if let Some(stalls) = &run.stalls {
        let _ = writeln!(text, "stalls: {}", total(&Total::from(stalls.time)));
    }
    if let Some(lists) = &run.fragmentation {
        let _ = writeln!(
            text,
            "free lists: {} bytes, largest {}",
            lists.free_bytes, lists.largest_bytes
        );
    }
    if !run.statistics.is_empty() {
        let _ = writeln!(
            text,
            "rows of the collector's own sums: {}",
            run.statistics.len()
        );
    }
    text
}

fn total(total: &Total) -> String {
    format!(
        "{} in {:.6} ms, longest {:.6} ms",
        total.count, total.total_ms, total.longest_ms
    )
}

fn troubles(run: &Run) -> [(&'static str, &Trouble); 6] {
    let troubles = &run.troubles;
    [
        ("evacuation failed", &troubles.evacuation_failed),
        ("promotion failed", &troubles.promotion_failed),
        ("concurrent mode failure", &troubles.concurrent_mode_failure),
        (
            "concurrent mode interrupted",
            &troubles.concurrent_mode_interrupted,
        ),
        ("gc locker", &troubles.gc_locker),
        ("out of memory", &troubles.out_of_memory),
    ]
}

/// What a peer found, in the terms of the note.
struct Theirs {
    who: &'static str,
    pauses: u64,
    longest_s: f64,
}

fn viewer_note(name: &str, log: &[u8], seen: &Seen, truth: &Value) -> Option<String> {
    match truth {
        Value::String(why) => failed(log, seen, VIEWER, why),
        Value::Object(figures) => {
            let number = |key: &str| figures[key].as_u64().unwrap_or(0);
            let theirs = Theirs {
                who: VIEWER,
                pauses: number("gc") + number("full"),
                longest_s: figures["max"].as_f64().unwrap_or(0.0),
            };
            difference(name, log, seen, &theirs)
        }
        _ => None,
    }
}

fn toolkit_note(name: &str, log: &[u8], seen: &Seen, truth: &Value) -> Option<String> {
    match truth {
        Value::String(why) => failed(log, seen, TOOLKIT, why),
        Value::Object(sorts) => {
            let is_pause = |name: &str| {
                !name.starts_with("Concurrent") && !name.contains("G1Concurrent") && !name.ends_with("ZGCCycle")
                    && name != "AbortablePreClean"
                    // The failure of a cycle is a pause.
                    || name == "ConcurrentModeFailure"
            };
            let pauses = sorts.iter().filter(|(name, _)| is_pause(name));
            let figure = |sort: &Value, key: &str| sort[key].as_f64().unwrap_or(0.0);
            let theirs = Theirs {
                who: TOOLKIT,
                pauses: pauses
                    .clone()
                    .map(|(_, sort)| figure(sort, "n") as u64)
                    .sum(),
                longest_s: pauses
                    .map(|(_, sort)| figure(sort, "max_s"))
                    .fold(0.0, f64::max),
            };
            difference(name, log, seen, &theirs)
        }
        _ => None,
    }
}

/// A peer that found nothing where there is something.
fn failed(log: &[u8], seen: &Seen, who: &str, why: &str) -> Option<String> {
    let line = first_line(seen)?;
    let why = if why.is_empty() { "no pause" } else { why };
    Some(format!(
        "\n{who}: {why}; line {line}: {}",
        quoted(log, line)
    ))
}

/// A peer that found something else.
fn difference(name: &str, log: &[u8], seen: &Seen, theirs: &Theirs) -> Option<String> {
    let ours: u64 = seen.sorts.values().map(|(count, _)| count).sum();
    let (longest, longest_line) = seen.longest?;
    let longest_s = longest as f64 / 1e9;
    let same_count = theirs.pauses == ours || theirs.pauses == ours - seen.nested;
    // They print microseconds.
    let same_longest = (theirs.longest_s - longest_s).abs() < 2e-6;
    if same_longest && same_count {
        return None;
    }
    let decided = DECIDED
        .iter()
        .find(|(file, who, ..)| (*file, *who) == (name, theirs.who));
    let (line, why) = match decided {
        Some((.., line, why)) => (*line, format!(" ({why})")),
        None if theirs.pauses == 0 => (first_line(seen)?, " (it counts none)".to_owned()),
        None if !same_longest => (longest_line, String::new()),
        None => {
            let missing = ours.checked_sub(theirs.pauses);
            let sorts = seen.sorts.iter();
            let fitting: Vec<_> = sorts
                .filter(|(_, (count, _))| Some(*count) == missing)
                .collect();
            let [(sort, (_, line))] = fitting[..] else {
                panic!("{name}: several lines may decide, or none; name it in DECIDED");
            };
            (*line, format!(" (it counts no {sort})"))
        }
    };
    Some(format!(
        "\n{}: {} pauses, longest {:.6} s; here {ours}, longest {longest_s:.6} s; line {line}{why}: {}",
        theirs.who,
        theirs.pauses,
        theirs.longest_s,
        quoted(log, line)
    ))
}

fn first_line(seen: &Seen) -> Option<u64> {
    seen.sorts.values().map(|(_, line)| *line).min()
}

fn quoted(log: &[u8], number: u64) -> String {
    let line = log.split(|byte| *byte == b'\n').nth(number as usize - 1);
    let text = String::from_utf8_lossy(line.expect("the line is there")).into_owned();
    text.trim().chars().take(160).collect()
}

#[test]
fn every_log_gives_what_its_golden_text_says() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let truth: BTreeMap<String, Value> = corpus::truth().into_iter().collect();
    let files = corpus::logs();
    settings.bind(|| {
        for name in &files {
            // Those of the published case and of the lab have none.
            let truth = truth.get(name).map_or(&Value::Null, |file| &file["truth"]);
            let text = render(name, &corpus::bytes(name), truth);
            insta::assert_snapshot!(name.trim_end_matches('/'), text);
        }
    });
    // Nothing else lies there that nobody looks at.
    let golden = corpus::folder().join("../tests/golden");
    assert_eq!(corpus::names(&golden).len(), files.len());
    for (name, ..) in DECIDED {
        assert!(files.iter().any(|file| file == name), "{name}");
    }
    let missing: Vec<_> = truth.keys().filter(|name| !files.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
