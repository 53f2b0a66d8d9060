//! The comparison in one sentence: what was changed, its effect, its cost, and whether the option achieved its purpose.

use std::fmt::Write as _;

use rungwise_model::gc::Remarks;
use rungwise_stats::interval::median;

use super::{Changed, GIB, Log, Side, Statistic, kinds, middle, millis, per_second, rate, waited};
use crate::numbers;

/// A change of load beyond this share is said.
const SAME_LOAD: f64 = 0.2;
/// What an option is for has to become less than this share of what it was: the least effect that a rung is kept for.
const DONE: f64 = 0.98;
/// A young collection that leaves more than this did not do its work.
const EMPTIED: f64 = 0.9;
/// Of fewer pauses on both sides one more or less is chance.
const FEW: usize = 5;
/// What grew by less is no cost.
const COSTS: f64 = 1.1;
/// Nor is what takes less of the time more than this: a thousandth of it, the least that throughput is shown to.
const LEAST: f64 = 1e-3;

/// The sentence in its clauses, the most important first. `options` are those that differ, where both sides contain
/// theirs.
pub fn clauses(before: &Side<'_>, after: &Side<'_>, options: &[Changed]) -> Vec<String> {
    let options = &as_given(options)[..];
    let even = even(before, after);
    let burden_after = |kind: &str| burden(after, kind) * even.unwrap_or(1.0);
    let remarks = remark_of(before).zip(remark_of(after));
    let scavenges = remarks.filter(|(a, b)| (a.scavenged == 0) != (b.scavenged == 0));
    let meant = match scavenges {
        // The logs show it, whatever else was changed, and where their headers do not tell.
        Some(_) if options.is_empty() || options.iter().any(|o| o.name == SCAVENGE) => {
            Some((SCAVENGE, &PURPOSES[0]))
        }
        _ => purpose_of(options),
    };
    let kinds = kinds(before, after);
    let changed = |kind: &&&str| (burden_after(kind) - burden(before, kind)).abs();
    let most = kinds
        .iter()
        .max_by(|a, b| changed(a).total_cmp(&changed(b)));
    // What an option is for comes first, else the kind of pause whose share of the time changed most.
    let asked = meant.and_then(|(_, purpose)| kinds.get(purpose.kind?));
    let Some(&kind) = asked.or(most) else {
        return vec!["neither side contains a pause".to_owned()];
    };
    let mut clauses = scavenges
        .filter(|_| kind == "remark")
        .and_then(|(a, b)| remark_clauses(before, after, a, b))
        .unwrap_or_else(|| {
            let aligned = even.and_then(|_| by_load(before, after, kind));
            vec![aligned.unwrap_or_else(|| effect(before, after, kind))]
        });
    clauses[0].insert_str(0, &changes(options, meant.map(|(name, _)| name)));
    clauses.extend(waits(before, after));
    if burden_after(kind) < burden(before, kind) {
        clauses.extend(cost(before, after, kind, even));
    }
    clauses.extend(meant.and_then(|(name, purpose)| purpose.done(name, before, after)));
    clauses.extend(load(before, after));
    clauses
}

/// Threads wait for memory more or less than before.
fn waits(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let (a, b) = (before.value(&waited)?, after.value(&waited)?);
    ((b - a).abs() > LEAST * 60e3).then(|| {
        let [a, b] = [a, b].map(millis);
        format!("threads stalled on allocation for {b} per minute in total instead of {a}")
    })
}

/// The options as people give them: `-Xmn` sets `NewSize` and `MaxNewSize`, the JVM lowers `InitialTenuringThreshold` to a
/// lower `MaxTenuringThreshold` by itself, `-Xms` sets `InitialHeapSize` and `MinHeapSize`, and a heap of fixed size is made another
/// by `-Xms` and `-Xmx` together.
fn as_given(options: &[Changed]) -> Vec<Changed> {
    let find = |name: &str| options.iter().find(|option| option.name == name);
    let both = |low: &str, high: &str| {
        let both = find(low).zip(find(high));
        both.is_some_and(|(a, b)| a.before == b.before && a.after == b.after)
    };
    let (young, heap) = (
        both("NewSize", "MaxNewSize"),
        both("InitialHeapSize", "MaxHeapSize"),
    );
    let mut given = Vec::new();
    for option in options {
        let name = match &*option.name {
            "MaxNewSize" if young => continue,
            "MaxHeapSize" if heap => continue,
            "MinHeapSize" if both("MinHeapSize", "InitialHeapSize") => continue,
            "InitialTenuringThreshold" if find("MaxTenuringThreshold").is_some() => continue,
            "NewSize" if young => "-Xmn",
            "InitialHeapSize" if heap => FIXED_HEAP,
            "InitialHeapSize" => "-Xms",
            "MaxHeapSize" => "-Xmx",
            name => name,
        };
        given.push(Changed {
            name: name.to_owned(),
            ..option.clone()
        });
    }
    given
}

/// What the time of pauses afterwards is multiplied by to be that of the load before, by what was allocated; nothing where the
/// loads are the same or not known.
fn even(before: &Side<'_>, after: &Side<'_>) -> Option<f64> {
    let allocated = |side: &Side<'_>| side.value(&|log| log.allocated());
    let (a, b) = (allocated(before)?, allocated(after)?);
    ((b / a - 1.0).abs() > SAME_LOAD).then_some(a / b)
}

/// The pauses of a kind for what was allocated: what they took of the time is as much the load's doing.
fn by_load(before: &Side<'_>, after: &Side<'_>, kind: &str) -> Option<String> {
    let each = |side: &Side<'_>| side.value(&|log| log.per_gib(log.sum_ms(kind)));
    let (a, b) = (each(before)?, each(after)?);
    (a > 0.0 && b > 0.0).then(|| {
        let (factor, words) = if b < a {
            (a / b, "less")
        } else {
            (b / a, "more")
        };
        format!(
            "{kind} pauses take {} per GiB allocated instead of {}, {} times {words}",
            millis(b),
            millis(a),
            numbers::significant(factor)
        )
    })
}

/// What was changed: the option that is judged, or the first.
fn changes(options: &[Changed], judged: Option<&str>) -> String {
    let judged = options.iter().find(|o| Some(&*o.name) == judged);
    let Some(first) = judged.or(options.first()) else {
        return String::new();
    };
    match options.len() - 1 {
        0 => format!("with {}: ", written(first)),
        1 => format!("with {} and another option changed: ", written(first)),
        more => format!("with {} and {more} more options changed: ", written(first)),
    }
}

/// `-XX:+CMSScavengeBeforeRemark`, `MaxGCPauseMillis 50 instead of 200`.
fn written(option: &Changed) -> String {
    match (&option.before, &option.after) {
        (None, Some(after)) => format!("{} {after}", option.name),
        (Some(before), None) => format!("no {} (was {before})", option.name),
        (Some(before), Some(after)) => format!("{} {after} instead of {before}", option.name),
        (None, None) => option.name.clone(),
    }
}

/// How much of the time pauses of a kind take; without a clock sums are all there is.
fn burden(side: &Side<'_>, kind: &str) -> f64 {
    let share = |log: &Log<'_>| Some(log.sum_ms(kind) / log.seconds().unwrap_or(1.0));
    side.value(&share).unwrap_or(0.0)
}

fn effect(before: &Side<'_>, after: &Side<'_>, kind: &'static str) -> String {
    if let Some(words) = less_often(before, after, kind) {
        return words;
    }
    let middle = middle(kind);
    let lasted = |side: &Side<'_>| side.value(&|log| median(log.pauses.get(kind)?));
    match (lasted(before), lasted(after)) {
        (Some(a), Some(b)) if millis(a) == millis(b) => {
            let words = format!("{kind} pauses have a median of {} on both sides", millis(a));
            words + &certainty(&middle, before, after)
        }
        (Some(a), Some(b)) => {
            let words = format!(
                "median of {kind} pauses went from {} to {}, {}",
                millis(a),
                millis(b),
                times(a, b)
            );
            words + &certainty(&middle, before, after)
        }
        (Some(a), None) => format!("{kind} pauses, median {} before, are gone", millis(a)),
        (None, Some(b)) => format!("{kind} pauses are new, median {}", millis(b)),
        (None, None) => format!("{kind} pauses differ"),
    }
}

/// Where pauses come more or less often, and that is more than they became longer or shorter: how often, and how long each is.
fn less_often(before: &Side<'_>, after: &Side<'_>, kind: &'static str) -> Option<String> {
    if count(before, kind).min(count(after, kind)) < FEW {
        return None;
    }
    let (rate, middle) = (rate(kind), middle(kind));
    let values = |statistic: &Statistic<'_>| {
        let [a, b] = [before, after].map(|side| side.value(&statistic.of));
        let (a, b) = (a.filter(|a| *a > 0.0)?, b.filter(|b| *b > 0.0)?);
        Some((a, b, (b / a).ln().abs()))
    };
    let (often, oftener, change) = values(&rate)?;
    let (lasted, lasts, longer) = values(&middle)?;
    if change <= longer || change <= COSTS.ln() {
        return None;
    }
    let (factor, words) = if oftener < often {
        (often / oftener, "less often")
    } else {
        (oftener / often, "more often")
    };
    let each = if millis(lasted) == millis(lasts) {
        format!("their median is {} on both sides", millis(lasts))
    } else {
        format!(
            "their median is {} instead of {}{}",
            millis(lasts),
            millis(lasted),
            certainty(&middle, before, after)
        )
    };
    Some(format!(
        "{kind} pauses occur {} times per minute instead of {}, {} times {words}{}, and {each}",
        numbers::significant(oftener),
        numbers::significant(often),
        numbers::significant(factor),
        certainty(&rate, before, after),
    ))
}

fn certainty(statistic: &Statistic<'_>, before: &Side<'_>, after: &Side<'_>) -> String {
    match statistic.ratio(before, after) {
        None => ", too few for an interval".to_owned(),
        Some(r) => {
            let range = format!(
                "(95 %: {} to {})",
                numbers::factor(r.low),
                numbers::factor(r.high)
            );
            if r.low <= 1.0 && r.high >= 1.0 {
                format!(", no significant difference {range}")
            } else {
                format!(" {range}")
            }
        }
    }
}

/// `144 times shorter`.
fn times(a: f64, b: f64) -> String {
    if b < a {
        format!("{} times shorter", numbers::significant(a / b))
    } else {
        format!("{} times longer", numbers::significant(b / a))
    }
}

fn remark_of<'a>(side: &Side<'a>) -> Option<&'a Remarks> {
    match &side.logs[..] {
        [log] => log.run.remark.as_ref(),
        _ => None,
    }
}

/// Remarks of which a young collection comes first on one side only: with it, without it, and what it does.
fn remark_clauses(
    before: &Side<'_>,
    after: &Side<'_>,
    a: &Remarks,
    b: &Remarks,
) -> Option<Vec<String>> {
    let longest =
        |side: &Side<'_>| side.value(&|log| Some(log.run.pauses.by_kind.get("remark")?.longest_ms));
    let (long, short) = (longest(before)?, longest(after)?);
    let mut clause = format!(
        "the longest remark went from {} to {}, {}",
        millis(long),
        millis(short),
        times(long, short)
    );
    let young_bytes = a.longest_young_bytes.zip(b.longest_young_bytes);
    if let Some((full, empty)) = young_bytes.filter(|(full, empty)| empty < full) {
        let _ = write!(
            clause,
            ": it had to scan {} of the young generation before and {} after",
            numbers::bytes(full),
            numbers::bytes(empty)
        );
    }
    let Some(scavenge) = b.scavenge else {
        return Some(vec![
            clause,
            "no young collection runs first any more".to_owned(),
        ]);
    };
    clause += if short < long {
        ", because a young collection now runs first"
    } else {
        ", although a young collection now runs first"
    };
    let mut cost = format!(
        "that collection costs {} of the {}",
        millis(scavenge.duration_ms),
        millis(scavenge.remark_ms)
    );
    if let (Some(from), Some(to)) = (scavenge.before_bytes, scavenge.after_bytes) {
        let emptied = if to as f64 > EMPTIED * from as f64 {
            "hardly empties the young generation: from"
        } else {
            "shrinks the young generation from"
        };
        let _ = write!(clause, " and {emptied} {} to {}", kib(from), kib(to));
    }
    let _ = write!(
        cost,
        ", and the median of the remark itself went from {} to {}",
        millis(a.time.p50_ms),
        millis(b.time.p50_ms)
    );
    Some(vec![clause, cost])
}

/// As CMS prints it, so that the line of the log is found.
fn kib(bytes: u64) -> String {
    format!("{}{}K", numbers::count(bytes >> 10), numbers::THIN)
}

/// Pauses of a kind in all logs of a side.
fn count(side: &Side<'_>, kind: &str) -> usize {
    let of = |log: &Log<'_>| log.pauses.get(kind).map_or(0, Vec::len);
    side.logs.iter().map(of).sum()
}

/// What takes more of the time now; nothing where a side has no clock.
fn cost(before: &Side<'_>, after: &Side<'_>, improved: &str, even: Option<f64>) -> Option<String> {
    for side in [before, after] {
        side.value(&|log| log.seconds())?;
    }
    // Milliseconds of each second, before and after.
    let others = kinds(before, after)
        .into_iter()
        .filter(|kind| *kind != improved);
    let even = even.unwrap_or(1.0);
    let others = others.map(|kind| (kind, burden(before, kind), burden(after, kind) * even));
    let dearer: Vec<_> = others.filter(|(_, a, b)| b - a > LEAST * 1e3).collect();
    let most = |costs: fn(f64, f64) -> bool| {
        let all = dearer.iter().filter(|(_, a, b)| costs(*a, *b));
        all.max_by(|(_, a, b), (_, c, d)| (b - a).total_cmp(&(d - c)))
    };
    let describe = |(kind, a, b): &(&str, f64, f64)| {
        let [a, b] = [a, b].map(|ms| millis(ms * 60.0));
        let text = format!("{kind} pauses take {b} per minute instead of {a}");
        match [before, after].map(|side| count(side, kind)) {
            [a, b] if a.max(b) < FEW => {
                format!("{text} ({a} before and {b} after: may be chance)")
            }
            _ => text,
        }
    };
    let grown = most(|a, b| b > COSTS * a);
    let mut costs: Vec<String> = grown.map(describe).into_iter().collect();
    costs.extend(more(before, after));
    if !costs.is_empty() {
        return Some(format!("cost: {}", costs.join(", ")));
    }
    Some(match (grown, most(|_, _| true)) {
        (_, Some(little)) => format!("{}, less than a tenth more", describe(little)),
        (_, None) => format!(
            "no other kind of pause takes {} more per minute",
            millis(LEAST * 60e3)
        ),
    })
}

/// What no pause of the same collection shows: more promoted and more old cycles, for what was allocated.
fn more(before: &Side<'_>, after: &Side<'_>) -> Vec<String> {
    let grown = |of: &dyn Fn(&Log<'_>) -> Option<f64>| {
        let (a, b) = (before.value(of)?, after.value(of)?);
        (a > 0.0 && b > COSTS * a).then(|| numbers::factor(b / a))
    };
    let promoted = grown(&|log| Some(log.promoted()? / log.allocated()?));
    let cycles = grown(&|log| log.per_gib(log.run.old.cycles as f64));
    let costs = [(promoted, "the promotion"), (cycles, "the old cycles")];
    let costs = costs
        .into_iter()
        .filter_map(|(factor, words)| Some(format!("{} {words} per GiB allocated", factor?)));
    costs.collect()
}

const SCAVENGE: &str = "CMSScavengeBeforeRemark";
/// Both options that a heap of fixed size takes.
const FIXED_HEAP: &str = "-Xms and -Xmx";

/// What options are for.
struct Purpose {
    options: &'static [&'static str],
    words: &'static str,
    /// The kind of pause that it is about.
    kind: Option<&'static str>,
    /// What has to become less.
    of: fn(&Log<'_>) -> Option<f64>,
}

const PURPOSES: [Purpose; 6] = [
    Purpose {
        options: &[
            SCAVENGE,
            "CMSParallelRemarkEnabled",
            "ParallelRefProcEnabled",
        ],
        words: "shorter remarks",
        kind: Some("remark"),
        of: |log| Some(log.run.pauses.by_kind.get("remark")?.mean_ms),
    },
    Purpose {
        options: &[
            "MaxGCPauseMillis",
            "ParallelGCThreads",
            "UseG1GC",
            "UseShenandoahGC",
            "UseZGC",
            "ZGenerational",
        ],
        words: "shorter pauses",
        kind: None,
        of: |log| Some(log.run.pauses.all.p99_ms).filter(|ms| *ms > 0.0),
    },
    Purpose {
        options: &[
            "InitialTenuringThreshold",
            "MaxTenuringThreshold",
            "SurvivorRatio",
            "TargetSurvivorRatio",
        ],
        words: "less promotion",
        kind: Some("young"),
        of: |log| Some(log.promoted()? / log.allocated()? * GIB),
    },
    Purpose {
        options: &[
            "G1MaxNewSizePercent",
            "G1NewSizePercent",
            "-Xmn",
            "MaxNewSize",
            "NewRatio",
            "NewSize",
        ],
        words: "fewer young collections",
        kind: Some("young"),
        of: |log| log.per_gib(log.count("young")?),
    },
    Purpose {
        options: &[
            FIXED_HEAP,
            "-Xms",
            "-Xmx",
            "MaxRAMPercentage",
            "UseParallelGC",
        ],
        words: "less pause time",
        kind: None,
        of: |log| log.per_gib(log.run.pauses.all.total_ms),
    },
    Purpose {
        options: &[
            "CMSInitiatingOccupancyFraction",
            "DisableExplicitGC",
            "ExplicitGCInvokesConcurrent",
            "InitiatingHeapOccupancyPercent",
            "UseCMSInitiatingOccupancyOnly",
        ],
        words: "fewer full collections",
        kind: Some("full"),
        of: |log| log.per_gib(log.count("full").unwrap_or(0.0)),
    },
];

/// The purpose of what was changed. Of several options with different ones nobody knows which did what.
fn purpose_of(options: &[Changed]) -> Option<(&str, &'static Purpose)> {
    let known = options.iter().filter_map(|option| {
        let names = |purpose: &&Purpose| purpose.options.contains(&&*option.name);
        Some((&*option.name, PURPOSES.iter().find(names)?))
    });
    let known: Vec<(&str, &Purpose)> = known.collect();
    let (first, rest) = known.split_first()?;
    let one = rest
        .iter()
        .all(|(_, purpose)| std::ptr::eq(*purpose, first.1));
    one.then_some(*first)
}

impl Purpose {
    /// Whether it was reached; in these logs, since nothing says how much runs differ by themselves.
    fn done(&self, name: &str, before: &Side<'_>, after: &Side<'_>) -> Option<String> {
        let (a, b) = (before.value(&self.of)?, after.value(&self.of)?);
        let done = if b < a * DONE {
            "and achieved that here"
        } else {
            "and did not achieve that here"
        };
        let is = if name == FIXED_HEAP { "are" } else { "is" };
        Some(format!("{name} {is} meant for {}, {done}", self.words))
    }
}

fn load(before: &Side<'_>, after: &Side<'_>) -> Option<String> {
    let allocated = |side: &Side<'_>| side.value(&|log| log.allocated());
    match (allocated(before), allocated(after)) {
        (Some(a), Some(b)) if (b / a - 1.0).abs() > SAME_LOAD => Some(format!(
            "the load differs: allocation went from {} to {}",
            per_second(a),
            per_second(b)
        )),
        (Some(_), Some(_)) => None,
        _ => Some("load unknown: at least one side lacks the allocation rate".to_owned()),
    }
}
