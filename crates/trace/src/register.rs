//! General purpose registers by the numbers that instructions have for them.

use crate::number::Number;
use iced_x86::Register;

pub const RCX: u8 = 1;
pub const RSP: u8 = 4;
pub const RBP: u8 = 5;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;
pub const R10: u8 = 10;

/// The number of the whole register that this one is a part of.
pub fn number(register: Register) -> u8 {
    register.full_register().number() as u8
}

pub fn by_number(number: u8) -> Register {
    Register::RAX + u32::from(number)
}

/// What a part of a register holds when the whole holds this.
pub fn part<N: Number>(register: Register, whole: N) -> N {
    match register {
        Register::AH | Register::CH | Register::DH | Register::BH => {
            whole.shifted_right(N::constant(8)).lowest(8)
        }
        _ => whole.lowest(8 * register.size() as u32),
    }
}
