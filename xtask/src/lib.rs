//! The chores behind `cargo xtask`: run every test, write the generated pages, start a new knob,
//! rule, probe or workload.
//!
//! A library, so that the house tests in `tests/house` read the same lists and the same tree as
//! the chores do. Nothing here ships.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "chores read the source tree, start cargo and apt, and print to the user"
)]

pub mod docs;
pub mod faults;
pub mod jvm_flags;
pub mod jvms;
pub mod new;
pub mod packages;
pub mod prune;
pub mod test;
pub mod tree;
