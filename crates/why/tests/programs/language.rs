//! Interpreters, virtual machines with just-in-time compilers, and programs of
//! languages with a runtime of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Program;
use crate::data::text;
use crate::support::build::target_dir;
use crate::support::job::Job;
use crate::support::package;
use crate::support::why::Tool;

pub const PROGRAMS: &[Program] = &[
    Program::new("perl", perl),
    Program::new("ruby", ruby),
    Program::new("python", python),
    Program::new("python-test_json", || python_tests("test_json"))
        .tools(&[Tool::None, Tool::Count]),
    Program::new("python-test_threading", || python_tests("test_threading"))
        .tools(&[Tool::None, Tool::Count]),
    Program::new("python-test_subprocess", || python_tests("test_subprocess"))
        .tools(&[Tool::None, Tool::Count]),
    Program::new("node", node),
    Program::new("java", java).tools(&[Tool::None, Tool::Count]),
    Program::new("rust", rust),
    Program::new("go", go),
];

fn perl() -> Result<Job, String> {
    Ok(Job::new(package::find("/usr/bin/perl")?)
        .args(["job.pl", "words"])
        .file("job.pl", include_str!("data/job.pl"))
        .file("words", text(3000)))
}

fn ruby() -> Result<Job, String> {
    Ok(Job::new(package::find("ruby")?)
        .args(["--disable-gems", "job.rb", "words"])
        .file("job.rb", include_str!("data/job.rb"))
        .file("words", text(3000)))
}

fn python() -> Result<Job, String> {
    Ok(Job::new("/usr/bin/python3")
        .args(["job.py", "words"])
        .file("job.py", include_str!("data/job.py"))
        .file("words", text(3000))
        .env("PYTHONDONTWRITEBYTECODE", "1"))
}

/// A module of Python's own test suite: the result of every test in it.
fn python_tests(module: &str) -> Result<Job, String> {
    let installed = Command::new("/usr/bin/python3")
        .args(["-c", &format!("import importlib.util as u; assert u.find_spec('test.{module}')")])
        .output()
        .map_err(|error| format!("/usr/bin/python3: {error}; install the package python3"))?;
    if !installed.status.success() {
        return Err(format!(
            "/usr/bin/python3 has no test.{module}; install the package libpython3.N-testsuite \
             of its version, or run ./setup"
        ));
    }
    Ok(Job::new("/usr/bin/python3")
        .args(["run_tests.py", module])
        .file("run_tests.py", include_str!("data/run_tests.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .limit(200))
}

fn node() -> Result<Job, String> {
    Ok(Job::new(package::find("node")?)
        .args(["job.js"])
        .file("job.js", include_str!("data/job.js")))
}

fn java() -> Result<Job, String> {
    let dir = fresh("java")?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/data/Job.java");
    done(Command::new(package::find("javac")?).arg("-d").arg(&dir).arg(source))?;
    Ok(Job::new(package::find("java")?)
        // Its own file of counters would lie outside the working directory.
        .args(["-XX:-UsePerfData", "-cp"])
        .args([dir])
        .args(["Job"]))
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn rust() -> Result<Job, String> {
    let dir = fresh("rust")?;
    let manifest =
        "[package]\nname = \"job\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    write(&dir.join("Cargo.toml"), manifest)?;
    write(&dir.join("src/main.rs"), include_str!("data/job.rs"))?;
    done(
        Command::new(package::find("cargo")?)
            .args(["build", "--quiet", "--release", "--offline"])
            .current_dir(&dir)
            // A program like any other: dynamic and for any address, unlike our own.
            .env("RUSTFLAGS", "-C target-feature=-crt-static -C relocation-model=pic")
            .env("CARGO_BUILD_TARGET", TARGET)
            .env("CARGO_TARGET_DIR", dir.join("target")),
    )?;
    Ok(Job::new(dir.join("target").join(TARGET).join("release/job")).env("RUST_BACKTRACE", "0"))
}

fn go() -> Result<Job, String> {
    let dir = fresh("go")?;
    write(&dir.join("job.go"), include_str!("data/job.go"))?;
    done(
        Command::new(package::find("go")?)
            .args(["build", "-o", "job", "job.go"])
            .current_dir(&dir)
            .env("GO111MODULE", "off")
            .env("GOCACHE", target_dir().join("fixtures/go-cache")),
    )?;
    Ok(Job::new(dir.join("job")))
}

fn fresh(name: &str) -> Result<PathBuf, String> {
    let dir = target_dir().join("fixtures/programs").join(name);
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    // Unchanged files keep their times, so that cargo has nothing to do.
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("it lies in a directory"))
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed\n{}", String::from_utf8_lossy(&output.stderr)))
}
