//! The code and the constants of a program, where its file wants them.

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::HashMap;
use std::ops::Range;
use why_flow::Program;

pub struct Image {
    sections: Vec<(u64, Vec<u8>)>,
    /// By address.
    pub functions: Vec<(String, Range<u64>)>,
    variables: Vec<(String, u64)>,
    /// Of what is hardly ever executed and lies elsewhere: whose part it is.
    parts: HashMap<u64, u64>,
}

impl Image {
    pub fn read(bytes: &[u8]) -> Image {
        let file = object::File::parse(bytes).expect("an ELF file");
        let kept = [SectionKind::Text, SectionKind::ReadOnlyData];
        let sections = file
            .sections()
            .filter(|section| kept.contains(&section.kind()))
            .map(|section| (section.address(), section.data().expect("its bytes").to_vec()))
            .collect();
        let (mut functions, mut variables) = (Vec::new(), Vec::new());
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let (name, at) = (symbol.name().expect("a name").to_owned(), symbol.address());
            match symbol.kind() {
                SymbolKind::Text if symbol.size() > 0 => {
                    functions.push((name, at..at + symbol.size()));
                }
                SymbolKind::Data => variables.push((name, at)),
                _ => {}
            }
        }
        functions.sort_by_key(|(_, range)| range.start);
        let part = |(name, range): &(String, Range<u64>)| {
            let whole = name.strip_suffix(".cold")?;
            let (_, entry) = functions.iter().find(|(name, _)| name == whole)?;
            Some((range.start, entry.start))
        };
        let parts = functions.iter().filter_map(part).collect();
        functions.dedup_by_key(|(_, range)| range.start);
        Image { sections, functions, variables, parts }
    }

    /// Where a function or a variable is.
    pub fn symbol(&self, name: &str) -> u64 {
        let functions = self.functions.iter().map(|(called, range)| (called, range.start));
        let variables = self.variables.iter().map(|(called, at)| (called, *at));
        let found = functions.chain(variables).find(|(called, _)| *called == name);
        found.expect("a symbol of this name").1
    }

    /// The entry of the function that an address lies in.
    pub fn function(&self, address: u64) -> Option<u64> {
        let behind = self.functions.partition_point(|(_, range)| range.start <= address);
        let (_, range) = &self.functions[behind.checked_sub(1)?];
        let entry = self.parts.get(&range.start).unwrap_or(&range.start);
        range.contains(&address).then_some(*entry)
    }
}

impl Program for Image {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let holds =
            |(start, bytes): &&(u64, Vec<u8>)| (*start..*start + bytes.len() as u64).contains(&at);
        let Some((start, bytes)) = self.sections.iter().find(holds) else {
            return 0;
        };
        let rest = &bytes[(at - start) as usize..];
        let got = rest.len().min(into.len());
        into[..got].copy_from_slice(&rest[..got]);
        got
    }

    fn is_within(&self, entry: u64, address: u64) -> bool {
        self.function(address) == Some(entry)
    }

    fn may_return(&self, callee: u64) -> bool {
        let named =
            |(name, range): &(String, Range<u64>)| range.start == callee && name == "give_up";
        !self.functions.iter().any(named)
    }

    fn seen_targets(&self, _: u64) -> Vec<u64> {
        Vec::new()
    }
}
