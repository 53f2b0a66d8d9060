//! Errors that file systems and disks have counted: ext4, btrfs, arrays of md, SCSI.
//!
//! The block layer itself counts no failed request. ext4 counts errors that it found since the last fsck, btrfs counts by kind and device, md
//! counts the members that an array lacks, and the SCSI layer counts requests that ended in an error. Where none of these is there (xfs on NVMe,
//! say) errors are in the kernel's log alone.
//! Sources: fs/ext4/sysfs.c, fs/btrfs/sysfs.c, drivers/md/md.c, `drivers/scsi/scsi_sysfs.c`, Linux 6.18.

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::keys;

use crate::{Cost, Probe, Source, Window, enter};

const EXT4: &str = "/sys/fs/ext4/*/errors_count";
const EXT4_LAST: &str = "/sys/fs/ext4/*/last_error_func";
const BTRFS: &str = "/sys/fs/btrfs/*/devinfo/*/error_stats";
const DEGRADED: &str = "/sys/block/*/md/degraded";
const SCSI: &str = "/sys/block/*/device/ioerr_cnt";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "disk-errors",
    summary: "errors counted by ext4, btrfs, md and SCSI",
    cost: Cost::Cheap,
    needs: &[],
    sources: &[
        Source::ends(EXT4),
        Source::once(EXT4_LAST),
        Source::ends(BTRFS),
        Source::ends(SCSI),
        Source::once(DEGRADED),
    ],
    yields: &[
        &keys::DISK_DEGRADED,
        &keys::DISK_ERRORS,
        &keys::DISK_ERRORS_KEPT,
    ],
    derive,
    doc: "\
ext4 keeps its count over reboots until e2fsck clears it; the function that found the last error is cited. The five counters of btrfs (write, \
read, flush, corruption, generation) are added up and kept until `btrfs device stats --reset`. The count of SCSI begins at boot and has requests in it that a disk \
does not support, so of SCSI only what grows in the window is told. Disks and file systems that count nothing (NVMe, virtio, xfs) are not seen \
here: look for \"I/O error\" in dmesg. Sources: fs/ext4/sysfs.c, fs/btrfs/sysfs.c, drivers/md/md.c and drivers/scsi/scsi_sysfs.c of Linux 6.18.",
};

/// One number of a file: decimal, hexadecimal with `0x`, or the sum of the last words of its lines.
fn count(text: &str) -> Option<f64> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    let words = text
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().last());
    let numbers: Option<Vec<u64>> = words.map(number).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty())?;
    Some(numbers.iter().map(|number| *number as f64).sum())
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    for (pattern, keeps) in [(EXT4, true), (BTRFS, true), (SCSI, false)] {
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
            match before.and_then(|(_, text)| count(text)) {
                Some(before) => {
                    let key = &keys::DISK_ERRORS;
                    evidence.number(key, subject(), (now - before).max(0.0), origin());
                }
                None => {
                    let why = Absence::because("the window has one sample only");
                    let why = why.remedy("--for 10s");
                    enter::absent(evidence, &keys::DISK_ERRORS, subject(), why, origin());
                }
            }
            if keeps {
                evidence.number(&keys::DISK_ERRORS_KEPT, subject(), now, origin());
            }
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
    let none = Absence::none("no disk and no file system here counts errors");
    enter::unless_told(evidence, PROBE.yields, &none, EXT4);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment, Raw};

    #[test]
    fn counters_are_decimal_hexadecimal_or_a_list() {
        assert_eq!(count("3\n"), Some(3.0));
        assert_eq!(count("0x1f\n"), Some(31.0));
        let btrfs =
            "write_errs 0\nread_errs 2\nflush_errs 0\ncorruption_errs 5\ngeneration_errs 0\n";
        assert_eq!(count(btrfs), Some(7.0));
        assert_eq!(count(""), None);
        assert_eq!(count("invalid"), None);
    }

    #[test]
    fn what_grows_is_told_from_what_was_there() {
        let moment = |at_s, errors: &str| Moment {
            at_s,
            files: [
                ("/sys/fs/ext4/sda1/errors_count", errors),
                ("/sys/fs/ext4/sda1/last_error_func", "ext4_lookup\n"),
                ("/sys/block/md0/md/degraded", "1\n"),
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
            evidence.quantity(key, &subject).unwrap().value
        };
        assert_eq!(number(&keys::DISK_ERRORS, "sda1"), 3.0);
        assert_eq!(number(&keys::DISK_ERRORS_KEPT, "sda1"), 5.0);
        assert_eq!(number(&keys::DISK_DEGRADED, "md0"), 1.0);
    }
}
