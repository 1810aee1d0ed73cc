//! Where signals are far apart, a replay runs with units that do not look at the count, and yet
//! stops exactly where they came.

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
