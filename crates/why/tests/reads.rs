//! What a program reads from a large file is in the recording once, and what it read is
//! replayed when the file is gone, whatever was done to file and offset meanwhile.

use std::fs;
use std::process::{Command, Output, Stdio};

use support::random::Random;
use support::recorded::{Setting, files_below, text};

mod support;

/// Large enough to be kept, and not compressible.
const FILE_BYTES: usize = 8 << 20;

/// `reader HOW SIZE` tells what each read of the file returned, and a hash of all bytes up to
/// there.
const READER: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static unsigned char buffer[1 << 20];
    static unsigned long hash = 14695981039346656037ul;
    static size_t size;
    static long reads;
    static long tell(long got) {
        for (long i = 0; i < got; i++) hash = (hash ^ buffer[i]) * 1099511628211ul;
        if (reads++ % 50 == 0 || got <= 0) printf("%ld %ld %016lx\n", reads, got, hash);
        return got;
    }
    static long next(int fd) { return tell(read(fd, buffer, size)); }
    static int file(int flags) {
        int fd = open("file", flags);
        if (fd < 0) exit(99);
        return fd;
    }
    int main(int argc, char **argv) {
        const char *how = argv[1];
        size = atol(argv[2]);
        if (!strcmp(how, "input")) {
            while (next(0) > 0);
        } else if (!strcmp(how, "sequence")) {
            for (int fd = file(O_RDONLY); next(fd) > 0;);
        } else if (!strcmp(how, "pread")) {
            int fd = file(O_RDONLY);
            for (long at = 0; tell(pread(fd, buffer, size, at)) > 0;) at += size;
        } else if (!strcmp(how, "seeks")) {
            int fd = file(O_RDONLY);
            for (int i = 0; i < 200; i++) next(fd);
            for (unsigned i = 1; i < 200; i++) {
                lseek(fd, i * 2654435761u % (8u << 20), SEEK_SET);
                next(fd);
                if (i % 3) next(fd);
            }
        } else if (!strcmp(how, "two")) {
            int one = file(O_RDONLY), other = file(O_RDONLY), copy = dup(one);
            lseek(other, 12345, SEEK_SET);
            for (int i = 0; next(i % 5 ? one : copy) > 0; i++) if (i % 7 == 0) next(other);
        } else if (!strcmp(how, "overwritten")) {
            int fd = file(O_RDONLY), writer = file(O_RDWR);
            for (int i = 0; next(fd) > 0; i++)
                if (i % 11 == 9) pwrite(writer, "changed", 7, lseek(fd, 0, SEEK_CUR) + size / 2);
        } else if (!strcmp(how, "truncated")) {
            int fd = file(O_RDONLY), writer = file(O_RDWR);
            for (long at = 0; at < 1 << 20;) at += next(fd);
            ftruncate(writer, 3 << 20);
            while (next(fd) > 0);
            ftruncate(writer, 4 << 20);
            while (next(fd) > 0);
        } else if (!strcmp(how, "shared")) {
            int fd = file(O_RDONLY);
            for (int i = 0; i < 20; i++) {
                fflush(stdout);
                if (fork() == 0) { for (int n = 0; n <= i; n++) next(fd); return 0; }
                wait(0);
                next(fd);
            }
        } else if (!strcmp(how, "inherited")) {
            dup2(file(O_RDONLY), 0);
            for (int i = 0; i < 100; i++) next(0);
            fflush(stdout);
            execl("./reader", "reader", "input", argv[2], (char *)0);
        }
        return 0;
    }"#;

struct Reader {
    setting: Setting,
    bytes: Vec<u8>,
}

impl Reader {
    fn new() -> Reader {
        let setting = Setting::new();
        setting.compile("reader", READER);
        let mut random = Random::new();
        let bytes = (0..FILE_BYTES / 8).flat_map(|_| random.number().to_le_bytes()).collect();
        Reader { setting, bytes }
    }

    /// With the file as it was at first, also on standard input.
    fn run(&self, mut command: Command) -> Output {
        let file = self.setting.path("file");
        fs::write(&file, &self.bytes).unwrap();
        command.stdin(Stdio::from(fs::File::open(&file).unwrap())).output().unwrap()
    }

    /// Records, replays, and returns how large the logs are.
    fn log_of(&self, how: &str, size: usize) -> u64 {
        let size = size.to_string();
        let mut native = self.setting.command("./reader");
        native.args([how, &size]);
        let native = self.run(native);
        assert!(native.status.success() && !native.stdout.is_empty(), "{how} {size}");
        let record = ["record", "-o", "rec", "--", "./reader", how, &size];
        let recorded = self.run(self.setting.why(&record));
        let case = format!("{how} {size}: {}", text(&recorded.stderr));
        assert_eq!(text(&recorded.stdout), text(&native.stdout), "{case}");
        fs::remove_file(self.setting.path("file")).unwrap();
        let replayed = self.setting.run(&["replay", "rec"]);
        let case = format!("{how} {size}: {}", text(&replayed.stderr));
        assert_eq!(text(&replayed.stdout), text(&native.stdout), "{case}");
        assert_eq!(replayed.status.code(), Some(0), "{case}");
        let logs = files_below(&self.setting.path("rec/events"));
        let bytes = logs.iter().map(|log| fs::metadata(log).unwrap().len()).sum();
        fs::remove_dir_all(self.setting.path("rec")).unwrap();
        bytes
    }

    /// Likewise, where all but a small part of what is read must be told by its place.
    fn is_told_by_place(&self, how: &str, sizes: &[usize]) {
        for &size in sizes {
            let log = self.log_of(how, size);
            assert!(log < FILE_BYTES as u64 / 20, "{how} {size}: {log} bytes");
        }
    }
}

#[test]
fn one_read_behind_the_other() {
    Reader::new().is_told_by_place("sequence", &[4096, 10_000, 65_535, 65_536, 1 << 20]);
}

#[test]
fn small_reads_are_told_in_full() {
    let reader = Reader::new();
    assert!(reader.log_of("sequence", 1000) > FILE_BYTES as u64);
}

#[test]
fn from_standard_input_and_what_another_program_left_of_it() {
    let reader = Reader::new();
    reader.is_told_by_place("input", &[4096, 1 << 20]);
    reader.is_told_by_place("inherited", &[5000, 70_000]);
}

#[test]
fn at_offsets_that_the_call_names() {
    let reader = Reader::new();
    reader.is_told_by_place("pread", &[65_536, 1 << 20]);
    reader.log_of("pread", 5000);
}

#[test]
fn where_offsets_are_moved() {
    let reader = Reader::new();
    for size in [5000, 65_536] {
        reader.log_of("seeks", size);
        reader.log_of("shared", size);
    }
    // Which of two descriptors of a file was read is seen a little later.
    for size in [8192, 65_536] {
        let log = reader.log_of("two", size);
        assert!(log < FILE_BYTES as u64 / 5, "two {size}: {log} bytes");
    }
}

#[test]
fn while_the_file_changes() {
    let reader = Reader::new();
    for size in [5000, 60_000, 300_000] {
        reader.log_of("overwritten", size);
        reader.log_of("truncated", size);
    }
}
