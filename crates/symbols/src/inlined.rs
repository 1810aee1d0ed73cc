//! What was inlined into a function: by a line of it, or by others.

use crate::units::DieRef;
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
        let mut called = BTreeSet::new();
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
                called.extend(self.origin(unit, entry));
                inlined.calls.extend(code);
            } else if !code.iter().any(|code| code.contains(&address)) {
                inlined.others.extend(code);
            }
        }
        if !called.is_empty() {
            let own = self.lines.of(&self.units, unit).files_of(&line.file);
            inlined.source = source_of(unit, &called);
            // Behind a function that is written within the line's own one, that goes on.
            let holds = |(file, lines): &(u64, Range<u64>)| {
                own.contains(file) && lines.contains(&line.line)
            };
            inlined.source.retain(|source| !holds(source));
        }
        inlined
    }

    /// The function of the unit that was inlined.
    fn origin(&self, unit: &Rc<Unit>, inlined: &Die) -> Option<usize> {
        let origin = inlined.attr_value(dw::DW_AT_abstract_origin)?;
        let DieRef { unit: its_unit, offset: UnitOffset(offset) } =
            self.units.referred(unit, &origin)?;
        (its_unit.key() == unit.key()).then_some(offset)
    }
}

/// From which lines on functions of a unit are, each up to where the next one of the file begins.
fn source_of(unit: &Rc<Unit>, functions: &BTreeSet<usize>) -> Vec<(u64, Range<u64>)> {
    let mut begun: HashMap<u64, BTreeSet<u64>> = HashMap::new();
    let mut wanted = Vec::new();
    let mut entries = unit.entries();
    while let Ok(Some(entry)) = entries.next_dfs() {
        if entry.tag() != dw::DW_TAG_subprogram {
            continue;
        }
        let Some((file, line)) = declared(entry) else { continue };
        begun.entry(file).or_default().insert(line);
        if functions.contains(&entry.offset().0) {
            wanted.push((file, line));
        }
    }
    let until = |file, line: u64| {
        begun[&file].range(line..).find(|next| **next > line).map_or(u64::MAX, |next| *next)
    };
    wanted.into_iter().map(|(file, line)| (file, line..until(file, line))).collect()
}

/// The number of the file, and the line.
fn declared(function: &Die) -> Option<(u64, u64)> {
    let file = match function.attr_value(dw::DW_AT_decl_file)? {
        AttributeValue::FileIndex(index) => index,
        other => other.udata_value()?,
    };
    Some((file, function.attr_value(dw::DW_AT_decl_line)?.udata_value()?))
}
