//! What gdb says of the same program, run natively, at the same place.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub struct Question<'a> {
    pub program: &'a Path,
    pub arguments: &'a [&'a str],
    /// Where to break, or `crash`.
    pub place: &'a str,
    pub number: u64,
    pub expressions: &'a [&'a str],
}

impl Question<'_> {
    pub fn ask(&self) -> Value {
        let out = self.program.with_extension("gdb");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/print/ask.py");
        let output = Command::new("gdb")
            .args(["-batch", "-nx", "-q", "-x"])
            .arg(script)
            .arg("--args")
            .arg(self.program)
            .args(self.arguments)
            .env("WHERE", self.place)
            .env("NUMBER", self.number.to_string())
            .env("EXPRESSIONS", serde_json::to_string(self.expressions).unwrap())
            .env("OUT", &out)
            .output()
            .expect("gdb is there: ./setup installs it");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer = std::fs::read(&out).unwrap_or_else(|error| panic!("gdb: {error}: {said}"));
        serde_json::from_slice(&answer).unwrap()
    }
}

/// A value without what differs from run to run, or only in how it is written.
pub fn normal(text: &str) -> String {
    let address = regex::Regex::new("0x[0-9a-f]{5,}").unwrap();
    let text = address.replace_all(text, "ADDRESS");
    let reference = regex::Regex::new("^@ADDRESS: ").unwrap();
    let text = reference.replace(&text, "");
    // Code that the linker makes has no name but those that gdb gives it.
    let made = regex::Regex::new(" <[a-z]+@plt>").unwrap();
    // Of several names for the same, gdb takes another one.
    let underscores = regex::Regex::new("<_+").unwrap();
    let text = underscores.replace(&text, "<");
    made.replace(&text, "").replace("<optimized out>", "<optimised out>")
}

/// A function without its parameters, whose types gdb writes, and without the prefix that the
/// C library gives what it calls itself.
pub fn function(name: &str) -> &str {
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    name.split('(').next().unwrap_or(name)
}
