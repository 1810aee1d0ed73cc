//! Writes an excerpt while the whole recording is replayed.

use super::script::{Item, Last, Purpose, Result, Script};
use crate::progress;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use why_engine::{Observer, Scene, Then};
use why_record::RecordError;
use why_record::event::{Cause, Event, Source, Thread};
use why_record::files::{Files, Hash};
use why_record::position::{Moment, Position};
use why_record::registers::Registers;
use why_record::store::Recording;
use why_record::stream::Writer;
use why_record::vectors::Vectors;

pub struct Maker {
    script: Script,
    process: Thread,
    program: u32,
    from: Files,
    to: Recording,
    writer: Writer,
    kept: HashSet<Hash>,
    /// Each thread as the excerpt has it while it does not run.
    threads: HashMap<Thread, State>,
    /// The one that runs, and with what it began.
    running: Option<(Thread, State)>,
    /// What the replay was to be looked at for.
    waiting: Option<Purpose>,
    made: Made,
    failed: Option<String>,
    /// Made where the replay is: the bar is not to be drawn by two processes.
    bar: Option<ProgressBar>,
    length: u64,
}

#[derive(Clone, Default)]
struct State {
    registers: Registers,
    /// None if they may be anything.
    vectors: Option<Vectors>,
}

/// What there is of an excerpt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Made {
    pub events: u64,
    pub instructions: u64,
    pub besides: u64,
    pub stretches: u64,
    pub told_bytes: u64,
    pub log_bytes: u64,
}

fn told(error: RecordError) -> String {
    error.to_string()
}

impl Maker {
    pub fn new(
        script: Script,
        from: &Recording,
        process: Thread,
        to: &Recording,
        length: u64,
    ) -> Result<Maker> {
        Ok(Maker {
            script,
            process,
            program: 1,
            from: from.files(),
            to: to.clone(),
            writer: Writer::create(&to.stream(process, 1)).map_err(told)?,
            kept: HashSet::new(),
            threads: HashMap::new(),
            running: None,
            waiting: None,
            made: Made::default(),
            failed: None,
            bar: None,
            length,
        })
    }

    /// Does what can be done without a look: the moment of the next one, if there is any.
    pub fn go_on(&mut self) -> Result<Option<Position>> {
        while let Some(item) = self.script.next()? {
            match item {
                Item::Same(event) => self.same(event)?,
                Item::Look(at, purpose) => {
                    self.waiting = Some(purpose);
                    return Ok(Some(at));
                }
                Item::Stops { instructions, cause, registers } => {
                    // What a call does to the vector registers nobody has seen.
                    self.stop(instructions, cause, State { registers, vectors: None })?;
                }
            }
        }
        self.writer.flush().map_err(told)?;
        self.made.log_bytes += self.writer.bytes_written;
        self.made.besides = self.script.besides();
        if self.script.position != self.length {
            return Err(format!(
                "the trace has {} instructions and the recording {}; please report it",
                self.length, self.script.position
            ));
        }
        Ok(None)
    }

    /// What there is of it, once there is no moment left.
    pub fn made(&self) -> Made {
        self.made.clone()
    }

    fn look(&mut self, scene: &Scene) -> Result<Option<Position>> {
        let state = State { registers: scene.registers, vectors: scene.recorded_vectors() };
        match self.waiting.take() {
            Some(Purpose::Copied { program }) => {
                self.same(program)?;
                scene.snapshot(&mut |event| self.same(event))?;
            }
            Some(Purpose::Start { thread }) => {
                let Position { event, ticks, .. } = scene.position;
                self.begin(thread, (event, ticks), state.clone())?;
                self.stop(0, Cause::Preempted, state)?;
            }
            Some(Purpose::Begin { written, thread, calls }) => {
                self.tell(scene, &written)?;
                let Position { event, ticks, .. } = scene.position;
                self.begin(thread, (event, ticks), state)?;
                calls.into_iter().try_for_each(|call| self.same(call))?;
            }
            Some(Purpose::End { instructions }) => {
                self.stop(instructions, Cause::Preempted, state)?;
            }
            Some(Purpose::Tell { written }) => self.tell(scene, &written)?,
            Some(Purpose::Over { written, last }) => {
                self.tell(scene, &written)?;
                let Last { thread, event, ticks, cause, registers } = last;
                let state = State { registers, ..state };
                self.begin(thread, (event, ticks), state.clone())?;
                let cause = if cause.is_own() { Cause::Preempted } else { cause };
                self.stop(0, cause, state)?;
            }
            None => {}
        }
        let (length, position) = (self.length, self.script.position);
        let bar = self.bar.get_or_insert_with(|| progress::of_instructions("slicing", length));
        bar.set_position(position);
        self.go_on()
    }

    /// A thread goes on at a position of the whole recording.
    fn begin(&mut self, thread: Thread, (event, ticks): (u64, u64), state: State) -> Result<()> {
        let before = self.threads.remove(&thread).unwrap_or_default();
        self.add(&Event::Skipped { event, ticks })?;
        if let Some(vectors) = &state.vectors
            && before.vectors.as_ref() != Some(vectors)
        {
            self.add(&Event::Vectors(vectors.clone()))?;
        }
        let registers = state.registers.changed_from(&before.registers);
        self.add(&Event::Resumed { thread, registers })?;
        self.running = Some((thread, state));
        Ok(())
    }

    fn stop(&mut self, instructions: u64, cause: Cause, state: State) -> Result<()> {
        let (thread, began) = self.running.take().expect("a stretch has begun");
        let registers = state.registers.changed_from(&began.registers);
        self.threads.insert(thread, state);
        // The one whose result is told is executed, too.
        let executed = instructions + u64::from(cause == Cause::Instruction);
        self.made.instructions += executed;
        self.made.stretches += u64::from(executed > 0);
        self.add(&Event::Stopped { instructions, cause, registers })
    }

    /// What memory holds now.
    fn tell(&mut self, scene: &Scene, written: &[Range<u64>]) -> Result<()> {
        /// So much goes into one event.
        const PART: u64 = 1 << 20;
        for range in written {
            for at in range.clone().step_by(PART as usize) {
                let mut bytes = vec![0; (range.end - at).min(PART) as usize];
                let got = scene.read(at, &mut bytes);
                if got < bytes.len() {
                    let at = at + got as u64;
                    return Err(format!("there is no memory at {at:#x}; please report it"));
                }
                self.made.told_bytes += bytes.len() as u64;
                self.add(&Event::Wrote { at, bytes })?;
            }
        }
        Ok(())
    }

    /// An event that is as it was.
    fn same(&mut self, event: Event) -> Result<()> {
        match &event {
            Event::Mapped { source: Source::File { hash, .. }, .. }
            | Event::Copied { hash, .. }
            | Event::CallFromFile { hash, .. } => self.keep(*hash)?,
            Event::Thread { thread, registers } => {
                let registers = Registers::default().apply(registers).unwrap_or_default();
                self.threads.insert(*thread, State { registers, vectors: None });
            }
            Event::ThreadEnded { thread } => drop(self.threads.remove(thread)),
            _ => {}
        }
        self.add(&event)?;
        if event == Event::Replaced {
            self.writer.flush().map_err(told)?;
            self.made.log_bytes += self.writer.bytes_written;
            self.program += 1;
            self.threads.clear();
            let path = self.to.stream(self.process, self.program);
            self.writer = Writer::create(&path).map_err(told)?;
        }
        Ok(())
    }

    /// The excerpt has a copy of the file as well.
    fn keep(&mut self, hash: Hash) -> Result<()> {
        if self.kept.insert(hash) {
            let path = self.from.path(hash);
            let name = path.display().to_string();
            let mut file = File::open(&path).map_err(|error| format!("reading {name}: {error}"))?;
            self.to.files().keep(&mut file, &name).map_err(told)?;
        }
        Ok(())
    }

    fn add(&mut self, event: &Event) -> Result<()> {
        self.made.events += 1;
        self.writer.add(event).map_err(told)
    }
}

impl Observer for Maker {
    fn arrived(&mut self, scene: &Scene) -> Then {
        match self.look(scene) {
            Ok(Some(position)) => Then::Until(Moment::At(position)),
            Ok(None) => Then::Enough,
            Err(error) => {
                self.failed = Some(error);
                Then::Enough
            }
        }
    }

    fn answer(&mut self) -> serde_json::Value {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let made = match self.failed.take() {
            None => Ok(&self.made),
            Some(error) => Err(error),
        };
        serde_json::to_value(made).expect("plain data")
    }
}
