//! Which files a replayed process has mapped where.

use crate::memory::Address;
use std::ops::Range;
use why_record::files::Hash;

/// A stretch of memory that was mapped from a file.
#[derive(Clone, Debug)]
pub struct Module {
    pub range: Range<Address>,
    /// Where in the file it begins.
    pub offset: u64,
    /// It was mapped as code.
    pub executable: bool,
    pub hash: Hash,
    /// The file's path when it was recorded.
    pub name: String,
}

impl Module {
    fn part(&self, range: Range<Address>) -> Module {
        let offset = self.offset + (range.start - self.range.start);
        Module { range, offset, ..self.clone() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Modules(Vec<Module>);

impl Modules {
    pub fn list(&self) -> &[Module] {
        &self.0
    }

    pub fn add(&mut self, module: Module) {
        self.0.push(module);
    }

    /// Something else is there now, or nothing.
    pub fn remove(&mut self, range: &Range<Address>) {
        let kept = self.0.drain(..).flat_map(|module| {
            let before = module.range.start..module.range.end.min(range.start);
            let after = module.range.start.max(range.end)..module.range.end;
            let parts = [before, after].into_iter().filter(|part| !part.is_empty());
            parts.map(|part| module.part(part)).collect::<Vec<_>>()
        });
        self.0 = kept.collect();
    }

    /// What was there is elsewhere now.
    pub fn relocate(&mut self, from: &Range<Address>, to: Address) {
        let moved: Vec<Module> = self
            .0
            .iter()
            .filter_map(|module| {
                let start = module.range.start.max(from.start);
                let end = module.range.end.min(from.end);
                (start < end).then(|| {
                    let part = module.part(start..end);
                    let start = to + (start - from.start);
                    Module { range: start..start + (part.range.end - part.range.start), ..part }
                })
            })
            .collect();
        self.remove(from);
        self.0.extend(moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_module_keeps_its_place_in_the_file() {
        let mut modules = Modules::default();
        let name = "a".to_owned();
        let (range, executable, hash) = (0x1000..0x5000, true, Hash(1));
        modules.add(Module { range, offset: 0x100, executable, hash, name });
        modules.remove(&(0x2000..0x3000));
        modules.relocate(&(0x4000..0x5000), 0x9000);
        let places: Vec<_> =
            modules.list().iter().map(|module| (module.range.clone(), module.offset)).collect();
        let expected =
            [(0x1000..0x2000, 0x100), (0x3000..0x4000, 0x2100), (0x9000..0xa000, 0x3100)];
        assert_eq!(places, expected);
    }
}
