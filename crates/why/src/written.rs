//! Bytes that a run wrote to its standard output or error: who wrote each, when, and where it was
//! in memory then.

use crate::excerpt::spans::{Part, Spans};
use crate::questions::{Failure, no_answer};
use iced_x86::Register;
use std::collections::HashMap;
use why_effects::cells;
use why_record::event::{Event, Stream, Thread};
use why_record::position::Position;
use why_record::registers::NAMES;
use why_record::store::Recording;
use why_record::{Result, summary};
use why_slice::backward::Area;

/// Bytes that were written together.
pub struct Written {
    pub process: Thread,
    /// Before the call that wrote them.
    pub position: Position,
    /// Where the first of them is.
    pub at: u64,
    size: u64,
    /// As the so manieth of all processes.
    order: u64,
}

/// The byte with this number, from 0 on, of all that a run wrote to a stream, or of what one of its
/// processes wrote: it is the first of what is told.
pub fn find(
    recording: &Recording,
    stream: Stream,
    byte: u64,
    process: Option<Thread>,
) -> std::result::Result<Written, Failure> {
    let mut all = Vec::new();
    for known in summary::processes(recording).map_err(no_answer)? {
        if process.is_none_or(|process| process == known.pid) {
            all.extend(by_process(recording, known.pid, stream).map_err(no_answer)?);
        }
    }
    all.sort_by_key(|written| written.order);
    let mut before = 0;
    for written in all {
        if byte - before < written.size {
            let at = written.at + (byte - before);
            return Ok(Written { at, ..written });
        }
        before += written.size;
    }
    let who = process.map_or("the run".to_owned(), |process| format!("process {process}"));
    let (short, long) = name(stream);
    Err(no_answer(match before {
        0 => format!("{short}:{byte}: {who} wrote nothing to standard {long}"),
        1 => format!("{short}:{byte}: {who} wrote only one byte to standard {long}: {short}:0"),
        size => format!(
            "{short}:{byte}: {who} wrote only {size} bytes to standard {long}: {short}:0 to \
             {short}:{}",
            size - 1
        ),
    }))
}

/// As criteria name a stream, and as people do.
pub fn name(stream: Stream) -> (&'static str, &'static str) {
    match stream {
        Stream::Output => ("stdout", "output"),
        Stream::Error => ("stderr", "error"),
    }
}

/// What selects the bytes that a call is about to write, if it is one, by the registers then.
pub fn selected_by(registers: &[u64]) -> Vec<Area> {
    let of = |register: Register| Area::Cells(cells::of(register).expect("it is known"));
    let value = |name: &str| {
        let index = NAMES.iter().position(|known| *known == name);
        index.and_then(|index| registers.get(index)).copied().unwrap_or_default()
    };
    let pointers = match value("rax").cast_signed() {
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            value("rdx").saturating_mul(size_of::<libc::iovec>() as u64)
        }
        libc::SYS_sendmsg => size_of::<libc::msghdr>() as u64,
        _ => 0,
    };
    let at = value("rsi");
    vec![of(Register::RSI), Area::Memory(at..at.saturating_add(pointers))]
}

fn by_process(recording: &Recording, process: Thread, of: Stream) -> Result<Vec<Written>> {
    let mut spans = Spans::of(recording, process)?;
    let (mut found, mut untold): (Vec<Written>, usize) = (Vec::new(), 0);
    // Where each thread stopped last, and which one stopped last of all.
    let mut stopped: HashMap<Thread, Position> = HashMap::new();
    let (mut last, mut skipped) = (None, None);
    let by = |thread: Option<Thread>, written: &mut [Written], stopped: &HashMap<_, _>| {
        if let Some(position) = thread.and_then(|thread| stopped.get(&thread)) {
            written.iter_mut().for_each(|written| written.position = *position);
        }
    };
    while let Some(part) = spans.next()? {
        match part {
            Part::Span(span) => {
                // What a call did is told before its thread goes on.
                by(Some(span.thread), &mut found[untold..], &stopped);
                untold = found.len();
                let (event, first) = skipped.take().unwrap_or((span.event, 0));
                let ticks = (first + span.instructions).saturating_sub(1);
                stopped.insert(span.thread, Position { event, ticks, pc: None });
                last = Some(span.thread);
            }
            Part::Between(Event::Skipped { event, ticks }) => skipped = Some((event, ticks)),
            Part::Between(Event::Output { stream, order, at, size }) if stream == of => {
                let position = Position { event: 0, ticks: 0, pc: None };
                found.push(Written { process, position, at, size, order });
            }
            Part::Between(_) => {}
        }
    }
    by(last, &mut found[untold..], &stopped);
    Ok(found)
}
