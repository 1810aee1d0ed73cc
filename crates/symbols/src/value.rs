//! A value of a program: its type, and where it is.

use crate::evaluate::{Byte, Origin, Place, Unknown};
use crate::types::{Member, Shape};
use crate::units::{DieRef, Units};
use crate::{Bytes, Memory, Module};
use gimli::AttributeValue;

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
            value => {
                let signed = value.sdata_value().map(|value| value as u64);
                let number = signed.or_else(|| value.udata_value()).ok_or(Unknown::OptimisedOut)?;
                number.to_le_bytes().to_vec()
            }
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
        }
    }

    /// How many bytes it takes, or has a part in.
    pub fn size(&self) -> Option<u64> {
        match (&self.type_, self.bits) {
            (_, Some((first, count))) => Some(first.saturating_add(count).div_ceil(8)),
            (Type::Told(type_), None) => self.units().size(type_),
            (Type::PointerTo(_), None) => Some(8),
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
    pub fn origins(&self) -> Vec<Origin> {
        let size = self.size().unwrap_or(0);
        let mut origins: Vec<Origin> = match &self.place {
            Place::Memory(at) => {
                (0..size).map(|byte| Origin::Memory(at.wrapping_add(byte))).collect()
            }
            Place::Bytes(bytes) => {
                let own = bytes.iter().take(size as usize);
                own.flat_map(|byte| byte.from.iter().copied()).collect()
            }
        };
        origins.sort_unstable();
        origins.dedup();
        origins
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
        }
    }

    /// Its bytes.
    pub(crate) fn bytes(&self, memory: &dyn Memory, size: usize) -> Result<Vec<u8>, Unknown> {
        match &self.place {
            Place::Memory(at) => memory.read_exact(*at, size).ok_or(Unknown::Unreadable),
            Place::Bytes(bytes) => {
                let known: Option<Vec<u8>> =
                    bytes.get(..size).and_then(|b| b.iter().map(|byte| byte.value).collect());
                known.ok_or(Unknown::OptimisedOut)
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
        let mut word = [0; 16];
        word[..length].copy_from_slice(&self.bytes(memory, length)?);
        let unused = 128u64.saturating_sub(count).min(127) as u32;
        let bits = u128::from_le_bytes(word) >> first.min(127) << unused;
        Ok(if signed { bits as i128 >> unused } else { (bits >> unused) as i128 })
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

    pub(crate) fn member(&self, member: &Member) -> Value {
        self.part(member.type_.clone(), member.offset, member.bits)
    }

    /// A member by its name, also of what has no name itself and of what is inherited.
    pub(crate) fn member_named(&self, name: &str) -> Option<Value> {
        /// Nothing is inherited over more generations.
        const MOST_DEPTH: usize = 16;
        self.member_within(name, MOST_DEPTH)
    }

    fn member_within(&self, name: &str, depth: usize) -> Option<Value> {
        let (Shape::Record(record), 1..) = (self.shape(), depth) else {
            return None;
        };
        let direct = record.members.iter().find(|member| {
            let own = member.name.as_deref();
            own == Some(name) || own.and_then(|own| own.strip_prefix("__")) == Some(name)
        });
        if let Some(member) = direct {
            return Some(self.member(member));
        }
        let inner = record.members.iter().filter(|member| member.is_base || member.name.is_none());
        inner
            .map(|member| self.member(member))
            .find_map(|inner| inner.member_within(name, depth - 1))
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
