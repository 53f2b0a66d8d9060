//! The binary from outside: what it prints, what it exits with, what it leaves behind.
//!
//! Tests that build namespaces need root or an unprivileged user namespace. Without either they fail and say
//! so: a check that cannot run has not passed.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, look at files and keep time themselves, and may fail"
)]

mod advice;
mod browser;
mod built;
mod capacity;
mod cli;
mod connections;
mod documents;
mod drawn;
mod dubbo;
mod dubbo_lab;
mod faults;
mod flags;
mod follow;
mod gc;
mod gc_cures;
mod gc_memory;
mod groups_v2;
mod heap_lab;
mod heap_per_request;
mod http2;
mod joined;
mod judged;
mod jvm_switches;
mod labs;
mod ladder;
mod live_profiles;
mod live_threads;
mod locks;
mod mass_lab;
mod peers;
mod plants;
mod profiles;
mod program;
mod recordings;
mod resume;
mod run;
mod runs;
mod served;
mod service;
mod streams;
mod threads;
mod tls;
mod traffic;
mod trust;
mod tune;
mod web;
mod web_requests;
mod zoomed;
