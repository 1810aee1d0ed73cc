//! What cannot be run gets one clear line and the status a shell would give, and
//! leaves nothing running.

mod support;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};

use support::job::{Before, Job};
use support::outcome::{Ended, Outcome};
use support::package;
use support::run;
use support::why::WHY;

/// Makes the bad thing in a directory and names the arguments of `why`.
type Make = fn(&Path) -> Result<Vec<OsString>, String>;

struct Case {
    name: &'static str,
    make: Make,
    /// The statuses that are right; more than one where shells differ.
    statuses: &'static [i32],
}

const CASES: &[Case] = &[
    Case { name: "a missing file", make: |dir| run_of(dir, "missing"), statuses: &[127] },
    Case {
        name: "a missing file below a file",
        make: |dir| file(dir, "plain", b"x", 0o755).and_then(|_| run_of(dir, "plain/missing")),
        statuses: &[126, 127],
    },
    Case {
        name: "a command not on the path",
        make: |_| Ok(words(&["run", "--", "no-such-command"])),
        statuses: &[127],
    },
    Case {
        name: "a directory",
        make: |dir| {
            fs::create_dir(dir.join("directory")).map_err(|error| error.to_string())?;
            run_of(dir, "directory")
        },
        statuses: &[126],
    },
    Case {
        name: "a file that is not executable",
        make: |dir| file(dir, "plain", b"#!/bin/sh\necho ran\n", 0o644),
        statuses: &[126],
    },
    Case { name: "an empty file", make: |dir| file(dir, "empty", b"", 0o755), statuses: &[126] },
    Case {
        name: "a text without interpreter",
        make: |dir| file(dir, "text", b"just words\n", 0o755),
        statuses: &[126],
    },
    Case {
        name: "a 32-bit ELF",
        make: |dir| file(dir, "elf32", &elf_header(1, 3), 0o755),
        statuses: &[126],
    },
    Case {
        name: "a foreign ELF",
        make: |dir| file(dir, "aarch64", &elf_header(2, 183), 0o755),
        statuses: &[126],
    },
    Case { name: "a truncated ELF", make: truncated, statuses: &[126] },
    Case { name: "an ELF whose loader is missing", make: missing_loader, statuses: &[126, 127] },
    Case {
        name: "a script whose interpreter is missing",
        make: |dir| file(dir, "script", b"#!/no/such/interpreter\necho ran\n", 0o755),
        statuses: &[126, 127],
    },
    Case {
        name: "a script whose interpreter is a directory",
        make: |dir| file(dir, "script", b"#!/usr\necho ran\n", 0o755),
        statuses: &[126],
    },
    Case { name: "no command", make: |_| Ok(words(&["run"])), statuses: &[125] },
    Case { name: "no command after --", make: |_| Ok(words(&["run", "--"])), statuses: &[125] },
    Case {
        name: "an unknown option",
        make: |_| Ok(words(&["run", "--no-such-option", "--", "echo", "ran"])),
        statuses: &[125],
    },
    Case {
        name: "an unknown tool",
        make: |_| Ok(words(&["run", "--tool", "no-such-tool", "--", "echo", "ran"])),
        statuses: &[125],
    },
    Case {
        name: "a report that cannot be written",
        make: |_| Ok(words(&["run", "--json=/no/such/directory/report", "--", "echo", "ran"])),
        statuses: &[125],
    },
];

fn main() {
    let mut trials: Vec<Trial> =
        CASES.iter().map(|case| Trial::test(case.name, || test(case))).collect();
    trials.push(Trial::test("a set-uid program", set_uid));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn test(case: &Case) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let job = Job::new(WHY).args((case.make)(dir.path())?);
    refused(&run::run(&job)?, case.statuses)
}

/// As an ordinary user: a tracer without privileges would take them from it, and
/// it would quietly do something else than natively.
fn set_uid() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let why = dir.path().join("why");
    fs::copy(WHY, &why)?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let job = if nix::unistd::geteuid().is_root() {
        let program = dir.path().join("set-uid");
        fs::copy("/usr/bin/id", &program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
        Job::new(why).args(run_of(dir.path(), "set-uid")?).before(Before::Nobody)
    } else {
        Job::new(why).args(["run", "--", "/usr/bin/passwd", "--status"])
    };
    refused(&run::run(&job)?, &[126])
}

fn refused(outcome: &Outcome, statuses: &[i32]) -> Result<(), Failed> {
    let said = String::from_utf8_lossy(&outcome.stderr);
    if !statuses.iter().any(|&status| outcome.ended == Ended::Status(status)) {
        return Err(format!("{}, not {statuses:?}; it said {said:?}", outcome.ended).into());
    }
    if !outcome.stdout.is_empty() {
        return Err("it wrote to standard output".into());
    }
    if said.lines().count() != 1 || !said.ends_with('\n') || said.trim().is_empty() {
        return Err(format!("not one line on standard error: {said:?}").into());
    }
    Ok(())
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn run_of(dir: &Path, name: &str) -> Result<Vec<OsString>, String> {
    Ok(vec!["run".into(), "--".into(), dir.join(name).into()])
}

fn file(dir: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<Vec<OsString>, String> {
    let path = dir.join(name);
    fs::write(&path, bytes)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    run_of(dir, name)
}

/// The header of an executable without segments, of a class (1: 32-bit, 2: 64-bit)
/// and for a machine.
fn elf_header(class: u8, machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    bytes[16] = 2;
    bytes[18] = machine;
    bytes[20] = 1;
    bytes
}

/// It ends within the program headers.
fn truncated(dir: &Path) -> Result<Vec<OsString>, String> {
    let whole = fs::read("/usr/bin/true").map_err(|error| format!("/usr/bin/true: {error}"))?;
    file(dir, "truncated", &whole[..100], 0o755)
}

fn missing_loader(dir: &Path) -> Result<Vec<OsString>, String> {
    let source = dir.join("main.c");
    fs::write(&source, "int main(void) { return 0; }").map_err(|error| error.to_string())?;
    let status = std::process::Command::new(package::find("cc")?)
        .args(["-Wl,--dynamic-linker=/no/such/loader", "-o"])
        .args([&dir.join("program"), &source])
        .status()
        .map_err(|error| format!("cc: {error}"))?;
    if status.success() { run_of(dir, "program") } else { Err("cc failed".into()) }
}
