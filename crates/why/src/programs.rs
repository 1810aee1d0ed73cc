//! The programs that a process executes, one after the other.

use crate::excerpt::spans::{Part, Spans};
use crate::fork::Fork;
use why_record::Result;
use why_record::event::Event;
use why_record::position::Position;
use why_record::store::Recording;

pub struct Program {
    /// As its code is mapped.
    pub path: String,
    /// Where it begins. None if that was in another process that this one is a copy of, or if it
    /// never came to execute anything.
    pub begin: Option<Position>,
}

/// All programs of a process; the first may be that of another one that it is a copy of.
pub fn of(recording: &Recording, process: i32) -> Result<Vec<Program>> {
    let fork = Fork::of(recording, process, 1)?;
    let inherited = fork.and_then(|fork| fork.program).and_then(path);
    let mut all: Vec<Program> =
        inherited.into_iter().map(|path| Program { path, begin: None }).collect();
    let mut spans = Spans::of(recording, process)?;
    let mut is_new = false;
    while let Some(part) = spans.next()? {
        match part {
            Part::Between(event) => {
                let program = path(event).map(|path| Program { path, begin: None });
                is_new |= program.is_some();
                all.extend(program);
            }
            Part::Span(span) if is_new => {
                let position = Position { event: span.event, ticks: 0, pc: None };
                all.last_mut().expect("it is new").begin = Some(position);
                is_new = false;
            }
            Part::Span(_) => {}
        }
    }
    Ok(all)
}

fn path(event: Event) -> Option<String> {
    match event {
        Event::Executed { program, .. } => Some(program),
        _ => None,
    }
}
