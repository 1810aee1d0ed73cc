//! The changes that lead from one text to another.

use similar::{Algorithm, ChangeTag};
use std::time::{Duration, Instant};
use why_reduce::units::Unit;

/// Looking for the smallest set of changes may take this long; then any will do.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Deltas {
    pieces: Vec<Piece>,
    number: usize,
}

/// A piece of either text, or of both.
struct Piece {
    text: Vec<u8>,
    tag: ChangeTag,
    /// The number of the change, if it is one.
    change: usize,
}

impl Deltas {
    pub fn new(unit: Unit, from: &[u8], to: &[u8]) -> Deltas {
        let cut = |text: &[u8]| -> Vec<Vec<u8>> {
            unit.cut(text).into_iter().map(|span| text[span].to_vec()).collect()
        };
        let (old, new) = (cut(from), cut(to));
        let deadline = Some(Instant::now() + PATIENCE);
        let operations =
            similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        let mut deltas = Deltas { pieces: Vec::new(), number: 0 };
        for change in operations.iter().flat_map(|operation| operation.iter_changes(&old, &new)) {
            let tag = change.tag();
            deltas.pieces.push(Piece { text: change.value(), tag, change: deltas.number });
            deltas.number += usize::from(tag != ChangeTag::Equal);
        }
        deltas
    }

    pub fn len(&self) -> usize {
        self.number
    }

    /// The first text with these changes made.
    pub fn render(&self, made: &[bool]) -> Vec<u8> {
        let shown = |piece: &&Piece| match piece.tag {
            ChangeTag::Equal => true,
            ChangeTag::Insert => made[piece.change],
            ChangeTag::Delete => !made[piece.change],
        };
        self.pieces.iter().filter(shown).flat_map(|piece| &piece.text).copied().collect()
    }

    /// For people: what changes, with a line around it.
    pub fn text(&self) -> String {
        let changes = |index: usize| {
            self.pieces.get(index).is_some_and(|piece| piece.tag != ChangeTag::Equal)
        };
        let mut text = String::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            let near = changes(index) || changes(index + 1) || index > 0 && changes(index - 1);
            if near {
                let line = String::from_utf8_lossy(&piece.text);
                text.push_str(&format!("{}{}\n", piece.tag, line.trim_end_matches('\n')));
            }
        }
        text
    }
}
