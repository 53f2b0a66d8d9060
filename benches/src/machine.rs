//! The setup of the figures: machine, kernel, date, versions; and the installation of peers.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::rungwise::Rungwise;

/// Namespaces need root.
pub(crate) fn check_root() -> Result<()> {
    let owner = fs::metadata("/proc/self").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
    if owner.ok() != Some(0) {
        bail!("cannot make network namespaces: not root; run as root");
    }
    Ok(())
}

/// Installs the Debian packages of the programs that are not found; starts none of their daemons.
pub(crate) fn install(programs: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !is_found(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing {}", missing.join(" "));
    let policy = Path::new("/usr/sbin/policy-rc.d");
    let ours = !policy.exists();
    if ours {
        fs::write(policy, "#!/bin/sh\nexit 101\n").context("cannot keep daemons from starting")?;
        fs::set_permissions(policy, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let result = apt(&["update", "--quiet"]).and_then(|()| {
        let mut args = vec![
            "install",
            "--yes",
            "--quiet",
            "--no-install-recommends",
            "--no-remove",
        ];
        args.extend(&missing);
        apt(&args)
    });
    if ours {
        fs::remove_file(policy)
            .context("cannot remove /usr/sbin/policy-rc.d; remove it by hand")?;
    }
    result
}

fn apt(args: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    process::run(&mut command, Duration::from_mins(10)).map(|_| ())
}

fn is_found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|dir| dir.join(program).is_file())
}

/// The head of the page.
pub(crate) fn describe(tool: &Rungwise) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, name)| name);
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gib = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1024.0 / 1024.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let first = |program: &str, args: &[&str]| -> String {
        process::run_any(Command::new(program).args(args), Duration::from_secs(10)).map_or_else(
            |_| "not installed".to_owned(),
            |done| {
                let said = if done.stdout.trim().is_empty() {
                    done.stderr
                } else {
                    done.stdout
                };
                said.lines().next().unwrap_or_default().trim().to_owned()
            },
        )
    };
    let commit = first(
        "git",
        &[
            "-C",
            env!("CARGO_MANIFEST_DIR"),
            "rev-parse",
            "--short",
            "HEAD",
        ],
    );
    let packages = process::run_any(
        Command::new("dpkg-query").args([
            "-W",
            "-f",
            "${Package} ${Version}, ",
            "dnsperf",
            "nsd",
            "sockperf",
        ]),
        Duration::from_secs(10),
    )
    .map_or_else(
        |_| "no dpkg".to_owned(),
        |done| done.stdout.trim_end_matches(", ").to_owned(),
    );
    format!(
        "- machine: {cpus} x {}, {gib:.0} GiB, Linux {}\n- date: {} UTC\n- rungwise: {} at {commit}\n- peers: {packages}\n- command: `{}`\n- a cell is the \
         median of the rounds [smallest-largest]; a ratio is taken within each round; foreign is the CPU use of all other processes, the \
         largest of the rounds\n",
        model.trim(),
        kernel.trim(),
        first("date", &["-u", "+%Y-%m-%d %H:%M"]),
        first(tool.path(), &["--version"]),
        ["cargo run --release --manifest-path benches/Cargo.toml --".to_owned()]
            .into_iter()
            .chain(std::env::args().skip(1))
            .collect::<Vec<_>>()
            .join(" "),
    )
}
