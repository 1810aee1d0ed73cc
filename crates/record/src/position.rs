//! Moments of a recorded process.

use std::fmt;
use std::str::FromStr;

/// So many instructions after an event of the process's streams, before the next one at
/// `pc`. An event is named by its number, from one on; it is one with which a thread goes
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub event: u64,
    pub ticks: u64,
    /// Only to make sure.
    pub pc: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the first instruction.
    Start,
    At(Position),
    /// Where it ended.
    End,
}

#[derive(Debug, PartialEq, Eq)]
pub struct NoMoment(pub String);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.ticks)?;
        self.pc.map_or(Ok(()), |pc| write!(f, ".{pc:#x}"))
    }
}

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Moment, NoMoment> {
        match text {
            "start" => return Ok(Moment::Start),
            "end" | "exit" | "crash" => return Ok(Moment::End),
            _ => {}
        }
        let refused = || NoMoment(text.to_owned());
        let mut parts = text.split('.');
        let mut number = || parts.next()?.parse().ok();
        let (event, ticks) = number().zip(number()).ok_or_else(refused)?;
        let pc = match parts.next() {
            None => None,
            Some(pc) => {
                let digits = pc.strip_prefix("0x").ok_or_else(refused)?;
                Some(u64::from_str_radix(digits, 16).map_err(|_| refused())?)
            }
        };
        match parts.next() {
            None => Ok(Moment::At(Position { event, ticks, pc })),
            Some(_) => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_understood() {
        let position = Position { event: 12, ticks: 345, pc: Some(0x401000) };
        assert_eq!(position.to_string(), "12.345.0x401000");
        assert_eq!("12.345.0x401000".parse(), Ok(Moment::At(position)));
        assert_eq!("12.345".parse(), Ok(Moment::At(Position { pc: None, ..position })));
        assert_eq!("crash".parse(), Ok(Moment::End));
        for wrong in ["", "12", "12.x", "1.2.3", "1.2.0xg", "1.2.0x3.4", "main"] {
            assert_eq!(wrong.parse::<Moment>(), Err(NoMoment(wrong.to_owned())));
        }
    }

    #[test]
    fn positions_are_in_order_of_time() {
        let position = |event, ticks| Position { event, ticks, pc: None };
        assert!(position(2, 900) < position(3, 0) && position(3, 0) < position(3, 1));
    }
}
