//! See [`rungwise_fuzz::profile`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::profile(bytes));
