//! What a grammar file says, with numbers for names.

use super::read::{File, Matches, Named};
use super::{GrammarError, Place};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Symbol {
    Terminal(u32),
    Nonterminal(u32),
}

pub(super) struct Production {
    pub of: u32,
    pub symbols: Vec<Symbol>,
}

pub(super) struct Rules {
    terminals: Vec<Name>,
    nonterminals: Vec<Name>,
    by_name: FxHashMap<String, Symbol>,
    /// What each terminal is, if it is always the same.
    literals: Vec<Option<Vec<u8>>>,
    pub productions: Vec<Production>,
    /// The productions of each nonterminal.
    pub of: Vec<Vec<u32>>,
    pub nullable: Vec<bool>,
    start: u32,
    /// How many nonterminals the file names; others are ours.
    named: usize,
}

struct Name {
    name: String,
    place: Place,
}

impl Rules {
    pub fn new(file: &File) -> Result<Rules, GrammarError> {
        let mut rules = Rules {
            terminals: Vec::new(),
            nonterminals: Vec::new(),
            by_name: FxHashMap::default(),
            literals: Vec::new(),
            productions: Vec::new(),
            of: Vec::new(),
            nullable: Vec::new(),
            start: 0,
            named: 0,
        };
        for rule in &file.rules {
            if !rules.by_name.contains_key(&rule.name) {
                rules.nonterminal(&rule.name, rule.place);
            }
        }
        rules.named = rules.nonterminals.len();
        let mut by_text: FxHashMap<Vec<u8>, Symbol> = FxHashMap::default();
        rules.define_tokens(file, &mut by_text)?;
        for rule in &file.rules {
            let mut symbols = Vec::new();
            for (named, place) in &rule.symbols {
                symbols.push(rules.resolve(named, *place, &mut by_text)?);
            }
            let of = rules.by_name[&rule.name];
            if let Symbol::Nonterminal(of) = of {
                rules.of[of as usize].push(rules.productions.len() as u32);
                rules.productions.push(Production { of, symbols });
            }
        }
        rules.start = match &file.start {
            None => 0,
            Some((name, place)) => match rules.by_name.get(name) {
                Some(Symbol::Nonterminal(start)) => *start,
                _ => return Err(error(*place, format!("{name} has no rule"))),
            },
        };
        rules.separate_operands();
        rules.nullable = nullable(&rules);
        Ok(rules)
    }

    /// Terminals that are declared. A declaration may be repeated, with a definition once.
    fn define_tokens(
        &mut self,
        file: &File,
        by_text: &mut FxHashMap<Vec<u8>, Symbol>,
    ) -> Result<(), GrammarError> {
        for token in file.tokens.iter().filter(|token| token.matches.is_some()) {
            if self.by_name.contains_key(&token.name) {
                return Err(error(token.place, format!("{} is defined twice", token.name)));
            }
            let literal = match &token.matches {
                Some(Matches::Literal(text)) => Some(text.clone()),
                _ => None,
            };
            let symbol = self.terminal(&token.name, token.place, literal.clone());
            if let Some(text) = literal {
                if text.is_empty() {
                    return Err(error(token.place, "a token cannot be empty".to_owned()));
                }
                if by_text.insert(text, symbol).is_some() {
                    let message = format!("{} has the text of another token", token.name);
                    return Err(error(token.place, message));
                }
            }
        }
        Ok(())
    }

    fn resolve(
        &mut self,
        named: &Named,
        place: Place,
        by_text: &mut FxHashMap<Vec<u8>, Symbol>,
    ) -> Result<Symbol, GrammarError> {
        match named {
            Named::Name(name) => self.by_name.get(name).copied().ok_or_else(|| {
                error(place, format!("{name} has no rule and no definition; add %token {name} /…/"))
            }),
            Named::Literal(text) if text.is_empty() => {
                Err(error(place, "a token cannot be empty; leave it out".to_owned()))
            }
            Named::Literal(text) => {
                if let Some(&known) = by_text.get(text) {
                    return Ok(known);
                }
                let name = format!("{:?}", String::from_utf8_lossy(text));
                let symbol = self.terminal(&name, place, Some(text.clone()));
                by_text.insert(text.clone(), symbol);
                Ok(symbol)
            }
        }
    }

    /// Where a symbol stands at both ends of its own productions (`e: e '+' e | x`), a long
    /// text has more derivations than can be looked at, and all are one list of operands. So
    /// what is no such production becomes a symbol of its own, which alone may stand at the
    /// end: `e: e '+' operand | operand` and `operand: x` make the same texts.
    fn separate_operands(&mut self) {
        for index in 0..self.named {
            let whole = Symbol::Nonterminal(index as u32);
            let is_list = |production: &Production| {
                let symbols = &production.symbols;
                symbols.len() > 1
                    && symbols.first() == Some(&whole)
                    && symbols.last() == Some(&whole)
            };
            let of = self.of[index].iter().copied();
            let (lists, others): (Vec<u32>, Vec<u32>) =
                of.partition(|&production| is_list(&self.productions[production as usize]));
            if lists.is_empty() {
                continue;
            }
            let operand = self.of.len() as u32;
            let Name { name, place } = &self.nonterminals[index];
            self.nonterminals.push(Name { name: name.clone(), place: *place });
            for &list in &lists {
                if let Some(last) = self.productions[list as usize].symbols.last_mut() {
                    *last = Symbol::Nonterminal(operand);
                }
            }
            for &other in &others {
                self.productions[other as usize].of = operand;
            }
            let symbols = vec![Symbol::Nonterminal(operand)];
            self.of[index] = lists;
            self.of[index].push(self.productions.len() as u32);
            self.productions.push(Production { of: index as u32, symbols });
            self.of.push(others);
        }
    }

    fn nonterminal(&mut self, name: &str, place: Place) {
        let symbol = Symbol::Nonterminal(self.nonterminals.len() as u32);
        self.nonterminals.push(Name { name: name.to_owned(), place });
        self.by_name.insert(name.to_owned(), symbol);
        self.of.push(Vec::new());
    }

    fn terminal(&mut self, name: &str, place: Place, literal: Option<Vec<u8>>) -> Symbol {
        let symbol = Symbol::Terminal(self.terminals.len() as u32);
        self.terminals.push(Name { name: name.to_owned(), place });
        self.by_name.insert(name.to_owned(), symbol);
        self.literals.push(literal);
        symbol
    }

    pub fn start(&self) -> Symbol {
        Symbol::Nonterminal(self.start)
    }

    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.by_name.get(name).copied()
    }

    pub fn name(&self, symbol: Symbol) -> &str {
        &self.named(symbol).name
    }

    pub fn place(&self, symbol: Symbol) -> Place {
        self.named(symbol).place
    }

    fn named(&self, symbol: Symbol) -> &Name {
        match symbol {
            Symbol::Terminal(index) => &self.terminals[index as usize],
            Symbol::Nonterminal(index) => &self.nonterminals[index as usize],
        }
    }

    /// What each terminal is, if it is always the same.
    pub fn literals(&self) -> &[Option<Vec<u8>>] {
        &self.literals
    }

    /// The nonterminals that the file names.
    pub fn nonterminals(&self) -> impl Iterator<Item = Symbol> + use<> {
        (0..self.named as u32).map(Symbol::Nonterminal)
    }

    pub fn is_nullable(&self, symbol: Symbol) -> bool {
        matches!(symbol, Symbol::Nonterminal(index) if self.nullable[index as usize])
    }
}

fn error(place: Place, message: String) -> GrammarError {
    GrammarError { place, message }
}

/// Which nonterminals may be nothing.
fn nullable(rules: &Rules) -> Vec<bool> {
    let mut nullable = vec![false; rules.nonterminals.len()];
    loop {
        let mut changed = false;
        for production in &rules.productions {
            let nothing = |symbol: &Symbol| matches!(symbol, Symbol::Nonterminal(index) if nullable[*index as usize]);
            if !nullable[production.of as usize] && production.symbols.iter().all(nothing) {
                nullable[production.of as usize] = true;
                changed = true;
            }
        }
        if !changed {
            return nullable;
        }
    }
}
