//! ProbDD with weights: every element has a probability of being needed, and what is tried
//! is the set whose removal promises most. What cannot be left out makes its elements more
//! suspicious; so what is tried gets smaller by itself where something is needed.
//!
//! Without knowledge, what is twice as large is twice as likely to be needed. So a tree is
//! searched in about as many steps as there are bits in the size of its text, however its
//! nodes are distributed over levels.

use super::sweep::pass_over;
use super::{Kept, List, live};
use crate::oracle::{Oracle, Outcome};
use std::cmp::Reverse;

/// Longer lists are first taken in so many groups.
const GROUPS: usize = 512;

/// What is rejected becomes more suspicious at least by this factor.
const LEAST_DOUBT: f64 = 1.3;

/// What is believed before anything is tried, and how sure one has to be to leave it at that.
#[derive(Clone, Copy, Debug)]
pub struct Belief {
    /// How many of the parts are needed.
    pub needed: f64,
    /// At least this share of them.
    pub share: f64,
    /// A part that is needed with this probability is not tried any more.
    pub certain: f64,
    /// The weight of all of which the list is a part; at least that of the list.
    pub whole: usize,
    /// After so many tries in a row that came to nothing the rest is given up.
    pub patience: usize,
}

/// What is left need not be 1-minimal: [`sweep`](super::sweep) makes it so.
pub fn probdd(list: &List, belief: Belief, oracle: &mut dyn Oracle) -> Outcome<Kept> {
    let mut kept = vec![true; list.len()];
    let mut number = GROUPS;
    loop {
        let groups = groups(list, &kept, number);
        let single = groups.iter().all(|group| group.len() == 1);
        let mut search = Search::new(list, groups, belief);
        let ended = search.run(&mut kept, oracle)?;
        if single {
            search.reconsider(&mut kept, oracle)?;
        }
        if single || ended == Ended::GivenUp {
            return Ok(kept);
        }
        number *= 2;
    }
}

/// How the search over one set of groups ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    NothingLeft,
    GivenUp,
}

/// Neighbours, in at most so many groups of about the same weight.
fn groups(list: &List, kept: &[bool], number: usize) -> Vec<Vec<usize>> {
    let left = live(kept);
    if left.len() <= 2 * number {
        return left.into_iter().map(|index| vec![index]).collect();
    }
    let total: usize = left.iter().map(|&index| list.weights[index]).sum();
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    let mut before = 0;
    for index in left {
        if before * number >= groups.len() * total {
            groups.push(Vec::new());
        }
        before += list.weights[index];
        groups.last_mut().expect("there is one").push(index);
    }
    groups
}

struct Search<'a, 'b> {
    list: &'a List<'b>,
    patience: usize,
    groups: Vec<Vec<usize>>,
    weights: Vec<f64>,
    state: State,
}

/// What is believed of each group.
#[derive(Clone)]
struct State {
    certain: f64,
    needed: Vec<f64>,
    /// Those that may still be left out.
    open: Vec<usize>,
    /// Those that could not be left out alone.
    alone: Vec<usize>,
    /// Those of which that may have changed, because another was left out later.
    outdated: Vec<usize>,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(list: &'a List<'b>, groups: Vec<Vec<usize>>, belief: Belief) -> Search<'a, 'b> {
        let weigh = |group: &Vec<usize>| group.iter().map(|&index| list.weights[index]).sum();
        let weights: Vec<usize> = groups.iter().map(weigh).collect();
        let weights: Vec<f64> = weights.into_iter().map(|weight| weight as f64).collect();
        let total: f64 = weights.iter().sum();
        let total = total.max(belief.whole as f64);
        let guess = |weight: &f64| (belief.needed * weight / total).max(belief.share).min(0.95);
        let needed: Vec<f64> = weights.iter().map(guess).collect();
        let open = (0..groups.len()).filter(|&group| needed[group] < belief.certain).collect();
        Search {
            list,
            patience: belief.patience,
            groups,
            weights,
            state: State {
                certain: belief.certain,
                needed,
                open,
                alone: Vec::new(),
                outdated: Vec::new(),
            },
        }
    }

    fn run(&mut self, kept: &mut Kept, oracle: &mut dyn Oracle) -> Outcome<Ended> {
        let mut length = (self.list.render)(kept).len();
        // Tries since the text last became shorter.
        let mut fruitless = 0;
        loop {
            let mut ahead = self.state.clone();
            let mut tried: Vec<Vec<usize>> = Vec::new();
            let mut lengths: Vec<usize> = Vec::new();
            let mut candidates = std::iter::from_fn(|| {
                if fruitless + tried.len() >= self.patience {
                    return None;
                }
                let chosen = ahead.choose(&self.weights)?;
                ahead.rejected(&chosen);
                let groups = chosen.iter().flat_map(|&group| &self.groups[group]);
                let candidate = self.list.without(kept, &groups.copied().collect::<Vec<usize>>());
                tried.push(chosen);
                lengths.push(candidate.len());
                Some(candidate)
            });
            let Some(accepted) = oracle.first(&mut candidates)? else {
                let given_up = fruitless + tried.len() >= self.patience;
                return Ok(if given_up { Ended::GivenUp } else { Ended::NothingLeft });
            };
            for chosen in &tried[..accepted] {
                self.state.rejected(chosen);
            }
            for &group in &tried[accepted] {
                for &index in &self.groups[group] {
                    kept[index] = false;
                }
            }
            self.state.accepted(&tried[accepted]);
            fruitless = if lengths[accepted] < length { 0 } else { fruitless + accepted + 1 };
            length = lengths[accepted];
        }
    }
}

impl Search<'_, '_> {
    /// What something depended on that is gone now can go, too.
    fn reconsider(&mut self, kept: &mut Kept, oracle: &mut dyn Oracle) -> Outcome<()> {
        let mut outdated: Vec<usize> =
            self.state.outdated.iter().flat_map(|&group| &self.groups[group]).copied().collect();
        outdated.sort_unstable();
        pass_over(self.list, outdated, kept, oracle)
    }
}

impl State {
    fn accepted(&mut self, chosen: &[usize]) {
        self.open.retain(|group| !chosen.contains(group));
        self.outdated.append(&mut self.alone);
    }

    /// The set whose removal promises most: its weight times the probability that none of it
    /// is needed.
    fn choose(&self, weights: &[f64]) -> Option<Vec<usize>> {
        // In steps of an eighth of a doubling, so that neighbours with the same history are
        // equals: what belongs together stands together.
        let doubt = |group: usize| ((self.needed[group] / weights[group]).log2() * 8.0).round();
        let mut order = self.open.clone();
        // Among equals, what stands last goes first: uses go before what they use.
        order.sort_by_cached_key(|&group| (doubt(group) as i64, Reverse(group)));
        let (mut weight, mut chance) = (0.0, 1.0);
        let (mut best, mut length) = (0.0, 0);
        for (index, &group) in order.iter().enumerate() {
            weight += weights[group];
            chance *= 1.0 - self.needed[group];
            let promise = weight * chance;
            if promise < best {
                break;
            }
            (best, length) = (promise, index + 1);
        }
        order.truncate(length);
        (!order.is_empty()).then_some(order)
    }

    fn rejected(&mut self, chosen: &[usize]) {
        let none_needed: f64 = chosen.iter().map(|&group| 1.0 - self.needed[group]).product();
        for &group in chosen {
            let needed = self.needed[group];
            // What nobody believed in teaches nothing; it must not be tried for ever.
            let at_least = (needed * LEAST_DOUBT).min(1.0);
            self.needed[group] = (needed / (1.0 - none_needed)).max(at_least);
        }
        if let [alone] = *chosen {
            self.alone.push(alone);
        }
        let certain = |group: &usize| chosen.len() == 1 && *group == chosen[0];
        let needed = &self.needed;
        self.open.retain(|group| !certain(group) && needed[*group] < self.certain);
    }
}
