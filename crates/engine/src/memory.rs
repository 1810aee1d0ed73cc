//! Reading and writing the target's memory.

use crate::error::{EngineError, Result};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

/// An address in the target, which must never be dereferenced here.
pub type Address = u64;

pub const PAGE: u64 = 4096;

pub fn page_of(address: Address) -> Address {
    address & !(PAGE - 1)
}

/// Access to one address space, whatever its pages' protection.
pub struct Memory(File);

impl Memory {
    pub fn open(tid: i32) -> Result<Memory> {
        let path = format!("/proc/{tid}/mem");
        File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map(Memory)
            .map_err(EngineError::system(format!("opening {path}")))
    }

    /// Reads as much as is mapped.
    pub fn read(&self, at: Address, buffer: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < buffer.len() {
            match self.0.read_at(&mut buffer[got..], at + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if got == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(got)
    }

    pub fn read_exact(&self, at: Address, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, at)
    }

    /// Reads in half the time, where the program itself may read, the memory that a thread of
    /// ours has: it is stopped, so no other has got its number.
    pub fn read_of_stopped(&self, tid: i32, at: Address, buffer: &mut [u8]) -> io::Result<()> {
        let there = [RemoteIoVec { base: at as usize, len: buffer.len() }];
        let got = process_vm_readv(Pid::from_raw(tid), &mut [IoSliceMut::new(buffer)], &there);
        if got == Ok(buffer.len()) { Ok(()) } else { self.read_exact(at, buffer) }
    }

    pub fn read_u64(&self, at: Address) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read_exact(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn write(&self, at: Address, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    pub fn write_u64(&self, at: Address, value: u64) -> io::Result<()> {
        self.write(at, &value.to_le_bytes())
    }
}
