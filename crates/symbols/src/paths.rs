//! The paths of source files, as compilers write them down and as people name them.

/// A path that is told from a directory, unless it is a whole one.
pub fn joined(directory: &str, path: &str) -> String {
    let parts = match directory {
        _ if path.starts_with('/') => path.to_owned(),
        "" => path.to_owned(),
        directory => format!("{directory}/{path}"),
    };
    without_dots(&parts)
}

/// Without the parts that lead nowhere.
fn without_dots(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    root.to_owned() + &parts.join("/")
}

/// One name for each file: without the ways up and down again.
pub fn plain(path: &str) -> String {
    let path = without_dots(path);
    let root = if path.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.trim_start_matches('/').split('/') {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    root.to_owned() + &parts.join("/")
}

/// Whether a path is the one that was asked for, or ends with it.
pub fn is_meant(path: &str, asked: &str) -> bool {
    let (path, asked) = (plain(path), plain(asked));
    // From which directory it goes up is not known.
    let asked = asked.trim_start_matches("../");
    path == asked || path.strip_suffix(asked).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_meant_by_its_last_parts() {
        assert!(is_meant("/src/a/b.c", "b.c"));
        assert!(is_meant("/src/a/b.c", "a/b.c"));
        assert!(is_meant("/src/a/b.c", "/src/a/b.c"));
        assert!(is_meant("b.c", "./b.c"));
        assert!(is_meant("/src/build/../a/b.c", "/src/a/b.c"));
        assert!(is_meant("/src/build/../a/b.c", "../a/b.c"));
        assert!(!is_meant("/src/ab.c", "b.c"));
        assert!(!is_meant("/src/a/b.c", "/a/b.c"));
    }

    #[test]
    fn paths_are_told_from_directories() {
        assert_eq!(joined("/src", "a/b.c"), "/src/a/b.c");
        assert_eq!(joined("/src", "./b.c"), "/src/b.c");
        assert_eq!(joined("/src", "/b.c"), "/b.c");
        assert_eq!(joined(".", "b.c"), "b.c");
        assert_eq!(joined("", "b.c"), "b.c");
        assert_eq!(joined("/src/build", "../b.c"), "/src/build/../b.c");
    }
}
