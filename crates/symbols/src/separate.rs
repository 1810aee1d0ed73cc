//! Debug information that is kept in a file of its own.

use crate::image::read_file;
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};

/// Where distributions put it.
const ROOT: &str = "/usr/lib/debug";

pub struct Separate {
    pub bytes: Vec<u8>,
    /// Where it was found.
    pub path: PathBuf,
    /// A distribution has put it there: it is of a library or program that others wrote.
    pub is_of_system: bool,
}

/// The file that holds the debug information of another one, which had this path: by its
/// build id, else by the name that it gives, with the checksum that it gives.
pub fn find(file: &object::File<'_>, path: &Path) -> Option<Separate> {
    by_build_id(file).or_else(|| by_link(file, path))
}

fn by_build_id(file: &object::File<'_>) -> Option<Separate> {
    let id = file.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let path = PathBuf::from(format!("{ROOT}/.build-id/{first:02x}/{}.debug", hex(rest)));
    let bytes = read_file(&path)?;
    // Links to files of other versions are left behind when packages change.
    let found = object::File::parse(bytes.as_slice()).ok()?.build_id().ok()??.to_vec();
    (found == id).then_some(Separate { bytes, path, is_of_system: true })
}

fn by_link(file: &object::File<'_>, path: &Path) -> Option<Separate> {
    let (name, checksum) = file.gnu_debuglink().ok()??;
    let name = Path::new(std::str::from_utf8(name).ok()?);
    // A name, not a path to anywhere.
    let name = name.file_name()?;
    let directory = path.parent()?;
    let below_root: PathBuf = directory.strip_prefix("/").unwrap_or(directory).into();
    let places = [
        directory.join(name),
        directory.join(".debug").join(name),
        Path::new(ROOT).join(below_root).join(name),
    ];
    places.into_iter().filter(|place| place.as_path() != path).find_map(|path| {
        let bytes = read_file(&path)?;
        let is_of_system = path.starts_with(ROOT);
        (crc32(&bytes) == checksum).then_some(Separate { bytes, path, is_of_system })
    })
}

/// Whether a file says itself what its instructions were made from.
pub fn has_debug_information(file: &object::File<'_>) -> bool {
    file.section_by_name(".debug_info").is_some_and(|section| section.size() > 0)
}

/// As gdb and objcopy compute it.
fn crc32(bytes: &[u8]) -> u32 {
    let mut table = [0u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        let step = |value: u32, _| (value >> 1) ^ (0xedb8_8320 & (value & 1).wrapping_neg());
        *entry = (0..8).fold(index as u32, step);
    }
    let step = |sum: u32, byte: &u8| table[((sum ^ u32::from(*byte)) & 255) as usize] ^ (sum >> 8);
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
