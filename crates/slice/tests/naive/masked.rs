//! Instructions that access some lanes of memory, or write some lanes of a register, as a mask
//! says. What the mask and the indices were is known, since the program was stepped.

use super::machine::{Machine, Value};
use super::shadow::{At, Sources};
use iced_x86::{OpKind, Register};

/// Whether the instruction was one of these.
pub fn execute(m: &mut Machine<'_>) -> bool {
    let insn = m.insn();
    let name = m.name();
    let k = Some(insn.op_mask()).filter(|mask| *mask != Register::None);
    let memory = (0..insn.op_count()).any(|operand| insn.op_kind(operand) == OpKind::Memory);
    let loads = insn.op0_kind() == OpKind::Register;
    let last = insn.op_count().max(1) - 1;
    if name.starts_with("Kmov") {
        let from = Sources::all(&m.read(1));
        m.write_all(0, &from);
    } else if name.contains("gather") || name.contains("Gather") || name.contains("catter") {
        let mask = k.unwrap_or_else(|| insn.op2_register());
        let data = insn.op_register(if loads { 0 } else { last });
        let size = width(&name);
        let lanes = indexed(m, mask, data, size);
        if loads {
            load(m, &lanes, data, size, true);
        } else {
            store(m, &lanes, data, size);
        }
        m.set_register(mask, vec![Sources::default(); mask.size()]);
    } else if name.starts_with("Maskmov") && name.ends_with(['q', 'u']) {
        let (data, mask) = (insn.op1_register(), insn.op2_register());
        let count = data.size();
        let at = m.step.before.value(Register::RDI);
        let address = m.address_of(&[Register::RDI]);
        let lanes = side_by_side(m, at, address, mask, count, 1);
        store(m, &lanes, data, 1);
    } else if name.starts_with("Maskmov") || name.starts_with("Pmaskmov") {
        let size = width(&name);
        let (mask, data) = (insn.op1_register(), insn.op_register(if loads { 0 } else { 2 }));
        let lanes = named(m, mask, data.size() / size, size);
        if loads {
            load(m, &lanes, data, size, false);
        } else {
            store(m, &lanes, data, size);
        }
    } else if let Some(mask) = k {
        masked(m, &name, mask, memory && !insn.is_broadcast(), loads);
    } else if insn.op0_kind() == OpKind::Register && insn.op0_register().is_k() {
        let read: Vec<u32> = (1..=last).collect();
        let from = all_of(m, &read);
        m.write_all(0, &from);
    } else {
        return false;
    }
    true
}

/// Those with a mask register of AVX-512.
fn masked(m: &mut Machine<'_>, name: &str, mask: Register, memory: bool, loads: bool) {
    let insn = m.insn();
    let is_move = name.starts_with("Movdq")
        || matches!(name, "Movups" | "Movupd" | "Movss" | "Movsd" | "Movaps" | "Movapd");
    let is_packed = name.contains("ompress") || name.contains("xpand");
    let compares = name.starts_with("Pcmp");
    let merges = !insn.zeroing_masking();
    if memory && (is_move || is_packed || compares) {
        let size = match name.trim_start_matches("Movdq").trim_start_matches(['u', 'a']) {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            _ => width(name),
        };
        let bytes = insn.memory_size().size();
        let data = insn.op_register(if loads { 0 } else { 1 });
        let mut lanes = named(m, mask, bytes / size, size);
        if is_packed {
            let count = lanes.iter().filter(|lane| lane.active).count();
            let selected = Sources::all(&m.register(mask));
            for (index, lane) in lanes.iter_mut().enumerate() {
                lane.active = index < count;
                lane.selected = selected.clone();
            }
        }
        if compares {
            let read = |lane: &Lane| {
                Sources::all(&(0..size).map(|byte| lane.byte(m, byte)).collect::<Value>())
            };
            let compared = Sources::all(&lanes.iter().map(read).collect::<Value>());
            let mask = Sources::all(&m.register(mask));
            let from = Sources::all([&compared, &Sources::all(&m.read(1)), &mask]);
            m.write_all(0, &from);
        } else if is_packed {
            pack(m, &lanes, data, size, loads, merges);
        } else if loads {
            load(m, &lanes, data, size, merges);
        } else {
            store(m, &lanes, data, size);
        }
        return;
    }
    // All others mask what they have computed: all of it from all, and from what was there.
    let operands: Vec<u32> = (0..insn.op_count()).collect();
    let mut from = all_of(m, &operands);
    from.add(&Sources::all(&m.register(mask)));
    m.write_all(0, &from);
}

fn all_of(m: &Machine<'_>, operands: &[u32]) -> Sources {
    Sources::all(&operands.iter().map(|o| Sources::all(&m.read(*o))).collect::<Value>())
}

/// The bytes of a lane, by what an instruction is called.
fn width(name: &str) -> usize {
    let is_float = !name.starts_with('P');
    match name.chars().last() {
        // `ps` and `ss` are single precision, `pd` and `sd` double.
        Some('s') if is_float => 4,
        Some('d') if is_float => 8,
        Some('b') => 1,
        Some('w') => 2,
        Some('d') => 4,
        _ => 8,
    }
}

struct Lane {
    at: u64,
    active: bool,
    /// What says whether it is accessed, and what says where it is.
    selected: Sources,
    address: Sources,
}

impl Lane {
    /// What a byte in memory was made from, if it is accessed, and what selected it.
    fn byte(&self, m: &Machine<'_>, byte: usize) -> Sources {
        let mut sources = self.address.clone();
        if self.active {
            sources.add(&m.get(At::Memory(self.at.wrapping_add(byte as u64))));
        }
        sources
    }
}

/// Whether a lane is accessed, and what says so.
fn selects(m: &Machine<'_>, mask: Register, lane: usize, size: usize) -> (bool, Sources) {
    let bytes = m.step.vector(mask);
    if mask.is_k() {
        (bytes[lane / 8] >> (lane % 8) & 1 == 1, m.register(mask)[lane / 8].clone())
    } else {
        let sign = size * lane + size - 1;
        let cells = m.register(mask);
        // All of the MMX registers are one.
        (bytes[sign] >= 0x80, cells[sign.min(cells.len() - 1)].clone())
    }
}

fn named(m: &Machine<'_>, mask: Register, count: usize, size: usize) -> Vec<Lane> {
    let address = m.address_of(&m.named_registers());
    side_by_side(m, m.named_address(), address, mask, count, size)
}

fn side_by_side(
    m: &Machine<'_>,
    at: u64,
    address: Sources,
    mask: Register,
    count: usize,
    size: usize,
) -> Vec<Lane> {
    let lane = |lane: usize| {
        let (active, selected) = selects(m, mask, lane, size);
        Lane { at: at + (lane * size) as u64, active, selected, address: address.clone() }
    };
    (0..count).map(lane).collect()
}

/// The lanes of a gather or scatter.
fn indexed(m: &Machine<'_>, mask: Register, data: Register, size: usize) -> Vec<Lane> {
    let insn = m.insn();
    let index = insn.memory_index();
    let width = if m.name().contains("erd") { 4 } else { 8 };
    let numbers = m.step.vector(index);
    let lane = |lane: usize| {
        let bytes = &numbers[lane * width..(lane + 1) * width];
        let number = match width {
            4 => i64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
            _ => i64::from_le_bytes(bytes.try_into().unwrap()),
        };
        let away = number.wrapping_mul(insn.memory_index_scale().into()) as u64;
        let mut made_of = m.register(insn.memory_base());
        made_of.extend_from_slice(&m.register(index)[lane * width..(lane + 1) * width]);
        let address = Sources { addresses: Sources::all(&made_of).values, ..Sources::default() };
        let (active, selected) = selects(m, mask, lane, size);
        Lane { at: m.named_address().wrapping_add(away), active, selected, address }
    };
    (0..(index.size() / width).min(data.size() / size)).map(lane).collect()
}

fn load(m: &mut Machine<'_>, lanes: &[Lane], to: Register, size: usize, merges: bool) {
    let old = m.register(to);
    let mut value = Value::new();
    for (index, lane) in lanes.iter().enumerate() {
        for byte in 0..size {
            let mut from = lane.byte(m, byte);
            from.add(&lane.selected);
            if merges {
                from.add(&old[index * size + byte]);
            }
            value.push(from);
        }
    }
    value.resize(to.size(), Sources::default());
    m.set_register(to, value);
}

fn store(m: &mut Machine<'_>, lanes: &[Lane], from: Register, size: usize) {
    let data = m.register(from);
    for (index, lane) in lanes.iter().enumerate().filter(|(_, lane)| lane.active) {
        for byte in 0..size {
            // All of the MMX registers are one.
            let own = &data[(index * size + byte).min(data.len() - 1)];
            let sources = Sources::all([own, &lane.selected, &lane.address]);
            m.set(At::Memory(lane.at.wrapping_add(byte as u64)), sources);
        }
    }
}

/// Lanes that lie side by side in memory: which is which is not told apart, but that those in a
/// register come from no higher ones.
fn pack(
    m: &mut Machine<'_>,
    lanes: &[Lane],
    data: Register,
    size: usize,
    loads: bool,
    merges: bool,
) {
    let register = m.register(data);
    if !loads {
        let from = Sources::all(&register);
        for lane in lanes.iter().filter(|lane| lane.active) {
            let sources = Sources::all([&from, &lane.selected, &lane.address]);
            for byte in 0..size {
                m.set(At::Memory(lane.at + byte as u64), sources.clone());
            }
        }
        return;
    }
    let mut below = Sources::default();
    let mut value = Value::new();
    for (index, lane) in lanes.iter().enumerate() {
        (0..size).for_each(|byte| below.add(&lane.byte(m, byte)));
        let old =
            Sources::all(register[index * size..(index + 1) * size].iter().filter(|_| merges));
        let from = Sources::all([&below, &lane.selected, &old]);
        value.extend(vec![from; size]);
    }
    m.set_register(data, value);
}
