//! Regions whose chunks are kept as they were decoded.

use super::{PROGRAMS, Units, region, stepped::stepped};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use why_slice::decisions::Decision;
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Options, Region};

/// The same region, after slices at these positions, with what was decoded for them.
fn remembered(region: &Region, positions: &[u64]) -> Region {
    let file = tempfile::tempfile().unwrap();
    assert!(region.can_remember(), "{positions:?} of {}", region.length);
    region.remember_in(file.try_clone().unwrap()).unwrap();
    for position in positions {
        let criterion = Criterion { position: *position, thread: 1, ..Criterion::default() };
        region.slice(&criterion, Options::default()).unwrap();
    }
    assert!(region.finish_remembered().unwrap());
    Region::open(file).unwrap()
}

/// Chunks that were decoded and kept so tell what their records do, whether all are or only some.
#[test]
fn what_was_decoded_is_remembered() {
    let mut decided = 0;
    for (name, source) in PROGRAMS {
        let run = stepped(source, &["-O0"]);
        let fresh = region(&run, Units::Long);
        let (length, middle) = (run.steps.len() as u64, run.steps.len() as u64 / 2);
        let some = remembered(&fresh, &[length / 4]);
        let all = remembered(&some, &[middle, length]);
        assert!(!all.can_remember(), "{name}");
        let at = run.image.symbol("result");
        let criterion = |position: u64| Criterion {
            position,
            thread: 1,
            cells: vec![0..8, 128..136],
            memory: std::iter::once(at..at + 4).collect(),
            ..Criterion::default()
        };
        let plain = Options { reasons: Why::Code, ..Options::default() };
        for options in
            [plain, Options { thin: true, ..plain }, Options { reasons: Why::Instances, ..plain }]
        {
            let backward = |region: &Region| region.slice(&criterion(length), options).unwrap();
            let forward = |region: &Region| region.forward(&criterion(middle), options).unwrap();
            assert!(backward(&fresh).count > 0, "{name}");
            for region in [&some, &all] {
                assert_eq!(backward(region), backward(&fresh), "{name}");
                assert_eq!(forward(region), forward(&fresh), "{name}");
            }
        }
        let decisions = |region: &Region| {
            let (mut all, address) = (Vec::new(), run.steps[middle as usize].insn.ip());
            let each = |decision: &Decision| {
                all.push((decision.position, decision.to));
                ControlFlow::Continue(())
            };
            region.each_decision((middle, 1, address), each).unwrap();
            all
        };
        decided += decisions(&fresh).len();
        assert_eq!(decisions(&some), decisions(&fresh), "{name}");
        assert_eq!(decisions(&all), decisions(&fresh), "{name}");
    }
    assert!(decided > 0);
}

/// What is damaged is said to be, and nothing is made of it.
#[test]
fn damage_of_what_is_remembered_is_seen() {
    let (_, source) = PROGRAMS[0];
    let run = stepped(source, &["-O0"]);
    let file = tempfile::tempfile().unwrap();
    let whole = region(&run, Units::Long);
    whole.remember_in(file.try_clone().unwrap()).unwrap();
    let length = run.steps.len() as u64;
    let cells = std::iter::once(0..8).collect();
    let criterion = Criterion { position: length, thread: 1, cells, ..Criterion::default() };
    whole.slice(&criterion, Options::default()).unwrap();
    assert!(whole.finish_remembered().unwrap());
    // What was decoded comes first in the file.
    let damaged = [0, 9, 40, 77].map(|at| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
        let slice =
            Region::open(file.try_clone().unwrap()).unwrap().slice(&criterion, Options::default());
        file.write_all_at(&byte, at).unwrap();
        slice.is_err()
    });
    assert_eq!(damaged, [true; 4]);
    let region = Region::open(file).unwrap();
    assert_eq!(
        region.slice(&criterion, Options::default()).unwrap(),
        whole.slice(&criterion, Options::default()).unwrap()
    );
}
