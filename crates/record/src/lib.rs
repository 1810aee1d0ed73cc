//! Recordings: what happened to a program that it could not have computed itself.
//!
//! A recording is a directory. `manifest.json` says what was recorded, `events/` holds a
//! [`stream`] of [`event`]s for each process, `files/` the bytes of files that were
//! mapped or read.
//! Nothing here knows how a program is run.

pub mod chunks;
pub mod cpu;
pub mod event;
pub mod files;
pub mod manifest;
pub mod pack;
pub mod position;
pub mod registers;
pub mod remedy;
pub mod store;
#[cfg(test)]
mod strangers;
pub mod stream;
pub mod summary;
pub mod sums;
pub mod unpacked;
pub mod vectors;

/// The version of everything in a recording.
pub const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{what}: {source}{}", remedy::behind(source))]
    System { what: String, source: std::io::Error },
    #[error("{what} is damaged: {how}; record the program again")]
    Damaged { what: String, how: String },
    #[error(
        "{what} was recorded in version {version} of the format, and this why reads version \
         {VERSION}; use the one it was recorded with, or a newer one"
    )]
    OtherVersion { what: String, version: u32 },
    #[error("{what} is damaged: {how}; get it again from where it was packed")]
    DamagedPack { what: String, how: String },
    #[error(
        "{what} is neither a recording nor a packed one; `why record` and `why pack` make them"
    )]
    Foreign { what: String },
    #[error("{0}")]
    NotFound(String),
}

pub type Result<T> = std::result::Result<T, RecordError>;

impl RecordError {
    /// There is no room for what is to be recorded.
    pub fn is_full(&self) -> bool {
        matches!(self, RecordError::System { source, .. } if remedy::is_full(source))
    }

    pub fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> RecordError {
        let what = what.into();
        |source| RecordError::System { what, source }
    }

    pub fn damaged(what: impl ToString, how: impl ToString) -> RecordError {
        RecordError::Damaged { what: what.to_string(), how: how.to_string() }
    }
}
