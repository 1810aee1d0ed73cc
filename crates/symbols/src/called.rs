//! The functions of a frame by name and line: a real one, and those inlined into it.

use crate::{Frame, LinkAddress, Module, Modules, SourceLine, Statement};

/// A function that has been called and has not returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// None if no table names it.
    pub function: Option<String>,
    pub line: Option<SourceLine>,
    /// The file that its code is in; none for code that was made at run time.
    pub module: Option<String>,
    /// Its code is part of the next function's.
    pub inlined: bool,
    /// Its source is known and is the program's own, as far as one can tell: neither of a
    /// library of the system nor of the compiler.
    pub is_own: bool,
    /// Its file comes with the system, as far as one can tell.
    pub is_of_system: bool,
}

impl Module {
    /// The functions that an instruction belongs to, the innermost first, with the line that it
    /// was made from. There is always one.
    pub fn functions(&self, address: LinkAddress) -> Vec<Called> {
        called_in(self, address, self.image.line(address), None)
    }
}

impl Modules {
    /// The functions that a frame is of, the innermost first. There is always one.
    pub fn called(&self, frame: &Frame) -> Vec<Called> {
        self.called_at(frame, None)
    }

    /// The same at one of several statements that begin where the frame is, if one is given.
    pub fn called_at(&self, frame: &Frame, statement: Option<&Statement>) -> Vec<Called> {
        match self.at(frame.lookup()) {
            Some(module) => {
                let address = module.linked(frame.lookup());
                let meant = statement.map(|statement| statement.line.clone());
                let line = meant.or_else(|| module.image.statement(address));
                called_in(module, address, line, statement)
            }
            None => vec![Called::default()],
        }
    }
}

/// The innermost is in the line that is given.
fn called_in(
    module: &Module,
    address: LinkAddress,
    line: Option<SourceLine>,
    statement: Option<&Statement>,
) -> Vec<Called> {
    let image = &module.image;
    let name = Some(module.short_name().to_owned());
    let mut line = line;
    let mut all = Vec::new();
    for scope in image.units.scopes_of(address, statement) {
        let unit = &scope.function.unit;
        let entry = scope.function.entry();
        let function = entry.as_ref().and_then(|entry| image.units.function_name(unit, entry));
        // The next function is where this one was to be called.
        let call = entry.as_ref().and_then(|entry| image.call_site(unit, entry));
        let here = std::mem::replace(&mut line, call);
        let is_own = here.as_ref().is_some_and(|line| !image.is_of_system && is_own(line));
        let inlined = scope.inlined;
        let is_of_system = image.is_of_system;
        let module = name.clone();
        all.push(Called { function, line: here, module, inlined, is_own, is_of_system });
    }
    if all.is_empty() {
        let function = image.symbol(address).map(|(name, _)| name);
        let is_of_system = image.is_of_system;
        all.push(Called { function, line, module: name, is_of_system, ..Called::default() });
    }
    all
}

/// Where compilers and systems keep sources that come with them.
const OTHERS: [&str; 4] = ["/rustc/", "/rust/deps/", "/usr/include/", "/usr/lib/gcc/"];

pub(crate) fn is_own(line: &SourceLine) -> bool {
    is_own_file(&line.file)
}

pub(crate) fn is_own_file(file: &str) -> bool {
    !OTHERS.iter().any(|place| file.starts_with(place))
}
