//! What may be left out. What a grammar publishes tells which parts may be absent, but not
//! which signs have to go with them, and nothing of what its hand-written scanners do. So
//! for each pattern of parts the parser is asked, at the first place that has it, whether
//! what remains still fits.

use super::Language;
use super::parse::{Parse, Parsed, Reader};
use super::types::Types;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use tree_sitter::{InputEdit, Point};
use why_tree::Spacing;

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
            trial: Trial::new(language, parsed, text),
        };
        let mut known = FxHashMap::default();
        for parent in &parsed.nodes {
            if parent.error {
                for &child in &parent.children {
                    found.of[child] = Removal::Alone;
                }
            } else {
                found.among(language, parsed, types, parent, &mut known);
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
        let separators = separators(parsed, types, parent);
        for (at, &index) in parent.children.iter().enumerate() {
            let child = &nodes[index];
            if !child.named || language.fixed.contains(&child.symbol) {
                continue;
            }
            if child.extra || child.error {
                self.of[index] = Removal::Alone;
                continue;
            }
            let sign = |at: Option<usize>| {
                let sign = &nodes[*parent.children.get(at?)?];
                (!sign.named).then_some(sign)
            };
            let (before, behind) = (sign(at.checked_sub(1)), sign(Some(at + 1)));
            let separator = separators.get(&child.field).copied();
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
            let slot = types.slot(parent.symbol, child.field);
            let optional = slot.is_none_or(|slot| !slot.required || slot.multiple);
            let removal = *known.entry(pattern).or_insert_with(|| match &mut self.trial {
                // Where nothing fits anyway, what is published has to do.
                _ if !optional => Removal::Never,
                Some(trial) if !parent.has_error => {
                    trial.removal(parent, child, before, behind, separator)
                }
                _ if separator.is_some() => Removal::Listed,
                _ => Removal::Alone,
            });
            self.of[index] = removal;
        }
        let listed = |&&index: &&usize| self.of[index] == Removal::Listed;
        let fields: FxHashSet<_> =
            parent.children.iter().filter(listed).map(|&index| nodes[index].field).collect();
        let separates = |sign: &Parse| {
            let mut of_lists = separators.iter().filter(|(field, _)| fields.contains(*field));
            !sign.named && of_lists.any(|(_, separator)| *separator == sign.symbol)
        };
        for &index in &parent.children {
            self.separators[index] = separates(&nodes[index]);
        }
    }
}

/// For each name under which a node has several parts: the sign that stands between any two
/// of them, if it is always the same one.
fn separators(
    parsed: &Parsed,
    types: &Types,
    parent: &Parse,
) -> FxHashMap<Option<&'static str>, &'static str> {
    let mut found: FxHashMap<Option<&'static str>, Option<&'static str>> = FxHashMap::default();
    let mut last: Option<Option<&'static str>> = None;
    let mut signs: Vec<&'static str> = Vec::new();
    let children = parent.children.iter().map(|&index| &parsed.nodes[index]);
    for child in children.filter(|child| !child.extra) {
        if !child.named {
            signs.push(child.symbol);
            continue;
        }
        let multiple = types.slot(parent.symbol, child.field).is_some_and(|slot| slot.multiple);
        if multiple && last == Some(child.field) {
            let sign = match signs[..] {
                [sign] if !sign.trim().is_empty() => Some(sign),
                _ => None,
            };
            let known = found.entry(child.field).or_insert(sign);
            if *known != sign {
                *known = None;
            }
        }
        last = Some(child.field);
        signs.clear();
    }
    found.into_iter().filter_map(|(field, sign)| Some((field, sign?))).collect()
}

/// Asks the parser whether the text would still fit with a change.
pub(super) struct Trial<'a> {
    reader: Reader,
    parsed: &'a Parsed,
    text: &'a [u8],
    spacing: Spacing,
    fits: bool,
}

impl<'a> Trial<'a> {
    fn new(language: &Language, parsed: &'a Parsed, text: &'a [u8]) -> Option<Trial<'a>> {
        let reader = Reader::new(language)?;
        let fits = !parsed.tree.root_node().has_error();
        Some(Trial { reader, parsed, text, spacing: Spacing::usual(), fits })
    }

    fn removal(
        &mut self,
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
            self.fits(parent, span, (first.start, last.end), &[])
        });
        fits.map_or(Removal::Never, |(removal, ..)| removal)
    }

    /// Whether a node is still one of its kind, without errors, with another text in it.
    pub fn fits(
        &mut self,
        parent: &Parse,
        span: Range<usize>,
        (start, end): (Point, Point),
        with: &[u8],
    ) -> bool {
        let mut with = with.to_vec();
        let around = (self.text[..span.start].last(), self.text.get(span.end));
        if let (true, (Some(&last), Some(&first))) = (with.is_empty(), around) {
            with.extend_from_slice(self.spacing.between(last, first));
        }
        let mut earlier = self.parsed.tree.clone();
        let new_end = span.start + with.len();
        earlier.edit(&InputEdit {
            start_byte: span.start,
            old_end_byte: span.end,
            new_end_byte: new_end,
            start_position: start,
            old_end_position: end,
            new_end_position: advance(start, &with),
        });
        let pieces = [&self.text[..span.start], &with, &self.text[span.end..]];
        let Some(tree) = self.reader.read(&pieces, Some(&earlier), self.fits) else {
            return false;
        };
        let root = tree.root_node();
        if self.fits && root.has_error() {
            return false;
        }
        // Where the node is now, if it is: it has no space at its ends that was not there.
        let byte = |at: usize| match at.checked_sub(new_end) {
            Some(behind) => self.text.get(span.end + behind),
            None => with.get(at.wrapping_sub(span.start)).or_else(|| self.text.get(at)),
        };
        let space = |at: usize| byte(at).is_some_and(u8::is_ascii_whitespace);
        let mut first = parent.span.start;
        let mut last = parent.span.end + new_end - span.end;
        while first < last && space(first) {
            first += 1;
        }
        while last > first && space(last - 1) {
            last -= 1;
        }
        let mut node = root.descendant_for_byte_range(first, last);
        while let Some(found) = node {
            let (start, end) = (found.start_byte(), found.end_byte());
            if found.id() != root.id() && (start != first || !(last..end).all(space)) {
                return false;
            }
            if found.kind() == parent.symbol {
                return !found.has_error();
            }
            node = found.parent();
        }
        false
    }
}

/// Where a text ends that begins there.
fn advance(start: Point, text: &[u8]) -> Point {
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    let last = text.iter().rev().take_while(|&&byte| byte != b'\n').count();
    let column = if lines == 0 { start.column + last } else { last };
    Point { row: start.row + lines, column }
}
