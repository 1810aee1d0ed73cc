//! What may help where a variable has no value.

use crate::close_names::CloseNames;
use crate::evaluate::Unknown;
use crate::locations::{self, Point};
use crate::scope::each_within;
use crate::split::own_file;
use crate::{Bytes, Die, Frame, LinkAddress, Modules, SourceLine, Unit, Viewpoint};
use gimli::constants as dw;
use gimli::{AttributeValue, Expression};
use std::ops::Range;

impl Modules {
    /// Behind the message that there is no variable of a name, of those that there are.
    pub(crate) fn beside(
        &self,
        frame: &Frame,
        viewpoint: &Viewpoint,
        asked: &str,
        variables: Vec<String>,
    ) -> String {
        if let Some(why) = self.no_variables(frame) {
            return format!(": {why}");
        }
        if let Some(line) = self.line_that_begins(viewpoint, asked) {
            return format!("; there is one from {}:{} on", line.short_file(), line.line);
        }
        let mut close = CloseNames::default();
        close.add(asked, variables.iter().cloned().chain(self.globals_near(frame)));
        match close.told() {
            told if told.is_empty() => all_told(&variables),
            told => told,
        }
    }

    /// Where the block of the function begins that has a variable of a name.
    fn line_that_begins(&self, viewpoint: &Viewpoint, asked: &str) -> Option<SourceLine> {
        let module = self.at(viewpoint.pc)?;
        let units = &module.image.units;
        let function = module.scopes(viewpoint).into_iter().nth(viewpoint.functions[0])?.function;
        let mut around: Vec<(isize, Option<u64>)> = Vec::new();
        let mut found = None;
        each_within(&function, |entry| {
            around.retain(|(depth, _)| *depth < entry.depth());
            let is_it = entry.tag() == dw::DW_TAG_variable
                && units.name(&function.unit, entry).as_deref() == Some(asked);
            if is_it && found.is_none() {
                found = around.last().and_then(|(_, begins)| *begins);
            }
            let begins = units.stretches(&function.unit, entry);
            around.push((entry.depth(), begins.into_iter().map(|code| code.start).min()));
        });
        module.image.line(LinkAddress(found?))
    }

    /// The variables of a frame's unit that belong to no function.
    fn globals_near(&self, frame: &Frame) -> Vec<String> {
        let Some(module) = self.at(frame.lookup()) else { return Vec::new() };
        let units = &module.image.units;
        let Some(unit) = units.at(module.linked(frame.lookup())) else { return Vec::new() };
        module.image.globals.names(units, &unit)
    }

    /// Why nothing is known of any variable in a frame's code, if that is so.
    fn no_variables(&self, frame: &Frame) -> Option<String> {
        let module = self.at(frame.lookup())?;
        let Some(unit) = module.image.units.at(module.linked(frame.lookup())) else {
            return Some(format!("{} was built without -g", module.short_name()));
        };
        let is_skeleton = unit.dwo_id.is_some() && unit.skeleton.is_none();
        if let Some(file) = own_file(&unit).filter(|_| is_skeleton) {
            return Some(format!("{} is missing, which tells of variables", file.display()));
        }
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let is_variable =
                matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
            // Those outside of functions are always told.
            if is_variable && entry.depth() > 1 {
                return None;
            }
        }
        let name = module.short_name();
        Some(format!("{name} tells of lines, but of no variables; was it built with -g1?"))
    }

    /// Behind the message that a variable has no value: where it has one.
    pub(crate) fn elsewhere(
        &self,
        viewpoint: &Viewpoint,
        function: usize,
        name: &str,
        unknown: Unknown,
    ) -> String {
        if unknown != Unknown::OptimisedOut {
            return String::new();
        }
        match self.line_with_value(viewpoint, function, name) {
            Some(line) => {
                format!("; it should have a value at {}:{}", line.short_file(), line.line)
            }
            None => "; registers can be asked for, such as :%rax".to_owned(),
        }
    }

    /// The nearest line of the function at an address behind which a variable has a value.
    fn line_with_value(
        &self,
        viewpoint: &Viewpoint,
        function: usize,
        name: &str,
    ) -> Option<SourceLine> {
        let module = self.at(viewpoint.pc)?;
        let units = &module.image.units;
        let meant = viewpoint.statement.as_ref().map(|statement| statement.line.clone());
        let here = meant.or_else(|| module.image.line(module.linked(viewpoint.pc)))?;
        let scopes = module.scopes(viewpoint);
        let mut lines = Vec::new();
        for block in &scopes.get(function)?.blocks {
            let Ok(mut tree) = block.unit.entries_tree(Some(block.offset)) else { continue };
            let Ok(root) = tree.root() else { continue };
            let mut children = root.children();
            while let Ok(Some(child)) = children.next() {
                let entry = child.entry();
                if units.name(&block.unit, entry).is_none_or(|own| own != name) {
                    continue;
                }
                let location = units.attribute(&block.unit, entry, dw::DW_AT_location);
                let code =
                    location.map_or(Vec::new(), |(_, value)| known(&block.unit, entry, value));
                lines.extend(module.image.lines_left(&block.unit, &code));
            }
        }
        let others = lines.into_iter().filter(|line| line.file == here.file && *line != here);
        others.min_by_key(|line| (line.line.abs_diff(here.line), line.line))
    }
}

/// Some of the variables that there are.
fn all_told(variables: &[String]) -> String {
    const MOST: usize = 8;
    match variables {
        [] => String::new(),
        [first @ .., last] if variables.len() <= MOST => match first {
            [] => format!("; there is {last}"),
            _ => format!("; there are {} and {last}", first.join(", ")),
        },
        _ => format!("; there are {} and others", variables[..MOST].join(", ")),
    }
}

/// The code in which a variable has a value.
fn known(unit: &Unit, entry: &Die, location: AttributeValue<Bytes>) -> Vec<Range<Point>> {
    let is_known = |expression: &Expression<Bytes>| {
        let first = gimli::Reader::to_slice(&expression.0).ok().and_then(|e| e.first().copied());
        // What only the caller may know is not there.
        let by_caller = [dw::DW_OP_entry_value.0, dw::DW_OP_GNU_entry_value.0];
        first.is_some_and(|first| !by_caller.contains(&first))
    };
    let all = locations::all_of(unit, location, entry.attr_value(locations::VIEWS));
    all.into_iter().filter(|(_, expression)| is_known(expression)).map(|(code, _)| code).collect()
}
