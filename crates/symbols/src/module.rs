//! Files of code where they are mapped.

use crate::called::{is_own, is_own_file};
use crate::{Image, LinkAddress, SourceLine};
use std::ops::Range;
use std::rc::Rc;

/// A stretch of a process's memory that was mapped from a file.
#[derive(Clone)]
pub struct Module {
    pub range: Range<u64>,
    /// What is to be added to the file's own addresses.
    bias: u64,
    /// The file's path.
    pub name: String,
    pub image: Rc<Image>,
}

impl Module {
    /// None if the stretch, which begins at an offset of the file and was mapped as code or
    /// not, holds no part of the program.
    pub fn new(
        range: Range<u64>,
        offset: u64,
        executable: bool,
        name: String,
        image: Rc<Image>,
    ) -> Option<Module> {
        let LinkAddress(linked) = image.address_of_offset(offset, executable)?;
        Some(Module { bias: range.start.wrapping_sub(linked), range, name, image })
    }

    pub fn linked(&self, address: u64) -> LinkAddress {
        LinkAddress(address.wrapping_sub(self.bias))
    }

    pub fn mapped(&self, LinkAddress(address): LinkAddress) -> u64 {
        address.wrapping_add(self.bias)
    }

    /// The innermost line of the program's own that an address belongs to, as far as one can
    /// tell whose a line is.
    pub fn own_line(&self, address: LinkAddress) -> Option<SourceLine> {
        // Their tables need not even be read.
        if self.image.is_of_system {
            return None;
        }
        let line = self.image.line(address);
        if let Some(line) = line.filter(is_own) {
            return Some(line);
        }
        // It may have been inlined into the program's own, also what is of no line.
        let functions = self.functions(address);
        functions.into_iter().find(|called| called.is_own).and_then(|called| called.line)
    }

    /// Whether an address belongs to a function of the program's own, but to no line of it: such as
    /// what compilers put between those.
    pub fn is_between_own_lines(&self, address: LinkAddress) -> bool {
        !self.image.is_of_system
            && self.image.file_without_line(address).is_some_and(|file| is_own_file(&file))
    }

    /// The last part of its path.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// All of them.
#[derive(Clone, Default)]
pub struct Modules(pub Vec<Module>);

impl Modules {
    pub fn at(&self, address: u64) -> Option<&Module> {
        self.0.iter().find(|module| module.range.contains(&address))
    }

    /// One for each file, though it may be mapped in several parts.
    pub(crate) fn files(&self) -> Vec<&Module> {
        let mut files: Vec<&Module> = Vec::new();
        for module in &self.0 {
            if !files.iter().any(|f| Rc::ptr_eq(&f.image, &module.image) && f.bias == module.bias) {
                files.push(module);
            }
        }
        files
    }
}
