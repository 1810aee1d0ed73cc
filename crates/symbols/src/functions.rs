//! Functions by address and by name.

use crate::names::{demangled, is_meant, without_arguments};
use crate::{Die, Image, LinkAddress, Unit};
use gimli::constants as dw;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

/// Where a function begins, behind its prologue; each place where it was inlined is one.
pub type Entry = LinkAddress;

struct Symbol {
    address: u64,
    size: u64,
    name: String,
    is_function: bool,
}

/// What the tables for the linker say, in the order of addresses.
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    pub fn new(file: &object::File<'_>, beside: Option<&object::File<'_>>) -> Symbols {
        let mut symbols = Vec::new();
        let tables = beside.into_iter().chain([file]);
        for table in tables {
            for symbol in table.symbols().chain(table.dynamic_symbols()) {
                let is_function = symbol.kind() == SymbolKind::Text;
                let is_object = symbol.kind() == SymbolKind::Data;
                let name = symbol.name().unwrap_or_default();
                if !(is_function || is_object) || symbol.is_undefined() || name.is_empty() {
                    continue;
                }
                let (address, mut size) = (symbol.address(), symbol.size());
                if size == 0 && is_function {
                    // It ends where the next one begins, or with its section.
                    let section =
                        symbol.section_index().and_then(|i| table.section_by_index(i).ok());
                    let end = section.map_or(0, |section| section.address() + section.size());
                    size = end.saturating_sub(address);
                }
                symbols.push(Symbol { address, size, name: name.to_owned(), is_function });
            }
        }
        symbols.sort_by_key(|symbol: &Symbol| symbol.address);
        Symbols(symbols)
    }

    /// The symbol that holds an address, and how far behind its beginning that is.
    fn at(&self, LinkAddress(address): LinkAddress) -> Option<(&Symbol, u64)> {
        let behind = self.0.partition_point(|symbol| symbol.address <= address);
        let holds = |symbol: &&Symbol| address - symbol.address < symbol.size;
        // One that is large may begin before others that end early.
        const BACK: usize = 16;
        let near = &self.0[behind.saturating_sub(BACK)..behind];
        let first = near.iter().rev().find(holds)?.address;
        // Of several names, the one for everybody: others begin with underscores.
        let named = near.iter().filter(|symbol| symbol.address == first && holds(symbol));
        let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
        let symbol = named.min_by_key(|symbol| underscores(&symbol.name))?;
        Some((symbol, address - symbol.address))
    }
}

impl Symbols {
    fn functions(&self) -> impl Iterator<Item = &Symbol> {
        self.0.iter().filter(|symbol| symbol.is_function)
    }

    /// The name of a function that begins at an address.
    pub fn named_at(&self, address: u64) -> Option<&str> {
        let first = self.0.partition_point(|symbol| symbol.address < address);
        let there = self.0[first..].iter().take_while(|symbol| symbol.address == address);
        let name = there.into_iter().find(|symbol| symbol.is_function)?.name.as_str();
        Some(name.split('@').next().unwrap_or(name))
    }

    /// The address of the one function of this name.
    pub fn only_function(&self, name: &str) -> Option<u64> {
        let mut named = self.functions().filter(|symbol| symbol.name == name);
        let first = named.next()?.address;
        named.all(|symbol| symbol.address == first).then_some(first)
    }

    /// The function that holds an address: up to where the next one begins.
    pub fn stretch(&self, address: LinkAddress) -> Option<Range<u64>> {
        let (symbol, _) = self.at(address)?;
        let start = symbol.address;
        let behind = &self.0[self.0.partition_point(|symbol| symbol.address <= start)..];
        let next = behind.iter().find(|symbol| symbol.is_function).map(|symbol| symbol.address);
        let end = start.saturating_add(symbol.size).min(next.unwrap_or(u64::MAX));
        (symbol.is_function && (start..end).contains(&address.0)).then_some(start..end)
    }
}

/// Whether it is not only the end of the name that was asked for.
fn is_whole(name: &str, asked: &str) -> bool {
    name == asked || !asked.contains('<') && without_arguments(name) == asked
}

fn readable(name: &str) -> String {
    let name = name.split('@').next().unwrap_or(name);
    demangled(name).unwrap_or_else(|| name.to_owned())
}

impl Image {
    /// The function or variable that an address lies in by the linker's tables, and how
    /// far behind its beginning.
    pub fn symbol(&self, address: LinkAddress) -> Option<(String, u64)> {
        self.symbols.at(address).map(|(symbol, distance)| (readable(&symbol.name), distance))
    }

    /// The variable that an address lies in by the linker's tables, and how far behind its
    /// beginning.
    pub fn object_at(&self, address: LinkAddress) -> Option<(String, u64)> {
        let (symbol, distance) = self.symbols.at(address)?;
        (!symbol.is_function).then(|| (readable(&symbol.name), distance))
    }

    /// The address and size of a variable by the linker's tables.
    pub(crate) fn object_symbol(&self, name: &str) -> Option<(LinkAddress, u64)> {
        let symbol = self.symbols.0.iter().find(|s| !s.is_function && readable(&s.name) == name)?;
        Some((LinkAddress(symbol.address), symbol.size))
    }

    /// The names of functions by the linker's tables, without the arguments of templates.
    pub fn function_names(&self) -> impl Iterator<Item = String> {
        self.symbols.functions().map(|symbol| without_arguments(&readable(&symbol.name)))
    }

    /// Where functions begin that have this name, or end with it behind `::`.
    pub fn search_function(&self, asked: &str) -> BTreeSet<Entry> {
        let mut found: BTreeSet<(bool, Entry)> = BTreeSet::new();
        let mut known: BTreeSet<u64> = BTreeSet::new();
        for unit in self.units.all() {
            let mut entries = unit.entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                if !matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine) {
                    continue;
                }
                let Some(start) = self.start(&unit, entry) else { continue };
                if let Some(name) = self.name_if_meant(&unit, entry, asked) {
                    known.insert(start.0);
                    let inlined = entry.tag() == dw::DW_TAG_inlined_subroutine;
                    let at = if inlined { start } else { self.skip_prologue(&unit, entry, start) };
                    found.insert((is_whole(&name, asked), at));
                }
            }
        }
        for symbol in self.symbols.0.iter().filter(|symbol| symbol.is_function) {
            let name = readable(&symbol.name);
            if is_meant(&name, asked) && !known.contains(&symbol.address) {
                found.insert((is_whole(&name, asked), LinkAddress(symbol.address)));
            }
        }
        // Whoever says all of a name means no other that ends with it.
        let whole = found.iter().any(|(whole, _)| *whole);
        found.into_iter().filter(|(w, _)| *w == whole).map(|(_, address)| address).collect()
    }

    /// Of several rows in the table of lines for where a function of this name begins, before
    /// which one it does.
    pub fn view_of_entry(&self, address: LinkAddress, asked: &str) -> u64 {
        self.units.view_of_entry(address, |scope| {
            let unit = &scope.function.unit;
            scope.inlined
                && scope.function.entry().is_some_and(|entry| {
                    self.start(unit, &entry) == Some(address)
                        && self.name_if_meant(unit, &entry, asked).is_some()
                })
        })
    }

    fn name_if_meant(&self, unit: &Rc<Unit>, entry: &Die, asked: &str) -> Option<String> {
        let last = asked.rsplit("::").next().unwrap_or(asked);
        let short = self.units.name(unit, entry)?;
        let short = short.split('<').next().unwrap_or(&short);
        if short != last.split('<').next().unwrap_or(last) {
            return None;
        }
        let name = self.units.function_name(unit, entry)?;
        is_meant(&name, asked).then_some(name)
    }

    /// Where a function's code begins, or that of a call that was inlined.
    pub(crate) fn start(&self, unit: &Unit, entry: &Die) -> Option<LinkAddress> {
        let first = |name| {
            let value = entry.attr_value(name)?;
            unit.dwarf.attr_address(unit, value).ok()?
        };
        let stretches = self.units.stretches(unit, entry);
        let lowest = stretches.iter().map(|range| range.start).min()?;
        // The entry may be given as an address or as a distance from the lowest.
        let entry_pc =
            first(dw::DW_AT_entry_pc).filter(|pc| stretches.iter().any(|range| range.contains(pc)));
        Some(LinkAddress(entry_pc.or_else(|| first(dw::DW_AT_low_pc)).unwrap_or(lowest)))
    }
}
