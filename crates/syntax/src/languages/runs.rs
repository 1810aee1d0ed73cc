//! Lists within a node: parts that follow each other with one and the same sign between any
//! two of them.

use super::parse::{Parse, Parsed};
use super::types::Types;

/// The children of a node that make a list, by their place among all children.
pub(super) struct Run {
    pub children: Vec<usize>,
    pub sign: &'static str,
}

pub(super) fn runs(parsed: &Parsed, types: &Types, parent: &Parse) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    // The child before, whether a run goes on with it, and the signs since.
    let mut before: Option<(usize, bool)> = None;
    let mut signs: Vec<&'static str> = Vec::new();
    for (at, &index) in parent.children.iter().enumerate() {
        let child = &parsed.nodes[index];
        if child.extra {
            continue;
        }
        if !child.named {
            signs.push(child.symbol);
            continue;
        }
        let multiple = types.slot(parent.symbol, child.field).is_some_and(|slot| slot.multiple);
        let mut listed = false;
        if let (Some((last, in_run)), [sign]) = (before, &signs[..])
            && multiple
            && !sign.trim().is_empty()
            && parsed.nodes[parent.children[last]].field == child.field
        {
            listed = true;
            match runs.last_mut().filter(|run| in_run && run.sign == *sign) {
                Some(run) => run.children.push(at),
                None if in_run => listed = false,
                None => runs.push(Run { children: vec![last, at], sign }),
            }
        }
        before = Some((at, listed));
        signs.clear();
    }
    runs
}
