//! A value of a program: its type, and where it is.

use crate::assembled::Byte;
use crate::evaluate::{Context, Origin, Place, Unknown};
use crate::types::{Member, Offset, Shape, brackets, constant};
use crate::units::{DieRef, Units};
use crate::{Bytes, Memory, Module};
use gimli::AttributeValue;
use gimli::constants as dw;

/// Nothing is inherited over more generations.
const MOST_DEPTH: usize = 16;

#[derive(Clone)]
pub struct Value {
    /// Whose types these are.
    pub(crate) module: Module,
    pub(crate) type_: Type,
    pub(crate) place: Place,
    /// First bit and number of bits, of a member that is not made of whole bytes.
    pub(crate) bits: Option<(u64, u64)>,
}

#[derive(Clone)]
pub enum Type {
    Told(DieRef),
    /// What nobody wrote down: the type of an address.
    PointerTo(DieRef),
    /// An array whose length is known only while the program runs.
    ArrayOf(DieRef, Vec<Option<u64>>),
}

impl Value {
    pub(crate) fn told(module: &Module, type_: DieRef, place: Place) -> Value {
        Value { module: module.clone(), type_: Type::Told(type_), place, bits: None }
    }

    /// A value that the compiler knew.
    pub(crate) fn constant(
        module: &Module,
        type_: DieRef,
        value: &AttributeValue<Bytes>,
        size: usize,
    ) -> Result<Value, Unknown> {
        let bytes = match value {
            AttributeValue::Block(bytes) => {
                gimli::Reader::to_slice(bytes).map_err(|_| Unknown::OptimisedOut)?.to_vec()
            }
            value => constant(value).ok_or(Unknown::OptimisedOut)?.to_le_bytes().to_vec(),
        };
        let bytes = bytes.into_iter().take(size.max(1)).map(Byte::constant).collect();
        Ok(Value::told(module, type_, Place::Bytes(bytes)))
    }

    pub(crate) fn units(&self) -> &Units {
        &self.module.image.units
    }

    pub(crate) fn shape(&self) -> Shape {
        match &self.type_ {
            Type::Told(type_) => self.units().shape(type_),
            Type::PointerTo(to) => Shape::Pointer { to: Some(to.clone()), is_reference: false },
            Type::ArrayOf(element, counts) => {
                Shape::Array { element: element.clone(), counts: counts.clone() }
            }
        }
    }

    /// How many bytes it takes, or has a part in.
    pub fn size(&self) -> Option<u64> {
        match (&self.type_, self.bits) {
            (_, Some((first, count))) => Some(first.saturating_add(count).div_ceil(8)),
            (Type::Told(type_), None) => self.units().size(type_),
            (Type::PointerTo(_), None) => Some(8),
            (Type::ArrayOf(element, counts), None) => {
                let size = self.units().size(element)?;
                counts.iter().try_fold(size, |all, count| all.checked_mul((*count)?))
            }
        }
    }

    /// The address, if it is in memory.
    pub fn address(&self) -> Option<u64> {
        match self.place {
            Place::Memory(address) => Some(address),
            Place::Bytes(_) => None,
        }
    }

    /// Where its bytes come from; nowhere if the compiler knew them.
    pub fn origins(&self, memory: &dyn Memory) -> Vec<Origin> {
        let mut origins = Vec::new();
        self.add_origins(memory, &mut origins, MOST_DEPTH);
        origins.sort_unstable();
        origins.dedup();
        origins
    }

    fn add_origins(&self, memory: &dyn Memory, origins: &mut Vec<Origin>, depth: usize) {
        /// Of a larger value, only the beginning: a damaged table may say anything.
        const MOST: u64 = 1 << 24;
        let size = self.size().unwrap_or(0).min(MOST);
        match &self.place {
            Place::Memory(at) => {
                origins.extend((0..size).map(|byte| Origin::Memory(at.wrapping_add(byte))));
            }
            Place::Bytes(bytes) => {
                let own = bytes.iter().take(size as usize);
                origins.extend(own.flat_map(|byte| byte.from.iter().copied()));
            }
        }
        // What several classes share by inheritance may lie outside of the object.
        if let (Shape::Record(record), 1..) = (self.shape(), depth) {
            for base in record.members.iter().filter(|member| member.is_base) {
                self.member(memory, base).add_origins(memory, origins, depth - 1);
            }
        }
    }

    /// Whether it is nowhere as it is, but computed from where it comes from by what the debug
    /// information says.
    pub fn is_computed(&self) -> bool {
        match &self.place {
            Place::Memory(_) => false,
            Place::Bytes(bytes) => {
                let size = self.size().unwrap_or(0) as usize;
                bytes.iter().take(size).any(|byte| byte.is_computed)
            }
        }
    }

    pub fn type_name(&self) -> String {
        match &self.type_ {
            Type::Told(type_) => self.units().type_name(type_),
            Type::PointerTo(to) => format!("{} *", self.units().type_name(to)),
            Type::ArrayOf(element, counts) => {
                format!("{} {}", self.units().type_name(element), brackets(counts))
            }
        }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self, memory: &dyn Memory, size: usize) -> Result<Vec<u8>, Unknown> {
        match &self.place {
            Place::Memory(at) => memory.read_exact(*at, size).ok_or(Unknown::Unreadable),
            Place::Bytes(bytes) => {
                let known = |byte: &Byte| (byte.known == 0xff).then_some(byte.value);
                let bytes = bytes.get(..size).and_then(|own| own.iter().map(known).collect());
                bytes.ok_or(Unknown::OptimisedOut)
            }
        }
    }

    /// Its bits as a number, the sign extended if there is one.
    pub(crate) fn integer(
        &self,
        memory: &dyn Memory,
        size: u64,
        signed: bool,
    ) -> Result<i128, Unknown> {
        let (first, count) = self.bits.unwrap_or((0, size.saturating_mul(8)));
        let length = first.saturating_add(count).div_ceil(8).min(16) as usize;
        let (first, unused) = (first.min(127) as u32, 128u64.saturating_sub(count) as u32);
        let wanted = u128::MAX.checked_shr(unused).unwrap_or(0);
        let bits = match &self.place {
            Place::Memory(_) => word(self.bytes(memory, length)?),
            Place::Bytes(bytes) => {
                let own = bytes.get(..length).ok_or(Unknown::OptimisedOut)?;
                // Others in the same bytes need not be known.
                let known = word(own.iter().map(|byte| byte.known)) >> first & wanted;
                if known != wanted {
                    return Err(Unknown::OptimisedOut);
                }
                word(own.iter().map(|byte| byte.value))
            }
        };
        let bits = bits >> first & wanted;
        let extended = (bits as i128).checked_shl(unused).and_then(|bits| bits.checked_shr(unused));
        Ok(if signed { extended.unwrap_or(0) } else { bits as i128 })
    }

    /// Its number, if it is a whole one.
    pub(crate) fn whole_number(&self, memory: &dyn Memory) -> Result<i128, Unknown> {
        match self.shape() {
            Shape::Number {
                encoding: dw::DW_ATE_signed | dw::DW_ATE_signed_char, size, ..
            } => self.integer(memory, size, true),
            Shape::Number {
                encoding:
                    dw::DW_ATE_unsigned | dw::DW_ATE_unsigned_char | dw::DW_ATE_boolean | dw::DW_ATE_UTF,
                size,
                ..
            } => self.integer(memory, size, false),
            Shape::Enumeration { size, is_signed, .. } => self.integer(memory, size, is_signed),
            _ => Err(Unknown::NoType),
        }
    }

    /// What a reference leads to; itself if it is none.
    pub(crate) fn referred(self, memory: &dyn Memory) -> Result<Value, Unknown> {
        match self.shape() {
            Shape::Pointer { is_reference: true, .. } => {
                let to = self.pointed_to(memory)?;
                Ok(to.unwrap_or(self))
            }
            _ => Ok(self),
        }
    }

    /// What lies so many bytes behind its beginning.
    pub(crate) fn part(&self, type_: DieRef, offset: u64, bits: Option<(u64, u64)>) -> Value {
        // Bits are counted from the beginning of the record in newer tables.
        let (offset, bits) = match bits {
            Some((first, count)) => (offset.wrapping_add(first / 8), Some((first % 8, count))),
            None => (offset, None),
        };
        let place = match &self.place {
            Place::Memory(at) => Place::Memory(at.wrapping_add(offset)),
            Place::Bytes(bytes) => {
                Place::Bytes(bytes.get(offset as usize..).unwrap_or_default().to_vec())
            }
        };
        Value { module: self.module.clone(), type_: Type::Told(type_), place, bits }
    }

    pub(crate) fn member(&self, memory: &dyn Memory, member: &Member) -> Value {
        let type_ = member.type_.clone();
        match (&member.offset, &self.place) {
            (Offset::Bytes(offset), _) => self.part(type_, *offset, member.bits),
            (Offset::Computed(unit, expression), Place::Memory(at)) => {
                let (module, frame) = (&self.module, None);
                let (frame_base, modules, callers) = (None, None, 0);
                let context = Context { memory, module, unit, frame, frame_base, modules, callers };
                match context.number(expression.clone(), Some(*at)) {
                    Some(at) => Value::told(module, type_, Place::Memory(at)),
                    None => Value::told(module, type_, Place::Bytes(Vec::new())),
                }
            }
            // Only objects in memory know where such a member is.
            (Offset::Computed(..), Place::Bytes(_)) => {
                Value::told(&self.module, type_, Place::Bytes(Vec::new()))
            }
        }
    }

    /// A member by its name, also of what has no name itself and of what is inherited.
    pub(crate) fn member_named(&self, memory: &dyn Memory, name: &str) -> Option<Value> {
        self.member_within(memory, name, MOST_DEPTH)
    }

    fn member_within(&self, memory: &dyn Memory, name: &str, depth: usize) -> Option<Value> {
        let (Shape::Record(record), 1..) = (self.shape(), depth) else {
            return None;
        };
        let direct = record.members.iter().find(|member| {
            let own = member.name.as_deref();
            own == Some(name) || own.and_then(|own| own.strip_prefix("__")) == Some(name)
        });
        if let Some(member) = direct {
            return Some(self.member(memory, member));
        }
        let inner = record.members.iter().filter(|member| member.is_base || member.name.is_none());
        inner
            .map(|member| self.member(memory, member))
            .find_map(|inner| inner.member_within(memory, name, depth - 1))
    }

    /// What a pointer points to.
    pub(crate) fn pointed_to(&self, memory: &dyn Memory) -> Result<Option<Value>, Unknown> {
        let Shape::Pointer { to: Some(to), .. } = self.shape() else {
            return Ok(None);
        };
        let at = self.integer(memory, 8, false)? as u64;
        Ok(Some(Value::told(&self.module, to, Place::Memory(at))))
    }
}

/// Up to sixteen bytes as a number.
fn word(bytes: impl IntoIterator<Item = u8>) -> u128 {
    let mut word = [0; 16];
    word.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    u128::from_le_bytes(word)
}
