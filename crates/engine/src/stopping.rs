//! Stopping a process after an exact number of instructions.
//!
//! Units that look add to 16 slots, each to the first of eight, and look whether the one they add to
//! is still negative. So each of these is given an allowance, the number of instructions that may be
//! added to it until somebody looks; together not more than are left. Most goes to the slots that were
//! used most of late, so that a few looks are enough.

use crate::space::Space;
use why_translate::context::{COUNT_SLOTS, FIRST_COUNT, LOOKED_AT_EACH, LOOKED_AT_SLOTS};

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
        // Units that do not look have used those beside them.
        for (known, used) in self.slot_use.iter_mut().zip(used.chunks(LOOKED_AT_EACH)) {
            // The program can write anything there.
            let used = used.iter().map(|used| used.clamp(&0, &-FAR).unsigned_abs());
            *known = *known / 2 + used.sum::<u64>();
        }
        let mut starts = [FAR; COUNT_SLOTS];
        let looked_at = starts.iter_mut().step_by(LOOKED_AT_EACH);
        for (start, allowance) in looked_at.zip(allowances(left, &self.slot_use)) {
            *start = -(allowance as i64);
        }
        self.start_slots(count, starts);
        self.looks_before = Some(at);
    }
}

/// What has been added to each slot.
fn used(slots: &[i64; COUNT_SLOTS], starts: &[i64; COUNT_SLOTS]) -> [i64; COUNT_SLOTS] {
    std::array::from_fn(|index| slots[index].wrapping_sub(starts[index]))
}

/// How much may be added to each slot that is looked at.
pub fn allowances(left: u64, used: &[u64; LOOKED_AT_SLOTS]) -> [u64; LOOKED_AT_SLOTS] {
    let mut order: [usize; LOOKED_AT_SLOTS] = std::array::from_fn(|index| index);
    // As many slots as can take what is added unseen, the most used first.
    let most = (left / (2 * UNSEEN)).min(LOOKED_AT_SLOTS as u64) as usize;
    if most < LOOKED_AT_SLOTS {
        order.sort_by_key(|&index| std::cmp::Reverse(used[index]));
    }
    let chosen = &order[..most];
    let use_of = |index: usize| u128::from(used[index]) + 1;
    let total: u128 = chosen.iter().map(|&index| use_of(index)).sum();
    let left = left - UNSEEN * most as u64;
    let mut allowances = [0; LOOKED_AT_SLOTS];
    for &index in chosen {
        // Most by use, some to all alike.
        let by_use = (u128::from(left) * use_of(index) / total) as u64;
        allowances[index] = by_use / 8 * 7 + left / most as u64 / 8;
    }
    allowances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_and_what_is_unseen_are_never_more_than_are_left() {
        let mut used = [0; LOOKED_AT_SLOTS];
        used[3] = 1_000_000;
        used[7] = 20;
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
            let used: [u64; LOOKED_AT_SLOTS] = std::array::from_fn(|_| match next() % 3 {
                0 => values[(next() % 9) as usize].unsigned_abs(),
                1 => i64::MAX as u64,
                _ => next(),
            });
            let left = next() >> (next() % 64);
            let allowances = allowances(left, &used);
            let sum: u128 = allowances.iter().map(|&allowance| u128::from(allowance)).sum();
            assert!(sum <= u128::from(left), "{left}");
        }
    }
}
