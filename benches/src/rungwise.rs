//! The built program under test and how its sides are started.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::cpu::Window;
use crate::lab::Lab;
use crate::process::{self, Server};

/// The release build.
pub(crate) struct Rungwise {
    path: PathBuf,
}

/// One run of `rungwise load udp` or of the bare client.
pub(crate) struct Load {
    pub report: Value,
    /// CPU microseconds of the client process per reply, start and end of the process included.
    pub client_us: f64,
    /// CPU microseconds of the servers per reply.
    pub server_us: f64,
    /// Replies per second by the client's own clock.
    pub rate: f64,
    pub foreign: f64,
}

impl Rungwise {
    /// A program that is there.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// A release build of the checkout.
    pub(crate) fn build() -> Result<Self> {
        let top = top();
        eprintln!("building rungwise --release");
        let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args([
                "build",
                "--release",
                "--package",
                "rungwise",
                "--message-format",
                "json-render-diagnostics",
            ])
            .current_dir(&top)
            .stderr(std::process::Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !out.status.success() {
            bail!("cannot build rungwise: see the messages above");
        }
        let path = String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|message| message["target"]["name"] == "rungwise")
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .context("cargo named no executable of rungwise")?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &str {
        self.path
            .to_str()
            .expect("the path came from JSON or from an argument, both UTF-8")
    }

    /// Starts `rungwise serve udp` in the lab and waits until its port is bound.
    pub(crate) fn serve(
        &self,
        lab: &Lab,
        cpus: &str,
        port: u16,
        switches: &[&str],
    ) -> Result<Server> {
        let listen = format!("{}:{port}", crate::lab::SERVER);
        let mut command = lab.at_server(cpus, self.path());
        command
            .args(["serve", "udp", "--listen", &listen])
            .args(switches);
        let mut server = Server::start(&mut command)?;
        server.wait_until("bound", || lab.is_bound(port))?;
        Ok(server)
    }

    /// Runs `rungwise load udp` without warm-up, so that the CPU time of the whole process belongs to what
    /// it counts. `servers` are the processes that answer.
    pub(crate) fn load(
        &self,
        lab: &Lab,
        cpus: &str,
        port: u16,
        window: Duration,
        switches: &[&str],
        servers: &[u32],
    ) -> Result<Load> {
        let target = format!("{}:{port}", crate::lab::SERVER);
        let length = format!("{}s", window.as_secs());
        let mut command = lab.at_client(cpus, self.path());
        command
            .args([
                "load", "udp", &target, "--for", &length, "--warmup", "0s", "--format", "json",
                "--quiet",
            ])
            .args(switches);
        drive(&mut command, window, servers)
    }
}

/// Runs a client for `window` and weighs both sides; it prints a report of `load udp`, or of its kind.
pub(crate) fn drive(command: &mut Command, window: Duration, servers: &[u32]) -> Result<Load> {
    let cpu = Window::open(servers);
    // Status 3 is a client that does not certify itself, which a closed loop on two CPUs may well do.
    let done = process::run_any(command, window + Duration::from_secs(30))?;
    let used = cpu.close();
    let report: Value = serde_json::from_str(&done.stdout).with_context(|| {
        format!(
            "{command:?} ended with {}: {}",
            done.status,
            done.stderr.trim()
        )
    })?;
    let received = report["received"]
        .as_f64()
        .filter(|n| *n > 0.0)
        .with_context(|| format!("{command:?} received nothing"))?;
    Ok(Load {
        client_us: done.cpu.as_secs_f64() * 1e6 / received,
        server_us: used.server.as_secs_f64() * 1e6 / received,
        rate: report["achieved_per_s"].as_f64().unwrap_or(f64::NAN),
        foreign: used.foreign,
        report,
    })
}

/// Top folder of the checkout.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
