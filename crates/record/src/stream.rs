//! The events of a process, in chunks that are compressed and checked one by one.
//!
//! A chunk is a header of 28 bytes, all numbers little-endian, and then zstd-compressed
//! events in the postcard encoding, one behind the other:
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | `why-evts` |
//! | 4 | version of the format |
//! | 4 | number of the chunk, from 0 |
//! | 4 | compressed length |
//! | 8 | XXH3 of the compressed bytes, seeded with the chunk's number |
//!
//! A stream that was cut off ends with its last whole chunk.

use crate::event::Event;
use crate::{RecordError, Result, VERSION};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: &[u8; 8] = b"why-evts";
const HEADER_BYTES: usize = 28;
/// A chunk is written when its events take so much.
const CHUNK_BYTES: usize = 1 << 20;
/// Or when so much time has passed: what is not written is lost if the recorder is killed.
const AT_LEAST_EVERY: Duration = Duration::from_millis(250);
/// No chunk is larger: a file of somebody else's may say anything. A single event may be
/// as large as a read.
const MOST_BYTES: usize = 1 << 31;
const LEVEL: i32 = 1;

pub struct Writer {
    file: File,
    path: PathBuf,
    events: Vec<u8>,
    chunks: u32,
    flushed: Instant,
    pub bytes_written: u64,
}

impl Writer {
    pub fn create(path: &Path) -> Result<Writer> {
        let file = File::create_new(path).map_err(writing(path))?;
        Ok(Writer {
            file,
            path: path.to_owned(),
            events: Vec::with_capacity(CHUNK_BYTES + 4096),
            chunks: 0,
            flushed: Instant::now(),
            bytes_written: 0,
        })
    }

    /// How many chunks and bytes have been written.
    pub fn written(&self) -> (u32, u64) {
        (self.chunks, self.bytes_written)
    }

    pub fn add(&mut self, event: &Event) -> Result<()> {
        postcard::to_io(event, &mut self.events).expect("memory takes it");
        let due = self.events.len() >= CHUNK_BYTES || self.flushed.elapsed() >= AT_LEAST_EVERY;
        if due { self.flush() } else { Ok(()) }
    }

    /// Writes what has not been written yet, as a chunk.
    pub fn flush(&mut self) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let compressed = zstd::bulk::compress(&self.events, LEVEL).expect("memory takes it");
        let mut chunk = Vec::with_capacity(HEADER_BYTES + compressed.len());
        chunk.extend(MAGIC);
        chunk.extend(VERSION.to_le_bytes());
        chunk.extend(self.chunks.to_le_bytes());
        chunk.extend((compressed.len() as u32).to_le_bytes());
        chunk.extend(checksum(&compressed, self.chunks).to_le_bytes());
        chunk.extend(compressed);
        self.file.write_all(&chunk).map_err(writing(&self.path))?;
        self.bytes_written += chunk.len() as u64;
        self.chunks += 1;
        self.events.clear();
        self.flushed = Instant::now();
        Ok(())
    }
}

fn checksum(compressed: &[u8], number: u32) -> u64 {
    xxh3_64_with_seed(compressed, number.into())
}

fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> RecordError {
    RecordError::system(format!("cannot write {}", path.display()))
}

pub struct Reader {
    file: File,
    path: PathBuf,
    chunk: Vec<u8>,
    at: usize,
    chunks: u32,
    /// The stream ends in the middle of a chunk.
    pub cut_off: bool,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader> {
        let what = format!("cannot read {}", path.display());
        let file = File::open(path).map_err(RecordError::system(what))?;
        let path = path.to_owned();
        Ok(Reader { file, path, chunk: Vec::new(), at: 0, chunks: 0, cut_off: false })
    }

    /// Goes on behind so many chunks, which take so many bytes.
    pub fn skip(&mut self, chunks: u32, bytes: u64) -> Result<()> {
        let what = format!("cannot read {}", self.path.display());
        self.file.seek(SeekFrom::Start(bytes)).map_err(RecordError::system(what))?;
        self.chunks = chunks;
        Ok(())
    }

    /// The next event; none at the end.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        if self.at == self.chunk.len() && !self.next_chunk()? {
            return Ok(None);
        }
        let rest = &self.chunk[self.at..];
        let (event, left) = postcard::take_from_bytes(rest)
            .map_err(|error| RecordError::damaged(self.path.display(), error))?;
        self.at = self.chunk.len() - left.len();
        Ok(Some(event))
    }

    fn next_chunk(&mut self) -> Result<bool> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        self.take(HEADER_BYTES, &mut header)?;
        if header.is_empty() {
            return Ok(false);
        }
        if header.len() < HEADER_BYTES {
            self.cut_off = true;
            return Ok(false);
        }
        let damaged = |how: &str| RecordError::damaged(self.path.display(), how);
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        if header[..8] != *MAGIC {
            return Err(damaged("a chunk does not begin where it should"));
        }
        if number(8) != VERSION {
            let what = self.path.display().to_string();
            return Err(RecordError::OtherVersion { what, version: number(8) });
        }
        if number(12) != self.chunks {
            return Err(damaged("a chunk is missing"));
        }
        let length = number(16) as usize;
        let mut compressed = Vec::new();
        self.take(length, &mut compressed)?;
        if compressed.len() < length {
            self.cut_off = true;
            return Ok(false);
        }
        let damaged = |how: &str| RecordError::damaged(self.path.display(), how);
        let sum = u64::from_le_bytes(header[20..28].try_into().unwrap());
        if checksum(&compressed, self.chunks) != sum {
            return Err(damaged("a chunk's checksum is wrong"));
        }
        self.chunk = decompress(&compressed).ok_or_else(|| damaged("a chunk does not unpack"))?;
        self.at = 0;
        self.chunks += 1;
        Ok(true)
    }

    /// Reads so many bytes, or what there is.
    fn take(&mut self, length: usize, to: &mut Vec<u8>) -> Result<()> {
        let what = format!("cannot read {}", self.path.display());
        let taken = (&mut self.file).take(length as u64).read_to_end(to);
        taken.map(drop).map_err(RecordError::system(what))
    }
}

fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
    let mut events = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(compressed).ok()?;
    decoder.take(MOST_BYTES as u64 + 1).read_to_end(&mut events).ok()?;
    (events.len() <= MOST_BYTES).then_some(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn stream(events: u64) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.1");
        let mut writer = Writer::create(&path).unwrap();
        for at in 0..events {
            writer.add(&Event::Wrote { at, bytes: vec![at as u8; 100] }).unwrap();
            if at % 10 == 9 {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
        (directory, path)
    }

    /// How many events can be read, and how it ends.
    fn read(path: &Path) -> (u64, Result<bool>) {
        let mut reader = Reader::open(path).unwrap();
        let mut read = 0;
        loop {
            match reader.next_event() {
                Ok(Some(Event::Wrote { at, bytes })) => {
                    assert_eq!((at, bytes), (read, vec![read as u8; 100]));
                    read += 1;
                }
                Ok(Some(other)) => panic!("{other:?}"),
                Ok(None) => return (read, Ok(reader.cut_off)),
                Err(error) => return (read, Err(error)),
            }
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let (_directory, path) = stream(95);
        let (events, end) = read(&path);
        assert_eq!((events, end.unwrap()), (95, false));
    }

    #[test]
    fn a_stream_that_is_cut_off_ends_with_its_last_whole_chunk() {
        let (_directory, path) = stream(95);
        let length = path.metadata().unwrap().len();
        for cut in 1..length {
            File::options().write(true).open(&path).unwrap().set_len(length - cut).unwrap();
            let (events, end) = read(&path);
            assert!(end.is_ok() && events < 95 && events % 10 == 0, "{cut} bytes less");
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let (_directory, path) = stream(30);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        for at in 0..file.metadata().unwrap().len() {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            let (events, end) = read(&path);
            // A length that has grown looks like the end.
            assert!(events < 30 && (end.is_err() || end.unwrap()), "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
        assert_eq!(read(&path).0, 30);
    }
}
