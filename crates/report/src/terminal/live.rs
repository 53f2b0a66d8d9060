//! The table that grows while a ladder is climbed, and the line under it that is rewritten.
//!
//! Pure strings: who prints them decides whether there is a terminal at all.

use rungwise_model::tune::Rung;

use super::text::{Paint, clean, pad, shorten, width_of};
use crate::numbers::{self, ABSENT};
use crate::tune::outcome;

/// The live table: a header, a row per finished rung.
#[derive(Clone, Debug)]
pub struct Live {
    width: usize,
    rows: usize,
}

/// What the rung that runs now has shown so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Title of the rung.
    pub rung: String,
    /// The pair that runs now, from 1.
    pub pair: u32,
    /// Pairs of this look.
    pub pairs: u32,
    /// Centre over the pairs so far of the ratio B to A.
    pub ratio: Option<f64>,
    /// Busy CPU of others in the last window, a fraction.
    pub foreign: Option<f64>,
    /// The run waits because the machine is not quiet enough.
    pub waiting: bool,
}

/// Widths of the columns that do not stretch, with the gap before each.
const RATE: usize = 11;
const CHANGE: usize = 25;
/// Without the interval: for terminals narrower than [`INTERVAL_FROM`].
const POINT: usize = 9;
const INTERVAL_FROM: usize = 70;
const COST: usize = 10;
const TAIL: usize = 10;
const PAIRS: usize = 8;
const OUTCOME: usize = 16;
const NUMBER: usize = 2;

impl Default for Live {
    fn default() -> Self {
        Self {
            width: 100,
            rows: 0,
        }
    }
}

impl Live {
    /// The heading. The width of the terminal holds for the rows that follow.
    pub fn header(&mut self, width: usize) -> String {
        self.width = width.max(40);
        self.line(
            [
                "#",
                "rung",
                "rate",
                "change",
                "CPU per tx",
                "p99",
                "pairs",
                "outcome",
            ]
            .map(str::to_owned),
            |text| text,
        )
    }

    /// One finished rung; rows are numbered in the order of the calls, the start is 0.
    pub fn row(&mut self, rung: &Rung, color: bool) -> String {
        let number = self.rows;
        self.rows += 1;
        let mark = outcome(rung.outcome);
        let or_absent = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
        let pairs = rung.delta.or(rung.cpu_delta).map(|d| match d.discarded {
            0 => d.pairs.to_string(),
            n => format!("{}+{n}", d.pairs),
        });
        let title = match &rung.label {
            _ if rung.cost_only => format!("{} (cost only)", rung.title),
            Some(label) => format!("{} ({label})", rung.title),
            None => rung.title.clone(),
        };
        let paint = Paint { color };
        self.line(
            [
                number.to_string(),
                title,
                or_absent(rung.rate_per_s.map(numbers::rate)),
                or_absent(rung.delta.as_ref().map(|delta| {
                    let whole = numbers::delta(delta);
                    if self.width < INTERVAL_FROM || width_of(&whole) >= CHANGE {
                        numbers::change(delta.point)
                    } else {
                        whole
                    }
                })),
                or_absent(rung.cpu_us_per_tx.map(numbers::micros_only)),
                or_absent(rung.latency_us.map(|l| numbers::micros(l.p99))),
                or_absent(pairs),
                format!("{} {}", mark.symbol, mark.word),
            ],
            |text| paint.tone(&text, mark.tone),
        )
    }

    /// One line to be rewritten with a carriage return; as wide as the terminal less one column, so
    /// that it clears what stood there and never wraps.
    pub fn status(&self, progress: &Progress, width: usize) -> String {
        let mut pieces = vec![format!("pair {} of {}", progress.pair, progress.pairs)];
        if let Some(ratio) = progress.ratio {
            pieces.push(format!("{} so far", numbers::change(ratio - 1.0)));
        }
        if let Some(foreign) = progress.foreign {
            pieces.push(format!("foreign CPU {}", numbers::share(foreign)));
        }
        if progress.waiting {
            pieces.push("waiting for quiet".to_owned());
        }
        let room = width.saturating_sub(1);
        let facts = clean(&pieces.join(" · "));
        let number = pad(&self.rows.to_string(), NUMBER, true);
        let title = shorten(
            &clean(&progress.rung),
            room.saturating_sub(width_of(&facts) + NUMBER + 5),
        );
        let text = if title.is_empty() {
            format!("{number}  {facts}")
        } else {
            format!("{number}  {title} · {facts}")
        };
        pad(&shorten(&text, room), room, false)
    }

    /// Columns give way from the least needed: pairs, p99, CPU; the rest is cut at the right.
    fn line(&self, fields: [String; 8], paint: impl Fn(String) -> String) -> String {
        let change_width = if self.width < INTERVAL_FROM {
            POINT
        } else {
            CHANGE
        };
        let fixed = NUMBER + 2 + RATE + change_width + OUTCOME;
        let room = self.width.saturating_sub(fixed);
        let title = room.clamp(8, 22);
        let (mut cost, mut tail, mut pairs) = (false, false, false);
        let mut used = title;
        for (shown, width) in [
            (&mut cost, COST + 2),
            (&mut tail, TAIL),
            (&mut pairs, PAIRS),
        ] {
            if used + width <= room {
                *shown = true;
                used += width;
            }
        }
        let title = (title + room.saturating_sub(used)).min(44);
        let [number, name, rate, change, cpu, p99, count, end] = fields.map(|field| clean(&field));
        let mut line = format!(
            "{}  {}{}{}",
            pad(&number, NUMBER, true),
            pad(&shorten(&name, title), title, false),
            pad(&rate, RATE, true),
            pad(&change, change_width, true)
        );
        for (shown, text, width) in [
            (cost, cpu, COST + 2),
            (tail, p99, TAIL),
            (pairs, count, PAIRS),
        ] {
            if shown {
                line += &pad(&text, width, true);
            }
        }
        line += "  ";
        line += &paint(shorten(&end, OUTCOME - 2));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_never_wraps_and_always_clears() {
        let live = Live::default();
        let progress = Progress {
            rung: "steer by CPU (CBPF) with a very long title that no terminal holds".to_owned(),
            pair: 5,
            pairs: 8,
            ratio: Some(1.262),
            foreign: Some(0.021),
            waiting: true,
        };
        for width in [20, 40, 80, 200] {
            assert_eq!(width_of(&live.status(&progress, width)), width - 1);
        }
        let text = live.status(&progress, 100);
        assert!(
            text.contains("pair 5 of 8 · +26 % so far · foreign CPU 2.1 % · waiting for quiet"),
            "{text}"
        );
    }
}
