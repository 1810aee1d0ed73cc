//! Code that is not looked into.

use super::compare::Random;
use super::stepped::Stepped;
use std::ops::Range;

/// What is not looked into, and what of that binds functions.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    pub code: Vec<Range<u64>>,
    pub binding: Vec<Range<u64>>,
}

impl Hidden {
    /// What binds functions in a program is so named, and so is what it calls for that.
    pub fn of_linker(run: &Stepped) -> Hidden {
        let named = |beginning: &str| -> Vec<Range<u64>> {
            let functions = run.image.functions.iter();
            let own = functions.filter(|(name, _)| name.starts_with(beginning));
            own.map(|(_, code)| code.clone()).collect()
        };
        let binding = named("linker_binds");
        Hidden { code: named("linker_"), binding }
    }

    pub fn has(&self, address: u64) -> bool {
        self.code.iter().any(|code| code.contains(&address))
    }

    /// With some functions, other than `main`, and a part of one that was executed.
    pub fn with_some(&self, run: &Stepped, random: &mut Random) -> Hidden {
        let mut hidden = self.clone();
        let mut executed = || run.steps[random.below(run.steps.len() as u64) as usize].insn.ip();
        for _ in 0..3 {
            let at = executed();
            let mut functions = run.image.functions.iter();
            let found = functions.find(|(name, code)| name != "main" && code.contains(&at));
            hidden.code.extend(found.map(|(_, code)| code.clone()));
        }
        let at = executed();
        hidden.code.push(at..at + 24);
        hidden
    }
}
