//! What can be done with the values of registers, known or still to come.

/// A number of 64 bits; all operations wrap around.
pub trait Number: Copy {
    fn constant(value: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, factor: u64) -> Self;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Shifts by the lowest six bits of the other.
    fn shifted_left(self, by: Self) -> Self;
    fn shifted_right(self, by: Self) -> Self;
    /// The same, with the highest bit as a sign.
    fn shifted_right_signed(self, by: Self) -> Self;
    /// How many bits are set.
    fn set_bits(self) -> Self;

    /// The lowest bits.
    fn lowest(self, bits: u32) -> Self {
        if bits == 64 { self } else { self.and(Self::constant((1 << bits) - 1)) }
    }

    /// The lowest bytes, with the highest bit of them as a sign.
    fn sign_extended(self, bytes: usize) -> Self {
        let unused = Self::constant(64 - 8 * bytes as u64);
        if bytes == 8 { self } else { self.shifted_left(unused).shifted_right_signed(unused) }
    }
}

impl Number for u64 {
    fn constant(value: u64) -> u64 {
        value
    }

    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    fn minus(self, other: u64) -> u64 {
        self.wrapping_sub(other)
    }

    fn times(self, factor: u64) -> u64 {
        self.wrapping_mul(factor)
    }

    fn not(self) -> u64 {
        !self
    }

    fn and(self, other: u64) -> u64 {
        self & other
    }

    fn or(self, other: u64) -> u64 {
        self | other
    }

    fn xor(self, other: u64) -> u64 {
        self ^ other
    }

    fn shifted_left(self, by: u64) -> u64 {
        self << (by & 63)
    }

    fn shifted_right(self, by: u64) -> u64 {
        self >> (by & 63)
    }

    fn shifted_right_signed(self, by: u64) -> u64 {
        (self as i64 >> (by & 63)) as u64
    }

    fn set_bits(self) -> u64 {
        self.count_ones().into()
    }
}
