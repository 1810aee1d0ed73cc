//! A packed recording whose chunks are the parts between 0xff bytes, with right checksums. No
//! file may come of it but in the directory meant.
#![no_main]

use std::fs::File;
use why_record::chunks::ChunkWriter;
use why_record::pack::{MAGIC, unpack};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let packed = directory.path().join("packed");
    let mut chunks = ChunkWriter::new(File::create(&packed).unwrap(), MAGIC, 0);
    for piece in bytes.split(|byte| *byte == 0xff) {
        chunks.write(piece).unwrap();
    }
    let _ = unpack(&packed, &directory.path().join("to"), &mut |_| ());
    let names = directory.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name == "packed" || name == "to"));
});
