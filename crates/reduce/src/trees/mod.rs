//! Algorithms over a tree of parts. All of them choose, from a list of edits, as many as can
//! be made together; they differ in which edits are in a list.

mod columns;
mod draft;
mod hdd;
mod hoist;
mod replace;

pub use columns::columns;
pub use draft::{Draft, Edit, Put};
pub use hdd::{
    Level, Variant, hdd, hdd_plus, hdd_star, hddr, nodes_of_level, pass_nodes, sweep_nodes,
};
pub use hoist::{hoist, hoist_largest};
pub use replace::{replace, replace_phrases};

use crate::lists::{Belief, Kept, List, Minimiser, sweep};
use crate::oracle::{Oracle, Outcome};

/// How a list of edits is searched.
#[derive(Clone, Copy)]
pub struct Search {
    pub minimiser: Minimiser,
    pub belief: Belief,
    /// Whether each that is left is tried by itself at the end.
    pub sweep: bool,
}

/// So few parts are tried one by one where many of them are needed.
pub const FEW: usize = 300;

const NO_BELIEF: Belief =
    Belief { needed: 1.0, share: 0.0, certain: 1.0, whole: 0, patience: usize::MAX };

/// Only what was tried by itself is needed for certain, or nearly.
const CAUTIOUS: Belief = Belief { certain: 0.98, ..NO_BELIEF };

impl Search {
    pub const DDMIN: Search =
        Search { minimiser: Minimiser::Ddmin, belief: NO_BELIEF, sweep: false };
    pub const EACH: Search =
        Search { minimiser: Minimiser::Sweep, belief: NO_BELIEF, sweep: false };
    pub const ONCE: Search = Search { minimiser: Minimiser::Pass, belief: NO_BELIEF, sweep: false };

    /// ProbDD over parts of which so many are needed, down to single ones.
    pub fn expecting(needed: f64) -> Search {
        let belief = Belief { needed: needed.max(1.0), ..CAUTIOUS };
        Search { minimiser: Minimiser::ProbDd, belief, sweep: false }
    }

    /// Over so many parts of which about half are needed.
    pub fn among(parts: usize) -> Search {
        if parts <= FEW { Search::ONCE } else { Search::expecting(parts as f64 / 2.0) }
    }

    /// The same, for those who come back later: more tries than this in a row that come to
    /// nothing are better spent elsewhere.
    pub fn impatient(needed: f64, patience: usize) -> Search {
        let mut search = Search::expecting(needed);
        search.belief.patience = patience;
        search
    }

    /// Which parts of a list are kept.
    pub fn run(&self, list: &List, oracle: &mut dyn Oracle) -> Outcome<Kept> {
        if list.is_empty() {
            return Ok(Vec::new());
        }
        let mut kept = self.minimiser.run(list, self.belief, oracle)?;
        if self.sweep {
            sweep(list, &mut kept, oracle)?;
        }
        Ok(kept)
    }

    /// Whether a part of this size is tried at all.
    fn tries(&self, size: usize) -> bool {
        let needed = self.belief.needed * size as f64 / self.belief.whole.max(1) as f64;
        self.minimiser != Minimiser::ProbDd || needed < self.belief.certain
    }
}

/// Makes as many of the edits as can be made, and says how many that were.
pub fn make(
    draft: &mut Draft,
    edits: Vec<Edit>,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    make_groups(draft, edits.into_iter().map(|edit| vec![edit]).collect(), search, oracle)
}

/// The same, with edits that are made together or not at all.
fn make_groups(
    draft: &mut Draft,
    groups: Vec<Vec<Edit>>,
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<usize> {
    let sizes = draft.sizes();
    let gain = |edits: &Vec<Edit>| edits.iter().map(|edit| draft.gain(edit, &sizes)).sum();
    let weights = groups.iter().map(|edits| 1.max(gain(edits))).collect();
    let render = |kept: &[bool]| draft.with(&groups, kept).render();
    let list = List { weights, render: &render };
    let kept = search.run(&list, oracle)?;
    *draft = draft.with(&groups, &kept);
    Ok(kept.iter().filter(|kept| !**kept).count())
}
