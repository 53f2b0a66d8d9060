//! How much written data may wait in memory before it goes to disk.
//!
//! Each of two limits is kept either in percent of memory or in bytes. Writing one makes the other read 0, and
//! 0 cannot be written back: so each pair is one edit, whose value says which of the two is in force.

use rungwise_model::units;

use crate::Result;
use crate::edit::{Edit, Place, Twins};
use crate::form;
use crate::knob::{Context, Current, Doc, Draft, Knob, Reading, Risk, Scope, Settable};
use crate::target::{Form, Target};
use crate::turn::{Turn, named};

const EXPIRE: &str = "/proc/sys/vm/dirty_expire_centisecs";

/// Longest that data may wait, centiseconds: a day, a guess above any sensible value.
const LONGEST: u128 = 8_640_000;

/// Name in the wish, file in bytes, file in percent.
const LIMITS: [(&str, &str, &str); 2] = [
    (
        "limit",
        "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_ratio",
    ),
    (
        "background",
        "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_ratio",
    ),
];

/// `mem.dirty`
pub(crate) static KNOB: Knob = Knob {
    id: "mem.dirty",
    scope: Scope::Host,
    risk: Risk::Disruptive,
    settable: Settable::Yes,
    summary: "dirty data that may wait in memory before writeback",
    values: "parts such as limit=20%,background=10%, limit=512MiB, or expire=30s; parts not named are unchanged",
    doc: Doc {
        does: "Above background the kernel starts writeback; above limit every writer waits; data older than expire is \
               written in any case.",
        helps: "Lower, in bytes, when threads that write logs wait in balance_dirty_pages for a long flush; higher, \
                for bursts that fit in memory.",
        costs: "Higher: more is lost in a crash, and flushes take longer. Lower: writers wait earlier.",
        undone: "The limit that was in force is set again, percent or bytes, which makes the other read 0 again.",
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux); TuneD pull request 882 on the value 0 that cannot be \
                  written back.",
    },
    by_hand: &[],
    writes: &[
        Target::Twin(LIMITS[0].1, LIMITS[0].2),
        Target::Twin(LIMITS[1].1, LIMITS[1].2),
        Target::File(
            EXPIRE,
            Form::Number {
                least: 1,
                most: LONGEST as u64,
            },
        ),
    ],
    turn: Turn::Own { read, draft },
};

fn read(context: &Context<'_>) -> Result<Current> {
    let mut readings = Vec::new();
    let mut words = Vec::new();
    for (name, bytes, percent) in LIMITS {
        let bytes = context.read_machine(&KNOB, bytes)?;
        let percent = context.read_machine(&KNOB, percent)?;
        words.push(if bytes.value == "0" {
            format!("{name}={}%", percent.value)
        } else {
            format!("{name}={}B", bytes.value)
        });
        readings.extend([bytes, percent]);
    }
    let expire: Reading = context.read_machine(&KNOB, EXPIRE)?;
    words.push(match expire.value.strip_suffix("00") {
        Some(seconds) if !seconds.is_empty() => format!("expire={seconds}s"),
        _ => format!("expire={}0ms", expire.value),
    });
    readings.push(expire);
    Ok(Current::known(words.join(","), readings))
}

fn draft(_: &Context<'_>, wish: &str) -> Result<Draft> {
    let mut draft = Draft::default();
    for (name, part) in named(&KNOB, &["limit", "background", "expire"], wish)? {
        let limit = LIMITS.iter().find(|(known, _, _)| *known == name);
        draft = if let Some((_, bytes, percent)) = limit {
            let files = Twins {
                bytes: (*bytes).to_owned(),
                percent: (*percent).to_owned(),
            };
            let value = twin(part).map_err(|why| KNOB.bad_wish(wish, why))?;
            draft.edit(&Place::Host, Edit::Twin { files, value })
        } else {
            let time =
                units::duration(part).map_err(|error| KNOB.bad_wish(wish, error.to_string()))?;
            let centiseconds = time.as_millis() / 10;
            if !(1..=LONGEST).contains(&centiseconds) {
                return Err(KNOB.bad_wish(wish, "expire must be 10ms to 24h"));
            }
            draft.file(&Place::Host, EXPIRE, &centiseconds)
        };
    }
    Ok(draft)
}

fn twin(part: &str) -> Result<String, String> {
    if let Some(percent) = part.strip_suffix('%') {
        return match percent.trim().parse::<u8>() {
            Ok(percent @ 1..=100) => Ok(format!("percent={percent}")),
            _ => Err("a percentage must be 1% to 100%".to_owned()),
        };
    }
    // Two pages, as the kernel asks for dirty_bytes on machines with 4 KiB pages.
    match form::bytes(part)? {
        bytes @ 8192.. => Ok(format!("bytes={bytes}")),
        _ => Err("it is less than 8KiB".to_owned()),
    }
}
