//! The CPU that a recorded program is shown, and what a replay says of one that lacks
//! something.

#[path = "../support/package.rs"]
#[allow(dead_code)]
mod package;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use why_record::event::Event;
use why_record::manifest::Manifest;
use why_record::stream::{Reader, Writer};
use why_record::vectors::{Component, Vectors};

const WHY: &str = env!("CARGO_BIN_EXE_why");

struct Setting {
    directory: TempDir,
}

impl Setting {
    fn new() -> Setting {
        Setting { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory.path());
        command.env("WHY_DIR", self.path("recordings")).output().unwrap()
    }

    fn compile(&self, name: &str, source: &str, options: &[&str]) -> String {
        let (source_file, program) = (self.path("source.c"), self.path(name));
        fs::write(&source_file, source).unwrap();
        let mut compiler = Command::new(package::find("cc").unwrap());
        compiler.args(["-O1", "-mno-red-zone"]).args(options);
        assert!(compiler.arg("-o").args([&program, &source_file]).status().unwrap().success());
        program.display().to_string()
    }

    /// What a program writes while it is recorded, after a look whether a replay writes and
    /// ends the same.
    fn recorded(&self, recording: &str, options: &[&str], command: &[&str]) -> Output {
        let record = [&["record", "-o", recording], options, &["--"], command].concat();
        let recorded = self.run(WHY, &record);
        let replayed = self.run(WHY, &["replay", recording]);
        assert_eq!(text(&replayed.stdout), text(&recorded.stdout), "{}", text(&replayed.stderr));
        let status = recorded.status.code().or(recorded.status.signal().map(|n| 128 + n));
        assert_eq!(replayed.status.code(), status, "{}", text(&replayed.stderr));
        recorded
    }

    fn manifest(&self, recording: &str) -> Value {
        let text = fs::read(self.path(recording).join("manifest.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn change_manifest(&self, recording: &str, change: impl FnOnce(&mut Value)) {
        let path = self.path(recording);
        let mut manifest = Manifest::read(&path).unwrap();
        let mut cpu = serde_json::to_value(&manifest.cpu).unwrap();
        change(&mut cpu);
        manifest.cpu = serde_json::from_value(cpu).unwrap();
        manifest.write(&path).unwrap();
    }

    fn features(&self, recording: &str) -> Vec<String> {
        serde_json::from_value(self.manifest(recording)["cpu"]["features"].clone()).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kernel_says_cpu_has(flag: &str) -> bool {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap();
    flags.split_whitespace().any(|word| word == flag)
}

#[test]
fn every_answer_is_the_machines_own_limited_to_v3() {
    let setting = Setting::new();
    let program = setting.compile("identity", include_str!("identity.c"), &[]);
    let by_hand = setting.run(&program, &["v3"]);
    let recorded = setting.recorded("rec", &[], &[&program]);
    assert!(by_hand.status.success() && by_hand.stdout.len() > 10_000);
    assert_eq!(text(&recorded.stdout), text(&by_hand.stdout));
}

#[test]
fn native_is_the_machines_own() {
    let setting = Setting::new();
    let program = setting.compile("identity", include_str!("identity.c"), &[]);
    let native = setting.run(&program, &[]);
    let recorded = setting.recorded("rec", &["--cpu", "native"], &[&program]);
    assert_eq!(text(&recorded.stdout), text(&native.stdout));
    assert_eq!(setting.manifest("rec")["cpu"]["shown"], "native");
    for flag in ["avx2", "avx512f", "adx", "vaes"] {
        let told = setting.features("rec").iter().any(|name| name == flag);
        assert_eq!(told, kernel_says_cpu_has(flag), "{flag}");
    }
}

/// Features by the compiler's names: first those that are shown, then those that are not.
const SUPPORTS: &str = "
    #include <stdio.h>
    #define TELL(name) printf(name \" %d\\n\", !!__builtin_cpu_supports(name));
    int main(void) {
        TELL(\"sse4.2\") TELL(\"popcnt\") TELL(\"avx\") TELL(\"avx2\") TELL(\"fma\") TELL(\"bmi\")
        TELL(\"bmi2\") TELL(\"aes\") TELL(\"pclmul\") TELL(\"x86-64-v2\") TELL(\"x86-64-v3\")
        puts(\"not shown\");
        TELL(\"avx512f\") TELL(\"avx512vl\") TELL(\"avx512bw\") TELL(\"avx512vbmi\") TELL(\"gfni\")
        TELL(\"vpclmulqdq\") TELL(\"sse4a\") TELL(\"fma4\") TELL(\"xop\") TELL(\"x86-64-v4\")
        return 0;
    }";

#[test]
fn a_compilers_question_is_answered_with_v3() {
    let setting = Setting::new();
    let program = setting.compile("supports", SUPPORTS, &[]);
    let native = text(&setting.run(&program, &[]).stdout);
    let recorded = text(&setting.recorded("rec", &[], &[&program]).stdout);
    let (native_shown, _) = native.split_once("not shown").unwrap();
    let (shown, not_shown) = recorded.split_once("not shown").unwrap();
    assert_eq!(shown, native_shown);
    assert!(not_shown.trim().lines().all(|line| line.ends_with(" 0")), "{not_shown}");
}

#[test]
fn the_dynamic_linker_searches_up_to_v3() {
    let setting = Setting::new();
    let linker = "/lib64/ld-linux-x86-64.so.2";
    let levels = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.trim().starts_with("x86-64-v"));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    let native = levels(text(&setting.run(linker, &["--help"]).stdout));
    let recorded = levels(text(&setting.recorded("rec", &[], &[linker, "--help"]).stdout));
    let expected: Vec<String> = native
        .iter()
        .map(
            |line| {
                if line.starts_with("x86-64-v4") { "x86-64-v4".to_owned() } else { line.clone() }
            },
        )
        .collect();
    assert_eq!(recorded, expected);
    assert_eq!(recorded.len(), 3);
}

#[test]
fn registers_are_saved_and_restored_as_on_a_cpu_without_more() {
    let setting = Setting::new();
    let program = setting.compile("saving", include_str!("saving.c"), &["-mavx"]);
    let forms: Vec<&str> =
        ["xsavec", "xsaveopt"].into_iter().filter(|form| kernel_says_cpu_has(form)).collect();
    let forms = forms.join(",");
    let by_hand = setting.run(&program, &["7", &forms]);
    assert!(text(&by_hand.stdout).ends_with("2 faults\n"), "{}", text(&by_hand.stdout));
    let recorded = setting.recorded("rec", &[], &[&program, "0xffffffffffffffff", &forms]);
    assert_eq!(text(&recorded.stdout), text(&by_hand.stdout));
    assert_eq!(recorded.status.code(), Some(0));
}

/// Stores what the x87 unit holds, in both forms and by several kinds of operands, and tells
/// it; with an argument, also where the last instruction was.
const X87: &str = r#"
    #include <stdint.h>
    #include <stdio.h>
    #include <string.h>
    static uint8_t image[128];
    static void tell(const char *how, const uint8_t *bytes, int size, int address, int wide, int all) {
        printf("%s", how);
        for (int i = 0; i < size; i++)
            // Where the operand was differs from run to run, as do addresses of code.
            if (all || i < address || i >= address + (wide ? 16 : 8)) printf(" %02x", bytes[i]);
        puts("");
    }
    int main(int argc, char **argv) {
        (void)argv;
        static double number = 1.5;
        uint8_t local[128];
        uint8_t *there = local;
        for (int turn = 0; turn < 3; turn++) {
            memset(image, 0x55, sizeof image);
            memset(local, 0x55, sizeof local);
            __asm__ volatile("fninit; fldl %1; fnsave image(%%rip)" : "=m"(image) : "m"(number));
            tell("fnsave", image, 112, 12, 1, argc > 1);
            __asm__ volatile("fldl %1; .byte 0x66; fnsave (%0)" : : "r"(there), "m"(number) : "memory");
            tell("fnsave, 16 bits", local, 112, 6, 0, argc > 1);
            __asm__ volatile("fldl %2; fnstenv 8(%0,%1,4)" : : "r"(there), "r"(4ul), "m"(number) : "memory");
            tell("fnstenv", local + 24, 40, 12, 1, argc > 1);
            memset(image, 0x55, sizeof image);
            __asm__ volatile("fldl %1; .byte 0x66; fnstenv %0" : "=m"(image) : "m"(number));
            tell("fnstenv, 16 bits", image, 30, 6, 0, argc > 1);
        }
        return 0;
    }"#;

#[test]
fn no_address_of_the_engine_is_stored() {
    let setting = Setting::new();
    let program = setting.compile("x87", X87, &[]);
    let natively = setting.run(&program, &[]);
    let recorded = setting.recorded("rec", &[], &[&program]);
    assert_eq!(text(&recorded.stdout), text(&natively.stdout));
    // It is the same wherever the code is.
    setting.recorded("with addresses", &[], &[&program, "all"]);
}

/// AVX-512 code that asks nobody: executed twice, if an argument says so.
const BEYOND: &str = "
    #include <stdio.h>
    _Alignas(64) int sums[16];
    int main(int argc, char **argv) {
        (void)argv;
        for (int i = 0; i < 2; i++)
            if (argc > 1)
                __asm__ volatile(\"vpternlogd $255, %%zmm20, %%zmm20, %%zmm20\\n\"
                                 \"vpaddd sums(%%rip), %%zmm20, %%zmm21\\n\"
                                 \"vmovdqa64 %%zmm21, sums(%%rip)\" ::: \"memory\");
        printf(\"%d %d\\n\", sums[0], sums[15]);
        return 0;
    }";

#[test]
fn what_a_program_uses_without_asking_is_named() {
    let setting = Setting::new();
    let program = setting.compile("beyond", BEYOND, &[]);
    let native = setting.run(&program, &["use"]);
    let recorded = setting.recorded("used", &[], &[&program, "use"]);
    assert_eq!((text(&recorded.stdout), recorded.status), (text(&native.stdout), native.status));
    let has = kernel_says_cpu_has("avx512f");
    assert_eq!(native.status.success(), has);
    assert_eq!(setting.features("used").contains(&"avx512f".to_owned()), has);
    let info = text(&setting.run(WHY, &["info", "used"]).stdout);
    assert_eq!(info.contains("also used avx512f"), has, "{info}");
    // What is there and not executed does not count, nor does what an earlier run used.
    for recording in ["one", "two"] {
        setting.recorded(recording, &[], &[&program]);
        assert!(!setting.features(recording).contains(&"avx512f".to_owned()));
    }
    setting.recorded("again", &[], &[&program, "use"]);
    assert_eq!(setting.features("again").contains(&"avx512f".to_owned()), has);
}

#[test]
fn what_a_cpu_lacks_is_named_before_the_replay() {
    let setting = Setting::new();
    setting.recorded("rec", &[], &["echo", "hello"]);
    // No CPU has had it since 2017, and no feature is called like the other.
    setting.change_manifest("rec", |cpu| {
        let features = cpu["features"].as_array_mut().unwrap();
        features.extend(["xop".into(), "unheard-of".into()]);
    });
    let replayed = setting.run(WHY, &["replay", "rec"]);
    let said = text(&replayed.stderr);
    assert_eq!(replayed.status.code(), Some(125));
    assert!(said.contains("xop, unheard-of") && said.lines().count() == 1, "{said}");
    assert!(replayed.stdout.is_empty());
    let info = text(&setting.run(WHY, &["info", "rec"]).stdout);
    assert!(info.contains("this machine lacks xop, unheard-of"), "{info}");
    assert_eq!(setting.run(WHY, &["print", "rec", "end"]).status.code(), Some(1));
}

#[test]
fn a_recording_of_another_makers_cpu_is_replayed() {
    let setting = Setting::new();
    let recorded = setting.recorded("rec", &[], &["sh", "-c", "ls / | wc -l; kill -9 $$"]);
    setting.change_manifest("rec", |cpu| cpu["vendor"] = "SomeoneElses".into());
    let replayed = setting.run(WHY, &["replay", "rec"]);
    assert_eq!(text(&replayed.stdout), text(&recorded.stdout), "{}", text(&replayed.stderr));
    assert_eq!(replayed.status.code(), Some(128 + 9));
}

#[test]
fn programs_that_choose_their_code_by_the_cpu_compute_the_same() {
    let setting = Setting::new();
    let data: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(setting.path("data"), data).unwrap();
    let openssl = package::find("openssl").unwrap().display().to_string();
    // Where what is on the path may be a script that looks for it.
    let python = package::find("/usr/bin/python3").unwrap().display().to_string();
    let script = "import hashlib, zlib; d = open('data', 'rb').read(); \
                  print(hashlib.sha512(d).hexdigest(), zlib.crc32(d), sum(d), d.find(b'zz'))";
    let key = ["-K", "00112233445566778899aabbccddeeff", "-iv", "0123456789abcdef0123456789abcdef"];
    let encrypt = [&openssl[..], "enc", "-aes-128-ctr", "-in", "data"];
    for command in [
        &[&encrypt[..], &key].concat()[..],
        &[&openssl, "dgst", "-sha256", "data"],
        &[&python, "-c", script],
    ] {
        let native = setting.run(command[0], &command[1..]);
        assert!(native.status.success() && !native.stdout.is_empty(), "{command:?}");
        let recorded = setting.recorded("rec", &[], command);
        assert!(recorded.stdout == native.stdout, "{command:?}");
        fs::remove_dir_all(setting.path("rec")).unwrap();
    }
}

/// The same recording with other vector registers.
fn with_vectors(setting: &Setting, change: impl Fn(&mut Vectors)) {
    let events = fs::read_dir(setting.path("rec/events")).unwrap().next().unwrap().unwrap();
    let mut reader = Reader::open(&events.path()).unwrap();
    // A stream is checked with its name.
    let copies = TempDir::new_in(setting.path("rec")).unwrap();
    let copy = copies.path().join(events.file_name());
    let mut writer = Writer::create(&copy).unwrap();
    while let Some(mut event) = reader.next_event().unwrap() {
        if let Event::Vectors(vectors) = &mut event {
            change(vectors);
        }
        writer.add(&event).unwrap();
    }
    writer.flush().unwrap();
    fs::rename(copy, events.path()).unwrap();
}

#[test]
fn registers_that_no_cpu_has_are_refused() {
    let setting = Setting::new();
    let good = [
        |vectors: &mut Vectors| vectors.legacy_in_use = 0,
        |vectors: &mut Vectors| vectors.legacy[400] ^= 1,
    ];
    // Reserved bits of MXCSR; too little; registers that there are not.
    let bad = [
        |vectors: &mut Vectors| (vectors.legacy_in_use, vectors.legacy[27]) = (3, 0xff),
        |vectors: &mut Vectors| vectors.legacy.truncate(400),
        |vectors: &mut Vectors| {
            vectors.components.push(Component { number: 44, bytes: vec![0; 64] });
        },
        |vectors: &mut Vectors| {
            vectors.components.push(Component { number: 2, bytes: vec![0; 1 << 20] });
        },
    ];
    for (change, status) in good.iter().map(|c| (c, 0)).chain(bad.iter().map(|c| (c, 125))) {
        setting.recorded("rec", &["--checkpoints", "none"], &["echo", "hello"]);
        with_vectors(&setting, change);
        let replayed = setting.run(WHY, &["replay", "rec"]);
        let said = text(&replayed.stderr);
        assert_eq!(replayed.status.code(), Some(status), "{said}");
        assert!(!said.contains("defect"), "{said}");
        fs::remove_dir_all(setting.path("rec")).unwrap();
    }
}
