//! What slices of a trace leave for those of further processes, besides answers: what they decoded
//! of it, which takes its place, and what they learnt of ways over its code, which is beside it.

use super::unfinished::{self, FileId, Unfinished};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use why_slice::region::Region;

/// It is kept when nobody slices the trace any more.
pub struct Lasting {
    region: Arc<Region>,
    trace: PathBuf,
    /// Which file that was.
    was: FileId,
    /// If there is anything to decode, and room for it, and no other process does so.
    decoded: Option<Unfinished>,
}

impl Lasting {
    /// Of a trace in a file, of which it is told which one that was.
    pub fn of(trace: &Path, was: FileId, region: &Arc<Region>) -> Lasting {
        region.share_learnt(&std::fs::read(learnt(trace)).unwrap_or_default());
        let path = trace.with_extension(unfinished::DECODED);
        let decoded = match region.can_remember() {
            true => decoded(path, region).unwrap_or(None),
            false => {
                Unfinished::clear(path);
                None
            }
        };
        Lasting { region: Arc::clone(region), trace: trace.to_owned(), was, decoded }
    }

    /// A trace that turned out to be damaged was deleted meanwhile, and another may be there; or
    /// another process has decoded it.
    fn is_there(&self) -> bool {
        FileId::at(&self.trace).is_ok_and(|there| there == self.was)
    }

    /// Whatever fails, the trace is there as it was: this only makes slices faster.
    fn keep(&mut self) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        if let Some(decoded) = self.decoded.take()
            && self.region.finish_remembered().unwrap_or(false)
        {
            // What was learnt is of what was decoded from here on.
            if !self.is_there() {
                return Ok(());
            }
            decoded.take_place(&self.trace)?;
        }
        let learning = self.trace.with_extension(unfinished::LEARNING);
        if let Some(bytes) = self.region.learnt()
            && let Some(mut learning) = Unfinished::at(learning)?
        {
            learning.file.write_all(&bytes)?;
            learning.take_place(&learnt(&self.trace))?;
        }
        Ok(())
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let _ = self.keep();
    }
}

/// Where what is decoded from now on is kept.
fn decoded(path: PathBuf, region: &Region) -> io::Result<Option<Unfinished>> {
    let Some(unfinished) = Unfinished::at(path)? else { return Ok(None) };
    let is_kept = region.remember_in(unfinished.file.try_clone()?).is_ok();
    Ok(Some(unfinished).filter(|_| is_kept))
}

/// Where it is kept what was learnt of a trace.
pub fn learnt(trace: &Path) -> PathBuf {
    trace.with_extension("learnt")
}
