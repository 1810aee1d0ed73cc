//! The trace of a recorded process, made once in a replay and kept beside the recording.

use crate::images::Images;
use crate::replay::{self, How};
use crate::slice::lasting::{self, Lasting};
use crate::slice::unfinished::{self, FileId, Unfinished};
use crate::slice::ways::{Mapped, MappedWays};
use crate::{programs, progress};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use why_engine::{EngineError, InputStream, Look, Module, Observer, TraceReader};
use why_record::files::Hash;
use why_record::position::Moment;
use why_record::store::Recording;
use why_record::summary;
use why_slice::region::{Builder, Region, RegionError};
use why_trace::shape::{Kind, Shape};

/// How many instructions are packed together: what is decoded at once when slicing.
const CHUNK: u64 = 2_000_000;

const BUILD: &str = env!("WHY_BUILD");

/// A traced process.
#[derive(Clone)]
pub struct Traced {
    pub region: Arc<Region>,
    /// What was mapped where, the last one last.
    pub modules: Vec<Module>,
    /// The paths of the programs that the process executed.
    pub programs: Vec<String>,
    streams: Streams,
    /// It was not there before.
    pub is_new: bool,
    /// Keeps what others need not find again, if it can.
    _lasting: Option<Arc<Lasting>>,
}

impl Traced {
    /// None if what is told beside it is damaged.
    fn of(region: Arc<Region>, beside: Beside) -> Option<Traced> {
        let Beside { modules, programs, streams, .. } = beside;
        let modules = modules.into_iter().map(KeptModule::module).collect::<Option<_>>()?;
        Some(Traced { region, modules, programs, streams, is_new: false, _lasting: None })
    }

    /// The name of the file that a stream is of; one that was only ever the standard input has none.
    pub fn stream(&self, number: u64) -> Option<&str> {
        let found = self.streams.names.iter().find(|(stream, _)| *stream == number);
        found.map(|(_, name)| name.as_str())
    }

    /// Whether a stream was the standard input of a program.
    pub fn is_standard(&self, number: u64) -> bool {
        self.streams.standard.contains(&number)
    }
}

/// What was read, by the numbers of the streams.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Streams {
    /// The names of the files that were opened or mapped, but for code.
    names: Vec<(u64, String)>,
    /// Those that were the standard input of a program.
    standard: Vec<u64>,
}

impl Streams {
    fn of(streams: &[InputStream]) -> Streams {
        let mut all = Streams::default();
        for (number, stream) in (0..).zip(streams) {
            let name = stream.name.as_ref().filter(|_| !stream.is_code);
            all.names.extend(name.map(|name| (number, name.to_string())));
            all.standard.extend(stream.is_standard.then_some(number));
        }
        all
    }
}

/// What is kept beside a trace.
#[derive(Default, Serialize, Deserialize)]
struct Beside {
    /// By which build of `why` it was made: another one may see the same differently.
    build: String,
    modules: Vec<KeptModule>,
    programs: Vec<String>,
    streams: Streams,
    /// How much there was of the recording, if that had not been finished.
    so_far: Option<u64>,
}

/// A module as it is kept.
#[derive(Serialize, Deserialize)]
struct KeptModule {
    start: u64,
    end: u64,
    offset: u64,
    /// In hexadecimal digits: no number of JSON is as large.
    hash: String,
    name: String,
}

impl From<&Module> for KeptModule {
    fn from(module: &Module) -> KeptModule {
        let Module { range, offset, hash, name, .. } = module.clone();
        KeptModule { start: range.start, end: range.end, offset, hash: hash.to_string(), name }
    }
}

impl KeptModule {
    fn module(self) -> Option<Module> {
        let KeptModule { start, end, offset, hash, name } = self;
        let hash = Hash(u128::from_str_radix(&hash, 16).ok()?);
        Some(Module { range: start..end, offset, executable: true, hash, name })
    }
}

/// The trace of a process, from its beginning to its end.
pub fn of_process(recording: &Recording, process: i32) -> Result<Traced, EngineError> {
    Unfinished::sweep(&derived(recording));
    let kept = Kept::of(recording, process)?;
    let unfinished = loop {
        if let Some(traced) = kept.open() {
            return Ok(traced);
        }
        match kept.create() {
            Ok(Some(unfinished)) => break unfinished,
            // Another process may have made it meanwhile.
            Ok(None) => {}
            Err(error) if cannot_be_written_to(&error) => return made_here(recording, process),
            Err(error) => return Err(kept.failed("creating", error)),
        }
    };
    let file = unfinished.file.try_clone().map_err(|error| kept.failed("creating", error))?;
    let traced = trace(recording, process, file, &kept.trace)?;
    let beside = Beside { so_far: kept.so_far, ..traced };
    kept.finish(unfinished, &beside)?;
    kept.open().map(|traced| Traced { is_new: true, ..traced }).ok_or_else(damaged)
}

fn cannot_be_written_to(error: &io::Error) -> bool {
    use ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    [AlreadyExists, NotADirectory, PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
}

thread_local! {
    /// Traces beside which nothing can be kept, for as long as this command runs.
    static MADE: RefCell<Vec<(PathBuf, i32, Traced)>> = const { RefCell::new(Vec::new()) };
}

/// The recording is one that nobody can write to: then each command makes a trace of its own.
fn made_here(recording: &Recording, process: i32) -> Result<Traced, EngineError> {
    let is_it =
        |(of, number, _): &&(PathBuf, i32, Traced)| (of, *number) == (&recording.path, process);
    let made = MADE.with_borrow(|all| all.iter().find(is_it).map(|(.., traced)| traced.clone()));
    if let Some(made) = made {
        return Ok(made);
    }
    let directory = std::env::temp_dir();
    let file = tempfile::tempfile().map_err(writing(&directory))?;
    let written = file.try_clone().map_err(writing(&directory))?;
    let beside = trace(recording, process, written, &directory)?;
    let region = Region::open(file).map_err(|_| damaged())?;
    let traced = Traced::of(Arc::new(region), beside).ok_or_else(damaged)?;
    MADE.with_borrow_mut(|all| all.push((recording.path.clone(), process, traced.clone())));
    Ok(Traced { is_new: true, ..traced })
}

fn damaged() -> EngineError {
    let message = "the trace that was just written is damaged".to_owned();
    EngineError::CannotStart { status: crate::FAILED, message }
}

fn writing(to: &Path) -> impl FnOnce(io::Error) -> EngineError {
    EngineError::system(format!("writing the trace to {}", to.display()))
}

/// Traces a process into a file at this path, or in this directory: what there is to be known
/// beside that.
fn trace(
    recording: &Recording,
    process: i32,
    file: File,
    path: &Path,
) -> Result<Beside, EngineError> {
    let mapped: Mapped = Arc::default();
    let programs = programs::of(recording, process)?.into_iter().map(|program| program.path);
    let programs: Vec<String> = programs.collect();
    let (files, to) = (recording.path.clone(), Arc::new(Mutex::new(Some(file))));
    let (modules, own) = (Arc::clone(&mapped), programs.clone());
    let readers = move |of: i32| -> Option<Box<dyn TraceReader>> {
        let file = to.lock().expect("no panic").take_if(|_| of == process)?;
        let images = Images::new(Recording::open(&files).files());
        let ways = MappedWays::new(Arc::clone(&modules), images, own.clone());
        let builder = Some(Builder::create(ways, CHUNK, file));
        Some(Box::new(Reader {
            builder,
            bar: bar(&Recording::open(&files), process),
            failed: None,
        }))
    };
    let mapping = Mapping { mapped, programs, streams: Streams::default() };
    let look = Look::silently(process, Moment::End, Box::new(mapping));
    let how =
        How { traced: true, look: Some(look), readers: Some(Arc::new(readers)), ..How::default() };
    let report = replay::run(recording, how)?;
    if let Some(error) = report.trace_lost {
        return Err(writing(path)(io::Error::from_raw_os_error(error)));
    }
    let beside = report.answer.and_then(|answer| serde_json::from_value(answer).ok());
    Ok(beside.unwrap_or_default())
}

/// How much there is of a recording that has not been finished. It may still be being made: then a
/// trace is soon one of less than there is.
fn so_far(recording: &Recording) -> Result<Option<u64>, EngineError> {
    if recording.manifest()?.finished.is_some() {
        return Ok(None);
    }
    let events = recording.path.join("events");
    let reading = || format!("cannot read {}", events.display());
    let streams = events.read_dir().map_err(EngineError::system(reading()))?;
    let size = |stream: std::fs::DirEntry| stream.metadata().map_or(0, |metadata| metadata.len());
    Ok(Some(streams.flatten().map(size).sum()))
}

/// What was kept of a process turned out to be damaged.
pub fn forget(recording: &Recording, process: i32) {
    let Ok(kept) = Kept::of(recording, process) else { return };
    // What cannot be deleted is found damaged again, and told again.
    for path in [lasting::learnt(&kept.trace), kept.trace] {
        let _ = std::fs::remove_file(path);
    }
}

/// Where what can be made again is kept.
pub fn derived(recording: &Recording) -> PathBuf {
    recording.path.join("derived")
}

/// Where a trace is kept.
struct Kept {
    trace: PathBuf,
    beside: PathBuf,
    so_far: Option<u64>,
}

impl Kept {
    fn of(recording: &Recording, process: i32) -> Result<Kept, EngineError> {
        let directory = derived(recording);
        let trace = directory.join(format!("trace-{process}"));
        let beside = directory.join(format!("trace-{process}.json"));
        Ok(Kept { trace, beside, so_far: so_far(recording)? })
    }

    /// None if it was never made, or is damaged: it can be made again.
    fn open(&self) -> Option<Traced> {
        let beside = std::fs::read(&self.beside).ok()?;
        let beside: Beside = serde_json::from_slice(&beside).ok()?;
        if beside.build != BUILD || beside.so_far != self.so_far {
            return None;
        }
        let trace = File::open(&self.trace).ok()?;
        let was = FileId::from(trace.metadata().ok()?);
        let region = Arc::new(Region::open(trace).ok()?);
        let lasting = Lasting::of(&self.trace, was, &region);
        let traced = Traced::of(region, beside)?;
        Some(Traced { _lasting: Some(Arc::new(lasting)), ..traced })
    }

    /// None if another process may have made it meanwhile.
    fn create(&self) -> io::Result<Option<Unfinished>> {
        std::fs::create_dir_all(self.trace.parent().unwrap_or(Path::new(".")))?;
        Unfinished::in_turn(self.trace.with_extension(unfinished::TRACE))
    }

    fn finish(&self, unfinished: Unfinished, beside: &Beside) -> Result<(), EngineError> {
        let text = serde_json::to_vec(beside).expect("plain data");
        let finish = || {
            // What is told beside it is of no other one.
            for other in [lasting::learnt(&self.trace), self.trace.clone()] {
                match std::fs::remove_file(other) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            std::fs::write(&self.beside, text)?;
            unfinished.take_place(&self.trace)
        };
        finish().map_err(|source| self.failed("keeping", source))
    }

    fn failed(&self, what: &str, source: io::Error) -> EngineError {
        EngineError::System { what: format!("{what} the trace {}", self.trace.display()), source }
    }
}

/// Notes what is mapped and read.
struct Mapping {
    mapped: Mapped,
    programs: Vec<String>,
    streams: Streams,
}

impl Observer for Mapping {
    fn mapped(&mut self, module: &Module) -> Vec<u64> {
        self.mapped.lock().expect("no panic").push(module.clone());
        Vec::new()
    }

    fn streams(&mut self, streams: &[InputStream]) {
        self.streams = Streams::of(streams);
    }

    fn answer(&mut self) -> serde_json::Value {
        let mapped = self.mapped.lock().expect("no panic");
        let modules = mapped.iter().map(KeptModule::from).collect();
        let streams = std::mem::take(&mut self.streams);
        let (build, programs) = (BUILD.to_owned(), std::mem::take(&mut self.programs));
        let beside = Beside { build, modules, programs, streams, so_far: None };
        serde_json::to_value(beside).expect("plain data")
    }
}

/// How far the tracing has come, if somebody watches.
fn bar(recording: &Recording, process: i32) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let processes = summary::processes(recording).unwrap_or_default();
    let traced = processes.iter().find(|known| known.pid == process);
    progress::of_instructions("tracing", traced.map_or(0, |traced| traced.instructions))
}

/// Makes a region of the trace.
struct Reader {
    builder: Option<Result<Builder<MappedWays>, RegionError>>,
    bar: ProgressBar,
    failed: Option<RegionError>,
}

impl Reader {
    fn builder(&mut self) -> Option<&mut Builder<MappedWays>> {
        match &mut self.builder {
            Some(Ok(builder)) if self.failed.is_none() => Some(builder),
            _ => None,
        }
    }
}

impl TraceReader for Reader {
    fn learn(&mut self, shapes: &[Arc<Shape>], kinds: &[Kind]) {
        if let Some(builder) = self.builder() {
            builder.learn(shapes, kinds);
        }
    }

    fn read(&mut self, records: &[u8]) {
        let Some(builder) = self.builder() else {
            return;
        };
        let mut result = Ok(());
        let read = why_trace::each_record(records, |id, slots| {
            if result.is_ok() {
                result = builder.record(id as u32, slots);
            }
        });
        read.expect("the trace is well formed");
        let instructions = builder.instructions();
        self.bar.set_position(instructions);
        self.failed = result.err();
    }

    fn finish(&mut self) -> Option<i32> {
        self.bar.finish_and_clear();
        let finished = match (self.builder.take()?, self.failed.take()) {
            (Ok(builder), None) => match builder.finish() {
                // It is opened from its file. The process ends before what it was is given back.
                Ok(region) => {
                    std::thread::spawn(move || drop(region));
                    None
                }
                Err(error) => Some(error),
            },
            (Err(error), _) | (_, Some(error)) => Some(error),
        };
        finished.map(|error| match error {
            RegionError::System(error) => error.raw_os_error().unwrap_or(libc::EIO),
            _ => libc::EIO,
        })
    }
}
