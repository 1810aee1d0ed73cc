//! Where the ways from a branch meet again, by the code of the files that were mapped.

use super::loader;
use crate::images::Images;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::ops::Range;
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
    /// The paths of the programs themselves, as opposed to libraries.
    programs: Vec<String>,
    meets: RefCell<FxHashMap<Function, Rc<Meets>>>,
    /// Where indirect jumps of files were seen to lead.
    seen: FxHashMap<*const Image, Targets>,
    /// What was asked for last: mostly the next instruction of the same function is next.
    last: RefCell<Option<Rc<Located>>>,
}

/// Where some code is.
struct Located {
    addresses: Range<u64>,
    /// When so many modules were mapped.
    mapped: usize,
    module: why_symbols::Module,
    /// The function that it belongs to, and where its ways meet, once somebody has asked.
    entry: Option<u64>,
    meets: OnceCell<Option<Rc<Meets>>>,
    /// Whether it is of the program itself, and that has no source.
    is_only_code: OnceCell<bool>,
    keeps_vectors: bool,
}

/// Of one file, by jump.
type Targets = FxHashMap<u64, Vec<u64>>;

/// A function of a file, by its entry.
type Function = (*const Image, u64);

/// Where the ways from the branches of a function meet.
#[derive(Default)]
struct Meets {
    /// By branch.
    by_branch: FxHashMap<u64, u64>,
    places: FxHashSet<u64>,
    /// Where those from a landing pad meet those from behind the calls that lead to it.
    landings: FxHashMap<u64, u64>,
}

impl MappedWays {
    pub fn new(mapped: Mapped, images: Images, programs: Vec<String>) -> MappedWays {
        let (images, meets, last) = (RefCell::new(images), RefCell::default(), RefCell::default());
        MappedWays { mapped, images, programs, meets, seen: FxHashMap::default(), last }
    }

    fn located(&self, address: u64) -> Option<Rc<Located>> {
        let mapped = self.mapped.lock().expect("no panic");
        let mut last = self.last.borrow_mut();
        let same =
            |last: &Rc<Located>| last.addresses.contains(&address) && last.mapped == mapped.len();
        if !last.as_ref().is_some_and(same) {
            let module = mapped.iter().rev().find(|module| module.range.contains(&address))?;
            let module = self.images.borrow_mut().module(module)?;
            let at = module.linked(address);
            let code = module.image.extent(at).unwrap_or(at..LinkAddress(at.0 + 1));
            let entry = module.image.function(at).map(|entry| entry.0);
            let addresses = module.mapped(code.start)..module.mapped(code.end);
            let keeps_vectors = loader::is_loader(&module) && !self.is_program(&module);
            *last = Some(Rc::new(Located {
                addresses,
                mapped: mapped.len(),
                module,
                entry,
                meets: OnceCell::new(),
                is_only_code: OnceCell::new(),
                keeps_vectors,
            }));
        }
        last.clone()
    }

    fn is_program(&self, module: &why_symbols::Module) -> bool {
        self.programs.contains(&module.name)
    }

    fn graph(&self, image: &Rc<Image>, entry: u64) -> Graph {
        let seen = self.seen.get(&Rc::as_ptr(image));
        let (landings, within) = (RefCell::default(), RefCell::default());
        Graph::of(&OfImage { image, seen, landings, within }, entry)
    }

    fn meets(&self, image: &Rc<Image>, entry: u64) -> Rc<Meets> {
        let found = || {
            let graph = self.graph(image, entry);
            let behind = PostDominators::of(&graph);
            let meet = |(number, block): (usize, &why_flow::Block)| {
                Some((block.last, graph.block(behind.behind(BlockId(number))?).start))
            };
            let by_branch: FxHashMap<u64, u64> =
                graph.blocks.iter().enumerate().filter_map(meet).collect();
            let landings: FxHashMap<u64, u64> =
                why_flow::landings(&graph, &behind).into_iter().collect();
            let places = by_branch.values().chain(landings.values()).copied().collect();
            Rc::new(Meets { by_branch, places, landings })
        };
        // Images are kept as long as this is, so their addresses are not used again.
        let key = (Rc::as_ptr(image), entry);
        self.meets.borrow_mut().entry(key).or_insert_with(found).clone()
    }

    /// Those of the function that some code belongs to.
    fn meets_of<'a>(&self, located: &'a Located) -> Option<&'a Meets> {
        let Located { module, entry, meets, .. } = located;
        meets.get_or_init(|| entry.map(|entry| self.meets(&module.image, entry))).as_deref()
    }

    /// Where the ways from an address meet, by one of its function's tables.
    fn found(&self, from: u64, table: impl Fn(&Meets) -> &FxHashMap<u64, u64>) -> Option<u64> {
        let located = self.located(from)?;
        let module = &located.module;
        let meet = table(self.meets_of(&located)?).get(&module.linked(from).0).copied();
        meet.map(|meet| module.mapped(LinkAddress(meet)))
    }

    /// Notes where jumps of files lead that were not known to. The functions that they are of.
    fn add_targets(&mut self, seen: &[(u64, u64)]) -> FxHashMap<Function, Rc<Image>> {
        // Those of one function come one behind the other.
        let mut last: Option<(Function, Graph)> = None;
        let mut changed = FxHashMap::default();
        for (jump, target) in seen {
            let (Some(from), Some(to)) = (self.located(*jump), self.located(*target)) else {
                continue;
            };
            let (image, target) = (&from.module.image, to.module.linked(*target).0);
            let Some(entry) = from.entry else {
                continue;
            };
            // Other jumps are calls.
            if !Rc::ptr_eq(image, &to.module.image) || to.entry != Some(entry) {
                continue;
            }
            let (function, jump) = ((Rc::as_ptr(image), entry), from.module.linked(*jump).0);
            let known = match last.take().filter(|(of, _)| *of == function) {
                Some((_, graph)) => graph,
                None => self.graph(image, entry),
            };
            if !leads(&known, jump, target) {
                let of_image = self.seen.entry(function.0).or_default();
                of_image.entry(jump).or_default().push(target);
                changed.insert(function, Rc::clone(image));
            }
            last = Some((function, known));
        }
        changed
    }
}

impl Ways for MappedWays {
    fn meet(&self, branch: u64) -> Option<u64> {
        self.found(branch, |meets| &meets.by_branch)
    }

    fn may_meet(&self, address: u64) -> bool {
        self.located(address).is_some_and(|located| {
            let at = located.module.linked(address).0;
            self.meets_of(&located).is_some_and(|meets| meets.places.contains(&at))
        })
    }

    fn lands(&self, pad: u64) -> Option<u64> {
        self.found(pad, |meets| &meets.landings)
    }

    /// The linker's own way to a function of another file is part of the call.
    fn decides(&self, branch: u64) -> bool {
        let stub =
            |located: Rc<Located>| located.module.image.is_stub(located.module.linked(branch));
        !self.located(branch).is_some_and(stub)
    }

    fn learn_targets(&mut self, seen: &[(u64, u64)]) -> Vec<u64> {
        let mut addresses = Vec::new();
        let changed = self.add_targets(seen);
        // Of the function that was asked for last others may be known now.
        self.last.take();
        for (function, image) in changed {
            let before = self.meets.borrow_mut().remove(&function).unwrap_or_default();
            let differing = before.differing(&self.meets(&image, function.1));
            // A file may be mapped more than once.
            for module in self.mapped.lock().expect("no panic").iter() {
                let module = self.images.borrow_mut().module(module);
                let same = module.filter(|module| Rc::ptr_eq(&module.image, &image));
                let mapped = |module: why_symbols::Module| {
                    let differing = differing.iter();
                    differing.map(move |at| module.mapped(LinkAddress(*at))).collect::<Vec<u64>>()
                };
                addresses.extend(same.into_iter().flat_map(mapped));
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// What has source of the program's own, also where that is of no line: whoever called the
    /// function need not stand for that. Of a program without any, all of its code but for that
    /// through which others are called, which is part of the call.
    fn is_shown(&self, address: u64) -> bool {
        self.located(address).is_some_and(|located| {
            let module = &located.module;
            let is_only_code = || self.is_program(module) && !module.image.has_lines();
            let at = module.linked(address);
            module.own_line(at).is_some()
                || module.is_between_own_lines(at)
                || *located.is_only_code.get_or_init(is_only_code) && !module.image.is_stub(at)
        })
    }

    /// The linker does, for whoever calls a function that it has to bind first.
    fn keeps_vectors(&self, address: u64) -> bool {
        self.located(address).is_some_and(|located| located.keeps_vectors)
    }
}

impl Meets {
    /// The addresses at which others differ.
    fn differing(&self, other: &Meets) -> Vec<u64> {
        let tables = [(&self.by_branch, &other.by_branch), (&self.landings, &other.landings)];
        let of_tables = tables.into_iter().flat_map(|(one, other)| {
            let all = one.keys().chain(other.keys().filter(|at| !one.contains_key(at)));
            all.filter(|at| one.get(at) != other.get(at))
        });
        of_tables.chain(self.places.symmetric_difference(&other.places)).copied().collect()
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
    /// Code that was asked for last, and where its function begins.
    within: RefCell<Option<(Range<u64>, u64)>>,
}

impl Program for OfImage<'_> {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        self.image.read(LinkAddress(at), into)
    }

    fn is_within(&self, entry: u64, address: u64) -> bool {
        let mut within = self.within.borrow_mut();
        if within.as_ref().is_none_or(|(code, _)| !code.contains(&address)) {
            let at = LinkAddress(address);
            let code = self.image.extent(at).map(|code| code.start.0..code.end.0);
            *within = code.zip(self.image.function(at).map(|entry| entry.0));
        }
        within.as_ref().is_some_and(|(_, begins)| *begins == entry)
    }

    fn may_return(&self, callee: u64) -> bool {
        !name_of(self.image, LinkAddress(callee)).is_some_and(never_returns)
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

/// The name that the linker has for a function, or for what is called by way of its own code.
pub fn name_of(image: &Image, callee: LinkAddress) -> Option<&str> {
    match image.is_stub(callee) {
        true => imported_by(image, callee),
        false => image.function_symbol(callee),
    }
}

/// The same of what is called at an address.
pub fn called_at(image: &Image, call: LinkAddress) -> Option<&str> {
    let call = first_that_leads_on(image, call)?;
    match call.is_ip_rel_memory_operand() {
        true => image.imported(LinkAddress(call.ip_rel_memory_address())),
        false if call.is_call_near() => name_of(image, LinkAddress(call.near_branch_target())),
        false => None,
    }
}

/// The name of what is called by way of some code of the linker's.
fn imported_by(image: &Image, stub: LinkAddress) -> Option<&str> {
    let jump = first_that_leads_on(image, stub)?;
    image.imported(LinkAddress(
        jump.is_ip_rel_memory_operand().then(|| jump.ip_rel_memory_address())?,
    ))
}

/// The first instruction from an address on behind which it goes on elsewhere.
fn first_that_leads_on(image: &Image, at: LinkAddress) -> Option<Instruction> {
    /// No code of the linker's is longer.
    const LONGEST: usize = 16;
    let mut bytes = [0; LONGEST];
    let got = image.read(at, &mut bytes);
    let decoder = Decoder::with_ip(64, &bytes[..got], at.0, DecoderOptions::NONE);
    decoder.into_iter().find(|insn| insn.flow_control() != FlowControl::Next)
}

/// Functions of libraries whose callers' code does not go on behind the call.
pub fn never_returns(name: &str) -> bool {
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
    /// Parts of names that are mangled.
    const PARTS: [&str; 10] = [
        "__glibcxx_assert_fail",
        "core9panicking",
        "begin_panic",
        "13unwrap_failed",
        "13expect_failed",
        "slice_error_fail",
        "slice_index_fail",
        "handle_alloc_error",
        "std7process4exit",
        "std7process5abort",
    ];
    // The C library calls its own functions by other names.
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    NEVER.contains(&name)
        || name.starts_with("_ZSt") && name.contains("__throw_")
        || PARTS.iter().any(|part| name.contains(part))
}
