//! Far from where only the count of instructions tells that it stops, a process runs with units
//! that do not look at the count, and yet stops exactly there.

use std::fs;

use support::recorded::{Setting, text};

mod support;

/// Computes until a timer has gone off three times; what it prints depends on where it was
/// each time. The one loop is short, the other one goes through calls, branches and memory.
const PROGRAM: &str = r#"
    #include <signal.h>
    #include <stdio.h>
    #include <sys/time.h>
    static volatile int signals;
    static volatile unsigned long at;
    static unsigned long sum, table[1024];
    static void handler(int signal) {
        sum = sum * 31 + at;
        signals++;
    }
    __attribute__((noinline)) static unsigned long mix(unsigned long value, unsigned long *place) {
        if (value & 64) *place += value;
        else *place ^= value >> 3;
        return *place;
    }
    int main(void) {
        struct itimerval second = { { 1, 0 }, { 1, 0 } };
        signal(SIGVTALRM, handler);
        setitimer(ITIMER_VIRTUAL, &second, 0);
        unsigned long a = 1, b = 2, c = 3, d = 4;
        for (; signals < 2; at++) {
            a += b ^ c; b += c >> 1; c += d & 7; d += 3;
            a ^= c + d; b ^= d + 1; c -= 5; d ^= 9;
        }
        for (; signals < 3; at++) a += mix(a, &table[at & 1023]);
        printf("%lu %lu %lu %lu %lu %lu\n", sum, at, a, b, c, d);
        return 0;
    }"#;

/// Executes two instructions, then turns of eight with a call and a branch in each.
const STEADY: &str = r#"
    __asm__(".globl _start\n"
            "_start: xor %eax, %eax\n mov $500000000, %ecx\n"
            "1: inc %rax\n call 2f\n mov %rax, -64(%rsp)\n dec %ecx\n jnz 1b\n"
            "xor %edi, %edi\n mov $60, %eax\n syscall\n"
            "2: lea 1(%rdx), %rdx\n xor %eax, %ebx\n ret");"#;

fn replayed(setting: &Setting, output: &str, how: &[&str]) -> u64 {
    let replayed = setting.run(&[&["replay", "rec", "--json=report"], how].concat());
    let case = text(&replayed.stderr);
    assert_eq!(replayed.status.code(), Some(0), "{case}");
    assert_eq!(text(&replayed.stdout), output, "{case}");
    let report = fs::read(setting.path("report")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    report["stats"]["gait_changes"].as_u64().unwrap()
}

#[test]
fn stops_are_exact_though_nobody_looked_on_the_way() {
    let setting = Setting::new();
    setting.compile("program", PROGRAM);
    let recorded = setting.run(&["record", "-o", "rec", "--hash=1", "--", "./program"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let output = text(&recorded.stdout);
    assert!(replayed(&setting, &output, &[]) >= 2);
    assert!(replayed(&setting, &output, &["--verify"]) >= 2);
}

#[test]
fn a_region_begins_exactly_though_nobody_looked_on_the_way() {
    let setting = Setting::new();
    setting.compile_with("program", STEADY, &["-nostdlib", "-static"]);
    let all = 2 + 8 * 500_000_000 + 3;
    for from in [1_500_000_001_u64, 2_900_000_003, all - 5] {
        let count = from.to_string();
        let options = ["record", "-o", &count, "--from", &count, "--", "./program"];
        let recorded = setting.run(&options);
        assert_eq!(text(&recorded.stderr), "");
        let start = setting.run(&["print", &count, "start", "--regs", "--json"]);
        let start: serde_json::Value = serde_json::from_slice(&start.stdout).unwrap();
        // The first of a turn's instructions increments rax, the third rdx.
        let registers = &start["answer"]["registers"];
        assert_eq!(registers["rax"], (from - 2).div_ceil(8));
        assert_eq!(registers["rdx"], (from - 2 + 5) / 8);
        let info = setting.run(&["info", &count, "--json"]);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        assert_eq!(info["answer"]["manifest"]["finished"]["instructions"], all - from);
    }
}
