//! Block devices: their activity and queue settings.

pub(crate) mod diskstats;
pub(crate) mod errors;
pub(crate) mod mounts;
pub(crate) mod queue;
pub(crate) mod users;

use rungwise_formats::diskstats as format;

use crate::Window;

/// Counters of all block devices.
const STATS: &str = "/proc/diskstats";

/// Present on each whole disk and on no partition.
const SCHEDULERS: &str = "/sys/block/*/queue/scheduler";

/// Whole disks in use: those that have read or written since boot. Unused loop and RAM devices would otherwise fill every page.
fn in_use<'a>(window: &Window<'a>) -> Vec<&'a str> {
    let counters = window.text(STATS).map(format::parse);
    window
        .matching(SCHEDULERS)
        .into_iter()
        .filter_map(|(_, stars)| stars.first().copied())
        .filter(|name| match &counters {
            Ok(counters) => counters
                .get(name)
                .is_some_and(|disk| disk.reads + disk.writes > 0),
            Err(_) => true,
        })
        .collect()
}
