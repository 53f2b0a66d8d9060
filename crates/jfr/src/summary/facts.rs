//! Facts of the JVM and its machine, and what it measures of itself: CPU use, counters, operations, old objects.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rungwise_model::jfr::{self as report, Times};

use super::events::Kind;
use super::names::{Map, Name, Namer, Names, cut};
use super::{ROWS, add, first_line, moment, most, ms};
use crate::value::{Constant, Value};

/// References from an old object to its root that are shown; the JVM keeps up to 200.
const PATH: usize = 20;

#[derive(Default)]
pub(super) struct Facts {
    pub(super) jvm: report::Jvm,
    pub(super) flags: BTreeMap<String, report::Flag>,
    thresholds: BTreeMap<String, String>,
    disabled: BTreeSet<String>,
    pub(super) safepoint_begin: Option<Times>,
    /// Latest time that an event with a time of its own has.
    pub(super) last_ns: i64,
    operations: BTreeMap<(String, bool), Times>,
    loads: Loads,
    /// First and last value of the JVM's count of throwables, with their times.
    throwables: Option<[(i64, i64); 2]>,
    /// First and last value of the bytes that each thread allocated.
    allocated: BTreeMap<(Name, i64), (u64, u64)>,
    started: HashSet<(Name, i64)>,
    old: Map<Name, Old>,
    container: Option<report::Container>,
    throttling: Option<[(i64, i64, i64); 2]>,
}

#[derive(Default)]
struct Loads {
    count: u64,
    user: f64,
    system: f64,
    machine: f64,
    most: f64,
}

#[derive(Default)]
struct Old {
    count: u64,
    oldest_ns: i64,
    places: Map<Name, u64>,
    path: Vec<String>,
    root: Option<String>,
}

impl Facts {
    pub(super) fn add(
        &mut self,
        kind: Kind,
        event: &str,
        fields: &[Value<'_>],
        namer: &mut Namer<'_>,
    ) {
        let text = |value| {
            let text = namer.constants.text(value)?;
            Some(cut(&text).to_owned()).filter(|text| !text.is_empty())
        };
        match kind {
            Kind::Jvm => {
                let jvm = &mut self.jvm;
                jvm.name = text(fields[0]);
                jvm.version = text(fields[1]);
                // What follows may be a password.
                let arguments = namer.constants.text(fields[2]).unwrap_or_default();
                let main = arguments.split_whitespace().next().unwrap_or_default();
                jvm.main = Some(cut(main).to_owned()).filter(|main| !main.is_empty());
                jvm.started = fields[3].int().filter(|ns| *ns > 0).map(moment);
                jvm.pid = positive(fields[4]);
            }
            Kind::CpuInformation => {
                self.jvm.cpu = text(fields[0]);
                self.jvm.cpus = positive(fields[1]);
            }
            Kind::Memory => self.jvm.memory_bytes = positive(fields[0]),
            Kind::Collector => {
                let both = [text(fields[0]), text(fields[1])];
                let mut both: Vec<String> = both.into_iter().flatten().collect();
                both.dedup();
                both.retain(|name| name != "N/A");
                self.jvm.collector = Some(both.join(", ")).filter(|both| !both.is_empty());
            }
            Kind::ThreadStart => {
                self.jvm.thread_starts += 1;
                self.started.insert(identity(fields[0], namer));
            }
            Kind::ThreadCount => {
                self.jvm.most_threads = self.jvm.most_threads.max(positive(fields[0]));
            }
            Kind::Flag => {
                let origin = text(fields[2]).unwrap_or_default();
                let value = match fields[1] {
                    Value::Int(value) if event == "jdk.BooleanFlag" => (value != 0).to_string(),
                    Value::Int(value) if event.starts_with("jdk.Unsigned") => {
                        value.cast_unsigned().to_string()
                    }
                    Value::Int(value) => value.to_string(),
                    Value::Float(value) => value.to_string(),
                    value => text(value).unwrap_or_default(),
                };
                if let Some(name) = text(fields[0]).filter(|_| origin != "Default") {
                    self.flags.insert(name, report::Flag { value, origin });
                }
            }
            Kind::Setting => {
                let of = fields[0].int().and_then(|id| namer.constants.type_name(id));
                let (Some(of), Some(name), Some(value)) = (of, text(fields[1]), text(fields[2]))
                else {
                    return;
                };
                match (name.as_str(), value.as_str()) {
                    ("threshold", _) => {
                        self.thresholds.insert(of.to_owned(), value);
                    }
                    ("enabled", "false") => {
                        self.disabled.insert(of.to_owned());
                    }
                    ("enabled", _) => {
                        self.disabled.remove(of);
                    }
                    _ => {}
                }
            }
            Kind::SafepointBegin => {
                add(self.safepoint_begin.get_or_insert_default(), ms(fields[0]));
            }
            Kind::Operation => {
                let stops = fields[2].int() == Some(1);
                let name = text(fields[1]).unwrap_or_default();
                add(
                    self.operations.entry((name, stops)).or_default(),
                    ms(fields[0]),
                );
            }
            Kind::CpuLoad => {
                let share = |value: Value<'_>| {
                    let share = value.float().filter(|share| share.is_finite());
                    share.unwrap_or(0.0).clamp(0.0, 1.0)
                };
                let loads = &mut self.loads;
                loads.count += 1;
                loads.user += share(fields[0]);
                loads.system += share(fields[1]);
                loads.machine += share(fields[2]);
                loads.most = loads.most.max(share(fields[2]));
            }
            Kind::ExceptionCount => {
                if let (Some(at), Some(count)) = (fields[0].int(), fields[1].int()) {
                    self.last_ns = self.last_ns.max(at);
                    let ends = self.throwables.get_or_insert([(at, count); 2]);
                    ends[0] = ends[0].min((at, count));
                    ends[1] = ends[1].max((at, count));
                }
            }
            Kind::ThreadAllocation => {
                if let Some(bytes) = fields[1].int().and_then(|bytes| u64::try_from(bytes).ok()) {
                    let thread = identity(fields[0], namer);
                    let ends = self.allocated.entry(thread).or_insert((bytes, bytes));
                    ends.0 = ends.0.min(bytes);
                    ends.1 = ends.1.max(bytes);
                }
            }
            Kind::OldObject => self.old_object(fields, namer),
            Kind::Container => {
                let quota = fields[2].int().filter(|quota| *quota > 0);
                let period = fields[3].int().filter(|period| *period > 0);
                let quota = quota.zip(period);
                self.container = text(fields[0]).map(|kind| report::Container {
                    kind,
                    cpus: positive(fields[1]),
                    quota_cpus: quota.map(|(quota, period)| quota as f64 / period as f64),
                    memory_limit_bytes: positive(fields[4]),
                    throttled_share: None,
                    throttled_ms: None,
                });
            }
            Kind::Throttling => {
                let number = |at: usize| fields[at].int();
                if let (Some(all), Some(throttled), Some(ns)) = (number(0), number(1), number(2)) {
                    let now = (all, throttled, ns);
                    let ends = self.throttling.get_or_insert([now; 2]);
                    ends[0] = ends[0].min(now);
                    ends[1] = ends[1].max(now);
                }
            }
            _ => {}
        }
    }

    fn old_object(&mut self, fields: &[Value<'_>], namer: &mut Namer<'_>) {
        let Some(object) = fields[2].constant() else {
            return;
        };
        let constants = namer.constants;
        let class = namer.class(constants.field(object, "type"));
        let place = namer.place(fields[1]);
        let old = self.old.entry(class).or_default();
        old.count += 1;
        let sampled = fields[0].int().zip(fields[4].int());
        let age = sampled.map_or(0, |(at, from)| at.saturating_sub(from));
        old.oldest_ns = old.oldest_ns.max(age);
        if let Some(place) = place {
            *old.places.entry(place).or_default() += 1;
        }
        if old.path.is_empty() {
            let path = path(object, namer);
            let old = self.old.entry(class).or_default();
            old.path = path;
            let root = fields[3].constant();
            old.root = root.and_then(|root| {
                let text = |name| constants.text(constants.field(root, name));
                let described = text("description").filter(|words| !words.is_empty());
                let parts: Vec<_> = [text("type"), text("system"), described]
                    .into_iter()
                    .flatten()
                    .collect();
                Some(cut(&parts.join(", ")).to_owned()).filter(|root| !root.is_empty())
            });
        }
    }

    /// The shortest recorded duration of each type that was recorded.
    pub(super) fn thresholds(&self) -> BTreeMap<String, String> {
        let mut thresholds = self.thresholds.clone();
        thresholds.retain(|of, _| !self.disabled.contains(of));
        thresholds
    }

    pub(super) fn operations(&self) -> Vec<report::Operation> {
        let mut rows: Vec<report::Operation> = self
            .operations
            .iter()
            .map(|((name, stops_threads), times)| report::Operation {
                name: name.clone(),
                stops_threads: *stops_threads,
                times: *times,
            })
            .collect();
        rows.sort_by(|a, b| b.times.total_ms.total_cmp(&a.times.total_ms));
        rows.truncate(ROWS);
        rows
    }

    pub(super) fn cpu(&self) -> Option<report::Cpu> {
        let loads = &self.loads;
        let mean = |sum: f64| sum / loads.count as f64;
        (loads.count > 0).then(|| report::Cpu {
            jvm_user: mean(loads.user),
            jvm_system: mean(loads.system),
            machine: mean(loads.machine),
            machine_most: loads.most,
            others: mean((loads.machine - loads.user - loads.system).max(0.0)),
            samples: loads.count,
        })
    }

    /// Throwables during the recording, and the seconds between the first and the last count.
    pub(super) fn thrown(&self) -> Option<(u64, f64)> {
        let [(began, first), (ended, last)] = self.throwables?;
        let count = u64::try_from(last.saturating_sub(first)).unwrap_or(0);
        Some((count, ended.saturating_sub(began) as f64 / 1e9))
    }

    /// Bytes that each thread allocated during the recording, as far as the JVM's counters say.
    pub(super) fn allocated(&self) -> BTreeMap<Name, u64> {
        let mut by_name = BTreeMap::new();
        for (thread, (first, last)) in &self.allocated {
            let is_new = self.started.contains(thread);
            let since = if is_new { 0 } else { *first };
            if *last > since {
                *by_name.entry(thread.0).or_default() += last - since;
            }
        }
        by_name
    }

    pub(super) fn container(&self) -> Option<report::Container> {
        let mut container = self.container.clone()?;
        if let Some([first, last]) = self.throttling {
            let slices = last.0.saturating_sub(first.0);
            let throttled = last.1.saturating_sub(first.1).max(0);
            container.throttled_share =
                (slices > 0).then(|| (throttled as f64 / slices as f64).min(1.0));
            container.throttled_ms = Some(last.2.saturating_sub(first.2).max(0) as f64 / 1e6);
        }
        Some(container)
    }

    pub(super) fn old_objects(&self, names: &Names) -> Vec<report::OldObject> {
        let mut rows: Vec<report::OldObject> = self
            .old
            .iter()
            .map(|(class, old)| report::OldObject {
                class: names.get(*class).to_owned(),
                count: old.count,
                oldest_s: old.oldest_ns.max(0) as f64 / 1e9,
                at: most(&old.places, names).map(|place| first_line(&place)),
                path: old.path.clone(),
                root: old.root.clone(),
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_count = b.count.cmp(&a.count);
            by_count.then_with(|| a.class.cmp(&b.class))
        });
        rows.truncate(ROWS);
        rows
    }
}

/// A thread by its name and its number: several may have one name.
fn identity(thread: Value<'_>, namer: &mut Namer<'_>) -> (Name, i64) {
    let known = namer.constants.thread(thread).unwrap_or_default();
    (namer.thread(thread), known.os_id)
}

fn positive(value: Value<'_>) -> Option<u64> {
    // The JVM writes -1 or the largest number where there is no limit.
    let value = value.int().filter(|value| *value != i64::MAX)?;
    u64::try_from(value).ok().filter(|value| *value > 0)
}

/// From an object to its root: the class and field of each object that refers to it.
fn path(object: Constant, namer: &mut Namer<'_>) -> Vec<String> {
    let constants = namer.constants;
    let mut path = Vec::new();
    let mut next = constants.field(object, "referrer").constant();
    while let Some(referrer) = next.filter(|_| path.len() < PATH) {
        let object = constants.field(referrer, "object").constant();
        let class = object.map_or_else(String::new, |object| {
            let class = namer.class(constants.field(object, "type"));
            namer.names.get(class).to_owned()
        });
        let field = constants.field(referrer, "field").constant();
        let field = field.and_then(|field| constants.text(constants.field(field, "name")));
        let array = constants.field(referrer, "array").constant();
        let index = array.and_then(|array| constants.field(array, "index").int());
        path.push(match (field, index) {
            (Some(field), _) => format!("{class}.{}", cut(&field)),
            (None, Some(index)) => format!("{class}[{index}]"),
            (None, None) => class,
        });
        next = object.and_then(|object| constants.field(object, "referrer").constant());
    }
    path
}
