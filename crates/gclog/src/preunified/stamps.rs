//! Stamps in front of things: `2016-08-27T17:26:00.108+0800: 261980.463: `, one of them, or none.
//!
//! Threads print their stamps in pieces, so that two of them may stand side by side and the thing of the second comes
//! a line later: `T1T2: : U1: Application time: ...` and then `U2: [CMS-concurrent-sweep-start]`. Stamps are kept in
//! order until something takes them.

use super::cursor::Cursor;
use crate::date;
use crate::event::Stamp;

/// Stamps that were read and not yet taken.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    wall: Waiting<i64>,
    uptime: Waiting<u64>,
    /// Ends of lines that the oldest has seen.
    lines: u8,
}

/// The next one is the first of at most four.
#[derive(Debug, Default)]
struct Waiting<T> {
    values: [T; 4],
    count: usize,
}

impl<T: Copy + Default> Waiting<T> {
    fn push(&mut self, value: T) {
        if self.count == self.values.len() {
            self.pop();
        }
        self.values[self.count] = value;
        self.count += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let first = *self.values[..self.count].first()?;
        self.values.copy_within(1.., 0);
        self.count -= 1;
        Some(first)
    }
}

/// Lines that a stamp may wait for its thing.
const PATIENCE: u8 = 2;

impl Stamps {
    /// The oldest of each kind.
    pub(super) fn take(&mut self) -> Stamp {
        Stamp {
            wall_ns: self.wall.pop(),
            uptime_ns: self.uptime.pop(),
        }
    }

    /// Nothing is known of what stands here: forget.
    pub(super) fn clear(&mut self) {
        self.wall.count = 0;
        self.uptime.count = 0;
        self.lines = 0;
    }

    /// A stamp whose thing did not come in a line or two has lost it.
    pub(super) fn line_ends(&mut self) {
        if self.wall.count == 0 && self.uptime.count == 0 {
            self.lines = 0;
        } else {
            self.lines += 1;
            if self.lines > PATIENCE {
                self.clear();
            }
        }
    }

    /// Reads a date if one stands here.
    pub(super) fn date(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Some((wall, rest)) = date::wall(cursor.rest()) else {
            return false;
        };
        cursor.skip(cursor.rest().len() - rest.len());
        self.wall.push(wall);
        true
    }

    /// Keeps seconds since the start.
    pub(super) fn uptime(&mut self, uptime_ns: u64) {
        self.uptime.push(uptime_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_printed_into_each_other_are_two() {
        let mut stamps = Stamps::default();
        let mut text = Cursor::new(b"2016-08-27T17:26:24.338+08002016-08-27T17:26:24.339+0800: : ");
        assert!(stamps.date(&mut text) && stamps.date(&mut text));
        assert_eq!(text.rest(), b": : ");
        let first = stamps.take().wall_ns;
        assert_eq!(first, Some(1_472_289_984_338_000_000));
        let second = stamps.take().wall_ns;
        assert_eq!(second, Some(1_472_289_984_339_000_000));
    }

    #[test]
    fn stamps_are_taken_in_the_order_they_were_printed() {
        let mut stamps = Stamps::default();
        stamps.uptime(132);
        stamps.uptime(133);
        assert_eq!(stamps.take().uptime_ns, Some(132));
        assert_eq!(stamps.take().uptime_ns, Some(133));
        assert_eq!(stamps.take(), Stamp::default());
    }

    #[test]
    fn of_more_than_four_the_oldest_are_forgotten() {
        let mut stamps = Stamps::default();
        for uptime in 1..=6 {
            stamps.uptime(uptime);
        }
        assert_eq!(stamps.take().uptime_ns, Some(3));
    }

    #[test]
    fn a_stamp_waits_for_two_lines_and_is_then_forgotten() {
        let mut stamps = Stamps::default();
        stamps.uptime(1);
        stamps.line_ends();
        stamps.line_ends();
        assert_eq!(stamps.uptime.count, 1);
        stamps.line_ends();
        assert_eq!(stamps.take(), Stamp::default());
    }
}
