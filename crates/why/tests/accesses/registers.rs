//! The registers of a stopped thread, as the addresses of an instruction need them.

use iced_x86::{CodeSize, Instruction, Mnemonic, Register, UsedMemory};
use libc::user_regs_struct;
use nix::unistd::Pid;

use crate::extended_state::ExtendedState;

#[derive(Clone, Debug)]
pub struct Registers {
    general: user_regs_struct,
    /// Read only for an instruction whose accesses depend on it.
    extended: Option<ExtendedState>,
}

impl Registers {
    pub fn before(
        instruction: &Instruction,
        pid: Pid,
        general: &user_regs_struct,
    ) -> nix::Result<Registers> {
        let extended =
            if needs_extended(instruction) { Some(ExtendedState::of(pid)?) } else { None };
        Ok(Registers { general: *general, extended })
    }

    /// The address of what is used; of one element, where there is a vector of indices.
    pub fn address(&self, used: &UsedMemory, element: usize) -> u64 {
        used.virtual_address(element, |register, element, size| {
            Some(if register.is_vector_register() {
                let bytes = self.extended().vector(register);
                little_endian(&bytes[element * size..][..size])
            } else {
                self.value(register)
            })
        })
        .expect("every register of an address has a value")
    }

    /// The same, moved within its segment.
    pub fn address_moved_by(&self, used: &UsedMemory, distance: i64) -> u64 {
        let base = self.value(used.segment());
        let offset = self.address(used, 0).wrapping_sub(base).wrapping_add_signed(distance);
        base.wrapping_add(match used.address_size() {
            CodeSize::Code32 => offset & 0xffff_ffff,
            _ => offset,
        })
    }

    /// A general register, whole or a lower part of it; a segment's base.
    pub fn value(&self, register: Register) -> u64 {
        let general = &self.general;
        let whole = match register.full_register() {
            Register::FS => return general.fs_base,
            Register::GS => return general.gs_base,
            Register::None | Register::CS | Register::DS | Register::ES | Register::SS => return 0,
            Register::RAX => general.rax,
            Register::RBX => general.rbx,
            Register::RCX => general.rcx,
            Register::RDX => general.rdx,
            Register::RSI => general.rsi,
            Register::RDI => general.rdi,
            Register::RBP => general.rbp,
            Register::RSP => general.rsp,
            Register::R8 => general.r8,
            Register::R9 => general.r9,
            Register::R10 => general.r10,
            Register::R11 => general.r11,
            Register::R12 => general.r12,
            Register::R13 => general.r13,
            Register::R14 => general.r14,
            Register::R15 => general.r15,
            other => panic!("{other:?} is no part of an address"),
        };
        match register.size() {
            1 => whole & 0xff,
            2 => whole & 0xffff,
            4 => whole & 0xffff_ffff,
            _ => whole,
        }
    }

    pub fn direction_is_down(&self) -> bool {
        const DIRECTION_FLAG: u64 = 1 << 10;
        self.general.eflags & DIRECTION_FLAG != 0
    }

    pub fn extended(&self) -> &ExtendedState {
        self.extended.as_ref().expect("it was read for an instruction that needs it")
    }
}

fn needs_extended(instruction: &Instruction) -> bool {
    let masked_by_a_vector = matches!(
        instruction.mnemonic(),
        Mnemonic::Maskmovq
            | Mnemonic::Maskmovdqu
            | Mnemonic::Vmaskmovdqu
            | Mnemonic::Vmaskmovps
            | Mnemonic::Vmaskmovpd
            | Mnemonic::Vpmaskmovd
            | Mnemonic::Vpmaskmovq
    );
    masked_by_a_vector || instruction.has_op_mask() || instruction.is_vsib()
}

pub fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
