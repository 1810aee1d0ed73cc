//! Chops are the same, whether units are gone over by ways that were gone before or instruction by
//! instruction.

use super::{PROGRAMS, Units, region, stepped};
use why_slice::positions::Positions;
use why_slice::reasons::Why;
use why_slice::region::{Criterion, Only, Options, Region};

/// Which entries of its table depend on something changes for a long time.
const TABLE: (&str, &str) = (
    "table",
    "unsigned table[64], result; int main(void) { unsigned x = 7; for (unsigned i = 0; i < 600; i++) { x = x * 1103515245 + 12345; table[x >> 16 & 63] += (unsigned short)x ^ table[i & 63]; result += table[x & 63] >> 8; } return 0; }",
);

/// What lies between, by whole instructions and by what of them depends on the source.
fn chop(region: &Region, source: &Criterion, to: &Criterion, options: Options) -> [Positions; 2] {
    let depending = region.forward(source, options).unwrap().positions;
    let between = |partly| {
        let only = Some(Only { told: &depending, goes_on: false, partly });
        region.slice(to, Options { only, ..options }).unwrap().positions
    };
    let whole = between(None);
    let noting = region.forward(source, Options { noting: Some(&whole), ..options }).unwrap();
    let partly = between(Some(&noting.partly));
    [whole, partly]
}

#[test]
fn chops_are_those_of_instruction_by_instruction() {
    let (mut some, mut differ) = (0, 0);
    for (name, source) in PROGRAMS.into_iter().chain([TABLE]) {
        for level in ["-O1", "-O2"] {
            let run = stepped(source, &[level]);
            let region = region(&run, Units::Long);
            let at = run.image.symbol("result");
            let to = Criterion {
                position: region.length,
                thread: 1,
                memory: std::iter::once(at..at + 4).collect(),
                ..Criterion::default()
            };
            for step in (0..run.steps.len()).step_by(1 + run.steps.len() / 9) {
                let cells = vec![0..2, 8..16, 16..17, 24..32, 256..260];
                let position = step as u64;
                let source = Criterion { position, thread: 1, cells, ..Criterion::default() };
                for (thin, data) in [(false, false), (false, true), (true, false)] {
                    let options = Options { thin, data, ..Options::default() };
                    let by_ways = chop(&region, &source, &to, options);
                    let one_by_one = Options { reasons: Why::Instances, ..options };
                    let one_by_one = chop(&region, &source, &to, one_by_one);
                    assert_eq!(by_ways, one_by_one, "{name} {level} {step} {thin} {data}");
                    let [whole, partly] = by_ways;
                    some += partly.count();
                    differ += u32::from(whole != partly);
                }
            }
        }
    }
    assert!(some > 1000 && differ > 10, "{some} {differ}");
}
