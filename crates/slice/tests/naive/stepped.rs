//! A program that is executed step by step, one thread at a time, from `main` to its end.

use super::image::Image;
use super::kernel;
use super::wide::Wide;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use why_flow::Program;
use why_symbols::{Landing, LinkAddress};

/// What of a thread's registers addresses are made of.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    general: [u64; 16],
    fs: u64,
}

impl Registers {
    fn of(r: &libc::user_regs_struct) -> Registers {
        let general = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ];
        Registers { general, fs: r.fs_base }
    }

    /// A general register in full, or the base of a segment.
    pub fn value(&self, register: Register) -> u64 {
        match register {
            Register::FS => self.fs,
            _ if register.is_gpr() => self.general[register.full_register().number()],
            _ => 0,
        }
    }

    pub fn stack(&self) -> u64 {
        self.value(Register::RSP)
    }
}

/// An instruction that was executed, repetitions and all.
pub struct Step {
    pub thread: u64,
    pub insn: Instruction,
    pub before: Registers,
    pub after: Registers,
    /// The vectors before it, if they select what it accesses.
    wide: Option<Wide>,
    /// What the kernel wrote to memory meanwhile.
    pub wrote: Vec<Range<u64>>,
    /// The registers with arguments of a system call, for whichever of those that are made there has most.
    pub given: &'static [Register],
    /// The thread that it created.
    pub creates: Option<Created>,
}

impl Step {
    /// The registers when half of the repetitions of a string instruction are over; none if there
    /// are too few, or if it may copy what it has written.
    pub fn halfway(&self) -> Option<Registers> {
        let insn = &self.insn;
        let repeats = insn.has_rep_prefix() || insn.has_repne_prefix();
        if !insn.is_string_instruction() || !repeats {
            return None;
        }
        let times = self.before.value(Register::RCX) - self.after.value(Register::RCX);
        let (from, to) = (self.before.value(Register::RSI), self.before.value(Register::RDI));
        let bytes = times * insn.memory_size().size() as u64;
        let overlaps = self.after.value(Register::RSI) != from && from.abs_diff(to) < bytes;
        let mut halfway = self.before;
        let passed = times / 2;
        halfway.general[Register::RCX.number()] -= passed;
        for pointer in [Register::RSI, Register::RDI] {
            let (first, last) = (self.before.value(pointer), self.after.value(pointer));
            let each = (last.wrapping_sub(first) as i64) / times.max(1) as i64;
            let moved = each * passed as i64;
            halfway.general[pointer.number()] = first.wrapping_add(moved as u64);
        }
        (passed > 0 && !overlaps).then_some(halfway)
    }

    /// The bytes of a vector or mask before it.
    pub fn vector(&self, register: Register) -> Vec<u8> {
        self.wide.as_ref().expect("vectors that select what is accessed").bytes(register)
    }
}

/// A thread, and the stack pointer with which it begins.
#[derive(Clone, Copy)]
pub struct Created {
    pub thread: u64,
    pub stack: u64,
}

pub struct Stepped {
    pub image: Image,
    /// Where calls go on if what they called throws, as the program's tables say.
    pub landings: Vec<Landing>,
    /// What is thrown is the only way to go on elsewhere than behind a call.
    pub throws: bool,
    pub steps: Vec<Step>,
}

/// The C library takes the vector code of the CPU that programs are shown by default.
const CPU: &str = "-AVX512F,-AVX512VL,-AVX512BW";
/// It takes that of older ones.
const OLD_CPU: &str = "-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS";
/// A thread is left for another one after so many steps.
const TURN: usize = 41;
/// A system call that takes longer waits for another thread.
const WAITING: Duration = Duration::from_millis(2);
/// No test program comes near.
const MOST: usize = 400_000;

struct Thread {
    pid: Pid,
    number: u64,
    registers: libc::user_regs_struct,
    /// A call that has not come back.
    waits: bool,
    /// Where the kernel writes when the thread ends.
    cleared: Option<u64>,
    /// The thread that its call has created.
    creates: Option<Created>,
    /// The vectors before its step.
    wide: Option<Wide>,
}

/// Builds a program, and executes it.
pub fn stepped(source: &Path, options: &[&str]) -> Stepped {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    let compiler = if source.extension().is_some_and(|ext| ext == "cc") { "c++" } else { "cc" };
    let always = ["-static", "-no-pie", "-fno-pie", "-fcf-protection=none", "-w", "-o"];
    let mut build = Command::new(compiler);
    build.args(options).args(always).arg(&program).arg(source).args(["-lm", "-pthread"]);
    assert!(build.status().expect("a compiler").success(), "{} is built", source.display());
    let bytes = std::fs::read(&program).expect("the program");
    let image = Image::read(&bytes);
    let tables = why_symbols::Image::load(&bytes, &program).expect("the program's tables");
    let functions = image.functions.iter().map(|(_, range)| LinkAddress(range.start));
    let landings = functions.filter_map(|entry| Some(tables.landings(entry)?.1)).flatten();
    let (landings, throws) = (landings.collect(), compiler == "c++");
    let mut run =
        Run { image, threads: Vec::new(), begun: 1, steps: Vec::new(), decoded: HashMap::new() };
    run.begin(&program, if options.contains(&"-O0") { OLD_CPU } else { CPU });
    run.go_on();
    let mut given: HashMap<u64, &'static [Register]> = HashMap::new();
    for step in &run.steps {
        let most = given.entry(step.insn.ip()).or_default();
        *most = std::cmp::max_by_key(*most, step.given, |given| given.len());
    }
    run.steps.iter_mut().for_each(|step| step.given = given[&step.insn.ip()]);
    Stepped { image: run.image, landings, throws, steps: run.steps }
}

struct Run {
    image: Image,
    threads: Vec<Thread>,
    /// How many there were.
    begun: u64,
    steps: Vec<Step>,
    decoded: HashMap<u64, Instruction>,
}

impl Run {
    /// Starts the program, and goes to its `main`.
    fn begin(&mut self, program: &Path, cpu: &str) {
        let mut command = Command::new(program);
        // Each run is the same, so that what differs can be looked at.
        command.env_clear().env("GLIBC_TUNABLES", format!("glibc.cpu.hwcaps={cpu}"));
        command.stdout(Stdio::null()).stdin(Stdio::null());
        let prepare = || {
            personality::set(Persona::ADDR_NO_RANDOMIZE)?;
            ptrace::traceme().map_err(std::io::Error::from)
        };
        // SAFETY: the closure makes two system calls.
        unsafe { command.pre_exec(prepare) };
        let pid = Pid::from_raw(command.spawn().expect("starting the program").id() as i32);
        waitpid(pid, None).expect("waiting");
        let follow = ptrace::Options::PTRACE_O_TRACECLONE | ptrace::Options::PTRACE_O_EXITKILL;
        ptrace::setoptions(pid, follow).expect("options");
        let main = self.image.symbol("main");
        let there = ptrace::read(pid, main as ptrace::AddressType).expect("reading code");
        ptrace::write(pid, main as ptrace::AddressType, there & !0xff | 0xcc).expect("writing");
        ptrace::cont(pid, None).expect("going on");
        waitpid(pid, None).expect("waiting");
        ptrace::write(pid, main as ptrace::AddressType, there).expect("writing");
        let mut registers = ptrace::getregs(pid).expect("registers");
        registers.rip = main;
        ptrace::setregs(pid, registers).expect("registers");
        let (cleared, creates) = (None, None);
        self.threads.push(Thread {
            pid,
            number: 1,
            registers,
            waits: false,
            cleared,
            creates,
            wide: None,
        });
    }

    /// Until `main` has returned.
    fn go_on(&mut self) {
        let first = self.threads[0].pid;
        let back = word(first, self.threads[0].registers.rsp);
        let mut turn = 0;
        while self.threads[0].registers.rip != back || self.threads[0].waits {
            let index = turn / TURN % self.threads.len();
            turn += 1;
            assert!(self.steps.len() < MOST, "the program ends");
            if self.threads[index].waits {
                self.wait(index, Duration::ZERO);
                turn += TURN;
                if self.threads.iter().all(|thread| thread.waits) {
                    std::thread::sleep(WAITING);
                }
            } else {
                self.step(index);
            }
        }
        ptrace::kill(first).expect("ending the program");
        let _ = waitpid(first, None);
    }

    fn insn(&mut self, address: u64) -> Instruction {
        let image = &self.image;
        *self.decoded.entry(address).or_insert_with(|| {
            let mut bytes = [0; 15];
            let got = image.read(address, &mut bytes);
            let insn = Decoder::with_ip(64, &bytes[..got], address, DecoderOptions::NONE).decode();
            assert!(!insn.is_invalid(), "code at {address:x}");
            insn
        })
    }

    fn step(&mut self, index: usize) {
        let Thread { pid, registers, .. } = self.threads[index];
        let insn = self.insn(registers.rip);
        self.threads[index].wide = selects_by_vectors(&insn).then(|| Wide::of(pid));
        ptrace::step(pid, None).expect("stepping");
        self.threads[index].waits = true;
        // A new thread does not begin before its creator's step is known.
        let is_call = insn.mnemonic() == Mnemonic::Syscall;
        let may_wait = is_call && registers.rax as i64 != libc::SYS_clone3;
        self.wait(index, if may_wait { WAITING } else { Duration::MAX });
    }

    /// Waits for the end of a thread's step.
    fn wait(&mut self, index: usize, how_long: Duration) {
        let begun = Instant::now();
        let pid = self.threads[index].pid;
        let all = WaitPidFlag::__WALL;
        loop {
            let flags = if how_long == Duration::MAX { all } else { all | WaitPidFlag::WNOHANG };
            match waitpid(pid, Some(flags)).expect("waiting") {
                WaitStatus::StillAlive if begun.elapsed() >= how_long => return,
                WaitStatus::StillAlive => {}
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                    let registers = ptrace::getregs(pid).expect("registers");
                    if registers.rip == self.threads[index].registers.rip {
                        // A string instruction stops after each of its repetitions, and a gather
                        // where it had to wait for memory.
                        let insn = self.insn(registers.rip);
                        let repeats = insn.has_rep_prefix() || insn.has_repne_prefix();
                        assert!(repeats || insn.is_vsib(), "it goes on");
                        ptrace::step(pid, None).expect("stepping");
                        continue;
                    }
                    return self.stepped(index, registers);
                }
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_CLONE) => {
                    self.begins(index);
                    ptrace::step(pid, None).expect("stepping");
                }
                // Whoever stops or continues what runs on this machine does not mean the program.
                WaitStatus::Stopped(_, Signal::SIGSTOP | Signal::SIGCONT) => {
                    ptrace::step(pid, None).expect("stepping");
                }
                WaitStatus::Exited(..) => return self.ended(index),
                other => panic!("{other:?} while stepping"),
            }
        }
    }

    /// A thread has made its step.
    fn stepped(&mut self, index: usize, registers: libc::user_regs_struct) {
        let thread = &mut self.threads[index];
        let before = std::mem::replace(&mut thread.registers, registers);
        thread.waits = false;
        let (pid, number) = (thread.pid, thread.number);
        let insn = self.insn(before.rip);
        let wrote = match insn.mnemonic() {
            Mnemonic::Syscall => kernel::wrote(&before, registers.rax, |at| word(pid, at)),
            _ => Vec::new(),
        };
        let given = match insn.mnemonic() {
            Mnemonic::Syscall => kernel::given(before.rax),
            _ => &[],
        };
        let (before, after) = (Registers::of(&before), Registers::of(&registers));
        let creates = self.threads[index].creates.take();
        let wide = self.threads[index].wide.take();
        self.steps.push(Step { thread: number, insn, before, after, wide, wrote, given, creates });
    }

    /// A thread is begun by another one.
    fn begins(&mut self, creator: usize) {
        let parent = &self.threads[creator];
        let pid = ptrace::getevent(parent.pid).expect("the new thread");
        let pid = Pid::from_raw(pid as i32);
        let cleared = kernel::cleared_at_end(&parent.registers, |at| word(parent.pid, at));
        waitpid(pid, Some(WaitPidFlag::__WALL)).expect("the new thread");
        let registers = ptrace::getregs(pid).expect("registers");
        // No number is used again.
        self.begun += 1;
        let number = self.begun;
        self.threads[creator].creates = Some(Created { thread: number, stack: registers.rsp });
        let creates = None;
        self.threads.push(Thread {
            pid,
            number,
            registers,
            waits: false,
            cleared,
            creates,
            wide: None,
        });
    }

    fn ended(&mut self, index: usize) {
        let thread = self.threads.remove(index);
        let insn = self.insn(thread.registers.rip);
        let before = Registers::of(&thread.registers);
        let wrote = thread.cleared.map(|at| at..at + 4).into_iter().collect();
        let given = kernel::given(thread.registers.rax);
        let (thread, creates) = (thread.number, None);
        let wide = None;
        self.steps.push(Step { thread, insn, before, after: before, wide, wrote, given, creates });
    }
}

fn selects_by_vectors(insn: &Instruction) -> bool {
    let name = format!("{:?}", insn.mnemonic());
    insn.is_vsib() || insn.op_mask() != Register::None || name.to_lowercase().contains("maskmov")
}

fn word(pid: Pid, at: u64) -> u64 {
    ptrace::read(pid, at as ptrace::AddressType).expect("reading memory") as u64
}
