//! CPU time per request of an HTTP client against the same nginx: `rungwise load http` and wrk.
//!
//! Both have 64 connections on one thread, ask for the same 100-byte body, and are judged from outside, by the CPU time that wait4(2)
//! reports for the process. rungwise keeps full latency histograms from the intended start on and, in one row, looks for a text
//! in each body; wrk has neither.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::cpu::Window;
use crate::lab::{Lab, SERVER};
use crate::numbers::{median, ratios, spread};
use crate::process::{self, Server};
use crate::rungwise::{Rungwise, drive};

const PORT: u16 = 8080;
const CONNECTIONS: &str = "64";

/// Names of our clients, and their switches.
const OURS: [(&str, &[&str]); 2] = [
    ("rungwise load http", &[]),
    (
        "the same with --expect status=200,body~yy",
        &["--expect", "status=200,body~yy"],
    ),
];
const SIDES: usize = OURS.len() + 1;

#[derive(Default)]
struct Side {
    client_us: Vec<f64>,
    rate: Vec<f64>,
    foreign: f64,
}

/// The comparison as Markdown.
pub(crate) fn compare(tool: &Rungwise, rounds: usize, window: Duration) -> Result<String> {
    let lab = Lab::new()?;
    let folder = Folder::write()?;
    let mut nginx = Server::start(
        lab.at_server("0", "nginx")
            .arg("-c")
            .arg(folder.0.join("nginx.conf")),
    )?;
    nginx.wait_until("listening", || lab.listens(PORT))?;
    let all = sides(tool, &lab, nginx.pid(), rounds, window)?;
    let [ours @ .., theirs] = &all;
    let mut rows = String::new();
    for (side, (name, _)) in ours.iter().zip(OURS) {
        rows += &row(
            name,
            side,
            &spread(&ratios(&side.client_us, &theirs.client_us), 2),
        );
    }
    rows += &row("wrk", theirs, "1");
    let met = median(&ratios(&ours[0].client_us, &theirs.client_us)) <= 1.0;
    Ok(format!(
        "\n## HTTP requests against nginx\n\nOne nginx worker on CPU 0, a 100-byte body, {CONNECTIONS} connections on one thread on CPU 1, {} s per run, {rounds} \
         rounds. Target, no more CPU than wrk: {}.\n\n\
         | client | client CPU us per request | ratio | thousand requests/s | foreign |\n|---|---|---|---|---|\n{rows}",
        window.as_secs(),
        if met { "met" } else { "missed" },
    ))
}

/// Our clients and wrk, in turn.
fn sides(
    tool: &Rungwise,
    lab: &Lab,
    nginx: u32,
    rounds: usize,
    window: Duration,
) -> Result<[Side; SIDES]> {
    let url = format!("http://{SERVER}:{PORT}/");
    let seconds = window.as_secs().to_string();
    let mut all: [Side; SIDES] = Default::default();
    for round in 0..rounds {
        eprintln!("http: round {} of {rounds}", round + 1);
        for step in 0..SIDES {
            // A different one starts each round, so that a drift of the machine favours none of them.
            let at = (step + round) % SIDES;
            let side = &mut all[at];
            if let Some((_, more)) = OURS.get(at) {
                let mut command = lab.at_client("1", tool.path());
                command.args([
                    "load",
                    "http",
                    &url,
                    "--connections",
                    CONNECTIONS,
                    "--threads",
                    "1",
                ]);
                command.args(["--for", &format!("{seconds}s"), "--warmup", "0s"]);
                command
                    .args(["--format", "json", "--quiet", "--no-keep"])
                    .args(*more);
                let load = drive(&mut command, window, &[nginx])?;
                side.client_us.push(load.client_us);
                side.rate.push(load.rate);
                side.foreign = side.foreign.max(load.foreign);
            } else {
                let cpu = Window::open(&[nginx]);
                let mut command = lab.at_client("1", "wrk");
                command.args(["-t", "1", "-c", CONNECTIONS, "-d", &seconds, &url]);
                let done = process::run(&mut command, window + Duration::from_secs(30))?;
                let used = cpu.close();
                let requests = completed(&done.stdout)?;
                side.client_us.push(done.cpu.as_secs_f64() * 1e6 / requests);
                side.rate.push(requests / window.as_secs_f64());
                side.foreign = side.foreign.max(used.foreign);
            }
        }
    }
    Ok(all)
}

/// Requests that wrk completed: `  512345 requests in 5.00s, 80.00MB read`.
fn completed(text: &str) -> Result<f64> {
    let number = text
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "));
    let number = number.and_then(|(number, _)| number.parse().ok());
    number.with_context(|| format!("wrk printed no number of requests: {text}"))
}

fn row(name: &str, side: &Side, ratio: &str) -> String {
    let thousands: Vec<f64> = side.rate.iter().map(|rate| rate / 1000.0).collect();
    format!(
        "| {name} | {} | {ratio} | {} | {:.0} % |\n",
        spread(&side.client_us, 2),
        spread(&thousands, 0),
        side.foreign * 100.0
    )
}

/// The folder of nginx, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn write() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("rwbench-http-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let at = path.display();
        let body = "y".repeat(100);
        let text = format!(
            "daemon off; user root; worker_processes 1; pid {at}/pid; error_log {at}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; server {{ listen {PORT} backlog=1024; keepalive_requests 1000000000;\n\
             location / {{ return 200 {body}; }} }} }}\n"
        );
        fs::write(path.join("nginx.conf"), text)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_requests_is_read_from_what_wrk_prints() {
        let text = "Running 5s test @ http://a/\n  512345 requests in 5.00s, 80.00MB read\nRequests/sec: 102469.00\n";
        assert_eq!(completed(text).unwrap(), 512_345.0);
        assert!(completed("unable to connect").is_err());
    }
}
