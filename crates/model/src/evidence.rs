//! Evidence: what was read of a machine, each number with its unit, subject, window and raw line.
//!
//! Three things are kept apart that monitoring tools often mix up. What could not be read is a value with a reason,
//! never zero. A counter becomes a rate only with both ends of its window. And every number can be traced to the text
//! it came from, which the user sees when in doubt about a finding.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys;

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number of things.
    Count,
    /// A share of a whole; 0.05 is five percent.
    Fraction,
    /// Events per second over the window.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second over the window.
    BytesPerSecond,
    /// Seconds.
    Seconds,
    /// A factor between two like numbers.
    Ratio,
    /// Text: a mode, a list of CPUs, a name.
    Text,
}

/// Kind of the subject of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The machine as a whole, or the network namespace that was read.
    Host,
    /// One CPU, by number.
    Cpu,
    /// One NUMA node, by number.
    Node,
    /// One network device, by name.
    Device,
    /// One queue of a device: `eth0:rx-3`.
    Queue,
    /// One interrupt, by number.
    Irq,
    /// One block device, by name.
    Disk,
    /// One mounted file system, by the path where it is mounted.
    Mount,
    /// One control group, by path.
    Cgroup,
    /// One process, by pid.
    Process,
    /// One thread, `pid:tid`.
    Thread,
    /// One local address that is listened on or received on: `udp/0.0.0.0:9000`.
    Port,
    /// One connection: `10.0.0.1:20880>10.0.0.2:40112`.
    Connection,
    /// One counter of the kernel by its group and name: `TcpExt:ListenOverflows`.
    Counter,
    /// One value that a knob set: the knob and where.
    Setting,
    /// One run of a JVM in a GC log, by its number there, from 1.
    Jvm,
    /// The thread dumps of one JVM, by its number among the files, from 1.
    Dumps,
    /// One deadlock, by the number of its JVM and its own: `1:2`.
    Deadlock,
    /// One resource that threads of a JVM wait for and no thread owns, by the number of the JVM and its own: `1:2`.
    Wait,
    /// One Flight Recorder file, by its number among the files, from 1.
    Recording,
}

const KINDS: &[(Kind, &str)] = &[
    (Kind::Host, "host"),
    (Kind::Cpu, "cpu"),
    (Kind::Node, "node"),
    (Kind::Device, "device"),
    (Kind::Queue, "queue"),
    (Kind::Irq, "irq"),
    (Kind::Disk, "disk"),
    (Kind::Mount, "mount"),
    (Kind::Cgroup, "cgroup"),
    (Kind::Process, "process"),
    (Kind::Thread, "thread"),
    (Kind::Port, "port"),
    (Kind::Connection, "connection"),
    (Kind::Counter, "counter"),
    (Kind::Setting, "setting"),
    (Kind::Jvm, "jvm"),
    (Kind::Dumps, "dumps"),
    (Kind::Deadlock, "deadlock"),
    (Kind::Wait, "wait"),
    (Kind::Recording, "recording"),
];

/// One thing of a kind; written `host`, `cpu/3`, `device/eth0`, `queue/eth0:rx-3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    kind: Kind,
    /// Numbers sort as numbers: `cpu/10` after `cpu/9`.
    number: u64,
    name: Box<str>,
}

impl Subject {
    /// The machine.
    pub fn host() -> Self {
        Self::new(Kind::Host, "")
    }

    /// A thing of `kind`.
    pub fn new(kind: Kind, name: impl fmt::Display) -> Self {
        let name = name.to_string();
        let digits = name
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(name.len());
        Self {
            kind,
            number: name[..digits].parse().unwrap_or(u64::MAX),
            name: name.into(),
        }
    }

    /// A CPU.
    pub fn cpu(number: usize) -> Self {
        Self::new(Kind::Cpu, number)
    }

    /// A NUMA node.
    pub fn node(number: usize) -> Self {
        Self::new(Kind::Node, number)
    }

    /// A network device.
    pub fn device(name: &str) -> Self {
        Self::new(Kind::Device, name)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name within the kind; empty for the host.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, kind) = KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .expect("every kind is listed");
        if self.name.is_empty() {
            f.write_str(kind)
        } else {
            write!(f, "{kind}/{}", self.name)
        }
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or((text, ""));
        let (kind, _) = KINDS
            .iter()
            .find(|(_, word)| *word == kind)
            .ok_or_else(|| format!("'{kind}' is not a kind of subject"))?;
        if name.is_empty() != (*kind == Kind::Host) {
            return Err(format!(
                "'{text}' needs a name after '/'; only host has none"
            ));
        }
        Ok(Self::new(*kind, name))
    }
}

/// The name of a value, with its meaning, its kind of subject and its unit.
#[derive(Debug)]
pub struct Key {
    /// `softnet.dropped`; never changes once published.
    pub id: &'static str,
    /// Unit of its numbers.
    pub unit: Unit,
    /// Kind of subject that it describes.
    pub of: Kind,
    /// One sentence.
    pub meaning: &'static str,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Why a value is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// What happened: `not permitted`, `this kernel has no /proc/net/softnet_stat`.
    pub reason: String,
    /// What the user can do; empty if nothing helps.
    pub remedy: String,
    /// There is nothing to read: this machine has no such device, group or connection. Other values could not be read.
    pub is_none: bool,
}

impl Absence {
    /// An absence without a remedy.
    pub fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: String::new(),
            is_none: false,
        }
    }

    /// There is no such thing on this machine, and the reason says so: `this host has no disk`.
    pub fn none(reason: impl Into<String>) -> Self {
        Self {
            is_none: true,
            ..Self::because(reason)
        }
    }

    /// Adds what the user can do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// What was read, or why not.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// In the unit of its key.
    Number(f64),
    /// Text.
    Text(String),
    /// Unknown; never the same as zero.
    Absent(Absence),
}

/// Where a value came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file or kernel interface, by its usual name.
    pub source: String,
    /// The raw text, or both ends of a counter: `begin 17, end 4711`.
    pub line: String,
}

impl Origin {
    /// A source and the text found there.
    pub fn new(source: impl Into<String>, line: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            line: line.into(),
        }
    }
}

/// One value of one subject.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its name.
    pub key: &'static Key,
    /// What it is about.
    pub subject: Subject,
    /// Over the whole window, or at its end.
    pub value: Value,
    /// The same per part of the window, oldest first; empty where it was read once.
    pub series: Vec<f64>,
    /// Where it came from.
    pub origin: Origin,
}

/// A number with its reading.
#[derive(Clone, Copy, Debug)]
pub struct Quantity<'a> {
    /// The number, in the unit of its key.
    pub value: f64,
    /// The reading.
    pub reading: &'a Reading,
}

impl Quantity<'_> {
    /// The condition held in every part of the window; with one part or none, over the whole window.
    pub fn always(&self, condition: impl Fn(f64) -> bool) -> bool {
        if self.reading.series.is_empty() {
            condition(self.value)
        } else {
            self.reading.series.iter().all(|value| condition(*value))
        }
    }

    /// The condition holds over the whole window and in more than half of its parts, so a short interruption is allowed.
    pub fn lasts(&self, condition: impl Fn(f64) -> bool) -> bool {
        let series = &self.reading.series;
        let held = series.iter().filter(|value| condition(**value)).count();
        condition(self.value) && (series.is_empty() || 2 * held > series.len())
    }

    /// Share of the samples in which the condition held; none with fewer than eight samples, since one of them would
    /// weigh too much.
    pub fn share(&self, condition: impl Fn(f64) -> bool) -> Option<f64> {
        let series = &self.reading.series;
        let held = series.iter().filter(|value| condition(**value)).count();
        (series.len() >= 8).then(|| held as f64 / series.len() as f64)
    }
}

/// Words with their reading.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The words.
    pub value: &'a str,
    /// The reading.
    pub reading: &'a Reading,
}

/// A value that a rule needs and that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its key.
    pub key: &'static str,
    /// Its subject.
    pub subject: Subject,
    /// Why it is missing.
    pub why: Absence,
}

/// All that was read in one window.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    seconds: f64,
    /// By key, then by subject, both in order: the same evidence always reads the same.
    readings: BTreeMap<&'static str, BTreeMap<Subject, Reading>>,
    /// Lower bound of the memory that they take, bytes.
    held: usize,
}

/// The most bytes that readings take. Those of a machine with 512 CPUs and 2,000 interrupts, each with its raw line, take a
/// tenth of it; an untrusted capture may be made to fill memory.
const MOST_HELD: usize = 256 << 20;

impl Evidence {
    /// Empty evidence, for a window of that many seconds.
    pub fn over(seconds: f64) -> Self {
        Self {
            seconds,
            ..Self::default()
        }
    }

    /// Length of the window in seconds; 0 for a single sample.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The readings exceed the memory limit and some were dropped, so nothing can be judged by them.
    pub fn is_overfull(&self) -> bool {
        self.held > MOST_HELD
    }

    /// Adds a reading. A value replaces an absence, never vice versa.
    pub fn add(&mut self, reading: Reading) {
        self.held += size_of::<Reading>()
            + reading.subject.name().len()
            + reading.origin.source.len()
            + reading.origin.line.len()
            + size_of_val(&*reading.series);
        if let Value::Text(text) = &reading.value {
            self.held += text.len();
        }
        if self.is_overfull() {
            return;
        }
        let of_key = self.readings.entry(reading.key.id).or_default();
        let keeps = matches!(reading.value, Value::Absent(_))
            && of_key
                .get(&reading.subject)
                .is_some_and(|known| !matches!(known.value, Value::Absent(_)));
        if !keeps {
            of_key.insert(reading.subject.clone(), reading);
        }
    }

    /// Adds a number that was read once.
    pub fn number(&mut self, key: &'static Key, subject: Subject, value: f64, origin: Origin) {
        self.series(key, subject, value, Vec::new(), origin);
    }

    /// Adds a number with its course over the parts of the window.
    pub fn series(
        &mut self,
        key: &'static Key,
        subject: Subject,
        value: f64,
        series: Vec<f64>,
        origin: Origin,
    ) {
        debug_assert!(key.of == subject.kind, "{} is not of {subject}", key.id);
        let value = if value.is_finite() {
            Value::Number(value)
        } else {
            Value::Absent(Absence::because("the value is not a number"))
        };
        self.add(Reading {
            key,
            subject,
            value,
            series,
            origin,
        });
    }

    /// Adds words.
    pub fn text(
        &mut self,
        key: &'static Key,
        subject: Subject,
        value: impl Into<String>,
        origin: Origin,
    ) {
        debug_assert!(key.of == subject.kind, "{} is not of {subject}", key.id);
        self.add(Reading {
            key,
            subject,
            value: Value::Text(value.into()),
            series: Vec::new(),
            origin,
        });
    }

    /// Records why these keys could not be read; for a key of many subjects, for all of them.
    pub fn absent(&mut self, keys: &[&'static Key], why: &Absence, source: &str) {
        for key in keys {
            self.add(Reading {
                key,
                subject: Subject::host(),
                value: Value::Absent(why.clone()),
                series: Vec::new(),
                origin: Origin::new(source, ""),
            });
        }
    }

    /// The reading of this key for this subject, absent or not.
    pub fn reading(&self, key: &Key, subject: &Subject) -> Option<&Reading> {
        self.readings.get(key.id)?.get(subject)
    }

    /// All readings, by key and subject.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.readings.values().flat_map(BTreeMap::values)
    }

    /// The number of this key for this subject.
    pub fn quantity(&self, key: &'static Key, subject: &Subject) -> Result<Quantity<'_>, Missing> {
        match self.reading(key, subject) {
            Some(
                reading @ Reading {
                    value: Value::Number(value),
                    ..
                },
            ) => Ok(Quantity {
                value: *value,
                reading,
            }),
            _ => Err(self.missing(key, subject)),
        }
    }

    /// The number of this key for the host.
    pub fn host(&self, key: &'static Key) -> Result<Quantity<'_>, Missing> {
        self.quantity(key, &Subject::host())
    }

    /// The words of this key for this subject.
    pub fn words(&self, key: &'static Key, subject: &Subject) -> Result<Words<'_>, Missing> {
        match self.reading(key, subject) {
            Some(
                reading @ Reading {
                    value: Value::Text(value),
                    ..
                },
            ) => Ok(Words { value, reading }),
            _ => Err(self.missing(key, subject)),
        }
    }

    /// The numbers of this key, one per subject, in order of the subjects; missing if there is none.
    pub fn each(&self, key: &'static Key) -> Result<Vec<(&Subject, Quantity<'_>)>, Missing> {
        let all: Vec<_> = self
            .of_key(key)
            .filter_map(|(subject, reading)| match reading.value {
                Value::Number(value) => Some((subject, Quantity { value, reading })),
                _ => None,
            })
            .collect();
        if all.is_empty() {
            return Err(self.missing(key, &Subject::host()));
        }
        Ok(all)
    }

    /// The words of this key, one per subject; missing if there are none.
    pub fn each_words(&self, key: &'static Key) -> Result<Vec<(&Subject, Words<'_>)>, Missing> {
        let all: Vec<_> = self
            .of_key(key)
            .filter_map(|(subject, reading)| match &reading.value {
                Value::Text(value) => Some((subject, Words { value, reading })),
                _ => None,
            })
            .collect();
        if all.is_empty() {
            return Err(self.missing(key, &Subject::host()));
        }
        Ok(all)
    }

    /// A subject of this key that exists and could not be read; [`Self::each`] leaves it out.
    pub fn unread(&self, key: &Key) -> Option<Missing> {
        self.of_key(key)
            .find_map(|(subject, reading)| match &reading.value {
                Value::Absent(why) if !why.is_none => Some(Missing {
                    key: reading.key.id,
                    subject: subject.clone(),
                    why: why.clone(),
                }),
                _ => None,
            })
    }

    fn of_key(&self, key: &Key) -> impl Iterator<Item = (&Subject, &Reading)> {
        self.readings.get(key.id).into_iter().flatten()
    }

    /// Why this value is missing.
    pub fn missing(&self, key: &'static Key, subject: &Subject) -> Missing {
        let absence = |subject: &Subject| match &self.reading(key, subject)?.value {
            Value::Absent(why) => Some(why.clone()),
            _ => None,
        };
        let why = absence(subject)
            .or_else(|| absence(&Subject::host()))
            .unwrap_or_else(|| Absence::because("no probe read it"));
        Missing {
            key: key.id,
            subject: subject.clone(),
            why,
        }
    }
}

/// The key with this id.
pub fn key(id: &str) -> Option<&'static Key> {
    keys::all().find(|key| key.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_read_back_as_written_and_sort_by_number() {
        for text in ["host", "cpu/3", "queue/eth0:rx-3", "port/udp/[::]:53"] {
            assert_eq!(text.parse::<Subject>().unwrap().to_string(), text);
        }
        assert!("cpu".parse::<Subject>().is_err());
        assert!("host/x".parse::<Subject>().is_err());
        assert!("moon/1".parse::<Subject>().is_err());
        assert!(Subject::cpu(9) < Subject::cpu(10));
    }

    #[test]
    fn what_could_not_be_read_says_why_and_is_never_zero() {
        let mut evidence = Evidence::over(10.0);
        let why = Absence::because("not permitted").remedy("run as root");
        evidence.absent(&[&keys::SOFTNET_DROPPED], &why, "/proc/net/softnet_stat");
        let missing = evidence
            .quantity(&keys::SOFTNET_DROPPED, &Subject::cpu(0))
            .unwrap_err();
        assert_eq!(missing.why, why);
        assert!(evidence.each(&keys::SOFTNET_DROPPED).is_err());
        let never = evidence.host(&keys::STACK_SAMPLES).unwrap_err();
        assert_eq!(never.why.reason, "no probe read it");
    }

    #[test]
    fn a_subject_that_could_not_be_read_is_not_lost_among_the_others() {
        let mut evidence = Evidence::over(10.0);
        let key = &keys::SOFTNET_DROPPED;
        evidence.number(key, Subject::cpu(0), 0.0, Origin::default());
        let mut absent = |cpu, why| {
            evidence.add(Reading {
                key,
                subject: Subject::cpu(cpu),
                value: Value::Absent(why),
                series: Vec::new(),
                origin: Origin::default(),
            });
        };
        absent(1, Absence::none("CPU 1 is offline"));
        absent(2, Absence::because("not permitted"));
        assert_eq!(evidence.each(key).unwrap().len(), 1);
        assert_eq!(evidence.unread(key).unwrap().subject, Subject::cpu(2));
        assert!(evidence.unread(&keys::STACK_SAMPLES).is_none());
    }

    #[test]
    fn a_value_replaces_an_absence_and_not_the_other_way_round() {
        let mut evidence = Evidence::over(10.0);
        let origin = Origin::default();
        evidence.number(&keys::STACK_SAMPLES, Subject::host(), 4.0, origin);
        evidence.absent(&[&keys::STACK_SAMPLES], &Absence::because("late"), "");
        assert!((evidence.host(&keys::STACK_SAMPLES).unwrap().value - 4.0).abs() < 1e-9);
    }

    #[test]
    fn readings_without_end_are_not_held_and_it_is_known() {
        let mut evidence = Evidence::over(10.0);
        let line = "x".repeat(1 << 20);
        let mut tell = |cpu| {
            let origin = Origin::new("/proc/stat", line.clone());
            evidence.number(&keys::SOFTNET_DROPPED, Subject::cpu(cpu), 1.0, origin);
            evidence.is_overfull()
        };
        assert!((0..200).all(|cpu| !tell(cpu)));
        assert!((200..300).any(tell));
        let held = evidence.each(&keys::SOFTNET_DROPPED).unwrap().len();
        assert!((200..256).contains(&held), "{held}");
    }

    #[test]
    fn a_condition_must_hold_in_every_part_of_the_window() {
        let mut evidence = Evidence::over(9.0);
        let origin = Origin::default();
        evidence.series(
            &keys::SOFTNET_DROPPED,
            Subject::cpu(1),
            5.0,
            vec![15.0, 0.0, 0.0],
            origin,
        );
        let dropped = evidence
            .quantity(&keys::SOFTNET_DROPPED, &Subject::cpu(1))
            .unwrap();
        assert!(!dropped.always(|rate| rate > 0.0));
        assert!(dropped.value > 0.0);
    }
}
