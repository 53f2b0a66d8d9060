//! Knobs of one control group, version 2 or version 1.
//!
//! The group is named by its path as `/proc/PID/cgroup` prints it: `/system.slice/app.service`.

pub(crate) mod cfs_quota;
pub(crate) mod cpuset;
pub(crate) mod io;
pub(crate) mod limits;

use std::path::Path;

use crate::Result;
use crate::error::Error;
use crate::knob::{Context, Knob};
use crate::target::{Target, matches};
use crate::throttled;

/// Mount points of the hierarchies: version 2 alone, version 2 next to version 1, and the controllers of version 1.
const ROOTS: [&str; 10] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/blkio",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/cpuacct,cpu",
    "/sys/fs/cgroup/cpuset",
    "/sys/fs/cgroup/freezer",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/pids",
];

/// The files `name` of the group, in every hierarchy that has one.
fn file(knob: &Knob, context: &Context<'_>, name: &str) -> Result<Option<String>> {
    let Some(group) = context.device else {
        return Err(Error::NoDevice {
            knob: knob.id,
            why: "it needs a control group: pass one with --device, as /proc/PID/cgroup prints it"
                .to_owned(),
            known: Vec::new(),
        });
    };
    let group = group.trim_matches('/');
    let path = ROOTS
        .iter()
        .map(|root| format!("{root}/{group}/{name}"))
        .find(|path| context.machine.read(Path::new(path)).is_ok());
    // A name with `..` in it is nothing that the knob writes, and nothing it reads.
    Ok(path.filter(|path| {
        knob.writes.iter().any(|target| match target {
            Target::File(pattern, _) => matches(pattern, path),
            Target::Throttle => throttled::FILES
                .iter()
                .any(|pattern| matches(pattern, path)),
            _ => false,
        })
    }))
}

fn absent(knob: &Knob, context: &Context<'_>, what: &str) -> Error {
    Error::Absent {
        knob: knob.id.to_owned(),
        tried: format!("find {what} of {}", context.device.unwrap_or_default()),
        host: context.machine.name().to_owned(),
    }
}
