//! ddmin: tries parts of the list alone, then everything but one part, with ever smaller
//! parts. What is left is 1-minimal: no single element can be left out.

use super::{Kept, List, live, partition};
use crate::oracle::{Oracle, Outcome};

pub fn ddmin(list: &List, oracle: &mut dyn Oracle) -> Outcome<Kept> {
    let mut kept = vec![true; list.len()];
    // A list that is not needed at all would otherwise keep its last element.
    let nothing = vec![false; list.len()];
    if list.is_empty() || oracle.fails((list.render)(&nothing))? {
        return Ok(nothing);
    }
    let mut parts = 2;
    loop {
        let left = live(&kept);
        if left.len() < 2 {
            return Ok(kept);
        }
        parts = parts.min(left.len());
        let pieces = partition(&left, parts);
        let alone = pieces.iter().map(|piece| only(list.len(), piece));
        // With two pieces, each is what is left without the other.
        let others = if parts == 2 { &[] } else { pieces.as_slice() };
        let without = others.iter().map(|piece| all_but(&kept, piece));
        let mut tried = alone.chain(without);
        match oracle.first(&mut tried.by_ref().map(|kept| (list.render)(&kept)))? {
            Some(index) if index < parts => {
                kept = only(list.len(), pieces[index]);
                parts = 2;
            }
            Some(index) => {
                kept = all_but(&kept, pieces[index - parts]);
                parts = (parts - 1).max(2);
            }
            None if parts == left.len() => return Ok(kept),
            None => parts *= 2,
        }
    }
}

fn only(length: usize, piece: &[usize]) -> Kept {
    let mut kept = vec![false; length];
    for &index in piece {
        kept[index] = true;
    }
    kept
}

fn all_but(kept: &[bool], piece: &[usize]) -> Kept {
    let mut kept = kept.to_vec();
    for &index in piece {
        kept[index] = false;
    }
    kept
}
