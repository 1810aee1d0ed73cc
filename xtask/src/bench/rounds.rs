//! All executions of one program: every way to run it, in turn, several times.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measure::{self, Execution, Place};
use super::programs::{Cache, Program, Work};
use super::recording::Sizes;
use super::ways::{Leaves, Runners, Way};
use crate::workspace;

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
    pub cells: Vec<(Way, Cell)>,
    /// Of what was recorded, if it was.
    pub sizes: Option<Sizes>,
}

impl Measured {
    pub fn cell(&self, way: Way) -> &Cell {
        self.cells.iter().find(|(of, _)| *of == way).map_or(&Cell::NotRun, |(_, cell)| cell)
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

    /// Megabytes of the recording's log for each second that the program takes natively.
    pub fn log_rate(&self) -> Option<f64> {
        match (self.cell(Way::Native), self.cell(Way::Record), &self.sizes) {
            (Cell::Cost(native), Cell::Cost(_), Some(sizes)) => {
                Some(sizes.log as f64 / 1e6 / native.wall)
            }
            _ => None,
        }
    }
}

pub struct Bench {
    runners: Runners,
    ways: &'static [Way],
    directory: PathBuf,
}

impl Bench {
    pub fn new(why: PathBuf, ways: &'static [Way], directory: PathBuf) -> io::Result<Bench> {
        let valgrind = workspace::program("valgrind");
        if valgrind.is_none() && ways.contains(&Way::Valgrind) {
            eprintln!("bench: valgrind is not installed; left out");
        }
        workspace::fresh(&directory.join("cache"))?;
        workspace::fresh(&directory.join("failed"))?;
        let runners = Runners { why, valgrind, recording: directory.join("recording") };
        Ok(Bench { runners, ways, directory })
    }

    pub fn run(&self, program: Program, runs: u32) -> io::Result<Measured> {
        let cells = self.ways.iter().map(|way| (*way, Cell::NotRun)).collect();
        let mut measured = Measured { program, cells, sizes: None };
        let mut native = None;
        let program = &measured.program;
        let warm_up =
            program.cache == Cache::Warm && matches!(program.work, Work::StartUp | Work::Make);
        for round in 0..runs + u32::from(warm_up) {
            for (way, cell) in &mut measured.cells {
                let Some(command) = self.runners.command(*way, program) else {
                    continue;
                };
                if matches!(cell, Cell::Failed { .. }) {
                    continue;
                }
                progress(&format!("{}: {}, round {}", program.name, way.name(), round + 1));
                let repeat = if warm_up && round == 0 { 1 } else { program.repeat };
                match self.sample(program, *way, &command, repeat, &mut native)? {
                    Ok(_) if warm_up && round == 0 => {}
                    Ok(cost) => {
                        let best = if let Cell::Cost(old) = cell { old.best(cost) } else { cost };
                        *cell = Cell::Cost(best);
                    }
                    Err((short, detail)) => *cell = Cell::Failed { short, detail },
                }
                if *way == Way::Record {
                    measured.sizes = Sizes::of(&self.runners.recording).ok();
                }
            }
        }
        progress("");
        // It may be large, and nobody looks at it any more.
        let _ = fs::remove_dir_all(&self.runners.recording);
        Ok(measured)
    }

    /// Executes a program several times one way; the mean cost, or how it failed.
    fn sample(
        &self,
        program: &Program,
        way: Way,
        command: &[std::ffi::OsString],
        repeat: u32,
        native: &mut Option<Execution>,
    ) -> io::Result<Result<Cost, (&'static str, String)>> {
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
            if way == Way::Record && self.runners.recording.exists() {
                fs::remove_dir_all(&self.runners.recording)?;
            }
            // What is replayed has no peer but the recording.
            let peer = program.peer.as_ref().filter(|_| matches!(way.leaves(), Leaves::All));
            let files = program.files.as_deref();
            let execution =
                measure::execute(command, program.one_core, files, peer, &place, limit)?;
            sum.cpu += execution.finished.cpu.as_secs_f64();
            sum.wall += execution.finished.wall.as_secs_f64();
            if let Some(failure) = judge(&execution, way, native.as_ref(), &place) {
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
    way: Way,
    native: Option<&Execution>,
    place: &Place,
) -> Option<(&'static str, String)> {
    let ended = execution.finished.ended();
    let expected = native.map_or("status 0".to_owned(), |native| native.finished.ended());
    let differs = native.is_some_and(|native| {
        let [stdout, stderr, files] = [
            native.stdout != execution.stdout,
            native.stderr != execution.stderr,
            native.files != execution.files,
        ];
        match way.leaves() {
            Leaves::All => stdout || stderr || files,
            Leaves::AllAndMessage => stdout || files,
            Leaves::Output => stdout || stderr,
            Leaves::Nothing => false,
        }
    });
    if execution.finished.timed_out {
        Some(("timeout", ended))
    } else if ended != expected {
        Some(("fails", format!("{ended}: {}", first_line(&place.stderr))))
    } else if let Some(problem) = &execution.peer_failed {
        Some(("fails", problem.clone()))
    } else if differs {
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
