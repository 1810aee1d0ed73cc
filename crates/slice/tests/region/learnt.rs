//! What slices learn of ways over code, for those of other processes.

use super::{PROGRAMS, Units, region, stepped::stepped};
use std::fs::File;
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Options, Region, Slice};

fn criterion(position: u64) -> Criterion {
    Criterion { position, thread: 1, cells: vec![0..8, 128..136], ..Criterion::default() }
}

/// Slices of several kinds.
fn slices(region: &Region, position: u64) -> [Slice; 3] {
    let plain = Options { reasons: Why::Code, ..Options::default() };
    let thin = Options { thin: true, ..plain };
    let counted = Options { reasons: Why::Nothing, count_only: true, ..plain };
    [plain, thin, counted].map(|kind| region.slice(&criterion(position), kind).unwrap())
}

/// As a process that opens the region anew: its slices, and what it has learnt for others.
fn process(file: &File, known: &[u8], position: u64) -> ([Slice; 3], Option<Vec<u8>>) {
    let region = Region::open(file.try_clone().unwrap()).unwrap();
    region.share_learnt(known);
    let slices = slices(&region, position);
    (slices, region.learnt())
}

/// Whoever knows what others have learnt finds what they would, and learns no more of the same.
#[test]
fn what_was_learnt_is_shared() {
    let mut learnt_more = 0;
    for (name, source) in PROGRAMS {
        let run = stepped(source, &["-O0"]);
        let (first, fresh) = (region(&run, Units::Long), region(&run, Units::Long));
        let length = run.steps.len() as u64;
        let (file, quarter) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        first.share_learnt(&[]);
        // A quarter of it is decoded in the first process, and the rest in another one.
        first.remember_in(quarter.try_clone().unwrap()).unwrap();
        slices(&first, length / 4);
        assert!(first.finish_remembered().unwrap());
        let learnt = first.learnt().expect("there are loops");
        let second = Region::open(quarter).unwrap();
        second.share_learnt(&learnt);
        second.remember_in(file.try_clone().unwrap()).unwrap();
        assert_eq!(slices(&second, length), slices(&fresh, length), "{name}");
        assert!(second.finish_remembered().unwrap());
        let learnt = second.learnt().expect("it is of another file");
        // All was met twice by now, and so is known.
        let (again, more) = process(&file, &learnt, length);
        assert_eq!(again, slices(&fresh, length), "{name}");
        let learnt = more.unwrap_or(learnt);
        let (same, more) = process(&file, &learnt, length);
        assert_eq!((same, more), (slices(&fresh, length), None), "{name}");
        // What nobody knows is learnt again.
        let (same, more) = process(&file, &[], length);
        assert_eq!(same, slices(&fresh, length), "{name}");
        learnt_more += usize::from(more.is_some());
    }
    assert!(learnt_more > 0);
}

/// What is damaged, cut off or of another region is not used, and told anew.
#[test]
fn what_was_learnt_of_another_region_is_not_used() {
    let regions = [PROGRAMS[0], PROGRAMS[1]].map(|(_, source)| {
        let run = stepped(source, &["-O0"]);
        let file = tempfile::tempfile().unwrap();
        let region = region(&run, Units::Long);
        region.share_learnt(&[]);
        region.remember_in(file.try_clone().unwrap()).unwrap();
        let expected = slices(&region, run.steps.len() as u64);
        assert!(region.finish_remembered().unwrap());
        let learnt = region.learnt().expect("there are loops");
        (file, run.steps.len() as u64, expected, learnt)
    });
    let (file, length, expected, own) = &regions[0];
    let damaged = |at: usize| {
        let mut damaged = own.clone();
        damaged[at] ^= 0x10;
        damaged
    };
    let cut = own[..own.len() - 1].to_vec();
    let others = [regions[1].3.clone(), cut, damaged(3), damaged(9), damaged(own.len() / 2)];
    for known in others {
        let (slices, learnt) = process(file, &known, *length);
        assert_eq!(&slices, expected);
        assert!(learnt.is_some());
    }
}
