//! False keeps: `tune` on a ladder whose rungs change nothing, many times.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::numbers::median;
use crate::process;
use crate::rungwise::{Rungwise, top};

/// Longest that one ladder may take.
const LIMIT: Duration = Duration::from_mins(30);

/// The count as Markdown. With `foreign`, one more count for each of these shares of a CPU (in percent), which a program uses beside
/// the ladders, where no pair is discarded for it.
pub(crate) fn count(tool: &Rungwise, repeats: usize, foreign: &[u32]) -> Result<String> {
    let scenario = top().join("benches/aa.toml");
    let mut page = "\n## False keeps\n\n`rungwise tune benches/aa.toml --quick`, whose rungs change nothing. The stated alpha is 1 % over a ladder.\n\n\
        | a program beside it uses | ladders | false keeps | outcomes | A/A interval contains zero | scatter of a pair, median | pairs in turns |\n\
        |---|--:|--:|---|--:|--:|--:|\n"
        .to_owned();
    if foreign.is_empty() {
        page += &row(tool, &scenario, repeats, "nothing")?;
    }
    for share in foreign {
        let text = std::fs::read_to_string(&scenario)?;
        let open = text
            .replace("quiet = \"12%\"", "quiet = \"100%\"")
            .replace("discard_above = \"5%\"", "discard_above = \"100%\"");
        if open == text {
            bail!(
                "{} has other limits of foreign load than this bench replaces",
                scenario.display()
            );
        }
        let path = top().join("target/aa-foreign.toml");
        std::fs::write(&path, open)?;
        let busy = Busy::start(*share);
        page += &row(tool, &path, repeats, &format!("{share} % of a CPU"))?;
        drop(busy);
    }
    Ok(page)
}

/// A thread of this process that uses a share of a CPU, in bursts of 1 to 40 ms.
struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    fn start(percent: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let share = f64::from(percent) / 100.0;
        let thread = thread::spawn(move || {
            let mut state = 1_u64;
            while !told.load(Ordering::Relaxed) && share > 0.0 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let burst = Duration::from_micros(1000 + (state >> 33) % 39_000);
                let began = Instant::now();
                while began.elapsed() < burst {
                    std::hint::spin_loop();
                }
                thread::sleep(burst.mul_f64(1.0 / share - 1.0));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn row(tool: &Rungwise, scenario: &Path, repeats: usize, beside: &str) -> Result<String> {
    let (mut rungs, mut kept, mut aa_clean) = (0, 0, 0);
    let (mut pairs, mut in_turns) = (0, 0);
    let mut scatter = Vec::new();
    let mut outcomes = BTreeMap::<String, usize>::new();
    for repeat in 0..repeats {
        let mut command = Command::new(tool.path());
        command.arg("tune").arg(scenario).args([
            "--format",
            "json",
            "--quick",
            "--seed",
            &repeat.to_string(),
        ]);
        command.arg("--runs").arg(top().join("target/bench-runs"));
        let done = process::run_any(&mut command, LIMIT)?;
        // 3 is an inconclusive ladder, which is a fine result here.
        if ![0, 3].contains(&done.status) {
            bail!(
                "tune ended with status {}: {}",
                done.status,
                done.stderr.trim()
            );
        }
        let report: Value = serde_json::from_str(&done.stdout).context("tune printed no JSON")?;
        let all = report["rungs"]
            .as_array()
            .context("the report has no rungs")?;
        let every = all.iter().filter_map(|rung| rung["pairs"].as_array());
        for pair in every.flatten() {
            pairs += 1;
            in_turns += usize::from(pair["in_turns"] == true);
        }
        // Rung 0 is the start and is never judged.
        for rung in all.iter().skip(1) {
            let outcome = rung["outcome"].as_str().unwrap_or("?").to_owned();
            rungs += 1;
            kept += usize::from(outcome == "kept");
            *outcomes.entry(outcome).or_default() += 1;
        }
        let aa = &report["aa"];
        aa_clean +=
            usize::from(aa["low"].as_f64() <= Some(0.0) && aa["high"].as_f64() >= Some(0.0));
        scatter.extend(aa["noise"].as_f64());
        eprintln!(
            "aa: {} of {repeats}, false keeps so far {kept} of {rungs} rungs",
            repeat + 1
        );
    }
    let outcomes: Vec<String> = outcomes
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    Ok(format!(
        "| {beside} | {repeats} | **{kept}** of {rungs} rungs | {} | {aa_clean} of {repeats} | {:.1} % | {:.0} % |\n",
        outcomes.join(", "),
        100.0 * median(&scatter),
        100.0 * in_turns as f64 / f64::max(pairs.into(), 1.0)
    ))
}
