//! Whether an archive has been checked since the machine was started.
//!
//! An archive is checked in full, and compared with the image it was made from, when it
//! is first opened after a start of the machine; then it is sealed with the number of that
//! start and the moment of sealing, which also becomes the file's modification time.
//! Until the next start it is sound as long as nobody writes to it. The image cannot have
//! changed either, because a change would show in its identity, unless it came within the
//! same tick of the kernel's clock: so what was changed only just now is not sealed.

use crate::image::Identity;
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of the start, as text, then the moment.
pub const SEAL_BYTES: usize = START_BYTES + 16;
const START_BYTES: usize = 36;

/// How long ago an image must have changed for the change to be sure to show.
const TICKS: Duration = Duration::from_secs(2);

/// The number that the kernel has chosen for itself when it started.
fn this_start() -> Option<&'static [u8]> {
    static START: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let read = || std::fs::read("/proc/sys/kernel/random/boot_id").ok();
    let start = START.get_or_init(|| read().filter(|text| text.len() >= START_BYTES));
    start.as_deref().map(|text| &text[..START_BYTES])
}

/// Whether these bytes are the seal of a file with this metadata.
pub fn holds(seal: &[u8], metadata: &Metadata) -> bool {
    let moment = bytes_of(metadata.mtime(), metadata.mtime_nsec());
    let (start, sealed) = seal.split_at(START_BYTES);
    this_start().is_some_and(|this| start == this) && sealed == moment
}

/// Seals a file that has been checked, at an offset in it; or does not, if it cannot.
pub fn put(file: &File, offset: u64, image: &Identity) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(image.changed.0.max(0) as u64, image.changed.1 as u32);
    let Some(start) = this_start().filter(|_| changed + TICKS < now) else {
        return Ok(());
    };
    let moment = bytes_of(now.as_secs() as i64, i64::from(now.subsec_nanos()));
    file.write_all_at(&[start, &moment].concat(), offset)?;
    let time = TimeSpec::from(now);
    futimens(file, &time, &time).map_err(io::Error::from)
}

fn bytes_of(seconds: i64, nanoseconds: i64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    bytes
}
