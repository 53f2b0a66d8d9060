//! False keeps: `tune` on a ladder whose rungs change nothing, many times.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process;
use crate::rungwise::{Rungwise, top};

/// Longest that one ladder may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// The count as Markdown.
pub fn count(tool: &Rungwise, repeats: usize) -> Result<String> {
    let scenario = top().join("benches/aa.toml");
    let (mut rungs, mut kept, mut aa_clean) = (0, 0, 0);
    let mut outcomes = std::collections::BTreeMap::<String, usize>::new();
    for repeat in 0..repeats {
        let mut command = Command::new(tool.path());
        command.arg("tune").arg(&scenario).args([
            "--format",
            "json",
            "--quiet",
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
        "\n## False keeps\n\n`rungwise tune benches/aa.toml`, whose rungs change nothing, {repeats} times: **{kept} false keeps** in {rungs} rungs ({}). The \
         stated alpha is 1 % over a ladder. The interval of the A/A check contained zero in {aa_clean} of {repeats}.\n",
        outcomes.join(", ")
    ))
}
