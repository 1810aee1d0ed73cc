//! The CPU itself is asked: whatever changes behind an instruction when one byte before it is
//! another must be said to depend on that byte, and whatever is said to stay must stay.

use iced_x86::{
    Formatter, InstructionInfoFactory, IntelFormatter, Mnemonic, OpKind, Register, UsedMemory,
};
use std::collections::BTreeMap;
use std::ops::Range;
use why_effects::cells::{self, CELLS, Cell, FLAG_POSITIONS, X87};
use why_effects::{Effects, Lanes, Order, Part, Place, Size, effects};

#[path = "perturbed/forms.rs"]
mod forms;
#[path = "perturbed/machine.rs"]
mod machine;

use machine::{DATA, DATA_SIZE, Layout, Machine, State};

/// In how many states each instruction is executed.
const TIMES: usize = 3;
/// How many bytes are changed in each.
const CHANGES: usize = 48;

/// A byte before or behind an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Byte {
    Cell(Cell),
    /// At this offset in the data.
    Memory(usize),
}

#[test]
fn nothing_depends_on_what_is_not_named() {
    let machine = Machine::start();
    let mut random = Random(1);
    let mut factory = InstructionInfoFactory::new();
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut tried, mut passed_over) = (0, BTreeMap::<String, usize>::new());
    for forms::Example { insn, bytes } in forms::all() {
        if is_not_for_this(&insn) {
            continue;
        }
        let told = effects(&insn, &mut factory);
        let memory: Vec<UsedMemory> = accessed(&insn, &mut factory);
        let mut text = String::new();
        IntelFormatter::new().format(&insn, &mut text);
        let case =
            Case { machine: &machine, insn: &insn, bytes: &bytes, told: &told, memory: &memory };
        let mut executed = false;
        for _ in 0..TIMES {
            if let Some(found) = case.try_once(&mut random) {
                executed = true;
                for what in found {
                    wrong.entry(format!("{:?}: {text}", insn.mnemonic())).or_default().push(what);
                }
            }
        }
        if executed {
            tried += 1;
        } else {
            *passed_over.entry(format!("{:?}", insn.mnemonic())).or_default() += 1;
        }
    }
    println!("{tried} instructions; could not be executed: {passed_over:?}");
    for (insn, what) in &wrong {
        let mut what = what.clone();
        what.sort();
        what.dedup();
        println!("{insn}\n    {}", what.iter().take(6).cloned().collect::<Vec<_>>().join("\n    "));
    }
    assert!(wrong.is_empty(), "{} instructions", wrong.len());
    assert!(tried > 1000);
}

/// What ends the process, asks the outside, or is left out on purpose.
fn is_not_for_this(insn: &iced_x86::Instruction) -> bool {
    use Mnemonic as M;
    let elsewhere = insn.is_ip_rel_memory_operand()
        || insn.segment_prefix() != Register::None
        || insn.memory_base().is_gpr32()
        || insn.memory_index().is_gpr32();
    matches!(
        insn.mnemonic(),
        M::Syscall
            | M::Sysenter
            | M::Int
            | M::Int1
            | M::Int3
            | M::Hlt
            | M::Rdtsc
            | M::Rdtscp
            | M::Rdrand
            | M::Rdseed
            | M::Rdpid
            | M::Rdpmc
            | M::Cpuid
            | M::Xgetbv
            | M::Xbegin
            | M::Xend
            | M::Xabort
            | M::Xtest
            | M::Iretq
            | M::Iret
            | M::Iretd
            | M::In
            | M::Out
            | M::Popfq
            | M::Popf
            | M::Rdfsbase
            | M::Rdgsbase
            | M::Wrfsbase
            | M::Wrgsbase
            | M::Xsave
            | M::Xsave64
            | M::Xsavec
            | M::Xsavec64
            | M::Xsaveopt
            | M::Xrstor
            | M::Xrstor64
            | M::Fxsave
            | M::Fxrstor
            | M::Fxsave64
            | M::Fxrstor64
            | M::Rdsspq
            | M::Incsspq
            | M::Rdsspd
            | M::Enter
            | M::Ldmxcsr
            | M::Stmxcsr
            | M::Vldmxcsr
            | M::Vstmxcsr
            | M::Verr
            | M::Verw
            | M::Lsl
            | M::Lar
            | M::Str
            | M::Sldt
            | M::Sgdt
            | M::Sidt
            | M::Smsw
            | M::Pushfq
            | M::Pushf
            | M::Retf
            | M::Lss
            | M::Lfs
            | M::Lgs
            | M::Clflush
            | M::Clflushopt
            | M::Wbnoinvd
            | M::Emms
    ) || elsewhere
        || (0..insn.op_count()).any(|operand| {
            insn.op_kind(operand) == OpKind::Register
                && insn.op_register(operand).is_segment_register()
        })
}

fn accessed(insn: &iced_x86::Instruction, factory: &mut InstructionInfoFactory) -> Vec<UsedMemory> {
    use iced_x86::OpAccess as A;
    let never = [A::None, A::NoMemAccess];
    let all = factory.info(insn).used_memory();
    all.iter().filter(|memory| !never.contains(&memory.access())).copied().collect()
}

struct Case<'a> {
    machine: &'a Machine,
    insn: &'a iced_x86::Instruction,
    bytes: &'a [u8],
    told: &'a Effects,
    memory: &'a [UsedMemory],
}

impl Case<'_> {
    /// What is wrong, in one random state; none if the instruction faults in it.
    fn try_once(&self, random: &mut Random) -> Option<Vec<String>> {
        let layout = self.machine.layout;
        let before = self.state(random);
        let behind = self.execute(&before)?;
        let mut wrong = Vec::new();
        let ranges = self.ranges(&before);
        for byte in differing(&before, &behind, layout) {
            if !self.defines(byte, &ranges) {
                wrong.push(format!("{} changes", name(byte)));
            }
        }
        for changed in self.candidates(random, &ranges) {
            let mut other = before.clone();
            flip(&mut other, changed, layout, random);
            let Some(other_behind) = self.execute(&other) else {
                continue;
            };
            let other_ranges = self.ranges(&other);
            for byte in differing(&other_behind, &behind, layout) {
                let defined = self.defines(byte, &ranges) || self.defines(byte, &other_ranges);
                if byte == changed && (!defined || self.loose()) {
                    continue;
                }
                if !self.depends(byte, changed, &ranges)
                    && !self.depends(byte, changed, &other_ranges)
                {
                    wrong.push(format!("{} depends on {}", name(byte), name(changed)));
                }
            }
        }
        Some(wrong)
    }

    fn execute(&self, before: &State) -> Option<State> {
        self.machine.execute(self.bytes, self.insn.is_vsib(), before)
    }

    /// Random registers and memory, with addresses that can be accessed.
    fn state(&self, random: &mut Random) -> State {
        let layout = self.machine.layout;
        let mut state = self.machine.start.clone();
        for byte in &mut state.memory {
            *byte = random.byte();
        }
        for number in 0..16 {
            let value = match random.below(3) {
                0 => random.next(),
                1 => random.below(64),
                _ => DATA + 0x2000 + 8 * random.below(0x400),
            };
            *register(&mut state, number) = value;
        }
        for cell in 0..CELLS as Cell {
            let byte = Byte::Cell(cell);
            if cell >= 128 && cell != X87 && set(&mut state, byte, layout, 0) {
                let kind = random.below(4);
                let value = match kind {
                    0 => 0,
                    _ => random.byte(),
                };
                set(&mut state, byte, layout, value);
            }
        }
        // Which parts of the extended state there are.
        state.extended[512..520]
            .copy_from_slice(&if layout.wide { 0xe7u64 } else { 7 }.to_le_bytes());
        for register in 0..8 {
            let at = 32 + 16 * register;
            for byte in &mut state.extended[at..at + 8] {
                *byte = random.byte();
            }
            state.extended[at + 7] |= 0x80;
            state.extended[at + 8] = random.byte();
            state.extended[at + 9] = 0x3f + (random.below(2) as u8);
        }
        // Nothing is masked by itself, and every register is in use.
        state.extended[0..5].copy_from_slice(&[0x7f, 0x03, 0, 0, 0xff]);
        if self.insn.is_string_instruction() {
            state.registers.rsi = DATA + 0x2000 + random.below(0x400);
            state.registers.rdi = DATA + 0x4000 + random.below(0x400);
            state.registers.rcx = random.below(6);
        }
        state.registers.rsp = DATA + 0x6000;
        for memory in self.memory.iter().filter(|_| !self.insn.is_string_instruction()) {
            let (base, index) = (memory.base(), memory.index());
            if base == Register::None || base == Register::RIP {
                continue;
            }
            if index.is_vector_register() {
                let size = memory.vsib_size() as Cell;
                for cell in cells::of(index).expect("a register") {
                    let value = if cell % size == 0 { random.byte() } else { 0 };
                    set(&mut state, Byte::Cell(cell), layout, value);
                }
            } else if index != Register::None && index != base {
                *register(&mut state, index.number()) = random.below(32);
            }
            let there = address(memory, 0, &state, layout);
            let wanted = DATA + 0x3000 + 64 * random.below(32);
            let scale = if index == base { 1 + u64::from(memory.scale()) } else { 1 };
            let register = register(&mut state, base.number());
            *register = register.wrapping_add(wanted.wrapping_sub(there) / scale);
        }
        if self.selects_bit() {
            let bits = self.insn.op1_register();
            *register(&mut state, bits.full_register().number()) = random.below(256);
        }
        state
    }

    fn selects_bit(&self) -> bool {
        use Mnemonic as M;
        matches!(self.insn.mnemonic(), M::Bt | M::Bts | M::Btr | M::Btc)
            && self.insn.op0_kind() == OpKind::Memory
            && self.insn.op1_kind() == OpKind::Register
    }

    /// Where in the data the operands are; larger than they are where only the run tells.
    fn ranges(&self, state: &State) -> Vec<Range<i64>> {
        let start = |memory: &UsedMemory, lane: usize| {
            address(memory, lane, state, self.machine.layout).wrapping_sub(DATA) as i64
        };
        if let Some(lanes) = Lanes::of(self.insn) {
            let size = i64::from(lanes.size);
            let range = |lane: u32| match lanes.order {
                _ if !self.is_active(&lanes, lane, state) => i64::MIN..i64::MIN,
                Order::Indexed => {
                    let start = start(&self.memory[0], lane as usize);
                    start..start + size
                }
                _ => {
                    let start = start(&self.memory[0], 0) + i64::from(lane) * size;
                    start..start + size
                }
            };
            return (0..lanes.count).map(range).collect();
        }
        let range = |(memory, operand): (&UsedMemory, &why_effects::Operand)| {
            let start = start(memory, 0);
            match operand.size {
                Size::String(_) => start - 64..start + 64,
                Size::Bytes(_) if self.selects_bit() => start - 64..start + 64,
                Size::Bytes(size) => start..start + i64::from(size),
            }
        };
        self.memory.iter().zip(&self.told.operands).map(range).collect()
    }

    /// Whether a lane takes part.
    fn is_active(&self, lanes: &Lanes, lane: u32, state: &State) -> bool {
        let layout = self.machine.layout;
        if lanes.mask.is_mm() {
            let at = 32 + 16 * lanes.mask.number() + lane as usize;
            return state.extended[at] & 0x80 != 0;
        }
        let first = cells::of(lanes.mask).expect("a register").start;
        let byte = |index: u32| get(state, Byte::Cell(first + index as Cell), layout);
        let bit = |lane: u32| byte(lane / 8) >> (lane % 8) & 1 == 1;
        match lanes.order {
            Order::Packed => (0..lanes.count).filter(|lane| bit(*lane)).count() > lane as usize,
            _ if lanes.mask.is_k() => bit(lane),
            _ => byte((lane + 1) * lanes.size - 1) & 0x80 != 0,
        }
    }

    /// The parts that define a byte, and which byte it is of each.
    fn defining(&self, byte: Byte, ranges: &[Range<i64>]) -> Vec<(&Part, u32)> {
        let parts = self.told.parts.iter();
        parts
            .filter_map(|part| within(&part.to, byte, ranges, self.loose()).map(|i| (part, i)))
            .collect()
    }

    fn defines(&self, byte: Byte, ranges: &[Range<i64>]) -> bool {
        !self.defining(byte, ranges).is_empty()
    }

    /// Whether positions in operands are not told.
    fn loose(&self) -> bool {
        self.insn.is_string_instruction() || self.selects_bit()
    }

    fn depends(&self, byte: Byte, on: Byte, ranges: &[Range<i64>]) -> bool {
        self.defining(byte, ranges).into_iter().any(|(part, index)| {
            let mut sources: Vec<Place> = part.sources(index).collect();
            if self.loose() {
                sources.extend(part.lanes.iter().cloned());
            }
            part.frame
                || sources.iter().any(|place| within(place, on, ranges, self.loose()).is_some())
                || self
                    .addresses(part)
                    .any(|cells| within(&Place::Cells(cells), on, ranges, false).is_some())
        })
    }

    /// What the addresses of a part's memory depend on.
    fn addresses<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = Range<Cell>> + 'a {
        let places = [&part.to].into_iter().chain(&part.lanes).chain(&part.whole);
        let operands = places.filter_map(|place| match place {
            Place::Memory { operand, .. } | Place::String { operand } => Some(*operand),
            Place::Cells(_) => None,
        });
        let count = cells::of(Register::RCX).filter(|_| self.insn.is_string_instruction());
        let direction =
            self.insn.is_string_instruction().then_some(cells::DIRECTION..cells::DIRECTION + 1);
        operands
            .flat_map(|operand| self.told.operands[operand].address.iter().cloned())
            .chain(count)
            .chain(direction)
    }

    /// The bytes to change: those that the instruction could use, and some others.
    fn candidates(&self, random: &mut Random, ranges: &[Range<i64>]) -> Vec<Byte> {
        let mut used = Vec::new();
        let mut factory = InstructionInfoFactory::new();
        for register in factory.info(self.insn).used_registers() {
            used.extend(whole(register.register()));
        }
        used.extend((0..2).filter_map(|_| cells::of(Register::RAX + random.below(16) as u32)));
        used.extend((0..2).filter_map(|_| cells::of(Register::YMM0 + random.below(16) as u32)));
        let mut bytes: Vec<Byte> = used.into_iter().flatten().map(Byte::Cell).collect();
        bytes.extend((128..135).map(Byte::Cell));
        bytes.push(Byte::Cell(X87));
        for range in ranges {
            let range = range.start.max(0)..range.end.min(DATA_SIZE as i64).min(range.start + 96);
            bytes.extend(range.map(|at| Byte::Memory(at as usize)));
        }
        let stack = cells::of(Register::RSP).expect("a register");
        bytes.retain(|byte| !matches!(byte, Byte::Cell(cell) if stack.contains(cell)));
        while bytes.len() > CHANGES {
            bytes.swap_remove(random.below(bytes.len() as u64) as usize);
        }
        bytes
    }
}

/// All of a register that this one is a part of.
fn whole(register: Register) -> Option<Range<Cell>> {
    let full = if register.is_vector_register() {
        Register::YMM0 + register.number() as u32
    } else {
        register.full_register()
    };
    cells::of(if register.number() >= 16 && register.is_vector_register() {
        register
    } else {
        full
    })
}

fn within(place: &Place, byte: Byte, ranges: &[Range<i64>], loose: bool) -> Option<u32> {
    match (place, byte) {
        (Place::Cells(cells), Byte::Cell(cell)) => {
            cells.contains(&cell).then(|| u32::from(cell - cells.start))
        }
        (Place::Memory { operand, .. } | Place::String { operand }, Byte::Memory(at))
            if loose || matches!(place, Place::String { .. }) =>
        {
            ranges[*operand].contains(&(at as i64)).then_some(0)
        }
        (Place::Memory { operand, bytes }, Byte::Memory(at)) => {
            let index = at as i64 - ranges[*operand].start - i64::from(bytes.start);
            (0..i64::from(bytes.end - bytes.start)).contains(&index).then_some(index as u32)
        }
        _ => None,
    }
}

fn address(memory: &UsedMemory, lane: usize, state: &State, layout: Layout) -> u64 {
    let value = |register: Register, index: usize, size: usize| {
        let mut registers = state.registers;
        Some(match register.is_gpr() {
            true => *of_registers(&mut registers, register.number()),
            false if !register.is_vector_register() => 0,
            false => {
                let all = cells::of(register).expect("a register");
                let lane = all.skip(index * size).take(size).rev();
                lane.fold(0, |value, cell| value << 8 | get(state, Byte::Cell(cell), layout))
            }
        })
    };
    memory.virtual_address(lane, value).unwrap_or(0)
}

/// The bytes that two states do not have in common.
fn differing(one: &State, other: &State, layout: Layout) -> Vec<Byte> {
    let cells = (0..CELLS as Cell).filter(|cell| exists(*cell, layout)).map(Byte::Cell);
    let differs = |byte: &Byte| get(one, *byte, layout) != get(other, *byte, layout);
    let mut found: Vec<Byte> = cells.filter(differs).collect();
    if one.memory != other.memory {
        found.extend((0..DATA_SIZE).map(Byte::Memory).filter(differs));
    }
    found
}

/// Whether a cell can be looked at here. That the state is stepped is in the flags, too.
fn exists(cell: Cell, layout: Layout) -> bool {
    match cell {
        0..135 | X87 => true,
        152..216 => layout.mask(0, 0).is_some(),
        256.. => {
            layout.vector(usize::from(cell - 256) / 64, usize::from(cell - 256) % 64).is_some()
        }
        _ => false,
    }
}

fn get(state: &State, byte: Byte, layout: Layout) -> u64 {
    match byte {
        Byte::Memory(at) => u64::from(state.memory[at]),
        Byte::Cell(cell @ 0..128) => {
            let mut registers = state.registers;
            *of_registers(&mut registers, usize::from(cell / 8)) >> (8 * (cell % 8)) & 0xff
        }
        Byte::Cell(cell @ 128..135) => {
            state.registers.eflags >> FLAG_POSITIONS[usize::from(cell - 128)] & 1
        }
        Byte::Cell(X87) => {
            // Control, status and tags, and the registers; not where the last one was.
            let bytes = [&state.extended[0..5], &state.extended[32..160]].concat();
            bytes
                .iter()
                .fold(7, |sum: u64, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte))
        }
        Byte::Cell(cell) => extended(cell, layout).map_or(0, |at| u64::from(state.extended[at])),
    }
}

fn extended(cell: Cell, layout: Layout) -> Option<usize> {
    match cell {
        152..216 => layout.mask(usize::from(cell - 152) / 8, usize::from(cell - 152) % 8),
        256.. => layout.vector(usize::from(cell - 256) / 64, usize::from(cell - 256) % 64),
        _ => None,
    }
}

/// False if there is no such byte.
fn set(state: &mut State, byte: Byte, layout: Layout, value: u8) -> bool {
    match byte {
        Byte::Memory(at) => state.memory[at] = value,
        Byte::Cell(cell @ 0..128) => {
            let register = register(state, usize::from(cell / 8));
            let shift = 8 * (cell % 8);
            *register = *register & !(0xff << shift) | u64::from(value) << shift;
        }
        Byte::Cell(cell @ 128..135) => {
            let bit = 1 << FLAG_POSITIONS[usize::from(cell - 128)];
            let flags = &mut state.registers.eflags;
            *flags = if value & 1 == 1 { *flags | bit } else { *flags & !bit };
        }
        Byte::Cell(X87) => state.extended[32 + 16 * (usize::from(value) % 8)] ^= value | 1,
        Byte::Cell(cell) => match extended(cell, layout) {
            Some(at) => state.extended[at] = value,
            None => return false,
        },
    }
    true
}

fn flip(state: &mut State, byte: Byte, layout: Layout, random: &mut Random) {
    let old = get(state, byte, layout) as u8;
    let new = match byte {
        Byte::Cell(128..135) => old ^ 1,
        // Addresses should stay where something is.
        _ if random.below(2) == 0 => old ^ (1 << random.below(8)),
        _ => old ^ (1 + random.below(255) as u8),
    };
    set(state, byte, layout, new);
}

fn name(byte: Byte) -> String {
    match byte {
        Byte::Cell(cell @ 0..128) => {
            format!("{:?}.{}", Register::RAX + u32::from(cell / 8), cell % 8)
        }
        Byte::Cell(cell @ 128..135) => {
            format!("flag {}", ["C", "P", "A", "Z", "S", "O", "D"][usize::from(cell - 128)])
        }
        Byte::Cell(X87) => "x87".to_owned(),
        Byte::Cell(cell @ 152..216) => format!("k{}", (cell - 152) / 8),
        Byte::Cell(cell) => format!("v{}.{}", (cell - 256) / 64, (cell - 256) % 64),
        Byte::Memory(_) => "memory".to_owned(),
    }
}

fn register(state: &mut State, number: usize) -> &mut u64 {
    of_registers(&mut state.registers, number)
}

fn of_registers(r: &mut libc::user_regs_struct, number: usize) -> &mut u64 {
    let all = [
        &mut r.rax, &mut r.rcx, &mut r.rdx, &mut r.rbx, &mut r.rsp, &mut r.rbp, &mut r.rsi,
        &mut r.rdi, &mut r.r8, &mut r.r9, &mut r.r10, &mut r.r11, &mut r.r12, &mut r.r13,
        &mut r.r14, &mut r.r15,
    ];
    all.into_iter().nth(number).expect("sixteen registers")
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
