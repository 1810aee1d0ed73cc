//! What was read, byte for byte: a session of the replay goes to each moment at which it was.

use crate::questions::{Failure, no_answer};
use crate::replay::{self, How};
use std::ops::Range;
use why_engine::{Look, Observer, Scene, Then};
use why_record::position::{Moment, Position};
use why_record::store::Recording;
use why_slice::region::{Input, Region};

/// A stretch of a stream.
pub struct Piece {
    pub stream: u64,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// What some inputs, which are in the order of time, held.
pub fn contents(
    recording: &Recording,
    process: i32,
    region: &Region,
    inputs: &[&Input],
) -> Result<Vec<Piece>, Failure> {
    let lost = || no_answer("what the program read cannot be told: it is not in the trace");
    let place = |input: &&Input| {
        let (event, ticks) = region.moment(input.at)?;
        Some((Moment::At(Position { event, ticks, pc: None }), input.bytes.clone()))
    };
    let places: Vec<(Moment, Range<u64>)> =
        inputs.iter().map(place).collect::<Option<_>>().ok_or_else(lost)?;
    let Some((first, _)) = places.first() else {
        return Ok(Vec::new());
    };
    let look = Some(Look::session(process, *first, Box::new(Reading { places, read: Vec::new() })));
    let report = replay::run(recording, How { look, ..How::default() }).map_err(no_answer)?;
    let read: Option<Vec<Vec<u8>>> =
        report.answer.and_then(|answer| serde_json::from_value(answer).ok());
    let read = read.filter(|read| read.len() == inputs.len()).ok_or_else(lost)?;
    let piece = |(input, bytes): (&&Input, Vec<u8>)| {
        let whole = bytes.len() as u64 == input.bytes.end - input.bytes.start;
        whole.then_some(Piece { stream: input.stream, offset: input.offset, bytes })
    };
    inputs.iter().zip(read).map(piece).collect::<Option<_>>().ok_or_else(lost)
}

struct Reading {
    places: Vec<(Moment, Range<u64>)>,
    read: Vec<Vec<u8>>,
}

impl Observer for Reading {
    fn arrived(&mut self, scene: &Scene) -> Then {
        let (here, _) = self.places[self.read.len()];
        // One call may have read to several places.
        while let Some((_, range)) = self.places.get(self.read.len()).filter(|(at, _)| *at == here)
        {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let got = scene.read(range.start, &mut bytes);
            bytes.truncate(got);
            self.read.push(bytes);
        }
        match self.places.get(self.read.len()) {
            Some((next, _)) => Then::GoTo(*next),
            None => Then::Enough,
        }
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.read).expect("plain data")
    }
}
