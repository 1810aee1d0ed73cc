//! Where the chunks of a region are: in memory, or in a file.

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;

pub enum Store {
    Memory(Vec<u8>),
    File { file: File, size: u64 },
}

/// Bytes in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stored {
    at: u64,
    size: u64,
}

impl Store {
    /// A file, behind what it holds.
    pub fn file(file: File) -> Result<Store> {
        let size = file.metadata()?.len();
        Ok(Store::File { file, size })
    }

    pub fn add(&mut self, bytes: &[u8]) -> Result<Stored> {
        let at = match self {
            Store::Memory(all) => {
                let at = all.len() as u64;
                all.extend_from_slice(bytes);
                at
            }
            Store::File { file, size } => {
                file.write_all_at(bytes, *size)?;
                let at = *size;
                *size += bytes.len() as u64;
                at
            }
        };
        Ok(Stored { at, size: bytes.len() as u64 })
    }

    /// Damage may have made of a place anything.
    pub fn read(&self, Stored { at, size }: Stored) -> Result<Vec<u8>> {
        let end = at.checked_add(size).filter(|end| *end <= self.size());
        if end.is_none() {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        match self {
            Store::Memory(all) => Ok(all[at as usize..(at + size) as usize].to_vec()),
            Store::File { file, .. } => {
                let mut bytes = vec![0; size as usize];
                file.read_exact_at(&mut bytes, at)?;
                Ok(bytes)
            }
        }
    }

    fn size(&self) -> u64 {
        match self {
            Store::Memory(all) => all.len() as u64,
            Store::File { size, .. } => *size,
        }
    }
}
