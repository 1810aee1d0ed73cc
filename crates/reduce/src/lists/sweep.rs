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
