//! What threads wait for: contended locks, conditions, files and sockets.

use std::collections::HashSet;

use rungwise_model::jfr::{self as report, Times};

use super::events::Kind;
use super::names::{Map, Name, Namer, Names, UNKNOWN, cut};
use super::{ROWS, add, first_line, most, ms};
use crate::value::Value;

/// Objects of one class that are counted one by one; a program with more has no single contended lock.
const OBJECTS: usize = 100_000;
/// Places of a lock that are shown.
const SITES: usize = 5;
/// Classes for whose objects threads park while another thread holds them.
pub(crate) const EXCLUSIVE: &[&str] = &["ReentrantLock$", "ReentrantReadWriteLock$", "StampedLock"];

#[derive(Default)]
pub(super) struct Waits {
    locks: Map<(bool, Name), Lock>,
    others: Map<(&'static str, Name), Placed>,
    io: Map<(&'static str, Name), (Placed, u64)>,
    /// Milliseconds that each thread waited for locks.
    pub(super) by_thread: Map<Name, f64>,
}

#[derive(Default)]
struct Placed {
    times: Times,
    /// Nanoseconds by place.
    places: Map<Name, u64>,
}

#[derive(Default)]
struct Lock {
    times: Times,
    threads: HashSet<Name>,
    objects: HashSet<i64>,
    owners: Map<Name, u64>,
    sites: Map<Name, Times>,
}

impl Placed {
    fn add(&mut self, duration: Value<'_>, place: Option<Name>) {
        add(&mut self.times, ms(duration));
        if let Some(place) = place {
            let ns = u64::try_from(duration.int().unwrap_or(0)).unwrap_or(0);
            let total = self.places.entry(place).or_default();
            *total = total.saturating_add(ns);
        }
    }
}

impl Waits {
    pub(super) fn wait(&mut self, kind: Kind, fields: &[Value<'_>], namer: &mut Namer<'_>) {
        let place = namer.place(fields[1]);
        let class = match kind {
            Kind::Sleep => namer.names.number(""),
            _ => namer.class(fields[3]),
        };
        let name = namer.names.get(class);
        let is_synchronizer = kind == Kind::Park && EXCLUSIVE.iter().any(|of| name.contains(of));
        let kind = match kind {
            Kind::MonitorEnter => None,
            Kind::Park if is_synchronizer => None,
            Kind::Park => Some("park"),
            Kind::Sleep => Some("sleep"),
            _ => Some("object-wait"),
        };
        if let Some(kind) = kind {
            let placed = self.others.entry((kind, class)).or_default();
            placed.add(fields[0], place);
            return;
        }
        let thread = namer.thread(fields[2]);
        let waited = ms(fields[0]);
        *self.by_thread.entry(thread).or_default() += waited;
        let lock = self.locks.entry((is_synchronizer, class)).or_default();
        add(&mut lock.times, waited);
        lock.threads.insert(thread);
        if let Some(address) = fields[4].int().filter(|_| lock.objects.len() < OBJECTS) {
            lock.objects.insert(address);
        }
        if let Some(owner) = fields.get(5).and_then(|owner| owner.constant()) {
            let owner = namer.thread(Value::Constant(owner));
            *lock.owners.entry(owner).or_default() += 1;
        }
        if let Some(place) = place {
            add(lock.sites.entry(place).or_default(), waited);
        }
    }

    pub(super) fn io(&mut self, kind: Kind, fields: &[Value<'_>], namer: &mut Namer<'_>) {
        let text = |value| {
            let text = namer.constants.text(value);
            text.filter(|text| !text.is_empty())
        };
        let (kind, name) = match kind {
            Kind::SocketRead | Kind::SocketWrite => {
                let host = text(fields[2]).or_else(|| text(fields[4]));
                let port = fields[5].int().unwrap_or(0);
                let name = format!("{}:{port}", cut(host.as_deref().unwrap_or(UNKNOWN)));
                let is_read = kind == Kind::SocketRead;
                (
                    if is_read {
                        "socket-read"
                    } else {
                        "socket-write"
                    },
                    name,
                )
            }
            _ => {
                let path = text(fields[2]);
                let kind = match kind {
                    Kind::FileRead => "file-read",
                    Kind::FileWrite => "file-write",
                    _ => "file-force",
                };
                (kind, cut(path.as_deref().unwrap_or(UNKNOWN)).to_owned())
            }
        };
        let place = namer.place(fields[1]);
        let name = namer.names.number(&name);
        let (placed, bytes) = self.io.entry((kind, name)).or_default();
        placed.add(fields[0], place);
        // The end of a stream counts as -1.
        let moved = fields.get(3).and_then(|bytes| bytes.int()).unwrap_or(0);
        *bytes = bytes.saturating_add(u64::try_from(moved).unwrap_or(0));
    }

    pub(super) fn locks(&self, names: &Names) -> Vec<report::Lock> {
        let mut rows: Vec<report::Lock> = self
            .locks
            .iter()
            .map(|((is_synchronizer, class), lock)| {
                let mut sites: Vec<report::Site> = lock
                    .sites
                    .iter()
                    .map(|(place, times)| report::Site {
                        frames: names.get(*place).lines().map(str::to_owned).collect(),
                        times: *times,
                    })
                    .collect();
                sites.sort_by(|a, b| {
                    let by_time = b.times.total_ms.total_cmp(&a.times.total_ms);
                    by_time.then_with(|| a.frames.cmp(&b.frames))
                });
                sites.truncate(SITES);
                report::Lock {
                    class: names.get(*class).to_owned(),
                    kind: if *is_synchronizer {
                        "synchronizer".to_owned()
                    } else {
                        "monitor".to_owned()
                    },
                    times: lock.times,
                    threads: lock.threads.len() as u64,
                    objects: lock.objects.len() as u64,
                    owner: most(&lock.owners, names),
                    sites,
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_time = b.times.total_ms.total_cmp(&a.times.total_ms);
            by_time.then_with(|| (&a.class, &a.kind).cmp(&(&b.class, &b.kind)))
        });
        rows.truncate(ROWS);
        rows
    }

    pub(super) fn waits(&self, names: &Names) -> Vec<report::Wait> {
        let mut rows: Vec<report::Wait> = self
            .others
            .iter()
            .map(|((kind, class), placed)| report::Wait {
                kind: (*kind).to_owned(),
                class: names.get(*class).to_owned(),
                times: placed.times,
                at: at(placed, names),
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_time = b.times.total_ms.total_cmp(&a.times.total_ms);
            by_time.then_with(|| (&a.kind, &a.class).cmp(&(&b.kind, &b.class)))
        });
        rows.truncate(ROWS);
        rows
    }

    pub(super) fn all_io(&self, names: &Names) -> Vec<report::Io> {
        let mut rows: Vec<report::Io> = self
            .io
            .iter()
            .map(|((kind, place), (placed, bytes))| report::Io {
                kind: (*kind).to_owned(),
                place: names.get(*place).to_owned(),
                times: placed.times,
                bytes: *bytes,
                at: at(placed, names),
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_time = b.times.total_ms.total_cmp(&a.times.total_ms);
            by_time.then_with(|| (&a.kind, &a.place).cmp(&(&b.kind, &b.place)))
        });
        rows.truncate(ROWS);
        rows
    }
}

fn at(placed: &Placed, names: &Names) -> Option<String> {
    most(&placed.places, names).map(|place| first_line(&place))
}
