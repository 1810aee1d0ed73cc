//! Which expression tells where a variable is: many compilers give a list of them, each for some
//! of the code.

use crate::{Bytes, LinkAddress, Unit};
use gimli::{AttributeValue, Expression, RawLocListEntry, Reader};
use std::ops::Range;

/// What GNU compilers tell beside a list: behind how many rows of the table of lines, of those for
/// the same address, each entry begins and ends.
pub const VIEWS: gimli::DwAt = gimli::DwAt(0x2137);

/// A point in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub address: LinkAddress,
    /// Of several rows in the table of lines for this address, all that begin statements of which
    /// nothing is left but the last, this one is about to begin, counted from 0 on: those before
    /// it have made what they make, though no instruction was executed for that.
    pub view: u64,
}

impl Point {
    /// Where the instruction at an address is about to be executed.
    pub fn instruction(address: LinkAddress) -> Point {
        Point { address, view: u64::MAX }
    }
}

/// A list, with what may be told beside it: from where to where which expression holds.
pub fn all_of(
    unit: &Unit,
    list: AttributeValue<Bytes>,
    views: Option<AttributeValue<Bytes>>,
) -> Vec<(Range<Point>, Expression<Bytes>)> {
    // Where lists are known by number, views are told from where the first of these stands.
    let base = match list {
        AttributeValue::DebugLocListsIndex(_) => unit.loclists_base.0,
        _ => 0,
    };
    let mut views = views.and_then(|views| read_views(unit, base, &views));
    let mut all = Vec::new();
    let Ok(Some(offset)) = unit.dwarf.attr_locations_offset(unit, list) else { return all };
    let Ok(mut entries) = unit.dwarf.raw_locations(unit, offset) else { return all };
    let mut base = unit.low_pc;
    while let Ok(Some(entry)) = entries.next() {
        let Some((begin, end, expression)) = bounded(unit, entry, &mut base) else { continue };
        let (first, last) = views.as_mut().and_then(next_views).unwrap_or((0, 0));
        let at = |address, view| Point { address: LinkAddress(address), view };
        all.push((at(begin, first)..at(end, last), expression));
    }
    all
}

/// The expression of a list that holds at a point, if it tells anything.
pub fn expression_at(
    unit: &Unit,
    list: AttributeValue<Bytes>,
    views: Option<AttributeValue<Bytes>>,
    point: Point,
) -> Option<Expression<Bytes>> {
    let all = all_of(unit, list, views);
    let holds = all.into_iter().find(|(code, _)| code.contains(&point));
    holds.map(|(_, expression)| expression).filter(|expression| !expression.0.is_empty())
}

/// From where to where an entry holds, if it is not one that the others are relative to.
fn bounded(
    unit: &Unit,
    entry: RawLocListEntry<Bytes>,
    base: &mut u64,
) -> Option<(u64, u64, Expression<Bytes>)> {
    let address = |index| unit.dwarf.address(unit, index).ok();
    match entry {
        RawLocListEntry::BaseAddress { addr } => *base = addr,
        RawLocListEntry::BaseAddressx { addr } => *base = address(addr)?,
        RawLocListEntry::DefaultLocation { data } => return Some((0, u64::MAX, data)),
        RawLocListEntry::StartEnd { begin, end, data } => return Some((begin, end, data)),
        RawLocListEntry::StartxEndx { begin, end, data } => {
            return Some((address(begin)?, address(end)?, data));
        }
        RawLocListEntry::AddressOrOffsetPair { begin, end, data }
        | RawLocListEntry::OffsetPair { begin, end, data } => {
            return Some((base.wrapping_add(begin), base.wrapping_add(end), data));
        }
        RawLocListEntry::StartLength { begin, length, data } => {
            return Some((begin, begin.wrapping_add(length), data));
        }
        RawLocListEntry::StartxLength { begin, length, data } => {
            let begin = address(begin)?;
            return Some((begin, begin.wrapping_add(length), data));
        }
    }
    None
}

/// Where the views of a list's entries stand: in the section of the list.
fn read_views(unit: &Unit, base: usize, views: &AttributeValue<Bytes>) -> Option<Bytes> {
    let AttributeValue::SecOffset(offset) = views else { return None };
    let mut sections = Vec::new();
    unit.dwarf.locations.borrow(|section: &Bytes| {
        sections.push(section.clone());
        section.clone()
    });
    // The section of older versions comes first.
    let mut section = sections.into_iter().nth(usize::from(unit.encoding().version >= 5))?;
    section.skip(base.checked_add(*offset)?).ok()?;
    Some(section)
}

fn next_views(views: &mut Bytes) -> Option<(u64, u64)> {
    Some((views.read_uleb128().ok()?, views.read_uleb128().ok()?))
}
