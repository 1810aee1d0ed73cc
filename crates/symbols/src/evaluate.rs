//! Where a variable is, by the small programs that the compiler writes for it.

use crate::assembled::{Assembled, Byte};
use crate::call_sites::MOST_REGISTERS;
use crate::unwind::{Frame, Home, REGISTERS};
use crate::{Bytes, Memory, Module, Modules, Unit};
use gimli::{EvaluationResult, Expression, LittleEndian, Location, Register, Value, ValueType};
use std::rc::Rc;

/// Where a value is: in memory, or nowhere but in registers and constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Memory(u64),
    Bytes(Vec<Byte>),
}

/// Where a byte of a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Memory(u64),
    /// A byte of a register, by its number in DWARF: 0 to 15, and from 17 on vectors.
    Register(u16, u8),
}

/// Why a value is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    OptimisedOut,
    Unreadable,
    ThreadLocal,
    NoType,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unknown::OptimisedOut => "<optimised out>",
            Unknown::Unreadable => "<not in memory>",
            Unknown::ThreadLocal => "<thread-local, not found>",
            Unknown::NoType => "<of unknown type>",
        })
    }
}

/// What an expression may refer to.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub memory: &'a dyn Memory,
    pub module: &'a Module,
    pub unit: &'a Rc<Unit>,
    pub frame: Option<&'a Frame>,
    pub frame_base: Option<u64>,
    /// Where callers are looked for, and how many were already.
    pub modules: Option<&'a Modules>,
    pub callers: u32,
}

/// No expression takes longer: one that does goes round.
pub const MOST_STEPS: u32 = 10_000;
/// No value in registers is larger.
const MOST_BITS: u64 = 8 << 12;

impl Context<'_> {
    /// Where the value of so many bytes is that an expression describes.
    pub fn place(&self, expression: Expression<Bytes>, size: usize) -> Result<Place, Unknown> {
        let (pieces, read) = self.pieces(expression, None)?;
        if let [piece] = pieces.as_slice()
            && let (Location::Address { address }, None) = (&piece.location, piece.size_in_bits)
        {
            return Ok(Place::Memory(*address));
        }
        let mut whole = Assembled::default();
        for piece in &pieces {
            let count = piece.size_in_bits.unwrap_or((size as u64).saturating_mul(8));
            let skipped = piece.bit_offset.unwrap_or(0);
            if [count, skipped, whole.bits].iter().any(|bits| *bits > MOST_BITS) {
                return Err(Unknown::OptimisedOut);
            }
            let length = (skipped + count).div_ceil(8) as usize;
            whole.append(&self.bytes_at(&piece.location, length, &read), skipped, count);
        }
        match whole.bytes.iter().all(|byte| byte.known == 0) {
            true => Err(Unknown::OptimisedOut),
            false => Ok(Place::Bytes(whole.bytes)),
        }
    }

    /// The number that an expression computes, such as the base of a frame.
    pub fn number(&self, expression: Expression<Bytes>, initial: Option<u64>) -> Option<u64> {
        self.computed(expression, initial)?.0.to_u64(!0).ok()
    }

    /// What an expression computes, of whatever type that is, and from what.
    pub fn computed(
        &self,
        expression: Expression<Bytes>,
        initial: Option<u64>,
    ) -> Option<(Value, Vec<Origin>)> {
        let (pieces, mut read) = self.pieces(expression, initial).ok()?;
        let value = match pieces.first()?.location {
            Location::Address { address } => Value::Generic(address),
            Location::Register { register } => {
                read.extend((0..8).filter_map(|byte| self.register_origin(register, byte)));
                Value::Generic(self.register(register)?)
            }
            Location::Value { value } => value,
            _ => return None,
        };
        Some((value, read))
    }

    /// The bytes at a location; `read` is what was looked at to find it out.
    fn bytes_at(&self, location: &Location<Bytes>, size: usize, read: &[Origin]) -> Vec<Byte> {
        let computed: Rc<[Origin]> = Rc::from(read);
        let all = |bytes: &[u8]| {
            let byte = |value: &u8| Byte {
                from: Rc::clone(&computed),
                is_computed: !computed.is_empty(),
                ..Byte::constant(*value)
            };
            bytes.iter().map(byte).collect()
        };
        let with = |bytes: Option<Vec<u8>>, from: &dyn Fn(usize) -> Option<Origin>| {
            let bytes = bytes.unwrap_or_default().into_iter().enumerate();
            let byte = |(index, value)| Byte {
                from: from(index).into_iter().collect(),
                ..Byte::constant(value)
            };
            bytes.map(byte).collect()
        };
        match location {
            Location::Register { register } => {
                let from = |index| self.register_origin(*register, index);
                with(self.register_bytes(*register), &from)
            }
            Location::Address { address } => {
                with(self.memory.read_exact(*address, size), &|index| {
                    Some(Origin::Memory(address.wrapping_add(index as u64)))
                })
            }
            Location::Value { value } => match value {
                Value::F32(value) => all(&value.to_bits().to_le_bytes()),
                Value::F64(value) => all(&value.to_bits().to_le_bytes()),
                // Longer ones are extended with their sign.
                value => value.to_u64(!0).map_or(Vec::new(), |value| all(&value.to_le_bytes())),
            },
            Location::Bytes { value } => {
                gimli::Reader::to_slice(value).map_or(Vec::new(), |bytes| all(&bytes))
            }
            Location::Empty | Location::ImplicitPointer { .. } => Vec::new(),
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        let registers = &self.frame?.registers;
        registers.get(register.0 as usize).copied().flatten()
    }

    /// Where a byte of a register of the frame is now.
    fn register_origin(&self, register: Register, byte: usize) -> Option<Origin> {
        if vector(register).is_some() {
            return Some(Origin::Register(register.0, byte as u8));
        }
        match *self.frame?.homes.get(register.0 as usize)? {
            Home::Register(number) => Some(Origin::Register(number, byte as u8)),
            Home::Memory(at) => Some(Origin::Memory(at.wrapping_add(byte as u64))),
            Home::Nowhere => None,
        }
    }

    fn register_bytes(&self, register: Register) -> Option<Vec<u8>> {
        match vector(register) {
            Some(number) => Some(self.frame?.vectors.as_ref()?[number as usize].to_vec()),
            None => self.register(register).map(|value| value.to_le_bytes().to_vec()),
        }
    }

    fn pieces(
        &self,
        expression: Expression<Bytes>,
        initial: Option<u64>,
    ) -> Result<(Vec<gimli::Piece<Bytes>>, Vec<Origin>), Unknown> {
        let lost = |_| Unknown::OptimisedOut;
        let out = Unknown::OptimisedOut;
        let mut evaluation = expression.evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MOST_STEPS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let (mut read, mut entered) = (Vec::new(), 0);
        let mut state = evaluation.evaluate().map_err(lost)?;
        loop {
            state = match state {
                EvaluationResult::Complete => return Ok((evaluation.result(), read)),
                EvaluationResult::RequiresMemory { address, size, base_type, .. } => {
                    let all = (0..u64::from(size)).map(|byte| address.wrapping_add(byte));
                    read.extend(all.map(Origin::Memory));
                    let bytes = self.memory.read_exact(address, size.into()).ok_or(out)?;
                    evaluation.resume_with_memory(self.typed(base_type, &bytes).ok_or(out)?)
                }
                EvaluationResult::RequiresRegister { register, base_type } => {
                    let bytes = self.register_bytes(register).ok_or(out)?;
                    read.extend((0..8).filter_map(|byte| self.register_origin(register, byte)));
                    evaluation.resume_with_register(self.typed(base_type, &bytes).ok_or(out)?)
                }
                EvaluationResult::RequiresFrameBase => {
                    evaluation.resume_with_frame_base(self.frame_base.ok_or(out)?)
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    let cfa = self.frame.and_then(|frame| frame.cfa).ok_or(out)?;
                    evaluation.resume_with_call_frame_cfa(cfa)
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    let address = self.module.mapped(crate::LinkAddress(address));
                    evaluation.resume_with_relocated_address(address)
                }
                EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                    let address = self.unit.dwarf.address(self.unit, index);
                    let address = crate::LinkAddress(address.map_err(lost)?);
                    let mapped = if relocate { self.module.mapped(address) } else { address.0 };
                    evaluation.resume_with_indexed_address(mapped)
                }
                EvaluationResult::RequiresBaseType(offset) => {
                    evaluation.resume_with_base_type(self.base_type(offset).ok_or(out)?)
                }
                EvaluationResult::RequiresTls(offset) => {
                    let tables = &self.module.image.thread_local;
                    let address = tables.address(self.memory, self.module, offset);
                    evaluation.resume_with_tls(address.ok_or(Unknown::ThreadLocal)?)
                }
                EvaluationResult::RequiresEntryValue(register) => {
                    entered += 1;
                    let asked = Some(&register).filter(|_| entered <= MOST_REGISTERS);
                    let found = asked.and_then(|register| self.at_entry(register));
                    let (value, from) = found.ok_or(out)?;
                    read.extend(from);
                    evaluation.resume_with_entry_value(value)
                }
                _ => return Err(out),
            }
            .map_err(lost)?;
        }
    }

    fn typed(&self, base_type: gimli::UnitOffset, bytes: &[u8]) -> Option<Value> {
        let value_type = match base_type.0 {
            0 => ValueType::Generic,
            _ => self.base_type(base_type)?,
        };
        if value_type == ValueType::Generic {
            let mut word = [0; 8];
            let length = bytes.len().min(8);
            word[..length].copy_from_slice(&bytes[..length]);
            return Some(Value::Generic(u64::from_le_bytes(word)));
        }
        Value::parse(value_type, Bytes::new(Rc::from(bytes), LittleEndian)).ok()
    }

    fn base_type(&self, offset: gimli::UnitOffset) -> Option<ValueType> {
        ValueType::from_entry(&self.unit.entry(offset).ok()?).ok()?
    }
}

/// Which of the vector registers it is.
fn vector(register: Register) -> Option<u16> {
    register.0.checked_sub(gimli::X86_64::XMM0.0).filter(|number| *number < 16)
}

/// The number that an expression of an unwind table computes.
pub fn unwind_expression(
    expression: Expression<Bytes>,
    memory: &dyn Memory,
    registers: &[Option<u64>; REGISTERS],
    initial: Option<u64>,
) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut word = [0; 8];
                let bytes = memory.read_exact(address, usize::from(size).min(8))?;
                word[..bytes.len()].copy_from_slice(&bytes);
                evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(word))).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0 as usize).copied().flatten()?;
                evaluation.resume_with_register(Value::Generic(value)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        Location::Value { value } => value.to_u64(!0).ok(),
        _ => None,
    }
}
