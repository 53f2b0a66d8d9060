//! See [`rungwise_fuzz::stored`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::stored(bytes));
