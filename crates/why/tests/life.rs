//! How `why` lives and dies with its program: signals, terminals, daemons.

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use support::compare;
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
            "$| = 1; $SIG{INT} = sub { print qq(caught\\n); <STDIN>; exit 5 }; print qq(ready\\n); sleep 1 while 1",
        ],
        play: |terminal| {
            terminal.shows("ready")?;
            terminal.types(CTRL_C)?;
            terminal.shows("caught")?;
            // What nobody has read yet when the leader of a session ends is lost.
            terminal.types("\r")
        },
        ends: Ended::Status(5),
    },
    Scene {
        name: "ctrl-c kills a program without a handler",
        program: &["/usr/bin/perl", "-e", "$| = 1; print qq(ready\\n); sleep 1 while 1"],
        play: |terminal| {
            terminal.shows("ready")?;
            terminal.types(CTRL_C)
        },
        ends: Ended::Signal(Signal::SIGINT),
    },
    Scene {
        name: "ctrl-c kills a program in a busy loop",
        program: &["/usr/bin/perl", "-e", "$| = 1; print qq(ready\\n); 1 while 1"],
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
        trials.push(Trial::test(format!("{}, natively", scene.name), || play(scene, None)));
        for tool in [Tool::None, Tool::Count] {
            let name = format!("{}, {}", scene.name, tool.name());
            trials.push(Trial::test(name, move || play(scene, Some(tool))));
        }
    }
    trials.push(Trial::test("ctrl-z and fg, natively", || stop_and_continue("")));
    trials.push(Trial::test("ctrl-z and fg, why", || stop_and_continue(&format!("{WHY} run -- "))));
    trials.push(Trial::test("killing why leaves no target", || killed(|why| why)));
    trials.push(Trial::test("killing the supervisor leaves no target", || {
        killed(|why| only_child(why).unwrap_or(why))
    }));
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let name = format!("{signal} ends a slice while it is traced");
        trials.push(Trial::test(name, move || interrupted(signal)));
    }
    for script in SCRIPTS {
        trials.push(Trial::test(script.name, || same_as_natively(script)));
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
        Some(tool) => Job::new(WHY).args(["run", "--tool", tool.name(), "--"]).args(scene.program),
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

/// Kills `why`, or its supervisor, with SIGKILL.
fn killed(whom: fn(Pid) -> Pid) -> Result<(), Failed> {
    let script = "sleep 1000 & sleep 1000 & wait";
    let job = Job::new(WHY).args(["run", "--", "/bin/bash", "-c", script]);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why =
        run::command(&job, dir.path(), &mark).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let sleeping = || {
        mark.alive().iter().filter(|process| process.command.contains("sleep 1000")).count() >= 3
    };
    let started = until(sleeping);
    let (pid, whom) =
        (Pid::from_raw(why.id().cast_signed()), whom(Pid::from_raw(why.id().cast_signed())));
    kill(whom, Signal::SIGKILL)?;
    let ended = run::wait(&mut why, PATIENCE, &mark).map(Ended::from);
    leftover::none_left(&mark)?;
    if !started {
        return Err("the program did not start its two children".into());
    }
    let expected = if whom == pid { Ended::Signal(Signal::SIGKILL) } else { Ended::Status(125) };
    if ended == Some(expected) { Ok(()) } else { Err(format!("{ended:?} after SIGKILL").into()) }
}

/// Interrupts `why` while it traces a long recording.
fn interrupted(signal: Signal) -> Result<(), Failed> {
    const LONG: &str = "my $s = 0; $s += $_ for 1 .. 20000000; print $s";
    let directory = tempfile::tempdir()?;
    let recording = directory.path().join("long").display().to_string();
    let words = ["record", "-o", &recording, "--", "/usr/bin/perl", "-e", LONG];
    if !Command::new(WHY).args(words).stdout(Stdio::null()).status()?.success() {
        return Err("the program could not be recorded".into());
    }
    let job = Job::new(WHY).args(["slice", &recording, "stdout:0"]);
    let (dir, mark) = (run::fresh_dir(&job)?, Mark::new());
    let mut why = run::command(&job, dir.path(), &mark).stdin(Stdio::null()).spawn()?;
    let derived = Path::new(&recording).join("derived");
    let traces = until(|| fs::read_dir(&derived).is_ok_and(|mut files| files.next().is_some()));
    kill(Pid::from_raw(why.id().cast_signed()), signal)?;
    let ended = run::wait(&mut why, PATIENCE, &mark).map(Ended::from);
    leftover::none_left(&mark)?;
    if !traces {
        return Err("it did not begin to trace".into());
    }
    match ended == Some(Ended::Signal(signal)) {
        true => Ok(()),
        false => Err(format!("{ended:?} after {signal}").into()),
    }
}

fn only_child(pid: Pid) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Some(Pid::from_raw(children.trim().parse().ok()?))
}

/// A bash script around `$RUN PROGRAM`, where `$RUN` is nothing natively.
struct Script {
    name: &'static str,
    text: &'static str,
}

const SCRIPTS: &[Script] = &[
    Script {
        name: "a signal to why alone reaches its program",
        text: r#"
program='$| = 1; for my $s (qw(HUP INT USR1 USR2 TERM)) { $SIG{$s} = sub { print "$s\n"; exit 3 if $s eq "TERM" } }
print "ready\n"; sleep 1 while 1'
mkfifo out; $RUN /usr/bin/perl -e "$program" > out & pid=$!
exec 3< out; read -u3 line; echo $line
for signal in USR1 HUP INT USR2 TERM; do kill -$signal $pid; read -u3 line; echo "$line"; done
wait $pid; echo "status $?""#,
    },
    Script {
        name: "a signal to the whole job reaches its program once",
        text: r#"
set -m
program='$| = 1; for my $s (qw(HUP USR1 TERM)) { $SIG{$s} = sub { print "$s\n" } }
$SIG{USR2} = sub { print "end\n"; exit 0 }; print "ready\n"; sleep 1 while 1'
mkfifo out; $RUN /usr/bin/perl -e "$program" > out & pid=$!
exec 3< out; read -u3 line
for signal in HUP USR1 TERM USR1; do kill -$signal -- -$pid; read -u3 line; echo "$line"; sleep 0.1; done
kill -USR2 $pid; cat <&3; wait $pid; echo "status $?""#,
    },
    Script {
        name: "a fatal signal ends the program and not its children",
        text: r#"
mkfifo out; $RUN /bin/bash -c 'sleep 1000 & echo $!; wait' > out & pid=$!
exec 3< out; read -u3 sleeper
kill -TERM $pid; wait $pid; echo "status $?"; kill -KILL $sleeper && echo killed"#,
    },
    Script {
        name: "ignored and blocked signals are inherited",
        text: r#"
show='open S, "/proc/self/status"; print grep /^Sig(Ign|Blk)/, <S>'
$RUN /usr/bin/perl -e "$show"
(trap "" PIPE HUP USR1 CHLD TSTP ALRM; $RUN /usr/bin/perl -e "$show")
/usr/bin/perl -e 'use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGTERM, SIGALRM, SIGPIPE)); exec @ARGV' \
    $RUN /usr/bin/perl -e "$show""#,
    },
    Script {
        name: "descriptors are inherited",
        text: r#"
show='opendir D, "/proc/self/fd"; print join(" ", sort grep { -e "/proc/self/fd/$_" && !/\D/ && $_ != fileno D } readdir D), "\n"'
$RUN /usr/bin/perl -e "$show"
$RUN /usr/bin/perl -e "$show" 5> five 7< /dev/null
$RUN /usr/bin/perl -e "$show" <&-
$RUN /usr/bin/perl -e "$show" 2>&-"#,
    },
    Script {
        name: "a pipe closes when the program closes it",
        text: r#"
mkfifo go
$RUN /bin/bash -c 'exec >&- 7>&-; read < go; echo late >&2' 7>&1 | { cat; echo early >&2; echo > go; }
yes | $RUN /bin/bash -c 'exec <&-; read < go; echo late' & sleep 0.1
until [ -z "$(jobs -r %% | grep yes)" ] || ! pgrep -x -P $$ yes > /dev/null; do sleep 0.01; done
echo "no reader"; echo > go; wait"#,
    },
    Script {
        name: "a program that stops itself is continued",
        text: r#"
set -m
$RUN /bin/bash -c 'echo one; kill -STOP $$; echo two; kill -TSTP $$; echo three; exit 4' & pid=$!
for round in 1 2; do
    until jobs -s | grep -q .; do sleep 0.01; done
    echo stopped; kill -CONT $pid; until jobs -r | grep -q . || ! jobs | grep -q .; do sleep 0.01; done
done
wait $pid; echo "status $?""#,
    },
    Script {
        name: "a background program that reads the terminal stops",
        text: r#"
set -m
/usr/bin/python3 -c 'import pty, sys, os
pid, fd = pty.fork()
if pid == 0: os.execv("/bin/bash", ["bash", "-c", sys.argv[1]])
out = b""
try:
    while True:
        got = os.read(fd, 1000)
        if not got: break
        out += got
        if out.endswith(b"type: "): os.write(fd, b"word\n")
except OSError: pass
sys.stdout.write(out.decode()); sys.stdout.flush()' 'set -m
$RUN /bin/bash -c "read x; echo got \$x" & pid=$!
until jobs -s | grep -q .; do sleep 0.01; done
printf "type: "; fg %1 > /dev/null; echo "status $?"'"#,
    },
];

fn same_as_natively(script: &Script) -> Result<(), Failed> {
    let run = |prefix: String| {
        let job = Job::new("/bin/bash").args(["-c", script.text]);
        run::run(&job.env("RUN", prefix))
    };
    let native = run(String::new()).map_err(|error| format!("natively: {error}"))?;
    let outcome = run(format!("{WHY} run --"))?;
    if native.stdout.is_empty() && native.stderr.is_empty() {
        return Err("natively it says nothing".into());
    }
    compare::same(&native, &outcome)?;
    Ok(())
}

fn fatal_signal(signal: Signal) -> Result<(), Failed> {
    let script = format!("kill -{} $$; sleep 60", signal as i32);
    let job = Job::new(WHY).args(["run", "--", "/bin/sh", "-c", &script]).before(Before::Cores);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why = run::command(&job, dir.path(), &mark).stdin(Stdio::null()).spawn()?;
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
        .args(["run".into(), format!("--json={}", json.display()), "--".into()])
        .args(["/bin/bash", "-c", script]);
    let dir = run::fresh_dir(&job)?;
    let mark = Mark::new();
    let mut why = run::command(&job, dir.path(), &mark).stdin(Stdio::null()).spawn()?;
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
    Ok(support::report::Report::parse(&text)?.answer.descendants_alive)
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
