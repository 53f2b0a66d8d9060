//! See [`rungwise_fuzz::http2`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::http2(bytes));
