//! A region that is kept in a file: behind the chunks there is all else, and behind that where
//! it begins.

use crate::course::{Completions, Input, Moment};
use crate::decoding::Kept;
use crate::finder;
use crate::learnt::{Edition, Lessons};
use crate::patterns::Patterns;
use crate::region::{Chunk, Region, RegionError};
use crate::remembered::Remembered;
use crate::store::{Store, Stored};
use crate::units::{Known, Library, Surrounding};
use iced_x86::{Instruction, Register};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ScopedJoinHandle;
use why_trace::shape::Shape;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zstd::bulk::Compressor;

/// Ends the file. A number that says how the rest is to be read.
const MARK: [u8; 8] = *b"why-re15";

/// What is last in the file takes so many bytes, with a sum of those before that and the mark.
const END: usize = 192;

/// Where the sum is in that.
const SUM: usize = END - MARK.len() - 8;

/// More is not sensible, whatever the file says.
pub(crate) const LARGEST: usize = 1 << 30;

/// So many things are made at once by whoever is free.
const SHARE: usize = 256;

/// Where that is which is needed besides chunks, in parts: each is packed and unpacked on a processor
/// of its own.
#[derive(Serialize, Deserialize)]
struct Parts {
    instructions: Part,
    units: Part,
    course: Part,
    /// How the patterns of units are described, where chunks are kept as they were decoded.
    patterns: Part,
    edition: Edition,
}

/// What is packed, and how large it was.
#[derive(Clone, Serialize, Deserialize)]
pub struct Packed {
    pub bytes: Vec<u8>,
    pub unpacked: usize,
}

/// Where something packed is, and how large it was.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Part {
    pub place: Stored,
    pub unpacked: usize,
}

#[derive(Serialize)]
struct Followed<'a> {
    chunks: &'a [Chunk],
    moments: &'a [Moment],
    inputs: &'a [Input],
    completions: &'a Completions,
    words: &'a [Range<u64>],
    has_several_threads: bool,
    length: u64,
}

#[derive(Deserialize)]
struct OwnedFollowed {
    chunks: Vec<Chunk>,
    moments: Vec<Moment>,
    inputs: Vec<Input>,
    completions: Completions,
    words: Vec<Range<u64>>,
    has_several_threads: bool,
    length: u64,
}

/// The numbers of its instructions, and which registers are told before each.
type KeptUnit = (Vec<u32>, Vec<Vec<Register>>);

/// What was executed.
pub(crate) struct Code<'a> {
    pub known: &'a [Arc<Known>],
    /// The numbers of the instructions of each unit.
    pub numbers: &'a [Box<[u32]>],
    pub shapes: &'a [Arc<Shape>],
}

impl Code<'_> {
    fn instructions(&self) -> Vec<(&Instruction, Surrounding)> {
        self.known.iter().map(|known| (&known.insn, known.surrounding())).collect()
    }

    fn units(&self) -> Vec<(&[u32], &[Vec<Register>])> {
        let units = self.numbers.iter().zip(self.shapes);
        units.map(|(numbers, shape)| (&**numbers, shape.told.as_slice())).collect()
    }
}

impl Packed {
    pub fn of(part: &impl Serialize) -> Result<Packed, RegionError> {
        Packed::pack(&postcard::to_stdvec(part).map_err(|_| RegionError::Damaged)?)
    }

    /// Damage is seen when it is unpacked: what is in it is taken for granted then.
    pub fn pack(bytes: &[u8]) -> Result<Packed, RegionError> {
        let mut compressor = Compressor::new(1)?;
        compressor.include_checksum(true)?;
        Ok(Packed { unpacked: bytes.len(), bytes: compressor.compress(bytes)? })
    }

    pub fn unpack<T: DeserializeOwned>(&self) -> Result<T, RegionError> {
        let bytes = zstd::bulk::decompress(&self.bytes, self.unpacked.min(LARGEST))?;
        postcard::from_bytes(&bytes).map_err(|_| RegionError::Damaged)
    }
}

impl Part {
    pub fn add(packed: &Packed, store: &mut Store) -> Result<Part, RegionError> {
        Ok(Part { place: store.add(&packed.bytes)?, unpacked: packed.unpacked })
    }

    pub fn read(&self, store: &Store) -> Result<Packed, RegionError> {
        Ok(Packed { bytes: store.read(self.place)?, unpacked: self.unpacked })
    }

    /// The same in another store.
    pub fn copied(&self, from: &Store, to: &mut Store) -> Result<Part, RegionError> {
        Part::add(&self.read(from)?, to)
    }

    fn unpack<T: DeserializeOwned>(&self, store: &Store) -> Result<T, RegionError> {
        self.read(store)?.unpack()
    }
}

impl Region {
    /// Adds to a file all that is needed to open it again. Its code is packed while the rest is
    /// being completed.
    pub(crate) fn keep(
        &mut self,
        code: &Code<'_>,
        complete: impl FnOnce(&mut Region) -> Result<(), RegionError>,
    ) -> Result<(), RegionError> {
        if !matches!(self.store, Store::File { .. }) {
            return complete(self);
        }
        let (instructions, units) = std::thread::scope(|scope| {
            let instructions = scope.spawn(|| Packed::of(&code.instructions()));
            let units = scope.spawn(|| Packed::of(&code.units()));
            complete(self)?;
            Ok::<_, RegionError>((joined(instructions)?, joined(units)?))
        })?;
        let followed = self.followed(&self.chunks)?;
        end(&mut self.store, (&instructions, &units), &followed, &[])?;
        Ok(())
    }

    /// Adds all that is needed to open it again to another file, in which its chunks are.
    pub(crate) fn keep_again(&self, chunks: &[Chunk], mut store: Store) -> Result<(), RegionError> {
        let (instructions, units) = self.code.ok_or(RegionError::Damaged)?;
        let (instructions, units) = (instructions.read(&self.store)?, units.read(&self.store)?);
        let (followed, keys) = (self.followed(chunks)?, self.patterns().keys());
        let edition = end(&mut store, (&instructions, &units), &followed, &keys)?;
        self.lessons.are_of(edition);
        Ok(())
    }

    fn followed(&self, chunks: &[Chunk]) -> Result<Packed, RegionError> {
        Packed::of(&Followed {
            chunks,
            moments: &self.moments,
            inputs: &self.inputs,
            completions: &self.completions,
            words: &self.words,
            has_several_threads: self.has_several_threads,
            length: self.length,
        })
    }

    /// Opens a region that was finished in a file.
    pub fn open(file: File) -> Result<Region, RegionError> {
        let size = file.metadata()?.len();
        let mut last = [0; END];
        let at = size.checked_sub(END as u64).ok_or(RegionError::Damaged)?;
        file.read_exact_at(&mut last, at)?;
        if last[SUM..] != ending(&last[..SUM]) {
            return Err(RegionError::Damaged);
        }
        let parts = postcard::take_from_bytes(&last).map_err(|_| RegionError::Damaged)?;
        let (Parts { instructions, units, course, patterns, edition }, _) = parts;
        let code = (instructions, units);
        let store = Store::file(file)?;
        let (known, units, course, keys) = std::thread::scope(|scope| {
            let units = scope.spawn(|| units.unpack::<Vec<KeptUnit>>(&store));
            let course = scope.spawn(|| course.unpack::<OwnedFollowed>(&store));
            let keys = scope.spawn(|| patterns.unpack::<Vec<Box<[u32]>>>(&store));
            let instructions: Vec<(Instruction, Surrounding)> = instructions.unpack(&store)?;
            let known = shared_out(&instructions, |library, number, (insn, surrounding)| {
                Arc::new(library.make(number as u32, insn, *surrounding))
            });
            Ok::<_, RegionError>((known, joined(units)?, joined(course)?, joined(keys)?))
        })?;
        let units = shared_out(&units, |library, _, (numbers, told)| {
            let known = |number: &u32| known.get(*number as usize).cloned();
            let own: Vec<Arc<Known>> = numbers.iter().map(known).collect::<Option<_>>()?;
            let (instructions, told) = (own.iter().map(|known| known.insn).collect(), told.clone());
            let shape = Shape { instructions, told };
            let is_whole = shape.told.len() == shape.instructions.len() + 1;
            is_whole.then(|| library.unit(&shape, own))
        });
        let OwnedFollowed { chunks, moments, inputs, completions, words, .. } = course;
        let (has_several_threads, length) = (course.has_several_threads, course.length);
        let mut region = Region {
            units: Vec::new(),
            by_id: Vec::new(),
            chunks,
            store,
            patterns: OnceLock::new(),
            kept: Kept::default(),
            remembered: Remembered::default(),
            lessons: Lessons::of(edition),
            code: Some(code),
            moments,
            inputs,
            completions,
            words,
            has_several_threads,
            length,
        };
        for unit in units {
            region.add_unit(unit.ok_or(RegionError::Damaged)?);
        }
        region.patterns = OnceLock::from(region.described(&keys).ok_or(RegionError::Damaged)?);
        let is_own = keys.len() == edition.patterns;
        is_own.then_some(region).ok_or(RegionError::Damaged)
    }

    /// The patterns of its units that are described so; none if these cannot be its own.
    fn described(&self, keys: &[Box<[u32]>]) -> Option<Patterns> {
        let all = Patterns::of(&self.units);
        let made =
            shared_out(keys, |_, _, key| finder::described(key, &self.units, &self.by_id, &all));
        for (number, (key, pattern)) in (0..).zip(keys.iter().zip(made)) {
            let pattern = pattern?;
            // Each has a number of its own.
            if all.number(key, || pattern) != number {
                return None;
            }
        }
        Some(all)
    }
}

/// Adds what is needed to open a region again besides its chunks, and where all of it is.
fn end(
    store: &mut Store,
    (instructions, units): (&Packed, &Packed),
    followed: &Packed,
    keys: &[Box<[u32]>],
) -> Result<Edition, RegionError> {
    let patterns = Packed::of(&keys)?;
    let mut sum = Xxh3::new();
    for part in [instructions, units, &patterns] {
        sum.update(&part.bytes);
    }
    let edition = Edition { sum: sum.digest(), patterns: keys.len() };
    let instructions = Part::add(instructions, store)?;
    let (units, course) = (Part::add(units, store)?, Part::add(followed, store)?);
    let patterns = Part::add(&patterns, store)?;
    let parts = Parts { instructions, units, course, patterns, edition };
    let mut last = [0; END];
    postcard::to_slice(&parts, &mut last[..SUM]).map_err(|_| RegionError::Damaged)?;
    let ending = ending(&last[..SUM]);
    last[SUM..].copy_from_slice(&ending);
    store.add(&last)?;
    Ok(edition)
}

/// The sum of what is last, and the mark.
fn ending(last: &[u8]) -> [u8; END - SUM] {
    let mut ending = [0; END - SUM];
    ending[..8].copy_from_slice(&xxh3_64(last).to_le_bytes());
    ending[8..].copy_from_slice(&MARK);
    ending
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Makes something of each of many things, on all processors.
fn shared_out<T: Sync, R: Send>(
    all: &[T],
    make: impl Fn(&mut Library, usize, &T) -> R + Sync,
) -> Vec<R> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let next = AtomicUsize::new(0);
    let made = || {
        let (mut library, mut made) = (Library::default(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(share) = all.chunks(SHARE).nth(number) else {
                return made;
            };
            let numbered = (number * SHARE..).zip(share);
            let share = numbered.map(|(number, one)| make(&mut library, number, one));
            made.push((number, share.collect::<Vec<R>>()));
        }
    };
    let mut shares: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let begun: Vec<_> = (0..processors).map(|_| scope.spawn(made)).collect();
        begun.into_iter().flat_map(joined).collect()
    });
    shares.sort_unstable_by_key(|(number, _)| *number);
    shares.into_iter().flat_map(|(_, share)| share).collect()
}
