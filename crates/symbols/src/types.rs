//! The types of variables, as the compiler wrote them down.

use crate::evaluate::MOST_STEPS;
use crate::units::{DieRef, Units};
use crate::{Bytes, Die, Unit};
use gimli::constants as dw;
use gimli::{AttributeValue, DwAte, Expression};
use std::rc::Rc;

/// A type without the names, qualifiers and aliases around it.
pub enum Shape {
    Number {
        encoding: DwAte,
        size: u64,
        name: String,
    },
    Pointer {
        to: Option<DieRef>,
        is_reference: bool,
    },
    Record(Record),
    /// Of a dimension whose length is known only while the program runs, or never, there is no count.
    Array {
        element: DieRef,
        counts: Vec<Option<u64>>,
    },
    Enumeration {
        size: u64,
        is_signed: bool,
        names: Vec<(i128, String)>,
    },
    Function,
    Unknown,
}

/// A structure, class, union, tuple, or enumeration with data.
pub struct Record {
    pub name: String,
    pub is_tuple: bool,
    pub members: Vec<Member>,
    pub variants: Option<Variants>,
}

pub struct Member {
    /// None of what has no name: a structure within a structure.
    pub name: Option<String>,
    pub type_: DieRef,
    pub offset: Offset,
    /// First bit, from the member's offset on, and number of bits.
    pub bits: Option<(u64, u64)>,
    pub is_base: bool,
}

/// How far behind the beginning of its record a member is.
pub enum Offset {
    Bytes(u64),
    /// The objects know it: what is computed from the address of one is the member's.
    Computed(Rc<Unit>, Expression<Bytes>),
}

/// What is there depends on a member.
pub struct Variants {
    pub tag: Option<Member>,
    /// The one with no value is there when no other is.
    pub all: Vec<(Option<u64>, Member)>,
}

/// Aliases of aliases end somewhere.
const MOST_HOPS: usize = 32;

impl Units {
    /// The type that an entry says it is of.
    pub fn type_of(&self, unit: &Rc<Unit>, entry: &Die) -> Option<DieRef> {
        let (unit, value) = self.attribute(unit, entry, dw::DW_AT_type)?;
        self.referred(&unit, &value)
    }

    /// What is behind all names and qualifiers of a type.
    pub fn bare(&self, of: &DieRef) -> Option<(DieRef, Die)> {
        let mut at = of.clone();
        for _ in 0..MOST_HOPS {
            let entry = at.entry()?;
            match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => at = self.type_of(&at.unit.clone(), &entry)?,
                _ => return Some((at, entry)),
            }
        }
        None
    }

    pub fn shape(&self, of: &DieRef) -> Shape {
        let Some((at, entry)) = self.bare(of) else {
            return Shape::Unknown;
        };
        let size = number(&entry, dw::DW_AT_byte_size).unwrap_or(0);
        let unit = &at.unit;
        match entry.tag() {
            dw::DW_TAG_base_type => match entry.attr_value(dw::DW_AT_encoding) {
                Some(AttributeValue::Encoding(encoding)) => {
                    let name = self.name(unit, &entry).unwrap_or_default();
                    Shape::Number { encoding, size, name }
                }
                _ => Shape::Unknown,
            },
            tag @ (dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type) => Shape::Pointer {
                to: self.type_of(unit, &entry),
                is_reference: tag != dw::DW_TAG_pointer_type,
            },
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                Shape::Record(self.record(&at, &entry))
            }
            dw::DW_TAG_array_type => self.array(&at, &entry),
            dw::DW_TAG_enumeration_type => self.enumeration(&at, &entry, size),
            dw::DW_TAG_subroutine_type => Shape::Function,
            // How far it is behind the beginning of an object; of functions, two numbers.
            dw::DW_TAG_ptr_to_member_type => Shape::Number {
                encoding: dw::DW_ATE_signed,
                size: self.size(&at).unwrap_or(8),
                name: String::new(),
            },
            dw::DW_TAG_unspecified_type if self.is_null(unit, &entry) => {
                Shape::Pointer { to: None, is_reference: false }
            }
            _ => Shape::Unknown,
        }
    }

    /// How many bytes a value of the type takes.
    pub fn size(&self, of: &DieRef) -> Option<u64> {
        self.size_within(of, MOST_HOPS)
    }

    fn size_within(&self, of: &DieRef, hops: usize) -> Option<u64> {
        let (at, entry) = self.bare(of).filter(|_| hops > 0)?;
        match entry.tag() {
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type => Some(8),
            dw::DW_TAG_array_type => match self.array(&at, &entry) {
                Shape::Array { element, counts } => {
                    let count = counts.iter().try_fold(1u64, |all, n| all.checked_mul((*n)?))?;
                    self.size_within(&element, hops - 1)?.checked_mul(count)
                }
                _ => None,
            },
            dw::DW_TAG_ptr_to_member_type => {
                let to = self.type_of(&at.unit, &entry).and_then(|to| self.bare(&to));
                let is_function =
                    to.is_some_and(|(_, entry)| entry.tag() == dw::DW_TAG_subroutine_type);
                Some(if is_function { 16 } else { 8 })
            }
            dw::DW_TAG_unspecified_type if self.is_null(&at.unit, &entry) => Some(8),
            _ => number(&entry, dw::DW_AT_byte_size),
        }
    }

    /// Whether a type has no value but that of a null pointer.
    fn is_null(&self, unit: &Rc<Unit>, entry: &Die) -> bool {
        self.name(unit, entry).is_some_and(|name| name == "decltype(nullptr)")
    }

    fn children(&self, of: &DieRef, mut each: impl FnMut(&Die)) {
        let Ok(mut tree) = of.unit.entries_tree(Some(of.offset)) else { return };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            each(child.entry());
        }
    }

    fn record(&self, at: &DieRef, entry: &Die) -> Record {
        let name = self.name(&at.unit, entry).unwrap_or_default();
        let mut members = Vec::new();
        let mut variants = None;
        self.children(at, |child| match child.tag() {
            dw::DW_TAG_member | dw::DW_TAG_inheritance => {
                // What has no place in the record is shared by all.
                let is_static =
                    child.has_attr(dw::DW_AT_external) || child.has_attr(dw::DW_AT_declaration);
                if !is_static {
                    members.extend(self.member(&at.unit, child));
                }
            }
            dw::DW_TAG_variant_part => {
                let part = DieRef { unit: at.unit.clone(), offset: child.offset() };
                variants = Some(self.variants(&part, child));
            }
            _ => {}
        });
        let is_tuple = !members.is_empty()
            && members.iter().enumerate().all(|(index, member)| {
                member.name.as_deref() == Some(format!("__{index}").as_str())
            });
        Record { name, is_tuple, members, variants }
    }

    fn member(&self, unit: &Rc<Unit>, entry: &Die) -> Option<Member> {
        let type_ = self.type_of(unit, entry)?;
        let offset = member_offset(unit, entry).unwrap_or(Offset::Bytes(0));
        let bits = number(entry, dw::DW_AT_bit_size).map(|size| {
            let first = number(entry, dw::DW_AT_data_bit_offset);
            let first = first.unwrap_or_else(|| self.old_bit_offset(&type_, entry, size));
            (first, size)
        });
        let is_base = entry.tag() == dw::DW_TAG_inheritance;
        Some(Member { name: self.name(unit, entry), type_, offset, bits, is_base })
    }

    /// Older compilers count bits from the most significant one of the member's type.
    fn old_bit_offset(&self, type_: &DieRef, entry: &Die, size: u64) -> u64 {
        let from_top = number(entry, dw::DW_AT_bit_offset).unwrap_or(0);
        let bytes = number(entry, dw::DW_AT_byte_size).or_else(|| self.size(type_)).unwrap_or(0);
        bytes.saturating_mul(8).saturating_sub(from_top.saturating_add(size))
    }

    fn variants(&self, part: &DieRef, entry: &Die) -> Variants {
        let tag = entry.attr_value(dw::DW_AT_discr).and_then(|value| {
            let tag = self.referred(&part.unit, &value)?;
            self.member(&tag.unit, &tag.entry()?)
        });
        let mut all = Vec::new();
        self.children(part, |child| {
            if child.tag() != dw::DW_TAG_variant {
                return;
            }
            let value = number(child, dw::DW_AT_discr_value);
            let variant = DieRef { unit: part.unit.clone(), offset: child.offset() };
            self.children(&variant, |inner| {
                if inner.tag() == dw::DW_TAG_member {
                    all.extend(self.member(&part.unit, inner).map(|member| (value, member)));
                }
            });
        });
        Variants { tag, all }
    }

    fn array(&self, at: &DieRef, entry: &Die) -> Shape {
        let Some(element) = self.type_of(&at.unit, entry) else {
            return Shape::Unknown;
        };
        let known = |told: Option<(AttributeValue<Bytes>, u8)>| {
            let (value, more) = told?;
            count(constant(&value)?, more)
        };
        let counts = self.dimensions(at).into_iter().map(known);
        Shape::Array { element, counts: counts.collect() }
    }

    /// What is told of the length of each dimension of an array, and how much is to be added to that.
    pub fn dimensions(&self, array: &DieRef) -> Vec<Option<(AttributeValue<Bytes>, u8)>> {
        let mut all = Vec::new();
        self.children(array, |child| {
            if child.tag() == dw::DW_TAG_subrange_type {
                let count = child.attr_value(dw::DW_AT_count).map(|count| (count, 0));
                let last = || child.attr_value(dw::DW_AT_upper_bound).map(|last| (last, 1));
                all.push(count.or_else(last));
            }
        });
        all
    }

    fn enumeration(&self, at: &DieRef, entry: &Die, size: u64) -> Shape {
        let mut names = Vec::new();
        self.children(at, |child| {
            if child.tag() == dw::DW_TAG_enumerator
                && let Some(name) = self.name(&at.unit, child)
                && let Some(value) = child.attr_value(dw::DW_AT_const_value)
                && let Some(value) = constant(&value)
            {
                names.push((value, name));
            }
        });
        let is_negative = names.iter().any(|(number, _): &(i128, String)| *number < 0);
        let is_signed = is_negative || self.is_of_signed(at, entry);
        Shape::Enumeration { size, is_signed, names }
    }

    /// Whether the numbers of an enumeration are those of a type with a sign, as it may say.
    fn is_of_signed(&self, at: &DieRef, entry: &Die) -> bool {
        let numbers = self.type_of(&at.unit, entry).and_then(|numbers| self.bare(&numbers));
        let encoding = numbers.and_then(|(_, entry)| entry.attr_value(dw::DW_AT_encoding));
        let signed = [dw::DW_ATE_signed, dw::DW_ATE_signed_char].map(AttributeValue::Encoding);
        encoding.is_some_and(|encoding| signed.contains(&encoding))
    }

    /// The type as a person would write it.
    pub fn type_name(&self, of: &DieRef) -> String {
        self.type_name_within(of, MOST_HOPS)
    }

    fn type_name_within(&self, of: &DieRef, hops: usize) -> String {
        let Some(entry) = of.entry().filter(|_| hops > 0) else {
            return "?".to_owned();
        };
        let inner = || match self.type_of(&of.unit, &entry) {
            Some(inner) => self.type_name_within(&inner, hops - 1),
            None => "void".to_owned(),
        };
        let named = self.name(&of.unit, &entry);
        match entry.tag() {
            dw::DW_TAG_const_type => format!("const {}", inner()),
            dw::DW_TAG_volatile_type => format!("volatile {}", inner()),
            dw::DW_TAG_restrict_type | dw::DW_TAG_atomic_type => inner(),
            // Rust names its pointers.
            dw::DW_TAG_pointer_type => named.unwrap_or_else(|| match inner() {
                pointer if pointer.ends_with('*') => format!("{pointer}*"),
                other => format!("{other} *"),
            }),
            dw::DW_TAG_reference_type => format!("{} &", inner()),
            dw::DW_TAG_rvalue_reference_type => format!("{} &&", inner()),
            dw::DW_TAG_array_type => match self.array(of, &entry) {
                Shape::Array { counts, .. } => format!("{} {}", inner(), brackets(&counts)),
                _ => inner(),
            },
            dw::DW_TAG_subroutine_type => format!("{} (…)", inner()),
            dw::DW_TAG_ptr_to_member_type => format!("{} ::*", inner()),
            dw::DW_TAG_structure_type => self.with_keyword(of, "struct ", named),
            dw::DW_TAG_union_type => self.with_keyword(of, "union ", named),
            dw::DW_TAG_enumeration_type => self.with_keyword(of, "enum ", named),
            _ => named.unwrap_or_else(|| "?".to_owned()),
        }
    }

    /// C says what kind of type a name is for; other languages need not.
    fn with_keyword(&self, of: &DieRef, keyword: &str, name: Option<String>) -> String {
        let name = name.unwrap_or_else(|| "{…}".to_owned());
        let root = of.unit.entry(of.unit.header.root_offset()).ok();
        let language = root.and_then(|root| root.attr_value(dw::DW_AT_language));
        let is_c = matches!(
            language,
            Some(AttributeValue::Language(
                dw::DW_LANG_C | dw::DW_LANG_C89 | dw::DW_LANG_C99 | dw::DW_LANG_C11
            ))
        );
        if is_c { format!("{keyword}{name}") } else { name }
    }
}

/// How far a member lies behind the beginning of its record. Version 2 of the tables says what is
/// to be added to that by an expression.
fn member_offset(unit: &Rc<Unit>, entry: &Die) -> Option<Offset> {
    let expression = match entry.attr_value(dw::DW_AT_data_member_location)? {
        AttributeValue::Exprloc(expression) => expression,
        AttributeValue::Block(block) => Expression(block),
        constant => return constant.udata_value().map(Offset::Bytes),
    };
    let mut evaluation = expression.clone().evaluation(unit.encoding());
    evaluation.set_initial_value(0);
    evaluation.set_max_iterations(MOST_STEPS);
    let Ok(gimli::EvaluationResult::Complete) = evaluation.evaluate() else {
        return Some(Offset::Computed(Rc::clone(unit), expression));
    };
    match evaluation.result().first()?.location {
        gimli::Location::Address { address } => Some(Offset::Bytes(address)),
        _ => None,
    }
}

/// Behind the type of an array's elements, how many there are.
pub fn brackets(counts: &[Option<u64>]) -> String {
    let told = |count: &Option<u64>| count.map_or("[]".to_owned(), |count| format!("[{count}]"));
    counts.iter().map(told).collect()
}

/// A number as compilers write it: negative ones in a form that has a sign, and others, if the form
/// has as many bytes as they need, without one.
pub fn constant(value: &AttributeValue<Bytes>) -> Option<i128> {
    match value {
        AttributeValue::Sdata(number) => Some((*number).into()),
        AttributeValue::Data16(number) => Some(*number as i128),
        other => other.udata_value().map(i128::from),
    }
}

/// How many elements there are, by what is told of it and what is to be added. Arrays of none end
/// before they begin.
pub fn count(told: i128, more: u8) -> Option<u64> {
    u64::try_from((told as i64).checked_add(more.into())?.max(0)).ok()
}

fn number(entry: &Die, name: gimli::DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}
