//! CDD: every round goes once through the list and tries to leave out one piece of it after
//! the other; each round's pieces are smaller by a fixed ratio. The last round's are single
//! elements, and a closing sweep makes the list 1-minimal.

use super::{Kept, List, live, sweep};
use crate::oracle::{Oracle, Outcome};

/// By how much pieces get smaller: what ProbDD's probabilities come to if a round finds
/// nothing.
const RATIO: f64 = 0.63;

pub fn cdd(list: &List, oracle: &mut dyn Oracle) -> Outcome<Kept> {
    let mut kept = vec![true; list.len()];
    let mut size = list.len();
    while size > 0 {
        round(list, size, &mut kept, oracle)?;
        let left = live(&kept).len();
        if size == 1 {
            break;
        }
        size = ((size as f64 * RATIO) as usize).min(left).max(1);
    }
    sweep(list, &mut kept, oracle)?;
    Ok(kept)
}

fn round(list: &List, size: usize, kept: &mut Kept, oracle: &mut dyn Oracle) -> Outcome<()> {
    let mut left = live(kept);
    while !left.is_empty() {
        let pieces: Vec<&[usize]> = left.rchunks(size).collect();
        let mut candidates = pieces.iter().map(|piece| list.without(kept, piece));
        let Some(index) = oracle.first(&mut candidates)? else { break };
        for &element in pieces[index] {
            kept[element] = false;
        }
        left.truncate(left.len().saturating_sub((index + 1) * size));
    }
    Ok(())
}
