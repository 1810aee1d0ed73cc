//! The data that the measured programs work on: made once, the same on every
//! machine, kept in the build directory.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{self, Failure};

pub struct Inputs {
    /// Text for gzip and openssl.
    pub long_text: PathBuf,
    /// Text for bzip2, which is slower.
    pub short_text: PathBuf,
    /// Text to be copied; made only by `large`.
    pub large_text: PathBuf,
    /// None when there is no sqlite3 to make it with.
    pub database: Option<PathBuf>,
    /// A C project of twelve files and a Makefile.
    pub project: PathBuf,
    /// Where the programs of xtask/bench are, compiled.
    pub compiled: PathBuf,
}

pub fn prepare(directory: &Path, quick: bool) -> Result<Inputs, Failure> {
    let data = directory.join("data");
    fs::create_dir_all(&data)?;
    let scale = if quick { 1 } else { 10 };
    let (long, short, rows) = (scale * 12_000_000, scale * 4_000_000, scale * 40_000);
    let large = scale * 100_000_000;
    // A name tells all that its content depends on, since what exists is kept.
    let inputs = Inputs {
        long_text: data.join(format!("text-{long}.txt")),
        short_text: data.join(format!("text-{short}.txt")),
        large_text: data.join(format!("text-{large}.txt")),
        database: workspace::program("sqlite3").map(|_| data.join(format!("items-{rows}.db"))),
        project: data.join("project"),
        compiled: data.join("compiled"),
    };
    once(&inputs.long_text, |file| text(file, long))?;
    once(&inputs.short_text, |file| text(file, short))?;
    if let Some(file) = &inputs.database {
        once(file, |file| database(file, rows))?;
    }
    once(&inputs.project, project)?;
    compile(&workspace::root().join("xtask/bench"), &inputs.compiled)?;
    Ok(inputs)
}

impl Inputs {
    /// Makes the large text: the short one, again and again.
    pub fn large(&self) -> Result<(), Failure> {
        once(&self.large_text, |path| {
            let text = fs::read(&self.short_text)?;
            let mut file = fs::File::create(path)?;
            for _ in 0..25 {
                file.write_all(&text)?;
            }
            Ok(())
        })
    }
}

/// Makes a file or directory unless it is there, under another name first, so
/// that one left half made is never taken for whole.
fn once(path: &Path, make: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    if path.exists() {
        return Ok(());
    }
    let partial = path.with_extension("partial");
    if partial.is_dir() {
        fs::remove_dir_all(&partial)?;
    } else if partial.exists() {
        fs::remove_file(&partial)?;
    }
    make(&partial)?;
    fs::rename(partial, path)?;
    Ok(())
}

/// Words from a small vocabulary, the frequent ones much more often: compresses
/// about as well as prose does.
fn text(path: &Path, bytes: usize) -> Result<(), Failure> {
    let mut random = Random(42);
    let vocabulary: Vec<String> = (0..4096)
        .map(|_| {
            let length = 2 + random.below(9);
            (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
        })
        .collect();
    let mut file = BufWriter::new(fs::File::create(path)?);
    let mut written = 0;
    while written < bytes {
        let rank = random.below(4096).min(random.below(4096)).min(random.below(4096));
        let separator = if random.below(12) == 0 { '\n' } else { ' ' };
        let word = &vocabulary[rank as usize];
        write!(file, "{word}{separator}")?;
        written += word.len() + 1;
    }
    file.flush()?;
    Ok(())
}

fn database(path: &Path, rows: usize) -> Result<(), Failure> {
    let sqlite = workspace::program("sqlite3").ok_or("sqlite3 is missing")?;
    let script = format!(
        "CREATE TABLE item(id INTEGER PRIMARY KEY, kind INT, name TEXT, price REAL);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         INSERT INTO item SELECT i, i * 7919 % 997,
           printf('item %d %x', i * 31 % 1000, i * 2654435761 % 65536), (i * 17 % 1000) / 10.0
         FROM n;
         CREATE INDEX by_kind ON item(kind);"
    );
    succeed(Command::new(sqlite).arg(path).arg(script))
}

/// Twelve files that each include the usual headers, and one program of them.
fn project(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)?;
    let mut header = String::from("#pragma once\n");
    let mut main = String::from(
        "#include \"parts.h\"\n#include <stdio.h>\n\nint main(void) {\n  long sum = 0;\n",
    );
    for part in 0..11 {
        header.push_str(&format!("long part{part}(long n);\n"));
        main.push_str(&format!("  sum += part{part}({});\n", part * 3 + 1));
        let mut source = String::from(
            "#include \"parts.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n",
        );
        for function in 0..20 {
            source.push_str(&format!(
                "\nstatic long step{function}(long n) {{\n  char text[64];\n  \
                 snprintf(text, sizeof text, \"%ld\", n * {});\n  \
                 for (size_t i = 0; i < strlen(text); i++) n = n * 31 + text[i];\n  \
                 return labs(n) % 100003;\n}}\n",
                part + function + 2
            ));
        }
        source.push_str(&format!("\nlong part{part}(long n) {{\n"));
        for function in 0..20 {
            source.push_str(&format!("  n = step{function}(n);\n"));
        }
        source.push_str("  return n;\n}\n");
        fs::write(path.join(format!("part{part}.c")), source)?;
    }
    main.push_str("  printf(\"%ld\\n\", sum);\n  return 0;\n}\n");
    fs::write(path.join("parts.h"), header)?;
    fs::write(path.join("main.c"), main)?;
    fs::write(
        path.join("Makefile"),
        "OBJECTS = $(patsubst %.c,%.o,$(wildcard *.c))\n\n\
         all: program\n\t./program\n\n\
         program: $(OBJECTS)\n\t$(CC) -o $@ $(sort $(OBJECTS))\n\n\
         %.o: %.c parts.h\n\t$(CC) -O1 -Wall -c -o $@ $<\n",
    )?;
    Ok(())
}

/// Compiles every program of a directory, each time: it takes a second, and the
/// source may have changed.
fn compile(sources: &Path, out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out)?;
    for entry in fs::read_dir(sources)? {
        let source = entry?.path();
        if let (Some("c"), Some(name)) =
            (source.extension().and_then(|e| e.to_str()), source.file_stem())
        {
            let arguments = ["-O2", "-pthread", "-o"];
            succeed(Command::new("cc").args(arguments).arg(out.join(name)).arg(&source))?;
        }
    }
    Ok(())
}

fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| io::Error::new(error.kind(), format!("{command:?}: {error}")))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}

/// xorshift64: the same numbers everywhere, for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}
