//! Branches, single flags, system calls, and what does nothing.

use super::machine::{Machine, Value};
use super::moves::condition;
use super::shadow::Sources;
use super::sources::{all, nothing};
use iced_x86::{FlowControl, Mnemonic as M, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    match m.insn().mnemonic() {
        M::Jmp
        | M::Jrcxz
        | M::Jecxz
        | M::Nop
        | M::Endbr64
        | M::Rdsspq
        | M::Pause
        | M::Lfence
        | M::Mfence
        | M::Sfence
        | M::Prefetcht0
        | M::Prefetcht1
        | M::Prefetcht2
        | M::Prefetchnta
        | M::Prefetchw
        | M::Ud2 => {}
        M::Loop => {
            let from = all(&m.register(Register::RCX));
            m.set_register(Register::RCX, vec![from; 8]);
        }
        M::Lahf => {
            let from = m.flags("cpazs");
            m.set_register(Register::AH, vec![from]);
        }
        M::Sahf => {
            let from = all(&m.register(Register::AH));
            m.set_flags("cpazs", &from);
        }
        M::Cld => m.set_flags("d", &nothing()),
        M::Std => m.set_flags("d", &nothing()),
        M::Clc => m.set_flags("c", &nothing()),
        M::Stc => m.set_flags("c", &nothing()),
        // Where a CPU has transactions the C library asks whether it is in one.
        M::Xtest => m.set_flags("cpazso", &nothing()),
        M::Cmc => {
            let from = m.flags("c");
            m.set_flags("c", &from);
        }
        M::Cpuid => {
            let from =
                Sources::all([&all(&m.register(Register::EAX)), &all(&m.register(Register::ECX))]);
            for register in [Register::EAX, Register::EBX, Register::ECX, Register::EDX] {
                m.set_register(register, vec![from.clone(); 4]);
            }
        }
        M::Xgetbv => {
            let from = all(&m.register(Register::ECX));
            m.set_register(Register::EAX, vec![from.clone(); 4]);
            m.set_register(Register::EDX, vec![from; 4]);
        }
        M::Rdtsc => {
            m.set_register(Register::EAX, vec![nothing(); 4]);
            m.set_register(Register::EDX, vec![nothing(); 4]);
        }
        M::Syscall => {
            let from = asked(m);
            m.set_register(Register::RAX, vec![from; 8]);
            m.set_register(Register::RCX, vec![nothing(); 8]);
            let flags = m.flags("cpazsod");
            m.set_register(Register::R11, vec![flags; 8]);
        }
        _ => return false,
    }
    true
}

/// What a system call is told.
pub fn asked(m: &Machine<'_>) -> Sources {
    let told = [Register::RAX].iter().chain(m.step.given);
    Sources::all(&told.flat_map(|register| m.register(*register)).collect::<Value>())
}

/// What decided where a branch or a call led.
pub fn decision(m: &Machine<'_>) -> Sources {
    let insn = m.insn();
    match insn.flow_control() {
        FlowControl::IndirectBranch | FlowControl::IndirectCall => all(&m.read(0)),
        FlowControl::ConditionalBranch => match insn.mnemonic() {
            M::Jrcxz | M::Loop => all(&m.register(Register::RCX)),
            M::Jecxz => all(&m.register(Register::ECX)),
            M::Loope | M::Loopne => Sources::all([&all(&m.register(Register::RCX)), &m.flags("z")]),
            _ => condition(m),
        },
        _ => Sources::default(),
    }
}
