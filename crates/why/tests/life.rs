//! How `why` lives and dies with its program: signals, terminals, daemons.

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::job::{Before, Job};
use support::leftover::{self, Mark};
use support::outcome::Ended;
use support::pty::{CTRL_C, CTRL_D, CTRL_Z, Terminal, UP};
use support::run;
use support::why::{Tool, WHY};

const PATIENCE: Duration = Duration::from_secs(60);

/// Something a person does at a terminal, in front of a program.
struct Scene {
    name: &'static str,
    program: &'static [&'static str],
    play: fn(&mut Terminal) -> Result<(), String>,
    ends: Ended,
}

const SCENES: &[Scene] = &[
    Scene {
        name: "ctrl-c reaches a handler",
        program: &[
            "/usr/bin/perl",
            "-e",
            "$| = 1; $SIG{INT} = sub { print qq(caught\\n); exit 5 }; print qq(ready\\n); sleep 1 while 1",
        ],
        play: |terminal| {
            terminal.shows("ready")?;
            terminal.types(CTRL_C)?;
            terminal.shows("caught")
        },
        ends: Ended::Status(5),
    },
    Scene {
        name: "ctrl-c kills a program without a handler",
        program: &[
            "/usr/bin/perl",
            "-e",
            "$| = 1; print qq(ready\\n); sleep 1 while 1",
        ],
        play: |terminal| {
            terminal.shows("ready")?;
            terminal.types(CTRL_C)
        },
        ends: Ended::Signal(Signal::SIGINT),
    },
    Scene {
        name: "ctrl-c kills a program in a busy loop",
        program: &[
            "/usr/bin/perl",
            "-e",
            "$| = 1; print qq(ready\\n); 1 while 1",
        ],
        play: |terminal| {
            terminal.shows("ready")?;
            terminal.types(CTRL_C)
        },
        ends: Ended::Signal(Signal::SIGINT),
    },
    Scene {
        name: "an interactive shell",
        program: &["/bin/bash", "--norc", "--noprofile", "-i"],
        play: |terminal| {
            terminal.types("PS1='rea''dy> '\r")?;
            terminal.shows("ready> ")?;
            terminal.types("echo $((6 * 7))\r")?;
            terminal.shows("42\r\n")?;
            terminal.shows("ready> ")?;
            // What is typed before the program has the terminal is the shell's.
            terminal.types("sh -c 'echo be\"\"gin; exec cat'\r")?;
            terminal.shows("begin\r\n")?;
            terminal.types("one line\r")?;
            terminal.shows("one line\r\none line\r\n")?;
            terminal.types(CTRL_C)?;
            terminal.shows("ready> ")?;
            terminal.types("sh -c 'echo ag\"\"ain; exec cat'\r")?;
            terminal.shows("again\r\n")?;
            terminal.types(CTRL_Z)?;
            terminal.shows("Stopped")?;
            terminal.shows("ready> ")?;
            terminal.types("fg\r")?;
            terminal.shows("exec cat'\r\n")?;
            terminal.types("another\r")?;
            terminal.shows("another\r\nanother\r\n")?;
            terminal.types(CTRL_D)?;
            terminal.shows("ready> ")?;
            terminal.types("exit 3\r")
        },
        ends: Ended::Status(3),
    },
    Scene {
        name: "a prompt in raw mode",
        program: &["/usr/bin/python3", "-q"],
        play: |terminal| {
            terminal.shows(">>> ")?;
            terminal.types("6 * 7\r")?;
            terminal.shows("42\r\n")?;
            terminal.shows(">>> ")?;
            // The line before, edited: 6 * 77.
            terminal.types(UP)?;
            terminal.types("7\r")?;
            terminal.shows("462\r\n")?;
            terminal.shows(">>> ")?;
            terminal.types("while True: pass\r\r")?;
            terminal.shows("... ")?;
            thread::sleep(Duration::from_millis(500));
            terminal.types(CTRL_C)?;
            terminal.shows("KeyboardInterrupt")?;
            terminal.shows(">>> ")?;
            // Left in the plain way, it would die of that interrupt now.
            terminal.types("import os; os._exit(6)\r")
        },
        ends: Ended::Status(6),
    },
];

fn main() {
    let mut trials = Vec::new();
    for scene in SCENES {
        trials.push(Trial::test(format!("{}, natively", scene.name), || {
            play(scene, None)
        }));
        for tool in [Tool::None, Tool::Count] {
            let name = format!("{}, {}", scene.name, tool.name());
            trials.push(Trial::test(name, move || play(scene, Some(tool))));
        }
    }
    trials.push(Trial::test("ctrl-z and fg, natively", || {
        stop_and_continue("")
    }));
    trials.push(Trial::test("ctrl-z and fg, why", || {
        stop_and_continue(&format!("{WHY} run -- "))
    }));
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGHUP] {
        let name = format!("{signal} to why leaves no target");
        trials.push(Trial::test(name, move || killed_supervisor(signal)));
    }
    for signal in [
        Signal::SIGSEGV,
        Signal::SIGABRT,
        Signal::SIGFPE,
        Signal::SIGTERM,
        Signal::SIGKILL,
        Signal::SIGPIPE,
    ] {
        let name = format!("why ends with {signal} as its program did");
        trials.push(Trial::test(name, move || fatal_signal(signal)));
    }
    trials.push(Trial::test("a daemon lives on when why returns", daemon));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn play(scene: &Scene, tool: Option<Tool>) -> Result<(), Failed> {
    let job = match tool {
        None => Job::new(scene.program[0]).args(&scene.program[1..]),
        Some(tool) => Job::new(WHY)
            .args(["run", "--tool", tool.name(), "--"])
            .args(scene.program),
    };
    let mut terminal = Terminal::start(&job)?;
    (scene.play)(&mut terminal)?;
    let ended = terminal.ends()?;
    if ended != scene.ends {
        return Err(format!("it ended with {ended}, not {}", scene.ends).into());
    }
    Ok(())
}

/// A native shell stops the whole job and continues it. (The leader of a session
/// has nobody to continue it, so this needs the shell.)
fn stop_and_continue(prefix: &str) -> Result<(), Failed> {
    let shell = Job::new("/bin/bash").args(["--norc", "--noprofile", "-i"]);
    let mut terminal = Terminal::start(&shell)?;
    terminal.types("PS1='rea''dy> '\r")?;
    terminal.shows("ready> ")?;
    let program = r#"perl -e '$| = 1; print "be", "gin\n"; print "<$_>" while <STDIN>; exit 4'"#;
    terminal.types(&format!("{prefix}{program}\r"))?;
    terminal.shows("begin")?;
    terminal.types(CTRL_Z)?;
    terminal.shows("Stopped")?;
    terminal.shows("ready> ")?;
    terminal.types("fg\r")?;
    terminal.shows("perl -e")?;
    terminal.types("after\r")?;
    terminal.shows("<after")?;
    terminal.types(CTRL_D)?;
    terminal.shows("ready> ")?;
    terminal.types("exit $?\r")?;
    match terminal.ends()? {
        Ended::Status(4) => Ok(()),
        other => Err(format!("the program's status is lost: {other}").into()),
    }
}

fn killed_supervisor(signal: Signal) -> Result<(), Failed> {
    let script = "sleep 1000 & sleep 1000 & wait";
    let job = Job::new(WHY).args(["run", "--", "/bin/bash", "-c", script]);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why = run::command(&job, dir.path(), &mark)
        .stdin(Stdio::null())
        .spawn()?;
    let sleeping = || {
        mark.alive()
            .iter()
            .filter(|process| process.command.contains("sleep 1000"))
            .count()
            >= 3
    };
    let started = until(sleeping);
    kill(Pid::from_raw(why.id().cast_signed()), signal)?;
    let status = run::wait(&mut why, PATIENCE, &mark);
    leftover::none_left(&mark)?;
    if !started {
        return Err("the program did not start its two children".into());
    }
    match status.map(Ended::from) {
        Some(Ended::Signal(by)) if by == signal => Ok(()),
        other => Err(format!("{other:?} after {signal} to why").into()),
    }
}

fn fatal_signal(signal: Signal) -> Result<(), Failed> {
    let script = format!("kill -{} $$; sleep 60", signal as i32);
    let job = Job::new(WHY)
        .args(["run", "--", "/bin/sh", "-c", &script])
        .before(Before::Cores);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why = run::command(&job, dir.path(), &mark)
        .stdin(Stdio::null())
        .spawn()?;
    let status = run::wait(&mut why, PATIENCE, &mark).ok_or("it did not end")?;
    leftover::none_left(&mark)?;
    if Ended::from(status) != Ended::Signal(signal) {
        return Err(format!("it ended with {}", Ended::from(status)).into());
    }
    if status.core_dumped() {
        return Err("why left a core of its own".into());
    }
    Ok(())
}

/// The daemon waits for a file, which appears only after `why` has returned.
fn daemon() -> Result<(), Failed> {
    let script = "setsid bash -c 'until [ -e go ]; do sleep 0.02; done; echo done > done' \
                  < /dev/null > /dev/null 2>&1 &";
    let reports = tempfile::tempdir()?;
    let json = reports.path().join("json");
    let job = Job::new(WHY)
        .args([
            "run".into(),
            format!("--json={}", json.display()),
            "--".into(),
        ])
        .args(["/bin/bash", "-c", script]);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why = run::command(&job, dir.path(), &mark)
        .stdin(Stdio::null())
        .spawn()?;
    let status = run::wait(&mut why, PATIENCE, &mark).map(Ended::from);
    let told = reported_alive(&json);
    fs::write(dir.path().join("go"), "")?;
    let done = until(|| dir.path().join("done").exists());
    leftover::none_left(&mark)?;
    if status != Some(Ended::Status(0)) {
        return Err(format!("why did not return when its program ended: {status:?}").into());
    }
    if !done {
        return Err("the daemon did not live on".into());
    }
    match told? {
        0 => Err("the report does not tell of the descendant that lives on".into()),
        _ => Ok(()),
    }
}

fn reported_alive(json: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(json).map_err(|error| format!("no report: {error}"))?;
    Ok(support::report::Report::parse(&text)?
        .answer
        .descendants_alive)
}

fn until(mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}
