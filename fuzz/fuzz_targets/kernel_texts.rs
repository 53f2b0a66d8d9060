//! See [`rungwise_fuzz::kernel_texts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::kernel_texts(bytes));
