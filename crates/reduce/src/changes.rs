//! Changes to a flat text: pieces of it are replaced, wherever they stand.

use crate::lists::{Kept, List, sweep};
use crate::oracle::{Oracle, Outcome};
use crate::trees::Search;
use crate::units::Span;

/// Several places of the text that are changed together.
#[derive(Clone, Debug)]
pub struct Change {
    pub spans: Vec<Span>,
    pub put: Vec<u8>,
}

impl Change {
    pub fn removal(span: Span) -> Change {
        Change { spans: vec![span], put: Vec::new() }
    }

    fn gain(&self) -> usize {
        let before: usize = self.spans.iter().map(|span| span.len()).sum();
        before.saturating_sub(self.put.len() * self.spans.len())
    }
}

/// The text with as many of the changes as can be made. No two may touch the same place.
pub fn make(
    text: &[u8],
    changes: &[Change],
    search: Search,
    oracle: &mut dyn Oracle,
) -> Outcome<Vec<u8>> {
    if changes.is_empty() {
        return Ok(text.to_vec());
    }
    let mut places: Vec<(Span, usize)> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        places.extend(change.spans.iter().map(|span| (span.clone(), index)));
    }
    places.sort_by_key(|(span, _)| span.start);
    let render = |kept: &[bool]| render(text, &places, changes, kept);
    let weights = changes.iter().map(|change| change.gain().max(1)).collect();
    let list = List { weights, render: &render };
    let mut kept: Kept = search.minimiser.run(&list, search.belief, oracle)?;
    if search.sweep {
        sweep(&list, &mut kept, oracle)?;
    }
    Ok(render(&kept))
}

fn render(text: &[u8], places: &[(Span, usize)], changes: &[Change], kept: &[bool]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    for (span, index) in places.iter().filter(|(_, index)| !kept[*index]) {
        result.extend_from_slice(&text[at..span.start]);
        result.extend_from_slice(&changes[*index].put);
        at = span.end;
    }
    result.extend_from_slice(&text[at..]);
    result
}
