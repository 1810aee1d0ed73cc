//! System calls: made right in the cache, or left to the supervisor.

use super::{Pad, PadTo, Translator};
use crate::context::{
    CALL_CLASSES, CALLS_IN_PROCESS, CallClass, LAST_CALL, MAP_FLAGS, MAP_PROTECTIONS,
    OPENS_WATCHED, OTHERS_READY, SAVED_RCX, count_slot,
};
use crate::emit::{Patch, reg};
use crate::scan::Scanned;
use crate::unit::{ExitKind, SpanDetail};

impl Translator<'_> {
    /// A system call; true if the unit ends here. The hardware leaves the return
    /// address in rcx and the flags in r11, so both are free before the call.
    pub(super) fn syscall(
        &mut self,
        insn: &Scanned,
        class: Option<CallClass>,
        executed: u32,
    ) -> bool {
        let next = insn.next();
        let supervised = ExitKind::Syscall { next };
        if let Some(tracer) = &self.tracer {
            tracer.commit_through_rcx(&mut self.e);
            self.committed_from = Some(self.e.offset());
        }
        match class {
            Some(CallClass::Supervised) => {
                self.leave(supervised, executed);
                return true;
            }
            Some(CallClass::Direct) => {}
            Some(CallClass::MayBlock) => self.unless_others_ready(supervised, executed),
            Some(CallClass::OpensRdi) => self.open_call(&[0x8b, 0x0f], supervised, executed),
            Some(CallClass::OpensRsi) => self.open_call(&[0x8b, 0x0e], supervised, executed),
            Some(CallClass::Asks) => self.ask(next, executed),
            Some(CallClass::Maps) => self.map_call(next, executed),
            None => self.call_by_class(supervised, executed),
        }
        self.e.add_through(reg::RCX, CALLS_IN_PROCESS, 1);
        if let Some(Pad { to: PadTo::Ask { back, .. }, .. }) = self.pads.last_mut() {
            *back = self.e.offset();
        }
        self.e.store(LAST_CALL, reg::RAX);
        self.e.bytes(&[0x0f, 0x05]);
        self.set_detail(SpanDetail::Syscall { behind: self.e.offset() });
        const EFAULT: i32 = 14;
        self.e.lea(reg::RCX, reg::RAX, EFAULT);
        let fault = self.e.jrcxz();
        let fine = self.e.jmp_short();
        self.e.land(fault);
        self.pad(ExitKind::SyscallFault { next }, executed);
        self.e.land(fine);
        self.load_address(reg::RCX, next);
        false
    }

    /// Leaves it to the supervisor whether the call is made here.
    fn ask(&mut self, next: u64, executed: u32) {
        let site = self.e.jmp();
        self.pads.push(Pad { site, to: PadTo::Ask { next, back: 0 }, executed });
    }

    fn map_call(&mut self, next: u64, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x48, 0x89, 0xf9]); // mov rcx, rdi
        let anywhere = e.jrcxz();
        let ask = e.offset();
        self.ask(next, executed);
        let e = &mut self.e;
        e.land(anywhere);
        e.bytes(&[0x0f, 0xb6, 0xca]); // movzx ecx, dl
        e.bytes(&[0x65, 0x0f, 0xb6, 0x89]); // movzx ecx, byte gs:[MAP_PROTECTIONS + rcx]
        e.imm32(MAP_PROTECTIONS);
        let harmless = e.jrcxz();
        e.jmp_short_back(ask);
        e.land(harmless);
        e.bytes(&[0x41, 0x0f, 0xb6, 0xca]); // movzx ecx, r10b
        e.bytes(&[0x65, 0x0f, 0xb6, 0x89]); // movzx ecx, byte gs:[MAP_FLAGS + rcx]
        e.imm32(MAP_FLAGS);
        let harmless = e.jrcxz();
        e.jmp_short_back(ask);
        e.land(harmless);
    }

    fn unless_others_ready(&mut self, supervised: ExitKind, executed: u32) {
        self.e.load(reg::RCX, OTHERS_READY);
        let alone = self.e.jrcxz();
        self.pad(supervised, executed);
        self.e.land(alone);
    }

    /// Leaves to the supervisor what opens a file in `/proc`. The load of the path's
    /// first bytes may fault; that is then the supervisor's call too.
    fn open_call(&mut self, load_ecx: &[u8], supervised: ExitKind, executed: u32) {
        const PROC: i32 = i32::from_le_bytes(*b"/pro");
        let e = &mut self.e;
        e.bytes(load_ecx);
        e.bytes(&[0x8d, 0x89]); // lea ecx, [rcx - PROC]
        e.imm32(PROC.wrapping_neg());
        let in_proc = e.jrcxz();
        e.load(reg::RCX, OPENS_WATCHED);
        let elsewhere = e.jrcxz();
        e.land(in_proc);
        self.pad(supervised, executed);
        self.e.land(elsewhere);
        self.unless_others_ready(supervised, executed);
    }

    /// The number is known at run time only: look its class up.
    fn call_by_class(&mut self, supervised: ExitKind, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x89, 0xc1]); // mov ecx, eax
        e.bytes(&[0x44, 0x0f, 0xb7, 0xd8]); // movzx r11d, ax
        e.bytes(&[0x49, 0xf7, 0xd3]); // not r11
        e.bytes(&[0x4a, 0x8d, 0x4c, 0x19, 0x01]); // lea rcx, [rcx + r11 + 1]
        let in_table = e.jrcxz();
        let out = e.jmp_short();
        e.land(in_table);
        e.bytes(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
        e.bytes(&[0x65, 0x0f, 0xb6, 0x89]); // movzx ecx, byte gs:[CALL_CLASSES + rcx]
        e.imm32(CALL_CLASSES);
        let slow = e.jrcxz();
        e.lea(reg::RCX, reg::RCX, -(CallClass::Direct as i32));
        let direct = e.jrcxz();
        e.load(reg::RCX, OTHERS_READY);
        let alone = e.jrcxz();
        e.land(out);
        e.land(slow);
        self.pad(supervised, executed);
        self.e.land(direct);
        self.e.land(alone);
    }

    /// A way to the supervisor that leads back when the thread goes on behind the trap.
    pub(super) fn asking(&mut self, next: u64, back: u32, executed: u32) {
        self.correct(executed);
        let stub = self.e.offset();
        self.stub(None, ExitKind::Asks { next }, executed);
        // The count is again what the unit takes it to be.
        let again = self.e.offset();
        let uncounted = self.uncounted(executed);
        if uncounted != 0 {
            self.e.add(count_slot(self.request.pc), -uncounted, SAVED_RCX);
            let site = self.e.jmp();
            self.e.patch_to(site, back);
            self.e.patch_to(Patch(stub + 2), again);
        } else {
            self.e.patch_to(Patch(stub + 2), back);
        }
    }
}
