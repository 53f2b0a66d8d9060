//! See [`rungwise_fuzz::http_request`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::http_request(bytes));
