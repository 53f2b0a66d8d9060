//! Errors counted by file systems, and arrays with missing members: ext4, btrfs, md.
//!
//! The block layer itself counts no failed request. ext4 counts errors since the last fsck, btrfs counts by kind and
//! device, md counts the missing members of an array. Without any of these (xfs on an SSD, say) errors appear in the
//! kernel log only. `ioerr_cnt` of SCSI is not used: `scsi_complete` increments it for each command with a result,
//! including those for absent media. Sources: fs/ext4/sysfs.c, fs/btrfs/sysfs.c, drivers/md/md.c, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

/// Number of kinds of file systems: it shows that this probe ran even if nothing counts errors.
const KINDS: &str = "/sys/fs";
const EXT4: &str = "/sys/fs/ext4/*/errors_count";
const EXT4_LAST: &str = "/sys/fs/ext4/*/last_error_func";
const BTRFS: &str = "/sys/fs/btrfs/*/devinfo/*/error_stats";
const DEGRADED: &str = "/sys/block/*/md/degraded";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "disk-error-counts",
    summary: "errors counted by ext4 and btrfs, and md arrays with missing members",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::once("/sys/fs#count"),
        Source::ends(EXT4),
        Source::once(EXT4_LAST),
        Source::ends(BTRFS),
        Source::once(DEGRADED),
    ],
    yields: &[
        &keys::DISK_DEGRADED,
        &keys::DISK_ERRORS,
        &keys::DISK_ERRORS_KEPT,
    ],
    derive,
    doc: "\
ext4 keeps its count across reboots until e2fsck clears it; the function that found the last error is cited. The five \
counters of btrfs (write, read, flush, corruption, generation) are summed and persist until `btrfs device stats \
--reset`. The SCSI error count is not read: it includes every failed command, also polls of an empty drive and \
queries of smartctl. File systems without a counter, such as xfs, are not covered: look for \"I/O error\" in dmesg. \
Sources: fs/ext4/sysfs.c, fs/btrfs/sysfs.c, drivers/md/md.c of Linux 6.18.",
};

/// One number of a file, or the sum of the last words of its lines.
fn count(text: &str) -> Option<f64> {
    let words = text
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().last());
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
    Some(numbers.iter().map(|number| *number as f64).sum())
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for pattern in [EXT4, BTRFS] {
        for (path, stars) in window.matching(pattern) {
            let Some(name) = stars.last() else { continue };
            let name = match pattern {
                BTRFS => format!("btrfs {} device {name}", stars[0]),
                _ => (*name).to_owned(),
            };
            let subject = || Subject::new(Kind::Disk, &name);
            let Some(now) = window.text(path).ok().and_then(count) else {
                continue;
            };
            let last = EXT4_LAST.replace('*', stars[0]);
            let last = if pattern == EXT4 {
                window.text(&last)
            } else {
                Ok("")
            };
            let last = last.unwrap_or_default().trim();
            let seen = if last.is_empty() {
                String::new()
            } else {
                format!(", the last in {last}")
            };
            let origin = || Origin::new(path, format!("{now}{seen}"));
            let texts = window.texts(path).unwrap_or_default();
            let before = texts.first().filter(|_| texts.len() > 1);
            if let Some(before) = before.and_then(|(_, text)| count(text)) {
                let key = &keys::DISK_ERRORS;
                evidence.number(key, subject(), (now - before).max(0.0), origin());
            } else {
                let why = Absence::because("the window has only one sample");
                let why = why.remedy("observe for some seconds: --for 10s");
                enter::absent(evidence, &keys::DISK_ERRORS, subject(), why, origin());
            }
            evidence.number(&keys::DISK_ERRORS_KEPT, subject(), now, origin());
        }
    }
    for (path, stars) in window.matching(DEGRADED) {
        let (Some(name), Ok(text)) = (stars.first(), window.text(path)) else {
            continue;
        };
        if let Some(missing) = count(text) {
            let subject = Subject::new(Kind::Disk, name);
            let origin = Origin::new(path, text.trim());
            evidence.number(&keys::DISK_DEGRADED, subject, missing, origin);
        }
    }
    // An older capture did not read it.
    let why = match window.text(KINDS) {
        Ok(_) => Absence::none("no disk or file system here counts errors"),
        Err(why) => why,
    };
    enter::absent_if_unset(evidence, PROBE.yields, &why, EXT4);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    #[test]
    fn a_counter_is_one_number_or_a_list() {
        assert_eq!(count("3\n"), Some(3.0));
        let btrfs =
            "write_errs 0\nread_errs 2\nflush_errs 0\ncorruption_errs 5\ngeneration_errs 0\n";
        assert_eq!(count(btrfs), Some(7.0));
        assert_eq!(count(""), None);
        assert_eq!(count("invalid"), None);
    }

    #[test]
    fn what_grows_is_distinguished_from_what_was_there() {
        let moment = |at_s, errors: &str| Moment {
            at_s,
            files: [
                ("/sys/fs/ext4/sda1/errors_count", errors),
                ("/sys/fs/ext4/sda1/last_error_func", "ext4_lookup\n"),
                ("/sys/block/md0/md/degraded", "1\n"),
                (KINDS, "9"),
            ]
            .map(|(path, text)| (path.to_owned(), Raw::Text(text.to_owned())))
            .into(),
            ..Moment::default()
        };
        let capture = Capture {
            moments: vec![moment(0.0, "2\n"), moment(9.0, "5\n")],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(9.0);
        derive(&Window::of(&capture), &mut evidence);
        let number = |key, disk: &str| {
            let subject = Subject::new(Kind::Disk, disk);
            evidence.quantity(key, &subject).unwrap().value as i64
        };
        assert_eq!(number(&keys::DISK_ERRORS, "sda1"), 3);
        assert_eq!(number(&keys::DISK_ERRORS_KEPT, "sda1"), 5);
        assert_eq!(number(&keys::DISK_DEGRADED, "md0"), 1);
    }
}
