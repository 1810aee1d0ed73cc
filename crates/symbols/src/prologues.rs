//! What a function does before its parameters are in place.

use crate::lines::Row;
use crate::units::DieRef;
use crate::{Die, Image, LinkAddress, SourceLine, Unit};
use gimli::constants as dw;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Whether a unit tells of each stretch of code where a variable is then, as compilers that
/// optimise do; by the offset of the unit. To find it out takes a look at all of the unit, which
/// may be a library in one file.
#[derive(Default)]
pub struct PlacesThroughout(RefCell<HashMap<usize, bool>>);

impl PlacesThroughout {
    fn of(&self, unit: &Unit) -> bool {
        let key = unit.header.debug_info_offset().map_or(usize::MAX, |offset| offset.0);
        *self.0.borrow_mut().entry(key).or_insert_with(|| tells_places_throughout(unit))
    }
}

fn tells_places_throughout(unit: &Unit) -> bool {
    let mut entries = unit.entries();
    while let Ok(Some(entry)) = entries.next_dfs() {
        let list = entry.attr_value(dw::DW_AT_location).is_some_and(|value| {
            matches!(
                value,
                gimli::AttributeValue::LocationListsRef(_)
                    | gimli::AttributeValue::DebugLocListsIndex(_)
            )
        });
        if list {
            return true;
        }
    }
    false
}

impl Image {
    /// Whether an address is of what a function does before its parameters are in place.
    pub fn is_in_prologue(&self, address: LinkAddress) -> bool {
        let scopes = self.units.scopes(address);
        let Some(DieRef { unit, offset }) = scopes.last().map(|scope| scope.function.clone())
        else {
            return false;
        };
        let Ok(entry) = unit.entry(offset) else { return false };
        // Parts that are seldom executed may lie before it.
        let start = self.function(address).or_else(|| self.start(&unit, &entry));
        let Some(start) = start else { return false };
        let table = self.lines.of(&self.units, &unit);
        // Another stretch may end where this one begins.
        let mut opening = table.within(start.0..start.0 + 1).filter(|row| row.is_of_line());
        let opens = opening.next().map(|row| row.source());
        let Some((file, line)) = opens else { return false };
        let opening = SourceLine { file: table.file(file), line };
        if self.line(address) != Some(opening) {
            return false;
        }
        let declared = self.units.attribute(&unit, &entry, dw::DW_AT_decl_line);
        let declared = declared.and_then(|(_, line)| line.udata_value());
        // The brace may be on a line of its own. Of optimised code, statements may begin with the
        // function.
        let may_begin_nothing = declared == Some(line) || !self.places_throughout.of(&unit);
        may_begin_nothing && (start..self.skip_prologue(&unit, &entry, start)).contains(&address)
            || declared.is_some_and(|declared| declared <= line)
                && self.only_opens(&unit, &entry, (file, line))
    }

    /// Whether no statement begins in the line that a function begins with, but in others, as where
    /// the brace that opens it ends that line.
    fn only_opens(&self, unit: &Rc<Unit>, entry: &Die, opens: (u64, u64)) -> bool {
        let table = self.lines.of(&self.units, unit);
        let code = self.units.stretches(unit, entry);
        let rows = code.iter().flat_map(|code| table.within(code.clone()));
        let begun = rows.filter(|row| row.is_statement && row.is_of_line());
        let is_own = |row: &&Row| row.source() == opens;
        let (own, others): (Vec<&Row>, Vec<&Row>) = begun.partition(is_own);
        own.len() == 1 && !others.is_empty()
    }

    /// Whether code was made by a compiler that optimises, and so may mix what it makes of several
    /// lines.
    pub fn is_optimised(&self, address: LinkAddress) -> bool {
        self.units.at(address).is_some_and(|unit| self.places_throughout.of(&unit))
    }

    /// The address, or, if a function begins there, where its parameters are in place.
    pub(crate) fn behind_prologue(&self, address: LinkAddress) -> LinkAddress {
        let scopes = self.units.scopes(address);
        let Some(DieRef { unit, offset }) = scopes.last().map(|scope| scope.function.clone())
        else {
            return address;
        };
        match unit.entry(offset) {
            Ok(entry) if self.start(&unit, &entry) == Some(address) => {
                self.skip_prologue(&unit, &entry, address)
            }
            _ => address,
        }
    }

    /// The compiler marks the end of the prologue, or says where variables are throughout,
    /// or gives the prologue a row of its own in the table of lines.
    pub(crate) fn skip_prologue(
        &self,
        unit: &Rc<Unit>,
        entry: &Die,
        start: LinkAddress,
    ) -> LinkAddress {
        let stretches = self.units.stretches(unit, entry);
        let Some(stretch) = stretches.iter().find(|range| range.contains(&start.0)) else {
            return start;
        };
        let table = self.lines.of(&self.units, unit);
        // Another stretch may end where this one begins.
        let rows = || table.within(stretch.clone()).filter(|row| row.is_of_line());
        if let Some(end) = rows().find(|row| row.prologue_end) {
            return LinkAddress(end.address);
        }
        if self.places_throughout.of(unit) {
            return start;
        }
        // It may begin where the function does: then there is nothing in front of it.
        let second = rows().nth(1);
        second.map_or(start, |row| LinkAddress(row.address))
    }
}
