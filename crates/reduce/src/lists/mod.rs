//! Algorithms over a list of parts, of which as many as possible are to be left out.

mod cdd;
mod dd;
mod ddmin;
mod probdd;
mod sweep;

use crate::oracle::{Oracle, Outcome};

pub use cdd::cdd;
pub use dd::{Pair, dd};
pub use ddmin::ddmin;
pub use probdd::{Belief, probdd};
pub use sweep::{pass, pass_alike, sweep, sweep_in};

/// Which parts of a list are kept.
pub type Kept = Vec<bool>;

/// A list of parts.
pub struct List<'a> {
    /// How much is gained by leaving each of them out; never 0.
    pub weights: Vec<usize>,
    /// What is left with these parts kept.
    pub render: &'a dyn Fn(&[bool]) -> Vec<u8>,
}

impl List<'_> {
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// What is left when these are left out, too.
    fn without(&self, kept: &[bool], out: &[usize]) -> Vec<u8> {
        let mut kept = kept.to_vec();
        for &index in out {
            kept[index] = false;
        }
        (self.render)(&kept)
    }
}

/// The algorithm that makes a list shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimiser {
    Ddmin,
    Cdd,
    ProbDd,
    /// Each part by itself, until none can be left out.
    Sweep,
    /// Each part by itself, once.
    Pass,
}

impl Minimiser {
    /// Only ProbDD believes something.
    pub fn run(self, list: &List, belief: Belief, oracle: &mut dyn Oracle) -> Outcome<Kept> {
        match self {
            Minimiser::Ddmin => ddmin(list, oracle),
            Minimiser::Cdd => cdd(list, oracle),
            Minimiser::ProbDd => probdd(list, belief, oracle),
            Minimiser::Sweep => {
                let mut kept = vec![true; list.len()];
                sweep(list, &mut kept, oracle)?;
                Ok(kept)
            }
            Minimiser::Pass => {
                let mut kept = vec![true; list.len()];
                pass(list, &mut kept, oracle)?;
                Ok(kept)
            }
        }
    }
}

fn live(kept: &[bool]) -> Vec<usize> {
    (0..kept.len()).filter(|&index| kept[index]).collect()
}

/// Cuts a list into so many parts that differ in length by at most one.
fn partition(list: &[usize], parts: usize) -> Vec<&[usize]> {
    let border = |part: usize| list.len() * part / parts;
    (0..parts).map(|part| &list[border(part)..border(part + 1)]).collect()
}
