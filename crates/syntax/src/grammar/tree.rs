//! The tree of a derivation.
//!
//! A part is what a symbol was derived to. It may be replaced by the symbol's smallest text;
//! a token that is always the same is text of the part around it.

use super::derivation::{Child, Derived};
use super::lexer::Token;
use super::lists::{self, Form, List, Piece};
use super::rules::Symbol;
use super::{Grammar, Recursion};
use std::ops::Range;
use why_tree::{NodeId, Role, Tree};

struct Builder<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    tokens: &'a [Token],
    derived: &'a [Derived],
    recursion: Recursion,
    tree: Tree,
    rest: Vec<Task>,
}

/// What is still to be added, and to what.
enum Task {
    Child(NodeId, Child),
    Piece(NodeId, Piece),
}

pub(super) fn build(
    grammar: &Grammar,
    text: &[u8],
    tokens: &[Token],
    derived: &[Derived],
    recursion: Recursion,
) -> Tree {
    let start = grammar.rules.start();
    let smallest = grammar.minima.text(start).filter(|smallest| smallest.len() < text.len());
    let minimal = smallest.unwrap_or(text).to_vec();
    let mut tree = Tree::rooted(grammar.rules.name(start), 0..text.len(), minimal);
    tree.set_spacing(grammar.lexer.spacing().clone());
    widen(grammar, &mut tree);
    let mut builder = Builder { grammar, text, tokens, derived, recursion, tree, rest: Vec::new() };
    if !tokens.is_empty() {
        let list = builder.list(0);
        builder.symbols_of(Tree::ROOT, 0, list);
    }
    while let Some(task) = builder.rest.pop() {
        match task {
            Task::Child(parent, child) => builder.child(parent, child),
            Task::Piece(parent, piece) => builder.piece(parent, piece),
        }
    }
    builder.tree
}

/// Tells the tree which symbols can be all that another one is.
fn widen(grammar: &Grammar, tree: &mut Tree) {
    let rules = &grammar.rules;
    let mut wider: Vec<(Symbol, Symbol)> = Vec::new();
    for production in &rules.productions {
        let needed: Vec<Symbol> =
            production.symbols.iter().copied().filter(|&s| !rules.is_nullable(s)).collect();
        let narrow = match needed[..] {
            [] => production.symbols.clone(),
            [only] => vec![only],
            _ => continue,
        };
        wider.extend(narrow.into_iter().map(|s| (s, Symbol::Nonterminal(production.of))));
    }
    wider.sort_unstable();
    wider.dedup();
    let directly = |symbol: Symbol| {
        let from = wider.partition_point(|(narrow, _)| *narrow < symbol);
        wider[from..].iter().take_while(move |(narrow, _)| *narrow == symbol).map(|(_, w)| *w)
    };
    let mut narrow: Vec<Symbol> = wider.iter().map(|(narrow, _)| *narrow).collect();
    narrow.dedup();
    for symbol in narrow {
        let kind = tree.kind(rules.name(symbol));
        let mut rest: Vec<Symbol> = directly(symbol).collect();
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(wide) = rest.pop() {
            if seen.insert(wide) {
                let wide_kind = tree.kind(rules.name(wide));
                tree.widen(kind, wide_kind);
                rest.extend(directly(wide));
            }
        }
    }
}

impl Builder<'_> {
    fn child(&mut self, parent: NodeId, child: Child) {
        match child {
            Child::Nothing => {}
            Child::Token(token) => self.token(parent, token),
            Child::Derived(index) => {
                let derived = &self.derived[index];
                if derived.tokens.is_empty() {
                    return;
                }
                let production = &self.grammar.rules.productions[derived.production as usize];
                let symbol = Symbol::Nonterminal(production.of);
                let list = self.list(index);
                let needs = list.as_ref().is_some_and(|list| list.nonempty);
                let id = self.part(parent, symbol, self.span(derived.tokens.clone()), needs);
                self.symbols_of(id, index, list);
            }
        }
    }

    /// Tokens that differ are parts; so are those that could be taken for white space.
    fn token(&mut self, parent: NodeId, token: usize) {
        let token = &self.tokens[token];
        let own = &self.text[token.span.clone()];
        let spacy = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        let literal = self.grammar.rules.literals()[token.terminal as usize].is_some();
        if !literal || spacy(own.first()) || spacy(own.last()) {
            self.part(parent, Symbol::Terminal(token.terminal), token.span.clone(), false);
        }
    }

    /// A part of another; or that one, if it is all of it and nothing else can replace it,
    /// and no text of its own is needed for want of children.
    fn part(&mut self, parent: NodeId, symbol: Symbol, span: Range<usize>, needs: bool) -> NodeId {
        let own = &self.text[span.clone()];
        let smallest = self.grammar.minima.text(symbol).filter(|s| s.len() < own.len());
        let minimal = smallest.unwrap_or(own);
        let kind = self.tree.kind(self.grammar.rules.name(symbol));
        let around = self.tree.node(parent);
        let all = around.span == span && around.children.is_empty() && !around.nonempty;
        if all && (around.minimal == minimal || minimal == own && !needs) {
            // What one can be derived to may stand wherever that one may.
            let place = around.place;
            self.tree.widen(kind, place);
            self.tree.node_mut(parent).kind = kind;
            return parent;
        }
        self.tree.add(parent, kind, span, minimal.to_vec())
    }

    fn list(&self, index: usize) -> Option<List> {
        match self.recursion {
            Recursion::Flat => lists::list(&self.grammar.rules, self.derived, index),
            Recursion::Nested => None,
        }
    }

    /// What a part consists of.
    fn symbols_of(&mut self, id: NodeId, index: usize, list: Option<List>) {
        match list {
            Some(list) => {
                self.tree.node_mut(id).nonempty = list.nonempty;
                let pieces = list.pieces.into_iter().rev();
                self.rest.extend(pieces.map(|piece| Task::Piece(id, piece)));
            }
            None => {
                let children = self.derived[index].children.iter().rev();
                self.rest.extend(children.map(|&child| Task::Child(id, child)));
            }
        }
    }

    /// A piece of a list.
    fn piece(&mut self, list: NodeId, piece: Piece) {
        if piece.form == Form::Base {
            return self.child(list, Child::Derived(piece.derived));
        }
        let derived = &self.derived[piece.derived];
        let children = &derived.children[piece.symbols.clone()];
        let Some(span) = self.span_of(children) else { return };
        let rules = &self.grammar.rules;
        let production = &rules.productions[derived.production as usize];
        // The same symbols can stand for each other wherever they are elements.
        let symbols = &production.symbols[piece.symbols.clone()];
        let names: Vec<&str> = symbols.iter().map(|&symbol| rules.name(symbol)).collect();
        let separates = piece.form == Form::Separator;
        let minimal = if separates { self.text[span.clone()].to_vec() } else { Vec::new() };
        let kind = self.tree.kind(&names.join(" "));
        let id = self.tree.add(list, kind, span, minimal);
        if separates {
            self.tree.node_mut(id).role = Role::Separator;
        }
        self.rest.extend(children.iter().rev().map(|&child| Task::Child(id, child)));
    }

    fn span_of(&self, children: &[Child]) -> Option<Range<usize>> {
        let tokens = |child: &Child| match *child {
            Child::Nothing => None,
            Child::Token(token) => Some(token..token + 1),
            Child::Derived(index) => Some(self.derived[index].tokens.clone()),
        };
        let mut some = children.iter().filter_map(tokens).filter(|tokens| !tokens.is_empty());
        let first = some.next()?;
        let end = some.next_back().map_or(first.end, |last| last.end);
        Some(self.span(first.start..end))
    }

    fn span(&self, tokens: Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].span.start..self.tokens[tokens.end - 1].span.end
    }
}
