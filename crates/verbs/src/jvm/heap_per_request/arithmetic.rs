//! From bytes of windows to bytes per request.

use rungwise_model::capacity::Estimate;
use rungwise_model::heap_per_request::Block;

/// A block that costs more or less than the one before by more than this share shows that costs still change.
const CHANGES: f64 = 0.01;
/// Blocks that the answer is from.
pub(super) const MEASURED: usize = 3;
/// Share by which two exact methods may differ: reading takes time in which requests' threads finish.
pub(super) const AGREE: f64 = 0.01;

/// The last three blocks no longer change.
pub(super) fn settled(blocks: &[Block]) -> bool {
    let Some(last) = blocks.len().checked_sub(MEASURED) else {
        return false;
    };
    blocks[last..].windows(2).all(|pair| {
        let (before, after) = (pair[0].bytes_per_request, pair[1].bytes_per_request);
        // A change within the rounding of both is none that could be seen.
        let (least, most) = (
            (1.0 - CHANGES) * before.point,
            (1.0 + CHANGES) * before.point,
        );
        let falls = after.point < least && after.high < before.low;
        let rises = after.point > most && after.low > before.high;
        !falls && !rises
    })
}

/// The last of them cost more than the first of them.
pub(super) fn rises(blocks: &[Block]) -> bool {
    let last = &blocks[blocks.len().saturating_sub(MEASURED)..];
    let ends = last.first().zip(last.last());
    ends.is_some_and(|(first, last)| last.bytes_per_request.point > first.bytes_per_request.point)
}

/// Bytes of a request: what a window with many allocated, less what one with the first of each connection did, less the background of
/// both. The first are (bytes, answered, failed, seconds) and (bytes, answered, seconds). `noise` is how much
/// more or less than its mean background may be, bytes.
pub(super) fn per_request(
    (main, answered, failed, seconds): (Estimate, u64, u64, f64),
    (first, first_answered, first_seconds): (Estimate, u64, f64),
    background: Estimate,
    noise: f64,
) -> Estimate {
    let background = background.scaled((seconds - first_seconds).max(0.0));
    let own = signed(main, &[first, background, varies(noise)]);
    over_requests(own, answered.saturating_sub(first_answered), failed)
}

/// The same over blocks, of which each opened its connections anew; `noise` is of one second.
pub(super) fn of_blocks<'a>(
    blocks: impl Iterator<Item = &'a Block>,
    background: Estimate,
    noise: f64,
    first: Estimate,
    first_answered: u64,
) -> Option<Estimate> {
    let figures: Vec<(Estimate, u64)> = blocks
        .map(|block| {
            let bytes = block.bytes_per_request.scaled(block.requests as f64);
            let noise = varies(noise * block.seconds.sqrt());
            let own = signed(bytes, &[first, background.scaled(block.seconds), noise]);
            let requests = block.requests.saturating_sub(first_answered);
            (over_requests(own, requests, 0), requests)
        })
        .collect();
    let all: u64 = figures.iter().map(|(_, requests)| requests).sum();
    let mean = figures
        .iter()
        .map(|(figure, requests)| figure.point * *requests as f64 / all.max(1) as f64)
        .sum();
    // Whatever one of them allows: blocks that differ widen it.
    let union = figures
        .iter()
        .map(|(figure, _)| *figure)
        .reduce(Estimate::or)?;
    Some(Estimate {
        point: mean,
        ..union
    })
}

/// Nothing, more or less so much.
fn varies(by: f64) -> Estimate {
    Estimate {
        point: 0.0,
        low: -by,
        high: by,
    }
}

/// The difference, which noise may make negative.
fn signed(bytes: Estimate, others: &[Estimate]) -> Estimate {
    others.iter().fold(bytes, |rest, other| Estimate {
        point: rest.point - other.point,
        low: rest.low - other.high,
        high: rest.high - other.low,
    })
}

/// Shared among the requests. One that failed has cost something between nothing and as much as another.
pub(super) fn over_requests(bytes: Estimate, answered: u64, failed: u64) -> Estimate {
    let answered = answered.max(1) as f64;
    Estimate {
        point: (bytes.point / answered).max(0.0),
        low: (bytes.low / (answered + failed as f64)).max(0.0),
        high: (bytes.high / answered).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: f64) -> Block {
        Block {
            requests: 1000,
            seconds: 1.0,
            bytes_per_request: Estimate::exact(bytes),
            measured: true,
        }
    }

    #[test]
    fn blocks_have_settled_when_three_in_a_row_do_not_change_by_a_hundredth() {
        let of = |bytes: &[f64]| bytes.iter().copied().map(block).collect::<Vec<_>>();
        assert!(!settled(&of(&[100.0, 100.0])));
        assert!(!settled(&of(&[110.0, 100.0, 98.5])));
        assert!(settled(&of(&[110.0, 100.0, 99.5, 99.0])));
        assert!(settled(&of(&[90.0, 100.0, 100.5, 101.0])));
        // Something grows with each request: a cache, a session, a list.
        assert!(!settled(&of(&[90.0, 95.0, 100.0])));
        assert!(!settled(&of(&[100.0, 100.0, 101.5])));
        let mut coarse = of(&[100.0, 100.0, 97.0]);
        coarse[2].bytes_per_request.high = 101.0;
        assert!(settled(&coarse));
        let mut coarse = of(&[100.0, 100.0, 103.0]);
        coarse[2].bytes_per_request.low = 99.0;
        assert!(settled(&coarse));
    }

    #[test]
    fn connections_and_background_are_no_part_of_a_request() {
        let background = Estimate::exact(500.0);
        let main = Estimate::exact(1000.0 * 64.0 + 50.0 * 300.0 + 500.0 * 3.0);
        let first = Estimate::exact(50.0 * 64.0 + 50.0 * 300.0 + 500.0 * 1.0);
        let figure = per_request((main, 1000, 0, 3.0), (first, 50, 1.0), background, 0.0);
        assert_eq!(figure, Estimate::exact(64.0));
        let figure = per_request((main, 900, 100, 3.0), (first, 50, 1.0), background, 0.0);
        assert!(figure.low <= 64.0 && figure.high > 64.0, "{figure:?}");
    }

    #[test]
    fn blocks_that_differ_widen_the_answer() {
        let blocks = [block(100.0), block(101.0), block(99.0)];
        let none = Estimate::default();
        let answer = of_blocks(blocks.iter(), none, 0.0, none, 0).unwrap();
        assert_eq!(
            (answer.low, answer.point, answer.high),
            (99.0, 100.0, 101.0)
        );
        assert_eq!(of_blocks([].iter(), none, 0.0, none, 0), None);
    }
}
