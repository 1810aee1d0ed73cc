//! Expressions that name a value: `name`, `a.b`, `p->f`, `a[3]`, `*p`, `&x`.

use crate::assembled::Byte;
use crate::evaluate::{Place, Unknown};
use crate::types::Shape;
use crate::value::Type;
use crate::{Frame, Memory, Modules, Statement, Value};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    Name(String),
    Number(i64),
    Member(Box<Expression>, String),
    Element(Box<Expression>, Box<Expression>),
    PointedTo(Box<Expression>),
    AddressOf(Box<Expression>),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExpression(pub String);

type Result<T> = std::result::Result<T, NoExpression>;

fn no<T>(text: impl Into<String>) -> Result<T> {
    Err(NoExpression(text.into()))
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Name(name) => f.write_str(name),
            Expression::Number(number) => number.fmt(f),
            Expression::Member(of, name) => match of.as_ref() {
                Expression::PointedTo(pointer) => write!(f, "{}->{name}", Inner(pointer)),
                of => write!(f, "{}.{name}", Inner(of)),
            },
            Expression::Element(of, index) => write!(f, "{}[{index}]", Inner(of)),
            Expression::PointedTo(of) => write!(f, "*{of}"),
            Expression::AddressOf(of) => write!(f, "&{of}"),
        }
    }
}

impl Expression {
    /// The variables that it is made of.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Expression::Name(name) => vec![name],
            Expression::Number(_) => Vec::new(),
            Expression::Element(of, index) => [of.names(), index.names()].concat(),
            Expression::Member(of, _) | Expression::PointedTo(of) | Expression::AddressOf(of) => {
                of.names()
            }
        }
    }
}

/// What something follows on: a prefix would be taken for the whole's.
struct Inner<'a>(&'a Expression);

impl fmt::Display for Inner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::PointedTo(_) | Expression::AddressOf(_) => write!(f, "({})", self.0),
            other => other.fmt(f),
        }
    }
}

impl std::str::FromStr for Expression {
    type Err = NoExpression;

    fn from_str(text: &str) -> Result<Expression> {
        let mut parser = Parser { text, rest: text, depth: 0 };
        let expression = parser.prefixed()?;
        match parser.rest.trim_start() {
            "" => Ok(expression),
            rest => no(format!("{text}: {rest:?} is not understood")),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn prefixed(&mut self) -> Result<Expression> {
        /// Nobody writes deeper ones.
        const MOST_DEPTH: usize = 64;
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return no("the expression is too long");
        }
        let expression = if self.eat("*") {
            Expression::PointedTo(Box::new(self.prefixed()?))
        } else if self.eat("&") {
            Expression::AddressOf(Box::new(self.prefixed()?))
        } else {
            self.suffixed()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn suffixed(&mut self) -> Result<Expression> {
        let mut expression = if self.eat("(") {
            let inner = self.prefixed()?;
            self.expect(")")?;
            inner
        } else {
            self.name_or_number()?
        };
        loop {
            expression = if self.eat("->") {
                let of = Expression::PointedTo(Box::new(expression));
                Expression::Member(Box::new(of), self.word()?)
            } else if self.eat(".") {
                Expression::Member(Box::new(expression), self.word()?)
            } else if self.eat("[") {
                let index = self.prefixed()?;
                self.expect("]")?;
                Expression::Element(Box::new(expression), Box::new(index))
            } else {
                return Ok(expression);
            };
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        match self.eat(token) {
            true => Ok(()),
            false => no(format!("{}: {token} is missing", self.text)),
        }
    }

    fn name_or_number(&mut self) -> Result<Expression> {
        if self.eat("-") {
            let number = self.word()?.parse().map(|number: i64| Expression::Number(-number));
            return number.or_else(|_| no(format!("{}: behind - stands no number", self.text)));
        }
        if self.eat("::") {
            let first = self.word()?;
            return Ok(Expression::Name(self.path_from(format!("::{first}"))?));
        }
        let word = self.word()?;
        let digits = word.strip_prefix("0x").map(|digits| i64::from_str_radix(digits, 16));
        match digits.unwrap_or_else(|| word.parse()) {
            Ok(number) => Ok(Expression::Number(number)),
            Err(_) => Ok(Expression::Name(self.path_from(word)?)),
        }
    }

    fn path_from(&mut self, first: String) -> Result<String> {
        let mut name = first;
        while self.eat("::") {
            name = format!("{name}::{}", self.word()?);
        }
        Ok(name)
    }

    fn word(&mut self) -> Result<String> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if word.is_empty() {
            return no(format!("{}: a name is missing", self.text));
        }
        self.rest = rest;
        Ok(word.to_owned())
    }
}

/// Whose names are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewpoint {
    /// An address of the frame's function, which need not be where the frame is now.
    pub pc: u64,
    /// Of the functions there that were inlined into each other, 0 being the innermost, those
    /// that are asked one after the other.
    pub functions: Vec<usize>,
    /// Of several rows in the table of lines for where the frame is now, which one is about to
    /// begin; none if all have begun, and the instruction is next.
    pub view: Option<u64>,
    /// Of several statements that begin at the address, the one whose function is meant: that
    /// has the number 0 then.
    pub statement: Option<Statement>,
}

impl Viewpoint {
    /// One of the functions that a frame is in now.
    pub fn of(frame: &Frame, function: usize) -> Viewpoint {
        Viewpoint { pc: frame.lookup(), functions: vec![function], view: None, statement: None }
    }
}

impl Modules {
    /// The value that an expression has in a frame.
    pub fn evaluate(
        &self,
        memory: &dyn Memory,
        frame: &Frame,
        viewpoint: &Viewpoint,
        expression: &Expression,
    ) -> Result<Value> {
        let value = Evaluator { modules: self, memory, frame, viewpoint }.value(expression)?;
        match value.lacks_length() {
            true => no(format!(
                "{expression} is an array of unknown length; ask for its elements, such as \
                 {}[0]",
                Inner(expression)
            )),
            false => Ok(value),
        }
    }
}

struct Evaluator<'a> {
    modules: &'a Modules,
    memory: &'a dyn Memory,
    frame: &'a Frame,
    viewpoint: &'a Viewpoint,
}

impl Evaluator<'_> {
    /// What a reference leads to is meant wherever it is named.
    fn value(&self, expression: &Expression) -> Result<Value> {
        let value = self.value_itself(expression)?.referred(self.memory);
        let value = value.map_err(|unknown| NoExpression(format!("{expression} is {unknown}")))?;
        Ok(self.modules.with_length(self.memory, self.frame, value))
    }

    fn value_itself(&self, expression: &Expression) -> Result<Value> {
        let unknown = |unknown: Unknown| NoExpression(format!("{expression} is {unknown}"));
        match expression {
            Expression::Name(name) => self.named(name),
            Expression::Number(number) => no(format!("{number} is a number, and no variable")),
            Expression::Member(of, name) => {
                let of_value = self.record(self.value(of)?)?;
                of_value.member_named(self.memory, name).ok_or_else(|| {
                    let type_ = of_value.type_name();
                    NoExpression(format!("{of} has no member {name}; its type is {type_}"))
                })
            }
            Expression::Element(of, index) => self.element(of, index),
            Expression::PointedTo(of) => {
                let value = self.value(of)?;
                if let Shape::Array { .. } = value.shape() {
                    return self.element(of, &Expression::Number(0));
                }
                match value.pointed_to(self.memory).map_err(unknown)? {
                    Some(pointed_to) => Ok(pointed_to),
                    None => no(format!("{of} is no pointer; its type is {}", value.type_name())),
                }
            }
            Expression::AddressOf(of) => {
                let value = self.value(of)?;
                match (&value.type_, &value.place, value.bits) {
                    (Type::Told(type_), Place::Memory(at), None) => Ok(Value {
                        module: value.module.clone(),
                        type_: Type::PointerTo(type_.clone()),
                        place: Place::Bytes(at.to_le_bytes().map(Byte::constant).to_vec()),
                        bits: None,
                    }),
                    _ => no(format!("{of} is not in memory, so it has no address")),
                }
            }
        }
    }

    /// The innermost variable of that name.
    fn named(&self, name: &str) -> Result<Value> {
        let Viewpoint { pc, functions, .. } = self.viewpoint;
        let seen = |function: &usize| {
            self.modules.variables_seen_from(self.viewpoint, self.memory, self.frame, *function)
        };
        let innermost = |function: &usize| {
            let found = seen(function).into_iter().rev().find(|variable| variable.name == name);
            found.map(|variable| (variable, *function))
        };
        if let Some((variable, function)) = functions.iter().find_map(innermost) {
            return variable.value.map_err(|unknown| {
                let hint = self.modules.elsewhere(self.viewpoint, function, name, unknown);
                NoExpression(format!("{name} is {unknown}{hint}"))
            });
        }
        if let Some(variable) = self.modules.variable_around(self.memory, self.frame, name) {
            return variable.value.map_err(|u| NoExpression(format!("{name} is {u}")));
        }
        let asker = self.modules.asker(self.viewpoint);
        match self.modules.global(self.memory, *pc, &asker, name) {
            Some(value) => value.map_err(|unknown| NoExpression(format!("{name} is {unknown}"))),
            None => {
                if let Some((at, size)) = self.modules.object(name) {
                    return no(format!(
                        "{name} is {}; its {size} bytes can be asked for: {at:#x}+{size}",
                        Unknown::NoType
                    ));
                }
                let names = functions.iter().flat_map(seen).map(|variable| variable.name);
                let hint = self.modules.beside(self.frame, self.viewpoint, name, names.collect());
                no(format!("there is no variable {name} here{hint}"))
            }
        }
    }

    /// What a pointer to a record leads to.
    fn record(&self, value: Value) -> Result<Value> {
        let Shape::Pointer { .. } = value.shape() else {
            return Ok(value);
        };
        match value.pointed_to(self.memory) {
            Ok(Some(pointed_to)) => Ok(pointed_to),
            Ok(None) => Ok(value),
            Err(unknown) => no(unknown.to_string()),
        }
    }

    fn element(&self, of: &Expression, index: &Expression) -> Result<Value> {
        let number = match index {
            Expression::Number(number) => *number,
            other => {
                let number = self.value(other)?.whole_number(self.memory);
                let number = number.map_err(|unknown| match unknown {
                    Unknown::NoType => NoExpression(format!("{other} is no whole number")),
                    unknown => NoExpression(format!("{other} is {unknown}")),
                });
                number? as i64
            }
        };
        let value = self.value(of)?;
        let no_size = || NoExpression(format!("the elements of {of} are of unknown size"));
        match value.shape() {
            Shape::Array { element, counts } if counts.len() == 1 => {
                // Of an array whose length is not told, nobody knows where it ends.
                let told = counts[0].filter(|count| *count != 0);
                if number < 0 || told.is_some_and(|count| number as u64 >= count) {
                    let count = told.unwrap_or(0);
                    return no(format!("{of} has {count} elements, and none {number}"));
                }
                let size = value.units().size(&element).ok_or_else(no_size)?;
                Ok(value.part(element, size.saturating_mul(number as u64), None))
            }
            Shape::Array { .. } => {
                no(format!("{of} has several dimensions, which is not supported"))
            }
            Shape::Pointer { to: Some(to), .. } => {
                let at = value.integer(self.memory, 8, false);
                let at = at.map_err(|unknown| NoExpression(format!("{of} is {unknown}")))? as u64;
                let first = Value::told(&value.module, to.clone(), Place::Memory(at));
                let first = self.modules.with_length(self.memory, self.frame, first);
                let size = first.size().ok_or_else(no_size)? as i64;
                let at = at.wrapping_add_signed(size.wrapping_mul(number));
                Ok(Value { place: Place::Memory(at), ..first })
            }
            _ => no(format!("{of} has no elements; its type is {}", value.type_name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        for (text, told) in [
            ("x", "x"),
            ("a . b", "a.b"),
            ("(*p).f", "p->f"),
            ("a[3].b", "a[3].b"),
            ("p[-1]", "p[-1]"),
            ("*p", "*p"),
            ("*a.b[i]", "*a.b[i]"),
            ("(*a)[1]", "(*a)[1]"),
            ("(*p)->next", "(*p)->next"),
            ("&x", "&x"),
            ("std::value", "std::value"),
            ("::value", "::value"),
            ("a[0x1F]", "a[31]"),
            ("pair.0", "pair.0"),
        ] {
            let parsed: Expression = text.parse().unwrap();
            assert_eq!(parsed.to_string(), told, "{text}");
        }
        let deep = "*".repeat(100_000) + "p";
        for wrong in ["", "a.", "a[", "a[1", "(a", "a b", "->x", "a..b", "p[-i]", "p[--1]", &deep] {
            assert!(wrong.parse::<Expression>().is_err(), "{wrong}");
        }
    }
}
