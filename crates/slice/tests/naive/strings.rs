//! String instructions, with all their repetitions at once.

use super::machine::{Machine, Value};
use super::shadow::Sources;
use iced_x86::{Mnemonic as M, Register as R};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    // `movsd` and `cmpsd` are also names of vector instructions.
    if !insn.is_string_instruction() {
        return false;
    }
    let repeats = insn.has_rep_prefix() || insn.has_repne_prefix();
    let size = insn.memory_size().size();
    let whole = match size {
        1 => R::AL,
        2 => R::AX,
        4 => R::EAX,
        _ => R::RAX,
    };
    let value = m.register(whole);
    let (from, to) = (string(m, R::RSI), string(m, R::RDI));
    // How far a string goes and in which direction selects its bytes, as an address does.
    let mut selected = Sources::default();
    let mut course = m.flags("d");
    if repeats {
        course.add(&Sources::all(&m.register(R::RCX)));
        selected.addresses = course.values.clone();
    }
    let read = |m: &Machine<'_>, string: (u64, u64), pointer| {
        with(m.memory(string.0, string.1, &[pointer]), &selected)
    };
    let mut pointers = vec![R::RSI, R::RDI];
    let mut count = Sources::default();
    match insn.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => {
            let mut copied = read(m, from, R::RSI);
            let distance = to.0.abs_diff(from.0);
            if repeats && distance > 0 && distance < to.1 {
                // It may copy what it has just written.
                copied = vec![Sources::all(&copied); copied.len()];
            }
            m.set_memory(to.0, copied, &[R::RDI]);
        }
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => {
            let stored = match repeats {
                true => vec![Sources::all(&value); to.1 as usize],
                false => value,
            };
            m.set_memory(to.0, with(stored, &selected), &[R::RDI]);
            pointers = vec![R::RDI];
        }
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq => {
            assert!(!repeats, "nobody repeats loads");
            let loaded = read(m, from, R::RSI);
            m.set_register(whole, loaded);
            pointers = vec![R::RSI];
        }
        _ => {
            let compares = matches!(insn.mnemonic(), M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq);
            let other = if compares { read(m, from, R::RSI) } else { value };
            let mut compared = Sources::all(&[read(m, to, R::RDI), other].concat());
            if !compares {
                pointers = vec![R::RDI];
            }
            if repeats {
                compared.add(&Sources::all(&m.register(R::RCX)));
                m.touch_flags("cpazso", &compared);
                course.add(&compared);
                count = compared;
            } else {
                m.set_flags("cpazso", &compared);
            }
        }
    }
    for pointer in pointers {
        let moved = Sources::all([&Sources::all(&m.register(pointer)), &course]);
        m.set_register(pointer, vec![moved; 8]);
    }
    if repeats {
        m.set_register(R::RCX, vec![count; 8]);
    }
    true
}

fn with(value: Value, more: &Sources) -> Value {
    value.iter().map(|byte| Sources::all([byte, more])).collect()
}

/// The lowest byte that a pointer went over, and how many there are.
fn string(m: &Machine<'_>, pointer: R) -> (u64, u64) {
    let size = m.insn().memory_size().size() as u64;
    let (before, after) = (m.step.before.value(pointer), m.step.after.value(pointer));
    match after >= before {
        true => (before, after - before),
        // Downwards, from the element that it points to.
        false => (after.wrapping_add(size), before - after),
    }
}
