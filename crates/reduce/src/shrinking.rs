//! An oracle that is never asked about a text that is not shorter than the last that failed.
//! So whatever is tried, the last one that failed is the shortest.

use crate::oracle::{Oracle, Outcome, Verdict};

pub struct Shrinking<'a> {
    oracle: &'a mut dyn Oracle,
    length: usize,
}

impl Shrinking<'_> {
    /// Starts from a text of this length, which fails.
    pub fn new(oracle: &mut dyn Oracle, length: usize) -> Shrinking<'_> {
        Shrinking { oracle, length }
    }
}

impl Oracle for Shrinking<'_> {
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>> {
        let mut shorter: Vec<(usize, usize)> = Vec::new();
        let length = self.length;
        let mut asked = candidates.enumerate().filter_map(|(index, candidate)| {
            (candidate.len() < length).then(|| {
                shorter.push((index, candidate.len()));
                candidate
            })
        });
        let Some(failing) = self.oracle.first(&mut asked)? else { return Ok(None) };
        let (index, length) = shorter[failing];
        self.length = length;
        Ok(Some(index))
    }

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict> {
        self.oracle.verdict(candidate)
    }

    fn fails(&mut self, candidate: Vec<u8>) -> Outcome<bool> {
        Ok(self.first(&mut std::iter::once(candidate))?.is_some())
    }

    fn phase(&mut self, name: &str) {
        self.oracle.phase(name);
    }
}
