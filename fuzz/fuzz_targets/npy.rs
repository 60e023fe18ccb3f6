#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| couplet_fuzz::run("npy", bytes));
