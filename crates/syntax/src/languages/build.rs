//! The tree of a plan and of the smallest texts.

use super::Language;
use super::minimal::Minima;
use super::parse::Parsed;
use super::plan::{Form, Part, Plan};
use crate::brackets;
use rustc_hash::FxHashMap;
use std::ops::Range;
use why_tree::{Kind, NodeId, Role, Tree};

struct Builder<'a, 'b> {
    parsed: &'b Parsed,
    parts: &'b [Part],
    minima: &'b Minima,
    trial: Option<super::trial::Trial<'a>>,
    text: &'b [u8],
    /// Which texts the parser has accepted, for parts of a symbol in a place of another.
    accepted: FxHashMap<(&'static str, usize, usize, bool), bool>,
}

pub(super) fn tree(
    language: &Language,
    parsed: &Parsed,
    plan: Plan,
    minima: &Minima,
    text: &[u8],
) -> Tree {
    let root = &plan.parts[0];
    let mut tree = Tree::rooted(&plan.symbols[root.symbol], root.span.clone(), Vec::new());
    tree.set_spacing(language.spacing());
    let kinds: Vec<Kind> = plan.symbols.iter().map(|name| tree.kind(name)).collect();
    let places: Vec<Kind> = plan
        .places
        .iter()
        .map(|symbols| place(&mut tree, &kinds, &plan.symbols, symbols))
        .collect();
    let fixed = tree.kind("nothing else");
    let mut builder = Builder {
        parsed,
        parts: &plan.parts,
        minima,
        trial: plan.trial,
        text,
        accepted: FxHashMap::default(),
    };
    let mut rest: Vec<(NodeId, usize)> =
        root.children.iter().rev().map(|&child| (Tree::ROOT, child)).collect();
    while let Some((parent, index)) = rest.pop() {
        let part = &builder.parts[index];
        let (minimal, role) = match part.form {
            Form::Optional => (Vec::new(), Role::Part),
            Form::Needed => (builder.minimal(part), Role::Part),
            Form::Fixed => (text[part.span.clone()].to_vec(), Role::Part),
            Form::Separator => (text[part.span.clone()].to_vec(), Role::Separator),
            Form::Unfit => {
                let unfit = &text[part.span.clone()];
                let parts = brackets::tree_of(unfit, language.tags.is_some());
                tree.graft(parent, part.span.start, &parts);
                continue;
            }
        };
        let around = tree.node(parent);
        let repeats = around.span == part.span
            && around.minimal == minimal
            && around.children.is_empty()
            && parent != Tree::ROOT;
        // A part that is all of another, with the same text for both, is the same part.
        let id = if repeats {
            tree.node_mut(parent).kind = kinds[part.symbol];
            parent
        } else {
            let id = tree.add(parent, kinds[part.symbol], part.span.clone(), minimal);
            tree.node_mut(id).role = role;
            id
        };
        let node = tree.node_mut(id);
        node.nonempty = part.nonempty;
        node.place = if part.form == Form::Fixed { fixed } else { places[part.place] };
        rest.extend(part.children.iter().rev().map(|&child| (id, child)));
    }
    tree
}

/// The kind that stands for a place, and those that fit there.
fn place(tree: &mut Tree, kinds: &[Kind], names: &[String], symbols: &[usize]) -> Kind {
    if let [symbol] = *symbols {
        return kinds[symbol];
    }
    let names: Vec<&str> = symbols.iter().map(|&symbol| names[symbol].as_str()).collect();
    let kind = tree.kind(&names.join("|"));
    for &symbol in symbols {
        tree.widen(kinds[symbol], kind);
    }
    kind
}

impl Builder<'_, '_> {
    /// The smallest text that the parser takes in a part's place: one of any symbol that fits
    /// there, or of its own symbol, or of a list its smallest element, or the part as it is.
    fn minimal(&mut self, part: &Part) -> Vec<u8> {
        let own = &self.text[part.span.clone()];
        let of_place = self.minima.of_place(part.place);
        let of_symbol = self.minima.of_symbol(part.symbol);
        for (wide, smallest) in [(true, of_place), (false, of_symbol)] {
            if let Some(smallest) = smallest
                && smallest.len() < own.len()
                && self.accepts(part, smallest, wide)
            {
                return smallest.to_vec();
            }
        }
        let elements = part.children.iter().map(|&child| &self.parts[child]);
        let elements = elements.filter(|child| part.nonempty && child.form == Form::Optional);
        let smallest = elements.map(|child| child.span.clone()).min_by_key(Range::len);
        smallest.map_or(own, |span| &self.text[span]).to_vec()
    }

    fn accepts(&mut self, part: &Part, smallest: &[u8], wide: bool) -> bool {
        let (Some((parent, start, end)), Some(trial)) = (part.around, &mut self.trial) else {
            return true;
        };
        let parent = &self.parsed.nodes[parent];
        if parent.has_error || !trial.goes_on() {
            return true;
        }
        let key = (parent.symbol, part.symbol, part.place, wide);
        let mut ask = || trial.fits(parent, part.span.clone(), (start, end), smallest);
        *self.accepted.entry(key).or_insert_with(&mut ask)
    }
}
