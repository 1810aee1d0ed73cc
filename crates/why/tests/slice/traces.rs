//! Traces that are kept for further slices.

use super::recorded::Recorded;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

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

/// What is there besides the trace, by how its name ends.
fn beside(trace: &Path) -> Vec<String> {
    let files = fs::read_dir(trace.parent().unwrap()).unwrap();
    let names = files.map(|file| file.unwrap().path());
    let ends = names.filter_map(|name| Some(name.extension()?.to_str().unwrap().to_owned()));
    let mut ends: Vec<String> = ends.collect();
    ends.sort();
    ends
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
    assert_eq!(beside(&trace), ["json", "learnt"]);
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
    other.lock().unwrap();
    let first = answer(&recorded);
    assert_eq!(fs::read(&trace).unwrap(), packed);
    // It was killed meanwhile.
    drop(other);
    fs::write(&unfinished, vec![0xa5; 1 << 20]).unwrap();
    assert_eq!(answer(&recorded), first);
    assert_ne!(fs::read(&trace).unwrap(), packed);
    assert_eq!(beside(&trace), ["json", "learnt"]);
    // Another one was killed when there was nothing left to decode.
    fs::write(&unfinished, vec![0xa5; 1 << 20]).unwrap();
    assert_eq!(answer(&recorded), first);
    assert_eq!(beside(&trace), ["json", "learnt"]);
}

#[test]
fn one_process_at_a_time_makes_a_trace() {
    let recorded = recorded();
    let first = answer(&recorded);
    let trace = trace(&recorded);
    fs::remove_file(&trace).unwrap();
    let unfinished = trace.with_extension("unfinished");
    // Another one makes it, and is killed.
    let other = File::create(&unfinished).unwrap();
    other.lock().unwrap();
    let asking = [&ASK[..], &["--json", "--lines=1000"]].concat();
    let mut waiting = recorded.command(&asking);
    let mut waiting = waiting.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let told = waiting.stderr.take().unwrap();
    BufReader::new(told).read_line(&mut said).unwrap();
    assert!(said.contains("waiting for it"), "{said}");
    assert_eq!((trace.exists(), fs::metadata(&unfinished).unwrap().len()), (false, 0));
    drop(other);
    let output = waiting.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["answer"], first);
    assert_eq!(beside(&trace), ["json", "learnt"]);
}

#[test]
fn what_another_build_has_found_out_is_not_used() {
    let recorded = recorded();
    let first = answer(&recorded);
    let trace = trace(&recorded);
    let (beside, learnt) = (trace.with_extension("json"), trace.with_extension("learnt"));
    let told = fs::read_to_string(&beside).unwrap();
    let mut other: Value = serde_json::from_str(&told).unwrap();
    other["build"] = "another".into();
    fs::write(&beside, other.to_string()).unwrap();
    fs::write(&learnt, "of another build").unwrap();
    let file = |path: &Path| fs::metadata(path).unwrap().ino();
    // What is there would do, but nobody looks at it.
    let was = fs::File::open(&trace).unwrap();
    assert_eq!(answer(&recorded), first);
    assert_ne!(file(&trace), was.metadata().unwrap().ino());
    assert_eq!(fs::read_to_string(&beside).unwrap(), told);
    assert_ne!(fs::read(&learnt).unwrap(), b"of another build");
    let own = file(&trace);
    assert_eq!(answer(&recorded), first);
    assert_eq!(file(&trace), own);
}

#[test]
fn a_recording_that_cannot_be_written_to_is_sliced_without() {
    let recorded = recorded();
    let first = answer(&recorded);
    let derived = trace(&recorded).parent().unwrap().to_owned();
    fs::remove_dir_all(&derived).unwrap();
    fs::write(&derived, "no directory").unwrap();
    assert_eq!(answer(&recorded), first);
    assert_eq!(fs::read_to_string(&derived).unwrap(), "no directory");
}

#[test]
fn what_slices_have_learnt_is_kept_if_it_is_whole() {
    let recorded = recorded();
    let first = answer(&recorded);
    let learnt = trace(&recorded).with_extension("learnt");
    let whole = fs::read(&learnt).unwrap();
    assert_eq!(answer(&recorded), first);
    assert_eq!(fs::read(&learnt).unwrap(), whole);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for other in [damaged, whole[..whole.len() / 2].to_vec(), Vec::new()] {
        fs::write(&learnt, &other).unwrap();
        assert_eq!(answer(&recorded), first);
        assert_ne!(fs::read(&learnt).unwrap(), other);
        assert_eq!(answer(&recorded), first);
    }
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
        assert_eq!((trace.exists(), beside(&trace)), (false, vec!["json".to_owned()]));
        let anew = answer(&recorded);
        assert_eq!(*first.get_or_insert(anew.clone()), anew);
    }
}
