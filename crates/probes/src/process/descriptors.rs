//! Open file descriptors of processes near their limit, and of the machine.
//!
//! Counting the descriptors of every process is expensive. The size of the descriptor table (`FDSize` of `status`)
//! grows by powers of two and is never below the number in use, so only processes whose table exceeds four fifths of
//! their limit are counted. Sources: `expand_fdtable` of fs/file.c, `proc_nr_files` of `fs/file_table.c`, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use super::chosen::{self, OPEN_FILES};
use super::processes::{STATS, STATUSES};
use crate::capture::Raw;
use crate::{Cost, Need, Probe, Source, Window, enter};

const LIMITS: &str = "/proc/*/limits";
const COUNTS: &str = "/proc/*/fd";
const FILE_NR: &str = "/proc/sys/fs/file-nr";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "proc-pid-fd",
    summary: "open file descriptors of processes that are near their limit, and of the machine",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::once(LIMITS),
        Source::once(STATUSES),
        Source::once("/proc/{full}/fd#count"),
        Source::once(FILE_NR),
    ],
    yields: &[
        &keys::FILES_OPEN,
        &keys::PROCESS_DESCRIPTORS,
        &keys::PROCESS_DESCRIPTOR_HARD,
        &keys::PROCESS_DESCRIPTOR_LIMIT,
    ],
    derive,
    doc: "\
A process is listed if its descriptor table (`FDSize` in /proc/PID/status) is larger than four fifths of its soft \
limit of open files; all others use less. If there is none, the first process is listed with the upper bound from its \
table. Only root can count the descriptors of other users' processes: one near its limit is then reported as not \
measured. `file-nr` counts open files of the machine, shared \
descriptors once. Sources: fs/file.c, `fs/file_table.c`, fs/proc/fd.c of Linux 6.18; getrlimit(2).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let value = window.text(FILE_NR).and_then(|text| {
        let mut words = text.split_ascii_whitespace();
        let mut number = || words.next()?.parse::<f64>().ok();
        match (number(), number(), number()) {
            (Some(open), Some(_), Some(most)) if most > 0.0 => Ok(open / most),
            _ => Err(Absence::because(format!(
                "{FILE_NR} has a format that rungwise does not know"
            ))),
        }
    });
    let line = window.text(FILE_NR).unwrap_or_default().trim();
    let origin = Origin::new(FILE_NR, line);
    enter::number(evidence, &keys::FILES_OPEN, Subject::host(), value, origin);

    let all = [
        &keys::PROCESS_DESCRIPTORS,
        &keys::PROCESS_DESCRIPTOR_LIMIT,
        &keys::PROCESS_DESCRIPTOR_HARD,
    ];
    for pid in chosen::near_their_limit(window) {
        let path = COUNTS.replace('*', &pid.to_string());
        let subject = || Subject::new(Kind::Process, pid);
        let Some(limit) = chosen::limit(window, pid, OPEN_FILES) else {
            continue;
        };
        if has_ended(window, &path) {
            continue;
        }
        let count = window.text(&path).and_then(|text| {
            let odd =
                || Absence::because(format!("{path} has a format that rungwise does not know"));
            text.parse::<f64>().map_err(|_| odd())
        });
        let count = count.map_err(|why| {
            Absence::because(format!(
                "process {pid} may be near its limit of {limit} descriptors, and {}",
                why.reason
            ))
            .remedy(why.remedy)
        });
        let line = count.as_ref().map_or_else(
            |_| String::new(),
            |count| format!("{count} of {limit} descriptors"),
        );
        let share = count.map(|count| count / (limit as f64).max(1.0));
        let origin = Origin::new(&path, line);
        enter::number(evidence, all[0], subject(), share, origin.clone());
        evidence.number(all[1], subject(), limit as f64, origin);
        if let Some(hard) = chosen::hard_limit(window, pid, OPEN_FILES) {
            let origin = Origin::new(format!("/proc/{pid}/limits"), format!("hard limit {hard}"));
            evidence.number(all[2], subject(), hard as f64, origin);
        }
    }
    let key = &keys::PROCESS_DESCRIPTORS;
    if evidence.each(key).is_err() && evidence.unread(key).is_none() {
        none_near(window, evidence);
    }
    let why = window.text(STATS).err();
    let why = why.unwrap_or_else(|| {
        Absence::because("no process shows its limit of open files").remedy("run as root")
    });
    enter::absent_if_unset(evidence, &all[..2], &why, LIMITS);
    let none = Absence::because("no process is near its limit of open files");
    enter::absent_if_unset(evidence, &all[2..], &none, LIMITS);
}

/// The process ended between the reading of its status and that of its descriptors.
fn has_ended(window: &Window<'_>, path: &str) -> bool {
    let last = window.moments().last();
    let read = last.and_then(|last| last.files.get(path));
    matches!(read, Some(Raw::Failed { failed }) if failed == "ENOENT")
}

/// No process is near its limit: the first one whose table and limit can be read represents all.
fn none_near(window: &Window<'_>, evidence: &mut Evidence) {
    let near = chosen::near_their_limit(window);
    let first = window
        .matching(STATUSES)
        .into_iter()
        .find_map(|(path, stars)| {
            let pid: u32 = stars.first()?.parse().ok()?;
            let size = rungwise_formats::fields::number(window.text(path).ok()?, "FDSize")?;
            let limit = chosen::limit(window, pid, OPEN_FILES)?;
            (size > 0 && !near.contains(&pid)).then_some((pid, size, limit))
        });
    if let Some((pid, size, limit)) = first {
        let subject = || Subject::new(Kind::Process, pid);
        let line = format!("FDSize {size}, limit {limit}; no process has a table near its limit");
        let origin = Origin::new(format!("/proc/{pid}/status"), line);
        let share = size as f64 / (limit as f64).max(1.0);
        evidence.number(&keys::PROCESS_DESCRIPTORS, subject(), share, origin.clone());
        let key = &keys::PROCESS_DESCRIPTOR_LIMIT;
        evidence.number(key, subject(), limit as f64, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment};

    /// Evidence where process 51 has a table of 64 descriptors and a limit of 20, and process 1 is far from its limit.
    fn evidence_of(count: Raw) -> Evidence {
        let mut last = Moment::default();
        let mut file = |path: &str, raw: Raw| last.files.insert(path.to_owned(), raw);
        for (pid, size, limit) in [(1, 256, 1024), (51, 64, 20)] {
            let zeros = "0 ".repeat(40);
            let stat = format!("{pid} (a) S 1 1 1 0 -1 {zeros}");
            file(&format!("/proc/{pid}/stat"), Raw::Text(stat));
            let status = format!("FDSize:\t{size}\n");
            file(&format!("/proc/{pid}/status"), Raw::Text(status));
            let limits = format!("Max open files            {limit}      {limit}      files\n");
            file(&format!("/proc/{pid}/limits"), Raw::Text(limits));
        }
        file("/proc/51/fd", count);
        let capture = Capture {
            moments: vec![last],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(1.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    fn failed(why: &str) -> Raw {
        Raw::Failed {
            failed: why.to_owned(),
        }
    }

    #[test]
    fn a_refused_count_near_the_limit_is_absent_and_nobody_represents_it() {
        let evidence = evidence_of(failed("EACCES"));
        let key = &keys::PROCESS_DESCRIPTORS;
        assert!(evidence.each(key).is_err());
        let why = evidence.unread(key).unwrap().why;
        assert!(
            why.reason.contains("51 may be near its limit of 20"),
            "{}",
            why.reason
        );
        assert_eq!(why.remedy, "run as root");
    }

    #[test]
    fn a_process_that_ended_leaves_the_others_to_speak() {
        let evidence = evidence_of(failed("ENOENT"));
        let each = evidence.each(&keys::PROCESS_DESCRIPTORS).unwrap();
        assert_eq!(each[0].0.name(), "1");
        assert!(evidence.unread(&keys::PROCESS_DESCRIPTORS).is_none());
        let counted = evidence_of(Raw::Text("21".to_owned()));
        let each = counted.each(&keys::PROCESS_DESCRIPTORS).unwrap();
        assert!((each[0].1.value - 1.05).abs() < 1e-9);
    }
}
