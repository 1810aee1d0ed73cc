//! Values of all kinds, and what the names of variables mean, as gdb has them.

use super::gdb::normal;
use super::{Setting, source, text};

/// Compares what expressions are where a line is executed.
fn check(setting: &Setting, word: &str, expressions: &[&str]) {
    let place = setting.line_of(word);
    let theirs = setting.gdb(&place, 1, expressions);
    let position = setting.print(&format!("{place}#1"))["answer"]["position"].clone();
    for expression in expressions {
        let ours = setting.value(&format!("{}:{expression}", position.as_str().unwrap()));
        let there = normal(theirs["values"][expression].as_str().unwrap());
        // gdb says of an address which type it points to.
        let there = match there.split_once(") ") {
            Some((type_, address)) if type_.starts_with('(') && type_.ends_with('*') => address,
            _ => &there,
        };
        assert_eq!(normal(&ours), there, "{expression} in {place}");
    }
}

fn build(name: &str, compiler: &[&str]) -> Setting {
    let setting = Setting::build(&format!("values/{name}"), compiler);
    setting.record(&[]);
    setting
}

#[test]
fn constants_have_the_sign_that_they_were_written_with() {
    for options in [["cc", "-O0"], ["cc", "-O1"], ["cc", "-O2"]] {
        let setting = build("constants.c", &options);
        check(&setting, "LOOK", &["by", "offset", "limit", "wide", "negative"]);
        check(&setting, "LOOK", &["large", "found", "below", "narrow"]);
        let many = setting.print("end:many");
        assert_eq!(many["answer"]["value"]["type"], "char [200]");
    }
}

#[test]
fn a_name_means_what_it_means_to_the_function() {
    let setting = build("names.cc", &["c++", "-O0"]);
    check(&setting, "INSIDE", &["x", "outer::x"]);
    assert_eq!(setting.value(&format!("{}:within", setting.line_of("INSIDE"))), "7");
    check(&setting, "METHOD", &["count", "limit", "x"]);
    let qualified = ["outer::x", "Counts::count", "Others::count", "Counts::limit", "x"];
    check(&setting, "LOOK", &qualified);
    check(&setting, "LOOK", &["hidden", "last", "outer::version::within", "(::x)"]);
    let place = setting.line_of("LOOK");
    for (asked, said) in [
        ("nosuch::count", "there is no variable nosuch::count here"),
        ("count", "did you mean Counts::count or Others::count?"),
    ] {
        let printed = setting.why(&["print", &format!("{place}:{asked}")]);
        assert_eq!(printed.status.code(), Some(1), "{asked}");
        assert!(text(&printed.stderr).contains(said), "{asked}: {}", text(&printed.stderr));
    }
}

#[test]
fn what_a_file_keeps_to_itself_is_its_own() {
    let other = source("values/statics_other.c");
    for options in ["-O0", "-O1"] {
        let setting = build("statics.c", &["cc", options, other.to_str().unwrap()]);
        check(&setting, "LOOK", &["state"]);
        let place = "statics_other.c:7";
        let theirs = setting.gdb(place, 1, &["state"]);
        assert_eq!(setting.value(&format!("{place}:state")), theirs["values"]["state"]);
    }
}

#[test]
fn lengths_that_are_computed_are_known() {
    for options in [["cc", "-O0"], ["cc", "-O1"]] {
        let setting = build("lengths.c", &options);
        check(&setting, "LOOK", &["row", "grid", "row[3]", "*rows", "rows[1]"]);
        // What is told is what is followed.
        let place = setting.line_of("LOOK");
        let sliced = setting.why(&["slice", &format!("{place}:row")]);
        let said = text(&sliced.stdout);
        assert!(said.contains("FILL"), "{options:?}: {said}{}", text(&sliced.stderr));
    }
}

#[test]
fn a_function_is_entered_before_its_first_statement() {
    let setting = build("fold.c", &["cc", "-O1", "-no-pie"]);
    assert_eq!(setting.gdb("fold", 1, &["length"])["values"]["length"], "5");
    for place in ["fold#1", "fold.c:3#1"] {
        assert_eq!(setting.value(&format!("{place}:length")), "5", "{place}");
        let told = setting.print(place);
        assert_eq!(super::value_of(&told["answer"]["frames"][0], "length"), "5", "{place}");
    }
}

#[test]
fn of_an_array_of_characters_nothing_is_left_out_unsaid() {
    let setting = build("characters.c", &["cc", "-O0"]);
    for (name, value) in
        [("packet", "\"\\000xy\""), ("name", "\"name\""), ("parts", "\"a\"…"), ("none", "\"\"")]
    {
        assert_eq!(setting.value(&format!("end:{name}")), value, "{name}");
    }
}

#[test]
fn all_whole_numbers_are_indices() {
    let setting = build("characters.c", &["cc", "-O0"]);
    check(&setting, "LOOK", &["middle[back]", "middle[next]", "many[far]", "middle[-1]"]);
    check(&setting, "LOOK", &["middle[0x1]"]);
}

#[test]
fn references_are_what_they_refer_to() {
    let setting = build("references.cc", &["c++", "-O0"]);
    let expressions = ["*pointer", "pointer[1]", "array[1]", "*array", "&number", "number"];
    check(&setting, "LOOK", &expressions);
    check(&setting, "LOOK", &["array[number]", "pair->second", "*pair", "text[1]"]);
}

#[test]
fn virtual_bases_are_where_the_object_says() {
    for options in ["-O0", "-O1"] {
        let setting = build("bases.cc", &["c++", options]);
        check(&setting, "LOOK", &["both.id", "right.id", "both.right", "right.right"]);
        let place = setting.line_of("LOOK");
        assert!(setting.value(&format!("{place}:right")).contains("<Base> = {id = 4}"));
        // What is told is what is followed, though it lies outside of that part.
        let sliced = setting.why(&["slice", &format!("{place}:right")]);
        let said = text(&sliced.stdout);
        assert!(said.contains("MADE"), "{options:?}: {said}{}", text(&sliced.stderr));
    }
}

#[test]
fn callers_tell_of_their_own_frames_and_of_any_type() {
    let setting = build("entered.c", &["cc", "-O1", "-no-pie"]);
    check(&setting, "LOOK", &["*table", "table[3]", "scale"]);
}

#[test]
fn pieces_need_not_be_bytes() {
    let setting = build("pieces.c", &["cc", "-O1"]);
    check(&setting, "LOOK", &["flags", "flags.a", "flags.b", "flags.c", "flags.d"]);
}

#[test]
fn what_was_inlined_twice_has_its_own_values() {
    for level in ["-O0", "-O1"] {
        let setting = build("adjacent.c", &["cc", level]);
        let place = setting.line_of("LOOK");
        for (number, value) in [(1, "200"), (2, "40000")] {
            let told = setting.print(&format!("{place}#{number}"));
            let frame = &told["answer"]["frames"][0];
            assert_eq!(super::value_of(frame, "number"), value, "{level}");
            assert_eq!(setting.value(&format!("{place}#{number}:number")), value, "{level}");
        }
    }
}

/// Whatever a statement has no code of its own, and another function's begins there.
#[test]
fn names_of_a_statement_are_those_of_its_function() {
    for level in ["-O1", "-O2", "-O3"] {
        let setting = build("statements.c", &["cc", level]);
        for (word, function) in
            [("FIRST", "main"), ("COUNT", "main"), ("SUM", "mean"), ("SHOWN", "main")]
        {
            let place = setting.line_of(word);
            let told = setting.print(&place);
            let frame = &told["answer"]["frames"][0];
            assert_eq!(frame["function"], function, "{level} {word}: {told}");
            let asked = |name: &str| setting.why(&["print", &format!("{place}:{name}")]);
            let value = |name: &str| text(&asked(name).stdout);
            if function == "main" {
                assert!(value("n").ends_with("n = 7\n"), "{level} {word}: {}", value("n"));
                continue;
            }
            let share = value("share");
            let is_own = ["1.5", "3", "4.5", "6"]
                .iter()
                .any(|own| share.ends_with(&format!("share = {own}\n")));
            let is_unknown = text(&asked("share").stderr).contains("share is <optimised out>");
            assert!(is_own || is_unknown, "{level} {word}: {share}");
            let least = text(&asked("least").stderr);
            assert!(least.contains("there is no variable least here"), "{level}: {least}");
        }
    }
}

#[test]
fn numbers_of_all_sizes_are_told() {
    let setting = build("numbers.c", &["cc", "-O0"]);
    for (name, value) in [
        ("most", "340282366920938463463374607431768211455"),
        ("least", "-170141183460469231731687303715884105728"),
        ("quad", "1.5"),
        ("half", "2.5"),
        ("largest", "1.18973149535723176502e4932"),
        ("smallest", "9.99999999999999999987e-4001"),
        ("tenth", "0.100000000000000000001"),
        ("complex", "1.5 + 2.25i"),
    ] {
        assert_eq!(setting.value(&format!("end:{name}")), value, "{name}");
    }
    let setting = build("members.cc", &["c++", "-O0"]);
    for (name, value) in [("second", "4"), ("nothing", "0x0")] {
        assert_eq!(setting.value(&format!("end:{name}")), value, "{name}");
    }
}

/// The last execution of a line with a lambda is mostly one of that.
#[test]
fn a_line_is_executed_last_by_who_knows_the_name() {
    let setting = build("closures.cc", &["c++", "-O0"]);
    let value = |word: &str, rest: &str| setting.value(&format!("{}{rest}", setting.line_of(word)));
    // There are four elements, and then the lambda is left for good.
    assert_eq!(value("FOUND", "#5:one"), "2");
    let place = setting.line_of("FOUND");
    assert!(setting.print(&format!("{place}#5"))["answer"]["frames"][0]["function"] != "main");
    for (word, name, expected) in [
        ("FOUND", ":found", "2"),
        ("FOUND", ":one", "2"),
        ("FOUND", ":least", "3"),
        ("FOUND", ":many", "-1"),
        ("ADD", ":add.__least", "3"),
        ("ADD", ":more", "1"),
        // Of several such executions, the last one.
        ("OVER", "#1:over", "2"),
        ("OVER", ":over", "1"),
    ] {
        assert_eq!(value(word, name), expected, "{word}{name}");
    }
    let told = |criterion: &str| {
        let sliced = setting.why(&["slice", criterion, "--thin"]);
        assert!(sliced.status.success(), "{}", text(&sliced.stderr));
        text(&sliced.stdout).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&format!("{place}:found")), told(&format!("{place}#1:found")));
    // An execution that was named is the one that is meant, and so is the last if nobody knows more.
    for (criterion, names) in [("#5:found", "one and least"), (":nosuch", "one and least")] {
        let error = text(&setting.why(&["print", &format!("{place}{criterion}")]).stderr);
        assert!(error.contains("there is no variable") && error.contains(names), "{error}");
    }
    let setting = build("closures.rs", &["rustc", "--edition", "2021", "-C", "opt-level=0"]);
    let place = setting.line_of("FOUND");
    assert_eq!(setting.value(&format!("{place}:found")), "2");
    assert_eq!(setting.value(&format!("{place}:**one")), "2");
}

#[test]
fn a_register_is_a_variable_only_within_its_block() {
    for level in ["opt-level=0", "opt-level=1"] {
        let setting = build("blocks.rs", &["rustc", "--edition", "2021", "-C", level]);
        assert_eq!(setting.value(&format!("{}#1:by", setting.line_of("TIMES"))), "-4", "{level}");
    }
}

#[test]
fn what_is_no_variable_here_is_told_with_what_helps() {
    let setting = Setting::build("values/crash.c", &["cc", "-O0"]);
    let strip = std::process::Command::new("strip").arg("-d").arg(&setting.program).status();
    assert!(strip.unwrap().success());
    setting.record(&[]);
    let blocks = build("blocks.rs", &["rustc", "--edition", "2021", "-C", "opt-level=0"]);
    let apply = blocks.line_of("APPLY");
    let (file, line) = apply.split_once(':').unwrap();
    let next = format!("{file}:{}", line.parse::<u64>().unwrap() + 1);
    for (setting, criterion, said) in [
        (&setting, "crash:value", "crash was built without -g"),
        (&setting, "crash:total", "its 4 bytes can be asked for: 0x"),
        (&blocks, &format!("{apply}:change"), &format!("there is one from {next} on")),
    ] {
        let error = text(&setting.why(&["print", criterion]).stderr);
        assert!(error.contains(said) && error.lines().count() == 1, "{criterion}: {error}");
    }
    let told = setting.print("crash");
    assert_eq!(
        told["answer"]["frames"][told["answer"]["frame"].as_u64().unwrap() as usize]["function"],
        "fail"
    );
}

#[test]
fn functions_within_functions_use_what_is_around_them() {
    let setting = build("nested.c", &["cc", "-O0"]);
    check(&setting, "LOOK", &["sum", "by", "z"]);
    check(&setting, "DEEP", &["sum", "by", "z"]);
}

#[test]
fn variables_of_which_nothing_is_left_are_said_to_be_so() {
    let setting = build("left_out.rs", &["rustc", "--edition", "2021", "-C", "opt-level=2"]);
    for name in ["unused", "dead"] {
        let criterion = format!("{}#1:{name}", setting.line_of("LOOK"));
        let printed = setting.why(&["print", &criterion]);
        let said = text(&printed.stderr) + &text(&printed.stdout);
        assert!(!said.contains("there is no variable"), "{said}");
    }
}
