//! The code of a file: its bytes, and where functions begin and end.

use crate::{Image, LinkAddress};
use object::{Object, ObjectSection, ObjectSegment, RelocationTarget};
use std::collections::HashMap;
use std::ops::Range;

/// What of a file is mapped and not written to.
pub struct Code {
    segments: Vec<(u64, Vec<u8>)>,
    /// Where calls of other files go through.
    stubs: Vec<Range<u64>>,
    /// What the linker puts where for the calls of other files, by name.
    imported: HashMap<u64, String>,
}

impl Code {
    pub(crate) fn new(file: &object::File<'_>) -> Code {
        let written = |flags| match flags {
            object::SegmentFlags::Elf { p_flags } => p_flags & object::elf::PF_W != 0,
            _ => true,
        };
        let segments = file.segments().filter(|segment| !written(segment.flags()));
        let bytes = |segment: object::Segment<'_, '_>| {
            Some((segment.address(), segment.data().ok()?.to_vec()))
        };
        let is_stub = |section: &object::Section<'_, '_>| {
            section.name().is_ok_and(|name| name.starts_with(".plt") || name == ".iplt")
        };
        let range = |section: object::Section<'_, '_>| {
            section.address()..section.address().saturating_add(section.size())
        };
        Code {
            segments: segments.filter_map(bytes).collect(),
            stubs: file.sections().filter(is_stub).map(range).collect(),
            imported: imported(file),
        }
    }
}

fn imported(file: &object::File<'_>) -> HashMap<u64, String> {
    use object::ObjectSymbol;
    use object::ObjectSymbolTable;
    let (Some(relocations), Some(symbols)) =
        (file.dynamic_relocations(), file.dynamic_symbol_table())
    else {
        return HashMap::new();
    };
    let named = |(at, relocation): (u64, object::Relocation)| match relocation.target() {
        RelocationTarget::Symbol(index) => {
            let symbol = symbols.symbol_by_index(index).ok()?;
            Some((at, symbol.name().ok()?.to_owned()))
        }
        _ => None,
    };
    relocations.filter_map(named).collect()
}

impl Image {
    /// Copies what the file has at an address, and tells how much of it there is.
    pub fn read(&self, LinkAddress(at): LinkAddress, into: &mut [u8]) -> usize {
        let holds = |(start, bytes): &&(u64, Vec<u8>)| {
            at.checked_sub(*start).is_some_and(|offset| offset < bytes.len() as u64)
        };
        let Some((start, bytes)) = self.code.segments.iter().find(holds) else {
            return 0;
        };
        let rest = &bytes[(at - start) as usize..];
        let got = rest.len().min(into.len());
        into[..got].copy_from_slice(&rest[..got]);
        got
    }

    /// Whether calls of other files go through there.
    pub fn is_stub(&self, LinkAddress(at): LinkAddress) -> bool {
        self.code.stubs.iter().any(|stubs| stubs.contains(&at))
    }

    /// The name of what is called through a word that the linker fills in.
    pub fn imported(&self, LinkAddress(at): LinkAddress) -> Option<&str> {
        self.code.imported.get(&at).map(String::as_str)
    }

    /// Whether any of its code has lines of source.
    pub fn has_lines(&self) -> bool {
        self.units.all().any(|unit| unit.line_program.is_some())
    }

    /// Where the function begins that an address belongs to. What is hardly ever executed of a
    /// function may lie elsewhere.
    pub fn function(&self, address: LinkAddress) -> Option<LinkAddress> {
        let start = self.stretch(address)?.start;
        let main = self.symbols.named_at(start).and_then(|name| name.split_once(".cold"));
        let main = main.and_then(|(main, _)| self.symbols.only_function(main));
        let start = main.and_then(|at| self.stretch(LinkAddress(at))).map_or(start, |s| s.start);
        Some(LinkAddress(start))
    }

    /// Code that belongs together: by the tables for exceptions, else by the linker's.
    fn stretch(&self, address: LinkAddress) -> Option<Range<u64>> {
        self.unwind.stretch(address).or_else(|| self.symbols.stretch(address))
    }

    /// The name of the function that begins at an address, as the linker has it.
    pub fn function_symbol(&self, LinkAddress(at): LinkAddress) -> Option<&str> {
        self.symbols.named_at(at)
    }
}

impl Image {
    /// All code of the function that begins at an address, or behind its prologue.
    pub fn extent(&self, address: LinkAddress) -> Option<Range<LinkAddress>> {
        let range = self.stretch(address)?;
        Some(LinkAddress(range.start)..LinkAddress(range.end))
    }
}
