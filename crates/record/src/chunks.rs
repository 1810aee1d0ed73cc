//! Files of chunks, each compressed and checked by itself.
//!
//! A chunk is a header of 28 bytes, all numbers little-endian, and zstd-compressed bytes:
//!
//! | bytes | meaning |
//! |---|---|
//! | 8 | what kind of file it is |
//! | 4 | version of the format |
//! | 4 | number of the chunk, from 0 |
//! | 4 | compressed length |
//! | 8 | XXH3 of the compressed bytes, seeded with the sum of the file's seed and the number |
//!
//! Files that must not stand in for each other have different seeds.
//!
//! A file of a stranger's may say anything. So a reader takes no length on trust, and no
//! chunk is larger than [`MOST_BYTES`], whatever it was compressed to.

use crate::VERSION;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a chunk may hold before it is compressed.
pub const MOST_BYTES: usize = 1 << 26;
/// What that may be compressed to: zstd adds little to what it cannot compress.
const MOST_COMPRESSED: usize = MOST_BYTES + (MOST_BYTES >> 7);

const HEADER_BYTES: usize = 28;
const LEVEL: i32 = 1;

/// The first bytes of every chunk.
pub type Magic = [u8; 8];

/// What is wrong with a file of chunks.
#[derive(Debug)]
pub enum Fault {
    System(io::Error),
    /// It does not begin like one.
    Foreign,
    Version(u32),
    /// It ends in the middle of a chunk.
    CutOff,
    Damaged(&'static str),
}

pub struct ChunkWriter<W> {
    to: W,
    magic: Magic,
    seed: u64,
    pub chunks: u32,
    pub bytes_written: u64,
}

impl<W: Write> ChunkWriter<W> {
    pub fn new(to: W, magic: Magic, seed: u64) -> ChunkWriter<W> {
        ChunkWriter { to, magic, seed, chunks: 0, bytes_written: 0 }
    }

    /// Writes these bytes as a chunk.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > MOST_BYTES {
            return Err(io::Error::other("a chunk would be too large; please report it"));
        }
        let compressed = zstd::bulk::compress(bytes, LEVEL)?;
        let mut chunk = Vec::with_capacity(HEADER_BYTES + compressed.len());
        chunk.extend(self.magic);
        chunk.extend(VERSION.to_le_bytes());
        chunk.extend(self.chunks.to_le_bytes());
        chunk.extend((compressed.len() as u32).to_le_bytes());
        chunk.extend(checksum(&compressed, self.seed, self.chunks).to_le_bytes());
        chunk.extend(compressed);
        self.to.write_all(&chunk)?;
        self.bytes_written += chunk.len() as u64;
        self.chunks += 1;
        Ok(())
    }
}

impl ChunkWriter<File> {
    /// What was written of a chunk that could not be written whole is no part of the file.
    pub fn take_back(&mut self) -> io::Result<()> {
        self.to.set_len(self.bytes_written)?;
        self.to.seek(SeekFrom::Start(self.bytes_written)).map(drop)
    }
}

fn checksum(compressed: &[u8], seed: u64, number: u32) -> u64 {
    xxh3_64_with_seed(compressed, seed.wrapping_add(number.into()))
}

#[derive(Clone)]
pub struct ChunkReader<R> {
    from: R,
    magic: Magic,
    seed: u64,
    chunks: u32,
}

impl<R: Seek> ChunkReader<R> {
    /// Goes on behind so many chunks, which take so many bytes.
    pub fn skip(&mut self, chunks: u32, bytes: u64) -> io::Result<()> {
        self.from.seek(SeekFrom::Start(bytes))?;
        self.chunks = chunks;
        Ok(())
    }
}

impl<R: Read> ChunkReader<R> {
    pub fn new(from: R, magic: Magic, seed: u64) -> ChunkReader<R> {
        ChunkReader { from, magic, seed, chunks: 0 }
    }

    /// What is in the next chunk; none at the end.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let header = self.take(HEADER_BYTES)?;
        if header.is_empty() {
            return Ok(None);
        }
        // Of a file that is not ours even the first bytes tell, however short it is.
        if !self.magic.starts_with(&header[..header.len().min(8)]) {
            return Err(match self.chunks {
                0 => Fault::Foreign,
                _ => Fault::Damaged("a chunk does not begin where it should"),
            });
        }
        if header.len() < HEADER_BYTES {
            return Err(Fault::CutOff);
        }
        let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        if number(8) != VERSION {
            return Err(Fault::Version(number(8)));
        }
        if number(12) != self.chunks {
            return Err(Fault::Damaged("a chunk is missing"));
        }
        let length = number(16) as usize;
        if length > MOST_COMPRESSED {
            return Err(Fault::Damaged("a chunk is larger than any can be"));
        }
        let compressed = self.take(length)?;
        if compressed.len() < length {
            return Err(Fault::CutOff);
        }
        let sum = u64::from_le_bytes(header[20..28].try_into().unwrap());
        if checksum(&compressed, self.seed, self.chunks) != sum {
            return Err(Fault::Damaged("a chunk's checksum is wrong"));
        }
        let bytes = decompress(&compressed).ok_or(Fault::Damaged("a chunk does not unpack"))?;
        self.chunks += 1;
        Ok(Some(bytes))
    }

    /// So many bytes, or what there is.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let taken = (&mut self.from).take(length as u64).read_to_end(&mut bytes);
        taken.map_err(Fault::System)?;
        Ok(bytes)
    }
}

fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(compressed).ok()?;
    decoder.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= MOST_BYTES).then_some(bytes)
}
