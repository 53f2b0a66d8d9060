//! Memory: size, pressure, reclaim, huge pages.

pub(crate) mod huge_pages;
pub(crate) mod meminfo;
pub(crate) mod pressure;
pub(crate) mod sysctls;
pub(crate) mod vmstat;
