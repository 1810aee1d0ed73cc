//! Files of a recording that are not what they were.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::random::Random;
use crate::support::recorded::{Setting, files_below, said_in_one_line, text};

/// Two processes, of which one executes two programs.
const SCRIPT: &str = "echo one; (echo two; exec cat /dev/null); echo three; exit 5";
const SAID: &str = "one\ntwo\nthree\n";
const STATUS: i32 = 5;

/// A whole recording, and what is to be damaged: a copy of it.
struct Damaged {
    setting: Setting,
}

impl Damaged {
    fn new() -> Damaged {
        let setting = Setting::new();
        let recorded = setting.run(&["record", "-o", "good", "--", "bash", "-c", SCRIPT]);
        assert_eq!((recorded.status.code(), text(&recorded.stdout)), (Some(STATUS), SAID.into()));
        let damaged = Damaged { setting };
        damaged.restore();
        let replayed = damaged.setting.run(&["replay", "bad"]);
        assert_eq!((replayed.status.code(), text(&replayed.stdout)), (Some(STATUS), SAID.into()));
        damaged
    }

    fn bad(&self) -> PathBuf {
        self.setting.path("bad")
    }

    fn restore(&self) {
        let _ = fs::remove_dir_all(self.bad());
        let mut copier = Command::new("cp");
        copier.args(["-r", "good", "bad"]).current_dir(self.setting.directory.path());
        assert!(copier.status().unwrap().success());
    }

    /// No command takes it for whole, or fails in another way than by saying so.
    fn is_refused(&self, what: &str) {
        println!("{what}");
        let replayed = self.setting.run(&["replay", "bad"]);
        assert_eq!(replayed.status.code(), Some(125), "{what}: {}", text(&replayed.stderr));
        said_in_one_line(&replayed.stderr, "");
        assert!(SAID.starts_with(&text(&replayed.stdout)), "{what}: {}", text(&replayed.stdout));
        for words in [&["info", "bad"][..], &["print", "bad", "end"]] {
            let told = self.setting.run(words);
            match told.status.code() {
                // It does not look at what is damaged.
                Some(0) => assert!(told.stderr.is_empty(), "{what}: {}", text(&told.stderr)),
                Some(1) => said_in_one_line(&told.stderr, ""),
                other => panic!("{what}: {words:?} ended with {other:?}"),
            }
        }
    }
}

/// A name that says what kind of file of a recording it is.
fn named(path: &Path, recording: &Path) -> String {
    path.strip_prefix(recording).unwrap().display().to_string()
}

#[test]
fn every_flipped_bit_is_noticed() {
    let damaged = Damaged::new();
    let mut random = Random::new();
    for path in files_below(&damaged.bad()) {
        let good = fs::read(&path).unwrap();
        for turn in 0..12 {
            let mut bytes = good.clone();
            // The first bytes mean most.
            let limit = if turn < 4 { good.len().min(28) } else { good.len() };
            let (at, bit) = (random.below(limit), random.below(8));
            bytes[at] ^= 1 << bit;
            fs::write(&path, bytes).unwrap();
            damaged.is_refused(&format!("{}: byte {at}, bit {bit}", named(&path, &damaged.bad())));
        }
        fs::write(&path, good).unwrap();
    }
}

#[test]
fn every_file_that_is_cut_off_or_gone_is_noticed() {
    let damaged = Damaged::new();
    let mut random = Random::new();
    for path in files_below(&damaged.bad()) {
        let good = fs::read(&path).unwrap();
        let name = named(&path, &damaged.bad());
        let lengths = [0, 1, good.len() - 1, random.below(good.len()), random.below(good.len())];
        for length in lengths {
            fs::write(&path, &good[..length]).unwrap();
            damaged.is_refused(&format!("{name}: {length} bytes of {}", good.len()));
        }
        fs::remove_file(&path).unwrap();
        damaged.is_refused(&format!("{name} is gone"));
        fs::write(&path, good).unwrap();
    }
}

/// A checkpoint only saves time, so it may be passed over; but no other answer comes of it.
#[test]
fn a_damaged_checkpoint_does_not_change_what_is_told() {
    let setting = Setting::new();
    let script = "for ((i = 0; i < 30000; i++)); do :; done; echo done";
    let record = ["record", "--checkpoints", "0.01", "-o", "rec", "--", "bash", "-c", script];
    assert!(setting.run(&record).status.success());
    let print = || setting.run(&["print", "rec", "end", "--regs"]);
    let good = print();
    assert!(good.status.success(), "{}", text(&good.stderr));
    let checkpoints = files_below(&setting.path("rec/checkpoints"));
    assert!(!checkpoints.is_empty());
    let mut random = Random::new();
    for turn in 0..12 {
        let originals: Vec<Vec<u8>> =
            checkpoints.iter().map(|path| fs::read(path).unwrap()).collect();
        for (path, original) in checkpoints.iter().zip(&originals) {
            let at = random.below(if turn % 2 == 0 { 28 } else { original.len() });
            let mut bytes = original.clone();
            match turn % 4 {
                3 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << random.below(8),
            }
            fs::write(path, bytes).unwrap();
        }
        let told = print();
        match told.status.code() {
            Some(0) => assert_eq!(text(&told.stdout), text(&good.stdout)),
            Some(1) => said_in_one_line(&told.stderr, ""),
            other => panic!("{other:?}: {}", text(&told.stderr)),
        }
        let replayed = setting.run(&["replay", "rec"]);
        assert_eq!((replayed.status.code(), text(&replayed.stdout)), (Some(0), "done\n".into()));
        for (path, original) in checkpoints.iter().zip(originals) {
            fs::write(path, original).unwrap();
        }
    }
}

#[test]
fn files_in_each_others_places_are_noticed() {
    let damaged = Damaged::new();
    for directory in ["events", "files"] {
        let files = files_below(&damaged.bad().join(directory));
        for pair in files.windows(2) {
            let (one, other) = (fs::read(&pair[0]).unwrap(), fs::read(&pair[1]).unwrap());
            fs::write(&pair[0], &other).unwrap();
            fs::write(&pair[1], &one).unwrap();
            damaged.is_refused(&format!("{} and the next", named(&pair[0], &damaged.bad())));
            fs::write(&pair[0], one).unwrap();
            fs::write(&pair[1], other).unwrap();
        }
    }
}

#[test]
fn a_manifest_edited_by_hand_is_noticed() {
    let damaged = Damaged::new();
    let path = damaged.bad().join("manifest.json");
    let good = fs::read_to_string(&path).unwrap();
    for (from, to, said) in [
        ("\"version\": 1", "\"version\": 2", "version 2"),
        ("\"version\": 1", "\"version\": \"1\"", "damaged"),
        ("\"version\": 1", "\"version\": 99999999999999999999", "damaged"),
        ("\"bash\"", "\"dash\"", "changed"),
        ("\"Status\": 5", "\"Status\": 0", "changed"),
        ("\"Status\"", "\"Signal\"", "changed"),
        ("\"process\": ", "\"process\": 1", "changed"),
        ("\"checksum\": \"", "\"checksum\": \"x", "changed"),
        ("{", "{}", "damaged"),
    ] {
        assert!(good.contains(from), "{from}: {good}");
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        damaged.is_refused(&format!("{from} is {to}"));
        said_in_one_line(&damaged.setting.run(&["replay", "bad"]).stderr, said);
    }
}
