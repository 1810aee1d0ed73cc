//! The description of a unit as bytes, for archives: everything but its code. All
//! addresses are offsets from the image's bias.

use why_translate::context::Slot;
use why_translate::{Exit, ExitKind, InsnSpan, Literal, Patch, SpanDetail, Unit};

pub fn write(unit: &Unit, bias: u64, to: &mut Vec<u8>) {
    let mut w = Writer { to, bias };
    w.address(unit.pc);
    w.number(u64::from(unit.stubs));
    w.number(unit.counted.len() as u64);
    for &(from, instructions) in &unit.counted {
        w.number(u64::from(from));
        w.number(u64::from(instructions));
    }
    w.number(unit.spans.len() as u64);
    let (mut pc, mut code) = (unit.pc, 0);
    for span in &unit.spans {
        w.signed(span.pc.wrapping_sub(pc) as i64);
        w.number(u64::from(span.length));
        w.number(u64::from(span.code - code));
        (pc, code) = (span.pc + u64::from(span.length), span.code);
        match span.detail {
            SpanDetail::Plain => w.number(0),
            SpanDetail::Borrowed { from, loans } => {
                w.number(1);
                w.number(u64::from(from));
                for loan in loans {
                    w.loan(loan);
                }
            }
            SpanDetail::Syscall { behind } => {
                w.number(2);
                w.number(u64::from(behind));
            }
            SpanDetail::LoggedCall { behind } => {
                w.number(4);
                w.number(u64::from(behind));
            }
            SpanDetail::Repeats { at } => {
                w.number(3);
                w.number(u64::from(at));
            }
        }
    }
    w.number(unit.exits.len() as u64);
    for exit in &unit.exits {
        w.number(u64::from(exit.stub));
        w.optional(exit.site.map(|patch| patch.0));
        w.number(u64::from(exit.executed));
        let (tag, address) = match exit.kind {
            ExitKind::Direct(target) => (0, target),
            ExitKind::Syscall { next } => (1, next),
            ExitKind::SyscallFault { next } => (2, next),
            ExitKind::Breakpoint { next } => (3, next),
            ExitKind::Unsupported { pc } => (4, pc),
            ExitKind::Stale => (5, unit.pc),
            ExitKind::Asks { next } => (6, next),
            ExitKind::Indirect => (9, unit.pc),
            ExitKind::Stopped { pc } => (7, pc),
            ExitKind::Varies { pc } => (8, pc),
        };
        w.number(tag);
        w.address(address);
    }
    w.number(u64::from(unit.end));
    w.number(unit.literals.len() as u64);
    for literal in &unit.literals {
        w.number(u64::from(literal.user.0));
        w.address(literal.value);
    }
    w.offsets(&unit.displacements);
}

/// The unit described, with its image at `bias`; none if the bytes make no sense.
pub fn read(bytes: &[u8], bias: u64) -> Option<Unit> {
    let mut r = Reader { bytes, bias };
    let pc = r.address()?;
    let stubs = r.number()? as u32;
    let mut counted = Vec::new();
    for _ in 0..r.number()? {
        counted.push((r.number()? as u32, r.number()? as u32));
    }
    let mut spans = Vec::new();
    let (mut at, mut code) = (pc, 0);
    for _ in 0..r.number()? {
        at = at.wrapping_add_signed(r.signed()?);
        let length = r.number()? as u8;
        code = r.number()?.wrapping_add(u64::from(code)) as u32;
        let detail = match r.number()? {
            0 => SpanDetail::Plain,
            1 => SpanDetail::Borrowed {
                from: r.number()? as u32,
                loans: [r.loan()?, r.loan()?, r.loan()?],
            },
            2 => SpanDetail::Syscall { behind: r.number()? as u32 },
            3 => SpanDetail::Repeats { at: r.number()? as u32 },
            4 => SpanDetail::LoggedCall { behind: r.number()? as u32 },
            _ => return None,
        };
        spans.push(InsnSpan { pc: at, length, code, detail });
        at = at.wrapping_add(u64::from(length));
    }
    let mut exits = Vec::new();
    for _ in 0..r.number()? {
        let stub = r.number()? as u32;
        let site = r.optional()?.map(Patch);
        let executed = r.number()? as u32;
        let tag = r.number()?;
        let address = r.address()?;
        let kind = match tag {
            0 => ExitKind::Direct(address),
            1 => ExitKind::Syscall { next: address },
            2 => ExitKind::SyscallFault { next: address },
            3 => ExitKind::Breakpoint { next: address },
            4 => ExitKind::Unsupported { pc: address },
            5 => ExitKind::Stale,
            6 => ExitKind::Asks { next: address },
            7 => ExitKind::Stopped { pc: address },
            9 => ExitKind::Indirect,
            8 => ExitKind::Varies { pc: address },
            _ => return None,
        };
        exits.push(Exit { stub, site, kind, executed });
    }
    let end = r.number()? as u32;
    let mut literals = Vec::new();
    for _ in 0..r.number()? {
        literals.push(Literal { user: Patch(r.number()? as u32), value: r.address()? });
    }
    let displacements = r.offsets()?;
    Some(Unit {
        pc,
        code: Vec::new(),
        spans,
        stubs,
        exits,
        counted,
        committed_from: None,
        borrowed: None,
        traced: None,
        alone: false,
        beyond: false,
        end,
        literals,
        displacements,
    })
}

struct Writer<'a> {
    to: &'a mut Vec<u8>,
    bias: u64,
}

impl Writer<'_> {
    /// Seven bits a byte, least significant first.
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.to.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.to.push(value as u8);
    }

    /// Small numbers of either sign stay short.
    fn signed(&mut self, value: i64) {
        self.number((value << 1 ^ value >> 63) as u64);
    }

    fn address(&mut self, address: u64) {
        self.number(address.wrapping_sub(self.bias));
    }

    fn optional(&mut self, value: Option<u32>) {
        self.number(value.map_or(0, |value| u64::from(value) + 1));
    }

    fn loan(&mut self, loan: Option<(u8, Slot)>) {
        self.number(loan.map_or(0, |(register, _)| u64::from(register) + 1));
        if let Some((_, slot)) = loan {
            self.number(slot.0 as u64);
        }
    }

    fn offsets(&mut self, offsets: &[u32]) {
        self.number(offsets.len() as u64);
        for &offset in offsets {
            self.number(u64::from(offset));
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    bias: u64,
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn address(&mut self) -> Option<u64> {
        Some(self.number()?.wrapping_add(self.bias))
    }

    fn optional(&mut self) -> Option<Option<u32>> {
        Some((self.number()? as u32).checked_sub(1))
    }

    fn loan(&mut self) -> Option<Option<(u8, Slot)>> {
        match (self.number()? as u8).checked_sub(1) {
            None => Some(None),
            Some(register) => Some(Some((register, Slot(self.number()? as i32)))),
        }
    }

    fn offsets(&mut self) -> Option<Vec<u32>> {
        let count = self.number()?;
        (0..count).map(|_| self.number().map(|offset| offset as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use why_translate::{Features, Request, Tool, translate};

    #[test]
    fn a_description_comes_back_at_another_address() {
        // call rax; with a conditional branch and a call of the kernel before it.
        let bytes =
            [0x74, 0x10, 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x8b, 0x05, 1, 0, 0, 0, 0xff, 0xd0];
        let base = 0x5555_0000_1000u64;
        let request = Request {
            pc: base,
            at: 0x5554_c000_0000,
            tool: Tool::Count,
            at_most: None,
            call_class: crate::calls::class,
            shapes: &Default::default(),
            longer: false,
            taken: &|_, _| false,
            leads_to: &|_, _| None,
            leave_before: why_translate::LeaveBefore::Nothing,
            shown: Features::ALL,
            expected: Features::ALL,
            limit_xsave: false,
            calls: why_translate::Calls::Made,
            verify: false,
            gs_base_writable: false,
            transactions: false,
        };
        let unit = translate(&request, &mut |pc, buffer| {
            let from = bytes.get((pc - base) as usize..).unwrap_or_default();
            let length = from.len().min(buffer.len());
            buffer[..length].copy_from_slice(&from[..length]);
            length
        })
        .unwrap();
        let mut description = Vec::new();
        write(&unit, 0x5555_0000_0000, &mut description);
        let moved = read(&description, 0x7f00_0000_0000).unwrap();
        assert_eq!(moved.pc, 0x7f00_0000_1000);
        let shape =
            |u: &Unit| u.spans.iter().map(|s| (s.pc - u.pc, s.length, s.code)).collect::<Vec<_>>();
        assert_eq!(shape(&moved), shape(&unit));
        assert_eq!(moved.counted, unit.counted);
        assert_eq!(moved.displacements, unit.displacements);
        assert_eq!(moved.exits.len(), unit.exits.len());
        let delta = 0x7f00_0000_0000u64 - 0x5555_0000_0000;
        let literals =
            |u: &Unit| u.literals.iter().map(|l| (l.user, l.value - u.pc)).collect::<Vec<_>>();
        assert_eq!(literals(&moved), literals(&unit));
        assert!(!unit.literals.is_empty());
        let expected = unit.exits[0].kind.target().map(|target| target + delta);
        assert_eq!(moved.exits[0].kind.target(), expected);
        assert!(read(&description[..9], 0).is_none());
        // Of what is damaged there comes something or nothing, but no end of it.
        let mut number = 42u64;
        for _ in 0..50_000 {
            let mut damaged = description.clone();
            for _ in 0..3 {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (number >> 33) as usize % damaged.len();
                damaged[at] = (number >> 20) as u8;
            }
            if let Some(unit) = read(&damaged, 0) {
                assert!(unit.spans.len() + unit.exits.len() <= damaged.len());
            }
        }
    }
}
