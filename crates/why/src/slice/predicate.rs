//! Of a program that ended itself because of what it had seen, such as one whose assertion failed:
//! the branch of its own by which it came to that.

use super::lines::Sources;
use super::ways;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory};
use std::ops::{ControlFlow, Range};
use why_effects::{Cell, Place, effects};
use why_record::event::Ended;
use why_record::store::Recording;
use why_record::summary;
use why_slice::decisions::Decision;
use why_slice::region::{Region, RegionError};

pub struct Predicate {
    pub position: u64,
    pub address: u64,
    /// What it decided by.
    pub cells: Vec<Range<Cell>>,
}

/// When something was executed, by which thread, and where it is.
pub type Here = (u64, u64, u64);

impl Predicate {
    /// Why a process ended as it did, the last thing that it did being this. None if that was an
    /// instruction that failed: what that used is to blame.
    pub fn of_end(
        (recording, process): (&Recording, i32),
        region: &Region,
        sources: &mut Sources,
        end: Here,
    ) -> Result<Option<Predicate>, RegionError> {
        const FAULTS: [i32; 3] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];
        /// With which programs in Rust end that have panicked.
        const PANICKED: i32 = 101;
        let processes = summary::processes(recording).unwrap_or_default();
        let own = processes.iter().find(|known| known.pid == process);
        match own.and_then(|own| own.ended) {
            Some(Ended::Signal(signal)) if FAULTS.contains(&signal) => Ok(None),
            Some(Ended::Status(PANICKED)) => {
                let mut panics = None;
                for entry in sources.entries("rust_panic") {
                    panics = panics.max(region.last_execution(entry)?.map(|last| (last, entry)));
                }
                let here = panics.map_or(end, |((position, thread), at)| (position, thread, at));
                Predicate::of(region, sources, here)
            }
            _ => Predicate::of(region, sources, end),
        }
    }

    /// The one by which a thread came to where it is: of the program's own, or, if what that called
    /// could have come back, of a check there. None if it ended itself without any.
    fn of(
        region: &Region,
        sources: &mut Sources,
        here: Here,
    ) -> Result<Option<Predicate>, RegionError> {
        let (mut found, mut is_own) = (None, !sources.lines([here.2]).is_empty());
        // Whether a failed check was told of that has not been come to yet.
        let mut has_failed = false;
        region.each_decision(here, |Decision { position, insn, to, .. }| {
            let callee = to.and_then(|to| sources.function_begun(to));
            let was_own = is_own;
            is_own |= !sources.lines([insn.ip()]).is_empty();
            match insn.flow_control() {
                FlowControl::ConditionalBranch if is_own || has_failed => {
                    let (address, cells) = (insn.ip(), decides(insn));
                    found = Some(Predicate { position: *position, address, cells });
                    has_failed = false;
                    if is_own { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    let never_returns = callee.as_deref().is_some_and(ways::never_returns);
                    if never_returns && !callee.as_deref().is_some_and(ends_all) {
                        (found, has_failed) = (None, true);
                    }
                    match is_own && !was_own && !never_returns {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                }
                FlowControl::IndirectBranch if is_own => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }
}

/// Whether a function only ends the program, whatever was wrong.
fn ends_all(name: &str) -> bool {
    ["abort", "exit", "_exit", "_Exit", "quick_exit"].contains(&name)
}

/// What a branch looks at.
fn decides(branch: &Instruction) -> Vec<Range<Cell>> {
    let told = effects(branch, &mut InstructionInfoFactory::new());
    let cells = told.decides.into_iter().filter_map(|place| match place {
        Place::Cells(cells) => Some(cells),
        Place::Memory { .. } | Place::String { .. } => None,
    });
    cells.collect()
}

impl Sources<'_> {
    /// Where functions of a name begin.
    fn entries(&self, name: &str) -> Vec<u64> {
        let of_module = |module: &why_symbols::Module| {
            let found = module.image.search_function(name).into_iter();
            found.map(|entry| module.mapped(entry)).collect::<Vec<u64>>()
        };
        self.modules().iter().flat_map(of_module).collect()
    }

    /// The name that the linker has for the function that begins at an address, or to which the code
    /// there leads.
    fn function_begun(&self, address: u64) -> Option<String> {
        let module = self.module(address)?;
        ways::name_of(&module.image, module.linked(address)).map(str::to_owned)
    }
}
