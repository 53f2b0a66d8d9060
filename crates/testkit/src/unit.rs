//! A control group with the name of a systemd unit, on machines with and without systemd.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rungwise_host::live::Live;
use rungwise_host::{Host as _, clock};

/// Where groups may be made: control groups of version 2 alone, beside those of version 1, or one hierarchy of version 1.
const TREES: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/freezer",
];

/// The group of a unit; removed when dropped, which needs its processes to be gone.
#[derive(Debug)]
pub struct UnitGroup {
    name: String,
    folder: PathBuf,
}

impl UnitGroup {
    /// An empty group `NAME-PID.service`.
    ///
    /// # Errors
    ///
    /// Those of making the folder; `NotFound` where no tree of control groups is mounted.
    pub fn new(name: &str) -> io::Result<Self> {
        let name = format!("{name}-{}.service", std::process::id());
        let mut trees = TREES.iter().map(PathBuf::from);
        let tree = trees
            .find(|tree| tree.join("cgroup.procs").is_file())
            .ok_or(io::ErrorKind::NotFound)?;
        let folder = tree.join(&name);
        std::fs::create_dir(&folder)?;
        Ok(Self { name, folder })
    }

    /// The name of the unit.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Puts a process into it; its later children follow.
    ///
    /// # Errors
    ///
    /// Those of writing `cgroup.procs`.
    pub fn take(&self, pid: u32) -> io::Result<()> {
        let file = self.folder.join("cgroup.procs");
        Live.write(&file, pid.to_string().as_bytes())
    }
}

impl Drop for UnitGroup {
    fn drop(&mut self) {
        remove_group(&self.folder);
    }
}

/// Removes the folder of a control group, which needs its processes to be gone.
///
/// # Panics
/// If it cannot be removed within five seconds.
pub fn remove_group(folder: &Path) {
    let mut removed = std::fs::remove_dir(folder);
    // A process that was killed leaves its group a moment later.
    let since = clock::now();
    while removed.is_err() && since.elapsed() < Duration::from_secs(5) {
        std::thread::yield_now();
        removed = std::fs::remove_dir(folder);
    }
    // What is left on the machine is reported, unless a failure is being reported already.
    assert!(
        removed.is_ok() || std::thread::panicking(),
        "cannot remove {}: {removed:?}",
        folder.display()
    );
}
