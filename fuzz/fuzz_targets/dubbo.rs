//! See [`rungwise_fuzz::dubbo`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::dubbo(bytes));
