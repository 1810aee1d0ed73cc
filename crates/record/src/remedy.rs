//! What to do about what the system refused.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
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
        ErrorKind::OutOfMemory => limited_memory(),
        _ => None,
    }
}

/// If this process may not have more memory, however much there is.
pub fn limited_memory() -> Option<String> {
    let limit = getrlimit(Resource::RLIMIT_AS).map_or(RLIM_INFINITY, |(limit, _)| limit);
    let kilobytes = limit / 1024;
    (limit != RLIM_INFINITY)
        .then(|| format!("`ulimit -v` allows {kilobytes} KB of address space: raise it"))
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
