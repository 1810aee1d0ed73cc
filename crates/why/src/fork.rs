//! Where a process began as a copy of another one: what it had then was made there.

use crate::excerpt::spans::{Part, Spans};
use why_record::event::{Cause, Event, Thread};
use why_record::position::Position;
use why_record::store::Recording;
use why_record::stream::Reader;
use why_record::{Result, summary};

/// The call by which a process was created.
pub struct Fork {
    pub parent: Thread,
    /// Before the call.
    pub position: Position,
    /// What the process executes, as `Event::Executed` tells it.
    pub program: Option<Event>,
}

impl Fork {
    /// None if the process had begun as a program by that event, or if nobody knows where it came
    /// from.
    pub fn of(recording: &Recording, process: Thread, event: u64) -> Result<Option<Fork>> {
        if !is_copy_until(recording, process, event)? {
            return Ok(None);
        }
        let processes = summary::processes(recording)?;
        let own = processes.iter().find(|known| known.pid == process);
        let Some(parent) = own.and_then(|own| own.parent) else {
            return Ok(None);
        };
        let mut spans = Spans::of(recording, parent)?;
        let (mut call, mut program) = (None, None);
        while let Some(part) = spans.next()? {
            match part {
                Part::Span(span) if creates(span.cause) => {
                    let ticks = span.instructions.saturating_sub(1);
                    call = Some(Position { event: span.event, ticks, pc: None });
                }
                Part::Between(event @ Event::Executed { .. }) => program = Some(event),
                Part::Between(Event::Forked { child }) if child == process => break,
                _ => {}
            }
        }
        let Some(position) = call else {
            return Ok(None);
        };
        if program.is_none() {
            program = Fork::of(recording, parent, 1)?.and_then(|fork| fork.program);
        }
        Ok(Some(Fork { parent, position, program }))
    }
}

/// Whether a process is still what it was copied from at an event.
fn is_copy_until(recording: &Recording, process: Thread, event: u64) -> Result<bool> {
    let mut stream = Reader::open(&recording.stream(process, 1))?;
    let mut events = 0;
    while events < event
        && let Some(next) = stream.next_event()?
    {
        events += 1;
        if matches!(next, Event::Executed { .. } | Event::Replaced) {
            return Ok(false);
        }
    }
    Ok(events == event)
}

/// Whether it is a call that can create a process.
fn creates(cause: Cause) -> bool {
    const CALLS: [i64; 4] = [libc::SYS_fork, libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3];
    matches!(cause, Cause::Call(number) if CALLS.contains(&number.into()))
}
