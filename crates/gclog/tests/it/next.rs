//! Times until the next collections against what came: each log is cut at many points, the head predicts, the rest answers.
//!
//! An interval is to hold nine times in ten. It is judged where the log goes on beyond its upper end; where a log ends within it,
//! only the lower end can be, which is to be too high once in twenty. To judge those alone whose collection came would favour
//! intervals that begin early.

#![expect(clippy::print_stderr, reason = "tells what was found")]

use rungwise_gclog::predict::{Given, Watch, predict};
use rungwise_gclog::{Collector, Event, Fact, Kind, Names, Parser, Stamp};

use crate::{corpus, predict as pairs};

/// Cuts of each log.
const CUTS: usize = 16;

/// When things began and ended, of the first JVM in a log.
#[derive(Default)]
struct Course {
    /// Seconds, in the order of the events: the end of each, and what began with it.
    events: Vec<(f64, Option<(f64, Began)>)>,
    collector: Option<Collector>,
    over: bool,
}

#[derive(Clone, Copy, Default)]
struct Began {
    young: bool,
    old: bool,
    full: bool,
}

fn at(stamp: Stamp) -> Option<f64> {
    let ns = stamp.uptime_ns.map(u64::cast_signed).or(stamp.wall_ns)?;
    Some(ns as f64 / 1e9)
}

impl Course {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Restart => self.over |= !self.events.is_empty(),
            Event::Fact(Fact::Collector(collector)) => self.collector = Some(*collector),
            Event::Pause(pause) if !self.over => {
                let full = pause.kind == Kind::Full;
                let old = full || pause.kind == Kind::Start || pause.starts_cycle;
                let began = Began {
                    young: matches!(pause.kind, Kind::Young | Kind::Mixed),
                    old: old && !pause.nested && !self.is_z(),
                    full,
                };
                self.add(pause.began, pause.duration_ns, Some(began));
            }
            Event::Concurrent(concurrent) if !self.over => {
                let began = Began {
                    old: concurrent.cycle && self.is_z(),
                    ..Began::default()
                };
                self.add(concurrent.at(), concurrent.duration_ns, Some(began));
            }
            Event::Safepoint(safepoint) if !self.over => {
                self.add(safepoint.began, Some(safepoint.total_ns), None);
            }
            Event::Ran { at, .. } if !self.over => self.add(*at, None, None),
            _ => {}
        }
    }

    /// Its pauses are parts of cycles.
    fn is_z(&self) -> bool {
        self.collector == Some(Collector::Z)
    }

    fn add(&mut self, stamp: Stamp, ns: Option<u64>, began: Option<Began>) {
        if let Some(at) = at(stamp) {
            let end = at + ns.unwrap_or(0) as f64 / 1e9;
            self.events.push((end, began.map(|began| (at, began))));
        }
    }
}

/// How predictions of one kind came off.
#[derive(Default)]
struct Score {
    inside: u32,
    early: u32,
    late: u32,
    /// The log ends within the interval: came before its lower end, or did not.
    open: [u32; 2],
}

impl Score {
    /// `left` is how far the log goes on, `came` when it came, seconds.
    fn take(&mut self, [low, high]: [f64; 2], came: Option<f64>, left: f64) {
        let came = came.unwrap_or(f64::INFINITY);
        // Stamps of a millisecond, and sums of them.
        let low = low - 1e-6;
        if left >= high {
            let place = if came < low {
                &mut self.early
            } else if came <= high + 1e-6 {
                &mut self.inside
            } else {
                &mut self.late
            };
            *place += 1;
        } else if left >= low {
            self.open[usize::from(came < low)] += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.inside += other.inside;
        self.early += other.early;
        self.late += other.late;
        self.open[0] += other.open[0];
        self.open[1] += other.open[1];
    }

    fn judged(&self) -> u32 {
        self.inside + self.early + self.late
    }

    fn share(&self) -> f64 {
        f64::from(self.inside) / f64::from(self.judged().max(1))
    }

    /// Of those whose log ends within the interval, how many had come before it.
    fn too_early(&self) -> f64 {
        f64::from(self.open[1]) / f64::from((self.open[0] + self.open[1]).max(1))
    }

    fn summary(&self) -> String {
        let all = self.judged();
        format!(
            "{} of {all} inside ({:.0} %), {} earlier, {} later; the log ends within {}, {} of them had come before",
            self.inside,
            self.share() * 100.0,
            self.early,
            self.late,
            self.open[0] + self.open[1],
            self.open[1]
        )
    }
}

const KINDS: [&str; 3] = ["young", "old", "full"];

/// Cuts a log and holds what its heads say against what came.
fn cut(log: &[u8], given: &Given) -> [Score; 3] {
    let mut course = Course::default();
    parse(log, &mut |event| course.event(&event));
    let mut scores = <[Score; 3]>::default();
    let Course { events, .. } = course;
    let Some(end) = events.iter().map(|(end, _)| *end).reduce(f64::max) else {
        return scores;
    };
    // Behind so many events.
    let cuts = (0..CUTS).map(|number| {
        let share = 0.1 + 0.89 * (number as f64 + 0.5) / CUTS as f64;
        (events.len() as f64 * share) as usize
    });
    let cuts = cuts.filter(|count| *count > 1);
    let mut heads: Vec<(usize, Watch)> = cuts.map(|cut| (cut, Watch::new())).collect();
    let mut again = Course::default();
    parse(log, &mut |event| {
        again.event(&event);
        let seen = again.events.len();
        let open = |cut: usize| !again.over && seen <= cut;
        for (_, head) in heads.iter_mut().filter(|(cut, _)| open(*cut)) {
            head.event(&event);
        }
    });
    for (cut, head) in heads {
        let now = events[..cut]
            .iter()
            .map(|(end, _)| *end)
            .fold(f64::MIN, f64::max);
        let Ok(prediction) = predict(&head.seen(), given, None, None) else {
            continue;
        };
        for (kind, score) in KINDS.into_iter().zip(&mut scores) {
            let Some(in_s) = prediction
                .next
                .iter()
                .find(|next| next.kind == kind)
                .and_then(|next| next.in_s)
            else {
                continue;
            };
            let mut rest = events[cut..].iter().filter_map(|(_, began)| *began);
            let came = rest.find(|(_, began)| match kind {
                "young" => began.young,
                "old" => began.old,
                _ => began.full,
            });
            let came = came.map(|(at, _)| (at - now).max(0.0));
            score.take([in_s.low, in_s.high], came, end - now);
        }
    }
    scores
}

fn parse(log: &[u8], take: &mut dyn FnMut(Event<'_>)) {
    let mut parser = Parser::new();
    let mut sink = |_: &Names, event: Event<'_>| take(event);
    parser.push(log, &mut sink);
    parser.finish(&mut sink);
}

/// All logs of a folder together, by kind.
fn all(logs: &[(String, Vec<u8>, Given)]) -> [Score; 3] {
    let mut sums = <[Score; 3]>::default();
    for (name, log, given) in logs {
        let scores = cut(log, given);
        for ((sum, score), kind) in sums.iter_mut().zip(&scores).zip(KINDS) {
            if score.early + score.late > score.inside / 4 {
                eprintln!("  {name}, {kind}: {}", score.summary());
            }
            sum.add(score);
        }
    }
    for (sum, kind) in sums.iter().zip(KINDS) {
        eprintln!("{kind}: {}", sum.summary());
    }
    sums
}

/// Nine in ten inside, as far as so few can show it; at most one in ten too early of those that the log does not outlast; and
/// enough of both.
#[track_caller]
fn check(score: &Score, kind: &str, least: u32) {
    let summary = score.summary();
    assert!(score.judged() >= least, "{kind}: {summary}");
    assert!(score.share() >= 0.85, "{kind}: {summary}");
    assert!(score.too_early() <= 0.1, "{kind}: {summary}");
}

#[test]
fn the_next_collections_of_own_logs_come_when_they_were_predicted() {
    let names = corpus::names(&pairs::folder());
    let logs = names.iter().filter_map(|name| {
        let name = name.strip_suffix(".log.gz")?;
        Some((name.to_owned(), pairs::bytes(name), pairs::given(name)))
    });
    let [young, old, full] = all(&logs.collect::<Vec<_>>());
    check(&young, "young", 500);
    check(&old, "old", 300);
    check(&full, "full", 150);
}

#[test]
fn the_next_collections_of_the_corpus_come_when_they_were_predicted() {
    let mut names = corpus::logs();
    names.retain(|name| !name.starts_with("damaged"));
    let logs = names
        .into_iter()
        .map(|name| (name.clone(), corpus::bytes(&name), Given::default()));
    let [young, old, full] = all(&logs.collect::<Vec<_>>());
    check(&young, "young", 500);
    check(&old, "old", 300);
    check(&full, "full", 150);
    // One that always holds would be too wide to be of use.
    assert!(young.share() <= 0.95 && old.share() <= 0.95, "too wide");
}
