//! Verdicts on disk, so that an interrupted run can go on: a line for each test.

use crate::trial::{Failure, no_answer};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
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
        let mut file = File::create(&path).map_err(cannot)?;
        writeln!(file, "{title}").map_err(cannot)?;
        let mut verdicts = Verdicts { path: path.clone(), file };
        for (hash, judgement) in &known {
            verdicts.add(*hash, judgement).map_err(cannot)?;
        }
        Ok((verdicts, known))
    }

    fn read(path: &PathBuf, title: &str) -> Result<Known, Failure> {
        let cannot = |error: io::Error| {
            no_answer(format!("cannot resume: {}: {error}; leave out --resume", path.display()))
        };
        let mut lines = BufReader::new(File::open(path).map_err(cannot)?).split(b'\n');
        let first = lines.next().transpose().map_err(cannot)?;
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
        let letter = match judgement.verdict {
            Verdict::Fails => 'F',
            Verdict::Passes => 'P',
            Verdict::Unresolved => 'U',
        };
        let line = format!("{hash:032x} {letter} {}.\n", judgement.reason.replace('\n', " "));
        self.file.write_all(line.as_bytes())
    }

    /// They are of no use any more.
    pub fn delete(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
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
