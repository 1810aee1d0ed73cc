//! The closing sweep: tries to leave out each element alone, round and round, until none of
//! them can be: then the list is 1-minimal.

use super::{List, live};
use crate::oracle::{Oracle, Outcome};

/// Goes from the end to the start: what is used later goes before what it uses.
pub fn sweep(list: &List, kept: &mut [bool], oracle: &mut dyn Oracle) -> Outcome<bool> {
    let mut changed = false;
    let mut order = live(kept);
    order.reverse();
    loop {
        let mut candidates = order.iter().map(|&index| list.without(kept, &[index]));
        let Some(index) = oracle.first(&mut candidates)? else { break };
        kept[order[index]] = false;
        changed = true;
        // Those that could not be left out before are tried again, after the others.
        order.rotate_left(index);
        order.remove(0);
    }
    Ok(changed)
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
