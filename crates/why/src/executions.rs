//! The executions of a line or function in a recording: how many there are, and a look at
//! one of them.

use crate::criterion::Code;
use crate::images::{Images, SceneMemory, innermost};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use why_engine::{Module, Observer, Scene, Then};
use why_record::registers::RIP;
use why_symbols::{Image, LineSearch, LinkAddress};

/// What is known of some code once a recording has been replayed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    pub times: u64,
    /// There is such code, though it need not have been executed.
    is_known: bool,
    file_is_known: bool,
    next_line: Option<u64>,
}

impl Counted {
    /// Where the code begins, as far as it is in a file.
    pub fn look_for(&mut self, code: &Code, image: &Image) -> BTreeSet<LinkAddress> {
        match code {
            Code::Function(name) => image.search_function(name),
            Code::Line { file, line } => {
                let mut search = LineSearch::default();
                image.search_line(file, *line, &mut search);
                self.file_is_known |= search.file_is_known;
                let next = [self.next_line, search.next_line];
                self.next_line = next.into_iter().flatten().min();
                search.addresses
            }
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

    /// Why there is no such execution.
    pub fn none(&self, code: &Code, number: Option<u64>) -> String {
        match (code, number) {
            (_, Some(number)) if self.times > 0 => {
                format!("{code} was executed only {}, and not {number}", times(self.times))
            }
            _ if self.is_known => format!("{code} was never executed"),
            (Code::Line { file, .. }, _) if !self.file_is_known => format!(
                "no code that was executed was made from a file {file}; was the program built \
                 with -g?"
            ),
            (Code::Line { line, .. }, _) => match self.next_line {
                Some(next) => format!("there is no code of line {line}; the next line is {next}"),
                None => format!("there is no code of line {line}, nor of any behind it"),
            },
            (Code::Function(name), _) => {
                format!("there is no function {name} in what was mapped")
            }
        }
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Finds code in the files that a process maps.
struct Finder {
    code: Code,
    images: Images,
    found: Counted,
}

impl Finder {
    fn addresses(&mut self, module: &Module) -> Vec<u64> {
        match self.images.module(module) {
            Some(module) => {
                let linked = self.found.look_for(&self.code, &module.image);
                self.found.place(&linked, &module)
            }
            None => Vec::new(),
        }
    }
}

/// Counts all executions.
pub struct Counter(Finder);

impl Counter {
    pub fn new(code: Code, images: Images) -> Counter {
        Counter(Finder { code, images, found: Counted::default() })
    }
}

impl Observer for Counter {
    fn mapped(&mut self, module: &Module) -> Vec<u64> {
        self.0.addresses(module)
    }

    fn reached(&mut self, _scene: &Scene) -> Then {
        self.0.found.times += 1;
        Then::GoOn
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.0.found).expect("plain data")
    }
}

/// Who looks at an execution.
pub trait View {
    /// At a moment; of the frame with this canonical frame address, if one is given.
    fn look(&mut self, scene: &Scene, images: &mut Images, frame: Option<u64>);

    fn answer(&mut self) -> serde_json::Value;
}

/// Looks at one execution: at its beginning, or when the line is left.
pub struct Execution<V> {
    finder: Finder,
    /// Which one.
    number: u64,
    when_left: bool,
    /// The line is being executed.
    within: Option<Within>,
    view: V,
    seen: bool,
}

struct Within {
    thread: i32,
    /// What the stack pointer was before its function was called.
    cfa: u64,
    ways_off: BTreeSet<u64>,
}

impl<V: View> Execution<V> {
    pub fn new(code: Code, number: u64, when_left: bool, images: Images, view: V) -> Execution<V> {
        let finder = Finder { code, images, found: Counted::default() };
        Execution { finder, number, when_left, within: None, view, seen: false }
    }

    /// Where the thread goes when it leaves the line. The function that it is in may call
    /// itself: only its own frame counts.
    fn within(&mut self, scene: &Scene) -> Option<Within> {
        let modules = self.finder.images.modules(scene);
        let trace = modules.backtrace(&SceneMemory(scene), innermost(scene));
        let frame = trace.frames.first()?;
        let module = modules.at(frame.pc)?;
        let ways = module.image.ways_off_line(module.linked(frame.pc));
        let ways = ways.into_iter().map(|way| module.mapped(way));
        let caller = trace.frames.get(1).map(|caller| caller.pc);
        let ways_off = ways.chain(caller).collect();
        Some(Within { thread: scene.thread, cfa: frame.cfa?, ways_off })
    }

    /// Whether the line has been left, and its function's frame if it is still there.
    fn has_left(&mut self, scene: &Scene) -> Option<Option<u64>> {
        let within = self.within.as_ref()?;
        let (thread, cfa) = (within.thread, within.cfa);
        if scene.thread != thread || !within.ways_off.contains(&scene.registers.0[RIP]) {
            return None;
        }
        let modules = self.finder.images.modules(scene);
        let trace = modules.backtrace(&SceneMemory(scene), innermost(scene));
        let innermost = trace.frames.first().and_then(|frame| frame.cfa);
        match innermost {
            Some(now) if now == cfa => Some(Some(cfa)),
            Some(now) if now > cfa => Some(None),
            _ => None,
        }
    }
}

impl<V: View> Observer for Execution<V> {
    fn mapped(&mut self, module: &Module) -> Vec<u64> {
        self.finder.addresses(module)
    }

    fn reached(&mut self, scene: &Scene) -> Then {
        if self.within.is_some() {
            return match self.has_left(scene) {
                None => Then::GoOn,
                Some(frame) => {
                    if frame.is_some() {
                        self.view.look(scene, &mut self.finder.images, frame);
                    }
                    Then::Enough
                }
            };
        }
        self.finder.found.times += 1;
        if self.finder.found.times != self.number {
            return Then::GoOn;
        }
        self.seen = true;
        // If its function returns in this line, that is all there is to be seen.
        self.view.look(scene, &mut self.finder.images, None);
        self.within = if self.when_left { self.within(scene) } else { None };
        match &self.within {
            Some(within) => Then::Watch(within.ways_off.iter().copied().collect()),
            None => Then::Enough,
        }
    }

    /// The process has ended within the line.
    fn arrived(&mut self, scene: &Scene) {
        if let Some(within) = &self.within {
            let cfa = within.cfa;
            self.view.look(scene, &mut self.finder.images, Some(cfa));
        }
    }

    fn answer(&mut self) -> serde_json::Value {
        match self.seen {
            true => serde_json::json!({ "seen": self.view.answer() }),
            false => serde_json::json!({ "none": self.finder.found }),
        }
    }
}
