//! Why instructions belong to a slice: for each the last time that it did, and who wanted what
//! it had made.

use crate::backward::Area;
use crate::control::Position;
use crate::units::Known;
use crate::wanted::{Role, Wanter};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// An instruction that belongs to a slice. One that is not shown counts apart for each call
/// that is shown instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub address: u64,
    /// The call that is shown instead, if the instruction is not.
    pub site: Option<u64>,
    /// The last time that it belongs to the slice, or that it did for its value, and how often it does.
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
    /// It made what is there, from the first byte on that somebody wants or that something touched.
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

impl Reason {
    /// Reasons of a slice, where these are those of values alone: who is among them was made for its
    /// value, whoever else may want it, too. Those who want others come before these.
    pub fn by_values(values: Vec<Reason>, all: Vec<Reason>, why: Why) -> Vec<Reason> {
        if why == Why::Instances && all.len() >= MOST_INSTANCES {
            // Some of these stand for instances that the others tell one by one.
            return all;
        }
        let instance = |reason: &Reason| (why == Why::Instances).then_some(reason.position);
        let name = |reason: &Reason| (reason.address, reason.site, instance(reason));
        let mut numbers: FxHashMap<_, usize> =
            values.iter().enumerate().map(|(number, reason)| (name(reason), number)).collect();
        let mut merged = values;
        let mut became: Vec<usize> = Vec::with_capacity(all.len());
        for reason in all {
            let number = *numbers.entry(name(&reason)).or_insert(merged.len());
            became.push(number);
            match merged.get_mut(number) {
                Some(known) => known.times = reason.times,
                None => {
                    let wanter = reason.wanter.map(|wanter| became[wanter]);
                    merged.push(Reason { wanter, ..reason });
                }
            }
        }
        match why {
            Why::Instances => in_time(merged),
            _ => merged,
        }
    }
}

/// Reasons of instances, the last first: whoever wants another one comes behind it in time.
fn in_time(all: Vec<Reason>) -> Vec<Reason> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|number| Reverse(all[*number].position));
    let mut became = vec![0; all.len()];
    order.iter().enumerate().for_each(|(new, old)| became[*old] = new);
    let mut sorted = all;
    sorted.sort_by_key(|reason| Reverse(reason.position));
    for reason in &mut sorted {
        reason.wanter = reason.wanter.map(|wanter| became[wanter]);
    }
    sorted
}

/// Numbers for all instructions that may want something: one that is not shown has another one for
/// each call that is shown instead.
#[derive(Default, Serialize, Deserialize)]
pub struct Names(FxHashMap<(u32, u64), u32>);

impl Names {
    /// Those that are shown are the even ones.
    pub fn number(&mut self, insn: &Known, site: Option<u64>) -> u32 {
        let Some(site) = site else { return 2 * insn.number };
        let next = self.0.len() as u32;
        2 * *self.0.entry((insn.number, site)).or_insert(next) + 1
    }
}

/// All of them.
#[derive(Default)]
pub struct Reasons {
    pub all: Vec<Reason>,
    of_instances: bool,
    pub names: Names,
    /// The number of each one's reason, by its name: even and odd ones.
    by_name: [Vec<u32>; 2],
}

/// No call is there: it stands for all that an instruction does without being told of.
pub const UNTOLD: u64 = u64::MAX;

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
        instance: (u64, Position),
        because: impl FnOnce() -> (Wanter, Via),
    ) -> Wanter {
        let name = self.names.number(insn, site);
        let next = self.all.len() as u32;
        let is_single = self.of_instances && (next as usize) < MOST_INSTANCES;
        let index = if is_single { next } else { self.number(name).unwrap_or(next) };
        if index == next {
            if !is_single {
                *self.slot(name) = next;
            }
            self.push(insn.address, site, instance, because());
        }
        self.all[index as usize].times += 1;
        Wanter::new(if self.of_instances { index } else { name } + 1, Role::Value)
    }

    /// One that has no reason yet has this one.
    pub fn add_first(
        &mut self,
        (insn, site): (&Known, Option<u64>),
        instance: (u64, Position),
        because: impl FnOnce() -> (Wanter, Via),
    ) {
        let name = self.names.number(insn, site);
        if self.number(name).is_none() {
            *self.slot(name) = self.all.len() as u32;
            self.push(insn.address, site, instance, because());
        }
    }

    fn push(
        &mut self,
        address: u64,
        site: Option<u64>,
        (thread, position): (u64, Position),
        (wanter, via): (Wanter, Via),
    ) {
        let role = wanter.role();
        let wanter = wanter.number().checked_sub(1).and_then(|number| match self.of_instances {
            true => Some(number),
            false => self.number(number),
        });
        let (times, wanter) = (0, wanter.map(|wanter| wanter as usize));
        self.all.push(Reason { address, site, thread, position, times, wanter, role, via });
    }

    /// Who an instruction is, if it has a reason that counts for all times.
    pub fn find(&mut self, insn: &Known, site: Option<u64>) -> Option<Wanter> {
        let name = self.names.number(insn, site);
        self.number(name).map(|_| Wanter::new(name + 1, Role::Value))
    }

    /// How much memory they take.
    pub fn size(&self) -> usize {
        size_of_val(self.all.as_slice())
    }

    /// The reason of somebody holds so many times more.
    pub fn again(&mut self, wanter: Wanter, times: u64) {
        if let Some(number) = self.number(wanter.number() - 1) {
            self.all[number as usize].times += times;
        }
    }

    /// Without those that are not told of: whoever wants what one of these made depends on what that
    /// was made of.
    pub fn told(self) -> Vec<Reason> {
        let mut told: Vec<Reason> = Vec::new();
        // Who each one is among these; of others who wants what they made, and for what.
        let mut stands_for: Vec<(Option<usize>, Role)> = Vec::new();
        for reason in self.all {
            // Whoever wants something comes before it.
            let wanter = reason.wanter.map(|wanter| stands_for[wanter]);
            let (wanter, role) = wanter.unwrap_or_default();
            let role = role.max(reason.role);
            if reason.site == Some(UNTOLD) {
                let decided = reason.via == Via::Decided;
                stands_for.push((wanter, if decided { Role::Condition } else { role }));
            } else {
                stands_for.push((Some(told.len()), Role::default()));
                told.push(Reason { wanter, role, ..reason });
            }
        }
        told
    }

    /// The number of the reason of a name.
    fn number(&self, name: u32) -> Option<u32> {
        let number = self.by_name[name as usize % 2].get(name as usize / 2);
        number.copied().filter(|number| *number != NONE)
    }

    fn slot(&mut self, name: u32) -> &mut u32 {
        let (slots, index) = (&mut self.by_name[name as usize % 2], name as usize / 2);
        if slots.len() <= index {
            slots.resize(index + 1, NONE);
        }
        &mut slots[index]
    }
}
