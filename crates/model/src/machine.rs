//! The machine that a measurement ran on, and where the CPU time of its window went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fingerprint of the machine; numbers without it cannot be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// CPU model name from `/proc/cpuinfo`.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Hypervisor or container, if detected.
    pub virtualisation: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// Where one CPU spent a window, as fractions of that window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuSplit {
    /// User code, including niced tasks.
    pub user: f64,
    /// Kernel on behalf of a process.
    pub system: f64,
    /// Softirqs, mostly network receive.
    pub softirq: f64,
    /// Hard interrupts.
    pub irq: f64,
    /// Stolen by the hypervisor.
    pub steal: f64,
    /// Idle, including I/O wait.
    pub idle: f64,
}

/// CPU use of the whole machine over one window, and how much of it belongs to other processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuWindow {
    /// Wall time of the window, seconds.
    pub seconds: f64,
    /// One entry per CPU, in order of its number.
    pub per_cpu: Vec<CpuSplit>,
    /// CPU seconds of the service under test.
    pub service_cpu_s: f64,
    /// CPU seconds of the load generator.
    pub client_cpu_s: f64,
    /// Busy CPU of other processes, as a fraction of all CPUs over the window.
    pub foreign: f64,
}
