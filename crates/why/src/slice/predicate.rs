//! Of a program that ended itself because of what it had seen, such as one whose assertion failed:
//! the branch of its own by which it came to that.

use super::lines::Sources;
use super::ways;
use iced_x86::FlowControl;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use why_record::event::Ended;
use why_record::store::Recording;
use why_record::summary;
use why_slice::decisions::Decision;
use why_slice::region::{Region, RegionError};

pub struct Predicate {
    pub position: u64,
    pub address: u64,
    /// The program ended with a status, and says something by that, too.
    pub has_status: bool,
}

/// When something was executed, by which thread, and where it is.
pub type Here = (u64, u64, u64);

impl Predicate {
    /// Why a process ended as it did, the last thing that it did being this. None if that was an
    /// instruction that failed, where what that used is to blame, or if nobody knows how it ended.
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
        if own.is_some_and(summary::Process::is_cut_short) {
            return Ok(None);
        }
        match own.and_then(|own| own.ended) {
            Some(Ended::Signal(signal)) if FAULTS.contains(&signal) => Ok(None),
            Some(Ended::Status(PANICKED)) => {
                let mut panics = None;
                for entry in sources.entries("rust_panic") {
                    panics = panics.max(region.last_execution(entry)?.map(|last| (last, entry)));
                }
                let here = panics.map_or(end, |((position, thread), at)| (position, thread, at));
                let found = Predicate::of(region, sources, here, panics.is_some())?;
                Ok(found.map(|found| Predicate { has_status: panics.is_none(), ..found }))
            }
            Some(Ended::Status(_)) => {
                let found = Predicate::of(region, sources, end, false)?;
                Ok(found.map(|found| Predicate { has_status: true, ..found }))
            }
            _ => Predicate::of(region, sources, end, false),
        }
    }

    /// The one by which a thread came to where it is: of the program's own, or, if what that called
    /// could have come back, of a check there. None if it ended itself without any. What panicked
    /// without a check would not have come back, whatever it is called.
    fn of(
        region: &Region,
        sources: &mut Sources,
        here: Here,
        panicked: bool,
    ) -> Result<Option<Predicate>, RegionError> {
        // Whether anything of the program's own has been come to.
        let (mut found, mut has_own) = (None, !sources.lines([here.2]).is_empty());
        // Whether a failed check was told of that has not been come to yet.
        let mut has_failed = false;
        // The lines of a jump by a table that was come to.
        let mut table: Option<BTreeSet<usize>> = None;
        region.each_decision(here, |Decision { position, insn, to, .. }| {
            let callee = to.and_then(|to| sources.function_begun(to));
            let never_returns = callee.as_deref().is_some_and(ways::never_returns);
            let is_check = never_returns && !callee.as_deref().is_some_and(ends_all);
            let own = sources.lines([insn.ip()]);
            let is_own = !own.is_empty();
            let is_first = is_own && !has_own;
            has_own |= is_own;
            let this = Predicate { position: *position, address: insn.ip(), has_status: false };
            // Whether its table has an entry for a value is decided in front of the jump: that
            // branch uses the value, where the jump only uses what it found by it.
            if let Some(lines) = &table {
                let is_check = insn.flow_control() == FlowControl::ConditionalBranch;
                if is_check && own == *lines {
                    found = Some(this);
                }
                return ControlFlow::Break(());
            }
            match insn.flow_control() {
                FlowControl::ConditionalBranch if is_own || has_failed || is_check => {
                    (found, has_failed) = (Some(this), false);
                    if is_own { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    if is_check {
                        (found, has_failed) = (None, true);
                    }
                    let comes_back = !never_returns && (!panicked || found.is_some());
                    match is_first && comes_back {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                }
                // Others call what they lead to.
                FlowControl::IndirectBranch if is_own && sources.is_in_one(insn.ip(), *to) => {
                    (found, table) = (Some(this), Some(own));
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }
}

/// Whether a function only ends the program, whatever was wrong.
fn ends_all(name: &str) -> bool {
    const ENDS: [&str; 5] = ["abort", "exit", "_exit", "_Exit", "quick_exit"];
    ENDS.contains(&name.strip_prefix("__GI_").unwrap_or(name)) || name.contains("std7process")
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

    /// Whether a jump stays in its function.
    fn is_in_one(&self, jump: u64, to: Option<u64>) -> bool {
        let entry = |address: u64| {
            let module = self.module(address)?;
            module.image.function(module.linked(address)).map(|entry| module.mapped(entry))
        };
        to.is_some_and(|to| entry(jump).is_some() && entry(jump) == entry(to))
    }

    /// The name that the linker has for the function that begins at an address, or to which the code
    /// there leads.
    fn function_begun(&self, address: u64) -> Option<String> {
        let module = self.module(address)?;
        ways::name_of(&module.image, module.linked(address)).map(str::to_owned)
    }
}
