//! The smallest text of each symbol.
//!
//! It is the least solution of "a symbol's text is the shortest of its productions', and a
//! production's consists of its symbols' texts". The shortest text of all that is not known
//! yet never needs a longer one, so texts are found in the order of their length, and each
//! production is looked at once.

use super::lexer::Lexer;
use super::rules::{Rules, Symbol};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) struct Minima {
    terminals: Vec<Vec<u8>>,
    /// The length without what separates tokens, and the text, unless it is too long.
    nonterminals: Vec<Option<(u64, Option<Vec<u8>>)>>,
}

/// A text that is longer is never written.
const LONGEST: u64 = 1 << 20;

impl Minima {
    pub fn find(rules: &Rules, lexer: &Lexer) -> Minima {
        let count = rules.of.len();
        let mut minima =
            Minima { terminals: lexer.minima().to_vec(), nonterminals: vec![None; count] };
        // How many nonterminals of each production are unknown, and where each is needed.
        let mut unknown = vec![0_usize; rules.productions.len()];
        let mut needed: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut ready = BinaryHeap::new();
        for (index, production) in rules.productions.iter().enumerate() {
            for symbol in &production.symbols {
                if let Symbol::Nonterminal(nonterminal) = symbol {
                    unknown[index] += 1;
                    needed[*nonterminal as usize].push(index);
                }
            }
            if unknown[index] == 0 {
                ready.push(Reverse((minima.length_of(&production.symbols), index)));
            }
        }
        while let Some(Reverse((length, index))) = ready.pop() {
            let production = &rules.productions[index];
            let of = production.of as usize;
            if minima.nonterminals[of].is_some() {
                continue;
            }
            let text = (length <= LONGEST).then(|| minima.join(&production.symbols, lexer));
            minima.nonterminals[of] = Some((length, text.flatten()));
            for &other in &needed[of] {
                unknown[other] -= 1;
                if unknown[other] == 0 {
                    let length = minima.length_of(&rules.productions[other].symbols);
                    ready.push(Reverse((length, other)));
                }
            }
        }
        minima
    }

    /// The length of a symbol's smallest text, if it has any text.
    pub fn length(&self, symbol: Symbol) -> Option<u64> {
        match symbol {
            Symbol::Terminal(index) => Some(self.terminals[index as usize].len() as u64),
            Symbol::Nonterminal(index) => Some(self.nonterminals[index as usize].as_ref()?.0),
        }
    }

    pub fn text(&self, symbol: Symbol) -> Option<&[u8]> {
        match symbol {
            Symbol::Terminal(index) => Some(&self.terminals[index as usize]),
            Symbol::Nonterminal(index) => self.nonterminals[index as usize].as_ref()?.1.as_deref(),
        }
    }

    fn length_of(&self, symbols: &[Symbol]) -> u64 {
        let length = |&symbol: &Symbol| self.length(symbol).unwrap_or(u64::MAX);
        symbols.iter().map(length).fold(0, u64::saturating_add)
    }

    fn join(&self, symbols: &[Symbol], lexer: &Lexer) -> Option<Vec<u8>> {
        let mut joined: Vec<u8> = Vec::new();
        for &symbol in symbols {
            let text = self.text(symbol)?;
            if let (Some(&last), Some(&first)) = (joined.last(), text.first()) {
                joined.extend_from_slice(lexer.spacing().between(last, first));
            }
            joined.extend_from_slice(text);
        }
        Some(joined)
    }
}
