//! The comparison of two stored documents of one kind: loads, tunes or checks.
//!
//! For two loads, the interval comes from the seconds of each and excludes variation from run to run, which the notes say. For
//! two tunes, each half of a pair is a run, so the interval comes from runs. A latency of one run has no interval and decides nothing.

use rungwise_model::Exit;
use rungwise_model::check::{CheckReport, Outcome};
use rungwise_model::compare::{
    CompareReport, Metric, Of, RatioInterval, RuleDifference, Verdict as What,
};
use rungwise_model::load::{LimitSearch, LoadReport};
use rungwise_model::metric::BYTES_PER_REQUEST;
use rungwise_model::tune::{self, Run, TuneReport, Verdict};
use rungwise_report::numbers;
use rungwise_stats::batches::ratio_of_means;

use crate::Invocation;
use crate::documents::{Document, Stored};

/// An interval misses with this probability.
const ALPHA: f64 = 0.05;
/// Two searches of the same service may differ by this ratio beyond their gaps: own guess, as much as the gap at which a search ends.
const BETWEEN: f64 = 1.05;
/// Smaller changes do not matter: the minimum effect of a ladder.
const MARGIN: f64 = 0.02;

/// The comparison of two documents, which must be of one kind.
pub(super) fn compare(
    before: (&str, &Stored),
    after: (&str, &Stored),
    started: String,
    invocation: &Invocation<'_>,
) -> anyhow::Result<CompareReport> {
    let (a, b) = (before.1, after.1);
    anyhow::ensure!(
        a.kind == b.kind,
        "cannot compare {} with {}: the first is a document of kind {}, the other of kind {}; name two of the same kind",
        before.0,
        after.0,
        a.kind,
        b.kind
    );
    let mut report = CompareReport {
        envelope: invocation.envelope(CompareReport::KIND, started, Exit::Done),
        of: None,
        verdict: Some(Verdict::Inconclusive),
        before: before.0.to_owned(),
        after: after.0.to_owned(),
        sentence: String::new(),
        notes: Vec::new(),
        metrics: Vec::new(),
        findings: Vec::new(),
        not_compared: Vec::new(),
        clauses: Vec::new(),
        before_logs: Vec::new(),
        after_logs: Vec::new(),
        profiles: None,
    };
    match a.kind {
        LoadReport::KIND => loads(&a.parse()?, &b.parse()?, &mut report),
        TuneReport::KIND => tunes(&a.parse()?, &b.parse()?, &mut report)?,
        CheckReport::KIND => checks(&a.parse()?, &b.parse()?, &mut report),
        kind => anyhow::bail!(
            "cannot compare {} with {}: documents of kind {kind} are not compared; name two of load, tune or check, or the GC logs or \
             captures themselves",
            before.0,
            after.0
        ),
    }
    Ok(report)
}

/// What an interval of a ratio says where more, or less, is better.
fn judged(ratio: Option<&RatioInterval>, less_is_better: bool) -> Verdict {
    let Some(ratio) = ratio else {
        return Verdict::Inconclusive;
    };
    let word = |is_more: bool| {
        if is_more == less_is_better {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    };
    if ratio.low > 1.0 && ratio.point >= 1.0 + MARGIN {
        word(true)
    } else if ratio.high < 1.0 && ratio.point <= 1.0 - MARGIN {
        word(false)
    } else if ratio.low > 1.0 - MARGIN && ratio.high < 1.0 + MARGIN {
        Verdict::Same
    } else {
        Verdict::Inconclusive
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "the same",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn interval(before: &[f64], after: &[f64]) -> Option<RatioInterval> {
    let ratio = ratio_of_means(before, after, ALPHA)?;
    Some(RatioInterval {
        point: ratio.point,
        low: ratio.low,
        high: ratio.high,
    })
}

/// A measured metric of both sides.
fn metric(name: &str, unit: &str, [a, b]: [f64; 2], shown: impl Fn(f64) -> String) -> Metric {
    Metric {
        name: name.to_owned(),
        group: "Measured".to_owned(),
        subjects: Vec::new(),
        before: Some(shown(a)),
        after: Some(shown(b)),
        before_value: Some(a),
        after_value: Some(b),
        unit: Some(unit.to_owned()),
        ratio: None,
        no_ratio: Some("one run each: the difference is not tested".to_owned()),
        verdict: What::Differs,
        rules: Vec::new(),
        knob: None,
    }
}

fn loads(before: &LoadReport, after: &LoadReport, report: &mut CompareReport) {
    report.of = Some(Of::Loads);
    let (a, b) = (&before.measurement, &after.measurement);
    let seconds = |load: &LoadReport| -> Vec<f64> {
        let seconds = load.measurement.seconds.iter();
        seconds.map(|second| second.received as f64).collect()
    };
    let mut rate = metric(
        "rate",
        "per_s",
        [a.achieved_per_s, b.achieved_per_s],
        numbers::rate,
    );
    rate.ratio = interval(&seconds(before), &seconds(after));
    rate.no_ratio = rate
        .ratio
        .is_none()
        .then(|| "one run each, shorter than 8 s: the difference is not tested".to_owned());
    let mut verdict = judged(rate.ratio.as_ref(), false);
    let offered = [a.offered_per_s, b.offered_per_s];
    if offered.iter().any(Option::is_some) {
        report.notes.push(
            "In an open loop the generator sets the rate: a lower one is worse only at the same offered rate.".to_owned(),
        );
        if offered[0] != offered[1] {
            verdict = Verdict::Inconclusive;
        }
    }
    report.notes.push(
        "One run each: the interval of the rate comes from the seconds of each run and excludes variation from run to run. \
         Latencies are not tested; `rungwise tune` measures in pairs."
            .to_owned(),
    );
    for (side, load) in [("before", a), ("after", b)] {
        if !load.client.certified {
            verdict = Verdict::Inconclusive;
            let why = load.client.reasons.join("; ");
            let note = format!("{side}: the generator does not certify the measurement: {why}");
            report.notes.push(note);
        }
    }
    let (x, y) = (a.latency_us.corrected, b.latency_us.corrected);
    report.metrics = vec![rate];
    for (name, values) in [
        ("p50", [x.p50, y.p50]),
        ("p90", [x.p90, y.p90]),
        ("p99", [x.p99, y.p99]),
        ("p99.9", [x.p999, y.p999]),
    ] {
        let latency = metric(name, "us", values, numbers::micros);
        report.metrics.push(latency);
    }
    if let (Some(first), Some(second)) = (&before.limit, &after.limit) {
        let limits_of = |load: &LoadReport| -> Vec<String> {
            load.slo.iter().map(|slo| slo.slo.clone()).collect()
        };
        if limits_of(before) != limits_of(after) {
            let note = "The searches had different limits, so they are not compared.";
            report.notes.push(note.to_owned());
            return conclude(report, Verdict::Inconclusive, "limit");
        }
        return limits(first, second, report);
    }
    conclude(report, verdict, "rate");
}

/// What two searches say of each other: each limit lies between the rate that was kept twice and the one that was missed twice.
fn limits(before: &LimitSearch, after: &LimitSearch, report: &mut CompareReport) {
    let [a, b] = [before, after].map(|search| search.rate_per_s);
    let (Some(a), Some(b)) = (a, b) else {
        let note = "A search found no limit, so the limits are not compared.";
        report.notes.push(note.to_owned());
        return conclude(report, Verdict::Inconclusive, "limit");
    };
    let ratio = bracket(before, after);
    let mut limit = metric("limit", "per_s", [a, b], numbers::rate);
    limit.ratio = ratio;
    let open = "a search ended before a limit was missed";
    limit.no_ratio = ratio.is_none().then(|| open.to_owned());
    report.metrics.insert(0, limit);
    let verdict = judged(ratio.as_ref(), false);
    report.verdict = Some(verdict);
    let by = ratio.map_or(open.to_owned(), |ratio| {
        let [point, low, high] = [ratio.point, ratio.low, ratio.high].map(numbers::factor);
        format!("{point} (by the rates kept and missed: {low} to {high})")
    });
    report.sentence = format!("limit: {}, {by}", word(verdict));
}

/// The ratio of two limits, with what one search may differ from the next; absent where one of them is open above.
fn bracket(before: &LimitSearch, after: &LimitSearch) -> Option<RatioInterval> {
    let (a, b) = (before.rate_per_s?, after.rate_per_s?);
    Some(RatioInterval {
        point: b / a,
        low: b / before.missed_per_s? / BETWEEN,
        high: after.missed_per_s? / a * BETWEEN,
    })
}

/// The sentence of a metric that decides, which is the first.
fn conclude(report: &mut CompareReport, verdict: Verdict, what: &str) {
    report.verdict = Some(verdict);
    let ratio = report.metrics.first().and_then(|metric| metric.ratio);
    let by = ratio.map_or_else(
        || "not tested".to_owned(),
        |ratio| {
            format!(
                "{} (95 % interval {} to {})",
                numbers::factor(ratio.point),
                numbers::factor(ratio.low),
                numbers::factor(ratio.high)
            )
        },
    );
    report.sentence = format!("{what}: {}, {by}", word(verdict));
}

/// Runs of the best configuration of a tune: of the last change that was kept, else of the start.
fn best(tune: &TuneReport) -> Vec<&Run> {
    let kept = |rung: &&tune::Rung| rung.outcome == tune::Outcome::Kept && !rung.pairs.is_empty();
    let (rung, is_kept) = match tune.rungs.iter().rev().find(kept) {
        Some(rung) => (Some(rung), true),
        None => (tune.rungs.iter().find(|rung| !rung.pairs.is_empty()), false),
    };
    let pairs = rung.map_or(&[][..], |rung| &rung.pairs);
    let counted = pairs.iter().filter(|pair| pair.discarded.is_none());
    counted
        .map(|pair| if is_kept { &pair.b } else { &pair.a })
        .collect()
}

fn tunes(
    before: &TuneReport,
    after: &TuneReport,
    report: &mut CompareReport,
) -> anyhow::Result<()> {
    anyhow::ensure!(
        before.objective == after.objective,
        "cannot compare {} with {}: one is about {}, the other about {}; name two tunes with the same objective",
        report.before,
        report.after,
        before.objective,
        after.objective
    );
    report.of = Some(Of::Tunes);
    let objective = before.objective.as_str();
    let values = |tune| -> Vec<f64> {
        let of = |run: &Run| match objective {
            "rate_per_s" => Some(run.rate_per_s),
            "p99_us" => run.p99_us,
            "p50_us" => run.p50_us,
            "cpu_us_per_tx" => Some(run.cpu_us_per_tx),
            other => run.metrics.get(other).copied(),
        };
        best(tune).into_iter().filter_map(of).collect()
    };
    let (a, b) = (values(before), values(after));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut metric = metric(objective, "", [mean(&a), mean(&b)], |value| {
        if objective == BYTES_PER_REQUEST {
            return numbers::whole_bytes(value);
        }
        numbers::rate(value).trim_end_matches("/s").to_owned()
    });
    metric.unit = None;
    metric.ratio = interval(&a, &b);
    metric.no_ratio = metric.ratio.is_none().then(|| {
        format!(
            "{} and {} runs of the best configurations, too few: the difference is not tested",
            a.len(),
            b.len()
        )
    });
    let verdict = judged(metric.ratio.as_ref(), before.less_is_better());
    report.metrics = vec![metric];
    report.notes.push(
        "Best vs. best configuration, by the runs of each; they were not measured in pairs, so the difference includes drift of the machine."
            .to_owned(),
    );
    if before.machine.hostname != after.machine.hostname {
        let note = format!(
            "The machines differ: {} and {}.",
            before.machine.hostname, after.machine.hostname
        );
        report.notes.push(note);
    }
    conclude(report, verdict, objective);
    Ok(())
}

fn checks(before: &CheckReport, after: &CheckReport, report: &mut CompareReport) {
    report.of = Some(Of::Checks);
    let worst = |check: &CheckReport, rule: &str, subject: &str| {
        let same = |finding: &&rungwise_model::check::Finding| {
            finding.rule == rule && finding.subject == subject
        };
        let of = check.findings.iter().filter(same);
        of.map(|finding| finding.outcome).min()
    };
    let acts = |check: &'_ CheckReport| -> Vec<(String, String, String)> {
        let acting = check.findings.iter();
        let acting = acting.filter(|finding| finding.outcome == Outcome::Act);
        acting
            .map(|f| (f.rule.clone(), f.subject.clone(), f.sentence.clone()))
            .collect()
    };
    let mut differ = |from: &CheckReport, other: &CheckReport, is_new: bool| {
        let mut count = 0;
        for (rule, subject, sentence) in acts(from) {
            let there = worst(other, &rule, &subject).unwrap_or(Outcome::Clear);
            if there == Outcome::Act {
                continue;
            }
            count += 1;
            let (a, b) = if is_new {
                (there, Outcome::Act)
            } else {
                (Outcome::Act, there)
            };
            report.findings.push(RuleDifference {
                rule,
                before: a,
                after: b,
                sentence: format!("{subject}: {sentence}"),
            });
        }
        count
    };
    let (new, gone) = (differ(after, before, true), differ(before, after, false));
    report.verdict = Some(match (new, gone) {
        (0, 0) => Verdict::Same,
        (0, _) => Verdict::Better,
        _ => Verdict::Worse,
    });
    report.sentence = format!(
        "{} to act on that the first check did not have; {gone} of the first resolved",
        numbers::plural(new, "finding")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_differ_where_what_one_kept_the_other_missed() {
        let search = |kept: f64, missed: Option<f64>| LimitSearch {
            rate_per_s: Some(kept),
            missed_per_s: missed,
            ..LimitSearch::default()
        };
        let of = |a: &LimitSearch, b: &LimitSearch| judged(bracket(a, b).as_ref(), false);
        let before = search(1000.0, Some(1040.0));
        assert_eq!(of(&before, &search(900.0, Some(940.0))), Verdict::Worse);
        assert_eq!(of(&before, &search(1100.0, Some(1150.0))), Verdict::Better);
        assert_eq!(
            of(&before, &search(980.0, Some(1020.0))),
            Verdict::Inconclusive
        );
        assert_eq!(of(&before, &search(1100.0, None)), Verdict::Inconclusive);
    }

    #[test]
    fn worse_is_said_only_where_the_whole_interval_is_on_the_bad_side() {
        let of = |low, point, high, less| judged(Some(&RatioInterval { point, low, high }), less);
        assert_eq!(of(0.8, 0.9, 0.95, false), Verdict::Worse);
        assert_eq!(of(0.8, 0.9, 0.95, true), Verdict::Better);
        assert_eq!(of(0.8, 0.9, 1.05, false), Verdict::Inconclusive);
        assert_eq!(of(0.985, 0.99, 0.995, false), Verdict::Same);
        assert_eq!(judged(None, false), Verdict::Inconclusive);
    }
}
