//! Which branch had it that an instruction was executed.
//!
//! A branch decides over what lies between it and the place where all ways from it meet again
//! (Xin and Zhang, "Efficient Online Detection of Dynamic Control Dependence", 2007). Those
//! that have been passed and whose ways have not met yet are open; the last of them decided
//! over what is executed now. A called function has branches of its own; where none is open,
//! the call decided.
//!
//! Where a function goes on elsewhere than behind its call, as with exceptions and `longjmp`, the
//! jump that led there decided. Where the ways from it meet is known of landing pads; elsewhere it
//! does until those of a branch around the call do, or the function ends.

use serde::{Deserialize, Serialize};

/// The number of an executed instruction.
pub type Position = u64;

/// The course of a thread: its calls, and the open branches of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    frames: Vec<Frame>,
    /// First whoever had it that anything was executed, then for each call that is not over that
    /// call, and behind it the branches of the called function that are open.
    open: Vec<Open>,
    /// The function that runs went on elsewhere than behind a call.
    has_landed: bool,
    /// It has just done so, and where the ways meet is not known yet.
    is_landing: bool,
    /// How many calls were not over when there were the fewest since the chunk began.
    #[serde(skip)]
    fewest: Fewest,
}

/// Courses do not differ by it.
#[derive(Clone, Copy, Debug, Default)]
struct Fewest(usize);

impl PartialEq for Fewest {
    fn eq(&self, _: &Fewest) -> bool {
        true
    }
}

impl Eq for Fewest {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Frame {
    /// The stack pointer before the call: when it is there again, the call is over.
    stack: u64,
    /// Where the caller goes on then; none if that is where it was interrupted.
    back: Option<u64>,
    /// Where the call is among what is open.
    open: usize,
    /// The caller went on elsewhere than behind a call.
    has_landed: bool,
}

/// Who decides over what is executed: a branch whose ways have not met yet, or a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    by: Decider,
    meet: Meet,
}

/// A position, or nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Decider(Position);

impl Decider {
    const NOBODY: Decider = Decider(Position::MAX);

    fn position(self) -> Option<Position> {
        (self != Decider::NOBODY).then_some(self.0)
    }
}

/// Where the ways from a branch meet: an address, or what is no address of a program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Meet(u64);

impl Meet {
    /// At the function's end.
    const AT_END: Meet = Meet(u64::MAX);
    /// Nowhere, as it is a call.
    const NEVER: Meet = Meet(u64::MAX - 1);
}

/// Nobody had it that a thread began.
const NOBODY: Open = Open { by: Decider::NOBODY, meet: Meet::NEVER };

impl Default for Control {
    fn default() -> Control {
        Control {
            frames: Vec::new(),
            open: vec![NOBODY],
            has_landed: false,
            is_landing: false,
            fewest: Fewest(0),
        }
    }
}

impl Control {
    /// What decided that the instruction at an address is executed now, if anything did.
    pub fn at(&mut self, address: u64) -> Option<Position> {
        self.meets(address);
        self.now()
    }

    /// The instruction at an address is executed now; whether the ways of a branch meet there.
    #[inline]
    pub fn meets(&mut self, address: u64) -> bool {
        let before = self.open.len();
        while self.last().meet == Meet(address) {
            self.open.pop();
        }
        if self.last().meet == Meet::AT_END || self.has_landed {
            self.meet_around(address);
        }
        self.open.len() < before
    }

    /// The ways of a branch may meet there while others within are open: theirs never will.
    fn meet_around(&mut self, address: u64) {
        let first = self.first();
        let own = self.open.get(first..).unwrap_or_default();
        if let Some(met) = own.iter().position(|open| open.meet == Meet(address)) {
            self.open.truncate(first + met);
        }
    }

    /// What decides over what is executed now, if the ways of no branch meet there.
    #[inline]
    pub fn now(&self) -> Option<Position> {
        self.last().by.position()
    }

    #[inline]
    fn last(&self) -> Open {
        self.open.last().copied().unwrap_or(NOBODY)
    }

    /// A branch is executed, whose ways meet there.
    #[inline]
    pub fn branch(&mut self, branch: Position, meet: Option<u64>) {
        let (by, meet) = (Decider(branch), meet.map_or(Meet::AT_END, Meet));
        // Who unwinds may end with an indirect jump.
        self.is_landing &= meet == Meet::AT_END;
        match self.open.last_mut() {
            // What the earlier one decides over ends there, too, and the later one was part
            // of it: loops would have one for each turn.
            Some(open) if open.meet == meet => open.by = by,
            _ => self.open.push(Open { by, meet }),
        }
    }

    /// A function is called, by an instruction or, if there is none, by a signal.
    #[inline]
    pub fn call(&mut self, call: Option<Position>, stack: u64, back: Option<u64>) {
        self.is_landing = false;
        let has_landed = std::mem::take(&mut self.has_landed);
        self.frames.push(Frame { stack, back, open: self.open.len(), has_landed });
        self.open.push(Open { by: call.map_or(Decider::NOBODY, Decider), meet: Meet::NEVER });
    }

    /// Whether calls are over if the stack pointer is there.
    #[inline]
    pub fn is_over(&self, stack: u64) -> bool {
        self.frames.last().is_some_and(|frame| frame.stack <= stack)
    }

    /// The stack pointer is there now, and what is executed next is there, behind a return or
    /// a jump out of many calls, which was made by the last instruction.
    pub fn unwound(&mut self, stack: u64, address: u64, last: Position) {
        let mut back = None;
        while let Some(frame) = self.frames.last().filter(|frame| frame.stack <= stack) {
            back = frame.back;
            self.has_landed = frame.has_landed;
            self.open.truncate(frame.open);
            self.frames.pop();
            self.fewest.0 = self.fewest.0.min(self.frames.len());
        }
        if back.is_some_and(|back| back != address) {
            self.open_landing(last);
        }
    }

    /// A jump has led to elsewhere than behind a call. It is kept apart from branches that are open
    /// to the function's end: their ways may meet later than its own.
    fn open_landing(&mut self, jump: Position) {
        let never = |open: &Open| open.meet == Meet::AT_END;
        if let Some([.., one, other]) = self.open.get(self.first()..)
            && never(one)
            && never(other)
        {
            // Nobody will see the earlier one again.
            self.open.remove(self.open.len() - 2);
        }
        self.open.push(Open { by: Decider(jump), meet: Meet::AT_END });
        (self.has_landed, self.is_landing) = (true, true);
    }

    /// What is executed next is a landing pad. The ways from it and from behind the call meet
    /// there.
    pub fn lands(&mut self, meet: u64) {
        // Who unwinds has left the call for some instructions before it comes here.
        if std::mem::take(&mut self.is_landing)
            && let Some(open) = self.open.last_mut().filter(|open| open.meet == Meet::AT_END)
        {
            open.meet = Meet(meet);
        }
    }

    /// A chunk begins.
    pub fn begin_chunk(&mut self) {
        self.fewest = Fewest(self.frames.len());
    }

    /// This is where a chunk led to that began so. Where it leads to if it began otherwise; none
    /// if that has to be followed.
    pub fn led_to_by(&self, began: &Control, otherwise: &Control) -> Option<Control> {
        let is_same = began.frames == otherwise.frames
            && began.open.len() == otherwise.open.len()
            && (began.has_landed, began.is_landing) == (otherwise.has_landed, otherwise.is_landing);
        let differs = |(one, other): (&Open, &Open)| one != other;
        let last = began.open.iter().zip(&otherwise.open).rposition(differs);
        let differing = last.map_or(0, |last| last + 1);
        // Nobody looks at the branches of callers before their calls are over.
        let callers = self.frames[..self.fewest.0].last().map_or(0, |frame| frame.open);
        if !is_same || differing > callers {
            return None;
        }
        let mut led = self.clone();
        led.open[..differing].copy_from_slice(&otherwise.open[..differing]);
        Some(led)
    }

    /// How many calls are not over.
    pub fn calls(&self) -> usize {
        self.frames.len()
    }

    /// Where the open branches of the function that runs begin.
    fn first(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.open) + 1
    }
}
