//! A slice in lines of source: each once, with the reason that is easiest to follow.
//!
//! The reasons of a slice form a tree of instructions. Instructions of one line are one thing to
//! a reader, so the way from one line to the next is what counts: fewer detours over addresses
//! and conditions first, then fewer lines.

use crate::criterion::Code;
use crate::images::Images;
use crate::slice::loader::{self, Linking};
use crate::slice::times;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use why_engine::Module;
use why_slice::Role;
use why_slice::backward::Area;
use why_slice::reasons::{Reason, Via};
use why_symbols::{LineSearch, LinkAddress};

/// A line of the slice.
pub struct Line {
    pub place: Place,
    /// How often it was executed for this.
    pub times: u64,
    /// Which of the lines depends on it; none if what was asked for does.
    pub parent: Option<usize>,
    pub kind: Kind,
    /// The reason that is told, by its number.
    pub reason: usize,
    /// The one of what it made that a reader would name: rather memory than a register.
    pub made: usize,
    /// It is shown instead of code that it called.
    pub calls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub function: Option<String>,
    /// None of code without source.
    pub source: Option<(String, u64)>,
    /// Where the first instruction of it is that was found.
    pub module: Option<String>,
}

impl Place {
    /// `file:line`, or what else there is to tell where it is.
    pub fn told(&self) -> String {
        self.told_with(|file| file.rsplit('/').next().unwrap_or(file))
    }

    /// The same with names for files.
    pub fn told_with<'a>(&'a self, name: impl Fn(&'a str) -> &'a str) -> String {
        match (&self.source, &self.function, &self.module) {
            (Some((file, line)), ..) => format!("{}:{line}", name(file)),
            (None, Some(function), _) => function.clone(),
            (None, None, Some(module)) => module.clone(),
            (None, None, None) => "code of no file".to_owned(),
        }
    }
}

/// How a line's parent depends on it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It made a value from which the other was computed.
    Value,
    /// It made what selected where a value is.
    Address,
    /// It made what a decision was taken by.
    Condition,
    /// It decided that the other was executed.
    Decided,
}

/// How far something is from what was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Distance {
    detours: u32,
    lines: u32,
}

pub struct Lines {
    /// Those that are easiest to reach first.
    pub all: Vec<Line>,
    /// Functions without source that belong to the slice and that no line stands for, with how
    /// many instructions.
    pub without_source: Vec<(String, u64)>,
}

impl Kind {
    pub fn of(reason: &Reason) -> Kind {
        match (&reason.via, reason.role) {
            (Via::Decided, _) => Kind::Decided,
            (_, Role::Value) => Kind::Value,
            (_, Role::Address) => Kind::Address,
            (_, Role::Condition) => Kind::Condition,
        }
    }

    /// What it costs to follow.
    fn detours(self) -> u32 {
        match self {
            Kind::Value => 0,
            Kind::Address | Kind::Condition => 1,
            Kind::Decided => 2,
        }
    }
}

/// Finds the lines that addresses belong to.
pub struct Sources<'a> {
    modules: Vec<why_symbols::Module>,
    known: HashMap<u64, usize>,
    /// Those of code that was inlined.
    called: HashSet<u64>,
    /// Where the stretches begin that addresses are of.
    begun: HashMap<u64, u64>,
    places: Vec<Place>,
    by_place: HashMap<Place, usize>,
    programs: &'a [String],
}

impl<'a> Sources<'a> {
    pub fn new(modules: &[Module], images: &mut Images, programs: &'a [String]) -> Sources<'a> {
        let modules = modules.iter().rev().filter_map(|module| images.module(module)).collect();
        let (known, called, begun, places, by_place) = Default::default();
        Sources { modules, known, called, begun, places, by_place, programs }
    }

    /// The ranges of code that a name stands for: a mapped file, a source or a function.
    pub fn code_named(&self, name: &str) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        for module in &self.modules {
            if module.short_name() == name || module.short_name().starts_with(&format!("{name}.")) {
                found.push(module.range.clone());
            } else {
                let functions = module.image.search_function(name);
                let functions = functions.iter().filter_map(|at| module.image.extent(*at));
                let of_source = module.image.code_of_file(name);
                let ranges = functions.chain(of_source);
                found.extend(
                    ranges.map(|range| module.mapped(range.start)..module.mapped(range.end)),
                );
            }
        }
        found
    }

    /// Where some code is, in lines.
    pub fn lines_of(&self, code: &Code) -> BTreeSet<(String, u64)> {
        let mut lines = BTreeSet::new();
        for module in &self.modules {
            let addresses = match code {
                Code::Function(name) => module.image.search_function(name),
                Code::Line { file, line } => {
                    let mut found = LineSearch::default();
                    module.image.search_line(file, *line, &mut found);
                    found.addresses
                }
            };
            let told = addresses.into_iter().filter_map(|at| module.image.line(at));
            lines.extend(told.map(|line| (line.file, line.line)));
        }
        lines
    }

    /// The code that links the program.
    pub fn linking(&self) -> Linking {
        // If that is what was run, it is of interest.
        let is_program = |module: &&why_symbols::Module| self.programs.contains(&module.name);
        let loaders = self.modules.iter().filter(|module| loader::is_loader(module));
        Linking::of(loaders.filter(|module| !is_program(module)))
    }

    pub fn modules(&self) -> &[why_symbols::Module] {
        &self.modules
    }

    /// The file that an address is of.
    pub fn module(&self, address: u64) -> Option<&why_symbols::Module> {
        self.modules.iter().find(|module| module.range.contains(&address))
    }

    /// Where an address is.
    pub fn place_of(&mut self, address: u64) -> &Place {
        let number = self.place(address);
        &self.places[number]
    }

    /// Where an address is, in words.
    pub fn told(&mut self, address: u64) -> String {
        self.place_of(address).told()
    }

    /// The number of where an address is.
    pub fn place(&mut self, address: u64) -> usize {
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let (place, is_called) = self.find(address);
        if is_called {
            self.called.insert(address);
        }
        let next = self.places.len();
        let number = *self.by_place.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        self.known.insert(address, number);
        number
    }

    /// Where the stretch of its line begins that the code at an address is of. Where no statement
    /// begins, it belongs to the one before.
    pub fn begun(&mut self, address: u64) -> u64 {
        if let Some(known) = self.begun.get(&address) {
            return *known;
        }
        let begun = self.find_begun(address).unwrap_or(address);
        self.begun.insert(address, begun);
        begun
    }

    fn find_begun(&mut self, address: u64) -> Option<u64> {
        let module = self.module(address)?.clone();
        let place = self.place(address);
        let entry = module.image.function(module.linked(address));
        let (mut at, mut begun) = (module.linked(address), None);
        while let Some((row, is_statement)) = module.image.row_begun(at) {
            let start = module.mapped(row);
            if self.place(start) == place {
                begun = if is_statement { Some(start) } else { begun };
            } else if begun.is_some() {
                break;
            }
            if entry.is_none_or(|entry| row <= entry) {
                break;
            }
            at = LinkAddress(row.0 - 1);
        }
        begun.or_else(|| entry.map(|entry| module.mapped(entry)))
    }

    /// Whether code was made by a compiler that optimises.
    pub fn is_optimised(&self, address: u64) -> bool {
        self.module(address).is_some_and(|module| module.image.is_optimised(module.linked(address)))
    }

    /// Whether code was inlined into the program's own and is not itself that.
    pub fn is_called(&mut self, address: u64) -> bool {
        self.place(address);
        self.called.contains(&address)
    }

    /// Where an address is, and whether its code was inlined there.
    fn find(&self, address: u64) -> (Place, bool) {
        let Some(module) = self.module(address) else {
            return (Place { function: None, source: None, module: None }, false);
        };
        let linked = module.linked(address);
        let functions = module.functions(linked);
        // What a function does before its first statement is to copy what it was called with.
        if module.image.is_in_prologue(linked) {
            let module = Some(module.short_name().to_owned());
            return (Place { function: None, source: None, module }, false);
        }
        let own = functions.iter().find(|called| called.is_own);
        let told = own.or(functions.last());
        let function = told.and_then(|called| called.function.clone()).or_else(|| {
            // Of what was stripped of its names, where the function begins.
            let entry = module.image.function(linked)?;
            Some(format!("{}+{:#x}", module.short_name(), entry.0))
        });
        let line = own.and_then(|called| called.line.clone());
        let source = line.map(|line| (line.file, line.line));
        let is_called = own.is_some() && !functions[0].is_own;
        (Place { function, source, module: Some(module.short_name().to_owned()) }, is_called)
    }

    /// The lines that some instructions are of, by their numbers; code of a program without
    /// source is told by its functions.
    pub fn lines(&mut self, addresses: impl IntoIterator<Item = u64>) -> BTreeSet<usize> {
        let places: HashSet<usize> = addresses.into_iter().map(|at| self.place(at)).collect();
        let told =
            |place: &&usize| self.places[**place].source.is_some() || self.is_program_code(**place);
        places.iter().filter(told).copied().collect()
    }

    /// A line by its number.
    pub fn line_told(&self, number: usize) -> String {
        self.places[number].told()
    }

    /// Folds the reasons of a slice to lines; of code that jumps like that.
    pub fn fold(mut self, reasons: &[Reason], jumps: impl Iterator<Item = (u64, u64)>) -> Lines {
        let places: Vec<usize> = reasons
            .iter()
            .map(|reason| self.place(reason.site.unwrap_or(reason.address)))
            .collect();
        let distances = distances(reasons, &places);
        let within = within(reasons, &places);
        // For each place the reason that is nearest; the others count.
        let mut nearest: HashMap<usize, usize> = HashMap::new();
        let mut made: HashMap<usize, usize> = HashMap::new();
        let times = times::of(&mut self, (reasons, &places), jumps);
        for (number, reason) in reasons.iter().enumerate() {
            let place = places[number];
            let best = nearest.entry(place).or_insert(number);
            if distances[number] < distances[*best] {
                *best = number;
            }
            if matches!(reason.via, Via::Made(Area::Memory(_)) | Via::Wrote(_)) {
                made.entry(place).or_insert(number);
            }
        }
        let has_line = |place: usize| self.places[place].source.is_some();
        let mut chosen: Vec<usize> = nearest.values().copied().collect();
        chosen.sort_unstable_by_key(|number| (distances[*number], *number));
        let shown =
            |number: &usize| has_line(places[*number]) || self.is_program_code(places[*number]);
        let (with, without): (Vec<usize>, Vec<usize>) = chosen.into_iter().partition(shown);
        let numbers: HashMap<usize, usize> =
            with.iter().enumerate().map(|(line, number)| (places[*number], line)).collect();
        let line = |&number: &usize| {
            let (place, mut kind) = (places[number], Kind::of(&reasons[number]));
            // The first that belongs to another line; what is between is part of this one or
            // of nobody.
            let mut above = reasons[number].wanter;
            while let Some(other) = above
                .filter(|other| places[*other] == place || !numbers.contains_key(&places[*other]))
            {
                kind = kind.max(Kind::of(&reasons[other]));
                above = reasons[other].wanter;
            }
            kind = kind.max(above.map_or(Kind::Value, |above| within[above]));
            Line {
                place: self.places[place].clone(),
                times: times[&place],
                parent: above.map(|above| numbers[&places[above]]),
                kind,
                reason: number,
                made: made.get(&place).copied().unwrap_or(number),
                calls: reasons[number].site.is_some(),
            }
        };
        let all = with.iter().map(line).collect();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for number in without {
            let Place { function, module, .. } = &self.places[places[number]];
            let module = module.as_deref().unwrap_or("code of no file");
            let name = match function {
                Some(function) => format!("{function} in {module}"),
                None => module.to_owned(),
            };
            let own = reasons.iter().zip(&places).filter(|(_, place)| **place == places[number]);
            *counts.entry(name).or_default() += own.map(|(reason, _)| reason.times).sum::<u64>();
        }
        let mut without_source: Vec<(String, u64)> = counts.into_iter().collect();
        without_source.sort_unstable_by_key(|(name, count)| (u64::MAX - count, name.clone()));
        Lines { all, without_source }
    }

    /// Code of a program that has no source at all is told by its functions.
    fn is_program_code(&self, place: usize) -> bool {
        let of = self.places[place].module.as_deref();
        self.modules.iter().any(|module| {
            let is_program = self.programs.contains(&module.name);
            is_program && of == Some(module.short_name()) && !module.image.has_lines()
        })
    }
}

/// How the result of a line depends on each of its instructions.
fn within(reasons: &[Reason], places: &[usize]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::with_capacity(reasons.len());
    for (number, reason) in reasons.iter().enumerate() {
        let within = reason.wanter.filter(|wanter| places[*wanter] == places[number]);
        kinds.push(within.map_or(Kind::Value, |wanter| kinds[wanter].max(Kind::of(reason))));
    }
    kinds
}

fn distances(reasons: &[Reason], places: &[usize]) -> Vec<Distance> {
    let mut distances: Vec<Distance> = Vec::with_capacity(reasons.len());
    for (number, reason) in reasons.iter().enumerate() {
        let distance = match reason.wanter {
            None => Distance { detours: Kind::of(reason).detours(), lines: 0 },
            // Whoever depends on something is told before it.
            Some(wanter) => {
                let Distance { detours, lines } = distances[wanter];
                let next = u32::from(places[wanter] != places[number]);
                Distance { detours: detours + Kind::of(reason).detours(), lines: lines + next }
            }
        };
        distances.push(distance);
    }
    distances
}
