//! See [`rungwise_fuzz::stream_replies`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::stream_replies(bytes));
