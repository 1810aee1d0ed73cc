//! The compilation units of a file, read when they are needed.

use crate::scope::Block;
use crate::split::Split;
use crate::tables::{Tables, Unit};
use crate::{Die, LinkAddress};
use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

pub struct Units {
    tables: Rc<Tables>,
    split: Split,
    /// First and last address, and the unit's number, in the order of addresses.
    ranges: OnceCell<Vec<(u64, u64, usize)>>,
    /// The functions of the units that were asked for.
    functions: RefCell<HashMap<UnitKey, Functions>>,
    /// What functions consist of, by their units and entries: of one many addresses are asked for.
    pub(crate) blocks: RefCell<HashMap<(UnitKey, UnitOffset), Blocks>>,
}

/// What no other unit has.
type UnitKey = (usize, usize);

/// First and last address of a stretch of each function's code, and the function's entry.
type Functions = Rc<Vec<(u64, u64, UnitOffset)>>;

/// In the order of the entries.
type Blocks = Rc<[Block]>;

/// An entry of a unit, such as a type.
#[derive(Clone)]
pub struct DieRef {
    pub unit: Rc<Unit>,
    pub offset: UnitOffset,
}

impl DieRef {
    pub fn entry(&self) -> Option<Die> {
        self.unit.entry(self.offset).ok()
    }
}

impl Units {
    pub fn new(tables: Rc<Tables>, split: Split) -> Units {
        let (functions, blocks) = (RefCell::default(), RefCell::default());
        Units { tables, split, ranges: OnceCell::new(), functions, blocks }
    }

    fn unit(&self, number: usize) -> Option<Rc<Unit>> {
        self.tables.unit(number).map(|unit| self.split.whole(unit))
    }

    pub fn all(&self) -> impl Iterator<Item = Rc<Unit>> {
        (0..self.tables.len()).filter_map(|number| self.unit(number))
    }

    /// Those that may have code: others have but the lines of these, and need not say from which
    /// directory their files are named.
    pub fn with_code(&self) -> impl Iterator<Item = Rc<Unit>> {
        let may_have_code = |unit: &Rc<Unit>| {
            let root = unit.entry(unit.header.root_offset());
            root.is_ok_and(|root| {
                matches!(root.tag(), dw::DW_TAG_compile_unit | dw::DW_TAG_skeleton_unit)
            })
        };
        self.all().filter(may_have_code)
    }

    /// The unit that an address belongs to.
    pub fn at(&self, LinkAddress(address): LinkAddress) -> Option<Rc<Unit>> {
        let ranges = self.ranges.get_or_init(|| self.read_ranges());
        let behind = ranges.partition_point(|(start, ..)| *start <= address);
        // Ranges may overlap where code was removed: look a little farther back.
        const BACK: usize = 8;
        let near = &ranges[behind.saturating_sub(BACK)..behind];
        let found = near.iter().rev().find(|(_, end, _)| address < *end);
        found.and_then(|(.., index)| self.unit(*index))
    }

    fn read_ranges(&self) -> Vec<(u64, u64, usize)> {
        let mut all = Vec::new();
        for index in 0..self.tables.len() {
            // What the linker has to know is in the program's own file.
            let Some(unit) = self.tables.unit(index) else { continue };
            let Ok(mut ranges) = unit.dwarf.unit_ranges(&unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                // Code that the linker has left out begins at zero.
                if range.begin != 0 && range.begin < range.end {
                    all.push((range.begin, range.end, index));
                }
            }
        }
        all.sort_unstable();
        all
    }

    /// The functions of a unit that an address lies in, as their entries come.
    pub fn functions_at(
        &self,
        unit: &Rc<Unit>,
        LinkAddress(address): LinkAddress,
    ) -> Vec<UnitOffset> {
        let key = unit.key();
        let mut known = self.functions.borrow_mut();
        let all = known.entry(key).or_insert_with(|| Rc::new(self.read_functions(unit)));
        let holds = |(start, end, _): &&(u64, u64, UnitOffset)| (*start..*end).contains(&address);
        let mut found: Vec<UnitOffset> = all.iter().filter(holds).map(|(.., at)| *at).collect();
        found.dedup();
        found
    }

    fn read_functions(&self, unit: &Unit) -> Vec<(u64, u64, UnitOffset)> {
        let mut all = Vec::new();
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() == dw::DW_TAG_subprogram {
                let stretches = self.stretches(unit, entry);
                all.extend(stretches.iter().map(|s| (s.start, s.end, entry.offset())));
            }
        }
        all
    }

    /// What an attribute refers to.
    pub fn referred(
        &self,
        unit: &Rc<Unit>,
        value: &AttributeValue<crate::Bytes>,
    ) -> Option<DieRef> {
        let tables = unit.tables.upgrade()?;
        let found = match value {
            AttributeValue::UnitRef(offset) => Some(DieRef { unit: unit.clone(), offset: *offset }),
            AttributeValue::DebugInfoRef(offset) => tables.at_offset(*offset),
            AttributeValue::DebugInfoRefSup(offset) => tables.shared.as_ref()?.at_offset(*offset),
            AttributeValue::DebugTypesRef(signature) => tables
                .type_of_signature(*signature)
                .or_else(|| self.split.type_of_signature(unit, *signature)),
            _ => None,
        }?;
        // What is only declared may say which unit defines it.
        match found.entry()?.attr_value(dw::DW_AT_signature) {
            Some(signature @ AttributeValue::DebugTypesRef(_)) if *value != signature => {
                self.referred(&found.unit, &signature)
            }
            _ => Some(found),
        }
    }

    /// Whether one of an entry's stretches of code holds an address.
    pub fn covers(&self, unit: &Unit, entry: &Die, LinkAddress(address): LinkAddress) -> bool {
        self.stretches(unit, entry).iter().any(|range| range.contains(&address))
    }

    pub fn stretches(&self, unit: &Unit, entry: &Die) -> Vec<std::ops::Range<u64>> {
        let mut found = Vec::new();
        if let Ok(mut ranges) = unit.dwarf.die_ranges(unit, entry) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin != 0 {
                    found.push(range.begin..range.end);
                }
            }
        }
        found
    }

    pub fn string(&self, unit: &Unit, value: AttributeValue<crate::Bytes>) -> Option<String> {
        let bytes = unit.dwarf.attr_string(unit, value).ok()?;
        gimli::Reader::to_string_lossy(&bytes).ok().map(|text| text.into_owned())
    }
}
