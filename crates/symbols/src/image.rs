//! A file of code with what it says of itself.

use crate::code::Code;
use crate::functions::Symbols;
use crate::globals::Globals;
use crate::lines::LineTables;
use crate::prologues::PlacesThroughout;
use crate::separate;
use crate::shared;
use crate::split::Split;
use crate::tables::Tables;
use crate::thread_local::ThreadLocal;
use crate::units::Units;
use crate::unwind::UnwindTables;
use crate::{Bytes, Dwarf, LinkAddress};
use gimli::LittleEndian;
use object::{Object, ObjectSection, ObjectSegment};
use std::cell::LazyCell;
use std::path::Path;
use std::rc::Rc;

/// Which bytes of the file are at which addresses.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
    executable: bool,
}

pub struct Image {
    segments: Vec<Segment>,
    /// It was made from sources that others keep.
    pub(crate) is_of_system: bool,
    /// Read when somebody asks: they may be large, and packed.
    pub(crate) units: LazyCell<Units, Box<dyn FnOnce() -> Units>>,
    pub(crate) lines: LineTables,
    pub(crate) places_throughout: PlacesThroughout,
    pub(crate) globals: Globals,
    pub(crate) symbols: Symbols,
    pub(crate) code: Code,
    pub(crate) unwind: UnwindTables,
    pub(crate) thread_local: ThreadLocal,
}

impl Image {
    /// None if the file is no program or library. Its path is where its debug information
    /// may lie beside it.
    pub fn load(bytes: &[u8], path: &Path) -> Option<Image> {
        let file = object::File::parse(bytes).ok()?;
        let separate = match separate::has_debug_information(&file) {
            true => None,
            false => separate::find(&file, path),
        };
        let is_of_system = separate.as_ref().is_some_and(|separate| separate.is_of_system);
        let beside = separate.as_ref().map(|separate| separate.bytes.as_slice());
        let beside = beside.and_then(|bytes| object::File::parse(bytes).ok());
        let debug = beside.as_ref().unwrap_or(&file);
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            let executable = match segment.flags() {
                object::SegmentFlags::Elf { p_flags } => p_flags & object::elf::PF_X != 0,
                _ => false,
            };
            Segment { offset, size, address: segment.address(), executable }
        });
        let segments = segments.collect();
        let (symbols, unwind) =
            (Symbols::new(&file, beside.as_ref()), UnwindTables::new(&file, debug));
        let path = path.to_owned();
        let (debug_bytes, debug_path) = match (beside.is_some(), separate) {
            (true, Some(separate)) => (separate.bytes, separate.path),
            _ => (bytes.to_vec(), path.clone()),
        };
        Some(Image {
            segments,
            is_of_system,
            thread_local: ThreadLocal::new(&file),
            lines: LineTables::default(),
            places_throughout: PlacesThroughout::default(),
            globals: Globals::default(),
            code: Code::new(&file),
            symbols,
            unwind,
            units: LazyCell::new(Box::new(move || units(&debug_bytes, &debug_path, &path))),
        })
    }

    /// The address of what was mapped from an offset of the file on, as code or not.
    pub(crate) fn address_of_offset(&self, offset: u64, executable: bool) -> Option<LinkAddress> {
        // Mappings begin at page boundaries, before the segment that they are of. Other
        // segments may have bytes in the same page.
        const PAGE: u64 = 4096;
        let first = |segment: &Segment| segment.offset & !(PAGE - 1);
        let end = |segment: &Segment| segment.offset.saturating_add(segment.size);
        let holds =
            |s: &&Segment| s.executable == executable && (first(s)..end(s)).contains(&offset);
        let begins = |segment: &&Segment| first(segment) == offset;
        let all = || self.segments.iter().filter(holds);
        let segment = all().find(begins).or_else(|| all().next_back())?;
        Some(LinkAddress(offset.wrapping_sub(segment.offset).wrapping_add(segment.address)))
    }
}

/// A section's bytes, unpacked; nothing if there is no such section.
pub(crate) fn section(file: &object::File<'_>, name: &str) -> Bytes {
    let data = file.section_by_name(name).and_then(|s| s.uncompressed_data().ok());
    let bytes: Rc<[u8]> = data.map_or(Rc::from([]), |data| Rc::from(data.as_ref()));
    Bytes::new(bytes, LittleEndian)
}

/// The bytes of all sections of a name: files that were not linked may have several.
pub(crate) fn all_sections(file: &object::File<'_>, name: &str) -> Bytes {
    let named = file.sections().filter(|section| section.name() == Ok(name) && !name.is_empty());
    let parts = named.filter_map(|section| Some(section.uncompressed_data().ok()?.into_owned()));
    Bytes::new(Rc::from(parts.collect::<Vec<_>>().concat()), LittleEndian)
}

/// What is in a file, if it is one: whoever names it may be a stranger.
pub fn read_file(path: &Path) -> Option<Vec<u8>> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file.then(|| std::fs::read(path).ok()).flatten()
}

/// What the file with the debug information of the one at a path says.
fn units(bytes: &[u8], debug_path: &Path, path: &Path) -> Units {
    let debug = object::File::parse(bytes).expect("it was a file of code before");
    let mut dwarf = dwarf(&debug);
    let shared = shared::find(&debug, debug_path, &mut dwarf);
    Units::new(Tables::new(dwarf, shared), Split::new(path))
}

fn dwarf(file: &object::File<'_>) -> Dwarf {
    let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(section(file, id.name()));
    Dwarf::load(load).expect("a section is there or empty")
}
