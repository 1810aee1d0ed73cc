//! `count` is exact: small programs whose instructions were counted by hand, the
//! single-stepping oracle, and `why run --tool count` all agree.

mod support;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};

use support::assemble;
use support::job::{Before, Job};
use support::single_step;
use support::why::{self, Tool};

/// Assembly whose execution starts at its first instruction and ends in `exit`,
/// three more instructions that every case shares.
struct Case {
    name: &'static str,
    assembly: &'static str,
    instructions: u64,
}

const EXIT: &str = "mov edi, 0\n mov eax, 60\n syscall\n";
const EXIT_INSTRUCTIONS: u64 = 3;

const CASES: &[Case] = &[
    Case { name: "straight line", assembly: "nop\n nop\n xor eax, eax\n", instructions: 3 },
    Case {
        name: "loop",
        assembly: "mov ecx, 1000\n 1: dec ecx\n jnz 1b\n",
        instructions: 1 + 2 * 1000,
    },
    Case {
        name: "system calls",
        assembly: "mov ebx, 10\n 1: mov eax, 39\n syscall\n dec ebx\n jnz 1b\n",
        instructions: 1 + 4 * 10,
    },
    Case {
        name: "rep is one instruction",
        assembly: "lea rdi, [rsp - 512]\n mov ecx, 64\n rep stosb\n",
        instructions: 3,
    },
    Case {
        name: "rep of no iterations is one instruction",
        assembly: "xor ecx, ecx\n rep movsq\n",
        instructions: 2,
    },
    Case {
        name: "rep that ends early is one instruction",
        assembly: "lea rdi, [rip + text]\n mov ecx, 6\n mov al, 'c'\n repne scasb\n jmp 1f\n \
                   text: .ascii \"abcdef\"\n 1:\n",
        instructions: 5,
    },
    Case {
        name: "the same rep in a loop",
        assembly: "mov ebx, 5\n 1: lea rdi, [rsp - 512]\n mov ecx, 3\n rep stosq\n dec ebx\n jnz 1b\n",
        instructions: 1 + 5 * 5,
    },
    Case {
        name: "calls and indirect branches",
        assembly: "mov ebx, 7\n 1: lea rax, [rip + f]\n call rax\n dec ebx\n jnz 1b\n jmp 2f\n \
                   f: nop\n ret\n 2:\n",
        instructions: 1 + 7 * 6 + 1,
    },
    Case {
        // rt_sigaction(SIGSEGV, {handler, SA_RESTORER | SA_SIGINFO, restorer}); the
        // handler steps over the two bytes of the faulting load.
        name: "a fault is not an instruction",
        assembly: "lea rsi, [rip + action]\n lea rax, [rip + handler]\n mov [rsi], rax\n \
                   lea rax, [rip + restorer]\n mov [rsi + 16], rax\n \
                   mov edi, 11\n xor edx, edx\n mov r10d, 8\n mov eax, 13\n syscall\n \
                   xor eax, eax\n mov ebx, [rax]\n jmp 1f\n \
                   handler: add qword ptr [rdx + 168], 2\n ret\n \
                   restorer: mov eax, 15\n syscall\n \
                   .data\n action: .quad 0, 0x04000004, 0, 0\n .text\n 1:\n",
        // Set-up, `xor`, handler, restorer, `jmp`.
        instructions: 10 + 1 + 2 + 2 + 1,
    },
];

fn main() {
    let trials = CASES.iter().flat_map(|case| {
        [
            Trial::test(format!("{}, single-stepped", case.name), || single_stepped(case)),
            Trial::test(format!("{}, why", case.name), || counted_by_why(case)),
        ]
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn single_stepped(case: &Case) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let counted = single_step::count(&Job::new(assemble(case, dir.path())?))?;
    equal(case, Some(counted))
}

fn counted_by_why(case: &Case) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let job = Job::new(assemble(case, dir.path())?).before(Before::NoRandomLayout);
    let (outcome, report) = why::under(&job, Tool::Count, Path::new(why::WHY))?.run()?;
    report.check(Tool::Count, outcome.ended)?;
    equal(case, report.answer.instructions)
}

fn equal(case: &Case, counted: Option<u64>) -> Result<(), Failed> {
    let expected = case.instructions + EXIT_INSTRUCTIONS;
    if counted == Some(expected) {
        Ok(())
    } else {
        Err(format!("by hand {expected} instructions, counted {counted:?}").into())
    }
}

fn assemble(case: &Case, dir: &Path) -> Result<PathBuf, String> {
    assemble::program(&format!("{}{EXIT}", case.assembly), dir)
}
