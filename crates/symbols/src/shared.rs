//! What several files have in common, and `dwz` put in one of its own: `.gnu_debugaltlink` names it.

use crate::image::{read_file, section};
use crate::tables::Tables;
use crate::{Bytes, Dwarf};
use object::Object;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where distributions put them.
const ROOT: &str = "/usr/lib/debug";

/// Finds the file that another one, which is at this path, shares with others; its tables are
/// then known to those of that one, too.
pub fn find(file: &object::File<'_>, path: &Path, dwarf: &mut Dwarf) -> Option<Rc<Tables>> {
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let name = Path::new(std::ffi::OsStr::from_bytes(name));
    let directory = path.parent().unwrap_or(Path::new("/"));
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let by_id = hex
        .split_at_checked(2)
        .map(|(first, rest)| PathBuf::from(format!("{ROOT}/.build-id/{first}/{rest}.debug")));
    let places = [Some(directory.join(name)), by_id];
    let bytes = places.into_iter().flatten().find_map(|place| {
        let bytes = read_file(&place)?;
        let found = object::File::parse(bytes.as_slice()).ok()?.build_id().ok()??.to_vec();
        (found == id).then_some(bytes)
    })?;
    let file = object::File::parse(bytes.as_slice()).ok()?;
    let mut known: HashMap<&str, Bytes> = HashMap::new();
    let mut load = |id: gimli::SectionId| {
        let name = id.name();
        Ok::<_, gimli::Error>(known.entry(name).or_insert_with(|| section(&file, name)).clone())
    };
    dwarf.load_sup(&mut load).ok()?;
    Some(Tables::new(Dwarf::load(&mut load).ok()?, None))
}
