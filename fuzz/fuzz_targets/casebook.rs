//! See [`rungwise_fuzz::casebook`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::casebook(bytes));
