//! Where host faults are planted: a server's and a client's network namespace, a veth pair between them, a folder and a place for
//! control groups. Everything bears our process id in its name; what a killed run has left is found by it and removed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Begins the name of each namespace, folder and control group.
const MARK: &str = "rwf-";
/// Address of the server.
pub const SERVER: &str = "10.83.0.1";
/// Address of the client.
pub const CLIENT: &str = "10.83.0.2";

/// The place of one trial. Dropping it ends every process in its namespaces and removes them, its mounts, groups and files.
#[derive(Debug)]
pub struct Bench {
    name: String,
    folder: PathBuf,
}

impl Bench {
    /// Makes it; `number` counts the trials of this process.
    pub fn make(number: usize) -> Result<Self> {
        let name = format!("{MARK}{}-{number}", std::process::id());
        let folder = Path::new("/tmp").join(&name);
        let bench = Self { name, folder };
        std::fs::create_dir_all(bench.folder.join("www"))
            .with_context(|| format!("cannot create {}", bench.folder.display()))?;
        let (server, client) = (bench.server(), bench.client());
        ip(&["netns", "add", &server])?;
        ip(&["netns", "add", &client])?;
        ip(&[
            "-n", &server, "link", "add", "srv", "type", "veth", "peer", "name", "cli", "netns",
            &client,
        ])?;
        for (namespace, device, address) in [(&server, "srv", SERVER), (&client, "cli", CLIENT)] {
            let address = format!("{address}/24");
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
            ip(&["-n", namespace, "address", "add", &address, "dev", device])?;
            ip(&["-n", namespace, "link", "set", device, "up"])?;
        }
        Ok(bench)
    }

    /// The server's namespace.
    pub fn server(&self) -> String {
        format!("{}-s", self.name)
    }

    /// The client's namespace.
    pub fn client(&self) -> String {
        format!("{}-c", self.name)
    }

    /// Files of the trial.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins the name of further namespaces and of control groups.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        clean(&|name| name == self.name || name.starts_with(&format!("{}-", self.name)));
    }
}

/// Removes the remains of killed runs.
pub fn clean_stale() {
    clean(&|name| {
        let pid = name
            .strip_prefix(MARK)
            .and_then(|rest| rest.split('-').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    });
}

fn clean(ours: &dyn Fn(&str) -> bool) {
    // A frozen or stopped process cannot end.
    for group in groups(ours) {
        let _ = std::fs::write(group.join("freezer.state"), "THAWED");
    }
    let spaces = entries(Path::new("/run/netns"));
    for space in spaces.iter().filter(|path| ours(&base(path))) {
        let name = base(space);
        for pid in output("ip", &["netns", "pids", &name]).split_whitespace() {
            kill(pid);
        }
        let _ = ip(&["netns", "delete", &name]);
    }
    for group in groups(ours) {
        for pid in std::fs::read_to_string(group.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            kill(pid);
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let below = |path: &str| {
        let first = path
            .strip_prefix("/tmp/")
            .and_then(|rest| rest.split('/').next());
        first.is_some_and(ours)
    };
    for mount in mounts.lines().rev() {
        let mut words = mount.split(' ');
        if let (Some(device), Some(point)) = (words.next(), words.next())
            && below(point)
        {
            output("fsfreeze", &["--unfreeze", point]);
            output("umount", &["--lazy", point]);
            if device.starts_with("/dev/loop") {
                output("losetup", &["--detach", device]);
            }
        }
    }
    for line in output(
        "losetup",
        &["--list", "--noheadings", "--output", "NAME,BACK-FILE"],
    )
    .lines()
    {
        if let Some((device, file)) = line.trim().split_once(' ')
            && below(file.trim())
        {
            output("losetup", &["--detach", device]);
        }
    }
    for folder in entries(Path::new("/tmp")) {
        if ours(&base(&folder)) {
            // The number of a compressed swap device that a fault made.
            if let Ok(number) = std::fs::read_to_string(folder.join("zram")) {
                let number = number.trim();
                output("swapoff", &[&format!("/dev/zram{number}")]);
                let _ = std::fs::write("/sys/class/zram-control/hot_remove", number);
            }
            let _ = std::fs::remove_dir_all(folder);
        }
    }
    // Killed processes leave their groups a moment later.
    for _ in 0..50 {
        let left = groups(ours);
        if left.is_empty() {
            break;
        }
        for group in left {
            let _ = std::fs::remove_dir(group);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Our control groups, the deepest first.
fn groups(ours: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for controller in entries(Path::new("/sys/fs/cgroup")) {
        for group in entries(&controller) {
            if group.is_dir() && ours(&base(&group)) {
                with_children(group, &mut found);
            }
        }
    }
    found
}

fn with_children(group: PathBuf, found: &mut Vec<PathBuf>) {
    for child in entries(&group) {
        if child.is_dir() {
            with_children(child, found);
        }
    }
    found.push(group);
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

fn base(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn kill(pid: &str) {
    let pid = pid
        .trim()
        .parse()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .stderr(Stdio::null())
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

fn ip(args: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(args)
        .output()
        .context("cannot run ip")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("ip {}: {}", args.join(" "), said.trim());
    }
    Ok(())
}
