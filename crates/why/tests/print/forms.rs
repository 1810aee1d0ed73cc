//! The forms in which compilers, linkers and other tools leave debug information: what is shown of
//! a program is the same in all of them, and what gdb shows of it where it is plain.

use super::gdb::{Question, normal};
use super::{Setting, compare, source, text, value_of};
use std::process::Command;

/// Runs a tool where the program is.
fn run(setting: &Setting, tool: &str, arguments: &[&str]) {
    let mut command = Command::new(tool);
    let done = command.args(arguments).current_dir(setting.directory.path()).output();
    let done = done.unwrap_or_else(|error| panic!("{tool}: {error}: ./setup installs it"));
    assert!(done.status.success(), "{tool} {arguments:?}: {}", text(&done.stderr));
}

fn has_section(setting: &Setting, name: &str) -> bool {
    let mut command = Command::new("readelf");
    let output = command.arg("-SW").arg(&setting.program).output().unwrap();
    text(&output.stdout).split_whitespace().any(|word| word == name)
}

/// Tools, with their arguments.
type Steps<'a> = &'a [(&'a str, &'a [&'a str])];

/// Builds a program in some form, and compares all variables with those that gdb shows of it in the
/// plain one.
fn check(options: &[&str], steps: Steps, sections: &[&str]) {
    let plain = Setting::build("shapes.c", &["cc", "-O0"]);
    let place = plain.line_of("printf(\"%s %d");
    let theirs = plain.gdb(&place, 2, &[]);
    let setting = Setting::build("shapes.c", &[&["cc", "-O0"], options].concat());
    for (tool, arguments) in steps {
        run(&setting, tool, arguments);
    }
    // The test is of no use if a tool did not do what it is here for.
    for section in sections {
        assert!(has_section(&setting, section), "{options:?} {steps:?}: no {section}");
    }
    setting.record(&[]);
    let known = compare(&setting.print(&format!("{place}#2")), &theirs, &[]);
    assert!(known >= 45, "{options:?} {steps:?}: only {known} values are known");
}

#[test]
fn older_versions_are_read() {
    for version in ["-gdwarf-2", "-gdwarf-3"] {
        check(&[version, "-gstrict-dwarf"], &[], &[]);
    }
}

#[test]
fn compressed_sections_are_read() {
    check(&["-gz=zlib"], &[], &[".debug_info"]);
    check(&[], &[("objcopy", &["--compress-debug-sections=zstd", "shapes"])], &[".debug_info"]);
    check(
        &[],
        &[("objcopy", &["--compress-debug-sections=zlib-gnu", "shapes"])],
        &[".zdebug_info"],
    );
}

#[test]
fn types_in_units_of_their_own_are_read() {
    check(&["-gdwarf-4", "-fdebug-types-section"], &[], &[".debug_types"]);
    check(&["-gdwarf-5", "-fdebug-types-section"], &[], &[]);
}

#[test]
fn split_units_are_read() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        check(&[version, "-gsplit-dwarf"], &[], &[".debug_addr"]);
        check(&[version, "-gsplit-dwarf", "-fdebug-types-section"], &[], &[".debug_addr"]);
    }
    // All of them in one file beside the program.
    let packed: Steps =
        &[("dwp", &["-e", "shapes", "-o", "shapes.dwp"]), ("sh", &["-c", "rm *.dwo"])];
    check(&["-gdwarf-4", "-gsplit-dwarf"], packed, &[".debug_addr"]);
    check(&["-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"], packed, &[".debug_addr"]);
    let packed: Steps =
        &[("llvm-dwp", &["-e", "shapes", "-o", "shapes.dwp"]), ("sh", &["-c", "rm *.dwo"])];
    check(&["-gdwarf-5", "-gsplit-dwarf"], packed, &[".debug_addr"]);
}

#[test]
fn without_the_rest_of_a_split_unit_there_are_still_lines() {
    let setting = Setting::build("shapes.c", &["cc", "-O0", "-gsplit-dwarf"]);
    run(&setting, "sh", &["-c", "rm *.dwo"]);
    setting.record(&[]);
    let place = setting.line_of("printf(\"%s %d");
    let answer = setting.print(&format!("{place}#2"));
    let (_, line) = place.split_once(':').unwrap();
    assert_eq!(answer["answer"]["frames"][0]["line"].to_string(), line);
}

#[test]
fn what_dwz_put_together_is_read() {
    check(&[], &[("dwz", &["shapes"])], &[]);
    // What two programs have in common is in a third file.
    let shared: Steps = &[
        ("cp", &["shapes", "other"]),
        ("dwz", &["-m", "common.debug", "-M", "common.debug", "-h", "shapes", "other"]),
    ];
    check(&[], shared, &[".gnu_debugaltlink"]);
    check(&["-gdwarf-4"], shared, &[".gnu_debugaltlink"]);
    // The same in a file of its own beside the program.
    let separate: Steps = &[
        ("cp", &["shapes", "other"]),
        ("dwz", &["-m", "common.debug", "-M", "common.debug", "-h", "shapes", "other"]),
        ("objcopy", &["--only-keep-debug", "shapes", "shapes.debug"]),
        ("strip", &["shapes"]),
        ("objcopy", &["--add-gnu-debuglink=shapes.debug", "shapes"]),
    ];
    check(&[], separate, &[".gnu_debuglink"]);
}

#[test]
fn a_caller_tells_what_a_function_has_forgotten() {
    for options in [["cc", "-O2"], ["cc", "-O1"], ["cc", "-Os"]] {
        for version in ["-gdwarf-5", "-gdwarf-4"] {
            // Else values are kept in registers that, as far as others know, calls do not preserve.
            let options = [&options[..], &[version, "-fno-ipa-ra"]].concat();
            let setting = Setting::build("entries.c", &options);
            setting.record(&[]);
            let place = setting.line_of("LOOK");
            let mut told = 0;
            for number in 1..=6 {
                let theirs = setting.gdb(&place, number, &[]);
                let ours = setting.print(&format!("{place}#{number}"));
                // What the C library called it with, gdb does not look for.
                compare(&ours, &theirs, &["argc"]);
                // What gdb knows, we know; but behind a jump it makes up the frame that is gone.
                if number > 4 {
                    continue;
                }
                let ours = ours["answer"]["frames"].as_array().unwrap();
                for (our, their) in ours.iter().zip(theirs["frames"].as_array().unwrap()) {
                    for (name, value) in their["variables"].as_object().unwrap() {
                        let value = normal(value.as_str().unwrap());
                        let here = normal(value_of(our, name));
                        if name == "argc" && here != value {
                            assert_eq!((&*here, &*value), ("1", "<optimised out>"));
                            continue;
                        }
                        assert_eq!(here, value, "{options:?} #{number}: {name}");
                        told += usize::from(name == "constant" && value == "17");
                    }
                }
            }
            assert!(told > 0, "{options:?}: gdb does not know either");
        }
    }
}

#[test]
fn each_thread_has_its_own_variables() {
    for options in [&["-O0"][..], &["-O2"], &["-O0", "-no-pie", "-fno-pie"]] {
        let setting = Setting::build("shapes.c", &["cc", "-O0"]);
        let library = source("threads_library.c").display().to_string();
        for (name, model) in
            [("linked", "global-dynamic"), ("early", "initial-exec"), ("loaded", "local-dynamic")]
        {
            let (function, variable) =
                (format!("-DFUNCTION={name}"), format!("-DVARIABLE={name}_value"));
            let (model, out) = (format!("-ftls-model={model}"), format!("lib{name}.so"));
            let fixed = ["-g", "-O0", "-shared", "-fPIC", &library, "-o"];
            run(&setting, "cc", &[&fixed[..], &[&out, &function, &variable, &model]].concat());
        }
        let program = source("threads.c").display().to_string();
        let fixed =
            ["-g", &program, "-o", "threads", "-L.", "-llinked", "-learly", "-Wl,-rpath,$ORIGIN"];
        run(&setting, "cc", &[options, &fixed[..]].concat());
        let directory = setting.directory.path();
        let (threads, source) = (directory.join("threads"), source("threads.c"));
        let loaded = directory.join("libloaded.so").display().to_string();
        let setting = Setting { program: threads, source, ..setting };
        setting.record(&[&loaded]);
        let place = setting.line_of("LOOK");
        let names = [
            "own",
            "own_text",
            "own_zero",
            "aligned",
            "linked_value",
            "early_value",
            "loaded_value",
        ];
        for number in [1, 2] {
            let (program, arguments) = (&setting.program, &[loaded.as_str()][..]);
            let question =
                Question { program, arguments, place: &place, number, expressions: &names };
            let theirs = question.ask();
            let position =
                setting.print(&format!("{place}#{number}"))["answer"]["position"].clone();
            for name in names {
                let ours = setting.value(&format!("{}:{name}", position.as_str().unwrap()));
                let there = theirs["values"][name].as_str().unwrap();
                assert_eq!(normal(&ours), normal(there), "{options:?} #{number}: {name}");
            }
        }
    }
}
