//! The dynamic linker. How it links is part of no value, so that its code is not looked into. Where it
//! binds a function when that is first called, it keeps what is in registers in memory meanwhile, and
//! brings it back: behind that, they are what they were.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::ops::Range;
use why_symbols::{LinkAddress, Module};

/// Whether a file is a dynamic linker and nothing else: musl's is its C library, too.
pub fn is_loader(module: &Module) -> bool {
    let name = module.short_name();
    ["ld-linux", "ld.so"].iter().any(|prefix| name.starts_with(prefix))
}

/// The code that links a program.
#[derive(Default)]
pub struct Linking {
    /// What of it is not looked into.
    pub code: Vec<Range<u64>>,
    /// The functions of that which bind others, and then jump to these.
    pub binding: Vec<Range<u64>>,
}

impl Linking {
    pub fn of<'a>(loaders: impl Iterator<Item = &'a Module>) -> Linking {
        let mut linking = Linking::default();
        loaders.for_each(|module| linking.add(module));
        linking
    }

    fn add(&mut self, module: &Module) {
        let mut rest = module.range.clone();
        for (code, binds) in keeping(module) {
            if binds {
                self.binding.push(code);
                continue;
            }
            // It makes something for its caller, and keeps what else is in registers.
            self.code.push(rest.start..code.start.max(rest.start));
            rest.start = code.end.max(rest.start);
        }
        self.code.push(rest);
        self.code.retain(|code| !code.is_empty());
    }
}

/// The functions of it that keep all registers, in order, and whether they bind others: no others
/// save all vectors at once, and of these only they jump to wherever they found out.
fn keeping(module: &Module) -> Vec<(Range<u64>, bool)> {
    let size = module.range.end.saturating_sub(module.range.start) as usize;
    let first = module.linked(module.range.start);
    let mut bytes = vec![0; size];
    let got = module.image.read(first, &mut bytes);
    let all = |at: u64, bytes| Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let saving = all(first.0, &bytes[..got]).into_iter().filter(saves_all);
    let mut functions: Vec<Range<LinkAddress>> =
        saving.filter_map(|insn| module.image.extent(LinkAddress(insn.ip()))).collect();
    functions.sort_unstable_by_key(|code| code.start.0);
    functions.dedup();
    let binds = |code: &Range<LinkAddress>| {
        let own = |at: LinkAddress| (at.0.saturating_sub(first.0) as usize).min(got);
        let jumps = |insn: Instruction| insn.flow_control() == FlowControl::IndirectBranch;
        all(code.start.0, &bytes[own(code.start)..own(code.end)]).into_iter().any(jumps)
    };
    let told = |code: Range<LinkAddress>| {
        (module.mapped(code.start)..module.mapped(code.end), binds(&code))
    };
    functions.into_iter().map(told).collect()
}

fn saves_all(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Fxsave | M::Fxsave64 | M::Xsave | M::Xsave64 | M::Xsavec | M::Xsavec64
    )
}
