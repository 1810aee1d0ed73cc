//! The compilation units of a file, read when they are needed.

use crate::{Die, Dwarf, LinkAddress, Unit};
use gimli::constants as dw;
use gimli::{AttributeValue, DebugInfoOffset, UnitOffset};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

pub struct Units {
    pub dwarf: Dwarf,
    headers: Vec<gimli::UnitHeader<crate::Bytes>>,
    /// None until it is needed; what cannot be read is not there.
    loaded: RefCell<Vec<Option<Option<Rc<Unit>>>>>,
    /// First and last address, and the unit's number, in the order of addresses.
    ranges: OnceCell<Vec<(u64, u64, usize)>>,
    /// The functions of the units that were asked for, by the offset of the unit.
    functions: RefCell<HashMap<usize, Functions>>,
}

/// First and last address of a stretch of each function's code, and the function's entry.
type Functions = Rc<Vec<(u64, u64, UnitOffset)>>;

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
    pub fn new(dwarf: Dwarf) -> Units {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let loaded = RefCell::new(vec![None; headers.len()]);
        Units { dwarf, headers, loaded, ranges: OnceCell::new(), functions: RefCell::default() }
    }

    fn unit(&self, index: usize) -> Option<Rc<Unit>> {
        let mut loaded = self.loaded.borrow_mut();
        let load = || self.dwarf.unit(self.headers[index].clone()).ok().map(Rc::new);
        loaded[index].get_or_insert_with(load).clone()
    }

    pub fn all(&self) -> impl Iterator<Item = Rc<Unit>> {
        (0..self.headers.len()).filter_map(|index| self.unit(index))
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
        for index in 0..self.headers.len() {
            let Some(unit) = self.unit(index) else { continue };
            let Ok(mut ranges) = self.dwarf.unit_ranges(&unit) else { continue };
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
        let key = unit.header.debug_info_offset().map_or(usize::MAX, |offset| offset.0);
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
        match value {
            AttributeValue::UnitRef(offset) => Some(DieRef { unit: unit.clone(), offset: *offset }),
            AttributeValue::DebugInfoRef(offset) => self.at_offset(*offset),
            _ => None,
        }
    }

    fn at_offset(&self, offset: DebugInfoOffset) -> Option<DieRef> {
        let start = |header: &gimli::UnitHeader<crate::Bytes>| {
            header.debug_info_offset().map_or(0, |start| start.0)
        };
        let behind = self.headers.partition_point(|header| start(header) <= offset.0);
        let index = behind.checked_sub(1)?;
        let inside = UnitOffset(offset.0 - start(&self.headers[index]));
        Some(DieRef { unit: self.unit(index)?, offset: inside })
    }

    /// Whether one of an entry's stretches of code holds an address.
    pub fn covers(&self, unit: &Unit, entry: &Die, LinkAddress(address): LinkAddress) -> bool {
        self.stretches(unit, entry).iter().any(|range| range.contains(&address))
    }

    pub fn stretches(&self, unit: &Unit, entry: &Die) -> Vec<std::ops::Range<u64>> {
        let mut found = Vec::new();
        if let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin != 0 {
                    found.push(range.begin..range.end);
                }
            }
        }
        found
    }

    pub fn string(&self, unit: &Unit, value: AttributeValue<crate::Bytes>) -> Option<String> {
        let bytes = self.dwarf.attr_string(unit, value).ok()?;
        gimli::Reader::to_string_lossy(&bytes).ok().map(|text| text.into_owned())
    }
}
