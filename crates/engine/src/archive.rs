//! Translations kept in a file, for the next run of the same program or library.
//!
//! An archive holds the code of all units of one image, linked among themselves, as
//! one stretch of bytes that is mapped at a certain distance from the image; and, to
//! be read only when needed, the description of each unit. It is written for one state
//! of the image's file and one build of the engine.
//!
//! All numbers are little-endian. The header says where each [`Section`] begins and
//! ends.

use crate::image::Identity;
use crate::memory::PAGE;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use why_translate::{Calls, Tool};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"why-code";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Section {
    /// `(page offset, checksum)` of the image's pages that were translated.
    Pages,
    /// `(offset in image, offset in code, offset in descriptions)` of each unit, both
    /// ascending.
    Units,
    /// `(offset in image, offset in code)` of each indirect target's entry.
    Links,
    /// The code, from the beginning of a page on.
    Code,
    /// Eight-byte addresses within the image that the code refers to, likewise.
    Literals,
    /// The units' descriptions.
    Descriptions,
}

const SECTIONS: usize = 6;

/// What an archive is of; everything in it must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub identity: Identity,
    /// Where in the file the mapping begins: a file may be mapped in several parts.
    pub offset: u64,
    pub tool: Tool,
    /// How calls are made.
    pub calls: Calls,
    /// Whether the CPU that the application is shown is a limited one.
    pub limited: bool,
}

impl Key {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = env!("WHY_ENGINE_BUILD").as_bytes().to_vec();
        bytes.push(self.tool as u8);
        bytes.push(self.calls as u8);
        bytes.push(self.limited.into());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.identity.bytes());
        bytes
    }

    /// The file's name tells images and engines apart; a new state of the image or a
    /// new engine takes the old one's place.
    fn file_name(&self) -> String {
        let Identity { device, inode, .. } = self.identity;
        let tool = format!("{:?}", self.tool).to_lowercase();
        let calls = format!("{:?}", self.calls).to_lowercase();
        let limited = if self.limited { "-limited" } else { "" };
        format!("{device:x}-{inode:x}-{:x}-{tool}-{calls}{limited}", self.offset)
    }
}

/// Where archives are kept, if anywhere.
pub fn directory() -> Option<PathBuf> {
    let given = std::env::var_os("WHY_CACHE_DIR").map(PathBuf::from);
    let place = given.or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
        Some(base.join("why"))
    })?;
    (!place.as_os_str().is_empty()).then_some(place)
}

/// An archive opened.
pub struct Archive {
    file: File,
    map: Map,
    /// Image base for which the literals are right.
    pub bias: u64,
    /// Where the code lies with that image base.
    pub at: u64,
    /// The image's identity alone tells that it is as it was.
    pub settled: bool,
    sections: [(usize, usize); SECTIONS],
    checksum: u32,
    /// Where what has been summed up begins.
    body: usize,
}

impl Archive {
    /// The archive of this image, if there is one.
    pub fn open(directory: &Path, key: &Key) -> Option<Archive> {
        let file = File::open(directory.join(key.file_name())).ok()?;
        let map = Map::of(&file)?;
        let bytes = map.bytes();
        let mut cursor = Cursor { bytes, at: 0 };
        let own = key.bytes();
        if cursor.take(8)? != MAGIC || cursor.take(own.len())? != own {
            return None;
        }
        let bias = cursor.u64()?;
        let at = cursor.u64()?;
        let settled = cursor.u32()? != 0;
        let mut sections = [(0, 0); SECTIONS];
        for section in &mut sections {
            *section = (cursor.u64()? as usize, cursor.u64()? as usize);
            bytes.get(section.0..section.1)?;
        }
        let checksum = cursor.u32()?;
        let body = cursor.at;
        Some(Archive { file, map, bias, at, settled, sections, checksum, body })
    }

    /// Whether it is what was written.
    pub fn is_sound(&self) -> bool {
        checksum(&self.map.bytes()[self.body..]) == self.checksum
    }

    /// Code and literals are mapped together from here in the file on.
    pub fn mapped_from(&self) -> u64 {
        self.sections[Section::Code as usize].0 as u64
    }

    pub fn mapped_length(&self) -> u64 {
        let (_, end) = self.sections[Section::Literals as usize];
        (end as u64 - self.mapped_from()).next_multiple_of(PAGE)
    }

    /// The literals as they must be for an image at `bias`, and where they lie from the
    /// beginning of the code; none if they are right as they are.
    pub fn literals(&self, bias: u64) -> Option<(u64, Vec<u8>)> {
        let literals = self.section(Section::Literals);
        let moved = bias.wrapping_sub(self.bias);
        if moved == 0 || literals.is_empty() {
            return None;
        }
        let at = self.sections[Section::Literals as usize].0 as u64 - self.mapped_from();
        let (values, _) = literals.as_chunks::<8>();
        let values = values.iter().map(|&value| u64::from_le_bytes(value).wrapping_add(moved));
        Some((at, values.flat_map(u64::to_le_bytes).collect()))
    }

    /// The open file, for the target to map.
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn section(&self, section: Section) -> &[u8] {
        let (start, end) = self.sections[section as usize];
        &self.map.bytes()[start..end]
    }

    /// The records of a section of fixed-size records.
    pub fn records<const N: usize>(&self, section: Section) -> Records<'_, N> {
        Records(self.section(section))
    }
}

/// Tells damaged from sound; whoever means harm can do worse to files of the same user.
pub fn checksum(bytes: &[u8]) -> u32 {
    let sum = xxh3_64(bytes);
    (sum ^ sum >> 32) as u32
}

/// Fixed-size records of `N` four-byte numbers.
#[derive(Clone, Copy)]
pub struct Records<'a, const N: usize>(&'a [u8]);

impl<const N: usize> Records<'_, N> {
    pub fn len(&self) -> usize {
        self.0.len() / (4 * N)
    }

    pub fn get(&self, index: usize) -> [u32; N] {
        let bytes = &self.0[index * 4 * N..(index + 1) * 4 * N];
        std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
    }

    pub fn iter(&self) -> impl Iterator<Item = [u32; N]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// How many records come before the first of which this number exceeds `value`.
    pub fn up_to(&self, number: usize, value: u32) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.get(middle)[number] <= value { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// What goes into a new archive.
pub struct Contents {
    pub bias: u64,
    pub at: u64,
    pub settled: bool,
    pub sections: [Vec<u8>; SECTIONS],
}

/// Writes an archive, replacing an older one as a whole.
pub fn write(directory: &Path, key: &Key, contents: &Contents) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let mut header = MAGIC.to_vec();
    header.extend(key.bytes());
    header.extend(contents.bias.to_le_bytes());
    header.extend(contents.at.to_le_bytes());
    header.extend(u32::from(contents.settled).to_le_bytes());
    let beginning = header.len() + SECTIONS * 16 + 4;
    let mut body = Vec::new();
    for (index, section) in contents.sections.iter().enumerate() {
        if [Section::Code as usize, Section::Literals as usize].contains(&index) {
            let page = (beginning + body.len()).next_multiple_of(PAGE as usize);
            body.resize(page - beginning, 0);
        }
        let start = body.len();
        body.extend(section);
        for place in [beginning + start, beginning + body.len()] {
            header.extend((place as u64).to_le_bytes());
        }
    }
    header.extend(checksum(&body).to_le_bytes());
    let name = key.file_name();
    // Others may use the same directory, from where process numbers are others.
    let random = RandomState::new().hash_one(std::process::id());
    let temporary = directory.join(format!("{name}.{random:x}"));
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(&header).and_then(|()| file.write_all(&body)))
        .and_then(|()| std::fs::rename(&temporary, directory.join(name)));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// A file mapped for reading. Archives are only ever replaced, never changed in place.
struct Map {
    start: NonNull<u8>,
    size: usize,
}

impl Map {
    fn of(file: &File) -> Option<Map> {
        let size = file.metadata().ok()?.len() as usize;
        let flags = MapFlags::MAP_PRIVATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap(None, NonZeroUsize::new(size)?, ProtFlags::PROT_READ, flags, file, 0) };
        Some(Map { start: start.ok()?.cast(), size })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is as long and lives as long as this value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this value alone knows the mapping.
        let _ = unsafe { munmap(self.start.cast(), self.size) };
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
    }
}
