//! Where the ways from a branch meet again, by the code of the files that were mapped.

use crate::images::Images;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use why_engine::Module;
use why_flow::{BlockId, Graph, PostDominators, Program};
use why_slice::Ways;
use why_symbols::{Image, Landing, LinkAddress};

/// The modules that are mapped so far, the last one first where they overlap. They are found
/// where the replay is and needed where its trace is read.
pub type Mapped = Arc<Mutex<Vec<Module>>>;

pub struct MappedWays {
    mapped: Mapped,
    images: RefCell<Images>,
    /// The program itself, as opposed to libraries.
    program: String,
    meets: RefCell<HashMap<Function, Rc<Meets>>>,
    /// Where indirect jumps of files were seen to lead, and the functions whose ways are others
    /// because of that.
    seen: HashMap<*const Image, Targets>,
    changed: HashSet<Function>,
}

/// Of one file, by jump.
type Targets = HashMap<u64, Vec<u64>>;

/// A function of a file, by its entry.
type Function = (*const Image, u64);

/// Where the ways from the branches of a function meet.
#[derive(Default)]
struct Meets {
    /// By branch.
    by_branch: HashMap<u64, u64>,
    places: HashSet<u64>,
    /// Where those from a landing pad meet those from behind the calls that lead to it.
    landings: HashMap<u64, u64>,
}

impl MappedWays {
    pub fn new(mapped: Mapped, images: Images, program: String) -> MappedWays {
        let (images, meets) = (RefCell::new(images), RefCell::default());
        let (seen, changed) = Default::default();
        MappedWays { mapped, images, program, meets, seen, changed }
    }

    fn module(&self, address: u64) -> Option<why_symbols::Module> {
        let mapped = self.mapped.lock().expect("no panic");
        let module = mapped.iter().rev().find(|module| module.range.contains(&address))?;
        self.images.borrow_mut().module(module)
    }

    fn graph(&self, image: &Rc<Image>, entry: u64) -> Graph {
        let seen = self.seen.get(&Rc::as_ptr(image));
        Graph::of(&OfImage { image, seen, landings: RefCell::default() }, entry)
    }

    /// The function that an address lies in, and the address in its file.
    fn function(&self, address: u64) -> Option<(Rc<Image>, u64, u64)> {
        let module = self.module(address)?;
        let at = module.linked(address);
        let entry = module.image.function(at)?;
        Some((Rc::clone(&module.image), entry.0, at.0))
    }

    fn meets(&self, image: &Rc<Image>, entry: u64) -> Rc<Meets> {
        let found = || {
            let graph = self.graph(image, entry);
            let behind = PostDominators::of(&graph);
            let meet = |(number, block): (usize, &why_flow::Block)| {
                Some((block.last, graph.block(behind.behind(BlockId(number))?).start))
            };
            let by_branch: HashMap<u64, u64> =
                graph.blocks.iter().enumerate().filter_map(meet).collect();
            let landings: HashMap<u64, u64> =
                why_flow::landings(&graph, &behind).into_iter().collect();
            let places = by_branch.values().chain(landings.values()).copied().collect();
            Rc::new(Meets { by_branch, places, landings })
        };
        // Images are kept as long as this is, so their addresses are not used again.
        let key = (Rc::as_ptr(image), entry);
        self.meets.borrow_mut().entry(key).or_insert_with(found).clone()
    }

    /// Where the ways from an address meet, by one of its function's tables.
    fn found(&self, from: u64, table: impl Fn(&Meets) -> &HashMap<u64, u64>) -> Option<u64> {
        let module = self.module(from)?;
        let at = module.linked(from);
        let entry = module.image.function(at)?;
        let meet = table(&self.meets(&module.image, entry.0)).get(&at.0).copied();
        meet.map(|meet| module.mapped(LinkAddress(meet)))
    }
}

impl Ways for MappedWays {
    fn meet(&self, branch: u64) -> Option<u64> {
        self.found(branch, |meets| &meets.by_branch)
    }

    fn may_meet(&self, address: u64) -> bool {
        let Some(module) = self.module(address) else {
            return false;
        };
        let at = module.linked(address);
        let entry = module.image.function(at);
        entry.is_some_and(|entry| self.meets(&module.image, entry.0).places.contains(&at.0))
    }

    fn lands(&self, pad: u64) -> Option<u64> {
        self.found(pad, |meets| &meets.landings)
    }

    /// The linker's own way to a function of another file is part of the call.
    fn decides(&self, branch: u64) -> bool {
        !self.module(branch).is_some_and(|module| module.image.is_stub(module.linked(branch)))
    }

    fn learn_targets(&mut self, seen: &[(u64, u64)]) -> bool {
        // Those of one jump come one behind the other.
        let mut last: Option<(Function, Graph)> = None;
        for (jump, target) in seen {
            let (Some(from), Some(to)) = (self.function(*jump), self.function(*target)) else {
                continue;
            };
            let ((image, entry, jump), (_, _, target)) = (&from, &to);
            // Other jumps are calls.
            if !Rc::ptr_eq(image, &to.0) || *entry != to.1 {
                continue;
            }
            let function = (Rc::as_ptr(image), *entry);
            let known = match last.take().filter(|(of, _)| *of == function) {
                Some((_, graph)) => graph,
                None => self.graph(image, *entry),
            };
            let is_new = !leads(&known, *jump, *target);
            last = Some((function, known));
            if is_new {
                let of_image = self.seen.entry(Rc::as_ptr(image)).or_default();
                of_image.entry(*jump).or_default().push(*target);
                self.meets.borrow_mut().remove(&function);
                self.changed.insert(function);
            }
        }
        !self.changed.is_empty()
    }

    fn has_changed(&self, address: u64) -> bool {
        let function = self.function(address);
        function
            .is_some_and(|(image, entry, _)| self.changed.contains(&(Rc::as_ptr(&image), entry)))
    }

    /// What has source of the program's own; of a program without any, all of its code.
    fn is_shown(&self, address: u64) -> bool {
        self.module(address).is_some_and(|module| {
            let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
            let is_program = || name(&module.name) == name(&self.program);
            module.own_line(module.linked(address)).is_some()
                || is_program() && !module.image.has_lines()
        })
    }
}

/// Whether a jump is known to lead to a target.
fn leads(graph: &Graph, jump: u64, target: u64) -> bool {
    let mut blocks = graph.blocks.iter().filter(|block| block.last == jump);
    let to = graph.starting(target);
    blocks.any(|block| to.is_some_and(|to| block.successors.contains(&to)))
}

/// A file of code, with its own addresses.
struct OfImage<'a> {
    image: &'a Image,
    seen: Option<&'a Targets>,
    /// Of the part of a function that was asked for last.
    landings: RefCell<Option<(Range<u64>, Vec<Landing>)>>,
}

impl Program for OfImage<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        self.image.read(LinkAddress(at), into)
    }

    fn is_within(&self, entry: u64, address: u64) -> bool {
        self.image.function(LinkAddress(address)) == Some(LinkAddress(entry))
    }

    fn may_return(&self, callee: u64) -> bool {
        let at = LinkAddress(callee);
        let name = match self.image.is_stub(at) {
            true => self.imported_by(callee),
            false => self.image.function_symbol(at),
        };
        !name.is_some_and(never_returns)
    }

    fn landing_pad(&self, call: u64) -> Option<u64> {
        let mut landings = self.landings.borrow_mut();
        if landings.as_ref().is_none_or(|(part, _)| !part.contains(&call)) {
            *landings = self.image.landings(LinkAddress(call));
        }
        let (_, landings) = landings.as_ref()?;
        let landing = landings.iter().find(|landing| landing.calls.contains(&call));
        landing.map(|landing| landing.pad.0)
    }

    fn seen_targets(&self, jump: u64) -> Vec<u64> {
        self.seen.and_then(|seen| seen.get(&jump)).cloned().unwrap_or_default()
    }
}

impl OfImage<'_> {
    /// The name of what is called by way of some code of the linker's.
    fn imported_by(&self, stub: u64) -> Option<&str> {
        /// None is longer.
        const LONGEST: usize = 16;
        let mut bytes = [0; LONGEST];
        let got = self.read(stub, &mut bytes);
        let decoder = Decoder::with_ip(64, &bytes[..got], stub, DecoderOptions::NONE);
        let jump = decoder.into_iter().find(|insn| insn.flow_control() != FlowControl::Next)?;
        self.image.imported(LinkAddress(
            jump.is_ip_rel_memory_operand().then(|| jump.ip_rel_memory_address())?,
        ))
    }
}

/// Functions of libraries whose callers' code does not go on behind the call.
fn never_returns(name: &str) -> bool {
    const NEVER: [&str; 34] = [
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "__assert_fail",
        "__assert_perror_fail",
        "__assert",
        "__stack_chk_fail",
        "__stack_chk_fail_local",
        "__fortify_fail",
        "__chk_fail",
        "__libc_fatal",
        "longjmp",
        "_longjmp",
        "siglongjmp",
        "__longjmp_chk",
        "pthread_exit",
        "thrd_exit",
        "err",
        "errx",
        "verr",
        "verrx",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_bad_cast",
        "__cxa_bad_typeid",
        "__cxa_pure_virtual",
        "__cxa_throw_bad_array_new_length",
        "__cxa_call_unexpected",
        "__cxa_call_terminate",
        "_Unwind_Resume",
        "_ZSt9terminatev",
        "rust_panic",
    ];
    NEVER.contains(&name)
        || name.starts_with("_ZSt") && name.contains("__throw_")
        || name.contains("core9panicking")
        || name.contains("begin_panic")
}
