//! Two network namespaces joined by a veth pair with a queue per CPU, made by `ip` and removed at the end.
//!
//! Their names carry our pid, so that two runs do not meet and a later run can remove what a SIGKILL left.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process;

/// Address of the server; from TEST-NET-2 (RFC 5737), which no real network uses.
pub(crate) const SERVER: &str = "198.51.100.1";
const CLIENT: &str = "198.51.100.2";
const PREFIX: &str = "rwbench";

/// The two namespaces.
pub(crate) struct Lab {
    server: String,
    client: String,
}

impl Lab {
    pub(crate) fn new() -> Result<Self> {
        remove_stale()?;
        let pid = std::process::id();
        let lab = Self {
            server: format!("{PREFIX}-s-{pid}"),
            client: format!("{PREFIX}-c-{pid}"),
        };
        let queues = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .to_string();
        for name in [&lab.server, &lab.client] {
            ip(&["netns", "add", name])?;
        }
        ip(&[
            "-n",
            &lab.server,
            "link",
            "add",
            "veth0",
            "numrxqueues",
            &queues,
            "numtxqueues",
            &queues,
            "type",
            "veth",
            "peer",
            "name",
            "veth0",
            "netns",
            &lab.client,
            "numrxqueues",
            &queues,
            "numtxqueues",
            &queues,
        ])?;
        for (name, address) in [(&lab.server, SERVER), (&lab.client, CLIENT)] {
            ip(&[
                "-n",
                name,
                "address",
                "add",
                &format!("{address}/24"),
                "dev",
                "veth0",
            ])?;
            ip(&["-n", name, "link", "set", "veth0", "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(lab)
    }

    /// A command inside the server's namespace, on the CPUs of `cpus` (`0`, `0,1`).
    pub(crate) fn at_server(&self, cpus: &str, program: &str) -> Command {
        inside(&self.server, cpus, program)
    }

    /// The same inside the client's.
    pub(crate) fn at_client(&self, cpus: &str, program: &str) -> Command {
        inside(&self.client, cpus, program)
    }

    /// Gives CPUs 0 and 1 a transmit queue each on both sides (XPS), or takes that back.
    pub(crate) fn set_xps(&self, by_cpu: bool) -> Result<()> {
        for name in [&self.server, &self.client] {
            for (queue, mask) in [(0, 1), (1, 2)] {
                let mask = if by_cpu { mask } else { 0 };
                let write =
                    format!("echo {mask} > /sys/class/net/veth0/queues/tx-{queue}/xps_cpus");
                ip(&["netns", "exec", name, "sh", "-c", &write])?;
            }
        }
        Ok(())
    }

    /// A process in the server's namespace has bound UDP `port`.
    pub(crate) fn is_bound(&self, port: u16) -> bool {
        self.has_port("udp", port)
    }

    /// A process in the server's namespace listens on TCP `port`.
    pub(crate) fn listens(&self, port: u16) -> bool {
        self.has_port("tcp", port)
    }

    fn has_port(&self, protocol: &str, port: u16) -> bool {
        let mut command = Command::new("ip");
        let table = format!("/proc/net/{protocol}");
        command.args(["netns", "exec", &self.server, "cat", &table]);
        let wanted = format!(":{port:04X} ");
        process::run(&mut command, Duration::from_secs(5))
            .is_ok_and(|done| done.stdout.contains(&wanted))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            remove(name);
        }
    }
}

/// `ip netns exec` and `taskset` replace themselves, so pid and CPU time are the program's own.
fn inside(namespace: &str, cpus: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "taskset", "-c", cpus, program]);
    command
}

fn ip(args: &[&str]) -> Result<String> {
    let done = process::run(Command::new("ip").args(args), Duration::from_secs(10));
    Ok(done
        .with_context(|| format!("cannot make the lab: ip {}", args.join(" ")))?
        .stdout)
}

fn remove(name: &str) {
    // Also after an interrupt, hence not through `process`.
    let status = Command::new("ip").args(["netns", "delete", name]).status();
    if !status.is_ok_and(|status| status.success()) {
        eprintln!("cannot remove the namespace {name}; run: ip netns delete {name}");
    }
}

fn remove_stale() -> Result<()> {
    for line in ip(&["netns", "list"])?.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let pid = rest.rsplit('-').next().unwrap_or_default();
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            eprintln!("removing the namespace {name} that a killed run left");
            remove(name);
        }
    }
    Ok(())
}
