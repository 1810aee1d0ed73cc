//! Branches whose target is known only when they are reached: through the table of
//! targets, or, where they are expected to lead to what follows in the unit, straight on.

use super::{Pad, PadTo, TranslateError, Translator};
use crate::context::{SAVED_RCX, SAVED_RDX, TARGETS};
use crate::count::{Addition, Through};
use crate::emit::reg;
use crate::gs;
use crate::scan::{Flow, Scanned};
use crate::unit::{ExitKind, SpanDetail};
use iced_x86::Register;

impl Translator<'_> {
    /// A branch that very likely leads to an address, whose instructions follow here.
    pub(super) fn expected(
        &mut self,
        scanned: &Scanned,
        expected: u64,
        executed: u32,
    ) -> Result<(), TranslateError> {
        self.take_target(scanned)?;
        let short = i32::try_from(expected as i64).ok().and_then(i32::checked_neg);
        match short {
            Some(negative) => self.e.lea(reg::RCX, reg::RCX, negative),
            None => {
                self.e.store(SAVED_RDX, reg::RDX);
                self.load_address(reg::RDX, expected);
                self.e.bytes(&[0x48, 0xf7, 0xd2]); // not rdx
                self.e.bytes(&[0x48, 0x8d, 0x4c, 0x11, 0x01]); // lea rcx, [rcx + rdx + 1]
            }
        }
        let found = self.e.jrcxz();
        let site = self.e.jmp();
        self.pads.push(Pad { site, to: PadTo::Elsewhere { expected }, executed });
        self.e.land(found);
        self.e.load(reg::RCX, SAVED_RCX);
        if short.is_none() {
            self.e.load(reg::RDX, SAVED_RDX);
        }
        Ok(())
    }

    /// The other way out of [`Translator::expected`].
    pub(super) fn elsewhere(&mut self, expected: u64, executed: u32) {
        match i32::try_from(expected as i64).ok().filter(|e| e.checked_neg().is_some()) {
            Some(short) => {
                self.e.lea(reg::RCX, reg::RCX, short);
                self.e.store(SAVED_RDX, reg::RDX);
            }
            None => {
                self.load_address(reg::RDX, expected);
                self.e.bytes(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
            }
        }
        if let Some(tracer) = &self.tracer {
            tracer.commit(executed, &mut self.e);
        }
        let uncounted = self.uncounted(executed);
        if uncounted != 0 {
            // rcx holds the target; rdx is free.
            let slot = self.correction_slot();
            self.e.add_through(reg::RDX, slot, uncounted);
        }
        self.through_table(executed);
    }

    /// Goes to the application address in rcx; rcx and rdx have been saved.
    fn through_table(&mut self, executed: u32) {
        if self.request.tool.is_exact() && self.request.at_most.is_some() {
            self.stub(None, ExitKind::Indirect, executed);
            return;
        }
        self.e.bytes(&[0x0f, 0xb7, 0xd1]); // movzx edx, cx
        self.e.bytes(&[0x65, 0xff, 0x24, 0xd5]); // jmp gs:[TARGETS + rdx*8]
        self.e.imm32(TARGETS);
    }

    /// Looks up the target in the table and goes there. See [`crate::chain`].
    pub(super) fn indirect(&mut self, scanned: &Scanned) -> Result<(), TranslateError> {
        self.take_target(scanned)?;
        self.e.store(SAVED_RDX, reg::RDX);
        self.count_at_branch();
        self.through_table(self.spans.len() as u32);
        Ok(())
    }

    /// Saves rcx and puts the target of a branch there, and does what else the branch does.
    fn take_target(&mut self, scanned: &Scanned) -> Result<(), TranslateError> {
        self.e.store(SAVED_RCX, reg::RCX);
        let from = self.e.offset();
        let saved_rcx = Some((reg::RCX, SAVED_RCX));
        self.set_detail(SpanDetail::Borrowed { from, loans: [saved_rcx, None, None] });
        match scanned.flow {
            Flow::Return(extra) => {
                self.e.bytes(&[0x59]); // pop rcx
                if extra != 0 {
                    self.e.lea(reg::RSP, reg::RSP, extra.into());
                }
            }
            _ if scanned.insn.segment_prefix() == Register::GS
                && gs::touches_memory(&scanned.insn) =>
            {
                if !self.request.gs_base_writable {
                    return Err(TranslateError::UnknownGsUse(scanned.insn.ip()));
                }
                let switch = gs::Switch::new(&scanned.insn, &[Register::RCX]);
                let from = switch.to_application(&mut self.e);
                let [own, application] = switch.loans().map(Some);
                self.set_detail(SpanDetail::Borrowed {
                    from,
                    loans: [saved_rcx, own, application],
                });
                self.target_to_rcx(scanned)?;
                switch.to_own(&mut self.e);
            }
            _ => self.target_to_rcx(scanned)?,
        }
        if scanned.flow == Flow::IndirectCall {
            self.e.push_value(scanned.next());
        }
        Ok(())
    }

    /// `mov rcx, operand` with the operand of an indirect jump or call.
    fn target_to_rcx(&mut self, scanned: &Scanned) -> Result<(), TranslateError> {
        let insn = &scanned.insn;
        let bytes = scanned.bytes();
        let opcode = bytes.iter().position(|&b| b == 0xff).expect("FF /2 or FF /4");
        let rex =
            if opcode > 0 && bytes[opcode - 1] & 0xf0 == 0x40 { bytes[opcode - 1] } else { 0 };
        let modrm = bytes[opcode + 1];
        let mut converted = Vec::with_capacity(16);
        match insn.segment_prefix() {
            Register::FS => converted.push(0x64),
            Register::GS => converted.push(0x65),
            _ => {}
        }
        let rip_relative = scanned.rip_displacement.is_some();
        if !rip_relative && bytes[..opcode].contains(&0x67) {
            converted.push(0x67);
        }
        converted.extend([0x48 | rex & 0x03, 0x8b, modrm & 0xc7 | reg::RCX << 3]);
        if rip_relative {
            let end = self.e.here() + converted.len() as u64 + 4;
            let target = insn.memory_displacement64();
            let displacement = i32::try_from(target.wrapping_sub(end) as i64)
                .map_err(|_| TranslateError::OutOfReach(insn.ip()))?;
            self.displacements.push(self.e.offset() + converted.len() as u32);
            converted.extend(displacement.to_le_bytes());
        } else {
            converted.extend_from_slice(&bytes[opcode + 2..]);
        }
        self.e.bytes(&converted);
        Ok(())
    }

    /// Adds to the count, if it was planned so, while an indirect branch has saved rdx.
    fn count_at_branch(&mut self) {
        let planned = self.counting.iter().find(|a| a.through == Through::Branch);
        if let Some(&Addition { instructions, looks, .. }) = planned {
            if looks && self.checks() {
                return;
            }
            let slot = self.slot(self.spans.len() - 1);
            self.e.add_through(reg::RDX, slot, instructions as i32);
            self.note_counted(instructions);
        }
    }
}
