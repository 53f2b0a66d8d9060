//! Quantities with units, shares and counts.

use std::fmt::Display;
use std::time::Duration;

use rungwise_model::units;

use rungwise_load::values::Count;

use super::super::document::At;
use super::Reader;

impl Reader<'_, '_> {
    pub(in super::super) fn unit<T, E: Display>(
        &mut self,
        at: &At<String>,
        key: &str,
        read: fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        match read(at.get()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.add(at.span(), key, error.to_string());
                None
            }
        }
    }

    /// The value of a quantity, which zero is not; 1 where it was refused.
    pub(in super::super) fn positive<E: Display>(
        &mut self,
        at: &At<String>,
        key: &str,
        read: fn(&str) -> Result<f64, E>,
    ) -> f64 {
        let value = self.unit(at, key, read);
        if value.is_some_and(|value| !(value.is_finite() && value > 0.0)) {
            self.problems
                .add(at.span(), key, "must be greater than zero");
        }
        value.unwrap_or(1.0)
    }

    pub(in super::super) fn duration(
        &mut self,
        at: Option<&At<String>>,
        key: &str,
        default_ms: u64,
    ) -> Duration {
        let Some(at) = at else {
            return Duration::from_millis(default_ms);
        };
        let value = self.unit(at, key, units::duration);
        // A day: beyond it a unit was mistaken, and deadlines computed from it may overflow.
        if value.is_some_and(|value| value.is_zero() || value > Duration::from_hours(24)) {
            self.problems
                .add(at.span(), key, "must be more than 0 and at most 24h");
        }
        value.unwrap_or(Duration::from_millis(default_ms))
    }

    pub(in super::super) fn share(
        &mut self,
        at: Option<&At<String>>,
        key: &str,
        default: f64,
    ) -> f64 {
        let Some(at) = at else { return default };
        let key = format!("experiment.{key}");
        let value = self.positive(at, &key, units::fraction);
        if value > 1.0 {
            self.problems.add(at.span(), key, "must be at most 100%");
        }
        value
    }

    pub(in super::super) fn between(
        &mut self,
        at: &At<u32>,
        key: &str,
        least: u32,
        most: u32,
    ) -> u32 {
        if !(least..=most).contains(at.get()) {
            self.problems.add(
                at.span(),
                key,
                format!("{} is not between {least} and {most}", at.get()),
            );
        }
        *at.get()
    }

    pub(in super::super) fn count(
        &mut self,
        at: Option<&At<Count>>,
        key: &str,
        most: u32,
    ) -> Count {
        let count = at.map_or(Count::Cpus, |at| *at.get());
        if let (Some(at), Count::Fixed(number)) = (at, count)
            && number > most
        {
            let message = format!("write a number from 1 to {most}, or \"{{cpus}}\"");
            self.problems.add(at.span(), key, message);
        }
        count
    }
}
