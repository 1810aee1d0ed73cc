//! One derivation of a text, out of all that a chart holds: of each item the way on which it
//! was found first.

use super::earley::{By, Chart};
use super::rules::Rules;
use std::ops::Range;

/// A production that was used, and what its symbols are.
pub(super) struct Derived {
    pub production: u32,
    pub children: Vec<Child>,
    /// The tokens that it is made of.
    pub tokens: Range<usize>,
}

#[derive(Clone, Copy)]
pub(super) enum Child {
    Token(usize),
    Derived(usize),
    Nothing,
}

/// All productions that were used, the first one for the whole text.
pub(super) fn derive(rules: &Rules, chart: &Chart, tokens: usize) -> Vec<Derived> {
    let mut derivation =
        Derivation { rules, chart, derived: Vec::new(), rest: vec![(chart.whole, tokens, None)] };
    while let Some((item, end, place)) = derivation.rest.pop() {
        derivation.item(item, end, place);
    }
    derivation.derived
}

/// Where something is a child: a production that was used, and the number of the symbol.
type Slot = Option<(usize, usize)>;

struct Derivation<'a> {
    rules: &'a Rules,
    chart: &'a Chart,
    derived: Vec<Derived>,
    /// Items that are complete, where their text ends, and where they belong.
    rest: Vec<(u32, usize, Slot)>,
}

impl Derivation<'_> {
    /// A complete item.
    fn item(&mut self, index: u32, end: usize, slot: Slot) {
        let item = self.chart.items[index as usize];
        let By::Chain(lowest) = item.by else {
            let derived = self.production(item.position, item.origin, end, slot);
            self.symbols(derived, index, end);
            return;
        };
        // From the highest item of the chain down to the one that it began with.
        let mut slot = slot;
        for (waited, set) in self.chain(lowest, (item.position, item.origin)).into_iter().rev() {
            let item = self.chart.items[waited as usize];
            let derived = self.production(item.position + 1, item.origin, end, slot);
            self.symbols(derived, waited, set as usize);
            let dot = self.chart.positions[item.position as usize].dot;
            slot = Some((derived, dot as usize));
        }
        self.rest.push((lowest, end, slot));
    }

    /// The items that wait for each other from one that is complete up to another, and in
    /// front of which tokens they wait.
    fn chain(&self, lowest: u32, highest: (u32, u32)) -> Vec<(u32, u32)> {
        let of = |position: u32| {
            let production = self.chart.positions[position as usize].production;
            self.rules.productions[production as usize].of
        };
        let mut chain = Vec::new();
        let mut item = self.chart.items[lowest as usize];
        while let Some(waited) = self.chart.only_waiting(item.origin, of(item.position)) {
            chain.push((waited, item.origin));
            item = self.chart.items[waited as usize];
            if (item.position + 1, item.origin) == highest {
                break;
            }
        }
        chain
    }

    /// A production that was used, whose symbols are not known yet.
    fn production(&mut self, position: u32, origin: u32, end: usize, slot: Slot) -> usize {
        let production = self.chart.positions[position as usize].production;
        let symbols = self.rules.productions[production as usize].symbols.len();
        let derived = self.derived.len();
        self.derived.push(Derived {
            production,
            children: vec![Child::Nothing; symbols],
            tokens: origin as usize..end,
        });
        if let Some((parent, symbol)) = slot {
            self.derived[parent].children[symbol] = Child::Derived(derived);
        }
        derived
    }

    /// The symbols in front of an item's dot.
    fn symbols(&mut self, derived: usize, index: u32, end: usize) {
        let (mut item, mut end) = (self.chart.items[index as usize], end);
        loop {
            let dot = self.chart.positions[item.position as usize].dot as usize;
            match item.by {
                By::Token => {
                    end -= 1;
                    self.derived[derived].children[dot - 1] = Child::Token(end);
                }
                By::Item(child) => {
                    self.rest.push((child, end, Some((derived, dot - 1))));
                    end = self.chart.items[child as usize].origin as usize;
                }
                By::Nothing => {}
                // A chain ends with complete items, which no other follows.
                By::Begin | By::Chain(_) => return,
            }
            item = self.chart.items[item.before as usize];
        }
    }
}
