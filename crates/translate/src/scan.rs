//! Reads application code up to where a unit ends.

use crate::returns::is_intact;
use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, Instruction, Mnemonic, OpKind, Register,
    RflagsBits,
};

/// How control goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// Condition number and target.
    Conditional(u8, u64),
    /// `loop`, `jrcxz` and their like, which have a short form only.
    Counted(u64),
    Jump(u64),
    Call(u64),
    IndirectJump,
    IndirectCall,
    /// Bytes popped beyond the return address.
    Return(u16),
    Syscall,
    Breakpoint,
    /// `xbegin` with its fallback.
    Transaction(u64),
    Unsupported,
}

impl Flow {
    /// Whether the target is known only when it is reached.
    pub fn is_indirect(self) -> bool {
        matches!(self, Flow::IndirectJump | Flow::IndirectCall | Flow::Return(_))
    }
}

pub struct Scanned {
    pub insn: Instruction,
    raw: [u8; LONGEST],
    pub flow: Flow,
    /// Offset of the displacement when the operand is relative to RIP.
    pub rip_displacement: Option<usize>,
    /// The unit goes on at the target of this jump, call or branch, or where an indirect one is
    /// expected to lead.
    pub followed: Option<Followed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    Jump,
    /// A conditional branch back to the beginning of the unit.
    Loop,
    /// One that is nearly always taken.
    Taken,
    Call,
    /// A return that belongs to a call in the unit, or an indirect branch that mostly leads there.
    Expected {
        target: u64,
        certain: bool,
    },
}

/// No instruction is longer.
const LONGEST: usize = 15;

impl Scanned {
    pub fn bytes(&self) -> &[u8] {
        &self.raw[..self.insn.len()]
    }

    pub fn next(&self) -> u64 {
        self.insn.next_ip()
    }
}

pub struct Limits<'a> {
    pub instructions: usize,
    pub branches: usize,
    /// Whether the unit goes on behind a branch back that is not taken.
    pub passes_loops: bool,
    /// The conditional branches that are nearly always taken: the unit goes on at their targets.
    pub taken: &'a dyn Fn(u64, usize) -> bool,
    /// Where the indirect branch at an address mostly leads, if the unit has it so many times
    /// already.
    pub leads_to: &'a dyn Fn(u64, usize) -> Option<u64>,
    /// A loop that is a unit of its own is repeated in it as long as there are fewer
    /// instructions.
    pub repeated: usize,
}

/// Whether there are too few bytes to tell what instruction they begin.
pub fn is_cut_off(pc: u64, bytes: &[u8]) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let invalid = decoder.decode().is_invalid();
    invalid && bytes.len() < LONGEST && decoder.last_error() == DecoderError::NoMoreBytes
}

/// Up to `buffer.len()` bytes of code from an address on.
pub type Fetch<'a> = dyn FnMut(u64, &mut [u8]) -> usize + 'a;

/// Jumps and calls are followed no farther than this.
const NEAR: u64 = 64 << 20;

/// Code is read so much at a time: enough for most units.
const WINDOW: usize = 256;

/// The instructions of the unit at `pc`, in the order in which they execute as long
/// as no conditional branch is taken. At least one, unless there is no whole
/// instruction or what is there is none.
pub fn scan(pc: u64, fetch: &mut Fetch, limits: &Limits) -> Vec<Scanned> {
    let mut scanner =
        Scanner { fetch, limits, scanned: Vec::with_capacity(32), returns: Vec::new() };
    let mut at = Some(pc);
    while let Some(start) = at {
        at = scanner.straight(start);
    }
    scanner.scanned
}

struct Scanner<'a, 'f> {
    fetch: &'a mut Fetch<'f>,
    limits: &'a Limits<'a>,
    scanned: Vec<Scanned>,
    /// Where the calls that were followed will return to, and how many instructions
    /// there were up to them.
    returns: Vec<(u64, usize)>,
}

impl Scanner<'_, '_> {
    /// Reads on from `pc`; where to go on, if the unit does.
    fn straight(&mut self, pc: u64) -> Option<u64> {
        let mut window = [0; WINDOW];
        let length = (self.fetch)(pc, &mut window);
        let mut decoder = Decoder::with_ip(64, &window[..length], pc, DecoderOptions::NONE);
        while self.scanned.len() < self.limits.instructions {
            let start = decoder.position();
            if self.is_at_beginning(decoder.ip()) && !self.may_repeat() {
                return None;
            }
            if start > 0 && start + LONGEST > length && length == WINDOW {
                return Some(pc + start as u64);
            }
            let insn = decoder.decode();
            if insn.is_invalid() {
                return None;
            }
            let mut raw = [0; LONGEST];
            raw[..insn.len()].copy_from_slice(&window[start..start + insn.len()]);
            let flow = flow(&insn, &raw[..insn.len()]);
            let rip_displacement = insn
                .is_ip_rel_memory_operand()
                .then(|| decoder.get_constant_offsets(&insn).displacement_offset());
            let followed = None;
            self.scanned.push(Scanned { insn, raw, flow, rip_displacement, followed });
            match flow {
                Flow::Next | Flow::Syscall => {}
                Flow::Conditional(_, target) | Flow::Counted(target) => {
                    if let Some(next) = self.repeat(flow, target) {
                        return Some(next);
                    }
                    if self.branches() == self.limits.branches {
                        return None;
                    }
                    if matches!(flow, Flow::Conditional(..))
                        && (self.limits.taken)(insn.ip(), self.times(&insn))
                        && let Some(next) = self.follow(target, Followed::Taken)
                    {
                        return Some(next);
                    }
                    if target <= insn.ip() && !self.limits.passes_loops {
                        return None;
                    }
                }
                Flow::Jump(target) => return self.follow(target, Followed::Jump),
                Flow::Call(target) => {
                    let next = self.follow(target, Followed::Call)?;
                    self.returns.push((insn.next_ip(), self.scanned.len()));
                    return Some(next);
                }
                Flow::IndirectJump | Flow::IndirectCall | Flow::Return(_) => {
                    return self.expect(flow, &insn);
                }
                _ => return None,
            }
        }
        None
    }

    /// Goes on where an indirect branch is expected to lead.
    fn expect(&mut self, flow: Flow, insn: &Instruction) -> Option<u64> {
        let before = self.scanned.len() - 1;
        if matches!(flow, Flow::Return(_))
            && let Some((target, call)) = self.returns.pop()
        {
            let certain = is_intact(&self.scanned[call..before]);
            return self.follow(target, Followed::Expected { target, certain });
        }
        if insn.segment_prefix() == Register::GS {
            return None;
        }
        let target = (self.limits.leads_to)(insn.ip(), self.times(insn))?;
        let next = self.follow(target, Followed::Expected { target, certain: false })?;
        if flow == Flow::IndirectCall {
            self.returns.push((insn.next_ip(), self.scanned.len()));
        }
        Some(next)
    }

    /// How often the last instruction is there before.
    fn times(&self, last: &Instruction) -> usize {
        let before = &self.scanned[..self.scanned.len() - 1];
        before.iter().filter(|scanned| scanned.insn.ip() == last.ip()).count()
    }

    /// Goes on at the beginning once more, where a branch leads there.
    fn repeat(&mut self, flow: Flow, target: u64) -> Option<u64> {
        let begins_again = self.is_at_beginning(target)
            && matches!(flow, Flow::Conditional(..))
            && self.may_repeat();
        begins_again.then(|| {
            self.scanned.last_mut().expect("just pushed").followed = Some(Followed::Loop);
            target
        })
    }

    /// Whether the unit begins at an address.
    fn is_at_beginning(&self, address: u64) -> bool {
        self.scanned.first().is_some_and(|first| first.insn.ip() == address)
    }

    /// Whether what is there may be there once more.
    fn may_repeat(&self) -> bool {
        let turns = self.scanned.iter().filter(|s| self.is_at_beginning(s.insn.ip())).count();
        self.scanned.len() + self.scanned.len() / turns <= self.limits.repeated
    }

    fn branches(&self) -> usize {
        let conditional = |s: &&Scanned| {
            matches!(s.flow, Flow::Conditional(..) | Flow::Counted(_)) && s.followed.is_none()
        };
        self.scanned.iter().filter(conditional).count()
    }

    /// Lets the unit go on at `target`, if that is near, not part of it yet, and there
    /// is code.
    fn follow(&mut self, target: u64, followed: Followed) -> Option<u64> {
        let first = self.scanned[0].insn.ip();
        let seen = self.scanned.iter().any(|s| s.insn.ip() == target);
        let room = self.scanned.len() + 2 < self.limits.instructions;
        if seen || !room || target.abs_diff(first) > NEAR || (self.fetch)(target, &mut [0; 16]) < 16
        {
            return None;
        }
        self.scanned.last_mut().expect("just pushed").followed = Some(followed);
        Some(target)
    }
}

fn flow(insn: &Instruction, bytes: &[u8]) -> Flow {
    use Mnemonic as M;
    match insn.mnemonic() {
        M::Jmp if insn.is_jmp_short_or_near() => Flow::Jump(insn.near_branch_target()),
        M::Call if insn.is_call_near() => Flow::Call(insn.near_branch_target()),
        // With an operand-size prefix vendors differ in what these do.
        M::Jmp | M::Call | M::Ret if bytes[0] == 0x66 => Flow::Unsupported,
        M::Jmp if insn.is_jmp_near_indirect() => Flow::IndirectJump,
        M::Call if insn.is_call_near_indirect() => Flow::IndirectCall,
        M::Ret => Flow::Return(if insn.op_count() == 1 { insn.immediate16() } else { 0 }),
        _ if insn.is_jcc_short_or_near() => {
            let opcode = bytes[bytes.len() - if insn.is_jcc_near() { 5 } else { 2 }];
            Flow::Conditional(opcode & 15, insn.near_branch_target())
        }
        M::Loop | M::Loope | M::Loopne | M::Jrcxz | M::Jecxz => {
            Flow::Counted(insn.near_branch_target())
        }
        M::Jcxz => Flow::Unsupported,
        M::Syscall => Flow::Syscall,
        M::Int3 => Flow::Breakpoint,
        M::Int if insn.immediate8() == 3 => Flow::Breakpoint,
        // 32-bit system calls, and a trap; all other numbers fault where they stand.
        M::Int if matches!(insn.immediate8(), 0x80 | 4) => Flow::Unsupported,
        M::Xbegin => Flow::Transaction(insn.near_branch_target()),
        M::Jmp
        | M::Call
        | M::Retf
        | M::Iret
        | M::Iretd
        | M::Iretq
        | M::Int1
        | M::Sysenter
        | M::Swapgs
        | M::Lfs
        | M::Lgs => Flow::Unsupported,
        M::Mov | M::Pop if writes_segment(insn) => Flow::Unsupported,
        _ => Flow::Next,
    }
}

fn writes_segment(insn: &Instruction) -> bool {
    insn.op0_kind() == OpKind::Register
        && matches!(insn.op0_register(), Register::FS | Register::GS)
}

const ARITHMETIC: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Whether the instruction overwrites all arithmetic flags, reads none and cannot
/// fault: just before it the flags are free.
pub fn frees_flags(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(insn.mnemonic(), M::Add | M::Sub | M::Cmp | M::Test | M::And | M::Or | M::Xor | M::Neg)
        && (0..insn.op_count()).all(|op| insn.op_kind(op) != OpKind::Memory)
        && insn.rflags_read() & ARITHMETIC == 0
        && insn.rflags_modified() & ARITHMETIC == ARITHMETIC
}

/// The system call number that a `syscall` will use, when it is a constant set in
/// the instructions before it.
pub fn call_number(before: &[Scanned]) -> Option<u32> {
    for scanned in before.iter().rev() {
        let insn = &scanned.insn;
        match insn.code() {
            Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 if insn.op0_register() == Register::EAX => {
                return Some(insn.immediate32());
            }
            Code::Mov_rm64_imm32 if insn.op0_register() == Register::RAX => {
                return u32::try_from(insn.immediate32to64()).ok();
            }
            Code::Xor_r32_rm32 | Code::Xor_rm32_r32
                if insn.op0_register() == Register::EAX
                    && insn.op1_kind() == OpKind::Register
                    && insn.op1_register() == Register::EAX =>
            {
                return Some(0);
            }
            _ => {}
        }
        // Only moves between other registers may stand between: anything else
        // might write rax in a way not seen here.
        let harmless = matches!(insn.mnemonic(), Mnemonic::Mov | Mnemonic::Lea | Mnemonic::Xor)
            && insn.op0_kind() == OpKind::Register
            && insn.op0_register().full_register() != Register::RAX
            || matches!(insn.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64);
        if !harmless {
            return None;
        }
    }
    None
}
