//! What a recording cannot hold is named in `why info`.

use std::process::{Command, Stdio};

use support::recorded::{Setting, text};

mod support;

/// Maps a file to share it; with an argument, it then waits for its input to end.
const SHARING: &str = "
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <unistd.h>
    int main(int count, char **words) {
        int file = open(\"shared\", O_RDWR | O_CREAT, 0600);
        if (ftruncate(file, 4096)) return 1;
        char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (count > 1) {
            puts(words[1]);
            fflush(stdout);
            while (read(0, memory, 1) > 0) {}
        }
        return memory == MAP_FAILED;
    }";

#[test]
fn memory_shared_with_a_process_outside_is_named() {
    let setting = Setting::new();
    let program = setting.compile("sharing", SHARING);
    assert!(setting.run(&["record", "-o", "alone", "--", "./sharing"]).status.success());
    assert!(!text(&setting.run(&["info", "alone"]).stdout).contains("shared with"));
    let mut outside = Command::new(program)
        .arg("ready")
        .current_dir(setting.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0];
    std::io::Read::read_exact(outside.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert!(setting.run(&["record", "-o", "together", "--", "./sharing"]).status.success());
    let info = text(&setting.run(&["info", "together"]).stdout);
    drop(outside.stdin.take());
    assert!(outside.wait().unwrap().success());
    let named = format!("shared with process {} (sharing)", outside.id());
    assert!(info.contains(&named), "{info}");
}

/// Maps a file privately, writes to the file if it is given an argument, and looks.
const CHANGING: &str = "
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/mman.h>
    #include <unistd.h>
    int main(int count, char **words) {
        int file = open(\"changing\", O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (write(file, \"before\", 6) != 6) return 1;
        char *memory = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
        usleep(50000);
        if (count > 1 && pwrite(file, words[1], 6, 0) != 6) return 1;
        printf(\"%.6s\\n\", memory);
        return 0;
    }";

#[test]
fn a_file_that_changes_while_it_is_mapped_privately_is_named() {
    let setting = Setting::new();
    setting.compile("changing-program", CHANGING);
    let info = |words: &[&str]| {
        let command = ["record", "-o", "rec", "--", "./changing-program"];
        let recorded = setting.run(&[&command, words].concat());
        let info = text(&setting.run(&["info", "rec"]).stdout);
        assert!(setting.run(&["rm", "rec"]).status.success());
        (text(&recorded.stdout), info)
    };
    let (wrote, named) = info(&[]);
    assert_eq!(wrote, "before\n");
    assert!(!named.contains("note "), "{named}");
    let (wrote, named) = info(&["after!"]);
    assert_eq!(wrote, "after!\n");
    assert!(named.contains("/changing was written to after it had been mapped"), "{named}");
}

/// Sets the trap flag for one instruction.
const STEPPING: &str = "
    #include <signal.h>
    static volatile int steps;
    static void step(int signal) { steps += signal == SIGTRAP; }
    int main(void) {
        signal(SIGTRAP, step);
        __asm__ volatile(\"lea -128(%%rsp), %%rsp; pushf; orl $0x100, (%%rsp); popf; nop\\n\"
                         \"pushf; andl $~0x100, (%%rsp); popf; lea 128(%%rsp), %%rsp\" ::: \"memory\", \"cc\");
        return steps == 0;
    }";

#[test]
fn a_program_that_steps_itself_is_named() {
    let setting = Setting::new();
    setting.compile("stepping", STEPPING);
    assert!(setting.run(&["record", "-o", "rec", "--", "./stepping"]).status.success());
    let info = text(&setting.run(&["info", "rec"]).stdout);
    assert_eq!(info.matches("the program steps itself").count(), 1, "{info}");
}
