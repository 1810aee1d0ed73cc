//! What the reader of a trace knows of the registers while it follows a unit.
//!
//! The reader has the program's code and executes what is simple itself: it knows a
//! register that was written to the record, a constant, whatever simple instructions
//! make of these, and the stack pointer, which it follows from unit to unit. All other
//! registers have an origin that it does not know yet. Registers that differ by a
//! constant have the same origin, so that one of them tells the others, too.

use crate::emit::reg;
use crate::gs::number;
use iced_x86::{Instruction, Mnemonic, OpAccess, OpKind, Register, UsedRegister};

/// The origin of what is known from the start.
const TOLD: u32 = 0;

pub struct Known {
    origins: [u32; 16],
    last: u32,
}

impl Known {
    /// At a unit's first instruction.
    pub fn at_start() -> Known {
        let mut origins = std::array::from_fn(|register| register as u32 + 1);
        origins[usize::from(reg::RSP)] = TOLD;
        Known { origins, last: 16 }
    }

    pub fn is_told(&self, register: u8) -> bool {
        self.origins[usize::from(register)] == TOLD
    }

    /// The register's value is written to the record.
    pub fn tell(&mut self, register: u8) {
        let told = self.origins[usize::from(register)];
        for origin in self.origins.iter_mut().filter(|origin| **origin == told) {
            *origin = TOLD;
        }
    }

    /// What is known behind an instruction that uses these registers.
    pub fn execute(&mut self, insn: &Instruction, used: &[UsedRegister]) {
        let result = self.result(insn, used);
        let sources = self.origins;
        for changed in used.iter().filter(|u| writes(u.access()) && u.register().is_gpr()) {
            let register = number(changed.register());
            let moves_stack = register == reg::RSP && insn.stack_pointer_increment() != 0;
            self.last += 1;
            self.origins[usize::from(register)] = match insn.mnemonic() {
                Mnemonic::Leave if register == reg::RSP => sources[usize::from(RBP)],
                Mnemonic::Pop if insn.op0_register() == Register::RSP => self.last,
                _ if moves_stack => sources[usize::from(reg::RSP)],
                _ => result.unwrap_or(self.last),
            };
        }
    }

    /// The origin of what the instruction computes, if that is simple.
    fn result(&self, insn: &Instruction, used: &[UsedRegister]) -> Option<u32> {
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
            .map(|u| self.origins[usize::from(number(u.register()))]);
        let first = inputs.next().unwrap_or(TOLD);
        let (told, alone) =
            inputs.fold((first == TOLD, true), |(told, _), origin| (told && origin == TOLD, false));
        if told {
            return Some(TOLD);
        }
        // A constant more or less than the one input.
        let constant = match insn.mnemonic() {
            M::Mov => true,
            M::Lea => insn.memory_index() == Register::None && insn.memory_base().is_gpr64(),
            M::Add | M::Sub => insn.op1_kind() != OpKind::Register,
            M::Inc | M::Dec => true,
            _ => false,
        };
        (alone && constant && to.is_gpr64()).then_some(first)
    }
}

const RBP: u8 = 5;

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    const RAX: u8 = 0;
    const RDI: u8 = 7;

    /// What is known behind this code, when rdi was told at its beginning.
    fn behind(code: &[u8]) -> Known {
        let mut known = Known::at_start();
        known.tell(RDI);
        let mut factory = InstructionInfoFactory::new();
        for insn in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            let used = factory.info(&insn).used_registers().to_vec();
            known.execute(&insn, &used);
        }
        known
    }

    #[test]
    fn what_simple_instructions_make_of_the_told_is_told() {
        assert!(behind(&[0x48, 0x8d, 0x04, 0xff]).is_told(RAX)); // lea rax, [rdi + rdi*8]
        assert!(behind(&[0x31, 0xc0]).is_told(RAX)); // xor eax, eax
        assert!(behind(&[0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe0, 3]).is_told(RAX)); // mov; shl rax, 3
        assert!(behind(&[0x54, 0x5c]).is_told(RDI)); // push rsp; pop rsp
    }

    #[test]
    fn loads_and_parts_are_not() {
        assert!(!behind(&[0x48, 0x8b, 0x07]).is_told(RAX)); // mov rax, [rdi]
        assert!(!behind(&[0x40, 0x88, 0xf8]).is_told(RAX)); // mov al, dil
        assert!(!behind(&[0x5c]).is_told(reg::RSP)); // pop rsp
        assert!(!behind(&[0x48, 0x01, 0xf8]).is_told(RAX)); // add rax, rdi
        assert!(!behind(&[0xc9]).is_told(reg::RSP)); // leave
    }

    #[test]
    fn what_differs_by_a_constant_tells_each_other() {
        // mov rbp, rax; add rax, 8
        let mut known = behind(&[0x48, 0x89, 0xc5, 0x48, 0x83, 0xc0, 8]);
        assert!(!known.is_told(RAX));
        known.tell(RBP);
        assert!(known.is_told(RAX));
        // mov ebp, eax is not the whole of it.
        let mut known = behind(&[0x89, 0xc5]);
        known.tell(RBP);
        assert!(!known.is_told(RAX));
    }
}
