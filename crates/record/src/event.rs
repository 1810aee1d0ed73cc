//! What a stream tells of a process.
//!
//! A process is its memory and the registers of its threads, of which one runs at a time.
//! A thread runs until something happens that is not an instruction's own doing: it stops
//! ([`Event::Stopped`]). Before it runs again ([`Event::Resumed`]) its registers and the
//! process's memory may have changed; the events in between say how. A replay needs to
//! know nothing else of the kernel.

use crate::files::Hash;
use crate::registers::Changed;
use crate::vectors::Vectors;
use serde::{Deserialize, Serialize};

/// A thread, by the number it had when it was recorded.
pub type Thread = i32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The thread that was resumed last has stopped after so many instructions, its
    /// registers changed from those it was resumed with.
    Stopped {
        instructions: u64,
        cause: Cause,
        registers: Changed,
    },
    /// A thread goes on, its registers changed from those it stopped with. A new one
    /// stopped with zeroes.
    Resumed {
        thread: Thread,
        registers: Changed,
    },
    /// Calls that the thread made while it ran: the number and the size of what each wrote,
    /// four bytes each, its result in eight bytes, and what it wrote.
    Calls(#[serde(with = "bytes")] Vec<u8>),
    /// The vector registers of the thread that is resumed next.
    Vectors(Vectors),
    /// Memory has changed.
    Wrote {
        at: u64,
        #[serde(with = "bytes")]
        bytes: Vec<u8>,
    },
    /// Memory is there from now on, instead of whatever was.
    Mapped {
        at: u64,
        size: u64,
        access: Access,
        source: Source,
    },
    Unmapped {
        at: u64,
        size: u64,
    },
    Protected {
        at: u64,
        size: u64,
        access: Access,
    },
    /// What `madvise` was told of what a forked process is to have of this memory.
    Inherited {
        at: u64,
        size: u64,
        advice: i32,
    },
    /// Memory has moved, with what is in it; where it has grown it is as if mapped. If it
    /// stays, it stays without what was in it.
    Moved {
        from: u64,
        size: u64,
        to: u64,
        new_size: u64,
        stays: bool,
    },
    /// The process goes on as another program, in the next stream.
    Replaced,
    /// A program begins: all memory that there was is gone.
    Executed {
        program: String,
        arguments: Vec<String>,
    },
    /// The bytes there were written to a stream, as the so manieth of all processes' writes.
    Output {
        stream: Stream,
        order: u64,
        at: u64,
        size: u64,
    },
    /// A thread that does not run, with these registers: changed from zeroes.
    Thread {
        thread: Thread,
        registers: Changed,
    },
    /// A process was created, with a copy of this one's memory or a program of its own: its
    /// first stream tells.
    Forked {
        child: Thread,
    },
    /// All pages that the process can write to and that are not empty, with their hashes;
    /// and ranges that are left out because a call may be writing there.
    Hashes {
        pages: Vec<(u64, u64)>,
        left_out: Vec<(u64, u64)>,
    },
    /// Of processes that share memory one runs at a time: this one, from here on to its next
    /// turn, as the so manieth of all.
    Turn {
        order: u64,
    },
    /// First in a checkpoint: the stream from which it was taken goes on there.
    Checkpoint(Place),
    ThreadEnded {
        thread: Thread,
    },
    /// The process is over.
    Ended(Ended),
    /// The process went on, but no more of it was to be recorded.
    Left,
    /// Memory now holds what a kept file holds from an offset on.
    Copied {
        at: u64,
        size: u64,
        hash: Hash,
        offset: u64,
    },
    /// A call among those that the thread made while it ran: it wrote what a kept file holds
    /// from an offset on.
    CallFromFile {
        number: u32,
        result: u64,
        hash: Hash,
        offset: u64,
        size: u32,
    },
    /// In an excerpt: the thread that is resumed next is so many instructions behind that event
    /// of the recording from which the excerpt was made. What was executed before and is not
    /// told here was left out.
    Skipped {
        event: u64,
        ticks: u64,
    },
    /// A descriptor of a file, which others may have moved, is there when the next thread goes on.
    Offset {
        descriptor: i32,
        offset: u64,
    },
}

/// Between two chunks of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// How many events of the process, and how many instructions, are in front of it.
    pub events: u64,
    pub instructions: u64,
    /// Likewise of the stream.
    pub chunks: u32,
    pub bytes: u64,
    /// The event with which a thread went on last, and how many instructions it executed.
    pub stretch: (u64, u64),
}

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It has not begun.
    Begins,
    /// It made this system call.
    Call(u32),
    /// An instruction whose result the program cannot compute is next.
    Instruction,
    /// A signal of its own making: a fault or a trap.
    Fault(i32),
    /// A signal came.
    Signal(i32),
    /// It is another thread's turn.
    Preempted,
}

impl Cause {
    /// Whether the thread stops for it of itself; else only the count of instructions
    /// tells where. A fault may have come from outside: from a file that was cut off.
    pub fn is_own(self) -> bool {
        matches!(self, Cause::Call(_) | Cause::Instruction)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

/// What mapped memory holds at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    Zero,
    /// A stack: it grows downwards.
    Stack,
    /// A file, which had this name, from this offset on; zero behind its end.
    File {
        hash: Hash,
        offset: u64,
        name: String,
    },
    /// A part of an object that may be mapped several times. What is in it follows.
    Shared {
        object: u32,
        offset: u64,
    },
    /// The same, as long as nothing is written there.
    Private {
        object: u32,
        offset: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    Output,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    Status(i32),
    Signal(i32),
}

/// Bytes as bytes, and not as a list of numbers.
pub mod bytes {
    use serde::{Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        d.deserialize_bytes(Bytes)
    }
}
