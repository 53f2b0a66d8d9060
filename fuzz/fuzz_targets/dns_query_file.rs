//! See [`rungwise_fuzz::dns_query_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::dns_query_file(bytes));
