//! Where workers run: the CPU of each, tried before the start and read back after it.

use std::io;
use std::thread;

use crate::affinity;
use crate::config::{Pin, Shared};
use crate::error::{Error, Feature};
use crate::read_back::Ledger;

const PIN: Feature = Feature {
    switch: "pin",
    name: "sched_setaffinity",
    since: "2.6",
    remedy: "choose CPUs that are online and that this process may use (`taskset -p $$`)",
};

/// The CPU of each worker: where it is to be pinned, or the i-th allowed one.
pub(crate) fn homes(config: &Shared<'_>) -> Result<Vec<usize>, Error> {
    let cpus = match config.pin {
        Pin::Cpus(cpus) => {
            if !config.fallback {
                // No worker tries these, so that a slip among them would go unseen.
                cpus.iter()
                    .skip(config.workers)
                    .try_for_each(|cpu| reachable(*cpu))?;
            }
            cpus.clone()
        }
        Pin::Free | Pin::Allowed => {
            affinity::allowed().map_err(|error| PIN.refused("the allowed CPUs", error))?
        }
    };
    Ok(cpus.into_iter().cycle().take(config.workers).collect())
}

/// A number above that of every CPU, those of `homes` included.
pub(crate) fn cpu_count(homes: &[usize]) -> usize {
    let above = homes.iter().map(|cpu| cpu + 1);
    above.fold(affinity::count(), usize::max)
}

/// Whether a thread can be pinned to `cpu`, tried by one that ends at once.
fn reachable(cpu: usize) -> Result<(), Error> {
    let tried = thread::spawn(move || affinity::pin(cpu)).join();
    tried
        .expect("pinning does not panic")
        .map_err(|answer| PIN.refused(format!("cpu {cpu}"), answer))
}

/// Pins the calling worker; the CPUs that it may use then.
pub(crate) fn pin(cpu: usize) -> io::Result<Vec<usize>> {
    affinity::pin(cpu).and_then(|()| affinity::allowed())
}

/// Enters how pinning went, by worker: absent for one that is not to be pinned.
pub(crate) fn enter(
    homes: &[usize],
    pinned: impl IntoIterator<Item = Option<io::Result<Vec<usize>>>>,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let mut held = Vec::new();
    for (worker, (cpu, pinned)) in homes.iter().zip(pinned).enumerate() {
        let wanted = format!("worker {worker} on cpu {cpu}");
        match pinned {
            None => {}
            Some(Ok(actual)) if actual == [*cpu] => held.push(wanted),
            Some(Ok(actual)) => ledger.compare(PIN, wanted, format!("{actual:?}"), false)?,
            Some(Err(error)) => {
                ledger.fall_back("pin", &wanted, "not pinned", PIN.refused(&wanted, error))?;
            }
        }
    }
    if !held.is_empty() {
        let held = held.join(", ");
        ledger.holds("pin", &held, format!("{held} by sched_getaffinity"));
    }
    Ok(())
}
