//! Feeds arbitrary bytes to `ifrt::fuzzing::remap_plan`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ifrt::fuzzing::remap_plan(data));
