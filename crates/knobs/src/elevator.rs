//! The scheduler of a disk together with the length of its queue.
//!
//! Choosing a scheduler resets `nr_requests`: the kernel sets it to the new one's default. So the two are one value,
//! `mq-deadline nr_requests=256`: a wish names only the scheduler and takes its default number, an undo restores both.
//! Source: block/elevator.c, block/blk-mq-sched.c (Linux 6.18).

use std::io;
use std::path::PathBuf;

use rungwise_host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::form::Form;
use crate::target::is_name;

/// Without a scheduler.
const NONE: &str = "none";

/// `BLKDEV_DEFAULT_RQ` of linux/blkdev.h: a scheduler starts with twice as many requests, or twice as many as
/// the device has tags if those are fewer.
const DEFAULT_REQUESTS: u64 = 128;

/// Separates the two halves of a value.
const REQUESTS: &str = " nr_requests=";

/// The request queue of an [`Edit::Scheduler`](crate::Edit::Scheduler).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Elevator {
    /// Folder of the disk: `/sys/block/sda`.
    pub disk: String,
}

impl Elevator {
    /// The queue whose scheduler is chosen in the file at `path`.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let disk = path.strip_suffix("/queue/scheduler")?.to_owned();
        Some(Self { disk })
    }

    /// The file in which the scheduler is chosen.
    pub(crate) fn file(&self) -> String {
        format!("{}/queue/scheduler", self.disk)
    }

    /// Both halves.
    pub(crate) fn current(&self, host: &dyn Host) -> io::Result<String> {
        let offered = host.text(&PathBuf::from(self.file()))?;
        let scheduler = Form::Choice.stored(&offered);
        let requests = host.text(&self.requests())?;
        Ok(format!("{scheduler}{REQUESTS}{requests}"))
    }

    /// Chooses the scheduler, and sets the number if `value` names one other than the scheduler's default.
    pub(crate) fn write(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        let (scheduler, requests) = parse(value).ok_or(io::ErrorKind::InvalidInput)?;
        host.write(&PathBuf::from(self.file()), scheduler.as_bytes())?;
        let Some(requests) = requests else {
            return Ok(());
        };
        let path = self.requests();
        // A device with few tags may start with less than the kernel takes from a writer (BLKDEV_MIN_RQ).
        if number(&host.text(&path)?) == Some(requests) {
            return Ok(());
        }
        host.write(&path, requests.to_string().as_bytes())
    }

    /// `found` is what a crash leaves between the two writes that put `before` back: its scheduler, with the
    /// number that this one starts with.
    pub(crate) fn is_half_back(&self, host: &dyn Host, found: &str, before: &str) -> bool {
        match (parse(found), parse(before)) {
            (Some((found, Some(requests))), Some((before, _))) => {
                found == before && self.starts_with(host, found) == Some(requests)
            }
            _ => false,
        }
    }

    /// The number that the kernel sets when `scheduler` is chosen; unknown where the device's tags are not shown.
    fn starts_with(&self, host: &dyn Host, scheduler: &str) -> Option<u64> {
        let path = PathBuf::from(format!("{}/mq/0/nr_tags", self.disk));
        let tags = number(&host.text(&path).ok()?)?;
        Some(match scheduler {
            NONE => tags,
            _ => 2 * tags.min(DEFAULT_REQUESTS),
        })
    }

    fn requests(&self) -> PathBuf {
        PathBuf::from(format!("{}/queue/nr_requests", self.disk))
    }
}

/// Scheduler and number of a value; a wish has no number.
pub(crate) fn parse(value: &str) -> Option<(&str, Option<u64>)> {
    let (scheduler, requests) = match value.split_once(REQUESTS) {
        Some((scheduler, requests)) => (scheduler, Some(number(requests)?)),
        None => (value, None),
    };
    is_name(scheduler).then_some((scheduler, requests))
}

/// The same scheduler, and the same number where both have one.
pub(crate) fn same(one: &str, other: &str) -> bool {
    match (parse(one), parse(other)) {
        (Some((one, Some(mine))), Some((other, Some(theirs)))) => one == other && mine == theirs,
        (Some((one, _)), Some((other, _))) => one == other,
        _ => false,
    }
}

/// A number of requests; the kernel keeps it in 32 bits.
fn number(text: &str) -> Option<u64> {
    text.trim().parse::<u32>().ok().map(u64::from)
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    #[test]
    fn a_wish_is_met_whatever_number_comes_with_it() {
        assert!(same("bfq nr_requests=256", "bfq"));
        assert!(!same("bfq nr_requests=256", "bfq nr_requests=64"));
        assert!(!same("bfq nr_requests=256", "none"));
        for value in ["", "../x", "bfq nr_requests=", "bfq nr_requests=-1", "a b"] {
            assert_eq!(parse(value), None, "{value}");
        }
    }

    #[test]
    fn half_an_undo_is_distinguished_from_the_number_of_somebody_else() {
        let elevator = Elevator {
            disk: "/sys/block/vda".to_owned(),
        };
        let tags = |tags: &str| Recorded::new("x", 1).file("/sys/block/vda/mq/0/nr_tags", tags);
        let half = |host: &Recorded, found, before| elevator.is_half_back(host, found, before);
        let host = tags("64");
        assert!(half(&host, "none nr_requests=64", "none nr_requests=32"));
        assert!(half(&host, "bfq nr_requests=128", "bfq nr_requests=32"));
        assert!(half(
            &tags("1023"),
            "bfq nr_requests=256",
            "bfq nr_requests=32"
        ));
        assert!(!half(&host, "none nr_requests=63", "none nr_requests=32"));
        assert!(!half(&host, "bfq nr_requests=128", "none nr_requests=32"));
        // Without the tags nobody knows.
        let silent = Recorded::new("x", 1);
        assert!(!half(&silent, "none nr_requests=64", "none nr_requests=32"));
    }
}
