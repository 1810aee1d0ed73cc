//! Files that somebody else has written: whatever they say, reading them ends with what
//! there is or with an error, and takes no more memory than a chunk and the file itself.

use crate::chunks::{ChunkWriter, MOST_BYTES};
use crate::cpu::{Cpu, Shown};
use crate::event::{Access, Cause, Ended, Event, Source, Stream};
use crate::files::Hash;
use crate::manifest::Manifest;
use crate::registers::Registers;
use crate::stream::{self, Reader, Writer};
use crate::vectors::{Component, Vectors};
use crate::{Result, VERSION, pack};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How many files each test makes up.
const TURNS: usize = 4000;

thread_local! {
    /// What this thread has allocated, now and at most.
    static ALLOCATED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(more: usize, less: usize) {
    // A thread that ends has no counter any more, and nobody asks.
    let _ = ALLOCATED.try_with(|allocated| {
        let (now, most) = allocated.get();
        let now = (now + more).saturating_sub(less);
        allocated.set((now, most.max(now)));
    });
}

// SAFETY: all is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most memory that was in use at once, above what was before.
fn most_memory(work: impl FnOnce()) -> usize {
    let (before, _) = ALLOCATED.get();
    ALLOCATED.set((before, before));
    work();
    ALLOCATED.get().1 - before
}

/// xorshift64*, from a seed that a failing test shows.
struct Random(u64);

impl Random {
    fn new() -> Random {
        let given = std::env::var("WHY_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let now = std::time::UNIX_EPOCH.elapsed().expect("it is after 1970").as_nanos() as u64;
        let seed = given.unwrap_or(now | 1);
        println!("WHY_SEED={seed}");
        Random(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.number() >> 16) as usize % limit.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            _ if bytes.is_empty() => bytes.push(random.number() as u8),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes.truncate(at),
            3 => {
                let part = bytes[at..].iter().take(random.below(40)).copied().collect::<Vec<_>>();
                bytes.splice(at..at, part);
            }
            4 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(40)))),
            // A length that is as long as can be.
            _ => drop(bytes.splice(at..at, [0xff; 9].into_iter().chain([1]))),
        }
    }
}

/// One event of each kind.
fn events() -> Vec<Event> {
    let registers = Registers([7; 20]).changed_from(&Registers::default());
    let access = Access { read: true, write: false, execute: true };
    let bytes = vec![3; 50];
    let mapped = |source| Event::Mapped { at: 1 << 40, size: 8192, access, source };
    vec![
        Event::Executed { program: "/bin/true".into(), arguments: vec!["true".into(), "x".into()] },
        mapped(Source::File { hash: Hash(1 << 100), offset: 4096, name: "/bin/true".into() }),
        mapped(Source::Shared { object: 1, offset: 0 }),
        mapped(Source::Private { object: 1, offset: 4096 }),
        Event::Resumed { thread: 17, registers: registers.clone() },
        Event::Calls(bytes.clone()),
        Event::Stopped { instructions: 1 << 50, cause: Cause::Call(1), registers },
        Event::Vectors(Vectors {
            legacy_in_use: 1,
            legacy: bytes.clone(),
            components: vec![Component { number: 2, bytes: bytes.clone() }],
        }),
        Event::Wrote { at: 77, bytes },
        Event::Unmapped { at: 0, size: 1 },
        Event::Protected { at: 0, size: 1, access },
        Event::Moved { from: 1, size: 2, to: 3, new_size: 4, stays: true },
        Event::Output { stream: Stream::Error, order: 5, at: 6, size: 7 },
        Event::Forked { child: 18 },
        Event::Offset { descriptor: 3, offset: 17 },
        Event::Hashes { pages: vec![(1, 2), (3, 4)], left_out: vec![(5, 6)] },
        Event::ThreadEnded { thread: 17 },
        Event::Ended(Ended::Signal(9)),
        Event::Copied { at: 1, size: 2, hash: Hash(3), offset: 4 },
        Event::CallFromFile { number: 0, result: 5, hash: Hash(3), offset: 4, size: 5 },
    ]
}

fn read_all(path: &Path) -> Result<usize> {
    let mut reader = Reader::open(path)?;
    let mut events = 0;
    while reader.next_event()?.is_some() {
        events += 1;
    }
    Ok(events)
}

/// A stream with these bytes for events, whose checksums are right.
fn write_stream(path: &Path, payload: &[u8]) {
    let mut chunks =
        ChunkWriter::new(File::create(path).unwrap(), stream::MAGIC, stream::seed(path));
    chunks.write(payload).unwrap();
}

#[test]
fn streams() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.1");
    let mut writer = Writer::create(&path).unwrap();
    for event in events() {
        writer.add(&event).unwrap();
    }
    writer.flush().unwrap();
    assert_eq!(read_all(&path).unwrap(), events().len());
    let good = fs::read(&path).unwrap();
    let payload: Vec<u8> =
        events().iter().flat_map(|event| postcard::to_stdvec(event).unwrap()).collect();
    let mut random = Random::new();
    for turn in 0..TURNS {
        let mut bytes = if turn % 2 == 0 { good.clone() } else { payload.clone() };
        mutate(&mut bytes, &mut random);
        match turn % 2 {
            0 => fs::write(&path, &bytes).unwrap(),
            _ => write_stream(&path, &bytes),
        }
        let most = most_memory(|| drop(read_all(&path)));
        assert!(most < (4 << 20) + 8 * bytes.len(), "turn {turn}: {most} bytes of memory");
    }
}

#[test]
fn a_stream_that_unpacks_to_more_than_any_chunk_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.1");
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..1024 {
        encoder.write_all(&[0; 1 << 20]).unwrap();
    }
    let compressed = encoder.finish().unwrap();
    let mut bytes = stream::MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend((compressed.len() as u32).to_le_bytes());
    bytes.extend(xxh3_64_with_seed(&compressed, stream::seed(&path)).to_le_bytes());
    bytes.extend(compressed);
    fs::write(&path, &bytes).unwrap();
    let most = most_memory(|| assert!(read_all(&path).is_err()));
    // A vector that grows is there twice for a moment.
    assert!(most < 4 * MOST_BYTES, "{most} bytes of memory for {}", bytes.len());
}

fn manifest(command: Vec<String>) -> Manifest {
    let cpu = Cpu { shown: Shown::V3, vendor: "none".into(), features: vec!["avx2".into()] };
    Manifest::new(command, "/".into(), cpu)
}

#[test]
fn manifests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("manifest.json");
    let written = manifest(vec!["a".into(), "b c".into()]);
    written.write(directory.path()).unwrap();
    let good = fs::read(&path).unwrap();
    let mut random = Random::new();
    for turn in 0..TURNS {
        let mut bytes = good.clone();
        mutate(&mut bytes, &mut random);
        fs::write(&path, &bytes).unwrap();
        let most = most_memory(|| {
            let read = Manifest::read(directory.path());
            assert!(read.is_err() || bytes == good, "turn {turn}");
        });
        assert!(most < (1 << 20) + 8 * bytes.len(), "turn {turn}: {most} bytes of memory");
    }
}

#[test]
fn packs() {
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("recording");
    fs::create_dir_all(recording.join("events")).unwrap();
    manifest(vec!["true".into()]).write(&recording).unwrap();
    fs::write(recording.join("events/1.1"), [5; 3000]).unwrap();
    let packed = directory.path().join("packed");
    let entries = pack::contents(&recording).unwrap();
    pack::pack(&entries, &mut File::create(&packed).unwrap(), &packed, &mut |_| ()).unwrap();
    let good = fs::read(&packed).unwrap();
    let to = directory.path().join("to");
    let mut random = Random::new();
    for turn in 0..TURNS / 4 {
        let mut bytes = good.clone();
        mutate(&mut bytes, &mut random);
        fs::write(&packed, &bytes).unwrap();
        let most = most_memory(|| {
            let unpacked = pack::unpack(&packed, &to, &mut |_| ());
            assert!(unpacked.is_err() || bytes == good, "turn {turn}");
        });
        assert!(most < (4 << 20) + 8 * bytes.len(), "turn {turn}: {most} bytes of memory");
        let _ = fs::remove_dir_all(&to);
    }
}
