//! Memory: reclaim, swap, huge pages.

pub(crate) mod direct_reclaim;
pub(crate) mod swap_in;
pub(crate) mod thp_stall;
pub(crate) mod tlb_bound;
