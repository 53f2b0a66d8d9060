//! One time axis per run, from stamps that may hold an uptime, a date, both or none.
//!
//! The axis is the uptime where the first stamp has one, else the time since the first stamp. Two kinds of damage are
//! known: dates that are set back while the JVM runs, and a broken digit that throws one stamp far ahead.

use crate::event::Stamp;

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A stamp this far ahead of the last one may be damaged. A guess: a service that is quiet for a day loses the time of one
/// event.
const LEAP: i64 = 24 * 3600 * SECOND;

/// Nothing lies further from zero, so that sums of two times do not overflow: 73 years.
const FAR: i64 = i64::MAX / 4;

#[derive(Debug, Default)]
pub(crate) struct Clock {
    axis: Option<Axis>,
    first: i64,
    last: i64,
    /// Far ahead of all others, so not believed until another one says the same.
    suspect: Option<i64>,
    first_wall: Option<i64>,
}

#[derive(Debug)]
enum Axis {
    /// Nanoseconds of uptime; the date of uptime zero, once a stamp had both.
    Uptime { zero: Option<i64> },
    /// Nanoseconds since this date.
    Wall { zero: i64 },
}

impl Clock {
    /// Where on the axis a stamp lies. Nothing where it holds no time of this axis, or one that is not to be believed.
    pub(crate) fn at(&mut self, stamp: Stamp) -> Option<i64> {
        let fresh = self.axis.is_none();
        let at = self.place(stamp)?;
        if fresh {
            (self.first, self.last) = (at, at);
        }
        let leap = LEAP.max(self.last.saturating_sub(self.first));
        if at.saturating_sub(self.last) > leap {
            // Believed once the next stamp is as late.
            let believed = self.suspect.is_some_and(|suspect| at >= suspect - SECOND);
            if !believed {
                self.suspect = Some(at);
                return None;
            }
        }
        self.suspect = None;
        self.first = self.first.min(at);
        self.last = at;
        Some(at)
    }

    /// The date of the first stamp, nanoseconds since 1970.
    pub(crate) fn first_wall(&self) -> Option<i64> {
        self.first_wall
    }

    /// The axis is the JVM's uptime.
    pub(crate) fn is_uptime(&self) -> bool {
        matches!(self.axis, Some(Axis::Uptime { .. }))
    }

    fn place(&mut self, stamp: Stamp) -> Option<i64> {
        let uptime = stamp.uptime_ns.map(length);
        let wall = stamp.wall_ns.map(|ns| ns.clamp(-FAR, FAR));
        self.first_wall = self.first_wall.or(wall);
        let axis = match (&mut self.axis, uptime, wall) {
            (Some(axis), _, _) => axis,
            (none, Some(_), _) => none.insert(Axis::Uptime { zero: None }),
            (none, None, Some(wall)) => none.insert(Axis::Wall { zero: wall }),
            (None, None, None) => return None,
        };
        match axis {
            Axis::Uptime { zero } => {
                if let (None, Some(uptime), Some(wall)) = (&zero, uptime, wall) {
                    *zero = Some(wall.saturating_sub(uptime));
                }
                uptime.or_else(|| Some(wall?.saturating_sub((*zero)?)))
            }
            Axis::Wall { zero } => Some(wall?.saturating_sub(*zero)),
        }
    }
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A duration as it fits on the axis.
pub(crate) fn length(ns: u64) -> i64 {
    i64::try_from(ns).map_or(FAR, |ns| ns.min(FAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(seconds: i64) -> Stamp {
        Stamp {
            uptime_ns: Some((seconds * SECOND) as u64),
            wall_ns: None,
        }
    }

    #[test]
    fn a_date_alone_finds_its_place_once_a_stamp_had_both() {
        let mut clock = Clock::default();
        let both = Stamp {
            uptime_ns: Some(5_000_000_000),
            wall_ns: Some(105_000_000_000),
        };
        let date = Stamp {
            uptime_ns: None,
            wall_ns: Some(107_000_000_000),
        };
        assert_eq!(clock.at(both), Some(5 * SECOND));
        assert_eq!(clock.at(date), Some(7 * SECOND));
        assert_eq!(clock.at(Stamp::default()), None);
    }

    #[test]
    fn dates_count_from_the_first_one() {
        let mut clock = Clock::default();
        let date = |seconds: i64| Stamp {
            uptime_ns: None,
            wall_ns: Some(seconds * SECOND),
        };
        assert_eq!(clock.at(date(1000)), Some(0));
        assert_eq!(clock.at(date(1003)), Some(3 * SECOND));
        assert_eq!(clock.at(up(4)), None);
        assert!(!clock.is_uptime());
    }

    #[test]
    fn one_stamp_far_ahead_is_not_believed_and_two_are() {
        let mut clock = Clock::default();
        let seen: Vec<_> = [10, 11, 90_000, 12, 90_000, 90_001]
            .into_iter()
            .map(|s| clock.at(up(s)).map(|at| at / SECOND))
            .collect();
        assert_eq!(
            seen,
            [Some(10), Some(11), None, Some(12), None, Some(90_001)]
        );
    }
}
