//! The program that a replay begins with: a process with hardly any memory of its own, where
//! recorded programs have none.

use crate::error::{EngineError, Result};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Neither programs nor libraries, heaps of language runtimes nor sanitizers are here.
pub const HOME: u64 = 0x2100_0000_0000;
/// Where the engine's context goes.
pub const CONTEXT: u64 = HOME + (16 << 20);

/// And the log of calls.
pub const LOG: u64 = HOME + (64 << 20);
/// And the buffers of the trace.
pub const TRACE: u64 = HOME + (96 << 20);

/// A file that can be executed: a header, one segment, and a page of traps.
pub struct Stub {
    file: File,
}

impl Stub {
    pub fn new() -> Result<Stub> {
        let making =
            |error: std::io::Error| EngineError::system("making the replay's program")(error);
        let file = memfd_create(c"replay", MFdFlags::MFD_CLOEXEC).map_err(|e| making(e.into()))?;
        let mut file = File::from(file);
        file.write_all(&elf()).map_err(making)?;
        Ok(Stub { file })
    }

    /// For whoever is a child of this process, and has its descriptors.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

fn elf() -> Vec<u8> {
    const HEADERS: u64 = 64 + 56;
    const SIZE: u64 = 4096;
    let mut bytes = Vec::new();
    bytes.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let word16 = |bytes: &mut Vec<u8>, values: &[u16]| {
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    };
    let word32 = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    let word64 = |bytes: &mut Vec<u8>, values: &[u64]| {
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    };
    word16(&mut bytes, &[2, 62]); // an executable, x86-64
    word32(&mut bytes, 1);
    word64(&mut bytes, &[HOME + HEADERS, 64, 0]); // entry, segments, no sections
    word32(&mut bytes, 0);
    word16(&mut bytes, &[64, 56, 1, 0, 0, 0]);
    word32(&mut bytes, 1); // a segment to load
    word32(&mut bytes, 5); // to read and execute
    word64(&mut bytes, &[0, HOME, HOME, SIZE, SIZE, 4096]);
    bytes.resize(SIZE as usize, 0xcc);
    bytes
}
