//! Where indirect jumps were seen to lead.

use crate::units::Unit;
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Default)]
pub struct Targets {
    thread: u64,
    /// The unit that this thread executed last, if it ended with such a jump; and those of others.
    jumped: Option<usize>,
    others: FxHashMap<u64, usize>,
    /// Where the jump of each unit led last: mostly it is the same again.
    last: Vec<u64>,
    /// How much of each unit that has such jumps in the middle was executed at most.
    executed: Vec<usize>,
    seen: FxHashSet<(u64, u64)>,
    /// Those of them that nobody has taken yet.
    new: Vec<(u64, u64)>,
}

impl Targets {
    /// A thread has executed so many instructions of a unit.
    pub fn executed(&mut self, units: &[Unit], thread: u64, number: usize, count: usize) {
        let unit = &units[number];
        if count == 0 {
            return;
        }
        if thread != self.thread {
            let jumped = self.jumped.take();
            self.others.extend(jumped.map(|unit| (self.thread, unit)));
            (self.thread, self.jumped) = (thread, self.others.remove(&thread));
        }
        if let Some(jumped) = self.jumped.take() {
            self.led(&units[jumped], jumped, unit.address);
        }
        if !unit.inner_jumps.is_empty() {
            self.led_within(unit, number, count);
        }
        self.jumped =
            (unit.ends_with_indirect_jump && count == unit.instructions.len()).then_some(number);
    }

    /// As far as a unit was executed before, its jumps are known.
    fn led_within(&mut self, unit: &Unit, number: usize, count: usize) {
        if self.executed.len() <= number {
            self.executed.resize(number + 1, 0);
        }
        let most = &mut self.executed[number];
        let before = std::mem::replace(most, count.max(*most));
        for (executed, led) in &unit.inner_jumps {
            if (before + 1..=count).contains(executed) && self.seen.insert(*led) {
                self.new.push(*led);
            }
        }
    }

    fn led(&mut self, unit: &Unit, number: usize, to: u64) {
        if self.last.len() <= number {
            self.last.resize(number + 1, 0);
        }
        if std::mem::replace(&mut self.last[number], to) != to
            && let Some(jump) = unit.instructions.last()
        {
            let led = (jump.address, to);
            self.new.extend(self.seen.insert(led).then_some(led));
        }
    }

    /// Jumps, each with a target, that were not seen when this was asked the last time.
    pub fn take_new(&mut self) -> Vec<(u64, u64)> {
        let mut new = std::mem::take(&mut self.new);
        new.sort_unstable();
        new
    }
}
