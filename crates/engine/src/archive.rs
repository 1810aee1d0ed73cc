//! Translations kept in a file, for the next run of the same program or library.
//!
//! An archive holds the code of all units of one image, linked among themselves, as
//! one stretch of bytes that can be copied to any place in reach of the image; lists
//! of what depends on where code and image lie; and, to be read only when needed, the
//! description of each unit. It is written for one state of the image's file and one
//! build of the engine, and checked when opened.
//!
//! All numbers are little-endian. The sections follow the header in the order of
//! [`Section`], each of the length that the header gives.

use crate::image::Identity;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::OnceCell;
use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use why_translate::Tool;

const MAGIC: &[u8; 8] = b"why-code";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Section {
    /// `(page offset, checksum)` of the image's pages that were translated.
    Pages,
    /// The code.
    Code,
    /// Offsets of displacements to the image's memory.
    Displacements,
    /// Offsets of eight-byte addresses within the image.
    Literals,
    /// `(offset in code, offset in image, offset in descriptions)` of each unit.
    Units,
    /// `(offset in image, unit)`, ascending.
    ByAddress,
    /// `(offset in code, offset in image)` of each indirect target's entry.
    Links,
    /// The units' descriptions.
    Descriptions,
}

const SECTIONS: usize = 8;

/// What an archive is of; everything in it must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub identity: Identity,
    /// Where in the file the mapping begins: a file may be mapped in several parts.
    pub offset: u64,
    pub tool: Tool,
}

impl Key {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = env!("WHY_ENGINE_BUILD").as_bytes().to_vec();
        bytes.push(self.tool as u8);
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.identity.bytes());
        bytes
    }

    /// The file's name tells images and engines apart; a new state of the image or a
    /// new engine takes the old one's place.
    fn file_name(&self) -> String {
        let Identity { device, inode, .. } = self.identity;
        let tool = format!("{:?}", self.tool).to_lowercase();
        format!("{device:x}-{inode:x}-{:x}-{tool}", self.offset)
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

/// An archive opened and checked.
pub struct Archive {
    map: Map,
    /// Image base and code address for which displacements and literals are right.
    pub bias: u64,
    pub at: u64,
    sections: [(usize, usize); SECTIONS],
    descriptions_checksum: u32,
    described: OnceCell<()>,
}

impl Archive {
    /// The archive of this image, if there is one and it is sound.
    pub fn open(directory: &Path, key: &Key) -> Option<Archive> {
        let map = Map::open(&directory.join(key.file_name()))?;
        let bytes = map.bytes();
        let mut cursor = Cursor { bytes, at: 0 };
        let own = key.bytes();
        if cursor.take(8)? != MAGIC || cursor.take(own.len())? != own {
            return None;
        }
        let bias = cursor.u64()?;
        let at = cursor.u64()?;
        let mut lengths = [0; SECTIONS];
        for length in &mut lengths {
            *length = cursor.u64()? as usize;
        }
        let checksums = [cursor.u32()?, cursor.u32()?];
        let mut start = cursor.at;
        let mut sections = [(0, 0); SECTIONS];
        for (section, length) in sections.iter_mut().zip(lengths) {
            let end = start.checked_add(length)?;
            *section = (start, end);
            start = end;
        }
        let (descriptions, end) = sections[Section::Descriptions as usize];
        if end != bytes.len() || crc32fast::hash(&bytes[cursor.at..descriptions]) != checksums[0] {
            return None;
        }
        let described = OnceCell::new();
        Some(Archive { map, bias, at, sections, descriptions_checksum: checksums[1], described })
    }

    /// The descriptions, which are needed rarely and checked only then.
    pub fn descriptions(&self) -> &[u8] {
        let bytes = self.section(Section::Descriptions);
        self.described.get_or_init(|| {
            let sum = crc32fast::hash(bytes);
            assert_eq!(sum, self.descriptions_checksum, "a translation archive is damaged");
        });
        bytes
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

    /// How many records come before the first whose first number exceeds `value`.
    pub fn up_to(&self, value: u32) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.get(middle)[0] <= value { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// What goes into a new archive.
pub struct Contents {
    pub bias: u64,
    pub at: u64,
    pub sections: [Vec<u8>; SECTIONS],
}

/// Writes an archive, replacing an older one as a whole.
pub fn write(directory: &Path, key: &Key, contents: &Contents) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let body = contents.sections.concat();
    let descriptions = body.len() - contents.sections[Section::Descriptions as usize].len();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(key.bytes());
    bytes.extend(contents.bias.to_le_bytes());
    bytes.extend(contents.at.to_le_bytes());
    for section in &contents.sections {
        bytes.extend((section.len() as u64).to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&body[..descriptions]).to_le_bytes());
    bytes.extend(crc32fast::hash(&body[descriptions..]).to_le_bytes());
    bytes.extend(body);
    let name = key.file_name();
    let temporary = directory.join(format!("{name}.{}", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| std::fs::rename(&temporary, directory.join(name)));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// A file mapped for reading. Archives are only ever replaced, never changed in place;
/// neither are programs and libraries while they run.
pub struct Map {
    start: NonNull<u8>,
    size: usize,
}

impl Map {
    fn open(path: &Path) -> Option<Map> {
        Map::of(&File::open(path).ok()?)
    }

    pub fn of(file: &File) -> Option<Map> {
        let size = file.metadata().ok()?.len() as usize;
        let flags = MapFlags::MAP_PRIVATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap(None, NonZeroUsize::new(size)?, ProtFlags::PROT_READ, flags, file, 0) };
        Some(Map { start: start.ok()?.cast(), size })
    }

    pub fn bytes(&self) -> &[u8] {
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
