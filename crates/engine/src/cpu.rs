//! The CPU that a program is shown.
//!
//! While recording it is one of the level x86-64-v3 unless the user wants the machine's
//! own, so that a recording can be replayed on another machine. The program may execute
//! whatever the machine can all the same; then the recording says so.

mod answers;
pub mod features;
pub mod vectors;

use crate::cache::TRAP_FLAG;
use crate::error::{EngineError, Halt};
use crate::ptrace::{self, Registers};
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use features::Feature;
use iced_x86::Mnemonic;
use std::arch::x86_64::{__cpuid, CpuidResult};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use why_record::cpu::{Cpu, Shown};
use why_record::manifest::Manifest;
use why_translate::Features;

/// x87, SSE and AVX registers, as bits of XCR0.
const AVX_STATE: u64 = 7;

/// In AT_HWCAP2: programs may set the bases of FS and GS.
const HWCAP2_FSGSBASE: u64 = 1 << 1;

/// How the CPU of a program that runs under the engine differs from the machine's.
#[derive(Clone)]
pub struct View {
    /// It is one of the level x86-64-v3.
    pub limited: bool,
    /// What it has been recorded on, if that is not a CPU of the same maker: results that
    /// the architecture leaves undefined may differ.
    pub other_vendor: Option<String>,
    /// What programs may execute without taking notice.
    pub expected: Features,
    /// The same, and what notice was taken of.
    noticed: Rc<Cell<Features>>,
}

impl View {
    pub fn native() -> View {
        View::expecting(Features::ALL)
    }

    pub fn recording(shown: Shown) -> View {
        match shown {
            Shown::Native => View::native(),
            Shown::V3 => View { limited: true, ..View::expecting(features::v3()) },
        }
    }

    pub fn replaying(recorded_on: &Cpu) -> View {
        View {
            limited: recorded_on.shown == Shown::V3,
            other_vendor: Some(recorded_on.vendor.clone()).filter(|maker| *maker != vendor()),
            ..View::native()
        }
    }

    fn expecting(expected: Features) -> View {
        let noticed = Rc::new(Cell::new(expected));
        View { limited: false, other_vendor: None, expected, noticed }
    }

    /// What programs may execute by now.
    pub fn noticed(&self) -> Features {
        self.noticed.get()
    }

    /// Says of a replay that differs where the reason may be.
    pub fn explain(&self, error: EngineError) -> EngineError {
        match (&self.other_vendor, error) {
            (Some(other), EngineError::Diverged { event, how }) => {
                let here = vendor();
                let how = format!(
                    "{how} (recorded on a CPU of {other}, replayed on one of {here}: what the \
                     architecture leaves undefined may differ)"
                );
                EngineError::Diverged { event, how }
            }
            (_, error) => error,
        }
    }
}

/// What the manifest of a new recording says of the CPU.
pub fn manifest_entry(shown: Shown) -> Cpu {
    let features = match shown {
        Shown::V3 => features::v3_here(),
        Shown::Native => features::here().to_vec(),
    };
    Cpu { shown, vendor: vendor(), features: features.into_iter().map(str::to_owned).collect() }
}

/// What this machine's CPU lacks to replay a recording.
pub fn lacking(cpu: &Cpu) -> Vec<String> {
    let here = features::here();
    cpu.features.iter().filter(|name| !here.contains(&name.as_str())).cloned().collect()
}

/// What of that is not part of x86-64-v3.
pub fn beyond_v3(cpu: &Cpu) -> Vec<String> {
    cpu.features.iter().filter(|name| !features::is_v3(name)).cloned().collect()
}

/// Who made this machine's CPU.
pub fn vendor() -> String {
    let CpuidResult { ebx, ecx, edx, .. } = __cpuid(0);
    let bytes = [ebx, edx, ecx].map(u32::to_le_bytes).concat();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The registers that the kernel has enabled: XCR0.
fn enabled_state() -> u64 {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return 0;
    }
    let (low, high): (u32, u32);
    // SAFETY: the kernel has enabled the instruction, which only reads a register.
    unsafe {
        std::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high,
            options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

impl Supervisor {
    /// Answers the instruction at which a thread stands if it asks for what is not shown.
    /// The registers behind it; none if the CPU itself may answer.
    pub(crate) fn answer_for_cpu(
        &mut self,
        tid: Tid,
        registers: &Registers,
    ) -> Outcome<Option<Registers>> {
        if !self.view.limited {
            return Ok(None);
        }
        let insn = self.instruction_at(tid, registers.rip);
        let answered = match insn.mnemonic() {
            Mnemonic::Cpuid => {
                let (leaf, subleaf) = (registers.rax as u32, registers.rcx as u32);
                let native = self.ask_cpu(tid, registers)?;
                let CpuidResult { eax, ebx, ecx, edx } = answers::shown(leaf, subleaf, native);
                let [rax, rbx, rcx, rdx] = [eax, ebx, ecx, edx].map(u64::from);
                Registers { rax, rbx, rcx, rdx, ..*registers }
            }
            Mnemonic::Xgetbv if registers.rcx as u32 == 0 => {
                Registers { rax: enabled_state() & AVX_STATE, rdx: 0, ..*registers }
            }
            Mnemonic::Xgetbv if registers.rcx as u32 == 1 => {
                let in_use = vectors::in_use(&ptrace::vectors(tid)?);
                Registers { rax: in_use & AVX_STATE, rdx: 0, ..*registers }
            }
            _ => return Ok(None),
        };
        Ok(Some(Registers { rip: insn.next_ip(), ..answered }))
    }

    /// What the CPU on which the thread runs answers to its `cpuid`.
    fn ask_cpu(&mut self, tid: Tid, registers: &Registers) -> Outcome<CpuidResult> {
        let question = self.space_of(tid).glue.cpuid();
        let base = ptrace::registers(tid)?;
        let asking = Registers {
            rip: question.start,
            rax: registers.rax,
            rcx: registers.rcx,
            eflags: base.eflags & !TRAP_FLAG,
            orig_rax: u64::MAX,
            ..base
        };
        let Registers { rax, rbx, rcx, rdx, .. } = self.run_to(tid, &asking, question.end)?;
        let [eax, ebx, ecx, edx] = [rax, rbx, rcx, rdx].map(|value| value as u32);
        Ok(CpuidResult { eax, ebx, ecx, edx })
    }

    /// A thread is about to execute an instruction that the CPU shown does not have. If this
    /// machine's has it, the recording says so from now on; else it will fault.
    pub(crate) fn enter_beyond(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        let insn = self.instruction_at(tid, registers.rip);
        let needed = features::needed_beyond(insn.cpuid_features());
        let Some(needed) = needed else {
            return self.enter_few(tid, registers, 1, true);
        };
        let mut features = self.view.noticed();
        insn.cpuid_features().iter().for_each(|&feature| features.add(feature));
        self.view.noticed.set(features);
        if let Some(recorder) = &self.recorder {
            add_to_manifest(recorder.path(), &needed)?;
        }
        self.enter(tid, registers)
    }

    /// Limits what the kernel tells a new program of the CPU, at a key of its auxiliary
    /// vector.
    pub(crate) fn limit_hint(&self, key: u64, value: u64) -> u64 {
        match key {
            _ if !self.view.limited => value,
            libc::AT_HWCAP => value & u64::from(answers::LEAF_1_EDX),
            libc::AT_HWCAP2 => value & HWCAP2_FSGSBASE,
            _ => value,
        }
    }
}

fn add_to_manifest(recording: &Path, needed: &[&Feature]) -> Outcome<()> {
    let added = Manifest::change(recording, |manifest| {
        let features = &mut manifest.cpu.features;
        for feature in needed {
            if !features.iter().any(|name| name == feature.name) {
                features.push(feature.name.to_owned());
            }
        }
    });
    added.map_err(|error| Halt::Engine(EngineError::Recording(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(view: &View) -> String {
        let error = EngineError::Diverged { event: 7, how: "rax is 1 and was 2".to_owned() };
        view.explain(error).to_string()
    }

    #[test]
    fn another_makers_cpu_is_named_where_a_replay_differs() {
        let here = manifest_entry(Shown::V3);
        assert!(!told(&View::replaying(&here)).contains("CPU"));
        let elsewhere = Cpu { vendor: "SomeoneElses".to_owned(), ..here };
        let told = told(&View::replaying(&elsewhere));
        assert!(told.contains("a CPU of SomeoneElses, replayed on one of"), "{told}");
    }

    #[test]
    fn notice_is_taken_once_for_all_who_share_a_view() {
        let view = View::recording(Shown::V3);
        let shared = view.clone();
        assert!(!view.noticed().has(iced_x86::CpuidFeature::AVX512F));
        view.noticed.set(Features::ALL);
        assert!(shared.noticed().has(iced_x86::CpuidFeature::AVX512F));
        assert!(!shared.expected.has(iced_x86::CpuidFeature::AVX512F));
    }
}
