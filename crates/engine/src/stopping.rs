//! Stopping a process after an exact number of instructions.
//!
//! Units add to 128 slots and look whether the one they add to is still negative. So each
//! slot is given an allowance, the number of instructions that may be added to it until
//! somebody looks; together not more than are left. Most goes to the slots that were used
//! most since the last look, so that a few looks are enough.

use crate::space::Space;
use why_translate::context::{COUNT_SLOTS, FIRST_COUNT};

/// Where a slot begins to count when nobody has to look.
pub const FAR: i64 = -1 << 55;

/// A unit that corrects its count on the way out adds to its slot without looking, less
/// than this.
const UNSEEN: u64 = 64;

impl Space {
    /// All instructions counted so far. Of a process that is gone only what was known before
    /// is left.
    pub fn count(&self) -> u64 {
        self.count_if_there().unwrap_or(self.counted)
    }

    /// The same; none of a process that is gone.
    pub fn count_if_there(&self) -> Option<u64> {
        let used = used(&self.slots()?, &self.slot_starts);
        let sum = used.iter().fold(0, |sum: i64, used| sum.wrapping_add(*used));
        Some(self.counted.wrapping_add(sum as u64))
    }

    fn slots(&self) -> Option<[i64; COUNT_SLOTS]> {
        let mut bytes = [0; 8 * COUNT_SLOTS];
        self.memory.read_exact(self.context + FIRST_COUNT.0 as u64, &mut bytes).ok()?;
        let (words, _) = bytes.as_chunks();
        Some(std::array::from_fn(|index| i64::from_le_bytes(words[index])))
    }

    /// Lets the slots count from these numbers on.
    fn start_slots(&mut self, counted: u64, starts: [i64; COUNT_SLOTS]) {
        self.counted = counted;
        self.slot_starts = starts;
        self.looks_before = None;
        let bytes = starts.map(i64::to_le_bytes).concat();
        // Fails only when the process is gone.
        let _ = self.memory.write(self.context + FIRST_COUNT.0 as u64, &bytes);
    }

    /// Nobody has to look.
    pub fn stop_nowhere(&mut self) {
        if self.slot_starts != [FAR; COUNT_SLOTS] {
            self.start_slots(self.count(), [FAR; COUNT_SLOTS]);
        }
    }

    /// A new context page: the slots begin to count.
    pub fn begin_count(&mut self) {
        self.looks_before = None;
        let bytes = self.slot_starts.map(i64::to_le_bytes).concat();
        let _ = self.memory.write(self.context + FIRST_COUNT.0 as u64, &bytes);
    }

    /// Sees to it that a unit looks before the process has executed that many instructions.
    pub fn look_before(&mut self, at: u64) {
        let slots = self.slots();
        // Where somebody stopped for another reason this is still so.
        let still = self.looks_before == Some(at);
        if still && slots.is_some_and(|slots| slots.iter().all(|slot| *slot < 0)) {
            return;
        }
        let used = slots.map_or([0; COUNT_SLOTS], |slots| used(&slots, &self.slot_starts));
        let sum = used.iter().fold(0, |sum: i64, used| sum.wrapping_add(*used));
        let count = self.counted.wrapping_add(sum as u64);
        let left = at.saturating_sub(count);
        self.start_slots(count, allowances(left, &used).map(|allowance| -(allowance as i64)));
        self.looks_before = Some(at);
    }
}

/// What has been added to each slot.
fn used(slots: &[i64; COUNT_SLOTS], starts: &[i64; COUNT_SLOTS]) -> [i64; COUNT_SLOTS] {
    std::array::from_fn(|index| slots[index].wrapping_sub(starts[index]))
}

/// How much may be added to each slot.
pub fn allowances(left: u64, used: &[i64; COUNT_SLOTS]) -> [u64; COUNT_SLOTS] {
    let mut order: [usize; COUNT_SLOTS] = std::array::from_fn(|index| index);
    // As many slots as can take what is added unseen, the most used first.
    let most = (left / (4 * UNSEEN)).min(COUNT_SLOTS as u64) as usize;
    if most < COUNT_SLOTS {
        order.sort_by_key(|&index| std::cmp::Reverse(used[index]));
    }
    let chosen = &order[..most];
    // The program can write anything there.
    let use_of = |index: usize| used[index].clamp(0, -FAR) as u64 + 1;
    let total: u64 = chosen.iter().map(|&index| use_of(index)).sum();
    let left = left - UNSEEN * most as u64;
    let mut allowances = [0; COUNT_SLOTS];
    for &index in chosen {
        let share = use_of(index);
        // Most by use, some to all alike.
        let by_use = (u128::from(left) * u128::from(share) / u128::from(total)) as u64;
        allowances[index] = by_use / 8 * 7 + left / most as u64 / 8;
    }
    allowances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_and_what_is_unseen_are_never_more_than_are_left() {
        let mut used = [0; COUNT_SLOTS];
        used[3] = 1_000_000;
        used[70] = 20;
        for left in [0, 1, 63, 64, 255, 256, 1000, 8192, 40_000, 1 << 40] {
            let allowances = allowances(left, &used);
            let unseen = allowances.iter().filter(|&&a| a > 0).count() as u64 * UNSEEN;
            assert!(allowances.iter().sum::<u64>() + unseen <= left, "{left}");
        }
        assert!(allowances(1 << 30, &used)[3] > 1 << 29);
    }

    #[test]
    fn whatever_the_program_wrote_to_its_slots() {
        let values = [0, 1, -1, 63, i64::MAX, i64::MIN, FAR, -FAR, 1 << 62];
        let mut number = 88_172_645_463_325_252u64;
        for _ in 0..20_000 {
            let mut next = || {
                number ^= number << 13;
                number ^= number >> 7;
                number ^= number << 17;
                number
            };
            let slots: [i64; COUNT_SLOTS] = std::array::from_fn(|_| match next() % 3 {
                0 => values[(next() % 9) as usize],
                1 => i64::MAX,
                _ => next() as i64,
            });
            let starts = std::array::from_fn(|_| values[(next() % 9) as usize]);
            let left = next() >> (next() % 64);
            let allowances = allowances(left, &super::used(&slots, &starts));
            let sum: u128 = allowances.iter().map(|&allowance| u128::from(allowance)).sum();
            assert!(sum <= u128::from(left), "{left}");
        }
    }
}
