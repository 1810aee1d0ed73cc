//! Names for what the engine does not know.

use crate::error::EngineError;
use crate::memory::Address;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

pub fn instruction(pc: Address, bytes: &[u8]) -> EngineError {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let insn = decoder.decode();
    let mut text = String::new();
    let length = if insn.is_invalid() {
        text.push_str("(no known instruction)");
        bytes.len()
    } else {
        IntelFormatter::new().format(&insn, &mut text);
        insn.len()
    };
    let hex: Vec<String> = bytes[..length].iter().map(|b| format!("{b:02x}")).collect();
    EngineError::UnknownInstruction { text, bytes: hex.join(" "), pc }
}

pub fn call(number: u64, pc: Address) -> EngineError {
    let name = u32::try_from(number).ok().and_then(crate::calls::name).unwrap_or("unnamed");
    EngineError::UnknownCall { number, name: name.to_owned(), pc }
}
