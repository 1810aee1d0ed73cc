//! Why instructions belong to a slice: for each the last time that it did, and who wanted what
//! it had made.

use crate::backward::Area;
use crate::control::Position;
use crate::units::Known;
use crate::wanted::{Role, Wanter};
use rustc_hash::FxHashMap;

/// An instruction that belongs to a slice. One that is not shown counts apart for each call
/// that is shown instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub address: u64,
    /// The call that is shown instead, if the instruction is not.
    pub site: Option<u64>,
    /// The last time that it belongs to the slice, and how often it does.
    pub thread: u64,
    pub position: Position,
    pub times: u64,
    /// Who depends on it: another of these, or none for what was asked for; and for what.
    pub wanter: Option<usize>,
    pub role: Role,
    pub via: Via,
}

/// How something depends on an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// It made what is there.
    Made(Area),
    /// It decided that the other one was executed.
    Decided,
    /// It had somebody else write there.
    Wrote(u64),
    /// It made nothing, but went one way because of it.
    Tested,
}

/// For what reasons are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    #[default]
    Nothing,
    /// For each instruction of the program, the last time that it belongs to the slice.
    Code,
    /// For each time.
    Instances,
}

/// All of them.
#[derive(Default)]
pub struct Reasons {
    pub all: Vec<Reason>,
    of_instances: bool,
    /// By instruction; of those that are not shown by the call, too.
    shown: Vec<u32>,
    not_shown: FxHashMap<(u32, u64), u32>,
}

/// There is none yet.
const NONE: u32 = u32::MAX;

/// Of more instances reasons are not told one by one.
const MOST_INSTANCES: usize = 10_000_000;

impl Reasons {
    pub fn of(why: Why) -> Option<Reasons> {
        let of_instances = why == Why::Instances;
        (why != Why::Nothing).then(|| Reasons { of_instances, ..Reasons::default() })
    }

    /// An instruction belongs to the slice, once more: who wants what it is made of.
    pub fn add(
        &mut self,
        insn: &Known,
        site: Option<u64>,
        (thread, position): (u64, Position),
        because: impl FnOnce() -> (Wanter, Via),
    ) -> Wanter {
        let next = self.all.len() as u32;
        let index = self.number(insn, site, next);
        if index == next {
            let (wanter, via) = because();
            let (wanter, role) = ((wanter.number() as usize).checked_sub(1), wanter.role());
            let (address, times) = (insn.address, 1);
            self.all.push(Reason { address, site, thread, position, times, wanter, role, via });
        } else {
            self.all[index as usize].times += 1;
        }
        Wanter::new(index + 1, Role::Value)
    }

    /// The number of the reason of an instruction, if it has one that counts for all times.
    pub fn find(&self, insn: &Known, site: Option<u64>) -> Option<u32> {
        match site {
            Some(site) => self.not_shown.get(&(insn.number, site)).copied(),
            None => self.shown.get(insn.number as usize).copied().filter(|found| *found != NONE),
        }
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice())
    }

    /// That one holds so many times more.
    pub fn again(&mut self, number: u32, times: u64) {
        self.all[number as usize].times += times;
    }

    /// The number of the reason of an instruction, which is the next one if it has none yet.
    fn number(&mut self, insn: &Known, site: Option<u64>, next: u32) -> u32 {
        if self.of_instances && (next as usize) < MOST_INSTANCES {
            return next;
        }
        if let Some(site) = site {
            return *self.not_shown.entry((insn.number, site)).or_insert(next);
        }
        let index = insn.number as usize;
        if self.shown.len() <= index {
            self.shown.resize(index + 1, NONE);
        }
        let number = &mut self.shown[index];
        if *number == NONE {
            *number = next;
        }
        *number
    }
}
