//! Documents to render: invented, complete, and pared down to the edges.

use rungwise_model::load::LoadReport;
use rungwise_model::tune::TuneReport;

pub(crate) fn ladder() -> TuneReport {
    serde_json::from_str(include_str!("../fixtures/udp-echo.json"))
        .expect("the fixture is a TuneReport")
}

pub(crate) fn load() -> LoadReport {
    serde_json::from_str(include_str!("../fixtures/load-udp.json"))
        .expect("the fixture is a LoadReport")
}

/// As many rungs as asked for, by repeating those of the ladder.
pub(crate) fn ladder_of(rungs: usize) -> TuneReport {
    let mut report = ladder();
    let source = report.rungs.clone();
    report.rungs = source.iter().cycle().take(rungs).cloned().collect();
    let end = source
        .iter()
        .flat_map(|rung| &rung.pairs)
        .map(|pair| pair.a.at_s.max(pair.b.at_s))
        .fold(0.0, f64::max);
    for (index, rung) in report.rungs.iter_mut().enumerate() {
        let round = (index / source.len()) as f64;
        rung.id = format!("{}-{index}", rung.id);
        for pair in &mut rung.pairs {
            pair.a.at_s += round * end;
            pair.b.at_s += round * end;
        }
    }
    report
}

/// A ladder of which nothing could be measured.
pub(crate) fn nothing_measured() -> TuneReport {
    let mut report = ladder();
    report.overall = None;
    report.kept.clear();
    report.aa = rungwise_model::tune::AaCheck::default();
    report.verdict = rungwise_model::tune::Verdict::Inconclusive;
    for rung in &mut report.rungs {
        rung.outcome = rungwise_model::tune::Outcome::Skipped;
        rung.reason = String::from("the service did not become ready");
        rung.rate_per_s = None;
        rung.cpu_us_per_tx = None;
        rung.latency_us = None;
        rung.delta = None;
        rung.cpu_delta = None;
        rung.pairs.clear();
    }
    report
}
