//! What the debugger's tables of a program say: which function and line an address belongs
//! to, who called whom, and what variables held.
//!
//! Pure analysis over bytes. It reads memory through a trait and knows nothing of how a
//! process is stopped. What a stranger's tables say wrongly or not at all is left out of an
//! answer; it never panics.

mod assembled;
mod call_sites;
mod called;
mod close_names;
mod code;
mod evaluate;
mod expression;
mod floats;
mod format;
mod functions;
mod globals;
mod hints;
mod image;
mod inlined;
mod landings;
mod leaving;
mod lengths;
mod lines;
mod locations;
mod module;
mod named;
mod names;
mod nested;
mod paths;
mod prologues;
mod scope;
mod separate;
mod shared;
mod split;
mod statement;
mod strings;
mod tables;
mod thread_local;
mod types;
mod units;
mod unwind;
mod value;
mod variables;

pub use called::Called;
pub use close_names::CloseNames;
pub use evaluate::{Origin, Unknown};
pub use expression::{Expression, NoExpression, Viewpoint};
pub use functions::Entry;
pub use image::{Image, read_file};
pub use landings::Landing;
pub use leaving::{Leaving, Left};
pub use lines::{LineSearch, SourceLine};
pub use module::{Module, Modules};
pub use named::{Maker, Named, Wrote};
pub use statement::Statement;
use tables::Unit;
pub use unwind::{Backtrace, End, Frame};
pub use value::Value;
pub use variables::{Kind, Variable};

/// Memory of a process.
pub trait Memory {
    /// Reads from an address on; how much could be read.
    fn read(&self, at: u64, buffer: &mut [u8]) -> usize;

    /// Where the thread that is looked at has its own variables: its FS base.
    fn thread_pointer(&self) -> Option<u64> {
        None
    }

    fn read_exact(&self, at: u64, size: usize) -> Option<Vec<u8>> {
        /// No value is larger: a damaged table may say anything.
        const MOST: usize = 1 << 20;
        if size > MOST {
            return None;
        }
        let mut bytes = vec![0; size];
        (self.read(at, &mut bytes) == size).then_some(bytes)
    }

    fn read_u64(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }
}

/// An address as the file has it, before it is mapped anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkAddress(pub u64);

type Bytes = gimli::EndianRcSlice<gimli::LittleEndian>;
type Dwarf = gimli::Dwarf<Bytes>;
type Die = gimli::DebuggingInformationEntry<Bytes>;
