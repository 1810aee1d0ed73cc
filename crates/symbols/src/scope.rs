//! What an address lies in: a function, calls that were inlined into it, blocks of those.

use crate::units::{DieRef, Units};
use crate::{LinkAddress, Unit};
use gimli::constants as dw;
use std::rc::Rc;

/// One function as the source has it: a real one, or one inlined into the next.
pub struct Scope {
    /// The function, or the place where it was inlined.
    pub function: DieRef,
    pub inlined: bool,
    /// The function first, then its blocks, from the outermost in.
    pub blocks: Vec<DieRef>,
}

impl Units {
    /// The functions that an address lies in, the innermost first.
    pub fn scopes(&self, address: LinkAddress) -> Vec<Scope> {
        let Some(unit) = self.at(address) else {
            return Vec::new();
        };
        let mut scopes: Vec<Scope> = Vec::new();
        for (offset, tag) in self.around(&unit, address) {
            let entry = DieRef { unit: unit.clone(), offset };
            match (tag, scopes.last_mut()) {
                (dw::DW_TAG_lexical_block, Some(scope)) => scope.blocks.push(entry),
                (dw::DW_TAG_lexical_block, None) => {}
                (tag, _) => scopes.push(Scope {
                    function: entry.clone(),
                    inlined: tag == dw::DW_TAG_inlined_subroutine,
                    blocks: vec![entry],
                }),
            }
        }
        scopes.reverse();
        scopes
    }

    /// Of several rows in the table of lines for where a function begins, or one that was inlined
    /// there, before which one it does.
    pub fn view_of_entry(&self, address: LinkAddress, begins: impl Fn(&Scope) -> bool) -> u64 {
        /// What GNU compilers tell of it.
        const ENTRY_VIEW: gimli::DwAt = gimli::DwAt(0x2138);
        let scopes = self.scopes(address);
        let entry = scopes.iter().find(|scope| begins(scope)).and_then(|s| s.function.entry());
        let view = entry.and_then(|entry| entry.attr_value(ENTRY_VIEW)?.udata_value());
        view.unwrap_or(0)
    }

    /// The entries around an address, from the outermost in.
    fn around(
        &self,
        unit: &Rc<Unit>,
        address: LinkAddress,
    ) -> Vec<(gimli::UnitOffset, gimli::DwTag)> {
        // Of functions within functions the last one is the innermost.
        let Some(function) = self.functions_at(unit, address).pop() else {
            return Vec::new();
        };
        let mut found: Vec<(isize, gimli::UnitOffset, gimli::DwTag)> = Vec::new();
        let Ok(mut entries) = unit.entries_at_offset(function) else {
            return Vec::new();
        };
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.offset() != function && entry.depth() <= 0 {
                break;
            }
            let tag = entry.tag();
            let has_code = matches!(
                tag,
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_lexical_block
            );
            if has_code && self.covers(unit, entry, address) {
                found.retain(|(depth, ..)| *depth < entry.depth());
                found.push((entry.depth(), entry.offset(), tag));
            }
        }
        found.into_iter().map(|(_, offset, tag)| (offset, tag)).collect()
    }
}
