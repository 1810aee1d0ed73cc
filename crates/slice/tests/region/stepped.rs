//! A program that is executed step by step, from `main` to its end.

use super::image::Image;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::Command;
use why_flow::Program;

/// A step: the registers before an instruction.
pub struct Step {
    pub registers: libc::user_regs_struct,
    pub insn: Instruction,
}

pub struct Stepped {
    pub image: Image,
    pub steps: Vec<Step>,
    /// When `main` had returned.
    pub end: libc::user_regs_struct,
}

pub fn stepped(source: &str, options: &[&str]) -> Stepped {
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (directory.path().join("source.c"), directory.path().join("program"));
    std::fs::write(&from, source).expect("writing the source");
    let always = ["-static", "-no-pie", "-fno-pie", "-fcf-protection=none", "-o"];
    let status = Command::new("cc").args(options).args(always).args([&to, &from]).status();
    assert!(status.expect("a C compiler").success());
    let image = Image::read(&std::fs::read(&to).expect("the program"));

    let mut command = Command::new(&to);
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(std::io::Error::from)) };
    let child = Pid::from_raw(command.spawn().expect("starting the program").id() as i32);
    waitpid(child, None).expect("waiting");
    let main = image.symbol("main");
    let there = ptrace::read(child, main as ptrace::AddressType).expect("reading code");
    ptrace::write(child, main as ptrace::AddressType, there & !0xff | 0xcc).expect("a breakpoint");
    ptrace::cont(child, None).expect("going on");
    waitpid(child, None).expect("waiting");
    ptrace::write(child, main as ptrace::AddressType, there).expect("the code again");
    let mut registers = ptrace::getregs(child).expect("registers");
    registers.rip = main;
    ptrace::setregs(child, registers).expect("registers");

    let back = ptrace::read(child, registers.rsp as ptrace::AddressType).expect("the stack") as u64;
    let mut steps = Vec::new();
    while registers.rip != back {
        let mut bytes = [0; 15];
        let got = image.read(registers.rip, &mut bytes);
        let insn =
            Decoder::with_ip(64, &bytes[..got], registers.rip, DecoderOptions::NONE).decode();
        assert!(!insn.is_invalid(), "at {:x}", registers.rip);
        steps.push(Step { registers, insn });
        ptrace::step(child, None).expect("stepping");
        let stopped = waitpid(child, None).expect("waiting");
        assert_eq!(stopped, WaitStatus::Stopped(child, Signal::SIGTRAP));
        registers = ptrace::getregs(child).expect("registers");
    }
    ptrace::kill(child).expect("ending the program");
    let _ = waitpid(child, None);
    Stepped { image, steps, end: registers }
}
