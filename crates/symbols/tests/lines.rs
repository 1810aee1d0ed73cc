//! The line that an instruction was made from is the one that addr2line tells, whatever the
//! compiler has made of the order of statements.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use tempfile::TempDir;
use why_symbols::{Image, LineSearch, LinkAddress, Module};

const PART: &str = "
    int twice(int value)
    {
        int two = 2;
        return two * value;
    }";

const SOURCE: &str = "
    #include <stdio.h>
    #include <stdlib.h>
    struct pair { int first, second; } pair = { 1, 2 };
    int twice(int value);
    static inline int scale(int value, int by)
    {
        int result = value * by;
        if (result > 50)
            result -= 7;
        return result;
    }
    __attribute__((noinline)) int weigh(int a, int b)
    {
        int scaled = a * 37;
        int sum = scaled + b;
        return sum;
    }
    __attribute__((noinline)) int total(const int *numbers, int count)
    {
        int sum = 0;
        for (int i = 0; i < count; i++) {
            int square = numbers[i] * numbers[i];
            sum += square > 9 ? scale(square, 3) : square;
        }
        return sum;
    }
    int main(int argc, char **argv)
    {
        int numbers[] = { argc, 2, atoi(argv[0]), 4 };
        int all = total(numbers, 4);
        int weight = weigh(all, scale(twice(argc), 2));
        printf(\"%d\\n\", weight);
        return 0;
    }";

fn build(options: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("part")).unwrap();
    std::fs::write(directory.path().join("a.c"), SOURCE).unwrap();
    std::fs::write(directory.path().join("part/a.c"), PART).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(options).args(["-g", "-o", "a", "./a.c", "part/a.c"]);
    assert!(compiler.current_dir(directory.path()).status().unwrap().success());
    directory
}

/// The lines of an address, as `FILE:LINE`: its own, then those of the calls that were inlined.
fn told_by_addr2line(program: &Path, LinkAddress(address): LinkAddress) -> Vec<String> {
    let mut command = Command::new("addr2line");
    command.arg("-i").arg("-e").arg(program).arg(format!("{address:#x}"));
    let told = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = |line: &str| line.split(' ').next().unwrap().to_owned();
    told.lines().map(line).map(|line| line.replace("/./", "/")).collect()
}

fn load(program: &Path) -> Rc<Image> {
    Rc::new(Image::load(&std::fs::read(program).unwrap(), program).unwrap())
}

#[test]
fn a_file_has_one_name_and_is_found_by_its_whole_path() {
    for options in [&["-gdwarf-4", "-fdebug-types-section"][..], &["-gdwarf-2"], &["-gdwarf-5"]] {
        let directory = build(options);
        let image = load(&directory.path().join("a"));
        let search = |file: &str, line: u64| {
            let mut found = LineSearch::default();
            image.search_line(file, line, &mut found);
            found.files.into_iter().collect::<Vec<String>>()
        };
        let whole = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        assert_eq!(search("a.c", 15), [whole("a.c")], "{options:?}");
        assert_eq!(search("part/a.c", 4), [whole("part/a.c")], "{options:?}");
        assert_eq!(search(&whole("part/a.c"), 4), [whole("part/a.c")], "{options:?}");
    }
}

#[test]
fn instructions_are_of_the_lines_that_addr2line_tells() {
    for options in [&["-O0"][..], &["-O1"], &["-O2"], &["-O3"], &["-O2", "-gdwarf-4"]] {
        let directory = build(options);
        let program = directory.path().join("a");
        let image = load(&program);
        let code = 0..u64::MAX;
        let module = Module::new(code, 0, false, "a".to_owned(), Rc::clone(&image)).unwrap();
        for name in ["weigh", "total", "twice", "main"] {
            let entry = *image.search_function(name).first().unwrap();
            let function = image.extent(entry).unwrap();
            for address in (function.start.0..function.end.0).map(LinkAddress) {
                let functions = module.functions(address).into_iter();
                let ours: Vec<String> = functions
                    .filter_map(|called| called.line)
                    .map(|line| format!("{}:{}", line.file, line.line))
                    .collect();
                let theirs = told_by_addr2line(&program, address);
                assert_eq!(ours, theirs, "{options:?}: {name} at {address:x?}");
            }
        }
    }
}
