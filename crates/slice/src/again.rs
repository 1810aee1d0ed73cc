//! What is done again once it is known where indirect jumps led: where the ways of some functions
//! meet is another place, and so is what had decided at the beginning of some chunks.

use crate::course::{Course, Room, Sink};
use crate::region::{Chunk, Form, Region, RegionError};
use crate::units::{Known, Library, Renewed, Unit};
use rustc_hash::FxHashSet;
use std::mem::replace;
use std::sync::Arc;
use why_trace::shape::Shape;

/// Which chunks were followed by which ways.
#[derive(Default)]
pub(crate) struct Again {
    /// The numbers of the instructions of each unit.
    instructions: Vec<Box<[u32]>>,
    /// The units that each chunk has executed.
    executed: Vec<Vec<u32>>,
    renewals: Vec<Renewal>,
}

/// Some units are others than they were.
struct Renewal {
    /// So many chunks had been followed then.
    chunks: usize,
    /// The units that decide over others.
    deciding: FxHashSet<u32>,
}

impl Again {
    /// The next unit.
    pub fn learn(&mut self, instructions: &[Arc<Known>]) {
        self.instructions.push(instructions.iter().map(|known| known.number).collect());
    }

    /// The numbers of the instructions of each unit.
    pub fn numbers(&self) -> &[Box<[u32]>] {
        &self.instructions
    }

    /// A chunk of records with these ids is over.
    pub fn end_chunk(&mut self, ids: impl Iterator<Item = u32>, by_id: &[(usize, usize)]) {
        let of_id = |id: u32| {
            let id = id.checked_sub(why_trace::FIRST_UNIT_ID)?;
            by_id.get(id as usize).map(|(unit, _)| *unit as u32)
        };
        let mut units: Vec<u32> = ids.filter_map(of_id).collect();
        units.dedup();
        self.executed.push(units);
    }

    /// Units with such instructions are made again.
    pub fn renew(
        &mut self,
        renewed: &Renewed,
        library: &mut Library,
        shapes: &[Arc<Shape>],
    ) -> Vec<(usize, Unit)> {
        if renewed.all.is_empty() {
            return Vec::new();
        }
        let (mut units, mut deciding) = (Vec::new(), FxHashSet::default());
        for (number, (instructions, shape)) in self.instructions.iter().zip(shapes).enumerate() {
            let has =
                |numbers: &FxHashSet<u32>| instructions.iter().any(|one| numbers.contains(one));
            if has(&renewed.all) {
                let newest = instructions.iter().map(|number| library.numbered(*number)).collect();
                units.push((number, library.unit(shape, newest)));
                deciding.extend(has(&renewed.deciding).then_some(number as u32));
            }
        }
        self.renewals.push(Renewal { chunks: self.executed.len(), deciding });
        units
    }

    /// For each chunk, whether units that it has executed were renewed later.
    fn outdated(&self, chunks: &[Chunk]) -> Vec<bool> {
        let mut renewals = self.renewals.iter().rev().peekable();
        let mut renewed: FxHashSet<u32> = FxHashSet::default();
        let mut outdated: Vec<bool> = Vec::new();
        for (number, (executed, chunk)) in self.executed.iter().zip(chunks).enumerate().rev() {
            while let Some(renewal) = renewals.next_if(|renewal| renewal.chunks > number) {
                renewed.extend(&renewal.deciding);
            }
            // What was pending when the chunk began has been followed in it.
            let pending = chunk.before.pending().map(|unit| unit as u32);
            let mut units = executed.iter().copied().chain(pending);
            outdated.push(units.any(|unit| renewed.contains(&unit)));
        }
        outdated.reverse();
        outdated
    }
}

impl Region {
    /// Chunks are followed again whose units decide over others now than they did, or that begin
    /// with something else decided.
    pub(crate) fn follow_again(&mut self, again: &Again) -> Result<(), RegionError> {
        let mut room = Room::default();
        let mut differing: Option<Course> = None;
        for (number, is_outdated) in again.outdated(&self.chunks).into_iter().enumerate() {
            let course = differing.take();
            let began = course.map(|course| replace(&mut self.chunks[number].before, course));
            let Some(next) = self.chunks.get(number + 1) else {
                break;
            };
            let led = match &began {
                _ if is_outdated => None,
                None => continue,
                Some(began) => next.before.led_to_by(began, &self.chunks[number].before),
            };
            let led = match led {
                Some(led) => led,
                None => self.led_to(number, &mut room)?,
            };
            let is_same = led.is_decided_as(&self.chunks[number + 1].before);
            differing = (!is_same).then_some(led);
        }
        Ok(())
    }

    fn led_to(&self, number: usize, room: &mut Room) -> Result<Course, RegionError> {
        let mut course = self.chunks[number].before.clone();
        course.prepare();
        let Form::Records(records) = self.chunks[number].form else {
            unreachable!("nothing is decoded before the region is finished");
        };
        self.follow(records, &mut course, room, &mut Nobody)?;
        Ok(course)
    }
}

/// Nobody is told what happens.
struct Nobody;

impl Sink for Nobody {
    const DETAILS: bool = false;
}
