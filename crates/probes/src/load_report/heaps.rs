//! Latency clusters caused by delayed acknowledgements.
//!
//! Rows of a percentile table show how many requests took no longer than a value; between two rows the requests are
//! assumed to be spread evenly. A range counts as a cluster only if it is denser than both neighbouring ranges, so a
//! broad distribution is none, and only the excess over the denser neighbour counts.

use rungwise_model::evidence::Absence;

/// Ranges of the delay of an acknowledgement, milliseconds.
///
/// Linux delays it by 40 ms (`TCP_DELACK_MIN`, include/net/tcp.h), Windows and BSD by up to 200 ms. A timer of Linux fires
/// up to one tick later, and at 100 ticks a second that is 50 ms; at 250 most of 60 requests took 44 ms and on a busy
/// machine some 48 and 52 (6.18, 2 CPUs, 2026-11-22). Before 4.8 it fired up to a tick early.
const PLACES: [(f64, f64); 2] = [(38.0, 52.0), (200.0, 210.0)];

/// A cluster is this much denser than the denser of its neighbours, each half as wide as itself. Own guess: a bell curve on top of
/// the first place passes with a standard deviation below 8 ms.
const DENSER: f64 = 2.0;

/// Share that the rows may hide while still excluding a cluster: the threshold of `tcp-nagle-40ms`.
const HIDDEN: f64 = 0.02;

/// The share of requests in both clusters, and the rows that show it.
///
/// Absent if there is no visible cluster and the rows are too far apart to exclude one.
pub(super) fn share(rows: &[(f64, u64)]) -> Result<(f64, String), Absence> {
    let table = Table::of(rows)?;
    let heaps = PLACES.map(|place| (table.heap(place), place));
    let (_, place) =
        heaps.into_iter().fold(
            (-1.0, PLACES[0]),
            |most, heap| if heap.0 > most.0 { heap } else { most },
        );
    let share: f64 = heaps.iter().map(|(share, _)| share).sum();
    if share > HIDDEN {
        return Ok((share, table.around(place)));
    }
    for place in PLACES {
        let hidden = table.hidden(place);
        if hidden > HIDDEN {
            let (from, to) = place;
            return Err(Absence::because(format!(
                "{}, but the rows are too coarse to show how many requests took {from} to {to} ms",
                table.around(place)
            ))
            .remedy("print more rows per half distance, for example HistogramLogProcessor -percentilesOutputTicksPerHalf 50"));
        }
    }
    Ok((share, table.around(place)))
}

/// Rows in rising order that count something.
struct Table<'a> {
    rows: &'a [(f64, u64)],
    total: f64,
}

impl<'a> Table<'a> {
    fn of(rows: &'a [(f64, u64)]) -> Result<Self, Absence> {
        let rises = rows
            .windows(2)
            .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
        match rows.last() {
            Some((_, total)) if rises && *total > 0 => Ok(Self {
                rows,
                total: *total as f64,
            }),
            _ => Err(Absence::because(
                "the latencies of the load report are damaged: they do not increase",
            )
            .remedy("measure again")),
        }
    }

    /// Requests that took at most `ms`.
    fn within(&self, ms: f64) -> f64 {
        let next = self.rows.partition_point(|(value, _)| *value <= ms);
        let before = next.checked_sub(1).map(|last| self.rows[last]);
        match (before, self.rows.get(next)) {
            // The first row is the fastest request.
            (None, _) => 0.0,
            (Some((_, count)), None) => count as f64,
            (Some((from, below)), Some(&(to, above))) => {
                below as f64 + (above - below) as f64 * (ms - from) / (to - from)
            }
        }
    }

    /// The share that took longer than `from` and at most `to`.
    fn share(&self, from: f64, to: f64) -> f64 {
        (self.within(to) - self.within(from)) / self.total
    }

    /// The share in the cluster at this range, minus the level of its denser neighbour; 0 if there is no cluster.
    fn heap(&self, (from, to): (f64, f64)) -> f64 {
        let side = (to - from) / 2.0;
        let sides = [self.share(from - side, from), self.share(to, to + side)];
        let beside = 2.0 * f64::max(sides[0], sides[1]);
        let here = self.share(from, to);
        if here > DENSER * beside {
            here - beside
        } else {
            0.0
        }
    }

    /// The share between rows that may lie inside or outside the range: rows further apart than the range with its neighbours.
    fn hidden(&self, (from, to): (f64, f64)) -> f64 {
        let between = self.rows.windows(2).filter(|pair| {
            let (above, below) = (pair[1].0, pair[0].0);
            above > from && below < to && above - below > 2.0 * (to - from)
        });
        let requests: u64 = between.map(|pair| pair[1].1 - pair[0].1).sum();
        requests as f64 / self.total
    }

    /// The last row before the range and the first after it.
    fn around(&self, (from, to): (f64, f64)) -> String {
        let before = self.rows.partition_point(|(value, _)| *value <= from);
        let behind = self.rows.partition_point(|(value, _)| *value <= to);
        let before = before.checked_sub(1).map(|last| self.rows[last]);
        let behind = self.rows.get(behind).or(self.rows.last());
        let rows = before.iter().chain(behind);
        let mut parts: Vec<_> = rows
            .map(|(value, count)| format!("{count} within {value:.3} ms"))
            .collect();
        parts.dedup();
        format!("of {} requests {}", self.total, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that a printer makes of these latencies: five for each half of what is left.
    fn rows(latencies: impl IntoIterator<Item = f64>) -> Vec<(f64, u64)> {
        let mut sorted: Vec<f64> = latencies.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let total = sorted.len();
        let mut rows = vec![(sorted[0], 1)];
        let (mut percentile, mut half) = (0.0, 0.5);
        while percentile + half / 5.0 < 1.0 - 1.0 / total as f64 {
            for _ in 0..5 {
                percentile += half / 5.0;
                let count = (percentile * total as f64).ceil().min(total as f64);
                rows.push((sorted[count as usize - 1], count as u64));
            }
            half /= 2.0;
        }
        rows.push((sorted[total - 1], total as u64));
        rows
    }

    /// `count` latencies spread evenly between two.
    fn even(count: u32, from: f64, to: f64) -> impl Iterator<Item = f64> {
        let step = (to - from) / f64::from(count);
        (0..count).map(move |number| from + step * (f64::from(number) + 0.5))
    }

    #[test]
    fn a_heap_is_found_wherever_its_share_lies() {
        for (fast, stalled, slow) in [(700, 300, 0), (970, 30, 0), (0, 1000, 0), (500, 450, 50)] {
            let all = even(fast, 0.1, 1.0)
                .chain(even(stalled, 43.0, 44.5))
                .chain(even(slow, 90.0, 400.0));
            let (share, line) = share(&rows(all)).unwrap();
            let truth = f64::from(stalled) / 1000.0;
            assert!(
                (0.7 * truth..=truth + 1e-9).contains(&share),
                "{share} of {truth}"
            );
            assert!(line.starts_with("of 1000 requests "), "{line}");
        }
    }

    #[test]
    fn a_heap_at_200_ms_is_found_as_well() {
        let all = even(900, 0.1, 1.0).chain(even(100, 200.5, 204.0));
        let (share, line) = share(&rows(all)).unwrap();
        assert!((0.08..=0.1).contains(&share), "{share}");
        assert!(line.ends_with("1000 within 203.982 ms"), "{line}");
    }

    #[test]
    fn what_is_broad_and_passes_through_is_no_heap() {
        // Flat, falling, and a hill whose top is there.
        let falling = (1..1000).map(|number| -20.0 * (f64::from(number) / 1000.0).ln());
        let hill = (1..1000).map(|number| {
            let place = f64::from(number) / 1000.0;
            45.0 + 10.0 * (place / (1.0 - place)).ln()
        });
        for all in [
            rows(even(1000, 10.0, 100.0)),
            rows(even(1000, 0.0, 50.0)),
            rows(falling),
            rows(hill.filter(|ms| *ms > 0.0)),
        ] {
            assert!(share(&all).unwrap().0 < 1e-9, "{all:?}");
        }
    }

    #[test]
    fn a_heap_beside_the_place_is_another_ones() {
        for (from, to) in [(30.0, 37.9), (52.1, 60.0), (190.0, 199.9), (211.0, 215.0)] {
            let all = even(950, 0.1, 1.0).chain(even(50, from, to));
            assert!(share(&rows(all)).unwrap().0 < 0.001, "{from}");
        }
    }

    #[test]
    fn rows_too_far_apart_hide_a_heap() {
        // Three of a hundred may be anywhere between 1 and 100 ms.
        let why = share(&[(0.1, 1), (1.0, 80), (100.0, 83), (101.0, 100)]).unwrap_err();
        assert!(
            why.reason
                .contains("80 within 1.000 ms, 83 within 100.000 ms"),
            "{}",
            why.reason
        );
        assert!(why.remedy.contains("TicksPerHalf"), "{}", why.remedy);
        let two = share(&[(0.1, 1), (1.0, 98), (100.0, 100)]).unwrap();
        assert!(two.0 < 1e-9);
        let fast = share(&[(0.1, 1), (1.0, 100)]).unwrap();
        assert_eq!(fast.1, "of 100 requests 100 within 1.000 ms");
    }

    #[test]
    fn rows_that_fall_are_damaged() {
        for rows in [
            &[][..],
            &[(1.0, 0)],
            &[(2.0, 1), (1.0, 2)],
            &[(1.0, 2), (2.0, 1)],
        ] {
            assert!(
                share(rows).unwrap_err().reason.contains("damaged"),
                "{rows:?}"
            );
        }
    }
}
