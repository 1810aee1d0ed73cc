//! The reducers that `why reduce` is compared with. `xtask/peers` installs them.

use std::path::{Path, PathBuf};

use crate::workspace;

/// A reducer, and the words of its command, in which `SCRIPT`, `FILE` and `PEERS` stand for the
/// test, the input and where peers are installed.
pub struct Reducer {
    pub name: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    /// What is added for inputs of these extensions; others it does not take.
    by_extension: Option<&'static [(&'static str, &'static [&'static str])]>,
    /// It writes the result there, not over the input.
    pub output: Option<&'static str>,
}

/// Each with one job, and otherwise as it comes.
pub const PEERS: &[Reducer] = &[
    Reducer {
        name: "Shrink Ray",
        program: "shrinkray",
        words: &["--parallelism=1", "--ui=basic", "--no-history", "SCRIPT", "FILE"],
        by_extension: None,
        output: None,
    },
    Reducer {
        name: "C-Vise",
        program: "cvise",
        words: &["--n=1", "SCRIPT", "FILE"],
        by_extension: Some(&[
            ("c", &[]),
            ("html", &["--not-c"]),
            ("json", &["--not-c"]),
            ("sql", &["--not-c"]),
            ("xml", &["--not-c"]),
        ]),
        output: None,
    },
    Reducer {
        name: "C-Reduce",
        program: "creduce",
        words: &["--n", "1", "SCRIPT", "FILE"],
        by_extension: Some(&[("c", &[])]),
        output: None,
    },
    Reducer {
        name: "picireny",
        program: "picireny",
        words: &[
            "--input=FILE",
            "--test=SCRIPT",
            "--out=out",
            "--antlr=PEERS/antlr.jar",
            "--parser=java",
            "--sys-recursion-limit=100000",
        ],
        by_extension: Some(&[
            ("c", &["--start=compilationUnit", "--grammar", "PEERS/grammars/c/C.g4"]),
            (
                "html",
                &[
                    "--start=htmlDocument",
                    "--grammar",
                    "PEERS/grammars/html/HTMLLexer.g4",
                    "PEERS/grammars/html/HTMLParser.g4",
                ],
            ),
            ("json", &["--start=json", "--grammar", "PEERS/grammars/json/JSON.g4"]),
            (
                "sql",
                &[
                    "--start=parse",
                    "--grammar",
                    "PEERS/grammars/sql/sqlite/SQLiteLexer.g4",
                    "PEERS/grammars/sql/sqlite/SQLiteParser.g4",
                ],
            ),
            (
                "xml",
                &[
                    "--start=document",
                    "--grammar",
                    "PEERS/grammars/xml/XMLLexer.g4",
                    "PEERS/grammars/xml/XMLParser.g4",
                ],
            ),
        ]),
        output: Some("out/FILE"),
    },
    Reducer {
        name: "picire",
        program: "picire",
        words: &["--input=FILE", "--test=SCRIPT", "--out=out", "--atom=both"],
        by_extension: None,
        output: Some("out/FILE"),
    },
    Reducer {
        name: "lithium",
        program: "lithium",
        // A condition is a module of Python, which lies beside the input.
        words: &["condition", "FILE"],
        by_extension: None,
        output: None,
    },
    Reducer {
        name: "treereduce",
        program: "treereduce-c",
        words: &["--jobs=1", "-s", "FILE", "-o", "out", "--", "SCRIPT", "@@.c"],
        by_extension: Some(&[("c", &[])]),
        output: Some("out"),
    },
];

impl Reducer {
    /// Where it is, if it is installed.
    pub fn installed(&self, peers: &Path) -> Option<PathBuf> {
        let own = ["venv/bin", "shrinkray/bin", "bin"].map(|directory| peers.join(directory));
        let own = own.into_iter().map(|directory| directory.join(self.program));
        own.into_iter()
            .find(|program| program.is_file())
            .or_else(|| workspace::program(self.program))
    }

    /// The words of its command for such an input, if it takes it.
    pub fn words(&self, extension: &str) -> Option<Vec<&'static str>> {
        let more = match self.by_extension {
            None => &[][..],
            Some(known) => known.iter().find(|(name, _)| *name == extension)?.1,
        };
        Some(more.iter().chain(self.words).copied().collect())
    }
}
