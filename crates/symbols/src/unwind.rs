//! Who called whom, by the tables that the compiler writes for exceptions and debuggers.

use crate::evaluate;
use crate::image::section;
use crate::landings;
use crate::{Bytes, LinkAddress, Memory, Module, Modules};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, ParsedEhFrameHdr, Register,
    RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use object::{Object, ObjectSection};
use std::ops::Range;

/// The general registers and the return address, as DWARF numbers them.
pub const REGISTERS: usize = 17;
const RETURN_ADDRESS: usize = X86_64::RA.0 as usize;
const RSP: usize = X86_64::RSP.0 as usize;
const RBP: usize = X86_64::RBP.0 as usize;

/// No backtrace is longer.
const MOST_FRAMES: usize = 256;

/// Where a register of a frame is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the register of this number.
    Register(u16),
    /// A function that was called has put it aside.
    Memory(u64),
    /// It was computed, or lost.
    Nowhere,
}

/// A function that has not returned, and what was in its registers.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The instruction that is next, or that a called function will return to.
    pub pc: u64,
    /// By DWARF number; none if it is lost.
    pub registers: [Option<u64>; REGISTERS],
    /// Where they are now.
    pub(crate) homes: [Home; REGISTERS],
    /// The low halves of the vector registers, of the innermost frame.
    pub vectors: Option<[[u8; 16]; 16]>,
    /// What its stack pointer was before the call.
    pub cfa: Option<u64>,
    /// It was not called: the instruction at `pc` itself is of interest.
    pub is_exact: bool,
    /// The kernel has made it to call a signal handler.
    pub is_signal: bool,
}

impl Frame {
    /// The innermost: registers in the order of their DWARF numbers.
    pub fn innermost(registers: [u64; REGISTERS], vectors: Option<[[u8; 16]; 16]>) -> Frame {
        Frame {
            pc: registers[RETURN_ADDRESS],
            registers: registers.map(Some),
            homes: std::array::from_fn(|number| Home::Register(number as u16)),
            vectors,
            cfa: None,
            is_exact: true,
            is_signal: false,
        }
    }

    /// An address within the instruction that the frame is at.
    pub fn lookup(&self) -> u64 {
        if self.is_exact { self.pc } else { self.pc.wrapping_sub(1) }
    }
}

/// Why there is no frame behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Outermost,
    /// Nothing tells how to go on from the last frame.
    NoUnwindInformation,
    /// There are more.
    TooMany,
}

#[derive(Clone, Debug)]
pub struct Backtrace {
    /// The innermost first.
    pub frames: Vec<Frame>,
    pub end: End,
}

pub struct UnwindTables {
    eh_frame: EhFrame<Bytes>,
    header: Option<ParsedEhFrameHdr<Bytes>>,
    debug_frame: DebugFrame<Bytes>,
    bases: BaseAddresses,
    /// Where functions go on behind what is thrown.
    pub(crate) landings: landings::Tables,
}

impl UnwindTables {
    pub fn new(file: &object::File<'_>, debug: &object::File<'_>) -> UnwindTables {
        let address = |name: &str| file.section_by_name(name).map_or(0, |s| s.address());
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(address(".eh_frame_hdr"))
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let header = EhFrameHdr::from(section(file, ".eh_frame_hdr")).parse(&bases, 8).ok();
        let own = section(file, ".debug_frame");
        let debug_frame = match gimli::Reader::is_empty(&own) {
            true => section(debug, ".debug_frame"),
            false => own,
        };
        let mut debug_frame = DebugFrame::from(debug_frame);
        debug_frame.set_address_size(8);
        let mut eh_frame = EhFrame::from(section(file, ".eh_frame"));
        eh_frame.set_address_size(8);
        const LANDINGS: &str = ".gcc_except_table";
        let landings =
            landings::Tables { bytes: section(file, LANDINGS), address: address(LANDINGS) };
        UnwindTables { eh_frame, header, debug_frame, bases, landings }
    }
}

/// What a table says of an address.
struct Rules {
    cfa: CfaRule<usize>,
    registers: Vec<(Register, RegisterRule<usize>)>,
    is_signal: bool,
    /// The section that expressions are in.
    in_debug_frame: bool,
}

impl UnwindTables {
    fn rules(&self, LinkAddress(address): LinkAddress) -> Option<Rules> {
        self.eh_rules(address).or_else(|| {
            let find = DebugFrame::cie_from_offset;
            let fde = self.debug_frame.fde_for_address(&self.bases, address, find).ok()?;
            rules(&self.debug_frame, &self.bases, &fde, address, true)
        })
    }

    /// The code that one entry of a table is about.
    pub fn stretch(&self, LinkAddress(address): LinkAddress) -> Option<Range<u64>> {
        let find = DebugFrame::cie_from_offset;
        let fde = self
            .eh_entry(address)
            .or_else(|| self.debug_frame.fde_for_address(&self.bases, address, find).ok())?;
        let start = fde.initial_address();
        Some(start..start.checked_add(fde.len())?)
    }

    fn eh_rules(&self, address: u64) -> Option<Rules> {
        rules(&self.eh_frame, &self.bases, &self.eh_entry(address)?, address, false)
    }

    pub(crate) fn eh_entry(&self, address: u64) -> Option<gimli::FrameDescriptionEntry<Bytes>> {
        let find = EhFrame::cie_from_offset;
        let header = self.header.as_ref();
        let fde = match header.and_then(|header| Some((header, header.table()?))) {
            Some((header, table)) => {
                // What a damaged table points to may lie in front of all entries.
                let entry = table.lookup(address, &self.bases).ok()?;
                if entry.pointer() < header.eh_frame_ptr().pointer() {
                    return None;
                }
                table.fde_for_address(&self.eh_frame, &self.bases, address, find)
            }
            None => self.eh_frame.fde_for_address(&self.bases, address, find),
        };
        fde.ok()
    }

    fn expression(
        &self,
        expression: &gimli::UnwindExpression<usize>,
        in_debug_frame: bool,
    ) -> Option<gimli::Expression<Bytes>> {
        match in_debug_frame {
            true => expression.get(&self.debug_frame).ok(),
            false => expression.get(&self.eh_frame).ok(),
        }
    }
}

fn rules<S: UnwindSection<Bytes>>(
    section: &S,
    bases: &BaseAddresses,
    fde: &gimli::FrameDescriptionEntry<Bytes>,
    address: u64,
    in_debug_frame: bool,
) -> Option<Rules> {
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(section, bases, &mut context, address).ok()?;
    Some(Rules {
        cfa: row.cfa().clone(),
        registers: row.registers().map(|(register, rule)| (*register, rule.clone())).collect(),
        is_signal: fde.is_signal_trampoline(),
        in_debug_frame,
    })
}

impl Modules {
    /// The frames of a thread with these registers.
    pub fn backtrace(&self, memory: &dyn Memory, innermost: Frame) -> Backtrace {
        let mut frames = vec![innermost];
        loop {
            let frame = frames.last_mut().expect("there is one");
            let caller = match self.at(frame.lookup()) {
                Some(module) => self.caller(memory, module, frame),
                None => self.caller_of_nowhere(memory, frame),
            };
            match caller {
                Err(end) => return Backtrace { frames, end },
                Ok(caller) => {
                    if frames.len() == MOST_FRAMES {
                        return Backtrace { frames, end: End::TooMany };
                    }
                    frames.push(caller);
                }
            }
        }
    }

    /// Who called the function of a frame.
    pub(crate) fn caller_of(&self, memory: &dyn Memory, frame: &Frame) -> Option<Frame> {
        let module = self.at(frame.lookup())?;
        let mut caller = self.caller(memory, module, &mut frame.clone()).ok()?;
        // What its own frame is told from is found on the way to who called it.
        if let Some(module) = self.at(caller.lookup()) {
            let _ = self.caller(memory, module, &mut caller);
        }
        Some(caller)
    }

    fn caller(
        &self,
        memory: &dyn Memory,
        module: &Module,
        frame: &mut Frame,
    ) -> Result<Frame, End> {
        let address = module.linked(frame.lookup());
        let Some(rules) = module.image.unwind.rules(address) else {
            return self.caller_by_frame_pointer(memory, frame);
        };
        let lost = End::NoUnwindInformation;
        let tables = &module.image.unwind;
        let expression =
            |e: &gimli::UnwindExpression<usize>| tables.expression(e, rules.in_debug_frame);
        let cfa = match &rules.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = frame.registers.get(register.0 as usize).copied().flatten();
                base.map(|base| base.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(e) => expression(e)
                .and_then(|e| evaluate::unwind_expression(e, memory, &frame.registers, None)),
        };
        let cfa = cfa.ok_or(lost)?;
        frame.cfa = Some(cfa);
        frame.is_signal = rules.is_signal;
        let (mut registers, mut homes) = (frame.registers, frame.homes);
        // Calls preserve only some; what is not told of the others is not known.
        for register in [X86_64::RAX, X86_64::RDX, X86_64::RCX, X86_64::RSI, X86_64::RDI]
            .into_iter()
            .chain([X86_64::R8, X86_64::R9, X86_64::R10, X86_64::R11, X86_64::RA])
        {
            registers[register.0 as usize] = None;
        }
        (registers[RSP], homes[RSP]) = (Some(cfa), Home::Nowhere);
        let mut outermost = false;
        for (register, rule) in &rules.registers {
            let index = register.0 as usize;
            if index >= REGISTERS {
                continue;
            }
            let at = |distance: i64| cfa.wrapping_add_signed(distance);
            let evaluated = |e: &gimli::UnwindExpression<usize>| {
                evaluate::unwind_expression(expression(e)?, memory, &frame.registers, Some(cfa))
            };
            homes[index] = match rule {
                RegisterRule::SameValue => frame.homes[index],
                RegisterRule::Offset(distance) => Home::Memory(at(*distance)),
                RegisterRule::Register(other) => {
                    frame.homes.get(other.0 as usize).copied().unwrap_or(Home::Nowhere)
                }
                RegisterRule::Expression(e) => evaluated(e).map_or(Home::Nowhere, Home::Memory),
                _ => Home::Nowhere,
            };
            registers[index] = match rule {
                RegisterRule::Undefined => {
                    outermost |= index == RETURN_ADDRESS;
                    None
                }
                RegisterRule::SameValue => frame.registers[index],
                RegisterRule::Offset(distance) => memory.read_u64(at(*distance)),
                RegisterRule::ValOffset(distance) => Some(at(*distance)),
                RegisterRule::Register(other) => {
                    frame.registers.get(other.0 as usize).copied().flatten()
                }
                RegisterRule::Expression(e) => evaluated(e).and_then(|at| memory.read_u64(at)),
                RegisterRule::ValExpression(e) => evaluated(e),
                RegisterRule::Constant(value) => Some(*value),
                RegisterRule::Architectural => None,
            };
        }
        if outermost {
            return Err(End::Outermost);
        }
        let pc = registers[RETURN_ADDRESS].ok_or(lost)?;
        if pc == 0 {
            return Err(End::Outermost);
        }
        let before = frame.registers[RSP];
        if !rules.is_signal && before.is_some_and(|before| cfa <= before) {
            // Stacks grow downwards: these tables lead nowhere.
            return Err(lost);
        }
        Ok(Frame {
            pc,
            registers,
            homes,
            vectors: None,
            cfa: None,
            is_exact: rules.is_signal,
            is_signal: false,
        })
    }

    /// Code without tables that keeps a frame pointer.
    fn caller_by_frame_pointer(&self, memory: &dyn Memory, frame: &Frame) -> Result<Frame, End> {
        let lost = End::NoUnwindInformation;
        let (rsp, rbp) = frame.registers[RSP].zip(frame.registers[RBP]).ok_or(lost)?;
        let outer = memory.read_u64(rbp).ok_or(lost)?;
        let pc = memory.read_u64(rbp.wrapping_add(8)).ok_or(lost)?;
        if rbp < rsp || outer != 0 && outer <= rbp || self.at(pc).is_none() {
            return Err(lost);
        }
        let mut registers = [None; REGISTERS];
        let mut homes = [Home::Nowhere; REGISTERS];
        (registers[RBP], homes[RBP]) = (Some(outer), Home::Memory(rbp));
        Ok(called_from(pc, rbp.wrapping_add(16), registers, homes))
    }

    /// A call through a wrong pointer: the return address is all that there is. Code that
    /// was made at run time says nothing of its frames.
    fn caller_of_nowhere(&self, memory: &dyn Memory, frame: &Frame) -> Result<Frame, End> {
        let lost = End::NoUnwindInformation;
        let is_code = memory.read(frame.pc, &mut [0]) == 1;
        if !frame.is_exact || is_code {
            return Err(lost);
        }
        let rsp = frame.registers[RSP].ok_or(lost)?;
        let pc = memory.read_u64(rsp).ok_or(lost)?;
        self.at(pc).ok_or(lost)?;
        Ok(called_from(pc, rsp.wrapping_add(8), frame.registers, frame.homes))
    }
}

fn called_from(
    pc: u64,
    rsp: u64,
    mut registers: [Option<u64>; REGISTERS],
    homes: [Home; REGISTERS],
) -> Frame {
    registers[RSP] = Some(rsp);
    registers[RETURN_ADDRESS] = Some(pc);
    let (is_exact, is_signal) = (false, false);
    Frame { pc, registers, homes, vectors: None, cfa: None, is_exact, is_signal }
}
