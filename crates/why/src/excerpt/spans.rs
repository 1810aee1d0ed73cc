//! The events of a recorded process, as what threads executed and what happened in between.

use std::collections::HashMap;
use why_record::event::{Cause, Event, Thread};
use why_record::registers::Registers;
use why_record::store::Recording;
use why_record::stream::Reader;
use why_record::{RecordError, Result};

/// What a thread executed at a time.
pub struct Span {
    /// The event with which it went on.
    pub event: u64,
    pub thread: Thread,
    /// The calls that it made without the supervisor, one event each.
    pub calls: Vec<Event>,
    pub instructions: u64,
    pub cause: Cause,
    /// Its registers when it stopped.
    pub stopped: Registers,
}

pub enum Part {
    Span(Span),
    Between(Event),
}

/// Reads the streams of a process, one program after the other.
pub struct Spans {
    recording: Recording,
    process: Thread,
    program: u32,
    stream: Reader,
    events: u64,
    /// What was read too early.
    unread: Option<Event>,
    /// The registers of threads that do not run.
    threads: HashMap<Thread, Registers>,
}

impl Spans {
    pub fn of(recording: &Recording, process: Thread) -> Result<Spans> {
        Ok(Spans {
            recording: recording.clone(),
            process,
            program: 1,
            stream: Reader::open(&recording.stream(process, 1))?,
            events: 0,
            unread: None,
            threads: HashMap::new(),
        })
    }

    /// What comes next; none at the end.
    pub fn next(&mut self) -> Result<Option<Part>> {
        while let Some(event) = self.event()? {
            match &event {
                Event::Resumed { thread, registers } => {
                    let before = self.threads.remove(thread).unwrap_or_default();
                    let start = before.apply(registers).ok_or_else(|| self.damaged())?;
                    if let Some(span) = self.span(*thread, start)? {
                        return Ok(Some(Part::Span(span)));
                    }
                    // It was ended before it could stop, so nobody knows what it executed.
                    continue;
                }
                Event::Thread { thread, registers } => {
                    let told = Registers::default().apply(registers);
                    let told = told.ok_or_else(|| self.damaged())?;
                    self.threads.insert(*thread, told);
                }
                Event::ThreadEnded { thread } => drop(self.threads.remove(thread)),
                Event::Replaced => {
                    self.program += 1;
                    let path = self.recording.stream(self.process, self.program);
                    self.stream = Reader::open(&path)?;
                    self.threads.clear();
                }
                _ => {}
            }
            return Ok(Some(Part::Between(event)));
        }
        Ok(None)
    }

    /// What a thread executes that goes on with these registers.
    fn span(&mut self, thread: Thread, start: Registers) -> Result<Option<Span>> {
        let (event, mut calls) = (self.events, Vec::new());
        while let Some(next) = self.event()? {
            match next {
                Event::Calls(bytes) => calls.extend(one_by_one(&bytes)),
                Event::CallFromFile { .. } => calls.push(next),
                Event::Stopped { instructions, cause, registers } => {
                    let stopped = start.apply(&registers).ok_or_else(|| self.damaged())?;
                    self.threads.insert(thread, stopped);
                    return Ok(Some(Span { event, thread, calls, instructions, cause, stopped }));
                }
                other => {
                    self.unread = Some(other);
                    break;
                }
            }
        }
        Ok(None)
    }

    fn event(&mut self) -> Result<Option<Event>> {
        if let Some(event) = self.unread.take() {
            return Ok(Some(event));
        }
        let event = self.stream.next_event()?;
        self.events += u64::from(event.is_some());
        Ok(event)
    }

    fn damaged(&self) -> RecordError {
        let stream = self.recording.stream(self.process, self.program);
        RecordError::damaged(stream.display(), "registers are told that there are not")
    }
}

/// Calls that are told together, each as an event of its own.
fn one_by_one(mut calls: &[u8]) -> Vec<Event> {
    /// Its number, the size of what it wrote, and its result.
    const HEADER: usize = 16;
    let mut all = Vec::new();
    while let Some(header) = calls.first_chunk::<HEADER>() {
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let (call, rest) = calls.split_at(calls.len().min(HEADER + size));
        all.push(Event::Calls(call.to_vec()));
        calls = rest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_one_by_one() {
        let call = |number: u8, written: &[u8]| {
            let mut call = vec![number, 0, 0, 0, written.len() as u8, 0, 0, 0];
            call.extend([[7; 8].as_slice(), written].concat());
            call
        };
        let calls = [call(0, b"abc"), call(39, b""), call(1, b"x")];
        let expected: Vec<Event> = calls.iter().cloned().map(Event::Calls).collect();
        assert_eq!(one_by_one(&calls.concat()), expected);
    }
}
