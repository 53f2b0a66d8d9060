//! See [`rungwise_fuzz::dubbo`].
#![no_main]
#![expect(
    clippy::disallowed_methods,
    reason = "the macro of libFuzzer opens a file"
)]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rungwise_fuzz::dubbo(bytes));
