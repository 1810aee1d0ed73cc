//! Traces that are kept for further slices.

use super::recorded::Recorded;
use nix::fcntl::{Flock, FlockArg};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What depends on the whole of a trace of several chunks.
const ASK: [&str; 2] = ["slice", "end:w"];

/// A program whose trace has several chunks.
fn recorded() -> Recorded {
    Recorded::new("turns.c", &["-g", "-O1"], &["1000000"])
}

/// The trace of a recording that was sliced.
fn trace(recorded: &Recorded) -> PathBuf {
    let recordings = recorded.directory.path().join("recordings");
    let recording = fs::read_dir(&recordings).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(recording.join("derived")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    files.find(|file| file.extension().is_none()).unwrap()
}

fn answer(recorded: &Recorded) -> Value {
    recorded.json(&ASK)["answer"].clone()
}

/// What is there besides the trace and what belongs to it.
fn beside(trace: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(trace.parent().unwrap()).unwrap();
    let mut names: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    names.retain(|name| name != trace && name.extension().is_none_or(|kind| kind != "json"));
    names
}

#[test]
fn what_a_slice_has_decoded_further_ones_need_not() {
    let recorded = recorded();
    // What the stack pointer was nobody made: nothing is decoded for that.
    recorded.json(&["slice", "main#1:%rsp"]);
    let trace = trace(&recorded);
    let packed = fs::read(&trace).unwrap();
    let first = answer(&recorded);
    let decoded = fs::read(&trace).unwrap();
    assert_ne!(packed, decoded);
    assert_eq!(answer(&recorded), first);
    // There was nothing more to do.
    assert_eq!(fs::read(&trace).unwrap(), decoded);
    assert_eq!(beside(&trace), Vec::<PathBuf>::new());
    fs::write(&trace, packed).unwrap();
    assert_eq!(answer(&recorded), first);
}

#[test]
fn one_process_at_a_time_keeps_what_it_decodes() {
    let recorded = recorded();
    recorded.json(&["slice", "main#1:%rsp"]);
    let trace = trace(&recorded);
    let packed = fs::read(&trace).unwrap();
    // Another one does so.
    let unfinished = trace.with_extension("decoded");
    let other = File::create(&unfinished).unwrap();
    let other = Flock::lock(other, FlockArg::LockExclusive).unwrap();
    let first = answer(&recorded);
    assert_eq!(fs::read(&trace).unwrap(), packed);
    // It was killed meanwhile.
    drop(other);
    fs::write(&unfinished, [0xa5; 1 << 20]).unwrap();
    assert_eq!(answer(&recorded), first);
    assert_ne!(fs::read(&trace).unwrap(), packed);
    assert_eq!(beside(&trace), Vec::<PathBuf>::new());
    assert_eq!(answer(&recorded), first);
}

/// Damages what is first in a trace, chunks that were decoded or not.
#[test]
fn a_trace_that_was_damaged_is_made_anew() {
    let recorded = recorded();
    recorded.json(&["slice", "main#1:%rsp"]);
    let trace = trace(&recorded);
    let mut first = None;
    for _ in 0..2 {
        let mut bytes = fs::read(&trace).unwrap();
        bytes[..64].fill(0xa5);
        fs::write(&trace, bytes).unwrap();
        let said = recorded.refused(&ASK, 1);
        assert!(said.contains("ask again, and it is made anew"), "{said}");
        assert!(!trace.exists() && beside(&trace).is_empty());
        let anew = answer(&recorded);
        assert_eq!(*first.get_or_insert(anew.clone()), anew);
    }
}
