//! What a trial planted, as subjects of findings: a right rule that accuses another process, port, device, mount or group is wrong.
//!
//! Compared is what the harness knows for certain. A finding about the host, a CPU or a counter leaves the subject open and counts as right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rules that may name what causes the fault as well as what suffers from it.
const CULPRITS: &[&str] = &[
    "disk-sync",
    "fork-storm",
    "realtime-hog",
    "unix-listen-overflow",
];

/// What findings about a trial may be about.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    /// The service, what it started, and what that started.
    pub service: BTreeSet<u32>,
    /// The same of the scripts that planted the faults.
    pub culprits: BTreeSet<u32>,
    /// Where the service listens.
    pub port: u16,
    /// The device of the server.
    pub device: &'static str,
    /// Folder of the trial: its mounts and sockets lie below it.
    pub folder: PathBuf,
    /// Loop devices with a file in that folder.
    pub disks: BTreeSet<String>,
    /// The topmost control group of the trial, without a slash.
    pub group: String,
}

impl Subjects {
    /// Adds the processes that there are now: of the service, and of the groups of the scripts.
    pub fn add_processes(&mut self, service: u32, scripts: &[u32]) {
        let processes = processes();
        self.service.extend(descended(&processes, &[service]));
        self.culprits.extend(descended(&processes, scripts));
    }

    /// A finding of `rule` about `subject` is about what was planted.
    pub fn include(&self, rule: &str, subject: &str) -> bool {
        let Some((kind, name)) = subject.split_once('/') else {
            return true;
        };
        let listens = |end: &str| end.ends_with(&format!(":{}", self.port));
        match kind {
            "process" | "thread" => {
                let pid = name.split(':').next().and_then(|pid| pid.parse().ok());
                pid.is_some_and(|pid| {
                    let is_culprit = CULPRITS.contains(&rule) && self.culprits.contains(&pid);
                    self.service.contains(&pid) || is_culprit
                })
            }
            "port" => match name.strip_prefix("unix:") {
                Some(path) => Path::new(path).starts_with(&self.folder),
                None => listens(name),
            },
            "connection" => name.split('>').any(listens),
            "device" => name == self.device,
            "queue" => name.split(':').next() == Some(self.device),
            "mount" => Path::new(name).starts_with(&self.folder),
            "disk" => self.disks.contains(name),
            "cgroup" => Path::new(name).starts_with(Path::new("/").join(&self.group)),
            _ => true,
        }
    }
}

/// Loop devices with a file below `folder`, by name.
pub fn loop_devices(folder: &Path) -> BTreeSet<String> {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten();
    let names = devices.flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| {
            let file = Path::new("/sys/block").join(name).join("loop/backing_file");
            let file = std::fs::read_to_string(file).unwrap_or_default();
            Path::new(file.trim()).starts_with(folder)
        })
        .collect()
}

/// All processes: parent and process group.
fn processes() -> BTreeMap<u32, (u32, u32)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain anything (proc(5)).
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
        let mut number = || words.next()?.parse().ok();
        Some((pid, (number()?, number()?)))
    })
    .collect()
}

/// Those in the process groups of these leaders, and their descendants: a daemon leaves its group, and a script's child its parent.
fn descended(processes: &BTreeMap<u32, (u32, u32)>, leaders: &[u32]) -> BTreeSet<u32> {
    let of_group = processes
        .iter()
        .filter(|(pid, (_, group))| leaders.contains(pid) || leaders.contains(group));
    let mut found: BTreeSet<u32> = of_group.map(|(pid, _)| *pid).collect();
    found.extend(leaders);
    loop {
        let more: Vec<u32> = processes
            .iter()
            .filter(|(pid, (parent, _))| found.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_about_what_was_planted_or_about_something_else() {
        let subjects = Subjects {
            service: BTreeSet::from([51, 52]),
            culprits: BTreeSet::from([66]),
            port: 6379,
            device: "srv",
            folder: "/tmp/rwf-7-1".into(),
            disks: BTreeSet::from(["loop3".to_owned()]),
            group: "rwf-7-1".to_owned(),
        };
        for (rule, subject) in [
            ("affinity-narrow", "process/52"),
            ("runq-delay", "thread/51:58"),
            ("realtime-hog", "process/66"),
            ("tcp-listen-overflow", "port/tcp/0.0.0.0:6379"),
            ("unix-listen-overflow", "port/unix:/tmp/rwf-7-1/app.sock"),
            (
                "tcp-rwnd-limited",
                "connection/10.83.0.1:6379>10.83.0.2:50000",
            ),
            ("qdisc-limit", "device/srv"),
            ("disk-full", "mount//tmp/rwf-7-1/disk"),
            ("disk-saturated", "disk/loop3"),
            ("cfs-throttled", "cgroup//rwf-7-1/tenant"),
            ("tcp-retrans", "host"),
            ("softnet-drop", "cpu/1"),
        ] {
            assert!(subjects.include(rule, subject), "{rule} {subject}");
        }
        for (rule, subject) in [
            ("affinity-narrow", "process/66"),
            ("realtime-hog", "process/77"),
            ("tcp-listen-overflow", "port/tcp/0.0.0.0:8081"),
            ("qdisc-limit", "device/eth0"),
            ("disk-full", "mount//"),
            ("disk-saturated", "disk/vda"),
            ("cfs-throttled", "cgroup//rwf-7-12"),
        ] {
            assert!(!subjects.include(rule, subject), "{rule} {subject}");
        }
    }

    #[test]
    fn descendants_are_found_by_parent_and_by_process_group() {
        // pid: parent, group
        let processes = BTreeMap::from([
            (10, (1, 10)),
            (11, (10, 10)),
            (12, (11, 12)),
            (13, (1, 10)),
            (20, (1, 20)),
        ]);
        assert_eq!(
            descended(&processes, &[10]),
            BTreeSet::from([10, 11, 12, 13])
        );
    }
}
