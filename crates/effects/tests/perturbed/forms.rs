//! Instructions of all forms that the libraries of this machine have.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use object::{Object, ObjectSection, SectionKind};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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
        }
    }
}

pub fn all() -> Vec<Example> {
    let mut found: HashMap<Form, usize> = HashMap::new();
    let mut examples = Vec::new();
    for library in libraries() {
        let Ok(bytes) = std::fs::read(&library) else {
            continue;
        };
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

fn libraries() -> Vec<PathBuf> {
    let names = ["libc.so.6", "libm.so.6", "libcrypto.so.3", "libstdc++.so.6", "libgcc_s.so.1"];
    let directory = Path::new("/usr/lib/x86_64-linux-gnu");
    names.iter().map(|name| directory.join(name)).collect()
}
