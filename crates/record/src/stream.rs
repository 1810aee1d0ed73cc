//! The events of a process: [`chunks`](crate::chunks) of events in the postcard encoding, one
//! behind the other. A stream that was cut off ends with its last whole chunk.

use crate::chunks::{ChunkReader, ChunkWriter, Fault, Magic};
use crate::event::Event;
use crate::{RecordError, Result};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

pub const MAGIC: Magic = *b"why-evts";
/// A chunk is written when its events take so much. What one event adds to that must keep it
/// below [`MOST_BYTES`](crate::chunks::MOST_BYTES).
const CHUNK_BYTES: usize = 1 << 20;

pub struct Writer {
    chunks: ChunkWriter<File>,
    path: PathBuf,
    events: Vec<u8>,
    pub bytes_written: u64,
}

impl Writer {
    pub fn create(path: &Path) -> Result<Writer> {
        let file = File::create_new(path).map_err(writing(path))?;
        Ok(Writer {
            chunks: ChunkWriter::new(file, MAGIC, seed(path)),
            path: path.to_owned(),
            events: Vec::with_capacity(CHUNK_BYTES + 4096),
            bytes_written: 0,
        })
    }

    /// How many chunks and bytes have been written.
    pub fn written(&self) -> (u32, u64) {
        (self.chunks.chunks, self.bytes_written)
    }

    pub fn add(&mut self, event: &Event) -> Result<()> {
        postcard::to_io(event, &mut self.events).expect("memory takes it");
        if self.events.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what has not been written yet, as a chunk.
    pub fn flush(&mut self) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.chunks.write(&self.events) {
            // Should even that fail, the stream is cut off there.
            let _ = self.chunks.take_back();
            return Err(writing(&self.path)(error));
        }
        self.bytes_written = self.chunks.bytes_written;
        self.events.clear();
        Ok(())
    }
}

/// By the name of the file: the stream of one process is no other's.
pub fn seed(path: &Path) -> u64 {
    xxh3_64(path.file_name().unwrap_or_default().as_encoded_bytes())
}

fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> RecordError {
    RecordError::system(format!("cannot write {}, so the program was ended", path.display()))
}

/// A clone goes on from the same place.
#[derive(Clone)]
pub struct Reader {
    chunks: ChunkReader<FileFrom>,
    path: PathBuf,
    chunk: Arc<Vec<u8>>,
    at: usize,
    /// The stream ends in the middle of a chunk.
    pub cut_off: bool,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => RecordError::damaged(path.display(), "it is missing"),
            _ => RecordError::system(format!("cannot read {}", path.display()))(error),
        })?;
        let file = FileFrom { file: Arc::new(file), at: 0 };
        let chunks = ChunkReader::new(file, MAGIC, seed(path));
        Ok(Reader { chunks, path: path.to_owned(), chunk: Arc::default(), at: 0, cut_off: false })
    }

    /// Goes on behind so many chunks, which take so many bytes.
    pub fn skip(&mut self, chunks: u32, bytes: u64) -> Result<()> {
        let what = format!("cannot read {}", self.path.display());
        self.chunks.skip(chunks, bytes).map_err(RecordError::system(what))
    }

    /// The next event; none at the end.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        while self.at == self.chunk.len() {
            if self.cut_off || !self.next_chunk()? {
                return Ok(None);
            }
        }
        let rest = &self.chunk[self.at..];
        let (event, left) = postcard::take_from_bytes(rest)
            .map_err(|error| RecordError::damaged(self.path.display(), error))?;
        self.at = self.chunk.len() - left.len();
        Ok(Some(event))
    }

    fn next_chunk(&mut self) -> Result<bool> {
        let damaged = |how: &str| RecordError::damaged(self.path.display(), how);
        self.chunk = match self.chunks.next_chunk() {
            Ok(Some(chunk)) => Arc::new(chunk),
            Ok(None) => return Ok(false),
            Err(Fault::CutOff) => {
                self.cut_off = true;
                return Ok(false);
            }
            Err(Fault::System(error)) => {
                let what = format!("cannot read {}", self.path.display());
                return Err(RecordError::system(what)(error));
            }
            Err(Fault::Version(version)) => {
                let what = self.path.display().to_string();
                return Err(RecordError::OtherVersion { what, version });
            }
            Err(Fault::Foreign) => return Err(damaged("it does not begin like a log")),
            Err(Fault::Damaged(how)) => return Err(damaged(how)),
        };
        self.at = 0;
        Ok(true)
    }
}

/// A file with a place of its own, which clones do not share.
#[derive(Clone)]
struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(buffer, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

impl Seek for FileFrom {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(distance) => self.at.checked_add_signed(distance),
            SeekFrom::End(distance) => self.file.metadata()?.len().checked_add_signed(distance),
        };
        self.at = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_clone_goes_on_from_the_same_place() {
        let (_directory, path) = stream(95);
        let mut reader = Reader::open(&path).unwrap();
        let rest = |reader: &mut Reader| {
            std::iter::from_fn(|| reader.next_event().unwrap())
                .map(|event| match event {
                    Event::Wrote { at, .. } => at,
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<u64>>()
        };
        for _ in 0..37 {
            reader.next_event().unwrap();
        }
        let mut clone = reader.clone();
        let expected: Vec<u64> = (37..95).collect();
        assert_eq!(rest(&mut reader), expected);
        assert_eq!(rest(&mut clone), expected);
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
