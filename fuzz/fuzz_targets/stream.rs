//! The events of a stream: the bytes are those of the only chunk, so that no checksum is in
//! the way.
#![no_main]

use std::fs::File;
use why_record::chunks::ChunkWriter;
use why_record::stream::{MAGIC, Reader, seed};

libfuzzer_sys::fuzz_target!(|events: &[u8]| {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("1.1");
    let file = File::create(&path).unwrap();
    ChunkWriter::new(file, MAGIC, seed(&path)).write(events).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    while let Ok(Some(_)) = reader.next_event() {}
});
