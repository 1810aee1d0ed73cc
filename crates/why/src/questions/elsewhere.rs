//! Which other processes of a recording executed what one of them never did, such as one that it
//! forked.

use super::{Question, Stats, ask};
use crate::criterion::{Criterion, Place};
use crate::executions::Absent;
use why_record::store::Recording;
use why_record::summary;

/// In more processes it is not looked for: each is replayed.
const MOST: usize = 16;

/// Behind the message that a process never executed some code: those that did, if any.
pub fn told(
    recording: &Recording,
    process: i32,
    absent: &Absent,
    stats: &mut Stats,
) -> Option<String> {
    let Absent::Never(code) = absent else { return None };
    let processes = summary::processes(recording).ok()?;
    let others = processes.iter().map(|other| other.pid).filter(|other| *other != process);
    let question = |process: i32| {
        let criterion = Criterion { place: Place::Code(code.clone(), None), value: None };
        Question { text: "", process, criterion, is_written: false, told: None }
    };
    let mut questions: Vec<Question> = others.take(MOST).map(question).collect();
    ask(recording, &mut questions, false, stats).ok()?;
    let did = questions.iter().filter(|question| question.answer().is_ok());
    let did: Vec<String> = did.map(|question| question.process.to_string()).collect();
    let first = did.first()?;
    let (processes, all) = match did.as_slice() {
        [_] => ("process", first.clone()),
        [rest @ .., last] => ("processes", format!("{} and {last}", rest.join(", "))),
        [] => return None,
    };
    Some(format!(" in process {process}, but in {processes} {all}: give {first}/{code}"))
}
