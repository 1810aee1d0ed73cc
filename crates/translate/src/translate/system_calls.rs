//! System calls: made right in the cache, or left to the supervisor.

use super::{Calls, Pad, PadTo, Translator};
use crate::context::{
    CALL_CLASS, CALL_CLASSES, CALLS_IN_PROCESS, CLASS_SIZES, CallClass, LAST_CALL, LOG_HEADER,
    LOG_NEXT, LOG_ROOM, MAP_FLAGS, MAP_PROTECTIONS, OPENS_WATCHED, OTHERS_READY, SAVED_RCX,
    SAVED_RDI, SAVED_RSI, SAVED_RSP, SMALL_STACK, WATCHED_DESCRIPTORS,
};
use crate::emit::{Patch, reg};
use crate::scan::Scanned;
use crate::unit::{ExitKind, SpanDetail};
use why_trace::register::{R10, RDI, RSI};

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
            Some(CallClass::Watched) => {
                self.unless_watched(supervised, executed);
                self.unless_others_ready(supervised, executed);
            }
            Some(class) if class.is_logged() => {
                self.logged_or_replayed(Some(class), next, executed);
                return false;
            }
            None if matches!(self.request.calls, Calls::Logged | Calls::Replayed) => {
                self.logged_or_replayed(None, next, executed);
                return false;
            }
            Some(other) => unreachable!("{other:?} is a class of calls"),
            None => self.call_by_class(supervised, executed),
        }
        self.e.add_through(reg::RCX, CALLS_IN_PROCESS, 1);
        if let Some(Pad { to: PadTo::Ask { back, .. }, .. }) = self.pads.last_mut() {
            *back = self.e.offset();
        }
        self.e.store(LAST_CALL, reg::RAX);
        self.e.bytes(&[0x0f, 0x05]);
        self.set_detail(SpanDetail::Syscall { behind: self.e.offset() });
        self.unless_faulted(next, executed);
        self.load_address(reg::RCX, next);
        false
    }

    fn logged_or_replayed(&mut self, class: Option<CallClass>, next: u64, executed: u32) {
        match self.request.calls {
            Calls::Made | Calls::NotYetLogged => {
                unreachable!("no class of these calls is a logged one")
            }
            Calls::Logged => self.logged_call(class, next, executed),
            Calls::Replayed => self.replayed_call(class, next, executed),
        }
    }

    /// Behind a call: it may have failed only because of the engine.
    fn unless_faulted(&mut self, next: u64, executed: u32) {
        const EFAULT: i32 = 14;
        self.e.lea(reg::RCX, reg::RAX, EFAULT);
        let fault = self.e.jrcxz();
        let fine = self.e.jmp_short();
        self.e.land(fault);
        self.pad(ExitKind::SyscallFault { next }, executed);
        self.e.land(fine);
    }

    /// Makes a call and logs its number, its result, and what it wrote. Its class may be known
    /// at run time only.
    fn logged_call(&mut self, class: Option<CallClass>, next: u64, executed: u32) {
        let supervised = ExitKind::Syscall { next };
        match class {
            Some(class) => {
                self.unless_it_must_be_seen(class, supervised, executed);
                self.e.bytes(&[0xb9]); // mov ecx, class
                self.e.imm32(class as i32);
                self.e.store(CALL_CLASS, reg::RCX);
            }
            None => self.unless_its_class_must_be_seen(supervised, executed),
        }
        // Where the log is full this faults.
        self.e.load(reg::RCX, LOG_NEXT);
        self.e.bytes(&[0x8a, 0x89]); // mov cl, [rcx + LOG_ROOM]
        self.e.imm32(LOG_ROOM);
        self.e.add_through(reg::RCX, CALLS_IN_PROCESS, 1);
        self.e.store(LAST_CALL, reg::RAX);
        self.e.bytes(&[0x0f, 0x05]);
        self.set_detail(SpanDetail::LoggedCall { behind: self.e.offset() });
        self.unless_faulted(next, executed);
        let e = &mut self.e;
        e.store(SAVED_RDI, RDI);
        e.store(SAVED_RSI, RSI);
        if class == Some(CallClass::LoggedTime) {
            e.bytes(&[0x48, 0x89, 0xfe]); // mov rsi, rdi
        }
        e.load(RDI, LOG_NEXT);
        e.load(reg::RCX, LAST_CALL);
        e.store_at(RDI, 0, reg::RCX);
        e.store_at(RDI, 8, reg::RAX);
        e.store_at(RDI, 16, R10);
        e.bytes(&[0x48, 0x0f, 0xbe, 0x4f, 0x0f]); // movsx rcx, byte [rdi + 15]
        e.lea(reg::RCX, reg::RCX, 1);
        let failed = e.jrcxz();
        e.load(reg::RCX, CALL_CLASS);
        e.bytes(&[0x65, 0x48, 0x63, 0x0c, 0x8d]); // movsxd rcx, dword gs:[CLASS_SIZES + rcx*4]
        e.imm32(CLASS_SIZES);
        e.lea(reg::RCX, reg::RCX, 1);
        let as_result = e.jrcxz();
        e.lea(reg::RCX, reg::RCX, -1);
        let known = e.jmp_short();
        e.land(as_result);
        e.bytes(&[0x89, 0xc1]); // mov ecx, eax
        e.land(known);
        e.bytes(&[0x89, 0x4f, 0x04]); // mov [rdi + 4], ecx
        e.land(failed);
        e.lea(RDI, RDI, LOG_HEADER);
        e.bytes(&[0xf3, 0xa4]); // rep movsb: nothing if the call failed
        e.store(LOG_NEXT, RDI);
        e.load(RDI, SAVED_RDI);
        e.load(RSI, SAVED_RSI);
        self.load_address(reg::RCX, next);
    }

    fn unless_it_must_be_seen(&mut self, class: CallClass, supervised: ExitKind, executed: u32) {
        match class {
            CallClass::LoggedWrite => self.unless_watched(supervised, executed),
            CallClass::LoggedRead => self.unless_long(supervised, executed),
            CallClass::LoggedTime => self.unless_zone_is_wanted(supervised, executed),
            _ => {}
        }
        if !matches!(
            class,
            CallClass::Logged | CallClass::Logged16 | CallClass::Logged144 | CallClass::LoggedTime
        ) {
            self.unless_others_ready(supervised, executed);
        }
    }

    /// The same when the class is to be looked up.
    fn unless_its_class_must_be_seen(&mut self, supervised: ExitKind, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x44, 0x0f, 0xb7, 0xd8]); // movzx r11d, ax
        e.bytes(&[0x49, 0xf7, 0xd3]); // not r11
        e.bytes(&[0x4a, 0x8d, 0x4c, 0x18, 0x01]); // lea rcx, [rax + r11 + 1]
        let in_table = e.jrcxz();
        let unknown = e.offset();
        self.pad(supervised, executed);
        let e = &mut self.e;
        e.land(in_table);
        e.bytes(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
        e.bytes(&[0x65, 0x0f, 0xb6, 0x89]); // movzx ecx, byte gs:[CALL_CLASSES + rcx]
        e.imm32(CALL_CLASSES);
        e.store(CALL_CLASS, reg::RCX);
        let mut at = 0;
        let mut is = |e: &mut crate::emit::Emitter, class: CallClass| {
            e.lea(reg::RCX, reg::RCX, at - class as i32);
            at = class as i32;
            e.jrcxz()
        };
        let plain = [CallClass::Logged, CallClass::Logged16, CallClass::Logged144];
        let plain = plain.map(|class| is(e, class));
        let read = is(e, CallClass::LoggedRead);
        let write = is(e, CallClass::LoggedWrite);
        let waits = is(e, CallClass::LoggedMayBlock);
        e.jmp_short_back(unknown);
        plain.into_iter().for_each(|jump| e.land(jump));
        let plain = e.jmp();
        e.land(read);
        self.unless_long(supervised, executed);
        let read = self.e.jmp();
        self.e.land(write);
        self.unless_watched(supervised, executed);
        self.e.land(waits);
        let waits = self.e.offset();
        self.e.patch_to(read, waits);
        self.unless_others_ready(supervised, executed);
        let common = self.e.offset();
        self.e.patch_to(plain, common);
    }

    /// Takes what came of the call from the log, if it is the next one there.
    fn replayed_call(&mut self, class: Option<CallClass>, next: u64, executed: u32) {
        /// The one call that fills what rdi points to.
        const GETTIMEOFDAY: i32 = 96;
        let e = &mut self.e;
        e.load(reg::RCX, LOG_NEXT);
        e.bytes(&[0x44, 0x8b, 0x19]); // mov r11d, [rcx]
        e.bytes(&[0x49, 0xf7, 0xd3]); // not r11
        e.bytes(&[0x4a, 0x8d, 0x4c, 0x18, 0x01]); // lea rcx, [rax + r11 + 1]
        let same = e.jrcxz();
        self.pad(ExitKind::Syscall { next }, executed);
        let e = &mut self.e;
        e.land(same);
        e.store(SAVED_RDI, RDI);
        e.store(SAVED_RSI, RSI);
        // The flags, where a call leaves them.
        e.store(SAVED_RSP, reg::RSP);
        e.load(reg::RSP, SMALL_STACK);
        e.bytes(&[0x9c, 0x41, 0x5b]); // pushfq; pop r11
        e.load(reg::RSP, SAVED_RSP);
        let from = e.offset();
        let loans = [Some((RDI, SAVED_RDI)), Some((RSI, SAVED_RSI)), None];
        match class {
            Some(CallClass::LoggedTime) => {}
            Some(_) => e.bytes(&[0x48, 0x89, 0xf7]), // mov rdi, rsi
            None => {
                e.lea(reg::RCX, reg::RAX, -GETTIMEOFDAY);
                let time = e.jrcxz();
                e.bytes(&[0x48, 0x89, 0xf7]); // mov rdi, rsi
                e.land(time);
            }
        }
        e.load(reg::RCX, LOG_NEXT);
        e.bytes(&[0x48, 0x8d, 0x71, 0x10]); // lea rsi, [rcx + 16]
        e.bytes(&[0x8b, 0x49, 0x04]); // mov ecx, [rcx + 4]
        e.bytes(&[0xf3, 0xa4]); // rep movsb
        e.load(reg::RCX, LOG_NEXT);
        e.bytes(&[0x48, 0x8b, 0x41, 0x08]); // mov rax, [rcx + 8]
        e.store(LOG_NEXT, RSI);
        e.load(RDI, SAVED_RDI);
        e.load(RSI, SAVED_RSI);
        self.set_detail(SpanDetail::Borrowed { from, loans });
        self.load_address(reg::RCX, next);
    }

    /// Leaves to the supervisor what is written to a watched descriptor, or to a high one.
    fn unless_watched(&mut self, supervised: ExitKind, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x44, 0x0f, 0xb6, 0xdf]); // movzx r11d, dil
        e.bytes(&[0x49, 0xf7, 0xd3]); // not r11
        e.bytes(&[0x4a, 0x8d, 0x4c, 0x1f, 0x01]); // lea rcx, [rdi + r11 + 1]
        let low = e.jrcxz();
        let watched = e.offset();
        self.pad(supervised, executed);
        let e = &mut self.e;
        e.land(low);
        e.bytes(&[0x40, 0x0f, 0xb6, 0xcf]); // movzx ecx, dil
        e.bytes(&[0x65, 0x0f, 0xb6, 0x89]); // movzx ecx, byte gs:[WATCHED_DESCRIPTORS + rcx]
        e.imm32(WATCHED_DESCRIPTORS);
        let free = e.jrcxz();
        e.jmp_short_back(watched);
        e.land(free);
    }

    /// Leaves to the supervisor what may fill more than a record can hold.
    fn unless_long(&mut self, supervised: ExitKind, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x44, 0x0f, 0xb7, 0xda]); // movzx r11d, dx
        e.bytes(&[0x49, 0xf7, 0xd3]); // not r11
        e.bytes(&[0x4a, 0x8d, 0x4c, 0x1a, 0x01]); // lea rcx, [rdx + r11 + 1]
        let short = e.jrcxz();
        self.pad(supervised, executed);
        self.e.land(short);
    }

    /// Leaves to the supervisor a `gettimeofday` that is asked for more or less than the time.
    fn unless_zone_is_wanted(&mut self, supervised: ExitKind, executed: u32) {
        let e = &mut self.e;
        e.bytes(&[0x48, 0x89, 0xf1]); // mov rcx, rsi
        let no_zone = e.jrcxz();
        let wanted = e.offset();
        self.pad(supervised, executed);
        let e = &mut self.e;
        e.land(no_zone);
        e.bytes(&[0x48, 0x89, 0xf9]); // mov rcx, rdi
        let nothing = e.jrcxz();
        let time = e.jmp_short();
        e.land(nothing);
        e.jmp_short_back(wanted);
        e.land(time);
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
            self.e.add(self.correction_slot(), -uncounted, SAVED_RCX);
            let site = self.e.jmp();
            self.e.patch_to(site, back);
            self.e.patch_to(Patch(stub + 2), again);
        } else {
            self.e.patch_to(Patch(stub + 2), back);
        }
    }
}
