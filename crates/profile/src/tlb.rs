//! Data loads and data TLB misses of the window, from the CPU's performance counters.
//!
//! Two counters per CPU run all the time and cost nothing: the hardware counts. A guest without a virtual PMU has none. What a
//! miss is differs by model: on Intel a load that misses all levels of the TLB, on Arm and AMD one that misses the first level.
//! Sources: `perf_event_open(2)` (`PERF_TYPE_HW_CACHE`); arch/x86/events/intel/core.c of Linux 6.18.

use perf_event::Counter;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult};
use rungwise_host::live::Live;
use rungwise_model::kernel::TlbLoads;

use crate::error::{Error, Result};
use crate::perf;

const TRIED: &str = "count TLB misses";

/// Counts from start until stopped.
#[derive(Debug)]
pub struct Tlb {
    loads: Vec<Counter>,
    misses: Vec<Counter>,
}

impl Tlb {
    /// Starts counting on every CPU.
    pub fn start() -> Result<Self> {
        let cpus = perf::cpus(&Live)?;
        let open = |result| {
            let event = Cache {
                which: CacheId::DTLB,
                operation: CacheOp::READ,
                result,
            };
            perf::on_each(&cpus, TRIED, |cpu| {
                let mut counter = perf::on_cpu(event.clone(), cpu).build()?;
                counter.enable()?;
                Ok(counter)
            })
        };
        Ok(Self {
            loads: open(CacheResult::ACCESS)?,
            misses: open(CacheResult::MISS)?,
        })
    }

    /// The counts. If there are more events than counters, each event runs for a part of the time; the counts are
    /// scaled up to the whole.
    pub fn end(self) -> Result<TlbLoads> {
        let sum = |counters: Vec<Counter>| -> Result<f64> {
            let mut sum = 0.0;
            for mut counter in counters {
                let read = counter.read_count_and_time();
                let read = read.map_err(|error| Error::of_perf(&Live, TRIED, error))?;
                if read.time_running > 0 {
                    sum += read.count as f64 * read.time_enabled as f64 / read.time_running as f64;
                }
            }
            Ok(sum)
        };
        Ok(TlbLoads {
            loads: sum(self.loads)?,
            misses: sum(self.misses)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these counters counts; one without says so and does not fail in another way.
    #[test]
    fn misses_are_no_more_than_loads_or_there_are_no_counters() {
        match Tlb::start() {
            Ok(tlb) => {
                let bytes = vec![1_u8; 64 << 20];
                let sum: u64 = bytes
                    .iter()
                    .step_by(4096)
                    .map(|byte| u64::from(*byte))
                    .sum();
                let seen = tlb.end().unwrap();
                assert_eq!(sum, (64 << 20) / 4096);
                assert!(seen.loads > 0.0 && seen.misses <= seen.loads, "{seen:?}");
            }
            Err(error) => {
                let words = error.to_string();
                assert!(words.starts_with(&format!("cannot {TRIED}")), "{words}");
            }
        }
    }
}
