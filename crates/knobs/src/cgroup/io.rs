//! How much a control group may read from and write to a disk.

use std::path::Path;

use crate::Result;
use crate::cgroup::{absent, file};
use crate::edit::{Edit, Place};
use crate::form;
use crate::knob::{Context, Current, Doc, Draft, Knob, PUT_BACK, Reading, Risk, Scope, Settable};
use crate::target::Target;
use crate::throttled::{KINDS, Row, is_disk, rows};
use crate::turn::Turn;

const UNIFIED: &str = "io.max";

/// `disk.cgroup_io`
pub(crate) static KNOB: Knob = Knob {
    id: "disk.cgroup_io",
    scope: Scope::Cgroup,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "how much a control group may read from and write to a disk",
    values: "DISK:LIMIT=N,... such as vda:wiops=500,wbps=10MiB, where LIMIT is rbps, wbps, riops or wiops and N is per second, or none; \
             DISK:none or none for no limit",
    doc: Doc {
        does: "Beyond the limit the kernel delays each request of the group until the limit has room again. Limits that the wish does not \
               name stay.",
        helps: "When a service waits for its disk, uses all of its limit, and the disk itself is idle.",
        costs: "The group takes from the disk what others may count on. A limit is a contract between tenants; an orchestrator may set its \
                own again. Version 1 does not limit writes through the page cache.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst (io.max) and cgroup-v1/blkio-controller.rst (Linux); block/blk-throttle.c.",
    },
    by_hand: &[],
    writes: &[Target::Throttle],
    turn: Turn::Own { read, draft },
};

/// A row of a file, and which limits are in it: all four in version 2, one in version 1.
struct Limits {
    file: String,
    kind: Option<&'static str>,
    text: String,
}

impl Limits {
    /// The limits of a disk as pairs of kind and number.
    fn of<'a>(&self, limits: &'a str) -> Vec<(&'a str, &'a str)>
    where
        'static: 'a,
    {
        if let Some(kind) = self.kind {
            return vec![(kind, limits.trim())];
        }
        let words = limits.split_whitespace();
        let pairs = words.filter_map(|word| word.split_once('='));
        pairs.filter(|(_, limit)| *limit != "max").collect()
    }
}

/// The files of the group with their text.
fn limits(context: &Context<'_>) -> Result<Vec<Limits>> {
    let mut all = Vec::new();
    let kinds = KINDS.iter().map(|(kind, name)| (*name, Some(*kind)));
    for (name, kind) in [(UNIFIED, None)].into_iter().chain(kinds) {
        let Some(path) = file(&KNOB, context, name)? else {
            continue;
        };
        let Reading { source, value } = context.read_machine(&KNOB, &path)?;
        all.push(Limits {
            file: source,
            kind,
            text: value,
        });
        if kind.is_none() {
            break;
        }
    }
    if all.is_empty() {
        return Err(absent(&KNOB, context, "io.max or blkio.throttle.*"));
    }
    Ok(all)
}

fn read(context: &Context<'_>) -> Result<Current> {
    let found = limits(context)?;
    let mut said = Vec::new();
    for limits in &found {
        for (disk, row) in rows(&limits.text).filter(|(disk, _)| is_disk(disk)) {
            let each = limits.of(row).into_iter();
            let each: Vec<String> = each.map(|(kind, n)| format!("{kind}={n}")).collect();
            if !each.is_empty() {
                said.push(format!("{}:{}", name_of(context, disk), each.join(",")));
            }
        }
    }
    let readings = found.into_iter().map(|limits| Reading {
        source: limits.file,
        value: limits.text,
    });
    let value = if said.is_empty() {
        "none".to_owned()
    } else {
        said.join(" ")
    };
    Ok(Current::known(value, readings.collect()))
}

/// `vda` for `254:0`
fn name_of(context: &Context<'_>, numbers: &str) -> String {
    let names = context.machine.list(Path::new("/sys/block"));
    let named = names.unwrap_or_default().into_iter().find(|name| {
        let path = format!("/sys/block/{name}/dev");
        let text = context.machine.text(Path::new(&path));
        text.is_ok_and(|text| text == numbers)
    });
    named.unwrap_or_else(|| numbers.to_owned())
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let found = limits(context)?;
    let mut draft = Draft::default();
    let mut turn = |limits: &Limits, disk: &str, value: String| {
        let row = Row {
            file: limits.file.clone(),
            disk: disk.to_owned(),
        };
        let edit = Edit::Throttle { row, value };
        draft = std::mem::take(&mut draft).edit(&Place::Host, edit);
    };
    let free = |limits: &Limits| match limits.kind {
        Some(_) => "0".to_owned(),
        None => KINDS.map(|(kind, _)| format!("{kind}=max")).join(" "),
    };
    if wish == "none" {
        for limits in &found {
            for (disk, _) in rows(&limits.text).filter(|(disk, _)| is_disk(disk)) {
                turn(limits, disk, free(limits));
            }
        }
        return Ok(draft.note("no disk of the group has a limit after it"));
    }
    let Some((disk, wished)) = wish.rsplit_once(':') else {
        return Err(KNOB.bad_wish(wish, "it names no disk"));
    };
    let disk = numbers_of(context, disk, wish)?;
    if wished == "none" {
        for limits in &found {
            turn(limits, &disk, free(limits));
        }
        return Ok(draft);
    }
    let mut wanted: Vec<(&str, u64)> = Vec::new();
    for word in wished.split(',') {
        let parsed = word.split_once('=').and_then(|(kind, number)| {
            let (kind, _) = KINDS.iter().find(|(known, _)| *known == kind)?;
            let number = match number {
                "none" => 0,
                number if kind.ends_with("iops") => number.parse().ok().filter(|n| *n > 0)?,
                number => form::bytes(number).ok().filter(|number| *number > 0)?,
            };
            Some((*kind, number))
        });
        let why = || format!("'{word}' is not a limit");
        let (kind, number) = parsed.ok_or_else(|| KNOB.bad_wish(wish, why()))?;
        if wanted.iter().any(|(known, _)| *known == kind) {
            return Err(KNOB.bad_wish(wish, format!("it names {kind} twice")));
        }
        wanted.push((kind, number));
    }
    for limits in &found {
        if let Some(own) = limits.kind {
            for (_, number) in wanted.iter().filter(|(kind, _)| *kind == own) {
                turn(limits, &disk, number.to_string());
            }
        } else {
            let row = rows(&limits.text).find(|(known, _)| *known == disk);
            let row = row.map_or_else(Vec::new, |(_, row)| limits.of(row));
            let each = KINDS.map(|(kind, _)| {
                let wish = wanted.iter().find(|(known, _)| *known == kind);
                let before = row.iter().find(|(known, _)| *known == kind);
                match (wish, before) {
                    (Some((_, 0)), _) | (None, None) => format!("{kind}=max"),
                    (Some((_, number)), _) => format!("{kind}={number}"),
                    (None, Some((_, number))) => format!("{kind}={number}"),
                }
            });
            turn(limits, &disk, each.join(" "));
        }
    }
    Ok(draft)
}

/// `254:0` for `vda`, or for itself.
fn numbers_of(context: &Context<'_>, disk: &str, wish: &str) -> Result<String> {
    if is_disk(disk) {
        return Ok(disk.to_owned());
    }
    let bad = || KNOB.bad_wish(wish, format!("there is no disk {disk}"));
    if !crate::target::is_name(disk) {
        return Err(bad());
    }
    let path = format!("/sys/block/{disk}/dev");
    let numbers = context.machine.text(Path::new(&path)).map_err(|_| bad())?;
    if is_disk(&numbers) {
        Ok(numbers)
    } else {
        Err(bad())
    }
}
