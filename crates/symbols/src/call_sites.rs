//! What a function was called with, where it has not kept that itself: the compiler writes down at
//! a call what it put in registers, as far as the caller can still tell.

use crate::evaluate::{Context, Origin};
use crate::units::DieRef;
use crate::{Bytes, Die, Frame, LinkAddress, Modules};
use gimli::constants as dw;
use gimli::{AttributeValue, Expression, LittleEndian, Operation, Reader, Register};
use std::rc::Rc;

/// Callers of callers are asked no farther, and none for more registers at once: what a stranger's
/// table says must come to an end.
const MOST_CALLERS: u32 = 4;
pub const MOST_REGISTERS: u32 = 4;

impl Context<'_> {
    /// What a register, which the expression names, held when the function was entered, and where
    /// that comes from.
    pub fn at_entry(&self, register: &Expression<Bytes>) -> Option<(gimli::Value, Vec<Origin>)> {
        let (modules, callee) = (self.modules?, self.frame?);
        if self.callers == MOST_CALLERS {
            return None;
        }
        let caller = modules.caller_of(self.memory, callee)?;
        let module = modules.at(caller.lookup())?;
        let address = module.linked(caller.lookup());
        let units = &module.image.units;
        let unit = units.at(address)?;
        let site = call_site(modules, &caller)?;
        let base = modules.frame_base(self.memory, &caller);
        let context = Context {
            memory: self.memory,
            module,
            unit: &unit,
            frame: Some(&caller),
            frame_base: base,
            modules: Some(modules),
            callers: self.callers + 1,
        };
        let entry = site.entry()?;
        if !context.calls(&entry, modules, callee)? {
            return None;
        }
        let mut tree = unit.entries_tree(Some(site.offset)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            let child = child.entry();
            let is_parameter = matches!(
                child.tag(),
                dw::DW_TAG_call_site_parameter | dw::DW_TAG_GNU_call_site_parameter
            );
            let named = child.attr_value(dw::DW_AT_location);
            if let (true, Some(AttributeValue::Exprloc(named))) = (is_parameter, named)
                && self.is_same(&named, register)
            {
                let values = [dw::DW_AT_call_value, dw::DW_AT_GNU_call_site_value];
                let value = values.iter().find_map(|name| child.attr_value(*name))?;
                let value = context.expression(value, address)?;
                let typed = as_value(&value).and_then(|value| context.computed(value, None));
                return typed.or_else(|| context.computed(value, None));
            }
        }
        None
    }

    fn is_same(&self, one: &Expression<Bytes>, other: &Expression<Bytes>) -> bool {
        match (self.only_register(one), self.only_register(other)) {
            (Some(one), Some(other)) => one == other,
            _ => {
                matches!((one.0.to_slice(), other.0.to_slice()), (Ok(one), Ok(other)) if one == other)
            }
        }
    }

    /// The register whose value an expression is, as it is or of some type.
    fn only_register(&self, expression: &Expression<Bytes>) -> Option<Register> {
        let mut rest = expression.0.clone();
        let operation = Operation::parse(&mut rest, self.unit.encoding()).ok()?;
        match operation {
            Operation::Register { register } if rest.is_empty() => Some(register),
            Operation::RegisterOffset { register, offset: 0, base_type }
                if rest.is_empty() && base_type.0 != 0 =>
            {
                Some(register)
            }
            _ => None,
        }
    }

    /// Whether a call leads to the function of a frame: others may have jumped there in between.
    fn calls(&self, site: &Die, modules: &Modules, callee: &Frame) -> Option<bool> {
        let module = modules.at(callee.lookup())?;
        let scopes = module.image.units.scopes(module.linked(callee.lookup()));
        let real = scopes.last()?;
        let function = real.function.entry()?;
        let targets = [dw::DW_AT_call_target, dw::DW_AT_GNU_call_site_target];
        if let Some(target) = targets.iter().find_map(|name| site.attr_value(*name)) {
            let target = self.number(self.expression(target, LinkAddress(0))?, None)?;
            let start = module.image.start(&real.function.unit, &function)?;
            return Some(module.mapped(start) == target);
        }
        let origins = [dw::DW_AT_call_origin, dw::DW_AT_abstract_origin];
        let origin = origins.iter().find_map(|name| site.attr_value(*name))?;
        let units = &self.module.image.units;
        let DieRef { unit, offset } = units.referred(self.unit, &origin)?;
        let called = units.function_name(&unit, &unit.entry(offset).ok()?)?;
        Some(module.image.units.function_name(&real.function.unit, &function)? == called)
    }
}

/// The entry of the call that a frame will go on behind.
fn call_site(modules: &Modules, caller: &Frame) -> Option<DieRef> {
    let module = modules.at(caller.lookup())?;
    let LinkAddress(behind) = module.linked(caller.pc);
    let units = &module.image.units;
    let address = module.linked(caller.lookup());
    let unit = units.at(address)?;
    let function = units.scopes(address).last()?.function.offset;
    let mut entries = unit.entries_at_offset(function).ok()?;
    while let Ok(Some(entry)) = entries.next_dfs() {
        if entry.offset() != function && entry.depth() <= 0 {
            break;
        }
        let returns = match entry.tag() {
            dw::DW_TAG_call_site => entry.attr_value(dw::DW_AT_call_return_pc),
            dw::DW_TAG_GNU_call_site => entry.attr_value(dw::DW_AT_low_pc),
            _ => None,
        };
        let returns = returns.and_then(|value| unit.dwarf.attr_address(&unit, value).ok()?);
        if returns == Some(behind) {
            let offset = entry.offset();
            return Some(DieRef { unit, offset });
        }
    }
    None
}

/// The same, but what is computed is no address, so that it may be of any type.
fn as_value(expression: &Expression<Bytes>) -> Option<Expression<Bytes>> {
    let mut bytes = expression.0.to_slice().ok()?.into_owned();
    bytes.push(dw::DW_OP_stack_value.0);
    Some(Expression(Bytes::new(Rc::from(bytes), LittleEndian)))
}
