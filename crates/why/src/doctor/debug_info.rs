//! Looks for debug information of `why` itself and of the C library: in the file,
//! or in a separate file by build-id.

use std::env;
use std::fs;
use std::path::PathBuf;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use super::child::{Said, attempt};
use super::finding::{Finding, Verdict};

pub fn probe() -> Finding {
    let own = attempt(|| look(PathBuf::from("/proc/self/exe")));
    let libc = attempt(|| look(libc_path().ok_or("no libc mapped: linked statically")?));
    let server = env::var("DEBUGINFOD_URLS").is_ok_and(|urls| !urls.trim().is_empty());
    let server = if server { "set" } else { "not set" };
    let verdict = if own.is_ok() && libc.is_ok() { Verdict::Works } else { Verdict::Limited };
    let word = |said: Said| said.unwrap_or_else(|error| error);
    Finding::new(
        "debug info",
        verdict,
        format!("libc: {}; why: {}; DEBUGINFOD_URLS {server}", word(libc), word(own)),
        match verdict {
            Verdict::Works => "Answers can name lines inside the C library.",
            _ => {
                "Lines of your own program are named if you build it with -g; library code is \
                 named by function only."
            }
        },
        "Optional: apt install libc6-dbg",
    )
}

/// The library that this very process uses.
fn libc_path() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| {
            path.contains("/libc.so") || path.contains("/libc-") || path.contains("/ld-musl")
        })
        .map(PathBuf::from)
}

/// Where the debug information of a file is.
fn look(path: PathBuf) -> Said {
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(kind) = sections(&bytes) {
        return Ok(format!("{kind} in the file"));
    }
    let elf = ElfFile64::<object::Endianness>::parse(&*bytes).map_err(|error| error.to_string())?;
    let Ok(Some(id)) = elf.build_id() else {
        return Err("none, and no build-id to look for it".to_owned());
    };
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let separate = format!("/usr/lib/debug/.build-id/{}/{}.debug", &digits[..2], &digits[2..]);
    match fs::read(&separate) {
        Ok(bytes) if sections(&bytes).is_some() => Ok("in a separate file".to_owned()),
        Ok(_) => Err(format!("{separate} holds none")),
        Err(_) => Err("none".to_owned()),
    }
}

fn sections(bytes: &[u8]) -> Option<&'static str> {
    let elf = ElfFile64::<object::Endianness>::parse(bytes).ok()?;
    let filled = |name| elf.section_by_name(name).is_some_and(|section| section.size() > 0);
    match (filled(".debug_info"), filled(".debug_line")) {
        (true, true) => Some("lines and types"),
        (true, false) => Some("types"),
        _ => None,
    }
}
