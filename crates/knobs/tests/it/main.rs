//! Knobs on an invented machine: plans, the engine under faults, and crashes between any two steps.
//! Round trips on the real kernel, in namespaces of our own, are in `lab`.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests fail the test, and look at files themselves"
)]

mod audit;
mod crash;
mod engine;
mod export;
mod files;
mod hostile;
mod lab;
mod machine;
mod memory;
mod mounts;
mod plans;
mod wishes;
