//! What an excerpt consists of, one thing after the other: events that are the same as in the
//! whole recording, and moments of that at which a replay has to be looked at.

use super::spans::{Part, Span, Spans};
use crate::fork::Fork;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use why_record::event::{Cause, Event, Source, Thread};
use why_record::position::Position;
use why_record::registers::Registers;
use why_record::store::Recording;
use why_slice::excerpt::Excerpt;

pub enum Item {
    Same(Event),
    /// The process is to be looked at there, for this.
    Look(Position, Purpose),
    /// The thread that runs stops as it did.
    Stops {
        instructions: u64,
        cause: Cause,
        registers: Registers,
    },
}

pub enum Purpose {
    /// The process is a copy of one that executes this: what it has of that is told.
    Copied { program: Event },
    /// The process is there, whatever it executes first.
    Start { thread: Thread },
    /// A stretch begins: what was written by what was left out, and what comes of calls.
    Begin { written: Vec<Range<u64>>, thread: Thread, calls: Vec<Event> },
    /// It ends, after so many instructions.
    End { instructions: u64 },
    /// What was written is told before the map of memory changes.
    Tell { written: Vec<Range<u64>> },
    /// The process is over: what it was then is told.
    Over { written: Vec<Range<u64>>, last: Last },
}

/// Where a thread stopped before the process was over.
pub struct Last {
    pub thread: Thread,
    pub event: u64,
    pub ticks: u64,
    pub cause: Cause,
    pub registers: Registers,
}

pub struct Script {
    spans: Spans,
    excerpt: Excerpt,
    items: VecDeque<Item>,
    /// What a thread executes now, and how far that has been gone through.
    span: Option<Current>,
    /// How many instructions have been executed before the span, or by now.
    pub position: u64,
    /// Where objects have been mapped privately: a page there is the object's until something is
    /// written to it.
    private_views: Vec<Range<u64>>,
    /// Of each thread: whether the call that it made last is executed.
    makes_calls: HashMap<Thread, bool>,
    is_over: bool,
}

struct Current {
    span: Span,
    calls: VecDeque<Event>,
    /// The last of its positions: one whose result is told counts, and so does one that was
    /// interrupted.
    end: u64,
}

/// What it ended with.
struct Ended {
    last: Last,
    /// Its last instruction is executed.
    is_executed: bool,
    /// It is a call that is not, and of which only the log tells.
    leaves_call: bool,
}

pub type Result<T> = std::result::Result<T, String>;

impl Script {
    pub fn new(recording: &Recording, process: i32, excerpt: Excerpt) -> Result<Script> {
        let mut script = Script {
            spans: Spans::of(recording, process).map_err(|error| error.to_string())?,
            excerpt,
            items: VecDeque::new(),
            span: None,
            position: 0,
            private_views: Vec::new(),
            makes_calls: HashMap::new(),
            is_over: false,
        };
        script.between(None)?;
        if !matches!(script.items.front(), Some(Item::Same(Event::Executed { .. }))) {
            script.begin_as_copy(recording, process)?;
        }
        if let Some(Current { span: Span { event, thread, .. }, .. }) = script.span {
            let at = Position { event, ticks: 0, pc: None };
            script.items.push_back(Item::Look(at, Purpose::Start { thread }));
        }
        Ok(script)
    }

    /// The process began as a copy of another one. What happened before its first instruction is
    /// in what is told of it there.
    fn begin_as_copy(&mut self, recording: &Recording, process: i32) -> Result<()> {
        let fork = Fork::of(recording, process, 1).map_err(|error| error.to_string())?;
        let program = fork.and_then(|fork| fork.program);
        let first = self.span.as_ref().map(|current| current.span.event);
        let (Some(program), Some(event)) = (program, first) else {
            return Err(format!(
                "process {process} began as a copy of another one, of which nothing is known, so \
                 there is no excerpt of it"
            ));
        };
        let at = Position { event, ticks: 0, pc: None };
        self.items = [Item::Look(at, Purpose::Copied { program })].into();
        Ok(())
    }

    /// How many instructions are executed that are not in the slice.
    pub fn besides(&self) -> u64 {
        self.excerpt.besides
    }

    pub fn next(&mut self) -> Result<Option<Item>> {
        while self.items.is_empty() && !self.is_over {
            match self.span.take() {
                Some(current) => self.stretch(current)?,
                None => self.is_over = true,
            }
        }
        Ok(self.items.pop_front())
    }

    /// The next stretch of a span, or its end.
    fn stretch(&mut self, mut current: Current) -> Result<()> {
        let failed = |error: why_slice::region::RegionError| error.to_string();
        let end = current.end;
        let Span { event, thread, instructions, cause, stopped, .. } = current.span;
        let left_out = self.excerpt.leave_out(end).map_err(failed)?;
        current.calls.drain(..current.calls.len().min(left_out.calls as usize));
        let begins = left_out.end;
        self.position = begins;
        let ended = |is_executed| Ended {
            last: Last { thread, event, ticks: instructions, cause, registers: stopped },
            is_executed,
            leaves_call: left_out.ends_with_call && !cause.is_own(),
        };
        let at = |ticks: u64| Position { event, ticks, pc: None };
        let stops = |ticks: u64| {
            let instructions = instructions - ticks;
            Item::Stops { instructions, cause, registers: stopped }
        };
        if begins == end {
            let is_interrupted = !cause.is_own() && self.excerpt.is_interrupted(end);
            if is_interrupted {
                // Nobody knows what was written before that.
                self.begins(at(instructions), thread, Vec::new());
                self.items.push_back(stops(instructions));
            }
            self.made_all(&current)?;
            return self.between(Some(ended(is_interrupted)));
        }
        let first = self.ticks(begins, &current.span)?;
        let executed = self.excerpt.execute(begins, end).map_err(failed)?;
        let made = current.calls.len().min(executed.calls as usize);
        let calls: Vec<Event> = current.calls.drain(..made).collect();
        self.begins(at(first), thread, calls);
        self.position = executed.end;
        if executed.end < end {
            let last = self.ticks(executed.end, &current.span)?;
            let instructions = last.saturating_sub(first);
            self.items.push_back(Item::Look(at(last), Purpose::End { instructions }));
            self.span = Some(current);
            return Ok(());
        }
        self.items.push_back(stops(first));
        self.made_all(&current)?;
        self.between(Some(ended(true)))
    }

    /// Where a position of a span is.
    fn ticks(&self, position: u64, span: &Span) -> Result<u64> {
        let ticks = self.excerpt.ticks(position).filter(|ticks| *ticks <= span.instructions);
        ticks.ok_or_else(|| format!("the trace has no position behind event {}", span.event))
    }

    fn begins(&mut self, at: Position, thread: Thread, calls: Vec<Event>) {
        let written = self.written();
        self.items.push_back(Item::Look(at, Purpose::Begin { written, thread, calls }));
    }

    /// What was written by what was left out, and is to be told.
    fn written(&mut self) -> Vec<Range<u64>> {
        const PAGE: u64 = 4096;
        let mut written = self.excerpt.take_written();
        let is_private = |bytes: &Range<u64>| {
            self.private_views.iter().any(|view| view.start < bytes.end && bytes.start < view.end)
        };
        for bytes in written.iter_mut().filter(|bytes| is_private(bytes)) {
            // When its page became one of its own tells what else is in it.
            let end = bytes.end.checked_next_multiple_of(PAGE).unwrap_or(bytes.end);
            *bytes = bytes.start / PAGE * PAGE..end;
        }
        written
    }

    /// Whether memory has to be what it was when this happens.
    fn needs_memory(&self, event: &Event) -> bool {
        match event {
            Event::Mapped { .. }
            | Event::Unmapped { .. }
            | Event::Protected { .. }
            | Event::Moved { .. }
            | Event::Output { .. } => true,
            // It may make a page of an object one of its own.
            Event::Wrote { .. } | Event::Copied { .. } => !self.private_views.is_empty(),
            _ => false,
        }
    }

    fn made_all(&self, current: &Current) -> Result<()> {
        match current.calls.len() {
            0 => Ok(()),
            left => Err(format!(
                "the trace lacks {left} system calls behind event {}; please report it",
                current.span.event
            )),
        }
    }

    /// What happens until a thread goes on.
    fn between(&mut self, ended: Option<Ended>) -> Result<()> {
        let mut events = Vec::new();
        let next = loop {
            match self.spans.next().map_err(|error| error.to_string())? {
                Some(Part::Span(span)) => break Some(span),
                Some(Part::Between(event)) => events.extend(kept(event)?),
                None => break None,
            }
        };
        if let Some(Ended { last, is_executed, .. }) = &ended {
            let makes = *is_executed && matches!(last.cause, Cause::Call(_));
            self.makes_calls.insert(last.thread, makes);
        }
        let whose = next.as_ref().map(|span| span.thread);
        let whose = whose.or(ended.as_ref().map(|ended| ended.last.thread));
        let writes = whose.is_some_and(|thread| self.makes_calls.get(&thread) == Some(&true));
        events.retain(|event| writes || !matches!(event, Event::Output { .. }));
        let counts = ended.as_ref().is_some_and(|e| !e.is_executed && e.leaves_call);
        let is_replaced = events.contains(&Event::Replaced);
        if let Some(ended) = ended {
            self.tell(ended, &events, next.is_none());
        }
        if is_replaced {
            self.excerpt.forget_written();
            self.makes_calls.clear();
        }
        for event in &events {
            match event {
                Event::Mapped { at, size, source: Source::Private { .. }, .. } => {
                    self.private_views.push(*at..at.saturating_add(*size));
                }
                Event::Moved { from, to, new_size, .. }
                    if self.private_views.iter().any(|view| view.contains(from)) =>
                {
                    self.private_views.push(*to..to.saturating_add(*new_size));
                }
                Event::Executed { .. } => self.private_views.clear(),
                _ => {}
            }
        }
        self.items.extend(events.into_iter().map(Item::Same));
        if let Some(mut span) = next {
            let positions = self.excerpt.behind(span.event);
            let calls = std::mem::take(&mut span.calls).into();
            self.excerpt.go_on(positions.start, counts).map_err(|error| error.to_string())?;
            self.span = Some(Current { span, calls, end: positions.end });
        }
        Ok(())
    }

    /// What is to be told of memory before these events, or because the process is over.
    fn tell(&mut self, ended: Ended, events: &[Event], is_over: bool) {
        let Ended { last, is_executed, .. } = ended;
        // What a call does is what comes next.
        let before_call = u64::from(matches!(last.cause, Cause::Call(_)) && last.ticks > 0);
        let at = Position { event: last.event, ticks: last.ticks - before_call, pc: None };
        if is_over && !is_executed {
            let written = self.written();
            self.items.push_back(Item::Look(at, Purpose::Over { written, last }));
            return;
        }
        let mut until_replaced = events.iter().take_while(|event| **event != Event::Replaced);
        if self.excerpt.has_written() && until_replaced.any(|event| self.needs_memory(event)) {
            let written = self.written();
            self.items.push_back(Item::Look(at, Purpose::Tell { written }));
        }
    }
}

/// An event, if the excerpt has it as well.
fn kept(event: Event) -> Result<Option<Event>> {
    match event {
        // Registers are told anew, and what memory holds in between nobody knows.
        Event::Vectors(_) | Event::Hashes { .. } => Ok(None),
        // The process goes on alone: what others write to shared memory is told.
        Event::Forked { .. } | Event::Turn { .. } => Ok(None),
        Event::Skipped { .. } | Event::Checkpoint(_) => {
            Err("the recording is an excerpt itself; use the one that it was made from".to_owned())
        }
        event => Ok(Some(event)),
    }
}
