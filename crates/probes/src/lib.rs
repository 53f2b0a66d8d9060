//! Host to Evidence. One file per probe, folders by subject.
//!
//! [`gather`] reads the sources of all probes into a [`Capture`]; [`evidence`] derives readings from it. The two halves
//! are separate: the first interprets nothing, the second accesses no machine.

pub mod bundle;
pub mod capture;
mod cpu;
mod device;
mod disk;
mod enter;
mod error;
mod firmware;
pub mod gather;
pub mod groups;
pub mod host_text;
pub mod jvm;
pub mod load_report;
pub mod mask;
mod memory;
mod net;
pub mod page;
pub mod probe;
mod process;
mod settings;
mod stack;
mod sysctls;
pub mod unseen;
mod weight;
pub mod window;

pub use capture::{Capture, Moment};
pub use error::{Error, Result};
pub use net::losses::{COUNTED, Counted, LOSSES, Loss, ORDINARY, Of, UNCOUNTED};
pub use probe::{Cost, Need, Probe, Source, What, When};
pub use window::{Rate, Window};

use rungwise_model::evidence::Evidence;

/// All probes, sorted by id.
pub static PROBES: &[&Probe] = &[
    &net::audit::PROBE,
    &disk::errors::PROBE,
    &device::ethtool::PROBE,
    &device::features::PROBE,
    &cpu::irq_balancer::PROBE,
    &settings::PROBE,
    &cpu::kernel::PROBE,
    &cpu::ksoftirqd::PROBE,
    &load_report::PROBE,
    &disk::mounts::PROBE,
    &net::neighbours::PROBE,
    &net::netfilter::PROBE,
    &net::namespaces::PROBE,
    &net::conntrack::PROBE,
    &cpu::numa::PROBE,
    &stack::events::PROBE,
    &stack::sampled::PROBE,
    &disk::diskstats::PROBE,
    &cpu::interrupts::PROBE,
    &memory::meminfo::PROBE,
    &device::counters::PROBE,
    &net::losses::PROBE,
    &net::protocols::PROBE,
    &net::sockstat::PROBE,
    &process::processes::PROBE,
    &process::cpusets::PROBE,
    &process::descriptors::PROBE,
    &disk::users::PROBE,
    &process::limits::PROBE,
    &process::numa_maps::PROBE,
    &process::states::PROBE,
    &process::threads::PROBE,
    &process::waits::PROBE,
    &memory::pressure::PROBE,
    &cpu::schedstat::PROBE,
    &cpu::softirqs::PROBE,
    &cpu::proc_stat::PROBE,
    &sysctls::PROBE,
    &net::sysctl::PROBE,
    &memory::sysctls::PROBE,
    &process::user_tasks::PROBE,
    &memory::vmstat::PROBE,
    &device::qdisc::PROBE,
    &device::queues::PROBE,
    &device::steering::PROBE,
    &device::missed::PROBE,
    &net::selinux::PROBE,
    &firmware::memory_slots::PROBE,
    &device::softnet::PROBE,
    &disk::queue::PROBE,
    &device::identity::PROBE,
    &cpu::topology::PROBE,
    &cpu::cpufreq::PROBE,
    &cpu::cpuidle::PROBE,
    &firmware::identity::PROBE,
    &process::cgroup::PROBE,
    &firmware::iommu::PROBE,
    &memory::huge_pages::PROBE,
    &process::dependencies::PROBE,
    &process::restarts::PROBE,
    &process::pools::PROBE,
    &net::tcp::PROBE,
    &net::udp::PROBE,
    &net::unix::PROBE,
    &cpu::virtualisation::PROBE,
];

pub use process::waiters::{ContendedLock, contended_locks, keep_stack};

/// The evidence of all probes from a capture.
pub fn evidence(capture: &Capture) -> Evidence {
    let window = Window::of(capture);
    let mut evidence = Evidence::over(window.seconds());
    for probe in PROBES {
        (probe.derive)(&window, &mut evidence);
    }
    evidence
}
