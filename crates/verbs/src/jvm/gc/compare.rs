//! The comparison of GC logs: two of them, or two groups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rungwise_gclog::{Event, Kind, Turns};
use rungwise_jvm::{CommandLine, Origin, Setting};
use rungwise_model::Exit;
use rungwise_model::compare::{CompareReport, ComparedLog, Of};
use rungwise_model::gc::Run;
use rungwise_report::gc::compare::{self as page, Changed, Side};

use super::read;
use crate::Invocation;
use crate::documents::Document as _;
use crate::problem::Problem;

/// Reads both sides and says what differs; a difference is no failure.
pub(crate) fn compare(
    [before, after]: [&[PathBuf]; 2],
    started: String,
    invocation: &Invocation<'_>,
) -> anyhow::Result<CompareReport> {
    let (before, after) = (Half::read(before)?, Half::read(after)?);
    let (a, b) = (before.side(), after.side());
    let (options, mixed) = changed(&before, &after);
    let clauses = page::clauses(&a, &b, &options);
    Ok(CompareReport {
        sentence: clauses.join("; "),
        metrics: page::metrics(&a, &b, &options),
        before: before.name(),
        after: after.name(),
        notes: before.notes().chain(after.notes()).chain(mixed).collect(),
        findings: Vec::new(),
        not_compared: Vec::new(),
        envelope: invocation.envelope(CompareReport::KIND, started, Exit::Done),
        of: Some(Of::GcLogs),
        verdict: None,
        clauses,
        before_logs: before.stored(),
        after_logs: after.stored(),
        profiles: None,
    })
}

/// One side.
struct Half {
    logs: Vec<Drawn>,
}

/// One log of it.
struct Drawn {
    name: String,
    run: Run,
    pauses: BTreeMap<&'static str, Vec<f64>>,
    /// What the reader should know of it.
    notes: Vec<String>,
}

impl Half {
    fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let logs = paths
            .iter()
            .map(Drawn::read)
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { logs })
    }

    fn name(&self) -> String {
        let names: Vec<&str> = self.logs.iter().map(|log| &*log.name).collect();
        names.join(", ")
    }

    /// What the page shows of its logs.
    fn stored(&self) -> Vec<ComparedLog> {
        let stored = self.logs.iter().map(|log| ComparedLog {
            name: log.name.clone(),
            run: log.run.clone(),
        });
        stored.collect()
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        self.logs.iter().flat_map(|log| log.notes.iter().cloned())
    }

    /// The options of each log that tells them, by the log's name.
    fn settings(&self) -> Vec<(&str, Settings)> {
        let flags_of = |log: &'_ Drawn| log.run.jvm.flags.as_deref().map(settings);
        let logs = self.logs.iter();
        logs.filter_map(|log| Some((&*log.name, flags_of(log)?)))
            .collect()
    }

    fn side(&self) -> Side<'_> {
        let logs = self.logs.iter().map(|log| page::Log {
            name: log.name.clone(),
            run: &log.run,
            pauses: &log.pauses,
        });
        Side {
            logs: logs.collect(),
        }
    }
}

impl Drawn {
    fn read(path: &PathBuf) -> anyhow::Result<Self> {
        let mut draws = Draws::default();
        let log = read(std::slice::from_ref(path), None, &mut |event| {
            draws.event(event);
        })?;
        let name = path.display().to_string();
        let mut draws = draws.of_runs();
        let drawn = |run: &&Run| {
            draws
                .get(&run.number)
                .is_some_and(|drawn| !drawn.is_empty())
        };
        let seconds = |run: &&Run| run.seconds.unwrap_or(0.0);
        // The longest, of equals the first: as the summary has it, which keeps the courses of that one whole.
        let runs = log.summary.runs.iter().rev().filter(drawn);
        let run = runs.max_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let run = run.cloned().ok_or_else(|| {
            let error = anyhow::anyhow!("cannot compare {name}: it contains no pauses");
            Problem::with(Exit::Precondition, error)
        })?;
        let one = log
            .only_one_taken()
            .map(|one| format!("{one}, which is jvm/{}", run.number));
        let notes = log.notes.iter().cloned().chain(one);
        let notes = notes.map(|note| format!("{name}: {note}")).collect();
        let drawn = draws.remove(&run.number).unwrap_or_default();
        Ok(Self {
            name,
            run,
            pauses: drawn
                .into_iter()
                .map(|(kind, draw)| (kind, draw.values()))
                .collect(),
            notes,
        })
    }
}

/// Draws of the pauses of each run, by kind.
#[derive(Debug, Default)]
struct Draws {
    /// By number.
    done: BTreeMap<u64, OfRun>,
    jvms: Turns<(u64, OfRun)>,
    /// Runs that have begun. They are numbered as in the summary: by their first event that is no fact.
    begun: u64,
}

type OfRun = BTreeMap<&'static str, Draw>;

impl Draws {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Fact(_) => return,
            Event::Turn { jvm, .. } => return self.jvms.turn(*jvm),
            Event::Restart => {
                self.done.extend([std::mem::take(&mut *self.jvms)]);
                return;
            }
            _ => {}
        }
        let (number, run) = &mut *self.jvms;
        if *number == 0 {
            self.begun += 1;
            *number = self.begun;
        }
        if let Event::Pause(pause) = event
            && let Some(ns) = pause.duration_ns.filter(|ns| *ns > 0 && !pause.nested)
        {
            let draw = run.entry(word(pause.kind)).or_default();
            draw.take(ns as f64 / 1e6);
        }
    }

    /// By the numbers of the runs; those that have not begun are 0.
    fn of_runs(mut self) -> BTreeMap<u64, OfRun> {
        self.done.extend(self.jvms.into_all());
        self.done
    }
}

/// Options that are not alike, where both sides tell theirs, and what to say of those that a side itself has not alike: no change
/// between the sides is one of these. Which files are written and how is no matter of speed.
fn changed(before: &Half, after: &Half) -> (Vec<Changed>, Vec<String>) {
    let [before, after] = [before, after].map(Half::settings);
    if before.is_empty() || after.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let names: BTreeSet<&String> = before
        .iter()
        .chain(&after)
        .flat_map(|(_, log)| log.keys())
        .collect();
    let (mut all, mut mixed) = (Vec::new(), Vec::new());
    for name in names.into_iter().filter(|name| !only_tells(name)) {
        match (alike(&before, name), alike(&after, name)) {
            (Ok(before), Ok(after)) if before == after => {}
            (Ok(before), Ok(after)) => all.push(Changed {
                name: name.clone(),
                before: before.cloned(),
                after: after.cloned(),
            }),
            (before, after) => mixed.extend([before.err(), after.err()].into_iter().flatten()),
        }
    }
    (all, mixed)
}

/// What an option is set to in all logs of a side; else a sentence that says where it is set to what.
fn alike<'a>(logs: &'a [(&str, Settings)], name: &str) -> Result<Option<&'a String>, String> {
    let of = |(log, settings): &'a (&str, Settings)| (*log, settings.get(name));
    let (first, value) = of(&logs[0]);
    let Some((other, its)) = logs.iter().map(of).find(|(_, its)| *its != value) else {
        return Ok(value);
    };
    let describe =
        |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), String::clone);
    Err(format!(
        "{name} differs within a side ({} in {first}, {} in {other}), so no difference is attributed to it",
        describe(value),
        describe(its),
    ))
}

/// It says what the JVM writes of itself, and changes nothing else.
fn only_tells(name: &str) -> bool {
    name.starts_with("Print") || name.contains("LogFile")
}

/// Flags by name.
type Settings = BTreeMap<String, String>;

/// What each flag is set to; of several settings the last one counts.
fn settings(flags: &str) -> Settings {
    let line = CommandLine::parse_printed(flags, Origin::Log);
    let all = line.options.iter().flat_map(|given| &given.sets);
    all.map(|setting| (setting.name.clone(), shown(setting)))
        .collect()
}

fn shown(setting: &Setting) -> String {
    match setting.switch() {
        Some(true) => "on".to_owned(),
        Some(false) => "off".to_owned(),
        None => setting.text().to_owned(),
    }
}

/// As `by_kind` of the summary names them.
pub(super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Young => "young",
        Kind::Mixed => "mixed",
        Kind::Full => "full",
        Kind::Degenerated => "degenerated",
        Kind::Start => "start",
        Kind::Remark => "remark",
        Kind::Cleanup => "cleanup",
        Kind::Other => "other",
    }
}

/// A fair draw of many values (algorithm R, Vitter 1985) with a generator of its own: the same log, the same draw.
#[derive(Debug, Default)]
struct Draw {
    /// Each with its number among those seen.
    kept: Vec<(u64, f64)>,
    seen: u64,
}

/// Enough for twenty batches whose medians say something; a hundredth shows with forty.
const DRAWN: usize = 4000;

impl Draw {
    fn take(&mut self, value: f64) {
        self.seen += 1;
        if self.kept.len() < DRAWN {
            self.kept.push((self.seen, value));
            return;
        }
        // SplitMix64 of the count: equally spread, and it needs no state.
        let mut mixed = self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let place = (mixed ^ (mixed >> 31)) % self.seen;
        if let Some(kept) = usize::try_from(place)
            .ok()
            .and_then(|at| self.kept.get_mut(at))
        {
            *kept = (self.seen, value);
        }
    }

    /// In the order in which they came.
    fn values(mut self) -> Vec<f64> {
        self.kept.sort_unstable_by_key(|(number, _)| *number);
        self.kept.into_iter().map(|(_, value)| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use rungwise_gclog::{Names, Parser};

    use super::*;

    #[test]
    fn a_draw_of_many_has_the_middle_of_all_and_their_order() {
        let mut draw = Draw::default();
        for value in 0..100_000 {
            draw.take(f64::from(value));
        }
        let values = draw.values();
        assert_eq!(values.len(), DRAWN);
        assert!(values.is_sorted());
        let mean = values.iter().sum::<f64>() / DRAWN as f64;
        // Four standard errors of a fair draw.
        let error = 28_868.0 / (DRAWN as f64).sqrt();
        assert!((mean - 50_000.0).abs() < 4.0 * error, "{mean}");
    }

    #[test]
    fn each_run_has_a_draw_of_its_own() {
        let pause = |ms: u64| {
            format!(
                "[1.000s][info][gc] GC(0) Pause Young (Allocation Failure) 4M->1M(9M) {ms}.000ms\n"
            )
        };
        let mut draws = Draws::default();
        let mut sink = |_: &Names, event: Event<'_>| draws.event(&event);
        let mut parser = Parser::new();
        // Nothing has begun yet.
        parser.restart(&mut sink);
        parser.push(pause(3).as_bytes(), &mut sink);
        parser.restart(&mut sink);
        parser.push(pause(7).as_bytes(), &mut sink);
        parser.finish(&mut sink);
        let runs = draws.of_runs().into_values().filter(|run| !run.is_empty());
        let young = runs.map(|mut run| run.remove("young").unwrap().values());
        assert_eq!(young.collect::<Vec<_>>(), [[3.0], [7.0]]);
    }

    #[test]
    fn options_that_differ_are_reported_once_and_those_of_the_log_not_at_all() {
        let before = half(&["-Xmx4g -XX:+UseG1GC -XX:MaxGCPauseMillis=200 -Xlog:gc:file=a.log"]);
        let after =
            half(&["-Xmx8g -XX:+UseG1GC -XX:-UseBiasedLocking -XX:+PrintGC -Xlog:gc:file=b.log"]);
        let (options, mixed) = changed(&before, &after);
        assert!(mixed.is_empty());
        let listed: Vec<String> = options
            .iter()
            .map(|o| format!("{} {:?} {:?}", o.name, o.before, o.after))
            .collect();
        assert_eq!(
            listed,
            [
                r#"MaxGCPauseMillis Some("200") None"#,
                r#"MaxHeapSize Some("4g") Some("8g")"#,
                r#"UseBiasedLocking None Some("off")"#,
            ]
        );
        assert!(changed(&before, &half(&[])).0.is_empty());
    }

    #[test]
    fn an_option_that_a_side_has_not_alike_is_no_change_between_the_sides() {
        let before = half(&["-Xmx4g -XX:+UseG1GC", "-Xmx6g -XX:+UseG1GC"]);
        let after = half(&["-Xmx8g -XX:+UseZGC", "-Xmx8g -XX:+UseZGC"]);
        let (options, mixed) = changed(&before, &after);
        let names: Vec<&str> = options.iter().map(|option| &*option.name).collect();
        assert_eq!(names, ["UseG1GC", "UseZGC"]);
        assert_eq!(
            mixed,
            [
                "MaxHeapSize differs within a side (4g in 0.log, 6g in 1.log), so no difference is attributed to it"
            ]
        );
    }

    /// One side, whose logs have these options.
    fn half(logs: &[&str]) -> Half {
        let drawn = |(number, flags): (usize, &&str)| {
            let mut run = Run::default();
            run.jvm.flags = Some((*flags).to_owned());
            Drawn {
                name: format!("{number}.log"),
                run,
                pauses: BTreeMap::new(),
                notes: Vec::new(),
            }
        };
        Half {
            logs: logs.iter().enumerate().map(drawn).collect(),
        }
    }
}
