//! All executions of one program: every way to run it, in turn, several times.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measure::{self, Execution, Place};
use super::programs::{Cache, Program, Work};
use crate::workspace;

/// A way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Native,
    None,
    Count,
    Trace,
    Valgrind,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::Native, Way::None, Way::Count, Way::Trace, Way::Valgrind];

    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::None => "none",
            Way::Count => "count",
            Way::Trace => "trace",
            Way::Valgrind => "valgrind",
        }
    }
}

/// Seconds for one execution, the best of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub cpu: f64,
    pub wall: f64,
}

impl Cost {
    fn best(self, other: Cost) -> Cost {
        Cost { cpu: self.cpu.min(other.cpu), wall: self.wall.min(other.wall) }
    }
}

/// What came of one way: a cost, or why there is none.
#[derive(Clone, Debug)]
pub enum Cell {
    NotRun,
    Cost(Cost),
    Failed { short: &'static str, detail: String },
}

pub struct Measured {
    pub program: Program,
    /// In the order of `Way::ALL`.
    pub cells: [Cell; 5],
}

impl Measured {
    pub fn cell(&self, way: Way) -> &Cell {
        &self.cells[way as usize]
    }

    /// CPU and wall time, as multiples of native.
    pub fn ratios(&self, way: Way) -> Option<Cost> {
        match (self.cell(Way::Native), self.cell(way)) {
            (Cell::Cost(native), Cell::Cost(cost)) => {
                Some(Cost { cpu: cost.cpu / native.cpu, wall: cost.wall / native.wall })
            }
            _ => None,
        }
    }

    /// The worse of the two: the one that counts.
    pub fn ratio(&self, way: Way) -> Option<f64> {
        self.ratios(way).map(|ratios| ratios.cpu.max(ratios.wall))
    }
}

pub struct Bench {
    why: PathBuf,
    valgrind: Option<PathBuf>,
    directory: PathBuf,
}

impl Bench {
    pub fn new(why: PathBuf, directory: PathBuf) -> io::Result<Bench> {
        let valgrind = workspace::program("valgrind");
        if valgrind.is_none() {
            eprintln!("bench: valgrind is not installed; left out");
        }
        workspace::fresh(&directory.join("cache"))?;
        workspace::fresh(&directory.join("failed"))?;
        Ok(Bench { why, valgrind, directory })
    }

    pub fn run(&self, program: Program, runs: u32) -> io::Result<Measured> {
        let mut cells = [const { Cell::NotRun }; 5];
        let mut native = None;
        let warm_up =
            program.cache == Cache::Warm && matches!(program.work, Work::StartUp | Work::Make);
        for round in 0..runs + u32::from(warm_up) {
            for way in Way::ALL {
                let cell = &mut cells[way as usize];
                let impossible = match way {
                    Way::Native => false,
                    // A cold cache is nothing to valgrind, which keeps none.
                    Way::Valgrind => self.valgrind.is_none() || program.cache == Cache::Cold,
                    _ => false,
                };
                if impossible || matches!(cell, Cell::Failed { .. }) {
                    continue;
                }
                progress(&format!("{}: {}, round {}", program.name, way.name(), round + 1));
                let repeat = if warm_up && round == 0 { 1 } else { program.repeat };
                match self.sample(&program, way, repeat, &mut native)? {
                    Ok(_) if warm_up && round == 0 => {}
                    Ok(cost) => {
                        let best = if let Cell::Cost(old) = cell { old.best(cost) } else { cost };
                        *cell = Cell::Cost(best);
                    }
                    Err((short, detail)) => *cell = Cell::Failed { short, detail },
                }
            }
        }
        progress("");
        Ok(Measured { program, cells })
    }

    /// Executes a program several times one way; the mean cost, or how it failed.
    fn sample(
        &self,
        program: &Program,
        way: Way,
        repeat: u32,
        native: &mut Option<Execution>,
    ) -> io::Result<Result<Cost, (&'static str, String)>> {
        let prefix = self.prefix(way);
        let prefix: Vec<&OsStr> = prefix.iter().map(OsString::as_os_str).collect();
        let place = self.place(program.cache);
        let limit = match native {
            Some(native) => Duration::from_secs(60) + native.finished.wall * 50,
            None => Duration::from_secs(600),
        };
        let mut sum = Cost { cpu: 0.0, wall: 0.0 };
        for _ in 0..repeat {
            if program.cache == Cache::Cold {
                workspace::fresh(&place.cache)?;
            }
            let execution = measure::execute(program, &prefix, &place, limit)?;
            sum.cpu += execution.finished.cpu.as_secs_f64();
            sum.wall += execution.finished.wall.as_secs_f64();
            if let Some(failure) = judge(&execution, native.as_ref(), &place) {
                self.keep(program, way, &place)?;
                return Ok(Err(failure));
            }
            if way == Way::Native && native.is_none() {
                *native = Some(execution);
            }
        }
        let runs = f64::from(repeat);
        Ok(Ok(Cost { cpu: sum.cpu / runs, wall: sum.wall / runs }))
    }

    fn prefix(&self, way: Way) -> Vec<OsString> {
        match (way, &self.valgrind) {
            (Way::Native, _) => Vec::new(),
            (Way::Valgrind, Some(valgrind)) => {
                let mut words = vec![valgrind.clone().into_os_string()];
                let options = ["--tool=none", "-q", "--trace-children=yes", "--log-file=/dev/null"];
                words.extend(options.map(OsString::from));
                words
            }
            _ => {
                let mut words = vec![self.why.clone().into_os_string()];
                words.extend(["run", "--tool", way.name(), "--"].map(OsString::from));
                words
            }
        }
    }

    fn place(&self, cache: Cache) -> Place {
        Place {
            work: self.directory.join("work"),
            stdout: self.directory.join("stdout"),
            stderr: self.directory.join("stderr"),
            cache: self.directory.join(match cache {
                Cache::Warm => "cache/warm",
                Cache::Cold => "cache/cold",
            }),
        }
    }

    /// Keeps the output of a failed execution, to be looked at afterwards.
    fn keep(&self, program: &Program, way: Way, place: &Place) -> io::Result<()> {
        let name = format!("{}.{}", program.name.replace([' ', ','], "-"), way.name());
        let failed = self.directory.join("failed");
        fs::copy(&place.stdout, failed.join(format!("{name}.stdout")))?;
        fs::copy(&place.stderr, failed.join(format!("{name}.stderr")))?;
        Ok(())
    }
}

/// Why this execution may not be timed, if so: in a word and in a line.
fn judge(
    execution: &Execution,
    native: Option<&Execution>,
    place: &Place,
) -> Option<(&'static str, String)> {
    let ended = execution.finished.ended();
    let expected = native.map_or("status 0".to_owned(), |native| native.finished.ended());
    if execution.finished.timed_out {
        Some(("timeout", ended))
    } else if ended != expected {
        Some(("fails", format!("{ended}: {}", first_line(&place.stderr))))
    } else if native.is_some_and(|native| native.fingerprint != execution.fingerprint) {
        Some(("differs", "output or files differ from the native run".to_owned()))
    } else {
        None
    }
}

fn first_line(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().next().unwrap_or("nothing on standard error").to_owned()
}

/// One line that overwrites itself, only where someone watches.
fn progress(text: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }
}
