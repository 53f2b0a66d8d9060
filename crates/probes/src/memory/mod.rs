//! Memory: how much there is, who waits for it, how it is reclaimed, huge pages.

pub(crate) mod huge_pages;
pub(crate) mod meminfo;
pub(crate) mod pressure;
pub(crate) mod sysctls;
pub(crate) mod vmstat;
