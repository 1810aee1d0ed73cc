//! Several files: which are needed, then each by itself, until nothing changes.

use super::algorithm::Algorithm;
use super::reader::Syntax;
use why_reduce::lists::{List, Minimiser, sweep};
use why_reduce::trees::Search;
use why_reduce::units::Unit;
use why_reduce::{Oracle, Outcome, Verdict};
use why_trial::Files;

pub fn reduce(
    files: &Files,
    algorithm: Algorithm,
    unit: Unit,
    syntax: &Syntax,
    oracle: &mut dyn Oracle,
) -> Outcome<()> {
    let mut files = files.clone();
    loop {
        let before = files.clone();
        oracle.phase("files");
        files = needed(&files, oracle)?;
        // The largest first: it is the one that most can be left out of.
        let mut order: Vec<usize> = (0..files.0.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(files.0[index].1.len()));
        for index in order {
            let reader = syntax.reader(&files.0[index].0);
            let text = files.0[index].1.clone();
            let mut within = Within { oracle: &mut *oracle, files: &files, index };
            files.0[index].1 = algorithm.run(&text, unit, &reader, &mut within)?;
        }
        if files == before {
            return Ok(());
        }
    }
}

fn needed(files: &Files, oracle: &mut dyn Oracle) -> Outcome<Files> {
    let chosen = |kept: &[bool]| {
        let files = files.0.iter().zip(kept).filter(|(_, kept)| **kept);
        Files(files.map(|(file, _)| file.clone()).collect())
    };
    let render = |kept: &[bool]| chosen(kept).pack();
    let weights = files.0.iter().map(|(_, content)| content.len().max(1)).collect();
    let list = List { weights, render: &render };
    let mut kept = Minimiser::ProbDd.run(&list, Search::expecting(1.0).belief, oracle)?;
    sweep(&list, &mut kept, oracle)?;
    Ok(chosen(&kept))
}

/// A candidate is one of the files; the others stay as they are.
struct Within<'a> {
    oracle: &'a mut dyn Oracle,
    files: &'a Files,
    index: usize,
}

fn with(files: &Files, index: usize, candidate: Vec<u8>) -> Vec<u8> {
    let mut files = files.clone();
    files.0[index].1 = candidate;
    files.pack()
}

impl Oracle for Within<'_> {
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>> {
        let (files, index) = (self.files, self.index);
        self.oracle.first(&mut candidates.map(|candidate| with(files, index, candidate)))
    }

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict> {
        self.oracle.verdict(with(self.files, self.index, candidate))
    }

    fn phase(&mut self, name: &str) {
        let path = self.files.0[self.index].0.display();
        self.oracle.phase(&format!("{name} of {path}"));
    }
}
