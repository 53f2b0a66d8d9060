//! From windows and blocks to the answer, and to what follows from it.

use rungwise_model::capacity::Estimate;
use rungwise_model::heap_per_request::{Check, Collections, Method, MethodKind, Occupied};

use super::arithmetic::{self, AGREE, per_request};
use super::meter::Collector;
use super::windows::PARTS;
use super::{Found, Session, Window, Windows};

/// Of heap figures where threads ended.
const MOST: &str = "buffers of threads that ended are counted whole: at most this much";
/// Width of an interval, as a share of its middle, beyond which bounds are no answer.
const WIDE: f64 = 0.1;
/// An interval of so many bytes is narrow, however small its middle: an object header or a few.
const NEXT_TO_NOTHING: f64 = 64.0;
/// G1 keeps Eden at or above this share of the heap (`G1NewSizePercent`).
const G1_LEAST_YOUNG: f64 = 0.05;

impl Session<'_> {
    /// What the windows say: background, connections, and each method's figure of the same requests.
    pub(super) fn compare(
        &self,
        found: &mut Found,
        windows: &Windows,
        why_none: Option<&str>,
        notes: &mut Vec<String>,
    ) {
        let Windows {
            idle,
            first,
            main,
            noise,
        } = windows;
        let counted = |window: &Window| window.counted.map(|it| it.bytes);
        let filled = |window: &Window| window.filled.map(|it| it.bytes);
        let by = |of: &dyn Fn(&Window) -> Option<Estimate>| {
            let (idle_bytes, first_bytes, main_bytes) = (of(idle)?, of(first)?, of(main)?);
            let background = idle_bytes.scaled(1.0 / idle.sent.seconds.max(1e-3));
            // Grows as the sum of independent parts does.
            let parts = main.sent.seconds * f64::from(PARTS) / idle.sent.seconds.max(1e-3);
            let noise = noise.unwrap_or(idle_bytes.high) * parts.max(1.0).sqrt();
            let figure = per_request(
                (
                    main_bytes,
                    main.sent.answered,
                    main.sent.failed,
                    main.sent.seconds,
                ),
                (first_bytes, first.sent.answered, first.sent.seconds),
                background,
                noise,
            );
            Some((figure, background, first_bytes))
        };
        let counters = by(&counted);
        let has_counters = counters.is_some();
        let heap = by(&filled);
        if let Some((_, background, first_bytes)) = counters.or(heap) {
            found.background = Some(background);
            found.noise =
                noise.unwrap_or(0.0) * f64::from(PARTS).sqrt() / idle.sent.seconds.max(1e-3).sqrt();
            let own = first_bytes.less(background.scaled(first.sent.seconds));
            found.connection =
                (first.sent.answered > 0).then(|| own.scaled(1.0 / first.sent.answered as f64));
        }
        let lost = main.counted.map_or(0, |it| it.lost_threads);
        if let Some((figure, ..)) = counters {
            let because = (lost > 0).then(|| {
                format!("{lost} threads ended, and their counts with them: at least this much")
            });
            found.methods.push(Method {
                kind: MethodKind::ThreadCounters,
                bytes_per_request: Some(figure),
                because,
            });
        }
        let because = match (why_none, heap) {
            (None, None) if self.request.no_collect => Some("--no-collect".to_owned()),
            (None, Some(_)) if lost > 0 => Some(MOST.to_owned()),
            (None, Some((figure, ..))) if has_counters && is_wide(figure) => Some(
                "a coarse check: few requests fit before a collection, for the steps in which this collector fills the heap".to_owned(),
            ),
            (why, _) => why.map(str::to_owned),
        };
        found.methods.push(Method {
            kind: MethodKind::HeapUsed,
            bytes_per_request: heap.map(|(figure, ..)| figure),
            because,
        });
        if let Some(usable) = self.meter.log().filter(|_| main.filled.is_some()) {
            let logged = by(&|window| window.filled?.logged).filter(|_| usable.is_ok());
            let because = match (usable, logged) {
                (Err(why), _) => Some(why.to_owned()),
                (Ok(()), Some(_)) if lost > 0 => Some(MOST.to_owned()),
                (Ok(()), Some((figure, ..))) if is_wide(figure) => Some(
                    "a coarse check: the log has whole MiB and few collections, and requests fill little between them"
                        .to_owned(),
                ),
                (Ok(()), Some(_)) => None,
                (Ok(()), None) => Some("the GC log lacks the heap of the forced collections".to_owned()),
            };
            found.methods.push(Method {
                kind: MethodKind::GcLog,
                bytes_per_request: logged.map(|(figure, ..)| figure),
                because,
            });
        }
        if let Some(filled) = main.filled {
            let answer = heap
                .map(|it| it.0.point)
                .filter(|point| *point > 0.0 && lost == 0);
            let per = filled.occupied / main.sent.answered.max(1) as f64;
            found.unused = filled.unused;
            found.occupied = Some(Occupied {
                bytes_per_request: per,
                bias: counters
                    .map(|it| it.0.point)
                    .filter(|point| *point > 0.0 && lost == 0)
                    .or(answer)
                    .map(|point| per / point - 1.0),
                unused_bytes: filled.unused,
            });
        }
        if lost == 0 && found.lost_threads > 0 {
            notes.push(format!(
                "{} threads ended in the measured blocks and took their counts with them: the answer is from the {} requests of the \
                 window after them.",
                found.lost_threads, main.sent.answered
            ));
        }
        if lost > 0 {
            notes.push(format!(
                "{lost} threads ended in the window of {} requests. Each took what it had allocated out of the thread counters, and left \
                 what it had not used of its buffer as used heap: the truth lies between the two methods. With -XX:-UseTLAB in the JVM \
                 the second one is exact.",
                main.sent.answered
            ));
        }
    }

    /// The answer, or why there is none.
    pub(super) fn judge(&self, found: &mut Found, why_none: Option<String>) {
        let of = |kind| {
            let mut methods = found.methods.iter().filter(|method| method.kind == kind);
            methods.find_map(|method| Some((method.bytes_per_request?, method.because.is_some())))
        };
        let counters = of(MethodKind::ThreadCounters);
        let heap = of(MethodKind::HeapUsed);
        let is_lower = counters.is_some_and(|it| it.1);
        let logged = of(MethodKind::GcLog);
        let apart = disagreement(&[
            ("thread counters", counters),
            ("heap in use", heap),
            ("GC log", logged),
        ]);
        let (answer, because) = match (counters, heap) {
            (Some((least, _)), Some((most, _))) if is_lower => {
                // With no buffers, heap used is exact and not only the most.
                if self.meter.has_no_buffers() {
                    (Some(most), None)
                } else {
                    bounds(least, most)
                }
            }
            (Some((least, true)), None) => {
                let why = format!(
                    "threads end and take their counts with them, so {:.0} bytes is only the least; let heap in use measure it too \
                     (without --no-collect), or run the service with a pool of threads",
                    least.low
                );
                (None, Some(why))
            }
            _ if apart.is_some() => (None, apart),
            // What ended in the blocks is missing there, and nothing ended in the window.
            (Some((by_threads, _)), _) if found.lost_threads > 0 => (Some(by_threads), None),
            (Some((by_threads, _)), _) => {
                let blocks = found.blocks.iter().filter(|block| block.measured);
                let per_connection = found.connection.unwrap_or_default();
                let background = found.background.unwrap_or_default();
                let first = self.request.first();
                let first_bytes = per_connection.scaled(first as f64);
                let answer =
                    arithmetic::of_blocks(blocks, background, found.noise, first_bytes, first);
                // Only what was measured twice is checked: where the blocks say something else, the window does.
                let checked = answer.filter(|answer| heap.is_none() || agree(*answer, by_threads));
                (Some(checked.unwrap_or(by_threads)), None)
            }
            (None, Some((by_heap, _))) => (Some(by_heap), None),
            (None, None) => (
                None,
                Some(why_none.unwrap_or_else(|| "nothing measured".to_owned())),
            ),
        };
        found.answer = answer;
        let blocks = found.blocks.len();
        let wide = answer.filter(|it| is_wide(*it)).map(|it| {
            format!(
                "the interval is {:.0} to {:.0} bytes: too few requests for the steps in which this JVM reports; use more --requests, fewer \
                 --connections, or a larger Eden",
                it.low, it.high
            )
        });
        found.because = because.or(wide).or_else(|| {
            (!found.steady && answer.is_some()).then(|| {
                let rises = arithmetic::rises(&found.blocks);
                let (changes, cause) = if rises {
                    ("rises", "something in the service still grows, such as a cache")
                } else {
                    ("falls", "the JIT compiler has not settled")
                };
                format!(
                    "it still {changes} after {blocks} blocks: {cause}; run the service under load for longer, or allow more --blocks"
                )
            })
        });
    }

    /// What follows at a rate.
    pub(super) fn collections(
        &self,
        rate: f64,
        found: &Found,
        notes: &mut Vec<String>,
    ) -> Option<Collections> {
        let per = found.answer?;
        let background = found.background.unwrap_or_default();
        let allocation = per.scaled(rate).plus(background);
        let has_eden = self.meter.collector.is_some_and(Collector::has_eden);
        let Some(eden) = self.meter.room().filter(|_| has_eden) else {
            notes.push("Young collections are not calculated: this collector has no Eden of a fixed size. Its cycles begin by its own forecast of \
                        the allocation rate above.".to_owned());
            return Some(Collections {
                rate_per_s: rate,
                allocation_bytes_per_s: allocation,
                eden_bytes: None,
                young_per_min: None,
                check: None,
            });
        };
        let sizes = self.eden(eden, found.unused);
        let check = found.young.and_then(|(counted, eden)| {
            let blocks = found.blocks.iter().filter(|block| block.measured);
            let bytes = blocks
                .map(|block| block.bytes_per_request.scaled(block.requests as f64))
                .reduce(Estimate::plus)?;
            let calculated = bytes.over(self.eden(eden, found.unused))?;
            // Eden was partly full at the beginning, and is at the end.
            let calculated = Estimate {
                low: (calculated.low - 1.0).max(0.0),
                high: calculated.high + 1.0,
                ..calculated
            };
            Some(Check {
                calculated,
                counted,
            })
        });
        Some(Collections {
            rate_per_s: rate,
            allocation_bytes_per_s: allocation,
            eden_bytes: Some(sizes),
            young_per_min: allocation.scaled(60.0).over(sizes),
            check,
        })
    }

    /// How much of Eden is used until it is collected.
    fn eden(&self, size: f64, unused: Option<f64>) -> Estimate {
        // What is handed out and unused at a collection makes it smaller.
        let mut eden = Estimate {
            point: size,
            low: (size - unused.unwrap_or(0.0)).max(size / 2.0),
            high: size,
        };
        if self.meter.collector == Some(Collector::G1) {
            let least = self.meter.max_heap.map(|heap| heap * G1_LEAST_YOUNG);
            eden.low = eden.low.min(least.unwrap_or(size));
            eden.high = eden.high.max(self.meter.max_young.unwrap_or(size));
        }
        eden
    }
}

/// Bounds that are no answer. Of next to nothing, any are good enough.
fn is_wide(bytes: Estimate) -> bool {
    bytes.high - bytes.low > f64::max(WIDE * bytes.point, NEXT_TO_NOTHING)
}

/// Bounds from both sides, where they are close enough.
fn bounds(least: Estimate, most: Estimate) -> (Option<Estimate>, Option<String>) {
    let (low, high) = (least.low, most.high.max(least.low));
    let answer = Estimate {
        point: f64::midpoint(low, high),
        low,
        high,
    };
    let is_wide = is_wide(answer);
    let why = is_wide.then(|| {
        format!(
            "threads that end leave bounds only, {low:.0} to {high:.0} bytes; start the JVM with -XX:-UseTLAB for this measurement, or run \
             the service with a pool of threads"
        )
    });
    ((!is_wide).then_some(answer), why)
}

/// Which two of the methods contradict each other.
fn disagreement(methods: &[(&str, Option<(Estimate, bool)>)]) -> Option<String> {
    let figures = methods
        .iter()
        .filter_map(|(name, found)| Some((name, found.as_ref()?.0)));
    let figures: Vec<_> = figures.collect();
    let pairs = figures
        .iter()
        .enumerate()
        .flat_map(|(at, one)| figures[at + 1..].iter().map(move |other| (one, other)));
    let mut apart = pairs.filter(|(one, other)| !agree(one.1, other.1));
    let ((name, one), (other_name, other)) = apart.next()?;
    Some(format!(
        "the methods differ by more than their errors: {:.0} to {:.0} bytes by {name}, {:.0} to {:.0} by {other_name}; other traffic or \
         background work that comes and goes may be the cause: repeat on a quiet service",
        one.low, one.high, other.low, other.high
    ))
}

/// The intervals meet, or miss each other by less than both methods are disturbed by being read.
fn agree(a: Estimate, b: Estimate) -> bool {
    let room = AGREE * a.point.max(b.point);
    a.low <= b.high + room && b.low <= a.high + room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_methods_that_miss_each_other_are_named() {
        let about = |point: f64| {
            let estimate = Estimate {
                point,
                low: point - 1.0,
                high: point + 1.0,
            };
            Some((estimate, false))
        };
        let three = |counters, heap, log| {
            let methods = [("counters", counters), ("heap", heap), ("log", log)];
            disagreement(&methods)
        };
        assert_eq!(three(about(1000.0), about(1005.0), about(1009.0)), None);
        assert_eq!(three(about(1000.0), None, None), None);
        let why = three(about(1000.0), about(1010.0), about(1030.0)).unwrap();
        assert!(
            why.contains("999 to 1001 bytes by counters, 1029 to 1031 by log"),
            "{why}"
        );
        let why = three(None, about(1000.0), about(1030.0)).unwrap();
        assert!(why.contains("by heap, 1029"), "{why}");
    }
}
