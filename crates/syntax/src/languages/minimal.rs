//! The smallest text of each symbol: every node of the text is taken for a rule by which its
//! symbol can be made of its own signs and of whatever may stand in the places of its
//! children, and the smallest texts by these rules are found as those of a grammar are.

use super::plan::{Form, Part, Plan};
use super::{Language, Layout};
use why_tree::Spacing;

pub(super) struct Minima {
    of_symbol: Vec<Option<Vec<u8>>>,
    /// The smallest of all symbols that may stand in a place.
    of_place: Vec<Option<usize>>,
}

/// More rounds than this would only find what hardly any text has.
const ROUNDS: usize = 64;

pub(super) fn minima(language: &Language, plan: &Plan, text: &[u8]) -> Minima {
    let spacing = language.spacing();
    let mut minima = Minima {
        of_symbol: vec![None; plan.symbols.len()],
        of_place: vec![None; plan.places.len()],
    };
    for (symbol, smallest) in language.needed {
        if let Some(index) = plan.symbols.iter().position(|name| name == symbol) {
            minima.of_symbol[index] = Some(smallest.as_bytes().to_vec());
        }
    }
    for _ in 0..ROUNDS {
        minima.of_place = plan.places.iter().map(|symbols| minima.smallest_of(symbols)).collect();
        let mut changed = false;
        // From the last part on, because children come behind their parents.
        for part in plan.parts.iter().rev() {
            let known = minima.of_symbol[part.symbol].as_ref().map_or(usize::MAX, Vec::len);
            let rule = Rule { language, plan, part, text, spacing: &spacing };
            if let Some(smaller) = rule.apply(&minima, known) {
                minima.of_symbol[part.symbol] = Some(smaller);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    minima
}

impl Minima {
    pub fn of_place(&self, place: usize) -> Option<&[u8]> {
        self.of_symbol[self.of_place[place]?].as_deref()
    }

    pub fn of_symbol(&self, symbol: usize) -> Option<&[u8]> {
        self.of_symbol[symbol].as_deref()
    }

    /// Of equally small texts a number, which needs no definition.
    fn smallest_of(&self, symbols: &[usize]) -> Option<usize> {
        let known = symbols.iter().filter_map(|&symbol| Some((symbol, self.of_symbol(symbol)?)));
        let is_number = |text: &[u8]| text.first().is_some_and(u8::is_ascii_digit);
        let smallest = known.min_by_key(|(_, text)| (text.len(), !is_number(text)));
        smallest.map(|(symbol, _)| symbol)
    }
}

/// A part, as a rule for its symbol.
struct Rule<'a> {
    language: &'a Language,
    plan: &'a Plan<'a>,
    part: &'a Part,
    text: &'a [u8],
    spacing: &'a Spacing,
}

impl Rule<'_> {
    /// What the rule makes, if it is known and shorter than this.
    fn apply(&self, minima: &Minima, limit: usize) -> Option<Vec<u8>> {
        let children = self.part.children.iter().map(|&child| &self.plan.parts[child]);
        if self.part.nonempty {
            let elements = children.filter(|child| child.form != Form::Separator);
            let smallest = elements.filter_map(|child| minima.of_place(child.place));
            let smallest = smallest.min_by_key(|text| text.len())?;
            return (smallest.len() < limit).then(|| smallest.to_vec());
        }
        let mut made = Vec::new();
        let mut at = self.part.span.start;
        for child in children {
            self.own(&mut made, at..child.span.start)?;
            at = child.span.end;
            match child.form {
                Form::Optional | Form::Separator | Form::Unfit => {}
                Form::Needed => self.join(&mut made, minima.of_place(child.place)?),
                Form::Fixed => self.own(&mut made, child.span.clone())?,
            }
            if made.len() >= limit {
                return None;
            }
        }
        self.own(&mut made, at..self.part.span.end)?;
        (made.len() < limit && !made.is_empty()).then_some(made)
    }

    /// A text of the part's own, without the space around it, if it means the same elsewhere.
    fn own(&self, made: &mut Vec<u8>, span: std::ops::Range<usize>) -> Option<()> {
        let own = &self.text[span];
        if self.language.layout == Layout::Lines {
            made.extend_from_slice(own);
            return (!own.contains(&b'\n')).then_some(());
        }
        self.join(made, own.trim_ascii());
        Some(())
    }

    fn join(&self, made: &mut Vec<u8>, next: &[u8]) {
        if let (Some(&last), Some(&first)) = (made.last(), next.first()) {
            made.extend_from_slice(self.spacing.between(last, first));
        }
        made.extend_from_slice(next);
    }
}
