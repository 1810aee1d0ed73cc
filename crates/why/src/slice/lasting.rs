//! What slices of a trace leave for those of further processes, besides answers: what they decoded
//! of it, which takes its place, and what they learnt of ways over its code, which is beside it.

use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use why_slice::region::Region;

/// It is kept when nobody slices the trace any more.
pub struct Lasting {
    region: Arc<Region>,
    trace: PathBuf,
    /// If that is to be kept.
    decoded: Option<Decoded>,
}

impl Lasting {
    /// Of a trace in a file, of which it is told which one that was.
    pub fn of(trace: &Path, was: FileId, region: &Arc<Region>) -> Lasting {
        region.share_learnt(&std::fs::read(learnt(trace)).unwrap_or_default());
        let decoded = Decoded::of(trace, was, region);
        Lasting { region: Arc::clone(region), trace: trace.to_owned(), decoded }
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        if let Some(decoded) = self.decoded.take() {
            decoded.finish(&self.region, &self.trace);
        }
        if let Some(bytes) = self.region.learnt() {
            // If another process writes it at the same time, it is seen that what comes of it is none.
            let unfinished = self.trace.with_extension("learning");
            let written = std::fs::write(&unfinished, bytes);
            // It only makes slices faster: where there is no room, there is none of it.
            let _ = match written {
                Ok(()) => std::fs::rename(&unfinished, learnt(&self.trace)),
                Err(_) => std::fs::remove_file(&unfinished),
            };
        }
    }
}

fn learnt(trace: &Path) -> PathBuf {
    trace.with_extension("learnt")
}

/// What is decoded of a trace while somebody slices it.
struct Decoded {
    unfinished: PathBuf,
    /// Which file the trace was.
    was: FileId,
    /// Nobody else does so meanwhile.
    _lock: Flock<File>,
}

impl Decoded {
    /// None if there is nothing to decode or no room for it, or if another process does so. What one
    /// has left that was killed is overwritten.
    fn of(trace: &Path, was: FileId, region: &Region) -> Option<Decoded> {
        if !region.can_remember() {
            return None;
        }
        let unfinished = trace.with_extension("decoded");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&unfinished);
        let file = Flock::lock(file.ok()?, FlockArg::LockExclusiveNonblock).ok()?;
        // Meanwhile another process may have finished it: then it is the trace.
        if FileId::from(file.metadata().ok()?) != FileId::at(&unfinished).ok()? {
            return None;
        }
        file.set_len(0).ok()?;
        region.remember_in(file.try_clone().ok()?).ok()?;
        Some(Decoded { unfinished, was, _lock: file })
    }

    fn finish(self, region: &Region, trace: &Path) {
        // A trace that turned out to be damaged was deleted meanwhile, and another may be there.
        let is_there = || FileId::at(trace).is_ok_and(|there| there == self.was);
        let finished = region.finish_remembered().unwrap_or(false);
        // Whatever fails, the trace is there as it was.
        let _ = match finished && is_there() {
            true => std::fs::rename(&self.unfinished, trace),
            false => std::fs::remove_file(&self.unfinished),
        };
    }
}

/// What tells a file from one that takes its place.
#[derive(PartialEq, Eq)]
pub struct FileId(u64, u64);

impl FileId {
    fn at(path: &Path) -> std::io::Result<FileId> {
        Ok(FileId::from(std::fs::metadata(path)?))
    }
}

impl From<Metadata> for FileId {
    fn from(metadata: Metadata) -> FileId {
        FileId(metadata.dev(), metadata.ino())
    }
}
