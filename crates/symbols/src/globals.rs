//! Variables that belong to no function. What their names mean depends on who asks: those of the
//! namespaces and classes around a function come first, and those that other units keep to
//! themselves come last.

use crate::evaluate::{Context, Unknown};
use crate::locations::Point;
use crate::names::without_arguments;
use crate::units::{DieRef, Units};
use crate::value::Value;
use crate::{Die, LinkAddress, Memory, Module, Modules, Unit, Viewpoint};
use gimli::UnitOffset;
use gimli::constants as dw;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A name in a path such as `outer::inner::name`.
#[derive(Clone, Debug, Default)]
struct Part {
    name: String,
    /// Whoever names what is inside need not say it: it has no name, or is inline.
    may_be_left_out: bool,
    is_class: bool,
}

/// What entries lie in, as they come one after the other.
#[derive(Default)]
struct Nesting(Vec<(isize, Part)>);

/// A variable that is defined.
struct Global {
    /// From the outermost part to its own name.
    path: Vec<Part>,
    entry: UnitOffset,
    /// The unit that declares it.
    home: (usize, usize),
    /// Other units may use it.
    is_external: bool,
}

#[derive(Default)]
struct OfUnit {
    globals: Vec<Global>,
    /// What all that is declared lies in.
    around: HashMap<UnitOffset, Vec<Part>>,
}

/// Those of the units that were looked at.
#[derive(Default)]
pub struct Globals(RefCell<HashMap<(usize, usize), Rc<OfUnit>>>);

/// Who asks.
#[derive(Default)]
pub struct Asker {
    /// The unit of the function's code, and the one that declares it.
    units: Vec<Rc<Unit>>,
    /// The names around the function, from the outermost in.
    around: Vec<String>,
}

/// How near a variable is to who asks; the least is the nearest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    /// Another unit keeps it to itself.
    is_hidden: bool,
    /// How many parts of what is around the function are not around the variable; none if only
    /// the last parts of its name are those that are asked for.
    outwards: usize,
    is_of_other_unit: bool,
}

impl Distance {
    const BY_LAST_PARTS: usize = usize::MAX;
}

impl Nesting {
    /// Brings it to where an entry is.
    fn reach(&mut self, units: &Units, unit: &Rc<Unit>, entry: &Die) {
        self.0.retain(|(depth, _)| *depth < entry.depth());
        let is_namespace = entry.tag() == dw::DW_TAG_namespace;
        let is_class = matches!(
            entry.tag(),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type
        );
        if is_namespace || is_class {
            let name = units.name(unit, entry);
            let may_be_left_out = name.is_none() || entry.has_attr(dw::DW_AT_export_symbols);
            let part = Part { name: name.unwrap_or_default(), may_be_left_out, is_class };
            self.0.push((entry.depth(), part));
        }
    }

    fn parts(&self) -> Vec<Part> {
        self.0.iter().map(|(_, part)| part.clone()).collect()
    }
}

impl Globals {
    fn of(&self, units: &Units, unit: &Rc<Unit>) -> Rc<OfUnit> {
        if let Some(known) = self.0.borrow().get(&unit.key()) {
            return Rc::clone(known);
        }
        // Units that are read for this one find nothing here: tables may refer to each other.
        self.0.borrow_mut().insert(unit.key(), Rc::default());
        let found = Rc::new(self.read(units, unit));
        self.0.borrow_mut().insert(unit.key(), Rc::clone(&found));
        found
    }

    fn read(&self, units: &Units, unit: &Rc<Unit>) -> OfUnit {
        let mut found = OfUnit::default();
        let mut nesting = Nesting::default();
        // What lies in a function has a name there only.
        let mut function: Option<isize> = None;
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            function = function.filter(|depth| *depth < entry.depth());
            if function.is_some() {
                continue;
            }
            nesting.reach(units, unit, entry);
            match entry.tag() {
                dw::DW_TAG_subprogram => function = Some(entry.depth()),
                // Older tables have the variables of a class as members that are external.
                dw::DW_TAG_variable => {}
                dw::DW_TAG_member if entry.has_attr(dw::DW_AT_external) => {}
                _ => continue,
            }
            if function.is_some() {
                continue;
            }
            let origin = units.origin(unit, entry);
            let around = match &origin {
                Some(origin) if origin.unit.key() == unit.key() => {
                    found.around.get(&origin.offset).cloned()
                }
                Some(origin) => self.of(units, &origin.unit).around.get(&origin.offset).cloned(),
                None => None,
            };
            let around = around.unwrap_or_else(|| nesting.parts());
            found.around.insert(entry.offset(), around.clone());
            // One that is only declared here is defined elsewhere.
            let is_defined =
                entry.has_attr(dw::DW_AT_location) || entry.has_attr(dw::DW_AT_const_value);
            let name = units.name(unit, entry).filter(|_| is_defined);
            found.globals.extend(name.map(|name| Global {
                path: around.into_iter().chain([Part { name, ..Part::default() }]).collect(),
                entry: entry.offset(),
                home: origin.map_or(unit.key(), |origin| origin.unit.key()),
                is_external: units.attribute(unit, entry, dw::DW_AT_external).is_some(),
            }));
        }
        found
    }

    /// How all those of a unit are called.
    pub fn names(&self, units: &Units, unit: &Rc<Unit>) -> Vec<String> {
        self.of(units, unit).globals.iter().map(Global::name).collect()
    }
}

/// Whether a path is the one that somebody wrote.
fn is_path(path: &[Part], asked: &[&str]) -> bool {
    let Some((last, outer)) = path.split_last() else { return asked.is_empty() };
    let is_next = |name: &str| last.name == name || without_arguments(&last.name) == name;
    let named =
        asked.split_last().is_some_and(|(name, rest)| is_next(name) && is_path(outer, rest));
    named || last.may_be_left_out && is_path(outer, asked)
}

impl Global {
    fn name(&self) -> String {
        let told = self.path.iter().filter(|part| !part.may_be_left_out);
        told.map(|part| part.name.as_str()).collect::<Vec<_>>().join("::")
    }

    /// None if it is not what is asked for.
    fn distance(&self, asker: &Asker, asked: &[&str]) -> Option<Distance> {
        let own_name = &self.path.last()?.name;
        if asked.last() != Some(&own_name.as_str()) && !own_name.contains('<') {
            return None;
        }
        let around: Vec<&str> = asker.around.iter().map(String::as_str).collect();
        let is_at = |outwards: &usize| match asked {
            // Of a name that begins with `::`, the first part is empty.
            ["", rest @ ..] => *outwards == around.len() && is_path(&self.path, rest),
            _ => is_path(&self.path, &[&around[..around.len() - outwards], asked].concat()),
        };
        let outwards = (0..=around.len()).find(is_at).or_else(|| {
            // A variable of a class has no name outside of it but with that of the class.
            let ends_so = |first: &usize| {
                let is_bare = asked.len() == 1 && self.path[first - 1].is_class;
                !is_bare && is_path(&self.path[*first..], asked)
            };
            (1..self.path.len()).find(ends_so).map(|_| Distance::BY_LAST_PARTS)
        })?;
        let is_of_other_unit = !asker.units.iter().any(|unit| unit.key() == self.home);
        Some(Distance {
            is_hidden: is_of_other_unit && !self.is_external,
            outwards,
            is_of_other_unit,
        })
    }
}

/// One that may be meant.
struct Candidate<'a> {
    distance: Distance,
    module: &'a Module,
    unit: Rc<Unit>,
    of_unit: Rc<OfUnit>,
    /// Its place there.
    index: usize,
}

impl Candidate<'_> {
    fn global(&self) -> &Global {
        &self.of_unit.globals[self.index]
    }

    fn value(&self, memory: &dyn Memory) -> Option<Result<Value, Unknown>> {
        let (module, unit, frame) = (self.module, &self.unit, None);
        let context =
            Context { memory, module, unit, frame, frame_base: None, modules: None, callers: 0 };
        let entry = unit.entry(self.global().entry).ok()?;
        Some(context.value(&entry, Point::instruction(LinkAddress(0))))
    }
}

fn candidates<'a>(
    module: &'a Module,
    unit: &Rc<Unit>,
    asker: &Asker,
    asked: &[&str],
) -> Vec<Candidate<'a>> {
    let image = &module.image;
    let of_unit = image.globals.of(&image.units, unit);
    let known = of_unit.globals.iter().enumerate();
    let candidate = |(index, global): (usize, &Global)| {
        let (unit, of_unit) = (Rc::clone(unit), Rc::clone(&of_unit));
        Some(Candidate { distance: global.distance(asker, asked)?, module, unit, of_unit, index })
    };
    known.filter_map(candidate).collect()
}

impl Asker {
    /// A function, or an instance of one.
    fn function(units: &Units, function: &DieRef) -> Asker {
        const MOST_HOPS: usize = 16;
        let mut declared = function.clone();
        for _ in 0..MOST_HOPS {
            let origin = declared.entry().and_then(|entry| units.origin(&declared.unit, &entry));
            let Some(origin) = origin else { break };
            declared = origin;
        }
        let mut nesting = Nesting::default();
        let mut entries = declared.unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            nesting.reach(units, &declared.unit, entry);
            if entry.offset() == declared.offset {
                break;
            }
        }
        let named = nesting.parts().into_iter().filter(|part| !part.may_be_left_out);
        let around = named.map(|part| part.name).collect();
        Asker { units: vec![function.unit.clone(), declared.unit], around }
    }
}

impl Modules {
    /// One of the functions that an address lies in.
    pub(crate) fn asker(&self, viewpoint: &Viewpoint) -> Asker {
        let Some(module) = self.at(viewpoint.pc) else { return Asker::default() };
        let units = &module.image.units;
        let scopes = module.scopes(viewpoint);
        let function = scopes.get(viewpoint.functions[0]);
        function.map_or_else(Asker::default, |scope| Asker::function(units, &scope.function))
    }

    /// Where the linker has a variable of which nothing else is known, and its size.
    pub(crate) fn object(&self, name: &str) -> Option<(u64, u64)> {
        self.files().into_iter().find_map(|module| {
            let (at, size) = module.image.object_symbol(name)?;
            Some((module.mapped(at), size))
        })
    }

    /// A variable that belongs to no frame, by its name.
    pub(crate) fn global(
        &self,
        memory: &dyn Memory,
        near: u64,
        asker: &Asker,
        asked: &str,
    ) -> Option<Result<Value, Unknown>> {
        let asked: Vec<&str> = asked.split("::").collect();
        let own = self.at(near);
        let is_own =
            |module: &&Module| own.is_some_and(|own| Rc::ptr_eq(&own.image, &module.image));
        // Mostly it is the own unit's.
        let mut found: Vec<Candidate> = Vec::new();
        if let Some(own) = own {
            let units = asker.units.iter();
            found = units.flat_map(|unit| candidates(own, unit, asker, &asked)).collect();
            let is_certain = |candidate: &Candidate| {
                let Distance { outwards, is_of_other_unit, .. } = candidate.distance;
                outwards != Distance::BY_LAST_PARTS && !is_of_other_unit
            };
            found.retain(is_certain);
        }
        if found.is_empty() {
            let (own, others): (Vec<_>, Vec<_>) = self.files().into_iter().partition(is_own);
            for module in own.into_iter().chain(others) {
                let units = module.image.units.all();
                found.extend(units.flat_map(|unit| candidates(module, &unit, asker, &asked)));
            }
        }
        let nearest = found.iter().map(|candidate| candidate.distance).min()?;
        let mut nearest = found.iter().filter(|candidate| candidate.distance == nearest);
        let first = nearest.next()?;
        // If several have such a name, it is not said which one is meant.
        let name = first.global().name();
        let is_clear = first.distance.outwards != Distance::BY_LAST_PARTS
            || nearest.all(|other| other.global().name() == name);
        is_clear.then(|| first.value(memory)).flatten()
    }

    /// The variable around an address, by the name that the linker's tables give it.
    pub(crate) fn global_around(
        &self,
        memory: &dyn Memory,
        module: &Module,
        name: &str,
        at: u64,
    ) -> Option<Value> {
        let is_named = |part: &&str| *part != "(anonymous namespace)";
        let asked: Vec<&str> = name.split("::").filter(is_named).collect();
        let asker = Asker::default();
        let mut units = module.image.units.all();
        units.find_map(|unit| {
            let mut found = candidates(module, &unit, &asker, &asked).into_iter();
            found.find_map(|found| {
                let value = found.value(memory)?.ok()?;
                value.around(at).is_some().then_some(value)
            })
        })
    }
}
