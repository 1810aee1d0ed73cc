//! The closing sweep: tries to leave out each element alone, round and round, until none of
//! them can be: then the list is 1-minimal.

use super::{List, live};
use crate::oracle::{Oracle, Outcome};
use std::collections::BTreeSet;

/// Goes from the end to the start: what is used later goes before what it uses.
pub fn sweep(list: &List, kept: &mut [bool], oracle: &mut dyn Oracle) -> Outcome<bool> {
    sweep_in(live(kept).into_iter().rev().collect(), list, kept, oracle)
}

/// The same in another order.
pub fn sweep_in(
    mut order: Vec<usize>,
    list: &List,
    kept: &mut [bool],
    oracle: &mut dyn Oracle,
) -> Outcome<bool> {
    let mut changed = false;
    loop {
        let mut candidates = order.iter().map(|&index| list.without(kept, &[index]));
        let Some(tried) = oracle.first(&mut candidates)? else { return Ok(changed) };
        // Those that could not be left out before are tried again, after the others.
        order.rotate_left(tried);
        let gone = order.remove(0);
        kept[gone] = false;
        changed = true;
        // What stands beside it probably goes, too.
        for neighbour in [next(kept, gone), previous(kept, gone)].into_iter().flatten() {
            if let Some(at) = order.iter().position(|&index| index == neighbour) {
                order[..=at].rotate_right(1);
            }
        }
    }
}

fn previous(kept: &[bool], index: usize) -> Option<usize> {
    (0..index).rev().find(|&index| kept[index])
}

fn next(kept: &[bool], index: usize) -> Option<usize> {
    (index + 1..kept.len()).find(|&index| kept[index])
}

/// A single round of it, for those who come back.
pub fn pass(list: &List, kept: &mut [bool], oracle: &mut dyn Oracle) -> Outcome<()> {
    pass_over(list, live(kept), kept, oracle)
}

/// The same over some of the elements.
pub(super) fn pass_over(
    list: &List,
    mut order: Vec<usize>,
    kept: &mut [bool],
    oracle: &mut dyn Oracle,
) -> Outcome<()> {
    loop {
        let mut candidates = order.iter().rev().map(|&index| list.without(kept, &[index]));
        let Some(index) = oracle.first(&mut candidates)? else { return Ok(()) };
        order.truncate(order.len() - index);
        kept[order.pop().expect("it was tried")] = false;
    }
}

/// A single round where elements with the same key are alike: the first of them that cannot be
/// left out speaks for those that come after it.
pub fn pass_alike<K: Ord + Copy>(
    list: &List,
    keys: &[K],
    kept: &mut [bool],
    oracle: &mut dyn Oracle,
) -> Outcome<()> {
    let mut order: Vec<usize> = live(kept);
    let mut needed: BTreeSet<K> = BTreeSet::new();
    loop {
        let mut known = needed.clone();
        let is_new = |index: &usize| known.insert(keys[*index]);
        let tried: Vec<usize> = order.iter().rev().copied().filter(is_new).collect();
        let mut candidates = tried.iter().map(|&index| list.without(kept, &[index]));
        let Some(accepted) = oracle.first(&mut candidates)? else { return Ok(()) };
        needed.extend(tried[..accepted].iter().map(|&index| keys[index]));
        let gone = tried[accepted];
        kept[gone] = false;
        order.retain(|&index| index < gone);
    }
}
