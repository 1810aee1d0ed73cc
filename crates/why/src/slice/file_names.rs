//! Names for files that are shown together: as short as they can be told apart by.

use std::collections::{BTreeSet, HashMap};

/// The last part of each path, with as many before it as no other path ends with.
pub fn of<'a>(paths: impl Iterator<Item = &'a str>) -> HashMap<&'a str, &'a str> {
    let paths: BTreeSet<&str> = paths.collect();
    let name = |path: &'a str| {
        let starts = path.rmatch_indices('/').map(|(at, _)| at + 1);
        let mut names = starts.map(|at| &path[at..]);
        let is_only = |name: &&str| !paths.iter().any(|other| *other != path && ends(other, name));
        names.find(is_only).unwrap_or(path)
    };
    paths.iter().map(|path| (*path, name(path))).collect()
}

fn ends(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_are_told_by_what_they_differ_in() {
        let paths = ["/src/a/m.c", "/src/b/m.c", "/src/n.c", "/lib/x/b/m.c", "m.c"];
        let names = super::of(paths.into_iter());
        let told = paths.map(|path| names[path]);
        assert_eq!(told, ["a/m.c", "src/b/m.c", "n.c", "x/b/m.c", "m.c"]);
    }
}
