//! The other side of the test: what this program does when it is called by itself. It goes to
//! moments of a recording, in the order in which they are given, and tells what was there.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use why_engine::launch::{self, Again, Command, Course};
use why_engine::{Look, Observer, Scene, Then, Tool};
use why_record::position::Moment;
use why_record::registers::{FLAGS, R11, RCX, RIP};
use why_record::store::Recording;

pub const WORD: &str = "--visit";

/// How a recording is visited.
#[derive(Serialize, Deserialize)]
pub struct Journey {
    pub recording: PathBuf,
    /// A process that began as a program, and the one that is visited.
    pub program: i32,
    pub process: i32,
    /// How far copies are apart; without that, the replay goes forward once.
    pub distance: Option<u64>,
    pub moments: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub sights: Vec<Sight>,
    pub instructions: u64,
    pub copies: u64,
    pub rewinds: u64,
    pub beginnings: u64,
}

/// What was at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    pub position: String,
    pub thread: i32,
    pub registers: Vec<u64>,
    /// The first sixteen vector registers.
    pub vectors: Vec<u8>,
    /// All memory that can be read, by its ranges.
    pub memory: Vec<(u64, u64, u64)>,
}

struct Visitor {
    left: std::vec::IntoIter<Moment>,
    sights: Vec<Sight>,
}

impl Observer for Visitor {
    fn arrived(&mut self, scene: &Scene) -> Then {
        self.sights.push(sight(scene));
        self.left.next().map_or(Then::Enough, Then::GoTo)
    }

    fn answer(&mut self) -> serde_json::Value {
        serde_json::to_value(&self.sights).expect("plain data")
    }
}

fn sight(scene: &Scene) -> Sight {
    /// In what XSAVE saves.
    const XMM: Range<usize> = 160..416;
    /// Those that the next instruction overwrites may hold anything.
    const ARITHMETIC_FLAGS: u64 = 0x8d5;
    let mut registers = scene.registers.0.to_vec();
    registers[FLAGS] &= !ARITHMETIC_FLAGS;
    let mut next = [0; 2];
    scene.read(scene.registers.0[RIP], &mut next);
    if next == [0x0f, 0x05] {
        // So may these in front of `syscall`.
        registers[RCX] = 0;
        registers[R11] = 0;
    }
    let vectors = scene.vectors().expect("the process is there");
    Sight {
        position: scene.position.to_string(),
        thread: scene.thread,
        registers,
        vectors: vectors[XMM].to_vec(),
        memory: merged(scene.readable()).into_iter().map(|part| hash(scene, part)).collect(),
    }
}

/// Whether the kernel has one mapping or two for what lies side by side is its own business.
fn merged(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => merged.push(range),
        }
    }
    merged
}

fn hash(scene: &Scene, part: Range<u64>) -> (u64, u64, u64) {
    const PAGE: u64 = 4096;
    let mut hasher = DefaultHasher::new();
    let mut page = [0; PAGE as usize];
    for at in part.clone().step_by(PAGE as usize) {
        let got = scene.read(at, &mut page);
        // Empty pages, of which there may be many, differ from none.
        if page[..got].iter().any(|byte| *byte != 0) {
            hasher.write_u64(at);
            hasher.write(&page[..got]);
        }
    }
    (part.start, part.end, hasher.finish())
}

/// Goes on the journey that the command line describes.
pub fn main(text: &str) {
    let journey: Journey = serde_json::from_str(text).expect("a journey");
    let moments = journey.moments.iter().map(|moment| moment.parse().expect("a moment"));
    let mut left = moments.collect::<Vec<Moment>>().into_iter();
    let first = left.next().expect("at least one moment");
    let visitor = Box::new(Visitor { left, sights: Vec::new() });
    let mut look = Look::once(journey.process, first, visitor);
    look.silent = true;
    look.distance = journey.distance;
    let manifest = Recording::open(&journey.recording).manifest().expect("a recording");
    let report = launch::run(&Command {
        words: manifest.command.iter().map(Into::into).collect(),
        tool: Tool::Exact,
        inspect: false,
        readers: None,
        course: Course::Replay(Again {
            recording: journey.recording,
            process: journey.program,
            from: None,
            beside: Vec::new(),
            verify: false,
            look: Some(Rc::new(look)),
        }),
    });
    match report {
        Ok(report) => {
            let sights = serde_json::from_value(report.answer.expect("somebody looked"));
            let report = Report {
                sights: sights.expect("plain data"),
                instructions: report.instructions,
                copies: report.copies,
                rewinds: report.rewinds,
                beginnings: report.beginnings,
            };
            println!("{}", serde_json::to_string(&report).expect("plain data"));
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
