//! dd, isolation: from a list that passes and a longer one that fails, moves both towards
//! each other until no step is left: the closest pair.

use super::{Kept, live, partition};
use crate::oracle::{Oracle, Outcome, Verdict};

/// The parts in the passing one and those in the failing one. The former are among the latter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub passing: Kept,
    pub failing: Kept,
}

/// Starts with nothing, which passes, and everything, which fails.
pub fn dd(
    length: usize,
    render: &dyn Fn(&[bool]) -> Vec<u8>,
    oracle: &mut dyn Oracle,
) -> Outcome<Pair> {
    let mut pair = Pair { passing: vec![false; length], failing: vec![true; length] };
    let mut parts = 2;
    loop {
        let difference: Vec<usize> =
            live(&pair.failing).into_iter().filter(|&index| !pair.passing[index]).collect();
        if difference.len() < 2 {
            return Ok(pair);
        }
        parts = parts.min(difference.len());
        let pieces = partition(&difference, parts);
        match step(&pair, &pieces, render, oracle)? {
            Some((next, Progress::Halved)) => (pair, parts) = (next, 2),
            Some((next, Progress::OnePiece)) => (pair, parts) = (next, (parts - 1).max(2)),
            None if parts == difference.len() => return Ok(pair),
            None => parts *= 2,
        }
    }
}

enum Progress {
    /// What is left to look at is one piece.
    Halved,
    /// It is one piece less.
    OnePiece,
}

fn step(
    pair: &Pair,
    pieces: &[&[usize]],
    render: &dyn Fn(&[bool]) -> Vec<u8>,
    oracle: &mut dyn Oracle,
) -> Outcome<Option<(Pair, Progress)>> {
    let with = |kept: &Kept, piece: &[usize], value: bool| {
        let mut kept = kept.clone();
        for &index in piece {
            kept[index] = value;
        }
        kept
    };
    // What was asked in the first two loops is remembered for the last two.
    let (mut more, mut less) = (Vec::new(), Vec::new());
    for piece in pieces {
        let added = with(&pair.passing, piece, true);
        let verdict = oracle.verdict(render(&added))?;
        if verdict == Verdict::Fails {
            let passing = pair.passing.clone();
            return Ok(Some((Pair { passing, failing: added }, Progress::Halved)));
        }
        more.push((added, verdict));
    }
    for piece in pieces {
        let removed = with(&pair.failing, piece, false);
        let verdict = oracle.verdict(render(&removed))?;
        if verdict == Verdict::Passes {
            let failing = pair.failing.clone();
            return Ok(Some((Pair { passing: removed, failing }, Progress::Halved)));
        }
        less.push((removed, verdict));
    }
    let passes = more.into_iter().find(|(_, verdict)| *verdict == Verdict::Passes);
    if let Some((passing, _)) = passes {
        let failing = pair.failing.clone();
        return Ok(Some((Pair { passing, failing }, Progress::OnePiece)));
    }
    let fails = less.into_iter().find(|(_, verdict)| *verdict == Verdict::Fails);
    Ok(fails
        .map(|(failing, _)| (Pair { passing: pair.passing.clone(), failing }, Progress::OnePiece)))
}
