//! Random numbers that can be had again: the seed is printed, and taken from `WHY_SEED`.

pub struct Random(u64);

impl Random {
    /// A failing test shows what it printed, and so the seed.
    pub fn new() -> Random {
        let given = std::env::var("WHY_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let seed = given.unwrap_or_else(|| {
            let now = std::time::UNIX_EPOCH.elapsed().expect("it is after 1970");
            now.as_nanos() as u64 | 1
        });
        println!("WHY_SEED={seed}");
        Random(seed.max(1))
    }

    /// xorshift64*.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() >> 16) as usize % limit
    }

    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// So many turns of a test, or as many as `WHY_TURNS` says.
pub fn turns(usual: usize) -> usize {
    std::env::var("WHY_TURNS").ok().map_or(usual, |turns| turns.parse().expect("a number"))
}
