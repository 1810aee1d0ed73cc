//! Executable files in memory: which state of which file, and where.

use crate::memory::Address;
use rustc_hash::FxHasher;
use std::fs::Metadata;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long ago a file must have changed for another change to be sure to show in its
/// times: several ticks of the coarsest clock they come from.
const TICKS: Duration = Duration::from_secs(2);

/// A state of a file. A file that was written since has another change time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

impl Identity {
    pub fn of(metadata: &Metadata) -> Option<Identity> {
        metadata.is_file().then(|| Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// Code that comes from the kernel and not from a file: what it is, is its bytes.
    pub fn of_kernel_code(bytes: &[u8]) -> Identity {
        let mut hasher = FxHasher::default();
        bytes.hash(&mut hasher);
        Identity {
            device: 0,
            inode: hasher.finish(),
            size: bytes.len() as u64,
            modified: (0, 0),
            changed: (0, 0),
        }
    }

    /// A file of a recording: what it is, is its bytes, which are compared nevertheless, for
    /// anybody can have made the recording.
    pub fn of_content(hash: u128, size: u64) -> Identity {
        const OF_CONTENT: u64 = 1 << 63;
        Identity {
            device: OF_CONTENT | (hash >> 64) as u64,
            inode: hash as u64,
            size,
            modified: (0, 0),
            // Never settled.
            changed: (i64::MAX, 0),
        }
    }

    /// Whether whatever is written to the file from now on makes it another identity.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::new(self.changed.0.max(0) as u64, self.changed.1 as u32);
        changed.saturating_add(TICKS) < now
    }

    pub fn bytes(&self) -> Vec<u8> {
        let (m, c) = (self.modified, self.changed);
        [self.device, self.inode, self.size, m.0 as u64, m.1 as u64, c.0 as u64, c.1 as u64]
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }
}

/// Code of a file, mapped privately and not writable.
#[derive(Clone, Debug)]
pub struct Image {
    pub identity: Identity,
    pub range: Range<Address>,
    /// The address at which the file's first byte would lie. Offsets from it do not
    /// depend on where the image was loaded.
    pub bias: Address,
    /// Where in the file the mapping begins.
    pub start: u64,
    /// Its identity was settled when it was mapped.
    pub settled: bool,
}

impl Image {
    pub fn new(identity: Identity, range: Range<Address>, offset: u64) -> Image {
        let bias = range.start.wrapping_sub(offset);
        let settled = identity.is_settled();
        Image { identity, range, bias, start: offset, settled }
    }

    /// The address of an offset in the file.
    pub fn address(&self, offset: u32) -> Address {
        self.bias.wrapping_add(u64::from(offset))
    }

    /// The offset of an address in the file, where that is a number of 32 bits.
    pub fn offset(&self, address: Address) -> Option<u32> {
        u32::try_from(address.wrapping_sub(self.bias)).ok()
    }
}
