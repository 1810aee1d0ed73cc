//! Changes to a flat text: pieces of it are replaced, wherever they stand.

use crate::lists::{List, pass_alike, sweep_in};
use crate::oracle::{Oracle, Outcome};
use crate::trees::Search;
use crate::units::{Span, Unit};
use std::collections::BTreeSet;

/// Several places of the text that are changed together.
#[derive(Clone, Debug)]
pub struct Change {
    pub spans: Vec<Span>,
    pub put: Vec<u8>,
}

impl Change {
    fn gain(&self) -> usize {
        let before: usize = self.spans.iter().map(|span| span.len()).sum();
        before.saturating_sub(self.put.len() * self.spans.len())
    }
}

/// The text without as many of these pieces, in the order of the text, as can be left out.
pub fn leave_out(
    text: &[u8],
    pieces: &[Span],
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<Vec<u8>> {
    let render = |kept: &[bool]| without(text, pieces, kept);
    let list = List { weights: pieces.iter().map(Span::len).collect(), render: &render };
    Ok(render(&search.run(&list, oracle)?))
}

/// The same, each by itself and once; of pieces with the same text, white space around them
/// aside, the last that is needed speaks for those before it.
pub fn leave_out_alike(text: &[u8], pieces: &[Span], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let render = |kept: &[bool]| without(text, pieces, kept);
    let list = List { weights: pieces.iter().map(Span::len).collect(), render: &render };
    let keys: Vec<&[u8]> = pieces.iter().map(|piece| text[piece.clone()].trim_ascii()).collect();
    let mut kept = vec![true; pieces.len()];
    pass_alike(&list, &keys, &mut kept, oracle)?;
    Ok(render(&kept))
}

/// The text without any byte that can be left out alone. One of each token is tried before
/// the others: it tells whether the token has to be what it is.
pub fn leave_out_bytes(text: &[u8], oracle: &mut dyn Oracle) -> Outcome<Vec<u8>> {
    let bytes = Unit::Byte.cut(text);
    let render = |kept: &[bool]| without(text, &bytes, kept);
    let list = List { weights: vec![1; text.len()], render: &render };
    let mut order: Vec<usize> = (0..text.len()).rev().collect();
    let ends: BTreeSet<usize> = Unit::Token.pieces(text).map(|token| token.end - 1).collect();
    order.sort_by_key(|index| !ends.contains(index));
    let mut kept = vec![true; text.len()];
    sweep_in(order, &list, &mut kept, oracle)?;
    Ok(render(&kept))
}

fn without(text: &[u8], pieces: &[Span], kept: &[bool]) -> Vec<u8> {
    let out = || pieces.iter().zip(kept).filter(|(_, kept)| !**kept).map(|(piece, _)| piece);
    let mut result = Vec::with_capacity(text.len() - out().map(Span::len).sum::<usize>());
    let mut at = 0;
    for piece in out() {
        result.extend_from_slice(&text[at..piece.start]);
        at = piece.end;
    }
    result.extend_from_slice(&text[at..]);
    result
}

/// The text with as many of the changes as can be made. No two may touch the same place.
pub fn make(
    text: &[u8],
    changes: &[Change],
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<Vec<u8>> {
    let mut places: Vec<(Span, usize)> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        places.extend(change.spans.iter().map(|span| (span.clone(), index)));
    }
    places.sort_by_key(|(span, _)| span.start);
    let render = |kept: &[bool]| render(text, &places, changes, kept);
    let weights = changes.iter().map(|change| change.gain().max(1)).collect();
    let list = List { weights, render: &render };
    Ok(render(&search.run(&list, oracle)?))
}

fn render(text: &[u8], places: &[(Span, usize)], changes: &[Change], kept: &[bool]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    for (span, index) in places.iter().filter(|(_, index)| !kept[*index]) {
        result.extend_from_slice(&text[at..span.start]);
        result.extend_from_slice(&changes[*index].put);
        at = span.end;
    }
    result.extend_from_slice(&text[at..]);
    result
}
