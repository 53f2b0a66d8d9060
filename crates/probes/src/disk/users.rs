//! `/proc/PID/io`: which processes read from and write to disks.
//!
//! Source: fs/proc/base.c (`do_io_accounting`), Documentation/filesystems/proc.rst, Linux 6.18.

use std::collections::BTreeMap;

use rungwise_formats::{fields, task};
use rungwise_model::evidence::Unit;
use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::evidence_text::number_of;
use rungwise_model::keys;

use crate::{Cost, Need, Probe, Source, Window, enter};

const IO: &str = "/proc/*/io";
const STATS: &str = "/proc/*/stat";

/// How many are named.
const MOST: usize = 5;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-io",
    summary: "the processes that read from and write to disks most",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[Source::ends(IO), Source::ends(STATS)],
    yields: &[&keys::DISK_USERS, &keys::DISK_USER_BYTES],
    derive,
    doc: "\
`read_bytes` and `write_bytes`: bytes that the process caused to be read from disk, and bytes that it dirtied or \
wrote, excluding page cache hits. Writes are counted when the page is dirtied, not when it reaches the disk, and not \
at all in memory file systems. Other users' processes need root. A process that started or ended within the window is \
omitted. Source: fs/proc/base.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let judged = window.capture().process.as_ref().map(|process| process.pid);
    let files = window.matching(IO);
    let readable = files
        .iter()
        .filter(|(path, _)| window.text(path).is_ok())
        .count();
    if readable == 0 {
        let why = match files.first() {
            Some((path, _)) => window.text(path).err(),
            None => window.unlisted(IO),
        };
        let why = why.unwrap_or_else(|| Absence::because(format!("{IO} was not read")));
        return evidence.absent(PROBE.yields, &why, IO);
    }
    if window.moments().len() < 2 {
        let why = Absence::because("the window has only one sample, and a rate needs two")
            .remedy("observe for some seconds: --for 10s");
        return evidence.absent(PROBE.yields, &why, IO);
    }
    let mut users = Vec::new();
    for (path, stars) in files {
        let Some(pid) = stars.first().and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        let Some(rate) = window
            .rates(path, bytes)
            .ok()
            .and_then(|mut rates| rates.remove(&()))
        else {
            continue;
        };
        if rate.delta > 0.0 || judged == Some(pid) {
            users.push((rate, pid, path));
        }
    }
    users.sort_by(|(a, left, _), (b, right, _)| b.per_s.total_cmp(&a.per_s).then(left.cmp(right)));
    let mut words = Vec::new();
    for (place, (rate, pid, path)) in users.iter().enumerate() {
        if place >= MOST && judged != Some(*pid) {
            continue;
        }
        let (key, subject) = (&keys::DISK_USER_BYTES, Subject::new(Kind::Process, *pid));
        let name = "read_bytes + write_bytes";
        enter::counter(evidence, key, subject, (rate, 1.0), (path, name));
        if rate.delta > 0.0 {
            let stat = window.text(&STATS.replace('*', &pid.to_string()));
            let stat = stat.ok().and_then(task::stat);
            let name = stat.map_or("", |stat| stat.name);
            words.push(format!(
                "{name} ({pid}) {}",
                number_of(Unit::BytesPerSecond, rate.per_s)
            ));
        }
    }
    let line = format!("{readable} files");
    let words = match words.len() {
        0 => "none".to_owned(),
        _ => words.join(", "),
    };
    evidence.text(
        &keys::DISK_USERS,
        Subject::host(),
        &words,
        Origin::new(IO, line),
    );
    let why = Absence::because("no process read from or wrote to a disk");
    enter::absent_if_unset(evidence, &[&keys::DISK_USER_BYTES], &why, IO);
}

fn bytes(text: &str) -> BTreeMap<(), f64> {
    let number = |name| fields::number(text, name);
    match (number("read_bytes"), number("write_bytes")) {
        (Some(read), Some(written)) => [((), read.saturating_add(written) as f64)].into(),
        _ => BTreeMap::new(),
    }
}
