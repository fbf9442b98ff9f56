//! Feeds arbitrary bytes to `ifrt::fuzzing::layout`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::layout(data));
