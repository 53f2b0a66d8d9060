//! See [`rungwise_fuzz::thread_dump`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::thread_dump(bytes));
