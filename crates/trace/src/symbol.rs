//! Values that are not there yet, as what has to be computed for them.

use crate::number::Number;
use std::cell::RefCell;

/// The sum of a value, if any, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its place among the values of a record.
    pub value: Option<u16>,
    pub plus: u64,
}

impl Term {
    #[inline]
    pub fn of(self, values: &[u64]) -> u64 {
        match self.value {
            Some(value) => values[usize::from(value)].wrapping_add(self.plus),
            None => self.plus,
        }
    }
}

/// How a value follows from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Sum(u16, u16),
    Difference(u16, u16),
    Negative(u16),
    Product(u16, u64),
    And(Term, Term),
    Or(Term, Term),
    Xor(Term, Term),
    ShiftedLeft(Term, Term),
    ShiftedRight(Term, Term),
    ShiftedRightSigned(Term, Term),
    SetBits(Term),
}

impl Operation {
    #[inline]
    pub fn compute(self, values: &[u64]) -> u64 {
        use Operation as O;
        let value = |index: u16| values[usize::from(index)];
        match self {
            O::Sum(one, other) => value(one).wrapping_add(value(other)),
            O::Difference(one, other) => value(one).wrapping_sub(value(other)),
            O::Negative(one) => value(one).wrapping_neg(),
            O::Product(one, factor) => value(one).wrapping_mul(factor),
            O::And(one, other) => one.of(values).and(other.of(values)),
            O::Or(one, other) => one.of(values).or(other.of(values)),
            O::Xor(one, other) => one.of(values).xor(other.of(values)),
            O::ShiftedLeft(one, by) => one.of(values).shifted_left(by.of(values)),
            O::ShiftedRight(one, by) => one.of(values).shifted_right(by.of(values)),
            O::ShiftedRightSigned(one, by) => one.of(values).shifted_right_signed(by.of(values)),
            O::SetBits(one) => one.of(values).set_bits(),
        }
    }
}

/// The operations so far; the first values are given.
pub struct Operations {
    given: u16,
    all: RefCell<Vec<Operation>>,
}

impl Operations {
    pub fn on(given: u16) -> Operations {
        Operations { given, all: RefCell::default() }
    }

    /// A value that is given.
    pub fn given(&self, value: u16) -> Symbol<'_> {
        assert!(value < self.given);
        Symbol { term: Term { value: Some(value), plus: 0 }, operations: Some(self) }
    }

    pub fn count(&self) -> usize {
        self.all.borrow().len()
    }

    pub fn into_all(self) -> Vec<Operation> {
        self.all.into_inner()
    }

    fn add(&self, operation: Operation, plus: u64) -> Symbol<'_> {
        let mut all = self.all.borrow_mut();
        let value = self.given + all.len() as u16;
        all.push(operation);
        Symbol { term: Term { value: Some(value), plus }, operations: Some(self) }
    }
}

/// A value that will be computed.
#[derive(Clone, Copy)]
pub struct Symbol<'a> {
    pub term: Term,
    /// A constant has none.
    operations: Option<&'a Operations>,
}

impl<'a> Symbol<'a> {
    fn more(self, plus: u64) -> Symbol<'a> {
        let term = Term { plus: self.term.plus.wrapping_add(plus), ..self.term };
        Symbol { term, ..self }
    }

    /// An operation that needs both numbers as they are.
    fn both(
        self,
        other: Symbol<'a>,
        known: fn(u64, u64) -> u64,
        operation: fn(Term, Term) -> Operation,
    ) -> Symbol<'a> {
        match self.operations.or(other.operations) {
            None => Symbol::constant(known(self.term.plus, other.term.plus)),
            Some(operations) => operations.add(operation(self.term, other.term), 0),
        }
    }
}

impl Number for Symbol<'_> {
    fn constant(value: u64) -> Self {
        Symbol { term: Term { value: None, plus: value }, operations: None }
    }

    fn plus(self, other: Self) -> Self {
        match (self.term.value, other.term.value, self.operations) {
            (Some(one), Some(two), Some(operations)) => operations
                .add(Operation::Sum(one, two), self.term.plus.wrapping_add(other.term.plus)),
            (None, _, _) => other.more(self.term.plus),
            _ => self.more(other.term.plus),
        }
    }

    fn minus(self, other: Self) -> Self {
        let plus = self.term.plus.wrapping_sub(other.term.plus);
        match (self.term.value, other.term.value, other.operations) {
            (Some(one), Some(two), Some(operations)) => {
                operations.add(Operation::Difference(one, two), plus)
            }
            (None, Some(two), Some(operations)) => operations.add(Operation::Negative(two), plus),
            _ => self.more(other.term.plus.wrapping_neg()),
        }
    }

    fn times(self, factor: u64) -> Self {
        let plus = self.term.plus.wrapping_mul(factor);
        match (self.term.value, self.operations) {
            (Some(_), _) if factor == 1 => self,
            (Some(value), Some(operations)) => {
                operations.add(Operation::Product(value, factor), plus)
            }
            _ => Symbol::constant(plus),
        }
    }

    fn not(self) -> Self {
        Symbol::constant(u64::MAX).minus(self)
    }

    fn and(self, other: Self) -> Self {
        self.both(other, u64::and, Operation::And)
    }

    fn or(self, other: Self) -> Self {
        self.both(other, u64::or, Operation::Or)
    }

    fn xor(self, other: Self) -> Self {
        self.both(other, u64::xor, Operation::Xor)
    }

    fn shifted_left(self, by: Self) -> Self {
        self.both(by, u64::shifted_left, Operation::ShiftedLeft)
    }

    fn shifted_right(self, by: Self) -> Self {
        self.both(by, u64::shifted_right, Operation::ShiftedRight)
    }

    fn shifted_right_signed(self, by: Self) -> Self {
        self.both(by, u64::shifted_right_signed, Operation::ShiftedRightSigned)
    }

    fn set_bits(self) -> Self {
        match self.operations {
            None => Symbol::constant(self.term.plus.set_bits()),
            Some(operations) => operations.add(Operation::SetBits(self.term), 0),
        }
    }
}
