//! The comparison of two profiles: shares of frames, since two profiles are rarely of the same length.
//!
//! A share differs if the 95 % intervals of sampling of both sides do not overlap; that is stricter than a test at 5 %. Samples of one run
//! depend on each other more than the interval assumes, and runs vary by themselves, which the notes say.

use std::collections::BTreeMap;
use std::path::Path;

use rungwise_model::Exit;
use rungwise_model::compare::{CompareReport, Metric, Of, ProfileSide, Profiles, Verdict};
use rungwise_model::profile::Unit;
use rungwise_report::{numbers, profile as page};
use rungwise_stacks::Hot;
use rungwise_stats::proportion::share_interval;

use crate::Invocation;
use crate::documents::Document as _;
use crate::profile::{self, Loaded};

/// Smaller changes of a share are left out: own guess, a frame of half a percent is seldom worth work.
const LEAST: f64 = 0.005;
/// Differences that are listed.
const ROWS: usize = 100;
/// Bytes of folded text of each side in the document.
const DOCUMENT: usize = 32 << 20;

/// Compares two profiles that were recognised as such.
pub(super) fn compare(
    [before, after]: [&Path; 2],
    started: String,
    invocation: &Invocation<'_>,
) -> anyhow::Result<CompareReport> {
    let names = [before, after].map(|path| path.display().to_string());
    let (before, after) = (profile::load(before, None)?, profile::load(after, None)?);
    let quantities = [&before, &after].map(|side| page::quantity(side.event, side.unit));
    anyhow::ensure!(
        before.event == after.event && before.unit == after.unit,
        "cannot compare {} with {}: the first has {}, the other {}; write a document of the same event of each: rungwise profile FILE --event \
         EVENT -o FILE.json",
        names[0],
        names[1],
        quantities[0],
        quantities[1]
    );
    let metrics = differences(&before, &after);
    let sentence = sentence(&metrics, quantities[0]);
    let mut notes = vec![
        "One profile each: the intervals are those of sampling and exclude variation from run to run.".to_owned(),
    ];
    if before.unit != Unit::Samples {
        notes.push(format!(
            "The weights are {}, not samples: differences are not tested.",
            quantities[0]
        ));
    }
    for (name, side) in names.iter().zip([&before, &after]) {
        notes.extend(side.notes.iter().map(|note| format!("{name}: {note}")));
    }
    let side = |loaded: &Loaded| ProfileSide {
        source: loaded.source.clone(),
        total: loaded.stacks.total(),
        stacks: rungwise_stacks::kept(&loaded.stacks, DOCUMENT),
    };
    let profiles = Profiles {
        event: before.event,
        unit: before.unit,
        before: side(&before),
        after: side(&after),
    };
    let [before, after] = names;
    Ok(CompareReport {
        envelope: invocation.envelope(CompareReport::KIND, started, Exit::Done),
        of: Some(Of::Profiles),
        verdict: None,
        before,
        after,
        sentence,
        notes,
        metrics,
        findings: Vec::new(),
        not_compared: Vec::new(),
        clauses: Vec::new(),
        before_logs: Vec::new(),
        after_logs: Vec::new(),
        profiles: Some(Box::new(profiles)),
    })
}

/// Own and total weight of each frame, by name.
fn weights(loaded: &Loaded) -> BTreeMap<String, [u64; 2]> {
    let mut weights: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for Hot {
        frame, own, total, ..
    } in rungwise_stacks::hot(&loaded.stacks)
    {
        let sums = weights.entry(frame).or_default();
        sums[0] = sums[0].saturating_add(own);
        sums[1] = sums[1].saturating_add(total);
    }
    weights
}

/// Frames whose share differs, those with the largest change of their own first.
fn differences(before: &Loaded, after: &Loaded) -> Vec<Metric> {
    let (old, new) = (weights(before), weights(after));
    let totals = [before.stacks.total(), after.stacks.total()];
    let are_samples = before.unit == Unit::Samples;
    let mut metrics = Vec::new();
    for frame in old
        .keys()
        .chain(new.keys().filter(|frame| !old.contains_key(*frame)))
    {
        let sides = [old.get(frame), new.get(frame)];
        for (at, group) in ["Self", "Total"].into_iter().enumerate() {
            let weights = sides.map(|side| side.map_or(0, |weights| weights[at]));
            let shares = [0, 1].map(|side| weights[side] as f64 / totals[side].max(1) as f64);
            if (shares[1] - shares[0]).abs() < LEAST || are_samples && overlap(weights, totals) {
                continue;
            }
            metrics.push(Metric {
                name: frame.clone(),
                group: group.to_owned(),
                subjects: Vec::new(),
                before: sides[0].map(|_| numbers::share(shares[0])),
                after: sides[1].map(|_| numbers::share(shares[1])),
                before_value: sides[0].map(|_| shares[0]),
                after_value: sides[1].map(|_| shares[1]),
                unit: Some("fraction".to_owned()),
                ratio: None,
                no_ratio: Some("one profile each".to_owned()),
                verdict: match sides {
                    [Some(_), None] => Verdict::OnlyBefore,
                    [None, _] => Verdict::OnlyAfter,
                    _ => Verdict::Differs,
                },
                rules: Vec::new(),
                knob: None,
            });
        }
    }
    metrics.sort_by(|a, b| {
        a.group
            .cmp(&b.group)
            .then_with(|| change(b).abs().total_cmp(&change(a).abs()))
            .then_with(|| a.name.cmp(&b.name))
    });
    // Half of them each, so that neither group is without rows.
    let mut left = BTreeMap::from([("Self", ROWS), ("Total", ROWS)]);
    metrics.retain(|metric| {
        let left = left
            .entry(if metric.group == "Self" {
                "Self"
            } else {
                "Total"
            })
            .or_default();
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
    metrics
}

/// Whether the intervals of both shares overlap.
fn overlap(weights: [u64; 2], totals: [u64; 2]) -> bool {
    let interval = |side: usize| share_interval(weights[side], totals[side]);
    match (interval(0), interval(1)) {
        (Some(old), Some(new)) => old.0 <= new.1 && new.0 <= old.1,
        _ => false,
    }
}

/// By how much the share changed.
fn change(metric: &Metric) -> f64 {
    metric.after_value.unwrap_or(0.0) - metric.before_value.unwrap_or(0.0)
}

fn sentence(metrics: &[Metric], quantity: &str) -> String {
    // Rows of `Self` come first; where none differs, the callers may.
    let Some(most) = metrics.first() else {
        return format!(
            "no frame has another share of the {quantity}: every difference is below 0.5 points or within the noise of sampling"
        );
    };
    let share = |value: Option<f64>| numbers::share(value.unwrap_or(0.0));
    let grew = if change(most) > 0.0 { "grew" } else { "shrank" };
    format!(
        "{} {grew} from {} to {} of the {quantity}",
        most.name,
        share(most.before_value),
        share(most.after_value)
    )
}
