//! Latencies in nanoseconds, 1 ns to 60 s, three significant digits, in memory that never grows.
//!
//! HDR histogram (Gil Tene, hdrhistogram.org): logarithmic buckets with linear parts, so that every value is
//! known to 0.1 %. That range takes 27 648 counters of 64 bits, 216 KiB, allocated once; the kernel backs
//! only the pages that latencies really fall into, and one power of two of latencies is 8 KiB. Narrower
//! counters would halve that and could overflow in an hour-long run. One histogram per thread, merged
//! afterwards; percentiles are never averaged.

use std::time::Duration;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer, V2Serializer};
use rungwise_model::load::Quantiles;

use crate::Error;

/// Longest latency that is recorded exactly, nanoseconds: a minute. Longer ones count as this.
pub const LONGEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits: enough to see a change of 2 % in a p99.
const DIGITS: u8 = 3;
/// First bytes of the V2 encoding: cookie, then the length of what follows the 40 bytes of header.
const V2_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
const V2_HEADER: usize = 40;

/// A latency distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    inner: Hdr<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram with all the memory it will ever use.
    pub fn new() -> Self {
        Self {
            inner: Hdr::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are constants"),
        }
    }

    /// Counts one latency. 0 counts as 1 ns, more than [`LONGEST_NS`] as that. Allocates nothing.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.inner.saturating_record(ns.clamp(1, LONGEST_NS));
    }

    /// Counts one latency `count` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        self.inner
            .saturating_record_n(ns.clamp(1, LONGEST_NS), count);
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.inner
            .add(&other.inner)
            .expect("all histograms have the same bounds");
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.inner.reset();
    }

    /// Latencies counted.
    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// Nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The latency, nanoseconds, that a share `q` of all did not exceed; 0 when empty.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        if self.is_empty() {
            0
        } else {
            self.inner.value_at_quantile(q)
        }
    }

    /// Mean latency, nanoseconds; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        self.inner.mean()
    }

    /// The quantiles that are reported, microseconds; all zero when empty.
    pub fn quantiles(&self) -> Quantiles {
        let us = |q: f64| self.quantile_ns(q) as f64 / 1e3;
        Quantiles {
            p50: us(0.5),
            p90: us(0.9),
            p99: us(0.99),
            p999: us(0.999),
            max: us(1.0),
        }
    }

    /// Every non-empty bucket: its highest latency in nanoseconds and its count, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.inner
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
    }

    /// The V2 encoding of hdrhistogram.org, uncompressed, which every HDR tool reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.inner, &mut bytes)
            .expect("writing to memory, counts below 2^63");
        bytes
    }

    /// Reads what [`Histogram::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let refuse = |why: &str| Error::Histogram {
            bytes: bytes.len(),
            why: why.to_owned(),
        };
        // Checked before the decoder, which reserves whatever length the header claims.
        if bytes.len() < V2_HEADER || bytes[..4] != V2_COOKIE {
            return Err(refuse("wrong magic number"));
        }
        let claimed = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        if claimed != bytes.len() - V2_HEADER {
            return Err(refuse("its length does not match its header"));
        }
        let empty = Self::new();
        if bytes[8..V2_HEADER] != empty.to_bytes()[8..V2_HEADER] {
            return Err(refuse("different bounds or precision"));
        }
        let mut rest = bytes;
        let inner = Deserializer::new()
            .deserialize(&mut rest)
            .map_err(|error| refuse(&error.to_string()))?;
        Ok(Self { inner })
    }
}

/// One distribution of a log: its name, and the seconds that it was taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What it is of; a comma or a space in it becomes an underscore, since the format has no room for them.
    pub name: String,
    /// The distribution.
    pub histogram: Histogram,
    /// Seconds of measurement in it.
    pub seconds: f64,
}

/// The interval log of hdrhistogram.org, one tagged line per entry, nanoseconds: what `HistogramLogAnalyzer`
/// and similar tools read, and which can be merged with another machine's.
pub fn log(comment: &str, entries: &[Entry]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment(comment);
    let mut log = builder
        .begin_log_with(&mut text, &mut serializer)
        .expect("writing to memory");
    for entry in entries {
        let name = entry.name.replace([',', ' ', '\r', '\n'], "_");
        let seconds = Duration::try_from_secs_f64(entry.seconds).unwrap_or_default();
        log.write_histogram(
            &entry.histogram.inner,
            Duration::ZERO,
            seconds,
            Tag::new(&name),
        )
        .expect("writing to memory, counts below 2^63");
    }
    text
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for ns in values {
            histogram.record(*ns);
        }
        histogram
    }

    #[test]
    fn the_memory_is_what_the_head_of_this_file_says() {
        assert_eq!(
            Histogram::new().inner.distinct_values() * size_of::<u64>(),
            216 * 1024
        );
    }

    #[test]
    fn an_empty_histogram_reports_zeros() {
        assert_eq!(Histogram::new().quantiles(), Quantiles::default());
        assert!(Histogram::new().is_empty());
    }

    #[test]
    fn latencies_beyond_the_bounds_count_at_the_bounds() {
        let histogram = of(&[0, u64::MAX]);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.quantile_ns(0.0), 1);
        assert!(histogram.quantiles().max >= 60e6);
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let good = of(&[1000, 2000]).to_bytes();
        assert!(Histogram::from_bytes(&[]).is_err());
        assert!(Histogram::from_bytes(&good[..good.len() - 1]).is_err());
        let mut other = Hdr::<u64>::new(2).unwrap();
        other.record(5).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&other, &mut bytes).unwrap();
        let error = Histogram::from_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("different bounds"), "{error}");
    }

    proptest! {
        #[test]
        fn merging_is_associative_and_commutative(
            a in prop::collection::vec(0..LONGEST_NS, 0..30),
            b in prop::collection::vec(0..LONGEST_NS, 0..30),
            c in prop::collection::vec(0..LONGEST_NS, 0..30),
        ) {
            let merged = |parts: &[&Histogram]| {
                let mut all = Histogram::new();
                for part in parts {
                    all.merge(part);
                }
                all
            };
            let (a, b, c) = (of(&a), of(&b), of(&c));
            let left = merged(&[&merged(&[&a, &b]), &c]);
            let right = merged(&[&a, &merged(&[&b, &c])]);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(&left, &merged(&[&c, &b, &a]));
            prop_assert_eq!(left.count(), a.count() + b.count() + c.count());
        }

        #[test]
        fn quantiles_never_fall_and_are_right_to_three_digits(
            mut values in prop::collection::vec(1..LONGEST_NS, 1..200),
        ) {
            let histogram = of(&values);
            let q = histogram.quantiles();
            prop_assert!(q.p50 <= q.p90 && q.p90 <= q.p99 && q.p99 <= q.p999 && q.p999 <= q.max);
            values.sort_unstable();
            let exact = values[(values.len() - 1) / 2] as f64;
            let median = histogram.quantile_ns(0.5) as f64;
            prop_assert!((median - exact).abs() <= exact / 1000.0 + 1.0, "{} {}", median, exact);
        }

        #[test]
        fn bytes_give_the_histogram_back(values in prop::collection::vec(0..LONGEST_NS, 0..100)) {
            let histogram = of(&values);
            let back = Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            prop_assert_eq!(back, histogram);
        }

        #[test]
        fn damaged_bytes_are_refused_or_read_but_never_panic(
            values in prop::collection::vec(0..LONGEST_NS, 1..20),
            at: prop::sample::Index,
            byte: u8,
            noise in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut bytes = of(&values).to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Histogram::from_bytes(&bytes);
            let _ = Histogram::from_bytes(&noise);
        }
    }

    #[test]
    fn a_log_is_read_by_the_tools_of_the_format() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_000_000, 7);
        let entry = |name: &str| Entry {
            name: name.to_owned(),
            histogram: histogram.clone(),
            seconds: 2.5,
        };
        let text = log("latency", &[entry("rung, one/a"), entry("rung/b")]);
        let tags: Vec<_> = IntervalLogIterator::new(&text)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some((
                    interval.tag().unwrap().as_str().to_owned(),
                    interval.duration(),
                )),
                _ => None,
            })
            .collect();
        let took = Duration::from_millis(2500);
        assert_eq!(
            tags,
            [
                ("rung__one/a".to_owned(), took),
                ("rung/b".to_owned(), took)
            ]
        );
    }
}
