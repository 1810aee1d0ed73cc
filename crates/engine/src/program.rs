//! Finding the program, and saying in one line why it cannot be run.

use crate::error::EngineError;
use object::elf;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

fn refuse(status: u8, program: &Path, why: &str) -> EngineError {
    let message = format!("cannot run {}: {why}", program.display());
    EngineError::CannotStart { status, message }
}

/// The file that a command name stands for, checked.
pub fn find(name: &OsStr) -> Result<PathBuf, EngineError> {
    let path = locate(name)?;
    check(&path, &path, 0)?;
    Ok(path)
}

/// As the shell does: a name without a slash is looked up in PATH.
fn locate(name: &OsStr) -> Result<PathBuf, EngineError> {
    let given = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return Ok(given.to_owned());
    }
    let missing = || {
        let why = "no such program in PATH; give its path, such as ./NAME, if it is elsewhere";
        refuse(NOT_FOUND, given, why)
    };
    if name.is_empty() {
        return Err(missing());
    }
    let search: OsString = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let candidates: Vec<PathBuf> =
        std::env::split_paths(&search).map(|dir| dir.join(name)).filter(|p| p.is_file()).collect();
    let executable = candidates.iter().find(|path| is_executable(path));
    executable.or(candidates.first()).cloned().ok_or_else(missing)
}

fn is_executable(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Follows scripts to their interpreters, as the kernel does.
fn check(program: &Path, path: &Path, depth: usize) -> Result<(), EngineError> {
    let refuse = |status, why: &str| {
        let why = if path == program {
            why.to_owned()
        } else {
            format!("its interpreter {}: {why}", path.display())
        };
        Err(refuse(status, program, &why))
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refuse(NOT_FOUND, "no such file; check the path");
        }
        Err(error) => return refuse(NOT_RUNNABLE, &error.to_string()),
    };
    if metadata.is_dir() {
        return refuse(NOT_RUNNABLE, "it is a directory; name a program in it");
    }
    if !metadata.is_file() {
        return refuse(NOT_RUNNABLE, "it is not a regular file");
    }
    if !is_executable(path) {
        return refuse(NOT_RUNNABLE, "it is not executable; `chmod +x` it if it should be");
    }
    if changes_identity(&metadata) {
        let why = "it is set-user-ID or set-group-ID, and the kernel takes these rights from a \
                   traced program; run it as that user";
        return refuse(NOT_RUNNABLE, why);
    }
    let mut head = Vec::new();
    match File::open(path) {
        Ok(file) => drop(file.take(256).read_to_end(&mut head)),
        // Executable and not readable: the engine could not read its code either.
        Err(error) => return refuse(NOT_RUNNABLE, &format!("it cannot be read: {error}")),
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let end = line.iter().position(|&b| b == b'\n').unwrap_or(line.len());
        let line = line[..end].trim_ascii();
        let name = line.split(|&b| b == b' ' || b == b'\t').next().unwrap_or(line);
        if depth >= 4 || name.is_empty() {
            return refuse(NOT_RUNNABLE, "its first line names no interpreter");
        }
        return check(program, Path::new(OsStr::from_bytes(name)), depth + 1);
    }
    match elf_defect(&head, metadata.len()) {
        Some(why) => refuse(NOT_RUNNABLE, why),
        None => Ok(()),
    }
}

fn changes_identity(metadata: &fs::Metadata) -> bool {
    let mode = metadata.permissions().mode();
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    mode & 0o4000 != 0 && metadata.uid() != user.as_raw()
        || mode & 0o2010 == 0o2010 && metadata.gid() != group.as_raw()
}

/// What is wrong with an ELF header, of which `head` is the beginning.
fn elf_defect(head: &[u8], size: u64) -> Option<&'static str> {
    let field = |at: usize, length: usize| -> Option<u64> {
        let bytes = head.get(at..at + length)?;
        Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    };
    if !head.starts_with(&elf::ELFMAG) {
        return Some("it is neither an ELF program nor a script with a #! line");
    }
    if head.get(4) == Some(&elf::ELFCLASS32) {
        return Some("it is a 32-bit program; only 64-bit ones (x86-64) can be run");
    }
    const TRUNCATED: Option<&str> = Some("it is a truncated ELF file; build or copy it again");
    let Some(machine) = field(18, 2) else {
        return TRUNCATED;
    };
    if machine != u64::from(elf::EM_X86_64) {
        return Some("it is made for another processor; only x86-64 programs can be run");
    }
    let (Some(kind), Some(table), Some(entry), Some(count)) =
        (field(16, 2), field(32, 8), field(54, 2), field(56, 2))
    else {
        return TRUNCATED;
    };
    if kind != u64::from(elf::ET_EXEC) && kind != u64::from(elf::ET_DYN) {
        return Some("it is an ELF file, but not a program");
    }
    if table.saturating_add(entry * count) > size {
        return TRUNCATED;
    }
    None
}
