//! Processes that share memory run in the order in which they were recorded.

use crate::supervisor::{Outcome, Supervisor};
use crate::task::Tid;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Default)]
pub struct Turns {
    /// The turn that is had now, or next.
    next: u64,
    /// Who waits for which.
    waiting: BTreeMap<u64, Tid>,
}

impl Supervisor {
    /// The process has come to one of its turns: its last one is over.
    pub(super) fn waits_for_turn(&mut self, tid: Tid, order: u64) -> Outcome<bool> {
        self.end_turn(tid);
        if self.replayer(tid).alone {
            self.join_others(tid)?;
            return Ok(false);
        }
        let replayer = self.replayer(tid);
        replayer.turn = Some(order);
        let turns = Rc::clone(&replayer.turns);
        if turns.borrow().next >= order {
            return Ok(false);
        }
        self.remember_shared(tid)?;
        turns.borrow_mut().waiting.insert(order, tid);
        Ok(true)
    }

    /// Whoever has the next turn can go on.
    pub(super) fn end_turn(&mut self, tid: Tid) {
        let replayer = self.replayer(tid);
        let Some(turn) = replayer.turn.take() else {
            return;
        };
        let mut turns = replayer.turns.borrow_mut();
        turns.next = turns.next.max(turn + 1);
        let next = turns.next;
        let woken = turns.waiting.remove(&next);
        drop(turns);
        self.woken.extend(woken);
    }

    /// Lets those go on whose turn has come.
    pub(crate) fn replay_woken(&mut self) -> Outcome<()> {
        while let Some(tid) = self.woken.pop_front() {
            // It may have been ended because all has been seen.
            if self.tasks.get(&tid).is_some_and(|task| task.state.is_of_use()) {
                self.replay_revived(tid)?;
            }
        }
        self.look_for_missing_turn()
    }

    /// If all wait for a turn, somebody has left one out.
    fn look_for_missing_turn(&mut self) -> Outcome<()> {
        let Some(replayer) = self.replayers.values().next() else {
            return Ok(());
        };
        let turns = Rc::clone(&replayer.turns);
        let turns = turns.borrow();
        let waits = |tid: &Tid| turns.waiting.values().any(|waiting| waiting == tid);
        let mut living = self.tasks.values().filter(|task| task.state.is_of_use()).peekable();
        if living.peek().is_none() || !living.all(|task| waits(&task.tid)) {
            return Ok(());
        }
        if self.cut_short.is_some() {
            let waiting = turns.waiting.values().copied().collect();
            drop(turns);
            return self.cut_waiting(waiting);
        }
        let event = self.replayers.values().map(|replayer| replayer.events).max().unwrap_or(0);
        let how = format!("no process has turn {}, and all others wait for it", turns.next);
        Err(super::diverged(event, how))
    }
}
