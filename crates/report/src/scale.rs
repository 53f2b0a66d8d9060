//! From values to positions between 0 and 1, with ticks at round numbers.
//!
//! Three scales: linear from zero, logarithmic, and one for relative changes. The last maps the
//! log ratio through asinh: linear around zero, so that 2 % is seen, and logarithmic further out,
//! so that −95 % and +900 % fit the same axis. Doubling and halving are equally far from zero.
//! Nice steps follow Heckbert, "Nice numbers for graph labels", Graphics Gems (1990).

use crate::numbers;

/// What the numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events per second.
    Rate,
    /// Microseconds.
    Micros,
    /// A fraction, shown as percent.
    Share,
    /// Seconds since the start.
    Seconds,
    /// Bytes, in powers of 1024.
    Bytes,
    /// How many.
    Count,
    /// A number whose unit is unknown.
    Number,
}

impl Unit {
    /// The value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Rate => numbers::rate(value),
            Self::Micros => numbers::micros(value),
            Self::Share => numbers::share(value),
            Self::Seconds => numbers::span(value),
            Self::Bytes => numbers::bytes(value.max(0.0).round() as u64),
            Self::Count => numbers::count(value.max(0.0).round() as u64),
            Self::Number => numbers::significant(value),
        }
    }

    /// The value as a short tick label: `200 k/s`, `5 %`, without the digits that every tick would share.
    fn tick(self, value: f64) -> String {
        let text = self.show(value);
        let Some((number, unit)) = text.split_once(numbers::THIN) else {
            return text;
        };
        if unit.contains(numbers::THIN) || !number.contains('.') {
            return text;
        }
        let number = number.trim_end_matches('0').trim_end_matches('.');
        format!("{number}{}{unit}", numbers::THIN)
    }
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position, 0 to 1.
    pub at: f64,
    /// The number there.
    pub label: String,
    /// Shown in narrow windows too.
    pub always: bool,
}

/// A linear or logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
    unit: Unit,
}

/// From this ratio of largest to smallest value on, an axis of positive values is logarithmic.
const LOG_FROM: f64 = 8.0;

impl Axis {
    /// An axis from zero that holds all values.
    pub fn from_zero(values: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        let high = finite(values).fold(0.0, f64::max);
        let high = if high > 0.0 { high } else { 1.0 };
        let step = unit_step(high, 1.0, unit);
        Self {
            low: 0.0,
            high: (high / step).ceil() * step,
            log: false,
            unit,
        }
    }

    /// An axis from zero to exactly the largest value: for time.
    pub fn exact(high: f64, unit: Unit) -> Self {
        let high = if high.is_finite() && high > 0.0 {
            high
        } else {
            1.0
        };
        Self {
            low: 0.0,
            high,
            log: false,
            unit,
        }
    }

    /// An axis from exactly the first value to the second: for time that does not begin at zero.
    pub fn between(low: f64, high: f64, unit: Unit) -> Self {
        if !low.is_finite() || !high.is_finite() || high <= low {
            return Self::exact(high, unit);
        }
        Self {
            low,
            high,
            log: false,
            unit,
        }
    }

    /// A logarithmic axis that holds both values, which are above zero.
    pub fn powers(low: f64, high: f64, unit: Unit) -> Self {
        let low = if low > 0.0 && low.is_finite() {
            low
        } else {
            1.0
        };
        let high = if high.is_finite() { high } else { low };
        Self {
            low,
            high: high.max(low * 2.0),
            log: true,
            unit,
        }
    }

    /// Logarithmic where the values span much, else from zero.
    pub fn fitting(values: impl IntoIterator<Item = f64>, unit: Unit) -> Self {
        let values: Vec<f64> = finite(values).filter(|v| *v > 0.0).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        if high >= low * LOG_FROM {
            Self {
                low: one_two_five(low, false),
                high: one_two_five(high, true),
                log: true,
                unit,
            }
        } else {
            Self::from_zero(values, unit)
        }
    }

    /// The scale is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// Position of a value, kept within 0 to 1.
    pub fn position(&self, value: f64) -> f64 {
        let at = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if at.is_finite() {
            at.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Ticks at nice values; those marked `always` are at least `narrow` apart, the rest `wide`.
    pub fn ticks(&self, wide: f64, narrow: f64) -> Vec<Tick> {
        if self.unit == Unit::Seconds && !self.log {
            return thin_out(self.moments(wide), wide, narrow);
        }
        let values = if self.log {
            self.log_values()
        } else {
            let step = unit_step(self.high - self.low, 0.999, self.unit);
            multiples(step, self.low, self.high)
        };
        let ticks = values.into_iter().map(|value| Tick {
            at: self.position(value),
            label: self.unit.tick(value),
            always: false,
        });
        thin_out(ticks.collect(), wide, narrow)
    }

    /// Ticks of a time axis: `10 s`, `2 min`; where these would be alike, `1:06:40`; below a second `4000.25 s`.
    fn moments(&self, wide: f64) -> Vec<Tick> {
        let step = clock_step((self.high - self.low) * wide);
        let values = multiples(step, self.low, self.high);
        let mut neighbours = values.windows(2);
        let alike = neighbours.any(|pair| numbers::span(pair[0]) == numbers::span(pair[1]));
        let digits = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
        let label = |value: f64| match (alike, digits) {
            (false, _) => self.unit.tick(value),
            (true, 0) => numbers::clock(value),
            (true, _) => format!("{value:.digits$}{}s", numbers::THIN),
        };
        values
            .into_iter()
            .map(|value| Tick {
                at: self.position(value),
                label: label(value),
                always: false,
            })
            .collect()
    }

    fn log_values(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = if decades > 2.5 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
            .filter(|v| *v >= self.low * 0.999 && *v <= self.high * 1.001)
            .collect()
    }
}

/// The scale of relative changes around zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeScale {
    /// Largest log ratio on the axis.
    reach: f64,
    /// Where linear turns into logarithmic, a log ratio; absent when all is linear.
    knee: Option<f64>,
}

/// A 20-fold change: an interval end beyond it is clipped and marked.
const FARTHEST: f64 = 3.0;
/// A tick further out would have half of its label outside.
const EDGE: f64 = 0.96;
/// Below a change by a third everything fits a linear axis.
const LINEAR_BELOW: f64 = 0.3;
/// Log ratio at which the bent scale leaves the linear part: 5 %, about the size of a late rung.
const KNEE: f64 = 0.05;

impl ChangeScale {
    /// A scale that holds the changes, given as fractions.
    pub fn holding(changes: impl IntoIterator<Item = f64>) -> Self {
        let farthest = finite(changes)
            .map(|c| log_ratio(c).abs())
            .fold(0.0, f64::max);
        let reach = (farthest * 1.04).clamp(0.05, FARTHEST);
        Self {
            reach,
            knee: (reach > LINEAR_BELOW).then_some(KNEE),
        }
    }

    /// The axis is linear near zero only.
    pub fn is_bent(&self) -> bool {
        self.knee.is_some()
    }

    /// Position of a change, 0.5 for none, and whether it lies beyond the axis.
    pub fn position(&self, change: f64) -> (f64, bool) {
        let ratio = log_ratio(change);
        let bend = |r: f64| self.knee.map_or(r, |knee| (r / knee).asinh());
        let at = 0.5 + 0.5 * bend(ratio) / bend(self.reach);
        (at.clamp(0.0, 1.0), !(-1e-9..=1.0 + 1e-9).contains(&at))
    }

    /// Ticks from zero outwards, alike on both sides.
    pub fn ticks(&self, wide: f64, narrow: f64) -> Vec<Tick> {
        const STEPS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 9.0];
        const MIRRORED: [f64; 9] = [-0.01, -0.02, -0.05, -0.1, -0.2, -0.35, -0.5, -0.75, -0.9];
        let mut kept: Vec<(Tick, Tick)> = Vec::new();
        // Distance from zero of the last pair of ticks, and of the last that narrow windows show.
        let (mut last, mut last_always) = ((0.0, 0.0), (0.0, 0.0));
        let apart = |(up, down): (f64, f64), from: (f64, f64), gap| {
            up - from.0 >= gap && down - from.1 >= gap
        };
        for (up, down) in STEPS.into_iter().zip(MIRRORED) {
            let (at, clipped) = self.position(up);
            let (mirror, mirror_clipped) = self.position(down);
            let distance = (at - 0.5, 0.5 - mirror);
            if clipped
                || mirror_clipped
                || !apart(distance, last, wide)
                || at > EDGE
                || mirror < 1.0 - EDGE
            {
                continue;
            }
            let always = apart(distance, last_always, narrow);
            let tick = |at, value| Tick {
                at,
                label: numbers::change(value).replace(".0", ""),
                always,
            };
            kept.push((tick(mirror, down), tick(at, up)));
            last = distance;
            if always {
                last_always = distance;
            }
        }
        let zero = Tick {
            at: 0.5,
            label: "0".to_owned(),
            always: true,
        };
        let (mut ticks, right): (Vec<Tick>, Vec<Tick>) = kept.into_iter().unzip();
        ticks.reverse();
        ticks.push(zero);
        ticks.extend(right);
        ticks
    }
}

/// Keeps what is at least `wide` apart and marks what is at least `narrow` apart.
pub fn thin_out(ticks: Vec<Tick>, wide: f64, narrow: f64) -> Vec<Tick> {
    let mut kept: Vec<Tick> = Vec::new();
    let (mut last, mut last_always) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for mut tick in ticks {
        if tick.at - last < wide - 1e-9 {
            continue;
        }
        last = tick.at;
        tick.always = tick.at - last_always >= narrow - 1e-9;
        if tick.always {
            last_always = tick.at;
        }
        kept.push(tick);
    }
    kept
}

fn log_ratio(change: f64) -> f64 {
    // A change of −100 % or less has no logarithm: it lies beyond every axis.
    if change > -0.999_999 {
        change.ln_1p()
    } else {
        -100.0
    }
}

fn finite(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|v| v.is_finite())
}

fn multiples(step: f64, low: f64, high: f64) -> Vec<f64> {
    let first = (low / step - 1e-9).ceil();
    let count = (high / step + 1e-9).floor() - first;
    (0..=count.clamp(0.0, 1000.0) as u32)
        .map(|i| (first + f64::from(i)) * step)
        .filter(|value| *value <= high * (1.0 + 1e-9))
        .collect()
}

/// A step that gives three to six ticks over the range, a little smaller by `slack` where the range is whole steps.
fn unit_step(range: f64, slack: f64, unit: Unit) -> f64 {
    if unit == Unit::Bytes {
        2_f64.powi((range / 6.0 * slack).max(1.0).log2().ceil() as i32)
    } else {
        nice_step(range / 4.0 * slack)
    }
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `raw`.
fn nice_step(raw: f64) -> f64 {
    let power = 10_f64.powf(raw.log10().floor());
    let lead = raw / power;
    [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|step| lead <= step * 1.000_001)
        .unwrap_or(10.0)
        * power
}

/// The smallest step of a clock that is at least `raw` seconds.
fn clock_step(raw: f64) -> f64 {
    if raw < 1.0 {
        return one_two_five(raw.max(1e-9), true);
    }
    [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0,
    ]
    .into_iter()
    .find(|step| *step >= raw)
    .unwrap_or_else(|| (raw / 86_400.0).ceil() * 86_400.0)
}

fn one_two_five(value: f64, up: bool) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let lead = value / power;
    let steps = [1.0, 2.0, 5.0, 10.0];
    let chosen = if up {
        steps.into_iter().find(|s| *s >= lead * 0.999_999)
    } else {
        steps.into_iter().rev().find(|s| *s <= lead * 1.000_001)
    };
    chosen.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_huge_changes_are_both_seen() {
        let scale = ChangeScale::holding([-0.95, 9.0, 0.02]);
        assert!(scale.is_bent());
        let (two_percent, _) = scale.position(0.02);
        assert!(two_percent > 0.53, "2 % stands at {two_percent}");
        let (ten_fold, clipped) = scale.position(9.0);
        assert!(ten_fold < 1.0 && !clipped);
        assert!(
            scale.position(400.0).1,
            "a 400-fold change is clipped and says so"
        );
        assert!(scale.position(-1.0).1);
    }

    #[test]
    fn doubling_and_halving_are_equally_far_from_zero() {
        let scale = ChangeScale::holding([3.0]);
        let (up, _) = scale.position(1.0);
        let (down, _) = scale.position(-0.5);
        assert!((up + down - 1.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_keep_their_distance_and_are_symmetric() {
        for reach in [0.01, 0.05, 0.2, 1.0, 9.0, 400.0] {
            let ticks = ChangeScale::holding([reach]).ticks(0.07, 0.16);
            assert!(ticks.len() >= 3, "{reach}: {ticks:?}");
            for pair in ticks.windows(2) {
                assert!(pair[1].at - pair[0].at > 0.05, "{reach}: {pair:?}");
            }
        }
    }

    #[test]
    fn a_wide_range_of_rates_gets_a_logarithmic_axis() {
        let axis = Axis::fitting([353e3, 5.7e6], Unit::Rate);
        assert!(axis.is_log());
        assert!(
            axis.ticks(0.1, 0.2)
                .iter()
                .any(|t| t.label.starts_with("1\u{202f}M"))
        );
        let axis = Axis::fitting([353e3, 659e3], Unit::Rate);
        assert!(!axis.is_log());
        assert!(axis.position(0.0) < 1e-9);
    }

    #[test]
    fn an_axis_of_time_may_begin_in_the_third_day() {
        let axis = Axis::between(200_000.0, 203_700.0, Unit::Seconds);
        let ticks = axis.ticks(0.12, 0.3);
        assert!(ticks.len() >= 4, "{ticks:?}");
        assert!(ticks[0].at < 0.2 && ticks.iter().all(|tick| tick.at <= 1.0));
        assert!(axis.position(199_000.0) < 1e-9);
        let labels: Vec<_> = Axis::between(4000.0, 4010.0, Unit::Seconds)
            .ticks(0.3, 0.3)
            .into_iter()
            .map(|tick| tick.label)
            .collect();
        assert_eq!(labels, ["1:06:40", "1:06:45", "1:06:50"]);
    }

    #[test]
    fn an_axis_of_a_part_of_a_second_has_ticks() {
        let labels = |low, high| -> Vec<String> {
            let ticks = Axis::between(low, high, Unit::Seconds).ticks(0.2, 0.2);
            let plain = |tick: Tick| tick.label.replace(numbers::THIN, " ");
            ticks.into_iter().map(plain).collect()
        };
        assert_eq!(labels(0.0, 0.9)[1], "0.2 s");
        assert_eq!(labels(71.0, 71.1)[1], "71.02 s");
        assert_eq!(labels(0.0, 300_000.0)[1], "24 h 0 min");
    }

    #[test]
    fn bytes_have_ticks_at_powers_of_two() {
        let axis = Axis::from_zero([5.3 * f64::from(1 << 30)], Unit::Bytes);
        let labels: Vec<_> = axis
            .ticks(0.09, 0.09)
            .into_iter()
            .map(|tick| tick.label.replace(numbers::THIN, " "))
            .collect();
        assert_eq!(
            labels,
            ["0 B", "1 GiB", "2 GiB", "3 GiB", "4 GiB", "5 GiB", "6 GiB"]
        );
    }

    #[test]
    fn an_axis_of_nothing_still_has_ticks() {
        for axis in [
            Axis::fitting([], Unit::Rate),
            Axis::from_zero([f64::NAN, 0.0], Unit::Share),
            Axis::exact(0.0, Unit::Seconds),
            Axis::between(5.0, 5.0, Unit::Seconds),
            Axis::powers(0.0, f64::NAN, Unit::Micros),
            Axis::from_zero([], Unit::Bytes),
        ] {
            assert!(!axis.ticks(0.1, 0.2).is_empty(), "{axis:?}");
            assert!(axis.position(f64::NAN) <= 1.0);
        }
    }

    #[test]
    fn time_ticks_stand_at_whole_clock_steps() {
        let labels: Vec<_> = Axis::exact(372.0, Unit::Seconds)
            .ticks(0.12, 0.3)
            .into_iter()
            .map(|t| t.label)
            .collect();
        assert_eq!(labels[1], "1\u{202f}min");
    }
}
