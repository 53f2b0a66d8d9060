//! Queries per client CPU-second against the same nsd: `rungwise load udp --dns`, the same by `AF_XDP`, and dnsperf.
//!
//! All read the same query file, have the same number of queries under way (256) from the same number of
//! sockets (16) on the same number of threads, one and two, and run for the same time; all are judged from outside, by the CPU time that
//! wait4(2) reports for the process. rungwise pins its threads, which dnsperf cannot, and keeps full latency
//! histograms on.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::cpu::Window;
use crate::lab::{Lab, SERVER};
use crate::numbers::{median, ratios, spread};
use crate::process::{self, Server};
use crate::rungwise::Rungwise;

const PORT: u16 = 5300;
const NAMES: usize = 1000;
const SOCKETS: usize = 16;

/// The comparison as Markdown.
pub(crate) fn compare(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let lab = Lab::new()?;
    let files = Files::write()?;
    let mut nsd = Server::start(
        lab.at_server("0,1", "nsd")
            .args(["-d", "-c"])
            .arg(files.path("nsd.conf")),
    )?;
    nsd.wait_until("bound", || lab.is_bound(PORT))?;
    let queries = files.path("queries");
    let queries = queries
        .to_str()
        .context("the folder for temporary files is not UTF-8")?;

    let mut rows = String::new();
    let mut met = [true; OURS.len()];
    for threads in [1, 2] {
        let measured = sides(tool, &lab, queries, nsd.pid(), threads, rounds, window)?;
        let [ours @ .., theirs] = &measured;
        for ((side, (name, _)), met) in ours.iter().zip(OURS).zip(&mut met) {
            let ratios = ratios(&side.per_cpu_s, &theirs.per_cpu_s);
            *met &= median(&ratios) >= 2.0;
            rows += &row(
                &format!("{name}, {threads} threads"),
                side,
                &spread(&ratios, 2),
            );
        }
        rows += &row(&format!("dnsperf, {threads} threads"), theirs, "1");
    }
    let word = |met: bool| if met { "met" } else { "missed" };
    Ok(format!(
        "\n## DNS queries against nsd\n\nOne nsd with two processes on CPUs 0 and 1, {NAMES} names; 16 sockets, 256 outstanding queries, \
         {} s per run, \
         {rounds} rounds. rungwise pins its threads, dnsperf cannot. Target 2 x: {} by sockets, {} by AF_XDP.\n\n\
         | client | thousand queries per client CPU-second | thousand queries/s | ratio | lost | foreign |\n|---|---|---|---|---|---|\n{rows}",
        window.as_secs(),
        word(met[0]),
        word(met[1]),
    ))
}

/// Names of our clients, and their switches.
const OURS: [(&str, &[&str]); 2] = [
    ("rungwise load udp --dns", &[]),
    ("the same with --af-xdp", &["--af-xdp", "veth0:native"]),
];
const SIDES: usize = OURS.len() + 1;

/// Our clients and dnsperf with `threads` threads, in turn.
fn sides(
    tool: &Rungwise,
    lab: &Lab,
    queries: &str,
    nsd: u32,
    threads: usize,
    rounds: usize,
    window: Duration,
) -> Result<[Side; SIDES]> {
    let mut all: [Side; SIDES] = Default::default();
    for round in 0..rounds {
        eprintln!("dns: {threads} threads, round {} of {rounds}", round + 1);
        for step in 0..SIDES {
            // A different one starts each round, so that a drift of the machine favours nobody.
            let at = (step + round) % SIDES;
            let side = &mut all[at];
            if let Some((_, more)) = OURS.get(at) {
                let (threads, sockets) = (threads.to_string(), (SOCKETS / threads).to_string());
                let switches: [&str; 9] = [
                    "--dns",
                    queries,
                    "--threads",
                    &threads,
                    "--sockets",
                    &sockets,
                    "--depth",
                    "16",
                    "--pin",
                ];
                let switches = [&switches, *more].concat();
                let load = tool.load(lab, "0,1", PORT, window, &switches, &[nsd])?;
                side.per_cpu_s.push(1e6 / load.client_us);
                side.rate.push(load.rate);
                side.lost += load.report["lost"].as_u64().unwrap_or(0);
                side.foreign = side.foreign.max(load.foreign);
            } else {
                let cpu = Window::open(&[nsd]);
                let mut command = lab.at_client("0,1", "dnsperf");
                command.args(["-s", SERVER, "-p", &PORT.to_string(), "-d", queries]);
                command.args([
                    "-l",
                    &window.as_secs().to_string(),
                    "-T",
                    &threads.to_string(),
                ]);
                command.args(["-c", &SOCKETS.to_string(), "-q", "256"]);
                let done = process::run(&mut command, window + Duration::from_secs(30))?;
                let used = cpu.close();
                let completed = figure(&done.stdout, "Queries completed:")?;
                side.per_cpu_s.push(completed / done.cpu.as_secs_f64());
                side.rate.push(figure(&done.stdout, "Queries per second:")?);
                side.lost += figure(&done.stdout, "Queries lost:")? as u64;
                side.foreign = side.foreign.max(used.foreign);
            }
        }
    }
    Ok(all)
}

fn row(name: &str, side: &Side, ratio: &str) -> String {
    let thousands =
        |values: &[f64]| spread(&values.iter().map(|n| n / 1000.0).collect::<Vec<_>>(), 0);
    format!(
        "| {name} | {} | {} | {ratio} | {} | {:.0} % |\n",
        thousands(&side.per_cpu_s),
        thousands(&side.rate),
        side.lost,
        side.foreign * 100.0
    )
}

#[derive(Default)]
struct Side {
    per_cpu_s: Vec<f64>,
    rate: Vec<f64>,
    lost: u64,
    foreign: f64,
}

/// The number after `label` in dnsperf's summary.
fn figure(text: &str, label: &str) -> Result<f64> {
    text.lines()
        .find_map(|line| {
            line.trim()
                .strip_prefix(label)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .with_context(|| format!("dnsperf printed no line {label:?}:\n{text}"))
}

/// A folder with zone, queries and configuration; removed with the value.
struct Files(PathBuf);

impl Files {
    fn write() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("rungwise-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let files = Self(folder);
        let mut zone = String::from(
            "$ORIGIN example.test.\n$TTL 3600\n@ IN SOA ns hostmaster 1 3600 600 86400 300\n@ IN NS ns\nns IN A 198.51.100.1\n",
        );
        let mut queries = String::new();
        for n in 0..NAMES {
            let _ = writeln!(zone, "host{n} IN A 192.0.2.{}", n % 254 + 1);
            let _ = writeln!(queries, "host{n}.example.test A");
        }
        // nsd as Debian builds it answers 200 queries a second and client unless the limit is lifted.
        let config = format!(
            "server:\n  ip-address: {SERVER}@{PORT}\n  server-count: 2\n  reuseport: yes\n  cpu-affinity: 0 1\n  server-1-cpu-affinity: 0\n  \
             server-2-cpu-affinity: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  database: \"\"\n  pidfile: \"{dir}/nsd.pid\"\n  \
             xfrdfile: \"{dir}/xfrd.state\"\n  zonelistfile: \"{dir}/zone.list\"\n  xfrdir: \"{dir}\"\n  rrl-ratelimit: 0\n  \
             rrl-whitelist-ratelimit: 0\nremote-control:\n  control-enable: no\nzone:\n  name: example.test\n  zonefile: zone\n",
            dir = files.0.display()
        );
        for (name, text) in [("zone", zone), ("queries", queries), ("nsd.conf", config)] {
            fs::write(files.path(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(files)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_are_read_from_the_summary_of_dnsperf() {
        let text = "Statistics:\n\n  Queries sent:         1000\n  Queries completed:    990 (99.00%)\n  Queries lost:         10 (1.00%)\n";
        assert_eq!(super::figure(text, "Queries completed:").unwrap(), 990.0);
        assert!(super::figure(text, "Nothing:").is_err());
    }
}
