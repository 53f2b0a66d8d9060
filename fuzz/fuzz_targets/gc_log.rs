//! See [`rungwise_fuzz::gc_log`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::gc_log(bytes));
