//! Where the thread-local variables of a file are for a thread.
//!
//! Those of the program itself lie right below where the thread pointer points to. Those of a library are
//! where the dynamic linker put them, which it tells the library's code in slots of its own: how far
//! from the thread pointer a variable is, or the number of the library in a table of each thread.

use crate::{LinkAddress, Memory, Module};
use object::elf::{PT_TLS, R_X86_64_DTPMOD64, R_X86_64_TPOFF64};
use object::read::elf::ProgramHeader;
use object::{Object, ObjectSymbol, RelocationFlags, RelocationTarget};

#[derive(Default)]
pub struct ThreadLocal {
    /// How many bytes below the thread pointer they begin, if the file is the program.
    below: Option<u64>,
    slots: Vec<Slot>,
}

/// What the dynamic linker writes to an address of the file.
enum Slot {
    /// How far a variable, so far behind the first one, is from the thread pointer.
    Distance { at: LinkAddress, of: u64 },
    /// The number of the file.
    Number { at: LinkAddress },
}

impl ThreadLocal {
    pub fn new(file: &object::File<'_>) -> ThreadLocal {
        let object::File::Elf64(elf) = file else {
            return ThreadLocal::default();
        };
        let endian = elf.endian();
        let segment = elf.elf_program_headers().iter().find(|h| h.p_type(endian) == PT_TLS);
        let Some(segment) = segment else {
            return ThreadLocal::default();
        };
        let (size, align) = (segment.p_memsz(endian), segment.p_align(endian).max(1));
        let below = is_program(file).then(|| size.checked_next_multiple_of(align)).flatten();
        let slot = |(at, relocation): (u64, object::Relocation)| {
            let at = LinkAddress(at);
            match relocation.flags() {
                RelocationFlags::Elf { r_type: R_X86_64_TPOFF64 } => {
                    let symbol = match relocation.target() {
                        RelocationTarget::Symbol(index) => {
                            let table = file.dynamic_symbol_table()?;
                            let symbol = object::ObjectSymbolTable::symbol_by_index(&table, index);
                            // One that is defined elsewhere lies in another file's memory.
                            symbol.ok().filter(|s| !s.is_undefined())?.address()
                        }
                        _ => 0,
                    };
                    let of = symbol.wrapping_add_signed(relocation.addend());
                    Some(Slot::Distance { at, of })
                }
                RelocationFlags::Elf { r_type: R_X86_64_DTPMOD64 } => {
                    let is_own = match relocation.target() {
                        RelocationTarget::Symbol(index) => {
                            let table = file.dynamic_symbol_table()?;
                            let symbol = object::ObjectSymbolTable::symbol_by_index(&table, index);
                            symbol.is_ok_and(|symbol| !symbol.is_undefined())
                        }
                        _ => true,
                    };
                    is_own.then_some(Slot::Number { at })
                }
                _ => None,
            }
        };
        let relocations = file.dynamic_relocations().into_iter().flatten();
        ThreadLocal { below, slots: relocations.filter_map(slot).collect() }
    }

    /// Where a variable is that is so far behind the first one.
    pub fn address(&self, memory: &dyn Memory, module: &Module, offset: u64) -> Option<u64> {
        let pointer = memory.thread_pointer()?;
        if let Some(below) = self.below {
            return Some(pointer.wrapping_sub(below).wrapping_add(offset));
        }
        let first = self.slots.iter().find_map(|slot| match slot {
            Slot::Distance { at, of } => {
                let distance = memory.read_u64(module.mapped(*at))?;
                Some(pointer.wrapping_add(distance).wrapping_sub(*of))
            }
            Slot::Number { at } => {
                let number = memory.read_u64(module.mapped(*at)).filter(|number| *number != 0)?;
                let table = memory.read_u64(pointer.wrapping_add(8))?;
                let first = memory.read_u64(table.wrapping_add(number.wrapping_mul(16)))?;
                // A thread that has not used them has none yet.
                (first != u64::MAX).then_some(first)
            }
        })?;
        Some(first.wrapping_add(offset))
    }
}

/// Whether a file is a program, and no library that can be executed, too.
fn is_program(file: &object::File<'_>) -> bool {
    const DT_FLAGS_1: u64 = 0x6fff_fffb;
    const DF_1_PIE: u64 = 0x0800_0000;
    if file.kind() == object::ObjectKind::Executable {
        return true;
    }
    let dynamic = crate::image::section(file, ".dynamic");
    let bytes = gimli::Reader::to_slice(&dynamic).unwrap_or_default();
    let (entries, _) = bytes.as_chunks::<16>();
    entries.iter().any(|entry| {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| entry[at + byte]));
        word(0) == DT_FLAGS_1 && word(8) & DF_1_PIE != 0
    })
}
