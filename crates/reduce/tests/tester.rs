//! The oracle that makes real tests: the same answer and the same sequence of tests with any
//! number of them at once, after an interruption, and within its budget.

mod support;

use support::{Brackets, Chance, Told, Unordered, fails, is_balanced};
use why_reduce::auto::auto;
use why_reduce::tester::{Limits, Tester};
use why_reduce::{Stopped, Verdict};

/// Not monotone: what it says of a text depends on all of it.
fn odd(text: &[u8]) -> bool {
    let sum = text.iter().fold(7_u32, |sum, &byte| sum.wrapping_mul(33) ^ u32::from(byte));
    is_balanced(text) && text.contains(&b'a') && (sum % 5 != 0)
}

type Judge = Unordered<fn(&[u8]) -> Verdict>;

fn tester(slots: usize, limits: Limits) -> (Tester<Judge, Told>, Told) {
    let notes = Told::default();
    let judge: Judge = Unordered::new(|text| fails(odd(text)), slots);
    (Tester::new(judge, notes.clone(), limits), notes)
}

fn texts() -> impl Iterator<Item = Vec<u8>> {
    (0..60).map(|seed| Chance(seed).brackets(10 + seed as usize * 3)).filter(|text| odd(text))
}

#[test]
fn several_at_once_do_what_one_does() {
    for text in texts() {
        let run = |slots| {
            let (mut tester, notes) = tester(slots, Limits::default());
            tester.check(&text).unwrap();
            let left = auto(&text, &Brackets, &mut tester).unwrap();
            assert_eq!(left, tester.best());
            (left, std::mem::take(&mut notes.0.borrow_mut().tests), tester.counts().tests)
        };
        let one = run(1);
        for slots in [2, 3, 8, 64] {
            assert_eq!(run(slots), one, "{slots} slots");
        }
    }
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    for text in texts().take(12) {
        let (mut whole, whole_notes) = tester(1, Limits::default());
        whole.check(&text).unwrap();
        let expected = auto(&text, &Brackets, &mut whole).unwrap();
        for budget in [1, 2, 7, 20] {
            let limits = Limits { tests: Some(budget), ..Limits::default() };
            let (mut first, notes) = tester(3, limits);
            first.check(&text).unwrap();
            let ended = auto(&text, &Brackets, &mut first);
            if whole.counts().tests > budget {
                assert_eq!(ended, Err(Stopped::Budget));
                assert_eq!(first.counts().tests, budget);
            }
            assert!(odd(first.best()));
            let (mut second, second_notes) = tester(1, Limits::default());
            for (hash, judgement) in notes.0.borrow().known.iter() {
                second.remember(*hash, judgement.clone());
            }
            second.check(&text).unwrap();
            assert_eq!(auto(&text, &Brackets, &mut second).unwrap(), expected);
            assert_eq!(second_notes.0.borrow().tests, whole_notes.0.borrow().tests);
            assert!(second.counts().made + budget <= whole.counts().tests.max(budget));
        }
    }
}

#[test]
fn no_text_is_tested_twice() {
    for text in texts() {
        let (mut tester, notes) = tester(1, Limits::default());
        tester.check(&text).unwrap();
        auto(&text, &Brackets, &mut tester).unwrap();
        let mut hashes: Vec<u128> = notes.0.borrow().tests.iter().map(|test| test.1).collect();
        let number = hashes.len();
        assert_eq!(number as u64, tester.counts().made);
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), number);
    }
}

#[test]
fn what_fails_now_and_then_is_not_taken() {
    // Without its b, a text fails the first time only.
    let mut asked: std::collections::HashSet<Vec<u8>> = Default::default();
    let judge = Unordered::new(
        move |text: &[u8]| {
            let first = asked.insert(text.to_vec());
            fails(text.contains(&b'a') && (text.contains(&b'b') || first))
        },
        2,
    );
    let limits = Limits { confirm: 2, ..Limits::default() };
    let mut tester = Tester::new(judge, Told::default(), limits);
    tester.check(b"xaxbx").unwrap();
    assert_eq!(auto(b"xaxbx", &Brackets, &mut tester).unwrap(), b"ab");
    assert!(tester.counts().flaky > 0);
}
