//! A translated unit: straight-line application code with side exits, and the map
//! from its cache addresses back to application state.

use crate::context::Slot;
use crate::emit::{Literal, Patch};
use std::ops::Range;
use why_trace::shape::Numbered;

/// Where a unit hands over. The stub is `int3; jmp rel32`: unlinked, it traps to
/// the supervisor; linked, the first byte becomes a `nop`.
#[derive(Clone, Debug)]
pub struct Exit {
    /// Offset of the stub's `int3`.
    pub stub: u32,
    /// A branch that may go straight to the target once it is known, when nothing
    /// has to be done on the way.
    pub site: Option<Patch>,
    pub kind: ExitKind,
    /// Instructions executed when the unit is left here.
    pub executed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// To the unit of this application address.
    Direct(u64),
    /// To the unit of the application address in rcx; rcx and rdx have been saved.
    Indirect,
    /// The application's `syscall` before this address, all registers in place.
    Syscall { next: u64 },
    /// The same; going on behind the trap makes the call in the unit.
    Asks { next: u64 },
    /// The call was made here and answered EFAULT, perhaps only because the engine
    /// had write-protected a page of code.
    SyscallFault { next: u64 },
    /// The application's own `int3`.
    Breakpoint { next: u64 },
    /// An instruction is next whose result is not the program's own doing.
    Varies { pc: u64 },
    /// A slot's count has reached what was set: the supervisor looks before this address.
    Stopped { pc: u64 },
    /// The application's code is no longer what was translated.
    Stale,
    /// An instruction that the engine does not translate.
    Unsupported { pc: u64 },
}

impl ExitKind {
    pub fn target(self) -> Option<u64> {
        match self {
            ExitKind::Direct(target) => Some(target),
            _ => None,
        }
    }
}

/// Which cache bytes an application instruction became.
#[derive(Clone, Copy, Debug)]
pub struct InsnSpan {
    pub pc: u64,
    pub length: u8,
    pub code: u32,
    pub detail: SpanDetail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanDetail {
    Plain,
    /// From this offset on, the registers' values are in their slots.
    Borrowed {
        from: u32,
        loans: Loans,
    },
    /// The offset behind the `syscall` made in the cache.
    Syscall {
        behind: u32,
    },
    /// The same of a call that is logged: only at this offset is it complete and not yet
    /// logged.
    LoggedCall {
        behind: u32,
    },
    /// A repeated string instruction at this offset. It is interrupted there, with the
    /// application's state complete.
    Repeats {
        at: u32,
    },
}

/// Registers borrowed within an instruction, and where their values wait.
pub type Loans = [Option<(u8, Slot)>; 3];

/// What a cache address within a unit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before this instruction; the application's state is complete, but for the
    /// registers that the unit borrows as a whole.
    Before(usize),
    /// Within this instruction's code; a fault here is the instruction's fault.
    Within(usize, Loans),
    /// Behind this instruction's in-process system call.
    BehindSyscall(usize),
    /// On the way out.
    Leaving,
    /// At the `int3` of this exit.
    AtExit(usize),
}

#[derive(Clone, Debug)]
pub struct Unit {
    pub pc: u64,
    pub code: Vec<u8>,
    pub spans: Vec<InsnSpan>,
    /// Offset behind the last instruction's own code: stubs and literals follow.
    pub stubs: u32,
    pub exits: Vec<Exit>,
    /// From these offsets on so many of the unit's instructions have been counted.
    pub counted: Vec<(u32, u32)>,
    /// From this offset on the trace record has been written.
    pub committed_from: Option<u32>,
    /// Tracing borrows a register from the offset on until the unit is left.
    pub borrowed: Option<Borrowed>,
    /// It executes instructions that the CPU shown to the application does not have.
    pub beyond: bool,
    /// Nothing leads to it but the supervisor, and whoever leaves it comes to it again.
    pub alone: bool,
    /// What its trace records look like, when tracing.
    pub traced: Option<Numbered>,
    /// Offset behind the stubs: only literals follow, if any.
    pub end: u32,
    /// Application addresses that the code takes from memory.
    pub literals: Vec<Literal>,
    /// Offsets of four-byte displacements to application memory.
    pub displacements: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Borrowed {
    pub from: u32,
    /// Holds the place in the trace buffer; its own value is in
    /// [`crate::context::SAVED_TRACE`].
    pub register: u8,
}

impl Unit {
    /// A unit that leaves at once, for the supervisor to look before this address.
    pub fn stop_before(pc: u64) -> Unit {
        const TRAPS: [u8; 5] = [0xcc; 5];
        let kind = ExitKind::Stopped { pc };
        Unit {
            pc,
            code: TRAPS.to_vec(),
            spans: vec![InsnSpan { pc, length: 1, code: 0, detail: SpanDetail::Plain }],
            stubs: 0,
            exits: vec![Exit { stub: 0, site: None, kind, executed: 0 }],
            counted: Vec::new(),
            committed_from: None,
            borrowed: None,
            beyond: false,
            alone: false,
            traced: None,
            end: TRAPS.len() as u32,
            literals: Vec::new(),
            displacements: Vec::new(),
        }
    }

    pub fn instructions(&self) -> u32 {
        self.spans.len() as u32
    }

    /// What the cache address at `offset` means.
    pub fn place(&self, offset: u32) -> Place {
        if let Some(index) = self.exits.iter().position(|exit| exit.stub == offset) {
            return Place::AtExit(index);
        }
        if offset >= self.stubs {
            return Place::Leaving;
        }
        let index = self.spans.partition_point(|span| span.code <= offset);
        if index == 0 {
            // The code that opens a traced unit.
            return if offset == 0 { Place::Before(0) } else { Place::Leaving };
        }
        let index = index - 1;
        let span = self.spans[index];
        if offset == span.code {
            return Place::Before(index);
        }
        match span.detail {
            // Up to the call only rcx and r11 differ, and the call overwrites both.
            SpanDetail::Syscall { behind } if offset < behind => Place::Before(index),
            // What comes of it is being logged.
            SpanDetail::LoggedCall { behind } if offset < behind => Place::Before(index),
            SpanDetail::LoggedCall { behind } if offset == behind => Place::BehindSyscall(index),
            SpanDetail::Syscall { .. } => Place::BehindSyscall(index),
            SpanDetail::Repeats { at } if offset == at => Place::Before(index),
            SpanDetail::Borrowed { from, loans } if offset >= from => Place::Within(index, loans),
            _ => Place::Within(index, [None; 3]),
        }
    }

    /// The application address behind instruction `index`.
    pub fn next_pc(&self, index: usize) -> u64 {
        let span = self.spans[index];
        span.pc + u64::from(span.length)
    }

    /// The application code that the unit was made from, as ranges without gaps.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (index, span) in self.spans.iter().enumerate() {
            match ranges.last_mut() {
                Some(range) if range.end == span.pc => range.end = self.next_pc(index),
                _ => ranges.push(span.pc..self.next_pc(index)),
            }
        }
        ranges
    }

    /// The offset behind the `syscall` that instruction `index` makes in the cache.
    pub fn behind(&self, index: usize) -> Option<u32> {
        match self.spans[index].detail {
            SpanDetail::Syscall { behind } | SpanDetail::LoggedCall { behind } => Some(behind),
            _ => None,
        }
    }

    /// What the counter misses when `executed` instructions are complete and the
    /// cache address is at `offset`.
    pub fn uncounted(&self, offset: u32, executed: usize) -> i64 {
        let counted = self.counted.iter().rev().find(|&&(from, _)| offset >= from);
        executed as i64 - counted.map_or(0, |&(_, instructions)| i64::from(instructions))
    }
}
