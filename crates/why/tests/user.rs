//! Without privileges: as an ordinary user, under a container's system call
//! filter, and both. One fixture of each topic and a few real programs. And recordings
//! that another user is given when the program is gone.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tempfile::TempDir;

use support::build;
use support::compare;
use support::directives::Replay;
use support::fixture::{self, Fixture};
use support::job::{Before, Job};
use support::needs;
use support::outcome::{Ended, Outcome};
use support::recording;
use support::run;
use support::why::{self, Tool, WHY};

const RESTRICTIONS: &[(&str, &[Before])] = &[
    ("as an ordinary user", &[Before::Nobody]),
    ("under a container's filter", &[Before::ContainerFilter]),
    ("as an ordinary user in a container", &[Before::Nobody, Before::ContainerFilter]),
];

const PROGRAMS: &[&[&str]] = &[
    &["/bin/bash", "-c", "for i in 1 2 3; do echo $i | cat; done; (exit 3) || echo $?"],
    &["/usr/bin/python3", "-c", "import threading, os; print(sum(range(10**5)), os.getuid() >= 0)"],
];

/// Where anybody may read and execute: `target/` may lie in a private home.
static PUBLIC: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("there is room for temporary files");
    fs::copy(WHY, dir.path().join("why")).expect("why can be copied");
    open_to_all(dir.path());
    dir
});

fn main() {
    let mut trials = vec![Trial::test("the filter refuses and allows", filter_works)];
    let fixtures: Vec<_> = one_of_each_topic().into_iter().map(Arc::new).collect();
    for &(name, restrictions) in RESTRICTIONS {
        for fixture in &fixtures {
            let title = format!("{name}: {}", fixture.title());
            let fixture = fixture.clone();
            trials.push(Trial::ignorable_test(title, move || test_fixture(&fixture, restrictions)));
        }
        for program in PROGRAMS {
            trials.push(Trial::test(format!("{name}: {}", program[0]), move || {
                test(&Job::new(program[0]).args(&program[1..]), restrictions)
            }));
        }
    }
    for fixture in fixtures {
        let title = format!("recorded, and replayed by another user: {}", fixture.title());
        trials.push(Trial::ignorable_test(title, move || test_given_away(&fixture)));
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    // A static is not dropped, and a directory is to be removed.
    let _ = fs::remove_dir_all(PUBLIC.path());
    conclusion.exit();
}

fn one_of_each_topic() -> Vec<Fixture> {
    let mut topics = BTreeSet::new();
    fixture::all()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|fixture| fixture.directives.needs.is_empty())
        .filter(|fixture| topics.insert(fixture.topic.clone()))
        .collect()
}

fn test_fixture(fixture: &Fixture, restrictions: &[Before]) -> Result<Completion, Failed> {
    let directives = &fixture.directives;
    if let Some(reason) = needs::unmet(&directives.needs) {
        return Ok(Completion::ignored_with(reason));
    }
    let program = published(fixture)?;
    let job = Job::new(program).args(&directives.args).stdin(directives.stdin.clone());
    test(&job, restrictions).map(|()| Completion::Completed)
}

fn test(job: &Job, restrictions: &[Before]) -> Result<(), Failed> {
    let job = restricted(job.clone(), restrictions);
    let native = run::run(&job).map_err(|error| format!("the native run: {error}"))?;
    let why = PUBLIC.path().join("why");
    let (outcome, report) = why::under(&job, Tool::Count, &why)?.run()?;
    compare::same(&native, &outcome)?;
    report.check(Tool::Count, outcome.ended)?;
    Ok(())
}

fn test_given_away(fixture: &Fixture) -> Result<Completion, Failed> {
    let directives = &fixture.directives;
    if let Some(reason) = needs::unmet(&directives.needs) {
        return Ok(Completion::ignored_with(reason));
    }
    if let Replay::NotYet(reason) = &directives.replay {
        return Ok(Completion::ignored_with(reason));
    }
    let program = published(fixture)?;
    let built = program.parent().and_then(Path::parent).ok_or("it lies in a directory")?;
    let job = Job::new(&program).args(&directives.args).stdin(directives.stdin.clone());
    let (made, given) = (built.join("made"), PUBLIC.path().join(fixture.name.clone() + "-given"));
    let why = PUBLIC.path().join("why");
    let recorder = Job { program: why.clone(), ..recording::recorder(&job, &made, &[]) };
    let (recorded, _) = run::run_to_the_letter(&recorder)?;
    fs::rename(&made, &given)?;
    fs::remove_dir_all(built)?;
    if nix::unistd::geteuid().is_root() {
        give_to_nobody(&given)?;
    }
    let replayer = Job::new(why).args(["replay"]).args([&given]);
    let (replayed, _) = run::run_to_the_letter(&restricted(replayer, &[Before::Nobody]))?;
    let ended = Ended::Status(recording::status(recorded.ended)?);
    // It writes no files again.
    compare::same(&Outcome { ended, files: BTreeMap::new(), ..recorded }, &replayed)?;
    Ok(Completion::Completed)
}

/// Makes a directory and all that is in it nobody's; nobody else may read it.
fn give_to_nobody(path: &Path) -> Result<(), Failed> {
    std::os::unix::fs::chown(path, Some(65534), Some(65534))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            give_to_nobody(&entry?.path())?;
        }
    }
    Ok(())
}

/// Whoever is not root is an ordinary user already.
fn restricted(job: Job, restrictions: &[Before]) -> Job {
    restrictions
        .iter()
        .filter(|&&step| step != Before::Nobody || nix::unistd::geteuid().is_root())
        .fold(job, |job, &step| job.before(step))
}

/// The program and what was built beside it, in a place open to all.
fn published(fixture: &Fixture) -> Result<PathBuf, Failed> {
    let built = build::build(fixture)?;
    let from = built.parent().ok_or("a program lies in a directory")?;
    let name = from.file_name().ok_or("a directory has a name")?;
    // Tests of the same fixture run in parallel, and a program that is being
    // executed cannot be written: each gets its own copy. Another process makes it, because
    // what this one has open for writing, those that are forked meanwhile have, too, and then
    // it cannot be executed.
    let own = tempfile::Builder::new().tempdir_in(PUBLIC.path())?.keep();
    open_to_all(&own);
    let to = own.join(name);
    fs::create_dir(&to)?;
    open_to_all(&to);
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let copied = Command::new("cp").arg(entry.path()).arg(&to).status()?;
            if !copied.success() {
                return Err(format!("cp {}: {copied}", entry.path().display()).into());
            }
        }
    }
    Ok(to.join(&fixture.name))
}

fn open_to_all(dir: &Path) {
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir, all).expect("the directory is ours");
}

/// The filter itself does what a container's does; else nothing here means much.
fn filter_works() -> Result<(), Failed> {
    let script = "import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def refused(*call):
    return libc.syscall(*call) == -1 and ctypes.get_errno() == errno.EPERM
print(refused(298, 0, 0, 0, 0, 0), refused(323, 0), refused(135, 0x40000), refused(135, 0xffffffff), refused(39))";
    let job = Job::new("/usr/bin/python3").args(["-c", script]);
    let outcome = run::run(&restricted(job, &[Before::ContainerFilter]))?;
    let said = String::from_utf8_lossy(&outcome.stdout);
    if outcome.ended == Ended::Status(0) && said == "True True True False False\n" {
        Ok(())
    } else {
        let error = String::from_utf8_lossy(&outcome.stderr);
        Err(format!(
            "perf_event_open, userfaultfd, personality, its question, getpid: {said}{error}"
        )
        .into())
    }
}
