//! Algorithms over a tree of parts. All of them choose, from a list of edits, as many as can
//! be made together; they differ in which edits are in a list.

mod draft;
mod hdd;
mod hoist;
mod replace;

pub use draft::{Draft, Edit, Put};
pub use hdd::{Level, Variant, hdd, hdd_plus, hdd_star, hddr, nodes_of_level, sweep_nodes};
pub use hoist::hoist;
pub use replace::replace;

use crate::lists::{Kept, List, Minimiser, sweep};
use crate::oracle::{Oracle, Outcome};

/// How a list of edits is searched.
#[derive(Clone, Copy)]
pub struct Search {
    pub minimiser: Minimiser,
    /// A guess how many of them cannot be made.
    pub expected: f64,
    /// Whether each that is left is tried by itself at the end.
    pub sweep: bool,
}

impl Search {
    pub const DDMIN: Search = Search { minimiser: Minimiser::Ddmin, expected: 1.0, sweep: false };
    pub const EACH: Search = Search { minimiser: Minimiser::Sweep, expected: 1.0, sweep: false };

    /// ProbDD, with this guess.
    pub fn expecting(needed: f64) -> Search {
        Search { minimiser: Minimiser::ProbDd, expected: needed.max(1.0), sweep: false }
    }
}

/// Makes as many of the edits as can be made, and says how many that were.
pub fn make(
    draft: &mut Draft,
    edits: Vec<Edit>,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    if edits.is_empty() {
        return Ok(0);
    }
    let sizes = draft.sizes();
    let weights = edits.iter().map(|edit| draft.gain(edit, &sizes).max(1)).collect();
    let render = |kept: &[bool]| draft.with(&edits, kept).render();
    let list = List { weights, render: &render };
    let mut kept: Kept = search.minimiser.run(&list, search.expected, oracle)?;
    if search.sweep {
        sweep(&list, &mut kept, oracle)?;
    }
    *draft = draft.with(&edits, &kept);
    Ok(kept.iter().filter(|kept| !**kept).count())
}
