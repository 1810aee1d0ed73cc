//! Phrases within a node: a part that may not be left out alone, but together with its
//! neighbours, as `NOT NULL` or `ON DELETE CASCADE` where a grammar has no node for them.

use super::Language;
use super::parse::{Parse, Parsed};
use super::removal::Removal;
use super::trial::Trial;
use super::types::Types;
use rustc_hash::FxHashMap;

/// A phrase has at most so many words.
const LONGEST: usize = 4;

/// Neighbours that look alike: the symbol of their parent, their own, and what stands around
/// them.
type Pattern = (&'static str, Vec<Option<&'static str>>);

pub(super) struct Phrases<'a> {
    pub language: &'a Language,
    pub parsed: &'a Parsed,
    pub types: &'a Types,
    pub known: FxHashMap<Pattern, bool>,
}

impl Phrases<'_> {
    /// The first and the last child of each phrase in a node.
    pub fn within(
        &mut self,
        parent: &Parse,
        removals: &[Removal],
        trial: &mut Trial,
    ) -> Vec<(usize, usize)> {
        let count = parent.children.len();
        let mut may_go: Vec<bool> = (0..count).map(|at| self.may_go(parent, at)).collect();
        let stays = |at: usize| removals[parent.children[at]] == Removal::Never;
        let mut found: Vec<(usize, usize)> = Vec::new();
        // The shortest first, and of these what stands last: what follows belongs to it.
        for length in 2..=LONGEST.min(count) {
            for first in (0..=count - length).rev() {
                let last = first + length - 1;
                if may_go[first..=last].iter().all(|&may_go| may_go)
                    && (first..=last).any(stays)
                    && self.goes(parent, first, last, trial)
                {
                    // No part belongs to two.
                    may_go[first..=last].fill(false);
                    found.push((first, last));
                }
            }
        }
        found
    }

    /// Whether a child may belong to a phrase.
    fn may_go(&self, parent: &Parse, at: usize) -> bool {
        let child = &self.parsed.nodes[parent.children[at]];
        let slot = self.types.slot(parent.symbol, child.field);
        let needed = slot.is_some_and(|slot| slot.required && !slot.multiple);
        let fixed = self.language.fixed.contains(&child.symbol);
        child.named && !child.error && !child.extra && !needed && !fixed
    }

    /// Whether these may be left out together.
    fn goes(&mut self, parent: &Parse, first: usize, last: usize, trial: &mut Trial) -> bool {
        let child = |at: usize| &self.parsed.nodes[parent.children[at]];
        let symbol = |at: usize| Some(self.parsed.nodes[*parent.children.get(at)?].symbol);
        let before = first.checked_sub(1).and_then(symbol);
        let symbols = std::iter::once(before).chain((first..=last + 1).map(symbol)).collect();
        let (begin, end) = (child(first), child(last));
        *self.known.entry((parent.symbol, symbols)).or_insert_with(|| {
            let span = begin.span.start..end.span.end;
            trial.goes_on() && trial.fits(parent, span, (begin.start, end.end), &[])
        })
    }
}
