//! Limits of a control group that are one number, and its freezer.
//!
//! Version 2 prints `max` for no limit; version 1 prints a number close to the maximum for memory and `max` for
//! processes. The kernel rounds memory down to whole pages, so a wish is rounded before it is written.

use crate::Result;
use crate::cgroup::{absent, file};
use crate::edit::Place;
use crate::form;
use crate::knob::{Context, Current, Doc, Draft, Knob, PUT_BACK, Reading, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// What version 1 prints where memory is not limited, with pages of 4 KiB (`PAGE_COUNTER_MAX`).
const NONE_BYTES: &str = "9223372036854771712";

const PAGE: u64 = 4096;

/// `cpu.cgroup_freezer`
pub(crate) static FREEZER: Knob = Knob {
    id: "cpu.cgroup_freezer",
    scope: Scope::Cgroup,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "whether the processes of a control group run",
    values: "thawed or frozen",
    doc: Doc {
        does: "Frozen: no thread of the group or its subgroups runs. Thawed: they continue where they stopped.",
        helps: "A group that was frozen by mistake, or left frozen, runs again.",
        costs: "While frozen, all clients of the group wait. A group may be frozen on purpose (a snapshot, a paused \
                container); thawing defeats that.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst and cgroup-v2.rst (Linux).",
    },
    by_hand: &[],
    writes: &[
        Target::File("/sys/fs/cgroup/**/cgroup.freeze", Form::Switch),
        Target::File("/sys/fs/cgroup/**/freezer.state", Form::Freezer),
    ],
    turn: Turn::Own {
        read: read_freezer,
        draft: draft_freezer,
    },
};

/// `cpu.cgroup_weight`
pub(crate) static WEIGHT: Knob = Knob {
    id: "cpu.cgroup_weight",
    scope: Scope::Cgroup,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "a control group's share of CPU when groups compete",
    values: "a factor of the default, such as 1 or 0.25",
    doc: Doc {
        does: "Groups that want more CPU than there is share it in proportion to their weights. The weight has no \
               effect on a CPU that is not fully used. A group of version 2 that is marked as idle (cpu.idle) accepts no \
               weight, so the mark is removed first.",
        helps: "When a service with a low weight waits for CPUs that its neighbours keep busy.",
        costs: "The neighbours get less. An orchestrator that set the weight may set it again.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst (cpu.weight); kernel/sched/core.c (Linux).",
    },
    by_hand: &[],
    writes: &[
        Target::File("/sys/fs/cgroup/**/cpu.idle", Form::Switch),
        Target::File("/sys/fs/cgroup/**/cpu.weight", Form::Words),
        Target::File("/sys/fs/cgroup/**/cpu.shares", Form::Words),
    ],
    turn: Turn::Own {
        read: read_weight,
        draft: draft_weight,
    },
};

/// `mem.cgroup_limit`
pub(crate) static MEMORY: Knob = Knob {
    id: "mem.cgroup_limit",
    scope: Scope::Cgroup,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "how much memory a control group may use, page cache included",
    values: "a size such as 2GiB, or none for no limit",
    doc: Doc {
        does: "At the limit the group reclaims its own pages; when there are none to reclaim, the kernel kills one of its \
               processes.",
        helps: "When a group rereads pages that it had to drop, or is killed, while the machine has memory available.",
        costs: "Less memory for everything else on the machine. A lower limit reclaims at once, and may kill. A soft \
                limit of version 2 (memory.high) that is lower than the new limit is raised to it, and a group that has \
                only a soft limit keeps only that. An orchestrator may set its limit again.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.high) and cgroup-v1/memory.rst (Linux).",
    },
    by_hand: &[],
    writes: &[
        Target::File("/sys/fs/cgroup/**/memory.high", Form::Limit),
        Target::File("/sys/fs/cgroup/**/memory.max", Form::Limit),
        Target::File("/sys/fs/cgroup/**/memory.limit_in_bytes", Form::Limit),
    ],
    turn: Turn::Own {
        read: read_memory,
        draft: draft_memory,
    },
};

/// `proc.cgroup_pids`
pub(crate) static PIDS: Knob = Knob {
    id: "proc.cgroup_pids",
    scope: Scope::Cgroup,
    risk: Risk::Live,
    settable: Settable::Yes,
    summary: "how many threads and processes a control group may have",
    values: "a number such as 4096, or none for no limit",
    doc: Doc {
        does: "fork and pthread_create fail with EAGAIN once the group and its subgroups have that many.",
        helps: "When pids.events counts refusals: the service needs more threads than the limit allows.",
        costs: "A thread leak or a fork bomb gets further before it is stopped. An orchestrator may set its limit \
                again.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/cgroup-v2.rst (pids.max); kernel/cgroup/pids.c (Linux).",
    },
    by_hand: &[],
    writes: &[Target::File("/sys/fs/cgroup/**/pids.max", Form::Limit)],
    turn: Turn::Own {
        read: read_pids,
        draft: draft_pids,
    },
};

/// The first of these files that the group has, with its content.
fn found(knob: &Knob, context: &Context<'_>, names: &[&str]) -> Result<Reading> {
    for name in names {
        if let Some(path) = file(knob, context, name)? {
            return context.read_machine(knob, &path);
        }
    }
    Err(absent(knob, context, &names.join(" or ")))
}

fn freezer(context: &Context<'_>) -> Result<Reading> {
    found(&FREEZER, context, &["cgroup.freeze", "freezer.state"])
}

fn read_freezer(context: &Context<'_>) -> Result<Current> {
    let reading = freezer(context)?;
    let is_thawed = ["0", "THAWED"].contains(&reading.value.trim());
    let value = if is_thawed { "thawed" } else { "frozen" };
    Ok(Current::known(value.to_owned(), vec![reading]))
}

fn draft_freezer(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let path = freezer(context)?.source;
    let unified = path.ends_with("cgroup.freeze");
    let value: String = match (wish, unified) {
        ("thawed", true) => "0",
        ("thawed", false) => "THAWED",
        ("frozen", true) => "1",
        ("frozen", false) => "FROZEN",
        _ => return Err(FREEZER.bad_wish(wish, "it is neither thawed nor frozen")),
    }
    .to_owned();
    Ok(Draft::default().file(&Place::Host, path, &value))
}

fn weight(context: &Context<'_>) -> Result<(Reading, f64)> {
    let reading = found(&WEIGHT, context, &["cpu.weight", "cpu.shares"])?;
    let default = if reading.source.ends_with("weight") {
        100.0
    } else {
        1024.0
    };
    Ok((reading, default))
}

fn read_weight(context: &Context<'_>) -> Result<Current> {
    let (reading, default) = weight(context)?;
    let value = match reading.value.trim().parse::<f64>() {
        Ok(weight) => (weight / default).to_string(),
        Err(_) => reading.value.clone(),
    };
    Ok(Current::known(value, vec![reading]))
}

fn draft_weight(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let (reading, default) = weight(context)?;
    let factor: f64 = wish
        .parse()
        .map_err(|_| WEIGHT.bad_wish(wish, "it is not a factor such as 1 or 0.25"))?;
    let weight = (factor * default).round();
    // cpu.weight: 1 to 10000; cpu.shares: 2 to 262144 (kernel/sched/sched.h).
    let (least, most) = if default < 1000.0 {
        (1.0, 10_000.0)
    } else {
        (2.0, 262_144.0)
    };
    if !(least..=most).contains(&weight) {
        return Err(WEIGHT.bad_wish(wish, "it is out of the kernel's range, 0.01 to 100"));
    }
    let mut draft = Draft::default();
    if let Some(path) = file(&WEIGHT, context, "cpu.idle")? {
        let idle = context.read_machine(&WEIGHT, &path)?;
        if idle.value.trim() == "1" {
            draft = draft.file(&Place::Host, path, &0);
        }
    }
    Ok(draft.file(&Place::Host, reading.source, &format!("{weight}")))
}

fn memory(context: &Context<'_>) -> Result<Reading> {
    found(&MEMORY, context, &["memory.max", "memory.limit_in_bytes"])
}

/// The limit of version 2 at which the group is slowed down instead of killed, where it is set.
fn soft_memory(context: &Context<'_>) -> Result<Option<(Reading, u64)>> {
    let Some(path) = file(&MEMORY, context, "memory.high")? else {
        return Ok(None);
    };
    let reading = context.read_machine(&MEMORY, &path)?;
    let bytes = reading.value.trim().parse().ok();
    Ok(bytes.map(|bytes| (reading, bytes)))
}

fn read_memory(context: &Context<'_>) -> Result<Current> {
    let reading = memory(context)?;
    let hard = match reading.value.trim() {
        "max" | NONE_BYTES => None,
        bytes => Some(bytes.to_owned()),
    };
    let soft = soft_memory(context)?;
    let lower = soft.filter(|(_, soft)| {
        let hard = hard.as_ref().and_then(|hard| hard.parse::<u64>().ok());
        hard.is_none_or(|hard| *soft < hard)
    });
    let (value, readings) = match (lower, hard) {
        (Some((soft, bytes)), _) => (format!("{bytes}B"), vec![soft, reading]),
        (None, Some(bytes)) => (format!("{bytes}B"), vec![reading]),
        (None, None) => ("none".to_owned(), vec![reading]),
    };
    Ok(Current::known(value, readings))
}

fn draft_memory(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let bytes_of = |text: &str| text.trim().parse::<u64>().unwrap_or(u64::MAX);
    let hard = memory(context)?;
    let limit = bytes_of(&hard.value);
    let path = hard.source;
    let value = match (wish, path.ends_with("memory.max")) {
        ("none", true) => "max".to_owned(),
        ("none", false) => NONE_BYTES.to_owned(),
        (size, _) => {
            let bytes = form::bytes(size).map_err(|why| MEMORY.bad_wish(wish, why))?;
            let pages = bytes / PAGE * PAGE;
            if pages == 0 {
                return Err(MEMORY.bad_wish(wish, "it is less than a page"));
            }
            pages.to_string()
        }
    };
    let mut draft = Draft::default();
    let wished = bytes_of(&value);
    let soft = soft_memory(context)?;
    // The lower of the two is the one in force. A soft limit in force leaves the hard one alone, at which the group would be killed.
    let is_soft = soft.as_ref().is_some_and(|(_, bytes)| *bytes < limit);
    if !is_soft || wished > limit {
        draft = draft.file(&Place::Host, path, &value);
    }
    if let Some((reading, bytes)) = soft
        && (is_soft || bytes < wished)
    {
        draft = draft.file(&Place::Host, reading.source, &value);
    }
    Ok(draft)
}

fn pids(context: &Context<'_>) -> Result<Reading> {
    found(&PIDS, context, &["pids.max"])
}

fn read_pids(context: &Context<'_>) -> Result<Current> {
    let reading = pids(context)?;
    let value = match reading.value.trim() {
        "max" => "none".to_owned(),
        number => number.to_owned(),
    };
    Ok(Current::known(value, vec![reading]))
}

fn draft_pids(context: &Context<'_>, wish: &str) -> Result<Draft> {
    let path = pids(context)?.source;
    let value = match wish {
        "none" => "max".to_owned(),
        number => match number.parse::<u64>() {
            // PID_MAX_LIMIT of linux/threads.h.
            Ok(number @ 1..=4_194_304) => number.to_string(),
            _ => return Err(PIDS.bad_wish(wish, "it is neither none nor a number up to 4194304")),
        },
    };
    Ok(Draft::default().file(&Place::Host, path, &value))
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;
    use crate::edit::Edit;

    fn group(files: &[(&str, &str)]) -> Recorded {
        let none = Recorded::new("this host", 1);
        files.iter().fold(none, |host, (file, text)| {
            host.file(&format!("/sys/fs/cgroup/tier two/x/{file}"), text)
        })
    }

    /// What is written, file by file.
    fn written(knob: &Knob, host: &Recorded, wish: &str) -> Vec<(String, String)> {
        let context = Context::of_host(host, Some("/tier two/x"), &[0, 1]);
        let plan = knob.plan(&context, wish).unwrap();
        let edits = plan.edits.iter().map(|planned| match &planned.edit {
            Edit::WriteFile { path, value } => {
                let name = path.rsplit('/').next().unwrap();
                (name.to_owned(), value.clone())
            }
            other => panic!("{other:?}"),
        });
        edits.collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(file, value): &(&str, &str)| ((*file).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn a_group_that_is_marked_as_idle_gets_a_weight() {
        let idle = group(&[("cpu.weight", "1"), ("cpu.idle", "1")]);
        let expected = pairs(&[("cpu.idle", "0"), ("cpu.weight", "100")]);
        assert_eq!(written(&WEIGHT, &idle, "1"), expected);
        let light = group(&[("cpu.weight", "2"), ("cpu.idle", "0")]);
        let expected = pairs(&[("cpu.weight", "100")]);
        assert_eq!(written(&WEIGHT, &light, "1"), expected);
    }

    #[test]
    fn the_soft_limit_of_memory_is_raised_with_the_hard_one() {
        let limit = (64 << 20).to_string();
        for (high, max, wish, expected) in [
            ("max", &*limit, "1GiB", &[("memory.max", "1073741824")][..]),
            (&*limit, "max", "1GiB", &[("memory.high", "1073741824")]),
            (&*limit, "max", "none", &[("memory.high", "max")]),
            (
                "1048576",
                &*limit,
                "1GiB",
                &[("memory.max", "1073741824"), ("memory.high", "1073741824")],
            ),
            ("1048576", &*limit, "1MiB", &[("memory.high", "1048576")]),
            ("1048576", &*limit, "2MiB", &[("memory.high", "2097152")]),
            (&*limit, "1048576", "2MiB", &[("memory.max", "2097152")]),
        ] {
            let host = group(&[("memory.high", high), ("memory.max", max)]);
            let found = written(&MEMORY, &host, wish);
            assert_eq!(found, pairs(expected), "{high} {max} {wish}");
        }
    }

    #[test]
    fn the_lower_limit_of_memory_is_the_one_in_force() {
        for (high, max, expected) in [
            ("max", "max", "none"),
            ("4096", "max", "4096B"),
            ("4096", "8192", "4096B"),
            ("8192", "4096", "4096B"),
        ] {
            let host = group(&[("memory.high", high), ("memory.max", max)]);
            let context = Context::of_host(&host, Some("/tier two/x"), &[0, 1]);
            let current = MEMORY.current(&context).unwrap();
            assert_eq!(current.value.as_deref(), Ok(expected), "{high} {max}");
        }
    }
}
