//! Going to and fro in a replay. A session keeps copies of the process that is looked at while
//! it goes forward. To go back it revives the last one before the moment in question; where
//! there is none, it begins again: with a checkpoint of the recording, or with the program.
//!
//! The process is replayed alone. Only if it turns out to share memory with others it is
//! replayed together with them, and then it is never copied: it alone would not be enough.

use super::copies::{Copies, Kept, When};
use super::copying::{Copy, REPLACED};
use super::{Outputs, Replayer};
use crate::error::EngineError;
use crate::free_memory;
use crate::launch::Again;
use crate::ptrace::Registers;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::{State, Tid};
use std::cell::RefCell;
use std::rc::Rc;
use why_record::position::Moment;

/// What an event costs a replay, in instructions.
const EVENT_COST: u64 = 20_000;

pub(crate) struct Session {
    again: Again,
    outputs: Rc<RefCell<Outputs>>,
    /// A process with nothing in it, from which all others can be made.
    origin: Option<Tid>,
    copies: Copies<Copy>,
    /// The process shares memory with others.
    shares: bool,
}

impl Session {
    /// None if nobody wants to go back.
    pub(crate) fn new(again: &Again, outputs: &Rc<RefCell<Outputs>>) -> Option<Session> {
        let distance = again.look.as_ref()?.distance?;
        let (again, outputs) = (again.clone(), Rc::clone(outputs));
        let copies = Copies::new(distance);
        Some(Session { again, outputs, origin: None, copies, shares: false })
    }
}

impl Replayer {
    /// From the last checkpoint of the recording that is not behind so many events; without
    /// one, from the program's start.
    pub(crate) fn begin(
        again: &Again,
        from: Option<u64>,
        outputs: &Rc<RefCell<Outputs>>,
    ) -> Result<Replayer, EngineError> {
        let recording = why_record::store::Recording::open(&again.recording);
        let manifest = recording.manifest().map_err(EngineError::Recording)?;
        let is_unfinished = manifest.finished.is_none();
        let wanted = again.look.as_ref().map_or(again.process, |look| look.process);
        let from_checkpoint = match from {
            Some(events) => {
                Replayer::from_checkpoint(&recording, wanted, events, is_unfinished, outputs)?
            }
            None => None,
        };
        let mut replayer = match from_checkpoint {
            Some(replayer) => {
                outputs.borrow_mut().begin_anywhere();
                replayer
            }
            None => {
                let outputs = Rc::clone(outputs);
                let mut replayer = Replayer::new(&recording, again.process, outputs)?;
                replayer.beside = again.beside.clone();
                replayer
            }
        };
        replayer.is_unfinished = is_unfinished;
        replayer.look = again.look.clone();
        replayer.verify = again.verify;
        Ok(replayer)
    }

    /// How much work it is to get to the checkpoint that it begins with.
    fn work_before(&self) -> u64 {
        let events = self.goes_on.map_or(0, |place| place.events);
        self.before.saturating_add(events.saturating_mul(EVENT_COST))
    }
}

impl Supervisor {
    /// Keeps a process that has nothing in it yet.
    pub(super) fn keep_origin(&mut self, tid: Tid) -> Outcome<()> {
        if self.session.is_none() {
            return Ok(());
        }
        let origin = self.fork_stopped(tid)?;
        self.session.as_mut().expect("just seen").origin = origin;
        Ok(())
    }

    /// The process that a session is about begins: it goes on alone, if it can.
    pub(super) fn leave_others(&mut self, tid: Tid) -> Outcome<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let shares = session.shares;
        let replayer = self.replayer(tid);
        if shares || replayer.look().is_none() {
            return Ok(());
        }
        replayer.alone = true;
        replayer.beside.clear();
        replayer.outputs.borrow_mut().begin_anywhere();
        let withheld = std::mem::take(&mut replayer.withheld);
        for range in withheld {
            self.give_to_forks(tid, range)?;
        }
        self.end_others(tid);
        Ok(())
    }

    /// The process takes turns with others, so it cannot go on alone.
    pub(super) fn join_others(&mut self, tid: Tid) -> Outcome<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        session.shares = true;
        let copies = session.copies.take_all();
        copies.iter().for_each(|copy| self.drop_copy(copy));
        self.begin_again(tid, None)
    }

    /// Whether there is a better way to a moment than from here.
    pub(super) fn has_shorter_way(&mut self, tid: Tid, moment: Moment) -> bool {
        let (event, ticks) = self.when(tid);
        let Some(session) = &self.session else {
            return false;
        };
        let copy = session.copies.before(when(moment));
        copy.is_some_and(|kept| kept.when > (event, ticks))
            || session.stored_before(moment).is_some_and(|events| events > event)
    }

    /// Goes to a moment from the nearest one before it at which the process can be had. The
    /// process that is there is ended.
    pub(super) fn go_to(&mut self, tid: Tid, moment: Moment) -> Outcome<()> {
        let session = self.session.as_ref().expect("somebody asked for a session");
        let stored = session.stored_before(moment);
        let kept = match moment {
            Moment::Start => None,
            _ => session.copies.before(when(moment)),
        };
        match (kept.map(|kept| kept.when.0), stored) {
            (Some(event), stored) if stored.is_none_or(|events| events <= event) => {
                self.go_back_to_copy(tid, moment)
            }
            (_, stored) => self.begin_again(tid, stored),
        }
    }

    fn go_back_to_copy(&mut self, tid: Tid, moment: Moment) -> Outcome<()> {
        // It is out of the way while it is used, so that all else can be.
        let mut session = self.session.take().expect("somebody asked for a session");
        let kept = session.copies.before(when(moment)).expect("there is one");
        let revived = self.revive(&kept.copy);
        let work = kept.work;
        session.copies.begin_at(work);
        self.session = Some(session);
        let revived = revived?;
        self.report.rewinds += 1;
        self.replace(tid, revived)
    }

    /// Begins again, with the checkpoint behind so many events or with the program.
    fn begin_again(&mut self, tid: Tid, from: Option<u64>) -> Outcome<()> {
        let session = self.session.as_mut().expect("somebody asked for a session");
        let mut replayer = Replayer::begin(&session.again, from, &session.outputs)?;
        let Some(origin) = session.origin else {
            let none = std::io::Error::from(std::io::ErrorKind::OutOfMemory);
            return Err(EngineError::system("beginning the replay again")(none).into());
        };
        let beside = std::mem::take(&mut replayer.beside);
        let new = self.fork_living(origin)?;
        let space = self.tasks[&new].space;
        self.replayers.insert(space, replayer);
        self.own_log_of_fork(new)?;
        self.report.beginnings += 1;
        // Nobody else is there who would have to go before others are made.
        self.end_others(new);
        self.begin_process(new, beside)?;
        self.replace(tid, new)
    }

    /// What comes first in a process: it is alone, or others begin beside it.
    pub(super) fn begin_process(&mut self, tid: Tid, beside: Vec<i32>) -> Outcome<()> {
        let work = self.replayer(tid).work_before();
        if let Some(session) = &mut self.session {
            session.copies.begin_at(work);
        }
        self.leave_others(tid)?;
        if self.replayer(tid).alone {
            return Ok(());
        }
        beside.into_iter().try_for_each(|other| self.replay_fork(tid, other))
    }

    /// Another process goes on in the place of the one that was looked at.
    fn replace(&mut self, old: Tid, new: Tid) -> Outcome<()> {
        if self.tasks.contains_key(&old) {
            self.end_process(old);
        }
        self.first = new;
        self.woken.push_back(new);
        Err(REPLACED)
    }

    /// A process that was put in the place of another one goes on.
    pub(super) fn replay_revived(&mut self, tid: Tid) -> Outcome<()> {
        match self.task(tid).state {
            State::Ready(registers) => self.go_on(tid, registers),
            _ => self.replay_on(tid),
        }
    }

    /// Copies the process if it is time for that.
    pub(super) fn keep_copy(&mut self, tid: Tid, registers: &Registers) -> Outcome<()> {
        let Some(due) = self.copy_due(tid) else {
            return Ok(());
        };
        if self.space_of(tid).count().saturating_add(self.near_copy()) < due {
            return Ok(());
        }
        let (work, when) = (self.work(tid), self.when(tid));
        let session = self.session.as_mut().expect("a copy is due");
        let mut dropped = Vec::new();
        if !session.copies.is_wanted(work) {
            return Ok(());
        }
        if free_memory::is_short() {
            dropped.extend(session.copies.take_least(work));
        } else if let Some(copy) = self.copy_process(tid, registers)? {
            self.report.copies += 1;
            let session = self.session.as_mut().expect("a copy is due");
            session.copies.add(Kept { when, work, copy });
            dropped.extend(session.copies.take_superfluous(work));
        }
        dropped.iter().for_each(|copy| self.drop_copy(copy));
        Ok(())
    }

    /// The count of instructions at which a copy of this process is due, as long as there is
    /// no event before.
    pub(super) fn copy_due(&mut self, tid: Tid) -> Option<u64> {
        // To count takes a system call, and most replays are no session.
        let due = self.session.as_ref()?.copies.due();
        let replayer = self.replayer(tid);
        if !replayer.alone || replayer.look().is_none() {
            return None;
        }
        let (count, work) = (self.space_of(tid).count(), self.work(tid));
        Some(count.saturating_add(due.saturating_sub(work)))
    }

    /// So many instructions earlier a copy may be made.
    pub(super) fn near_copy(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.copies.near())
    }

    /// How much work it is to get here from the beginning.
    fn work(&mut self, tid: Tid) -> u64 {
        let count = self.space_of(tid).count();
        let replayer = self.replayer(tid);
        let events = replayer.events.saturating_mul(EVENT_COST);
        replayer.before.saturating_add(count).saturating_add(events)
    }

    /// The moment at which the process is.
    pub(super) fn when(&mut self, tid: Tid) -> When {
        let count = self.space_of(tid).count();
        let (event, since) = self.replayer(tid).resumed;
        (event, count.wrapping_sub(since))
    }
}

impl Session {
    /// The events in front of the last stored checkpoint before a moment.
    fn stored_before(&self, moment: Moment) -> Option<u64> {
        let events = match moment {
            Moment::Start => return None,
            Moment::At(position) => position.event.checked_sub(1)?,
            Moment::End => u64::MAX,
        };
        if self.shares {
            return None;
        }
        let process = self.again.look.as_ref()?.process;
        let recording = why_record::store::Recording::open(&self.again.recording);
        recording.last_checkpoint(process, events).map(|(_, events)| events)
    }
}

/// None of the end, which is behind all others.
fn when(moment: Moment) -> Option<When> {
    match moment {
        Moment::Start => Some((0, 0)),
        Moment::At(position) => Some((position.event, position.ticks)),
        Moment::End => None,
    }
}
