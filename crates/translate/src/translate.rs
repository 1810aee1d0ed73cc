//! From application code to a [`Unit`].

mod indirect;
mod system_calls;

use crate::Tool;
use crate::context::{
    APP_GS, CallClass, SAVED_RCX, SAVED_SCRATCH, Slot, count_slot, looked_at_slot,
};
use crate::count::{self, Addition, Through};
use crate::emit::{Emitter, Patch, reg};
use crate::features::Features;
use crate::gs;
use crate::scan::{Fetch, Flow, Followed, Limits, Scanned, call_number, scan};
use crate::trace::Tracer;
use crate::unit::{Exit, ExitKind, InsnSpan, SpanDetail, Unit};
use crate::verify;
use crate::x87;
use crate::xsave;
use iced_x86::{Instruction, Mnemonic, Register};
use why_trace::shape::Shared;

/// Prefixes that may stand before REX and opcode.
const LEGACY_PREFIXES: [u8; 11] =
    [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];

const UNIT_INSTRUCTIONS: usize = 64;
const UNIT_BRANCHES: usize = 4;

/// Of a unit that is traced often: the fewer records there are, the less is to be read.
const LONGER_BRANCHES: usize = 12;

/// A loop is repeated within its unit up to so many instructions when counting, so that
/// its turns add to different slots and do not wait for each other.
const REPEATED: usize = 48;

/// Every unit is at least this long, so that a jump fits over its entry.
const SHORTEST: usize = 5;

pub struct Request<'a> {
    pub pc: u64,
    /// Where the unit will run.
    pub at: u64,
    pub tool: Tool,
    /// At most so many instructions, in a unit that is linked to no other.
    pub at_most: Option<usize>,
    /// Whether calls are logged, or come from the log.
    pub calls: Calls,
    /// Before which instructions the unit is left.
    pub leave_before: LeaveBefore,
    /// The CPU features that the application is shown.
    pub shown: Features,
    /// The same, and those that it has used nevertheless: a unit ends before an instruction
    /// that needs others.
    pub expected: Features,
    /// Save and restore no more registers than x87, SSE and AVX have.
    pub limit_xsave: bool,
    pub call_class: fn(u32) -> CallClass,
    /// Go on behind more branches, and behind loops.
    pub longer: bool,
    /// The conditional branches that are nearly always taken.
    pub taken: &'a dyn Fn(u64, usize) -> bool,
    /// Where an indirect branch mostly leads that the unit has so many times already.
    pub leads_to: &'a dyn Fn(u64, usize) -> Option<u64>,
    /// Where the unit's records get their ids, when tracing.
    pub shapes: &'a Shared,
    /// Compare the application's code with what was translated whenever it is entered.
    pub verify: bool,
    /// Whether programs may change their GS base by an instruction.
    pub gs_base_writable: bool,
    /// Whether the CPU has transactions.
    pub transactions: bool,
}

/// Instructions whose results the supervisor tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveBefore {
    Nothing,
    /// Those that ask what the CPU is.
    Questions,
    /// All whose results vary from run to run or from machine to machine.
    Varying,
}

impl LeaveBefore {
    fn concerns(self, insn: &Instruction) -> bool {
        match self {
            LeaveBefore::Nothing => false,
            LeaveBefore::Questions => {
                matches!(insn.mnemonic(), Mnemonic::Cpuid | Mnemonic::Xgetbv)
            }
            LeaveBefore::Varying => varies(insn),
        }
    }
}

/// What becomes of the classes of calls that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calls {
    /// There are none: nothing is recorded.
    Made,
    /// There are none yet: what is recorded begins later.
    NotYetLogged,
    /// They are made, and what comes of them is logged.
    Logged,
    /// They are not made; what came of them is in the log.
    Replayed,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TranslateError {
    /// No whole instruction here: either no code follows, or it is none.
    #[error("no instruction can be read at {0:#x}")]
    NoInstruction(u64),
    /// The instruction here needs a CPU feature that is not expected.
    #[error("the instruction at {0:#x} needs a CPU feature that is not expected")]
    Unexpected(u64),
    #[error("the operand of the instruction at {0:#x} is out of reach")]
    OutOfReach(u64),
    #[error("the instruction at {0:#x} uses GS in a way that is not translated")]
    UnknownGsUse(u64),
}

/// Translates the unit at an address, whose code `fetch` reads.
pub fn translate(request: &Request, fetch: &mut Fetch) -> Result<Unit, TranslateError> {
    let limits = Limits {
        instructions: request.at_most.unwrap_or(UNIT_INSTRUCTIONS),
        branches: if request.longer { LONGER_BRANCHES } else { UNIT_BRANCHES },
        passes_loops: request.longer,
        // What is compared when entered is in one piece.
        taken: &|branch, times| !request.verify && (request.taken)(branch, times),
        leads_to: &|branch, times| (request.leads_to)(branch, times).filter(|_| !request.verify),
        repeated: if request.tool.counts() { REPEATED } else { 0 },
    };
    let mut scanned = scan(request.pc, fetch, &limits);
    if scanned.is_empty() {
        return Err(TranslateError::NoInstruction(request.pc));
    }
    cut_at_calls(&mut scanned, request);
    if request.verify {
        cut_for_verification(&mut scanned);
    }
    let leaves = |scanned: &Scanned| request.leave_before.concerns(&scanned.insn);
    if let Some(last) = scanned.iter().position(leaves) {
        scanned.truncate(last + 1);
    }
    if let Some(end) = scanned.iter().position(|scanned| unexpected(&scanned.insn, request)) {
        scanned.truncate(end);
    }
    if scanned.is_empty() {
        return Err(TranslateError::Unexpected(request.pc));
    }
    Translator::new(request, scanned).run()
}

/// Whether an instruction needs a CPU feature that nobody expects. Where its result is told,
/// it need not be executed again.
fn unexpected(insn: &Instruction, request: &Request) -> bool {
    !request.expected.suffice_for(insn) && !varies(insn)
}

/// Whether an instruction's result depends on more than the program.
fn varies(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Cpuid
            | M::Rdtsc
            | M::Rdtscp
            | M::Rdrand
            | M::Rdseed
            | M::Rdpid
            | M::Rdpmc
            | M::Rdpru
            | M::Tpause
            | M::Umwait
            | M::Xgetbv
            | M::Sgdt
            | M::Sidt
            | M::Sldt
            | M::Smsw
            | M::Str
    )
}

/// A unit ends with a call that goes to the supervisor. When tracing it neither
/// begins before a call nor goes on behind it, because a call needs the registers
/// that tracing borrows.
fn cut_at_calls(scanned: &mut Vec<Scanned>, request: &Request) {
    let keep = scanned.iter().enumerate().find_map(|(index, insn)| {
        if insn.flow != Flow::Syscall {
            return None;
        }
        if request.tool.traces() {
            return Some(index.max(1));
        }
        let class = call_number(&scanned[..index]).map(request.call_class);
        (class == Some(CallClass::Supervised)).then_some(index + 1)
    });
    if let Some(keep) = keep {
        scanned.truncate(keep);
    }
}

/// A unit that is compared when entered is in one piece, and ends with a call, which
/// may change the code behind it.
fn cut_for_verification(scanned: &mut Vec<Scanned>) {
    let ends = |insn: &Scanned| insn.flow == Flow::Syscall || insn.followed.is_some();
    if let Some(last) = scanned.iter().position(ends) {
        scanned.truncate(last + 1);
    }
}

/// A way out that is emitted behind the straight-line code.
struct Pad {
    site: Patch,
    to: PadTo,
    executed: u32,
}

enum PadTo {
    Exit(ExitKind),
    /// To the supervisor, which may send the thread back to make the call here.
    Ask {
        next: u64,
        back: u32,
    },
    /// To the supervisor, which asked for a stop, with the last addition undone.
    Stop {
        pc: u64,
        slot: Slot,
        added: u32,
    },
    /// Not where it was expected, the difference to which is in rcx.
    Elsewhere {
        expected: u64,
    },
}

struct Translator<'a> {
    request: &'a Request<'a>,
    scanned: Vec<Scanned>,
    e: Emitter,
    spans: Vec<InsnSpan>,
    pads: Vec<Pad>,
    exits: Vec<Exit>,
    displacements: Vec<u32>,
    counting: Vec<Addition>,
    counted: Vec<(u32, u32)>,
    tracer: Option<Tracer>,
    committed_from: Option<u32>,
}

impl<'a> Translator<'a> {
    fn new(request: &'a Request<'a>, mut scanned: Vec<Scanned>) -> Self {
        let tracer = request.tool.traces().then(|| Tracer::plan(&mut scanned, request));
        if let Some(last) = scanned.last_mut() {
            // Nothing follows it here.
            last.followed = None;
        }
        let executed = match scanned.split_last() {
            // Who tells what comes of it counts it, too.
            Some((last, before)) if request.leave_before.concerns(&last.insn) => before,
            _ => &scanned,
        };
        let counting = match request.tool.counts() {
            true => count::plan(executed, request.tool.is_exact()),
            false => Vec::new(),
        };
        Translator {
            e: Emitter::new(request.at),
            spans: Vec::with_capacity(scanned.len()),
            pads: Vec::new(),
            exits: Vec::new(),
            displacements: Vec::new(),
            counting,
            counted: Vec::new(),
            tracer,
            committed_from: None,
            request,
            scanned,
        }
    }

    fn run(mut self) -> Result<Unit, TranslateError> {
        if self.request.verify {
            self.verify();
        }
        let opened = self.e.offset();
        if let Some(tracer) = &self.tracer {
            tracer.open(&mut self.e);
        }
        let scanned = std::mem::take(&mut self.scanned);
        let shown = |s: &Scanned| varies(&s.insn) || self.request.shown.suffice_for(&s.insn);
        let beyond = !scanned.iter().all(shown);
        let mut ended = false;
        for (index, insn) in scanned.iter().enumerate() {
            self.spans.push(InsnSpan {
                pc: insn.insn.ip(),
                length: insn.insn.len() as u8,
                code: self.e.offset(),
                detail: SpanDetail::Plain,
            });
            // First, because counting may go through a register that is written down here.
            if let Some(tracer) = &self.tracer {
                tracer.record(index, &mut self.e);
            }
            self.count(index);
            ended = self.instruction(index, &scanned)?;
        }
        if !ended {
            let last = &scanned[scanned.len() - 1];
            self.leave(ExitKind::Direct(last.next()), scanned.len() as u32);
        }
        let stubs = self.stubs();
        while self.e.code.len() < SHORTEST {
            self.e.bytes(&[0xcc]);
        }
        let end = self.e.offset();
        let (_, literals) = self.e.finish();
        let borrowed = self.tracer.as_ref().and_then(|tracer| tracer.borrowed(opened));
        let traced = self.tracer.map(Tracer::into_unit);
        Ok(Unit {
            pc: self.request.pc,
            code: self.e.code,
            spans: self.spans,
            stubs,
            exits: self.exits,
            counted: self.counted,
            committed_from: self.committed_from,
            borrowed,
            beyond,
            alone: self.request.at_most.is_some(),
            traced,
            end,
            literals,
            displacements: self.displacements,
        })
    }

    /// Makes the unit compare its application code before anything else.
    fn verify(&mut self) {
        let bytes: Vec<u8> = self.scanned.iter().flat_map(Scanned::bytes).copied().collect();
        for site in verify::check(&mut self.e, self.request.pc, &bytes) {
            self.pads.push(Pad { site, to: PadTo::Exit(ExitKind::Stale), executed: 0 });
        }
    }

    /// Adds to the count before instruction `index`, if it was planned there.
    fn count(&mut self, index: usize) {
        let Some(addition) = self.counting.iter().find(|a| a.before == index) else {
            return;
        };
        let Addition { instructions, through, looks, .. } = *addition;
        if looks && self.checks() {
            self.count_and_check(index, instructions, through);
            return;
        }
        let slot = self.slot(index);
        match through {
            Through::Memory => self.e.add_clobbering_flags(slot, instructions as i32),
            Through::Overwritten { register, may_fault } => {
                if may_fault {
                    self.e.store(SAVED_SCRATCH, register);
                    let loans = [Some((register, SAVED_SCRATCH)), None, None];
                    self.set_detail(SpanDetail::Borrowed { from: self.e.offset(), loans });
                }
                self.e.add_through(register, slot, instructions as i32);
            }
            // `indirect` does it.
            Through::Branch => return,
            Through::Borrowed => self.e.add(slot, instructions as i32, SAVED_RCX),
        }
        self.note_counted(instructions);
    }

    /// Whether the unit looks at the sum. Who asked for a few instructions wants them all.
    fn checks(&self) -> bool {
        self.request.tool.is_exact() && self.request.at_most.is_none()
    }

    /// Adds to a slot, which is negative as long as nobody has to look: else leaves the
    /// unit before instruction `index`.
    fn count_and_check(&mut self, index: usize, instructions: u32, through: Through) {
        const NOT_NEGATIVE: u8 = 9;
        let slot = self.slot(index);
        let site = match through {
            Through::Memory => {
                self.e.add_clobbering_flags(slot, instructions as i32);
                self.e.jcc(NOT_NEGATIVE)
            }
            _ => {
                self.e.store(SAVED_RCX, reg::RCX);
                self.e.add_through(reg::RCX, slot, instructions as i32);
                // The sign, plus one: zero as long as the slot is negative.
                self.e.load_sign(reg::RCX, slot);
                self.e.lea(reg::RCX, reg::RCX, 1);
                let negative = self.e.jrcxz();
                self.e.load(reg::RCX, SAVED_RCX);
                let site = self.e.jmp();
                self.e.land(negative);
                self.e.load(reg::RCX, SAVED_RCX);
                site
            }
        };
        let pc = self.spans[index].pc;
        let to = PadTo::Stop { pc, slot, added: instructions };
        self.pads.push(Pad { site, to, executed: index as u32 });
        self.note_counted(instructions);
    }

    /// The slot that an addition before instruction `index` uses. Where somebody looks, all
    /// additions of a unit use the one that it looks at.
    fn slot(&self, index: usize) -> Slot {
        // An instruction may be there several times.
        let spread = |index: usize| self.spans[index].pc.wrapping_add(index as u64);
        match self.counting.first() {
            Some(first) if first.looks => looked_at_slot(spread(first.before)),
            _ => count_slot(spread(index)),
        }
    }

    fn note_counted(&mut self, instructions: u32) {
        let before = self.counted.last().map_or(0, |&(_, total)| total);
        self.counted.push((self.e.offset(), before + instructions));
    }

    /// Emits one instruction; true if control cannot go on behind it.
    fn instruction(&mut self, index: usize, all: &[Scanned]) -> Result<bool, TranslateError> {
        let insn = &all[index];
        let executed = index as u32 + 1;
        if self.request.leave_before.concerns(&insn.insn) {
            self.leave(ExitKind::Varies { pc: insn.insn.ip() }, executed - 1);
            return Ok(true);
        }
        match insn.flow {
            Flow::Next => self.copy(insn)?,
            Flow::Conditional(condition, _) if insn.followed.is_some() => {
                let site = self.e.jcc(condition ^ 1);
                let to = PadTo::Exit(ExitKind::Direct(insn.next()));
                self.pads.push(Pad { site, to, executed });
            }
            Flow::Conditional(condition, target) => {
                let site = self.e.jcc(condition);
                self.pads.push(Pad { site, to: PadTo::Exit(ExitKind::Direct(target)), executed });
            }
            Flow::Counted(target) => {
                let bytes = insn.bytes();
                let (opcode, prefixes) = bytes[..bytes.len() - 1].split_last().unwrap();
                self.e.bytes(prefixes);
                let taken = self.e.short(*opcode);
                let skip = self.e.jmp_short();
                self.e.land(taken);
                self.pad(ExitKind::Direct(target), executed);
                self.e.land(skip);
            }
            Flow::Jump(target) => return Ok(self.go_on_at(insn, target, executed)),
            Flow::Call(target) => {
                self.e.push_value(insn.next());
                return Ok(self.go_on_at(insn, target, executed));
            }
            Flow::IndirectJump | Flow::IndirectCall | Flow::Return(_) => match insn.followed {
                Some(Followed::Expected { target, certain: false }) => {
                    self.expected(insn, target, executed)?;
                }
                Some(_) => {
                    let Flow::Return(extra) = insn.flow else {
                        unreachable!("nothing else is certain");
                    };
                    self.e.lea(reg::RSP, reg::RSP, 8 + i32::from(extra));
                }
                None => {
                    self.commit(executed);
                    self.indirect(insn)?;
                    return Ok(true);
                }
            },
            Flow::Syscall => {
                let class = call_number(&all[..index]).map(self.request.call_class);
                return Ok(self.syscall(insn, class, executed));
            }
            Flow::Breakpoint => {
                self.leave(ExitKind::Breakpoint { next: insn.next() }, executed);
                return Ok(true);
            }
            Flow::Transaction(fallback) if self.request.transactions => {
                // Every transaction aborts at once, with no hint to try again.
                self.e.bytes(&[0xb8, 0, 0, 0, 0]);
                self.leave(ExitKind::Direct(fallback), executed);
                return Ok(true);
            }
            // Without transactions in the CPU this is an invalid instruction.
            Flow::Transaction(_) => self.e.bytes(&[0x0f, 0x0b]),
            Flow::Unsupported => {
                self.leave(ExitKind::Unsupported { pc: insn.insn.ip() }, executed - 1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Behind a jump or call: the target's instructions follow here, or the unit ends.
    fn go_on_at(&mut self, insn: &Scanned, target: u64, executed: u32) -> bool {
        if insn.followed.is_some() {
            return false;
        }
        self.leave(ExitKind::Direct(target), executed);
        true
    }

    /// Puts an application address into a register. One that is far belongs to another
    /// image than the unit's own, and no archive holds such a unit.
    fn load_address(&mut self, register: u8, address: u64) {
        self.displacements.extend(self.e.load_address(register, address));
    }

    /// Copies an instruction that means the same wherever it stands, or would but
    /// for a displacement from RIP.
    fn copy(&mut self, scanned: &Scanned) -> Result<(), TranslateError> {
        let insn = &scanned.insn;
        if self.request.limit_xsave && xsave::takes_bitmap(insn) {
            let detail = xsave::limited(&mut self.e, insn, &mut self.displacements);
            return self.copied(insn, detail);
        }
        if x87::stores_address(insn) {
            let detail = x87::without_address(&mut self.e, insn, &mut self.displacements);
            return self.copied(insn, detail);
        }
        if let Some(at) = scanned.rip_displacement {
            return self.copy_rip_relative(scanned, at);
        }
        match insn.mnemonic() {
            Mnemonic::Rdgsbase => gs::read_base(&mut self.e, insn, APP_GS),
            Mnemonic::Wrgsbase => gs::write_base(&mut self.e, insn, APP_GS),
            _ if insn.segment_prefix() == Register::GS && gs::touches_memory(insn) => {
                match gs::through_scratch(&mut self.e, insn) {
                    Some(detail) => self.set_detail(detail),
                    None => self.with_application_gs(scanned, |translator| {
                        translator.e.bytes(scanned.bytes());
                        Ok(())
                    })?,
                }
            }
            _ => {
                if insn.is_string_instruction()
                    && (insn.has_rep_prefix() || insn.has_repne_prefix())
                {
                    self.set_detail(SpanDetail::Repeats { at: self.e.offset() });
                }
                self.e.bytes(scanned.bytes());
            }
        }
        Ok(())
    }

    /// An instruction has been emitted in another form, if it could.
    fn copied(
        &mut self,
        insn: &Instruction,
        detail: Option<SpanDetail>,
    ) -> Result<(), TranslateError> {
        self.set_detail(detail.ok_or(TranslateError::OutOfReach(insn.ip()))?);
        Ok(())
    }

    /// Emits an instruction while the application's GS base is the real one.
    fn with_application_gs(
        &mut self,
        scanned: &Scanned,
        emit: impl FnOnce(&mut Self) -> Result<(), TranslateError>,
    ) -> Result<(), TranslateError> {
        if !self.request.gs_base_writable {
            return Err(TranslateError::UnknownGsUse(scanned.insn.ip()));
        }
        let switch = gs::Switch::new(&scanned.insn, &[]);
        let from = switch.to_application(&mut self.e);
        let [own, application] = switch.loans().map(Some);
        self.set_detail(SpanDetail::Borrowed { from, loans: [own, application, None] });
        emit(self)?;
        switch.to_own(&mut self.e);
        Ok(())
    }

    fn copy_rip_relative(&mut self, scanned: &Scanned, at: usize) -> Result<(), TranslateError> {
        let insn = &scanned.insn;
        if insn.segment_prefix() == Register::GS && gs::touches_memory(insn) {
            return self
                .with_application_gs(scanned, |translator| translator.copy_displaced(scanned, at));
        }
        self.copy_displaced(scanned, at)
    }

    fn copy_displaced(&mut self, scanned: &Scanned, at: usize) -> Result<(), TranslateError> {
        let insn = &scanned.insn;
        // Relative to EIP: the target has been computed with 32 bits; the prefix goes.
        let mut bytes = scanned.bytes().to_vec();
        let mut at = at;
        let prefixes = bytes.iter().take_while(|&byte| LEGACY_PREFIXES.contains(byte)).count();
        if let Some(addr32) = bytes[..prefixes].iter().position(|&byte| byte == 0x67) {
            bytes.remove(addr32);
            at -= 1;
        }
        let end = self.e.here() + bytes.len() as u64;
        let target = insn.memory_displacement64();
        let displacement = i32::try_from(target.wrapping_sub(end) as i64)
            .map_err(|_| TranslateError::OutOfReach(insn.ip()))?;
        let place = self.e.offset() + at as u32;
        self.e.bytes(&bytes[..at]);
        self.e.imm32(displacement);
        self.e.bytes(&bytes[at + 4..]);
        self.displacements.push(place);
        Ok(())
    }

    fn set_detail(&mut self, detail: SpanDetail) {
        self.spans.last_mut().expect("within an instruction").detail = detail;
    }

    /// A jump to a way out.
    fn pad(&mut self, kind: ExitKind, executed: u32) {
        let site = self.e.jmp();
        self.pads.push(Pad { site, to: PadTo::Exit(kind), executed });
    }

    /// Ends the straight-line code with this exit.
    fn leave(&mut self, kind: ExitKind, executed: u32) {
        let borrows = self.tracer.as_ref().is_some_and(Tracer::borrows);
        if !borrows && self.uncounted(executed) == 0 {
            return self.pad(kind, executed);
        }
        self.commit(executed);
        self.correct(executed);
        self.stub(None, kind, executed);
    }

    fn stub(&mut self, site: Option<Patch>, kind: ExitKind, executed: u32) {
        let stub = self.e.offset();
        self.e.bytes(&[0xcc]);
        let next = self.e.jmp();
        self.e.patch_to(next, stub);
        self.exits.push(Exit { stub, site, kind, executed });
    }

    /// Writes the trace record of a unit of which so many instructions executed.
    fn commit(&mut self, executed: u32) {
        if let Some(tracer) = &self.tracer
            && tracer.borrows()
        {
            tracer.commit(executed, &mut self.e);
            self.committed_from = Some(self.e.offset());
        }
    }

    /// What the count misses, at this point of the code or on a way out from an earlier
    /// one, when so many instructions have been executed.
    fn uncounted(&self, executed: u32) -> i32 {
        if !self.request.tool.counts() {
            return 0;
        }
        let counted: u32 = self
            .counting
            .iter()
            .filter(|addition| addition.before < executed as usize)
            .map(|addition| addition.instructions)
            .sum();
        executed as i32 - counted as i32
    }

    fn correct(&mut self, executed: u32) {
        let uncounted = self.uncounted(executed);
        if uncounted != 0 {
            self.e.add(self.correction_slot(), uncounted, SAVED_RCX);
        }
    }

    /// The slot that corrections on the way out use: one that the unit looks at, if it does.
    fn correction_slot(&self) -> Slot {
        match self.counting.first() {
            Some(addition) if addition.looks => self.slot(addition.before),
            _ => count_slot(self.request.pc),
        }
    }

    /// Emits the ways out; returns where they begin.
    fn stubs(&mut self) -> u32 {
        let begin = self.e.offset();
        for pad in std::mem::take(&mut self.pads) {
            let start = self.e.offset();
            self.e.patch_to(pad.site, start);
            let kind = match pad.to {
                PadTo::Elsewhere { expected } => {
                    self.elsewhere(expected, pad.executed);
                    continue;
                }
                PadTo::Ask { next, back } => {
                    self.asking(next, back, pad.executed);
                    continue;
                }
                PadTo::Stop { pc, slot, added } => {
                    let by = self.uncounted(pad.executed) - added as i32;
                    self.e.add(slot, by, SAVED_RCX);
                    if let Some(tracer) = &self.tracer {
                        tracer.commit(pad.executed, &mut self.e);
                    }
                    self.stub(None, ExitKind::Stopped { pc }, pad.executed);
                    continue;
                }
                PadTo::Exit(kind) => kind,
            };
            if kind != ExitKind::Stale {
                self.correct(pad.executed);
            }
            if let (ExitKind::Direct(_), Some(tracer)) = (kind, &self.tracer) {
                tracer.commit(pad.executed, &mut self.e);
            }
            if kind == ExitKind::Stale {
                verify::give_back(&mut self.e);
            }
            let direct = self.e.offset() == start && matches!(kind, ExitKind::Direct(_));
            self.stub(direct.then_some(pad.site), kind, pad.executed);
        }
        begin
    }
}
