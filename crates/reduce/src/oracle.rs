//! Who is asked whether a candidate still fails.

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The failure is still there.
    Fails,
    /// The program does what it should.
    Passes,
    /// Neither: another failure, no valid input, no end.
    Unresolved,
}

/// Why no further test is made. What has been found until then stays found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    #[error("the budget was used up")]
    Budget,
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Broken(String),
}

pub type Outcome<T> = Result<T, Stopped>;

pub trait Oracle {
    /// The first of the candidates, in this order, that still fails. The sequence says what
    /// is to be tried as long as nothing before it fails, so several can be tried at once:
    /// the answer is the same.
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>>;

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict>;

    /// What is being done, for those who watch.
    fn phase(&mut self, name: &str) {
        let _ = name;
    }

    fn fails(&mut self, candidate: Vec<u8>) -> Outcome<bool> {
        Ok(self.first(&mut std::iter::once(candidate))?.is_some())
    }
}

/// A test that is a function, as properties of algorithms are tested with.
pub struct Function<F> {
    test: F,
    /// How often it was asked.
    pub tests: u64,
}

impl<F: FnMut(&[u8]) -> Verdict> Function<F> {
    pub fn new(test: F) -> Function<F> {
        Function { test, tests: 0 }
    }
}

impl<F: FnMut(&[u8]) -> Verdict> Oracle for Function<F> {
    fn first(&mut self, candidates: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<Option<usize>> {
        for (index, candidate) in candidates.enumerate() {
            if self.verdict(candidate)? == Verdict::Fails {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn verdict(&mut self, candidate: Vec<u8>) -> Outcome<Verdict> {
        self.tests += 1;
        Ok((self.test)(&candidate))
    }
}
