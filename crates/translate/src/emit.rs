//! Appends machine code. One method per instruction form that translation needs,
//! named by what it does; all leave the flags alone unless the name says otherwise.

use crate::context::Slot;

/// General purpose register numbers as the hardware encodes them.
pub mod reg {
    pub const RAX: u8 = 0;
    pub const RCX: u8 = 1;
    pub const RDX: u8 = 2;
    pub const RSP: u8 = 4;
}

/// A four-byte displacement that is filled in once its target is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch(pub u32);

/// A value kept outside the instructions, and the displacement that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    pub user: Patch,
    pub value: u64,
}

pub struct Emitter {
    /// The address at which the first byte will run.
    base: u64,
    pub code: Vec<u8>,
    literals: Vec<Literal>,
}

impl Emitter {
    pub fn new(base: u64) -> Self {
        Emitter { base, code: Vec::with_capacity(256), literals: Vec::new() }
    }

    pub fn offset(&self) -> u32 {
        self.code.len() as u32
    }

    /// The address of the next byte.
    pub fn here(&self) -> u64 {
        self.base + self.code.len() as u64
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    pub fn imm32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    /// REX.W with `register` in the reg field, opcode, and `gs:[slot]`.
    fn gs_form(&mut self, opcode: u8, register: u8, slot: Slot) {
        self.bytes(&[0x65, 0x48 | (register >> 3) << 2, opcode, 0x04 | (register & 7) << 3, 0x25]);
        self.imm32(slot.0);
    }

    pub fn store(&mut self, slot: Slot, register: u8) {
        self.gs_form(0x89, register, slot);
    }

    pub fn load(&mut self, register: u8, slot: Slot) {
        self.gs_form(0x8b, register, slot);
    }

    /// -1 if the slot is negative, else 0 (as long as its upper byte is only a sign).
    pub fn load_sign(&mut self, register: u8, slot: Slot) {
        let rex = 0x48 | (register >> 3) << 2;
        self.bytes(&[0x65, rex, 0x0f, 0xbe, 0x04 | (register & 7) << 3, 0x25]);
        self.imm32(slot.0 + 7);
    }

    /// `add qword gs:[slot], value`; overwrites the arithmetic flags.
    pub fn add_clobbering_flags(&mut self, slot: Slot, value: i32) {
        if let Ok(small) = i8::try_from(value) {
            self.gs_form(0x83, 0, slot);
            self.bytes(&[small as u8]);
        } else {
            self.gs_form(0x81, 0, slot);
            self.imm32(value);
        }
    }

    /// Adds to a slot and leaves flags and registers alone.
    pub fn add(&mut self, slot: Slot, value: i32, saved_rcx: Slot) {
        self.store(saved_rcx, reg::RCX);
        self.add_through(reg::RCX, slot, value);
        self.load(reg::RCX, saved_rcx);
    }

    /// Adds to a slot, leaves the flags alone and overwrites the register.
    pub fn add_through(&mut self, register: u8, slot: Slot, value: i32) {
        self.load(register, slot);
        self.lea(register, register, value);
        self.store(slot, register);
    }

    /// `lea to, [base + displacement]`.
    pub fn lea(&mut self, to: u8, base: u8, displacement: i32) {
        self.memory_form(0x8d, to, base, displacement);
    }

    /// `mov [base + displacement], from`, eight bytes.
    pub fn store_at(&mut self, base: u8, displacement: i32, from: u8) {
        self.memory_form(0x89, from, base, displacement);
    }

    /// REX.W, opcode, register, `[base + displacement]`.
    fn memory_form(&mut self, opcode: u8, register: u8, base: u8, displacement: i32) {
        self.bytes(&[0x48 | (register >> 3) << 2 | base >> 3, opcode]);
        self.base_displacement(register, base, displacement);
    }

    pub fn base_displacement(&mut self, register: u8, base: u8, displacement: i32) {
        let small = i8::try_from(displacement);
        let mode = if small.is_ok() { 0x40 } else { 0x80 };
        self.bytes(&[mode | (register & 7) << 3 | base & 7]);
        if base & 7 == reg::RSP {
            self.bytes(&[0x24]);
        }
        match small {
            Ok(byte) => self.bytes(&[byte as u8]),
            Err(_) => self.imm32(displacement),
        }
    }

    /// `mov register, value`, of which the last eight bytes are the value.
    pub fn load_constant(&mut self, register: u8, value: u64) {
        self.bytes(&[0x48 | register >> 3, 0xb8 | register & 7]);
        self.bytes(&value.to_le_bytes());
    }

    /// `lea register, [rip + displacement]` with an address that is near; where the
    /// displacement lies.
    fn load_near(&mut self, register: u8, address: u64) -> Option<u32> {
        let displacement = address.wrapping_sub(self.here() + 7) as i64;
        let displacement = i32::try_from(displacement).ok()?;
        self.bytes(&[0x48 | (register >> 3) << 2, 0x8d, 0x05 | (register & 7) << 3]);
        self.imm32(displacement);
        Some(self.offset() - 4)
    }

    /// Puts an application address into a register; where its displacement lies, if it is
    /// near.
    pub fn load_address(&mut self, register: u8, address: u64) -> Option<u32> {
        let near = self.load_near(register, address);
        if near.is_none() {
            self.load_constant(register, address);
        }
        near
    }

    /// Pushes a 64-bit value.
    pub fn push_value(&mut self, value: u64) {
        if let Ok(short) = i32::try_from(value as i64) {
            self.bytes(&[0x68]);
            self.imm32(short);
        } else {
            self.bytes(&[0xff, 0x35]);
            self.literal(value);
        }
    }

    fn literal(&mut self, value: u64) {
        self.literals.push(Literal { user: Patch(self.offset()), value });
        self.imm32(0);
    }

    /// `jmp rel32`, to be patched.
    pub fn jmp(&mut self) -> Patch {
        self.bytes(&[0xe9]);
        self.patch_place()
    }

    /// `jcc rel32`, to be patched; `condition` is the low nibble of the opcode.
    pub fn jcc(&mut self, condition: u8) -> Patch {
        self.bytes(&[0x0f, 0x80 | condition]);
        self.patch_place()
    }

    pub fn patch_place(&mut self) -> Patch {
        let patch = Patch(self.offset());
        self.imm32(0);
        patch
    }

    /// `jrcxz` to a place that [`Emitter::land`] fixes.
    pub fn jrcxz(&mut self) -> ShortJump {
        self.short(0xe3)
    }

    pub fn jmp_short(&mut self) -> ShortJump {
        self.short(0xeb)
    }

    /// A short jump to an offset already passed.
    pub fn jmp_short_back(&mut self, offset: u32) {
        let distance = i64::from(offset) - i64::from(self.offset() + 2);
        self.bytes(&[0xeb, i8::try_from(distance).expect("short jump") as u8]);
    }

    /// A two-byte branch with any short-branch opcode.
    pub fn short(&mut self, opcode: u8) -> ShortJump {
        self.bytes(&[opcode, 0]);
        ShortJump(self.offset())
    }

    /// Makes a short jump land here.
    pub fn land(&mut self, jump: ShortJump) {
        let distance = self.offset() - jump.0;
        self.code[jump.0 as usize - 1] = i8::try_from(distance).expect("short jump") as u8;
    }

    /// Points a patch at an offset within this code.
    pub fn patch_to(&mut self, patch: Patch, offset: u32) {
        let at = patch.0 as usize;
        let displacement = offset as i32 - (patch.0 as i32 + 4);
        self.code[at..at + 4].copy_from_slice(&displacement.to_le_bytes());
    }

    /// Writes the literals behind the code and points their users at them. Where the
    /// first one lies, and who uses which.
    pub fn finish(&mut self) -> (u32, Vec<Literal>) {
        let literals = std::mem::take(&mut self.literals);
        if !literals.is_empty() {
            while !self.here().is_multiple_of(8) {
                self.code.push(0xcc);
            }
        }
        let start = self.offset();
        let mut values: Vec<u64> = Vec::new();
        for literal in &literals {
            let index = values.iter().position(|&value| value == literal.value);
            let index = index.unwrap_or_else(|| {
                self.bytes(&literal.value.to_le_bytes());
                values.push(literal.value);
                values.len() - 1
            });
            self.patch_to(literal.user, start + 8 * index as u32);
        }
        (start, literals)
    }
}

/// A two-byte branch whose target is not known yet: the offset behind it.
#[must_use]
#[derive(Debug)]
pub struct ShortJump(u32);
