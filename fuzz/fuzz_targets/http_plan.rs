//! See [`rungwise_fuzz::http_plan`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::http_plan(bytes));
