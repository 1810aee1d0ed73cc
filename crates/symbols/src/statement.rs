//! Which function a statement is of.
//!
//! Of what was optimised, statements may be left without code of their own: several begin at one
//! address then, and they need not be of one function. Those in front of a call that was inlined
//! are its caller's, though the call's code begins there; and of a call nothing may be left but
//! its statements. Which function it is, is told by where functions are declared.

use crate::inlined::Declared;
use crate::scope::Scope;
use crate::{Image, LinkAddress, Module, SourceLine, Viewpoint};
use gimli::UnitOffset;
use gimli::constants as dw;
use std::ops::Range;

/// One of several statements that begin at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub line: SourceLine,
    /// The function's entry, or that of the place where it was inlined.
    pub(crate) function: UnitOffset,
}

impl Module {
    /// The functions that are meant, the innermost first.
    pub(crate) fn scopes(&self, viewpoint: &Viewpoint) -> Vec<Scope> {
        let address = self.linked(viewpoint.pc);
        self.image.units.scopes_of(address, viewpoint.statement.as_ref())
    }
}

impl Image {
    /// The one of a line before whose row a thread is, if several begin there and it can be told
    /// which function it is of.
    pub fn statement_of(
        &self,
        address: LinkAddress,
        view: u64,
        line: &SourceLine,
    ) -> Option<Statement> {
        let unit = self.units.at(address)?;
        let table = self.lines.of(&self.units, &unit);
        if table.within(address.0..address.0 + 1).count() < 2 {
            return None;
        }
        let files = table.files_of(&line.file);
        let declared = Declared::of(&self.units, &unit);
        let blocks = self.units.blocks(&unit, self.units.functions_at(&unit, address).pop()?);
        let mut found: Option<((bool, u64), UnitOffset)> = None;
        for block in blocks.iter().filter(|block| block.tag != dw::DW_TAG_lexical_block) {
            let Ok(entry) = unit.entry(block.offset) else { continue };
            let is_ahead = || {
                let is_inlined = block.tag == dw::DW_TAG_inlined_subroutine;
                let begins = self.start(&unit, &entry) == Some(address);
                is_inlined && begins && self.units.entry_view(&entry) > view
            };
            let Some((file, lines)) = declared.source(&self.units, &unit, block.offset) else {
                // It may be of this one, such as a closure within the one before.
                found = found.filter(|_| !block.holds(address) || is_ahead());
                continue;
            };
            if !files.contains(&file) || !lines.contains(&line.line) || is_ahead() {
                continue;
            }
            // What holds the address; of others, what is nearest. The innermost comes last.
            let away = |code: &Range<u64>| match code.contains(&address.0) {
                true => (false, 0),
                false => (true, code.start.abs_diff(address.0).min(code.end.abs_diff(address.0))),
            };
            let away = block.code.iter().map(away).min();
            if let Some(away) = away
                && found.as_ref().is_none_or(|(nearest, _)| away <= *nearest)
            {
                found = Some((away, block.offset));
            }
        }
        let (_, function) = found?;
        Some(Statement { line: line.clone(), function })
    }
}
