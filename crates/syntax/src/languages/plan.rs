//! The parts of a text, before it is known what may stand in their place.

use super::Language;
use super::parse::{Parse, Parsed};
use super::removal::{Removal, Removals};
use super::trial::Trial;
use super::types::Types;
use rustc_hash::FxHashMap;
use std::ops::Range;
use tree_sitter::Point;

pub(super) struct Plan<'a> {
    pub parts: Vec<Part>,
    /// Names of symbols.
    pub symbols: Vec<String>,
    /// For each place, the symbols that may stand there.
    pub places: Vec<Vec<usize>>,
    pub trial: Option<Trial<'a>>,
}

pub(super) struct Part {
    pub symbol: usize,
    pub place: usize,
    pub span: Range<usize>,
    pub children: Vec<usize>,
    pub form: Form,
    /// One of its children has to stay.
    pub nonempty: bool,
    /// The node around it and where it begins and ends there, if others may take its place.
    pub around: Option<(usize, Point, Point)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// It may be left out.
    Optional,
    /// It may be replaced.
    Needed,
    /// It stays as it is.
    Fixed,
    Separator,
    /// It fits nothing, so brackets and lines tell what its parts are.
    Unfit,
}

/// All that a plan is made from.
struct Planner<'a, 'b> {
    language: &'b Language,
    nodes: &'b [Parse],
    types: &'b Types,
    removals: Removals<'a>,
    plan: Plan<'a>,
    symbols: FxHashMap<String, usize>,
    places: FxHashMap<Vec<usize>, usize>,
    /// The places for a node in another, under a name.
    slots: FxHashMap<Slot, usize>,
    /// The smallest text of each symbol.
    samples: FxHashMap<&'static str, Range<usize>>,
    text: &'b [u8],
    /// What still has to be divided into parts: a part and its node.
    rest: Vec<(usize, usize)>,
}

/// The symbol around a node, the node's name there, its symbol, and whether it has to be there.
type Slot = (&'static str, Option<&'static str>, &'static str, bool);

pub(super) fn plan<'a>(
    language: &Language,
    parsed: &Parsed,
    types: &Types,
    mut removals: Removals<'a>,
    text: &[u8],
) -> Plan<'a> {
    let trial = removals.trial.take();
    let plan = Plan { parts: Vec::new(), symbols: Vec::new(), places: Vec::new(), trial };
    let mut planner = Planner {
        language,
        nodes: &parsed.nodes,
        types,
        removals,
        plan,
        symbols: FxHashMap::default(),
        places: FxHashMap::default(),
        slots: FxHashMap::default(),
        samples: samples(&parsed.nodes),
        text,
        rest: Vec::new(),
    };
    let root = planner.part(parsed.nodes[0].symbol, 0..text.len(), Form::Optional);
    planner.rest.push((root, 0));
    while let Some((part, node)) = planner.rest.pop() {
        planner.divide(part, node);
    }
    planner.plan
}

fn samples(nodes: &[Parse]) -> FxHashMap<&'static str, Range<usize>> {
    let mut samples: FxHashMap<&'static str, Range<usize>> = FxHashMap::default();
    for node in nodes.iter().filter(|node| !node.has_error) {
        let sample = samples.entry(node.symbol).or_insert_with(|| node.span.clone());
        if node.span.len() < sample.len() {
            *sample = node.span.clone();
        }
    }
    samples
}

impl Planner<'_, '_> {
    fn symbol(&mut self, name: &str) -> usize {
        if let Some(&known) = self.symbols.get(name) {
            return known;
        }
        let index = self.plan.symbols.len();
        self.plan.symbols.push(name.to_owned());
        self.symbols.insert(name.to_owned(), index);
        index
    }

    /// A place for these symbols.
    fn place(&mut self, mut symbols: Vec<usize>) -> usize {
        symbols.sort_unstable();
        symbols.dedup();
        if let Some(&known) = self.places.get(&symbols) {
            return known;
        }
        let index = self.plan.places.len();
        self.plan.places.push(symbols.clone());
        self.places.insert(symbols, index);
        index
    }

    /// The place where a node stands.
    fn slot(&mut self, around: &Parse, node: &Parse, removal: Removal) -> usize {
        let fixed = removal == Removal::Never;
        let key = (around.symbol, node.field, node.symbol, fixed);
        if let Some(&known) = self.slots.get(&key) {
            return known;
        }
        // Of several parts that are all needed, each may have to be another symbol.
        let slot = self.types.slot(around.symbol, node.field);
        let slot = slot.filter(|slot| !(slot.multiple && fixed));
        let mut names: Vec<&str> =
            slot.map_or(Vec::new(), |slot| slot.types.iter().map(String::as_str).collect());
        names.retain(|name| !self.language.fixed.contains(name) && *name != node.symbol);
        if slot.is_some_and(|slot| slot.multiple) {
            names.retain(|name| self.accepts(around, node, name));
        }
        names.push(node.symbol);
        // What an element holds may take the element's place.
        if self.language.tags.is_some_and(|tags| names.contains(&tags.element)) {
            names.push("content");
        }
        let symbols = names.into_iter().map(|name| self.symbol(name)).collect();
        let place = self.place(symbols);
        self.slots.insert(key, place);
        place
    }

    /// Whether the parser takes a text of another symbol in the place of a node. What is
    /// published of a symbol's parts does not say which of them may stand where.
    fn accepts(&mut self, around: &Parse, node: &Parse, symbol: &str) -> bool {
        let (Some(sample), Some(trial)) = (self.samples.get(symbol), &mut self.plan.trial) else {
            return false;
        };
        let with = &self.text[sample.clone()];
        let points = (node.start, node.end);
        !around.has_error && trial.goes_on() && trial.fits(around, node.span.clone(), points, with)
    }

    /// A new part of another, in a place of its own kind.
    fn add(&mut self, within: usize, symbol: &str, span: Range<usize>, form: Form) -> usize {
        let part = self.part(symbol, span, form);
        self.plan.parts[within].children.push(part);
        part
    }

    fn part(&mut self, symbol: &str, span: Range<usize>, form: Form) -> usize {
        let symbol = self.symbol(symbol);
        let place = self.place(vec![symbol]);
        let children = Vec::new();
        let part = Part { symbol, place, span, children, form, nonempty: false, around: None };
        self.plan.parts.push(part);
        self.plan.parts.len() - 1
    }

    /// The parts of a part.
    fn divide(&mut self, part: usize, index: usize) {
        let nodes = self.nodes;
        let node = &nodes[index];
        // Children up to one of them may belong to a part between.
        let mut between: Option<(usize, usize)> = None;
        for at in 0..node.children.len() {
            if between.is_none_or(|(_, last)| at > last) {
                between = self
                    .content(part, node, at)
                    .or_else(|| self.list(part, index, at))
                    .or_else(|| self.phrase(part, node, at));
            }
            let within = between.map_or(part, |(part, _)| part);
            self.add_node(within, index, at);
        }
        if self.language.needed.iter().any(|(needed, _)| *needed == node.symbol) {
            self.plan.parts[part].nonempty = true;
        }
    }

    /// What lies between two tags, as a part, and the last child in it.
    fn content(&mut self, part: usize, node: &Parse, at: usize) -> Option<(usize, usize)> {
        let tags = self.language.tags.filter(|tags| tags.element == node.symbol)?;
        let nodes = self.nodes;
        let (first, last) = (&nodes[*node.children.first()?], &nodes[*node.children.last()?]);
        let holds = at == 1 && first.symbol == tags.begin && last.symbol == tags.end;
        let begins = node.children.len() > 2 && nodes[node.children[at]].symbol != "content";
        (holds && begins).then(|| {
            let span = first.span.end..last.span.start;
            (self.add(part, "content", span, Form::Optional), node.children.len() - 2)
        })
    }

    /// The elements of a list of which one is needed, as a part, and the last child in it.
    fn list(&mut self, part: usize, parent: usize, at: usize) -> Option<(usize, usize)> {
        let nodes = self.nodes;
        let node = &nodes[parent];
        let first = &nodes[node.children[at]];
        let run = *self.removals.run_of.get(&node.children[at])?;
        let slot = self.types.slot(node.symbol, first.field);
        if slot.is_none_or(|slot| !slot.required) {
            return None;
        }
        let last = self.removals.runs[run as usize];
        let ends = |at: &usize| self.removals.separators[node.children[*at]];
        let last =
            Some(last + 1).filter(|at| *at < node.children.len() && ends(at)).unwrap_or(last);
        let end = &nodes[node.children[last]];
        let symbol = format!("list in {}", node.symbol);
        let list = self.add(part, &symbol, first.span.start..end.span.end, Form::Needed);
        self.plan.parts[list].nonempty = true;
        self.plan.parts[list].around = Some((parent, first.start, end.end));
        Some((list, last))
    }

    /// Children that may only be left out together, as a part, and the last one of them.
    fn phrase(&mut self, part: usize, node: &Parse, at: usize) -> Option<(usize, usize)> {
        let last = *self.removals.phrases.get(&node.children[at])?;
        let span = |at: usize| &self.nodes[node.children[at]].span;
        let span = span(at).start..span(last).end;
        Some((self.add(part, "optional", span, Form::Optional), last))
    }

    /// A node as a part, with those signs that go with it.
    fn add_node(&mut self, within: usize, parent: usize, at: usize) {
        let nodes = self.nodes;
        let around = &nodes[parent];
        let index = around.children[at];
        let node = &nodes[index];
        let removal = self.removals.of[index];
        if node.error {
            self.add(within, node.symbol, node.span.clone(), Form::Unfit);
            return;
        }
        if !node.named {
            if self.removals.separators[index] {
                self.add(within, node.symbol, node.span.clone(), Form::Separator);
            } else if removal == Removal::Alone {
                self.add(within, node.symbol, node.span.clone(), Form::Optional);
            }
            return;
        }
        let form = match removal {
            Removal::Alone | Removal::Listed => Form::Optional,
            Removal::Never if self.language.fixed.contains(&node.symbol) => Form::Fixed,
            _ => Form::Needed,
        };
        let within = self.with_signs(within, around, at, removal);
        let part = self.add(within, node.symbol, node.span.clone(), form);
        self.plan.parts[part].place = self.slot(around, node, removal);
        self.plan.parts[part].around = Some((parent, node.start, node.end));
        self.rest.push((part, index));
    }

    /// A part for a node and the signs that go with it, unless another has taken them.
    fn with_signs(&mut self, within: usize, around: &Parse, at: usize, removal: Removal) -> usize {
        let (first, last) = match removal {
            Removal::WithBefore => (at - 1, at),
            Removal::WithBehind => (at, at + 1),
            Removal::WithBoth => (at - 1, at + 1),
            Removal::Alone | Removal::Listed | Removal::Never => return within,
        };
        let span = |at: usize| &self.nodes[around.children[at]].span;
        let span = span(first).start..span(last).end;
        let previous = self.plan.parts[within].children.last();
        if previous.is_some_and(|&previous| self.plan.parts[previous].span.end > span.start) {
            return within;
        }
        self.add(within, "optional", span, Form::Optional)
    }
}
