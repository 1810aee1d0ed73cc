//! What of the CPU's state can depend on something by itself: each byte of a register, each
//! flag.

use iced_x86::{Register, RflagsBits};
use std::ops::Range;

/// The number of a byte of a register, or of a flag.
pub type Cell = u16;

const GENERAL: Cell = 0;
const FLAGS: Cell = 128;
/// The x87 registers, with all that belongs to them, as a whole: which is which is not known
/// from an instruction alone.
pub const X87: Cell = 144;
pub const MXCSR: Cell = 145;
const MASKS: Cell = 152;
const VECTORS: Cell = 256;
const VECTOR_SIZE: Cell = 64;
/// How many cells there are.
pub const CELLS: usize = VECTORS as usize + 32 * VECTOR_SIZE as usize;

pub const CARRY: Cell = FLAGS;
pub const DIRECTION: Cell = FLAGS + 6;

/// The flags, by iced's bits; what no instruction of a program changes for itself is one.
const FLAG_BITS: [(u32, Cell); 7] = [
    (RflagsBits::CF, CARRY),
    (RflagsBits::PF, FLAGS + 1),
    (RflagsBits::AF, FLAGS + 2),
    (RflagsBits::ZF, FLAGS + 3),
    (RflagsBits::SF, FLAGS + 4),
    (RflagsBits::OF, FLAGS + 5),
    (RflagsBits::DF, DIRECTION),
];

/// Where the flags are in the CPU's own register, in the order of their cells.
pub const FLAG_POSITIONS: [u32; 7] = [0, 2, 4, 6, 7, 11, 10];

/// The cells of a whole general register, by its number.
#[inline]
pub fn of_general(number: u8) -> Range<Cell> {
    let from = GENERAL + 8 * Cell::from(number);
    from..from + 8
}

/// The cells of a register; none if nothing is known to depend on it, as with segments.
pub fn of(register: Register) -> Option<Range<Cell>> {
    let size = register.size() as Cell;
    let number = register.number() as Cell;
    if register.is_gpr() {
        let full = of_general(register.full_register().number() as u8).start;
        let high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let from = full + Cell::from(high);
        Some(from..from + size)
    } else if register.is_vector_register() {
        let from = VECTORS + VECTOR_SIZE * number;
        Some(from..from + size)
    } else if register.is_k() {
        Some(MASKS + 8 * number..MASKS + 8 * number + 8)
    } else if register.is_st() || register.is_mm() {
        Some(X87..X87 + 1)
    } else {
        None
    }
}

/// What of a vector register lies above this one.
pub fn above(register: Register) -> Range<Cell> {
    let from = VECTORS + VECTOR_SIZE * register.number() as Cell;
    from + register.size() as Cell..from + VECTOR_SIZE
}

/// The flags that iced's bits name.
pub fn flags(bits: u32) -> impl Iterator<Item = Cell> {
    FLAG_BITS.into_iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, cell)| cell)
}

/// Whether these are of the stack pointer.
pub fn is_stack_pointer(cells: &Range<Cell>) -> bool {
    is_part_of(cells, Register::RSP)
}

/// Whether these are of the register that functions keep their frame in, if they do.
pub fn is_frame_pointer(cells: &Range<Cell>) -> bool {
    is_part_of(cells, Register::RBP)
}

/// Whether these are of a vector register.
pub fn is_vector(cells: &Range<Cell>) -> bool {
    cells.start >= VECTORS
}

fn is_part_of(cells: &Range<Cell>, register: Register) -> bool {
    let whole = of(register).expect("a general register");
    whole.start <= cells.start && cells.end <= whole.end
}

/// The name of the register that a cell is of, or of the flag.
pub fn name(cell: Cell) -> String {
    const FLAG_NAMES: [&str; 7] = ["CF", "PF", "AF", "ZF", "SF", "OF", "DF"];
    match cell {
        GENERAL..FLAGS => format!("{:?}", Register::RAX + u32::from(cell / 8)).to_lowercase(),
        FLAGS..X87 => {
            FLAG_NAMES.get(usize::from(cell - FLAGS)).copied().unwrap_or("flags").to_owned()
        }
        X87 => "x87".to_owned(),
        MXCSR..MASKS => "mxcsr".to_owned(),
        MASKS..VECTORS => format!("k{}", (cell - MASKS) / 8),
        _ => format!("zmm{}", (cell - VECTORS) / VECTOR_SIZE),
    }
}
