//! See [`rungwise_fuzz::bundle`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::bundle(bytes));
