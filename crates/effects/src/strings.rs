//! String instructions, repeated or not.

use crate::cells::{self, DIRECTION};
use crate::parts::{Part, Place, accessed, cleared};
use iced_x86::{Instruction, InstructionInfo, Mnemonic as M, OpAccess, Register};

/// Whether the instruction repeats itself, so that only the run tells what it accesses.
pub fn repeats(insn: &Instruction) -> bool {
    insn.is_string_instruction() && (insn.has_rep_prefix() || insn.has_repne_prefix())
}

pub fn parts(insn: &Instruction, info: &InstructionInfo) -> Option<Vec<Part>> {
    if !insn.is_string_instruction() {
        return None;
    }
    let repeats = repeats(insn);
    let size = insn.memory_size().size() as u32;
    let string = |access: fn(OpAccess) -> bool| {
        let found = accessed(info).position(|memory| access(memory.access()));
        found.map(|operand| match repeats {
            true => Place::String { operand },
            false => Place::Memory { operand, bytes: 0..size },
        })
    };
    let (read, written) = (string(crate::general::reads), string(crate::general::writes));
    let count = Place::of(Register::RCX)?;
    let value = Place::of(accumulator(size))?;
    let pointers = pointers(info);
    let mut parts = Vec::new();
    // How often it repeated itself depends on what it compared.
    let mut course: Vec<Place> = Vec::new();
    match insn.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => parts.push(Part::copy(written?, read?)),
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => {
            let to = written?;
            parts.push(match repeats {
                true => Part::computed(to, vec![value]),
                false => Part::copy(to, value),
            });
        }
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => {
            // Of several the last one stays; of none, what was there.
            let from = read?;
            let more = repeats.then(|| [value.clone(), count.clone()]).into_iter().flatten();
            parts.push(match repeats {
                true => Part::computed(value, [from].into_iter().chain(more).collect()),
                false => Part::copy(value, from),
            });
            match cleared(insn, accumulator(size)) {
                // Nothing is cleared by what may not have happened.
                Some(part) if repeats => {
                    parts.push(Part::computed(part.to.clone(), vec![part.to, count.clone()]));
                }
                cleared => parts.extend(cleared),
            }
        }
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq => {
            let operands = (0..accessed(info).count()).map(|operand| match repeats {
                true => Place::String { operand },
                false => Place::Memory { operand, bytes: 0..size },
            });
            course.extend(operands);
            if accessed(info).count() == 1 {
                course.push(value);
            }
            if repeats {
                course.push(count.clone());
            }
            for flag in cells::flags(insn.rflags_modified()) {
                let old = repeats.then(|| Place::flag(flag));
                let sources = course.iter().cloned().chain(old).collect();
                parts.push(Part::computed(Place::flag(flag), sources));
            }
        }
        // Ports are nothing that programs can use.
        _ => return None,
    }
    if !repeats {
        course.clear();
    }
    let direction = Place::flag(DIRECTION);
    for pointer in pointers {
        let mut sources = vec![pointer.clone(), direction.clone()];
        if repeats {
            sources.push(count.clone());
        }
        sources.extend(course.iter().cloned());
        parts.push(Part::computed(pointer, sources));
    }
    if repeats {
        let sources =
            if course.is_empty() { Vec::new() } else { [course, vec![count.clone()]].concat() };
        parts.push(Part::computed(count, sources));
    }
    Some(parts)
}

/// The registers that point to strings.
fn pointers(info: &InstructionInfo) -> Vec<Place> {
    let mut pointers: Vec<Place> =
        accessed(info).filter_map(|memory| Place::of(memory.base().full_register())).collect();
    pointers.dedup();
    pointers
}

fn accumulator(size: u32) -> Register {
    match size {
        1 => Register::AL,
        2 => Register::AX,
        4 => Register::EAX,
        _ => Register::RAX,
    }
}
