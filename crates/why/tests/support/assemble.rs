//! Programs made of assembly alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::package;

/// The program in a directory, executed from the first of the given instructions
/// on. No C library: it executes no others.
pub fn program(assembly: &str, dir: &Path) -> Result<PathBuf, String> {
    let (source, out) = (dir.join("case.S"), dir.join("case"));
    let text = format!(
        ".intel_syntax noprefix\n .globl _start\n _start: {assembly}\
         .section .note.GNU-stack,\"\",@progbits\n",
    );
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let output = Command::new(package::find("cc")?)
        .args(["-nostdlib", "-static", "-o"])
        .args([&out, &source])
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    if output.status.success() {
        Ok(out)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
