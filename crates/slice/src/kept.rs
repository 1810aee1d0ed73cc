//! A region that is kept in a file: behind the chunks there is all else, and behind that where
//! it begins.

use crate::course::{Completions, Input, Moment};
use crate::decoding::Kept;
use crate::region::{Chunk, Region, RegionError};
use crate::store::{Store, Stored};
use crate::units::{Known, Library, Surrounding, Unit};
use iced_x86::{Instruction, Register};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use why_trace::shape::Shape;

/// Ends the file. A number that says how the rest is to be read.
const MARK: [u8; 8] = *b"why-reg8";

/// What is last in the file takes so many bytes.
const END: usize = 48;

/// More is not sensible, whatever the file says.
const LARGEST: usize = 1 << 30;

#[derive(Serialize)]
struct Index<'a> {
    instructions: Vec<(&'a Instruction, Surrounding)>,
    units: Vec<(Vec<u32>, &'a [Vec<Register>])>,
    chunks: &'a [Chunk],
    moments: &'a [Moment],
    inputs: &'a [Input],
    completions: &'a Completions,
    words: &'a [Range<u64>],
    has_several_threads: bool,
    length: u64,
}

#[derive(Deserialize)]
struct OwnedIndex {
    instructions: Vec<(Instruction, Surrounding)>,
    /// The numbers of their instructions, and which registers are told before each.
    units: Vec<(Vec<u32>, Vec<Vec<Register>>)>,
    chunks: Vec<Chunk>,
    moments: Vec<Moment>,
    inputs: Vec<Input>,
    completions: Completions,
    words: Vec<Range<u64>>,
    has_several_threads: bool,
    length: u64,
}

impl Region {
    /// Adds to a file all that is needed to open it again.
    pub(crate) fn keep(
        &mut self,
        known: &[Arc<Known>],
        shapes: &[Arc<Shape>],
    ) -> Result<(), RegionError> {
        if !matches!(self.store, Store::File { .. }) {
            return Ok(());
        }
        let Region { chunks, moments, inputs, completions, words, length, .. } = &*self;
        let (length, has_several_threads) = (*length, self.has_several_threads);
        let instructions = known.iter().map(|known| (&known.insn, known.surrounding())).collect();
        let numbers = |unit: &Unit| unit.instructions.iter().map(|known| known.number).collect();
        let units = self.units.iter().zip(shapes);
        let units = units.map(|(unit, shape)| (numbers(unit), shape.told.as_slice())).collect();
        let index = Index {
            instructions,
            units,
            chunks,
            moments,
            inputs,
            completions,
            words,
            has_several_threads,
            length,
        };
        let bytes = postcard::to_stdvec(&index).map_err(|_| RegionError::Damaged)?;
        let packed = zstd::bulk::compress(&bytes, 1)?;
        let place = (self.store.add(&packed)?, bytes.len());
        let mut last = [0; END];
        postcard::to_slice(&place, &mut last[..END - MARK.len()])
            .map_err(|_| RegionError::Damaged)?;
        last[END - MARK.len()..].copy_from_slice(&MARK);
        self.store.add(&last)?;
        Ok(())
    }

    /// Opens a region that was finished in a file.
    pub fn open(file: File) -> Result<Region, RegionError> {
        let size = file.metadata()?.len();
        let mut last = [0; END];
        let at = size.checked_sub(END as u64).ok_or(RegionError::Damaged)?;
        file.read_exact_at(&mut last, at)?;
        if last[END - MARK.len()..] != MARK {
            return Err(RegionError::Damaged);
        }
        let damaged = |_| RegionError::Damaged;
        let ((place, unpacked), _): ((Stored, usize), _) =
            postcard::take_from_bytes(&last).map_err(damaged)?;
        let store = Store::file(file)?;
        let packed = store.read(place)?;
        let bytes = zstd::bulk::decompress(&packed, unpacked.min(LARGEST))?;
        let index: OwnedIndex = postcard::from_bytes(&bytes).map_err(damaged)?;
        let OwnedIndex { instructions, units, chunks, moments, inputs, completions, words, .. } =
            index;
        let (has_several_threads, length) = (index.has_several_threads, index.length);
        let mut region = Region {
            units: Vec::new(),
            by_id: Vec::new(),
            chunks,
            store,
            patterns: OnceLock::new(),
            kept: Kept::default(),
            moments,
            inputs,
            completions,
            words,
            has_several_threads,
            length,
        };
        let known = shared_out(&instructions, |library, number, (insn, surrounding)| {
            Arc::new(library.make(number as u32, insn, *surrounding))
        });
        let units = shared_out(&units, |library, _, (numbers, told)| {
            let known = |number: &u32| known.get(*number as usize).cloned();
            let own: Vec<Arc<Known>> = numbers.iter().map(known).collect::<Option<_>>()?;
            let (instructions, told) = (own.iter().map(|known| known.insn).collect(), told.clone());
            let shape = Shape { instructions, told };
            let is_whole = shape.told.len() == shape.instructions.len() + 1;
            is_whole.then(|| library.unit(&shape, own))
        });
        for unit in units {
            region.add_unit(unit.ok_or(RegionError::Damaged)?);
        }
        Ok(region)
    }
}

/// Makes something of each of many things, on all processors.
fn shared_out<T: Sync, R: Send>(
    all: &[T],
    make: impl Fn(&mut Library, usize, &T) -> R + Sync,
) -> Vec<R> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let share = all.len().div_ceil(processors).max(1);
    std::thread::scope(|scope| {
        let made = |(number, share_of_all): (usize, &[T])| {
            let mut library = Library::default();
            let numbered = (number * share..).zip(share_of_all);
            numbered.map(|(number, one)| make(&mut library, number, one)).collect::<Vec<R>>()
        };
        let shares = all.chunks(share).enumerate();
        let begun: Vec<_> = shares.map(|share| scope.spawn(move || made(share))).collect();
        let finished = begun.into_iter().map(|share| share.join());
        let or_panic = |share: std::thread::Result<Vec<R>>| {
            share.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        finished.flat_map(or_panic).collect()
    })
}
