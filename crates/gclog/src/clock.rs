//! The uptimes of one writer: whether another JVM writes from here on, or two JVMs write by turns.

/// Says by the uptime that another JVM writes.
///
/// Threads print their stamps a little out of order, and a damaged digit can throw one far ahead. So the uptime must
/// fall by more than [`Clock::DISORDER_NS`] below both of the two before it. Right after the header of a file it is enough
/// that it falls to less than half of the highest: JDK 8 prints a header into every rotated file, where the uptime goes on.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The last two, the later first.
    last_ns: [u64; 2],
    /// Since the JVM started, as far as the log tells.
    highest_ns: u64,
    after_header: bool,
    alternation: Alternation,
    /// Two JVMs have written by turns.
    pub(crate) by_turns: bool,
}

/// Says by the uptime that two JVMs write into one file by turns: again and again it falls to where it had been left below, and
/// jumps to where it had been left above, and both go on at the same speed. No JVM that starts anew does so.
#[derive(Clone, Copy, Debug, Default)]
struct Alternation {
    low_ns: u64,
    high_ns: u64,
    /// Both, at the first of these falls.
    began_ns: [u64; 2],
    falls: u32,
}

impl Alternation {
    /// So many falls, in so long a time, do not come of damaged stamps; guesses.
    const SURE: u32 = 8;
    const LONG_NS: u64 = 10_000_000_000;

    /// Takes note of an uptime and the one before it; true where it is sure. Before the first fall nothing else is of use.
    #[cold]
    fn are_seen(&mut self, uptime_ns: u64, last_ns: u64) -> bool {
        let falls = |to: u64, from: u64| to.saturating_add(Clock::DISORDER_NS) < from;
        let [low, high] = self.began_ns;
        if !falls(uptime_ns, last_ns) {
            if falls(uptime_ns, self.high_ns) {
                // One that goes on from below to above is one JVM, which has written of the past.
                if self.high_ns - uptime_ns < high.saturating_sub(low) / 2 {
                    self.falls = 0;
                }
                self.low_ns = uptime_ns;
            }
            return false;
        }
        if falls(uptime_ns, self.low_ns) || falls(last_ns, self.high_ns) {
            self.falls = 0;
        }
        if self.falls == 0 {
            self.began_ns = [uptime_ns, last_ns];
        }
        self.falls += 1;
        (self.low_ns, self.high_ns) = (uptime_ns, last_ns);
        let [low, high] = self.began_ns;
        let (low, high) = (uptime_ns.saturating_sub(low), last_ns.saturating_sub(high));
        self.falls >= Self::SURE && low >= Self::LONG_NS && low.abs_diff(high) < low / 4
    }
}

impl Clock {
    /// A thread that waits for the log's lock may be late by this much; a guess, far above what the corpus shows.
    pub(crate) const DISORDER_NS: u64 = 1_000_000_000;

    /// The last uptime that was read; 0 if none was.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns[0]
    }

    /// A header was read, as a JVM prints it when it starts.
    pub(crate) fn header(&mut self) {
        self.after_header = true;
    }

    /// Another JVM writes, at this uptime.
    pub(crate) fn restart(&mut self, uptime_ns: Option<u64>) {
        let uptime_ns = uptime_ns.unwrap_or(0);
        *self = Self {
            last_ns: [uptime_ns; 2],
            highest_ns: uptime_ns,
            after_header: false,
            ..*self
        };
    }

    /// Records an uptime. True if another JVM writes from here on: the caller then emits open events, and
    /// [`crate::Event::Restart`] after them.
    pub(crate) fn restarted(&mut self, uptime_ns: u64) -> bool {
        if uptime_ns < self.last_ns[0] || self.alternation.falls > 0 {
            self.by_turns |= self.alternation.are_seen(uptime_ns, self.last_ns[0]);
        }
        let before = self.last_ns[0].min(self.last_ns[1]);
        let after_header = std::mem::take(&mut self.after_header);
        let restarted = uptime_ns.saturating_add(Self::DISORDER_NS) < before
            || after_header && uptime_ns < self.highest_ns / 2;
        if restarted {
            self.restart(Some(uptime_ns));
        } else {
            self.last_ns = [uptime_ns, self.last_ns[0]];
            self.highest_ns = self.highest_ns.max(uptime_ns);
        }
        restarted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_fall_of_the_uptime_is_a_restart() {
        let mut clock = Clock::default();
        for (uptime, expected) in [(5, false), (6, false), (1, true), (2, false)] {
            assert_eq!(clock.restarted(uptime * SECOND), expected);
        }
    }

    #[test]
    fn disorder_and_one_damaged_stamp_are_none() {
        let mut clock = Clock::default();
        for tenths in [50, 60, 55, 61, 9000, 62, 63] {
            assert!(!clock.restarted(tenths * SECOND / 10));
        }
    }

    #[test]
    fn a_header_alone_is_no_restart_and_a_fall_by_half_after_it_is() {
        let mut clock = Clock::default();
        assert!(!clock.restarted(SECOND * 6 / 10));
        clock.header();
        assert!(!clock.restarted(SECOND * 59 / 100));
        clock.header();
        assert!(clock.restarted(SECOND / 10));
        assert!(!clock.restarted(SECOND * 2 / 10));
    }
}
