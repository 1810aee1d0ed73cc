//! Instructions of all forms that the libraries of this machine have.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use object::{Object, ObjectSection, SectionKind};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// So many of each form.
const EACH: usize = 2;

/// An instruction and its bytes.
pub struct Example {
    pub insn: Instruction,
    pub bytes: Vec<u8>,
}

/// What is alike in instructions that are examples of the same thing.
#[derive(PartialEq, Eq, Hash)]
struct Form {
    code: Code,
    repeats: bool,
    same: bool,
    address: (bool, bool),
    zeroes: bool,
}

impl Form {
    fn of(insn: &Instruction) -> Form {
        let registers: Vec<Register> = (0..insn.op_count())
            .filter(|operand| insn.op_kind(*operand) == OpKind::Register)
            .map(|operand| insn.op_register(operand))
            .collect();
        let none = Register::None;
        Form {
            code: insn.code(),
            repeats: insn.has_rep_prefix() || insn.has_repne_prefix(),
            same: registers.windows(2).any(|pair| pair[0] == pair[1]),
            address: (insn.memory_base() != none, insn.memory_index() != none),
            zeroes: insn.zeroing_masking(),
        }
    }
}

pub fn all() -> Vec<Example> {
    let mut found: HashMap<Form, usize> = HashMap::new();
    let mut examples = Vec::new();
    let read = libraries().into_iter().filter_map(|library| std::fs::read(library).ok());
    for bytes in read.chain([lanes()]) {
        let file = object::File::parse(&*bytes).expect("a library is an ELF file");
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let code = section.uncompressed_data().expect("code");
            let decoder = Decoder::with_ip(64, &code, 0x2000_0000, DecoderOptions::NONE);
            let mut at = 0;
            for insn in decoder {
                let bytes = code[at..at + insn.len()].to_vec();
                at += insn.len();
                if insn.is_invalid() {
                    continue;
                }
                let times = found.entry(Form::of(&insn)).or_default();
                *times += 1;
                if *times <= EACH {
                    let insn = Decoder::with_ip(64, &bytes, 0x2000_0000, 0).decode();
                    examples.push(Example { insn, bytes });
                }
            }
        }
    }
    examples
}

/// The object file of instructions that few libraries have.
fn lanes() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let object = directory.path().join("lanes.o");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perturbed/lanes.s");
    let assembler = Command::new("cc").arg("-c").arg(source).arg("-o").arg(&object).status();
    assert!(assembler.expect("an assembler").success());
    std::fs::read(object).expect("an object file")
}

fn libraries() -> Vec<PathBuf> {
    let names = ["libc.so.6", "libm.so.6", "libcrypto.so.3", "libstdc++.so.6", "libgcc_s.so.1"];
    let directory = Path::new("/usr/lib/x86_64-linux-gnu");
    names.iter().map(|name| directory.join(name)).collect()
}
