//! Recursion as lists. A symbol that is made of itself and something else, at its end
//! (`a: a b | c`) or at its beginning (`a: b a | c`), is a list whose elements may be left
//! out:
//!
//! - where all elements are of one form (`a: a ',' x | x`), each of them, with what separates
//!   it from others, as long as one is left;
//! - else each `b`, and `c` stays.

use super::derivation::{Child, Derived};
use super::rules::{Rules, Symbol};
use std::ops::Range;

/// Some of the symbols of a production that was used.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub derived: usize,
    pub symbols: Range<usize>,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Element,
    Separator,
    /// What the list grew from.
    Base,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    ToTheRight,
    ToTheLeft,
}

pub(super) struct List {
    pub pieces: Vec<Piece>,
    /// One element has to stay.
    pub nonempty: bool,
}

/// The pieces of a list, if what was derived is one.
pub(super) fn list(rules: &Rules, all: &[Derived], index: usize) -> Option<List> {
    let growth = growth(rules, &all[index])?;
    let mut chain = Vec::new();
    let mut at = index;
    let base = loop {
        chain.push(at);
        let children = &all[at].children;
        let inner = if growth == Growth::ToTheRight { 0 } else { children.len() - 1 };
        match children[inner] {
            Child::Derived(child) if self::growth(rules, &all[child]) == Some(growth) => at = child,
            Child::Derived(child) => break Some(child),
            Child::Token(_) | Child::Nothing => break None,
        }
    };
    let element = base.filter(|&base| is_element(rules, all, &chain, base, growth));
    let length = element.map(|base| all[base].children.len());
    let mut pieces = Vec::new();
    for &derived in &chain {
        let added = all[derived].children.len() - 1;
        let (element, separator) = match (growth, length) {
            (Growth::ToTheLeft, Some(length)) => (0..length, length..added),
            (Growth::ToTheLeft, None) => (0..added, 0..0),
            (_, Some(length)) => (added + 1 - length..added + 1, 1..added + 1 - length),
            (_, None) => (1..added + 1, 0..0),
        };
        pieces.push(Piece { derived, symbols: element, form: Form::Element });
        pieces.push(Piece { derived, symbols: separator, form: Form::Separator });
    }
    pieces.extend(base.map(|derived| {
        let form = if element.is_some() { Form::Element } else { Form::Base };
        Piece { derived, symbols: 0..all[derived].children.len(), form }
    }));
    // To the right a list was followed from its end.
    if growth == Growth::ToTheRight {
        pieces.reverse();
    }
    Some(List { pieces, nonempty: element.is_some() })
}

fn growth(rules: &Rules, derived: &Derived) -> Option<Growth> {
    let production = &rules.productions[derived.production as usize];
    let of = Symbol::Nonterminal(production.of);
    let (first, last) = (*production.symbols.first()?, *production.symbols.last()?);
    match (first == of, last == of) {
        _ if production.symbols.len() < 2 => None,
        (true, _) => Some(Growth::ToTheRight),
        (false, true) => Some(Growth::ToTheLeft),
        (false, false) => None,
    }
}

/// Whether all that was added to the base ends (or, to the left, begins) with the symbols
/// that the base is made of.
fn is_element(
    rules: &Rules,
    all: &[Derived],
    chain: &[usize],
    base: usize,
    growth: Growth,
) -> bool {
    let symbols = |derived: usize| &rules.productions[all[derived].production as usize].symbols;
    let element = symbols(base);
    let same = |&derived: &usize| match growth {
        Growth::ToTheLeft => {
            symbols(derived).split_last().is_some_and(|(_, b)| b.starts_with(element))
        }
        _ => symbols(derived).split_first().is_some_and(|(_, b)| b.ends_with(element)),
    };
    !element.is_empty() && chain.iter().all(same)
}
