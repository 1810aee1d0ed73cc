//! The automaton of all patterns, as a table: what it matches, the shortest text of each
//! pattern, and which bytes can go on a match.

use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

pub(super) struct Automaton {
    states: Vec<State>,
}

struct State {
    /// Where each byte leads, if a match can still come of it.
    next: Box<[u32; 256]>,
    /// Which pattern matches what led here.
    matches: Option<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// More states than this take too much room.
const STATES: usize = 20_000;

impl Automaton {
    pub fn new(nfa: &NFA) -> Result<Automaton, String> {
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(64 << 20))
            .determinize_size_limit(Some(64 << 20));
        let dfa = dense::Builder::new()
            .configure(config)
            .build_from_nfa(nfa)
            .map_err(|error| error.to_string())?;
        let first = dfa
            .start_state(&start::Config::new().anchored(Anchored::Yes))
            .map_err(|error| error.to_string())?;
        let mut ids: Vec<StateID> = vec![first];
        let mut known: FxHashMap<StateID, u32> = FxHashMap::from_iter([(first, 0)]);
        let mut states = Vec::new();
        while states.len() < ids.len() {
            let id = ids[states.len()];
            let mut next = Box::new([NOWHERE; 256]);
            for byte in 0..=255_u8 {
                let to = dfa.next_state(id, byte);
                if dfa.is_dead_state(to) || dfa.is_quit_state(to) {
                    continue;
                }
                next[usize::from(byte)] = *known.entry(to).or_insert_with(|| {
                    ids.push(to);
                    ids.len() as u32 - 1
                });
            }
            // That something matches shows one step later.
            let end = dfa.next_eoi_state(id);
            let patterns = if dfa.is_match_state(end) { dfa.match_len(end) } else { 0 };
            let matches = (0..patterns).map(|at| dfa.match_pattern(end, at).as_u32()).min();
            states.push(State { next, matches });
            if ids.len() > STATES {
                return Err(format!("more than {STATES} states"));
            }
        }
        let mut automaton = Automaton { states };
        automaton.forget_dead_ends();
        Ok(automaton)
    }

    /// Leaves only ways on which a match comes.
    fn forget_dead_ends(&mut self) {
        let mut from: Vec<Vec<u32>> = vec![Vec::new(); self.states.len()];
        for (index, state) in self.states.iter().enumerate() {
            for &next in state.next.iter().filter(|&&next| next != NOWHERE) {
                if from[next as usize].last() != Some(&(index as u32)) {
                    from[next as usize].push(index as u32);
                }
            }
        }
        let matches = |state: &State| state.matches.is_some();
        let mut alive: Vec<bool> = self.states.iter().map(matches).collect();
        let mut rest: Vec<u32> =
            (0..self.states.len() as u32).filter(|&index| alive[index as usize]).collect();
        while let Some(index) = rest.pop() {
            for &before in &from[index as usize] {
                if !alive[before as usize] {
                    alive[before as usize] = true;
                    rest.push(before);
                }
            }
        }
        for state in &mut self.states {
            for next in state.next.iter_mut() {
                if *next != NOWHERE && !alive[*next as usize] {
                    *next = NOWHERE;
                }
            }
        }
    }

    /// The pattern that matches most of a text's beginning, and how much.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, usize)> {
        let mut found = None;
        let mut state = 0;
        for (at, &byte) in text.iter().enumerate() {
            state = self.states[state as usize].next[usize::from(byte)];
            if state == NOWHERE {
                break;
            }
            if let Some(pattern) = self.states[state as usize].matches {
                found = Some((pattern as usize, at + 1));
            }
        }
        found
    }

    /// The shortest text that each pattern matches and none before it, of letters and digits
    /// where there is a choice.
    pub fn shortest(&self, patterns: usize) -> Vec<Option<Vec<u8>>> {
        let mut bytes: Vec<u8> = (0..=255).collect();
        bytes.sort_by_key(|byte| match byte {
            b'a'..=b'z' => 0,
            b'0'..=b'9' => 1,
            b'A'..=b'Z' => 2,
            b' '..=b'~' => 3,
            _ => 4,
        });
        let mut led: Vec<Option<(u32, u8)>> = vec![None; self.states.len()];
        let mut shortest = vec![None; patterns];
        let mut rest = VecDeque::from([0_u32]);
        while let Some(index) = rest.pop_front() {
            for &byte in &bytes {
                let next = self.states[index as usize].next[usize::from(byte)];
                if next == NOWHERE || led[next as usize].is_some() {
                    continue;
                }
                led[next as usize] = Some((index, byte));
                rest.push_back(next);
                if let Some(pattern) = self.states[next as usize].matches {
                    let found = &mut shortest[pattern as usize];
                    *found = found.take().or_else(|| Some(self.way_to(next, &led)));
                }
            }
        }
        shortest
    }

    /// The bytes that led to a state.
    fn way_to(&self, state: u32, led: &[Option<(u32, u8)>]) -> Vec<u8> {
        let mut way = Vec::new();
        let mut state = state;
        while let Some((before, byte)) = led[state as usize] {
            way.push(byte);
            state = before;
            if state == 0 {
                break;
            }
        }
        way.reverse();
        way
    }

    /// Which bytes can go on a match of such a pattern that ends with which.
    pub fn continuing(&self, of: impl Fn(usize) -> bool) -> Pairs {
        let mut last: Vec<[u64; 4]> = vec![[0; 4]; self.states.len()];
        for state in &self.states {
            for (byte, &next) in state.next.iter().enumerate().filter(|(_, n)| **n != NOWHERE) {
                last[next as usize][byte / 64] |= 1 << (byte % 64);
            }
        }
        let mut pairs = Pairs { first: vec![[0; 4]; 256] };
        for (state, last) in self.states.iter().zip(&last) {
            if state.matches.is_none_or(|pattern| !of(pattern as usize)) {
                continue;
            }
            for byte in (0..256).filter(|byte| last[byte / 64] >> (byte % 64) & 1 == 1) {
                for (first, _) in state.next.iter().enumerate().filter(|(_, n)| **n != NOWHERE) {
                    pairs.first[byte][first / 64] |= 1 << (first % 64);
                }
            }
        }
        pairs
    }
}

/// Pairs of bytes.
pub(super) struct Pairs {
    first: Vec<[u64; 4]>,
}

impl Pairs {
    pub fn contains(&self, last: u8, first: u8) -> bool {
        let first = usize::from(first);
        self.first[usize::from(last)][first / 64] >> (first % 64) & 1 == 1
    }
}
