//! What the reader of a trace knows of the registers while it follows a unit.
//!
//! The reader has the program's code and executes what is simple itself: it knows a
//! register that was written to the record, a constant, whatever simple instructions
//! make of these, and the stack pointer, which it follows from unit to unit. All other
//! registers have an origin that it does not know yet. Registers that differ by a
//! constant have the same origin, so that one of them tells the others, too.
//!
//! Whoever plans what is to be written executes the same with values that mean nothing,
//! and so knows what the reader will know.

use crate::number::Number;
use crate::register::{RBP, RSP, number, part};
use iced_x86::{Instruction, Mnemonic, OpAccess, OpKind, Register, UsedRegister};

/// The origin of what is known: zero.
const TOLD: u32 = 0;

/// A value as the sum of its origin and a number.
#[derive(Clone, Copy)]
struct Term<N> {
    origin: u32,
    plus: N,
}

impl<N: Number> Term<N> {
    fn told(value: N) -> Term<N> {
        Term { origin: TOLD, plus: value }
    }

    fn unknown(origin: u32) -> Term<N> {
        Term { origin, plus: N::constant(0) }
    }

    fn plus(self, number: u64) -> Term<N> {
        Term { plus: self.plus.plus(N::constant(number)), ..self }
    }
}

pub struct Known<N> {
    terms: [Term<N>; 16],
    last: u32,
}

impl<N: Number> Known<N> {
    /// At a unit's first instruction.
    pub fn at_start(stack_pointer: N) -> Known<N> {
        let mut terms = std::array::from_fn(|register| Term::unknown(register as u32 + 1));
        terms[usize::from(RSP)] = Term::told(stack_pointer);
        Known { terms, last: 16 }
    }

    pub fn value(&self, register: u8) -> Option<N> {
        let Term { origin, plus } = self.terms[usize::from(register)];
        (origin == TOLD).then_some(plus)
    }

    /// The register's value is in the record.
    pub fn tell(&mut self, register: u8, value: N) {
        let told = self.terms[usize::from(register)];
        assert_ne!(told.origin, TOLD, "nothing is told that is known");
        let origin = value.minus(told.plus);
        for term in self.terms.iter_mut().filter(|term| term.origin == told.origin) {
            *term = Term::told(term.plus.plus(origin));
        }
    }

    /// What is known behind an instruction that uses these registers.
    pub fn execute(&mut self, insn: &Instruction, used: &[UsedRegister]) {
        let result = self.result(insn, used);
        let before = self.terms;
        let stack = before[usize::from(RSP)];
        for changed in used.iter().filter(|u| writes(u.access()) && u.register().is_gpr()) {
            let register = number(changed.register());
            self.last += 1;
            let unknown = Term::unknown(self.last);
            let moves_stack = register == RSP && insn.stack_pointer_increment() != 0;
            self.terms[usize::from(register)] = match insn.mnemonic() {
                Mnemonic::Leave if register == RSP => before[usize::from(RBP)].plus(8),
                Mnemonic::Pop if insn.op0_register() == Register::RSP => unknown,
                Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => unknown,
                _ if moves_stack => stack.plus(i64::from(insn.stack_pointer_increment()) as u64),
                _ => result.unwrap_or(unknown),
            };
        }
    }

    /// What the instruction computes, if that is simple.
    fn result(&self, insn: &Instruction, used: &[UsedRegister]) -> Option<Term<N>> {
        use Mnemonic as M;
        let to = insn.op0_register();
        let simple = matches!(
            insn.mnemonic(),
            M::Mov
                | M::Lea
                | M::Add
                | M::Sub
                | M::Inc
                | M::Dec
                | M::And
                | M::Or
                | M::Xor
                | M::Not
                | M::Neg
                | M::Shl
                | M::Shr
                | M::Sar
                | M::Movzx
                | M::Movsx
                | M::Movsxd
        );
        let loads = insn.mnemonic() != M::Lea
            && (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
        // The rest of a register of which a part is written is its old value.
        let whole = to.is_gpr64() || to.is_gpr32();
        if !simple || loads || !whole || used.iter().any(|u| !u.register().is_gpr()) {
            return None;
        }
        let mut inputs = used
            .iter()
            .filter(|u| u.access() != OpAccess::Write)
            .map(|u| self.terms[usize::from(number(u.register()))]);
        let first = inputs.next().unwrap_or(Term::told(N::constant(0)));
        let (told, alone) = inputs.fold((first.origin == TOLD, true), |(told, _), term| {
            (told && term.origin == TOLD, false)
        });
        if told {
            return Some(Term::told(self.compute(insn)));
        }
        // A constant more or less than the one input.
        let constant = match insn.mnemonic() {
            M::Mov => Some(0),
            M::Lea if insn.memory_index() == Register::None && insn.memory_base().is_gpr64() => {
                Some(insn.memory_displacement64())
            }
            M::Add if insn.op1_kind() != OpKind::Register => Some(insn.immediate(1)),
            M::Sub if insn.op1_kind() != OpKind::Register => Some(insn.immediate(1).wrapping_neg()),
            M::Inc => Some(1),
            M::Dec => Some(1u64.wrapping_neg()),
            _ => None,
        };
        (alone && to.is_gpr64()).then(|| Some(first.plus(constant?)))?
    }

    /// The result of a simple instruction whose inputs are known.
    fn compute(&self, insn: &Instruction) -> N {
        use Mnemonic as M;
        let wide = insn.op0_register().is_gpr64();
        let bits = if wide { 64 } else { 32 };
        let a = self.register(insn.op0_register());
        let b = || match insn.op1_kind() {
            OpKind::Register => self.register(insn.op1_register()),
            _ => N::constant(insn.immediate(1)),
        };
        let same = insn.op_count() == 2
            && insn.op1_kind() == OpKind::Register
            && insn.op0_register() == insn.op1_register();
        let count = || b().lowest(if wide { 6 } else { 5 });
        let result = match insn.mnemonic() {
            // What was in the register does not matter, and need not be known.
            M::Xor | M::Sub if same => N::constant(0),
            M::Mov | M::Movzx => b(),
            M::Movsx | M::Movsxd => b().sign_extended(insn.op1_register().size()),
            M::Lea => self.address(insn),
            M::Add => a.plus(b()),
            M::Sub => a.minus(b()),
            M::Inc => a.plus(N::constant(1)),
            M::Dec => a.minus(N::constant(1)),
            M::And => a.and(b()),
            M::Or => a.or(b()),
            M::Xor => a.xor(b()),
            M::Not => a.not(),
            M::Neg => N::constant(0).minus(a),
            M::Shl => a.shifted_left(count()),
            M::Shr => a.shifted_right(count()),
            M::Sar => a.sign_extended(bits / 8).shifted_right_signed(count()),
            other => unreachable!("{other:?} is not simple"),
        };
        result.lowest(bits as u32)
    }

    fn address(&self, insn: &Instruction) -> N {
        let (base, index) = (insn.memory_base(), insn.memory_index());
        // The displacement from RIP includes it.
        let value = |register: Register| match register.is_gpr() {
            true => self.register(register),
            false => N::constant(0),
        };
        let address = value(base)
            .plus(value(index).times(u64::from(insn.memory_index_scale())))
            .plus(N::constant(insn.memory_displacement64()));
        let short = base.is_gpr32() || index.is_gpr32();
        if short { address.lowest(32) } else { address }
    }

    fn register(&self, register: Register) -> N {
        part(register, self.terms[usize::from(number(register))].plus)
    }
}

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    const RAX: u8 = 0;
    use crate::register::RDI;

    /// What is known behind this code, when rdi was told at its beginning.
    fn behind(code: &[u8]) -> Known<u64> {
        let mut known = Known::at_start(0x7000);
        known.tell(RDI, 0x1000);
        let mut factory = InstructionInfoFactory::new();
        for insn in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            let used = factory.info(&insn).used_registers().to_vec();
            known.execute(&insn, &used);
        }
        known
    }

    #[test]
    fn what_simple_instructions_make_of_the_told_is_told() {
        let rax = |code: &[u8]| behind(code).value(RAX);
        assert_eq!(rax(&[0x48, 0x8d, 0x04, 0xff]), Some(0x9000)); // lea rax, [rdi + rdi*8]
        assert_eq!(rax(&[0x31, 0xc0]), Some(0)); // xor eax, eax
        assert_eq!(rax(&[0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe0, 3]), Some(0x8000)); // mov; shl rax, 3
        assert_eq!(rax(&[0x48, 0x8d, 0x05, 1, 0, 0, 0]), Some(0x1008)); // lea rax, [rip + 1]
        assert_eq!(rax(&[0x89, 0xf8, 0xf7, 0xd8]), Some(0xffff_f000)); // mov eax, edi; neg eax
        // movsxd; sar rax, 1
        assert_eq!(
            rax(&[0x89, 0xf8, 0xf7, 0xd8, 0x48, 0x63, 0xc0, 0x48, 0xd1, 0xf8]),
            Some(-0x800i64 as u64)
        );
        assert_eq!(behind(&[0x54, 0x5c]).value(RDI), Some(0x1000)); // push rsp; pop rsp
        assert_eq!(behind(&[0x50, 0x51, 0x58]).value(RSP), Some(0x6ff8)); // push; push; pop
    }

    #[test]
    fn loads_and_parts_are_not() {
        assert!(behind(&[0x48, 0x8b, 0x07]).value(RAX).is_none()); // mov rax, [rdi]
        assert!(behind(&[0x40, 0x88, 0xf8]).value(RAX).is_none()); // mov al, dil
        assert!(behind(&[0x5c]).value(RSP).is_none()); // pop rsp
        assert!(behind(&[0x48, 0x01, 0xf8]).value(RAX).is_none()); // add rax, rdi
        assert!(behind(&[0xc9]).value(RSP).is_none()); // leave
    }

    #[test]
    fn what_differs_by_a_constant_tells_each_other() {
        // mov rbp, rax; add rax, 8
        let mut known = behind(&[0x48, 0x89, 0xc5, 0x48, 0x83, 0xc0, 8]);
        assert!(known.value(RAX).is_none());
        known.tell(RBP, 0x2000);
        assert_eq!(known.value(RAX), Some(0x2008));
        // mov ebp, eax is not the whole of it.
        let mut known = behind(&[0x89, 0xc5]);
        known.tell(RBP, 0x2000);
        assert!(known.value(RAX).is_none());
    }
}
