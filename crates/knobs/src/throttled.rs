//! The limits of a control group on one disk: a row of `io.max`, or of `blkio.throttle.*_device` of version 1.
//!
//! Such a file has a row for each limited disk, and a write changes the row of the disk that it names. So the row is what is read,
//! compared and put back. Source: block/blk-throttle.c, Linux 6.18.

use std::io;
use std::path::Path;

use rungwise_host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::target;

/// Files that have such rows.
pub(crate) const FILES: [&str; 5] = [
    "/sys/fs/cgroup/**/io.max",
    "/sys/fs/cgroup/**/blkio.throttle.read_bps_device",
    "/sys/fs/cgroup/**/blkio.throttle.read_iops_device",
    "/sys/fs/cgroup/**/blkio.throttle.write_bps_device",
    "/sys/fs/cgroup/**/blkio.throttle.write_iops_device",
];

/// The limits in a row of `io.max`, in the kernel's order, each with the file of version 1.
pub(crate) const KINDS: [(&str, &str); 4] = [
    ("rbps", "blkio.throttle.read_bps_device"),
    ("wbps", "blkio.throttle.write_bps_device"),
    ("riops", "blkio.throttle.read_iops_device"),
    ("wiops", "blkio.throttle.write_iops_device"),
];

/// The row of an [`Edit::Throttle`](crate::Edit::Throttle).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The file.
    pub file: String,
    /// The disk by its numbers: `254:0`.
    pub disk: String,
}

impl Row {
    /// Whether a knob may write it: a file of a control group, and a disk.
    pub(crate) fn is_allowed(&self) -> bool {
        FILES
            .iter()
            .any(|pattern| target::matches(pattern, &self.file))
            && is_disk(&self.disk)
    }

    /// What is written after the numbers of the disk; a disk without a row has no limit.
    pub(crate) fn current(&self, host: &dyn Host) -> io::Result<String> {
        let text = host.text(Path::new(&self.file))?;
        let row = rows(&text).find(|(disk, _)| *disk == self.disk);
        let row = row.map_or("", |(_, limits)| limits);
        self.normal(row)
            .ok_or_else(|| io::Error::other(format!("its row '{row}' is not understood")))
    }

    pub(crate) fn write(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        let row = format!("{} {value}", self.disk);
        host.write(Path::new(&self.file), row.as_bytes())
    }

    /// All four limits of version 2, or the one of version 1, which is 0 without a limit.
    pub(crate) fn normal(&self, value: &str) -> Option<String> {
        if !self.file.ends_with("/io.max") {
            let number = match value.trim() {
                "" => 0,
                number => number.parse::<u64>().ok()?,
            };
            return Some(number.to_string());
        }
        let mut limits = KINDS.map(|(kind, _)| (kind, "max"));
        for word in value.split_whitespace() {
            let (kind, limit) = word.split_once('=')?;
            let known = limits.iter_mut().find(|(known, _)| *known == kind)?;
            if limit != "max" && limit.parse::<u64>().is_err() {
                return None;
            }
            known.1 = limit;
        }
        Some(
            limits
                .map(|(kind, limit)| format!("{kind}={limit}"))
                .join(" "),
        )
    }
}

/// The disks and limits in the text of a file.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .map(|line| line.trim().split_once(' ').unwrap_or((line.trim(), "")))
}

/// `254:0`
pub(crate) fn is_disk(numbers: &str) -> bool {
    numbers.split_once(':').is_some_and(|(major, minor)| {
        [major, minor]
            .iter()
            .all(|number| number.parse::<u32>().is_ok() && !number.starts_with('+'))
    })
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    fn row(file: &str) -> Row {
        Row {
            file: format!("/sys/fs/cgroup/app/{file}"),
            disk: "254:0".to_owned(),
        }
    }

    #[test]
    fn a_row_is_that_of_its_disk_and_a_disk_without_one_has_no_limit() {
        let row = row("io.max");
        let host = |text: &str| Recorded::new("this host", 1).file(&row.file, text);
        let limited = host(
            "8:0 rbps=1 wbps=max riops=max wiops=max\n254:0 rbps=max wbps=max riops=max wiops=60\n",
        );
        let all = "rbps=max wbps=max riops=max wiops=60";
        assert_eq!(row.current(&limited).unwrap(), all);
        assert_eq!(row.current(&host("")).unwrap(), all.replace("60", "max"));
        assert_eq!(row.normal("wiops=60").as_deref(), Some(all));
        for value in ["wiops=", "wiops=-1", "weight=3", "60"] {
            assert_eq!(row.normal(value), None, "{value}");
        }
    }

    #[test]
    fn version_1_has_one_number_and_no_row_without_a_limit() {
        let row = row("blkio.throttle.write_iops_device");
        let host = |text: &str| Recorded::new("this host", 1).file(&row.file, text);
        assert_eq!(row.current(&host("254:0 60")).unwrap(), "60");
        assert_eq!(row.current(&host("")).unwrap(), "0");
        assert_eq!(row.normal("max"), None);
    }

    #[test]
    fn only_a_file_of_a_group_and_a_disk_are_allowed() {
        assert!(row("io.max").is_allowed());
        let mut other = row("io.max");
        other.disk = "254:0 wbps=1\n8:0".to_owned();
        assert!(!other.is_allowed());
        assert!(!row("cpu.max").is_allowed());
        let mut outside = row("io.max");
        outside.file = "/sys/fs/cgroup/../../etc/io.max".to_owned();
        assert!(!outside.is_allowed());
    }
}
