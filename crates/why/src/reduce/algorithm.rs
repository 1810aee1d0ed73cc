//! The algorithms by their names.

use why_reduce::auto::{Reader, auto};
use why_reduce::changes;
use why_reduce::lexical;
use why_reduce::lists::Minimiser;
use why_reduce::shrinking::Shrinking;
use why_reduce::trees::{
    Draft, Search, Variant, hdd, hdd_plus, hdd_star, hddr, hoist, replace, sweep_nodes,
};
use why_reduce::units::Unit;
use why_reduce::{Oracle, Outcome};
use why_tree::Tree;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    /// All that follow, large steps first, until none is left
    Auto,
    /// Delta debugging over units, 1-minimal
    Ddmin,
    /// Ever smaller pieces at a fixed ratio, then one by one
    Cdd,
    /// What promises most, by probabilities, then one by one
    Probdd,
    /// One level of the tree after the other
    Hdd,
    /// HDD until nothing changes: 1-tree-minimal
    #[value(name = "hdd*")]
    HddStar,
    /// HDD, then every node by itself: 1-tree-minimal
    #[value(name = "hdd+")]
    HddPlus,
    /// HDD over the parts of one node after the other
    Hddr,
    /// HDD over what can be left out without a trace
    HddCoarse,
    /// HDD whose last level has all leaves
    HddLeaf,
    /// Parts take the place of what they are nested in
    Hoist,
    /// The smallest text of the same kind
    Replace,
    /// HDD* and hoisting over brackets, tags and lines
    Brackets,
    /// Shorter names, numbers and strings
    Lexical,
    /// Less white space
    Space,
}

impl Algorithm {
    /// Whether it ends only when it has tried to leave out each unit or each node alone.
    pub fn proves_minimal(self) -> bool {
        match self {
            Algorithm::Auto
            | Algorithm::Ddmin
            | Algorithm::Cdd
            | Algorithm::Probdd
            | Algorithm::HddStar
            | Algorithm::HddPlus
            | Algorithm::Brackets => true,
            Algorithm::Hdd
            | Algorithm::Hddr
            | Algorithm::HddCoarse
            | Algorithm::HddLeaf
            | Algorithm::Hoist
            | Algorithm::Replace
            | Algorithm::Lexical
            | Algorithm::Space => false,
        }
    }

    pub fn run(
        self,
        text: &[u8],
        unit: Unit,
        reader: &dyn Reader,
        oracle: &mut dyn Oracle,
    ) -> Outcome<Vec<u8>> {
        let oracle: &mut dyn Oracle = &mut Shrinking::new(oracle, text.len());
        let list = |minimiser: Minimiser, oracle: &mut dyn Oracle| {
            let sweep = minimiser != Minimiser::Ddmin;
            let search = Search { minimiser, sweep, ..Search::expecting(2.0) };
            changes::leave_out(text, &unit.cut(text), search, oracle)
        };
        let tree = |oracle: &mut dyn Oracle, over: &Over| {
            over_tree(&reader.tree(text), text, over, oracle)
        };
        let ddmin = Search::DDMIN;
        match self {
            Algorithm::Auto => auto(text, reader, oracle),
            Algorithm::Ddmin => list(Minimiser::Ddmin, oracle),
            Algorithm::Cdd => list(Minimiser::Cdd, oracle),
            Algorithm::Probdd => list(Minimiser::ProbDd, oracle),
            Algorithm::Hdd => {
                tree(oracle, &|draft, oracle| hdd(draft, Variant::All, ddmin, oracle))
            }
            Algorithm::HddStar => {
                tree(oracle, &|draft, oracle| hdd_star(draft, Variant::All, ddmin, oracle))
            }
            Algorithm::HddPlus => {
                tree(oracle, &|draft, oracle| hdd_plus(draft, Variant::All, ddmin, oracle))
            }
            Algorithm::Hddr => tree(oracle, &|draft, oracle| hddr(draft, ddmin, oracle)),
            Algorithm::HddCoarse => {
                tree(oracle, &|draft, oracle| hdd(draft, Variant::Coarse, ddmin, oracle))
            }
            Algorithm::HddLeaf => {
                tree(oracle, &|draft, oracle| hdd(draft, Variant::LeafAligned, ddmin, oracle))
            }
            Algorithm::Hoist => tree(oracle, &|draft, oracle| hoist(draft, ddmin, oracle)),
            Algorithm::Replace => tree(oracle, &|draft, oracle| replace(draft, ddmin, oracle)),
            Algorithm::Brackets => {
                let brackets = reader.brackets(text);
                over_tree(
                    &brackets,
                    text,
                    &|draft, oracle| {
                        hdd_star(draft, Variant::All, ddmin, oracle)?;
                        hoist(draft, ddmin, oracle)?;
                        sweep_nodes(draft, oracle)
                    },
                    oracle,
                )
            }
            Algorithm::Lexical => {
                let text = lexical::shorten(text, oracle)?;
                lexical::thin(&text, oracle)
            }
            Algorithm::Space => lexical::squeeze(text, oracle),
        }
    }
}

type Over<'a> = dyn Fn(&mut Draft, &mut dyn Oracle) -> Outcome<usize> + 'a;

fn over_tree(tree: &Tree, text: &[u8], over: &Over, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut draft = Draft::new(tree, text);
    over(&mut draft, oracle)?;
    Ok(draft.render())
}
