//! What may be left out. What a grammar publishes tells which parts may be absent, but not
//! which signs have to go with them, and nothing of what its hand-written scanners do. So
//! for each pattern of parts the parser is asked, at the first place that has it, whether
//! what remains still fits.

use super::Language;
use super::parse::{Parse, Parsed};
use super::phrases::Phrases;
use super::runs::{Run, runs};
use super::trial::Trial;
use super::types::Types;
use rustc_hash::FxHashMap;

/// What has to go with a part that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Removal {
    Alone,
    /// The sign in front of it.
    WithBefore,
    /// The sign behind it.
    WithBehind,
    WithBoth,
    /// One of the signs that separate it from others of its list.
    Listed,
    Never,
}

pub(super) struct Removals<'a> {
    pub of: Vec<Removal>,
    /// Signs that separate the parts of a list.
    pub separators: Vec<bool>,
    /// To which list a node belongs.
    pub run_of: FxHashMap<usize, u32>,
    /// Where in its parent each list ends.
    pub runs: Vec<usize>,
    /// Where in its parent each phrase ends, by the node that it begins with.
    pub phrases: FxHashMap<usize, usize>,
    pub trial: Option<Trial<'a>>,
}

/// Parts that look alike.
#[derive(PartialEq, Eq, Hash)]
struct Pattern {
    parent: &'static str,
    field: Option<&'static str>,
    symbol: &'static str,
    before: Option<&'static str>,
    behind: Option<&'static str>,
    separator: Option<&'static str>,
    only: bool,
}

impl<'a> Removals<'a> {
    pub fn find(
        language: &Language,
        parsed: &'a Parsed,
        types: &Types,
        text: &'a [u8],
    ) -> Removals<'a> {
        let count = parsed.nodes.len();
        let mut found = Removals {
            of: vec![Removal::Never; count],
            separators: vec![false; count],
            run_of: FxHashMap::default(),
            runs: Vec::new(),
            phrases: FxHashMap::default(),
            trial: Trial::new(language, parsed, text),
        };
        let mut phrases = Phrases { language, parsed, types, known: FxHashMap::default() };
        let mut known = FxHashMap::default();
        for parent in &parsed.nodes {
            if parent.error {
                for &child in &parent.children {
                    found.of[child] = Removal::Alone;
                }
            } else {
                found.among(language, parsed, types, parent, &mut known);
                found.add_phrases(parent, &mut phrases);
            }
        }
        found
    }

    /// What may be left out of one node.
    fn among(
        &mut self,
        language: &Language,
        parsed: &Parsed,
        types: &Types,
        parent: &Parse,
        known: &mut FxHashMap<Pattern, Removal>,
    ) {
        let nodes = &parsed.nodes;
        let runs = runs(parsed, types, parent);
        let mut signs: FxHashMap<usize, &'static str> = FxHashMap::default();
        for run in &runs {
            signs.extend(run.children.iter().map(|&at| (at, run.sign)));
        }
        for (at, &index) in parent.children.iter().enumerate() {
            let child = &nodes[index];
            if !child.named || language.fixed.contains(&child.symbol) {
                continue;
            }
            if child.extra || child.error {
                self.of[index] = Removal::Alone;
                continue;
            }
            let slot = types.slot(parent.symbol, child.field);
            if slot.is_some_and(|slot| slot.required && !slot.multiple) {
                continue;
            }
            let (before, behind) =
                (sign_at(parsed, parent, at.checked_sub(1)), sign_at(parsed, parent, Some(at + 1)));
            let separator = signs.get(&at).copied();
            let same = |&&other: &&usize| nodes[other].named && nodes[other].field == child.field;
            let pattern = Pattern {
                parent: parent.symbol,
                field: child.field,
                symbol: child.symbol,
                before: before.map(|sign| sign.symbol),
                behind: behind.map(|sign| sign.symbol),
                separator,
                only: parent.children.iter().filter(same).nth(1).is_none(),
            };
            self.of[index] = *known.entry(pattern).or_insert_with(|| match &mut self.trial {
                Some(trial) if !parent.has_error && trial.goes_on() => {
                    try_ways(trial, parent, child, before, behind, separator)
                }
                // Where nothing fits anyway or all steps are used up, what is published has to do.
                _ if separator.is_some() => Removal::Listed,
                _ => Removal::Alone,
            });
        }
        for run in runs {
            self.settle(parsed, parent, &run);
        }
    }

    fn add_phrases(&mut self, parent: &Parse, phrases: &mut Phrases) {
        let Some(trial) = self.trial.as_mut().filter(|_| !parent.has_error) else { return };
        for (first, last) in phrases.within(parent, &self.of, trial) {
            self.phrases.insert(parent.children[first], last);
        }
    }

    /// A list is one if each of its elements may be left out; else a sign that separates two
    /// of them goes with one.
    fn settle(&mut self, parsed: &Parsed, parent: &Parse, run: &Run) {
        let index = |at: usize| parent.children[at];
        let listed = |&at: &usize| self.of[index(at)] == Removal::Listed;
        if run.children.iter().all(listed) {
            let (first, last) = (run.children[0], run.children[run.children.len() - 1]);
            let end = parent.children.len().min(last + 2);
            for &sign in &parent.children[first..end] {
                let node = &parsed.nodes[sign];
                self.separators[sign] = !node.named && node.symbol == run.sign;
            }
            let id = self.runs.len() as u32;
            self.runs.push(last);
            for &at in &run.children {
                self.run_of.insert(index(at), id);
            }
            return;
        }
        for &at in &run.children {
            if self.of[index(at)] != Removal::Listed {
                continue;
            }
            let behind = sign_at(parsed, parent, Some(at + 1));
            let with_behind = behind.is_some_and(|sign| sign.symbol == run.sign);
            let with = if with_behind { Removal::WithBehind } else { Removal::WithBefore };
            self.of[index(at)] = with;
        }
    }
}

/// The child at a place, if it is a sign.
fn sign_at<'a>(parsed: &'a Parsed, parent: &Parse, at: Option<usize>) -> Option<&'a Parse> {
    let sign = &parsed.nodes[*parent.children.get(at?)?];
    (!sign.named).then_some(sign)
}

/// How a part can be left out, by what the parser says of each way.
fn try_ways(
    trial: &mut Trial,
    parent: &Parse,
    child: &Parse,
    before: Option<&Parse>,
    behind: Option<&Parse>,
    separator: Option<&str>,
) -> Removal {
    let mut possible = Vec::new();
    let separates = |sign: Option<&Parse>| sign.is_some_and(|s| Some(s.symbol) == separator);
    if separates(behind) {
        possible.push((Removal::Listed, child, behind.unwrap_or(child)));
    } else if separates(before) {
        possible.push((Removal::Listed, before.unwrap_or(child), child));
    }
    possible.push((Removal::Alone, child, child));
    if let Some(before) = before {
        possible.push((Removal::WithBefore, before, child));
    }
    if let Some(behind) = behind {
        possible.push((Removal::WithBehind, child, behind));
    }
    if let (Some(before), Some(behind)) = (before, behind) {
        possible.push((Removal::WithBoth, before, behind));
    }
    let fits = possible.into_iter().find(|(_, first, last)| {
        let span = first.span.start..last.span.end;
        trial.fits(parent, span, (first.start, last.end), &[])
    });
    fits.map_or(Removal::Never, |(removal, ..)| removal)
}
