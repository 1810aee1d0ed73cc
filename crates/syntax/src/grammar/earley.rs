//! Earley's algorithm, for any grammar, ambiguous ones included, with a look at the next
//! token, and with Leo's short cut through right recursion: in linear time for what a
//! deterministic parser could parse.
//!
//! Each item remembers how it was found first. What it was found from was found before it,
//! so following this leads to one derivation and never in a circle.

mod ahead;

use super::lexer::Token;
use super::rules::{Rules, Symbol};
use ahead::Ahead;
use rustc_hash::{FxHashMap, FxHashSet};

/// A production up to a dot, and where its text began.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub position: u32,
    pub origin: u32,
    /// The same, with the dot one symbol earlier.
    pub before: u32,
    pub by: By,
}

/// How the dot got over the last symbol.
#[derive(Clone, Copy)]
pub(super) enum By {
    /// It stands at the beginning.
    Begin,
    Token,
    /// The symbol is nothing.
    Nothing,
    /// Another item is complete.
    Item(u32),
    /// Another item is complete, and with it a chain of items of which only the last is told.
    Chain(u32),
}

/// A production with a dot in it.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub production: u32,
    /// How many symbols are in front of the dot.
    pub dot: u32,
    pub next: Option<Symbol>,
}

pub(super) struct Chart {
    pub items: Vec<Item>,
    pub positions: Vec<Position>,
    /// Which item is the whole text.
    pub whole: u32,
    start: Symbol,
    /// Where the items begin that wait for a symbol in front of each token.
    sets: Vec<usize>,
    /// A nonterminal and an item that waits for it, sorted within each set.
    waiting: Vec<(u32, u32)>,
}

/// No item waits for this token.
pub(super) struct Failure {
    pub token: usize,
    pub wanted: Vec<Symbol>,
}

impl Chart {
    /// The items in front of a token that wait for a nonterminal.
    pub fn waiting(&self, set: u32, nonterminal: u32) -> &[(u32, u32)] {
        let set = &self.waiting[self.sets[set as usize]..self.sets[set as usize + 1]];
        let from = set.partition_point(|(other, _)| *other < nonterminal);
        let count = set[from..].partition_point(|(other, _)| *other == nonterminal);
        &set[from..from + count]
    }

    /// The only item that waits for a nonterminal, if nothing comes behind that in it.
    pub fn only_waiting(&self, set: u32, nonterminal: u32) -> Option<u32> {
        // In front of the first token the text itself waits for the first symbol.
        let first = set == 0 && self.start == Symbol::Nonterminal(nonterminal);
        match self.waiting(set, nonterminal) {
            [(_, item)] if !first => {
                let position = self.items[*item as usize].position;
                self.positions[position as usize + 1].next.is_none().then_some(*item)
            }
            _ => None,
        }
    }
}

pub(super) fn parse(rules: &Rules, tokens: &[Token]) -> Result<Chart, Failure> {
    Parser::new(rules).parse(tokens)
}

struct Parser<'a> {
    rules: &'a Rules,
    ahead: Ahead,
    chart: Chart,
    /// The first position of each production.
    first: Vec<u32>,
    /// The positions and origins of the set at hand.
    seen: FxHashSet<(u32, u32)>,
    /// In which set each nonterminal was predicted last.
    predicted: Vec<u32>,
    /// Where chains end, by where they begin: a set and a nonterminal.
    chains: FxHashMap<(u32, u32), (u32, u32)>,
}

impl<'a> Parser<'a> {
    fn new(rules: &'a Rules) -> Parser<'a> {
        let mut positions = Vec::new();
        let mut first = Vec::new();
        for (production, of) in (0..).zip(&rules.productions) {
            first.push(positions.len() as u32);
            let symbols = of.symbols.iter().copied().map(Some).chain([None]);
            positions.extend((0..).zip(symbols).map(|(dot, next)| Position {
                production,
                dot,
                next,
            }));
        }
        Parser {
            rules,
            ahead: Ahead::new(rules),
            chart: Chart {
                items: Vec::new(),
                positions,
                whole: 0,
                start: rules.start(),
                sets: vec![0],
                waiting: Vec::new(),
            },
            first,
            seen: FxHashSet::default(),
            predicted: vec![u32::MAX; rules.of.len()],
            chains: FxHashMap::default(),
        }
    }

    fn parse(mut self, tokens: &[Token]) -> Result<Chart, Failure> {
        let mut begin = 0;
        for set in 0..=tokens.len() {
            let next = tokens.get(set).map(|token| token.terminal);
            let shifted = self.close(begin, set as u32, next);
            self.end_set();
            if next.is_none() {
                break;
            }
            if shifted.is_empty() {
                return Err(self.failure(set, begin));
            }
            begin = self.chart.items.len();
            for index in shifted {
                let item = self.chart.items[index as usize];
                self.add(item.position + 1, item.origin, index, By::Token);
            }
        }
        let Symbol::Nonterminal(start) = self.rules.start() else {
            return Err(self.failure(tokens.len(), begin));
        };
        let whole = (begin..self.chart.items.len()).find(|&index| {
            let item = self.chart.items[index];
            let position = self.chart.positions[item.position as usize];
            let of = self.rules.productions[position.production as usize].of;
            position.next.is_none() && item.origin == 0 && of == start
        });
        match whole {
            Some(whole) => self.chart.whole = whole as u32,
            None => return Err(self.failure(tokens.len(), begin)),
        }
        Ok(self.chart)
    }

    /// Adds all that follows from the items of a set, and returns those that wait for the
    /// next token.
    fn close(&mut self, begin: usize, set: u32, next: Option<u32>) -> Vec<u32> {
        if let (0, Symbol::Nonterminal(start)) = (set, self.rules.start()) {
            self.predict(start, set, next);
        }
        let mut shifted = Vec::new();
        let mut index = begin;
        while index < self.chart.items.len() {
            let item = self.chart.items[index];
            let position = self.chart.positions[item.position as usize];
            match position.next {
                Some(Symbol::Terminal(terminal)) if Some(terminal) == next => {
                    shifted.push(index as u32);
                }
                Some(Symbol::Terminal(_)) => {}
                Some(symbol @ Symbol::Nonterminal(nonterminal)) => {
                    self.chart.waiting.push((nonterminal, index as u32));
                    self.predict(nonterminal, set, next);
                    if self.rules.is_nullable(symbol) {
                        self.add(item.position + 1, item.origin, index as u32, By::Nothing);
                    }
                }
                // What is nothing has been passed over already.
                None if item.origin == set => {}
                None => self.complete(index as u32, item, position, next),
            }
            index += 1;
        }
        shifted
    }

    fn predict(&mut self, nonterminal: u32, set: u32, next: Option<u32>) {
        if std::mem::replace(&mut self.predicted[nonterminal as usize], set) == set {
            return;
        }
        let rules = self.rules;
        for &production in &rules.of[nonterminal as usize] {
            if self.ahead.may_begin(rules, production, next) {
                self.add(self.first[production as usize], set, 0, By::Begin);
            }
        }
    }

    fn complete(&mut self, index: u32, item: Item, position: Position, next: Option<u32>) {
        let of = self.rules.productions[position.production as usize].of;
        if !self.ahead.may_follow(of, next) {
            return;
        }
        if let Some((position, origin)) = self.chain(item.origin, of) {
            self.add(position, origin, 0, By::Chain(index));
            return;
        }
        for at in 0..self.chart.waiting(item.origin, of).len() {
            let (_, before) = self.chart.waiting(item.origin, of)[at];
            let waited = self.chart.items[before as usize];
            self.add(waited.position + 1, waited.origin, before, By::Item(index));
        }
    }

    /// Where the chain of items leads that are complete as soon as this nonterminal is.
    fn chain(&mut self, set: u32, nonterminal: u32) -> Option<(u32, u32)> {
        let mut way: Vec<(u32, u32)> = Vec::new();
        let mut at = (set, nonterminal);
        let mut end = None;
        loop {
            if let Some(&known) = self.chains.get(&at) {
                end = Some(known);
                break;
            }
            let again = way.iter().rev().take_while(|before| before.0 == at.0).any(|b| *b == at);
            let Some(only) = self.chart.only_waiting(at.0, at.1).filter(|_| !again) else { break };
            let item = self.chart.items[only as usize];
            let production = self.chart.positions[item.position as usize].production;
            way.push(at);
            end = Some((item.position + 1, item.origin));
            at = (item.origin, self.rules.productions[production as usize].of);
        }
        let end = end?;
        for at in way {
            self.chains.insert(at, end);
        }
        Some(end)
    }

    fn add(&mut self, position: u32, origin: u32, before: u32, by: By) {
        if self.seen.insert((position, origin)) {
            self.chart.items.push(Item { position, origin, before, by });
        }
    }

    /// No item is added to this set any more.
    fn end_set(&mut self) {
        let from = self.chart.sets.last().copied().unwrap_or(0);
        self.chart.waiting[from..].sort_unstable();
        self.chart.sets.push(self.chart.waiting.len());
        // Emptying a large table takes as long as filling it, however little is in it.
        if self.seen.capacity() > 1024 && self.seen.len() < 64 {
            self.seen = FxHashSet::default();
        }
        self.seen.clear();
    }

    /// What a set waits for, whatever comes next.
    fn failure(mut self, token: usize, begin: usize) -> Failure {
        let items = self.chart.items.split_off(begin);
        for item in items.iter().filter(|item| matches!(item.by, By::Token)) {
            self.add(item.position, item.origin, item.before, item.by);
        }
        self.ahead.ignore();
        self.predicted.fill(u32::MAX);
        self.close(begin, token as u32, None);
        let next = |item: &Item| self.chart.positions[item.position as usize].next;
        let items = self.chart.items[begin..].iter().filter_map(next);
        let wanted = items.filter(|symbol| matches!(symbol, Symbol::Terminal(_))).collect();
        Failure { token, wanted }
    }
}
