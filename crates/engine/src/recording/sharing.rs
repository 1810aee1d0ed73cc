//! Processes that share memory: while recording, they run one at a time, as threads do, and
//! the order in which they ran is told.

use super::Recorder;
use crate::error::EngineError;
use crate::maps::{self, Mapping};
use crate::memory::Address;
use crate::ptrace;
use crate::space::SpaceId;
use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use why_record::event::Event;

/// Memory that may be mapped several times.
pub(super) type Object = u32;

/// What is mapped, by device and inode.
type File = (String, u64);

/// What is not written is lost if the recorder is killed.
const AT_LEAST_EVERY: Duration = Duration::from_millis(250);

#[derive(Default)]
pub(super) struct Sharing {
    /// Who has mapped an object, and whether to write to it.
    views: FxHashMap<Object, FxHashMap<SpaceId, bool>>,
    /// Who shares memory with another one.
    members: FxHashSet<SpaceId>,
    /// Members that have a thread that can go on.
    waiting: VecDeque<SpaceId>,
    /// Whose events the last turn holds, and how many turns there were.
    holder: Option<SpaceId>,
    turns: u64,
    /// The member of which a thread runs now.
    running: Option<SpaceId>,
    /// What happened to others meanwhile.
    late: VecDeque<(SpaceId, Late)>,
    /// Where in shared memory the kernel writes when a process ends: file and offset.
    words: FxHashMap<SpaceId, Vec<(File, u64)>>,
}

enum Late {
    Event(Event),
    Close,
}

impl Sharing {
    /// The processes that must take turns because one of them has mapped an object.
    fn sharers(&self, object: Object) -> Vec<SpaceId> {
        let Some(views) = self.views.get(&object) else {
            return Vec::new();
        };
        if views.len() < 2 || !views.values().any(|&writable| writable) {
            return Vec::new();
        }
        views.keys().copied().collect()
    }

    fn forget(&mut self, space: SpaceId) {
        for views in self.views.values_mut() {
            views.remove(&space);
        }
        self.members.remove(&space);
        self.waiting.retain(|waiting| *waiting != space);
    }
}

impl Recorder {
    /// Whether somebody has mapped an object to write to it.
    pub(super) fn is_written_to(&self, object: Object) -> bool {
        let views = self.sharing.views.get(&object);
        views.is_some_and(|views| views.values().any(|&writable| writable))
    }

    /// Writes an event of a process where it belongs among those of others.
    pub(super) fn add(&mut self, space: SpaceId, event: &Event) -> Outcome<()> {
        if !self.sharing.members.contains(&space) {
            return self.write(space, event);
        }
        if self.sharing.running.is_some_and(|running| running != space) {
            self.sharing.late.push_back((space, Late::Event(event.clone())));
            return Ok(());
        }
        // A thread that began to run before its process shared memory stops without a turn.
        let ends_stretch =
            matches!(event, Event::Calls(_) | Event::CallFromFile { .. } | Event::Stopped { .. });
        if self.sharing.holder != Some(space) && !ends_stretch {
            self.begin_turn(space)?;
        }
        self.write(space, event)?;
        match event {
            Event::Resumed { .. } => self.sharing.running = Some(space),
            Event::Stopped { .. } => {
                self.sharing.running = None;
                self.catch_up()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_turn(&mut self, space: SpaceId) -> Outcome<()> {
        self.sharing.holder = Some(space);
        let order = self.sharing.turns;
        self.sharing.turns += 1;
        self.write(space, &Event::Turn { order })
    }

    fn write(&mut self, space: SpaceId, event: &Event) -> Outcome<()> {
        let Some(log) = self.logs.get_mut(&space) else {
            return Ok(());
        };
        self.events += 1;
        log.events += 1;
        let before = log.writer.written();
        log.writer.add(event).map_err(EngineError::Recording)?;
        let was_full = log.writer.written() != before;
        if was_full || self.written.elapsed() >= AT_LEAST_EVERY {
            self.write_all()?;
        }
        Ok(())
    }

    /// Writes what has happened to all processes: nobody could replay one without what was before it
    /// in others, such as in the one that has forked it and only waits.
    pub(super) fn write_all(&mut self) -> Outcome<()> {
        self.written = Instant::now();
        let mut logs = self.logs.values_mut();
        Ok(logs.try_for_each(|log| log.writer.flush()).map_err(EngineError::Recording)?)
    }

    /// Writes what has happened while somebody else ran.
    fn catch_up(&mut self) -> Outcome<()> {
        for (space, late) in std::mem::take(&mut self.sharing.late) {
            match late {
                Late::Event(event) => self.add(space, &event)?,
                Late::Close => self.close(space)?,
            }
        }
        Ok(())
    }

    /// The stream of a process is complete.
    pub(super) fn close(&mut self, space: SpaceId) -> Outcome<()> {
        if self.sharing.late.iter().any(|(late, _)| *late == space) {
            self.sharing.late.push_back((space, Late::Close));
            return Ok(());
        }
        if self.sharing.members.contains(&space) {
            self.write_all()?;
        }
        if self.sharing.running == Some(space) {
            // It was killed where nobody could look.
            self.sharing.running = None;
        }
        self.sharing.forget(space);
        if let Some(mut log) = self.logs.remove(&space) {
            log.writer.flush().map_err(EngineError::Recording)?;
            self.bytes += log.writer.bytes_written;
        }
        self.catch_up()
    }
}

impl Supervisor {
    /// A process has mapped an object.
    pub(super) fn record_view(
        &mut self,
        space: SpaceId,
        object: Object,
        writable: bool,
    ) -> Outcome<()> {
        let recorder = self.recorder.as_mut().expect("recording");
        let views = recorder.sharing.views.entry(object).or_default();
        *views.entry(space).or_default() |= writable;
        self.share(object)
    }

    /// A process has become writable what it had mapped before.
    pub(super) fn record_writable(&mut self, space: SpaceId) -> Outcome<()> {
        let recorder = self.recorder.as_mut().expect("recording");
        let views = recorder.sharing.views.iter();
        let objects: Vec<Object> = views
            .filter(|(_, views)| views.contains_key(&space))
            .map(|(object, _)| *object)
            .collect();
        for object in objects {
            self.record_view(space, object, true)?;
        }
        Ok(())
    }

    /// A new process has mapped what its parent has.
    pub(super) fn record_inherited_views(
        &mut self,
        parent: SpaceId,
        child: SpaceId,
    ) -> Outcome<()> {
        let recorder = self.recorder.as_mut().expect("recording");
        let mut objects = Vec::new();
        for (object, views) in &mut recorder.sharing.views {
            if let Some(&writable) = views.get(&parent) {
                views.insert(child, writable);
                objects.push(*object);
            }
        }
        objects.into_iter().try_for_each(|object| self.share(object))
    }

    /// Lets those who share an object take turns from now on, after what they have done. What
    /// a new one finds there must not change while it is told.
    fn share(&mut self, object: Object) -> Outcome<()> {
        let recorder = self.recorder.as_mut().expect("recording");
        let all = recorder.sharing.sharers(object);
        let mut new = all.clone();
        new.retain(|space| recorder.sharing.members.insert(*space));
        if new.is_empty() {
            return Ok(());
        }
        for &space in &new {
            if let Some(log) = recorder.logs.get_mut(&space) {
                log.checkpoints.give_up();
                if log.running.is_some() {
                    recorder.sharing.running = Some(space);
                }
            }
            if let Some(space) = self.spaces.get_mut(&space) {
                space.careful = true;
            }
        }
        for space in all {
            self.stop_running(space)?;
        }
        for space in new {
            let recorder = self.recorder.as_mut().expect("recording");
            recorder.begin_turn(space)?;
        }
        Ok(())
    }

    /// Stops what a member executes that another one must not run beside.
    pub(super) fn stop_running(&mut self, space: SpaceId) -> Outcome<()> {
        loop {
            let current = self.spaces.get(&space).and_then(|space| space.current);
            let runs = |tid: &Tid| {
                let recorder = self.recorder.as_ref().expect("recording");
                recorder.logs.get(&space).is_some_and(|log| log.running == Some(*tid))
            };
            let Some(current) = current.filter(runs) else {
                return Ok(());
            };
            if let Some(space) = self.spaces.get_mut(&space) {
                space.must_stop = true;
            }
            if ptrace::interrupt(current).is_err() {
                return Ok(());
            }
            let Ok(stop) = self.wait_for(current) else {
                // It is ending; that will be told.
                return Ok(());
            };
            match self.handle(current, stop) {
                Ok(()) | Err(crate::error::Halt::Gone) => {}
                error => return error,
            }
        }
    }

    /// The thread that runs in a process with which this one takes turns.
    fn other_running(&self, space: SpaceId) -> Option<Tid> {
        let sharing = &self.recorder.as_ref()?.sharing;
        if !sharing.members.contains(&space) {
            return None;
        }
        let others = sharing.members.iter().filter(|member| **member != space);
        others.filter_map(|other| self.spaces.get(other)).find_map(|space| space.current)
    }

    /// Whether nobody runs beside whom a thread of this process must not.
    pub(crate) fn may_run(&self, space: SpaceId) -> bool {
        self.other_running(space).is_none()
    }

    /// Whether the thread, which could go on, has to wait for another process.
    pub(crate) fn waits_for_others(&mut self, tid: Tid) -> bool {
        let id = self.tasks[&tid].space;
        let Some(running) = self.other_running(id) else {
            return false;
        };
        let waiting = &mut self.recorder.as_mut().expect("recording").sharing.waiting;
        if !waiting.contains(&id) {
            waiting.push_back(id);
        }
        let space = self.space_of(tid);
        space.current = None;
        space.ready.push_front(tid);
        // Its end, if it is gone, is reported separately.
        let _ = ptrace::interrupt(running);
        self.start_timer();
        true
    }

    /// Whether a process has to let others run.
    pub(crate) fn others_wait(&self, space: SpaceId) -> bool {
        let others = |recorder: &Recorder| {
            let sharing = &recorder.sharing;
            sharing.members.contains(&space) && sharing.waiting.iter().any(|other| *other != space)
        };
        self.recorder.as_ref().is_some_and(others)
    }

    /// Whether a process that has just stopped has to wait until others have run.
    pub(crate) fn gives_way(&mut self, space: SpaceId) -> bool {
        if !self.others_wait(space) {
            return false;
        }
        let recorder = self.recorder.as_mut().expect("recording");
        let ready = self.spaces.get(&space).is_some_and(|space| !space.ready.is_empty());
        if ready && !recorder.sharing.waiting.contains(&space) {
            recorder.sharing.waiting.push_back(space);
        }
        true
    }

    /// If none of those who share memory runs, the next one does.
    pub(crate) fn hand_over(&mut self) -> Outcome<()> {
        loop {
            let Some(recorder) = &mut self.recorder else {
                return Ok(());
            };
            let sharing = &mut recorder.sharing;
            if sharing.waiting.is_empty() {
                return Ok(());
            }
            let mut members = sharing.members.iter().filter_map(|member| self.spaces.get(member));
            if members.any(|space| space.current.is_some()) {
                return Ok(());
            }
            let next = sharing.waiting.pop_front();
            let space = next.and_then(|next| self.spaces.get_mut(&next));
            if let Some(space) = &space
                && space.schedule.is_some()
                && !space.ready.is_empty()
            {
                return next.map_or(Ok(()), |next| self.choose(next));
            }
            if let Some(tid) = space.and_then(|space| space.ready.pop_front()) {
                return self.turn(tid);
            }
        }
    }

    /// Processes may be about to end: which locks in shared memory the kernel would then
    /// take from them.
    pub(crate) fn look_at_shared_locks(&mut self) {
        let members = match &self.recorder {
            Some(recorder) => recorder.sharing.members.clone(),
            None => return,
        };
        for member in members {
            let threads = self.tasks.values().filter(|task| task.space == member);
            let threads: Vec<Tid> = threads.map(|task| task.tid).collect();
            let Some(Ok(maps)) = threads.first().map(|tid| maps::read(*tid)) else {
                continue;
            };
            let words = threads.iter().flat_map(|&tid| self.words_at_end(tid));
            let place = |word: Address| {
                let mapping = maps.iter().find(|m| m.shared && m.range.contains(&word))?;
                let file = (mapping.device.clone(), mapping.inode);
                Some((file, mapping.offset + (word - mapping.range.start)))
            };
            let words: Vec<(File, u64)> = words.filter_map(place).collect();
            let recorder = self.recorder.as_mut().expect("recording");
            recorder.sharing.words.insert(member, words);
        }
    }

    /// A process has ended, and the kernel has taken its locks: others see that.
    pub(super) fn record_shared_words(&mut self, ended: SpaceId) -> Outcome<()> {
        let recorder = self.recorder.as_mut().expect("recording");
        let words = recorder.sharing.words.remove(&ended).unwrap_or_default();
        if words.is_empty() {
            return Ok(());
        }
        let members = recorder.sharing.members.clone();
        let others = self.tasks.values().filter(|task| members.contains(&task.space));
        let others: FxHashMap<SpaceId, Tid> = others.map(|task| (task.space, task.tid)).collect();
        for (space, tid) in others {
            let maps = maps::read(tid)?;
            for (file, offset) in &words {
                let shows = |m: &&Mapping| {
                    let size = m.range.end - m.range.start;
                    m.shared
                        && (&m.device, m.inode) == (&file.0, file.1)
                        && (m.offset..m.offset + size).contains(offset)
                };
                let Some(mapping) = maps.iter().find(shows) else {
                    continue;
                };
                let at = mapping.range.start + (offset - mapping.offset);
                let mut bytes = vec![0; 4];
                if self.spaces[&space].memory.read_exact(at, &mut bytes).is_err() {
                    continue;
                }
                let event = Event::Wrote { at, bytes };
                let recorder = self.recorder.as_mut().expect("recording");
                if recorder.sharing.running == Some(space) {
                    recorder.sharing.late.push_back((space, Late::Event(event)));
                } else {
                    recorder.add(space, &event)?;
                }
            }
        }
        Ok(())
    }
}
