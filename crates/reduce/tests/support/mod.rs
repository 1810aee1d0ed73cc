//! What the properties are tested with: chance, trees of brackets, tests that are functions.

#![allow(dead_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use why_reduce::auto::Reader;
use why_reduce::tester::{Judge, Judgement, Tested, Watcher};
use why_reduce::{Outcome, Verdict};
use why_tree::{NodeId, Tree};

/// The same numbers in every run (splitmix64).
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    /// A text of nested brackets and letters.
    pub fn brackets(&mut self, length: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let mut depth = 0;
        while text.len() < length {
            match self.below(4) {
                0 => {
                    text.push(b'(');
                    depth += 1;
                }
                1 if depth > 0 => {
                    text.push(b')');
                    depth -= 1;
                }
                _ => text.push(b'a' + self.below(6) as u8),
            }
        }
        text.resize(text.len() + depth, b')');
        text
    }
}

/// A bracket with what it holds is a part, and so is every other byte. All can be left out.
pub fn brackets(text: &[u8]) -> Tree {
    let mut tree = Tree::new("text", text);
    let (group, byte) = (tree.kind("group"), tree.kind("byte"));
    let mut open: Vec<NodeId> = vec![Tree::ROOT];
    for (at, sign) in text.iter().enumerate() {
        let parent = *open.last().expect("the root is never closed");
        match sign {
            b'(' => open.push(tree.add(parent, group, at..text.len(), Vec::new())),
            b')' if open.len() > 1 => {
                open.pop();
                tree.node_mut(parent).span.end = at + 1;
            }
            _ => drop(tree.add(parent, byte, at..at + 1, Vec::new())),
        }
    }
    tree
}

pub struct Brackets;

impl Reader for Brackets {
    fn tree(&self, text: &[u8]) -> Tree {
        brackets(text)
    }

    fn brackets(&self, text: &[u8]) -> Tree {
        brackets(text)
    }
}

pub fn is_balanced(text: &[u8]) -> bool {
    let mut depth = 0_i64;
    for sign in text {
        depth += match sign {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

pub fn fails(condition: bool) -> Verdict {
    if condition { Verdict::Fails } else { Verdict::Passes }
}

/// Several tests at once that end in a random order.
pub struct Unordered<F> {
    test: F,
    slots: usize,
    under_way: VecDeque<(u64, Vec<u8>)>,
    chance: Chance,
}

impl<F: FnMut(&[u8]) -> Verdict> Unordered<F> {
    pub fn new(test: F, slots: usize) -> Unordered<F> {
        Unordered { test, slots, under_way: VecDeque::new(), chance: Chance(slots as u64) }
    }
}

impl<F: FnMut(&[u8]) -> Verdict> Judge for Unordered<F> {
    fn slots(&self) -> usize {
        self.slots
    }

    fn start(&mut self, ticket: u64, candidate: &[u8]) -> Outcome<()> {
        assert!(self.under_way.len() < self.slots, "more tests than slots");
        self.under_way.push_back((ticket, candidate.to_vec()));
        Ok(())
    }

    fn finished(&mut self) -> Outcome<(u64, Judgement)> {
        let index = self.chance.below(self.under_way.len());
        let (ticket, candidate) = self.under_way.remove(index).expect("one is under way");
        let verdict = (self.test)(&candidate);
        Ok((ticket, Judgement { verdict, reason: format!("{verdict:?}").into() }))
    }

    fn cancel_all(&mut self) -> Outcome<()> {
        self.under_way.clear();
        Ok(())
    }
}

/// Remembers what it was told.
#[derive(Default)]
pub struct Notes {
    pub tests: Vec<(u64, u128, bool)>,
    pub known: Vec<(u128, Judgement)>,
}

/// Notes that are read while they are written.
#[derive(Clone, Default)]
pub struct Told(pub Rc<RefCell<Notes>>);

impl Watcher for Told {
    fn tested(&mut self, test: &Tested) -> Outcome<()> {
        self.0.borrow_mut().tests.push((test.number, test.hash, test.accepted));
        Ok(())
    }

    fn known(&mut self, hash: u128, judgement: &Judgement) -> Outcome<()> {
        self.0.borrow_mut().known.push((hash, judgement.clone()));
        Ok(())
    }
}

/// A test that wants some letters in this order, and brackets that match.
pub fn wants(letters: &[u8], text: &[u8]) -> bool {
    let mut rest = text.iter();
    is_balanced(text) && letters.iter().all(|letter| rest.any(|there| there == letter))
}

pub fn cases(number: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..number).filter_map(|seed| {
        let mut chance = Chance(seed);
        let length = 1 + chance.below(60);
        let text = chance.brackets(length);
        let letters: Vec<u8> = (0..chance.below(4)).map(|_| b'a' + chance.below(6) as u8).collect();
        wants(&letters, &text).then_some((text, letters))
    })
}

/// A test without rhyme or reason: leaving out more tells nothing of leaving out less.
pub fn by_chance(text: &[u8], seed: u64, rarely: usize) -> bool {
    let mixed = text
        .iter()
        .fold(seed, |mixed, &byte| Chance(mixed ^ u64::from(byte)).below(usize::MAX) as u64);
    Chance(mixed).below(rarely) == 0
}
