//! The dynamic linker. How it links is part of no value, so that its code is not looked into, but
//! for where it binds a function when that is first called: there it keeps the arguments of the call
//! in memory, and brings them back. Those in vector registers it brings back all at once, so that it is
//! simply as if it had none.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
use std::ops::Range;
use why_symbols::{LinkAddress, Module};

/// Whether a file is a dynamic linker and nothing else: musl's is its C library, too.
pub fn is_loader(module: &Module) -> bool {
    let name = module.short_name();
    ["ld-linux", "ld.so"].iter().any(|prefix| name.starts_with(prefix))
}

/// The code of it that is not looked into.
pub fn linking(module: &Module) -> Vec<Range<u64>> {
    let mut keeping = keeping(module);
    keeping.sort_unstable_by_key(|code| code.start);
    let mut rest = module.range.clone();
    let mut linking = Vec::new();
    for code in keeping {
        linking.push(rest.start..code.start.max(rest.start));
        rest.start = code.end.max(rest.start);
    }
    linking.push(rest);
    linking.retain(|code| !code.is_empty());
    linking
}

/// The functions of it that keep arguments: no others save all vectors at once.
fn keeping(module: &Module) -> Vec<Range<u64>> {
    let size = module.range.end.saturating_sub(module.range.start) as usize;
    let first = module.linked(module.range.start);
    let mut bytes = vec![0; size];
    let got = module.image.read(first, &mut bytes);
    let all = Decoder::with_ip(64, &bytes[..got], first.0, DecoderOptions::NONE);
    let function = |insn: Instruction| {
        let code = module.image.extent(LinkAddress(insn.ip()))?;
        Some(module.mapped(code.start)..module.mapped(code.end))
    };
    all.into_iter().filter(saves_all).filter_map(function).collect()
}

fn saves_all(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Fxsave | M::Fxsave64 | M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64
    )
}
