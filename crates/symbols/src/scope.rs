//! What an address lies in: a function, calls that were inlined into it, blocks of those.

use crate::statement::Statement;
use crate::units::{DieRef, Units};
use crate::{Die, LinkAddress, Unit};
use gimli::UnitOffset;
use gimli::constants as dw;
use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

/// A function, one that was inlined or a block.
pub(crate) struct Block {
    depth: isize,
    pub offset: UnitOffset,
    pub tag: gimli::DwTag,
    pub code: Vec<Range<u64>>,
}

impl Block {
    pub fn holds(&self, LinkAddress(address): LinkAddress) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }
}

/// One function as the source has it: a real one, or one inlined into the next.
pub struct Scope {
    /// The function, or the place where it was inlined.
    pub function: DieRef,
    pub inlined: bool,
    /// The function first, then its blocks, from the outermost in.
    pub blocks: Vec<DieRef>,
}

impl Scope {
    /// The variables of what it is an instance of that it does not tell of, as nothing is left of
    /// them here.
    pub fn left_out(&self, units: &Units) -> Vec<DieRef> {
        let DieRef { unit, .. } = &self.function;
        let function = self.function.entry();
        let Some(origin) = function.and_then(|entry| units.instance_of(unit, &entry)) else {
            return Vec::new();
        };
        let mut told: HashSet<UnitOffset> = HashSet::new();
        each_within(&self.function, |entry| {
            told.extend(units.instance_of(unit, entry).map(|of| of.offset));
        });
        let mut left_out = Vec::new();
        each_within(&origin, |entry| {
            let is_variable =
                matches!(entry.tag(), dw::DW_TAG_variable | dw::DW_TAG_formal_parameter);
            if is_variable && !told.contains(&entry.offset()) {
                left_out.push(DieRef { unit: origin.unit.clone(), offset: entry.offset() });
            }
        });
        left_out
    }
}

/// The entries of a function and its blocks, but not of other functions in it.
pub(crate) fn each_within(function: &DieRef, mut each: impl FnMut(&Die)) {
    let Ok(mut entries) = function.unit.entries_at_offset(function.offset) else { return };
    let mut other: Option<isize> = None;
    while let Ok(Some(entry)) = entries.next_dfs() {
        let is_first = entry.offset() == function.offset;
        if !is_first && entry.depth() <= 0 {
            break;
        }
        other = other.filter(|depth| *depth < entry.depth());
        let is_function =
            matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine);
        if is_function && !is_first {
            other.get_or_insert(entry.depth());
        }
        if other.is_none() {
            each(entry);
        }
    }
}

impl Units {
    /// The functions that an address lies in, the innermost first.
    pub fn scopes(&self, address: LinkAddress) -> Vec<Scope> {
        self.scopes_of(address, None)
    }

    /// The same of one of the statements that begin there, if one is given.
    pub fn scopes_of(&self, address: LinkAddress, statement: Option<&Statement>) -> Vec<Scope> {
        let Some(unit) = self.at(address) else {
            return Vec::new();
        };
        // Of functions within functions the last one is the innermost.
        let Some(function) = self.functions_at(&unit, address).pop() else {
            return Vec::new();
        };
        let blocks = self.blocks(&unit, function);
        let around = match statement {
            Some(statement) => around_statement(&blocks, address, statement),
            None => around(&blocks, address),
        };
        let mut scopes: Vec<Scope> = Vec::new();
        for Block { offset, tag, .. } in around {
            let (offset, tag) = (*offset, *tag);
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
        let scopes = self.scopes(address);
        let entry = scopes.iter().find(|scope| begins(scope)).and_then(|s| s.function.entry());
        entry.map_or(0, |entry| self.entry_view(&entry))
    }

    /// The same of one that was inlined.
    pub fn entry_view(&self, entry: &Die) -> u64 {
        /// What GNU compilers tell of it.
        const ENTRY_VIEW: gimli::DwAt = gimli::DwAt(0x2138);
        entry.attr_value(ENTRY_VIEW).and_then(|view| view.udata_value()).unwrap_or(0)
    }

    /// What a function consists of that has code, in the order of the entries.
    pub(crate) fn blocks(&self, unit: &Rc<Unit>, function: UnitOffset) -> Rc<[Block]> {
        let mut known = self.blocks.borrow_mut();
        let blocks = known.entry((unit.key(), function));
        Rc::clone(blocks.or_insert_with(|| self.read_blocks(unit, function).into()))
    }

    fn read_blocks(&self, unit: &Rc<Unit>, function: UnitOffset) -> Vec<Block> {
        let mut blocks = Vec::new();
        let Ok(mut entries) = unit.entries_at_offset(function) else { return blocks };
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.offset() != function && entry.depth() <= 0 {
                break;
            }
            let (depth, offset, tag) = (entry.depth(), entry.offset(), entry.tag());
            let has_code = matches!(
                tag,
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine | dw::DW_TAG_lexical_block
            );
            if has_code {
                blocks.push(Block { depth, offset, tag, code: self.stretches(unit, entry) });
            }
        }
        blocks
    }
}

/// Those around an address, from the outermost in.
fn around(blocks: &[Block], address: LinkAddress) -> Vec<&Block> {
    let mut found: Vec<&Block> = Vec::new();
    for block in blocks.iter().filter(|block| block.holds(address)) {
        found.retain(|outer| outer.depth < block.depth);
        found.push(block);
    }
    found
}

/// Those around a statement. Of its function nothing may be left where it begins: then nobody
/// knows in which of the function's blocks it is, and it may be in any.
fn around_statement<'a>(
    blocks: &'a [Block],
    address: LinkAddress,
    statement: &Statement,
) -> Vec<&'a Block> {
    let Some(number) = blocks.iter().position(|block| block.offset == statement.function) else {
        return around(blocks, address);
    };
    let function = &blocks[number];
    let mut found: Vec<&Block> = Vec::new();
    for block in &blocks[..=number] {
        found.retain(|outer| outer.depth < block.depth);
        found.push(block);
    }
    let is_left = function.holds(address);
    let within = blocks[number + 1..].iter().take_while(|block| block.depth > function.depth);
    let mut other: Option<isize> = None;
    for block in within {
        other = other.filter(|depth| *depth < block.depth);
        if block.tag != dw::DW_TAG_lexical_block {
            other.get_or_insert(block.depth);
        }
        if other.is_none() && (!is_left || block.holds(address)) {
            found.push(block);
        }
    }
    found
}
