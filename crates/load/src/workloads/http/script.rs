//! What users do: which requests each sends, in which order, after which pauses, and when it ends.
//!
//! Loops are jumps in a list of steps, so that loops within loops need no stack: a user has a place in the list and a number for each
//! loop. A list of requests is the simplest script, one loop without end.

use std::time::Duration;

use crate::template::Random;

/// Users who do the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// What the plan calls it.
    pub name: String,
    /// How many.
    pub users: usize,
    /// When the first one begins.
    pub delay: Duration,
    /// The time over which they begin, one after the other at equal distances.
    pub ramp: Duration,
    /// No request is sent later than this after `delay`.
    pub length: Option<Duration>,
    /// What each does.
    pub steps: Vec<Step>,
}

/// A step of a user.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Sends the request of this place in the list.
    Send(usize),
    /// Waits, for all of these together.
    Wait(Vec<Pause>),
    /// Takes the next row of a table.
    Row(Row),
    /// Forgets its cookies.
    Forget,
    /// The end of a loop: goes on at `to` until the loop has passed so often; without end where `times` is absent.
    Again {
        /// Place in the list of steps.
        to: usize,
        /// How often the loop passes, at least once.
        times: Option<u64>,
        /// Number of the loop.
        number: usize,
    },
    /// Goes on at `to`, unless loop `number` is in its first pass.
    Once {
        /// Place in the list of steps.
        to: usize,
        /// Number of the loop.
        number: usize,
    },
}

/// How rows of a table are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The table.
    pub table: usize,
    /// Who takes rows in turn.
    pub dealt: Dealing,
    /// A user for whom there is none left ends; otherwise rows begin again.
    pub ends: bool,
}

/// Who takes rows in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// All users that share the counter of this number.
    Shared(usize),
    /// Each user begins with the first row; the number of its counter.
    Own(usize),
}

/// A pause before a request, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pause {
    /// The same each time.
    Fixed(u64),
    /// Any of these equally often: the least and how much longer it may be.
    Uniform(u64, u64),
    /// Normal: mean and standard deviation; negative ones as if positive.
    Normal(f64, f64),
    /// The first, and as many milliseconds as a Poisson law of mean `.1` gives.
    Poisson(u64, f64),
    /// Until it is this long after the one before.
    Paced {
        /// Between two requests.
        every: f64,
        /// Which one before.
        by: Pace,
        /// Number of the pause.
        number: usize,
    },
}

/// Which requests a pace is kept between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Those of each user.
    User,
    /// Those of each user, at a pace that is divided by the number of all users who have begun and not ended.
    AllUsers,
    /// The same, of its group.
    Group,
    /// Those of all users.
    Shared,
    /// Those of all users of its group.
    SharedGroup,
}

impl Group {
    /// When its user of this number begins, counted from the start of the load.
    pub(super) fn begins(&self, number: usize) -> Duration {
        let part = number as f64 / self.users.max(1) as f64;
        self.delay.saturating_add(self.ramp.mul_f64(part))
    }

    /// Its users come to an end by themselves.
    pub fn ends(&self) -> bool {
        // A table that is at its end ends a loop that takes a row in each pass, as its first steps do.
        let runs_out = |to: usize| {
            let rows = self.steps[to..].iter();
            let mut rows = rows.take_while(|step| matches!(step, Step::Row(_) | Step::Forget));
            rows.any(|step| matches!(step, Step::Row(row) if row.ends))
        };
        let is_endless = |step: &Step| match step {
            Step::Again { to, times, .. } => times.is_none() && !runs_out(*to),
            _ => false,
        };
        self.length.is_some() || !self.steps.iter().any(is_endless)
    }

    /// How many loops, pauses that keep a pace, and counters of rows of its own a user needs.
    pub(super) fn room(&self) -> (usize, usize, usize) {
        let (mut loops, mut paces, mut rows) = (0, 0, 0);
        for step in &self.steps {
            match step {
                Step::Again { number, .. } | Step::Once { number, .. } => {
                    loops = loops.max(number + 1);
                }
                Step::Row(Row {
                    dealt: Dealing::Own(number),
                    ..
                }) => rows = rows.max(number + 1),
                Step::Wait(pauses) => {
                    for pause in pauses {
                        if let Pause::Paced { number, .. } = pause {
                            paces = paces.max(number + 1);
                        }
                    }
                }
                Step::Send(_) | Step::Row(_) | Step::Forget => {}
            }
        }
        (loops, paces, rows)
    }
}

impl Pause {
    /// How long it is this time, where chance decides, or always; nothing where others decide.
    pub(super) fn drawn(self, random: &mut Random) -> u64 {
        match self {
            Self::Fixed(ns) => ns,
            Self::Uniform(least, more) => least.saturating_add(random.below(u128::from(more) + 1)),
            Self::Normal(mean, deviation) => random.normal().mul_add(deviation, mean).abs() as u64,
            Self::Poisson(least, mean_ms) => {
                least.saturating_add((poisson(mean_ms, random) * 1e6) as u64)
            }
            Self::Paced { .. } => 0,
        }
    }
}

/// A number of a Poisson law. By Knuth (The Art of Computer Programming 2, 3.4.1) for small means; the normal law, which is within a
/// hundredth of its deviation there, for others.
fn poisson(mean: f64, random: &mut Random) -> f64 {
    const SMALL: f64 = 100.0;
    if mean > SMALL {
        return random.normal().mul_add(mean.sqrt(), mean).round().max(0.0);
    }
    let (limit, mut product, mut number) = ((-mean).exp(), random.unit(), 0.0);
    while product > limit {
        product *= random.unit();
        number += 1.0;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(pause: Pause) -> (f64, f64) {
        let mut random = Random::new(3, 1);
        let drawn: Vec<f64> = (0..20_000)
            .map(|_| pause.drawn(&mut random) as f64 / 1e6)
            .collect();
        let number = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / number;
        let squares = drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        (mean, (squares / number).sqrt())
    }

    #[test]
    fn pauses_follow_their_laws() {
        const MS: u64 = 1_000_000;
        for (pause, mean, deviation) in [
            (Pause::Fixed(7 * MS), 7.0, 0.0),
            (Pause::Uniform(10 * MS, 12 * MS), 16.0, 12.0 / 12f64.sqrt()),
            (Pause::Normal(300e6, 20e6), 300.0, 20.0),
            // Half of a normal law.
            (Pause::Normal(0.0, 100e6), 79.79, 60.28),
            (Pause::Poisson(5 * MS, 9.0), 14.0, 3.0),
            (Pause::Poisson(0, 400.0), 400.0, 20.0),
        ] {
            let (m, d) = mean_and_deviation(pause);
            // Five standard errors of 20 000 draws.
            let error = 5.0 * deviation / 20_000f64.sqrt();
            assert!((m - mean).abs() <= error + 1e-3, "{pause:?}: mean {m}");
            assert!(
                (d - deviation).abs() <= 2.0 * error + 1e-3,
                "{pause:?}: {d}"
            );
        }
    }

    #[test]
    fn users_begin_at_equal_distances_over_the_ramp() {
        let group = Group {
            users: 4,
            delay: Duration::from_secs(1),
            ramp: Duration::from_secs(2),
            ..Group::default()
        };
        let begins = [0, 1, 3].map(|number| group.begins(number).as_millis());
        assert_eq!(begins, [1000, 1500, 2500]);
    }
}
