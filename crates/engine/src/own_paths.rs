//! Paths that lead to descriptors of the process itself.

use crate::memory::{Address, Memory};

/// A path that a call is given, as far as it can be read.
pub fn path_at(memory: &Memory, at: Address) -> String {
    let mut bytes = vec![0; libc::PATH_MAX as usize];
    let got = memory.read(at, &mut bytes).unwrap_or(0);
    let path = bytes[..got].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(path).into_owned()
}

/// The descriptor that a path leads to, if it does so in the process itself.
pub fn named_by(path: &str, process: i32) -> Option<i32> {
    let own = format!("/proc/{process}/fd/");
    let number = match path {
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ => ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own]
            .into_iter()
            .find_map(|directory| path.strip_prefix(directory))?,
    };
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_descriptors_of_the_process_itself() {
        let named = |path| named_by(path, 17);
        assert_eq!(named("/dev/stdin"), Some(0));
        assert_eq!(named("/dev/stdout"), Some(1));
        assert_eq!(named("/dev/stderr"), Some(2));
        assert_eq!(named("/dev/fd/5"), Some(5));
        assert_eq!(named("/proc/self/fd/12"), Some(12));
        assert_eq!(named("/proc/17/fd/3"), Some(3));
        assert_eq!(named("/proc/18/fd/3"), None);
        assert_eq!(named("/proc/self/fd/"), None);
        assert_eq!(named("stdin"), None);
    }
}
