//! What the compiler put in files of their own, so that the linker need not see it
//! (`-gsplit-dwarf`): a `.dwo` for each unit, or all of them in a `.dwp` beside the program.

use crate::image::{all_sections, read_file};
use crate::tables::{Tables, Unit};
use crate::units::DieRef;
use crate::{Bytes, Dwarf};
use gimli::{DebugTypeSignature, DwarfPackage, DwoId, LittleEndian, Reader};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

fn text(bytes: Bytes) -> Option<String> {
    Some(bytes.to_string_lossy().ok()?.into_owned())
}

/// The file that the rest of a skeleton was put in.
pub fn own_file(skeleton: &Unit) -> Option<PathBuf> {
    let name = skeleton.dwarf.attr_string(skeleton, skeleton.dwo_name().ok()??).ok()?;
    Some(PathBuf::from(text(name)?))
}

pub struct Split {
    /// The program's own file.
    program: PathBuf,
    package: OnceCell<Option<DwarfPackage<Bytes>>>,
    /// What was found for each skeleton; nothing if there is none.
    units: RefCell<HashMap<DwoId, Option<Rc<Unit>>>>,
    types: RefCell<HashMap<DebugTypeSignature, Option<DieRef>>>,
    /// Units know their tables only as long as somebody keeps them.
    kept: RefCell<Vec<Rc<Tables>>>,
}

impl Split {
    pub fn new(program: &Path) -> Split {
        Split {
            program: program.to_owned(),
            package: OnceCell::new(),
            units: RefCell::default(),
            types: RefCell::default(),
            kept: RefCell::default(),
        }
    }

    /// The whole unit, if this one is only the skeleton of it and the rest is there.
    pub fn whole(&self, unit: Rc<Unit>) -> Rc<Unit> {
        let Some(id) = unit.dwo_id else {
            return unit;
        };
        if let Some(known) = self.units.borrow().get(&id) {
            return known.clone().unwrap_or(unit);
        }
        let found = self.find(&unit, id);
        self.units.borrow_mut().insert(id, found.clone());
        found.unwrap_or(unit)
    }

    fn find(&self, skeleton: &Rc<Unit>, id: DwoId) -> Option<Rc<Unit>> {
        let packed = || self.package()?.find_cu(id, &skeleton.dwarf).ok()?;
        let dwarf = packed().or_else(|| self.of_own_file(skeleton))?;
        self.tables(dwarf).completed(skeleton)
    }

    fn tables(&self, dwarf: Dwarf) -> Rc<Tables> {
        let tables = Tables::new(dwarf, None);
        self.kept.borrow_mut().push(Rc::clone(&tables));
        tables
    }

    /// Where the compiler put it, or beside the program.
    fn of_own_file(&self, skeleton: &Unit) -> Option<Dwarf> {
        let name = own_file(skeleton)?;
        let directory = skeleton.comp_dir.clone().and_then(text).unwrap_or_default();
        let beside = self.program.with_file_name(name.file_name()?);
        let places = [Path::new(&directory).join(&name), beside];
        places.iter().find_map(|place| {
            let bytes = read_file(place)?;
            let file = object::File::parse(bytes.as_slice()).ok()?;
            let section = |id: gimli::SectionId| {
                let name = id.dwo_name().unwrap_or_default();
                Ok::<_, gimli::Error>(all_sections(&file, name))
            };
            let mut dwarf = Dwarf::load(section).ok()?;
            dwarf.make_dwo(&skeleton.dwarf);
            Some(dwarf)
        })
    }

    fn package(&self) -> Option<&DwarfPackage<Bytes>> {
        let load = || {
            let mut path = self.program.clone().into_os_string();
            path.push(".dwp");
            let bytes = read_file(Path::new(&path))?;
            let file = object::File::parse(bytes.as_slice()).ok()?;
            let section = |id: gimli::SectionId| {
                let name = id.dwo_name().unwrap_or_default();
                Ok::<_, gimli::Error>(all_sections(&file, name))
            };
            DwarfPackage::load(section, Bytes::new(Rc::from([]), LittleEndian)).ok()
        };
        self.package.get_or_init(load).as_ref()
    }

    /// A type that a package keeps apart from the units that use it.
    pub fn type_of_signature(&self, of: &Unit, signature: DebugTypeSignature) -> Option<DieRef> {
        let parent = of.skeleton.as_ref().map_or(&of.dwarf, |skeleton| &skeleton.dwarf);
        if let Some(known) = self.types.borrow().get(&signature) {
            return known.clone();
        }
        let find = || {
            let dwarf = self.package()?.find_tu(signature, parent).ok()??;
            self.tables(dwarf).type_of_signature(signature)
        };
        let found = find();
        self.types.borrow_mut().insert(signature, found.clone());
        found
    }
}
