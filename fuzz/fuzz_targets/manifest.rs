//! A manifest of any bytes.
#![no_main]

use why_record::manifest::Manifest;

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(directory.path().join("manifest.json"), text).unwrap();
    let _ = Manifest::read(directory.path());
});
