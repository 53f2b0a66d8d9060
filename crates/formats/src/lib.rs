//! Bytes to typed values. Pure: no file is opened here, no clock is read, and no input makes it panic.
//!
//! Texts of `/proc` and `/sys` change between kernels by added columns and lines, so every parser reads what it
//! knows, skips what it does not, and distinguishes an unreadable text from an empty one.

pub mod cgroup;
pub mod choice;
mod columns;
pub mod cpuinfo;
pub mod cpulist;
pub mod diskstats;
pub mod fields;
pub mod flat;
pub mod folded;
pub mod heap_info;
pub mod hsperfdata;
pub mod interrupts;
pub mod kallsyms;
pub mod limits;
pub mod loadavg;
pub mod net_dev;
pub mod numa_maps;
pub mod per_cpu;
pub mod percentiles;
pub mod postgres;
pub mod pressure;
pub mod queue_counter;
pub mod schedstat;
pub mod smbios;
pub mod snmp;
pub mod softirqs;
pub mod softnet;
pub mod stat;
pub mod syscall;
pub mod task;
pub mod thread_allocation;
pub mod tlab_totals;
pub mod tracepoint;
pub mod vm_log;
