//! See [`rungwise_fuzz::recording`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::recording(bytes));
