//! `rungwise compare` on two GC logs.

use std::collections::BTreeMap;
use std::path::Path;

use rungwise_gclog::{Event, Kind};
use rungwise_model::compare::CompareReport;
use rungwise_model::gc::Run;
use rungwise_model::{Envelope, Exit};
use rungwise_report::gc::compare::{self as page, Side};
use rungwise_report::{html, json, markdown, terminal};

use super::{Log, read};
use crate::cmd::{Format, Global, output};
use crate::problem::Problem;

/// Reads both and prints what differs; a difference is no failure.
pub(crate) fn show(
    before: &Path,
    after: &Path,
    envelope: impl FnOnce() -> Envelope,
    global: &Global,
) -> anyhow::Result<Exit> {
    let (before, after) = (Half::read(before)?, Half::read(after)?);
    let (a, b) = (before.side()?, after.side()?);
    let report = CompareReport {
        sentence: page::sentence(&a, &b),
        metrics: page::metrics(&a, &b),
        before: before.name.clone(),
        after: after.name.clone(),
        findings: Vec::new(),
        not_compared: Vec::new(),
        envelope: envelope(),
    };
    let blocks = page::blocks(&report);
    global.emit(&match global.format {
        Format::Json => json(&report)?,
        Format::Html => html::page("Comparison of two GC logs", &blocks),
        Format::Markdown => markdown::render(&blocks),
        Format::Text | Format::Sarif => terminal::render(
            &blocks,
            output::width(),
            global.color_on(&std::io::stdout()),
        ),
    })?;
    Ok(Exit::Done)
}

struct Half {
    name: String,
    log: Log,
    pauses: BTreeMap<&'static str, Vec<f64>>,
}

impl Half {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut draws: BTreeMap<&'static str, Draw> = BTreeMap::new();
        let log = read(&[path.to_owned()], None, &mut |event| {
            if let Event::Pause(pause) = event
                && let Some(ns) = pause.duration_ns.filter(|ns| *ns > 0 && !pause.nested)
            {
                draws
                    .entry(word(pause.kind))
                    .or_default()
                    .take(ns as f64 / 1e6);
            }
        })?;
        Ok(Self {
            name: path.display().to_string(),
            log,
            pauses: draws
                .into_iter()
                .map(|(kind, draw)| (kind, draw.kept))
                .collect(),
        })
    }

    fn side(&self) -> anyhow::Result<Side<'_>> {
        let run: Option<&Run> = self.log.summary.longest_run();
        let run = run.filter(|_| !self.pauses.is_empty()).ok_or_else(|| {
            let error = anyhow::anyhow!("cannot compare {}: it tells of no pause", self.name);
            Problem::with(Exit::Precondition, error)
        })?;
        Ok(Side {
            name: &self.name,
            run,
            pauses: &self.pauses,
        })
    }
}

/// As `by_kind` of the summary names them.
fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Young => "young",
        Kind::Mixed => "mixed",
        Kind::Full => "full",
        Kind::Degenerated => "degenerated",
        Kind::Start => "start",
        Kind::Remark => "remark",
        Kind::Cleanup => "cleanup",
        Kind::Other => "other",
    }
}

/// A fair draw of many values (algorithm R, Vitter 1985) with a generator of its own: the same log, the same draw.
#[derive(Debug, Default)]
struct Draw {
    kept: Vec<f64>,
    seen: u64,
}

/// The interval's time grows with the square of the values, and its width with the root only.
const DRAWN: usize = 400;

impl Draw {
    fn take(&mut self, value: f64) {
        self.seen += 1;
        if self.kept.len() < DRAWN {
            self.kept.push(value);
            return;
        }
        // SplitMix64 of the count: equally spread, and it needs no state.
        let mut mixed = self.seen.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let place = (mixed ^ (mixed >> 31)) % self.seen;
        if let Some(kept) = usize::try_from(place)
            .ok()
            .and_then(|at| self.kept.get_mut(at))
        {
            *kept = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_of_many_has_the_middle_of_all() {
        let mut draw = Draw::default();
        for value in 0..100_000 {
            draw.take(f64::from(value));
        }
        assert_eq!(draw.kept.len(), DRAWN);
        let mean = draw.kept.iter().sum::<f64>() / DRAWN as f64;
        // Four standard errors of a fair draw.
        assert!((mean - 50_000.0).abs() < 4.0 * 28_868.0 / 20.0, "{mean}");
    }
}
