//! Verdicts on disk, so that an interrupted run can go on: a line for each test.

use super::output::{directory_of, make_readable};
use crate::trial::{Failure, no_answer};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use why_reduce::Verdict;
use why_reduce::tester::Judgement;
use xxhash_rust::xxh3::xxh3_128;

pub struct Verdicts {
    path: PathBuf,
    file: File,
}

type Known = Vec<(u128, Judgement)>;

impl Verdicts {
    /// The verdicts of an earlier run with the same test and input are taken over, if asked.
    pub fn open(
        path: PathBuf,
        identity: &str,
        original: &[u8],
        resume: bool,
    ) -> Result<(Verdicts, Known), Failure> {
        let title = format!(
            "why.verdicts/1 {:032x} {:032x}",
            xxh3_128(identity.as_bytes()),
            xxh3_128(original)
        );
        let known = if resume { Self::read(&path, &title)? } else { Known::new() };
        let cannot =
            |error: io::Error| no_answer(format!("cannot write {}: {error}", path.display()));
        // What an earlier run left is there until all of it is in the new file.
        let mut new = NamedTempFile::new_in(directory_of(&path)).map_err(cannot)?;
        writeln!(new, "{title}").map_err(cannot)?;
        for (hash, judgement) in &known {
            new.write_all(line(*hash, judgement).as_bytes()).map_err(cannot)?;
        }
        make_readable(new.path()).map_err(cannot)?;
        let file = new.persist(&path).map_err(|error| cannot(error.error))?;
        Ok((Verdicts { path, file }, known))
    }

    fn read(path: &PathBuf, title: &str) -> Result<Known, Failure> {
        let cannot = |error: io::Error| {
            no_answer(format!("cannot resume: {}: {error}; leave out --resume", path.display()))
        };
        let mut lines = BufReader::new(File::open(path).map_err(cannot)?).split(b'\n');
        let first = lines.next().transpose().map_err(cannot)?;
        if first.is_none() {
            // Whoever began it had no room for a single line.
            return Ok(Known::new());
        }
        if first.as_deref() != Some(title.as_bytes()) {
            let path = path.display();
            let message = format!("cannot resume: {path} is of another test or input");
            return Err(no_answer(format!("{message}; leave out --resume")));
        }
        // A line that was cut short is the last one; its test is made again.
        let known =
            lines.map_while(Result::ok).filter_map(|line| parse(str::from_utf8(&line).ok()?));
        Ok(known.collect())
    }

    pub fn add(&mut self, hash: u128, judgement: &Judgement) -> io::Result<()> {
        self.file.write_all(line(hash, judgement).as_bytes())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// They are of no use any more.
    pub fn delete(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn line(hash: u128, judgement: &Judgement) -> String {
    let letter = match judgement.verdict {
        Verdict::Fails => 'F',
        Verdict::Passes => 'P',
        Verdict::Unresolved => 'U',
    };
    format!("{hash:032x} {letter} {}.\n", judgement.reason.replace('\n', " "))
}

fn parse(line: &str) -> Option<(u128, Judgement)> {
    // The full stop says that the line is whole.
    let (hash, rest) = line.strip_suffix('.')?.split_once(' ')?;
    let (letter, reason) = rest.split_once(' ')?;
    let verdict = match letter {
        "F" => Verdict::Fails,
        "P" => Verdict::Passes,
        "U" => Verdict::Unresolved,
        _ => return None,
    };
    let hash = u128::from_str_radix(hash, 16).ok()?;
    Some((hash, Judgement { verdict, reason: reason.into() }))
}
