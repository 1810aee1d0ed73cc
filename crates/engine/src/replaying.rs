//! Runs a recorded process again.
//!
//! All that comes from outside is in the stream, so one kernel thread is enough, whatever
//! the number of threads recorded: it is given the registers of whoever is to go on. It
//! runs until it stops of itself, or until it has executed as many instructions as the
//! recorded one had when something came from outside.

use crate::error::{EngineError, Halt};
use crate::maps::Mapping;
use crate::memory::Address;
use crate::ptrace::{self, Registers};
use crate::recording::recorded;
use crate::report::Ended;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsFd;
use why_record::event::{self, Access, Cause, Event, Source, Stream, Thread};
use why_record::files::Files;
use why_record::registers::{Changed, FLAGS, Registers as Recorded};
use why_record::store::Recording;
use why_record::stream::Reader;

pub struct Replayer {
    stream: Reader,
    files: Files,
    /// Each thread while it does not run.
    threads: FxHashMap<Thread, Saved>,
    running: Thread,
    /// What the running thread will stop for.
    next: Option<Stop>,
    /// Vector registers for the thread that is resumed next.
    vectors: Option<Vec<u8>>,
    /// Application memory that is mapped.
    mapped: Vec<Range<Address>>,
    pub events: u64,
    /// Where the output goes.
    outputs: Outputs,
}

pub struct Outputs {
    pub output: Box<dyn Write>,
    pub error: Box<dyn Write>,
}

#[derive(Clone)]
struct Saved {
    registers: Recorded,
    vectors: Option<Vec<u8>>,
}

#[derive(Clone)]
struct Stop {
    /// The process's count of instructions there.
    at: u64,
    cause: Cause,
    registers: Recorded,
}

/// Flags that an addition to the count may leave behind where the program does not look.
const ARITHMETIC_FLAGS: u64 = 0x8d5;

impl Replayer {
    pub fn new(recording: &Recording, process: Thread, outputs: Outputs) -> Result<Replayer, EngineError> {
        let stream = Reader::open(&recording.stream(process)).map_err(EngineError::Recording)?;
        Ok(Replayer {
            stream,
            files: recording.files(),
            threads: FxHashMap::default(),
            running: 0,
            next: None,
            vectors: None,
            mapped: Vec::new(),
            events: 0,
            outputs,
        })
    }

    fn next_event(&mut self) -> Outcome<Option<Event>> {
        self.events += 1;
        Ok(self.stream.next().map_err(EngineError::Recording)?)
    }
}

impl Supervisor {
    pub(crate) fn replays(&self) -> bool {
        self.replayer.is_some()
    }

    fn replayer(&mut self) -> &mut Replayer {
        self.replayer.as_mut().expect("replaying")
    }

    /// Takes from a new process all that is not the engine's, and begins.
    pub(crate) fn begin_replay(&mut self, tid: Tid, maps: &[Mapping]) -> Outcome<()> {
        for mapping in maps.iter().filter(|m| m.name != "[vsyscall]") {
            let size = mapping.range.end - mapping.range.start;
            self.call(tid, libc::SYS_munmap, [mapping.range.start, size, 0, 0, 0, 0])?;
        }
        self.space_of(tid).current = Some(tid);
        self.space_of(tid).ran_last = Some(tid);
        self.replay_on(tid)
    }

    /// The thread has stopped; what is recorded is done, and the next one goes on.
    pub(crate) fn replay_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<()> {
        self.check_stop(tid, at, cause)?;
        self.task(tid).stops_at = None;
        if cause == Cause::Instruction {
            // It is not executed here, but it was.
            self.adjust_count(tid, 1);
        }
        let saved = Saved { registers: recorded(at), vectors: Some(ptrace::vectors(tid)?) };
        let replayer = self.replayer();
        let running = replayer.running;
        replayer.threads.insert(running, saved);
        self.replay_on(tid)
    }

    /// Whether it has stopped where the recorded one did.
    fn check_stop(&mut self, tid: Tid, at: &Registers, cause: Cause) -> Outcome<()> {
        let count = self.space_of(tid).count();
        let replayer = self.replayer();
        let event = replayer.events;
        let Some(expected) = replayer.next.take() else {
            return Err(diverged(event, "the recording has no more events".to_owned()));
        };
        if expected.cause != cause || expected.at != count {
            return Err(diverged(
                event,
                format!(
                    "recorded: {:?} after {} instructions; here: {cause:?} after {count}",
                    expected.cause, expected.at
                ),
            ));
        }
        let (mut here, mut there) = (recorded(at), expected.registers);
        if !cause.is_own() {
            here.0[FLAGS] &= !ARITHMETIC_FLAGS;
            there.0[FLAGS] &= !ARITHMETIC_FLAGS;
        }
        if let Some((name, here, there)) = here.differences(&there).first() {
            let what = format!("{name} is {here:#x} and was {there:#x}");
            return Err(diverged(event, format!("after {count} instructions {what}")));
        }
        Ok(())
    }

    /// Does what the stream says up to where a thread goes on.
    pub(crate) fn replay_on(&mut self, tid: Tid) -> Outcome<()> {
        loop {
            match self.replayer().next_event()? {
                Some(Event::Resumed { thread, registers }) => {
                    return self.replay_resume(tid, thread, &registers);
                }
                Some(Event::Ended(ended)) => return self.replay_end(tid, ended),
                Some(event) => self.replay_event(tid, event)?,
                None => return Err(cut_short(self.replayer().events)),
            }
        }
    }

    fn replay_resume(&mut self, tid: Tid, thread: Thread, registers: &Changed) -> Outcome<()> {
        let replayer = self.replayer();
        let event = replayer.events;
        let before = replayer.threads.remove(&thread);
        let told = replayer.vectors.take();
        let before_registers = before.as_ref().map(|saved| saved.registers).unwrap_or_default();
        let Some(start) = before_registers.apply(registers) else {
            return Err(diverged(event, "registers are told that there are not".to_owned()));
        };
        let vectors = told.or(before.and_then(|saved| saved.vectors));
        replayer.running = thread;
        let next = replayer.next_event()?;
        let stop = match next {
            Some(Event::Stopped { instructions, cause, registers }) => {
                let Some(registers) = start.apply(&registers) else {
                    return Err(diverged(event, "registers are told that there are not".to_owned()));
                };
                Some((instructions, cause, registers))
            }
            Some(Event::Ended(ended)) => {
                // It was ended from outside while it ran.
                return self.replay_end(tid, ended);
            }
            None => return Err(cut_short(event)),
            Some(other) => {
                return Err(diverged(event, format!("a thread goes on, and then {other:?}")));
            }
        };
        if let Some(vectors) = vectors {
            ptrace::set_vectors(tid, &vectors)?;
        }
        let count = self.space_of(tid).count();
        let (instructions, cause, registers) = stop.expect("seen");
        let at = count.wrapping_add(instructions);
        self.replayer().next = Some(Stop { at, cause, registers });
        let application = self.application_registers(tid, &start)?;
        if cause.is_own() {
            self.space_of(tid).stop_nowhere();
            return self.enter(tid, application);
        }
        self.run_up_to(tid, application, at)
    }

    /// Runs the thread until the process has executed so many instructions.
    pub(crate) fn run_up_to(&mut self, tid: Tid, registers: Registers, at: u64) -> Outcome<()> {
        /// A unit may have executed so many before it looks.
        const FEW: u64 = 64;
        let count = self.space_of(tid).count();
        let left = at.wrapping_sub(count);
        if left == 0 {
            let cause = self.replayer().next.as_ref().map(|stop| stop.cause);
            return self.replay_stop(tid, &registers, cause.expect("a stop was set"));
        }
        let progress = self.task(tid).looked_at.replace(count) != Some(count);
        self.task(tid).stops_at = Some(at);
        if left <= FEW || !progress {
            return self.enter_few(tid, registers, left.min(FEW) as usize, false);
        }
        self.space_of(tid).stop_within(left - FEW);
        self.enter(tid, registers)
    }

    /// A thread has come to where somebody has to look how far it has come.
    pub(crate) fn stopped_on_the_way(&mut self, tid: Tid, registers: Registers) -> Outcome<()> {
        match self.task(tid).stops_at {
            Some(at) => self.run_up_to(tid, registers, at),
            None => self.enter(tid, registers),
        }
    }

    /// Registers as the engine has them.
    fn application_registers(&mut self, tid: Tid, recorded: &Recorded) -> Outcome<Registers> {
        let base = ptrace::registers(tid)?;
        let r = recorded.0;
        Ok(Registers {
            rax: r[0],
            rcx: r[1],
            rdx: r[2],
            rbx: r[3],
            rsp: r[4],
            rbp: r[5],
            rsi: r[6],
            rdi: r[7],
            r8: r[8],
            r9: r[9],
            r10: r[10],
            r11: r[11],
            r12: r[12],
            r13: r[13],
            r14: r[14],
            r15: r[15],
            rip: r[16],
            eflags: r[17],
            fs_base: r[18],
            gs_base: self.space_of(tid).context,
            orig_rax: u64::MAX,
            ..base
        })
    }

    fn replay_event(&mut self, tid: Tid, event: Event) -> Outcome<()> {
        match event {
            Event::Vectors(vectors) => self.replayer().vectors = Some(vectors),
            Event::Wrote { at, bytes } => {
                self.code_replaced(tid, at..at + bytes.len() as u64)?;
                let written = self.space_of(tid).memory.write(at, &bytes);
                if written.is_err() {
                    let event = self.replayer().events;
                    return Err(diverged(event, format!("there is no memory at {at:#x}")));
                }
            }
            Event::Mapped { at, size, access, source } => {
                self.replay_map(tid, at, size, access, &source)?;
            }
            Event::Unmapped { at, size } => self.replay_unmap(tid, at..at + size)?,
            Event::Protected { at, size, access } => {
                self.set_access(tid, at..at + size, access)?;
            }
            Event::Moved { from, size, to, new_size } => {
                self.replay_move(tid, from, size, to, new_size)?;
            }
            Event::Executed { .. } => {
                for range in std::mem::take(&mut self.replayer().mapped) {
                    self.replay_unmap(tid, range)?;
                }
            }
            Event::Output { stream, at, size } => self.replay_output(tid, stream, at, size)?,
            Event::Forked { .. } => {}
            Event::ThreadEnded { thread } => drop(self.replayer().threads.remove(&thread)),
            Event::Stopped { .. } | Event::Resumed { .. } | Event::Ended(_) => {
                let event_number = self.replayer().events;
                return Err(diverged(event_number, "a thread stops that did not run".to_owned()));
            }
        }
        Ok(())
    }

    fn replay_map(
        &mut self,
        tid: Tid,
        at: Address,
        size: u64,
        access: Access,
        source: &Source,
    ) -> Outcome<()> {
        let range = at..at.saturating_add(size);
        self.forget_code(tid, range.clone())?;
        let fixed = libc::MAP_PRIVATE | libc::MAP_FIXED;
        match source {
            Source::Zero | Source::Stack | Source::Shared { hash: None, .. } => {
                let grows = if *source == Source::Stack { libc::MAP_GROWSDOWN } else { 0 };
                let flags = (fixed | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | grows) as u64;
                let map = [at, size, protection(access) as u64, flags, u64::MAX, 0];
                self.must(tid, "mapping recorded memory", libc::SYS_mmap, map)?;
            }
            Source::File { hash, offset } | Source::Shared { hash: Some(hash), offset, .. } => {
                let file = self.replayer().files.open(*hash).map_err(EngineError::Recording)?;
                let protection = protection(access);
                let part = crate::inject::Part { at, offset: *offset, size, times: 1, protection };
                self.map_recorded(tid, file.as_fd(), &part, fixed)?;
            }
        }
        self.replayer().mapped.push(range.clone());
        if access.execute {
            self.allow_code(tid, range, access.write, false)?;
        }
        Ok(())
    }

    fn replay_unmap(&mut self, tid: Tid, range: Range<Address>) -> Outcome<()> {
        self.forget_code(tid, range.clone())?;
        let arguments = [range.start, range.end - range.start, 0, 0, 0, 0];
        self.must(tid, "unmapping recorded memory", libc::SYS_munmap, arguments)?;
        Ok(())
    }

    fn set_access(&mut self, tid: Tid, range: Range<Address>, access: Access) -> Outcome<()> {
        self.forget_code(tid, range.clone())?;
        self.protect(tid, range.start, range.end - range.start, protection(access))?;
        if access.execute {
            self.allow_code(tid, range, access.write, false)?;
        }
        Ok(())
    }

    fn replay_move(
        &mut self,
        tid: Tid,
        from: Address,
        size: u64,
        to: Address,
        new_size: u64,
    ) -> Outcome<()> {
        self.forget_code(tid, from..from + size)?;
        self.forget_code(tid, to..to + new_size)?;
        let flags = if from == to { 0 } else { libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED };
        let arguments = [from, size, new_size, flags as u64, to, 0];
        self.must(tid, "moving recorded memory", libc::SYS_mremap, arguments)?;
        self.replayer().mapped.push(to..to + new_size);
        Ok(())
    }

    fn replay_output(&mut self, tid: Tid, to: Stream, at: Address, size: u64) -> Outcome<()> {
        let mut left = at..at.saturating_add(size);
        let mut buffer = vec![0; size.min(1 << 20) as usize];
        while !left.is_empty() {
            let part = (left.end - left.start).min(buffer.len() as u64) as usize;
            let got = self.space_of(tid).memory.read(left.start, &mut buffer[..part]).unwrap_or(0);
            if got == 0 {
                break;
            }
            let outputs = &mut self.replayer().outputs;
            let stream = match to {
                Stream::Output => &mut outputs.output,
                Stream::Error => &mut outputs.error,
            };
            // Whoever reads it may have gone, as in a pipe to `head`.
            let _ = stream.write_all(&buffer[..got]);
            left.start += got as u64;
        }
        Ok(())
    }

    /// The recorded process ended here.
    fn replay_end(&mut self, tid: Tid, ended: event::Ended) -> Outcome<()> {
        let outputs = &mut self.replayer().outputs;
        let _ = outputs.output.flush();
        let _ = outputs.error.flush();
        self.sample(tid);
        self.report.events = self.replayer().events;
        self.report.ended = Some(match ended {
            event::Ended::Status(status) => Ended::Status(status),
            event::Ended::Signal(signal) => Ended::Signal(signal),
        });
        (self.options.on_end)(&self.report);
        self.replay_over = true;
        Err(Halt::Gone)
    }
}

fn protection(access: Access) -> i32 {
    let mut protection = libc::PROT_NONE;
    if access.read || access.execute {
        protection |= libc::PROT_READ;
    }
    if access.write {
        protection |= libc::PROT_WRITE;
    }
    protection
}

fn diverged(event: u64, how: String) -> Halt {
    Halt::Engine(EngineError::Diverged { event, how })
}

fn cut_short(event: u64) -> Halt {
    Halt::Engine(EngineError::CutShort { event })
}

