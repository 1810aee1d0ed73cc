//! List algorithms, against brute force: what they leave fails, and no single element of it
//! can be left out; dd's pair passes and fails, and nothing lies between that is nearer.

mod support;

use std::collections::BTreeSet;
use support::{Chance, fails};
use why_reduce::lists::{Belief, List, cdd, dd, ddmin, pass_alike, probdd, sweep, sweep_in};
use why_reduce::oracle::Function;
use why_reduce::{Oracle, Outcome, Verdict};

fn render(kept: &[bool]) -> Vec<u8> {
    (0..kept.len()).filter(|&index| kept[index]).map(|index| index as u8).collect()
}

type Minimise = fn(&List, &mut dyn Oracle) -> Outcome<Vec<bool>>;

fn probdd_and_sweep(list: &List, oracle: &mut dyn Oracle) -> Outcome<Vec<bool>> {
    let mut kept = probdd(
        list,
        Belief { needed: 2.0, share: 0.0, certain: 0.98, whole: 0, patience: usize::MAX },
        oracle,
    )?;
    sweep(list, &mut kept, oracle)?;
    Ok(kept)
}

const ALGORITHMS: [(&str, Minimise); 3] =
    [("ddmin", ddmin), ("cdd", cdd), ("probdd", probdd_and_sweep)];

type Test = Box<dyn Fn(&[u8]) -> bool>;

/// Tests of all sorts over the elements that are there.
fn tests(chance: &mut Chance, length: usize) -> Vec<Test> {
    let mut some = || -> Vec<u8> {
        let number = chance.below(4);
        (0..number).map(|_| chance.below(length.max(1)) as u8).collect()
    };
    let (a, b, c) = (some(), some(), some());
    let all = |wanted: &[u8], there: &[u8]| wanted.iter().all(|one| there.contains(one));
    let salt = c.len() as u64 + 1;
    vec![
        Box::new({
            let a = a.clone();
            move |there| all(&a, there)
        }),
        // One of two sets will do.
        Box::new({
            let (a, b) = (a.clone(), b.clone());
            move |there| all(&a, there) || all(&b, there)
        }),
        // What must not be there without another.
        Box::new(move |there| {
            all(&a, there) && (c.is_empty() || !all(&c, there) || all(&b, there))
        }),
        // No reason at all, but everything fails.
        Box::new(move |there| {
            let sum = there.iter().fold(salt, |sum, &one| sum.wrapping_mul(31) + u64::from(one));
            there.len() == length || sum % 3 == 0
        }),
    ]
}

#[test]
fn what_is_left_is_1_minimal() {
    let mut chance = Chance(1);
    for length in (0..40).chain([100, 200]) {
        for test in tests(&mut chance, length) {
            let all: Vec<u8> = (0..length as u8).collect();
            if !test(&all) {
                continue;
            }
            for (name, minimise) in ALGORITHMS {
                let weights = (0..length).map(|index| 1 + index % 7).collect();
                let list = List { weights, render: &render };
                let mut oracle = Function::new(|text: &[u8]| fails(test(text)));
                let kept = minimise(&list, &mut oracle).unwrap();
                assert!(test(&render(&kept)), "{name} of {length}: what is left passes");
                for index in (0..length).filter(|&index| kept[index]) {
                    let mut without = kept.clone();
                    without[index] = false;
                    assert!(!test(&render(&without)), "{name} of {length}: {index} is needless");
                }
            }
        }
    }
}

#[test]
fn one_of_many_is_found_in_few_tests() {
    for length in [100_usize, 1000, 100_000] {
        let needed = length * 2 / 3;
        let weights = vec![1; length];
        let render = |kept: &[bool]| kept.iter().map(|&kept| u8::from(kept)).collect::<Vec<u8>>();
        let list = List { weights, render: &render };
        let bits = length.ilog2() as u64;
        for (name, minimise) in ALGORITHMS {
            let mut oracle = Function::new(|text: &[u8]| fails(text[needed] == 1));
            let kept = minimise(&list, &mut oracle).unwrap();
            assert_eq!(kept.iter().filter(|kept| **kept).count(), 1, "{name}");
            assert!(oracle.tests <= 4 * bits + 8, "{name} of {length}: {} tests", oracle.tests);
        }
    }
}

#[test]
fn dd_finds_a_pair_that_differs_least() {
    let mut chance = Chance(2);
    for length in 1..30 {
        for test in tests(&mut chance, length) {
            let all: Vec<u8> = (0..length as u8).collect();
            // What has a length that seven divides is neither.
            let judge = |text: &[u8]| match text.len() {
                0 => Verdict::Passes,
                some if some == length => Verdict::Fails,
                some if some % 7 == 0 => Verdict::Unresolved,
                _ => fails(test(text)),
            };
            if !test(&all) {
                continue;
            }
            let mut oracle = Function::new(judge);
            let pair = dd(length, &render, &mut oracle).unwrap();
            assert_eq!(judge(&render(&pair.passing)), Verdict::Passes);
            assert_eq!(judge(&render(&pair.failing)), Verdict::Fails);
            let is_part = pair.passing.iter().zip(&pair.failing).all(|(p, f)| !p || *f);
            assert!(is_part);
            // 1-minimal: neither may come nearer to the other by one element.
            let between: Vec<usize> =
                (0..length).filter(|&i| pair.failing[i] && !pair.passing[i]).collect();
            assert!(!between.is_empty());
            for &index in between.iter().filter(|_| between.len() > 1) {
                let (mut more, mut less) = (pair.passing.clone(), pair.failing.clone());
                more[index] = true;
                less[index] = false;
                assert_eq!(judge(&render(&more)), Verdict::Unresolved, "length {length}");
                assert_eq!(judge(&render(&less)), Verdict::Unresolved, "length {length}");
            }
        }
    }
}

#[test]
fn a_long_list_of_which_all_is_needed_comes_to_an_end() {
    let length = 3000;
    let render = |kept: &[bool]| kept.iter().map(|&kept| u8::from(kept)).collect::<Vec<u8>>();
    let list = List { weights: (1..=length).collect(), render: &render };
    for patience in [7, usize::MAX] {
        let belief = Belief { needed: 1.0, share: 0.0, certain: 0.98, whole: 0, patience };
        let mut oracle = Function::new(|text: &[u8]| fails(!text.contains(&0)));
        let kept = probdd(&list, belief, &mut oracle).unwrap();
        assert!(kept.iter().all(|kept| *kept));
        assert!(patience > 7 || oracle.tests == 7);
    }
}

#[test]
fn neighbours_of_what_went_go_next() {
    // All but a stretch is needed, and that can only be left out from its end on.
    let (length, stretch) = (200, 90..130);
    let mut oracle = Function::new(|text: &[u8]| {
        let kept = |&index: &usize| text.contains(&(index as u8));
        let others = (0..length).filter(|index| !stretch.contains(index));
        fails(
            others.clone().all(|index| kept(&index))
                && !stretch.clone().skip_while(kept).any(|index| kept(&index)),
        )
    });
    let list = List { weights: vec![1; length], render: &render };
    let mut kept = vec![true; length];
    sweep_in((0..length).collect(), &list, &mut kept, &mut oracle).unwrap();
    assert_eq!(kept.iter().filter(|kept| **kept).count(), length - stretch.len());
    // Once through the list to find the end, then the stretch with what is beside it, and
    // through all that is left: not through the list for each of the stretch.
    assert!(oracle.tests <= 2 * (length + stretch.len()) as u64, "{} tests", oracle.tests);
}

#[test]
fn of_those_that_are_alike_one_speaks_for_the_others() {
    let mut chance = Chance(7);
    for length in 0..40 {
        for test in tests(&mut chance, length) {
            let keys: Vec<usize> = (0..length).map(|_| chance.below(6)).collect();
            let list = List { weights: vec![1; length], render: &render };
            let mut oracle = Function::new(|text: &[u8]| fails(test(text)));
            let mut kept = vec![true; length];
            pass_alike(&list, &keys, &mut kept, &mut oracle).unwrap();
            // The same one by one.
            let mut expected = vec![true; length];
            let (mut needed, mut tests) = (BTreeSet::new(), 0);
            for index in (0..length).rev() {
                if needed.contains(&keys[index]) {
                    continue;
                }
                expected[index] = false;
                tests += 1;
                if !test(&render(&expected)) {
                    expected[index] = true;
                    needed.insert(keys[index]);
                }
            }
            assert_eq!((kept, oracle.tests), (expected, tests));
        }
    }
}
