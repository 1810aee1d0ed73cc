//! `auto`: large steps first, then small ones, until no step is left.

use crate::changes::{self, Change};
use crate::lexical;
use crate::oracle::{Oracle, Outcome};
use crate::trees::{Draft, Search, Variant, hdd, hoist, hoist_largest, replace, sweep_nodes};
use crate::units::{Unit, bracket_pairs};
use why_tree::Tree;

/// Who knows the formats.
pub trait Reader {
    /// The tree of a text, in its own language.
    fn tree(&self, text: &[u8]) -> Tree;
    /// What brackets, tags and lines say of any text.
    fn brackets(&self, text: &[u8]) -> Tree;
}

/// A text that is no longer than this ends 1-minimal in bytes.
pub const SMALL: usize = 1024;
/// So many tokens are not tried one by one while larger steps may be left.
const FEW: usize = 200;

/// What is left fails, and no node, no token, and of a small text no byte can be left out.
pub fn auto(text: &[u8], reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut text = text.to_vec();
    let mut next = coarse(text.clone(), reader, oracle)?;
    loop {
        let large_steps_left = next.len();
        next = fine(next, oracle)?;
        next = closing(next, reader, oracle)?;
        // Parts that become neighbours are kept apart, so a step can make a text longer.
        if (next.len(), &next) >= (text.len(), &text) {
            return Ok(text);
        }
        let much = next.len() * 10 < large_steps_left * 9;
        text = next;
        // After little has changed, there is little left for large steps.
        next = if much { coarse(text.clone(), reader, oracle)? } else { text.clone() };
    }
}

/// Whole parts of the tree, as long as that helps.
fn coarse(mut text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    loop {
        let before = text.len();
        text = levels(&reader.tree(&text), &text, oracle)?;
        if text.len() > SMALL {
            // The language may be another one, or its tree not what matters here.
            text = levels(&reader.brackets(&text), &text, oracle)?;
        }
        // Another pass over the tree is for what has become needless meanwhile.
        if text.len() * 10 >= before * 9 {
            return Ok(text);
        }
    }
}

fn levels(tree: &Tree, text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut draft = Draft::new(tree, text);
    oracle.phase("levels");
    hdd(&mut draft, Variant::All, Search::impatient(1.0, 40), oracle)?;
    oracle.phase("hoist");
    // Either nearly all that is nested can be taken out, or little.
    hoist_largest(&mut draft, Search::impatient(1.0, 10), oracle)?;
    Ok(draft.render())
}

/// What trees do not see.
fn fine(text: Vec<u8>, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    oracle.phase("space");
    let text = lexical::squeeze(&text, oracle)?;
    oracle.phase("names");
    let text = lexical::shorten(&text, oracle)?;
    if text.len() > SMALL {
        return Ok(text);
    }
    oracle.phase("long tokens");
    lexical::thin(&text, oracle)
}

/// Every part by itself, from the largest to the smallest.
fn closing(text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    oracle.phase("nodes");
    let text = each_node(&reader.tree(&text), &text, oracle)?;
    oracle.phase("brackets");
    let text = each_node(&reader.brackets(&text), &text, oracle)?;
    let pairs: Vec<Change> = bracket_pairs(&text)
        .into_iter()
        .map(|pair| Change { spans: pair.to_vec(), put: Vec::new() })
        .collect();
    let text = changes::make(&text, &pairs, Search::EACH, oracle)?;
    oracle.phase("tokens");
    let text = tokens(&text, oracle)?;
    if text.len() > SMALL {
        return Ok(text);
    }
    oracle.phase("bytes");
    let changes: Vec<Change> = Unit::Byte.cut(&text).into_iter().map(Change::removal).collect();
    changes::make(&text, &changes, Search::EACH, oracle)
}

fn each_node(tree: &Tree, text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut draft = Draft::new(tree, text);
    sweep_nodes(&mut draft, oracle)?;
    hoist(&mut draft, Search::EACH, oracle)?;
    replace(&mut draft, Search::EACH, oracle)?;
    Ok(draft.render())
}

fn tokens(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let removals = |text: &[u8]| -> Vec<Change> {
        Unit::Token.cut(text).into_iter().map(Change::removal).collect()
    };
    let mut text = text.to_vec();
    let all = removals(&text);
    if all.len() > FEW {
        let needed = all.len() as f64 / 2.0;
        text = changes::make(&text, &all, Search::expecting(needed), oracle)?;
    }
    changes::make(&text, &removals(&text), Search::EACH, oracle)
}
