//! The first difference between two outcomes, in words a person can act on.

use crate::support::outcome::{Entry, Outcome};

/// Err says every part that differs, each with its first differing line.
pub fn same(native: &Outcome, under_why: &Outcome) -> Result<(), String> {
    let mut differences = Vec::new();
    if native.ended != under_why.ended {
        differences.push(format!(
            "it ended differently: native {}, under why {}",
            native.ended, under_why.ended
        ));
    }
    differences.extend(text("standard output", &native.stdout, &under_why.stdout));
    differences.extend(text("standard error", &native.stderr, &under_why.stderr));
    differences.extend(files(native, under_why));
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

fn files(native: &Outcome, under_why: &Outcome) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, entry) in &native.files {
        match under_why.files.get(name) {
            None => differences.push(format!("the file {name} is missing under why")),
            Some(other) => differences.extend(entries(name, entry, other)),
        }
    }
    for name in under_why.files.keys() {
        if !native.files.contains_key(name) {
            differences.push(format!("the file {name} exists only under why"));
        }
    }
    differences
}

fn entries(name: &str, native: &Entry, under_why: &Entry) -> Option<String> {
    match (native, under_why) {
        (Entry::File { mode: a, bytes: x }, Entry::File { mode: b, bytes: y }) if a == b => {
            text(&format!("the file {name}"), x, y)
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{name} differs: native {}, under why {}", kind(a), kind(b))),
    }
}

fn kind(entry: &Entry) -> String {
    match entry {
        Entry::File { mode, bytes } => format!("a file of {} bytes, mode {mode:o}", bytes.len()),
        Entry::Directory { mode } => format!("a directory, mode {mode:o}"),
        Entry::Symlink(target) => format!("a symbolic link to {target}"),
        Entry::Other(kind) => format!("a {kind}"),
    }
}

fn text(what: &str, native: &[u8], under_why: &[u8]) -> Option<String> {
    if native == under_why {
        return None;
    }
    let (a, b) = (lines(native), lines(under_why));
    let at = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    Some(format!(
        "{what} differs from line {}:\n  native:    {}\n  under why: {}",
        at + 1,
        from(&a, at),
        from(&b, at)
    ))
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').collect()
}

/// A few lines from the first difference on; a whole stream would bury it.
fn from(lines: &[&[u8]], at: usize) -> String {
    const SHOWN_LINES: usize = 6;
    const SHOWN_BYTES: usize = 400;
    if at == lines.len() {
        return "<its end>".into();
    }
    let shown = lines[at..lines.len().min(at + SHOWN_LINES)].concat();
    let cut = &shown[..shown.len().min(SHOWN_BYTES)];
    let more =
        if lines.len() > at + SHOWN_LINES || shown.len() > SHOWN_BYTES { " …" } else { "" };
    format!("{:?}{more}", String::from_utf8_lossy(cut))
}
