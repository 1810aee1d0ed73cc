//! `auto`: large steps first, then small ones, until no step is left.

use crate::changes::{self, Change};
use crate::lexical;
use crate::oracle::{Oracle, Outcome};
use crate::shrinking::Shrinking;
use crate::trees::{
    Draft, FEW, Search, Variant, columns, hdd, hoist, hoist_largest, pass_nodes, replace_phrases,
};
use crate::units::{Span, Unit, bracket_pairs};
use std::borrow::Cow;
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

/// A text that is longer is cut into so many blocks of lines.
const LARGE: usize = 4 << 20;
const BLOCKS: usize = 512;

/// What is left fails, and no node, no token, and of a small text no byte can be left out.
pub fn auto(text: &[u8], reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let oracle = &mut Shrinking::new(oracle, text.len());
    let mut text = blocks(text, oracle)?;
    loop {
        text = coarse(text, reader, oracle)?;
        text = fine(text, oracle)?;
        let large_steps_left = text.len();
        text = other_parts(text, reader, oracle)?;
        text = every_part(text, reader, oracle)?;
        // After little has changed, there is little left for large steps.
        if text.len() * 2 >= large_steps_left {
            return Ok(text);
        }
    }
}

/// Of a large text first all that can be told without a tree, which takes several times the
/// room: blocks of lines.
fn blocks(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut left = Cow::Borrowed(text);
    while left.len() > LARGE {
        oracle.phase("blocks");
        let blocks = blocks_of(&left);
        let smaller = changes::leave_out(&left, &blocks, Search::impatient(1.0, 20), oracle)?;
        let little = smaller.len() * 2 > left.len();
        left = Cow::Owned(smaller);
        if little {
            break;
        }
    }
    Ok(left.into_owned())
}

/// Whole lines, in so many blocks of about the same size.
fn blocks_of(text: &[u8]) -> Vec<Span> {
    let mut blocks: Vec<Span> = Vec::new();
    for line in Unit::Line.pieces(text) {
        match blocks.last_mut() {
            Some(block) if block.len() < text.len() / BLOCKS => block.end = line.end,
            _ => blocks.push(line),
        }
    }
    blocks
}

/// Whole parts of the tree, as long as that helps much.
fn coarse(mut text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let mut search = Search::impatient(1.0, 40);
    while text.len() > SMALL {
        let before = text.len();
        text = levels(&reader.tree(&text), &text, search, oracle)?;
        if text.len() > SMALL {
            // The language may be another one, or its tree not what matters here.
            text = levels(&reader.brackets(&text), &text, search, oracle)?;
        }
        // Another pass over the tree is for what has become needless meanwhile: not much.
        if text.len() > 4 * SMALL {
            search.belief.share = 0.5;
        } else {
            search = Search::ONCE;
        }
        if text.len() > SMALL && text.len() * 2 >= before {
            return Ok(text);
        }
    }
    small(text, search, reader, oracle)
}

/// What goes together only is left out before its parts are tried by themselves.
fn small(
    text: Vec<u8>,
    search: Search,
    reader: &dyn Reader,
    oracle: &mut dyn Oracle,
) -> Outcome<Vec<u8>> {
    let text = together(text, reader, oracle)?;
    let before = text.len();
    let text = levels(&reader.tree(&text), &text, search, oracle)?;
    if text.len() * 2 >= before {
        return Ok(text);
    }
    // Every node is tried by itself soon, but what is nested comes out now or never.
    oracle.phase("hoist");
    over(&reader.tree(&text), &text, |draft| nested(draft, oracle))
}

/// What stands at the same place of several lists.
fn together(text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    oracle.phase("columns");
    over(&reader.brackets(&text), &text, |draft| columns(draft, oracle))
}

fn levels(tree: &Tree, text: &[u8], search: Search, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    over(tree, text, |draft| {
        oracle.phase("levels");
        let made = hdd(draft, Variant::Rough { enough: SMALL }, search, oracle)?;
        if text.len() > SMALL && draft.render().len() <= SMALL {
            // It is read again before anything else is tried.
            return Ok(made);
        }
        oracle.phase("hoist");
        nested(draft, oracle)
    })
}

/// Either nearly all that is nested can be taken out, or little.
fn nested(draft: &mut Draft, oracle: &mut dyn Oracle) -> Outcome<usize> {
    hoist_largest(draft, Search::impatient(1.0, 10), oracle)
}

/// What trees do not see.
fn fine(text: Vec<u8>, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    oracle.phase("space");
    let text = lexical::squeeze(&text, oracle)?;
    let text = lexical::dedent(&text, oracle)?;
    oracle.phase("names");
    let text = lexical::shorten(&text, oracle)?;
    if text.len() > SMALL {
        return Ok(text);
    }
    oracle.phase("long tokens");
    lexical::thin(&text, oracle)
}

/// Parts that go together, or give their place to others. What is found here need not be
/// found by trying every part.
fn other_parts(text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let text = together(text, reader, oracle)?;
    let text = words(text, oracle)?;
    oracle.phase("parts");
    let text = over(&reader.brackets(&text), &text, |draft| pass_nodes(draft, oracle))?;
    let text = over(&reader.tree(&text), &text, |draft| {
        pass_nodes(draft, oracle)?;
        hoist(draft, Search::ONCE, oracle)?;
        replace_phrases(draft, Search::ONCE, oracle)
    })?;
    oracle.phase("pairs");
    let pair = |pair: [Span; 2]| Change { spans: pair.to_vec(), put: Vec::new() };
    let pairs: Vec<Change> = bracket_pairs(&text).into_iter().map(pair).collect();
    changes::make(&text, &pairs, Search::ONCE, oracle)
}

fn words(text: Vec<u8>, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    oracle.phase("words");
    let words = lexical::words(&text);
    let without = if words.len() <= FEW {
        changes::leave_out_alike(&text, &words, oracle)?
    } else {
        changes::leave_out(&text, &words, Search::among(words.len()), oracle)?
    };
    // White space is as it was where nothing has gone from beside it.
    if without == text { Ok(text) } else { lexical::squeeze(&without, oracle) }
}

fn over(
    tree: &Tree,
    text: &[u8],
    mut step: impl FnMut(&mut Draft) -> Outcome<usize>,
) -> Outcome<Vec<u8>> {
    let mut draft = Draft::new(tree, text);
    step(&mut draft)?;
    Ok(draft.render())
}

/// Every part by itself, from the largest to the smallest, until none can be left out.
fn every_part(mut text: Vec<u8>, reader: &dyn Reader, oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    loop {
        let before = text.clone();
        oracle.phase("nodes");
        text = over(&reader.tree(&text), &text, |draft| pass_nodes(draft, oracle))?;
        text = over(&reader.brackets(&text), &text, |draft| pass_nodes(draft, oracle))?;
        oracle.phase("tokens");
        text = changes::leave_out(&text, &Unit::Token.cut(&text), Search::ONCE, oracle)?;
        if text.len() <= SMALL {
            oracle.phase("bytes");
            text = changes::leave_out_bytes(&text, oracle)?;
        }
        if text == before {
            return Ok(text);
        }
    }
}
