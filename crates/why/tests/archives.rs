//! Translations kept between runs: used when they fit, and never when they do not.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use tempfile::TempDir;

const WHY: &str = env!("CARGO_BIN_EXE_why");

/// A program that computes something and prints it with this word.
fn source(word: &str) -> String {
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         static int compare(const void *a, const void *b) {{ return *(int *)a - *(int *)b; }}\n\
         int main(void) {{\n\
             int n[50];\n\
             for (int i = 0; i < 50; i++) n[i] = i * 7919 % 101;\n\
             qsort(n, 50, sizeof *n, compare);\n\
             printf(\"{word} %d %d\\n\", n[7], n[43]);\n\
         }}\n"
    )
}

struct Setting {
    directory: TempDir,
}

#[derive(Debug)]
struct Run {
    output: String,
    translated: u64,
    reused: u64,
}

impl Setting {
    fn new() -> Setting {
        Setting { directory: tempfile::tempdir().unwrap() }
    }

    fn compile(&self, word: &str) -> PathBuf {
        let source_file = self.directory.path().join(format!("{word}.c"));
        fs::write(&source_file, source(word)).unwrap();
        let program = self.directory.path().join(word);
        let compiled =
            Command::new("cc").arg("-O1").arg(&source_file).arg("-o").arg(&program).status();
        assert!(compiled.unwrap().success());
        program
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn run(&self, program: &Path) -> Run {
        let json = self.directory.path().join("json");
        let output = Command::new(WHY)
            .args(["run", "--tool", "count"])
            .arg(format!("--json={}", json.display()))
            .arg("--")
            .arg(program)
            .env("WHY_CACHE_DIR", self.cache())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
        let number = |name: &str| report["answer"][name].as_u64().unwrap();
        Run {
            output: String::from_utf8(output.stdout).unwrap(),
            translated: number("blocks_translated"),
            reused: number("blocks_reused"),
        }
    }

    fn archives(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

#[test]
fn the_next_run_translates_hardly_anything() {
    let setting = Setting::new();
    let program = setting.compile("first");
    let cold = setting.run(&program);
    let warm = setting.run(&program);
    assert_eq!(warm.output, cold.output);
    assert_eq!(cold.reused, 0);
    assert!(warm.reused * 10 > cold.translated * 9, "{warm:?} after {cold:?}");
    assert!(warm.translated * 10 < cold.translated, "{warm:?} after {cold:?}");
}

/// Spoils all archives in several places, one after the other, and looks each time that
/// none of them is used.
fn spoiled_archives_are_not_used(spoil: impl Fn(&File, u64)) {
    let setting = Setting::new();
    let program = setting.compile("first");
    let cold = setting.run(&program);
    for part in 1..8 {
        assert!(setting.run(&program).reused > 0);
        for archive in setting.archives() {
            let file = File::options().read(true).write(true).open(archive).unwrap();
            spoil(&file, file.metadata().unwrap().len() * part / 8);
        }
        let run = setting.run(&program);
        assert_eq!((run.output, run.reused), (cold.output.clone(), 0), "spoiled at {part}/8");
    }
}

#[test]
fn a_damaged_archive_is_not_used() {
    spoiled_archives_are_not_used(|file, at| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[!byte[0]], at).unwrap();
    });
}

#[test]
fn an_archive_that_is_cut_off_is_not_used() {
    spoiled_archives_are_not_used(|file, at| file.set_len(at).unwrap());
}

fn a_program_changed_in_place_runs_as_it_is_now(settling: Duration) {
    let setting = Setting::new();
    let (first, other) = (setting.compile("first"), setting.compile("other"));
    let changing = setting.directory.path().join("changing");
    fs::copy(&first, &changing).unwrap();
    fs::set_permissions(&changing, fs::Permissions::from_mode(0o755)).unwrap();
    sleep(settling);
    let runs = [setting.run(&changing), setting.run(&changing)];
    assert!(runs.iter().all(|run| run.output.starts_with("first")) && runs[1].reused > 0);
    fs::write(&changing, fs::read(&other).unwrap()).unwrap();
    for _ in 0..2 {
        assert!(setting.run(&changing).output.starts_with("other"));
    }
}

#[test]
fn a_new_program_changed_in_place_runs_as_it_is_now() {
    a_program_changed_in_place_runs_as_it_is_now(Duration::ZERO);
}

/// Its times tell, and nothing is compared.
#[test]
fn a_settled_program_changed_in_place_runs_as_it_is_now() {
    a_program_changed_in_place_runs_as_it_is_now(Duration::from_millis(2100));
}

#[test]
fn nobody_is_troubled_by_a_directory_that_cannot_be_written() {
    let setting = Setting::new();
    let program = setting.compile("first");
    // A file stands where the directory should be.
    fs::write(setting.cache(), "").unwrap();
    for _ in 0..2 {
        let run = setting.run(&program);
        assert!(run.output.starts_with("first") && run.reused == 0);
    }
}
