//! What to do about what the system refused.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use std::fmt;
use std::io::{Error, ErrorKind};

/// Whether there is no room for a file.
pub fn is_full(error: &Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    [StorageFull, QuotaExceeded, FileTooLarge].contains(&error.kind())
}

/// What can be done, if the error tells that much.
pub fn known(error: &Error) -> Option<String> {
    match error.kind() {
        ErrorKind::FileTooLarge => {
            Some("files may be no larger here: raise `ulimit -f`".to_owned())
        }
        _ if is_full(error) => Some("free some space there".to_owned()),
        ErrorKind::OutOfMemory => address_space().map(|_| LessMemory.to_string()),
        _ => None,
    }
}

/// How much address space this process may have, if that is limited.
pub fn address_space() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (limit != RLIM_INFINITY).then_some(limit)
}

/// What to do where there is no more memory. It is told without any.
pub struct LessMemory;

impl fmt::Display for LessMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match address_space() {
            Some(limit) => {
                write!(f, "`ulimit -v` allows {} KB of address space: raise it", limit / 1024)
            }
            None => write!(f, "end other programs that take much"),
        }
    }
}

/// For the end of a message.
pub fn behind(error: &Error) -> String {
    known(error).map_or(String::new(), |remedy| format!("; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_what_was_refused() {
        let behind = |number| behind(&Error::from_raw_os_error(number));
        assert_eq!(behind(nix::libc::ENOSPC), "; free some space there");
        assert_eq!(behind(nix::libc::EDQUOT), "; free some space there");
        assert!(behind(nix::libc::EFBIG).contains("ulimit -f"));
        assert_eq!(behind(nix::libc::ENOENT), "");
    }
}
