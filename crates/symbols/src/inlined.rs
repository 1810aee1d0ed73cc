//! What was inlined into a function: by a line of it, or by others.

use crate::names::MOST_HOPS;
use crate::units::Units;
use crate::{Die, Image, LinkAddress, SourceLine, Unit};
use gimli::constants as dw;
use gimli::{AttributeValue, UnitOffset};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// Code of functions that were inlined into another.
#[derive(Debug, Default)]
pub struct Inlined {
    /// Called by the line.
    pub calls: Vec<Range<u64>>,
    /// Called by others.
    pub others: Vec<Range<u64>>,
    /// The source of the functions that the line calls, by the number of its file.
    pub source: Vec<(u64, Range<u64>)>,
}

impl Inlined {
    /// Whether a row of the table of lines is of what the line calls. Of that, statements of which
    /// nothing is left may be in front of its code and behind it.
    pub fn is_called(&self, address: u64, (file, line): (u64, u64)) -> bool {
        let holds = |code: &[Range<u64>]| code.iter().any(|code| code.contains(&address));
        let of_source = |(own, lines): &(u64, Range<u64>)| *own == file && lines.contains(&line);
        holds(&self.calls) || !holds(&self.others) && self.source.iter().any(of_source)
    }
}

impl Image {
    /// What was inlined into a function, but for what an address of a line lies in.
    pub(crate) fn inlined(
        &self,
        unit: &Rc<Unit>,
        function: &Die,
        LinkAddress(address): LinkAddress,
        line: &SourceLine,
    ) -> Inlined {
        let mut inlined = Inlined::default();
        let mut called: Vec<UnitOffset> = Vec::new();
        let Ok(mut entries) = unit.entries_at_offset(function.offset()) else { return inlined };
        // How deep the call is nested whose own calls come.
        let mut call: Option<isize> = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.offset() != function.offset() && entry.depth() <= 0 {
                break;
            }
            call = call.filter(|depth| *depth < entry.depth());
            if entry.tag() != dw::DW_TAG_inlined_subroutine {
                continue;
            }
            let code = self.units.stretches(unit, entry);
            if call.is_some() || self.call_site(unit, entry).as_ref() == Some(line) {
                call.get_or_insert(entry.depth());
                called.push(entry.offset());
                inlined.calls.extend(code);
            } else if !code.iter().any(|code| code.contains(&address)) {
                inlined.others.extend(code);
            }
        }
        if !called.is_empty() {
            let own = self.lines.of(&self.units, unit).files_of(&line.file);
            let declared = Declared::of(&self.units, unit);
            let source = |call: &UnitOffset| declared.source(&self.units, unit, *call);
            inlined.source = called.iter().filter_map(source).collect();
            // Behind a function that is written within the line's own one, that goes on.
            let holds = |(file, lines): &(u64, Range<u64>)| {
                own.contains(file) && lines.contains(&line.line)
            };
            inlined.source.retain(|source| !holds(source));
        }
        inlined
    }
}

/// Where the functions of a unit are written.
pub(crate) struct Declared {
    /// By their entries.
    functions: HashMap<UnitOffset, (u64, u64)>,
    /// By file, the lines.
    begun: HashMap<u64, BTreeSet<u64>>,
}

impl Declared {
    pub fn of(units: &Units, unit: &Rc<Unit>) -> Declared {
        let mut declared = Declared { functions: HashMap::new(), begun: HashMap::new() };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() == dw::DW_TAG_subprogram
                && let Some((file, line)) = declared_at(units, unit, entry)
            {
                declared.functions.insert(entry.offset(), (file, line));
                declared.begun.entry(file).or_default().insert(line);
            }
        }
        declared
    }

    /// The number of the file, and the lines up to where the next function begins there. Of one
    /// that was inlined, those of the function.
    pub fn source(
        &self,
        units: &Units,
        unit: &Rc<Unit>,
        function: UnitOffset,
    ) -> Option<(u64, Range<u64>)> {
        let mut at = function;
        let mut hops = 0..MOST_HOPS;
        let (file, line) = loop {
            if let Some(known) = self.functions.get(&at) {
                break *known;
            }
            hops.next()?;
            let of = units.instance_of(unit, &unit.entry(at).ok()?)?;
            at = (of.unit.key() == unit.key()).then_some(of.offset)?;
        };
        let next = self.begun[&file].range(line.saturating_add(1)..).next();
        Some((file, line..next.copied().unwrap_or(u64::MAX)))
    }
}

/// The number of the file, and the line.
fn declared_at(units: &Units, unit: &Rc<Unit>, function: &Die) -> Option<(u64, u64)> {
    let of_unit = |name| {
        let (of, value) = units.attribute(unit, function, name)?;
        (of.key() == unit.key()).then_some(value)
    };
    let file = match of_unit(dw::DW_AT_decl_file)? {
        AttributeValue::FileIndex(index) => index,
        other => other.udata_value()?,
    };
    Some((file, of_unit(dw::DW_AT_decl_line)?.udata_value()?))
}
