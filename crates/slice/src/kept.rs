//! A region that is kept in a file: behind the chunks there is all else, and behind that where
//! it begins.

use crate::course::{Input, Moment};
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
const MARK: [u8; 8] = *b"why-reg6";

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
        let Region { chunks, moments, inputs, words, length, .. } = &*self;
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
        let OwnedIndex { instructions, units, chunks, moments, inputs, words, .. } = index;
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
            words,
            has_several_threads,
            length,
        };
        let mut library = Library::default();
        for (insn, surrounding) in &instructions {
            library.add(insn, *surrounding);
        }
        for (numbers, told) in units {
            let known = |number: &u32| library.all.get(*number as usize).cloned();
            let own: Option<Vec<Arc<Known>>> = numbers.iter().map(known).collect();
            let own = own.ok_or(RegionError::Damaged)?;
            let shape = Shape { instructions: own.iter().map(|known| known.insn).collect(), told };
            if shape.told.len() != shape.instructions.len() + 1 {
                return Err(RegionError::Damaged);
            }
            region.add_unit(library.unit(&shape, own));
        }
        Ok(region)
    }
}
