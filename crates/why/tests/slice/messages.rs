//! What is said where there is no answer, or less than was asked for.

use super::recorded::{Recorded, WHY, text};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_only_the_debug_information_computes_is_said() {
    let recorded = Recorded::new("weigh.c", &["-g", "-O2"], &[]);
    let said = |value: &str| {
        let answer = recorded.json(&["slice", value]);
        let left_out = answer["left_out"].as_array().unwrap().iter();
        let said: Vec<String> = left_out.map(|said| said.as_str().unwrap().to_owned()).collect();
        said.into_iter().find(|said| said.contains("debug information"))
    };
    let told = "the debug information computes sum from rsi and rdi: these are what is followed";
    assert_eq!(said("weigh:sum").as_deref(), Some(told));
    assert_eq!(said("weigh:a"), None);
}

#[test]
fn of_an_empty_slice_it_is_told_what_would_show_more() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    // What comes next there is a constant.
    for option in ["--thin", "--data"] {
        let output = recorded.why(&["slice", &recorded.place("4"), option]);
        let shown = text(&output.stdout);
        assert!(shown.contains(&format!("(without {option}, what")), "{shown}");
    }
    let decided = text(&recorded.why(&["slice", &recorded.place("4")]).stdout);
    assert!(!decided.contains("without --"), "{decided}");
}

#[test]
fn a_source_that_was_changed_later_is_named() {
    let changed = |recorded: &Recorded| {
        let place = format!("{}:out", recorded.place("16"));
        text(&recorded.why(&["slice", &place]).stdout).contains("figure.c has changed since")
    };
    let copy = tempfile::tempdir().unwrap();
    let source = copy.path().join("figure.c");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slice/figure.c"), &source)
        .unwrap();
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    recorded.build("cc", &source, &["-g", "-O0"]);
    recorded.record(&[]);
    assert!(!changed(&recorded));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    std::fs::File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
    assert!(changed(&recorded));
}

#[test]
fn near_code_that_was_never_executed_what_was_is_named() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let message = recorded.refused(&["slice", &recorded.place("8")], 1);
    let [before, behind] = ["6", "9"].map(|comment| recorded.place(comment));
    let near = format!("never executed; the nearest lines that were are {before} and {behind}");
    assert!(message.contains(&near), "{message}");
    // So it is of each side of a region.
    let never = recorded.place("8");
    for region in [format!("{never}.."), format!("..{never}"), format!("{never}..end")] {
        let message = recorded.refused(&["slice", "end:out", "--region", &region], 1);
        assert!(message.contains(&near) && message.contains(&never), "{region}: {message}");
    }
}

#[test]
fn what_another_process_executed_is_found_there() {
    let recorded = Recorded::new("forks.c", &["-g", "-O0"], &["9"]);
    let place = recorded.place("result");
    let info: Value = serde_json::from_slice(&recorded.why(&["info", "--json"]).stdout).unwrap();
    let processes = info["answer"]["processes"].as_array().unwrap();
    for words in [&["slice", &place][..], &["print", &place], &["slice", "end", "--region=X.."]] {
        let region = format!("--region={place}..");
        let words: Vec<&str> =
            words.iter().map(|word| if word.contains('X') { &region } else { *word }).collect();
        let message = recorded.refused(&words, 1);
        assert!(message.contains(&format!("{place} was never executed in process")), "{message}");
        // What is named is right: that process did, and no other.
        let (_, named) = message.trim().split_once(": give ").expect(&message);
        assert!(recorded.why(&["print", named]).status.success(), "{named}");
        let (process, _) = named.split_once('/').unwrap();
        for other in processes.iter().map(|process| process["pid"].to_string()) {
            let did = recorded.why(&["print", &format!("{other}/{place}")]).status.success();
            assert_eq!(did, other == process, "{other}");
        }
    }
}

#[test]
fn what_is_no_criterion_is_named_with_what_is_one() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    for (wrong, why) in [
        ("nonsense:::", "nothing stands behind its last colon"),
        ("main:", "nothing stands behind its last colon"),
        ("main:a->", "a->: a name is missing"),
        ("nonsense::", "it begins with no place"),
        ("main:::a", "it begins with no place"),
        ("#3", "it begins with no place"),
    ] {
        for command in ["print", "slice"] {
            let message = recorded.refused(&[command, "figure-1", wrong], 2);
            let told = format!("{wrong:?} is no criterion: {why}; give PLACE[#N][:VALUE]");
            assert!(message.contains(&told), "{command} {wrong}: {message}");
        }
    }
}

#[test]
fn a_program_without_symbols_is_told_from_one_without_a_function() {
    let recorded = Recorded::new("figure.c", &["-O0", "-s"], &[]);
    let message = recorded.refused(&["slice", "main:%rax"], 1);
    assert!(message.contains("no symbols; give a position, stdout:N"), "{message}");
}

#[test]
fn what_is_known_of_variables_is_told_where_one_has_no_value() {
    let asked = |recorded: &Recorded, place: &str, variable: &str| {
        recorded.refused(&["slice", &format!("{}:{variable}", recorded.place(place))], 1)
    };
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    for (wrong, right) in [("shwon", "shown"), ("ouut", "out")] {
        let message = asked(&recorded, "16", wrong);
        assert!(message.contains(&format!("here; did you mean {right}?")), "{message}");
    }
    let message = asked(&recorded, "16", "nothing");
    assert!(message.contains("here; there are argc, argv, a, b and shown"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g1", "-O0"], &[]);
    let message = asked(&recorded, "16", "shown");
    assert!(message.contains("figure tells of lines, but of no variables"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g", "-gsplit-dwarf", "-O0"], &[]);
    for file in std::fs::read_dir(recorded.directory.path()).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let message = asked(&recorded, "16", "shown");
    assert!(message.contains(".dwo is missing, which tells of variables"), "{message}");
    let recorded = Recorded::new("figure.c", &["-g", "-O2"], &[]);
    let message = recorded.refused(&["slice", "main:a"], 1);
    let (_, line) = message.trim().split_once("should have a value at figure.c:").expect(&message);
    let there = recorded.why(&["print", &format!("figure.c:{line}:a")]);
    assert!(there.status.success(), "{}", text(&there.stderr));
}

#[test]
fn what_cannot_be_answered_is_said_in_a_line() {
    let recorded = Recorded::new("overflow.c", &["-g", "-O2", "-fno-inline"], &["fits"]);
    let never = recorded.refused(&["slice", "overflow.c:9999:x"], 1);
    assert!(never.contains("line 9999"), "{never}");
    assert!(never.contains("the last line is 23"), "{never}");
    for words in ["overflow.c", "overflow.c:work"] {
        let message = recorded.refused(&["slice", words], 1);
        assert!(message.contains("give FILE:LINE, such as overflow.c:"), "{message}");
    }
    let close = recorded.refused(&["slice", "mian:%rax"], 1);
    assert!(close.contains("no function mian in what was mapped; did you mean main?"), "{close}");
    let byte = recorded.refused(&["slice", "stdout:-1"], 2);
    assert!(byte.contains("the first is stdout:0"), "{byte}");
    let none = recorded.refused(&["slice", "end:nothing"], 1);
    assert!(none.contains("no variable nothing"), "{none}");
    let two = recorded.refused(&["slice", "end", "crash"], 2);
    assert!(two.contains("one value"), "{two}");
    for words in
        [&["slice", "nosuch", "crash"][..], &["chop", "nosuch", "--from=arg:1", "--to=end"]]
    {
        let message = recorded.refused(words, 1);
        assert!(message.contains("no recording nosuch; `why ls`"), "{message}");
    }
    for words in [&["slice", "overflow-1"][..], &["slice", "overflow-1", "--region=main.."]] {
        let message = recorded.refused(words, 2);
        assert!(message.contains("overflow-1 is a recording: give a criterion"), "{message}");
    }
    let gone = recorded.refused(&["slice", "overflow-9"], 1);
    assert!(gone.contains("no recording overflow-9"), "{gone}");
    let pruned = recorded.refused(&["slice", "end", "--prune", "nobody"], 1);
    assert!(pruned.contains("nobody"), "{pruned}");
    assert!(pruned.contains("source or mapped file"), "{pruned}");
    let unmapped = recorded.refused(&["slice", "end:0x0+8"], 1);
    assert!(unmapped.contains("no memory is mapped at 0x0"), "{unmapped}");
    let source = recorded.refused(&["chop", "--from", "arg:7", "--to", "end"], 1);
    assert!(source.contains("one argument, and none 7"), "{source}");
    let input = recorded.refused(&["chop", "--from", "input", "--to", "end"], 1);
    assert!(input.contains("not known to have read its standard input or a file"), "{input}");
    let outside = recorded.refused(&["slice", "main", "--region", "work..end"], 1);
    assert!(outside.contains("not in the region"), "{outside}");
    let region = recorded.refused(&["slice", "end", "--region", "main"], 2);
    assert!(region.contains("FROM..UNTIL"), "{region}");
    let range = recorded.refused(&["chop", "--from", "input:9-3", "--to", "end"], 2);
    assert!(range.contains("FIRST-LAST"), "{range}");
}

#[test]
fn a_slice_of_another_recording_is_refused_wherever_it_is() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    recorded.record(&[]);
    let recordings = recorded.directory.path().join("recordings");
    let [one, other] = ["figure-1", "figure-2"].map(|name| recordings.join(name));
    let place = recorded.place("16");
    let kept = recorded.why(&["slice", "figure-1", &format!("{place}:out"), "--save", "kept"]);
    let slice = one.join("slices/kept.json");
    std::fs::create_dir(other.join("slices")).unwrap();
    std::fs::copy(&slice, other.join("slices/kept.json")).unwrap();
    let file = slice.to_str().unwrap();
    for (command, status) in [
        (&["slice", "figure-2", "kept", "--load"][..], 1),
        (&["slice", "figure-2", file, "--load"], 1),
        (&["replay", "figure-2", "--slice", "kept"], 125),
    ] {
        let message = recorded.refused(command, status);
        assert!(message.contains("but of another recording; it was made of"), "{message}");
    }
    // It stays the same recording wherever that is.
    let packed = recorded.directory.path().join("packed.why");
    let packed = packed.to_str().unwrap();
    assert!(recorded.why(&["pack", "figure-1", "-o", packed]).status.success());
    std::fs::rename(one, recordings.join("moved")).unwrap();
    let elsewhere = other.join("slices/kept.json");
    for words in [["moved", "kept"], [packed, "kept"], ["moved", elsewhere.to_str().unwrap()]] {
        let loaded = recorded.why(&[&["slice"][..], &words, &["--load"]].concat());
        assert_eq!(text(&loaded.stdout), text(&kept.stdout), "{}", text(&loaded.stderr));
    }
}

#[test]
fn of_a_damaged_recording_a_kept_slice_tells_that_it_is() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    assert!(recorded.why(&["slice", "exit", "--save", "kept"]).status.success());
    let events = recorded.directory.path().join("recordings/figure-1/events");
    let stream = events.read_dir().unwrap().next().unwrap().unwrap().path();
    let replayed_and_loaded = |said: &str| {
        for (command, status) in
            [(&["replay", "--slice", "kept"][..], 125), (&["slice", "kept", "--load"], 1)]
        {
            let message = recorded.refused(command, status);
            assert!(message.contains(said), "{message}");
        }
    };
    let file = std::fs::File::options().write(true).open(&stream).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    replayed_and_loaded("was cut short");
    std::fs::remove_file(&stream).unwrap();
    replayed_and_loaded("is damaged: it is missing; record the program again");
}

#[test]
fn a_source_that_is_a_pipe_by_now_is_not_waited_for() {
    let recorded = Recorded::built("cc", "figure.c", &["-g", "-O0"]);
    let source = recorded.directory.path().join("copy.c");
    std::fs::copy(&recorded.source, &source).unwrap();
    recorded.build("cc", &source, &["-g", "-O0"]);
    recorded.record(&[]);
    std::fs::remove_file(&source).unwrap();
    assert!(Command::new("mkfifo").arg(&source).status().unwrap().success());
    let slice = recorded.command(&["slice", "exit"]);
    let mut limited = Command::new("timeout");
    limited.arg("60").arg(slice.get_program()).args(slice.get_args());
    limited.envs(slice.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("copy.c:") && !shown.contains("has changed since"), "{shown}");
}

/// Restores what nobody may read, for whoever deletes it.
struct Unreadable<'a>(&'a Path);

impl Unreadable<'_> {
    fn new(path: &Path) -> Unreadable<'_> {
        std::fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        Unreadable(path)
    }
}

impl Drop for Unreadable<'_> {
    fn drop(&mut self) {
        std::fs::set_permissions(self.0, Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn a_recording_that_may_not_be_read_is_told_from_none() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let directory = recorded.directory.path();
    std::fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    // What is built may lie in a private home, and root may read everything.
    let why = directory.join("why");
    std::fs::copy(WHY, &why).unwrap();
    let refused = |words: &[&str]| {
        let mut command = Command::new(&why);
        command.args(words).env("WHY_DIR", directory.join("recordings")).current_dir(directory);
        if nix::unistd::geteuid().is_root() {
            command.uid(65534).gid(65534);
        }
        let output = command.output().unwrap();
        let message = text(&output.stderr);
        assert!(!output.status.success() && message.lines().count() == 1, "{words:?}: {message}");
        message
    };
    let recordings = directory.join("recordings");
    std::fs::set_permissions(&recordings, Permissions::from_mode(0o755)).unwrap();
    let path = recordings.join("figure-1");
    let own = path.to_str().unwrap();
    {
        let _unreadable = Unreadable::new(&path);
        for words in [
            &["slice", "figure-1", "exit"][..],
            &["slice", own, "exit"],
            &["slice", "exit"],
            &["slice", "figure-1"],
            &["info", "figure-1"],
            &["replay", own],
            &["ls"],
        ] {
            let message = refused(words);
            assert!(message.contains("figure-1 may not be read: Permission denied"), "{message}");
        }
        // Others are not in its way.
        assert!(refused(&["info", "figure-9"]).contains("there is no recording figure-9"));
    }
    let _unreadable = Unreadable::new(&recordings);
    for words in [&["slice", "figure-1", "exit"][..], &["slice", "exit"], &["info"], &["ls"]] {
        let message = refused(words);
        assert!(message.contains("Permission denied"), "{words:?}: {message}");
    }
}

#[test]
fn where_memory_is_limited_it_is_said_so() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let derived = recorded.directory.path().join("recordings/figure-1/derived");
    let mut refused = 0;
    for kilobytes in (100_000..500_000).step_by(30_000) {
        let script = format!("ulimit -v {kilobytes}; exec {WHY} slice exit");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).env("WHY_DIR", recorded.directory.path().join("recordings"));
        let output = shell.output().unwrap();
        if !output.status.success() {
            let message = text(&output.stderr);
            assert_eq!(message.lines().count(), 1, "{message}");
            let told = format!("`ulimit -v` allows {kilobytes} KB of address space: raise it");
            assert!(message.contains(&told), "{message}");
            refused += 1;
        }
        let _ = std::fs::remove_dir_all(&derived);
    }
    assert!(refused > 2);
}

#[test]
fn a_recording_is_not_taken_for_a_kept_slice() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    assert!(recorded.why(&["slice", "exit", "--save", "kept"]).status.success());
    let message = recorded.refused(&["slice", "figure-1", "--load"], 2);
    let told = "figure-1 is a recording: give the name of a slice behind it; kept slices: kept";
    assert!(message.contains(told), "{message}");
    // What is called so is meant.
    assert!(recorded.why(&["slice", "exit", "--save", "figure-1"]).status.success());
    assert!(recorded.why(&["slice", "figure-1", "--load"]).status.success());
}

#[test]
fn slices_have_names_with_which_they_can_be_packed() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    for wrong in ["", ".", "a/b", "a\nb", "a\u{1b}b", "a b", "\u{e4}", &"a".repeat(100)] {
        let message = recorded.refused(&["slice", "exit", "--save", wrong], 2);
        assert!(message.contains("cannot be the name of a slice: give some letters"), "{message}");
    }
    assert!(recorded.why(&["slice", "exit", "--save", "A-z_0.9"]).status.success());
    let packed = recorded.directory.path().join("packed.why");
    assert!(recorded.why(&["pack", "-o", packed.to_str().unwrap()]).status.success());
}

#[test]
fn a_terminal_is_not_told_what_to_do_by_a_source() {
    let recorded = Recorded::built("cc", "figure.c", &["-g", "-O0"]);
    let source = recorded.directory.path().join("obeyed.c");
    let written = std::fs::read_to_string(&recorded.source).unwrap();
    std::fs::write(&source, written.replace("/* 16 */", "/* \x1b[2J\x07\u{9b}H */")).unwrap();
    recorded.build("cc", &source, &["-g", "-O0"]);
    recorded.record(&[]);
    let shown = text(&recorded.why(&["slice", "end:out"]).stdout);
    assert!(shown.contains("out = shown; /* \u{fffd}[2J\u{fffd}\u{fffd}H */"), "{shown:?}");
}

#[test]
fn what_was_left_by_who_was_killed_is_deleted() {
    let recorded = Recorded::new("figure.c", &["-g", "-O0"], &[]);
    let derived = recorded.directory.path().join("recordings/figure-1/derived");
    std::fs::create_dir(&derived).unwrap();
    for left in ["trace-1.unfinished", "trace-1.decoded", "trace-1.learning"] {
        std::fs::write(derived.join(left), "what another one made").unwrap();
    }
    std::fs::create_dir(derived.join("excerpt-left")).unwrap();
    assert!(recorded.why(&["slice", "exit", "--save", "kept"]).status.success());
    recorded.why(&["replay", "--slice", "kept"]);
    let there = derived.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = there
        .filter(|name| {
            let name = name.to_str().unwrap();
            !["json", "learnt"].contains(&name.rsplit('.').next().unwrap())
                && name.contains(['.', 'x'])
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Whoever makes an excerpt may be killed: what there is of it then has not the name that was given.
#[test]
fn an_excerpt_is_there_when_it_is_whole() {
    let recorded = Recorded::new("stretches.c", &["-g", "-O0"], &[]);
    for (name, criterion) in [("many", "end:sum"), ("few", "end:few")] {
        assert!(recorded.why(&["slice", criterion, "--thin", "--save", name]).status.success());
    }
    let parent = recorded.directory.path().join("excerpts");
    let new = parent.join("new");
    let replay = |slice| ["replay", "--slice", slice, "-o", new.to_str().unwrap()];
    let rooms = || {
        let there = std::fs::read_dir(&parent).into_iter().flatten().flatten();
        there.map(|entry| entry.path()).filter(|path| *path != new).collect::<Vec<_>>()
    };
    let mut killed = recorded.command(&replay("many")).stderr(Stdio::null()).spawn().unwrap();
    let is_half_made = || rooms().iter().any(|room| room.join("recording/events").exists());
    while !is_half_made() && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert!(!new.exists() && rooms().len() == 1, "{:?}", rooms());

    let manifest = new.join("manifest.json");
    assert!(recorded.why(&replay("few")).status.success());
    assert!(manifest.exists());
    let info = recorded.why(&["info", new.to_str().unwrap()]);
    assert!(text(&info.stdout).contains("for end:few"), "{}", text(&info.stdout));
    // Whoever was killed may have left others who have not noticed yet.
    let until = Instant::now() + Duration::from_secs(60);
    while !rooms().is_empty() {
        assert!(Instant::now() < until, "{:?}", rooms());
        std::thread::sleep(Duration::from_millis(50));
        std::fs::remove_dir_all(&new).unwrap();
        assert!(recorded.why(&replay("few")).status.success());
    }

    // One that is there is refused before anything is done.
    let derived = recorded.directory.path().join("recordings/stretches-1/derived");
    std::fs::remove_dir_all(&derived).unwrap();
    let message = recorded.refused(&replay("many"), 125);
    assert!(message.contains("cannot create the recording"), "{message}");
    assert!(manifest.exists() && !derived.exists() && rooms().is_empty());
}

/// Nobody who waits for minutes is to wonder why.
#[test]
fn what_a_slice_in_many_stretches_costs_is_said_beforehand() {
    let recorded = Recorded::new("stretches.c", &["-g", "-O0"], &[]);
    for (name, criterion) in [("many", "end:sum"), ("few", "end:few")] {
        assert!(recorded.why(&["slice", criterion, "--thin", "--save", name]).status.success());
    }
    let mut replay = recorded.command(&["replay", "--slice", "many"]);
    let mut replay = replay.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(replay.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let is_beforehand = replay.try_wait().unwrap().is_none();
    replay.kill().unwrap();
    replay.wait().unwrap();
    let number = said.strip_prefix("why: the slice is in ").and_then(|rest| rest.split(' ').next());
    let stretches: u64 = number.and_then(|number| number.parse().ok()).expect(&said);
    // Every turn has at least two, with what is not in the slice between them.
    assert!(is_beforehand && stretches >= 120_000 && said.contains("tens of thousands"), "{said}");
    let few = text(&recorded.why(&["replay", "--slice", "few"]).stderr);
    assert!(!few.contains("tens of thousands") && few.contains(" stretches; "), "{few}");
}
