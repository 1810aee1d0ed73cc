//! An oracle that makes real tests: several at once, none of them twice, within a budget.

use crate::oracle::{Oracle, Outcome, Stopped, Verdict};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_128;

/// What came of one test, with what people are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub reason: Rc<str>,
}

/// Who makes tests.
pub trait Judge {
    /// How many can be under way.
    fn slots(&self) -> usize;
    fn start(&mut self, ticket: u64, candidate: &[u8]) -> Outcome<()>;
    /// Whether to go on at all.
    fn go_on(&self) -> Outcome<()> {
        Ok(())
    }
    /// Waits until one of the tests has ended.
    fn finished(&mut self) -> Outcome<(u64, Judgement)>;
    /// Nobody wants to know what comes of all that is under way.
    fn cancel_all(&mut self) -> Outcome<()>;
}

/// Who is told what happens.
pub trait Watcher {
    /// A test was judged, as the so manieth of all that a single job would make.
    fn tested(&mut self, test: &Tested) -> Outcome<()> {
        let _ = test;
        Ok(())
    }
    /// A test was made, whether or not anybody needs it: it need not be made again.
    fn known(&mut self, hash: u128, judgement: &Judgement) -> Outcome<()> {
        let _ = (hash, judgement);
        Ok(())
    }
    /// This is the smallest text so far that fails.
    fn smaller(&mut self, text: &[u8]) -> Outcome<()> {
        let _ = text;
        Ok(())
    }
}

pub struct Tested<'a> {
    pub number: u64,
    pub hash: u128,
    pub size: usize,
    pub judgement: &'a Judgement,
    pub phase: &'a str,
    /// It became what is made smaller next.
    pub accepted: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub tests: Option<u64>,
    pub until: Option<Instant>,
    /// A candidate fails only if it does so this many times.
    pub confirm: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that a single job would have made.
    pub tests: u64,
    /// Those that were really made here, with those that proved needless.
    pub made: u64,
    pub accepted: u64,
    /// Candidates that failed now and then.
    pub flaky: u64,
}

struct Known {
    judgement: Judgement,
    counted: bool,
}

pub struct Tester<J, W> {
    judge: J,
    pub watcher: W,
    limits: Limits,
    known: FxHashMap<u128, Known>,
    counts: Counts,
    phase: Rc<str>,
    best: Vec<u8>,
    next_ticket: u64,
}

/// A candidate whose turn has not come yet.
struct Waiting {
    candidate: Vec<u8>,
    hash: u128,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay(u64),
    Known,
    /// It would exceed the budget.
    Refused,
}

impl Waiting {
    fn is_under_way(&self) -> bool {
        matches!(self.state, State::UnderWay(_))
    }
}

/// Those that are the same text are one test.
fn under_way(waiting: &VecDeque<Waiting>) -> usize {
    waiting.iter().filter(|waiting| waiting.is_under_way()).count()
}

impl<J: Judge, W: Watcher> Tester<J, W> {
    pub fn new(judge: J, watcher: W, limits: Limits) -> Tester<J, W> {
        Tester {
            judge,
            watcher,
            limits,
            known: FxHashMap::default(),
            counts: Counts::default(),
            phase: "".into(),
            best: Vec::new(),
            next_ticket: 0,
        }
    }

    /// What earlier runs found out.
    pub fn remember(&mut self, hash: u128, judgement: Judgement) {
        self.known.insert(hash, Known { judgement, counted: false });
    }

    /// The first test: whether the original fails at all.
    pub fn check(&mut self, original: &[u8]) -> Outcome<Judgement> {
        self.verdict(original.to_vec())?;
        self.best = original.to_vec();
        Ok(self.known[&xxh3_128(original)].judgement.clone())
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The smallest text so far that fails.
    pub fn best(&self) -> &[u8] {
        &self.best
    }

    /// What is known of a candidate, if it was tested.
    pub fn judgement(&self, candidate: &[u8]) -> Option<&Judgement> {
        self.known.get(&xxh3_128(candidate)).map(|known| &known.judgement)
    }

    /// Whether one more test may be made when so many are not counted yet.
    fn within_limits(&self, uncounted: usize) -> bool {
        let tests = self.counts.tests + uncounted as u64;
        self.limits.tests.is_none_or(|limit| tests < limit)
            && self.limits.until.is_none_or(|until| Instant::now() < until)
    }

    fn admit(&mut self, candidate: Vec<u8>, waiting: &mut VecDeque<Waiting>) -> Outcome<()> {
        self.judge.go_on()?;
        let hash = xxh3_128(&candidate);
        let same = waiting.iter().find(|other| other.hash == hash);
        let uncounted = waiting.iter().filter(|other| !self.is_counted(other.hash)).count();
        let state = match same {
            Some(same) => same.state,
            None if self.is_counted(hash) => State::Known,
            None if !self.within_limits(uncounted) => State::Refused,
            None if self.known.contains_key(&hash) => State::Known,
            None => State::UnderWay(self.start(&candidate)?),
        };
        waiting.push_back(Waiting { candidate, hash, state });
        Ok(())
    }

    fn is_counted(&self, hash: u128) -> bool {
        self.known.get(&hash).is_some_and(|known| known.counted)
    }

    fn start(&mut self, candidate: &[u8]) -> Outcome<u64> {
        self.next_ticket += 1;
        self.judge.start(self.next_ticket, candidate)?;
        self.counts.made += 1;
        Ok(self.next_ticket)
    }

    /// Waits for any test that is under way; its judgement if it is not one of those waiting.
    fn wait(&mut self, waiting: &mut VecDeque<Waiting>) -> Outcome<Option<Judgement>> {
        let (ticket, judgement) = self.judge.finished()?;
        let mut hash = None;
        for waiting in waiting.iter_mut() {
            if waiting.state == State::UnderWay(ticket) {
                waiting.state = State::Known;
                hash = Some(waiting.hash);
            }
        }
        let Some(hash) = hash else { return Ok(Some(judgement)) };
        self.learn(hash, judgement)?;
        Ok(None)
    }

    fn learn(&mut self, hash: u128, judgement: Judgement) -> Outcome<()> {
        self.watcher.known(hash, &judgement)?;
        self.known.insert(hash, Known { judgement, counted: false });
        Ok(())
    }

    /// What fails has to do so again, if that was asked for.
    fn confirm(&mut self, front: &Waiting, waiting: &mut VecDeque<Waiting>) -> Outcome<()> {
        let known = &self.known[&front.hash];
        if known.counted || known.judgement.verdict != Verdict::Fails {
            return Ok(());
        }
        for _ in 1..self.limits.confirm {
            while under_way(waiting) >= self.judge.slots() {
                self.wait(waiting)?;
            }
            self.start(&front.candidate)?;
            let judgement = loop {
                if let Some(judgement) = self.wait(waiting)? {
                    break judgement;
                }
            };
            if judgement.verdict != Verdict::Fails {
                self.counts.flaky += 1;
                let reason = format!("fails now and then, else {}", judgement.reason).into();
                return self.learn(front.hash, Judgement { verdict: Verdict::Unresolved, reason });
            }
        }
        Ok(())
    }

    /// Whether whatever is behind this one will not be asked for.
    fn ends(&self, waiting: &Waiting) -> bool {
        match waiting.state {
            State::UnderWay(_) => false,
            State::Refused => true,
            State::Known => self.known[&waiting.hash].judgement.verdict == Verdict::Fails,
        }
    }

    /// It is this candidate's turn.
    fn judged(
        &mut self,
        front: Waiting,
        waiting: &mut VecDeque<Waiting>,
        adopt: bool,
    ) -> Outcome<Verdict> {
        if front.state == State::Refused {
            return Err(Stopped::Budget);
        }
        self.confirm(&front, waiting)?;
        let Waiting { candidate, hash, .. } = front;
        let known = self.known.get_mut(&hash).expect("it was judged");
        let first_time = !std::mem::replace(&mut known.counted, true);
        let judgement = known.judgement.clone();
        let accepted = adopt && judgement.verdict == Verdict::Fails;
        self.counts.accepted += u64::from(accepted);
        if first_time {
            self.counts.tests += 1;
            let (number, size) = (self.counts.tests, candidate.len());
            let phase = &self.phase;
            let test = Tested { number, hash, size, judgement: &judgement, phase, accepted };
            self.watcher.tested(&test)?;
        }
        if accepted
            && (candidate.len(), candidate.as_slice()) < (self.best.len(), self.best.as_slice())
        {
            self.best = candidate;
            self.watcher.smaller(&self.best)?;
        }
        Ok(judgement.verdict)
    }
}

impl<J: Judge, W: Watcher> Oracle for Tester<J, W> {
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>> {
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        let mut index = 0;
        let mut more = true;
        loop {
            // Nothing behind one that is known to fail will be asked for.
            let decided = waiting.iter().any(|waiting| self.ends(waiting));
            if more && !decided && under_way(&waiting) < self.judge.slots() {
                match candidates.next() {
                    Some(candidate) => self.admit(candidate, &mut waiting)?,
                    None => more = false,
                }
            } else if let Some(State::UnderWay(_)) = waiting.front().map(|front| front.state) {
                self.wait(&mut waiting)?;
            }
            while waiting.front().is_some_and(|front| !front.is_under_way()) {
                let front = waiting.pop_front().expect("just seen");
                if self.judged(front, &mut waiting, true)? == Verdict::Fails {
                    self.judge.cancel_all()?;
                    return Ok(Some(index));
                }
                index += 1;
            }
            if waiting.is_empty() && !more {
                return Ok(None);
            }
        }
    }

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict> {
        let mut waiting = VecDeque::new();
        self.admit(candidate, &mut waiting)?;
        if waiting[0].is_under_way() {
            self.wait(&mut waiting)?;
        }
        let front = waiting.pop_front().expect("there is one");
        self.judged(front, &mut waiting, false)
    }

    fn phase(&mut self, name: &str) {
        self.phase = name.into();
    }
}
