//! The memory map as the application would see it without the engine: its code is
//! executable, watched pages are writable, and the engine's own mappings are not there.

use crate::maps::Mapping;
use crate::memory::{Address, PAGE};
use crate::regions::Regions;
use std::fmt::Write;
use std::ops::Range;

/// The mappings, in the order of their addresses.
pub fn mappings(
    mappings: &[Mapping],
    regions: &Regions,
    engine: &[Range<Address>],
) -> Vec<Mapping> {
    let mut shown: Vec<Mapping> = Vec::new();
    for mapping in mappings {
        for piece in pieces(mapping, regions, engine) {
            match shown.last_mut() {
                Some(last) if belongs_to(last, &piece, regions) => last.range.end = piece.range.end,
                _ => shown.push(piece),
            }
        }
    }
    shown
}

/// The text of `/proc/PID/maps`.
pub fn text(all: &[Mapping], regions: &Regions, engine: &[Range<Address>]) -> String {
    mappings(all, regions, engine).iter().fold(String::new(), |mut text, mapping| {
        line(&mut text, mapping);
        text
    })
}

/// A mapping cut where the engine's knowledge changes, without what is the engine's.
fn pieces(mapping: &Mapping, regions: &Regions, engine: &[Range<Address>]) -> Vec<Mapping> {
    let Range { start, end } = mapping.range;
    let mut cuts: Vec<Address> = engine.iter().flat_map(|range| [range.start, range.end]).collect();
    cuts.extend(regions.edges());
    cuts.extend(regions.watched().into_iter().flat_map(|page| [page, page + PAGE]));
    cuts.retain(|&cut| cut > start && cut < end);
    cuts.extend([start, end]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2)
        .filter(|cut| !engine.iter().any(|range| range.contains(&cut[0])))
        .map(|cut| piece(mapping, cut[0]..cut[1], regions))
        .collect()
}

fn piece(mapping: &Mapping, range: Range<Address>, regions: &Regions) -> Mapping {
    let at = range.start;
    let executable = regions.is_executable(at);
    let writable = match executable {
        true => regions.is_writable(at),
        false => mapping.writable || regions.is_watched(at),
    };
    let anonymous = mapping.inode == 0;
    let offset = if anonymous { 0 } else { mapping.offset + (at - mapping.range.start) };
    Mapping {
        range,
        executable: mapping.executable || executable,
        writable,
        offset,
        ..mapping.clone()
    }
}

/// Whether two neighbours would be one mapping, had the engine not come between.
fn belongs_to(last: &Mapping, next: &Mapping, regions: &Regions) -> bool {
    let edge = next.range.start;
    let cut_by_engine =
        regions.is_watched(edge) || edge.checked_sub(PAGE).is_some_and(|p| regions.is_watched(p));
    let follows = next.inode == 0 || next.offset == last.offset + (edge - last.range.start);
    cut_by_engine
        && last.range.end == edge
        && follows
        && (last.readable, last.writable, last.executable, last.shared)
            == (next.readable, next.writable, next.executable, next.shared)
        && (last.inode, &last.device, &last.name) == (next.inode, &next.device, &next.name)
}

/// One line as the kernel writes it.
fn line(text: &mut String, m: &Mapping) {
    const NAME_COLUMN: usize = 73;
    let flag = |set: bool, letter: char| if set { letter } else { '-' };
    let start = text.len();
    let _ = write!(
        text,
        "{:08x}-{:08x} {}{}{}{} {:08x} {} {} ",
        m.range.start,
        m.range.end,
        flag(m.readable, 'r'),
        flag(m.writable, 'w'),
        flag(m.executable, 'x'),
        if m.shared { 's' } else { 'p' },
        m.offset,
        m.device,
        m.inode,
    );
    if !m.name.is_empty() {
        while text.len() - start < NAME_COLUMN {
            text.push(' ');
        }
        text.push_str(&m.name);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::parse_all;

    #[test]
    fn the_engine_is_not_seen() {
        let kernel = "\
00400000-00401000 r--p 00000000 fe:00 12                                 /bin/x
00401000-00405000 r--p 00001000 fe:00 12                                 /bin/x
00405000-00406000 rw-p 00000000 00:00 0 
00406000-00407000 r--p 00000000 00:00 0 
00407000-0040a000 rw-p 00000000 00:00 0 
10000000-10001000 r-xs 00000000 00:01 7                                  /memfd:code cache (deleted)
";
        let mut regions = Regions::default();
        regions.add(0x401000..0x403000, false, false);
        regions.add(0x405000..0x408000, true, false);
        regions.watch(0x406000, 0x406000);
        let own = std::slice::from_ref(&(0x1000_0000..0x1000_1000));
        let shown = text(&parse_all(kernel), &regions, own);
        let expected = "\
00400000-00401000 r--p 00000000 fe:00 12                                 /bin/x
00401000-00403000 r-xp 00001000 fe:00 12                                 /bin/x
00403000-00405000 r--p 00003000 fe:00 12                                 /bin/x
00405000-00408000 rwxp 00000000 00:00 0 
00408000-0040a000 rw-p 00000000 00:00 0 
";
        assert_eq!(shown, expected);
    }
}
