//! Timers of a plan: what is waited before a request.

use super::text::{Piece, Reading};
use super::tree::Element;
use crate::workloads::http::script::{Pace, Pause};

/// A number as JMeter reads it; what is none is 0.
pub(super) fn number(text: &str) -> f64 {
    let number = text.trim().parse::<f64>().ok();
    number.filter(|number| number.is_finite()).unwrap_or(0.0)
}

/// A time that is given as a text, in units of so many nanoseconds.
pub(super) fn ns(number: f64, unit: f64) -> u64 {
    (number * unit).max(0.0) as u64
}

const MS: f64 = 1e6;

/// A time in milliseconds: a number, or a random one.
pub(super) fn pause(text: &str, reading: &Reading<'_>) -> Result<Pause, String> {
    match &reading.pieces(text)?[..] {
        [] => Ok(Pause::Fixed(0)),
        [Piece::Text(text)] => Ok(Pause::Fixed(ns(number(text), MS))),
        [Piece::Other(placeholder)] => {
            let ends = placeholder
                .strip_prefix("${random:")
                .and_then(|rest| rest.strip_suffix('}'))
                .and_then(|rest| rest.split_once(".."));
            match ends.map(|(from, to)| (number(from), number(to))) {
                Some((from, to)) => Ok(Pause::Uniform(ns(from, MS), ns(to - from.max(0.0), MS))),
                None => Err("its time is no number".to_owned()),
            }
        }
        _ => Err("its time changes during the run".to_owned()),
    }
}

/// The pause of a timer; `count` numbers those that keep a pace.
pub(super) fn parse(
    timer: &Element,
    reading: &Reading<'_>,
    count: &mut dyn FnMut() -> usize,
) -> Result<Pause, String> {
    let fixed = |key: &str| Ok::<f64, String>(number(&reading.fixed(timer.text(key))?));
    match &*timer.class {
        "UniformRandomTimer" => Ok(Pause::Uniform(
            ns(fixed("ConstantTimer.delay")?, MS),
            ns(fixed("RandomTimer.range")?, MS),
        )),
        "GaussianRandomTimer" => Ok(Pause::Normal(
            fixed("ConstantTimer.delay")? * MS,
            fixed("RandomTimer.range")? * MS,
        )),
        "PoissonRandomTimer" => Ok(Pause::Poisson(
            ns(fixed("ConstantTimer.delay")?, MS),
            fixed("RandomTimer.range")?.max(0.0),
        )),
        "ConstantThroughputTimer" => {
            let per_minute = fixed("throughput")?;
            if per_minute <= 0.0 {
                return Err("its throughput is not above 0".to_owned());
            }
            // The order of `ConstantThroughputTimer.Mode`; a plan of before 2.9 may have the words of the form instead.
            let mode = reading.fixed(timer.text("calcMode"))?;
            let by = match mode.trim() {
                "" | "0" | "this thread only" => Pace::User,
                "1" | "all active threads" => Pace::AllUsers,
                "2" | "all active threads in current thread group" => Pace::Group,
                "3" | "all active threads (shared)" => Pace::Shared,
                "4" | "all active threads in current thread group (shared)" => Pace::SharedGroup,
                other => return Err(format!("unknown mode '{}'", super::shortened(other))),
            };
            Ok(Pause::Paced {
                every: 60e9 / per_minute,
                by,
                number: count(),
            })
        }
        _ => pause(timer.text("ConstantTimer.delay"), reading),
    }
}
