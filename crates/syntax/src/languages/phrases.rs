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
        let mut found: Vec<(usize, usize)> = Vec::new();
        for at in 0..parent.children.len() {
            let free = found.last().map_or(0, |(_, last)| last + 1);
            if at < free || removals[parent.children[at]] != Removal::Never {
                continue;
            }
            let in_phrase = |&at: &usize| self.may_go(parent, at);
            if !in_phrase(&at) {
                continue;
            }
            let before = (free..at).rev().take_while(in_phrase).count();
            let behind = (at..parent.children.len()).take_while(in_phrase).count();
            // The shortest that goes, and of these the one that begins last.
            let phrases = (2..=LONGEST.min(before + behind)).flat_map(|length| {
                let firsts = (at - before.min(length - 1)..=at).rev();
                firsts.map(move |first| (first, first + length - 1))
            });
            let phrases: Vec<(usize, usize)> =
                phrases.filter(|(_, last)| *last < at + behind).collect();
            found.extend(
                phrases.into_iter().find(|&(first, last)| self.goes(parent, first, last, trial)),
            );
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
        let around = first.checked_sub(1).into_iter().chain(first..=last).chain([last + 1]);
        let symbol = |at: usize| Some(self.parsed.nodes[*parent.children.get(at)?].symbol);
        let mut symbols: Vec<Option<&'static str>> = around.map(symbol).collect();
        symbols.insert(0, (first == 0).then_some(""));
        let (begin, end) = (child(first), child(last));
        *self.known.entry((parent.symbol, symbols)).or_insert_with(|| {
            let span = begin.span.start..end.span.end;
            trial.goes_on() && trial.fits(parent, span, (begin.start, end.end), &[])
        })
    }
}
