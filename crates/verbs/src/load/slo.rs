//! Limits that a measurement must keep: `p99<50ms`, `errors<0.1%`, `rate>5k/s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rungwise_load::engine::Completed;
use rungwise_model::load::SloResult;
use rungwise_model::units;

/// A limit on one metric of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    name: &'static str,
    metric: Metric,
    /// The limit in the metric's unit: microseconds, a share, requests per second.
    limit: f64,
    text: String,
}

/// What may be limited.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    /// Answers per second; all others are limited from above.
    Rate,
    /// Share of the requests without an answer.
    Loss,
    /// The same, and answers that are errors.
    Errors,
    /// Quantile of the latency from the intended start.
    Latency(f64),
}

const NAMES: [(&str, Metric); 8] = [
    ("rate", Metric::Rate),
    ("loss", Metric::Loss),
    ("errors", Metric::Errors),
    ("p50", Metric::Latency(0.5)),
    ("p90", Metric::Latency(0.9)),
    ("p99", Metric::Latency(0.99)),
    ("p99.9", Metric::Latency(0.999)),
    ("max", Metric::Latency(1.0)),
];

impl FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let write = || {
            format!(
                "cannot read '{text}' as a limit; write p99<50ms (also p50, p90, p99.9, max), errors<0.1%, loss<0.1% or rate>5k/s"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(write)?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let (name, metric) = *found.ok_or_else(write)?;
        // A rate that must not be reached, or a latency that must, is a slip.
        if (metric == Metric::Rate) != text[at..].starts_with('>') {
            return Err(write());
        }
        let limit = match metric {
            Metric::Rate => units::per_second(value),
            Metric::Loss | Metric::Errors => units::fraction(value),
            Metric::Latency(_) => {
                units::duration(value).map(|limit: Duration| limit.as_secs_f64() * 1e6)
            }
        };
        let limit = limit.map_err(|error| format!("cannot read '{text}' as a limit: {error}"))?;
        Ok(Self {
            name,
            metric,
            limit,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Slo {
    /// It limits the rate.
    pub(super) fn is_of_rate(&self) -> bool {
        self.metric == Metric::Rate
    }

    /// It limits the requests without a good answer.
    pub(super) fn is_of_errors(&self) -> bool {
        matches!(self.metric, Metric::Loss | Metric::Errors)
    }

    /// Whether a run kept it. A latency that nothing has is not kept.
    pub fn judge(&self, completed: &Completed) -> SloResult {
        let m = &completed.measurement;
        let of_sent = |count: u64| (m.sent > 0).then(|| count as f64 / m.sent as f64);
        let value = match self.metric {
            Metric::Rate => Some(m.achieved_per_s),
            Metric::Loss => of_sent(m.lost),
            Metric::Errors => of_sent(m.lost + completed.wrong),
            Metric::Latency(q) => {
                (m.received > 0).then(|| completed.corrected.quantile_ns(q) as f64 / 1e3)
            }
        };
        let met = value.is_some_and(|value| match self.metric {
            Metric::Rate => value > self.limit,
            _ => value < self.limit,
        });
        SloResult {
            slo: self.text.clone(),
            metric: self.name.to_owned(),
            value,
            met,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed() -> Completed {
        let mut completed = Completed {
            wrong: 1,
            ..Completed::default()
        };
        completed.measurement.sent = 1000;
        completed.measurement.received = 990;
        completed.measurement.lost = 10;
        completed.measurement.achieved_per_s = 500.0;
        completed.corrected.record_n(20_000_000, 990);
        completed
    }

    #[test]
    fn a_limit_is_kept_or_missed_by_the_metric_it_names() {
        for (text, value, met) in [
            ("p99<50ms", 20_000.0, true),
            ("p99.9 < 10ms", 20_000.0, false),
            ("errors<1.2%", 0.011, true),
            ("loss<1%", 0.01, false),
            ("rate>400/s", 500.0, true),
            ("rate>1k/s", 500.0, false),
        ] {
            let result = text.parse::<Slo>().unwrap().judge(&completed());
            assert_eq!(result.met, met, "{text}");
            let measured = result.value.unwrap();
            assert!(
                (measured - value).abs() <= value / 500.0,
                "{text}: {measured}"
            );
        }
    }

    #[test]
    fn nothing_received_keeps_no_latency() {
        let result = "p50<1s"
            .parse::<Slo>()
            .unwrap()
            .judge(&Completed::default());
        assert_eq!((result.value, result.met), (None, false));
        let result = "errors<1%"
            .parse::<Slo>()
            .unwrap()
            .judge(&Completed::default());
        assert!(!result.met);
    }

    #[test]
    fn what_is_no_limit_is_refused_with_an_example() {
        for text in [
            "", "p99", "p98<1ms", "p99>1ms", "rate<5/s", "p99<", "errors<1", "p99<5",
        ] {
            let error = text.parse::<Slo>().unwrap_err();
            assert!(error.contains("as a limit"), "{text}: {error}");
        }
    }
}
