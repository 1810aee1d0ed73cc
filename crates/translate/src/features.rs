//! What a CPU must have beyond the basic x86-64 to execute an instruction.

use iced_x86::{CpuidFeature, Instruction};

/// A set of CPU features, as the decoder names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features([u64; WORDS]);

const WORDS: usize = 3;

impl Features {
    /// All that there are.
    pub const ALL: Features = Features([u64::MAX; WORDS]);

    pub fn add(&mut self, feature: CpuidFeature) {
        let (word, bit) = place(feature);
        self.0[word] |= bit;
    }

    pub fn remove(&mut self, feature: CpuidFeature) {
        let (word, bit) = place(feature);
        self.0[word] &= !bit;
    }

    pub fn has(&self, feature: CpuidFeature) -> bool {
        let (word, bit) = place(feature);
        self.0[word] & bit != 0
    }

    /// Whether they are enough to execute the instruction.
    pub fn suffice_for(&self, insn: &Instruction) -> bool {
        insn.cpuid_features().iter().all(|&feature| self.has(feature))
    }
}

fn place(feature: CpuidFeature) -> (usize, u64) {
    let number = feature as usize;
    (number / 64, 1 << (number % 64))
}
