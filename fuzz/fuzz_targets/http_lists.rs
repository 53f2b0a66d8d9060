//! See [`rungwise_fuzz::http_lists`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::http_lists(bytes));
