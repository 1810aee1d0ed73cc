//! Programs of these tests that were recorded.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub const WHY: &str = env!("CARGO_BIN_EXE_why");

/// A program of these tests that was recorded.
pub struct Recorded {
    pub directory: TempDir,
    pub source: PathBuf,
    pub program: PathBuf,
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Recorded {
    pub fn new(name: &str, compiler: &[&str], arguments: &[&str]) -> Recorded {
        let built = Recorded::built("cc", name, &[compiler, &["-pthread", "-lm"]].concat());
        built.record(arguments);
        built
    }

    /// Recorded with more in its environment.
    pub fn recorded_with(name: &str, environment: &[(&str, &str)]) -> Recorded {
        let built = Recorded::built("cc", name, &["-g", "-O0"]);
        let program = built.program.to_str().unwrap();
        let mut record = built.command(&["record", "--", program]);
        let recorded = record.envs(environment.iter().copied()).output().unwrap();
        assert_ne!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
        built
    }

    pub fn built(compiler: &str, name: &str, options: &[&str]) -> Recorded {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slice").join(name);
        let program = directory.path().join(name.split('.').next().unwrap());
        let built = Recorded { directory, source, program };
        built.build(compiler, &built.source, options);
        built
    }

    /// Builds the program anew, of a copy of its source.
    pub fn build(&self, compiler: &str, source: &Path, options: &[&str]) {
        let mut command = Command::new(compiler);
        command.arg(source).arg("-o").arg(&self.program).args(options);
        let built = command.output().unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
    }

    pub fn record(&self, arguments: &[&str]) {
        let program = self.program.to_str().unwrap();
        let recorded = self.why(&[&["record", "--", program], arguments].concat());
        assert_ne!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
    }

    pub fn why(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let recordings = self.directory.path().join("recordings");
        let mut why = Command::new(WHY);
        why.args(arguments).env("WHY_DIR", recordings);
        // To tell where it panicked, a program would execute a thousand times as much.
        why.env("RUST_BACKTRACE", "0");
        why
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.why(&[arguments, &["--json", "--lines=1000"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The only message of a command that has no answer.
    pub fn refused(&self, arguments: &[&str], status: i32) -> String {
        let output = self.why(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
        assert_eq!(message.lines().count(), 1, "{message}");
        message
    }

    /// The comments of the lines that an answer has.
    pub fn comments(&self, answer: &Value) -> BTreeSet<String> {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let lines: Vec<&str> = source.lines().collect();
        let numbers = answer["answer"]["lines"].as_array().unwrap().iter();
        let comment = |line: &Value| {
            let text = lines[line["line"].as_u64()? as usize - 1];
            let (_, comment) = text.split_once("/* ").or_else(|| text.split_once("// "))?;
            Some(comment.trim_end_matches(" */").to_owned())
        };
        numbers.filter_map(comment).collect()
    }

    /// The line of an answer that has a comment.
    pub fn line<'a>(&self, answer: &'a Value, comment: &str) -> &'a Value {
        let place = self.place(comment);
        let mut lines = answer["answer"]["lines"].as_array().unwrap().iter();
        lines
            .find(|line| line["place"] == *place)
            .unwrap_or_else(|| panic!("{comment}: {answer:#}"))
    }

    /// What is told of the line that has a comment, if anything is.
    pub fn made(&self, answer: &Value, comment: &str) -> Option<String> {
        let line = self.line(answer, comment);
        Some(format!("{} = {}", line["variable"].as_str()?, line["value"].as_str()?))
    }

    /// The comments of the lines between which an answer has races: of the write and the read.
    pub fn races(&self, answer: &Value) -> Vec<(String, String)> {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let comment = |place: &Value| {
            let (_, line) = place.as_str().unwrap().rsplit_once(':')?;
            let text = source.lines().nth(line.parse::<usize>().ok()? - 1)?;
            Some(text.split_once("/* ")?.1.trim_end_matches(" */").to_owned())
        };
        let told = |race: &Value, party: &str| {
            let place = &race[party]["place"];
            comment(place).unwrap_or_else(|| place.to_string())
        };
        let races = answer["answer"]["races"].as_array().unwrap().iter();
        races.map(|race| (told(race, "write"), told(race, "read"))).collect()
    }

    /// Where a comment stands, as `FILE:LINE`.
    pub fn place(&self, comment: &str) -> String {
        let source = std::fs::read_to_string(&self.source).unwrap();
        let is_it = |line: &str| line.contains(&format!("/* {comment} */"));
        let index = source.lines().position(is_it).unwrap();
        format!("{}:{}", self.source.file_name().unwrap().to_str().unwrap(), index + 1)
    }
}

pub fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];
