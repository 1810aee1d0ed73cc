//! Values as text, the way a C programmer would write them.

use crate::evaluate::Unknown;
use crate::floats;
use crate::strings;
use crate::types::{Record, Shape};
use crate::units::DieRef;
use crate::value::Type;
use crate::{Memory, Modules, Value};
use gimli::constants as dw;

/// Values within values are shown so deep,
const MOST_DEPTH: usize = 4;
/// and so many next to each other.
const MOST_ELEMENTS: usize = 16;
/// From so many on, equal elements are counted and not repeated.
const REPEATS: usize = 10;

impl Value {
    /// The value on one line.
    pub fn text(&self, modules: &Modules, memory: &dyn Memory) -> String {
        Formatter { modules, memory }.value(self, MOST_DEPTH)
    }
}

struct Formatter<'a> {
    modules: &'a Modules,
    memory: &'a dyn Memory,
}

impl Formatter<'_> {
    fn value(&self, value: &Value, depth: usize) -> String {
        let text = match value.shape() {
            Shape::Number { encoding, size, name } => self.number(value, encoding, size, &name),
            Shape::Pointer { to, is_reference } => self.pointer(value, to, is_reference, depth),
            Shape::Enumeration { names, .. } => self.enumeration(value, &names),
            Shape::Record(_) | Shape::Array { .. } if depth == 0 => Ok("{…}".to_owned()),
            Shape::Record(record) => Ok(self.record(value, &record, depth)),
            Shape::Array { element, counts } => self.array(value, &element, &counts, depth),
            Shape::Function => Ok(self.address(value.address().unwrap_or(0))),
            Shape::Unknown => Err(Unknown::NoType),
        };
        text.unwrap_or_else(|unknown| unknown.to_string())
    }

    fn number(
        &self,
        value: &Value,
        encoding: gimli::DwAte,
        size: u64,
        name: &str,
    ) -> Result<String, Unknown> {
        let integer = |signed| value.integer(self.memory, size, signed);
        Ok(match encoding {
            dw::DW_ATE_boolean => match integer(false)? {
                0 => "false".to_owned(),
                1 => "true".to_owned(),
                other => other.to_string(),
            },
            dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char => {
                let number = integer(encoding == dw::DW_ATE_signed_char)?;
                let byte = number as u8;
                let shown = match byte.is_ascii() {
                    true => strings::escaped(byte.into(), '\''),
                    false => format!("\\{byte:03o}"),
                };
                format!("{number} '{shown}'")
            }
            dw::DW_ATE_UTF => match char::from_u32(integer(false)? as u32) {
                Some(c) => format!("'{}'", strings::escaped(c, '\'')),
                None => format!("{:#x}", integer(false)?),
            },
            dw::DW_ATE_signed => integer(true)?.to_string(),
            dw::DW_ATE_float => self.float(value, size, name)?,
            dw::DW_ATE_complex_float => self.complex(value, size, name)?,
            dw::DW_ATE_unsigned if size <= 16 && name != "()" => {
                (integer(false)? as u128).to_string()
            }
            // Rust's unit type.
            _ if size == 0 => "()".to_owned(),
            _ => {
                let bytes = value.bytes(self.memory, size.min(32) as usize)?;
                let digits: Vec<String> =
                    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
                format!("0x{}", digits.concat())
            }
        })
    }

    fn float(&self, value: &Value, size: u64, name: &str) -> Result<String, Unknown> {
        let bytes = value.bytes(self.memory, size.min(32) as usize)?;
        Ok(floats::text(&bytes, name).unwrap_or_else(|| "<of unknown size>".to_owned()))
    }

    /// Two numbers, one behind the other, of which the second is imaginary.
    fn complex(&self, value: &Value, size: u64, name: &str) -> Result<String, Unknown> {
        let bytes = value.bytes(self.memory, size.min(64) as usize)?;
        let (real, imaginary) = bytes.split_at(bytes.len() / 2);
        let name = name.trim_start_matches("_Complex ").trim_start_matches("complex ");
        let parts = floats::text(real, name).zip(floats::text(imaginary, name));
        let text = parts.map(|(real, imaginary)| format!("{real} + {imaginary}i"));
        Ok(text.unwrap_or_else(|| "<of unknown size>".to_owned()))
    }

    fn pointer(
        &self,
        value: &Value,
        to: Option<DieRef>,
        is_reference: bool,
        depth: usize,
    ) -> Result<String, Unknown> {
        let at = value.integer(self.memory, 8, false)? as u64;
        let Some(to) = to else {
            return Ok(self.address(at));
        };
        if is_reference && depth > 0 {
            let place = crate::evaluate::Place::Memory(at);
            return Ok(self.value(&Value::told(&value.module, to, place), depth - 1));
        }
        if strings::is_character(value.units(), &to) && at != 0 {
            let text = strings::c_string(self.memory, at);
            return Ok(match text {
                Some(text) => format!("{at:#x} {text}"),
                None => format!("{at:#x} {}", Unknown::Unreadable),
            });
        }
        Ok(self.address(at))
    }

    /// An address, with the function or variable that lies there.
    fn address(&self, at: u64) -> String {
        let symbol = self.modules.at(at).and_then(|module| module.image.symbol(module.linked(at)));
        match symbol {
            Some((name, 0)) => format!("{at:#x} <{name}>"),
            Some((name, distance)) => format!("{at:#x} <{name}+{distance}>"),
            None => format!("{at:#x}"),
        }
    }

    fn enumeration(&self, value: &Value, names: &[(i128, String)]) -> Result<String, Unknown> {
        let number = value.whole_number(self.memory)?;
        if let Some((_, name)) = names.iter().find(|(known, _)| *known == number) {
            return Ok(name.clone());
        }
        // Flags, of which several may be set.
        let is_flag = |number: i128| number > 0 && number & (number - 1) == 0;
        let set = names.iter().filter(|(flag, _)| is_flag(*flag) && number & flag == *flag);
        let known = set.clone().fold(0, |all, (flag, _)| all | flag);
        if number > 0 && known == number {
            let set: Vec<&str> = set.map(|(_, name)| name.as_str()).collect();
            return Ok(format!("({})", set.join(" | ")));
        }
        Ok(number.to_string())
    }

    fn record(&self, value: &Value, record: &Record, depth: usize) -> String {
        if let Some(text) = strings::of_record(self.memory, value, record) {
            return text;
        }
        if let Some(variants) = &record.variants {
            return self.variant(value, variants, depth);
        }
        let members: Vec<String> = record
            .members
            .iter()
            .take(MOST_ELEMENTS)
            .map(|member| {
                let text = self.value(&value.member(self.memory, member), depth - 1);
                match &member.name {
                    _ if record.is_tuple => text,
                    _ if member.is_base => {
                        format!("<{}> = {text}", value.units().type_name(&member.type_))
                    }
                    Some(name) => format!("{name} = {text}"),
                    None => text,
                }
            })
            .collect();
        let more = if record.members.len() > MOST_ELEMENTS { ", …" } else { "" };
        let inside = members.join(", ");
        if record.is_tuple { format!("({inside}{more})") } else { format!("{{{inside}{more}}}") }
    }

    /// An enumeration of Rust that carries data.
    fn variant(&self, value: &Value, variants: &crate::types::Variants, depth: usize) -> String {
        let tag = variants.tag.as_ref().map(|tag| {
            let tag = value.member(self.memory, tag);
            let size = tag.size().unwrap_or(0);
            tag.integer(self.memory, size, false)
        });
        let number = match tag {
            Some(Err(unknown)) => return unknown.to_string(),
            Some(Ok(number)) => Some(number as u64),
            None => None,
        };
        let told = variants.all.iter().find(|(known, _)| known.is_some() && *known == number);
        let other = || variants.all.iter().find(|(known, _)| known.is_none());
        let Some((_, member)) = told.or_else(other) else {
            return format!("<variant {}>", number.unwrap_or(0));
        };
        let inside = value.member(self.memory, member);
        let name = member.name.clone().or_else(|| match &inside.type_ {
            Type::Told(type_) => Some(value.units().type_name(type_)),
            Type::PointerTo(_) | Type::ArrayOf(..) => None,
        });
        let name = name.unwrap_or_default();
        match inside.shape() {
            Shape::Record(record) if record.members.is_empty() => name,
            Shape::Record(_) => {
                let text = self.value(&inside, depth - 1);
                let gap = if text.starts_with('{') { " " } else { "" };
                format!("{name}{gap}{text}")
            }
            _ => name,
        }
    }

    fn array(
        &self,
        value: &Value,
        element: &DieRef,
        counts: &[Option<u64>],
        depth: usize,
    ) -> Result<String, Unknown> {
        let Some((count, inner)) = counts.split_first() else {
            return Err(Unknown::NoType);
        };
        let size = value.units().size(element).unwrap_or(0);
        let stride = inner.iter().try_fold(size, |all, count| all.checked_mul((*count)?));
        let (Some(count), Some(stride)) = (count, stride) else {
            return Ok("{…}".to_owned());
        };
        if inner.is_empty() && strings::is_character(value.units(), element) {
            /// Of larger arrays, only the beginning is looked at.
            const MOST_TEXT: u64 = 1 << 20;
            let bytes = value.bytes(self.memory, (*count).min(MOST_TEXT) as usize)?;
            return Ok(strings::array_text(&bytes, *count > MOST_TEXT));
        }
        let element_text = |index: u64| {
            let part = value.part(element.clone(), index.saturating_mul(stride), None);
            match inner.is_empty() {
                true => self.value(&part, depth - 1),
                false => self
                    .array(&part, element, inner, depth)
                    .unwrap_or_else(|unknown| unknown.to_string()),
            }
        };
        /// Farther on, nobody looks for repetitions.
        const MOST_LOOKED_AT: u64 = 256;
        let mut runs: Vec<(String, usize)> = Vec::new();
        let mut index = 0;
        while index < (*count).min(MOST_LOOKED_AT) && shown(&runs) <= MOST_ELEMENTS {
            let text = element_text(index);
            match runs.last_mut() {
                Some((last, times)) if *last == text => *times += 1,
                _ => runs.push((text, 1)),
            }
            index += 1;
        }
        let mut texts = Vec::new();
        for (text, times) in &runs {
            match times {
                REPEATS.. => texts.push(format!("{text} <repeats {times} times>")),
                _ => texts.extend(std::iter::repeat_n(text.clone(), *times)),
            }
        }
        let more = index < *count || texts.len() > MOST_ELEMENTS;
        texts.truncate(MOST_ELEMENTS);
        Ok(format!("{{{}{}}}", texts.join(", "), if more { ", …" } else { "" }))
    }
}

/// How many elements will be written for runs of equal ones.
fn shown(runs: &[(String, usize)]) -> usize {
    runs.iter().map(|(_, times)| if *times >= REPEATS { 1 } else { *times }).sum()
}
