//! See [`rungwise_fuzz::scenario`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::scenario(bytes));
