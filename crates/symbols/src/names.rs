//! What functions, variables and types are called.

use crate::units::{DieRef, Units};
use crate::{Die, Unit};
use gimli::constants as dw;
use std::rc::Rc;

/// References from one entry to the next end somewhere.
pub(crate) const MOST_HOPS: usize = 16;

impl Units {
    /// An entry's own name, or that of the entry it is an instance of.
    pub fn name(&self, unit: &Rc<Unit>, entry: &Die) -> Option<String> {
        self.inherited(unit, entry, &[dw::DW_AT_name]).map(|(_, name)| name)
    }

    /// The name of a function with all that it lies in, as a person would write it.
    pub fn function_name(&self, unit: &Rc<Unit>, entry: &Die) -> Option<String> {
        let linkage = [dw::DW_AT_linkage_name, dw::DW_AT_MIPS_linkage_name];
        let mangled = self.inherited(unit, entry, &linkage).map(|(_, name)| name);
        match mangled.and_then(|name| demangled(&name)) {
            Some(name) => Some(name),
            None => self.name(unit, entry),
        }
    }

    /// The first of these attributes, of the entry or what it refers to.
    fn inherited(
        &self,
        unit: &Rc<Unit>,
        entry: &Die,
        names: &[gimli::DwAt],
    ) -> Option<(DieRef, String)> {
        let mut at = (unit.clone(), entry.clone());
        for _ in 0..MOST_HOPS {
            let (unit, entry) = &at;
            if let Some(value) = names.iter().find_map(|name| entry.attr_value(*name)) {
                let place = DieRef { unit: unit.clone(), offset: entry.offset() };
                return Some((place, self.string(unit, value)?));
            }
            let next = self.origin(unit, entry)?;
            at = (next.unit.clone(), next.entry()?);
        }
        None
    }

    /// What the entry is an instance or the definition of.
    pub fn origin(&self, unit: &Rc<Unit>, entry: &Die) -> Option<DieRef> {
        let refers = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
        let value = refers.iter().find_map(|name| entry.attr_value(*name))?;
        self.referred(unit, &value)
    }

    /// What the entry is an instance of: what was written once and is there several times.
    pub fn instance_of(&self, unit: &Rc<Unit>, entry: &Die) -> Option<DieRef> {
        self.referred(unit, &entry.attr_value(dw::DW_AT_abstract_origin)?)
    }

    /// The entry's attribute, or that of what it is an instance of.
    pub fn attribute(
        &self,
        unit: &Rc<Unit>,
        entry: &Die,
        name: gimli::DwAt,
    ) -> Option<(Rc<Unit>, gimli::AttributeValue<crate::Bytes>)> {
        let mut at = (unit.clone(), entry.clone());
        for _ in 0..MOST_HOPS {
            if let Some(value) = at.1.attr_value(name) {
                return Some((at.0, value));
            }
            let next = self.origin(&at.0, &at.1)?;
            at = (next.unit.clone(), next.entry()?);
        }
        None
    }
}

/// The name in the source, without types of parameters; None if it is not mangled.
pub fn demangled(name: &str) -> Option<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}"));
    }
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let name = symbol.demangle_with_options(&options).ok()?;
    // As everybody else calls it.
    let vtable = name.strip_prefix("{vtable(").and_then(|rest| rest.strip_suffix(")}"));
    Some(vtable.map_or(name.clone(), |class| format!("vtable for {class}")))
}

/// Whether a name is what somebody asked for: all of it, or its last parts, with or without
/// the arguments of templates and generic functions.
pub fn is_meant(name: &str, asked: &str) -> bool {
    if !asked.contains('<') && name.contains('<') {
        return is_meant(&without_arguments(name), asked);
    }
    name == asked || name.strip_suffix(asked).is_some_and(|rest| rest.ends_with("::"))
}

/// A name without what stands in angle brackets.
pub fn without_arguments(name: &str) -> String {
    let mut depth = 0;
    let mut plain = String::new();
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    // Rust names a function so that is the last but one of several.
    plain.replace("::::", "::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_in_the_source() {
        assert_eq!(demangled("_ZN3foo3barEi").as_deref(), Some("foo::bar"));
        assert_eq!(demangled("_RNvCskwGfYPst2Cb_3foo3bar").as_deref(), Some("foo::bar"));
        assert_eq!(demangled("_ZTV7Derived").as_deref(), Some("vtable for Derived"));
        assert_eq!(demangled("main"), None);
        assert!(is_meant("a::b::c", "b::c") && !is_meant("a::bb::c", "b::c"));
        assert!(is_meant("a::b<int, c::d>::f<e>", "b::f") && is_meant("a::b<int>", "b<int>"));
        assert!(!is_meant("a::b<int>", "b<long>"));
    }
}
