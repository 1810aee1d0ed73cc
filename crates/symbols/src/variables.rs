//! The variables of a frame, and those that belong to no frame.

use crate::evaluate::{Context, Unknown};
use crate::locations::{Point, VIEWS, expression_at};
use crate::scope::{Scope, each_within};
use crate::units::DieRef;
use crate::value::Value;
use crate::{Bytes, Die, Frame, LinkAddress, Memory, Module, Modules, Viewpoint};
use gimli::constants as dw;
use gimli::{AttributeValue, Expression};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Parameter,
    Local,
}

pub struct Variable {
    pub name: String,
    pub kind: Kind,
    pub value: Result<Value, Unknown>,
}

impl Modules {
    /// The variables of one of the functions of a frame, of which several may have been
    /// inlined into each other; number 0 is the innermost. Parameters come first, then
    /// locals from the outermost block in.
    pub fn variables(&self, memory: &dyn Memory, frame: &Frame, function: usize) -> Vec<Variable> {
        self.variables_seen_from(&Viewpoint::of(frame, function), memory, frame, function)
    }

    /// Those that have names at another address of the frame's function, as they are where the
    /// frame is now.
    pub fn variables_seen_from(
        &self,
        viewpoint: &Viewpoint,
        memory: &dyn Memory,
        frame: &Frame,
        function: usize,
    ) -> Vec<Variable> {
        let Some(module) = self.at(frame.lookup()) else {
            return Vec::new();
        };
        let view = viewpoint.view.unwrap_or(u64::MAX);
        let point = Point { address: module.linked(frame.lookup()), view };
        let units = &module.image.units;
        let scopes = module.scopes(viewpoint);
        let Some(scope) = scopes.get(function) else {
            return Vec::new();
        };
        let base = scopes.last().and_then(|real| frame_base(memory, module, frame, real));
        let mut variables: Vec<Variable> = Vec::new();
        let context = Context {
            memory,
            module,
            unit: &scope.function.unit,
            frame: Some(frame),
            frame_base: base,
            modules: Some(self),
            callers: 0,
        };
        for block in &scope.blocks {
            let context = Context { unit: &block.unit, ..context };
            let Ok(mut tree) = block.unit.entries_tree(Some(block.offset)) else { continue };
            let Ok(root) = tree.root() else { continue };
            let is_within = units.covers(&block.unit, root.entry(), point.address);
            let mut children = root.children();
            while let Ok(Some(child)) = children.next() {
                variables.extend(context.variable(child.entry(), point, is_within));
            }
        }
        // What is there hides what is not.
        for DieRef { unit, offset } in scope.left_out(units) {
            let context = Context { unit: &unit, ..context };
            let entry = unit.entry(offset).ok();
            let variable = entry.and_then(|entry| context.variable(&entry, point, true));
            if let Some(variable) = variable
                && variables.iter().all(|known| known.name != variable.name)
            {
                variables.push(variable);
            }
        }
        let (parameters, locals): (Vec<_>, Vec<_>) =
            variables.into_iter().partition(|variable| variable.kind == Kind::Parameter);
        parameters.into_iter().chain(locals).collect()
    }

    /// What the places of a frame's variables are told from.
    pub(crate) fn frame_base(&self, memory: &dyn Memory, frame: &Frame) -> Option<u64> {
        let module = self.at(frame.lookup())?;
        let scopes = module.image.units.scopes(module.linked(frame.lookup()));
        frame_base(memory, module, frame, scopes.last()?)
    }
}

impl Module {
    /// Whether the functions that an address lies in have a variable of a name, known there or not.
    pub fn has_variable(&self, address: LinkAddress, name: &str) -> bool {
        let units = &self.image.units;
        let mut is_there = false;
        for Scope { function, .. } in units.scopes(address) {
            each_within(&function, |entry| {
                let is_variable =
                    matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
                is_there |=
                    is_variable && units.name(&function.unit, entry).as_deref() == Some(name);
            });
        }
        is_there
    }
}

/// What the places of a function's variables are told from.
fn frame_base(memory: &dyn Memory, module: &Module, frame: &Frame, real: &Scope) -> Option<u64> {
    let DieRef { unit, .. } = &real.function;
    let entry = real.function.entry()?;
    let frame = Some(frame);
    let context =
        Context { memory, module, unit, frame, frame_base: None, modules: None, callers: 0 };
    let value = entry.attr_value(dw::DW_AT_frame_base)?;
    let address = module.linked(frame?.lookup());
    context.number(context.expression(value, address)?, None)
}

impl Context<'_> {
    fn variable(&self, entry: &Die, point: Point, is_within: bool) -> Option<Variable> {
        let kind = match entry.tag() {
            dw::DW_TAG_formal_parameter => Kind::Parameter,
            dw::DW_TAG_variable => Kind::Local,
            _ => return None,
        };
        let name = self.module.image.units.name(self.unit, entry)?;
        // A function may declare what is defined elsewhere.
        if entry.has_attr(dw::DW_AT_declaration) {
            return None;
        }
        let value = self.value(entry, point).and_then(|value| {
            // A register that is told without saying where is the variable's only in its block.
            let is_told_for_block =
                matches!(entry.attr_value(dw::DW_AT_location), Some(AttributeValue::Exprloc(_)));
            match value.address() {
                None if is_told_for_block && !is_within => Err(Unknown::OptimisedOut),
                _ => Ok(value),
            }
        });
        Some(Variable { name, kind, value })
    }

    pub fn value(&self, entry: &Die, point: Point) -> Result<Value, Unknown> {
        self.value_as_declared(entry, point).map(|value| self.with_length(value, point))
    }

    /// Of an array whose length is known only while the program runs, that is left open.
    pub fn value_as_declared(&self, entry: &Die, point: Point) -> Result<Value, Unknown> {
        let units = &self.module.image.units;
        let type_ = units.type_of(self.unit, entry).ok_or(Unknown::NoType)?;
        let size = units.size(&type_).unwrap_or(0) as usize;
        if let Some((_, constant)) = units.attribute(self.unit, entry, dw::DW_AT_const_value) {
            return Value::constant(self.module, type_, &constant, size);
        }
        let (_, value) =
            units.attribute(self.unit, entry, dw::DW_AT_location).ok_or(Unknown::OptimisedOut)?;
        let views = entry.attr_value(VIEWS);
        let expression = self.expression_at(value, views, point).ok_or(Unknown::OptimisedOut)?;
        let place = self.place(expression, size)?;
        Ok(Value::told(self.module, type_, place))
    }

    /// The expression that holds at an address.
    pub fn expression(
        &self,
        value: AttributeValue<Bytes>,
        address: LinkAddress,
    ) -> Option<Expression<Bytes>> {
        self.expression_at(value, None, Point::instruction(address))
    }

    fn expression_at(
        &self,
        value: AttributeValue<Bytes>,
        views: Option<AttributeValue<Bytes>>,
        point: Point,
    ) -> Option<Expression<Bytes>> {
        match value {
            AttributeValue::Exprloc(expression) => {
                (!gimli::Reader::is_empty(&expression.0)).then_some(expression)
            }
            list => expression_at(self.unit, list, views, point),
        }
    }
}
