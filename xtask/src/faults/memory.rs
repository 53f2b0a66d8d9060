//! A control group with a memory limit for one program: cgroup v1, or v2 with the memory controller delegated.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::shell::read;

const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";

/// Removed when dropped; its processes must have ended by then.
#[derive(Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// A group of this name below the root.
    pub fn create(name: &str, mib: u64) -> Result<Self> {
        let (root, limit) = if Path::new(V1).is_dir() {
            (V1, "memory.limit_in_bytes")
        } else {
            (V2, "memory.max")
        };
        let folder = Path::new(root).join(name);
        std::fs::create_dir(&folder)
            .with_context(|| format!("cannot create {}; run as root", folder.display()))?;
        let group = Self { folder };
        let limit = group.folder.join(limit);
        std::fs::write(&limit, format!("{mib}M"))
            .with_context(|| format!("cannot limit memory in {}", limit.display()))?;
        Ok(group)
    }

    /// Starts a program in it.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.folder.join("cgroup.procs"))
            .arg(program);
        command
    }

    /// The kernel killed a process at the limit.
    pub fn has_killed(&self) -> bool {
        ["memory.oom_control", "memory.events"]
            .iter()
            .any(|file| has_kill(&read(&self.folder.join(file))))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Counters of both versions: `oom_kill 1`.
fn has_kill(counters: &str) -> bool {
    let mut kills = counters
        .lines()
        .filter_map(|line| line.strip_prefix("oom_kill "));
    kills.any(|count| count.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_read_from_the_counters_of_both_versions() {
        for (counters, is) in [
            ("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", true),
            ("oom_kill_disable 0\nunder_oom 1\noom_kill 0\n", false),
            ("low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\n", true),
            ("", false),
        ] {
            assert_eq!(has_kill(counters), is, "{counters}");
        }
    }
}
