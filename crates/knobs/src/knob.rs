//! A knob: a setting, what changing it costs, and how a wish becomes edits.
//!
//! A knob is data; how it is read and planned is its [`Turn`]. The five parts of its documentation are fields,
//! so that none can be forgotten; `docs/knobs`, `rungwise knob show` and the scenario's messages
//! all print the same text.

use std::path::Path;

use rungwise_host::{DeviceSetting, Host};
use schemars::JsonSchema;
use serde::Serialize;

use crate::by_hand::Manual;
use crate::edit::{Edit, Place};
use crate::error::{Error, Result};
use crate::mask::{self, Cpus};
use crate::plan::{Plan, PlannedEdit};
use crate::target::{Form, Target, is_name, matches_name};
use crate::turn::Turn;

/// A directory per device of the reader's network namespace.
const INTERFACES: &str = "/proc/sys/net/ipv4/conf";

/// A setting that rungwise changes, or at least shows.
#[derive(Debug)]
pub struct Knob {
    /// The system's own name: `net.rps_cpus`. Never changes once published.
    pub id: &'static str,
    /// What a change affects.
    pub scope: Scope,
    /// What a change may break.
    pub risk: Risk,
    /// Whether rungwise can change it at all.
    pub settable: Settable,
    /// One line.
    pub summary: &'static str,
    /// The values it accepts, for people.
    pub values: &'static str,
    /// Its page.
    pub doc: Doc,
    /// The manual steps, and where, for what rungwise does not change.
    pub by_hand: &'static [Manual],
    pub(crate) writes: &'static [Target],
    pub(crate) turn: Turn,
}

/// What most knobs have in common: a value that changes at once and disturbs nothing else. Each knob sets the rest.
pub(crate) const COMMON: Knob = Knob {
    id: "",
    scope: Scope::Host,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "",
    values: "",
    doc: Doc {
        does: "",
        helps: "",
        costs: "",
        undone: PUT_BACK,
        sources: "",
    },
    by_hand: &[],
    writes: &[],
    turn: Turn::File,
};

/// How most knobs are undone.
pub(crate) const PUT_BACK: &str = "The previous value is written back.";

/// How far a change reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One control group, by its path below `/sys/fs/cgroup`.
    Cgroup,
    /// One network device.
    Device,
    /// One block device; for an option of a mount, the file system at its mount point.
    Disk,
    /// One network namespace.
    Netns,
    /// The whole machine.
    Host,
    /// The service under test; changed by restarting it.
    Service,
}

impl Scope {
    /// Its name, which is also the folder of its knobs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Device => "device",
            Self::Disk => "disk",
            Self::Netns => "netns",
            Self::Host => "host",
            Self::Service => "service",
        }
    }
}

/// What a change may break for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Takes effect at once and disturbs nothing outside the measurement.
    Live,
    /// Takes effect at once; other traffic may lose speed, packets or protection.
    Disruptive,
    /// Takes effect when the service restarts.
    Restart,
    /// Takes effect at the next boot.
    Reboot,
}

impl Risk {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Disruptive => "disruptive",
            Self::Restart => "restart",
            Self::Reboot => "reboot",
        }
    }
}

/// Whether rungwise changes a knob or only shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settable {
    /// It does.
    Yes,
    /// It only shows it; why, and what you can do instead.
    No(&'static str),
}

/// The five parts of a knob's page.
#[derive(Debug)]
pub struct Doc {
    /// What it does.
    pub does: &'static str,
    /// When it helps.
    pub helps: &'static str,
    /// What it costs.
    pub costs: &'static str,
    /// How it is undone.
    pub undone: &'static str,
    /// Sources.
    pub sources: &'static str,
}

/// Where a knob is read and planned.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The machine itself: what belongs to the whole host is read and planned here.
    pub machine: &'a dyn Host,
    /// The network namespace in question; the same as `machine` outside a lab.
    pub here: &'a dyn Host,
    /// The name of `here` in the plan.
    pub place: &'a Place,
    /// The device in question, for knobs of a device; for others what their scope is about: a block device,
    /// a mount point, a control group.
    pub device: Option<&'a str>,
    /// CPUs that `all` and `by-cpu` mean, in order.
    pub cpus: &'a [usize],
}

/// One thing that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reading {
    /// File, feature or table.
    pub source: String,
    /// Its value, as found.
    pub value: String,
}

/// The current value of a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// As a wish spells it where one fits; else why it is unknown.
    pub value: Result<String, String>,
    /// The readings behind it.
    pub readings: Vec<Reading>,
}

impl Current {
    pub(crate) fn known(value: impl Into<String>, readings: Vec<Reading>) -> Self {
        Self {
            value: Ok(value.into()),
            readings,
        }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self {
            value: Err(why.into()),
            readings: Vec::new(),
        }
    }
}

/// The edits of a wish, before the old values are captured.
#[derive(Debug, Default)]
pub struct Draft {
    /// The edits in order, each with its place.
    pub edits: Vec<(Place, Edit)>,
    /// What you should know before agreeing.
    pub notes: Vec<String>,
}

impl Draft {
    pub(crate) fn edit(mut self, place: &Place, edit: Edit) -> Self {
        self.edits.push((place.clone(), edit));
        self
    }

    pub(crate) fn file(
        self,
        place: &Place,
        path: impl Into<String>,
        value: &impl ToString,
    ) -> Self {
        let edit = Edit::WriteFile {
            path: path.into(),
            value: value.to_string(),
        };
        self.edit(place, edit)
    }

    pub(crate) fn feature(self, place: &Place, device: &str, feature: &str, on: bool) -> Self {
        let edit = Edit::Feature {
            device: device.to_owned(),
            feature: feature.to_owned(),
            on,
        };
        self.edit(place, edit)
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl Knob {
    /// Reads the current value.
    pub fn current(&self, context: &Context<'_>) -> Result<Current> {
        self.turn.read(self, context)
    }

    /// The changes that `wish` needs. Changes nothing. For a manual knob, the plan contains the manual steps.
    pub fn plan(&self, context: &Context<'_>, wish: &str) -> Result<Plan> {
        let wish = wish.trim();
        let draft = match self.settable {
            Settable::Yes => self.turn.draft(self, context, wish)?,
            Settable::No(why) => self.by_hand(wish, why)?,
        };
        let mut edits = Vec::with_capacity(draft.edits.len());
        for (place, edit) in draft.edits {
            debug_assert!(
                self.may_write(&place, &edit),
                "{} does not declare {edit:?}",
                self.id
            );
            let before = if edit.readable() {
                let host = context.at(&place);
                let found = edit.current(host).map_err(|answer| {
                    Error::kernel(
                        self.id,
                        format!("read {}", edit.target()),
                        host.name(),
                        answer,
                    )
                })?;
                Some(found)
            } else {
                None
            };
            edits.push(PlannedEdit {
                place,
                edit,
                before,
            });
        }
        Ok(Plan {
            knob: self.id.to_owned(),
            wish: wish.to_owned(),
            edits,
            notes: draft.notes,
        })
    }

    /// The draft of a manual wish: every text for it, in order.
    pub(crate) fn by_hand(&self, wish: &str, why: &str) -> Result<Draft> {
        let mut draft = Draft::default().note(why);
        for manual in self.by_hand {
            if let Some(text) = manual.text_for(wish) {
                let way = manual.way;
                draft = draft.edit(&Place::Host, Edit::ByHand { way, text });
            }
        }
        if !draft.edits.is_empty() {
            return Ok(draft);
        }
        if self.by_hand.is_empty() {
            return Err(Error::NotSettable {
                knob: self.id,
                why: why.to_owned(),
            });
        }
        Err(self.bad_wish(wish, "there is nothing to do for it"))
    }

    /// Whether this knob declares `edit` among its targets.
    pub fn may_write(&self, place: &Place, edit: &Edit) -> bool {
        match edit {
            Edit::ByHand { way, text } => self
                .by_hand
                .iter()
                .any(|manual| manual.way == *way && manual.could_say(text)),
            _ => self.writes.iter().any(|target| target.covers(place, edit)),
        }
    }

    pub(crate) fn bad_wish(&self, wish: &str, why: impl Into<String>) -> Error {
        Error::BadWish {
            knob: self.id,
            wish: wish.to_owned(),
            why: why.into(),
            allowed: self.values,
        }
    }

    /// Reads `on` or `off`.
    pub(crate) fn on_off(&self, wish: &str) -> Result<bool> {
        match wish {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(self.bad_wish(wish, "it is neither on nor off")),
        }
    }

    /// Reads a whole number within `range`.
    pub(crate) fn number(&self, wish: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let number = wish
            .parse::<u64>()
            .map_err(|_| self.bad_wish(wish, "it is not a whole number"))?;
        if range.contains(&number) {
            return Ok(number);
        }
        let why = format!("it is not between {} and {}", range.start(), range.end());
        Err(self.bad_wish(wish, why))
    }

    /// Reads `off`, `all` or a CPU list as a set of CPUs.
    pub(crate) fn cpus(&self, context: &Context<'_>, wish: &str) -> Result<Cpus> {
        match wish {
            "off" => Ok(Cpus::new()),
            "all" => Ok(context.cpus.iter().copied().collect()),
            list => mask::parse_list(list).map_err(|why| self.bad_wish(wish, why)),
        }
    }
}

impl<'a> Context<'a> {
    /// A context outside a lab.
    pub fn of_host(machine: &'a dyn Host, device: Option<&'a str>, cpus: &'a [usize]) -> Self {
        Self {
            machine,
            here: machine,
            place: &Place::Host,
            device,
            cpus,
        }
    }

    /// The machine behind a place of this context.
    fn at(&self, place: &Place) -> &'a dyn Host {
        if place == self.place {
            self.here
        } else {
            self.machine
        }
    }

    /// Where a knob's files are: those of the whole machine on the machine, all others here.
    pub(crate) fn side(&self, knob: &Knob) -> (&'a dyn Host, &'a Place) {
        match knob.scope {
            Scope::Device | Scope::Netns | Scope::Service => (self.here, self.place),
            Scope::Cgroup | Scope::Disk | Scope::Host => (self.machine, &Place::Host),
        }
    }

    pub(crate) fn read(&self, knob: &Knob, path: &str) -> Result<Reading> {
        read_file(knob, self.here, path)
    }

    /// Reads a file of the whole machine, wherever the context is.
    pub(crate) fn read_machine(&self, knob: &Knob, path: &str) -> Result<Reading> {
        read_file(knob, self.machine, path)
    }

    pub(crate) fn read_feature(&self, knob: &Knob, device: &str, feature: &str) -> Result<Reading> {
        let edit = Edit::Feature {
            device: device.to_owned(),
            feature: feature.to_owned(),
            on: true,
        };
        let source = edit.target();
        match edit.current(self.here) {
            Ok(value) => Ok(Reading { source, value }),
            Err(error) => Err(Error::kernel(
                knob.id,
                format!("read {source}"),
                self.here.name(),
                error,
            )),
        }
    }

    pub(crate) fn read_setting(
        &self,
        knob: &Knob,
        device: &str,
        setting: DeviceSetting,
    ) -> Result<Reading> {
        let source = format!("{setting} of {device}");
        match self.here.device_setting(device, setting) {
            Ok(value) => Ok(Reading { source, value }),
            Err(answer) => Err(Error::kernel(
                knob.id,
                format!("read {source}"),
                self.here.name(),
                answer,
            )),
        }
    }

    /// The files that `pattern` stands for, in order: its first `*` is the device in question, every other
    /// one whatever is there.
    pub(crate) fn files(&self, knob: &Knob, pattern: &str) -> Result<Vec<String>> {
        let (host, _) = self.side(knob);
        let mut subject = match knob.scope {
            Scope::Device if pattern.starts_with(INTERFACES) => Some(self.interface(knob)?),
            Scope::Device => Some(self.device(knob)?),
            Scope::Disk => Some(self.named_device(knob, host, &["/sys/block"])?),
            _ => None,
        };
        let mut found = vec![String::new()];
        for part in pattern.split('/').skip(1) {
            let known = if part == "*" { subject.take() } else { None };
            let mut next = Vec::new();
            for dir in found {
                if let Some(name) = known {
                    next.push(format!("{dir}/{name}"));
                } else if part.contains('*') {
                    let names = host.list(Path::new(&dir)).map_err(|answer| {
                        Error::kernel(knob.id, format!("list {dir}"), host.name(), answer)
                    })?;
                    let mut names: Vec<_> = names
                        .into_iter()
                        .filter(|name| matches_name(part, name))
                        .collect();
                    // rx-2 before rx-10.
                    names.sort_by_key(|name| (name.len(), name.clone()));
                    next.extend(names.into_iter().map(|name| format!("{dir}/{name}")));
                } else {
                    next.push(format!("{dir}/{part}"));
                }
            }
            found = next;
        }
        if found.is_empty() {
            return Err(Error::Absent {
                knob: knob.id.to_owned(),
                tried: format!("find {pattern}"),
                host: host.name().to_owned(),
            });
        }
        Ok(found)
    }

    /// A file with its value in the kernel's words, brackets and all resolved.
    pub(crate) fn value_of(&self, knob: &Knob, path: &str, form: Form) -> Result<Reading> {
        let mut reading = read_file(knob, self.side(knob).0, path)?;
        reading.value = form.stored(&reading.value).into_owned();
        Ok(reading)
    }

    /// The named device, which exists and whose files below `/sys` are those of this namespace.
    pub(crate) fn device(&self, knob: &Knob) -> Result<&'a str> {
        self.named_device(knob, self.here, &["/sys/class/net", INTERFACES])
    }

    /// The named device of this namespace, for knobs that need nothing of it below `/sys`.
    pub(crate) fn interface(&self, knob: &Knob) -> Result<&'a str> {
        self.named_device(knob, self.here, &[INTERFACES])
    }

    /// A device that every one of `dirs` lists. `/sys` shows the namespace of the process that mounted it and
    /// `/proc/sys/net` that of the reader: below `unshare -n` alone they differ, and a write below `/sys` would change
    /// a device of another namespace.
    fn named_device(&self, knob: &Knob, host: &dyn Host, dirs: &[&str]) -> Result<&'a str> {
        let lists: Vec<Vec<String>> = dirs
            .iter()
            .map(|dir| host.list(Path::new(dir)).unwrap_or_default())
            .collect();
        let known: Vec<String> = lists[0]
            .iter()
            .filter(|name| !["all", "default"].contains(&name.as_str()))
            .filter(|name| lists.iter().all(|list| list.contains(name)))
            .cloned()
            .collect();
        let none = |why: String| {
            if known.is_empty() {
                format!("{why}; there is none here that it could change")
            } else {
                why
            }
        };
        let why = match self.device {
            Some(device) if is_name(device) && known.iter().any(|name| name == device) => {
                return Ok(device);
            }
            // Another device would not help.
            Some(device) if lists[1..].iter().flatten().any(|name| name == device) => {
                return Err(Error::NoDevice {
                    knob: knob.id,
                    why: format!(
                        "/sys shows another network namespace than that of {device}, so a write there would not reach \
                         it; enter with `ip netns exec`, which mounts the right one"
                    ),
                    known: Vec::new(),
                });
            }
            Some(device) => none(format!("{} has no device {device}", host.name())),
            None => none("it needs a device".to_owned()),
        };
        Err(Error::NoDevice {
            knob: knob.id,
            why,
            known,
        })
    }

    /// The files `name` of the device's queues of one direction (`rx`, `tx`), in order of the queue.
    pub(crate) fn queues(&self, knob: &Knob, direction: &str, name: &str) -> Result<Vec<String>> {
        let device = self.device(knob)?;
        let dir = format!("/sys/class/net/{device}/queues");
        let names = self.here.list(Path::new(&dir)).map_err(|answer| {
            Error::kernel(knob.id, format!("list {dir}"), self.here.name(), answer)
        })?;
        let mut numbers: Vec<u32> = names
            .iter()
            .filter_map(|queue| {
                queue
                    .strip_prefix(direction)?
                    .strip_prefix('-')?
                    .parse()
                    .ok()
            })
            .collect();
        numbers.sort_unstable();
        Ok(numbers
            .into_iter()
            .map(|number| format!("{dir}/{direction}-{number}/{name}"))
            .collect())
    }
}

fn read_file(knob: &Knob, host: &dyn Host, path: &str) -> Result<Reading> {
    match host.text(Path::new(path)) {
        Ok(value) => Ok(Reading {
            source: path.to_owned(),
            value,
        }),
        Err(source) => Err(Error::kernel(
            knob.id,
            format!("read {path}"),
            host.name(),
            source,
        )),
    }
}
