//! `why doctor` in real runs: as whoever runs the tests, as an ordinary user, and
//! behind a filter that refuses ptrace.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;

const WHY: &str = env!("CARGO_BIN_EXE_why");

fn doctor(arguments: &[&str]) -> Output {
    Command::new(WHY).arg("doctor").args(arguments).output().expect("why starts")
}

fn parse(output: &Output) -> Value {
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(answer["schema"], "why.doctor/1");
    answer
}

fn verdict<'a>(answer: &'a Value, probe: &str) -> &'a str {
    let findings = answer["answer"].as_array().expect("the answer is a list");
    let finding = findings.iter().find(|finding| finding["probe"] == probe);
    let finding = finding.unwrap_or_else(|| panic!("{probe} is not probed"));
    finding["verdict"].as_str().expect("a verdict is a word")
}

#[test]
fn every_finding_is_complete() {
    let output = doctor(&["--json"]);
    let answer = parse(&output);
    assert_eq!(output.status.code(), Some(0), "{answer:#}");
    assert_eq!(answer["can_run"], true);
    for finding in answer["answer"].as_array().expect("the answer is a list") {
        for key in ["probe", "verdict", "found", "means"] {
            let text = finding[key].as_str().expect("every part is a text");
            assert!(!text.is_empty(), "{key} is empty in {finding}");
        }
        assert!(["works", "limited", "missing"].contains(&finding["verdict"].as_str().unwrap()));
        let todo = finding["do"].as_str().expect("what to do is a text");
        assert!(finding["verdict"] == "works" || !todo.is_empty(), "no remedy in {finding}");
    }
}

#[test]
fn table_fits_80_columns_without_colour() {
    let output = doctor(&[]);
    let text = String::from_utf8(output.stdout).expect("the table is text");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'));
    assert!(text.ends_with("The engine can run on this machine.\n"), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn an_ordinary_user_can_run_the_engine() {
    // The build directory may lie where others cannot look.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let why = directory.path().join("why");
    fs::copy(WHY, &why).expect("why can be copied");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg("--bounding-set=-all").arg(why);
        command
    } else {
        Command::new(why)
    };
    let output = command.args(["doctor", "--json"]).current_dir("/").output().expect("it starts");
    let answer = parse(&output);
    assert_eq!(output.status.code(), Some(0), "{answer:#}");
    for probe in ["ptrace", "memfd", "seccomp", "memory"] {
        assert_eq!(verdict(&answer, probe), "works", "{answer:#}");
    }
    let findings = answer["answer"].as_array().expect("the answer is a list");
    let user = findings.iter().find(|finding| finding["probe"] == "user").expect("probed");
    assert!(user["found"].as_str().unwrap().starts_with("an ordinary user"), "{user}");
}

#[test]
fn refused_ptrace_is_missing_and_essential() {
    let mut command = Command::new(WHY);
    command.args(["doctor", "--json"]);
    // SAFETY: between fork and exec the closure makes system calls only.
    unsafe { command.pre_exec(|| refuse(libc::SYS_ptrace)) };
    let output = command.output().expect("why starts");
    let answer = parse(&output);
    assert_eq!(output.status.code(), Some(1), "{answer:#}");
    assert_eq!(answer["can_run"], false);
    assert_eq!(verdict(&answer, "ptrace"), "missing");
    assert_eq!(verdict(&answer, "memfd"), "works");
}

#[test]
fn refused_personality_is_a_limit_only() {
    let mut command = Command::new(WHY);
    command.args(["doctor", "--json"]);
    // SAFETY: as above.
    unsafe { command.pre_exec(|| refuse(libc::SYS_personality)) };
    let output = command.output().expect("why starts");
    let answer = parse(&output);
    assert_eq!(output.status.code(), Some(0), "{answer:#}");
    assert_eq!(verdict(&answer, "aslr"), "limited");
}

#[test]
fn misuse_has_status_2() {
    assert_eq!(doctor(&["--no-such-option"]).status.code(), Some(2));
}

/// From here on one system call fails with EPERM, as in a sandbox.
fn refuse(call: libc::c_long) -> io::Result<()> {
    let plain = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        plain(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: call as u32,
        },
        plain(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        plain(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: integers only.
    let allowed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its instructions outlive the call.
    let installed =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) };
    if allowed == 0 && installed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
