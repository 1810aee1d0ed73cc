//! What the next token can tell: with which tokens a production can begin, and which can
//! follow a nonterminal.

use super::super::rules::{Rules, Symbol};

pub(super) struct Ahead {
    /// Of each production, and whether it may be nothing.
    begins: Vec<(Tokens, bool)>,
    follows: Vec<Tokens>,
    terminals: u32,
    /// Anything may come next.
    ignored: bool,
}

/// A set of terminals; the end of the text is behind the last of them.
#[derive(Clone, PartialEq, Eq)]
struct Tokens(Vec<u64>);

impl Tokens {
    fn insert(&mut self, token: u32) -> bool {
        let (word, bit) = (&mut self.0[token as usize / 64], 1 << (token % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn contains(&self, token: u32) -> bool {
        self.0[token as usize / 64] >> (token % 64) & 1 == 1
    }

    /// Whether there was anything new.
    fn extend(&mut self, other: &Tokens) -> bool {
        let mut new = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            new |= *theirs & !*mine != 0;
            *mine |= theirs;
        }
        new
    }
}

impl Ahead {
    pub fn new(rules: &Rules) -> Ahead {
        let terminals = rules.literals().len() as u32;
        let none = Tokens(vec![0; terminals as usize / 64 + 1]);
        let mut of: Vec<Tokens> = vec![none.clone(); rules.of.len()];
        loop {
            let mut changed = false;
            for production in &rules.productions {
                let begin = beginning(rules, &of, &none, &production.symbols);
                changed |= of[production.of as usize].extend(&begin);
            }
            if !changed {
                break;
            }
        }
        let begins = rules.productions.iter().map(|production| {
            let nothing = production.symbols.iter().all(|&symbol| rules.is_nullable(symbol));
            (beginning(rules, &of, &none, &production.symbols), nothing)
        });
        let begins = begins.collect();
        Ahead { begins, follows: follows(rules, &of, &none), terminals, ignored: false }
    }

    /// From now on anything may come next.
    pub fn ignore(&mut self) {
        self.ignored = true;
    }

    fn token(&self, next: Option<u32>) -> u32 {
        next.unwrap_or(self.terminals)
    }

    /// Whether a production may begin in front of a token.
    pub fn may_begin(&self, rules: &Rules, production: u32, next: Option<u32>) -> bool {
        let (begins, nothing) = &self.begins[production as usize];
        let of = rules.productions[production as usize].of;
        self.ignored || begins.contains(self.token(next)) || *nothing && self.may_follow(of, next)
    }

    /// Whether a token may stand behind a nonterminal.
    pub fn may_follow(&self, nonterminal: u32, next: Option<u32>) -> bool {
        self.ignored || self.follows[nonterminal as usize].contains(self.token(next))
    }
}

/// What a sequence of symbols can begin with.
fn beginning(rules: &Rules, of: &[Tokens], none: &Tokens, symbols: &[Symbol]) -> Tokens {
    let mut begin = none.clone();
    for &symbol in symbols {
        match symbol {
            Symbol::Terminal(terminal) => {
                begin.insert(terminal);
            }
            Symbol::Nonterminal(nonterminal) => {
                begin.extend(&of[nonterminal as usize]);
            }
        }
        if !rules.is_nullable(symbol) {
            break;
        }
    }
    begin
}

fn follows(rules: &Rules, of: &[Tokens], none: &Tokens) -> Vec<Tokens> {
    let mut follows = vec![none.clone(); rules.of.len()];
    if let Symbol::Nonterminal(start) = rules.start() {
        follows[start as usize].insert(rules.literals().len() as u32);
    }
    loop {
        let mut changed = false;
        for production in &rules.productions {
            // From the end: what can stand behind the symbol at hand.
            let mut behind = follows[production.of as usize].clone();
            for &symbol in production.symbols.iter().rev() {
                match symbol {
                    Symbol::Terminal(terminal) => {
                        behind = none.clone();
                        behind.insert(terminal);
                    }
                    Symbol::Nonterminal(nonterminal) => {
                        changed |= follows[nonterminal as usize].extend(&behind);
                        if !rules.is_nullable(symbol) {
                            behind = none.clone();
                        }
                        behind.extend(&of[nonterminal as usize]);
                    }
                }
            }
        }
        if !changed {
            return follows;
        }
    }
}
