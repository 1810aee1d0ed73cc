//! Where a variable is, by the small programs that the compiler writes for it.

use crate::unwind::{Frame, REGISTERS};
use crate::{Bytes, Memory, Module, Unit};
use gimli::{EvaluationResult, Expression, LittleEndian, Location, Register, Value, ValueType};
use std::rc::Rc;

/// Where a value is: in memory, or nowhere but in registers and constants. Bytes that
/// were not kept are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Memory(u64),
    Bytes(Vec<Option<u8>>),
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
pub struct Context<'a> {
    pub memory: &'a dyn Memory,
    pub module: &'a Module,
    pub unit: &'a Rc<Unit>,
    pub frame: Option<&'a Frame>,
    pub frame_base: Option<u64>,
}

/// No expression takes longer: one that does goes round.
const MOST_STEPS: u32 = 10_000;
/// No value in registers is larger.
const MOST_BYTES: usize = 1 << 12;

impl Context<'_> {
    /// Where the value of so many bytes is that an expression describes.
    pub fn place(&self, expression: Expression<Bytes>, size: usize) -> Result<Place, Unknown> {
        let pieces = self.pieces(expression, None)?;
        if let [piece] = pieces.as_slice()
            && let (Location::Address { address }, None) = (&piece.location, piece.size_in_bits)
        {
            return Ok(Place::Memory(*address));
        }
        let mut bytes = Vec::new();
        for piece in &pieces {
            let length = piece.size_in_bits.map_or(size, |bits| bits.div_ceil(8) as usize);
            if length > MOST_BYTES || bytes.len() > MOST_BYTES {
                return Err(Unknown::OptimisedOut);
            }
            let skipped = piece.bit_offset.unwrap_or(0) as usize / 8;
            let known = self.bytes_at(&piece.location, skipped + length);
            let known = known.iter().copied().skip(skipped).chain(std::iter::repeat(None));
            bytes.extend(known.take(length));
        }
        match bytes.iter().all(Option::is_none) {
            true => Err(Unknown::OptimisedOut),
            false => Ok(Place::Bytes(bytes)),
        }
    }

    /// The number that an expression computes, such as the base of a frame.
    pub fn number(&self, expression: Expression<Bytes>, initial: Option<u64>) -> Option<u64> {
        match self.pieces(expression, initial).ok()?.first()?.location {
            Location::Address { address } => Some(address),
            Location::Register { register } => self.register(register),
            Location::Value { value } => value.to_u64(!0).ok(),
            _ => None,
        }
    }

    fn bytes_at(&self, location: &Location<Bytes>, size: usize) -> Vec<Option<u8>> {
        let all = |bytes: &[u8]| bytes.iter().copied().map(Some).collect();
        match location {
            Location::Register { register } => {
                self.register_bytes(*register).map_or(Vec::new(), |bytes| all(&bytes))
            }
            Location::Address { address } => {
                self.memory.read_exact(*address, size).map_or(Vec::new(), |bytes| all(&bytes))
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

    fn register_bytes(&self, register: Register) -> Option<Vec<u8>> {
        const FIRST_VECTOR: u16 = gimli::X86_64::XMM0.0;
        let vector = register.0.checked_sub(FIRST_VECTOR).filter(|number| *number < 16);
        match vector {
            Some(number) => Some(self.frame?.vectors.as_ref()?[number as usize].to_vec()),
            None => self.register(register).map(|value| value.to_le_bytes().to_vec()),
        }
    }

    fn pieces(
        &self,
        expression: Expression<Bytes>,
        initial: Option<u64>,
    ) -> Result<Vec<gimli::Piece<Bytes>>, Unknown> {
        let lost = |_| Unknown::OptimisedOut;
        let out = Unknown::OptimisedOut;
        let mut evaluation = expression.evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MOST_STEPS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().map_err(lost)?;
        loop {
            state = match state {
                EvaluationResult::Complete => return Ok(evaluation.result()),
                EvaluationResult::RequiresMemory { address, size, base_type, .. } => {
                    let bytes = self.memory.read_exact(address, size.into()).ok_or(out)?;
                    evaluation.resume_with_memory(self.typed(base_type, &bytes).ok_or(out)?)
                }
                EvaluationResult::RequiresRegister { register, base_type } => {
                    let bytes = self.register_bytes(register).ok_or(out)?;
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
                    let address = self.module.image.units.dwarf.address(self.unit, index);
                    let address = crate::LinkAddress(address.map_err(lost)?);
                    let mapped = if relocate { self.module.mapped(address) } else { address.0 };
                    evaluation.resume_with_indexed_address(mapped)
                }
                EvaluationResult::RequiresBaseType(offset) => {
                    evaluation.resume_with_base_type(self.base_type(offset).ok_or(out)?)
                }
                EvaluationResult::RequiresTls(_) => return Err(Unknown::ThreadLocal),
                // What a register held when the function was entered was not kept.
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
