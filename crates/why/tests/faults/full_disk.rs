//! No room left while recording.

use std::fs;
use std::process::Output;

use crate::support::recorded::{Setting, is_beginning, said_in_one_line, text};
use crate::support::why::WHY;

/// Reads what cannot be compressed, for ever, and says how far it has come.
const READS: &str = "
    #include <fcntl.h>
    #include <stdio.h>
    #include <unistd.h>
    int main(void) {
        static char bytes[1 << 16];
        int random = open(\"/dev/urandom\", O_RDONLY);
        for (int part = 0;; part++) {
            if (read(random, bytes, sizeof bytes) != sizeof bytes) return 1;
            printf(\"part %d: %d\\n\", part, bytes[part % sizeof bytes]);
            fflush(stdout);
        }
    }";

const SUMS: &str =
    "int main(void) { int sum = 0; for (int i = 1; i < 2000; i++) sum += i; return sum & 15; }";

/// Whoever may not mount may do so in a namespace of their own.
fn in_namespace(setting: &Setting, script: &str) -> Output {
    let mut shell = setting.command("unshare");
    shell.args(["--mount", "--map-root-user", "sh", "-c", script]).output().unwrap()
}

#[test]
fn a_full_disk_ends_the_recording_and_not_what_there_is_of_it() {
    let setting = Setting::new();
    setting.compile_with("reads", READS, &["-O1", "-static"]);
    // What there is of it is taken to where there is more room.
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=6m none small && \
         {WHY} record -o small/rec -- ./reads >output; status=$?; cp -r small/rec rec; exit $status"
    );
    let recorded = in_namespace(&setting, &script);
    assert_eq!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
    said_in_one_line(&recorded.stderr, "No space left on device");

    let replayed = setting.run(&["replay", "rec"]);
    assert_eq!(replayed.status.code(), Some(125));
    said_in_one_line(&replayed.stderr, "cut short");
    let (output, replayed) =
        (fs::read_to_string(setting.path("output")).unwrap(), text(&replayed.stdout));
    is_beginning(&output, &replayed).unwrap();
    assert!(replayed.lines().count() > 20, "{replayed}");
    assert!(text(&setting.run(&["info", "rec"]).stdout).contains("cut short"));
}

/// Computes, and maps a file that is larger than what is left.
const MAPS: &str = "
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/mman.h>
    int main(void) {
        volatile int sum = 0;
        for (int i = 0; i < 1000; i++) sum += i;
        printf(\"%d\\n\", sum);
        fflush(stdout);
        int file = open(\"large\", O_RDONLY);
        char *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
        return mapped[0];
    }";

#[test]
fn a_file_that_there_is_no_room_for_is_named_and_what_was_before_is_kept() {
    let setting = Setting::new();
    setting.compile_with("maps", MAPS, &["-O1", "-static"]);
    let script = format!(
        "head -c 6m /dev/zero >large && mkdir small && mount -t tmpfs -o size=5m none small && \
         {WHY} record -o small/rec -- ./maps; status=$?; cp -r small/rec rec; exit $status"
    );
    let recorded = in_namespace(&setting, &script);
    assert_eq!(recorded.status.code(), Some(125), "{}", text(&recorded.stderr));
    let large = setting.path("large");
    let named = format!("cannot keep a copy of {} in small/rec/files: ", large.display());
    said_in_one_line(&recorded.stderr, &named);
    said_in_one_line(&recorded.stderr, "; free some space there; small/rec has the first ");

    let replayed = setting.run(&["replay", "rec"]);
    assert_eq!(text(&replayed.stdout), "499500\n");
    said_in_one_line(&replayed.stderr, "cut short");
}

#[test]
fn where_there_is_no_room_for_a_trace_is_named() {
    let setting = Setting::new();
    setting.compile_with("sums", SUMS, &["-g", "-O0"]);
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=40m none small && {WHY} record -o small/rec -- ./sums; \
         head -c 40m /dev/zero >small/full; exec {WHY} slice small/rec exit"
    );
    let sliced = in_namespace(&setting, &script);
    assert_eq!(sliced.status.code(), Some(1), "{}", text(&sliced.stderr));
    let said = text(&sliced.stderr);
    let said = said.lines().filter(|line| !line.starts_with("head:")).collect::<Vec<_>>();
    assert!(matches!(said[..], [line] if line.contains("small/rec/derived/trace-")), "{said:?}");
    assert!(said[0].ends_with("No space left on device (os error 28); free some space there"));
}

#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let setting = Setting::new();
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=4k none small && \
         head -c 4096 /dev/zero >small/full; exec {WHY} record -o small/rec -- true"
    );
    let recorded = in_namespace(&setting, &script);
    assert_eq!(recorded.status.code(), Some(125));
    said_in_one_line(&recorded.stderr, "No space left on device");
}

#[test]
fn a_limit_on_the_size_of_files_is_named() {
    let setting = Setting::new();
    let script = format!("ulimit -f 6000; exec {WHY} record -o rec -- true");
    let recorded = setting.command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(recorded.status.code(), Some(125));
    said_in_one_line(&recorded.stderr, "File too large");
}

#[test]
fn a_slice_that_was_kept_stays_where_there_is_no_room_for_another() {
    let setting = Setting::new();
    setting.compile_with("sums", SUMS, &["-g", "-O0"]);
    let kept = "small/rec/slices/kept.json";
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=40m none small && {WHY} record -o small/rec -- ./sums; \
         {WHY} slice small/rec exit --save kept >first && head -c 40m /dev/zero >small/full; \
         sha256sum {kept} >sum; \
         {WHY} slice small/rec exit --all --save kept >second; status=$?; \
         {WHY} slice small/rec exit --all --save other >second; \
         sha256sum --quiet --check sum && {WHY} slice small/rec kept --load >again && ls small/rec/slices; \
         exit $status"
    );
    let sliced = in_namespace(&setting, &script);
    assert_eq!(sliced.status.code(), Some(1), "{}", text(&sliced.stderr));
    let said = text(&sliced.stderr);
    assert_eq!(said.matches("No space left on device").count(), 3, "{said}");
    assert_eq!(text(&sliced.stdout), "kept.json\n", "{said}");
    let [first, again] = ["first", "again"].map(|name| fs::read(setting.path(name)).unwrap());
    assert!(!first.is_empty());
    assert_eq!(text(&first), text(&again));
}
