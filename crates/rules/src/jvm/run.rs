//! One run of a JVM, as the rules of GC logs see it.
//!
//! A log may hold several runs, and each is judged by itself: another start has other flags and another load. Every
//! finding, clear and undecided ones too, is about its run.

use rungwise_model::check::{Finding, Lack};
use rungwise_model::evidence::{Evidence, Key, Missing, Quantity, Subject, Unit, Words};
use rungwise_model::{evidence_text, keys};

use super::options::{Goal, Jdk, newer, options};
use crate::{Judgement, Threshold};

/// What tells which options the JDK of a run takes, and which it was given.
pub(crate) const JDK: &[&Key] = &[
    &keys::GC_COLLECTOR,
    &keys::GC_FLAGS,
    &keys::GC_UNIFIED,
    &keys::GC_VERSION,
];

/// The knob that recommends options of the command line.
pub(super) const OPTIONS: &str = "jvm.flags";

/// Pauses that users begin to notice, if no goal is given. Not for young collections.
pub(super) const LONG: Threshold = Threshold {
    name: "longest pause in seconds, if no goal is given",
    value: 0.4,
    origin: "jifa's threshold for stop-the-world pauses; your own goal takes precedence",
};

/// A run that is mostly startup.
pub(super) const SHORT: Threshold = Threshold {
    name: "length of the run in seconds, below which it is mostly startup",
    value: 60.0,
    origin: "own guess, and the window of the worst minute",
};

/// A run of a JVM.
pub(super) struct Run<'e> {
    evidence: &'e Evidence,
    subject: &'e Subject,
}

/// A heap to try.
pub(super) struct Larger {
    /// Its size.
    mib: u64,
    /// Its space beside the live set as a multiple of the current one.
    times: f64,
}

impl Larger {
    /// Serial, Parallel and CMS make the heap larger only when a full collection leaves too little (`MinHeapFreeRatio`), so a higher
    /// bound alone changes little: with a planted overflow and `-Xmx543m` in place of `320m` 14 of 15 full collections stayed.
    pub(super) fn goal(&self, collector: Collector) -> Goal {
        let grows_late = matches!(
            collector,
            Collector::Serial | Collector::Parallel | Collector::Cms
        );
        Goal::HeapMaxMib {
            most: self.mib,
            first: grows_late.then_some(self.mib),
        }
    }
}

/// Collectors, the generational forms with the others of their name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collector {
    Serial,
    Parallel,
    Cms,
    G1,
    Z,
    Shenandoah,
    /// Epsilon, or unknown.
    Other,
}

/// Judges each run that has a reading of `key`; missing if there is none. A run that lacks what the rule needs is undecided.
pub(super) fn each<'e>(
    evidence: &'e Evidence,
    key: &'static Key,
    judge: impl Fn(&Run<'e>) -> Result<Finding, Missing>,
) -> Judgement {
    let findings: Vec<Finding> = evidence
        .readings()
        .filter(|reading| reading.key == key && reading.subject != Subject::host())
        .map(|reading| {
            let run = Run {
                evidence,
                subject: &reading.subject,
            };
            let mut finding =
                judge(&run).unwrap_or_else(|missing| Finding::undecided(vec![Lack::from(missing)]));
            finding.subject = run.subject.to_string();
            finding
        })
        .collect();
    if findings.is_empty() {
        return Err(evidence.missing(key, &Subject::host()));
    }
    Ok(findings)
}

impl<'e> Run<'e> {
    pub(super) fn number(&self, key: &'static Key) -> Result<Quantity<'e>, Missing> {
        self.evidence.quantity(key, self.subject)
    }

    /// The number, if the log contains it.
    pub(super) fn value(&self, key: &'static Key) -> Option<f64> {
        self.number(key).ok().map(|number| number.value)
    }

    pub(super) fn words(&self, key: &'static Key) -> Option<Words<'e>> {
        self.evidence.words(key, self.subject).ok()
    }

    pub(super) fn act(&self, sentence: impl Into<String>) -> Finding {
        Finding::act(self.subject, sentence)
    }

    pub(super) fn watch(&self, sentence: impl Into<String>) -> Finding {
        Finding::watch(self.subject, sentence)
    }

    /// Cites the readings that exist.
    pub(super) fn cite(&self, finding: Finding, keys: &[&'static Key]) -> Finding {
        keys.iter().fold(finding, |finding, key| {
            match self.evidence.reading(key, self.subject) {
                Some(reading)
                    if !matches!(reading.value, rungwise_model::evidence::Value::Absent(_)) =>
                {
                    finding.cite(reading)
                }
                _ => finding,
            }
        })
    }

    /// Reads `gc.collector`.
    pub(super) fn collector(&self) -> Collector {
        let words = self.words(&keys::GC_COLLECTOR);
        let name = words.map_or("", |words| words.value);
        match name.rsplit(' ').next().unwrap_or_default() {
            "Serial" => Collector::Serial,
            "Parallel" => Collector::Parallel,
            "CMS" => Collector::Cms,
            "G1" => Collector::G1,
            "ZGC" => Collector::Z,
            "Shenandoah" => Collector::Shenandoah,
            _ => Collector::Other,
        }
    }

    /// Clear of a rule about young pauses, survivor spaces and ages, where the collector has none of them. Reads
    /// `gc.collector`.
    pub(super) fn copies_beside(&self) -> Option<Finding> {
        let name = self.words(&keys::GC_COLLECTOR)?;
        matches!(self.collector(), Collector::Z | Collector::Shenandoah).then(|| {
            let sentence = format!(
                "{} copies concurrently: it has no young pauses and no survivor spaces",
                name.value
            );
            Finding::clear(sentence).cite(name.reading)
        })
    }

    /// What is known of the JDK. Reads `gc.version` and `gc.unified`.
    pub(super) fn jdk(&self) -> Jdk {
        Jdk {
            release: self.release(),
            unified: self.value(&keys::GC_UNIFIED).map(|is| is > 0.0),
        }
    }

    /// Feature number of the JDK, if the log contains it: 8 of `1.8.0_504-b01`, 17 of `17.0.15+6`. Reads `gc.version`.
    pub(super) fn release(&self) -> Option<u32> {
        let text = self.words(&keys::GC_VERSION)?.value.trim();
        let text = text.strip_prefix("1.").unwrap_or(text);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number = text.get(..digits)?.parse().ok()?;
        // JDK 5 was the first with this numbering; there is no hundredth.
        (5..100).contains(&number).then_some(number)
    }

    /// The value of the last option that sets this flag, as written: `1g` of `-XX:NewSize=1g` for `NewSize=`. Reads
    /// `gc.flags`.
    pub(super) fn value_of(&self, flag: &str) -> Option<&'e str> {
        let flags = self.words(&keys::GC_FLAGS)?.value;
        let last = flags
            .split_whitespace()
            .rfind(|option| name(option) == flag)?;
        value(last)
    }

    /// The same as a number: bytes of a size. Reads `gc.flags`.
    pub(super) fn size_of(&self, flag: &str) -> Option<f64> {
        amount(self.value_of(flag)?)
    }

    /// The command line in the log has an option of this name. Reads `gc.flags`.
    pub(super) fn has_option(&self, start: &str) -> bool {
        let words = self.words(&keys::GC_FLAGS);
        words.is_some_and(|words| {
            words
                .value
                .split_whitespace()
                .any(|option| option.starts_with(start))
        })
    }

    /// Recommends options for `goal` that the JDK of this run accepts and that it does not have yet, and names the equivalent of
    /// newer releases; unchanged if there are none. Reads `gc.collector`, `gc.version`, `gc.unified` and `gc.flags`.
    pub(super) fn advise(&self, finding: Finding, goal: Goal) -> Finding {
        self.turn(finding, goal, |given, option| given == option)
    }

    /// The same for a number that should rise: unchanged if it is as high already.
    pub(super) fn raise(&self, finding: Finding, goal: Goal) -> Finding {
        self.turn(finding, goal, |given, option| {
            compared(given, option, |given, wanted| given >= wanted)
        })
    }

    /// The same for a number that should fall.
    pub(super) fn lower(&self, finding: Finding, goal: Goal) -> Finding {
        self.turn(finding, goal, |given, option| {
            compared(given, option, |given, wanted| given <= wanted)
        })
    }

    /// Recommends the options of `goal`, except those that the command line has already according to `has`, given first.
    fn turn(&self, finding: Finding, goal: Goal, has: impl Fn(&str, &str) -> bool) -> Finding {
        let (jdk, collector) = (self.jdk(), self.collector());
        let wanted = options(goal, jdk, collector);
        let flags = self.words(&keys::GC_FLAGS).map(|flags| flags.value);
        let given = |option: &str| {
            let of = name(option);
            let mut given = flags.unwrap_or_default().split_whitespace();
            given.rfind(|has| name(has) == of)
        };
        let new: Vec<&str> = wanted
            .iter()
            .map(String::as_str)
            .filter(|option| !given(option).is_some_and(|given| has(given, option)))
            .collect();
        let finding = finding.newer(newer(goal, jdk, collector));
        if new.is_empty() {
            let nothing = finding.knobs.is_empty() && !wanted.is_empty();
            // The expected effect is that of existing options.
            return if nothing { finding.expect("") } else { finding };
        }
        let now: Vec<&str> = new.iter().filter_map(|option| given(option)).collect();
        let from = match now.as_slice() {
            [] => flags.map(|_| "not given".to_owned()),
            now => Some(now.join(" ")),
        };
        wish(finding, from, new.join(" "))
    }

    /// Recommends removing what sets one of `flags`, named as in [`Self::value_of`]; unchanged if nothing does. Reads
    /// `gc.flags`.
    pub(super) fn take_out(&self, finding: Finding, flags: &[&str]) -> Finding {
        let words = self.words(&keys::GC_FLAGS);
        let given = words.map_or("", |words| words.value).split_whitespace();
        let out: Vec<&str> = given.filter(|given| flags.contains(&name(given))).collect();
        if out.is_empty() {
            return finding;
        }
        let out = out.join(" ");
        let to = format!("without {out}");
        wish(finding, Some(out), to)
    }

    /// A heap that is half free after an old collection, and has at least twice the space; within three quarters of the
    /// memory, if that is known. None if the log lacks the sizes, or the memory is too small. Reads `gc.heap_max`,
    /// `gc.live`, `gc.live_peak`, `gc.live_source` and `gc.memory`.
    pub(super) fn larger(&self) -> Option<Larger> {
        self.larger_by(2.0)
    }

    /// The same with so many times the space. Reads what [`Self::larger`] reads.
    pub(super) fn larger_by(&self, times: f64) -> Option<Larger> {
        let (heap, live) = (self.value(&keys::GC_HEAP_MAX)?, self.value(&keys::GC_LIVE)?);
        // If old collections show the exact live set, the largest has to fit, not the last.
        let exact = self
            .words(&keys::GC_LIVE_SOURCE)
            .is_some_and(|source| matches!(source.value, "full" | "mark"));
        let peak = self.value(&keys::GC_LIVE_PEAK).filter(|_| exact);
        let live = peak.map_or(live, |peak| live.max(peak.min(1.0) * heap));
        let room = (heap - live).max(0.01 * heap);
        let wanted = (2.0 * live).max(live + times * room);
        let most = self
            .value(&keys::GC_MEMORY)
            .map_or(wanted, |memory| 0.75 * memory);
        let bytes = wanted.min(most);
        (bytes > 1.1 * heap).then(|| Larger {
            mib: (bytes / (1024.0 * 1024.0)).floor() as u64,
            times: (bytes - live) / room,
        })
    }

    /// Recommends that heap with its expected effect; unchanged if there is none. Reads what [`Self::larger`] and
    /// [`Self::advise`] read.
    pub(super) fn grow(&self, finding: Finding, effect: &str) -> Finding {
        /// Half of the largest multiple: at least a hundredth of the heap counts as free.
        const HARDLY: f64 = 50.0;
        let Some(larger) = self.larger() else {
            return finding;
        };
        let finding = finding.expect(if larger.times < HARDLY {
            format!(
                "{:.1} times the space beside the live set: {effect}",
                larger.times
            )
        } else {
            "space beside the live set, where there is hardly any now".to_owned()
        });
        self.raise(finding, larger.goal(self.collector()))
    }

    /// The log covers less than a minute, so it is mostly startup. Reads `gc.seconds`.
    pub(super) fn is_short(&self) -> bool {
        self.value(&keys::GC_SECONDS)
            .is_some_and(|length| length < SHORT.value)
    }

    /// The longest acceptable pause: the user's goal, or our threshold. Reads `gc.pause_goal`.
    pub(super) fn goal(&self, line: &Threshold) -> f64 {
        let goal = self.value(&keys::GC_PAUSE_GOAL);
        goal.filter(|goal| *goal > 0.0).unwrap_or(line.value)
    }
}

/// What an option sets, as the log of JDK 8 writes it: `NewSize=` of `-XX:NewSize=1g` and of `-Xmn1g`, `UseG1GC` of
/// `-XX:-UseG1GC`.
fn name(option: &str) -> &str {
    for (short, long) in [
        ("-Xms", "InitialHeapSize="),
        ("-Xmx", "MaxHeapSize="),
        ("-Xmn", "NewSize="),
    ] {
        if option.starts_with(short) {
            return long;
        }
    }
    let Some(flag) = option.strip_prefix("-XX:") else {
        return &option[..option.find(':').unwrap_or(option.len())];
    };
    let end = flag.find('=').map_or(flag.len(), |at| at + 1);
    flag[..end].trim_start_matches(['+', '-'])
}

/// Recommends options, with those that they replace.
fn wish(finding: Finding, from: Option<String>, to: String) -> Finding {
    let mut finding = finding.turn(OPTIONS, to);
    if let Some(turn) = finding.knobs.last_mut() {
        turn.from = from;
    }
    finding
}

/// What an option sets its flag to: `1g` of `-XX:NewSize=1g` and of `-Xmn1g`.
fn value(option: &str) -> Option<&str> {
    match option.split_once('=') {
        Some((_, value)) => Some(value),
        None => option.get("-Xmx".len()..),
    }
}

/// A number with or without the unit of a size: 1048576 of `1m`.
fn amount(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: f64 = text.get(..digits)?.parse().ok()?;
    let unit = match text.get(digits..)? {
        "" => 1.0,
        "k" | "K" => 1024.0,
        "m" | "M" => 1024.0 * 1024.0,
        "g" | "G" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * unit)
}

/// Whether two options of one flag compare like this; those without a number if they are the same.
fn compared(given: &str, wanted: &str, stand: fn(f64, f64) -> bool) -> bool {
    match (
        value(given).and_then(amount),
        value(wanted).and_then(amount),
    ) {
        (Some(given), Some(wanted)) => stand(given, wanted),
        _ => given == wanted,
    }
}

/// A time in words: `315 ms`, `18.2 s`.
pub(super) fn seconds(number: f64) -> String {
    // Computed values often end in ...9999; three digits are enough.
    let scale = match number.abs() {
        size if size.is_normal() => 10.0_f64.powf(2.0 - size.log10().floor()),
        _ => 1.0,
    };
    let rounded = (number * scale).round() / scale;
    let shown = if rounded.is_finite() { rounded } else { number };
    evidence_text::number_of(Unit::Seconds, shown)
}

/// A rate of bytes in words: `290 MiB/s`.
pub(super) fn flow(number: f64) -> String {
    evidence_text::number_of(Unit::BytesPerSecond, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_known_by_what_it_sets() {
        assert_eq!(name("-XX:+UseG1GC"), name("-XX:-UseG1GC"));
        assert_eq!(name("-Xmn1g"), name("-Xmn512m"));
        assert_eq!(name("-XX:NewSize=1g"), name("-Xmn1g"));
        assert_ne!(name("-Xmn1g"), name("-Xms1g"));
        assert_ne!(name("-XX:NewSize=1g"), name("-XX:NewSizeThreadIncrease=1"));
        assert_eq!(name("-Xlog:gc*"), name("-Xlog:gc:file=x"));
    }

    #[test]
    fn numbers_of_options_are_compared_whatever_their_unit() {
        let at_least = |given, wanted| compared(given, wanted, |given, wanted| given >= wanted);
        assert!(at_least(
            "-XX:MetaspaceSize=536870912",
            "-XX:MetaspaceSize=128m"
        ));
        assert!(at_least("-Xmx2g", "-Xmx2048m"));
        assert!(!at_least("-Xmx1g", "-Xmx2048m"));
        assert!(at_least(
            "-XX:G1ReservePercent=30",
            "-XX:G1ReservePercent=20"
        ));
        // What is no number is only ever the same.
        assert!(at_least("-XX:+UseG1GC", "-XX:+UseG1GC"));
        assert!(!at_least("-XX:-UseG1GC", "-XX:+UseG1GC"));
        assert!(!at_least("-Xmxmuch", "-Xmx2048m"));
    }
}
