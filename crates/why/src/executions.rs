//! The executions of a line or function in a recording: how many there are, where the last
//! one is, and when one is over.

use crate::criterion::Code;
use crate::images::{Images, SceneMemory, innermost};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use why_engine::{Module, Scene};
use why_record::position::Position;
use why_record::registers::RIP;
use why_symbols::{
    Called, CloseNames, Expression, Image, Leaving, Left, LineSearch, LinkAddress, Viewpoint,
};

/// Why there is no answer about a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Absent {
    /// The process has such code, and never executed it.
    Never(Code),
    /// What else is to be told.
    Because(String),
}

impl Display for Absent {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Absent::Never(code) => write!(f, "{code} was never executed"),
            Absent::Because(why) => f.write_str(why),
        }
    }
}

/// What is known of some code once a recording has been replayed.
#[derive(Debug, Default)]
pub struct Counted {
    pub times: u64,
    /// There is such code, though it need not have been executed.
    is_known: bool,
    file_is_known: bool,
    next_line: Option<u64>,
    last_line: Option<u64>,
    /// Functions with nearly that name.
    close_names: CloseNames,
    /// Whether the program, which is mapped first, has any function with a name.
    has_names: Option<bool>,
    /// Files that are meant, and have code of the line.
    files: BTreeSet<String>,
}

impl Counted {
    /// Where the code begins, as far as it is in a file.
    pub fn look_for(&mut self, code: &Code, image: &Image) -> BTreeSet<LinkAddress> {
        match code {
            Code::Function(name) => {
                let found = image.search_function(name);
                if found.is_empty() {
                    self.look_beside(name, image);
                }
                self.has_names.get_or_insert_with(|| {
                    !found.is_empty() || image.function_names().next().is_some()
                });
                found
            }
            Code::Line { file, line } => {
                let mut search = LineSearch::default();
                image.search_line(file, *line, &mut search);
                self.file_is_known |= search.file_is_known;
                let next = [self.next_line, search.next_line];
                self.next_line = next.into_iter().flatten().min();
                self.last_line = self.last_line.max(search.last_line);
                self.files.extend(search.files);
                search.addresses
            }
        }
    }

    /// What may be meant by a name that no function has.
    fn look_beside(&mut self, name: &str, image: &Image) {
        self.close_names.add(name, image.function_names());
        if name.contains('.') {
            let mut search = LineSearch::default();
            image.search_line(name, 0, &mut search);
            self.file_is_known |= search.file_is_known;
            self.next_line = self.next_line.or(search.next_line);
        }
    }

    /// Where that is in a module of the file.
    pub fn place(
        &mut self,
        linked: &BTreeSet<LinkAddress>,
        module: &why_symbols::Module,
    ) -> Vec<u64> {
        let mapped = linked.iter().map(|address| module.mapped(*address));
        let inside: Vec<u64> = mapped.filter(|at| module.range.contains(at)).collect();
        self.is_known |= !inside.is_empty();
        inside
    }

    /// Which one is meant, if several files have the name that was given.
    pub fn several(&self, code: &Code) -> Option<String> {
        let (Code::Line { file, .. }, 2..) = (code, self.files.len()) else {
            return None;
        };
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        Some(format!("{file} may be any of {}; give more of its path", files.join(", ")))
    }

    /// Why there is no such execution.
    pub fn none(&self, code: &Code, number: Option<u64>) -> Absent {
        let is_executed = self.times > 0 && number.is_some();
        match self.several(code) {
            None if self.is_known && !is_executed => Absent::Never(code.clone()),
            several => Absent::Because(several.unwrap_or_else(|| self.why(code, number))),
        }
    }

    fn why(&self, code: &Code, number: Option<u64>) -> String {
        match (code, number) {
            (_, Some(number)) if self.times > 0 => {
                format!("{code} was executed only {}, and not {number}", times(self.times))
            }
            (Code::Line { file, .. }, _) if !self.file_is_known => format!(
                "no code that was executed was made from a file {file}; was the program built \
                 with -g?"
            ),
            (Code::Line { line, .. }, _) => match (self.next_line, self.last_line) {
                (Some(next), _) => {
                    format!("there is no code of line {line}; the next line is {next}")
                }
                (None, last) => format!(
                    "there is no code of line {line}, nor of any behind it; the last line is {}",
                    last.unwrap_or(0)
                ),
            },
            (Code::Function(name), _) if self.file_is_known => format!(
                "{name} is a file, and no function: give FILE:LINE, such as {name}:{}",
                self.next_line.unwrap_or(1)
            ),
            (Code::Function(name), _) if self.has_names == Some(false) => format!(
                "there is no function {name}: the program has no symbols; give a position, \
                 stdout:N, crash or end"
            ),
            (Code::Function(name), _) => {
                format!("there is no function {name} in what was mapped{}", self.close_names.told())
            }
        }
    }
}

/// How often something was.
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Follows the executions of some code through a replay.
pub struct Executions {
    pub code: Code,
    found: Counted,
    /// Where it begins.
    addresses: BTreeSet<u64>,
    /// The last execution up to where the replay has come, and the last one that began at each of
    /// the addresses.
    last: Option<Position>,
    last_at: BTreeMap<u64, Position>,
    /// The one that is meant instead of the last of all.
    meant: Option<Position>,
}

impl Executions {
    pub fn new(code: Code) -> Executions {
        Executions {
            code,
            found: Counted::default(),
            addresses: BTreeSet::new(),
            last: None,
            last_at: BTreeMap::new(),
            meant: None,
        }
    }

    /// Where the code begins in a new module.
    pub fn mapped(&mut self, module: &Module, images: &mut Images) -> Vec<u64> {
        // Whatever was there before is gone.
        self.addresses.retain(|address| !module.range.contains(address));
        let Some(module) = images.module(module) else {
            return Vec::new();
        };
        let linked = self.found.look_for(&self.code, &module.image);
        let addresses = self.found.place(&linked, &module);
        self.addresses.extend(&addresses);
        addresses
    }

    /// A thread has come to a watched address: the number of the execution that begins there,
    /// if one does. One that was seen before does not count again.
    pub fn reached(&mut self, scene: &Scene) -> Option<u64> {
        let pc = scene.registers.0[RIP];
        if !self.addresses.contains(&pc) || self.last >= Some(scene.position) {
            return None;
        }
        self.last = Some(scene.position);
        self.last_at.insert(pc, scene.position);
        self.found.times += 1;
        Some(self.found.times)
    }

    /// The last execution, if no other one is meant.
    pub fn last(&self) -> Option<Position> {
        self.meant.or(self.last)
    }

    /// A line that has a lambda or closure is executed in several functions. Where the last one has
    /// no variable of a name, the last execution in a function that has is meant: whether there is
    /// one.
    pub fn look_elsewhere(
        &mut self,
        scene: &Scene,
        images: &mut Images,
        wanted: &Expression,
    ) -> bool {
        if self.meant.is_some() || !matches!(self.code, Code::Line { .. }) {
            return false;
        }
        let modules = images.modules(scene);
        let has = |pc: u64, name: &str| {
            modules.at(pc).is_some_and(|module| module.has_variable(module.linked(pc), name))
        };
        let mut unknown = wanted.names();
        unknown.retain(|name| !has(scene.registers.0[RIP], name));
        let knows = |pc: u64| unknown.iter().any(|name| has(pc, name));
        let knowing = self.last_at.iter().filter(|(pc, _)| knows(**pc));
        self.meant = knowing.map(|(_, position)| *position).max();
        self.meant.is_some()
    }

    /// Of several statements that begin where the thread has come to, before which one a function
    /// begins that is executed there.
    pub fn view_of_entry(&self, scene: &Scene, images: &mut Images) -> Option<u64> {
        let Code::Function(name) = &self.code else { return None };
        let pc = scene.registers.0[RIP];
        let modules = images.modules(scene);
        let module = modules.at(pc)?;
        Some(module.image.view_of_entry(module.linked(pc), name))
    }

    /// Whether it cannot be told which code is meant.
    pub fn several(&self) -> Option<String> {
        self.found.several(&self.code)
    }

    /// Why there is no such execution.
    pub fn none(&self, number: Option<u64>) -> Absent {
        self.found.none(&self.code, number)
    }
}

/// A line that is being executed.
pub struct Within {
    thread: i32,
    pub begun: Position,
    /// What the stack pointer was before its function was called.
    pub cfa: u64,
    /// Its names mean the same until it is left, wherever the thread goes then.
    pub viewpoint: Viewpoint,
    leaving: Leaving,
    /// Where the file that it is in is mapped: the way from there to its own addresses.
    slide: u64,
    /// Where its function returns to.
    caller: Option<u64>,
}

/// What has come of a line.
pub enum Course {
    /// It is being executed, or others are in between.
    GoesOn,
    /// It is left here, before a statement; and perhaps for good.
    Left { view: u64, for_good: bool },
    /// It was left for good, where it was seen to be left last.
    IsOver,
}

impl Course {
    fn of(left: Left) -> Course {
        match left {
            Left { here: Some(view), for_good } => Course::Left { view, for_good },
            Left { here: None, .. } => Course::IsOver,
        }
    }
}

impl Within {
    /// None if it cannot be told when the line is left. The function that it is in may call
    /// itself: only its own frame counts.
    pub fn new(scene: &Scene, images: &mut Images, code: &Code) -> Option<Within> {
        let Code::Line { file, line } = code else {
            return None;
        };
        let modules = images.modules(scene);
        let trace = modules.backtrace(&SceneMemory(scene), innermost(scene));
        let frame = trace.frames.first()?;
        let module = modules.at(frame.pc)?;
        let called = modules.called(frame);
        // Where a call begins that was inlined, functions around it are in the line as well.
        let is_in_it =
            |called: &Called| called.line.as_ref().is_some_and(|told| told.is_meant(file, *line));
        let function = called.iter().rposition(is_in_it);
        let address = module.linked(frame.pc);
        let begun = module.image.line_begun(address, file, *line);
        let line = begun.or_else(|| called[function?].line.clone());
        let leaving = line.as_ref().map(|line| module.image.leaving(address, line));
        let leaving = leaving.unwrap_or_default();
        let view = leaving.view(address);
        let statement =
            line.zip(view).and_then(|(line, view)| module.image.statement_of(address, view, &line));
        let functions = match statement {
            Some(_) => vec![0],
            None => {
                let function = function.unwrap_or(0);
                let others = (0..called.len()).filter(|other| *other != function);
                std::iter::once(function).chain(others).collect()
            }
        };
        Some(Within {
            thread: scene.thread,
            begun: scene.position,
            cfa: frame.cfa?,
            viewpoint: Viewpoint { pc: frame.pc, functions, view: None, statement },
            leaving,
            slide: frame.pc.wrapping_sub(address.0),
            caller: trace.frames.get(1).map(|caller| caller.pc),
        })
    }

    /// It begins, and may be left right here, as nothing of it is left.
    pub fn begin(&mut self) -> Course {
        let Some((view, left)) = self.leaving.begin(self.linked(self.viewpoint.pc)) else {
            return Course::IsOver;
        };
        self.viewpoint.view = Some(view);
        left.map_or(Course::GoesOn, Course::of)
    }

    /// Whether what its thread executed last is of it: else it was left, and perhaps not for good.
    pub fn is_in_it(&self) -> bool {
        self.leaving.is_in_it()
    }

    /// From which of several statements that begin where the thread is now it is seen.
    pub fn see_from(&mut self, view: Option<u64>) {
        self.viewpoint.view = view;
    }

    /// Where the thread has to be looked at.
    pub fn addresses(&self) -> Vec<u64> {
        let own = self.leaving.addresses().map(|address| address.0.wrapping_add(self.slide));
        own.chain(self.caller).collect()
    }

    fn linked(&self, address: u64) -> LinkAddress {
        LinkAddress(address.wrapping_sub(self.slide))
    }

    /// Whether its thread is to go on.
    pub fn is_of(&self, scene: &Scene) -> bool {
        scene.thread == self.thread
    }

    /// A thread has come to a watched address.
    pub fn reach(&mut self, scene: &Scene, images: &mut Images) -> Course {
        let pc = scene.registers.0[RIP];
        let is_row = self.leaving.has(self.linked(pc));
        let is_watched = is_row || self.caller == Some(pc);
        // Who has gone back to where it begins is told of that once more.
        if !self.is_of(scene) || !is_watched || scene.position == self.begun {
            return Course::GoesOn;
        }
        let modules = images.modules(scene);
        let trace = modules.backtrace(&SceneMemory(scene), innermost(scene));
        let innermost = trace.frames.first().and_then(|frame| frame.cfa);
        match innermost.map(|now| now.cmp(&self.cfa)) {
            Some(Ordering::Equal) if is_row => {
                self.leaving.reach(self.linked(pc)).map_or(Course::GoesOn, Course::of)
            }
            // Its function has returned.
            Some(Ordering::Greater) => Course::IsOver,
            _ => Course::GoesOn,
        }
    }
}
