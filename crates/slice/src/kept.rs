//! A region that is kept in a file: behind the chunks there is all else, and behind that where
//! it begins.

use crate::course::{Input, Moment};
use crate::region::{Chunk, Region, RegionError};
use crate::store::{Store, Stored};
use crate::units::Surroundings;
use iced_x86::InstructionInfoFactory;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use why_trace::shape::Shape;

/// Ends the file. A number that says how the rest is to be read.
const MARK: [u8; 8] = *b"why-reg2";

/// What is last in the file takes so many bytes.
const END: usize = 48;

/// More is not sensible, whatever the file says.
const LARGEST: usize = 1 << 30;

#[derive(Serialize)]
struct Index<'a> {
    units: &'a [(Arc<Shape>, Surroundings)],
    chunks: &'a [Chunk],
    moments: &'a [Moment],
    inputs: &'a [Input],
    length: u64,
}

#[derive(Deserialize)]
struct OwnedIndex {
    units: Vec<(Shape, Surroundings)>,
    chunks: Vec<Chunk>,
    moments: Vec<Moment>,
    inputs: Vec<Input>,
    length: u64,
}

impl Region {
    /// Adds to a file all that is needed to open it again.
    pub(crate) fn keep(&mut self, units: &[(Arc<Shape>, Surroundings)]) -> Result<(), RegionError> {
        if !matches!(self.store, Store::File { .. }) {
            return Ok(());
        }
        let Region { chunks, moments, inputs, length, .. } = self;
        let index = Index { units, chunks, moments, inputs, length: *length };
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
        let OwnedIndex { units, chunks, moments, inputs, length } =
            postcard::from_bytes(&bytes).map_err(damaged)?;
        let (units_known, by_id) = (Vec::new(), Vec::new());
        let mut region =
            Region { units: units_known, by_id, chunks, store, moments, inputs, length };
        let mut factory = InstructionInfoFactory::new();
        for (shape, surroundings) in &units {
            region.add_unit(shape, surroundings, &mut factory);
        }
        Ok(region)
    }
}
