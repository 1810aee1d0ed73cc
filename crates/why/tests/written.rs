//! `stdout:N` and `stderr:N`: what a run writes natively tells what each byte is.

use serde_json::Value;
use support::recorded::{Setting, said_in_one_line, text};

mod support;

/// Two threads and a forked process write to both streams, in parts and under another number.
const PROGRAM: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/uio.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static int first, second;
    static void *other(void *unused) {
        write(1, "thread\n", 7);
        write(2, "error of it\n", 12);
        return unused;
    }
    int main(int argc, char **argv) {
        char text[40];
        struct iovec parts[] = {{"ab", 2}, {"", 0}, {"cde\n", 4}};
        writev(1, parts, 3);
        pthread_t thread;
        pthread_create(&thread, 0, other, 0);
        pthread_join(thread, 0);
        int copy = dup(1);
        close(1);
        if (fork() == 0) {
            write(copy, "child\n", 6);
            _exit(0);
        }
        wait(0);
        first = argc * 11; /* first */
        second = argc * 22; /* second */
        sprintf(text, "%d %d\n", first, second); /* text */
        write(copy, text, strlen(text)); /* written */
        write(2, "last", 4);
        return 0;
    }"#;

fn setting() -> Setting {
    let setting = Setting::new();
    // The linker's work is not looked into, and so not what it brings back for a call bound late.
    setting.compile_with("writer", PROGRAM, &["-g", "-O0", "-pthread"]);
    let recorded = setting.run(&["record", "-o", "rec", "--", "./writer"]);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    setting
}

#[test]
fn each_byte_is_the_one_that_comes_out() {
    let setting = setting();
    let native = setting.command("./writer").output().unwrap();
    for (stream, bytes) in [("stdout", &native.stdout), ("stderr", &native.stderr)] {
        assert!(bytes.len() > 15, "{bytes:?}");
        let criteria: Vec<String> =
            (0..bytes.len()).map(|byte| format!("{stream}:{byte}")).collect();
        let words = ["print", "rec", "--json"].map(str::to_owned);
        let words: Vec<&str> = words.iter().chain(&criteria).map(String::as_str).collect();
        let printed = setting.run(&words);
        let answers = text(&printed.stdout);
        let seen: Vec<u8> = answers
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .map(|answer: Value| answer["answer"]["value"]["bytes"][0].as_u64().unwrap() as u8)
            .collect();
        assert_eq!(text(&seen), text(bytes), "{}", text(&printed.stderr));
        let behind = setting.run(&["print", "rec", &format!("{stream}:{}", bytes.len())]);
        assert_eq!(behind.status.code(), Some(1));
        said_in_one_line(&behind.stderr, &format!("only {} bytes", bytes.len()));
    }
}

#[test]
fn a_byte_is_of_the_process_that_wrote_it() {
    let setting = setting();
    let info: Value =
        serde_json::from_slice(&setting.run(&["info", "rec", "--json"]).stdout).unwrap();
    let child = &info["answer"]["processes"][1]["pid"];
    let native = setting.command("./writer").output().unwrap();
    let at = text(&native.stdout).find("child").unwrap();
    let process = |criterion: &str| -> (Value, Value) {
        let printed = setting.run(&["print", "rec", criterion, "--json"]);
        let answer: Value = serde_json::from_slice(&printed.stdout).expect(criterion);
        (answer["answer"]["process"].clone(), answer["answer"]["value"]["bytes"][0].clone())
    };
    assert_eq!(process(&format!("stdout:{at}")), (child.clone(), b'c'.into()));
    assert_eq!(process(&format!("{child}/stdout:4")), (child.clone(), b'd'.into()));
    let behind = setting.run(&["print", "rec", &format!("{child}/stdout:6")]);
    said_in_one_line(&behind.stderr, "wrote only 6 bytes to standard output");
    let none = setting.run(&["print", "rec", &format!("{child}/stderr:0")]);
    said_in_one_line(&none.stderr, "wrote nothing to standard error");
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(setting.run(&["print", "rec", "stdout:x"]).status.code(), Some(2));
}

/// What made a number that was written, and not what made the other one.
#[test]
fn a_slice_of_a_byte_is_of_what_made_it() {
    let setting = setting();
    let line = |comment: &str| {
        let comment = format!("/* {comment} */");
        PROGRAM.lines().position(|line| line.contains(&comment)).unwrap() as u64 + 1
    };
    let native = text(&setting.command("./writer").output().unwrap().stdout);
    for (number, own, other) in [("11 ", "first", "second"), ("22\n", "second", "first")] {
        let criterion = format!("stdout:{}", native.find(number).unwrap());
        let sliced = setting.run(&["slice", "rec", &criterion, "--data", "--json"]);
        assert!(sliced.status.success(), "{}", text(&sliced.stderr));
        let answer: Value = serde_json::from_slice(&sliced.stdout).unwrap();
        let lines: Vec<u64> = answer["answer"]["lines"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|shown| shown["line"].as_u64())
            .collect();
        assert!(lines.contains(&line("text")) && lines.contains(&line(own)), "{lines:?}");
        assert!(!lines.contains(&line(other)), "{criterion}: {lines:?}");
        let told = answer["answer"]["told"].as_str().unwrap();
        assert!(told.ends_with(&format!("{:?}", number.chars().next().unwrap())), "{told}");
    }
}
